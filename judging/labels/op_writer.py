"""Operations of the desk as rows: what each may change before and after the judges' findings are revealed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, Row, Table, insert, select

from tracejury.ingest.parse import clean, json_text
from tracejury.ingest.store import schema
from tracejury.judging.labels.item_state import Item, current_review, is_of, of_item
from tracejury.judging.labels.label_store import newest
from tracejury.judging.labels.ops import ErrorDelete, ErrorPut, Op, OpError, Payload, Reveal, ReviewPut, ScorePut
from tracejury.judging.labels.sightings import sightings
from tracejury.judging.queues import places
from tracejury.judging.queues.unmasking import has_blocks, texts_of, uncovered
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.store import tables

_error, _score, _review, _op = tables.error_label, tables.score_label, tables.review, tables.op


class OpWriter:
    """Appends the rows of one batch; knows the trace's digest and spans."""

    def __init__(self, connection: Connection, item: Item, guideline_version: str | None) -> None:
        self.connection, self.item = connection, item
        self.now = time.time_ns() // 1000
        row = connection.execute(
            select(schema.trace.c.trace_key, schema.trace.c.digest)
            .where(schema.trace.c.trace_id == item.trace_id)
            .with_for_update(read=True)  # nobody puts another trace in its place meanwhile
        ).one_or_none()
        if row is None:
            raise OpError(
                f"trace {item.trace_id} is not in this workspace", remedy="ingest the trace before you label it"
            )
        spans = select(schema.span.c.span_id).where(schema.span.c.trace_key == row.trace_key)
        self.span_ids = set(connection.scalars(spans))
        self.common = {
            "trace_id": item.trace_id,
            "trace_digest": row.digest,
            "annotator": item.annotator,
            "occasion": item.occasion,
            "guideline_version": guideline_version,
            "created_at": self.now,
        }
        self.review = current_review(connection, item)
        self.has_seen = bool(sightings(connection, annotator=item.annotator, trace_id=item.trace_id))

    @property
    def _is_revealed(self) -> bool:
        return self.review is not None and bool(self.review.revealed)

    def apply(self, op: Op, form: Payload, revision: int) -> None:
        self.connection.execute(
            insert(_op).values(
                op_id=op.op_id,
                annotator=self.item.annotator,
                trace_id=self.item.trace_id,
                occasion=self.item.occasion,
                revision=revision,
                kind=op.kind,
                payload=json_text(clean(op.payload)[0]),
                client_time=op.client_time,
                created_at=self.now,
            )
        )
        match form:
            case ErrorPut():
                self._put_error(form, op)
            case ErrorDelete():
                self._delete_error(form, op)
            case ScorePut():
                self._put_score(form, op)
            case ReviewPut():
                self._put_review(form, op)
            case Reveal():
                self._reveal(op)

    def _put_error(self, form: ErrorPut, op: Op) -> None:
        unknown = [span_id for span_id in form.span_ids if span_id not in self.span_ids]
        if unknown:
            raise OpError(
                f"error label {form.label_id} names span {unknown[0]!r}, which is not in trace {self.item.trace_id}",
                remedy="choose a span of this trace",
                op_id=op.op_id,
            )
        before = self._own_label(form.label_id, op)
        phase = self._phase(None if before is None else before.phase, op)
        row = {
            "label_id": form.label_id,
            "span_ids": json_text(form.span_ids),
            "dimensions": json_text(sorted(form.dimensions, key=DIMENSIONS.index)),
            "impact": form.impact,
            "category": form.category,
            "description": form.description,
            "evidence": json_text([piece.model_dump() for piece in form.evidence]),
            "phase": phase,
            "attributes": "{}" if before is None else before.attributes,
            "deleted": False,
        }
        self._append(_error, row, op)

    def _delete_error(self, form: ErrorDelete, op: Op) -> None:
        before = self._own_label(form.label_id, op)
        if before is None or before.deleted:
            return
        self._phase(before.phase, op)
        self._append(_error, {**_said(before), "deleted": True}, op)

    def _put_score(self, form: ScorePut, op: Op) -> None:
        if form.value is not None and form.not_applicable:
            raise OpError(
                f"score {form.dimension} is both {form.value} and not applicable", remedy="choose one", op_id=op.op_id
            )
        row = form.model_dump() | {"phase": "revealed" if self._is_revealed or self.has_seen else "blind"}
        self._append(_score, row, op)

    def _put_review(self, form: ReviewPut, op: Op) -> None:
        if self.review is not None and self._is_revealed and form.no_error != self.review.no_error:
            if form.status == "submitted":
                raise OpError(
                    '"no error in this trace" is part of the blind answer and cannot change after the reveal',
                    remedy="add an error instead; it is marked as stored after the reveal",
                    op_id=op.op_id,
                )
            form = form.model_copy(update={"no_error": self.review.no_error})
        item_key = places.follow_review(
            self.connection,
            annotator=self.item.annotator,
            trace_id=self.item.trace_id,
            occasion=self.item.occasion,
            status=form.status,
            now=self.now,
        )
        if form.status == "submitted":
            self._uncover(op)
        if form.status == "submitted" and self.has_seen and not self._was_submitted():
            self._unblind(op)
        self._append(_review, form.model_dump() | {"revealed": self._is_revealed, "item_key": item_key}, op)
        self.review = current_review(self.connection, self.item)

    def _was_submitted(self) -> bool:
        earlier = select(_review.c.row_key).where(of_item(_review, self.item), _review.c.status == "submitted").limit(1)
        return self.connection.scalar(earlier) is not None

    def _unblind(self, op: Op) -> None:
        """What was labelled before the person saw others was finished after it: none of the answer is blind."""
        for row in self._current(_error, "label_id"):
            if row.phase == "blind" and not row.deleted:
                self._append(_error, {**_said(row), "phase": "revealed"}, op)
        for row in self._current(_score, "dimension"):
            if row.phase == "blind":
                answer = {name: getattr(row, name) for name in ("value", "not_applicable", "note", "confidence")}
                self._append(_score, {"dimension": row.dimension, **answer, "phase": "revealed"}, op)

    def _current(self, table: Table, key: str) -> Sequence[Row[Any]]:
        """The newest row of each label or score of this work."""
        own = of_item(table, self.item)
        return self.connection.execute(select(table).where(newest(table, (key,), own), own)).all()

    def _uncover(self, op: Op) -> None:
        """What was quoted while names were hidden says from now on what the trace says."""
        rows = self._current(_error, "label_id")
        covered = {row: pieces for row in rows if has_blocks(pieces := orjson.loads(row.evidence)) and not row.deleted}
        texts = texts_of(self.connection, self.item.trace_id) if covered else {}
        for row, pieces in covered.items():
            plain = uncovered(pieces, texts)
            if plain != pieces:
                self._append(_error, {**_said(row), "evidence": json_text(plain)}, op)

    def _reveal(self, op: Op) -> None:
        if self.review is None or self.review.status != "submitted":
            raise OpError(
                "the judges' findings are hidden until you submit this trace",
                remedy="submit this trace first",
                op_id=op.op_id,
            )
        review_fields = {
            name: getattr(self.review, name) for name in ("status", "no_error", "reason", "active_ms", "item_key")
        }
        self._append(_review, review_fields | {"revealed": True}, op)
        self.review = current_review(self.connection, self.item)

    def _own_label(self, label_id: str, op: Op) -> Row[Any] | None:
        row = self.connection.execute(
            select(_error).where(_error.c.label_id == label_id).order_by(_error.c.row_key.desc()).limit(1)
        ).one_or_none()
        if row is not None and not is_of(row, self.item):
            raise OpError(
                f"error label {label_id} belongs to another annotator or trace",
                remedy="make a new label",
                op_id=op.op_id,
            )
        return row

    def _phase(self, before: str | None, op: Op) -> str:
        """Blind labels are closed once the judges' errors have been revealed."""
        if not self._is_revealed:
            return "revealed" if self.has_seen else "blind"
        if before == "blind":
            raise OpError(
                "this label is blind and cannot change after the reveal",
                remedy="add a new label; it is marked as stored after the reveal",
                op_id=op.op_id,
            )
        return "revealed"

    def _append(self, table: Table, row: Mapping[str, Any], op: Op) -> None:
        values = {**self.common, **row, "op_id": op.op_id}
        if "author" in table.c:
            values["author"] = self.item.annotator
        self.connection.execute(insert(table).values(values))


def _said(row: Row[Any]) -> dict[str, Any]:
    """What a label says, without whose and when."""
    columns = ("span_ids", "dimensions", "impact", "category", "description", "evidence", "phase", "attributes")
    return {name: getattr(row, name) for name in ("label_id", *columns, "deleted")}
