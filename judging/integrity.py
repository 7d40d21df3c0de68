"""Checks opinions: labels on spans that exist, quotes that stand where they say, cells in exactly one state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DatabaseError

from tracejury.ingest.check import Problem, damaged
from tracejury.ingest.store import load, read_transaction, schema
from tracejury.judging.judges.trace_text import TraceText, render_trace
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.records import CELL_STATES, ErrorLabel
from tracejury.judging.store import tables

UNDER_WAY = ("pending", "running")


def check_opinions(engine: Engine) -> list[Problem]:
    """Name every problem of labels and verdicts; an imported label may name a span that is not there."""
    try:
        with read_transaction(engine) as connection:
            return [*_check_ops(connection), *_check_cells(connection), *_check_labels(connection)]
    except DatabaseError as error:
        return [damaged(error)]


def _check_ops(connection: Connection) -> Iterator[Problem]:
    op = tables.op
    keys = (op.c.annotator, op.c.trace_id, op.c.occasion)
    rows = connection.execute(select(*keys, func.count(), func.max(op.c.revision)).group_by(*keys))
    for annotator, trace_id, _occasion, count, newest in rows:
        if count != newest:
            problem = f"{count} operations, but the newest is number {newest}"
            yield Problem(subject=f"work of {annotator} on {trace_id}", problem=problem, remedy="restore a backup")


def _check_cells(connection: Connection) -> Iterator[Problem]:
    cell = tables.cell
    wrong_state = cell.c.state.not_in((*CELL_STATES, *UNDER_WAY))
    score_without = (cell.c.state == "scored") != cell.c.score.is_not(None)
    for condition, problem in (
        (wrong_state, "has an unknown state"),
        (score_without, "is scored without a score, or has a score without being scored"),
    ):
        for key in connection.scalars(select(cell.c.cell_key).where(condition)):
            yield Problem(subject=f"cell {key}", problem=problem, remedy="judge it again (--failed-only)")


def _check_labels(connection: Connection) -> Iterator[Problem]:
    by_trace: dict[str, list[ErrorLabel]] = defaultdict(list)
    for label in error_labels(connection):
        by_trace[label.trace_id].append(label)
    present = set(connection.scalars(select(schema.trace.c.trace_id)))
    for trace_id, labels in by_trace.items():
        if trace_id not in present:
            continue
        text = render_trace(load(connection, trace_id, with_logs=False))
        for label in labels:
            yield from _check_label(label, text)


def _check_label(label: ErrorLabel, text: TraceText) -> Iterator[Problem]:
    subject = f"label {label.label_id} of {label.annotator}"
    for span_id in label.span_ids:
        if span_id not in text.ordinals:
            yield Problem(
                subject=subject,
                problem=f"names span {span_id}, which is not in trace {label.trace_id}",
                remedy="correct the label",
            )
    for piece in label.evidence:
        if piece.start is None or piece.end is None:
            continue
        content = _field(text, piece.span_id, piece.field)
        if content is None or content[piece.start : piece.end] != piece.quote:
            yield Problem(
                subject=subject,
                problem=f"its quote is not at {piece.field}[{piece.start}:{piece.end}] of span {piece.span_id}",
                remedy="select the evidence again",
            )


def _field(text: TraceText, span_id: str | None, field: str | None) -> str | None:
    """The text that evidence points into; a message may stand in an earlier block than the span that repeats it."""
    parts = [part for block in text.blocks if block.span_id == span_id for part in block.parts if part.field == field]
    if not parts and field is not None and field.startswith("message:"):
        parts = [part for block in text.blocks for part in block.parts if part.field == field]
    return parts[0].text if parts else None
