"""OTLP: JSON (a request, one request per line as the collector writes files, or the same in a wrapper) and protobuf.

Fields: opentelemetry-proto, `trace/v1/trace.proto` and `logs/v1/logs.proto`; names in camelCase or snake_case.
Wrappers: Tempo's `batches` and `{"trace": ...}`, Jaeger's `{"result": ...}`, Phoenix's and others' bare spans under
`data`, spans and log records that each hold their own resource and scope (CloudWatch, AgentCore), also in the
answers of CloudWatch Logs, its CSV and its lines that begin with a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from collections.abc import Set as AbstractSet
from typing import cast

from tracejury.ingest import times
from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.formats.fields import pairs
from tracejury.ingest.formats.long_lines import long_traces
from tracejury.ingest.formats.otel import Intake, kind_name, parent_or_none, read_collected, take_listed
from tracejury.ingest.formats.rows import columns_of, read_rows
from tracejury.ingest.formats.spans import as_objects, brief, kept, note_spans, status_of
from tracejury.ingest.leftovers import holds_text
from tracejury.ingest.parse import inner_json, json_text, parse_documents
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, Trace

NAME = "otlp"
MERGES = True

_MARKS = frozenset({"resourceSpans", "resource_spans", "resourceLogs", "resource_logs"})
_OTHER_SIGNALS = frozenset({"resourceMetrics", "resource_metrics", "resourceProfiles", "resource_profiles"})
"""Requests of a collector's file that hold neither spans nor log records, which is no fault of theirs."""
_FLAT_MARKS = ({"traceId", "spanId"}, {"trace_id", "span_id"}, {"body", "severityNumber"})
_SPAN_MARKS = frozenset({
    "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano",
    "span_id", "parent_span_id", "start_time_unix_nano", "end_time_unix_nano",
})  # fmt: skip
_FLAT_TIMES = frozenset({
    "startTimeUnixNano", "timeUnixNano", "observedTimeUnixNano", "start_time_unix_nano", "time_unix_nano",
    "observed_time_unix_nano",
})  # fmt: skip
_AFTER_TIME = re.compile(rb"^\d{4}-\d\d-\d\dT[\d:.]+Z? (?:[^\s{]+ )?(?=\{)", re.MULTILINE)
"""How CloudWatch's exports and `aws logs tail` begin a line that holds a record."""
_WRAPPERS = ("trace", "result", "data", "spans", "events", "results")
_SPAN_KEYS = frozenset({
    "traceId", "spanId", "parentSpanId", "traceState", "flags", "name", "kind", "startTimeUnixNano",
    "endTimeUnixNano", "attributes", "events", "links", "status",
})  # fmt: skip
_LOG_KEYS = frozenset({"traceId", "spanId", "timeUnixNano", "observedTimeUnixNano", "eventName", "body", "attributes"})
_NOT_SET = (None, "", 0, "0")


def sniff(sample: FileSample) -> bool:
    """`resourceSpans` or `resourceLogs`, spans with OTLP's own names, or bytes that decode as such a request."""
    if sample.start[:1] in (b"{", b"["):
        return bool(_MARKS & sample.keys) or _is_tempo(sample.keys) or _is_flat(_own_and_quoted(sample))
    if _quotes_records(sample):
        return _is_flat(_own_and_quoted(sample))
    if _AFTER_TIME.match(sample.start):
        return _is_flat(sample.keys)
    return sample.whole and _is_protobuf(sample.data)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the file: all its requests are read, then split by trace id."""
    yield from read_collected(source, collect, format=NAME)


def collect(source: Source, intake: Intake) -> Generator[Rejected, None, int]:
    """Add the spans and log records of a file; yields and counts the requests that hold none."""
    bad = 0
    for value, place, warnings in _requests(source.data):
        intake.warnings.extend(warnings)
        try:
            if isinstance(value, IngestError):
                raise value
            take(value, intake, place)
        except IngestError as error:
            bad += 1
            yield rejected(source.file, error)
    return bad


def read_long(source: Source) -> Iterator[Trace | Rejected]:
    """As `read`, of a file of lines that is not held in memory."""
    yield from long_traces(source, take, format=NAME)


def _requests(data: bytes) -> Iterator[tuple[Json | IngestError, str, tuple[str, ...]]]:
    """Each request of a file as JSON with its place and warnings, or why it could not be read."""
    start = data[:4096].lstrip()
    if _quotes_records(FileSample("", start, False)):
        for row in read_rows(data):
            yield row.values if row.error is None else row.error, row.place, ()
    elif start[:1] in (b"{", b"[") or not _is_protobuf(data):
        for document in parse_documents(_AFTER_TIME.sub(b"", data) if _AFTER_TIME.match(start) else data):
            yield document.value if document.error is None else document.error, document.place, document.warnings
    else:
        from tracejury.ingest.formats.otlp_protobuf import from_protobuf

        for value in from_protobuf(data):
            yield value, "", ()


def _quotes_records(sample: FileSample) -> bool:
    """Whether this is the CSV of CloudWatch Logs, with a record in each cell of `@message`."""
    return "@message" in columns_of(sample)


def _is_protobuf(data: bytes) -> bool:
    from tracejury.ingest.formats.otlp_protobuf import (
        is_protobuf,  # few files are, and protobuf takes a while to import
    )

    return is_protobuf(data)


def _is_tempo(keys: AbstractSet[str]) -> bool:
    return "batches" in keys and not keys.isdisjoint({"scopeSpans", "instrumentationLibrarySpans"})


def _is_flat(keys: AbstractSet[str]) -> bool:
    """Whether these are the keys of a span or log record that stands by itself."""
    return any(marks <= keys for marks in _FLAT_MARKS) and not _FLAT_TIMES.isdisjoint(keys)


def _own_and_quoted(sample: FileSample) -> AbstractSet[str]:
    """The keys of a sample; those of records that CloudWatch's answers quote as text too."""
    quoted = "@message" in sample.keys or (
        "message" in sample.keys and not sample.keys.isdisjoint({"logStreamName", "ingestionTime"})
    )
    if not quoted and b"@message" not in sample.data:
        return sample.keys
    plain = sample.data.replace(b'\\"', b'"').replace(b'""', b'"')
    return FileSample(sample.file, plain, sample.whole).keys


def take(value: Json, intake: Intake, place: str) -> None:
    """Add the spans and log records of a document. Raises `IngestError` where it holds none."""
    if not take_item(value, intake):
        raise IngestError("no resourceSpans in this OTLP request", place=place, remedy="export the spans as OTLP JSON")


def take_item(item: Json, intake: Intake) -> bool:
    """Add what a request, span, log record, list or wrapper of them holds; whether it is one of them."""
    item = _unquoted(item)
    if isinstance(item, list):
        return take_listed(item, lambda one: take_item(one, intake), intake) or not item
    if not isinstance(item, dict):
        return False
    if not (_MARKS | _OTHER_SIGNALS | {"batches"}).isdisjoint(item):
        _take_request(item, intake)
        return True
    if _is_flat(item.keys()):
        _take_flat(item, intake)
        return True
    inner = next((item[name] for name in _WRAPPERS if isinstance(item.get(name), (dict, list))), None)
    return inner is not None and take_item(inner, intake)


def _take_request(request: dict[str, Json], intake: Intake) -> None:
    for name in ("resourceSpans", "batches"):
        for group in _objects(_get(request, name), intake, name):
            _take_resource(group, intake, ("scopeSpans", "instrumentationLibrarySpans"), "spans")
    for group in _objects(_get(request, "resourceLogs"), intake, "resourceLogs"):
        _take_resource(group, intake, ("scopeLogs",), "logRecords")


def _unquoted(item: Json) -> Json:
    """The record that a row of CloudWatch Logs quotes: `message`, `@message`, or a list of field and value."""
    if isinstance(item, list):
        quoted = next(
            (one.get("value") for one in item if isinstance(one, dict) and one.get("field") == "@message"), None
        )
    elif isinstance(item, dict) and _FLAT_TIMES.isdisjoint(item):
        quoted = item.get("@message", item.get("message"))
    else:
        return item
    value = inner_json(quoted) if isinstance(quoted, str) else quoted
    return value if isinstance(value, dict) else item


def _take_flat(item: dict[str, Json], intake: Intake) -> None:
    """A span or log record that holds its resource and its scope itself."""
    scope = _get(item, "scope") or _get(item, "instrumentationScope")
    shared = {**_resource(_get(item, "resource")), **_scope(scope)}
    bare = {key: content for key, content in item.items() if key not in ("resource", "scope", "instrumentationScope")}
    if _get(item, "startTimeUnixNano") is None and _get(item, "endTimeUnixNano") is None:
        _take_log(bare, shared, intake)
    else:
        _take_span(bare, shared, intake)


def _resource(resource: Json) -> dict[str, Json]:
    """The attributes that the spans of a resource share; one that is no object as it stands."""
    if not isinstance(resource, dict):
        return {} if resource is None else {"otel.resource": kept(resource)}
    attributes = _attributes(_get(resource, "attributes"))
    shared: dict[str, Json] = {"otel.resource": cast("Json", attributes)} if attributes else {}
    return {**shared, **_others(resource, {"attributes"}, "otel.resource.")}


def _take_resource(group: dict[str, Json], intake: Intake, scopes: tuple[str, ...], items: str) -> None:
    shared = _resource(_get(group, "resource"))
    rest = _others(group, {"resource", *scopes}, "otel.resource.")
    _note_spans(rest, intake.warnings)
    shared.update(rest)
    for name in scopes:
        for scope_group in _objects(_get(group, name), intake, name):
            own = {**shared, **_scope(_get(scope_group, "scope") or _get(scope_group, "instrumentationLibrary"))}
            rest = _others(scope_group, {"scope", "instrumentationLibrary", items, "spans"}, "otel.scope.")
            _note_spans(rest, intake.warnings)
            own.update(rest)
            for item in _objects(_get(scope_group, items), intake, items):
                if items == "spans":
                    _take_span(item, own, intake)
                else:
                    _take_log(item, own, intake)


def _note_spans(rest: dict[str, Json], warnings: list[str]) -> None:
    """Warn of spans that stand in fields which OTLP does not have there."""
    for key, item in rest.items():
        if isinstance(item, (dict, list, str)):
            note_spans(item, _SPAN_MARKS, key, warnings)


def _scope(scope: Json) -> dict[str, Json]:
    """As `_resource`, of the instrumentation scope."""
    if not isinstance(scope, dict):
        return {} if scope is None else {"otel.scope": kept(scope)}
    attributes = _attributes(_get(scope, "attributes"))
    fields: dict[str, Json] = {key: item for key, item in scope.items() if key != "attributes" and item not in _NOT_SET}
    own: Json = {**fields, "attributes": attributes} if attributes else fields
    return {"otel.scope": own} if own else {}


def _take_span(value: dict[str, Json], shared: dict[str, Json], intake: Intake) -> None:
    trace_id = _id(_get(value, "traceId")) or "unnamed"
    span_id = _id(_get(value, "spanId")) or f"unnamed-{intake.number + 1}"
    parent = parent_or_none(_id(_get(value, "parentSpanId")))
    if not intake.wants_span(trace_id, span_id, parent):
        return
    draft = SpanDraft(span_id=span_id, parent_span_id=parent, attributes=_attributes(_get(value, "attributes")))
    if not _get(value, "spanId"):
        draft.warnings.append(f"no_span_id: the source gives this span no id; called {draft.span_id}")
    name = _get(value, "name")
    draft.name = name if isinstance(name, str) else ("" if name is None else json_text(name))
    draft.start_time = _time(draft, value, "startTimeUnixNano")
    draft.end_time = _time(draft, value, "endTimeUnixNano")
    _status(draft, _get(value, "status"))
    draft.events = [_event(item) for item in as_objects(_get(value, "events"))]
    draft.links = [_link(item) for item in as_objects(_get(value, "links"))]
    _otel(draft, value)
    draft.attributes.update(shared)
    intake.spans.append((trace_id, draft))


def _otel(draft: SpanDraft, value: dict[str, Json]) -> None:
    kind = _get(value, "kind")
    if kind is not None:
        draft.attributes["otel.kind"] = kind_name(kind)
    for key, name in (("traceState", "otel.trace_state"), ("flags", "otel.flags")):
        item = _get(value, key)
        if item not in _NOT_SET:
            draft.attributes[name] = kept(item)
    rest = _others(value, set(_SPAN_KEYS), "otel.")
    _note_spans(rest, draft.warnings)
    for key, item in rest.items():
        own = key.removeprefix("otel.")
        draft.attributes[own if holds_text(own, item) else key] = item
        if key.startswith("otel.dropped"):
            draft.warnings.append(
                f"dropped_by_tracer: the tracer dropped a part; {key.removeprefix('otel.')} is {item}"
            )


def _status(draft: SpanDraft, status: Json) -> None:
    if not isinstance(status, dict):
        draft.status = status_of(draft, status, "otel.status")
        return
    draft.status = status_of(draft, _get(status, "code"), "otel.status_code")
    message = _get(status, "message")
    draft.status_message = message if isinstance(message, str) and message else None


def _time(draft: SpanDraft, value: dict[str, Json], key: str) -> int | None:
    """Microseconds; what stands below them, or cannot be read at all, is kept as it is."""
    raw = _get(value, key)
    if raw in _NOT_SET:
        return None
    moment = times.from_nanoseconds(raw)
    if moment is None:
        moment = times.from_iso(raw)
        draft.attributes[f"otel.{_snake(key)}"] = kept(raw)
        if moment is None:
            draft.warnings.append(f"unreadable_time: {key} is {brief(raw)}; left empty, kept as an attribute")
    elif (times.integer(raw) or 0) % 1000:
        draft.attributes[f"otel.{_snake(key)}"] = raw
    return moment


def _event(value: dict[str, Json]) -> dict[str, Json]:
    raw = _get(value, "timeUnixNano")
    event: dict[str, Json] = {
        "name": _get(value, "name"),
        "time": times.from_nanoseconds(raw),
        "attributes": cast("Json", _attributes(_get(value, "attributes"))),
    }
    if raw not in _NOT_SET and (event["time"] is None or (times.integer(raw) or 0) % 1000):
        event["time_unix_nano"] = kept(raw)
    event.update(_others(value, {"name", "timeUnixNano", "attributes"}, ""))
    return event


def _link(value: dict[str, Json]) -> dict[str, Json]:
    link: dict[str, Json] = {
        "trace_id": _id(_get(value, "traceId")),
        "span_id": _id(_get(value, "spanId")),
        "attributes": cast("Json", _attributes(_get(value, "attributes"))),
    }
    link.update(_others(value, {"traceId", "spanId", "attributes"}, ""))
    return link


def _take_log(value: dict[str, Json], shared: dict[str, Json], intake: Intake) -> None:
    trace_id, span_id = _id(_get(value, "traceId")) or "", _id(_get(value, "spanId")) or ""
    if not intake.wants_log(trace_id, span_id):
        return
    attributes = _attributes(_get(value, "attributes"))
    named = _get(value, "eventName") or attributes.get("event.name") or attributes.get("event_name")
    moment = times.from_nanoseconds(_get(value, "timeUnixNano")) or times.from_nanoseconds(
        _get(value, "observedTimeUnixNano")
    )
    intake.logs.append(
        SpanLog(
            trace_id=trace_id,
            span_id=span_id,
            event_name=named if isinstance(named, str) else "",
            time=moment,
            body=_plain(_get(value, "body")),
            attributes=attributes,
            rest={**_others(value, set(_LOG_KEYS), ""), **shared},
        )
    )


def _attributes(value: Json) -> dict[str, Json]:
    """`[{"key", "value"}]` as an object; a plain object, as some tools write it, is taken as it is."""
    return _key_values(value, _plain)


def key_values(value: Json) -> dict[str, Json]:
    """Attributes as an object, whether they stand as one, as a list of key and value, or as pairs."""
    return _attributes(pairs(value))


def _key_values(value: Json, read: Callable[[Json], Json]) -> dict[str, Json]:
    if isinstance(value, dict):
        return {key: kept(item) for key, item in value.items()}
    values: dict[str, Json] = {}
    for number, item in enumerate(value if isinstance(value, list) else []):
        if not isinstance(item, dict) or not isinstance(item.get("key"), str):
            values[f"otel.attribute.{number}"] = kept(item)
            continue
        key = cast("str", item["key"])
        is_whole = "value" in item or len(item) == 1
        values[_free(key, values)] = read(item.get("value")) if is_whole else kept({**item})
    if value is not None and not isinstance(value, list):
        values["attributes"] = kept(value)
    return values


def _free(key: str, values: dict[str, Json]) -> str:
    while key in values:
        key += "'"
    return key


def _plain(value: Json) -> Json:
    """An AnyValue as it is kept; one nested too deeply to be followed stays as the source's own JSON text."""
    try:
        return kept(_any_value(value))
    except RecursionError:
        return json_text(value)


def _any_value(value: Json) -> Json:
    """OTLP's AnyValue as plain JSON; int64 stands as text in OTLP JSON."""
    if isinstance(value, dict) and len(value) > 1:  # Phoenix writes the kinds that are not set as null
        value = {kind: item for kind, item in value.items() if item is not None}
    if not isinstance(value, dict) or len(value) != 1:
        return value if value != {} else None
    ((kind, item),) = value.items()
    match kind:
        case "intValue" | "int_value":
            number = times.integer(item)
            return item if number is None else number
        case "doubleValue" | "double_value" | "stringValue" | "string_value" | "boolValue" | "bool_value":
            return item
        case "bytesValue" | "bytes_value":
            return item
        case "arrayValue" | "array_value":
            items = _get(item, "values") if isinstance(item, dict) else item
            return [_any_value(one) for one in items] if isinstance(items, list) else []
        case "kvlistValue" | "kvlist_value":
            items = _get(item, "values") if isinstance(item, dict) else item
            return cast("Json", _key_values(items, _any_value))
        case _:
            return value


def _get(value: dict[str, Json], key: str) -> Json:
    """A field by its camelCase name, or by its snake_case name as protobuf's own JSON may have it."""
    return value[key] if key in value else value.get(_SNAKE.get(key) or _snake(key))


def _snake(key: str) -> str:
    name = _SNAKE.get(key)
    if name is None:
        name = _SNAKE[key] = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
    return name


_SNAKE: dict[str, str] = {}


def _id(value: Json) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else json_text(value)


def _others(value: dict[str, Json], known: set[str], prefix: str) -> dict[str, Json]:
    """Every field that is not known, under its snake_case name; fields that are not set stay out."""
    names = known | {_snake(key) for key in known}
    return {
        f"{prefix}{_snake(key)}": kept(item) for key, item in value.items() if key not in names and item not in _NOT_SET
    }


def _objects(value: Json, intake: Intake, name: str) -> list[dict[str, Json]]:
    """The objects of a list; anything else in it is named in a warning, for it may have been a span."""
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, dict):
            intake.warnings.append(f"unreadable_span: {name} holds {brief(item)}, not an object")
    return [item for item in items if isinstance(item, dict)]
