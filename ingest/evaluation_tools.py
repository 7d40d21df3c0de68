"""Forms of the tools whose evaluators score traces or answers: Datadog, DeepEval, Ragas, promptfoo, OpenAI's evals.

Each function gives the opinions of one record; forms as the tools' sources and documentation give them. An evaluator is
no person: its scores become verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from tracejury.ingest.opinion import (
    Form,
    Opinion,
    as_words,
    is_number,
    object_of,
    objects_of,
    trace_and_spans,
    value_of,
)
from tracejury.ingest.score_files import Record
from tracejury.ingest.trace import Json

Values = Mapping[str, Json]


def _about(place: str, author: str, *holders: Json | Values) -> Opinion:
    """An opinion of an evaluator about the trace that the first of these objects names."""
    objects = (object_of(cast("Json", holder)) for holder in holders)
    ids = [trace_and_spans(one, by_id=False) for one in objects]
    about = next((one for one in ids if one.trace_id is not None), Opinion(place=place))
    return replace(about, place=place, author=author, is_machine=True)


# Datadog --------------------------------------------------------------------------------------------------------


def _knows_datadog(values: Values) -> bool:
    attributes = object_of(values.get("attributes"))
    return "metric_type" in values or "metrics" in attributes or "evaluation" in attributes


def _datadog(record: Record) -> Iterator[Opinion]:
    """An evaluation as the API takes it, a request of them, or those of a span that a search answers."""
    values, attributes = record.values, object_of(record.values.get("attributes"))
    for number, one in enumerate(objects_of(attributes.get("metrics"))):
        yield _metric(one, f"{record.place} metrics[{number}]".strip())
    for name, metric in object_of(attributes.get("evaluation")).items():
        yield _metric({**attributes, "label": name, **object_of(metric)}, record.place)
    if "metric_type" in values:
        yield _metric(values, record.place)


def _metric(values: Values, place: str) -> Opinion:
    joined = object_of(values.get("join_on"))
    kind = as_words(values.get("metric_type", values.get("eval_metric_type")))
    value = values.get(f"{kind}_value", values.get("value"))
    is_label = kind == "categorical" or isinstance(value, str | list | dict)
    is_tag = "tag" in joined and "span" not in joined
    return replace(
        _about(place, "datadog", joined.get("span"), values),
        name=as_words(values.get("label")) or None,
        value=None if is_label else value_of(value),
        label=as_words(value) or None if is_label else None,
        comment=as_words(values.get("reasoning")),
        fault="the evaluation is joined by a tag, not by a span" if is_tag else None,
        remedy="submit it with span_id and trace_id" if is_tag else "",
    )


# DeepEval, Ragas ------------------------------------------------------------------------------------------------


def _knows_deepeval(values: Values) -> bool:
    return any(isinstance(values.get(key), list) for key in ("metricsData", "metrics_data"))


def _deepeval(record: Record) -> Iterator[Opinion]:
    """The metrics of a test case; its trace stands in its metadata."""
    values = record.values
    metadata = values.get("additionalMetadata", values.get("additional_metadata", values.get("metadata")))
    for number, one in enumerate(objects_of(values.get("metricsData", values.get("metrics_data")))):
        author = as_words(one.get("evaluationModel", one.get("evaluation_model"))) or "deepeval"
        error = as_words(one.get("error"))
        yield replace(
            _about(f"{record.place} metricsData[{number}]", author, values, metadata),
            name=as_words(one.get("name")) or None,
            value=value_of(one.get("score")),
            comment=as_words(one.get("reason")),
            fault=f"the evaluator failed: {error}" if error else None,
        )


_RAGAS_SAMPLE = frozenset({
    "user_input", "retrieved_contexts", "reference_contexts", "retrieved_context_ids", "reference_context_ids",
    "response", "multi_responses", "reference", "rubrics", "persona_name", "query_style", "query_length",
    "reference_tool_calls", "reference_topics", "question", "answer", "contexts", "ground_truth", "ground_truths",
})  # fmt: skip
"""Columns of a sample in Ragas; every other column of numbers is a metric."""


def _knows_ragas(values: Values) -> bool:
    return len(values.keys() & _RAGAS_SAMPLE) >= 2 and bool({"user_input", "contexts"} & values.keys())


def _ragas(record: Record) -> Iterator[Opinion]:
    """A row of the results of `evaluate`: a column of numbers for each metric."""
    about = _about(record.place, "ragas", record.values, record.values.get("metadata"))
    for name, value in record.values.items():
        is_score = isinstance(value, int | float) or (isinstance(value, str) and is_number(value))
        if name not in _RAGAS_SAMPLE and is_score and name.lower() not in {"id", "index", ""} and "trace" not in name:
            yield replace(about, name=name, value=value_of(value))


# promptfoo, OpenAI ----------------------------------------------------------------------------------------------


def _knows_promptfoo(values: Values) -> bool:
    return isinstance(values.get("gradingResult"), dict) or ("namedScores" in values and "vars" in values)


def _promptfoo(record: Record) -> Iterator[Opinion]:
    """The assertions of a result; a rating of its page is a person's."""
    values, case = record.values, object_of(record.values.get("testCase"))
    holders = (values, values.get("metadata"), case.get("metadata"), values.get("vars"), case.get("vars"))
    about = _about(record.place, "promptfoo", *holders)
    graded = object_of(values.get("gradingResult"))
    parts = objects_of(graded.get("componentResults"))
    for number, one in enumerate(parts):
        assertion = object_of(one.get("assertion"))
        kind = as_words(assertion.get("type"))
        yield replace(
            about,
            place=f"{record.place} componentResults[{number}]",
            is_machine=kind != "human",
            name=as_words(assertion.get("metric")) or kind or None,
            value=value_of(one.get("score", one.get("pass"))),
            comment=as_words(one.get("reason")),
        )
    if not parts:
        named = object_of(values.get("namedScores")) or {"score": graded.get("score", values.get("score"))}
        error = as_words(values.get("error"))
        for name, score in named.items():
            fault = f"the evaluation failed: {error}" if error and not graded else None
            yield replace(about, name=name, value=value_of(score), comment=as_words(graded.get("reason")), fault=fault)


def _knows_openai(values: Values) -> bool:
    is_event = {"event_id", "sample_id", "data"} <= values.keys()
    return is_event or values.get("object") == "eval.run.output_item" or _is_frame_of_events(values)


def _is_frame_of_events(values: Values) -> bool:
    """The first or last line of a log of OpenAI's evals: its settings, or its report."""
    return len(values) == 1 and bool({"spec", "final_report"} & values.keys())


def _openai(record: Record) -> Iterator[Opinion]:
    """An event of a log of `oaieval` (its sample is named, no trace), or an item of a run of the Evals API."""
    values, data = record.values, object_of(record.values.get("data"))
    item = object_of(values.get("datasource_item"))
    about = _about(record.place, "openai-evals", item, item.get("item"), item.get("metadata"), data)
    for one in objects_of(values.get("results")):
        value = value_of(one.get("score", one.get("passed")))
        yield replace(about, name=as_words(one.get("name")) or None, value=value)
    if values.get("type") in {"match", "metrics"}:
        scores = {key: one for key, one in data.items() if isinstance(one, bool | int | float)}
        yield from (replace(about, name=key, value=value_of(one)) for key, one in scores.items())


EVALUATION_FORMS: tuple[Form, ...] = (
    Form("datadog", _knows_datadog, _datadog),
    Form("deepeval", _knows_deepeval, _deepeval),
    Form("promptfoo", _knows_promptfoo, _promptfoo),
    Form("openai-evals", _knows_openai, _openai),
    Form("ragas", _knows_ragas, _ragas),
)
"""Tools for evaluators, the more telling keys first."""
