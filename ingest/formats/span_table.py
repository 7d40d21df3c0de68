"""A table with a span in each row: what Logfire's queries give, and spans as stores, lakes and vendors keep them.

Parquet, Arrow, CSV, JSON lines, a list, or an answer that holds the rows. Columns are known by their usual names:
Logfire's `records`, the collector's ClickHouse and Parquet exporters, and snake_case or camelCase of OTLP's own fields;
what vendors wrap a span in, and call its fields, is for `vendor_rows`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import cast

from tracejury.ingest.conventions.context import SpanLog, put, put_usage
from tracejury.ingest.formats.exports import without_wrapper
from tracejury.ingest.formats.fields import Fields, plain_name, time_of_any
from tracejury.ingest.formats.otel import Intake, join_runs, kind_name, parent_or_none, read_collected
from tracejury.ingest.formats.otlp import key_values
from tracejury.ingest.formats.rows import Row, columns_of, is_frame, opened, read_rows, take_rows
from tracejury.ingest.formats.spans import kept, kept_dict, status_of
from tracejury.ingest.formats.vendor_rows import CHILDREN, flat, typed_value, vendor_log, vendor_rows
from tracejury.ingest.leftovers import holds_text
from tracejury.ingest.parse import json_text, parse_documents, unquoted
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, SpanKind, Trace

NAME = "span_table"
MERGES = True

_TRACE, _SPAN, _PARENT = ("traceid", "contexttraceid"), ("spanid", "contextspanid"), ("parentspanid", "parentid")
_NAMES = ("spanname", "name", "operationname", "displayname")
_STARTS = ("starttimeunixnano", "startunixnano", "starttimestamp", "starttime", "start", "timestamp")
_ENDS = ("endtimeunixnano", "endunixnano", "endtimestamp", "endtime", "end")
_DURATIONS = (("durationnano", 1000), ("durationns", 1000), ("durationus", 1), ("durationms", 1 / 1000))
_SAID_AGAIN = frozenset({"message", "tags"})
"""Columns in which Logfire says the name of a span again."""
_KINDS: dict[str, SpanKind] = {
    "llm": "LLM", "generation": "LLM", "chat": "LLM", "model": "LLM", "tool": "TOOL", "agent": "AGENT",
    "retriever": "RETRIEVER", "retrieval": "RETRIEVER", "embedding": "EMBEDDING", "chain": "CHAIN",
    "workflow": "CHAIN", "task": "CHAIN", "completion": "LLM", "function": "TOOL",
    "evaluator": "EVALUATOR", "guardrail": "GUARDRAIL", "reranker": "RERANKER", "agent_run": "AGENT",
    "llm_generation": "LLM", "model_generation": "LLM", "model_step": "LLM", "tool_call": "TOOL",
    "mcp_tool_call": "TOOL", "workflow_run": "CHAIN", "workflow_step": "CHAIN", "processor_run": "CHAIN",
}  # fmt: skip
"""How vendors call the kinds of spans."""
_COUNTS = {
    "prompt_tokens": ("prompttokens", "inputtokens"), "completion_tokens": ("completiontokens", "outputtokens"),
    "total_tokens": ("totaltokens", "totalrequesttokens"),
}  # fmt: skip
"""Columns of tokens that a row has of its own."""
_ROWS = ("rows", "data", "records", "spans", "results")


def sniff(sample: FileSample) -> bool:
    """A trace id, a span id, a name, a time and a parent or attributes among the columns."""
    names = {plain_name(name) for name in sample.keys | columns_of(sample)}
    return _is_row(names) or _is_of_vendor(sample)


def _is_of_vendor(sample: FileSample) -> bool:
    """Whether the first document, or the header of a table, is a span in a vendor's form."""
    if (columns := columns_of(sample)) and sample.start[:1] not in (b"{", b"["):
        return any(True for _ in vendor_rows(dict.fromkeys(columns, "x")))
    if not sample.whole or sample.start[:1] not in (b"{", b"["):
        return False
    first = next(parse_documents(sample.data), None)
    return first is not None and not is_frame(first.value) and any(True for _ in vendor_rows(first.value))


def _is_row(names: AbstractSet[str]) -> bool:
    own = all(not names.isdisjoint(some) for some in (_TRACE, _SPAN, _NAMES, _STARTS))
    return own and not names.isdisjoint({*_PARENT, "attributes", "spanattributes"})


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the table."""
    yield from read_collected(source, collect, format=NAME)


def collect(source: Source, intake: Intake) -> Generator[Rejected, None, int]:
    """Add the span of each row; yields and counts the rows that hold none."""
    start = len(intake.spans)
    bad = yield from take_rows(source, lambda row: _take_row(row, intake), lists=_ROWS, rows_of=_rows_of_vendor)
    if any(trace_id == draft.span_id for trace_id, draft in intake.spans[start:]):
        join_runs(intake, start)
    return bad


def _rows_of_vendor(value: Json) -> Iterable[dict[str, Json]]:
    return () if holds_rows(value) else vendor_rows(value)


def _take_row(row: Row, intake: Intake) -> None:
    """Add the span of a row, or all spans that a vendor's record holds."""
    names = {plain_name(name) for name in row.values}
    is_row = (
        _is_row(names) and not _has_children(row.values) and "processorevent" not in names
    )  # Elastic tells transactions apart
    log = None if is_row else vendor_log(row.values)
    if log is not None:
        intake.logs.append(_log(log))
        return
    inner = [] if is_row else [row._replace(values=values) for values in vendor_rows(row.values)]
    intake.spans.extend(map(_span, inner or [row]))


def _log(values: dict[str, Json]) -> SpanLog:
    attributes = cast("dict[str, Json]", values["attributes"])
    named = attributes.get("event.name", attributes.get("event_name"))
    return SpanLog(
        trace_id=str(values["trace_id"]),
        span_id=str(values["span_id"]),
        event_name=named if isinstance(named, str) else "",
        time=time_of_any(values["time"]),
        body=values["body"],
        attributes=attributes,
        rest={},
    )


def _has_children(row: Mapping[str, Json]) -> bool:
    """Whether a row holds the spans below it, which `vendor_rows` reads."""
    return any(isinstance(row.get(key), list) for key in CHILDREN)


def holds_rows(value: Json) -> bool:
    """Whether a document is such a row, or a list or an answer of them."""
    names = (
        next((value[name] for name in _ROWS if isinstance(value.get(name), list)), value)
        if isinstance(value, dict)
        else value
    )
    first = names[0] if isinstance(names, list) and names else names
    return (
        isinstance(first, dict)
        and _is_row({plain_name(name) for name in first})
        and "startTimeUnixNano" not in first
        and not _has_children(first)
    )


def take(value: Json, intake: Intake, place: str) -> None:
    """Add the span of each row of a document."""
    for row in read_rows(json_text(value).encode(), lists=_ROWS, rows_of=_rows_of_vendor):
        _take_row(row._replace(place=row.place or place), intake)


def _span(row: Row) -> tuple[str, SpanDraft]:
    fields = Fields(row.values)
    trace_id, span_id = fields.text(*_TRACE), fields.text(*_SPAN)
    if trace_id is None or span_id is None:
        remedy = "export the columns trace_id, span_id and parent_span_id too"
        raise IngestError("a row without trace id or span id", place=row.place, remedy=remedy)
    draft = SpanDraft(span_id=span_id, parent_span_id=parent_or_none(fields.text(*_PARENT)), warnings=fields.warnings)
    draft.name = fields.text(*_NAMES) or ""
    _times(draft, fields)
    _status(draft, fields)
    _exception(draft, fields)
    draft.events = _events(fields)
    draft.links = _links(fields)
    draft.attributes.update(_attributes(fields))
    _record(draft, fields)
    _otel(draft, fields)
    return trace_id, draft


def _times(draft: SpanDraft, fields: Fields) -> None:
    draft.start_time, draft.end_time = fields.time(*_STARTS), fields.time(*_ENDS)
    if draft.start_time is None or draft.end_time is not None:
        return
    for name, a_microsecond in _DURATIONS:
        if (length := fields.number(name)) is not None:
            draft.end_time = draft.start_time + round(length / a_microsecond)
            return
    length = fields.number("duration")
    if length is not None:  # ClickHouse counts nanoseconds, others seconds
        draft.end_time = draft.start_time + round(length * 1e6 if isinstance(length, float) else length / 1000)


def _status(draft: SpanDraft, fields: Fields) -> None:
    """The status of an object, or of a code and a message beside it."""
    value = opened(fields.take("otelstatuscode", "statuscode", "status"))
    status = Fields(value, "status", draft.warnings) if isinstance(value, dict) else None
    draft.status = status_of(draft, status.take("code", "statuscode") if status is not None else value, "status_code")
    message = status.text("message", "description") if status is not None else None
    draft.status_message = message or fields.text("otelstatusmessage", "statusmessage", "statusdescription")
    if status is not None:
        draft.attributes.update(status.rest("status."))


def _exception(draft: SpanDraft, fields: Fields) -> None:
    """Logfire's columns of an exception: a row that has one failed, also where its status does not say so."""
    if fields.take("isexception") not in (True, "true", "True"):
        return
    attributes = {
        f"exception.{part}": text for part in ("type", "message") if (text := fields.text(f"exception{part}"))
    }
    draft.attributes.update(attributes)
    draft.status = "ERROR"
    draft.status_message = draft.status_message or ": ".join(attributes.values()) or None


def _attributes(fields: Fields) -> dict[str, Json]:
    content = fields.take("attributes", "spanattributes")
    attributes: dict[str, Json] = {}
    for key, item in key_values(opened(content)).items() if content is not None else ():
        value = typed_value(item)
        is_tree = isinstance(value, dict) and value and "." not in key
        attributes.update(flat(cast("dict[str, Json]", value), f"{key}.") if is_tree else {key: value})
    return {**attributes, **kept_dict(fields.below("attributes.", "SpanAttributes.", "span_attributes."))}


def _record(draft: SpanDraft, fields: Fields) -> None:
    """What a vendor's row tells in columns of its own: kind, model, tokens, what went in and what came out."""
    kind = fields.take("record.type", "spantype", "type", "observationtype", "logtype")
    words = (kind, draft.attributes.get("record.type"), draft.attributes.get("span.kind"), fields.peek("spankind"))
    draft.kind = next((_KINDS[word] for one in words if (word := str(one).lower()) in _KINDS), draft.kind)
    if kind is not None and (draft.kind == "UNKNOWN" or not isinstance(kind, str)):
        draft.attributes["type"] = kept(kind)
    draft.model = fields.text("model", "modelname")
    put(draft, "model", "model")
    if draft.kind == "TOOL":
        put(draft, "tool_name", "toolId")
    usage = {key.removeprefix("usage."): item for key, item in draft.attributes.items() if key.startswith("usage.")}
    put_usage(draft, cast("Json", usage), "usage.")
    for name in ("metrics", "usage", "tokens"):
        put_usage(draft, {key.removeprefix("num_"): item for key, item in fields.nested(name).items()}, f"{name}.")
    columns = {name: fields.take(*names) for name, names in _COUNTS.items()}
    put_usage(draft, {name: count for name, count in columns.items() if count is not None}, "")
    for side in ("input", "output"):
        value = fields.take(side, f"{side}s") or draft.attributes.pop(f"record.{side}", None)
        if value is not None:
            plain = without_wrapper(opened(value), "value")
            draft.attributes[f"export.{side}"] = kept(opened(unquoted(plain) if isinstance(plain, str) else plain))


def _otel(draft: SpanDraft, fields: Fields) -> None:
    attributes = draft.attributes
    kind = fields.take("spankind", "kind")
    if kind is not None:
        attributes["otel.kind"] = kind_name(kind)
    resource = fields.take("otelresourceattributes", "resourceattributes", "resource")
    if resource is not None:
        inner = opened(resource)
        inner = inner.get("attributes", inner) if isinstance(inner, dict) else inner
        attributes["otel.resource"] = cast("Json", key_values(inner))
    scope = {
        name: item
        for name in ("name", "version", "attributes")
        if (item := fields.take(f"otelscope{name}", f"scope{name}", f"instrumentationscope{name}")) not in (None, "")
    }
    if scope:
        attributes["otel.scope"] = kept(cast("Json", scope))
    for key, item in fields.rest().items():
        own = "." in key or (key not in _SAID_AGAIN and holds_text(key, item))
        attributes.setdefault(key if own else f"otel.{key}", item)


def _events(fields: Fields) -> list[dict[str, Json]]:
    """Events as a list of objects, or as lists of their names, times and attributes side by side."""
    rows = list(fields.listed("otelevents", "events", "spanevents")) or _side_by_side(fields, "events")
    return [_event(item) for item in rows]


def _event(item: Json) -> dict[str, Json]:
    if not isinstance(item, dict):
        return {"name": None, "time": None, "attributes": {"value": kept(item)}}
    fields = Fields(item)
    moment = fields.time("timeunixnano", "timestamp", "eventtimestamp", "time")
    event: dict[str, Json] = {"name": fields.take("name", "eventname"), "time": moment}
    event["attributes"] = cast("Json", key_values(opened(fields.take("attributes", "eventattributes"))))
    return {**event, **fields.rest()}


def _links(fields: Fields) -> list[dict[str, Json]]:
    rows = list(fields.listed("otellinks", "links", "spanlinks")) or _side_by_side(fields, "links")
    return [_link(item) for item in rows]


def _link(item: Json) -> dict[str, Json]:
    fields = Fields(item)
    context = fields.inner("context")
    link: dict[str, Json] = {
        "trace_id": fields.take("traceid") or context.take("traceid"),
        "span_id": fields.take("spanid") or context.take("spanid"),
        "attributes": cast("Json", key_values(opened(fields.take("attributes")))),
    }
    return {**link, **fields.rest()}


def _side_by_side(fields: Fields, family: str) -> Sequence[Json]:
    """ClickHouse's nested columns (`Events.Name`, `Events.Timestamp`) as one object an item."""
    columns = fields.below(f"{family.title()}.", f"{family}.")
    family_fields = Fields(columns, family, fields.warnings)
    lists = {name: family_fields.listed(plain_name(name)) for name in columns}
    count = max((len(item) for item in lists.values()), default=0)
    return [{name: item[n] for name, item in lists.items() if n < len(item)} for n in range(count)]
