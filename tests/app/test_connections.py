"""Connections on which nothing moves end, whatever they wait for; those that move are left alone, however slow."""

from __future__ import annotations

import asyncio
import base64
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import cast

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message
from starlette.websockets import WebSocket

from tracejury.app import server as launcher
from tracejury.app.config import config
from tracejury.app.connections import Connection, Metered
from tracejury.app.guard import SLOWEST, Guard

TIMEOUT_S = 0.2
UNHURRIED_S = 5.0
"""Where the connection must hold: a busy machine may let the client wait for a while."""
GIVE_UP_S = 60
BIG = 64 * 1024**2
"""More than a socket's buffers hold."""


async def size_of(request: Request) -> Response:
    return JSONResponse({"size": len(await request.body())})


async def deaf(_request: Request) -> Response:
    """Answers before the body has come."""
    return JSONResponse({"read": False})


async def big(_request: Request) -> Response:
    return Response(b"x" * BIG)


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)


async def flood(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_bytes(b"x" * BIG)
    await websocket.receive()


@pytest.fixture
def address(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """A server with our connections, on a port of its own; the parameter is its limit in seconds."""
    monkeypatch.setenv("TRACEJURY_TIMEOUT", str(getattr(request, "param", TIMEOUT_S)))
    config.cache_clear()
    guard = Middleware(Guard, hosts=None, may_read_metrics=lambda *_: False, patience_s=config().timeout_s)
    routes = [
        Route("/size", size_of, methods=["POST"]), Route("/deaf", deaf, methods=["POST"]), Route("/big", big),
        WebSocketRoute("/echo", echo), WebSocketRoute("/flood", flood),
    ]  # fmt: skip
    app = Starlette(routes=routes, middleware=[guard])
    running = uvicorn.Server(
        uvicorn.Config(app, http=Connection, ws="websockets-sansio", lifespan="off", log_level="critical")
    )
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()
    running.should_exit = running.force_exit = True
    thread.join(GIVE_UP_S)
    listener.close()
    config.cache_clear()


def connected(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=GIVE_UP_S)


def ends(connection: socket.socket) -> bool:
    """Whether the server ends the connection; nothing is taken from it meanwhile."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(GIVE_UP_S * 1000))


def is_dripped_to_death(connection: socket.socket, byte: bytes) -> bool:
    """Send byte after byte, each long before the limit, until the server ends the connection."""
    give_up = time.monotonic() + GIVE_UP_S
    try:
        while time.monotonic() < give_up:
            connection.sendall(byte)
            if select.select([connection], [], [], TIMEOUT_S / 8)[0] and not connection.recv(65536):
                return True
    except OSError:
        return True
    return False


def request(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", "")).encode()


def upgrade(path: str) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    socket_headers = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    return request("GET", path, *socket_headers, f"Sec-WebSocket-Key: {key}")


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: loc"], ids=["nothing", "half a head"])
def test_a_connection_without_a_whole_head_ends(address: tuple[str, int], sent: bytes) -> None:
    with connected(address) as connection:
        connection.sendall(sent)
        assert ends(connection)


@pytest.mark.parametrize(
    "before",
    [
        b"GET / HTTP/1.1\r\nX-Slow: ",
        request("POST", "/size", "Content-Length: 1") + b"xGET / HTTP/1.1\r\nX-Slow: ",
        request("POST", "/size", "Content-Length: 100000"),
        request("POST", "/deaf", "Content-Length: 100000"),
    ],
    ids=["head", "second head", "body", "body that was answered already"],
)
def test_a_request_that_drips_ends(address: tuple[str, int], before: bytes) -> None:
    with connected(address) as connection:
        connection.sendall(before)
        assert is_dripped_to_death(connection, b"x")


@pytest.mark.parametrize("sent", [request("GET", "/big"), upgrade("/flood")], ids=["download", "websocket"])
def test_what_is_never_taken_ends(address: tuple[str, int], sent: bytes) -> None:
    with connected(address) as connection:
        connection.sendall(sent)
        assert ends(connection)


@pytest.mark.parametrize("address", [UNHURRIED_S], indirect=True)
def test_whole_requests_are_answered_one_after_another(address: tuple[str, int]) -> None:
    with connected(address) as connection, connection.makefile("rb") as answers:
        for size in (0, 5, 200_000):
            connection.sendall(request("POST", "/size", f"Content-Length: {size}") + b"x" * size)
            head = b"".join(iter(answers.readline, b"\r\n"))
            assert b" 200 " in head
            assert f'{{"size":{size}}}'.encode() == answers.read(len(f'{{"size":{size}}}'))


@pytest.mark.parametrize("address", [UNHURRIED_S], indirect=True)
def test_a_silent_websocket_stays_and_a_download_that_is_taken_comes_whole(address: tuple[str, int]) -> None:
    with connected(address) as talking, connected(address) as loading, loading.makefile("rb") as answer:
        talking.sendall(upgrade("/echo"))
        assert talking.recv(65536).startswith(b"HTTP/1.1 101")
        loading.sendall(request("GET", "/big", "Connection: close"))
        assert len(answer.read()) > BIG
        time.sleep(1.5 * UNHURRIED_S)
        talking.sendall(b"\x81\x82\x00\x00\x00\x00hi")  # masked text, with a mask of zeros
        assert talking.recv(65536).endswith(b"hi")


# ---- by a clock of their own ------------------------------------------------------------------------------------


def status_of(parts: list[tuple[float, int]], *, late_s: float = 0, patience_s: float = 30) -> int:
    """Send a body in parts, each some seconds after it was waited for; the app begins to read `late_s` seconds late."""
    now, sent, coming = [0.0], list[Message](), iter(parts)

    async def receive() -> Message:
        after_s, size = next(coming, (0.0, 0))
        now[0] += after_s
        return {"type": "http.request", "body": b"x" * size, "more_body": size > 0}

    async def send(message: Message) -> None:
        sent.append(message)

    async def read(request: Request) -> Response:
        now[0] += late_s
        async for _part in request.stream():
            pass
        return Response()

    app = Starlette(routes=[Route("/", read, methods=["POST"])])
    guard = Guard(app, hosts=None, may_read_metrics=lambda *_: False, patience_s=patience_s, clock=lambda: now[0])
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"x")], "query_string": b""}
    asyncio.run(guard(scope, receive, send))
    return int(sent[0]["status"])


def test_a_large_file_over_a_slow_line_arrives() -> None:
    """500 MB over 1 Mbit/s: 70 minutes."""
    assert status_of([(0.5, 62_500)] * 8_000) == 200


def test_a_fast_beginning_buys_no_time() -> None:
    assert status_of([*[(0.1, 1_000_000)] * 100, *[(10, 1)] * 4]) == 408


def test_only_time_in_which_the_body_is_waited_for_counts() -> None:
    """Large bodies are read one at a time: the second is not late because the first took minutes."""
    assert status_of([(1, 100)], late_s=600) == 200


class Taker:
    """A transport whose other side takes so many bytes between two looks of `Metered`."""

    def __init__(self, takes: int) -> None:
        self.waiting, self.takes, self.is_aborted = 0, takes, False
        self.looks: list[tuple[Callable[[int], None], int]] = []

    def write(self, data: bytes) -> None:
        self.waiting += len(data)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def abort(self) -> None:
        self.is_aborted = True

    def get_extra_info(self, _name: str) -> socket.socket:
        return socket.socket()

    def call_later(self, _delay_s: float, look: Callable[[int], None], due: int) -> None:
        self.looks.append((look, due))


@pytest.mark.parametrize(("rate", "is_aborted"), [(SLOWEST, False), (SLOWEST // 2, True)])
def test_an_answer_is_taken_at_the_slowest_rate_or_the_connection_ends(rate: int, is_aborted: bool) -> None:
    taker = Taker(takes=30 * rate)
    metered = Metered(cast("asyncio.Transport", taker), patience_s=30, call_later=taker.call_later)
    for _ in range(100):
        metered.write(b"x" * 10_000)
    while taker.looks and not taker.is_aborted:
        taker.waiting = max(taker.waiting - taker.takes, 0)
        look, due = taker.looks.pop()
        look(due)
    assert (taker.is_aborted, taker.waiting == 0, taker.looks) == (is_aborted, not is_aborted, [])


def test_the_server_of_the_command_speaks_through_our_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(uvicorn.config.HTTP_PROTOCOLS, "auto", uvicorn.config.HTTP_PROTOCOLS["auto"])
    loaded = []

    def streamlit(prog_name: str) -> None:
        settings = uvicorn.Config(deaf)
        settings.load()
        loaded.append((prog_name, settings.http_protocol_class))

    monkeypatch.setattr("streamlit.web.cli.main", streamlit)
    launcher.main()
    assert loaded == [("streamlit", Connection)]
