"""From what a judge wrote as a citation to the spans that it names: lists, ranges, ids, tool calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tracejury.judging.reading import Reading
from tracejury.judging.records import Citation
from tracejury.judging.wrapping import plain

_ORDINAL = r"[\[(]?S(?P<{0}>\d{{1,6}})[\])]?"
_TO = r"\s*(?:-{1,2}|[–—−~]|\.{2,3}|…|\bto\b|\bthrough\b|\buntil\b)\s*"
_RANGE = re.compile(_ORDINAL.format("first") + _TO + r"[\[(]?S?(?P<last>\d{1,6})[\])]?(?![\w.])", re.IGNORECASE)
_ID = re.compile(
    r"0x[0-9a-f]{6,}|[0-9a-f]{6,}(?:\.{2,3}|…)?|(?:call|toolu|tool|chatcmpl-tool)[_-]\w[\w-]*", re.IGNORECASE
)
_SPAN = re.compile(r"[\[(]?S\d{1,6}[\])]?(?![\w.-])", re.IGNORECASE)
_WORD = re.compile(r"[^\s,;|&()\[\]]+")
_BEFORE = re.compile(
    r"(?:(?:(?:tool[_ ]?)?(?:call|use)[_ ]?id"
    r"|spans?|steps?|tool|calls?|use|ids?|see|in|at|from|of|llm|messages?|outputs?|results?|events?)"
    r"(?:[ _]?ids?)?\b[\s:=#]*){0,4}",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[\s,;/&+|]*(?:\b(?:and|or)\b[\s,]*)?", re.IGNORECASE)
_IN_PROSE = re.compile(
    rf"\bS\d{{1,6}}{_TO}S\d{{1,6}}\b"
    r"|\bS\d{1,6}\b|\b0x[0-9a-f]{6,16}\b|\b[0-9a-f]{16}\b|\b[0-9a-f]{6,15}(?=\.\.|…)"
    r"|\b(?:call|toolu)_\w{4,}",
)


def resolve_citations(cites: Iterable[str], reading: Reading) -> tuple[Citation, ...]:
    """The spans that each citation names, one `Citation` a span; one that names nothing is kept as unresolved."""
    return tuple(citation for cite in cites for citation in _resolved(cite, reading))


def cites_in_prose(text: str) -> tuple[str, ...]:
    """Ordinals, ranges of them, span ids and ids of tool calls that a text mentions, each once."""
    return tuple(dict.fromkeys(mark[0] for mark in _IN_PROSE.finditer(text)))


def cites_in_field(text: str) -> tuple[str, ...]:
    """The citations of a field that lists them, split at commas and white space; a range stays whole."""
    whole = _RANGE.sub(lambda mark: f"S{mark['first']}-S{mark['last']}", text.strip().strip("[]"))
    return tuple(filter(None, re.split(r"[,;\s]+", whole)))


def _resolved(cite: str, reading: Reading) -> list[Citation]:
    whole = reading.resolve(plain(cite))
    if whole is not None:
        return [Citation(cite=cite, span_id=whole)]
    references = list(_named(plain(cite), reading))
    if all(span_id is None for _, span_id in references):
        return [Citation(cite=cite, span_id=None)]
    distinct: dict[tuple[str, str | None], None] = dict.fromkeys(references)
    return [Citation(cite=cite if len(distinct) == 1 else piece, span_id=span_id) for piece, span_id in distinct]


def _named(text: str, reading: Reading) -> Iterator[tuple[str, str | None]]:
    """The references at the beginning of a text, each with its span; what follows the last of them is prose."""
    at = _after(_BEFORE, text, re.match(r"[\s\[(\"'`*]*", text).end())  # type: ignore[union-attr]
    while True:
        mark = _RANGE.match(text, at) or _SPAN.match(text, at) or _ID.match(text, at) or _WORD.match(text, at)
        if mark is None or (mark.re is _WORD and reading.resolve(mark[0]) is None):
            return
        yield from _spans_of(mark, reading)
        at = _after(_BEFORE, text, _after(_BETWEEN, text, mark.end()))


def _spans_of(mark: re.Match[str], reading: Reading) -> Iterator[tuple[str, str | None]]:
    """The spans of one reference. A range whose ends are not both in the trace names its ends alone."""
    if mark.re is not _RANGE:
        yield mark[0], reading.resolve(mark[0])
        return
    ends = sorted((int(mark["first"]), int(mark["last"])))
    if not 1 <= ends[0] <= ends[1] <= len(reading.blocks):
        yield from ((f"S{number}", reading.resolve(f"S{number}")) for number in ends)
        return
    yield from ((mark[0], block.span_id) for block in reading.blocks[ends[0] - 1 : ends[1]])


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    mark = pattern.match(text, at)
    return at if mark is None else mark.end()
