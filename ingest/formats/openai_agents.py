"""OpenAI Agents SDK: what its tracing processors and its own exporter are given, `export()` of each trace and span.

Fields: `agents.tracing` (`TraceImpl.export`, `SpanImpl.export`, the `export` of each kind of span data); lines, lists,
or the body that its exporter posts (`{"data": [...]}`). Spans of the responses API hold no text unless the processor
added `input` and `response` of the span data to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.otel import one_trace, take_documents, together
from tracejury.ingest.formats.spans import brief, kept, kept_dict, time_of_field
from tracejury.ingest.parse import json_text
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, Trace

NAME = "openai_agents"
MERGES = True

_TRACE_MARKS = frozenset({"object", "workflow_name", "group_id"})
_TAKEN = frozenset({"object", "id", "trace_id", "parent_id", "started_at", "ended_at", "span_data", "error"})


@dataclass(slots=True)
class _Intake:
    """Spans by the trace they name, and what is told of each trace itself."""

    spans: dict[str, list[SpanDraft]] = field(default_factory=dict)
    traces: dict[str, dict[str, Json]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def sniff(sample: FileSample) -> bool:
    """A span's `span_data`, or a trace's `workflow_name` and `group_id`."""
    return {"span_data", "started_at"} <= sample.keys or sample.keys >= _TRACE_MARKS


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the file, in the order in which their first spans stand."""
    yield from read_bundle((source,))


def read_bundle(sources: tuple[Source, ...]) -> Iterator[Trace | Rejected]:
    """The traces of several files together."""
    intake = _Intake()
    bad = yield from take_documents(sources, lambda value, place: _take(value, intake, place), intake.warnings)
    for trace_id in [named for named in intake.traces if named not in intake.spans]:
        intake.warnings.append(f"trace_without_spans: {brief(trace_id)} has no span in this file")
    if not intake.spans and not bad:
        raise IngestError("holds no span", remedy="write span.export() at on_span_end of a tracing processor")
    for trace_id, drafts in intake.spans.items():
        yield one_trace(
            drafts,
            [],
            trace_id=trace_id,
            format=NAME,
            source=together(sources),
            warnings=intake.warnings,
            attributes=intake.traces.get(trace_id),
        )


def _take(value: Json, intake: _Intake, place: str) -> None:
    posted = value.get("data") if isinstance(value, dict) and "object" not in value else None
    for item in posted if isinstance(posted, list) else value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and isinstance(item.get("span_data"), dict):
            _take_span(item, cast("dict[str, Json]", item["span_data"]), intake)
        elif isinstance(item, dict) and item.get("object") == "trace":
            fields = {
                key: kept(content)
                for key, content in item.items()
                if key not in ("object", "id") and content is not None
            }
            intake.traces.setdefault(as_text(item.get("id")) or "unnamed", {}).update(fields)
        else:
            raise IngestError(
                f"neither a trace nor a span of the Agents SDK: {json_text(item)[:80]}",
                place=place,
                remedy="a span has span_data, a trace has object 'trace'",
            )


def _take_span(value: dict[str, Json], data: dict[str, Json], intake: _Intake) -> None:
    draft = SpanDraft(span_id=as_text(value.get("id")) or f"unnamed-{sum(map(len, intake.spans.values())) + 1}")
    if not value.get("id"):
        draft.warnings.append(f"no_span_id: the source gives this span no id; called {draft.span_id}")
    draft.parent_span_id = as_text(value.get("parent_id")) or None
    draft.name = _name(data)
    draft.start_time = time_of_field(draft, value, "started_at")
    draft.end_time = time_of_field(draft, value, "ended_at")
    _status(draft, value.get("error"))
    draft.attributes.update({f"span_data.{key}": item for key, item in kept_dict(data).items() if item is not None})
    draft.attributes.update({key: kept(item) for key, item in value.items() if key not in _TAKEN and item is not None})
    intake.spans.setdefault(as_text(value.get("trace_id")) or "unnamed", []).append(draft)


def _name(data: dict[str, Json]) -> str:
    name = data.get("name")
    if isinstance(name, str) and name:
        return name
    kind = as_text(data.get("type")) or ""
    return f"{kind} to {data['to_agent']}" if isinstance(data.get("to_agent"), str) else kind


def _status(draft: SpanDraft, error: Json) -> None:
    """ERROR with the message and what stands beside it, where the SDK tells of one."""
    draft.status = "UNSET" if error is None else "ERROR"
    message = error.get("message") if isinstance(error, dict) else None
    if not isinstance(error, dict) or not isinstance(message, str):
        draft.status_message = as_text(error)
        return
    data = error.get("data")
    draft.status_message = message if data is None else f"{message}: {json_text(data)}"
    rest = {key: item for key, item in error.items() if key not in ("message", "data") and item is not None}
    draft.attributes.update({f"error.{key}": kept(item) for key, item in rest.items()})
