"""Checks on instructions that can be read off the prompt: end tags, limits on output, the form of the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tracejury.judging.checks.hits import QUOTE_LENGTH, Hit, cut, line_at, quote_answer
from tracejury.judging.checks.view import Thread, Turn, View

END_TAG = re.compile(
    r"(?:\b(?:write|end|ends|finish|close|conclude|terminate|append|output)\b[^.\n]{0,60}?)"
    r"['\"`]?(?:\\n|\s)*(?P<tag><(?:/?end|stop|done|finish)\w*>)",
    re.IGNORECASE,
)
LIMIT = re.compile(
    r"(?:\b(?:first|up ?to|at most|no more than|maximum(?: of)?)\s+(?P<a>\d{2,6})\s+char(?:acter)?s)"
    r"|(?:\b(?P<b>\d{2,6})\s+char(?:acter)?s at a time)",
    re.IGNORECASE,
)
PRINTING = re.compile(r"\bprint|\boutput|\bread\b|\bdisplay|\bshow|\bscan|\banaly", re.IGNORECASE)
SLICE = re.compile(r"\[[^\[\]\n:]*:\s*(?:\w+\s*\+\s*)?(\d{2,6})\s*\]")
NO_PUNCTUATION = re.compile(
    r"\b(?:don['’]?t|do not|no|without)\b[^.\n]{0,60}\b(?:final|ending|trailing)\b[^.\n]{0,25}punctuation",
    re.IGNORECASE,
)
_TOLD_ROLES = frozenset({"assistant", "tool-response", "tool", "tool-call"})
SLACK = 2
"""Output counts as too long beyond the limit times this where the code names no length: headings are no contents."""


def missing_end_tag(view: View) -> Iterator[Hit]:
    """The answer lacks a tag that the prompt demands at its end (`<end_plan>`): whoever parses the answer by the tag
    goes wrong. Only answers that call nothing, since frameworks stop at the tag of an action and cut it themselves; and
    none of a call that names the tag as a stop sequence: the provider cuts it off, so its absence shows nothing. Cited
    at the first answer of the trace that lacks it."""
    for _, turn in view.turns:
        tag = _demanded_tag(turn)
        if tag is None or turn.acts or not turn.said.strip() or tag.lower() in turn.said.lower():
            continue
        if not _stops_at(turn, tag):
            description = f"The prompt demands {tag} at the end; the recorded answer ends without it"
            yield Hit(span=turn.span, evidence=_last_line(turn.said), description=description)
            return


def output_over_limit(view: View) -> Iterator[Hit]:
    """The prompt limits how many characters the agent's code may print or read at once, and the code prints more:
    either because it cuts a longer slice (cited at the code), or more than twice the limit because it cuts none (cited
    where the agent reads it). Such limits guard the context; breaking one is breaking an instruction."""
    for thread, turn in view.turns:
        limit = _character_limit(turn) if turn.code else None
        if limit is None:
            continue
        sizes = [int(size) for size in SLICE.findall(turn.code)]
        printed = sum(map(len, turn.results))
        if any(size > limit for size in sizes) and printed > limit:
            yield _long_slice(turn, limit)
        elif not sizes and printed > limit * SLACK:
            yield _long_output(thread, turn, limit)


def answer_punctuated(view: View) -> Iterator[Hit]:
    """The prompt forbids punctuation at the end of the answer, and the one-line answer that an agent hands in ends in
    it. A longer text is a report that contains an answer. Cited at the answer."""
    for thread in view.threads:
        final = thread.final
        answer = "" if final is None else final.handed_in.strip().rstrip("\"'`) \n")
        if final is None or "\n" in answer or not answer.endswith((".", "!", "?")):
            continue
        if any(NO_PUNCTUATION.search(message.content or "") for message in final.prompt):
            yield Hit(
                span=final.span,
                evidence=quote_answer(final, re.compile(re.escape(answer))),
                description="The answer ends in punctuation that the prompt forbids",
            )


def _demanded_tag(turn: Turn) -> str | None:
    """The tag that the last thing asked of the model demands."""
    for message in reversed(turn.prompt):
        tag = _tag_in(message.content) if message.content and message.role not in _TOLD_ROLES else None
        if tag is not None:
            return tag
    return None


@lru_cache(maxsize=512)  # every call of a model sends its history again: each text is searched once
def _tag_in(text: str) -> str | None:
    match = END_TAG.search(text)
    return match.group("tag") if match is not None else None


def _stops_at(turn: Turn, tag: str) -> bool:
    """Whether the parameters of the model call name the tag as a stop sequence."""
    stated = [turn.span.input or "", *(str(value) for key, value in turn.span.attributes.items() if "param" in key)]
    return any("stop" in text and tag in text[text.index("stop") :] for text in stated)


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1].strip()[-QUOTE_LENGTH:]


def _character_limit(turn: Turn) -> int | None:
    """The smallest number of characters that the instructions let the agent print or read at once."""
    asking = {"system", "user", "developer"}
    stated = (_limit_in(message.content) for message in turn.prompt if message.content and message.role in asking)
    return min((limit for limit in stated if limit is not None), default=None)


@lru_cache(maxsize=512)
def _limit_in(text: str) -> int | None:
    limits = []
    for match in LIMIT.finditer(text):
        if PRINTING.search(text[max(0, match.start() - 160) : match.end()]):
            limits.append(int(match.group("a") or match.group("b")))
    return min(limits, default=None)


def _long_slice(turn: Turn, limit: int) -> Hit:
    match = next(m for m in SLICE.finditer(turn.said) if int(m.group(1)) > limit)
    return Hit(
        span=turn.span,
        evidence=line_at(turn.said, match.start()),
        description=f"The code takes {match.group(1)} characters at once and prints more than {limit}, the limit set",
    )


def _long_output(thread: Thread, turn: Turn, limit: int) -> Hit:
    size = sum(map(len, turn.results))
    description = f"The code prints {size:,} characters at once; the prompt allows {limit}"
    reader = thread.after(turn)
    if reader is None:
        return Hit(span=turn.span, evidence=quote_answer(turn), description=description)
    return Hit(span=reader.span, evidence=cut(max(turn.results, key=len)), description=description)
