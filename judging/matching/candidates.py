"""What is there to match: everybody's complete errors, and the findings of judged cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from tracejury.ingest.store import schema
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.matching.rule import Candidate
from tracejury.judging.records import ANSWERED_STATES, DIMENSIONS, Dimension, ErrorLabel, Finding
from tracejury.judging.runs.verdicts import findings_of
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import is_own_word, version_names
from tracejury.judging.taxonomy import dimensions_of

_cell = tables.cell


def complete_errors(connection: Connection) -> dict[str, list[ErrorLabel]]:
    """Everybody's complete errors of the first occasion, by trace (those in the workspace)."""
    by_trace: dict[str, list[ErrorLabel]] = defaultdict(list)
    present = set(connection.scalars(select(schema.trace.c.trace_id)))
    for label in error_labels(connection, tables.error_label.c.occasion == 0):
        if label.is_complete and label.trace_id in present:
            by_trace[label.trace_id].append(label)
    return by_trace


def by_person(errors: Sequence[ErrorLabel]) -> list[tuple[ErrorLabel, ...]]:
    """Each person's errors, people in the order in which they come."""
    people = dict.fromkeys(error.annotator for error in errors)
    return [tuple(error for error in errors if error.annotator == person) for person in people]


def judged_cells(connection: Connection, trace_id: str, judge_model: str | None = None) -> Sequence[Any]:
    """The answered cells of a trace (of a judge or a model, or all): cell_key, judge, model.

    A jury's are left out: what is proposed for its members' findings is proposed for its own.
    """
    cells = connection.execute(
        select(_cell.c.cell_key, _cell.c.rubric, _cell.c.judge_version, tables.judge_version.c.model)
        .join(tables.judge_version, tables.judge_version.c.judge_version == _cell.c.judge_version)
        .where(_cell.c.trace_id == trace_id, _cell.c.state.in_(ANSWERED_STATES), is_own_word())
    ).all()
    return [cell for cell in cells if judge_model in (None, cell.model)]


def candidates_of(connection: Connection, cells: Sequence[Any]) -> dict[int, list[Candidate]]:
    """The findings of cells as matching sees them, by cell; cells without any are left out."""
    findings = findings_of(connection, [cell.cell_key for cell in cells])
    names = version_names(connection)
    return {
        cell.cell_key: [
            Candidate(
                finding_id=key,
                finding=finding,
                dimensions=finding_dimensions(finding, names[cell.judge_version].dimension),
            )
            for key, finding in findings[cell.cell_key]
        ]
        for cell in cells
        if findings.get(cell.cell_key)
    }


def finding_dimensions(finding: Finding, dimension: str) -> frozenset[Dimension]:
    """The dimensions a finding speaks of: its own, its judge's, else those of its TRAIL category."""
    if finding.dimension is not None:
        return frozenset({finding.dimension})
    if dimension in DIMENSIONS:
        return frozenset({dimension})
    return frozenset(dimensions_of(finding.category)) if finding.category else frozenset()
