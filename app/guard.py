"""Whether a request is for this app and from its own pages; and on every answer what a browser may do with it."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tracejury.app import signin

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
WILDCARDS = frozenset({"0.0.0.0", "::", ""})
METRICS = "/_stcore/metrics"
PATIENCE_S = 30.0
"""Seconds that a connection may stand still, unless `config.timeout_s` is set."""
SLOWEST = 2_000
"""Bytes a second that must come or be taken while they are waited for, on average over that time."""
_HOST = re.compile(r"\[([^\[\]]*)\](?::\d*)?|([^:\[\]]*)(?::\d*)?|([^\[\]]*:[^\[\]]*:[^\[\]]*)")
"""[address of IPv6]:port, name:port, or an address of IPv6 by itself."""
_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE = frozenset({"same-origin", "none"})
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' data: blob:; worker-src 'self' blob:; "
    "connect-src 'self' data: blob: {sockets}; frame-src 'self' blob: data:; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'self'"
)
"""Streamlit compiles expressions and styles at run time; nothing is fetched from, or sent to, another origin."""

IsAllowed = Callable[[str | None, str | None], bool]


class Guard:
    """Refuses requests for other hosts and from other sites, keeps metrics to who may see them, and adds headers.

    `hosts` None accepts any (people sign in, and a cookie is bound to its host); `may_read_metrics` is asked with the
    Authorization header and the session cookie.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str] | None,
        may_read_metrics: IsAllowed,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app, self.may_read_metrics, self.patience_s, self.clock = app, may_read_metrics, patience_s, clock
        self.hosts = None if hosts is None else frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self.app(scope, receive, send)
            return
        problem = self._problem(scope) or await self._metrics_problem(scope)
        if problem is not None:
            await _refuse(scope, receive, send, problem)
        elif scope["type"] == "websocket":
            await self.app(self._of_one_origin(scope), receive, send)
        else:
            sent = with_headers(send, Headers(scope=scope).get("host", ""))
            await _in_time(self.app, scope, receive, sent, patience_s=self.patience_s, clock=self.clock)

    def _problem(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._serves(host_name(host)):
            return f"this app does not answer to {host[:100]!r}. Try: add the name to TRACEJURY_HOSTS"
        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy may read another end than we do
            return "the request states its length in two ways. Try: send only Content-Length"
        if scope["path"] == signin.PATH:  # it refuses forms of other sites itself, with a page
            return None
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin, host):
            return "the request comes from another site. Try: open the app itself"
        is_act = scope["type"] == "websocket" or scope["method"] not in _HARMLESS
        if is_act and headers.get("sec-fetch-site", "none") not in _OWN_SITE:
            return "the request comes from another site. Try: open the app itself"
        return None

    def _serves(self, name: str) -> bool:
        if self.hosts is None or name in self.hosts:
            return True
        return bool(WILDCARDS & self.hosts) and _is_address(name)  # no name of an attacker's leads to an address

    def _is_own(self, origin: str, host: str) -> bool:
        at = host_of_origin(origin)
        return bool(at) and (at == host or (self.hosts is not None and host_name(at) in self.hosts - LOCAL))

    def _of_one_origin(self, scope: Scope) -> Scope:
        """The request under the name that its page has: behind a proxy the two may differ, and Streamlit would then
        look its own address up outside.
        """
        at = host_of_origin(Headers(scope=scope).get("origin")).encode("latin-1")
        others = [pair for pair in scope["headers"] if pair[0] != b"host"]
        return {**scope, "headers": [*others, (b"host", at)]} if at else scope

    async def _metrics_problem(self, scope: Scope) -> str | None:
        if scope["type"] != "http" or not str(scope["path"]).rstrip("/").endswith(METRICS):
            return None
        from starlette.concurrency import run_in_threadpool

        headers = Headers(scope=scope)
        cookie = signin.cookie_of(headers.get("cookie"))
        allowed = await run_in_threadpool(self.may_read_metrics, headers.get("authorization"), cookie)
        return (
            None if allowed else "metrics need a token. Try: Authorization: Bearer with a token from `tracejury token`"
        )


class _TooSlowError(Exception):
    """A body that does not come."""


class _Body:
    """The body of a request as it comes: in `patience_s` seconds of waiting it must bring `patience_s * SLOWEST` bytes,
    or its end. Time in which nobody waits for it does not count. Raises `_TooSlowError`.
    """

    def __init__(self, receive: Receive, *, patience_s: float, clock: Callable[[], float]) -> None:
        self.receive, self.patience_s, self.clock = receive, patience_s, clock
        self.is_whole, self.waited_s, self.size = False, 0.0, 0

    async def next(self) -> Message:
        """Give the next part; after the last one only the end of the connection comes."""
        if self.is_whole:
            return await self.receive()
        since = self.clock()
        try:
            message = await asyncio.wait_for(self.receive(), max(self.patience_s - self.waited_s, 0))
        except TimeoutError as error:
            raise _TooSlowError from error
        self.waited_s += self.clock() - since
        self.size += len(message.get("body", b""))
        if self.size >= self.patience_s * SLOWEST:
            self.waited_s, self.size = 0.0, 0
        self.is_whole = not message.get("more_body", False)
        return message


async def _in_time(
    app: ASGIApp, scope: Scope, receive: Receive, send: Send, *, patience_s: float, clock: Callable[[], float]
) -> None:
    """Run the app on a request whose body must keep coming: one that does not gets 408, and its connection ends."""
    body = _Body(receive, patience_s=patience_s, clock=clock)
    has_begun = is_over = False

    async def received() -> Message:
        nonlocal is_over
        try:
            message = await body.next()
        except _TooSlowError:
            if not has_begun:
                await _too_slow(scope, receive, send)
            is_over = True
            raise
        is_over = message["type"] == "http.disconnect"
        return message

    async def sent(message: Message) -> None:
        nonlocal has_begun
        has_begun = True
        if not is_over:
            await send(message)

    with suppress(_TooSlowError, ClientDisconnect):  # nobody is there any more who would be answered
        await app(scope, received, sent)


async def _too_slow(scope: Scope, receive: Receive, send: Send) -> None:
    problem = "the request came too slowly. Try: a faster connection, or less at once"
    await JSONResponse({"error": problem}, 408, {"Connection": "close"})(scope, receive, send)


def with_headers(send: Send, host: str) -> Send:
    """Sends answers with the headers that tell a browser what it may do; those that an answer has stay."""
    policy = _POLICY.format(sockets=f"ws://{host} wss://{host}" if _is_plain(host) else "")

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in {"Content-Security-Policy": policy, **HEADERS}.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def host_name(host: str) -> str:
    """The name of a Host header, without port, in lower case; an address of IPv6 without its brackets.

    What is no host with a port stays as it is, and is the name of nothing.
    """
    parts = _HOST.fullmatch(host)
    name = next((part for part in parts.groups() if part is not None), "") if parts else host
    return name.rstrip(".").lower()


def host_of_origin(origin: str | None) -> str:
    """The host and port of an Origin header; empty where it names none."""
    try:
        return urlsplit(origin or "").netloc
    except ValueError:
        return ""


def is_local(host: str) -> bool:
    """Whether who listens at this address is heard on this machine alone."""
    name = host_name(host)
    return name in LOCAL or (_is_address(name) and ipaddress.ip_address(name).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_plain(host: str) -> bool:
    """Whether a Host header can stand in another header."""
    return bool(host) and all(character.isalnum() or character in "-._:[]" for character in host)


async def _refuse(scope: Scope, receive: Receive, send: Send, problem: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": problem[:120]})
        return
    answer = JSONResponse({"error": problem}, 403, {"Connection": "close"})
    await answer(scope, receive, with_headers(send, ""))
