"""The guard before the app: foreign hosts, foreign sites, metrics, headers on every answer, and an open door."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from tracejury.app.api.answers import is_from_here
from tracejury.app.cli import main
from tracejury.app.config import LISTENS, config
from tracejury.app.guard import HEADERS, Guard, host_name, is_local

HERE = "http://127.0.0.1:8501"


async def echo(request: Request) -> Response:
    return JSONResponse({"path": request.url.path})


async def talk(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text(socket.headers["host"])
    await socket.close()


def client(hosts: frozenset[str] | None, base: str = HERE) -> TestClient:
    before = Middleware(Guard, hosts=hosts, may_read_metrics=lambda token, _cookie: token == "Bearer good")
    routes = [
        Route("/{path:path}", echo, methods=["GET", "POST", "PUT", "DELETE"]),
        WebSocketRoute("/_stcore/stream", talk),
    ]
    return TestClient(Starlette(routes=routes, middleware=[before]), base_url=base)


LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8501",
        "127.0.0.1.evil.example",
        "localhost.evil",
        "10.1.1.1",
        "",
        "127.0.0.1:8501@evil.example",
        "localhost:8501.evil.example",
        "[::1",
        "[::1].evil.example",
        "::1.evil.example",
    ],
)
def test_a_request_for_another_host_is_refused(host: str) -> None:
    answer = client(LOCAL).get("/", headers={"host": host})
    assert answer.status_code == 403
    assert "TRACEJURY_HOSTS" in answer.json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "localhost", "LOCALHOST:1", "[::1]:8501", "localhost.:8501"])
def test_this_machines_own_names_are_served(host: str) -> None:
    assert client(LOCAL).get("/", headers={"host": host}).status_code == 200


def test_an_app_that_listens_everywhere_is_found_by_address_and_never_by_a_foreign_name() -> None:
    everywhere = client(LOCAL | {"0.0.0.0"})
    assert everywhere.get("/", headers={"host": "10.1.1.1:8501"}).status_code == 200
    assert everywhere.get("/", headers={"host": "evil.example"}).status_code == 403


@pytest.mark.parametrize("path", ["/v1/traces", "/api/ops", "/_stcore/upload_file/x/y"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"}, {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://evil.example", "sec-fetch-site": "same-origin"}, {"origin": "http://[::1"},
    ],
)  # fmt: skip
def test_another_site_can_change_nothing(path: str, headers: dict[str, str]) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert client(LOCAL).request(method, path, headers=headers).status_code == 403


def test_a_request_of_two_lengths_is_refused_and_its_connection_ends() -> None:
    """Else a proxy that reads the other length would take its rest for a request of somebody else."""
    lengths = {"transfer-encoding": "chunked", "content-length": "2"}
    answer = client(LOCAL).post("/v1/traces", content=b"{}", headers=lengths)
    assert answer.status_code == 403
    assert "two ways" in answer.json()["error"]
    assert answer.headers["connection"] == "close"


def test_own_pages_and_scripts_can() -> None:
    for headers in ({}, {"origin": HERE}, {"origin": HERE, "sec-fetch-site": "same-origin"}):
        assert client(LOCAL).post("/v1/traces", headers=headers).status_code == 200


def test_a_link_from_another_site_opens_a_page() -> None:
    assert client(LOCAL).get("/work", headers={"sec-fetch-site": "cross-site"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://[::1"},
        {"host": "x", "origin": "http://x"},
    ],
)
def test_a_websocket_of_another_host_or_site_is_refused(headers: dict[str, str]) -> None:
    known = {"host": "127.0.0.1", **headers}
    with pytest.raises(WebSocketDisconnect), client(LOCAL).websocket_connect("/_stcore/stream", headers=known):
        pass


def test_a_websocket_behind_a_proxy_stands_under_the_name_that_its_page_has() -> None:
    known = client(LOCAL | {"lab.example"})
    with known.websocket_connect(
        "/_stcore/stream", headers={"host": "127.0.0.1", "origin": "https://lab.example"}
    ) as socket:
        assert socket.receive_text() == "lab.example"


def test_metrics_need_a_right() -> None:
    for path in ("/_stcore/metrics", "/_stcore/metrics/", "/base/_stcore/metrics"):
        assert client(LOCAL).get(path).status_code == 403
        assert client(LOCAL).get(path, headers={"authorization": "Bearer bad"}).status_code == 403
        assert client(LOCAL).get(path, headers={"authorization": "Bearer good"}).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "evil.example"])
def test_every_answer_says_what_a_browser_may_do_with_it(host: str) -> None:
    answer = client(LOCAL).get("/", headers={"host": host})
    policy = answer.headers["content-security-policy"]
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "frame-ancestors 'self'" in policy
    assert "object-src 'none'" in policy
    sources = policy.replace("ws://127.0.0.1:8501", "").replace("wss://127.0.0.1:8501", "")
    assert "//" not in sources
    assert "*" not in sources


def test_a_host_cannot_write_into_the_policy() -> None:
    answer = client(None).get("/", headers={"host": "a;script-src-elem *"})
    assert "script-src-elem" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("A:1", "a"), ("a:", "a"), ("a.", "a"), ("", ""), ("[::1]:80", "::1"), ("[::1]", "::1"), ("::1", "::1"),
        ("a:1@b", "a:1@b"), ("[::1", "[::1"),
    ],
)  # fmt: skip
def test_the_name_of_a_host(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    for name in ("TRACEJURY_SIGN_IN", "TRACEJURY_HOSTS", LISTENS):
        monkeypatch.delenv(name, raising=False)
    config.cache_clear()
    yield monkeypatch
    config.cache_clear()


def test_the_hosts_are_this_machine_what_it_listens_at_and_what_is_set(settings: pytest.MonkeyPatch) -> None:
    settings.setenv("TRACEJURY_HOSTS", "lab.example:443, Other")
    settings.setenv(LISTENS, "10.0.0.5")
    assert config().hosts == LOCAL | {"lab.example", "other", "10.0.0.5"}


def test_where_people_sign_in_any_name_will_do_unless_some_are_listed(settings: pytest.MonkeyPatch) -> None:
    settings.setenv("TRACEJURY_SIGN_IN", "password")
    assert config().hosts is None
    config.cache_clear()
    settings.setenv("TRACEJURY_HOSTS", "lab.example")
    assert config().hosts == LOCAL | {"lab.example"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "lab.example"])
def test_the_app_is_not_opened_to_others_without_sign_in(host: str, settings: pytest.MonkeyPatch) -> None:
    outcome = CliRunner().invoke(main, ["serve", "--host", host])
    assert outcome.exit_code == 1
    assert "sign-in is off" in outcome.output
    assert "--i-know" in outcome.output


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_this_machine_alone_needs_no_sign_in(host: str) -> None:
    assert is_local(host)


async def whole(request: Request) -> Response:
    return JSONResponse({"size": len(await request.body())})


def test_a_body_that_does_not_come_ends_the_request() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        if not sent:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    routes = [Route("/", whole, methods=["POST"])]
    app = Guard(Starlette(routes=routes), hosts=None, may_read_metrics=lambda *_: False, patience_s=0.05)
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"x")], "query_string": b""}
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 408


def test_who_leaves_while_a_body_comes_is_no_failure() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    app = Guard(Starlette(routes=[Route("/", whole, methods=["POST"])]), hosts=None, may_read_metrics=lambda *_: False)
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"x")], "query_string": b""}
    asyncio.run(app(scope, receive, send))
    assert sent == []


@pytest.mark.parametrize("origin", ["http://[::1", "null", "http://evil.example", ""])
def test_a_form_of_a_broken_origin_is_not_ours(origin: str) -> None:
    headers = [(b"host", b"127.0.0.1"), (b"origin", origin.encode())]
    assert not is_from_here(Request({"type": "http", "headers": headers}))
