"""The OTLP/HTTP receiver: point OTEL_EXPORTER_OTLP_ENDPOINT at the app and its traces appear.

Protocol: opentelemetry.io, "OTLP/HTTP": `/v1/traces` and `/v1/logs`, protobuf or JSON, gzip; errors as
google.rpc.Status; 429 and 503 with Retry-After are retried by exporters.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import gzip
import io
import logging
import zlib
from collections.abc import Callable
from contextlib import suppress

from aiolimiter import AsyncLimiter
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tracejury.app.api import scripts
from tracejury.app.api.answers import is_from_here
from tracejury.app.config import config
from tracejury.app.grants import TokenError
from tracejury.app.session import workspace
from tracejury.ingest.inbox import NAMES, Signal, receive, show_stragglers
from tracejury.ingest.trace import IngestError
from tracejury.judging.labels.recorded_evaluations import keep_recorded_evaluations
from tracejury.judging.store import Workspace

MAX_BODY = 64 * 1024**2  # bytes, unpacked
SMALL = 2 * 1024**2  # bytes of a body that is read beside others
UNPACKED = 20  # bytes of a trace in a packed byte, about
LARGE_AT_ONCE = 1
"""Large bodies that are held and taken apart at a time: as objects they are ten times as large; others wait."""
REQUESTS_A_SECOND = 50
CONTENT_TYPES = ("application/x-protobuf", "application/json")
"""None of those that a browser sends to another site without asking first."""
STRAGGLER_S, LOOK_EVERY_S = 600.0, 60.0
_log = logging.getLogger(__name__)


def otlp_routes(opener: Callable[[], Workspace], *, requests_a_second: float = REQUESTS_A_SECOND) -> tuple[Route, ...]:
    """The routes over a workspace that is opened when the first request comes."""
    limiter = AsyncLimiter(requests_a_second, 1)
    large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def export(request: Request) -> Response:
        """One export request: kept before it is answered."""
        refused = await run_in_threadpool(_refused, request, opener)  # it asks the store who may
        if refused is not None:
            return refused
        if not limiter.has_capacity():
            return _status(429, f"more than {requests_a_second:g} requests per second", retry_after="1")
        await limiter.acquire()
        if not _is_large(request):
            body = await _body(request)
            return body if isinstance(body, Response) else await _kept(request, opener, body)
        async with large:
            body = await _body(request)
            answer = body if isinstance(body, Response) else await _kept(request, opener, body)
            del body
            await run_in_threadpool(give_back)
            return answer

    return tuple(Route(f"/v1/{signal}", export, methods=["POST"]) for signal in NAMES)


def _is_large(request: Request) -> bool:
    """Whether a body may take much memory: packed ones and those of no declared size may."""
    size = request.headers.get("content-length", "")
    factor = UNPACKED if request.headers.get("content-encoding", "identity") != "identity" else 1
    return not size.isdecimal() or int(size) * factor > SMALL


def give_back() -> None:
    """Return to the system what a large body took: glibc keeps it for the process otherwise."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _refused(request: Request, opener: Callable[[], Workspace]) -> Response | None:
    """No page of another site may send; with sign-in on, an exporter needs a token (OTEL_EXPORTER_OTLP_HEADERS)."""
    if not is_from_here(request):
        return _status(403, "the request comes from another site: exporters send no Origin")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in CONTENT_TYPES:
        return _status(415, f"content type {kind!r}: use {' or '.join(CONTENT_TYPES)}")
    if config().sign_in == "off":
        return None
    try:
        scripts.checked_script(opener(), scripts.bearer(request), use="otlp")
    except TokenError as error:
        return _status(error.status, f"{error}: {error.remedy}")
    return None


async def _kept(request: Request, opener: Callable[[], Workspace], body: bytes) -> Response:
    signal: Signal = "logs" if request.url.path.endswith("/logs") else "traces"
    is_protobuf = "json" not in request.headers.get("content-type", "application/x-protobuf")
    try:
        receipt = await run_in_threadpool(receive, opener().engine, body, signal=signal, is_protobuf=is_protobuf)
        await run_in_threadpool(keep_recorded_evaluations, opener().engine, receipt.shown)
    except IngestError as error:
        return _status(400, f"{error.reason}; {error.remedy}")
    return _answer(signal, receipt.rejected, is_protobuf=is_protobuf)


def _answer(signal: Signal, rejected: int, *, is_protobuf: bool) -> Response:
    """Success; items that name no trace are told as OTLP's partial success."""
    answer, counted = _ANSWERS[signal]
    response = answer()
    if rejected:
        setattr(response.partial_success, counted, rejected)
        response.partial_success.error_message = "without a trace id: not stored"
    if is_protobuf:
        return Response(response.SerializeToString(), media_type="application/x-protobuf")
    return JSONResponse(MessageToDict(response))


_ANSWERS: dict[Signal, tuple[type[ExportTraceServiceResponse | ExportLogsServiceResponse], str]] = {
    "traces": (ExportTraceServiceResponse, "rejected_spans"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records"),
}


async def watch_stragglers(opener: Callable[[], Workspace]) -> None:
    """For ever: show traces whose root never came, once they have been silent for STRAGGLER_S."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            shown = await run_in_threadpool(show_stragglers, opener().engine, older_than_s=STRAGGLER_S)
            await run_in_threadpool(keep_recorded_evaluations, opener().engine, shown)
        except Exception:  # a locked database now must not end the watch for ever
            _log.warning("looking for traces without a root failed; the next attempt is in a minute", exc_info=True)


async def _body(request: Request) -> bytes | Response:
    """The unpacked body, or the answer that refuses it; never more than MAX_BODY is held."""
    packed = bytearray()
    async for chunk in request.stream():
        packed += chunk
        if len(packed) > MAX_BODY:
            return _status(413, f"larger than {MAX_BODY // 1024**2} MiB: lower OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding in {"identity", ""}:
        return bytes(packed)
    if encoding != "gzip":
        return _status(415, f"content encoding {encoding!r}: use gzip or none")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            body = stream.read(MAX_BODY + 1)
    except (OSError, EOFError, zlib.error):
        return _status(400, "the body is not gzip")
    if len(body) > MAX_BODY:
        return _status(413, f"unpacks to more than {MAX_BODY // 1024**2} MiB")
    return body


def _status(code: int, message: str, *, retry_after: str | None = None) -> JSONResponse:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return JSONResponse({"code": code, "message": message}, status_code=code, headers=headers)


ROUTES = otlp_routes(workspace)
