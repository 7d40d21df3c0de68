"""Quotes that were taken while a queue hid names: put right once their person has submitted and sees the names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from tracejury.ingest.store import load
from tracejury.judging.judges.trace_text import render_trace
from tracejury.judging.records import BLOCK

Piece = Mapping[str, Any]  # of evidence, as it is stored
Texts = Mapping[tuple[str, str], str]  # by span and field


def has_blocks(evidence: Sequence[Piece]) -> bool:
    return any(BLOCK in (piece[part] or "") for piece in evidence for part in ("quote", "before", "after"))


def texts_of(connection: Connection, trace_id: str) -> dict[tuple[str, str], str]:
    """The texts of a trace as evidence counts in them."""
    blocks = render_trace(load(connection, trace_id, with_logs=False)).blocks
    return {(block.span_id, part.field): part.text for block in blocks for part in block.parts}


def uncovered(evidence: Sequence[Piece], texts: Texts) -> list[dict[str, Any]]:
    """The pieces with the stored text where they have blocks; what does not stand there otherwise is left alone."""
    return [_uncovered(piece, texts.get((piece["span_id"], piece["field"]))) for piece in evidence]


def _uncovered(piece: Piece, text: str | None) -> dict[str, Any]:
    start, end = piece["start"], piece["end"]
    if text is None or start is None or end is None or not _stands_for(piece["quote"], text[start:end]):
        return dict(piece)
    before, after = len(piece["before"] or ""), len(piece["after"] or "")
    around = {"before": text[max(0, start - before) : start], "after": text[end : end + after]}
    words_around = {name: words for name, words in around.items() if piece[name] is not None}
    return {**piece, "quote": text[start:end], **words_around}


def _stands_for(covered: str, plain: str) -> bool:
    return len(covered) == len(plain) and all(a in (b, BLOCK) for a, b in zip(covered, plain, strict=True))
