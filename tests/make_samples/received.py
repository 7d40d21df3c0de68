"""Writes what the receiver on loopback got as OTLP JSON lines, as the collector's file exporter does, scrubbed.

Ids and times are those of the run. Machine paths, ports and the name and processes of the machine are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cleaning import clean_json
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from otlp_form import compact, hex_ids

_PORT = re.compile(r"127\.0\.0\.1:\d+")
_OF_THE_MACHINE = ("host.", "process.", "os.", "server.port", "net.peer.port", "service.instance.id", "thread.")


def spans_jsonl(got: Sequence[tuple[str, bytes]]) -> str:
    """Every request of `/v1/traces`, a line each."""
    return _lines(got, "/v1/traces", ExportTraceServiceRequest)


def logs_jsonl(got: Sequence[tuple[str, bytes]]) -> str:
    """Every request of `/v1/logs`, a line each."""
    return _lines(got, "/v1/logs", ExportLogsServiceRequest)


def _lines(got: Sequence[tuple[str, bytes]], path: str, kind: Any) -> str:
    lines = []
    for asked, body in got:
        if asked.endswith(path):
            request = MessageToDict(kind.FromString(body), use_integers_for_enums=True)
            lines.append(compact(scrubbed(hex_ids(request))) + "\n")
    return "".join(lines)


def scrubbed(value: Any) -> Any:
    """A JSON value without what belongs to the machine."""
    return _scrub(clean_json(value))


def _scrub(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _scrub(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_scrub(item) for item in value if not _is_of_the_machine(item)]
    return _PORT.sub("127.0.0.1:8000", value) if isinstance(value, str) else value


def _is_of_the_machine(item: Any) -> bool:
    return isinstance(item, dict) and str(item.get("key", "")).startswith(_OF_THE_MACHINE)
