"""People's labels in the forms that other tools read: Langfuse scores and Label Studio tasks.

What their forms have no place for stands in `metadata` (Langfuse) or `meta` (Label Studio) under `tracejury`, so
that both read back equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple
from uuid import NAMESPACE_URL, uuid5

import orjson
from sqlalchemy import Connection

from tracejury.ingest.trace import Json
from tracejury.judging.ledger import tables
from tracejury.judging.ledger.labels import error_labels, reviews, score_labels
from tracejury.judging.records import ErrorLabel, Review, ScoreLabel
from tracejury.judging.spans_scored import dimension_and_spans

ERROR, REVIEW = "error", "review"


class _Row(NamedTuple):
    """One label of any kind: what it is called, what it says, and all that a foreign form has no place for."""

    trace_id: str
    annotator: str
    name: str
    spans: tuple[str, ...]
    value: float | None
    label: str | None
    comment: str
    own: dict[str, Json]


def to_langfuse(connection: Connection, annotators: Sequence[str] = ()) -> bytes:
    """A page of scores as Langfuse's API gives it: an error or review is a categorical score."""
    scores = [_langfuse_score(row) for row in _rows(connection, annotators)]
    document = {"data": scores, "meta": {"page": 1, "limit": len(scores), "totalItems": len(scores), "totalPages": 1}}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def to_label_studio(connection: Connection, annotators: Sequence[str] = ()) -> bytes:
    """A task for each trace with an annotation of each person, as Label Studio's JSON export gives it."""
    tasks: dict[str, dict[str, list[_Row]]] = {}
    for row in _rows(connection, annotators):
        tasks.setdefault(row.trace_id, {}).setdefault(row.annotator, []).append(row)
    document = [_task(number, trace_id, people) for number, (trace_id, people) in enumerate(sorted(tasks.items()), 1)]
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def _langfuse_score(row: _Row) -> dict[str, Json]:
    is_number = row.value is not None
    return {
        "id": str(uuid5(NAMESPACE_URL, f"tracejury:{row.annotator}:{row.trace_id}:{orjson.dumps(row.own).decode()}")),
        "traceId": row.trace_id,
        "observationId": row.spans[0] if row.spans else None,
        "name": row.name,
        "source": "ANNOTATION",
        "authorUserId": row.annotator,
        "dataType": "NUMERIC" if is_number else "CATEGORICAL",
        "value": row.value if is_number else row.label,
        "stringValue": None if is_number else row.label,
        "comment": row.comment,
        "metadata": {"tracejury": row.own},
    }


def _task(number: int, trace_id: str, people: dict[str, list[_Row]]) -> dict[str, Json]:
    return {
        "id": number,
        "data": {"trace_id": trace_id},
        "annotations": [
            {"id": place, "completed_by": {"email": name}, "was_cancelled": False, "result": [*map(_result, rows)]}
            for place, (name, rows) in enumerate(sorted(people.items()), 1)
        ],
        "predictions": [],
    }


def _result(row: _Row) -> Json:
    value: dict[str, Json] = {"choices": [row.label]} if row.value is None else {"number": row.value}
    return {
        "from_name": row.name,
        "to_name": "trace",
        "type": "choices" if row.value is None else "number",
        "value": {**value, "text": row.comment},
        "meta": {"tracejury": row.own},
    }


def _rows(connection: Connection, annotators: Sequence[str]) -> Iterator[_Row]:
    everyone: list[ScoreLabel | ErrorLabel | Review] = [
        *reviews(connection),
        *error_labels(connection, tables.error_label.c.occasion == 0),
        *score_labels(connection, tables.score_label.c.occasion == 0),
    ]
    for one in everyone:
        if annotators and one.annotator not in annotators:
            continue
        match one:
            case ScoreLabel():
                yield _of_score(one)
            case ErrorLabel():
                yield _of_error(one)
            case Review():
                yield _of_review(one)


def _of_score(score: ScoreLabel) -> _Row:
    dimension, spans = dimension_and_spans(score.dimension)
    own: dict[str, Json] = {
        "kind": "score",
        "dimension": dimension,
        "span_ids": list(spans),
        "not_applicable": score.not_applicable,
        "phase": score.phase,
        "confidence": score.confidence,
    }
    label = "not applicable" if score.not_applicable else None
    return _Row(score.trace_id, score.annotator, dimension, spans, score.value, label, score.note, own)


def _of_error(error: ErrorLabel) -> _Row:
    own: dict[str, Json] = {
        "kind": ERROR,
        "label_id": error.label_id,
        "dimension": " ".join(error.dimensions),
        "span_ids": list(error.span_ids),
        "impact": error.impact,
        "category": error.category,
        "evidence": "\n".join(piece.quote for piece in error.evidence),
        "places": [asdict(piece) for piece in error.evidence],
        "attributes": dict(error.attributes),
        "phase": error.phase,
    }
    words = error.category or error.impact or ERROR
    return _Row(error.trace_id, error.annotator, ERROR, error.span_ids, None, words, error.description, own)


def _of_review(review: Review) -> _Row:
    status = f"{review.status}, no error" if review.no_error else review.status
    own: dict[str, Json] = {"kind": REVIEW, "status": status, "guideline_version": review.guideline_version}
    return _Row(review.trace_id, review.annotator, REVIEW, (), None, status, review.reason, own)
