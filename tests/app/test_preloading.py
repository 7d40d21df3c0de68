"""Pages name the scripts that the desk needs; what is no page is left as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from tracejury.app.preloading import DESK, Preloading, links

JS = Path(streamlit.__file__).parent / "static" / "static" / "js"


@pytest.fixture
def client() -> TestClient:
    routes = [
        Route("/work", lambda _: HTMLResponse("<p>page</p>")),
        Route("/api/x", lambda _: JSONResponse({})),
        Route("/away", lambda _: RedirectResponse("/api/signin", 303)),
    ]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(Preloading)]), follow_redirects=False)


def test_a_page_names_scripts_that_are_there_and_not_in_the_page_itself(client: TestClient) -> None:
    header = client.get("/work", headers={"Accept": "text/html"}).headers["link"]
    names = re.findall(r"<\./static/js/([^>]+)>; rel=modulepreload", header)
    assert any(name.startswith("BidiComponent.") for name in names)
    index = (JS.parent.parent / "index.html").read_text(encoding="utf-8")
    assert all((JS / name).is_file() and name not in index for name in names)
    assert header == links((DESK,))


@pytest.mark.parametrize(("path", "accept"), [("/api/x", "text/html"), ("/work", "*/*"), ("/away", "text/html")])
def test_what_is_no_page_is_left_as_it_is(client: TestClient, path: str, accept: str) -> None:
    assert "link" not in client.get(path, headers={"Accept": accept}).headers
