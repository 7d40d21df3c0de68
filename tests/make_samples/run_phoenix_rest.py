"""Makes tests/ingest/exports/phoenix-*.json: what a Phoenix on loopback answers when asked for the spans of a project.

Usage: `python run_phoenix_rest.py PORT`. It is sent tests/ingest/dialects/openai-agents.otlp.jsonl first.
"""

from __future__ import annotations

import base64
import json
import sys
import time
import urllib.request
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from otlp_form import IDS
from paths import DIALECTS, EXPORTS, write

ASKED = {"phoenix-spans.json": "spans", "phoenix-otlpv1.json": "spans/otlpv1"}


def in_base64(value: Any) -> Any:
    """OTLP's ids as plain protobuf JSON has them."""
    if isinstance(value, list):
        return [in_base64(item) for item in value]
    if isinstance(value, dict):
        return {
            key: base64.b64encode(bytes.fromhex(item)).decode() if key in IDS else in_base64(item)
            for key, item in value.items()
        }
    return value


def main() -> None:
    address = f"http://127.0.0.1:{sys.argv[1]}"
    for line in (DIALECTS / "openai-agents.otlp.jsonl").read_text(encoding="utf-8").splitlines():
        request = ParseDict(in_base64(json.loads(line)), ExportTraceServiceRequest()).SerializeToString()
        headers = {"Content-Type": "application/x-protobuf"}
        urllib.request.urlopen(urllib.request.Request(f"{address}/v1/traces", request, headers)).read()
    time.sleep(6)  # Phoenix stores in the background
    for name, place in ASKED.items():
        with urllib.request.urlopen(f"{address}/v1/projects/default/{place}?limit=100") as answer:
            write(EXPORTS / name, answer.read())


if __name__ == "__main__":
    main()
