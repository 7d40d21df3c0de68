"""Checks on which calls are made: announced and not made, made again, searched in circles, text taken for a list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rapidfuzz import fuzz

from tracejury.ingest.trace import Span
from tracejury.judging.checks.hits import Hit, cut, quote_answer, short
from tracejury.judging.checks.view import Thread, Turn, View, is_final_tool

ALIKE = 80
"""rapidfuzz token-set ratio from which two texts of a search count as the same question asked again."""
CIRCLING = 3
LETTERS = re.compile(r"(?:^[^\S\n]?\S?[^\S\n]?\n){8,}", re.MULTILINE)
_CALL_ID = re.compile(r"\ACall id: \S+\s*")
_INTENT = r"\b(?:will|now|going to|need to|let me|let's|use|using|ask|asking|call|calling|request|query|delegate)\b"


def announced_call_missing(view: View) -> Iterator[Hit]:
    """An answer announces a call of a tool or a teammate, then acts without making it (it only prints the request, for
    example): what was announced never happens. Cited at the first such answer."""
    for thread in view.threads:
        for turn, name in _unkept(thread)[:1]:
            yield _unkept_hit(turn, name, "announces a call of {name} but does not make it")


def missing_call_unnoticed(view: View) -> Iterator[Hit]:
    """An agent announces the same kind of call again, without noticing that the earlier one was never made: the work
    does not go on. Cited at each later answer that does so."""
    for thread in view.threads:
        for turn, name in _unkept(thread)[1:]:
            yield _unkept_hit(turn, name, "announces {name} again after an earlier call that was never made")


def repeated_call(view: View) -> Iterator[Hit]:
    """The same call with the same arguments (or the same code) that returns the same result, or fails in the same way,
    is waste: the agent already had the answer. Calls whose results differ (turning pages, waiting) do not count. The
    most repeated call of each agent, cited at its last occurrence."""
    worked = (
        (call for call in _calls(tools) if not is_final_tool(call.span.tool_name, view.finals)) for tools in view.work
    )
    for calls in (*worked, *map(_code, view.threads)):
        same: dict[tuple[str, str, str], list[tuple[Span, str]]] = {}
        for call in calls:
            same.setdefault(call.key, []).append((call.span, call.text))
        repeated = max(same.items(), key=lambda item: len(item[1]), default=None)
        if repeated is not None and len(repeated[1]) > 1:
            (name, arguments, _), repeats = repeated
            span, text = repeats[-1]
            yield Hit(
                span=span,
                evidence=cut(text),
                description=f"{name} returns the same result {len(repeats)} times, called with {short(arguments)}",
            )


def repeated_failure(view: View) -> Iterator[Hit]:
    """A tool that keeps failing is called again and again: the agent spends steps without learning from the message.
    From three failures in a row, cited at the last of them, unless that call is reported as a repeated call."""
    reported = {hit.span.span_id for hit in repeated_call(view)}
    for tools in view.work:
        for streak in _failing_streaks(tools):
            last = streak[-1]
            if len(streak) >= CIRCLING and last.span_id not in reported:
                yield Hit(
                    span=last,
                    evidence=cut(last.status_message or last.output or ""),
                    description=(
                        f"{last.tool_name or last.name} fails {len(streak)} times in a row, called the same way"
                    ),
                )


def repeated_search(view: View) -> Iterator[Hit]:
    """A search asked three times or more in nearly the same words finds nothing new: the agent did not read the
    results, or should have tried another source. Cited at the last such search of each agent."""
    for tools in view.work:
        searches = [(span, query) for span in tools if (query := _query(span))]
        last = None
        for place, (span, query) in enumerate(searches):
            alike = sum(fuzz.token_set_ratio(query, earlier) >= ALIKE for _, earlier in searches[:place])
            if alike >= CIRCLING - 1:
                last = (span, query, alike)
        if last is not None:
            span, query, alike = last
            yield Hit(
                span=span,
                evidence=cut(query) if query in (span.tool_arguments or "") else cut(span.tool_arguments or ""),
                description=f"{span.tool_name or span.name} is asked {alike + 1} times in nearly the same words",
            )


def text_iterated_as_list(view: View) -> Iterator[Hit]:
    """Output in which eight lines or more hold one character each comes from a text iterated as if it were a list of
    items: the printed result is unreadable and the code wrong. Cited where the agent reads it, else at the action."""
    for thread, turn in view.turns:
        if not turn.code or not any(LETTERS.search(result) for result in turn.results):
            continue
        reader = thread.after(turn)
        quote = "" if reader is None else _letters_in(reader)
        span = reader.span if reader is not None and quote else turn.span
        yield Hit(
            span=span,
            evidence=quote or quote_answer(turn),
            description=(
                "The output of the agent's code stands with one character on each line: a text was iterated as a list"
            ),
        )


def announced(thread: Thread, turn: Turn) -> str | None:
    """The tool that this turn says it uses now while it acts without calling any."""
    if not turn.code or turn.tried or turn.is_final:
        return None
    for name in sorted(thread.work_tools - turn.called):
        if re.search(rf"{_INTENT}[^.\n]{{0,80}}\b{re.escape(name)}\b", turn.thought, re.IGNORECASE):
            return name
    return None


def _unkept(thread: Thread) -> list[tuple[Turn, str]]:
    return [(turn, name) for turn in thread.turns if (name := announced(thread, turn)) is not None]


def _unkept_hit(turn: Turn, name: str, what: str) -> Hit:
    return Hit(
        span=turn.span,
        evidence=quote_answer(turn, re.compile(rf"\b{re.escape(name)}\b")),
        description=f"The agent {what.format(name=name)}",
    )


class _Call(NamedTuple):
    """A call as made: the span, its text there, and what makes it the same call again (name, arguments, result)."""

    span: Span
    text: str
    key: tuple[str, str, str]


def _calls(tools: Iterable[Span]) -> Iterator[_Call]:
    for span in tools:
        result = span.output or (span.status_message if span.status == "ERROR" else None)
        if span.tool_name and result:
            text = span.tool_arguments or ""
            yield _Call(span, text, (span.tool_name, _normal(text), result))


def _code(thread: Thread) -> Iterator[_Call]:
    for turn in thread.turns:
        result = _CALL_ID.sub("", "\n".join(turn.results))
        if turn.code.strip() and result and not turn.is_final and not turn.tools:
            yield _Call(turn.span, turn.code, ("code", " ".join(turn.code.split()), result))


def _normal(arguments: str | None) -> str:
    try:
        return json.dumps(json.loads(arguments or ""), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return " ".join((arguments or "").split())


def _failing_streaks(tools: Iterable[Span]) -> Iterator[list[Span]]:
    streak: list[Span] = []
    for span in tools:
        if streak and (span.status != "ERROR" or span.tool_name != streak[-1].tool_name):
            yield streak
            streak = []
        if span.status == "ERROR":
            streak.append(span)
    if streak:
        yield streak


_QUERY = re.compile(r'"(?:query|q|search_query|search_term|keywords)"\s*:\s*"((?:[^"\\]|\\.)+)"')


def _query(span: Span) -> str:
    match = _QUERY.search(span.tool_arguments or "")
    return match.group(1) if match is not None else ""


def _letters_in(reader: Turn) -> str:
    for message in reader.heard:
        if message.content and message.role not in {"assistant", "system"}:
            match = LETTERS.search(message.content)
            if match is not None:
                return cut(match.group(0))
    return ""
