"""The routes of the annotator's desk: the trace, bodies when asked for, search, and labels as operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracejury.app.api.comments import comment_routes
from tracejury.app.api.documents import DOCUMENTS, Documents
from tracejury.app.api.packing import json_bytes, unpacked
from tracejury.app.api.reveal import reveal_routes
from tracejury.app.api.rights import ClosedAccountError, checked
from tracejury.app.api.settings import settings_routes
from tracejury.app.grants import Grant, TokenError
from tracejury.app.session import workspace
from tracejury.ingest.media import find_media
from tracejury.ingest.parse import parse_json
from tracejury.ingest.store import load, read_transaction
from tracejury.ingest.trace import IngestError
from tracejury.judging.labels.apply_ops import Applied, apply_ops
from tracejury.judging.labels.ops import OpError, read_ops
from tracejury.judging.store import Workspace

BODY_LIMIT = 4_000_000  # bytes of one request
STRETCH_LIMIT = 64  # blocks of one answer
LAYOUT_LIMIT = 200  # texts of one answer
_FRESH = {"Cache-Control": "no-store"}

Answer = tuple[int, Any]


class RefusedError(Exception):
    """A request that is not served; `status` is the HTTP code, `remedy` what the person can do."""

    def __init__(self, status: int, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.status, self.reason, self.remedy = status, reason, remedy


def work_routes(space: Callable[[], Workspace], documents: Documents | None = None) -> tuple[Route, ...]:
    """The routes over a workspace that is opened when the first request comes."""
    documents = documents or Documents(space)

    async def operations(request: Request) -> Response:
        body = await _body(request)
        return await _answered(lambda: _operations(space(), body))

    async def trace(request: Request) -> Response:
        takes_gzip = "gzip" in request.headers.get("accept-encoding", "")
        opening = documents.whole if request.query_params.get("rest") == "1" else documents.opening
        return await _read(request, lambda grant: _opening(opening(grant), takes_gzip=takes_gzip))

    async def span(request: Request) -> Response:
        first, count = int(request.path_params["seq"]), min(_number(request, "count", 1), STRETCH_LIMIT)
        whole = request.query_params.get("whole") == "1"
        return await _read(request, lambda grant: documents.get(grant).stretch(first, count, whole=whole))

    async def layout(request: Request) -> Response:
        names = request.query_params.get("texts", "").split(",")[:LAYOUT_LIMIT]
        return await _read(request, lambda grant: documents.get(grant).layouts(names))

    async def search(request: Request) -> Response:
        query = request.query_params.get("q", "")
        return await _read(request, lambda grant: {"hits": documents.get(grant).search(query) if query else []})

    async def text(request: Request) -> Response:
        return await _read(request, lambda grant: _judge_text(documents, grant))

    async def media(request: Request) -> Response:
        digest = request.path_params["digest"]
        return await _read(request, lambda grant: _media(space(), grant, digest))

    async def _read(request: Request, cut: Callable[[Grant], Any]) -> Response:
        trace_id, token = request.path_params["trace_id"], request.query_params.get("token")
        return await _answered(lambda: _reading(space(), trace_id, token, cut))

    return (
        Route("/api/ops", operations, methods=["POST"]),
        Route("/api/trace/{trace_id:path}", trace),
        Route("/api/span/{trace_id:path}/{seq:int}", span),
        Route("/api/layout/{trace_id:path}", layout),
        Route("/api/search/{trace_id:path}", search),
        Route("/api/text/{trace_id:path}", text),
        Route("/api/media/{trace_id:path}/{digest:str}", media),
        *comment_routes(space),
        *reveal_routes(space),
        *settings_routes(space),
    )


def _opening(gzipped: bytes, *, takes_gzip: bool) -> Response:
    headers = {**_FRESH, "Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if takes_gzip else {})
    return Response(gzipped if takes_gzip else unpacked(gzipped), 200, headers, "application/json")


def _judge_text(documents: Documents, grant: Grant) -> bytes:
    """What `tracejury text` prints: the text that a judge reads, byte for byte."""
    text = documents.get(grant).judge_text
    if text is None:
        raise RefusedError(403, "the judge's view contains names that this queue hides", "submit the trace first")
    return text.encode()


def _media(space: Workspace, grant: Grant, digest: str) -> Response:
    """A picture, sound or film of the trace from our own bytes, as nothing else."""
    with read_transaction(space.engine) as connection:
        media = find_media(load(connection, grant.subject, with_logs=False), digest)
    if media is None:
        reason = "the trace holds no picture, sound or film of this hash that browsers show"
        raise RefusedError(404, reason, "look at the file that the trace came from")
    headers = {**_FRESH, "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}
    return Response(media.data, 200, headers, media.kind)


def _reading(space: Workspace, trace_id: str, token: object, cut: Callable[[Grant], Any]) -> Answer:
    grant = checked(space, token, subject=trace_id)
    try:
        return 200, cut(grant)
    except KeyError as error:
        raise RefusedError(404, f"no trace {trace_id!r} in this workspace", "choose a trace from the list") from error


def _operations(space: Workspace, body: bytes | None) -> Answer:
    if body is None:
        raise RefusedError(
            413, f"more than {BODY_LIMIT // 1_000_000} MB in one request", "shorten the text that was pasted"
        )
    batch = _batch(body)
    trace_id, base = str(batch.get("trace_id")), batch.get("base_revision")
    grant = checked(space, batch.get("token"), subject=trace_id)
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
        batch = parse_json(body)
    except IngestError as error:
        raise RefusedError(
            422, f"the request is not JSON: {error}", "reload the page; unsaved labels stay in this browser"
        ) from error
    if not isinstance(batch, dict):
        raise RefusedError(
            422, "the request is not a JSON object", "reload the page; unsaved labels stay in this browser"
        )
    return batch


async def _body(request: Request) -> bytes | None:
    """The request's bytes, None where they are more than `BODY_LIMIT`."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > BODY_LIMIT:
            return None
    return bytes(received)


async def _answered(work: Callable[[], Answer]) -> Response:
    try:
        status, body = await run_in_threadpool(work)
    except ClosedAccountError as error:
        status, body = error.status, {"error": str(error), "remedy": error.remedy, "is_closed": True}
    except TokenError as error:
        status, body = (
            error.status,
            {"error": str(error), "remedy": "reload the page; unsaved labels stay in this browser"},
        )
    except OpError as error:
        status, body = 422, {"error": error.reason, "remedy": error.remedy, "op_id": error.op_id}
    except RefusedError as error:
        status, body = error.status, {"error": error.reason, "remedy": error.remedy}
    if isinstance(body, Response):
        return body
    if isinstance(body, bytes):
        return Response(body, status, _FRESH, "text/plain; charset=utf-8")
    return Response(json_bytes(body), status, _FRESH, "application/json")


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 9 else default


ROUTES = work_routes(workspace, DOCUMENTS)
