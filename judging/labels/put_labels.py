"""Labels made elsewhere, or by the machine, put beside what is there: appended where they say something new."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar
from uuid import NAMESPACE_URL, uuid5

from sqlalchemy import Connection, Engine, Table, insert, select

from tracejury.ingest.parse import json_text
from tracejury.ingest.store import schema, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.records import ErrorLabel, Review, ScoreLabel
from tracejury.judging.store import locks, tables

IMPORTED_AT_ONCE = 50
"""Traces of an import in one transaction."""
_Label = TypeVar("_Label", ErrorLabel, ScoreLabel, Review)
_error, _score, _review = tables.error_label, tables.score_label, tables.review


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
