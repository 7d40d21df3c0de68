"""Where a judge's quote stands: in a cited span, elsewhere in the trace, or nowhere; and who talks to the judge."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import NamedTuple

from rapidfuzz import fuzz

from tracejury.judging.judges.trace_text import TraceText
from tracejury.judging.records import EvidencePlace

FUZZY_FROM = 90.0  # rapidfuzz partial ratio, 0..100
FUZZY_LEAST = 16  # characters: shorter quotes are like too much
PIECE_LEAST = 4  # characters of a piece between ellipses
_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:\.{3,}|…)(?:\s*\])?\s*")
_ESCAPES = {r"\n": " ", r"\t": " ", r"\r": " ", r"\"": '"', r"\'": "'", r"\/": "/", r"\\": "\\"}
_ESCAPE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[ntr\"'/\\]")
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


class Stretch(NamedTuple):
    """Code points `start` to `end` of the folded text of a block, which is named by its position."""

    block: int
    start: int
    end: int


class Finder:
    """Looks for quotes in one trace; folds its texts once, however many quotes are looked for."""

    def __init__(self, reading: TraceText) -> None:
        self.reading = reading

    def place(self, quote: str, cited: Sequence[str]) -> Place | None:
        """Look for `quote` in the cited spans, then in all others: exactly, then with white space, quotation
        marks and escapes folded, then by likeness. None for an empty quote. The trace's texts are searched
        whole, also where the reading cuts them.
        """
        pieces = [piece for piece in _ELLIPSIS.split(quote.strip().strip('"“”')) if len(piece) >= PIECE_LEAST]
        pieces = pieces or ([quote.strip()] if quote.strip() else [])
        if not pieces:
            return None
        span_ids, blocks = set(cited), self.reading.blocks
        place = self._find([n for n, block in enumerate(blocks) if block.span_id in span_ids], pieces)
        if place is not None:
            return Place("verbatim", place)
        place = self._find([n for n, block in enumerate(blocks) if block.span_id not in span_ids], pieces)
        return Place("not found", None) if place is None else Place("found elsewhere", place)

    def stretches(self, quote: str, *where: Collection[str]) -> frozenset[Stretch]:
        """The stretches of the trace that a quote names: one a piece between ellipses, none where it is not there.

        Spans are searched in the order of `where`, groups of span ids, then all others: with white space, quotation
        marks and escapes folded; in the groups then by likeness. The first place counts, and offsets are those of the
        folded text of the span, the same for every quote.
        """
        pieces = [
            piece for one in _ELLIPSIS.split(quote.strip().strip('"“”')) if len(piece := _fold(one)) >= PIECE_LEAST
        ]
        groups = [[n for n, block in enumerate(self.reading.blocks) if block.span_id in group] for group in where]
        for numbers in (*groups, range(len(self._folded))):
            for number in numbers:
                places = [self._folded[number].find(piece) for piece in pieces]
                if pieces and min(places) >= 0:
                    return frozenset(Stretch(number, at, at + len(p)) for at, p in zip(places, pieces, strict=True))
        return self._like([number for numbers in groups for number in numbers], pieces)

    def _like(self, numbers: Sequence[int], pieces: Sequence[str]) -> frozenset[Stretch]:
        """Where pieces stand that are written a little otherwise."""
        if not pieces or min(map(len, pieces)) < FUZZY_LEAST:
            return frozenset()
        for number in numbers:
            text = self._folded[number]
            if len(text) < max(map(len, pieces)):
                continue
            places = [fuzz.partial_ratio_alignment(piece, text, score_cutoff=FUZZY_FROM) for piece in pieces]
            if all(one is not None for one in places):
                return frozenset(Stretch(number, one.dest_start, one.dest_end) for one in places if one is not None)
        return frozenset()

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """A note for each span whose text talks to a judge: orders, ready scores, fences, made-up span headers."""
        return addresses_judge(self.reading)

    def _find(self, numbers: Sequence[int], pieces: Sequence[str]) -> str | None:
        """The first block that holds all pieces; each way of looking is tried on every block before the next."""
        exact = self._first(numbers, self._texts, pieces)
        if exact is not None or not numbers:
            return exact
        folded = [_fold(piece) for piece in pieces]
        same = self._first(numbers, self._folded, folded)
        if same is not None or min(map(len, folded)) < FUZZY_LEAST:
            return same
        return self._likest(numbers, folded)

    def _first(self, numbers: Sequence[int], texts: Sequence[str], pieces: Sequence[str]) -> str | None:
        matching = (number for number in numbers if all(piece in texts[number] for piece in pieces))
        first = next(matching, None)
        return None if first is None else self.reading.blocks[first].span_id

    def _likest(self, numbers: Sequence[int], pieces: Sequence[str]) -> str | None:
        best, best_ratio = None, FUZZY_FROM
        for number in numbers:
            text = self._folded[number]
            if len(text) < min(map(len, pieces)) * 0.8:  # a short text inside a long quote is no place for it
                continue
            ratio = min(fuzz.partial_ratio(piece, text, score_cutoff=best_ratio) for piece in pieces)
            if ratio >= best_ratio and (best is None or ratio > best_ratio):
                best, best_ratio = self.reading.blocks[number].span_id, ratio
        return best

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        return tuple("\n".join([block.header, *(part.text for part in block.parts)]) for block in self.reading.blocks)

    @cached_property
    def _folded(self) -> tuple[str, ...]:
        return tuple(_fold(text) for text in self._texts)


def place_evidence(reading: TraceText, quote: str, cited: Sequence[str]) -> Place | None:
    """`Finder.place` for a single quote; for several quotes of one trace keep a `Finder`."""
    return Finder(reading).place(quote, cited)


def addresses_judge(reading: TraceText) -> tuple[str, ...]:
    """A note for each span whose text talks to a judge: orders, ready scores, fences, made-up span headers."""
    notes = []
    for block in reading.blocks:
        for part in block.parts:
            match = _TO_THE_JUDGE.search(part.text)
            if match is not None:
                shown = " ".join(match[0].split())[:80]
                notes.append(f"addresses_judge: {block.ordinal} {part.label}: {shown!r}")
                break
    return tuple(notes)


def _unescaped(escape: re.Match[str]) -> str:
    """What an escape of JSON stands for; letters beyond the sixteen bits of one stand as two."""
    text = escape[0]
    if not text.startswith(r"\u"):
        return _ESCAPES[text]
    units = b"".join(int(unit, 16).to_bytes(2, "little") for unit in text.split(r"\u")[1:])
    return units.decode("utf-16-le", "replace")


def _fold(text: str) -> str:
    unescaped = _ESCAPE.sub(_unescaped, text)
    return " ".join(unescaped.translate(_QUOTES).split()).lower()
