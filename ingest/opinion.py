"""One score, error or review that a record of another tool holds, and how the values in such records are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import orjson

from tracejury.ingest.score_files import Record
from tracejury.ingest.trace import Json

Kind = Literal["score", "error", "review"]
FormName = Literal[
    "plain", "langfuse", "phoenix", "label-studio", "argilla", "langsmith", "mlflow", "scout", "docent", "opik",
    "weave", "datadog", "braintrust", "humanloop", "labelbox", "prodigy", "doccano", "deepeval", "ragas", "promptfoo",
    "openai-evals", "arize", "langwatch",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Opinion:
    """One score, error or review as a record gives it; `fault` says why it is none.

    `author` is a person's name, or with `is_machine` that of an evaluator; None where the record names nobody.
    `value` is as given (number, truth value or text), not yet on our scale.
    """

    place: str
    kind: Kind = "score"
    trace_id: str | None = None
    span_ids: tuple[str, ...] = ()
    author: str | None = None
    is_machine: bool = False
    name: str | None = None
    value: float | bool | str | None = None
    label: str | None = None
    not_applicable: bool = False
    comment: str = ""
    evidence: str = ""
    impact: str | None = None
    category: str | None = None
    label_id: str | None = None
    status: str | None = None
    phase: str | None = None
    confidence: str | None = None
    guideline_version: str | None = None
    places: Json = None
    attributes: Json = None
    fault: str | None = None
    remedy: str = ""
    set_aside: str | None = None
    """How its own author took it back in the tool: it is no label, and no row that is wrong."""


class Form(NamedTuple):
    """A tool's form: its name, the keys by which a record shows it, and the reader of a record."""

    name: FormName
    knows: Callable[[Mapping[str, Json]], bool]
    read: Callable[[Record], Iterator[Opinion]]


FIELDS: Mapping[str, tuple[str, ...]] = {
    "trace_id": ("traceid", "trace", "agentrunid", "transcriptid", "contexttraceid", "runid", "rootspanid",
                 "traceuuid"),
    "span_ids": ("spanids", "spanid", "span", "spans", "observationid", "contextspanid"),
    "annotator": ("annotator", "rater", "reviewer", "labeler", "labeller", "coder", "author", "person", "annotatorid",
                  "raterid", "annotatedby", "createdby", "creator", "annotatorname", "annotatoremail", "ratername",
                  "reviewername", "reviewerid", "labelername", "assessor", "ratedby", "reviewedby"),
    "dimension": ("dimension", "dimensions", "name", "metric", "criterion", "criteria", "key", "question",
                  "annotationname", "dimensionname", "metricname", "criterionname", "scorename", "aspect", "rubric"),
    "score": ("score", "value", "rating", "resultscore", "scorevalue", "grade", "points"),
    "label": ("label", "stringvalue", "resultlabel", "choice"),
    "comment": ("comment", "comments", "note", "notes", "explanation", "rationale", "reason", "justification",
                "resultexplanation", "feedback"),
    "description": ("description", "error", "errordescription"),
    "evidence": ("evidence", "quote", "excerpt"),
    "impact": ("impact", "severity"),
    "category": ("category", "errorcategory", "errortype"),
    "not_applicable": ("notapplicable", "na"),
    "label_id": ("labelid",),
    "status": ("status", "reviewstatus"),
    "phase": ("phase",),
    "confidence": ("confidence",),
    "guideline_version": ("guidelineversion",),
    "row": ("row",),
    "places": ("places",),
    "attributes": ("attributes",),
}  # fmt: skip
"""By field, the column names under which plain files hold it, without case and signs, the first that is there wins."""


_REMARK = re.compile(r"\s*\((?:[^()\d]*|0\s*(?:-|–|to|\.\.)\s*3)\)\s*$")
"""A remark behind a column's name, such as `(0-3)`; another range of numbers is a scale that has to be told."""


def folded(name: str) -> str:
    """A column's name without case, spaces, signs and a remark behind it."""
    bare = _REMARK.sub("", name) or name
    return "".join(letter for letter in bare.lower() if letter.isalnum())


def cell(values: Mapping[str, Json], column: str | None) -> Json:
    """The value of a column; `meta.trace_id` is `trace_id` of the object `meta` where no column is called that."""
    if column is None or column in values:
        return values.get(column or "")
    outer, dot, inner = column.partition(".")
    return cell(object_of(values.get(outer)), inner) if dot else None


def column_of(field: str, columns: Mapping[str, str], chosen: Mapping[str, str]) -> str | None:
    """The column that holds a field: the chosen one, else by its name. `columns` maps folded names to columns."""
    if field in chosen:
        return chosen[field]
    return next((columns[name] for name in FIELDS[field] if name in columns), None)


def as_words(value: Json) -> str:
    """A value as the text that it is: text stripped of white space around it, NaN and null empty, JSON else."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return orjson.dumps(value, default=str).decode()


def value_of(value: Json) -> float | bool | str | None:
    """A number, truth value or text as given; a number written as text is that number."""
    if isinstance(value, bool):
        return value
    words = as_words(value)
    if not words:
        return None
    return float(words.replace(",", ".", 1)) if is_number(words) else _truth(words)


def rating_of(value: Json) -> float | bool | str | None:
    """As `value_of`; a rating as Label Studio writes it in its CSV and JSON-MIN, `[{"rating": 2}]`, is its number."""
    several = objects_of(value)
    if len(several) == 1 and len(several[0]) == 1 and several[0].keys() <= {"rating", "number"}:
        return value_of(next(iter(several[0].values())))
    return value_of(value)


def _truth(words: str) -> bool | str:
    return {"true": True, "false": False}.get(words.lower(), words)


def is_number(words: str) -> bool:
    """Whether a text is a finite number, with a point or a comma before its decimals."""
    try:
        return abs(float(words.replace(",", ".", 1))) < float("inf")
    except ValueError:
        return False


def ids_of(value: Json) -> tuple[str, ...]:
    """Span ids of a cell or list: several stand apart by white space or commas."""
    parsed = json_of(value)
    words = " ".join(map(as_words, parsed)) if isinstance(parsed, list) else as_words(value)
    return tuple(dict.fromkeys(words.replace(",", " ").replace(";", " ").split()))


def json_of(value: Json) -> Json:
    """JSON of a text that holds some, as data frames do; any other value as it is."""
    if not isinstance(value, str) or not value.strip():
        return value
    try:
        parsed: Json = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return parsed


def object_of(value: Json) -> Mapping[str, Json]:
    """The object that a value or the JSON in its text is; an empty one of any other value."""
    parsed = json_of(value)
    return parsed if isinstance(parsed, dict) else {}


def objects_of(value: Json) -> list[Mapping[str, Json]]:
    """The objects of a list, or of the JSON of one; none of any other value."""
    parsed = json_of(value)
    return [one for one in parsed if isinstance(one, dict)] if isinstance(parsed, list) else []


def person_of(value: Json) -> str:
    """The name of a person: e-mail address, user name or id of an object, else the value in words."""
    person = object_of(value)
    return next((as_words(person[key]) for key in ("email", "username", "id") if person.get(key)), "") or as_words(
        value
    )


def trace_and_spans(values: Mapping[str, Json], *, by_id: bool = True) -> Opinion:
    """An opinion about the trace and spans that a task or record names; with `by_id` its own id may be the trace's."""
    columns = {folded(name): name for name in reversed(list(values))}
    trace = column_of("trace_id", columns, {}) or ("id" if by_id and "id" in values else None)
    spans = column_of("span_ids", columns, {})
    return Opinion(
        place="",
        trace_id=(as_words(values.get(trace)) or None) if trace else None,
        span_ids=ids_of(values.get(spans)) if spans else (),
    )


def first_choice(value: Json) -> str | None:
    """The words of a choice, of several with commas between them; None for none."""
    while isinstance(value, list) and value:
        value = value[0] if len(value) == 1 or not isinstance(value[0], str) else ", ".join(map(as_words, value))
    return as_words(value) or None
