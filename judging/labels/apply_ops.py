"""Operations of the desk, applied: a batch whole or not at all, sent twice it counts once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, select

from tracejury.ingest.store import write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.labels.guidelines import acknowledged, has_read
from tracejury.judging.labels.item_state import Item, is_of, of_item, revision_of, state_of
from tracejury.judging.labels.op_writer import OpWriter
from tracejury.judging.labels.ops import ErrorDelete, ErrorPut, Op, OpError, Payload, ReviewPut
from tracejury.judging.queues import places
from tracejury.judging.store import locks, tables

_op = tables.op


class Applied(NamedTuple):
    """All operations of the batch are stored; `revision` is the state's after them.

    `state` is what is stored now where some were stored before: others may have come after those.
    """

    revision: int
    applied: tuple[str, ...]
    state: dict[str, Any] | None = None


class Stale(NamedTuple):
    """Nothing was stored: someone (another tab) was faster. `state` is what is stored now.

    `applied` are the operations of the batch that had been stored before.
    """

    revision: int
    state: dict[str, Any]
    applied: tuple[str, ...] = ()


def apply_ops(
    engine: Engine,
    *,
    annotator: str,
    trace_id: str,
    base_revision: int,
    ops: Sequence[Op],
    occasion: int = 0,
    guideline_version: str | None = None,
) -> Applied | Stale:
    """Apply a batch: all of it or nothing. An operation that was applied before changes nothing.

    `guideline_version` stands at every row; by default the newest that this person has acknowledged.
    `Stale` when operations that are not of this batch came after `base_revision`. Raises `OpError` for an
    operation that cannot be applied (unknown trace or span, a foreign label, malformed payload).
    """
    item = Item(annotator=annotator, trace_id=trace_id, occasion=occasion)
    ops = list({op.op_id: op for op in ops}.values())
    forms = {op.op_id: op.form() for op in ops}
    with write_transaction(engine, *_subjects(trace_id, forms.values())) as connection:
        known = _known_ops(connection, forms)
        _refuse_foreign(known, item)
        new = [op for op in ops if op.op_id not in known]
        revision = revision_of(connection, item)
        if new and _others_since(connection, item, base_revision, forms):
            return Stale(revision, state_of(connection, item, revision), tuple(known))
        if new:
            writer = OpWriter(connection, item, guideline_version or _version_of(connection, item))
            for op in new:
                revision += 1
                writer.apply(op, forms[op.op_id], revision)
            places.touch(connection, annotator=annotator, trace_id=trace_id, occasion=occasion, now=writer.now)
        state_now = state_of(connection, item, revision) if known else None
    return Applied(revision, tuple(op.op_id for op in ops), state_now)


def _subjects(trace_id: str, forms: Iterable[Payload]) -> set[str]:
    """What a batch writes about. A label id is named: it may belong to another trace."""
    subjects = {locks.labels_of(trace_id)}
    for form in forms:
        match form:
            case ErrorPut() | ErrorDelete():
                subjects.add(locks.label(form.label_id))
            case ReviewPut():
                subjects.add(locks.QUEUES)
    return subjects


def _version_of(connection: Connection, item: Item) -> str | None:
    """The guideline of the queue in which this person works on the trace, else the newest they have read."""
    pinned = places.pinned_guideline(
        connection, annotator=item.annotator, trace_id=item.trace_id, occasion=item.occasion
    )
    is_read = pinned is not None and has_read(connection, item.annotator, pinned)
    version = pinned if is_read else acknowledged(connection, item.annotator)
    return None if version is None else str(version)


def _known_ops(connection: Connection, op_ids: Iterable[str]) -> dict[str, Any]:
    rows = connection.execute(
        select(_op.c.op_id, _op.c.annotator, _op.c.trace_id, _op.c.occasion).where(is_one_of(_op.c.op_id, op_ids))
    )
    return {row.op_id: row for row in rows.all()}


def _refuse_foreign(known: Mapping[str, Any], item: Item) -> None:
    for row in known.values():
        if not is_of(row, item):
            raise OpError(
                f"operation {row.op_id} belongs to another annotator or trace",
                remedy="reload the page",
                op_id=row.op_id,
            )


def _others_since(connection: Connection, item: Item, base: int, ours: Mapping[str, object]) -> bool:
    since = select(_op.c.op_id).where(of_item(_op, item), _op.c.revision > base)
    return any(op_id not in ours for op_id in connection.scalars(since))
