"""The JavaScript OpenTelemetry SDK's spans and log records as JSON, one after another (Gemini CLI's outfile).

Fields: `@opentelemetry/sdk-trace-base` (`SpanImpl` as `JSON.stringify` writes it, and what `ConsoleSpanExporter`
prints), `@opentelemetry/sdk-logs` (`LogRecordImpl`). Metrics stand in the same files and are left out.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import cast

from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.otel import Intake, kind_name, parent_or_none, read_collected, take_documents
from tracejury.ingest.formats.otlp import key_values
from tracejury.ingest.formats.spans import brief, kept, status_of
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, Trace

NAME = "otel_js"
MERGES = True

_STATUS = ("UNSET", "OK", "ERROR")
_METRICS = frozenset({"scopeMetrics", "resourceMetrics", "dataPoints"})
_INNER = ("ended", "duration", "spanprocessor", "spanlimits", "performancestarttime", "performanceoffset",
          "attributecountlimit", "attributevaluelengthlimit", "starttimeprovided", "isreadonly", "logrecordlimits",
          "totalattributescount", "recordendmetrics")  # fmt: skip
"""What the SDK's own objects hold beyond the span."""


def sniff(sample: FileSample) -> bool:
    """A span's `_spanContext`, or `traceId` and `id` with a `parentSpanContext`, or a log record's `hrTime`."""
    keys = sample.keys
    printed = {"traceId", "id", "timestamp", "instrumentationScope"} <= keys or (
        {"traceId", "id", "timestamp", "duration", "resource"} <= keys
    )
    return "_spanContext" in keys or "hrTimeObserved" in keys or printed


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the file."""
    yield from read_collected(source, collect, format=NAME)


def collect(source: Source, intake: Intake) -> Generator[Rejected, None, int]:
    """Add the spans and log records of a file; yields and counts the documents that hold none."""
    return (yield from take_documents((source,), lambda value, place: take(value, intake, place), intake.warnings))


def take(value: Json, intake: Intake, place: str) -> None:
    """Add the spans and log records of a document. Raises `IngestError` where it holds none."""
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict):
            raise IngestError(f"{brief(item)} is not a span", place=place, remedy="export the spans as JSON objects")
        if _METRICS & item.keys():
            continue
        fields = Fields(item)
        context = fields.inner("spancontext")
        if "hrTime" in item or "_body" in item:
            intake.logs.append(_log(fields, context))
        elif (span := _span(fields, context)) is not None:
            intake.spans.append(span)
        else:
            raise IngestError(
                "neither a span nor a log record of the JavaScript SDK", place=place, remedy="export the span objects"
            )


def _span(fields: Fields, context: Fields) -> tuple[str, SpanDraft] | None:
    trace_id = context.text("traceid") or fields.text("traceid")
    span_id = context.text("spanid") or fields.text("spanid", "id")
    if trace_id is None or span_id is None:
        return None
    above = fields.inner("parentspancontext")
    parent = above.text("spanid") or fields.text("parentspanid", "parentid")
    draft = SpanDraft(span_id=span_id, parent_span_id=parent_or_none(parent), name=fields.text("name") or "")
    draft.warnings = fields.warnings
    draft.attributes = key_values(fields.take("attributes"))
    draft.start_time = fields.time("starttime", "timestamp")
    _end(draft, fields)
    _status(draft, fields)
    draft.events = [_event(item) for item in fields.listed("events")]
    draft.links = [_link(item) for item in fields.listed("links")]
    kind = fields.take("kind")
    if kind is not None:  # the API of JavaScript counts from INTERNAL, the protocol from UNSPECIFIED
        draft.attributes["otel.kind"] = kind_name(kind + 1 if isinstance(kind, int) else kind)
    draft.attributes.update(_shared(fields))
    draft.attributes.update(_rest(fields))
    return trace_id, draft


def _end(draft: SpanDraft, fields: Fields) -> None:
    """The end as such (one of no time is not ended yet), or the start and the duration in microseconds."""
    if fields.take("ended") is False:
        fields.take("endtime")
        return
    draft.end_time = fields.time("endtime")
    if draft.end_time is None and draft.start_time is not None and (length := fields.number("duration")) is not None:
        draft.end_time = draft.start_time + round(length)


def _status(draft: SpanDraft, fields: Fields) -> None:
    status = fields.inner("status")
    code = status.take("code")
    if isinstance(code, int) and 0 <= code < len(_STATUS):
        code = _STATUS[code]
    draft.status = status_of(draft, code, "otel.status_code")
    draft.status_message = status.text("message")


def _event(item: Json) -> dict[str, Json]:
    fields = Fields(item)
    event: dict[str, Json] = {"name": fields.take("name"), "time": fields.time("time", "timestamp")}
    event["attributes"] = cast("Json", key_values(fields.take("attributes")))
    return {**event, **{key: content for key, content in fields.rest().items() if content != 0}}


def _link(item: Json) -> dict[str, Json]:
    fields = Fields(item)
    context = fields.inner("context")
    link: dict[str, Json] = {"trace_id": context.take("traceid"), "span_id": context.take("spanid")}
    link["attributes"] = cast("Json", key_values(fields.take("attributes")))
    return {**link, **{key: content for key, content in fields.rest().items() if content != 0}}


def _shared(fields: Fields) -> dict[str, Json]:
    """The resource and the scope; the SDK's resource keeps its attributes under a name that changed twice."""
    resource = fields.inner("resource")
    attributes = key_values(resource.take("attributes", "memoizedattributes", "rawattributes"))
    scope = fields.take("instrumentationscope", "instrumentationlibrary")
    shared: dict[str, Json] = {"otel.resource": cast("Json", attributes)} if attributes else {}
    return {**shared, "otel.scope": kept(scope)} if scope else shared


def _rest(fields: Fields) -> dict[str, Json]:
    fields.drop(*_INNER)
    return {f"otel.{key.lstrip('_')}": item for key, item in fields.rest().items() if item != 0}


def _log(fields: Fields, context: Fields) -> SpanLog:
    attributes = key_values(fields.take("attributes"))
    named = fields.take("eventname") or attributes.get("event.name")
    return SpanLog(
        trace_id=context.text("traceid") or fields.text("traceid") or "",
        span_id=context.text("spanid") or fields.text("spanid") or "",
        event_name=as_text(named) or "",
        time=fields.time("hrtime", "hrtimeobserved"),
        body=kept(fields.take("body")),
        attributes=attributes,
        rest={**_shared(fields), **_rest(fields)},
    )
