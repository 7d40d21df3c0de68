"""Writes recorded spans in the form of the TRAIL data set: nested spans of 19 keys, every attribute a string."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from opentelemetry.sdk.trace import Event, ReadableSpan
from recording_ids import identifier

_MESSAGE = re.compile(r"(llm\.input_messages\.\d+|llm\.output_messages\.\d+)\.message\.(.+)")
_CONTENT = re.compile(r"contents\.0\.message_content\.(type|text)")


def trail_trace(
    spans: Sequence[ReadableSpan], *, seed: str, logs: Mapping[str, Any], project: Mapping[str, str]
) -> str:
    """The trace as JSON text; `logs` gives for a span's name the body of the log record that hangs on it."""
    trace_id = f"{spans[0].context.trace_id:032x}"
    rows = {span.context.span_id: _span(span, seed, logs, project) for span in spans}
    roots = []
    for span in spans:
        row = rows[span.context.span_id]
        (rows[span.parent.span_id]["child_spans"] if span.parent else roots).append(row)
    return json.dumps({"trace_id": trace_id, "spans": roots}, indent=4, ensure_ascii=True)


def _span(span: ReadableSpan, seed: str, logs: Mapping[str, Any], project: Mapping[str, str]) -> dict[str, Any]:
    resource = {key: str(value) for key, value in sorted(span.resource.attributes.items())}
    scope = span.instrumentation_scope
    row = {
        "timestamp": _time(span.start_time) + "Z",
        "trace_id": f"{span.context.trace_id:032x}",
        "span_id": f"{span.context.span_id:016x}",
        "parent_span_id": f"{span.parent.span_id:016x}" if span.parent else None,
        "trace_state": "",
        "span_name": span.name,
        "span_kind": "Internal",
        "service_name": resource["service.name"],
        "resource_attributes": resource,
        "scope_name": scope.name,
        "scope_version": scope.version or "",
        "span_attributes": dict(sorted((_attributes(span.attributes or {}) | project).items())),
        "duration": _duration((span.end_time - span.start_time) / 1e9),
        "status_code": span.status.status_code.name.capitalize(),
        "status_message": span.status.description or "",
        "events": [
            {
                "Timestamp": _time(event.timestamp),
                "Name": event.name,
                "Attributes": {key: str(value) for key, value in sorted((event.attributes or {}).items())},
            }
            for event in _once(span.events)
        ],
        "links": [],
        "logs": [],
        "child_spans": [],
    }
    if span.name in logs and scope.name == "patronus.sdk":
        row["logs"] = [_log(row, logs[span.name], _time(span.end_time), seed, project)]
    return row


def _once(events: Sequence[Event]) -> list[Event]:
    """Today's instrumentation records the exception of a step twice; TRAIL's did so once."""
    kept: dict[tuple[Any, ...], Event] = {}
    for event in events:
        attributes = event.attributes or {}
        kept.setdefault((event.name, attributes.get("exception.type"), attributes.get("exception.message")), event)
    return list(kept.values())


def _log(row: Mapping[str, Any], body: Any, time: str, seed: str, project: Mapping[str, str]) -> dict[str, Any]:
    number = identifier(f"{seed} log {row['span_name']}", 32)
    return {
        "timestamp": time,
        "trace_id": row["trace_id"],
        "span_id": row["span_id"],
        "trace_flags": 1,
        "severity_text": "INFO",
        "severity_number": 9,
        "service_name": row["service_name"],
        "body": body,
        "resource_schema_url": "",
        "resource_attributes": row["resource_attributes"],
        "scope_schema_url": "",
        "scope_name": row["scope_name"],
        "scope_version": "",
        "scope_attributes": {},
        "log_attributes": {
            "pat.app": project["pat.app"],
            "pat.log.id": "-".join((number[:8], number[8:12], number[12:16], number[16:20], number[20:])),
            "pat.log.type": "trace",
            "pat.project.id": project["pat.project.id"],
            "pat.project.name": project["pat.project.name"],
        },
        "evaluations": [],
        "annotations": [],
    }


def _attributes(recorded: Mapping[str, Any]) -> dict[str, str]:
    """Attribute names and shapes as the instrumentation wrote them when TRAIL was recorded (0.1.6, 0.1.8)."""
    kept: dict[str, str] = {}
    for key, value in recorded.items():
        found = _MESSAGE.fullmatch(key)
        part = _CONTENT.fullmatch(found[2]) if found else None
        if part is None:
            kept[key] = _text(value)
        elif part[1] == "text":
            kept[f"{found[1]}.message.content"] = _text(value)
    if kept.get("openinference.span.kind") == "LLM":
        _restate_messages(kept)
    if kept.get("tool.name") == "final_answer":
        kept = {key: value for key, value in kept.items() if not key.startswith("output.")}
    return kept


def _restate_messages(kept: dict[str, str]) -> None:
    """`input.value` and `output.value` as JSON of plain messages, where the SDK's attribute limit left them."""
    if "input.value" in kept:
        value = json.loads(kept["input.value"])
        asked = {
            "messages": _messages(kept),
            "stop_sequences": value.get("stop_sequences"),
            "grammar": None,
            "tools_to_call_from": value.get("tools_to_call_from"),
            "kwargs": value.get("kwargs", {}),
        }
        kept["input.value"] = json.dumps(asked)
    if "output.value" in kept:
        prefix = "llm.output_messages.0.message."
        kept["output.value"] = json.dumps(
            {"role": "assistant", "content": kept.get(f"{prefix}content"), "tool_calls": _tool_calls(kept, prefix)}
        )


def _messages(kept: Mapping[str, str]) -> list[dict[str, Any]]:
    said = []
    while (role := kept.get(f"llm.input_messages.{len(said)}.message.role")) is not None:
        text = kept[f"llm.input_messages.{len(said)}.message.content"]
        said.append({"role": role, "content": [{"type": "text", "text": text}]})
    return said


def _tool_calls(kept: Mapping[str, str], prefix: str) -> list[dict[str, Any]] | None:
    call = f"{prefix}tool_calls.0.tool_call."
    if f"{call}function.name" not in kept:
        return None
    return [
        {
            "function": {
                "arguments": json.loads(kept[f"{call}function.arguments"]),
                "name": kept[f"{call}function.name"],
                "description": None,
            },
            "id": kept[f"{call}id"],
            "type": "function",
        }
    ]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(list(value)) if isinstance(value, (list, tuple)) else str(value)


def _time(nanoseconds: int) -> str:
    whole, micro = divmod(nanoseconds // 1_000, 1_000_000)
    return datetime.fromtimestamp(whole, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{micro:06d}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds * 1e6), 60_000_000)
    second = f"{rest / 1e6:.6f}".rstrip("0").rstrip(".")
    return f"PT{minutes}M{second}S" if minutes else f"PT{second}S"
