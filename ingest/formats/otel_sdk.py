"""The OpenTelemetry SDK's own JSON: one `span.to_json()` per line, and what its console exporters print.

Log records (`LogRecord.to_json()`) in the same stream, or in the file beside it, are joined to their spans.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import cast

from tracejury.ingest import times
from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.formats.long_lines import long_traces
from tracejury.ingest.formats.otel import (
    Intake,
    kind_name,
    parent_or_none,
    take_documents,
    take_listed,
    together,
    traces,
)
from tracejury.ingest.formats.spans import as_objects, kept, kept_dict, status_of, time_of_field
from tracejury.ingest.parse import json_text
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, Trace

NAME = "otel_sdk"
MERGES = True

_SPAN_MARKS = frozenset({"context", "parent_id", "start_time"})
_ANY_AGENT_MARKS = frozenset({"context", "parent", "start_time", "is_remote"})
_LOG_MARKS = frozenset({"body", "severity_number", "observed_timestamp"})
_WHOLE_ID = re.compile(rb'("trace_id"\s*:\s*)(\d{20,})')
_SPAN_KEYS = frozenset({
    "name", "context", "kind", "parent_id", "start_time", "end_time", "status", "attributes", "events", "links",
    "parent", "resource", "instrumentation_scope", "scope", "instrumentation_info",
})  # fmt: skip
_LOG_KEYS = frozenset({"trace_id", "span_id", "event_name", "timestamp", "observed_timestamp", "body", "attributes"})


def sniff(sample: FileSample) -> bool:
    """A span's `context` and its parent, or a log record's `severity_number`, at the start of the file."""
    if sample.keys >= _ANY_AGENT_MARKS:
        return True
    return sample.keys >= _SPAN_MARKS or (sample.keys >= _LOG_MARKS and "span_id" in sample.keys)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the stream; lines that cannot be read are rejected by number."""
    yield from read_bundle((source,))


def bundles(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Files that differ in `.spans.` and `.logs.` alone belong together."""
    present = set(names)
    pairs: list[tuple[str, ...]] = []
    for name in names:
        head, mark, tail = name.rpartition(".spans.")
        if mark and f"{head}.logs.{tail}" in present:
            pairs.append((name, f"{head}.logs.{tail}"))
    return pairs


def collect(source: Source, intake: Intake) -> Generator[Rejected, None, int]:
    """Add the spans and log records of a file; yields and counts the documents that hold none."""
    sources = (_with_whole_ids(source),)
    return (yield from take_documents(sources, lambda value, place: take(value, intake, place), intake.warnings))


def read_bundle(sources: tuple[Source, ...], beside: Sequence[str] = ()) -> Iterator[Trace | Rejected]:
    """The traces of the first file, with the log records of all."""
    intake = Intake()
    whole = map(_with_whole_ids, sources)
    bad = yield from take_documents(whole, lambda value, place: take(value, intake, place), intake.warnings)
    if intake.spans or intake.logs or not bad:
        yield from traces(intake, format=NAME, source=together(sources))


def read_long(source: Source) -> Iterator[Trace | Rejected]:
    """As `read`, of a file of lines that is not held in memory."""
    yield from long_traces(source, take, format=NAME)


def _with_whole_ids(source: Source) -> Source:
    """A file of any-agent with its trace ids as text: they are numbers of 128 bits, which JSON readers round."""
    if b'"is_remote"' not in source.data[:65_536]:
        return source
    return replace(source, data=_WHOLE_ID.sub(rb'\1"\2"', source.data))


def take(value: Json, intake: Intake, place: str) -> None:
    """Add the spans and log records of a document. Raises `IngestError` where it holds none."""
    value = _bare(value)
    items = value if isinstance(value, list) else [value]
    if not take_listed(items, lambda item: _take_item(item, intake), intake):
        raise IngestError(
            f"neither a span nor a log record of the SDK: {json_text(items[0] if items else value)[:80]}",
            place=place,
            remedy="a span has a context with trace_id and span_id",
        )


def _bare(value: Json) -> Json:
    """The spans of a trace of any-agent, which holds them in an object with its final output."""
    spans = value.get("spans") if isinstance(value, dict) and "context" not in value else None
    if not isinstance(spans, list) or not isinstance(value, dict):
        return value
    output = value.get("final_output")
    roots = [one for one in spans if isinstance(one, dict) and _parent(one) is None]
    if output is not None and len(roots) == 1 and isinstance(attributes := roots[0].get("attributes"), dict):
        attributes.setdefault("output", output)
    return spans


def _take_item(item: Json, intake: Intake) -> bool:
    """Add a span or a log record; whether it is one of them."""
    if isinstance(item, dict) and isinstance(item.get("context"), dict):
        _take_span(item, cast("dict[str, Json]", item["context"]), intake)
    elif isinstance(item, dict) and "body" in item and "trace_id" in item:
        _take_log(item, intake)
    else:
        return False
    return True


def _take_span(value: dict[str, Json], context: dict[str, Json], intake: Intake) -> None:
    trace_id = _id(context.get("trace_id")) or "unnamed"
    span_id = _id(context.get("span_id")) or f"unnamed-{intake.number + 1}"
    parent = parent_or_none(_parent(value))
    if not intake.wants_span(trace_id, span_id, parent):
        return
    raw = value.get("attributes")
    attributes = kept_dict(raw) if isinstance(raw, dict) else {}
    draft = SpanDraft(span_id=span_id, parent_span_id=parent, attributes=attributes)
    if raw is not None and not isinstance(raw, dict):
        draft.attributes["attributes"] = kept(raw)
    if not context.get("span_id"):
        draft.warnings.append(f"no_span_id: the source gives this span no id; called {draft.span_id}")
    name = value.get("name")
    draft.name = name if isinstance(name, str) else ("" if name is None else json_text(name))
    draft.start_time = time_of_field(draft, value, "start_time", prefix="otel.")
    draft.end_time = time_of_field(draft, value, "end_time", prefix="otel.")
    _status(draft, value.get("status"))
    draft.events = [_event(item) for item in as_objects(value.get("events"))]
    draft.links = [_link(item) for item in as_objects(value.get("links"))]
    _otel(draft, value, context)
    intake.spans.append((trace_id, draft))


def _otel(draft: SpanDraft, value: dict[str, Json], context: dict[str, Json]) -> None:
    attributes = draft.attributes
    if value.get("kind") is not None:
        attributes["otel.kind"] = kind_name(value["kind"])
    state = context.get("trace_state")
    if state and state != "[]":
        attributes["otel.trace_state"] = kept(state)
    scope = value.get("instrumentation_scope") or value.get("scope") or value.get("instrumentation_info")
    if scope:
        attributes["otel.scope"] = kept(scope)
    resource = value.get("resource")
    if isinstance(resource, dict):
        resource_attributes = resource.get("attributes")
        if resource_attributes:
            attributes["otel.resource"] = kept(resource_attributes)
        rest = {key: item for key, item in resource.items() if key != "attributes" and item}
        attributes.update({f"otel.resource.{key}": kept(item) for key, item in rest.items()})
    elif resource is not None:
        attributes["otel.resource"] = kept(resource)
    others = {key: item for key, item in context.items() if key not in ("trace_id", "span_id", "trace_state")}
    others.update({key: item for key, item in value.items() if key not in _SPAN_KEYS})
    for key, item in others.items():
        attributes.setdefault(f"otel.{key}", kept(item))


def _status(draft: SpanDraft, status: Json) -> None:
    if not isinstance(status, dict):
        draft.status = status_of(draft, status, "otel.status")
        return
    draft.status = status_of(draft, status.get("status_code"), "otel.status_code")
    message = status.get("description")
    draft.status_message = message if isinstance(message, str) and message else None


def _event(value: dict[str, Json]) -> dict[str, Json]:
    moment = times.from_any(value.get("timestamp"))
    event: dict[str, Json] = {
        "name": value.get("name"),
        "time": moment,
        "attributes": kept(value.get("attributes") or {}),
    }
    for key, item in value.items():
        if key not in ("name", "timestamp", "attributes") or (key == "timestamp" and moment is None):
            event[key] = kept(item)
    return event


def _link(value: dict[str, Json]) -> dict[str, Json]:
    context = value.get("context")
    link: dict[str, Json] = {"attributes": kept(value.get("attributes") or {})}
    if isinstance(context, dict):
        link.update({key: kept(item) for key, item in context.items() if key != "trace_state" or item != "[]"})
    for key, item in value.items():
        if key not in ("context", "attributes"):
            link[key] = kept(item)
    return link


def _take_log(value: dict[str, Json], intake: Intake) -> None:
    trace_id, span_id = _id(value.get("trace_id")) or "", _id(value.get("span_id")) or ""
    if not intake.wants_log(trace_id, span_id):
        return
    log_attributes = value.get("attributes")
    attributes = kept_dict(log_attributes) if isinstance(log_attributes, dict) else {}
    named = value.get("event_name") or attributes.get("event.name") or attributes.get("event_name")
    intake.logs.append(
        SpanLog(
            trace_id=trace_id,
            span_id=span_id,
            event_name=named if isinstance(named, str) else "",
            time=times.from_any(value.get("timestamp")) or times.from_any(value.get("observed_timestamp")),
            body=kept(value.get("body")),
            attributes=attributes,
            rest={key: kept(item) for key, item in value.items() if key not in _LOG_KEYS and item is not None},
        )
    )


def _parent(value: dict[str, Json]) -> str | None:
    """The id of the parent, which any-agent writes as its context."""
    above = value.get("parent")
    return _id(above.get("span_id") if isinstance(above, dict) else value.get("parent_id"))


def _id(value: Json) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else json_text(value)
