"""Evaluations that a trace itself records, as OpenTelemetry's `gen_ai.evaluation.result` events of spans or logs.

They are an evaluator's words about the trace and no part of it: who labels blind, and any other judge, must not read
them. The names are those of the GenAI conventions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tracejury.ingest.trace import Json, Trace

EVENT = "gen_ai.evaluation.result"
PREFIX = "gen_ai.evaluation."
_EVALUATORS = ("gen_ai.evaluation.evaluator", "gen_ai.evaluator.name", "gen_ai.evaluation.model", "evaluator")


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """One recorded result. `span_id` is the span it is of; None where only the trace is known."""

    name: str
    evaluator: str
    value: float | None
    label: str | None
    explanation: str
    span_id: str | None
    error: str | None
    attributes: Mapping[str, Json]


def is_evaluation(name: str) -> bool:
    """Whether an event or attribute of this name holds an evaluator's words: it is shown to no reader."""
    return name == EVENT or name.startswith(PREFIX)


def has_evaluations(trace: Trace) -> bool:
    """Whether the trace records any evaluation."""
    return next(_events(trace), None) is not None


def evaluations_of(trace: Trace) -> tuple[Evaluation, ...]:
    """Every evaluation that the trace records, in reading order, those of log records last."""
    return tuple(_evaluation(attributes, span_id) for attributes, span_id in _events(trace))


def _events(trace: Trace) -> Iterator[tuple[Mapping[str, Json], str | None]]:
    responses: dict[str, str] = {}
    for span in trace.spans:
        response = span.attributes.get("gen_ai.response.id")
        if isinstance(response, str):
            responses[response] = span.span_id
        for event in span.events:
            if event.get("name") == EVENT:
                yield _attributes(event), span.span_id
    for log in trace.logs:
        body = log.body if isinstance(log.body, dict) else {}
        if body.get("event_name") == EVENT:
            attributes = {**_attributes({"attributes": body.get("body")}), **_attributes(body)}
            yield attributes, log.span_id or responses.get(str(attributes.get("gen_ai.response.id")))


def _attributes(event: Mapping[str, Json]) -> Mapping[str, Json]:
    attributes = event.get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def _evaluation(attributes: Mapping[str, Json], span_id: str | None) -> Evaluation:
    name = _text(attributes.get(f"{PREFIX}name")) or "unnamed evaluation"
    value = attributes.get(f"{PREFIX}score.value")
    return Evaluation(
        name=name,
        evaluator=next((text for key in _EVALUATORS if (text := _text(attributes.get(key)))), name),
        value=float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None,
        label=_text(attributes.get(f"{PREFIX}score.label")) or None,
        explanation=_text(attributes.get(f"{PREFIX}explanation")),
        span_id=span_id,
        error=_text(attributes.get("error.type")) or None,
        attributes=attributes,
    )


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else ""
