"""Jaeger's JSON: what its interface downloads and its query service answers, `{"data": [{"traceID", "spans"}]}`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import cast

from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.otel import Intake, kind_name, parent_or_none, read_collected, take_documents, take_listed
from tracejury.ingest.formats.spans import brief, kept, note_spans, status_of
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.times import integer
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, Trace

NAME = "jaeger"
MERGES = True

_SPAN_MARKS = frozenset({"spanID", "operationName", "processID", "startTime"})


def sniff(sample: FileSample) -> bool:
    """`traceID`, `spanID` and `operationName`, spelt as Jaeger does."""
    return {"traceID", "spanID", "operationName"} <= sample.keys


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the file."""
    yield from read_collected(source, collect, format=NAME)


def collect(source: Source, intake: Intake) -> Generator[Rejected, None, int]:
    """Add the spans of a file; yields and counts the documents that hold none."""
    return (yield from take_documents((source,), lambda value, place: take(value, intake, place), intake.warnings))


def take(value: Json, intake: Intake, place: str) -> None:
    """Add the spans of an answer, a trace, a list of traces or one span. Raises `IngestError` where there is none."""
    if isinstance(value, dict) and isinstance(value.get("data"), (list, dict)):
        value = value["data"]
    items = value if isinstance(value, list) else [value]
    if not take_listed(items, lambda item: _take_item(item, intake, place), intake):
        reason = f"{brief(items[0] if items else value)} is not a Jaeger trace"
        raise IngestError(reason, place=place, remedy="download the trace as JSON again")


def _take_item(item: Json, intake: Intake, place: str) -> bool:
    """Add the spans of a trace, or one span; whether it is one of them."""
    if not isinstance(item, dict) or not (isinstance(item.get("spans"), list) or "spanID" in item):
        return False
    if not isinstance(item.get("spans"), list):
        _take_span(Fields(item), {}, intake, place)
        return True
    trace = Fields(item, warnings=intake.warnings)
    processes = trace.nested("processes")
    for fields in trace.objects("spans", code="unreadable_span"):
        _take_span(fields, processes, intake, fields.path)
    return True


def _take_span(fields: Fields, processes: dict[str, Json], intake: Intake, place: str) -> None:
    trace_id, span_id = fields.text("traceid"), fields.text("spanid")
    if span_id is None:
        intake.warnings.append(f"no_span_id: the source gives {place} no id; called unnamed-{len(intake.spans) + 1}")
    draft = SpanDraft(span_id=span_id or f"unnamed-{len(intake.spans) + 1}", name=fields.text("operationname") or "")
    fields.warnings = draft.warnings
    draft.start_time, length = fields.count("starttime"), fields.count("duration")
    if draft.start_time is not None and length is not None:
        draft.end_time = draft.start_time + length
    draft.parent_span_id, draft.links = _references(fields)
    tags = fields.take("tags")
    own = _stored_tags(tags) if isinstance(tags, dict) else _tags(tags)
    draft.attributes = {**own, **_stored_tags(fields.nested("tag"))}
    _tags_as_fields(draft)
    draft.events = [_event(item) for item in fields.listed("logs")]
    process: Json = fields.nested("process") or processes.get(as_text(fields.peek("processid")) or "")
    if process is not None:
        fields.drop("processid")
        _process(draft, Fields(process))
    draft.warnings += [f"tracer: the tracer warns: {warning}" for warning in fields.listed("warnings")]
    fields.drop("starttimemillis")
    rest = fields.rest("jaeger.")
    for key, item in rest.items():
        note_spans(item, _SPAN_MARKS, key, draft.warnings)
    draft.attributes.update(rest)
    intake.spans.append((trace_id or "unnamed", draft))


def _stored_tags(values: dict[str, Json]) -> dict[str, Json]:
    """Tags that a storage keeps as one object; it writes dots in names as `@`."""
    return {key.replace("@", "."): kept(item) for key, item in values.items()}


def _references(fields: Fields) -> tuple[str | None, list[dict[str, Json]]]:
    """The parent, and the other references as links."""
    parent, links = parent_or_none(fields.text("parentspanid")), []
    for item in fields.listed("references"):
        reference = Fields(item)
        kind, trace_id, span_id = reference.take("reftype"), reference.text("traceid"), reference.text("spanid")
        if kind == "CHILD_OF" and parent in (None, span_id):
            parent = parent_or_none(span_id)
        else:
            link: dict[str, Json] = {"trace_id": trace_id, "span_id": span_id, "attributes": {}}
            links.append({**link, "ref_type": kind, **reference.rest()})
    return parent, links


def _tags(value: Json) -> dict[str, Json]:
    """Key, type and value of each tag; a key that stands twice keeps both values."""
    attributes: dict[str, Json] = {} if value is None or isinstance(value, list) else {"jaeger.tags": kept(value)}
    for item in value if isinstance(value, list) else []:
        key = item.get("key") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(key, str) or not {"value", "vStr"} & item.keys():
            attributes[f"jaeger.tag.{len(attributes)}"] = kept(item)
            continue
        while key in attributes:
            key += "'"
        attributes[key] = kept(_value(item))
    return attributes


def _value(tag: dict[str, Json]) -> Json:
    """A tag's value; the query service writes numbers as text where its type says so."""
    value = tag.get("value", tag.get("vStr"))
    if tag.get("type") in ("int64", "long") and isinstance(value, str):
        return value if (number := integer(value)) is None else number
    if tag.get("type") == "bool" and value in ("true", "false"):
        return value == "true"
    return value


def _tags_as_fields(draft: SpanDraft) -> None:
    """OpenTelemetry's fields that Jaeger keeps as tags: status, kind and scope."""
    attributes = draft.attributes
    code, failed = attributes.pop("otel.status_code", None), attributes.get("error")
    draft.status = status_of(draft, code, "otel.status_code")
    if failed in (True, "true"):
        draft.status = "ERROR"
        del attributes["error"]
    message = attributes.get("otel.status_description")
    if isinstance(message, str):
        draft.status_message = message or None
        del attributes["otel.status_description"]
    kind = attributes.pop("span.kind", None)
    if kind is not None:
        attributes["otel.kind"] = kind_name(kind)
    scope = {
        name: attributes.pop(key)
        for name in ("name", "version")
        for key in (f"otel.scope.{name}", f"otel.library.{name}")
        if key in attributes
    }
    if scope:
        attributes["otel.scope"] = cast("Json", scope)


def _event(item: Json) -> dict[str, Json]:
    fields = Fields(item)
    attributes = _tags(fields.take("fields"))
    name = attributes.pop("event", None)
    event: dict[str, Json] = {"name": name, "time": fields.count("timestamp")}
    event["attributes"] = cast("Json", attributes)
    return {**event, **fields.rest()}


def _process(draft: SpanDraft, process: Fields) -> None:
    resource = _tags(process.take("tags"))
    if name := process.text("servicename"):
        resource = {"service.name": name, **resource}
    resource.update(process.rest())
    if resource:
        draft.attributes["otel.resource"] = cast("Json", resource)
