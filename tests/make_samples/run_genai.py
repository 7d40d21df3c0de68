"""Makes data/samples/otel_sdk/genai: the OpenAI client under the GenAI conventions, against a stub on loopback.

The text of the messages is in the log records beside the spans, as these conventions have it by default.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"

from openai import OpenAI
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from otlp_form import sdk_lines
from paths import SAMPLES, write
from recording import StartOrder, fixed

START_US = 1_772_702_100_000_000  # 2026-03-05 09:15 UTC
QUESTION = "How much is a return ticket to Orm for two adults?"
TOOL = {
    "type": "function",
    "function": {
        "name": "ticket_price",
        "description": "The price of a single ticket in crowns.",
        "parameters": {"type": "object", "properties": {"harbour": {"type": "string"}}, "required": ["harbour"]},
    },
}
CALL = {
    "id": "call_price_1",
    "type": "function",
    "function": {"name": "ticket_price", "arguments": '{"harbour": "Orm"}'},
}
REPLIES: Sequence[Mapping[str, Any]] = (
    {"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}, "finish_reason": "tool_calls"},
    {
        "message": {"role": "assistant", "content": "Two adults pay 96 crowns for the way there and back."},
        "finish_reason": "stop",
    },
)


class _Stub(BaseHTTPRequestHandler):
    """Answers the first request with the first reply and so on."""

    replies: ClassVar = list(REPLIES)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.replies.pop(0)
        told, written = len(json.dumps(asked["messages"])) // 4, len(json.dumps(reply["message"])) // 4
        body = json.dumps(
            {
                "id": f"chatcmpl-{len(self.replies)}",
                "object": "chat.completion",
                "created": START_US // 1_000_000,
                "model": "harbour-1",
                "choices": [{"index": 0, **reply}],
                "usage": {"prompt_tokens": told, "completion_tokens": written, "total_tokens": told + written},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def converse(client: OpenAI, tracer: Any) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "You sell ferry tickets. Look prices up; never guess them."},
        {"role": "user", "content": QUESTION},
    ]
    with tracer.start_as_current_span("invoke_agent ticket desk", attributes=_agent()):
        first = client.chat.completions.create(model="harbour-1", messages=messages, tools=[TOOL])  # type: ignore[call-overload]
        call = first.choices[0].message.tool_calls[0]
        with tracer.start_as_current_span("execute_tool ticket_price", attributes=_tool(call.id)):
            price = "48"
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": price}]
        client.chat.completions.create(model="harbour-1", messages=messages, tools=[TOOL])  # type: ignore[call-overload]


def _agent() -> dict[str, str]:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ticket desk", "gen_ai.system": "openai"}


def _tool(call_id: str) -> dict[str, str]:
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ticket_price", "gen_ai.tool.call.id": call_id}


def record() -> tuple[list[ReadableSpan], list[Mapping[str, Any]]]:
    resource = Resource({"service.name": "ticket-desk", "telemetry.sdk.language": "python"})
    spans, records = StartOrder(), InMemoryLogRecordExporter()
    tracers, loggers = TracerProvider(resource=resource), LoggerProvider(resource=resource)
    tracers.add_span_processor(spans)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
    OpenAIInstrumentor().instrument(tracer_provider=tracers, logger_provider=loggers)
    server = HTTPServer(("127.0.0.1", 0), _Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        client = OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none")
        converse(client, tracers.get_tracer("ticket-desk"))
    finally:
        server.shutdown()
    return spans.spans, [json.loads(item.to_json(indent=None)) for item in records.get_finished_logs()]


def _fixed_log(log: Mapping[str, Any], place: Mapping[str, ReadableSpan]) -> dict[str, Any]:
    """The record with the ids of the rewritten spans, and the time its span began."""
    span = place[log["span_id"]]
    began = json.loads(span.to_json())["start_time"]
    return {
        **log,
        "trace_id": f"0x{span.context.trace_id:032x}",
        "span_id": f"0x{span.context.span_id:016x}",
        "timestamp": None if log["timestamp"] is None else began,
        "observed_timestamp": began,
    }


def main() -> None:
    recorded, logs = record()
    spans = [_without_port(span) for span in fixed(recorded, seed="genai", start_us=START_US)]
    place = {f"0x{old.context.span_id:016x}": new for old, new in zip(recorded, spans, strict=True)}
    write(SAMPLES / "otel_sdk" / "genai" / "tickets.spans.jsonl", sdk_lines(spans))
    lines = "".join(json.dumps(_fixed_log(log, place), ensure_ascii=False) + "\n" for log in logs)
    write(SAMPLES / "otel_sdk" / "genai" / "tickets.logs.jsonl", lines)


def _without_port(span: ReadableSpan) -> ReadableSpan:
    """The stub's port changes from run to run."""
    kept = {key: value for key, value in (span.attributes or {}).items() if key != "server.port"}
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=kept,
        events=span.events,
        kind=span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


if __name__ == "__main__":
    main()
