"""Langfuse: a trace with its observations as the public interface and the exports give it.

Fields: Langfuse's API reference, `TraceWithFullDetails` and `Observation`; camelCase, or snake_case as in its
blob exports. Scores are other people's opinions and may hold the right answer: they go to the logs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.conventions.message_json import ParsedMessage, read_message, read_messages, rest_of
from tracejury.ingest.formats.exports import Shaped, as_text, shaped_trace
from tracejury.ingest.formats.rows import opened, read_rows, time_of
from tracejury.ingest.formats.spans import brief, kept
from tracejury.ingest.parse import json_text
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Json, Message, Rejected, Source, SpanDraft, SpanKind, Trace

NAME = "langfuse"

_KINDS: dict[str, SpanKind] = {
    "GENERATION": "LLM", "SPAN": "CHAIN", "EVENT": "EVENT", "AGENT": "AGENT", "TOOL": "TOOL", "CHAIN": "CHAIN",
    "RETRIEVER": "RETRIEVER", "EVALUATOR": "EVALUATOR", "EMBEDDING": "EMBEDDING", "GUARDRAIL": "GUARDRAIL",
}  # fmt: skip
_SNAKE = {
    "trace_id": "traceId", "start_time": "startTime", "end_time": "endTime", "status_message": "statusMessage",
    "parent_observation_id": "parentObservationId", "model_parameters": "modelParameters",
    "usage_details": "usageDetails", "prompt_tokens": "promptTokens", "completion_tokens": "completionTokens",
    "total_tokens": "totalTokens", "provided_model_name": "model", "observation_id": "observationId",
}  # fmt: skip
_TAKEN = frozenset({
    "id", "traceId", "type", "name", "startTime", "endTime", "parentObservationId", "statusMessage", "input", "output",
})  # fmt: skip
_LISTS = ("observations", "scores")


def sniff(sample: FileSample) -> bool:
    """`observations` of a trace, or observations by their own names."""
    keys = sample.keys
    own = {"traceId", "parentObservationId"} <= keys or {"trace_id", "parent_observation_id"} <= keys
    return own or ("observations" in keys and {"timestamp", "projectId", "sessionId", "htmlPath"} & keys != frozenset())


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace: one object with its observations, or bare observations grouped by the trace they name."""
    loose: dict[str, list[Json]] = {}
    whole: list[tuple[dict[str, Json], list[Json]]] = []
    for row in read_rows(source.data, lists=("data", "traces")):
        if row.error is not None:
            yield rejected(source.file, row.error)
            continue
        values = _camel(row.values)
        observations = opened(values.get("observations"))
        if isinstance(observations, list) and "traceId" not in values:
            whole.append((values, observations))
        else:
            loose.setdefault(as_text(values.get("traceId")) or "unnamed", []).append(values)
    if not whole and not loose:
        raise IngestError("holds no trace and no observation", remedy="export it again")
    whole.extend(({"id": trace_id}, items) for trace_id, items in loose.items())
    for values, observations in whole:
        try:
            yield _trace(values, observations, source)
        except IngestError as error:
            yield rejected(source.file, error)


def _trace(values: dict[str, Json], observations: list[Json], source: Source) -> Trace:
    trace_id = as_text(values.get("id")) or "unnamed"
    warnings = [
        f"unreadable_span: observations[{number}] is {brief(item)}, not an object"
        for number, item in enumerate(observations)
        if not isinstance(item, dict)
    ]
    shaped = [_observation(_camel(item), number) for number, item in enumerate(observations) if isinstance(item, dict)]
    if not shaped and (values.get("input") is not None or values.get("output") is not None):
        shaped = [_trace_as_span(values, trace_id)]
    return shaped_trace(
        shaped,
        trace_id=trace_id,
        format=NAME,
        source=source,
        attributes={key: kept(item) for key, item in values.items() if key not in ("id", *_LISTS) and item is not None},
        goal=_said(values.get("input"), "user"),
        final_answer=_said(values.get("output"), "assistant"),
        logs=_scores(values.get("scores"), trace_id),
        warnings=warnings,
    )


def _trace_as_span(values: dict[str, Json], trace_id: str) -> Shaped:
    """A trace that holds input and output but no observation is one span of its own."""
    draft = SpanDraft(span_id=trace_id, name=as_text(values.get("name")) or "", kind="CHAIN")
    draft.start_time = time_of(values.get("timestamp"))
    draft.input, draft.output = as_text(values.get("input")), as_text(values.get("output"))
    return Shaped(draft)


def _observation(values: dict[str, Json], number: int) -> Shaped:
    draft = SpanDraft(span_id=as_text(values.get("id")) or f"unnamed-{number + 1}")
    draft.parent_span_id = as_text(values.get("parentObservationId")) or None
    draft.name = as_text(values.get("name")) or ""
    kind = values.get("type")
    draft.kind = _KINDS.get(kind.upper(), "UNKNOWN") if isinstance(kind, str) else "UNKNOWN"
    if kind is not None and kind != draft.kind:
        draft.attributes["type"] = kept(kind)
    for key, column in (("startTime", "start_time"), ("endTime", "end_time")):
        moment = time_of(values.get(key))
        setattr(draft, column, moment)
        if moment is None and values.get(key) is not None:
            draft.attributes[key] = kept(values[key])
            draft.warnings.append(f"unreadable_time: {key} {brief(values[key])}")
    if draft.kind == "EVENT" and draft.end_time is None:
        draft.end_time = draft.start_time
    level = values.get("level")
    draft.status = "ERROR" if level == "ERROR" else "UNSET"
    draft.status_message = as_text(values.get("statusMessage")) or None
    draft.attributes.update(
        {key: kept(opened(item)) for key, item in values.items() if key not in _TAKEN and item is not None}
    )
    _model(draft)
    shaped = Shaped(draft)
    _sides(shaped, values)
    return shaped


def _model(draft: SpanDraft) -> None:
    attributes = draft.attributes
    model = attributes.get("model")
    if isinstance(model, str):
        draft.model = model
        del attributes["model"]
    details = attributes.get("usageDetails") or attributes.get("usage")
    if not isinstance(details, dict):
        details = {
            name: attributes.get(key)
            for name, key in (("input", "promptTokens"), ("output", "completionTokens"), ("total", "totalTokens"))
        }
    for column, names in (
        ("prompt_tokens", ("input", "prompt_tokens", "input_tokens")),
        ("completion_tokens", ("output", "completion_tokens", "output_tokens")),
        ("total_tokens", ("total", "total_tokens")),
        ("reasoning_tokens", ("output_reasoning", "output_reasoning_tokens", "reasoning_tokens")),
    ):
        count = next((details[name] for name in names if isinstance(details.get(name), int)), None)
        setattr(draft, column, count)


def _sides(shaped: Shaped, values: dict[str, Json]) -> None:
    draft = shaped.draft
    given, said_in = values.get("input"), None
    if draft.kind == "LLM":
        said_in = _listed(given)
        shaped.outputs = _take_messages(draft, "output", values.get("output"))
    if said_in is not None:
        shaped.inputs = _take_messages(draft, "input", given)
    elif draft.kind == "TOOL":
        draft.tool_name = draft.name or None
        draft.tool_arguments = as_text(given)
    else:
        draft.input = as_text(given)
    if draft.kind != "LLM":
        draft.output = as_text(values.get("output"))


def _take_messages(draft: SpanDraft, side: str, value: Json) -> list[Message]:
    said = _listed(value)
    if said is None:
        setattr(draft, side, as_text(value))
        return []
    messages, others = said
    if others:
        setattr(draft, side, json_text(others))
    rest = rest_of(messages)
    if rest is not None:
        draft.attributes[f"{side}.messages"] = rest
    return [item.message for item in messages]


def _listed(value: Json) -> tuple[list[ParsedMessage], dict[str, Json]] | None:
    held = opened(value)
    if isinstance(held, dict) and "messages" in held:
        messages = read_messages(held["messages"])
        return None if messages is None else (messages, {k: v for k, v in held.items() if k != "messages"})
    if isinstance(held, dict):
        one = read_message(held)
        return None if one is None else ([one], {})
    messages = read_messages(held)
    return None if messages is None else (messages, {})


def _said(value: Json, role: str) -> str | None:
    """The text of a trace's input or output: the user's message, or the last answer, or the plain text."""
    if value is None:
        return None
    listed = _listed(value)
    if listed is None:
        return as_text(value)
    messages = [item.message for item in listed[0] if item.message.role == role and item.message.content]
    return (messages[0] if role == "user" else messages[-1]).content if messages else None


def _scores(value: Json, trace_id: str) -> list[SpanLog]:
    logs = []
    for item in value if isinstance(value, list) else []:
        about = _camel(item).get("observationId") if isinstance(item, dict) else None
        logs.append(
            SpanLog(
                trace_id=trace_id,
                span_id=as_text(about) or "",
                event_name="score",
                time=None,
                body=kept(item),
                attributes={},
                rest={},
            )
        )
    return logs


def _camel(values: dict[str, Json]) -> dict[str, Json]:
    return {_SNAKE.get(key, key): item for key, item in values.items()}
