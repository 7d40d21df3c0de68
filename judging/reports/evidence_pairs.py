"""The overlap of evidence of each caught error and the finding that it matches, in the text that both were read in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import pandas as pd
from sqlalchemy import Connection, select

from tracejury.ingest.store import load
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.agreement.evidence_overlap import COMPARED, EVIDENCE, EVIDENCE_PAIRS, character_iou
from tracejury.judging.judges.evidence import Finder, Stretch
from tracejury.judging.judges.trace_text import render_trace
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.records import ErrorLabel
from tracejury.judging.runs.verdicts import cited_spans
from tracejury.judging.store import tables
from tracejury.judging.store.spans import AT_ONCE

_COLUMNS: Final = [*EVIDENCE_PAIRS[:2], "finding_id", "judge_model", *EVIDENCE_PAIRS[2:], "split"]
_IN_ORDER: Final = ["trace_id", "judge_model", "dimension", "split", "error_id", "finding_id"]
_Quote = tuple[str, frozenset[str]]
"""What a finding quotes, and the spans that it cites."""


def evidence_pairs(connection: Connection, matched: pd.DataFrame) -> pd.DataFrame:
    """`EVIDENCE_PAIRS` with finding_id, judge_model and split of pairs (`LazyFrames.matched`).

    Quotes are placed in the text of their trace (`Finder.stretches`): first in spans that both name, then in those that
    their own author names, then in the other's. An error of a majority has the quotes of the label that it goes by.
    """
    labels, quotes = _labels(connection, matched), _quotes(connection, matched)
    rows: dict[tuple[str, int], tuple[str, float]] = {}
    for trace_id, part in matched.groupby("trace_id", sort=False):
        keys = part[["error_id", "finding_id"]].drop_duplicates().itertuples(index=False, name=None)
        rows |= _of_trace(connection, str(trace_id), [(str(e), int(f)) for e, f in keys], labels, quotes)
    keys = zip(matched["error_id"], matched["finding_id"], strict=True)
    values = [rows[str(error), int(finding)] for error, finding in keys]
    table = matched.assign(
        evidence=pd.Series([word for word, _ in values], index=matched.index, dtype="object"),
        iou=pd.Series([iou for _, iou in values], index=matched.index, dtype="float64"),
    )
    return table[_COLUMNS].sort_values(_IN_ORDER, kind="stable", ignore_index=True)


def _of_trace(
    connection: Connection,
    trace_id: str,
    keys: Sequence[tuple[str, int]],
    labels: dict[str, ErrorLabel],
    quotes: dict[int, _Quote],
) -> dict[tuple[str, int], tuple[str, float]]:
    """What can be compared of each pair of a trace, and the overlap; its text is read only where both quote."""
    words = {key: _gap(labels.get(key[0]), quotes.get(key[1])) for key in keys}
    rows = {key: (word, float("nan")) for key, word in words.items() if word is not None}
    open_keys = [key for key, word in words.items() if word is None]
    if open_keys:
        finder = Finder(render_trace(load(connection, trace_id, with_logs=False)))
        rows |= {key: _compared(finder, labels[key[0]], quotes[key[1]]) for key in open_keys}
    return rows


def _gap(label: ErrorLabel | None, quote: _Quote | None) -> str | None:
    if label is None or not any(piece.quote.strip() for piece in label.evidence):
        return EVIDENCE[1]
    return EVIDENCE[2] if quote is None or not quote[0].strip() else None


def _compared(finder: Finder, label: ErrorLabel, quote: _Quote) -> tuple[str, float]:
    text, cited = quote
    named = {*label.span_ids, *(piece.span_id for piece in label.evidence if piece.span_id is not None)}
    ours: set[Stretch] = set()
    for piece in label.evidence:
        ours |= finder.stretches(piece.quote, named & cited, named, cited)
    theirs = finder.stretches(text, named & cited, cited, named)
    return (COMPARED, character_iou(ours, theirs)) if ours and theirs else (EVIDENCE[3], float("nan"))


def _labels(connection: Connection, matched: pd.DataFrame) -> dict[str, ErrorLabel]:
    traces = sorted(set(matched["trace_id"]))
    ids = set(matched["error_id"])
    return {
        label.label_id: label
        for start in range(0, len(traces), AT_ONCE)
        for label in error_labels(connection, is_one_of(tables.error_label.c.trace_id, traces[start : start + AT_ONCE]))
        if label.label_id in ids
    }


def _quotes(connection: Connection, matched: pd.DataFrame) -> dict[int, _Quote]:
    keys, finding = sorted({int(key) for key in matched["finding_id"]}), tables.finding.c
    cited = cited_spans(connection, keys)
    spans: dict[int, frozenset[str]] = defaultdict(frozenset, cited)
    quotes: dict[int, _Quote] = {}
    query = select(finding.finding_key, finding.evidence, finding.evidence_span_id)
    for key, text, place in connection.execute(query.where(is_one_of(finding.finding_key, keys))):
        quotes[key] = text, spans[key] | ({place} if place is not None else frozenset())
    return quotes
