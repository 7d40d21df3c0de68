"""The OTLP/HTTP receiver against the real exporter, on a real server."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette

from tracejury.ingest.store import load, read_transaction, trace_ids
from tracejury.judging.store import open_workspace


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    from tracejury.app.api.otlp import otlp_routes
    from tracejury.app.config import config

    opened = open_workspace(tmp_path / "home")
    config.cache_clear()
    monkeypatch.delenv("TRACEJURY_SIGN_IN", raising=False)
    routes = otlp_routes(lambda: opened, requests_a_second=12)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    running = uvicorn.Server(uvicorn.Config(Starlette(routes=list(routes)), port=port, log_level="warning"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.02)
    yield port
    running.should_exit = True
    thread.join(60)


def post(port: int, body: bytes, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/v1/traces", body, {name.replace("_", "-"): value for name, value in headers.items()})
    return connection.getresponse()


def test_the_sdks_own_exporter_is_understood(server: int, tmp_path: Path) -> None:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "test"}))
    exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{server}/v1/traces", compression=Compression.Gzip)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    of_agent = {"openinference.span.kind": "AGENT", "input.value": "hi"}
    of_tool = {"openinference.span.kind": "TOOL", "tool.name": "look"}
    with (
        tracer.start_as_current_span("agent", attributes=of_agent),
        tracer.start_as_current_span("tool", attributes=of_tool),
    ):
        pass
    provider.shutdown()
    with read_transaction(open_workspace(tmp_path / "home").engine) as connection:
        (trace_id,) = trace_ids(connection)
        spans = load(connection, trace_id).spans
    assert [(span.kind, span.name, span.depth) for span in spans] == [("AGENT", "agent", 0), ("TOOL", "tool", 1)]


def test_bad_bodies_are_refused_with_a_reason(server: int) -> None:
    json_type = "application/json"
    assert post(server, b"{}", content_type=json_type).status == 400
    assert post(server, b"not gzip", content_type=json_type, content_encoding="gzip").status == 400
    assert post(server, b"{}", content_type=json_type, content_encoding="br").status == 415


def test_a_bomb_is_not_unpacked(server: int) -> None:
    bomb = gzip.compress(b"0" * (80 * 1024**2), 9)
    assert post(server, bomb, content_type="application/json", content_encoding="gzip").status == 413


def test_a_flood_is_told_when_to_come_back(server: int) -> None:
    answers = [post(server, b"{}", content_type="application/json") for _ in range(40)]
    assert {answer.status for answer in answers} == {400, 429}
    assert all(answer.getheader("Retry-After") == "1" for answer in answers if answer.status == 429)
