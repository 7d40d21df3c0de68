"""Zipkin's JSON, version 2: a list of spans, a list of traces (each a list of spans), or one span per line."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import cast

from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.otel import Intake, kind_name, parent_or_none, read_collected, take_documents, take_listed
from tracejury.ingest.formats.spans import brief, kept, kept_dict, status_of
from tracejury.ingest.parse import inner_json
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, Trace

NAME = "zipkin"
MERGES = True

_NAMED = (re.compile(r'"(?P<name>[^"]+)":\s*(?P<held>\{.*\})', re.DOTALL),
          re.compile(r"(?P<name>[^|]+)\|(?P<held>\{.*\})(?:\|\d+)?", re.DOTALL))  # fmt: skip
"""How OpenTelemetry writes an event with attributes as an annotation: its SDKs, and its collector."""


def sniff(sample: FileSample) -> bool:
    """`traceId` and `id` with an endpoint, `tags` or `annotations` of Zipkin's own."""
    keys = sample.keys
    return {"traceId", "id"} <= keys and "localEndpoint" in keys and not keys.isdisjoint({"tags", "annotations"})


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the file."""
    yield from read_collected(source, collect, format=NAME)


def collect(source: Source, intake: Intake) -> Generator[Rejected, None, int]:
    """Add the spans of a file; yields and counts the documents that hold none."""
    return (yield from take_documents((source,), lambda value, place: take(value, intake, place), intake.warnings))


def take(value: Json, intake: Intake, place: str) -> None:
    """Add the spans of a document. Raises `IngestError` where it holds none."""
    items = value if isinstance(value, list) else [value]
    if not _take_items(items, intake):
        reason = f"{brief(items[0] if items else value)} is not a Zipkin span"
        raise IngestError(reason, place=place, remedy="export the spans again")


def _take_items(items: Sequence[Json], intake: Intake) -> bool:
    return take_listed(items, lambda item: _take_item(item, intake), intake)


def _take_item(item: Json, intake: Intake) -> bool:
    """Add a span, or the spans of a trace; whether it is one of them."""
    if isinstance(item, list):
        return _take_items(item, intake)
    if not isinstance(item, dict) or not {"traceId", "id"} <= item.keys():
        return False
    intake.spans.append(_span(Fields(item)))
    return True


def _span(fields: Fields) -> tuple[str, SpanDraft]:
    trace_id, span_id = fields.text("traceid") or "unnamed", fields.text("id") or "unnamed"
    draft = SpanDraft(span_id=span_id, parent_span_id=parent_or_none(fields.text("parentid")), warnings=fields.warnings)
    draft.name = fields.text("name") or ""
    draft.start_time, length = fields.count("timestamp"), fields.count("duration")
    if draft.start_time is not None and length is not None:
        draft.end_time = draft.start_time + length
    draft.attributes = kept_dict(fields.nested("tags"))
    _status(draft)
    draft.events = [_event(item) for item in fields.listed("annotations")]
    kind = fields.take("kind")
    if kind is not None:
        draft.attributes["otel.kind"] = kind_name(kind)
    endpoint = fields.nested("localendpoint")
    if endpoint:
        named = {"service.name": endpoint.pop("serviceName")} if "serviceName" in endpoint else {}
        draft.attributes["otel.resource"] = cast("Json", {**named, **endpoint})
    draft.attributes.update(fields.rest("zipkin."))
    return trace_id, draft


def _status(draft: SpanDraft) -> None:
    """The tag `error` holds the message of a failure, or says no more than that there was one."""
    attributes = draft.attributes
    draft.status = status_of(draft, attributes.pop("otel.status_code", None), "otel.status_code")
    message = attributes.pop("otel.status_description", None)
    if "error" in attributes:
        draft.status = "ERROR"
        message = message or attributes.pop("error")
    draft.status_message = message if isinstance(message, str) and message not in ("", "true") else None


def _event(item: Json) -> dict[str, Json]:
    fields = Fields(item)
    value = fields.take("value")
    name, attributes = _named(value) if isinstance(value, str) else (kept(value), {})
    event: dict[str, Json] = {"name": name, "time": fields.count("timestamp"), "attributes": attributes}
    return {**event, **fields.rest()}


def _named(value: str) -> tuple[str, dict[str, Json]]:
    """The name and the attributes of an event in an annotation's text; a text in no known form is the name."""
    match = next((mark for form in _NAMED if (mark := form.fullmatch(value))), None)
    attributes = inner_json(match["held"]) if match is not None else None
    if match is not None and isinstance(attributes, dict):
        return match["name"], attributes
    whole = inner_json(value)
    only = next(iter(whole.items())) if isinstance(whole, dict) and len(whole) == 1 else ("", None)
    return (only[0], only[1]) if isinstance(only[1], dict) else (value, {})
