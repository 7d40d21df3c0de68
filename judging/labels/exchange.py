"""Labels in and out: our JSON form, the long CSV, TRAIL's annotation JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from sqlalchemy import Connection, select

from tracejury.ingest.spreadsheet import csv_of_rows
from tracejury.ingest.store import schema
from tracejury.ingest.trace import Json, Rejected
from tracejury.judging.labels.label_store import error_labels, reviews, score_labels
from tracejury.judging.labels.ops import ErrorPut
from tracejury.judging.labels.spans_scored import dimension_and_spans
from tracejury.judging.records import SCORES, ErrorLabel, Evidence, Phase, Review, ScoreLabel
from tracejury.judging.store import tables

FORMAT, VERSION = "tracejury-labels", 1


@dataclass(kw_only=True)
class Labels:
    """Labels read from files, with what had to be mended and what could not be taken."""

    errors: list[ErrorLabel] = field(default_factory=list)
    scores: list[ScoreLabel] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    @property
    def annotators(self) -> tuple[str, ...]:
        everyone: list[ErrorLabel | ScoreLabel | Review] = [*self.errors, *self.scores, *self.reviews]
        return tuple(dict.fromkeys(one.annotator for one in everyone))

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Whose errors and scores on which traces these are, reviews aside."""
        labels: list[ErrorLabel | ScoreLabel] = [*self.errors, *self.scores]
        return tuple(dict.fromkeys((one.annotator, one.trace_id) for one in labels))

    def extend(self, other: Labels) -> None:
        self.errors += other.errors
        self.scores += other.scores
        self.reviews += other.reviews
        self.warnings += other.warnings
        self.rejected += other.rejected


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Error(ErrorPut):
    attributes: dict[str, Any] = Field(default_factory=dict)


class _Score(_Form):
    dimension: str = Field(min_length=1)
    value: float | None = None
    not_applicable: bool = False
    note: str = ""
    confidence: int | None = None
    phase: Phase = "blind"

    @model_validator(mode="after")
    def _on_its_scale(self) -> _Score:
        if self.value is not None and self.not_applicable:
            raise ValueError("a score is given or not applicable, not both")
        is_ours = not self.dimension.startswith("trail.")
        if is_ours and self.value is not None and self.value not in SCORES:
            raise ValueError(f"a score of {self.dimension} is 0, 1, 2 or 3, not {self.value:g}")
        return self


class _Item(_Form):
    trace_id: str = Field(min_length=1)
    annotator: str = Field(min_length=1)
    status: Literal["open", "submitted", "skipped"]
    no_error: bool = False
    reason: str = ""
    guideline_version: str | None = None
    errors: tuple[_Error, ...] = ()
    scores: tuple[_Score, ...] = ()


class _File(_Form):
    format: Literal["tracejury-labels"]
    version: Literal[1]
    annotators: tuple[str, ...] = ()
    labels: tuple[dict[str, Any], ...]


def is_own_form(data: bytes) -> bool:
    """Whether a file says that it is of our JSON form."""
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return data.lstrip().startswith(b"{") and FORMAT.encode() in data[:1000]
    return isinstance(document, dict) and document.get("format") == FORMAT


def read_tracejury(data: bytes, file: str) -> Labels:
    """Labels of our JSON form. An item that does not fit is rejected by its place, the others are taken."""
    labels = Labels()
    try:
        document = _File.model_validate(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        labels.rejected.append(
            Rejected(
                file=file, place=f"line {error.lineno}", reason=f"not JSON: {error.msg}", remedy="correct the file"
            )
        )
        return labels
    except ValidationError as error:
        labels.rejected.append(_rejected(file, "", error))
        return labels
    for number, raw in enumerate(document.labels):
        try:
            item = _Item.model_validate(raw)
        except ValidationError as error:
            labels.rejected.append(_rejected(file, f"labels[{number}]", error))
            continue
        _take(item, labels)
    return labels


def _take(item: _Item, labels: Labels) -> None:
    who: dict[str, Any] = {"trace_id": item.trace_id, "annotator": item.annotator}
    labels.reviews.append(
        Review(
            **who,
            status=item.status,
            no_error=item.no_error,
            reason=item.reason,
            guideline_version=item.guideline_version,
        )
    )
    for error in item.errors:
        evidence = tuple(Evidence(**piece.model_dump()) for piece in error.evidence)
        plain: dict[str, Any] = error.model_dump(exclude={"evidence"})
        labels.errors.append(ErrorLabel(**who, **plain, evidence=evidence))
    for score in item.scores:
        labels.scores.append(ScoreLabel(**who, **score.model_dump()))


def _rejected(file: str, place: str, error: ValidationError) -> Rejected:
    first = error.errors()[0]
    where = ".".join(str(piece) for piece in first["loc"])
    return Rejected(
        file=file,
        place=f"{place}.{where}".strip("."),
        reason=str(first["msg"]),
        remedy="see data/schema/labels.schema.json for the form",
    )


def to_tracejury(connection: Connection, annotators: Sequence[str] = ()) -> bytes:
    """Every current label in our JSON form, importable again; one item for each annotator and trace.

    Hidden repeats are left out: they are a person's second opinion, not their label (see `self_consistency`).
    """
    items: dict[tuple[str, str], dict[str, Any]] = {}

    def item(annotator: str, trace_id: str) -> dict[str, Any]:
        return items.setdefault(
            (annotator, trace_id),
            {
                "trace_id": trace_id,
                "annotator": annotator,
                "status": "open",
                "no_error": False,
                "reason": "",
                "guideline_version": None,
                "errors": [],
                "scores": [],
            },
        )

    for review in reviews(connection):
        item(review.annotator, review.trace_id).update(
            status=review.status,
            no_error=review.no_error,
            reason=review.reason,
            guideline_version=review.guideline_version,
        )
    for error in error_labels(connection, tables.error_label.c.occasion == 0):
        plain = asdict(error)
        del plain["trace_id"], plain["annotator"]
        item(error.annotator, error.trace_id)["errors"].append(plain)
    for score in score_labels(connection, tables.score_label.c.occasion == 0):
        plain = asdict(score)
        del plain["trace_id"], plain["annotator"]
        item(score.annotator, score.trace_id)["scores"].append(plain)
    chosen = [value for (who, _), value in sorted(items.items()) if not annotators or who in annotators]
    for one in chosen:
        one["scores"].sort(key=lambda score: (score["dimension"], score["phase"]))
        one["errors"].sort(key=lambda error: error["label_id"])
    names = sorted({one["annotator"] for one in chosen})
    document = {"format": FORMAT, "version": VERSION, "annotators": names, "labels": chosen}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


CSV_COLUMNS = (
    "trace_id", "annotator", "status", "label_id", "span_ids", "dimension", "impact", "category", "description",
    "evidence", "phase", "score", "not_applicable", "note", "row", "confidence", "guideline_version", "places",
    "attributes",
)  # fmt: skip


def to_csv(connection: Connection, annotators: Sequence[str] = ()) -> str:
    """Long form: one row an error and dimension, one a score, one a review; `row` says which. It reads back equal:
    `places` holds the evidence with where it stands, as JSON.

    A trace that nobody touched is a row of its own (`untouched`), "reviewed, no error" is a review row with
    status `submitted, no error`: three different things.
    """
    return csv_of_rows(CSV_COLUMNS, _csv_rows(connection, annotators))


def _csv_rows(connection: Connection, annotators: Sequence[str]) -> Iterator[dict[str, object]]:
    touched: set[str] = set()
    for review in reviews(connection):
        if annotators and review.annotator not in annotators:
            continue
        touched.add(review.trace_id)
        status = f"{review.status}, no error" if review.no_error else review.status
        yield {
            "row": "review",
            "trace_id": review.trace_id,
            "annotator": review.annotator,
            "status": status,
            "note": review.reason,
            "guideline_version": review.guideline_version,
        }
    for error in error_labels(connection, tables.error_label.c.occasion == 0):
        if annotators and error.annotator not in annotators:
            continue
        touched.add(error.trace_id)
        for dimension in error.dimensions or ("",):
            yield {
                "row": "error",
                "trace_id": error.trace_id,
                "annotator": error.annotator,
                "label_id": error.label_id,
                "span_ids": " ".join(error.span_ids),
                "dimension": dimension,
                "impact": error.impact,
                "category": error.category,
                "description": error.description,
                "evidence": "\n".join(piece.quote for piece in error.evidence),
                "phase": error.phase,
                "places": orjson.dumps([asdict(piece) for piece in error.evidence]).decode() if error.evidence else "",
                "attributes": orjson.dumps(dict(error.attributes)).decode() if error.attributes else "",
            }
    for score in score_labels(connection, tables.score_label.c.occasion == 0):
        if annotators and score.annotator not in annotators:
            continue
        touched.add(score.trace_id)
        name, spans = dimension_and_spans(score.dimension)
        yield {
            "row": "score",
            "trace_id": score.trace_id,
            "annotator": score.annotator,
            "span_ids": " ".join(spans),
            "dimension": name,
            "score": "" if score.value is None else f"{score.value:g}",
            "not_applicable": "yes" if score.not_applicable else "",
            "note": score.note,
            "phase": score.phase,
            "confidence": score.confidence,
        }
    for trace_id in connection.scalars(select(schema.trace.c.trace_id).order_by(schema.trace.c.trace_key)):
        if trace_id not in touched:
            yield {"row": "untouched", "trace_id": trace_id}


def to_trail(connection: Connection, folder: Path, annotator: str) -> int:
    """One annotation file a trace in TRAIL's form; an error on several spans becomes one entry a span.

    Returns the number of files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_trace: dict[str, list[ErrorLabel]] = {
        review.trace_id: [] for review in reviews(connection) if review.annotator == annotator
    }
    for error in error_labels(
        connection, tables.error_label.c.annotator == annotator, tables.error_label.c.occasion == 0
    ):
        by_trace.setdefault(error.trace_id, []).append(error)
    for trace_id, errors in by_trace.items():
        scores = _trail_scores(connection, annotator, trace_id)
        document = {"trace_id": trace_id, "errors": list(_trail_errors(errors)), "scores": [scores] if scores else []}
        (folder / f"{quote(trace_id, safe='')}.json").write_bytes(
            orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"
        )
    return len(by_trace)


def _trail_errors(errors: Iterable[ErrorLabel]) -> Iterator[dict[str, Json]]:
    for error in errors:
        for span_id in error.span_ids or ("",):
            yield {
                "category": error.category or "",
                "location": span_id,
                "evidence": "\n".join(piece.quote for piece in error.evidence),
                "description": error.description,
                "impact": (error.impact or "").upper(),
            }


def _trail_scores(connection: Connection, annotator: str, trace_id: str) -> dict[str, Json]:
    table = tables.score_label
    labels = score_labels(connection, table.c.annotator == annotator, table.c.trace_id == trace_id)
    scores: dict[str, Json] = {}
    for score in labels:
        name = score.dimension.removeprefix("trail.")
        if name != score.dimension:
            key = name if name == "overall" else f"{name}_score"
            scores[key] = score.value
            if score.note:
                scores[f"{name}_reasoning"] = score.note
    return scores
