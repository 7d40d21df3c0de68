"""Signing in with a password: the session cookie, and the redirect of those who have none. Knows no database."""

from __future__ import annotations

from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from secrets import token_hex
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tracejury.app.grants import read_signed

COOKIE = "tracejury_session"
MAX_AGE_S = 7 * 24 * 3600
DEVICE = "tracejury_device"
DEVICE_AGE_S = 180 * 24 * 3600
PATH = "/api/signin"
OPEN_PATHS = ("/api/", "/_stcore/", "/static/", "/media/", "/component/")


class Session(NamedTuple):
    """Who signed in, and in which epoch of their account: signing out and a new password begin another one."""

    name: str
    epoch: int


def mint(secret: str, session: Session) -> str:
    return _serializer(secret).dumps(list(session))


def read(secret: str, cookie: str | None) -> Session | None:
    """The session of a cookie, None unless it is genuine and fresh. Whether it still holds, the store knows."""
    if not cookie:
        return None
    try:
        name, epoch = read_signed(_serializer(secret), cookie, max_age_s=MAX_AGE_S)
    except (BadData, ValueError, TypeError):
        return None
    return Session(str(name), int(epoch))


def mint_device(secret: str, name: str) -> str:
    """A cookie that says: this person signed in here before. It opens nothing by itself."""
    return URLSafeTimedSerializer(secret, salt="tracejury-device").dumps([name, token_hex(8)])


def known_device(secret: str, cookie: str | None, name: str) -> str:
    """The device of a cookie, where this person signed in before; else empty."""
    try:
        devices = URLSafeTimedSerializer(secret, salt="tracejury-device")
        owner, device = read_signed(devices, cookie or "", max_age_s=DEVICE_AGE_S)
    except (BadData, ValueError, TypeError):
        return ""
    return str(device) if owner == name.strip() else ""


def local_path(target: str | None) -> str:
    """A path of this app to go on to; anything that could lead elsewhere becomes `/`."""
    if not target or not target.startswith("/") or target.startswith(("//", "/\\")):
        return "/"
    parts = urlsplit(target)
    has_control = any(ord(character) < 0x20 for character in target)
    return "/" if parts.scheme or parts.netloc or has_control else target


class SignInFirst:
    """Sends the browser of someone who is not signed in to the sign-in page, before any page is opened."""

    def __init__(self, app: ASGIApp, *, is_signed_in: Callable[[str | None], bool]) -> None:
        self.app, self.is_signed_in = app, is_signed_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_page(scope):
            from starlette.concurrency import run_in_threadpool

            if not await run_in_threadpool(self.is_signed_in, cookie_of(Headers(scope=scope).get("cookie"))):
                query = scope.get("query_string", b"").decode("latin-1")
                target = str(scope["path"]) + (f"?{query}" if query else "")
                answer = RedirectResponse(f"{PATH}?next={quote(target, safe='')}", 303, {"Cache-Control": "no-store"})
                await answer(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _is_page(self, scope: Scope) -> bool:
        accepts = Headers(scope=scope).get("accept", "")
        return scope["method"] == "GET" and "text/html" in accepts and not str(scope["path"]).startswith(OPEN_PATHS)


def cookie_of(header: str | None) -> str | None:
    """The session cookie of a Cookie header."""
    try:
        morsel = SimpleCookie(header or "").get(COOKIE)
    except CookieError:
        return None
    return None if morsel is None else morsel.value


def _serializer(secret: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(secret, salt="tracejury-session")
