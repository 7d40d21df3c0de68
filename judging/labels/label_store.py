"""What people say: operations applied, the current state of a person's work on a trace, labels imported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar
from uuid import NAMESPACE_URL, uuid5

import orjson
from sqlalchemy import Connection, Engine, Row, Table, and_, func, insert, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.parse import clean, json_text
from tracejury.ingest.store import read_transaction, schema, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.labels.guidelines import acknowledged, has_read
from tracejury.judging.labels.ops import ErrorDelete, ErrorPut, Op, OpError, Payload, Reveal, ReviewPut, ScorePut
from tracejury.judging.labels.sightings import sightings
from tracejury.judging.queues import places
from tracejury.judging.queues.unmasking import has_blocks, texts_of, uncovered
from tracejury.judging.records import DIMENSIONS, ErrorLabel, Evidence, Review, ScoreLabel
from tracejury.judging.store import locks, tables

IMPORTED_AT_ONCE = 50
"""Traces of an import in one transaction."""
_Label = TypeVar("_Label", ErrorLabel, ScoreLabel, Review)
_error, _score, _review, _op = tables.error_label, tables.score_label, tables.review, tables.op


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One person's work on one trace; `occasion` 1 is the hidden repeat."""

    annotator: str
    trace_id: str
    occasion: int = 0


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
        revision = _revision(connection, item)
        if new and _others_since(connection, item, base_revision, forms):
            return Stale(revision, _state(connection, item, revision), tuple(known))
        if new:
            writer = _Writer(connection, item, guideline_version or _version_of(connection, item))
            for op in new:
                revision += 1
                writer.apply(op, forms[op.op_id], revision)
            places.touch(connection, annotator=annotator, trace_id=trace_id, occasion=occasion, now=writer.now)
        state_now = _state(connection, item, revision) if known else None
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


def state(engine: Engine, *, annotator: str, trace_id: str, occasion: int = 0) -> dict[str, Any]:
    """`{"revision", "errors", "scores", "review"}` as the browser keeps it."""
    item = Item(annotator=annotator, trace_id=trace_id, occasion=occasion)
    with read_transaction(engine) as connection:
        return _state(connection, item, _revision(connection, item))


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


class _Writer:
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
        self.review = _current_review(connection, item)
        self.has_seen = bool(sightings(connection, annotator=item.annotator, trace_id=item.trace_id))

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
        revealed = self.review is not None and self.review.revealed
        row = form.model_dump() | {"phase": "revealed" if revealed or self.has_seen else "blind"}
        self._append(_score, row, op)

    def _put_review(self, form: ReviewPut, op: Op) -> None:
        revealed = self.review is not None and self.review.revealed
        if revealed and self.review is not None and form.no_error != self.review.no_error:
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
        self._append(_review, form.model_dump() | {"revealed": revealed, "item_key": item_key}, op)
        self.review = _current_review(self.connection, self.item)

    def _was_submitted(self) -> bool:
        earlier = select(_review.c.row_key).where(_of(_review, self.item), _review.c.status == "submitted").limit(1)
        return self.connection.scalar(earlier) is not None

    def _unblind(self, op: Op) -> None:
        """What was labelled before the person saw others was finished after it: none of the answer is blind."""
        conditions = (_of(_error, self.item),)
        for row in self.connection.execute(
            select(_error).where(newest(_error, ("label_id",), *conditions), *conditions)
        ).all():
            if row.phase == "blind" and not row.deleted:
                self._append(_error, {**_said(row), "phase": "revealed"}, op)
        conditions = (_of(_score, self.item),)
        for row in self.connection.execute(
            select(_score).where(newest(_score, ("dimension",), *conditions), *conditions)
        ).all():
            if row.phase == "blind":
                answer = {name: getattr(row, name) for name in ("value", "not_applicable", "note", "confidence")}
                self._append(_score, {"dimension": row.dimension, **answer, "phase": "revealed"}, op)

    def _uncover(self, op: Op) -> None:
        """What was quoted while names were hidden says from now on what the trace says."""
        own = (_error.c.annotator == self.item.annotator, _error.c.trace_id == self.item.trace_id,
                _error.c.occasion == self.item.occasion)  # fmt: skip
        rows = self.connection.execute(select(_error).where(newest(_error, ("label_id",), *own))).all()
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
        self.review = _current_review(self.connection, self.item)

    def _own_label(self, label_id: str, op: Op) -> Row[Any] | None:
        row = self.connection.execute(
            select(_error).where(_error.c.label_id == label_id).order_by(_error.c.row_key.desc()).limit(1)
        ).one_or_none()
        if row is not None and (row.annotator, row.trace_id, row.occasion) != (
            self.item.annotator,
            self.item.trace_id,
            self.item.occasion,
        ):
            raise OpError(
                f"error label {label_id} belongs to another annotator or trace",
                remedy="make a new label",
                op_id=op.op_id,
            )
        return row

    def _phase(self, before: str | None, op: Op) -> str:
        """Blind labels are closed once the judges' errors have been revealed."""
        if self.review is None or not self.review.revealed:
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


def newest(table: Table, keys: Sequence[str], *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition that keeps the newest row of each combination of `keys`.

    `conditions` spare the search among the rest of the table; they may only speak of what is the same in every
    row of a combination (whose it is, of which trace), else an older row would pass for the newest.
    """
    rows = select(func.max(table.c.row_key)).where(*conditions).group_by(*(table.c[key] for key in keys))
    return table.c.row_key.in_(rows)


class Put(NamedTuple):
    """What became of labels: rows written by kind, and what was left as it is, each with its reason."""

    new: dict[str, int]
    kept: tuple[str, ...]


def put_labels(
    connection: Connection,
    *,
    errors: Iterable[ErrorLabel],
    scores: Iterable[ScoreLabel],
    reviews: Iterable[Review],
    author: str,
    keeps_edits: bool = False,
) -> Put:
    """Append labels made elsewhere; what stands there already, equal, is not written again.

    Labels of traces that are not in the workspace are kept and count once the trace arrives. With
    `keeps_edits` (imports) nothing that a person has done here since is undone: content that stood here before
    is left out, and where a person wrote the newest row, theirs stays and the difference is told. A label id
    that belongs to another person or trace gets an id of its own.
    """
    reviews = list(reviews)
    errors, scores = list(errors), list(scores)
    trace_ids = {label.trace_id for labels in (errors, scores, reviews) for label in labels}
    writer = _Putter(connection, author, keeps_edits, reviews, trace_ids)
    new = {
        "errors": writer.put(_error, ("label_id",), writer.own_ids([_error_row(label) for label in errors])),
        "scores": writer.put(
            _score, ("annotator", "trace_id", "dimension", "phase"), [_score_row(score) for score in scores]
        ),
        "reviews": writer.put(_review, ("annotator", "trace_id"), [_review_row(review) for review in reviews]),
    }
    return Put(new, tuple(writer.kept))


def import_labels(
    engine: Engine,
    *,
    errors: Sequence[ErrorLabel],
    scores: Sequence[ScoreLabel],
    reviews: Sequence[Review],
    author: str,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Put:
    """Append labels made elsewhere as `put_labels` with `keeps_edits`, IMPORTED_AT_ONCE traces in one transaction.

    A save waits for those that hold its own trace alone. Cut off, the traces before are there; done again, it goes on.
    `progress` is told how many traces are stored, of how many.
    """
    done = Put(dict.fromkeys(("errors", "scores", "reviews"), 0), ())
    own_errors, own_scores, own_reviews = _by_trace(errors), _by_trace(scores), _by_trace(reviews)
    trace_ids = [*{**own_errors, **own_scores, **own_reviews}]
    progress(0, len(trace_ids))
    for at in range(0, len(trace_ids), IMPORTED_AT_ONCE):
        some = trace_ids[at : at + IMPORTED_AT_ONCE]
        of_errors = [label for trace_id in some for label in own_errors.get(trace_id, ())]
        subjects = locks.labels_of_all(some, {one.label_id for one in of_errors})
        with write_transaction(engine, *subjects) as connection:
            put = put_labels(
                connection,
                errors=of_errors,
                scores=[label for trace_id in some for label in own_scores.get(trace_id, ())],
                reviews=[label for trace_id in some for label in own_reviews.get(trace_id, ())],
                author=author,
                keeps_edits=True,
            )
        done = Put({name: done.new[name] + count for name, count in put.new.items()}, (*done.kept, *put.kept))
        progress(at + len(some), len(trace_ids))
    return done


def _by_trace(labels: Iterable[_Label]) -> dict[str, list[_Label]]:
    groups: dict[str, list[_Label]] = {}
    for label in labels:
        groups.setdefault(label.trace_id, []).append(label)
    return groups


class _Putter:
    """Compares rows with the history of their key and appends those that say something new."""

    def __init__(
        self,
        connection: Connection,
        author: str,
        keeps_edits: bool,
        reviews: Sequence[Review],
        trace_ids: Set[str],
    ) -> None:
        self.connection, self.keeps_edits = connection, keeps_edits
        self.kept: list[str] = []
        self.trace_ids = sorted(trace_ids)
        trace = schema.trace.c
        self.digests = {
            row.trace_id: row.digest
            for row in connection.execute(
                select(trace.trace_id, trace.digest).where(is_one_of(trace.trace_id, self.trace_ids))
            )
        }
        self.versions = {(review.annotator, review.trace_id): review.guideline_version for review in reviews}
        self.common = {"author": author, "created_at": time.time_ns() // 1000, "op_id": None}

    def own_ids(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows, an id that is another's replaced by one made of person, trace and id."""
        query = select(_error.c.label_id, _error.c.annotator, _error.c.trace_id).distinct()
        owners = {
            row.label_id: (row.annotator, row.trace_id)
            for row in self.connection.execute(
                query.where(is_one_of(_error.c.label_id, (row["label_id"] for row in rows)))
            )
        }
        for row in rows:
            owner = (row["annotator"], row["trace_id"])
            if owners.setdefault(row["label_id"], owner) != owner:
                row["label_id"] = str(uuid5(NAMESPACE_URL, f"tracejury:{owner[0]}:{owner[1]}:{row['label_id']}"))
                owners[row["label_id"]] = owner
        return rows

    def put(self, table: Table, keys: tuple[str, ...], rows: list[dict[str, Any]]) -> int:
        history = _history(self.connection, table, keys, self.trace_ids)
        new = []
        for row in rows:
            before = history.get(tuple(row[key] for key in keys), [])
            if before and (_same(before[-1], row) or (self.keeps_edits and any(_same(old, row) for old in before))):
                continue
            if self.keeps_edits and before and before[-1]["op_id"] is not None:
                what = ", ".join(str(row[key]) for key in keys)
                self.kept.append(
                    f"{table.name} {what}: a person changed it in this workspace; the import does not overwrite it"
                )
                continue
            new.append(self._completed(table, row, before[-1] if before else None))
        if new:
            self.connection.execute(insert(table), new)
        return len(new)

    def _completed(self, table: Table, row: dict[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
        completed = row | {key: value for key, value in self.common.items() if key in table.c}
        completed["trace_digest"] = self.digests.get(row["trace_id"])
        completed["guideline_version"] = self.versions.get((row["annotator"], row["trace_id"]))
        if table is _review and before is not None:
            completed |= {name: before[name] for name in _OF_THE_DESK}
        return completed


_OF_THE_DESK = ("active_ms", "revealed", "item_key")  # what an imported review does not know


def error_labels(connection: Connection, *conditions: ColumnElement[bool]) -> list[ErrorLabel]:
    """Current error labels, deleted ones left out, in the order they were first made."""
    rows = connection.execute(select(_error).where(*conditions).order_by(_error.c.row_key)).all()
    current = {row.label_id: row for row in rows}  # the newest row, at the place of the first
    return [_to_error(row) for row in current.values() if not row.deleted]


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


def _of(table: Table, item: Item) -> ColumnElement[bool]:
    return and_(
        table.c.annotator == item.annotator, table.c.trace_id == item.trace_id, table.c.occasion == item.occasion
    )


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
        if (row.annotator, row.trace_id, row.occasion) != (item.annotator, item.trace_id, item.occasion):
            raise OpError(
                f"operation {row.op_id} belongs to another annotator or trace",
                remedy="reload the page",
                op_id=row.op_id,
            )


def _revision(connection: Connection, item: Item) -> int:
    return int(connection.scalar(select(func.coalesce(func.max(_op.c.revision), 0)).where(_of(_op, item))) or 0)


def _others_since(connection: Connection, item: Item, base: int, ours: Mapping[str, object]) -> bool:
    since = select(_op.c.op_id).where(_of(_op, item), _op.c.revision > base)
    return any(op_id not in ours for op_id in connection.scalars(since))


def _current_review(connection: Connection, item: Item) -> Row[Any] | None:
    return connection.execute(
        select(_review).where(_of(_review, item)).order_by(_review.c.row_key.desc()).limit(1)
    ).one_or_none()


def _state(connection: Connection, item: Item, revision: int) -> dict[str, Any]:
    labels = error_labels(connection, _of(_error, item))
    here = _of(_score, item)
    rows = connection.execute(select(_score).where(newest(_score, ("dimension",), here), here))
    review = _current_review(connection, item)
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


def _error_row(label: ErrorLabel) -> dict[str, Any]:
    return {
        "label_id": label.label_id,
        "trace_id": label.trace_id,
        "annotator": label.annotator,
        "occasion": 0,
        "span_ids": json_text(label.span_ids),
        "dimensions": json_text(label.dimensions),
        "impact": label.impact,
        "category": label.category,
        "description": label.description,
        "evidence": json_text([asdict(piece) for piece in label.evidence]),
        "phase": label.phase,
        "attributes": json_text(dict(label.attributes)),
        "deleted": False,
    }


def _score_row(score: ScoreLabel) -> dict[str, Any]:
    return asdict(score) | {"occasion": 0}


def _review_row(review: Review) -> dict[str, Any]:
    return asdict(review) | {"occasion": 0, "active_ms": None, "revealed": False, "item_key": None}


def _history(
    connection: Connection, table: Table, keys: tuple[str, ...], trace_ids: Sequence[str]
) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    """All rows of first occasions on these traces by key, oldest first."""
    history: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    query = select(table).where(table.c.occasion == 0).order_by(table.c.row_key)
    for row in connection.execute(query.where(is_one_of(table.c.trace_id, trace_ids))).mappings().all():
        history.setdefault(tuple(row[key] for key in keys), []).append(dict(row))
    return history


def _same(known: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return all(known[key] == value for key, value in row.items() if key not in _OF_THE_DESK)
