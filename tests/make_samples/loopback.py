"""What a sample run talks to on loopback: a scripted OpenAI-compatible provider, and a receiver of OTLP/HTTP.

The provider has no memory: which of its replies comes next is told by how many tool results the request holds,
so any framework may ask it in any order.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "harbour-1"
NO_SUCH_MODEL = {"error": {"message": "no such model", "type": "invalid_request_error", "code": "model_not_found"}}
CREATED = 1_772_702_100  # 2026-03-05 09:15 UTC
Handle = Callable[[str, bytes], tuple[int, str, bytes]]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the model says: text, or a call of one tool."""

    text: str | None = None
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arguments_text(self) -> str:
        return json.dumps(self.arguments)


@contextmanager
def served(handle: Handle) -> Iterator[str]:
    """The address of a server that answers every POST by `handle(path, body)`: status, type and body."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            status, kind, answer = handle(self.path, body)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@contextmanager
def provider(replies: Sequence[Reply]) -> Iterator[str]:
    """The base URL (`.../v1`) of a provider that gives these replies; it knows one model and refuses others."""

    def handle(path: str, body: bytes) -> tuple[int, str, bytes]:
        asked = json.loads(body)
        if asked["model"] != MODEL:
            return 404, "application/json", json.dumps(NO_SUCH_MODEL).encode()
        if path.endswith("/responses"):
            return 200, "application/json", json.dumps(_response(asked, replies)).encode()
        answer = _completion(asked, replies)
        if asked.get("stream"):
            return 200, "text/event-stream", _stream(answer)
        return 200, "application/json", json.dumps(answer).encode()

    with served(handle) as address:
        yield f"{address}/v1"


@contextmanager
def receiver() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """The address of an OTLP/HTTP receiver and the list of `(path, body)` that it has got."""
    got: list[tuple[str, bytes]] = []

    def handle(path: str, body: bytes) -> tuple[int, str, bytes]:
        got.append((path, body))
        return 200, "application/x-protobuf", b""

    with served(handle) as address:
        yield address, got


def _usage(asked: Any, reply: Reply) -> tuple[int, int]:
    return len(json.dumps(asked)) // 4, len(reply.text or reply.arguments_text) // 4 + 1


def _completion(asked: Mapping[str, Any], replies: Sequence[Reply]) -> dict[str, Any]:
    turn = sum(message["role"] == "tool" for message in asked["messages"])
    reply = replies[turn]
    told, written = _usage(asked["messages"], reply)
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.tool is not None:
        function = {"name": reply.tool, "arguments": reply.arguments_text}
        message["tool_calls"] = [{"id": f"call_{turn + 1}", "type": "function", "function": function}]
    return {
        "id": f"chatcmpl-{turn + 1}", "object": "chat.completion", "created": CREATED, "model": MODEL,
        "choices": [{
            "index": 0, "message": message, "finish_reason": "stop" if reply.tool is None else "tool_calls",
        }],
        "usage": {"prompt_tokens": told, "completion_tokens": written, "total_tokens": told + written},
    }  # fmt: skip


def _stream(answer: dict[str, Any]) -> bytes:
    """The same answer as server-sent events: the message whole in one piece, then the end, then the usage."""
    (choice,) = answer["choices"]
    base = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    calls = [{"index": number, **call} for number, call in enumerate(choice["message"].get("tool_calls", []))]
    delta = {**choice["message"], **({"tool_calls": calls} if calls else {})}
    pieces = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {**base, "choices": [], "usage": answer["usage"]},
    ]
    return "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces).encode() + b"data: [DONE]\n\n"


def _response(asked: Mapping[str, Any], replies: Sequence[Reply]) -> dict[str, Any]:
    items = asked["input"] if isinstance(asked["input"], list) else []
    turn = sum(item.get("type") == "function_call_output" for item in items)
    reply = replies[turn]
    told, written = _usage(asked["input"], reply)
    said: dict[str, Any] = {
        "id": f"msg_{turn + 1}", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
    }  # fmt: skip
    if reply.tool is not None:
        said = {
            "id": f"fc_{turn + 1}", "type": "function_call", "status": "completed", "call_id": f"call_{turn + 1}",
            "name": reply.tool, "arguments": reply.arguments_text,
        }  # fmt: skip
    return {
        "id": f"resp_{turn + 1}", "object": "response", "created_at": CREATED, "model": MODEL, "status": "completed",
        "output": [said], "error": None, "incomplete_details": None, "instructions": asked.get("instructions"),
        "metadata": {}, "parallel_tool_calls": False, "temperature": 1.0, "top_p": 1.0, "tool_choice": "auto",
        "tools": asked.get("tools", []),
        "usage": {
            "input_tokens": told, "output_tokens": written, "total_tokens": told + written,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        },
    }  # fmt: skip
