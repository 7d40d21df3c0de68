"""People against people: whether one person's error was also seen by another, who stands as the judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracejury.ingest.store import schema
from tracejury.judging.agreement.ceiling import ANY, PERSON_PAIRS
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.matching.rule import (
    KnownTexts,
    SpanTree,
    TextLikeness,
    assign,
    error_text,
    finding_text,
    signs_of,
)
from tracejury.judging.matching.tolerance import Places, is_within, places_by_trace
from tracejury.judging.records import DIMENSIONS, Citation, ErrorLabel, Finding, Tolerance
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import chosen_traces, split_of, submitted
from tracejury.judging.store import tables
from tracejury.judging.store.people import gold_names
from tracejury.judging.store.revisions import Revision, newest_rows, read_revision


def person_pairs(connection: Connection, filters: Filters) -> pd.DataFrame:
    """Every error of a person under every other who submitted the same trace, by dimension and under `any`.

    Blind labels of the first occasion only, whatever the filters takes else; the adjudicated gold is nobody's.
    """
    by_trace = {trace: people for trace, people in _submitted(connection, filters).items() if len(people) > 1}
    errors = _errors(connection, by_trace)
    rows: list[dict[str, Any]] = []
    if errors:
        likeness = _likeness(errors.values())
        places_by = places_by_trace(connection, by_trace)
        for trace_id, people in by_trace.items():
            places = places_by.get(trace_id, {})
            for author, other in permutations(people, 2):
                ours, theirs = errors.get((trace_id, author), ()), errors.get((trace_id, other), ())
                about = {"author": author, "other": other, "reviewers": len(people)}
                judged = _judged(ours, theirs, places, likeness, filters.tolerance)
                rows += [{**about, **row} for row in _rows(ours, judged)]
    pairs = pd.DataFrame(rows, columns=list(PERSON_PAIRS))
    return pairs.assign(split=[split_of(trace_id, filters) for trace_id in pairs["trace_id"]])


def person_revision(connection: Connection) -> Revision:
    """Changes whenever `person_pairs` may: a decision on a match does not change it."""
    return read_revision(connection, newest_rows(schema.trace, tables.error_label, tables.review, tables.finding))


def as_finding(error: ErrorLabel) -> Finding:
    """An error that a person reports, as a judge would report it."""
    return Finding(
        description=error.description,
        evidence="\n".join(piece.quote for piece in error.evidence),
        citations=tuple(Citation(cite=span_id, span_id=span_id) for span_id in error.span_ids),
        impact=error.impact,
        category=error.category,
    )


def _submitted(connection: Connection, filters: Filters) -> dict[str, list[str]]:
    nobody = gold_names(connection)
    traces = chosen_traces(connection, filters)
    people: dict[str, list[str]] = defaultdict(list)
    for annotator, trace_id in sorted(submitted(connection, filters.guideline, blind_only=True)):
        if annotator not in nobody and trace_id in traces:
            people[trace_id].append(annotator)
    return {trace_id: sorted(names) for trace_id, names in people.items()}


def _errors(connection: Connection, traces: Iterable[str]) -> dict[tuple[str, str], list[ErrorLabel]]:
    trace_ids = set(traces)
    table = tables.error_label
    by_author: dict[tuple[str, str], list[ErrorLabel]] = defaultdict(list)
    for error in error_labels(connection, table.c.occasion == 0, table.c.phase == "blind"):
        if error.is_complete and error.trace_id in trace_ids:
            by_author[error.trace_id, error.annotator].append(error)
    return dict(by_author)


def _likeness(errors: Iterable[Sequence[ErrorLabel]]) -> KnownTexts:
    """Every error's text, as its person wrote it and as a finding, taken apart once for all pairs."""
    known = [error for labels in errors for error in labels]
    texts = (text for error in known for text in (error_text(error), finding_text(as_finding(error))))
    return TextLikeness().among(texts)


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """Each error of one person (rows) with each of another (columns), once for all dimensions."""

    theirs: Sequence[ErrorLabel]
    localized: NDArray[np.bool_]
    share: NDArray[np.bool_]
    """They have a dimension in common."""
    apart: NDArray[np.float64]
    """The confidence without a dimension in common, and with one."""
    together: NDArray[np.float64]

    def met(self, ours: Sequence[ErrorLabel], dimension: str) -> dict[int, bool]:
        """By our error, whether what the other reports as this judge localizes it; one nobody matches is absent."""
        places = [j for j, error in enumerate(self.theirs) if dimension == ANY or dimension in error.dimensions]
        if not places or not ours:
            return {}
        own = np.array([dimension in error.dimensions for error in ours])[:, None]
        same = self.share[:, places] if dimension == ANY else own
        confidence = np.where(same, self.together[:, places], self.apart[:, places])
        return {i: bool(self.localized[i, places[j]]) for i, j in assign(confidence)}


def _judged(
    ours: Sequence[ErrorLabel],
    theirs: Sequence[ErrorLabel],
    places: Places,
    likeness: KnownTexts,
    tolerance: Tolerance,
) -> _Judged:
    tree = SpanTree({span_id: place.parent for span_id, place in places.items()})
    findings = [as_finding(error) for error in theirs]
    similar = likeness([error_text(error) for error in ours], [finding_text(finding) for finding in findings])
    signs = [[signs_of(e, f, similar[i, j], tree) for j, f in enumerate(findings)] for i, e in enumerate(ours)]
    return _Judged(
        theirs=theirs,
        localized=np.array(
            [[is_within(o.span_ids, e.span_ids, places, tolerance) for o in theirs] for e in ours], dtype=bool
        ),
        share=np.array([[not set(e.dimensions).isdisjoint(o.dimensions) for o in theirs] for e in ours], dtype=bool),
        apart=np.array([[pair.probability(same_dimension=False) for pair in row] for row in signs]),
        together=np.array([[pair.probability(same_dimension=True) for pair in row] for row in signs]),
    )


def _rows(ours: Sequence[ErrorLabel], judged: _Judged) -> Iterator[dict[str, Any]]:
    for dimension in (*DIMENSIONS, ANY):
        met = judged.met(ours, dimension)
        for place, error in enumerate(ours):
            yield {
                "trace_id": error.trace_id,
                "error_id": error.label_id,
                "impact": error.impact,
                "dimension": dimension,
                "relevant": dimension == ANY or dimension in error.dimensions,
                "caught": place in met,
                "localized": met.get(place, False),
            }
