"""Spans as they arrive over OTLP/HTTP: kept at once, shown when their trace's root has ended, late ones joined."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sqlalchemy import Connection, Engine, func, select

from tracejury.ingest.formats import otlp
from tracejury.ingest.late import Completion, complete_by_request, http_file, inbox_bodies, keep
from tracejury.ingest.messages import numbered_as
from tracejury.ingest.parse import parse_json
from tracejury.ingest.store import TRACES, load, pack, read_transaction, schema, write, write_transaction
from tracejury.ingest.trace import IngestError, Rejected, Source, Trace

Signal = Literal["traces", "logs"]
NAMES: dict[Signal, tuple[str, str, str]] = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}
NO_PARENT = ("", "0" * 16)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """What a request brought; `rejected` items name no trace, `shown` traces are whole enough to be looked at."""

    items: int
    rejected: int
    traces: tuple[str, ...]
    shown: tuple[str, ...]


def receive(engine: Engine, body: bytes, *, signal: Signal, is_protobuf: bool) -> Receipt:
    """Keep the spans (or log records) of one request, durably, before anything else is done with them.

    Raises `IngestError` for a body that is no such request; nothing of it is kept then.
    """
    request = _from_protobuf(body, signal) if is_protobuf else _from_json(body, signal)
    by_trace = _split(request, signal)
    with write_transaction(engine, TRACES) as connection:
        for trace_id, (part, items) in by_trace.items():
            _keep(connection, trace_id, part, items, signal)
    shown = []
    for trace_id in by_trace:
        with write_transaction(engine, TRACES) as connection:
            if _is_whole(connection, trace_id) and _show(connection, trace_id):
                shown.append(trace_id)
    total = sum(len(items) for _, items in by_trace.values())
    rejected = sum(1 for _ in _items(request, signal)) - total
    return Receipt(items=total, rejected=rejected, traces=tuple(by_trace), shown=tuple(shown))


def show_stragglers(engine: Engine, *, older_than_s: float) -> list[str]:
    """Show traces whose root never came and that have been silent for so long; returns their ids."""
    before = (time.time() - older_than_s) * 1e6
    inbox = schema.inbox
    known = select(schema.trace.c.trace_id)
    with read_transaction(engine) as connection:
        silent = list(
            connection.scalars(
                select(inbox.c.trace_id)
                .where(inbox.c.trace_id.not_in(known))
                .group_by(inbox.c.trace_id)
                .having(func.max(inbox.c.received_at) < before)
            )
        )
    shown = []
    for trace_id in silent:
        try:
            with write_transaction(engine, TRACES) as connection:
                is_shown = _show(connection, trace_id)
        except Exception:  # one that cannot be shown must not keep the others waiting
            _log.warning("trace %s cannot be shown yet", trace_id, exc_info=True)
            continue
        if is_shown:
            shown.append(trace_id)
    return shown


def waiting(connection: Connection) -> int:
    """Traces that have begun to arrive and are not shown yet."""
    known = select(schema.trace.c.trace_id)
    distinct = func.count(schema.inbox.c.trace_id.distinct())
    return int(connection.scalar(select(distinct).where(schema.inbox.c.trace_id.not_in(known))) or 0)


def _from_protobuf(body: bytes, signal: Signal) -> dict[str, Any]:
    request = ExportTraceServiceRequest() if signal == "traces" else ExportLogsServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise IngestError(
            f"not an OTLP protobuf request of {signal}: {error}", remedy="send application/x-protobuf or JSON"
        ) from error
    content: dict[str, Any] = MessageToDict(request)
    for item in _items(content, signal):
        _with_hex_ids(item)
        for link in item.get("links", ()):
            _with_hex_ids(link)
    return content


def _with_hex_ids(item: dict[str, Any]) -> None:
    """OTLP/JSON writes ids in hex, where plain protobuf JSON writes base64."""
    for key in ("traceId", "spanId", "parentSpanId"):
        if key in item:
            item[key] = base64.b64decode(item[key]).hex()


def _from_json(body: bytes, signal: Signal) -> dict[str, Any]:
    content = parse_json(body)
    if not isinstance(content, dict) or not isinstance(content.get(NAMES[signal][0]), list):
        raise IngestError(
            f"not an OTLP/JSON request: no list {NAMES[signal][0]!r}", remedy=f"send an export request of {signal}"
        )
    return content


def _items(request: dict[str, Any], signal: Signal) -> Iterator[dict[str, Any]]:
    resources, scopes, items = NAMES[signal]
    for resource in _dicts(request.get(resources)):
        for scope in _dicts(resource.get(scopes)):
            yield from _dicts(scope.get(items))


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _split(request: dict[str, Any], signal: Signal) -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
    """By trace id: the request with the items of that trace alone, and those items."""
    ids = dict.fromkeys(str(item.get("traceId") or "").lower() for item in _items(request, signal))
    return {
        trace_id: (part, list(_items(part, signal)))
        for trace_id in ids
        if trace_id
        for part in [_only(request, signal, trace_id)]
    }


def _only(request: dict[str, Any], signal: Signal, trace_id: str) -> dict[str, Any]:
    resources, scopes, items = NAMES[signal]
    kept_resources = []
    for resource in _dicts(request[resources]):
        kept_scopes = []
        for scope in _dicts(resource.get(scopes)):
            of_trace = [one for one in _dicts(scope.get(items)) if str(one.get("traceId") or "").lower() == trace_id]
            if of_trace:
                kept_scopes.append({**scope, items: of_trace})
        if kept_scopes:
            kept_resources.append({**resource, scopes: kept_scopes})
    return {resources: kept_resources}


def _keep(
    connection: Connection, trace_id: str, part: dict[str, Any], items: list[dict[str, Any]], signal: Signal
) -> None:
    """One trace's part of a request; an exporter that had no answer sends the same again, which is kept once."""
    has_root = signal == "traces" and any(
        (item.get("parentSpanId") or "") in NO_PARENT and item.get("endTimeUnixNano") for item in items
    )
    keep(connection, trace_id, orjson.dumps(part), has_root=has_root)


def _is_whole(connection: Connection, trace_id: str) -> bool:
    root = select(schema.inbox.c.inbox_key).where(schema.inbox.c.trace_id == trace_id, schema.inbox.c.has_root == 1)
    shown = select(schema.trace.c.trace_key).where(schema.trace.c.trace_id == trace_id)
    return connection.scalar(root.limit(1)) is not None or connection.scalar(shown) is not None


def _show(connection: Connection, trace_id: str) -> bool:
    """(Re)build the trace from all that came of it; one that is stored from a file is completed."""
    bodies = inbox_bodies(connection, trace_id)
    there = connection.scalar(select(schema.trace.c.file).where(schema.trace.c.trace_id == trace_id))
    if there not in (None, http_file(trace_id)):
        outcome = complete_by_request(connection, trace_id, bodies, file=http_file(trace_id))
        return isinstance(outcome, Completion) and outcome.changed
    trace = _read(trace_id, b"\n".join(bodies) + b"\n")
    if trace is None:
        return False
    if there is None:
        write(connection, pack(trace))
        return True
    old = load(connection, trace_id)
    write(connection, pack(numbered_as(trace, old.messages)), replaces=pack(old))
    return True


def _read(trace_id: str, data: bytes) -> Trace | None:
    for item in otlp.read(Source(file=http_file(trace_id), data=data)):
        if not isinstance(item, Rejected) and item.trace_id == trace_id:
            return item
    return None
