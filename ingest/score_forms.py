"""What records of other tools say: each tool's form of a score, as one `Opinion` in our words.

Forms as the tools' own sources and documentation give them; a record that holds no opinion about a trace says why
in `fault`. Nothing is scaled or renamed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tracejury.ingest.annotation_tools import ANNOTATION_FORMS
from tracejury.ingest.evaluation_tools import EVALUATION_FORMS
from tracejury.ingest.opinion import (
    FIELDS,
    Form,
    Opinion,
    as_words,
    cell,
    column_of,
    first_choice,
    folded,
    ids_of,
    is_number,
    json_of,
    object_of,
    objects_of,
    person_of,
    rating_of,
    trace_and_spans,
    value_of,
)
from tracejury.ingest.score_files import Record
from tracejury.ingest.trace import Json

SCORES_BY_NAME = ("scores", "ratings")
"""Columns that may hold an object of scores by dimension."""
_YES = frozenset({"yes", "true", "1", "x", "y"})


# plain files ----------------------------------------------------------------------------------------------------


def read_plain(record: Record, chosen: Mapping[str, str], scored: Mapping[str, str]) -> Iterator[Opinion]:
    """The opinions of a row of a plain file. `scored` are columns that are themselves named after a dimension."""
    columns = {folded(name): name for name in reversed(list(record.values))}
    column_by_field = {field: column_of(field, columns, chosen) for field in FIELDS}

    def text(field: str) -> str:
        column = column_by_field[field]
        return as_words(cell(record.values, column))

    row = text("row")
    if row == "untouched":  # our own export says so of traces that nobody has touched
        return
    opinion = Opinion(
        place=record.place,
        trace_id=text("trace_id") or None,
        span_ids=ids_of(cell(record.values, column_by_field["span_ids"])),
        author=text("annotator") or None,
        name=text("dimension") or None,
        value=rating_of(cell(record.values, column_by_field["score"])),
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
        places=json_of(text("places")),
        attributes=json_of(text("attributes")),
    )
    is_wide = column_by_field["score"] is None and column_by_field["dimension"] is None and scored
    if is_wide:
        yield from (
            replace(opinion, name=name, value=rating_of(cell(record.values, column)))
            for column, name in scored.items()
            if as_words(cell(record.values, column))
        )
        return
    by_name = next(
        (scores for name in SCORES_BY_NAME if (scores := object_of(record.values.get(columns.get(name, ""))))), None
    )
    if by_name is not None and column_by_field["score"] is None and column_by_field["dimension"] is None:
        yield from (_of_name(opinion, name, value) for name, value in by_name.items())
        return
    description = text("description")
    yield _of_kind(opinion, row, description)
    if not row and opinion.value is not None and opinion.impact:  # a score, and the error that lowers it
        yield replace(opinion, kind="error", value=None, comment=description or opinion.comment)


def _of_name(opinion: Opinion, name: str, value: Json) -> Opinion:
    """A score by its dimension: a number, or an object of it with a comment."""
    holder = object_of(value)
    columns = {folded(key): key for key in reversed(list(holder))}
    score, comment = column_of("score", columns, {}), column_of("comment", columns, {})
    if score is None:
        return replace(opinion, name=name, value=rating_of(value))
    words = as_words(cell(holder, comment)) or opinion.comment
    return replace(opinion, name=name, value=rating_of(holder[score]), comment=words)


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
    value, metadata = value_of(values.get("value")), object_of(values.get("metadata"))
    opinion = Opinion(
        place=record.place,
        trace_id=get("traceId", "trace_id") or None,
        span_ids=ids_of(get("observationId", "observation_id")),
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
    own = object_of(metadata.get("tracejury"))
    if not own:
        return opinion
    is_error = own.get("kind") == "error"
    return replace(
        opinion,
        kind="error" if is_error else "review" if own.get("kind") == "review" else "score",
        name=as_words(own.get("dimension")) or (None if is_error else opinion.name),
        value=None if is_error else opinion.value,
        label=None,
        span_ids=ids_of(own.get("span_ids")) or opinion.span_ids,
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
    subject = object_of(value)
    kind, own = subject.get("kind"), subject.get("id")
    if kind == "trace":
        return {"traceId": own}
    return {"traceId": subject.get("traceId"), "observationId": own} if kind == "observation" else {}


def _knows_phoenix(values: Mapping[str, Json]) -> bool:
    return "annotator_kind" in values


def _phoenix(record: Record) -> Iterator[Opinion]:
    """An annotation of a span or trace, of the REST API or of the client's data frame."""
    values = record.values
    result = object_of(values.get("result"))

    def part(name: str) -> Json:
        return result.get(name, values.get(f"result.{name}", values.get(name)))

    kind = as_words(values.get("annotator_kind")).upper()
    is_machine = kind not in {"HUMAN", ""}
    who = as_words(values.get("user_id")) or as_words(values.get("identifier"))
    of_document = as_words(values.get("document_position")) != ""
    yield Opinion(
        place=record.place,
        trace_id=as_words(values.get("trace_id")) or None,
        span_ids=ids_of(values.get("span_id", values.get("context.span_id"))),
        author=f"phoenix {kind}" if is_machine else who or "phoenix",
        is_machine=is_machine,
        name=as_words(values.get("annotation_name", values.get("name"))) or None,
        value=value_of(part("score")),
        label=as_words(part("label")) or None,
        comment=as_words(part("explanation")),
        fault="the annotation is of a retrieved document, not of a span or trace" if of_document else None,
    )


# Label Studio, Argilla ------------------------------------------------------------------------------------------


def _knows_label_studio(values: Mapping[str, Json]) -> bool:
    return isinstance(values.get("data"), dict) and isinstance(values.get("annotations"), list)


def _label_studio(record: Record) -> Iterator[Opinion]:
    """A task with the results of its annotations; predictions are a model's."""
    data = object_of(record.values.get("data"))
    about = trace_and_spans({**object_of(record.values.get("meta")), **data})
    for key, is_machine in (("annotations", False), ("predictions", True)):
        for number, annotation in enumerate(objects_of(record.values.get(key))):
            author = (
                person_of(annotation.get("completed_by"))
                if not is_machine
                else as_words(annotation.get("model_version"))
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
                yield from _results(objects_of(annotation.get("result")), base)
    for number in range(len(objects_of(record.values.get("drafts")))):
        yield replace(about, place=f"{record.place} drafts[{number}]", set_aside="a draft")


def _results(results: list[Mapping[str, Json]], base: Opinion) -> Iterator[Opinion]:
    """A result each: a choice or number is a score, a marked stretch an error, a text the comment of its control."""
    comments = {as_words(one.get("from_name")): _words_of(one) for one in results if one.get("type") == "textarea"}
    own = [one for one in results if "tracejury" in object_of(one.get("meta"))]
    for one in results:
        control, value, kind = as_words(one.get("from_name")), object_of(one.get("value")), as_words(one.get("type"))
        score = replace(base, name=control, comment=_comment_of(control, comments))
        if one in own:
            opinion = replace(score, value=value_of(value.get("number")), comment=_words_of(one))
            yield _of_own_export(opinion, object_of(one.get("meta")))
        elif kind in {"rating", "number"}:
            yield replace(score, value=value_of(value.get(kind)))
        elif kind in {"choices", "pairwise", "taxonomy"}:
            yield replace(score, label=first_choice(value.get(kind, value.get("selected"))))
        elif kind.endswith("labels"):
            labels = value.get(kind)
            yield replace(
                base, kind="error", category=first_choice(labels), evidence=as_words(value.get("text")), comment="",
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
    text = object_of(result.get("value")).get("text")
    return "\n".join(as_words(line) for line in text) if isinstance(text, list) else as_words(text)


_FLAT = ".responses"


def _knows_argilla(values: Mapping[str, Json]) -> bool:
    whole = "fields" in values and isinstance(values.get("responses"), dict | list)
    return whole or any(key.endswith(_FLAT) and f"{key}.users" in values for key in values)


def _argilla(record: Record) -> Iterator[Opinion]:
    """A record with the responses to its questions: by question (to_json), in a list (to_list of the server), or in
    columns of each question (to_datasets).
    """
    values = _from_columns(record.values)
    named = {**object_of(values.get("fields")), **object_of(values.get("metadata")), "id": values.get("id")}
    about = trace_and_spans(named)
    responses = values.get("responses")
    answers = (
        [{**answer, "question_name": question} for question, some in responses.items() for answer in objects_of(some)]
        if isinstance(responses, dict)
        else objects_of(responses)
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
                value=None if is_label else value_of(answer),
                label=first_choice(answer) if is_label else None,
                fault="the response is a draft" if as_words(one.get("status")).lower() == "draft" else None,
                remedy="submit it in Argilla and export it again",
            )


def _from_columns(values: Mapping[str, Json]) -> Mapping[str, Json]:
    """A row of a data set, `QUESTION.responses` beside its `.users` and `.status`, as the record that it was."""
    if "fields" in values:
        return values
    responses: list[Json] = []
    for key in [key for key in values if key.endswith(_FLAT)]:
        columns = [json_of(values.get(name)) for name in (key, f"{key}.users", f"{key}.status")]
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
        return [(question, object_of(answer).get("value")) for question, answer in values.items()]
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
    source = object_of(values.get("feedback_source"))
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
        value=None if is_label else value_of(score),
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
    trace_id = values.get("trace_id") or values.get("request_id") or object_of(values.get("info")).get("trace_id")
    for number, one in enumerate(nested):
        yield _assessment({"trace_id": trace_id, **one}, f"{record.place} assessments[{number}]")
    if not nested:
        yield _assessment(values, record.place)


def _assessments(values: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    listing = values.get("assessments", object_of(values.get("info")).get("assessments"))
    return objects_of(json_of(listing))


def _assessment(values: Mapping[str, Json], place: str) -> Opinion:
    source = object_of(values.get("source")) or values  # a table of assessments has its fields as columns
    kind = as_words(source.get("source_type")).upper()
    feedback = object_of(values.get("feedback"))
    value = feedback.get("value", values.get("value"))
    faults = {
        "it is an expectation, not a score": values.get("expectation") is not None,
        "it was overridden by a later assessment": values.get("valid") is False,
        "the evaluator failed": bool(values.get("error") or feedback.get("error")),
    }
    is_text = isinstance(value, str) and not is_number(value)
    is_machine = kind not in {"HUMAN", ""}
    return Opinion(
        place=place,
        trace_id=as_words(values.get("trace_id")) or None,
        span_ids=ids_of(values.get("span_id")),
        author=as_words(source.get("source_id")) or f"mlflow {kind}".strip(),
        is_machine=is_machine,
        name=as_words(values.get("assessment_name", values.get("name"))) or None,
        value=None if is_text else value_of(value),
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
    value = json_of(values.get("value"))
    is_plain = isinstance(value, int | float | bool)
    yield Opinion(
        place=record.place,
        trace_id=as_words(values.get("transcript_id")) or None,
        author=as_words(values.get("scan_model") or values.get("model")) or "scout",
        is_machine=True,
        name=as_words(values.get("scanner_name") or values.get("scanner_key")) or None,
        value=value_of(value) if is_plain else None,
        label=None if is_plain else as_words(values.get("answer")) or as_words(value) or None,
        comment=as_words(values.get("explanation")),
        fault=f"the scan failed: {values['scan_error']}" if as_words(values.get("scan_error")) else None,
    )


def _knows_docent(values: Mapping[str, Json]) -> bool:
    return "agent_run_id" in values and bool({"rubric_id", "results"} & values.keys())


def _docent(record: Record) -> Iterator[Opinion]:
    """A judge result, or those of one agent run; the label is what the rubric's schema lets the judge answer."""
    values = record.values
    for number, one in enumerate(objects_of(values.get("results"))):
        inner = {"rubric_id": None, **values, "results": None, **one}
        yield from _docent(Record(place=f"{record.place} results[{number}]", values=inner))
    if values.get("results"):
        return
    output = object_of(json_of(values.get("output", values.get("value"))))
    score = output.get("score", output.get("rating"))
    explanation = output.get("explanation", output.get("rationale"))
    words = object_of(explanation).get("text", explanation)
    failed = "FAILURE" in as_words(values.get("result_type")).upper()
    yield Opinion(
        place=record.place,
        trace_id=as_words(values.get("agent_run_id")) or None,
        author="docent",
        is_machine=True,
        name=as_words(values.get("rubric_name")) or as_words(values.get("rubric_id")) or None,
        value=value_of(score),
        label=as_words(output.get("label")) or (as_words(values.get("value")) if not output else "") or None,
        comment=as_words(words),
        fault="the judge gave no answer" if failed else None,
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
    *ANNOTATION_FORMS,
    *EVALUATION_FORMS,
)
"""Tools by the most telling keys first; a record of none of them is a row of a plain file."""


def form_of(values: Mapping[str, Json]) -> Form | None:
    """The form whose keys a record has; None for a plain one."""
    return next((form for form in FORMS if form.knows(values)), None)
