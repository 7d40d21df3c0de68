"""Every page comes with the app's style; what is no page is left as it is."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from tracejury.app.look import SCRIPT, STYLE, Look

PAGE = "<html><head><title>t</title></head><body></head>" + "x" * 1000
HTML = {"Accept": "text/html"}


async def pieces(scope: object, receive: object, send: object) -> None:
    """A page in two parts, as a file is sent."""
    headers = [(b"content-type", b"text/html"), (b"content-length", b"13"), (b"etag", b'"bare"')]
    await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[operator]
    await send({"type": "http.response.body", "body": b"<head></", "more_body": True})  # type: ignore[operator]
    await send({"type": "http.response.body", "body": b"head>"})  # type: ignore[operator]


@pytest.fixture
def client() -> TestClient:
    routes = [
        Route("/work", lambda _: HTMLResponse(PAGE)),
        Route("/x", lambda _: JSONResponse({})),
        Route("/api/signin", lambda _: HTMLResponse(PAGE)),
        Route("/gone", lambda _: Response(PAGE, 404, media_type="text/html")),
    ]
    middleware = [Middleware(Look), Middleware(GZipMiddleware)]
    return TestClient(Starlette(routes=routes, middleware=middleware))


def test_a_page_holds_style_and_script_once_at_the_end_of_its_head(client: TestClient) -> None:
    style, script = (path.read_text(encoding="utf-8") for path in (STYLE, SCRIPT))
    added = f"<style>{style}</style><script>{script}</script>"
    got = client.get("/work", headers=HTML | {"Accept-Encoding": "gzip"})
    assert got.text == PAGE.replace("</head>", f"{added}</head>", 1)
    assert int(got.headers["content-length"]) == len(got.content)


def test_a_page_that_comes_in_pieces_is_one_and_drops_the_mark_of_the_bare_one() -> None:
    got = TestClient(Look(pieces)).get("/", headers=HTML)  # type: ignore[arg-type]
    assert got.text.startswith("<head><style>")
    assert got.text.endswith("</script></head>")
    assert "etag" not in got.headers


@pytest.mark.parametrize(
    ("path", "accept"), [("/x", "text/html"), ("/work", "*/*"), ("/api/signin", "text/html"), ("/gone", "text/html")]
)
def test_what_is_no_page_is_left_as_it_is(client: TestClient, path: str, accept: str) -> None:
    assert "<style>" not in client.get(path, headers={"Accept": accept}).text
