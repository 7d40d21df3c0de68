"""Traces taken out of the workspace or replaced, and what becomes of the labels made on them.

The one place where rows of opinions are deleted, and only with a backup made before.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, delete, func, or_, select

from tracejury.ingest.store import TRACES, read_transaction, remove, schema, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.words import counted
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.queues.queue_changes import retire_traces
from tracejury.judging.records import ErrorLabel
from tracejury.judging.store import locks, tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.backup import back_up_first
from tracejury.judging.store.revisions import REMOVED
from tracejury.judging.store.workspace import Workspace

_LABELS = (
    tables.error_label, tables.score_label, tables.review, tables.op, tables.adjudication, tables.comment,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """What was taken out: traces, label rows (errors, scores, reviews), queue items; and the backup made before."""

    traces: tuple[str, ...]
    labels: int
    items: int
    backup: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class UnanchoredLabel:
    """An error label that names spans which its trace, as it is now, does not have."""

    trace_id: str
    label_id: str
    annotator: str
    span_ids: tuple[str, ...]


def remove_traces(workspace: Workspace, trace_ids: Sequence[str], *, with_labels: bool, by: str) -> Removal:
    """Take traces out of the store and of every queue, after a backup; labels stay unless `with_labels`.

    Labels that stay count again once the trace is ingested again. What judges answered stays in any case.
    """
    backup = back_up_first(workspace, "before-removal")
    now = time.time_ns() // 1000
    subjects = {TRACES, locks.QUEUES, locks.MATCHES, *locks.labels_of_all(trace_ids)}
    with write_transaction(workspace.engine, *subjects, *((locks.COMMENTS,) if with_labels else ())) as connection:
        labels = count_labels(connection, trace_ids) if with_labels else 0
        items = _retire(connection, trace_ids, by=by, now=now)
        removed = tuple(trace_id for trace_id in trace_ids if remove(connection, trace_id))
        if with_labels:
            _delete_labels(connection, trace_ids)
        detail = {"traces": list(removed), "labels": labels, "backup": str(backup)}
        record(connection, who=by, what=REMOVED, subject=counted(len(removed), "trace"), detail=detail, at=now)
    return Removal(traces=removed, labels=labels, items=items, backup=backup)


def count_labels(connection: Connection, trace_ids: Collection[str]) -> int:
    """How many rows people stored about these traces: errors, scores and reviews, every revision."""
    counted = (tables.error_label, tables.score_label, tables.review)
    here = (select(func.count()).select_from(table).where(is_one_of(table.c.trace_id, trace_ids)) for table in counted)
    return sum(int(connection.scalar(query) or 0) for query in here)


def unanchored_labels(connection: Connection, trace_ids: Collection[str]) -> list[UnanchoredLabel]:
    """Of these traces: the error labels that name a span which is not there, with those spans."""
    unanchored = []
    for trace_id in trace_ids:
        spans = _span_ids(connection, trace_id)
        labels = error_labels(connection, tables.error_label.c.trace_id == trace_id)
        unanchored += [one for label in labels if (one := _unanchored(label, spans)).span_ids]
    return unanchored


def unanchored_now(workspace: Workspace, trace_ids: Collection[str]) -> list[UnanchoredLabel]:
    """As `unanchored_labels`, in a transaction of its own."""
    with read_transaction(workspace.engine) as connection:
        return unanchored_labels(connection, trace_ids)


def _unanchored(label: ErrorLabel, spans: Collection[str]) -> UnanchoredLabel:
    absent = tuple(span_id for span_id in label.span_ids if span_id not in spans)
    return UnanchoredLabel(trace_id=label.trace_id, label_id=label.label_id, annotator=label.annotator, span_ids=absent)


def _span_ids(connection: Connection, trace_id: str) -> set[str]:
    span, trace = schema.span, schema.trace
    query = select(span.c.span_id).join(trace, trace.c.trace_key == span.c.trace_key)
    return set(connection.scalars(query.where(trace.c.trace_id == trace_id)))


def _retire(connection: Connection, trace_ids: Collection[str], *, by: str, now: int) -> int:
    """Take the traces out of the queues that hand them out; how many items that were."""
    item = tables.queue_item
    is_live = (is_one_of(item.c.trace_id, trace_ids), item.c.retired_at.is_(None))
    rows = connection.execute(select(item.c.queue_key, item.c.trace_id).where(*is_live)).all()
    for queue_key in sorted({row.queue_key for row in rows}):
        own = {row.trace_id for row in rows if row.queue_key == queue_key}
        retire_traces(connection, queue_key, own, by=by, now=now)
    return len(rows)


def _delete_labels(connection: Connection, trace_ids: Collection[str]) -> None:
    """Everything that a person stored about these traces, matches and reviews of findings included.

    What people saw of them (`seen`) stays: who saw a verdict is not blind to the trace when it comes again.
    """
    error, finding, cell = tables.error_label, tables.finding, tables.cell
    label_ids = select(error.c.label_id).where(is_one_of(error.c.trace_id, trace_ids))
    findings = (
        select(finding.c.finding_key)
        .join(cell, cell.c.cell_key == finding.c.cell_key)
        .where(is_one_of(cell.c.trace_id, trace_ids))
    )
    for table in (tables.match, tables.finding_review):
        is_of_trace = or_(table.c.label_id.in_(label_ids), table.c.finding_key.in_(findings))
        connection.execute(delete(table).where(is_of_trace))
    cells = select(cell.c.cell_key).where(is_one_of(cell.c.trace_id, trace_ids))
    connection.execute(delete(tables.matching).where(tables.matching.c.cell_key.in_(cells)))
    read, comment = tables.comment_read, tables.comment
    gone = select(comment.c.comment_id).where(is_one_of(comment.c.trace_id, trace_ids))
    connection.execute(delete(read).where(read.c.comment_id.in_(gone)))
    for table in _LABELS:
        connection.execute(delete(table).where(is_one_of(table.c.trace_id, trace_ids)))
