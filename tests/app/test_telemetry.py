"""Logs, spans and metrics of the app: what was asked and how it ended, never what was written."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
from click.testing import CliRunner
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from sqlalchemy import create_engine
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from tracejury.app import asgi, session, telemetry
from tracejury.app.cli import main
from tracejury.app.telemetry import JsonLines, Observed, Signals, configure_logging, signals, signals_of
from tracejury.judging.store import open_workspace

SECRET = "the agent leaked 4711"


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def made(spans: InMemorySpanExporter, reader: InMemoryMetricReader) -> Iterator[Signals]:
    made = signals_of(SimpleSpanProcessor(spans), reader)
    yield made
    made.close()


async def echo(request: Request) -> Response:
    return JSONResponse({"said": (await request.body()).decode()})


async def broken(_request: Request) -> Response:
    raise ValueError(SECRET)


ROUTES = [Route("/api/trace/{trace_id:path}", echo, methods=["POST"]), Route("/api/broken", broken)]


def client(made: Signals | None) -> TestClient:
    return TestClient(Observed(Starlette(routes=ROUTES), routes=ROUTES, signals=made), raise_server_exceptions=False)


def test_a_request_is_a_span_and_a_duration_without_its_words(
    made: Signals, spans: InMemorySpanExporter, reader: InMemoryMetricReader
) -> None:
    asked = client(made)
    asked.post(f"/api/trace/{SECRET}?q={SECRET}", content=SECRET, headers={"X-Note": SECRET})
    asked.get("/api/broken")
    asked.get(f"/{SECRET}")
    ended = spans.get_finished_spans()
    assert [span.name for span in ended] == ["POST /api/trace/{trace_id:path}", "GET /api/broken", "GET pages"]
    assert [dict(span.attributes or {})["http.response.status_code"] for span in ended] == [200, 500, 404]
    assert [span.status.status_code for span in ended] == [StatusCode.UNSET, StatusCode.ERROR, StatusCode.UNSET]
    assert all((span.end_time or 0) >= (span.start_time or 0) > 0 for span in ended)
    data = reader.get_metrics_data()
    assert data is not None
    assert data.to_json().count('"http.route"') == 3
    assert "http.server.request.duration" in data.to_json()
    assert "4711" not in data.to_json() + "".join(span.to_json() for span in ended)


@pytest.mark.parametrize("environment", [{}, {"OTEL_SERVICE_NAME": "x"}, {"OTEL_SDK_DISABLED": "true"}])
def test_nothing_is_made_unless_an_endpoint_is_set(environment: dict[str, str]) -> None:
    assert signals(environment) is None
    assert signals({telemetry.ENDPOINTS[0]: "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}) is None


def test_without_the_exporter_s_package_a_warning_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    assert signals({telemetry.ENDPOINTS[0]: "http://127.0.0.1:9"}) is None
    assert "Try: pip install tracejury[telemetry]" in caplog.text


def test_a_command_is_a_span_by_its_name(
    made: Signals, spans: InMemorySpanExporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "signals", lambda: made)
    CliRunner().invoke(main, ["text", SECRET, "--home", str(tmp_path)])
    (span,) = spans.get_finished_spans()
    assert span.name == "tracejury text"
    assert "4711" not in span.to_json()


def test_a_line_of_json_holds_the_place_of_an_error_and_not_its_words() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        record = logging.LogRecord("tracejury.app", logging.WARNING, "f", 1, "it %s", ("failed",), sys.exc_info())
    record.fields = {"status": 500}
    line = orjson.loads(JsonLines().format(record))
    assert {key: line[key] for key in ("level", "logger", "message", "status", "error")} == {
        "level": "WARNING", "logger": "tracejury.app", "message": "it failed", "status": 500, "error": "ValueError",
    }  # fmt: skip
    assert "test_telemetry.py" in line["stack"][0]
    assert line["time"].endswith("+00:00")
    assert "4711" not in JsonLines().format(record)


def test_the_form_of_log_lines_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    handler, logger = logging.StreamHandler(), logging.getLogger("tracejury")
    monkeypatch.setattr(telemetry, "_handlers", lambda: [handler])
    monkeypatch.setattr(logger, "level", logger.level)
    monkeypatch.setenv(telemetry.FORM, "json")
    configure_logging()
    assert isinstance(handler.formatter, JsonLines)
    monkeypatch.setenv(telemetry.FORM, "xml")
    assert "TRACEJURY_LOG is 'xml'. Try: text or json" in CliRunner().invoke(main, ["traces"]).output


def test_a_request_is_a_log_line_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="tracejury"):
        client(None).post(f"/api/trace/{SECRET}", content=SECRET)
    (record,) = [one for one in caplog.records if one.getMessage() == "request"]
    line = orjson.loads(JsonLines().format(record))
    assert (line["method"], line["route"], line["status"]) == ("POST", "/api/trace/{trace_id:path}", 200)
    assert "4711" not in JsonLines().format(record)


def test_health_says_whether_the_database_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, space = TestClient(Starlette(routes=[Route("/health", asgi.ready)])), open_workspace(tmp_path)
    monkeypatch.setattr(session, "workspace", lambda: space)
    assert asked.get("/health").status_code == 200
    monkeypatch.setattr(
        session, "workspace", lambda: SimpleNamespace(engine=create_engine("sqlite:////nowhere/at/all"))
    )
    answer = asked.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "failed", "database": "no answer"})
