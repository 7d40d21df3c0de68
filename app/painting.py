"""Lets the browser paint what a page has sent before heavier things follow: the script that draws charts takes long to
start, and while it does nothing else can show."""

from __future__ import annotations

import re
import secrets
import threading

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

MOST_S = 1.0  # a browser that does not answer holds nothing up for longer
KEY = "painted"  # `look.js` looks for it
_PAINTED = "painted_parts"
_waiting: dict[str, threading.Event] = {}


def is_new(part: str) -> bool:
    """Whether `paint` will wait for this part."""
    return part not in st.session_state.get(_PAINTED, ()) and _agent() is not None


def _agent() -> str | None:
    """The browser's own word for itself; None where the page is run by a test or a program."""
    return st.context.headers.get("User-Agent")


def paint(part: str) -> None:
    """Go on once the browser has painted what was sent so far; only at a session's first visit to this `part`."""
    slot = st.empty()  # keeps its place: what follows is not moved when this is gone
    if not is_new(part):  # without a browser nobody is there to wait for
        return
    st.session_state.setdefault(_PAINTED, set()).add(part)
    note, painted = secrets.token_hex(8), threading.Event()
    _waiting[note] = painted
    base = st.get_option("server.baseUrlPath").strip("/")
    try:
        with slot.container(key=f"{KEY}-{re.sub('[^a-z]', '-', part)}"):
            st.text(f"{base and '/' + base}/api/painted/{note}")
        painted.wait(MOST_S)
    finally:
        del _waiting[note]
    slot.empty()


async def painted(request: Request) -> Response:
    """The browser's word that a part shows; what nobody waits for is nothing."""
    event = _waiting.get(request.path_params["note"])
    if event is not None:
        event.set()
    return Response(status_code=204)


ROUTES = (Route("/api/painted/{note}", painted, methods=["POST"]),)
