"""What a check is and what it reports: a rule with a name, and the spans that break it with a verbatim quote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tracejury.ingest.trace import Message, Span
from tracejury.judging.checks.view import Need, Turn, View
from tracejury.judging.records import Dimension, Impact

QUOTE_LENGTH = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A rule broken at `span`; `evidence` stands verbatim in a text of that span ("" where it holds no text)."""

    span: Span
    evidence: str
    description: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """An offline detector: a rule that holds for any agent, what breaking it means, and the function that looks."""

    name: str
    dimension: Dimension
    category: str
    impact: Impact
    look: Callable[[View], Iterator[Hit]]
    needs: tuple[Need, ...]
    """What of a trace the rule looks at: where one of these is absent the rule does not apply."""

    def lacks(self, view: View) -> tuple[Need, ...]:
        """The needs of this rule that the trace does not fulfil."""
        return tuple(need for need in self.needs if need not in view.holds)

    @property
    def rule(self) -> str:
        """The rule and why breaking it is an error, as the function's docstring states it."""
        return " ".join((self.look.__doc__ or "").split())


def cut(text: str) -> str:
    """The beginning of a text: still verbatim, so no mark of the cut."""
    return text.strip()[:QUOTE_LENGTH].strip()


def line_at(text: str, start: int) -> str:
    """The line of `text` that holds position `start`, cut around it."""
    first = max(text.rfind("\n", 0, start) + 1, start - QUOTE_LENGTH // 2)
    last = text.find("\n", start)
    return text[first : min(len(text) if last < 0 else last, first + QUOTE_LENGTH)].strip()


def quote_answer(turn: Turn, pattern: re.Pattern[str] | None = None) -> str:
    """A line of what the turn said: the one that matches, else its beginning, else the arguments of its call."""
    for message in turn.answers:
        match = pattern.search(message.content or "") if pattern is not None else None
        if match is not None and message.content is not None:
            return line_at(message.content, match.start())
    texts = [message.content for message in turn.answers if message.content and message.content.strip()]
    texts += [call.arguments for call in turn.calls if call.arguments]
    return cut(texts[0]) if texts else cut(turn.span.output or "")


def quote_messages(messages: tuple[Message, ...], pattern: re.Pattern[str]) -> str:
    """The line of the first message that matches, "" if none does."""
    for message in messages:
        match = pattern.search(message.content or "")
        if match is not None and message.content is not None:
            return line_at(message.content, match.start())
    return ""


def short(text: str, length: int = 160) -> str:
    """Text on one line for a description, with a mark where it is cut."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[:length].rstrip()} …"
