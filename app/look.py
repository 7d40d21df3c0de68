"""Sends the app's style sheet and its one script with the page itself: a style that comes later moves what stands."""

from __future__ import annotations

from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STYLE = Path(__file__).parent / "components" / "look.css"
SCRIPT = STYLE.with_suffix(".js")
_HEAD_END = b"</head>"
_OF_THE_BARE_PAGE = ("etag", "last-modified", "accept-ranges")


class Look:
    """Puts style sheet and script into the head of every page; the API's answers stay as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        style, script = STYLE.read_bytes(), SCRIPT.read_bytes()
        self.added = b"<style>" + style + b"</style><script>" + script + b"</script>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _asks_for_a_page(scope):
            await self.app(_uncompressed(scope), receive, self._dressed(send))
        else:
            await self.app(scope, receive, send)

    def _dressed(self, send: Send) -> Send:
        """Sends a page with the style in it, anything else as it comes."""
        start: Message | None = None
        body = bytearray()

        async def dressed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and is_page(message):
                start = message  # the length it names is known once the body is
            elif start is None or message["type"] != "http.response.body":
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    page = bytes(body).replace(_HEAD_END, self.added + _HEAD_END, 1)
                    await send(_of_length(start, len(page)))
                    await send({"type": "http.response.body", "body": page})

        return dressed


def _asks_for_a_page(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET" or "/api/" in scope["path"]:
        return False
    return "text/html" in Headers(scope=scope).get("accept", "")


def _uncompressed(scope: Scope) -> Scope:
    """The same request for a body that can be added to; a page is a few kilobytes."""
    return {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]}


def is_page(start: Message) -> bool:
    """Whether an answer that starts so is a page."""
    is_html = Headers(raw=start["headers"]).get("content-type", "").startswith("text/html")
    return bool(start["status"] == 200 and is_html)


def _of_length(start: Message, length: int) -> Message:
    headers = MutableHeaders(raw=[pair for pair in start["headers"] if pair[0].decode() not in _OF_THE_BARE_PAGE])
    headers["content-length"] = str(length)
    return {**start, "headers": headers.raw}
