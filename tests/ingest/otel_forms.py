"""One run in every form in which OpenTelemetry writes it, made from its protobuf."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = ("traceId", "spanId", "parentSpanId")


def write_forms(protobuf: bytes, folder: Path) -> list[Path]:
    """Protobuf, JSON with ids in base64, JSON with ids in hex, a request a span in lines, lines of the SDK."""
    request = ExportTraceServiceRequest.FromString(protobuf)
    in_base64 = json.loads(MessageToJson(request, use_integers_for_enums=True))
    in_hex = _with_hex(in_base64)
    spans = [(resource, span) for resource in in_hex["resourceSpans"] for span in _spans_of(resource)]
    forms = {
        "run.otlp.pb": protobuf,
        "run.base64.json": json.dumps(in_base64).encode(),
        "run.otlp.json": json.dumps(in_hex).encode(),
        "run.otlp.jsonl": "\n".join(json.dumps(_alone(*one)) for one in spans).encode(),
        "run.spans.jsonl": "\n".join(json.dumps(_of_sdk(*one)) for one in spans).encode(),
    }
    for name, content in forms.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in forms]


def _spans_of(resource: dict[str, Any]) -> list[dict[str, Any]]:
    return [span for scope in resource["scopeSpans"] for span in scope["spans"]]


def _with_hex(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: base64.b64decode(each).hex() if key in IDS else _with_hex(each) for key, each in value.items()}
    return [_with_hex(each) for each in value] if isinstance(value, list) else value


def _alone(resource: dict[str, Any], span: dict[str, Any]) -> dict[str, Any]:
    """A request of this span alone."""
    return {"resourceSpans": [{**resource, "scopeSpans": [{"spans": [span]}]}]}


def _of_sdk(resource: dict[str, Any], span: dict[str, Any]) -> dict[str, Any]:
    """As `ReadableSpan.to_json` writes it."""
    parent = span.get("parentSpanId")
    return {
        "name": span["name"],
        "context": {"trace_id": f"0x{span['traceId']}", "span_id": f"0x{span['spanId']}", "trace_state": "[]"},
        "kind": "SpanKind.INTERNAL",
        "parent_id": f"0x{parent}" if parent else None,
        "start_time": _time(span["startTimeUnixNano"]),
        "end_time": _time(span["endTimeUnixNano"]),
        "status": {"status_code": ("UNSET", "OK", "ERROR")[span.get("status", {}).get("code", 0)]},
        "attributes": _attributes(span),
        "events": [],
        "links": [],
        "resource": {"attributes": _attributes(resource["resource"]), "schema_url": ""},
    }


def _attributes(of: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: _plain(each["value"]) for each in of.get("attributes", [])}


def _plain(value: dict[str, Any]) -> Any:
    [(kind, content)] = value.items()
    if kind == "arrayValue":
        return [_plain(each) for each in content.get("values", [])]
    return int(content) if kind == "intValue" else content


def _time(nanoseconds: str) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(nanoseconds) // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
