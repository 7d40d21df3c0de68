"""One person's work on one trace as it stands now, as the browser keeps it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row, Table, and_, func, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.store import read_transaction
from tracejury.judging.labels.label_store import error_labels, newest
from tracejury.judging.labels.sightings import sightings
from tracejury.judging.records import DIMENSIONS, ErrorLabel
from tracejury.judging.store import tables

_error, _score, _review, _op = tables.error_label, tables.score_label, tables.review, tables.op


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One person's work on one trace; `occasion` 1 is the hidden repeat."""

    annotator: str
    trace_id: str
    occasion: int = 0


def is_of(row: Row[Any], item: Item) -> bool:
    return (row.annotator, row.trace_id, row.occasion) == (item.annotator, item.trace_id, item.occasion)


def of_item(table: Table, item: Item) -> ColumnElement[bool]:
    return and_(
        table.c.annotator == item.annotator, table.c.trace_id == item.trace_id, table.c.occasion == item.occasion
    )


def state(engine: Engine, *, annotator: str, trace_id: str, occasion: int = 0) -> dict[str, Any]:
    """`{"revision", "errors", "scores", "review"}` as the browser keeps it."""
    item = Item(annotator=annotator, trace_id=trace_id, occasion=occasion)
    with read_transaction(engine) as connection:
        return state_of(connection, item, revision_of(connection, item))


def state_of(connection: Connection, item: Item, revision: int) -> dict[str, Any]:
    labels = error_labels(connection, of_item(_error, item))
    here = of_item(_score, item)
    rows = connection.execute(select(_score).where(newest(_score, ("dimension",), here), here))
    review = current_review(connection, item)
    return {
        "revision": revision,
        "errors": [_error_state(label) for label in labels],
        "scores": {
            row.dimension: {
                "dimension": row.dimension,
                "value": None if row.value is None else int(row.value),
                "not_applicable": row.not_applicable,
                "note": row.note,
                "confidence": row.confidence,
                "phase": row.phase,
            }
            for row in rows
            if row.dimension in DIMENSIONS
        },
        "review": {
            "status": "open" if review is None else review.status,
            "no_error": False if review is None else review.no_error,
            "reason": "" if review is None else review.reason,
            "active_ms": None if review is None else review.active_ms,
            "revealed": False if review is None else review.revealed,
        },
        "seen": [asdict(one) for one in sightings(connection, annotator=item.annotator, trace_id=item.trace_id)],
    }


def _error_state(label: ErrorLabel) -> dict[str, Any]:
    return {
        "label_id": label.label_id,
        "span_ids": list(label.span_ids),
        "dimensions": list(label.dimensions),
        "impact": label.impact,
        "category": label.category,
        "description": label.description,
        "evidence": [asdict(piece) for piece in label.evidence],
        "phase": label.phase,
    }


def revision_of(connection: Connection, item: Item) -> int:
    return int(connection.scalar(select(func.coalesce(func.max(_op.c.revision), 0)).where(of_item(_op, item))) or 0)


def current_review(connection: Connection, item: Item) -> Row[Any] | None:
    return connection.execute(
        select(_review).where(of_item(_review, item)).order_by(_review.c.row_key.desc()).limit(1)
    ).one_or_none()
