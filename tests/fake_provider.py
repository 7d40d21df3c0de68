"""A scripted OpenAI-compatible provider on loopback: answers, faults, caching and batches as real ones do them.

`Provider(script)` runs an HTTP server in a thread of its own. The script is a function from `Request` to
an action; what it returns is what the client meets. Every request and every completed answer is logged.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

CHARACTERS_PER_TOKEN = 4
CACHE_STEP, CACHE_LEAST = 128, 1024  # tokens, as OpenAI documents its automatic prefix cache


@dataclass(frozen=True, kw_only=True)
class Request:
    """One chat request: its JSON body and headers, and `number`, counted from 0 over all chat requests."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    number: int

    @property
    def prompt(self) -> str:
        return "\n".join(_content(message["content"]) for message in self.body["messages"])


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A completion. `trickle_s` sends the body byte by byte over so many seconds; `after_s` waits first."""

    text: str | None
    finish_reason: str = "stop"
    refusal: str | None = None
    after_s: float = 0.0
    trickle_s: float = 0.0
    completion_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Status:
    """An error answer in OpenAI's form."""

    code: int
    message: str = "scripted"
    type: str = "scripted_error"
    param: str | None = None
    error_code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reset:
    """The connection is cut without an answer."""


@dataclass(frozen=True)
class Hang:
    """Nothing is ever answered."""


@dataclass(frozen=True)
class Raw:
    """An answer of status 200 whose body is no completion."""

    body: bytes


@dataclass(frozen=True)
class Cut:
    """A completion whose connection ends in the middle of the body, announced by its length or in chunks."""

    text: str
    in_chunks: bool = False


Action = Answer | Status | Reset | Hang | Raw | Cut
Script = Callable[[Request], Action]


def verdict(score: int | None = 2, **changes: Any) -> str:
    """The text of a readable answer."""
    content: dict[str, Any] = {
        "criteria": "c",
        "rationale": "r",
        "findings": [],
        "score": score,
        "not_applicable": None,
    }
    return json.dumps({**content, **changes})


def in_turn(*actions: Action) -> Script:
    """Each action once, the last one for ever."""
    return lambda request: actions[min(request.number, len(actions) - 1)]


@dataclass(kw_only=True)
class Log:
    """What the provider saw: `completed` are the request numbers whose answer was sent whole; UNIX `times`."""

    requests: list[Request] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    times: list[float] = field(default_factory=list)


class Provider:
    """The server. Use as a context manager; `base_url` is what `api_base` takes."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.log = Log()
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.batch_polls_until_done = 1
        self._seen_prefixes: set[bytes] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready = threading.Event()
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Provider:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=512))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (head := await _head(reader)) is not None:
                method, path, headers = head
                body = await _body(reader, headers)
                if not await self._answer(writer, method, path, headers, body):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away (a test killed it), or the server is closing
        finally:
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _answer(
        self, writer: asyncio.StreamWriter, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> bool:
        if path.endswith(("/chat/completions", "/messages")):  # the second is Anthropic's, for errors alone
            return await self._chat(writer, headers, json.loads(body))
        content = self._batch_route(method, path, headers, body)
        await _send(writer, 200 if content is not None else 404, content if content is not None else b"{}")
        return True

    async def _chat(self, writer: asyncio.StreamWriter, headers: dict[str, str], body: dict[str, Any]) -> bool:
        request = Request(body=body, headers=headers, number=len(self.log.requests))
        self.log.requests.append(request)
        self.log.times.append(time.time())
        self.log.in_flight += 1
        self.log.most_in_flight = max(self.log.most_in_flight, self.log.in_flight)
        try:
            return await self._act(writer, request, self.script(request))
        finally:
            self.log.in_flight -= 1

    async def _act(self, writer: asyncio.StreamWriter, request: Request, action: Action) -> bool:
        if isinstance(action, Hang):
            await asyncio.sleep(3600)
        if isinstance(action, Reset):
            writer.transport.abort()
            return False
        if isinstance(action, Status):
            await _send(writer, action.code, _error(action), action.headers)
            return True
        if isinstance(action, Raw):
            await _send(writer, 200, action.body)
            return True
        if isinstance(action, Cut):
            whole = json.dumps(self.completion(request, Answer(text=action.text))).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
            opening = b"transfer-encoding: chunked\r\n\r\n%x\r\n" if action.in_chunks else b"content-length: %d\r\n\r\n"
            writer.write(opening % len(whole) + whole[: len(whole) // 2])
            await writer.drain()
            writer.close()
            return False
        assert isinstance(action, Answer)
        await asyncio.sleep(action.after_s)
        content = json.dumps(self.completion(request, action)).encode()
        await _send(writer, 200, content, trickle_s=action.trickle_s)
        self.log.completed.append(request.number)
        return True

    def completion(self, request: Request, action: Answer) -> dict[str, Any]:
        """The body of an answer, in the form asked for (text or tool call), with usage and cached tokens."""
        message: dict[str, Any] = {"role": "assistant", "content": action.text}
        if request.body.get("tools") and action.text is not None:
            function = {"name": request.body["tools"][0]["function"]["name"], "arguments": action.text}
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        if action.refusal is not None:
            message |= {"content": None, "refusal": action.refusal}
        prompt_tokens = len(request.prompt) // CHARACTERS_PER_TOKEN
        said = len(action.text or "") // CHARACTERS_PER_TOKEN
        completion_tokens = said if action.completion_tokens is None else action.completion_tokens
        return {
            "id": f"chatcmpl-{request.number}",
            "object": "chat.completion",
            "created": 1,
            "model": request.body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": action.finish_reason}],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
                "prompt_tokens_details": {"cached_tokens": self._cached(request.prompt)},
            },
        }

    def _cached(self, prompt: str) -> int:
        """Tokens of the longest prefix seen before, in steps of 128 from 1,024 on; remembers this prompt."""
        digest, cached, step = hashlib.sha1(usedforsecurity=False), 0, CACHE_STEP * CHARACTERS_PER_TOKEN
        for end in range(step, len(prompt) + 1, step):
            digest.update(prompt[end - step : end].encode("utf-8", "replace"))
            key = digest.digest()
            if key in self._seen_prefixes:
                cached = end // CHARACTERS_PER_TOKEN
            self._seen_prefixes.add(key)
        return cached if cached >= CACHE_LEAST else 0

    # batches: files and jobs as OpenAI's interface has them ------------------------------------------------------

    def _batch_route(self, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes | None:
        steps = path.partition("/v1/")[2].strip("/").split("/")
        match (method, *steps):
            case ("POST", "files"):
                return self._new_file(_uploaded(headers, body))
            case ("GET", "files", name, "content"):
                return self.files[name]
            case ("GET", "files", name):
                return _json(_file_object(name, len(self.files[name])))
            case ("POST", "batches"):
                return self._new_batch(json.loads(body))
            case ("GET", "batches", name):
                return self._poll(name)
        return None

    def _new_file(self, content: bytes) -> bytes:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return _json(_file_object(name, len(content)))

    def _new_batch(self, wish: dict[str, Any]) -> bytes:
        name = f"batch_{len(self.batches)}"
        self.batches[name] = {
            "id": name, "object": "batch", "endpoint": wish["endpoint"], "input_file_id": wish["input_file_id"],
            "completion_window": "24h", "status": "in_progress", "created_at": 1, "polls": 0,
            "metadata": wish.get("metadata"),
        }  # fmt: skip
        return _json(self.batches[name])

    def _poll(self, name: str) -> bytes:
        batch = self.batches[name]
        batch["polls"] += 1
        if batch["status"] == "in_progress" and batch["polls"] >= self.batch_polls_until_done:
            lines = [self._batch_line(json.loads(line)) for line in self.files[batch["input_file_id"]].splitlines()]
            output = f"file-{len(self.files)}"
            self.files[output] = b"\n".join(_json(line) for line in lines)
            batch |= {"status": "completed", "output_file_id": output}
        return _json(batch)

    def _batch_line(self, line: dict[str, Any]) -> dict[str, Any]:
        request = Request(body=line["body"], headers={}, number=len(self.log.requests))
        self.log.requests.append(request)
        action = self.script(request)
        if isinstance(action, Answer):
            self.log.completed.append(request.number)
            response = {"status_code": 200, "request_id": "r", "body": self.completion(request, action)}
        else:
            assert isinstance(action, Status)
            response = {"status_code": action.code, "request_id": "r", "body": json.loads(_error(action))}
        return {"id": f"l{request.number}", "custom_id": line["custom_id"], "response": response, "error": None}


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


def _error(action: Status) -> bytes:
    inner = {"message": action.message, "type": action.type, "param": action.param, "code": action.error_code}
    return json.dumps({"error": inner}).encode()


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content).encode()


def _file_object(name: str, size: int) -> dict[str, Any]:
    return {
        "id": name, "object": "file", "bytes": size, "created_at": 1, "filename": f"{name}.jsonl",
        "purpose": "batch", "status": "processed",
    }  # fmt: skip


def _uploaded(headers: Mapping[str, str], body: bytes) -> bytes:
    """The content of the part named `file` of a multipart form."""
    boundary = headers["content-type"].partition("boundary=")[2].strip('"').encode()
    for part in body.split(b"--" + boundary):
        head, _, content = part.partition(b"\r\n\r\n")
        if b'name="file"' in head:
            return content.removesuffix(b"\r\n")
    raise AssertionError("no file in the upload")


async def _head(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]] | None:
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while (line := await reader.readline()) not in {b"\r\n", b"\n", b""}:
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return method, path, headers


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    pieces = []
    while (size := int((await reader.readline()).split(b";")[0], 16)) > 0:
        pieces.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(pieces)


async def _send(
    writer: asyncio.StreamWriter,
    code: int,
    content: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    trickle_s: float = 0.0,
) -> None:
    lines = [f"HTTP/1.1 {code} X", "content-type: application/json", f"content-length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    if trickle_s == 0:
        writer.write(content)
    else:
        for position in range(len(content)):
            writer.write(content[position : position + 1])
            await writer.drain()
            await asyncio.sleep(trickle_s / len(content))
    await writer.drain()
