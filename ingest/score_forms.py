"""What records of other tools say: each tool's form of a score, as one `Opinion` in our words.

Forms as the tools' own sources and documentation give them; a record that holds no opinion about a trace says why
in `fault`. Nothing is scaled or renamed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import orjson

from tracejury.ingest.score_files import Record
from tracejury.ingest.trace import Json

Kind = Literal["score", "error", "review"]
FormName = Literal[
    "plain", "langfuse", "phoenix", "label-studio", "argilla", "langsmith", "mlflow", "scout", "docent"
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
    "trace_id": ("traceid", "trace", "agentrunid", "transcriptid", "contexttraceid", "runid", "rootspanid"),
    "span_ids": ("spanids", "spanid", "span", "spans", "observationid", "contextspanid"),
    "annotator": ("annotator", "rater", "reviewer", "labeler", "labeller", "coder", "author", "person", "annotatorid",
                  "raterid", "annotatedby", "createdby", "creator"),
    "dimension": ("dimension", "dimensions", "name", "metric", "criterion", "criteria", "key", "question",
                  "annotationname"),
    "score": ("score", "value", "rating", "resultscore"),
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
SCORES_BY_NAME = ("scores", "ratings")
"""Columns that may hold an object of scores by dimension."""
_YES = frozenset({"yes", "true", "1", "x", "y"})


def folded(name: str) -> str:
    """A column's name without case, spaces and signs."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def column_of(field: str, columns: Mapping[str, str], chosen: Mapping[str, str]) -> str | None:
    """The column that holds a field: the chosen one, else by its name. `columns` maps folded names to columns."""
    if field in chosen:
        return chosen[field]
    return next((columns[name] for name in FIELDS[field] if name in columns), None)


# plain files ----------------------------------------------------------------------------------------------------


def read_plain(record: Record, chosen: Mapping[str, str], scored: Mapping[str, str]) -> Iterator[Opinion]:
    """The opinions of a row of a plain file. `scored` are columns that are themselves named after a dimension."""
    columns = {folded(name): name for name in reversed(list(record.values))}
    column_by_field = {field: column_of(field, columns, chosen) for field in FIELDS}

    def text(field: str) -> str:
        column = column_by_field[field]
        return "" if column is None else as_words(record.values.get(column))

    row = text("row")
    if row == "untouched":  # our own export says so of traces that nobody has touched
        return
    opinion = Opinion(
        place=record.place,
        trace_id=text("trace_id") or None,
        span_ids=_ids(None if column_by_field["span_ids"] is None else record.values.get(column_by_field["span_ids"])),
        author=text("annotator") or None,
        name=text("dimension") or None,
        value=_rated(None if column_by_field["score"] is None else record.values.get(column_by_field["score"])),
        label=text("label") or None,
        not_applicable=text("not_applicable").lower() in _YES,
        comment=text("comment"),
        evidence=text("evidence"),
        impact=text("impact") or None,
        category=text("category") or None,
        label_id=text("label_id") or None,
        status=text("status") or None,
        phase=text("phase") or None,
        confidence=text("confidence") or None,
        guideline_version=text("guideline_version") or None,
        places=_parsed(text("places")),
        attributes=_parsed(text("attributes")),
    )
    is_wide = column_by_field["score"] is None and column_by_field["dimension"] is None and scored
    if is_wide:
        yield from (
            replace(opinion, name=name, value=_rated(record.values.get(column)))
            for column, name in scored.items()
            if as_words(record.values.get(column))
        )
        return
    by_name = next(
        (held for name in SCORES_BY_NAME if (held := _object(record.values.get(columns.get(name, ""))))), None
    )
    if by_name is not None and column_by_field["score"] is None and column_by_field["dimension"] is None:
        yield from (replace(opinion, name=name, value=_rated(value)) for name, value in by_name.items())
        return
    description = text("description")
    yield _of_kind(opinion, row, description)
    if not row and opinion.value is not None and opinion.impact:  # a score, and the error that lowers it
        yield replace(opinion, kind="error", value=None, comment=description or opinion.comment)


def _of_kind(opinion: Opinion, row: str, description: str) -> Opinion:
    """The opinion as what it is: a score has a value, a review a status alone, an error what is marked."""
    if row == "error" or (
        not row and opinion.value is None and not opinion.not_applicable and _marks(opinion, description)
    ):
        return replace(opinion, kind="error", comment=description or opinion.comment)
    if row == "review" or (not row and opinion.status and opinion.value is None and opinion.label is None):
        return replace(opinion, kind="review")
    if (
        not row
        and opinion.not_applicable is False
        and str(opinion.value).strip().lower() in {"na", "n/a", "not applicable"}
    ):
        return replace(opinion, value=None, not_applicable=True)
    quoted = f"evidence: {opinion.evidence}" if opinion.evidence and not opinion.impact and not row else ""
    return replace(opinion, comment="\n".join(filter(None, (opinion.comment or description, quoted))))


def _marks(opinion: Opinion, description: str) -> bool:
    """Whether a row marks an error: it says how bad, what kind, where in the words, or what is wrong."""
    return bool(opinion.impact or opinion.category or opinion.evidence or description)


# Langfuse, Phoenix ----------------------------------------------------------------------------------------------


def _knows_langfuse(values: Mapping[str, Json]) -> bool:
    return bool({"dataType", "data_type"} & values.keys()) and {"name", "value"} <= values.keys()


def _langfuse(record: Record) -> Iterator[Opinion]:
    """A score of the UI's CSV, of the API (v1 to v3) or of the blob export, which writes snake case."""
    values = {**record.values, **_subject(record.values.get("subject"))}

    def get(camel: str, snake: str) -> str:
        return as_words(values.get(camel, values.get(snake)))

    kind, source = get("dataType", "data_type").upper(), get("source", "source").upper()
    is_text = kind in {"CATEGORICAL", "TEXT", "CORRECTION"}
    author = get("authorUserName", "author_user_name") or get("authorUserId", "author_user_id")
    value, metadata = _value(values.get("value")), _object(values.get("metadata"))
    opinion = Opinion(
        place=record.place,
        trace_id=get("traceId", "trace_id") or None,
        span_ids=_ids(get("observationId", "observation_id")),
        author=author or ("langfuse" if source in {"ANNOTATION", ""} else f"langfuse {source}"),
        is_machine=source == "EVAL",
        name=get("name", "name") or None,
        value=_boolean(value) if kind == "BOOLEAN" else None if is_text else value,
        label=(get("stringValue", "string_value") or (as_words(values.get("value")) if is_text else "")) or None,
        comment=get("comment", "comment"),
        fault=None if get("traceId", "trace_id") else "the score is of a session or a dataset run, not of a trace",
    )
    yield _of_own_export(opinion, metadata)


def _boolean(value: float | bool | str | None) -> float | bool | str | None:
    """Langfuse writes true and false as 1 and 0."""
    return bool(value) if isinstance(value, float) and value in {0.0, 1.0} else value


def _of_own_export(opinion: Opinion, metadata: Mapping[str, Json]) -> Opinion:
    """An opinion that we wrote in another tool's form says in its metadata what that form has no place for."""
    own = _object(metadata.get("tracejury"))
    if not own:
        return opinion
    is_error = own.get("kind") == "error"
    return replace(
        opinion,
        kind="error" if is_error else "review" if own.get("kind") == "review" else "score",
        name=as_words(own.get("dimension")) or (None if is_error else opinion.name),
        value=None if is_error else opinion.value,
        label=None,
        span_ids=_ids(own.get("span_ids")) or opinion.span_ids,
        not_applicable=own.get("not_applicable") is True,
        evidence=as_words(own.get("evidence")),
        impact=as_words(own.get("impact")) or None,
        category=as_words(own.get("category")) or None,
        label_id=as_words(own.get("label_id")) or None,
        status=as_words(own.get("status")) or None,
        phase=as_words(own.get("phase")) or None,
        confidence=as_words(own.get("confidence")) or None,
        guideline_version=as_words(own.get("guideline_version")) or None,
        places=own.get("places"),
        attributes=own.get("attributes"),
    )


def _subject(value: Json) -> dict[str, Json]:
    """Trace and observation of a score of the newest API, which names them in one object."""
    subject = _object(value)
    kind, own = subject.get("kind"), subject.get("id")
    if kind == "trace":
        return {"traceId": own}
    return {"traceId": subject.get("traceId"), "observationId": own} if kind == "observation" else {}


def _knows_phoenix(values: Mapping[str, Json]) -> bool:
    return "annotator_kind" in values


def _phoenix(record: Record) -> Iterator[Opinion]:
    """An annotation of a span or trace, of the REST API or of the client's data frame."""
    values = record.values
    result = _object(values.get("result"))

    def part(name: str) -> Json:
        return result.get(name, values.get(f"result.{name}", values.get(name)))

    kind = as_words(values.get("annotator_kind")).upper()
    is_machine = kind not in {"HUMAN", ""}
    who = as_words(values.get("user_id")) or as_words(values.get("identifier"))
    of_document = as_words(values.get("document_position")) != ""
    yield Opinion(
        place=record.place,
        trace_id=as_words(values.get("trace_id")) or None,
        span_ids=_ids(values.get("span_id", values.get("context.span_id"))),
        author=f"phoenix {kind}" if is_machine else who or "phoenix",
        is_machine=is_machine,
        name=as_words(values.get("annotation_name", values.get("name"))) or None,
        value=_value(part("score")),
        label=as_words(part("label")) or None,
        comment=as_words(part("explanation")),
        fault="the annotation is of a retrieved document, not of a span or trace" if of_document else None,
    )


# Label Studio, Argilla ------------------------------------------------------------------------------------------


def _knows_label_studio(values: Mapping[str, Json]) -> bool:
    return isinstance(values.get("data"), dict) and isinstance(values.get("annotations"), list)


def _label_studio(record: Record) -> Iterator[Opinion]:
    """A task with the results of its annotations; predictions are a model's."""
    data = _object(record.values.get("data"))
    about = _trace_and_span({**_object(record.values.get("meta")), **data})
    for key, is_machine in (("annotations", False), ("predictions", True)):
        for number, annotation in enumerate(_objects(record.values.get(key))):
            author = (
                _who(annotation.get("completed_by")) if not is_machine else as_words(annotation.get("model_version"))
            )
            base = replace(
                about,
                place=f"{record.place} {key}[{number}]",
                author=author or "label-studio",
                is_machine=is_machine,
            )
            if annotation.get("was_cancelled") is True:
                yield replace(base, set_aside="cancelled or skipped")
            else:
                yield from _results(_objects(annotation.get("result")), base)
    for number in range(len(_objects(record.values.get("drafts")))):
        yield replace(about, place=f"{record.place} drafts[{number}]", set_aside="a draft")


def _results(results: list[Mapping[str, Json]], base: Opinion) -> Iterator[Opinion]:
    """A result each: a choice or number is a score, a marked stretch an error, a text the comment of its control."""
    comments = {as_words(one.get("from_name")): _words_of(one) for one in results if one.get("type") == "textarea"}
    own = [one for one in results if "tracejury" in _object(one.get("meta"))]
    for one in results:
        control, value, kind = as_words(one.get("from_name")), _object(one.get("value")), as_words(one.get("type"))
        score = replace(base, name=control, comment=_comment_of(control, comments))
        if one in own:
            opinion = replace(score, value=_value(value.get("number")), comment=_words_of(one))
            yield _of_own_export(opinion, _object(one.get("meta")))
        elif kind in {"rating", "number"}:
            yield replace(score, value=_value(value.get(kind)))
        elif kind in {"choices", "pairwise", "taxonomy"}:
            yield replace(score, label=_first_choice(value.get(kind, value.get("selected"))))
        elif kind.endswith("labels"):
            labels = value.get(kind)
            yield replace(
                base, kind="error", category=_first_choice(labels), evidence=as_words(value.get("text")), comment="",
                label_id=as_words(one.get("id")) or None,
            )  # fmt: skip
    if comments and not any(one.get("type") != "textarea" for one in results):
        yield replace(base, fault="the annotation holds a comment and no score, choice or marked text")


def _comment_of(control: str, comments: Mapping[str, str]) -> str:
    """The comment beside a control: the one named after it, else the only one without another control's name."""
    for name, text in comments.items():
        if name.startswith(control) or control.startswith(name):
            return text
    return next(iter(comments.values())) if len(comments) == 1 else ""


def _words_of(result: Mapping[str, Json]) -> str:
    text = _object(result.get("value")).get("text")
    return "\n".join(as_words(line) for line in text) if isinstance(text, list) else as_words(text)


def _first_choice(value: Json) -> str | None:
    while isinstance(value, list) and value:
        value = value[0] if len(value) == 1 or not isinstance(value[0], str) else ", ".join(map(as_words, value))
    return as_words(value) or None


_FLAT = ".responses"


def _knows_argilla(values: Mapping[str, Json]) -> bool:
    whole = "fields" in values and isinstance(values.get("responses"), dict | list)
    return whole or any(key.endswith(_FLAT) and f"{key}.users" in values for key in values)


def _argilla(record: Record) -> Iterator[Opinion]:
    """A record with the responses to its questions: by question (to_json), in a list (to_list of the server), or in
    columns of each question (to_datasets).
    """
    values = _from_columns(record.values)
    named = {**_object(values.get("fields")), **_object(values.get("metadata")), "id": values.get("id")}
    about = _trace_and_span(named)
    responses = values.get("responses")
    answers = (
        [{**answer, "question_name": question} for question, some in responses.items() for answer in _objects(some)]
        if isinstance(responses, dict)
        else _objects(responses)
    )
    if not answers and as_words(values.get("status")).lower() == "discarded":
        yield replace(about, place=record.place, set_aside="discarded")
    for number, one in enumerate(answers):
        place = f"{record.place} responses[{number}]"
        if as_words(one.get("status")).lower() == "discarded":
            yield replace(about, place=place, set_aside="discarded")
            continue
        for question, answer in _answers(one):
            is_label = isinstance(answer, str | list)
            yield replace(
                about,
                place=place,
                author=as_words(one.get("user_id")) or "argilla",
                name=question,
                value=None if is_label else _value(answer),
                label=_first_choice(answer) if is_label else None,
                fault="the response is a draft" if as_words(one.get("status")).lower() == "draft" else None,
                remedy="submit it in Argilla and export it again",
            )


def _from_columns(values: Mapping[str, Json]) -> Mapping[str, Json]:
    """A row of a data set, `QUESTION.responses` beside its `.users` and `.status`, as the record that it was."""
    if "fields" in values:
        return values
    responses: list[Json] = []
    for key in [key for key in values if key.endswith(_FLAT)]:
        columns = [_parsed(values.get(name)) for name in (key, f"{key}.users", f"{key}.status")]
        lists = [column if isinstance(column, list) else [] for column in columns]
        for number, value in enumerate(lists[0]):
            user, status = (one[number] if number < len(one) else None for one in lists[1:])
            question = key.removesuffix(_FLAT)
            responses.append({"question_name": question, "value": value, "user_id": user, "status": status})
    return {"fields": dict(values), "responses": responses, "id": values.get("id")}


def _answers(response: Mapping[str, Json]) -> list[tuple[str, Json]]:
    """Question and answer of a response: one, or all of a person by question as the server writes them."""
    values = response.get("values")
    if isinstance(values, dict):
        return [(question, _object(answer).get("value")) for question, answer in values.items()]
    return [(as_words(response.get("question_name")), response.get("value"))]


# LangSmith, MLflow ----------------------------------------------------------------------------------------------


def _knows_langsmith(values: Mapping[str, Json]) -> bool:
    return (
        "key" in values
        and bool({"run_id", "trace_id"} & values.keys())
        and ("feedback_source" in values or {"score", "value"} <= values.keys())
    )


def _langsmith(record: Record) -> Iterator[Opinion]:
    """A feedback record; the run that it is of is a span of its trace."""
    values = record.values
    source = _object(values.get("feedback_source"))
    kind = as_words(source.get("type") or values.get("feedback_source.type"))
    who = as_words(source.get("user_name")) or as_words(source.get("user_id"))
    run, trace = as_words(values.get("run_id")), as_words(values.get("trace_id"))
    score, text = values.get("score"), values.get("value")
    is_label = score is None or as_words(score) == ""
    yield Opinion(
        place=record.place,
        trace_id=trace or None,
        span_ids=(run,) if run and run != trace else (),
        author=who or (f"langsmith {kind}" if kind and kind != "app" else "langsmith"),
        is_machine=kind in {"model", "auto_eval", "evaluator"},
        name=as_words(values.get("key")) or None,
        value=None if is_label else _value(score),
        label=as_words(text) or None,
        comment=as_words(values.get("comment")),
        fault=None if run or trace else "the feedback is of no run",
    )


def _knows_mlflow(values: Mapping[str, Json]) -> bool:
    return bool(_assessments(values)) or (
        bool({"feedback", "expectation", "assessment_name", "assessment_id"} & values.keys())
        and bool({"source", "source_type"} & values.keys())
    )


def _mlflow(record: Record) -> Iterator[Opinion]:
    """The assessments of a trace, or one by itself, as `to_dictionary` and the REST API write them."""
    values = record.values
    nested = _assessments(values)
    trace_id = values.get("trace_id") or values.get("request_id") or _object(values.get("info")).get("trace_id")
    for number, one in enumerate(nested):
        yield _assessment({"trace_id": trace_id, **one}, f"{record.place} assessments[{number}]")
    if not nested:
        yield _assessment(values, record.place)


def _assessments(values: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    listing = values.get("assessments", _object(values.get("info")).get("assessments"))
    return _objects(_parsed(listing))


def _assessment(values: Mapping[str, Json], place: str) -> Opinion:
    source = _object(values.get("source")) or values  # a table of assessments has its fields as columns
    kind = as_words(source.get("source_type")).upper()
    feedback = _object(values.get("feedback"))
    value = feedback.get("value", values.get("value"))
    faults = {
        "it is an expectation, not a score": values.get("expectation") is not None,
        "it was overridden by a later assessment": values.get("valid") is False,
        "the evaluator failed": bool(values.get("error") or feedback.get("error")),
    }
    is_text = isinstance(value, str) and not _is_number(value)
    is_machine = kind not in {"HUMAN", ""}
    return Opinion(
        place=place,
        trace_id=as_words(values.get("trace_id")) or None,
        span_ids=_ids(values.get("span_id")),
        author=as_words(source.get("source_id")) or f"mlflow {kind}".strip(),
        is_machine=is_machine,
        name=as_words(values.get("assessment_name", values.get("name"))) or None,
        value=None if is_text else _value(value),
        label=as_words(value) if is_text else None,
        comment=as_words(values.get("rationale")),
        fault=next((fault for fault, holds in faults.items() if holds), None),
    )


# Inspect Scout, Docent ------------------------------------------------------------------------------------------


def _knows_scout(values: Mapping[str, Json]) -> bool:
    return "transcript_id" in values and bool({"scanner_name", "scanner_key"} & values.keys())


def _scout(record: Record) -> Iterator[Opinion]:
    """A row of a scanner's results: a model's or a program's finding about a transcript."""
    values = record.values
    value = _parsed(values.get("value"))
    is_plain = isinstance(value, int | float | bool)
    yield Opinion(
        place=record.place,
        trace_id=as_words(values.get("transcript_id")) or None,
        author=as_words(values.get("scan_model") or values.get("model")) or "scout",
        is_machine=True,
        name=as_words(values.get("scanner_name") or values.get("scanner_key")) or None,
        value=_value(value) if is_plain else None,
        label=None if is_plain else as_words(values.get("answer")) or as_words(value) or None,
        comment=as_words(values.get("explanation")),
        fault=f"the scan failed: {values['scan_error']}" if as_words(values.get("scan_error")) else None,
    )


def _knows_docent(values: Mapping[str, Json]) -> bool:
    return "agent_run_id" in values and bool({"rubric_id", "results"} & values.keys())


def _docent(record: Record) -> Iterator[Opinion]:
    """A judge result, or those of one agent run; the label is what the rubric's schema lets the judge answer."""
    values = record.values
    for number, one in enumerate(_objects(values.get("results"))):
        inner = {"rubric_id": None, **values, "results": None, **one}
        yield from _docent(Record(place=f"{record.place} results[{number}]", values=inner))
    if values.get("results"):
        return
    output = _object(_parsed(values.get("output", values.get("value"))))
    score = output.get("score", output.get("rating"))
    explanation = output.get("explanation", output.get("rationale"))
    words = _object(explanation).get("text", explanation)
    failed = "FAILURE" in as_words(values.get("result_type")).upper()
    yield Opinion(
        place=record.place,
        trace_id=as_words(values.get("agent_run_id")) or None,
        author="docent",
        is_machine=True,
        name=as_words(values.get("rubric_name")) or as_words(values.get("rubric_id")) or None,
        value=_value(score),
        label=as_words(output.get("label")) or (as_words(values.get("value")) if not output else "") or None,
        comment=as_words(words),
        fault="the judge gave no answer" if failed else None,
    )


# values ---------------------------------------------------------------------------------------------------------


def as_words(value: Json) -> str:
    """A value as the text that it is: text stripped of white space around it, NaN and null empty, JSON else."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return orjson.dumps(value, default=str).decode()


def _value(value: Json) -> float | bool | str | None:
    """A number, truth value or text as given; a number written as text is that number."""
    if isinstance(value, bool):
        return value
    words = as_words(value)
    if not words:
        return None
    return float(words.replace(",", ".", 1)) if _is_number(words) else _truth(words)


def _rated(value: Json) -> float | bool | str | None:
    """As `_value`; a rating as Label Studio writes it in its CSV and JSON-MIN, `[{"rating": 2}]`, is its number."""
    several = _objects(value)
    if len(several) == 1 and len(several[0]) == 1 and several[0].keys() <= {"rating", "number"}:
        return _value(next(iter(several[0].values())))
    return _value(value)


def _truth(words: str) -> bool | str:
    return {"true": True, "false": False}.get(words.lower(), words)


def _is_number(words: str) -> bool:
    try:
        return abs(float(words.replace(",", ".", 1))) < float("inf")
    except ValueError:
        return False


def _ids(value: Json) -> tuple[str, ...]:
    """Span ids of a cell or list: several stand apart by white space or commas."""
    parsed = _parsed(value)
    words = " ".join(map(as_words, parsed)) if isinstance(parsed, list) else as_words(value)
    return tuple(dict.fromkeys(words.replace(",", " ").replace(";", " ").split()))


def _parsed(value: Json) -> Json:
    """JSON of a text that holds some, as data frames do; any other value as it is."""
    if not isinstance(value, str) or not value.strip():
        return value
    try:
        parsed: Json = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return parsed


def _object(value: Json) -> Mapping[str, Json]:
    parsed = _parsed(value)
    return parsed if isinstance(parsed, dict) else {}


def _objects(value: Json) -> list[Mapping[str, Json]]:
    parsed = _parsed(value)
    return [one for one in parsed if isinstance(one, dict)] if isinstance(parsed, list) else []


def _who(value: Json) -> str:
    person = _object(value)
    return next((as_words(person[key]) for key in ("email", "username", "id") if person.get(key)), "") or as_words(
        value
    )


def _trace_and_span(values: Mapping[str, Json]) -> Opinion:
    """An opinion about the trace and spans that a task or record names."""
    columns = {folded(name): name for name in reversed(list(values))}
    trace = column_of("trace_id", columns, {}) or ("id" if "id" in values else None)
    spans = column_of("span_ids", columns, {})
    return Opinion(
        place="",
        trace_id=(as_words(values.get(trace)) or None) if trace else None,
        span_ids=_ids(values.get(spans)) if spans else (),
    )


FORMS: tuple[Form, ...] = (
    Form("label-studio", _knows_label_studio, _label_studio),
    Form("argilla", _knows_argilla, _argilla),
    Form("mlflow", _knows_mlflow, _mlflow),
    Form("phoenix", _knows_phoenix, _phoenix),
    Form("langfuse", _knows_langfuse, _langfuse),
    Form("scout", _knows_scout, _scout),
    Form("docent", _knows_docent, _docent),
    Form("langsmith", _knows_langsmith, _langsmith),
)
"""Tools by the most telling keys first; a record of none of them is a row of a plain file."""


def form_of(values: Mapping[str, Json]) -> Form | None:
    """The form whose keys a record has; None for a plain one."""
    return next((form for form in FORMS if form.knows(values)), None)
