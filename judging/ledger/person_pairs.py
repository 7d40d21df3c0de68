"""People against people: whether one person's error was also seen by another, who stands as the judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import pandas as pd
from sqlalchemy import Connection, func, select

from ingest.store import schema
from judging.agreement.ceiling import ANY, PERSON_PAIRS
from judging.ledger import tables
from judging.ledger.columns import gold_names
from judging.ledger.frames import Selection, chosen_traces, split_of, submitted
from judging.ledger.labels import error_labels
from judging.ledger.matches import parents_of, workspace_likeness
from judging.matching import Candidate, TextLikeness, propose
from judging.records import DIMENSIONS, Citation, ErrorLabel, Finding, Match

Parents = Mapping[str, str | None]


def person_pairs(connection: Connection, selection: Selection) -> pd.DataFrame:
    """Every error of a person under every other who submitted the same trace, by dimension and under `any`.

    Blind labels of the first occasion only, whatever the selection takes else; the adjudicated gold is nobody's.
    """
    by_trace = {trace: people for trace, people in _submitted(connection, selection).items() if len(people) > 1}
    errors = _errors(connection, by_trace)
    rows: list[dict[str, Any]] = []
    if errors:
        likeness = workspace_likeness(connection)
        for trace_id, people in by_trace.items():
            parents = parents_of(connection, trace_id)
            for author, other in permutations(people, 2):
                ours, theirs = errors.get((trace_id, author), ()), errors.get((trace_id, other), ())
                about = {"author": author, "other": other, "reviewers": len(people)}
                rows += [{**about, **row} for row in _rows(ours, theirs, parents, likeness)]
    found = pd.DataFrame(rows, columns=list(PERSON_PAIRS))
    return found.assign(split=[split_of(trace_id, selection) for trace_id in found["trace_id"]])


def person_revision(connection: Connection) -> tuple[int, ...]:
    """Changes whenever `person_pairs` may: a decision on a match does not change it."""
    appended = ((schema.trace, "trace_key"), (tables.error_label, "row_key"), (tables.review, "row_key"))
    parts = [select(func.coalesce(func.max(table.c[key]), 0)).scalar_subquery() for table, key in appended]
    parts.append(select(func.coalesce(func.max(tables.finding.c.finding_key), 0)).scalar_subquery())
    return tuple(int(value) for value in connection.execute(select(*parts)).one())


def as_finding(error: ErrorLabel) -> Finding:
    """An error that a person reports, as a judge would report it."""
    return Finding(
        description=error.description,
        evidence="\n".join(piece.quote for piece in error.evidence),
        citations=tuple(Citation(cite=span_id, span_id=span_id) for span_id in error.span_ids),
        impact=error.impact,
        category=error.category,
    )


def _submitted(connection: Connection, selection: Selection) -> dict[str, list[str]]:
    nobody = gold_names(connection)
    kept = chosen_traces(connection, selection)
    if selection.only_split:
        kept &= set(selection.splits)
    people: dict[str, list[str]] = defaultdict(list)
    for annotator, trace_id in submitted(connection, selection.guideline):
        if annotator not in nobody and trace_id in kept:
            people[trace_id].append(annotator)
    return {trace_id: sorted(found) for trace_id, found in people.items()}


def _errors(connection: Connection, traces: Iterable[str]) -> dict[tuple[str, str], list[ErrorLabel]]:
    wanted = set(traces)
    table = tables.error_label
    found: dict[tuple[str, str], list[ErrorLabel]] = defaultdict(list)
    for error in error_labels(connection, table.c.occasion == 0, table.c.phase == "blind"):
        if error.is_complete and error.trace_id in wanted:
            found[error.trace_id, error.annotator].append(error)
    return dict(found)


def _rows(
    ours: Sequence[ErrorLabel], theirs: Sequence[ErrorLabel], parents: Parents, likeness: TextLikeness
) -> Iterator[dict[str, Any]]:
    for judge in (*DIMENSIONS, ANY):
        met = _met(ours, theirs, judge, parents, likeness)
        for error in ours:
            match = met.get(error.label_id)
            yield {
                "trace_id": error.trace_id,
                "error_id": error.label_id,
                "impact": error.impact,
                "judge": judge,
                "relevant": judge == ANY or judge in error.dimensions,
                "caught": match is not None,
                "localized": match is not None and match.localized,
            }


def _met(
    ours: Sequence[ErrorLabel], theirs: Sequence[ErrorLabel], judge: str, parents: Parents, likeness: TextLikeness
) -> dict[str, Match]:
    """By error, the match with what the other reports as this judge: of its dimension, or anything for `any`."""
    candidates = [
        Candidate(
            finding_id=number,
            finding=as_finding(error),
            dimensions=frozenset(d for d in error.dimensions if judge in (ANY, d)),
        )
        for number, error in enumerate(theirs)
        if judge == ANY or judge in error.dimensions
    ]
    return {match.label_id: match for match in propose(ours, candidates, parents=parents, likeness=likeness)}
