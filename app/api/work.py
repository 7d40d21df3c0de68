"""The routes of the annotator's desk: the trace, bodies when asked for, search, and labels as operations."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import orjson
from sqlalchemy import Connection, Row, select
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.components.annotator.payload import SPAN_FIELDS, Document, document, outline
from app.grants import TokenError, check
from app.session import workspace
from ingest.store import load, reading, schema
from judging.ledger import Workspace
from judging.ledger.labels import Applied, apply_ops
from judging.ledger.ops import OpError, read_ops
from judging.reading import read

BODY_LIMIT = 4_000_000  # bytes of one request
STRETCH_LIMIT = 64  # blocks of one answer
LONG_TRACE = 3_000  # spans: a longer trace opens with its outline, texts follow
_KEPT_DOCUMENTS = 8

Answer = tuple[int, Any]


class RefusedError(Exception):
    """A request that is not served; `status` is the HTTP code, `remedy` what the person can do."""

    def __init__(self, status: int, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.status, self.reason, self.remedy = status, reason, remedy


def work_routes(space: Callable[[], Workspace]) -> tuple[Route, ...]:
    """The routes over a workspace that is opened when the first request comes."""
    documents = Documents(space)

    async def operations(request: Request) -> Response:
        body = await _body(request)
        return await _answered(lambda: _operations(space(), body))

    async def trace(request: Request) -> Response:
        if request.query_params.get("rest") == "1":
            return await _read(request, lambda trace_id: documents.get(trace_id).opening())
        return await _read(request, documents.opening)

    async def span(request: Request) -> Response:
        first, count = int(request.path_params["seq"]), min(_number(request, "count", 1), STRETCH_LIMIT)
        whole = request.query_params.get("whole") == "1"
        return await _read(request, lambda trace_id: documents.get(trace_id).stretch(first, count, whole=whole))

    async def search(request: Request) -> Response:
        query = request.query_params.get("q", "")
        return await _read(request, lambda trace_id: {"hits": documents.get(trace_id).search(query) if query else []})

    async def _read(request: Request, cut: Callable[[str], Any]) -> Response:
        trace_id, token = request.path_params["trace_id"], request.query_params.get("token")
        return await _answered(lambda: _reading(space(), trace_id, token, lambda: cut(trace_id)))

    return (
        Route("/api/ops", operations, methods=["POST"]),
        Route("/api/trace/{trace_id:path}", trace),
        Route("/api/span/{trace_id:path}/{seq:int}", span),
        Route("/api/search/{trace_id:path}", search),
    )


class Documents:
    """The documents opened last, so that bodies and searches need no second reading of the trace."""

    def __init__(self, space: Callable[[], Workspace]) -> None:
        self._space = space
        self._kept: OrderedDict[str, Future[Document]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, trace_id: str) -> Document:
        """The document of a trace (a stored trace never changes). Raises `KeyError` for an unknown one.

        Requests that come while it is being read wait for that one reading.
        """
        with self._lock:
            known = self._kept.get(trace_id)
            future: Future[Document] = known or Future()
            self._kept[trace_id] = future
            self._kept.move_to_end(trace_id)
            while len(self._kept) > _KEPT_DOCUMENTS:
                self._kept.popitem(last=False)
        if known is None:
            self._fill(trace_id, future)
        return future.result()

    def opening(self, trace_id: str) -> Any:
        """What the island opens with: everything that is needed first, or of a long trace its outline."""
        if not self._is_kept(trace_id):
            with reading(self._space().engine) as connection:
                head = connection.execute(select(schema.trace).where(schema.trace.c.trace_id == trace_id)).one_or_none()
                if head is not None and head.spans > LONG_TRACE:
                    return _outline(connection, head)
        return self.get(trace_id).opening()

    def _is_kept(self, trace_id: str) -> bool:
        with self._lock:
            return trace_id in self._kept and self._kept[trace_id].done()

    def _fill(self, trace_id: str, future: Future[Document]) -> None:
        try:
            with reading(self._space().engine) as connection:
                trace = load(connection, trace_id, with_logs=False)
            future.set_result(document(trace, read(trace)))
        except BaseException as error:  # those who wait must hear of it; the next request tries again
            with self._lock:
                self._kept.pop(trace_id, None)
            future.set_exception(error)


def _outline(connection: Connection, head: Row[Any]) -> Any:
    columns = [schema.span.c[name] for name in SPAN_FIELDS]
    rows = select(*columns).where(schema.span.c.trace_key == head.trace_key).order_by(schema.span.c.seq)
    return outline(head, map(tuple, connection.execute(rows)), orjson.loads(head.warnings))


def _reading(space: Workspace, trace_id: str, token: object, cut: Callable[[], Any]) -> Answer:
    check(space.secret(), token, subject=trace_id)
    try:
        return 200, cut()
    except KeyError as error:
        raise RefusedError(404, f"no trace {trace_id!r} in this workspace", "choose a trace from the list") from error


def _operations(space: Workspace, body: bytes | None) -> Answer:
    if body is None:
        raise RefusedError(
            413, f"more than {BODY_LIMIT // 1_000_000} MB in one request", "shorten the text that was pasted"
        )
    batch = _batch(body)
    trace_id, base = str(batch.get("trace_id")), batch.get("base_revision")
    grant = check(space.secret(), batch.get("token"), subject=trace_id)
    if type(base) is not int or base < 0:
        raise RefusedError(422, f"base_revision is {base!r}, not a number from 0 on", "reload the page")
    outcome = apply_ops(
        space.engine,
        annotator=grant.user,
        trace_id=trace_id,
        base_revision=base,
        ops=read_ops(batch.get("ops")),
        occasion=grant.occasion,
    )
    return (200 if isinstance(outcome, Applied) else 409), outcome._asdict()


def _batch(body: bytes) -> dict[str, Any]:
    try:
        batch = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RefusedError(
            422, f"the request is not JSON: {error}", "reload the page; unsaved labels are kept"
        ) from error
    if not isinstance(batch, dict):
        raise RefusedError(422, "the request is not a JSON object", "reload the page; unsaved labels are kept")
    return batch


async def _body(request: Request) -> bytes | None:
    """The request's bytes, None where they are more than `BODY_LIMIT`."""
    held = bytearray()
    async for chunk in request.stream():
        held += chunk
        if len(held) > BODY_LIMIT:
            return None
    return bytes(held)


async def _answered(work: Callable[[], Answer]) -> Response:
    try:
        status, body = await run_in_threadpool(work)
    except TokenError as error:
        status, body = error.status, {"error": str(error), "remedy": "reload the page; unsaved labels are kept"}
    except OpError as error:
        status, body = 422, {"error": error.reason, "remedy": error.remedy, "op_id": error.op_id}
    except RefusedError as error:
        status, body = error.status, {"error": error.reason, "remedy": error.remedy}
    return Response(_json(body), status, {"Cache-Control": "no-store"}, "application/json")


def _json(body: Any) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:  # a lone surrogate: escaped, the browser reads it
        return json.dumps(body).encode("ascii")


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 9 else default


ROUTES = work_routes(workspace)
