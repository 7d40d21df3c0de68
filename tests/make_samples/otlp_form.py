"""Writes recorded spans as OTLP JSON, JSON lines, protobuf, base64 protobuf-JSON, and the SDK's own lines."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan

IDS = ("traceId", "spanId", "parentSpanId")


def otlp_protobuf(spans: Sequence[ReadableSpan]) -> bytes:
    return encode_spans(spans).SerializeToString(deterministic=True)


def otlp_base64(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """Plain protobuf JSON: ids in base64, which the OTLP specification forbids and some exporters write."""
    return MessageToDict(encode_spans(spans), use_integers_for_enums=True)


def otlp_json(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """One ExportTraceServiceRequest as the OTLP specification has it: ids in hex."""
    return hex_ids(otlp_base64(spans))


def sdk_lines(spans: Sequence[ReadableSpan]) -> str:
    return "".join(span.to_json(indent=None) + "\n" for span in spans)


def hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [hex_ids(item) for item in value]
    if isinstance(value, dict):
        return {
            key: base64.b64decode(item).hex() if key in IDS and isinstance(item, str) else hex_ids(item)
            for key, item in value.items()
        }
    return value


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
