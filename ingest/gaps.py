"""What could not be read of a trace: model calls without messages, tool calls without text, spans of no known kind.

Each is a warning of the trace, with counts; of a file with many traces the counts are told in one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from tracejury.ingest.leftovers import READ_WHOLE, has_messages, leftovers
from tracejury.ingest.trace import Message, Span

NO_MESSAGES, NO_TOOL_TEXT, NO_KINDS = "no_messages", "no_tool_text", "no_kinds"
NO_CALL_TOKENS, NOTHING_TO_READ = "tokens_on_wrappers", "nothing_to_read"
GAPS = (NO_MESSAGES, NO_TOOL_TEXT, NO_KINDS, NO_CALL_TOKENS, NOTHING_TO_READ)
"""The codes of these warnings; a trace that has one is marked as not fully readable."""
_MOST_NAMES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Gaps:
    """Counts of what could not be read; those of several traces add up. `names` are attributes in which text is."""

    traces: int = 0
    model_calls: int = 0
    silent_calls: int = 0
    tool_calls: int = 0
    silent_tools: int = 0
    spans: int = 0
    kindless: int = 0
    wrapped_tokens: int = 0
    unreadable: int = 0
    names: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Gaps) -> Gaps:
        counts = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "names"}
        return Gaps(**counts, names=Counter(self.names) + Counter(other.names))

    def warnings(self) -> Iterator[str]:
        """One line a kind of gap, with its code, its counts and what to do."""
        if self.silent_calls:
            calls = f"{self.silent_calls} of {_counted(self.model_calls, 'model call')}"
            yield f"{NO_MESSAGES}: {calls} {_have(self.silent_calls)} no readable messages; {self._place()}"
        if self.silent_tools:
            calls = f"{self.silent_tools} of {_counted(self.tool_calls, 'tool call')}"
            yield f"{NO_TOOL_TEXT}: {calls} {_have(self.silent_tools)} neither arguments nor result; {self._place()}"
        if self.kindless:
            yield f"{NO_KINDS}: none of {_counted(self.kindless, 'span')} tells its kind; {self._place()}"
        if self.wrapped_tokens:
            traces = "" if self.traces == 1 else f" in {_counted(self.wrapped_tokens, 'trace')}"
            yield f"{NO_CALL_TOKENS}: only spans around the model calls record tokens{traces}; these are not summed"
        if self.unreadable:
            traces = "the trace holds" if self.traces == 1 else f"{_counted(self.unreadable, 'trace')} hold"
            yield f"{NOTHING_TO_READ}: {traces} names and times only; a judge would have nothing to read"

    def _place(self) -> str:
        names = [name for name, _ in Counter(self.names).most_common(_MOST_NAMES)]
        if not names:
            return "the source holds no text there. Try: record message content, by the settings of the tracer"
        return f"the text is in {', '.join(f'`{name}`' for name in names)}. Try: --map"


def find_gaps(spans: Sequence[Span], messages: Sequence[Message], *, format: str) -> Gaps:
    """What could not be read of one trace."""
    calls = [span for span in spans if span.kind == "LLM"]
    tools = [span for span in spans if span.kind == "TOOL"]
    silent = [span for span in calls if span.status != "ERROR" and not has_messages(span, messages)]
    mute = [span for span in tools if not (span.tool_arguments or span.input or span.output or span.status_message)]
    kindless = len(spans) if all(span.kind == "UNKNOWN" for span in spans) else 0
    about = silent or mute or (spans if kindless else [])
    return Gaps(
        traces=1,
        model_calls=len(calls),
        silent_calls=len(silent),
        tool_calls=len(tools),
        silent_tools=len(mute),
        spans=len(spans),
        kindless=kindless,
        wrapped_tokens=int(_tokens_on_wrappers(spans, calls)),
        unreadable=int(not _holds_text(spans, messages, format)),
        names=dict(Counter(name for span in about for name in {leftover.name for leftover in leftovers(span)})),
    )


def _tokens_on_wrappers(spans: Sequence[Span], calls: Sequence[Span]) -> bool:
    counted = [span for span in spans if span.prompt_tokens or span.completion_tokens or span.total_tokens]
    return bool(calls) and bool(counted) and not any(span.kind == "LLM" for span in counted)


def _holds_text(spans: Sequence[Span], messages: Sequence[Message], format: str) -> bool:
    """Whether a reader finds more than names and times; stops at the first text."""
    if any(message.content or message.tool_calls or message.reasoning for message in messages):
        return True
    if any(span.input or span.output or span.tool_arguments or span.status_message for span in spans):
        return True
    return format not in READ_WHOLE and any(True for span in spans for _ in leftovers(span))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
