"""OTLP's protobuf form: its requests as the JSON that `otlp` reads. Apart, for protobuf takes a while to import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tracejury.ingest.trace import IngestError, Json


def is_protobuf(data: bytes) -> bool:
    """Whether these bytes are OTLP requests in protobuf."""
    try:
        return next(from_protobuf(data), None) is not None
    except IngestError:
        return False


def from_protobuf(data: bytes) -> Iterator[dict[str, Json]]:
    """The requests in these bytes: one, or several each after its length in four bytes, as the collector writes."""
    for message in _messages(data):
        request = ExportTraceServiceRequest()
        logs = ExportLogsServiceRequest()
        try:
            request.ParseFromString(message)
            if _has_spans(request):
                yield _with_hex_ids(request)
                continue
            logs.ParseFromString(message)
        except DecodeError as error:
            raise IngestError(f"not an OTLP request: {error}", remedy="export it again as OTLP") from error
        records = [record for group in logs.resource_logs for scope in group.scope_logs for record in scope.log_records]
        if not records:
            raise IngestError("an OTLP request with no span and no log record", remedy="export it again as OTLP")
        yield _logs_with_hex_ids(logs)


def _messages(data: bytes) -> list[bytes]:
    if data[:1] == b"\n":
        return [data]
    parts, position = [], 0
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        part = data[position + 4 : position + 4 + size]
        if len(part) != size or part[:1] != b"\n":
            raise IngestError("not an OTLP request", place=f"byte {position}", remedy="export it again as OTLP")
        parts.append(part)
        position += 4 + size
    return parts


def _has_spans(request: ExportTraceServiceRequest) -> bool:
    spans = [span for group in request.resource_spans for scope in group.scope_spans for span in scope.spans]
    return bool(spans) and all(len(span.span_id) == 8 for span in spans)


def _with_hex_ids(request: ExportTraceServiceRequest) -> dict[str, Json]:
    value = MessageToDict(request)
    for group, held_group in zip(request.resource_spans, value["resourceSpans"], strict=True):
        for scope, held_scope in zip(group.scope_spans, held_group.get("scopeSpans", []), strict=True):
            for span, record in zip(scope.spans, held_scope.get("spans", []), strict=True):
                record.update(
                    traceId=span.trace_id.hex(), spanId=span.span_id.hex(), parentSpanId=span.parent_span_id.hex()
                )
                for link, held_link in zip(span.links, record.get("links", []), strict=True):
                    held_link.update(traceId=link.trace_id.hex(), spanId=link.span_id.hex())
    return cast("dict[str, Json]", value)


def _logs_with_hex_ids(request: ExportLogsServiceRequest) -> dict[str, Json]:
    value = MessageToDict(request)
    for group, held_group in zip(request.resource_logs, value["resourceLogs"], strict=True):
        for scope, held_scope in zip(group.scope_logs, held_group.get("scopeLogs", []), strict=True):
            for record, document in zip(scope.log_records, held_scope.get("logRecords", []), strict=True):
                document.update(traceId=record.trace_id.hex(), spanId=record.span_id.hex())
    return cast("dict[str, Json]", value)
