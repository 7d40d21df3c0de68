"""Tells the browser, with the page itself, of scripts that the page needs and Streamlit would ask for late."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import streamlit
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tracejury.app.look import is_page

DESK, TABLE, CHART = "BidiComponent.*.js", "DataFrame.*.js", "PlotlyChart.*.js"
DRAWN = {"": (DESK,), "work": (DESK,), "compare": (DESK, CHART), "adjudicate": (TABLE, CHART),
         "agreement": (CHART, TABLE), "explore": (TABLE, CHART), "runs": (CHART, TABLE)}  # fmt: skip
"""What a page draws with, by its address: the browser reads and compiles it while the server makes the page."""

_IMPORTED = re.compile(rb'(?:from|import)"\./([\w.-]+\.js)"')


class Preloading:
    """Adds a `Link` header (HTTP's rel=modulepreload) to pages."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self.app(scope, receive, send)
            return
        wanted = links(DRAWN.get(scope["path"].rstrip("/").rpartition("/")[2], ()))

        async def with_links(message: Message) -> None:
            if message["type"] == "http.response.start" and is_page(message) and wanted:
                MutableHeaders(scope=message).append("Link", wanted)
            await send(message)

        await self.app(scope, receive, with_links)


@cache
def links(wanted: tuple[str, ...]) -> str:
    """The header, relative like the page's own scripts; empty where this Streamlit has no such file."""
    folder = Path(streamlit.__file__).parent / "static" / "static" / "js"
    index = (folder.parent.parent / "index.html").read_text(encoding="utf-8")
    waiting, names = [file.name for each in wanted for file in folder.glob(each)], list[str]()
    while waiting:
        name = waiting.pop(0)
        if name not in names and name not in index and (folder / name).exists():
            names.append(name)
            waiting += [one.decode() for one in _IMPORTED.findall((folder / name).read_bytes())]
    return ", ".join(f"<./static/js/{name}>; rel=modulepreload" for name in names)
