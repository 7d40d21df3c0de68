"""Where a judge's quote stands: in a cited span, elsewhere in the trace, or nowhere; and who talks to the judge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from judging.reading import Block, Reading
from judging.records import EvidencePlace

FUZZY_FROM = 90.0  # rapidfuzz partial ratio, 0..100
FUZZY_LEAST = 16  # characters: shorter quotes are like too much
PIECE_LEAST = 4  # characters of a piece between ellipses
_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:\.{3,}|…)(?:\s*\])?\s*")
_ESCAPES = {r"\n": " ", r"\t": " ", r"\r": " ", r"\"": '"', r"\'": "'", r"\/": "/", r"\\": "\\"}
_ESCAPE = re.compile(r"\\[ntr\"'/\\]")
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "–": "-", "—": "-"})
_TO_THE_JUDGE = re.compile(
    r"""(?imx)
      \b(?:ignore|disregard|forget|override)\b[^\n]{0,60}\b(?:rubric|instructions?|prompt|rules|criteria)\b
    | \b(?:attention|note|message|dear|hello|hey|hi)\b[^\n]{0,12}\b(?:judge|grader|evaluator|reviewer)s?\b
    | \b(?:llm|ai)[ -](?:judge|grader|evaluator)\b
    | ^[ \t>*\#-]*(?:final[ ]|overall[ ])?score[ \t*]*[:=][ \t*]*[0-3]\b
    | \b(?:score|rate|grade)[ ](?:this|it|me|the[ ](?:trace|run|agent))\b[^\n]{0,30}\b[0-3]\b
    | <<<[ ]?(?:end[ ])?trace\b
    | ^[ \t]*\[S\d+\][ ](?:AGENT|CHAIN|LLM|TOOL|EVENT|UNKNOWN)\b
    | "score"\s*:\s*[0-3]\s*,\s*"not_applicable"
    """
)


class Place(NamedTuple):
    """Where a quote was found; the span is None when it was not."""

    place: EvidencePlace
    span_id: str | None


def place_evidence(reading: Reading, quote: str, cited: Sequence[str]) -> Place | None:
    """Look for `quote` in the cited spans, then in all others: exactly, then with white space, quotation marks
    and escapes folded, then by likeness. None for an empty quote. The trace's texts are searched whole, also
    where the reading cuts them.
    """
    pieces = [piece for piece in _ELLIPSIS.split(quote.strip().strip('"“”')) if len(piece) >= PIECE_LEAST]
    pieces = pieces or ([quote.strip()] if quote.strip() else [])
    if not pieces:
        return None
    wanted = set(cited)
    here = [block for block in reading.blocks if block.span_id in wanted]
    elsewhere = [block for block in reading.blocks if block.span_id not in wanted]
    found = _find(here, pieces)
    if found is not None:
        return Place("verbatim", found)
    found = _find(elsewhere, pieces)
    return Place("not found", None) if found is None else Place("found elsewhere", found)


def addresses_judge(reading: Reading) -> tuple[str, ...]:
    """A note for each span whose text talks to a judge: orders, ready scores, fences, made-up span headers."""
    notes = []
    for block in reading.blocks:
        for part in block.parts:
            said = _TO_THE_JUDGE.search(part.text)
            if said is not None:
                shown = " ".join(said[0].split())[:80]
                notes.append(f"addresses_judge: {block.ordinal} {part.label}: {shown!r}")
                break
    return tuple(notes)


def _find(blocks: Sequence[Block], pieces: Sequence[str]) -> str | None:
    """The first block that holds all pieces; each way of looking is tried on every block before the next."""
    if not blocks:
        return None
    texts = [_text(block) for block in blocks]
    exact = _first(blocks, (all(piece in text for piece in pieces) for text in texts))
    if exact is not None:
        return exact
    folded, folded_pieces = [_fold(text) for text in texts], [_fold(piece) for piece in pieces]
    same = _first(blocks, (all(piece in text for piece in folded_pieces) for text in folded))
    if same is not None or min(map(len, folded_pieces)) < FUZZY_LEAST:
        return same
    return _likest(blocks, folded, folded_pieces)


def _likest(blocks: Sequence[Block], texts: Sequence[str], pieces: Sequence[str]) -> str | None:
    best, best_ratio = None, FUZZY_FROM
    for block, text in zip(blocks, texts, strict=True):
        if len(text) < min(map(len, pieces)) * 0.8:  # a short text inside a long quote is no place for it
            continue
        ratio = min(fuzz.partial_ratio(piece, text, score_cutoff=best_ratio) for piece in pieces)
        if ratio >= best_ratio and (best is None or ratio > best_ratio):
            best, best_ratio = block.span_id, ratio
    return best


def _first(blocks: Sequence[Block], holds: Iterable[bool]) -> str | None:
    return next((block.span_id for block, held in zip(blocks, holds, strict=True) if held), None)


def _text(block: Block) -> str:
    return "\n".join([block.header, *(part.text for part in block.parts)])


def _fold(text: str) -> str:
    unescaped = _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], text)
    return " ".join(unescaped.translate(_QUOTES).split()).lower()
