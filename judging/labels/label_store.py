"""What people say now: the newest row of each label, score and review."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, Row, Table, func, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.judging.records import ErrorLabel, Evidence, Review, ScoreLabel
from tracejury.judging.store import tables

_error, _score, _review, _op = tables.error_label, tables.score_label, tables.review, tables.op


def newest(table: Table, keys: Sequence[str], *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition that keeps the newest row of each combination of `keys`.

    `conditions` spare the search among the rest of the table; they may only speak of what is the same in every
    row of a combination (whose it is, of which trace), else an older row would pass for the newest.
    """
    rows = select(func.max(table.c.row_key)).where(*conditions).group_by(*(table.c[key] for key in keys))
    return table.c.row_key.in_(rows)


def error_labels(connection: Connection, *conditions: ColumnElement[bool]) -> list[ErrorLabel]:
    """Current error labels, deleted ones left out, in the order they were first made."""
    rows = connection.execute(select(_error).where(*conditions).order_by(_error.c.row_key)).all()
    current = {row.label_id: row for row in rows}  # the newest row, at the place of the first
    return [_to_error(row) for row in current.values() if not row.deleted]


def _to_error(row: Row[Any]) -> ErrorLabel:
    return ErrorLabel(
        label_id=row.label_id,
        trace_id=row.trace_id,
        annotator=row.annotator,
        span_ids=tuple(orjson.loads(row.span_ids)),
        dimensions=tuple(orjson.loads(row.dimensions)),
        impact=row.impact,
        description=row.description,
        category=row.category,
        evidence=tuple(Evidence(**piece) for piece in orjson.loads(row.evidence)),
        phase=row.phase,
        attributes={} if row.attributes == "{}" else orjson.loads(row.attributes),
    )


class LabelPlace(NamedTuple):
    """Whose a label is and which spans it names: all that a pair needs of it."""

    annotator: str
    span_ids: tuple[str, ...]


def label_places(connection: Connection, *conditions: ColumnElement[bool]) -> dict[str, LabelPlace]:
    """Of the labels that `error_labels` gives, by id, without what is written in them."""
    rows = connection.execute(
        select(_error.c.label_id, _error.c.annotator, _error.c.span_ids, _error.c.deleted)
        .where(*conditions)
        .order_by(_error.c.row_key)
    ).all()
    current = {row.label_id: row for row in rows}
    return {
        key: LabelPlace(row.annotator, tuple(orjson.loads(row.span_ids)))
        for key, row in current.items()
        if not row.deleted
    }


def score_labels(connection: Connection, *conditions: ColumnElement[bool]) -> list[ScoreLabel]:
    """Current scores that are given (0 to 3 or not applicable); a blind one stands beside a later revealed one."""
    keys = ("annotator", "trace_id", "occasion", "dimension", "phase")
    is_given = _score.c.value.is_not(None) | _score.c.not_applicable.is_(True)
    rows = connection.execute(
        select(_score).where(newest(_score, keys, *conditions), is_given, *conditions).order_by(_score.c.row_key)
    ).all()
    return [
        ScoreLabel(
            trace_id=row.trace_id,
            annotator=row.annotator,
            dimension=row.dimension,
            value=row.value,
            not_applicable=row.not_applicable,
            note=row.note,
            confidence=row.confidence,
            phase=row.phase,
        )
        for row in rows
    ]


def reviews(connection: Connection, *conditions: ColumnElement[bool]) -> list[Review]:
    """Current reviews, one for each annotator and trace (first occasion)."""
    rows = connection.execute(
        select(_review)
        .where(
            newest(_review, ("annotator", "trace_id", "occasion"), *conditions), _review.c.occasion == 0, *conditions
        )
        .order_by(_review.c.row_key)
    ).all()
    return [
        Review(
            trace_id=row.trace_id,
            annotator=row.annotator,
            status=row.status,
            no_error=row.no_error,
            reason=row.reason,
            guideline_version=row.guideline_version,
        )
        for row in rows
    ]


def touched(connection: Connection, annotator: str) -> dict[str, str]:
    """The status of every trace that this person has worked on, the one touched last at the end."""
    newest_op = func.max(_op.c.created_at)
    rows = connection.execute(
        select(_op.c.trace_id)
        .where(_op.c.annotator == annotator, _op.c.occasion == 0)
        .group_by(_op.c.trace_id)
        .order_by(newest_op)
    )
    by_trace = reviews(connection, _review.c.annotator == annotator)
    status: dict[str, str] = {review.trace_id: review.status for review in by_trace}
    worked: dict[str, str] = {trace_id: status.get(trace_id, "open") for (trace_id,) in rows.all()}
    return {trace_id: one for trace_id, one in status.items() if trace_id not in worked} | worked
