"""Traces made of a few spans by hand, as OTLP JSON."""

import json
from pathlib import Path
from typing import Any

from tracejury.ingest.readers import read_bytes
from tracejury.ingest.trace import Trace

START = 1_790_000_000_000_000_000


def span(
    name: str,
    attributes: dict[str, Any] | None = None,
    *,
    parent: int | None = None,
    events: list[tuple[str, dict[str, Any]]] | None = None,
    error: str | None = None,
) -> dict[str, Any]:
    """A span of the list given to `trace`; `parent` is the place of another in it."""
    return {"name": name, "attributes": attributes or {}, "parent": parent, "events": events or [], "error": error}


def otlp(*spans: dict[str, Any], scope: str = "tests", trace_id: str = "ab" * 16) -> bytes:
    """The spans as an OTLP JSON request, a second each, one after another."""
    made = [_span(number, one, trace_id) for number, one in enumerate(spans)]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": made}]}]}).encode()


def trace(*spans: dict[str, Any], scope: str = "tests") -> Trace:
    """What the reader makes of the spans."""
    (found,) = read_bytes(otlp(*spans, scope=scope), file="hand.json")
    assert isinstance(found, Trace)
    return found


def write(file: Path, *spans: dict[str, Any], trace_id: str = "ab" * 16) -> Path:
    file.write_bytes(otlp(*spans, trace_id=trace_id))
    return file


def _span(number: int, one: dict[str, Any], trace_id: str) -> dict[str, Any]:
    start = START + number * 1_000_000_000
    made = {
        "traceId": trace_id,
        "spanId": f"{number + 1:016x}",
        "name": one["name"],
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 900_000_000),
        "attributes": _attributes(one["attributes"]),
        "events": [
            {"name": name, "timeUnixNano": str(start + place), "attributes": _attributes(fields)}
            for place, (name, fields) in enumerate(one["events"])
        ],
        "status": {} if one["error"] is None else {"code": 2, "message": one["error"]},
    }
    return made if one["parent"] is None else {**made, "parentSpanId": f"{one['parent'] + 1:016x}"}


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}
