"""What the comparison's island is given: the pairs of one trace, and cited spans with both evidences marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from tracejury.ingest.trace import Json
from tracejury.judging.judges.trace_text import Block, Part, TraceText
from tracejury.judging.matching.pairs import Comparison, Pair
from tracejury.judging.records import ErrorLabel, Finding

Mark = Literal["", "reference", "judge", "both"]
WHOLE = 12_000  # characters: a longer text is shown around its marks
AROUND = 2_000  # characters before and after a mark, and of the beginning
_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:\.{3,}|…)(?:\s*\])?\s*")
_GAP = r"(?:\s|\\[nrt])+"  # white space, real or written as an escape
_SHORTEST = 4  # characters of a quote's piece that is looked for


class Stretch(NamedTuple):
    """Code points `start` to `end` of a text, marked by whom."""

    start: int
    end: int
    side: Literal["reference", "judge"]


NEAR = 2  # spans in reading order from a finding to an error that may be the same: a step and its call
MOST = 5  # candidates, one digit each


def pairs_payload(comparison: Comparison, reading: TraceText) -> list[Json]:
    """The pairs as the island lists them."""
    errors = list({pair.error.label_id: pair.error for pair in comparison.pairs if pair.error is not None}.values())
    return [{**_pair(pair, reading), "candidates": _candidates(pair, errors, reading)} for pair in comparison.pairs]


def texts_payload(pair: Pair, reading: TraceText) -> list[Json]:
    """The spans that either side names, in reading order, each text in marked segments."""
    reference = set(pair.error.span_ids) if pair.error is not None else set()
    judge = _cited(pair.finding)
    span_ids = reference | judge | _evidence_spans(pair)
    blocks = [block for block in reading.blocks if block.span_id in span_ids]
    return [
        {
            "span_id": block.span_id,
            "ordinal": block.ordinal,
            "header": block.header,
            "reference": block.span_id in reference,
            "judge": block.span_id in judge,
            "parts": [_part(part, block, pair) for part in block.parts],
        }
        for block in blocks
    ]


def segments(text: str, marks: Sequence[Stretch]) -> list[Json]:
    """`text` cut where marks begin and end: `[text, mark]` or `[omitted characters]`; joined they are the text."""
    windows = _windows(text, marks)
    edges = {edge for start, end in windows for edge in (start, end)}
    edges |= {edge for mark in marks for edge in (mark.start, mark.end)}
    points = sorted({0, len(text), *edges})
    shown: list[Json] = []
    for start, end in pairwise(points):
        if not any(low <= start and end <= high for low, high in windows):
            shown.append([end - start])
        else:
            shown.append([text[start:end], _mark(start, end, marks)])
    return shown


def reference_marks(error: ErrorLabel, span_id: str, part: Part) -> list[Stretch]:
    """Where the person's evidence stands in this text: by its stored place, else (imported) wherever its quote is."""
    marks = []
    for piece in error.evidence:
        if piece.start is None or piece.end is None:
            marks += [Stretch(start, end, "reference") for start, end in find_quote(part.text, piece.quote)]
        elif piece.span_id == span_id and piece.field == part.field:
            marks.append(Stretch(piece.start, piece.end, "reference"))
    return marks


def find_quote(text: str, quote: str) -> list[tuple[int, int]]:
    """The first place of each piece of a quote (cut at ellipses), exactly or with white space and escapes folded."""
    places = []
    for piece in _ELLIPSIS.split(quote.strip().strip('"“”')):
        if len(piece) < _SHORTEST:
            continue
        at = text.find(piece)
        if at >= 0:
            places.append((at, at + len(piece)))
            continue
        folded = _GAP.join(re.escape(word) for word in re.split(_GAP, piece) if word)
        match = re.search(folded, text) if folded else None
        if match is not None:
            places.append(match.span())
    return places


def _candidates(pair: Pair, errors: Sequence[ErrorLabel], reading: TraceText) -> list[Json]:
    """The ids of the errors at the spans of an unmatched finding, or next to them; the nearest first."""
    if pair.finding is None or pair.error is not None:
        return []
    place = {block.span_id: block.seq for block in reading.blocks}
    cited = [place[span] for span in {*_cited(pair.finding), pair.finding.evidence_span_id} if span in place]
    apart = {
        error.label_id: min((abs(place[a] - b) for a in error.span_ids if a in place for b in cited), default=NEAR + 1)
        for error in errors
        if error.label_id not in pair.rejected
    }
    near = [one for one in sorted(apart, key=lambda key: apart[key]) if apart[one] <= NEAR]
    return list[Json](near[:MOST])


def _pair(pair: Pair, reading: TraceText) -> dict[str, Json]:
    decision = pair.decision
    return {
        "key": pair.key,
        "state": pair.state,
        "decided": pair.is_decided,
        "error": None if pair.error is None else _error(pair.error, reading),
        "finding": None if pair.finding is None else _finding(pair, pair.finding, reading),
        "status": None if decision is None else decision.status,
        "author": None if decision is None else decision.author,
        "confidence": None if decision is None else decision.confidence,
        "reasons": [] if decision is None else list(decision.reasons),
        "review": pair.review,
        "rejected": len(pair.rejected),
    }


def _error(error: ErrorLabel, reading: TraceText) -> Json:
    return {
        "id": error.label_id,
        "dimensions": list(error.dimensions),
        "impact": error.impact,
        "category": error.category,
        "description": error.description,
        "evidence": [piece.quote for piece in error.evidence],
        "spans": [reading.ordinals.get(span_id, span_id) for span_id in error.span_ids],
    }


def _finding(pair: Pair, finding: Finding, reading: TraceText) -> Json:
    return {
        "key": pair.finding_key,
        "rubric": pair.rubric,
        "dimension": finding.dimension,
        "impact": finding.impact,
        "category": finding.category,
        "description": finding.description,
        "evidence": finding.evidence,
        "place": finding.evidence_place,
        "citations": [
            {"cite": c.cite, "span": None if c.span_id is None else reading.ordinals.get(c.span_id, c.span_id)}
            for c in finding.citations
        ],
    }


def _cited(finding: Finding | None) -> set[str]:
    return set() if finding is None else {c.span_id for c in finding.citations if c.span_id is not None}


def _evidence_spans(pair: Pair) -> set[str]:
    spans = {piece.span_id for piece in pair.error.evidence} if pair.error is not None else set()
    if pair.finding is not None:
        spans.add(pair.finding.evidence_span_id)
    return {span_id for span_id in spans if span_id is not None}


def _part(part: Part, block: Block, pair: Pair) -> Json:
    marks = reference_marks(pair.error, block.span_id, part) if pair.error is not None else []
    if pair.finding is not None and pair.finding.evidence:
        marks += [Stretch(start, end, "judge") for start, end in find_quote(part.text, pair.finding.evidence)]
    return {"label": part.label, "length": len(part.text), "segments": segments(part.text, marks)}


def _windows(text: str, marks: Iterable[Stretch]) -> list[tuple[int, int]]:
    """What is shown of a text: all of it, or its beginning and the surroundings of each mark."""
    if len(text) <= WHOLE:
        return [(0, len(text))]
    wished = sorted([(0, AROUND), *((max(0, m.start - AROUND), min(len(text), m.end + AROUND)) for m in marks)])
    joined = [wished[0]]
    for start, end in wished[1:]:
        if start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _mark(start: int, end: int, marks: Iterable[Stretch]) -> Mark:
    sides = {mark.side for mark in marks if mark.start <= start and end <= mark.end}
    if len(sides) == 2:
        return "both"
    return next(iter(sides), "")
