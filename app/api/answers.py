"""How a route answers: JSON or a named refusal, from work done in a thread; traces read once."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.exc import DatabaseError, InterfaceError, OperationalError, TimeoutError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tracejury.app.api.packing import json_bytes
from tracejury.app.commands.faults import error_words
from tracejury.app.grants import TokenError
from tracejury.app.guard import host_of_origin
from tracejury.ingest.store import load, read_transaction, schema
from tracejury.judging.judges.trace_text import TraceText, render_trace
from tracejury.judging.store import Workspace

_OF_THE_MACHINE = (OperationalError, InterfaceError, TimeoutError, OSError, MemoryError)
_ASK = "Try again in a while. Whoever runs Tracejury finds the reason in its log."
_log = logging.getLogger(__name__)
BODY_LIMIT = 1_000_000  # bytes of one request
_KEPT = 8
_FRESH = {"Cache-Control": "no-store"}


class NotServedError(Exception):
    """A request that is not served; `status` is the HTTP code, `remedy` what the person can do."""

    def __init__(self, status: int, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.status, self.reason, self.remedy = status, reason, remedy


class MachineFaults:
    """Answers 503 where the machine fails a route, by a full disk or a database that is away; the log says which.

    The sender may send again: what was sent is stored whole or not at all. A stranger learns no detail.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def sent(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, sent)
        except Exception as error:
            if has_begun or scope["type"] != "http" or not _is_of_the_machine(error):
                raise
            _log.error("%s: %s", scope["path"], error_words(error))
            await _machine_fault()(scope, receive, sent)


def _is_of_the_machine(error: Exception) -> bool:
    """Whether it is none of ours: of the database's errors, damage is the only one without a class of its own."""
    return isinstance(error, _OF_THE_MACHINE) or type(error) is DatabaseError


def _machine_fault() -> Response:
    answer = _json({"error": "the server's disk, memory or database failed", "remedy": _ASK}, 503)
    answer.headers["Retry-After"] = "30"
    return answer


async def answered(work: Callable[[], Any]) -> Response:
    """The JSON of what `work` gives (or its own `Response`), else a refusal that says why."""
    try:
        answer = await run_in_threadpool(work)
    except TokenError as error:
        return _json({"error": str(error), "remedy": error.remedy}, error.status)
    except NotServedError as error:
        return _refusal(error)
    return answer if isinstance(answer, Response) else _json(answer, 200)


async def answered_body(request: Request, work: Callable[[dict[str, Any]], Any]) -> Response:
    """As `answered`, where `work` takes the request's JSON object; what is none is refused."""
    try:
        body = await json_body(request)
    except NotServedError as error:
        return _refusal(error)
    return await answered(lambda: work(body))


async def json_body(request: Request) -> dict[str, Any]:
    """The request's JSON object. Raises `NotServedError` for anything else, and for more than `BODY_LIMIT` bytes."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > BODY_LIMIT:
            raise NotServedError(413, "the request is too large", "reload the page")
    try:
        body = orjson.loads(received)
    except orjson.JSONDecodeError as error:
        raise NotServedError(422, f"the request is not JSON: {error}", "reload the page") from error
    if not isinstance(body, dict):
        raise NotServedError(422, "the request is not a JSON object", "reload the page")
    return body


class Readings:
    """The readings opened last, by trace and content: a trace that grows is read again."""

    def __init__(self, space: Callable[[], Workspace]) -> None:
        self._space = space
        self._kept: OrderedDict[tuple[str, str], TraceText] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, trace_id: str) -> TraceText:
        """The reading of a trace. Raises `NotServedError` for an unknown one."""
        with read_transaction(self._space().engine) as connection:
            digest = connection.scalar(select(schema.trace.c.digest).where(schema.trace.c.trace_id == trace_id))
            if digest is None:
                raise NotServedError(404, f"no trace {trace_id!r} in this workspace", "choose a trace from the list")
            key = (trace_id, str(digest))
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key]
            fresh = render_trace(load(connection, trace_id, with_logs=False))
        with self._lock:
            self._kept[key] = fresh
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return fresh


def _refusal(error: NotServedError) -> Response:
    return _json({"error": error.reason, "remedy": error.remedy}, error.status)


def _json(body: Any, status: int) -> Response:
    return Response(json_bytes(body), status, _FRESH, "application/json")


def is_from_here(request: Request) -> bool:
    """Whether our own page sent the form: the browser says so; where it says nothing, the origin must be ours."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin")
    return origin is None or (host_of_origin(origin) or None) == request.headers.get("host")
