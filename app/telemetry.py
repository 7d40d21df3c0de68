"""Logs, traces and metrics of Tracejury's own work: what was asked, how it ended, how long it took.

Never what a trace, a label or a request says. Names of attributes and metrics: OpenTelemetry's semantic conventions for
HTTP servers. Everything but the logs is made only where the standard variables of OpenTelemetry ask for it.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import orjson
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Tracer

FORM = "TRACEJURY_LOG"
"""The variable that chooses the form of log lines: `text` (the default) or `json`."""
ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)  # fmt: skip
"""The standard variables of which one must be set before anything is sent."""
PAGES = "pages"
"""The route of all that is not ours but Streamlit's."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_log = logging.getLogger(__name__)


class JsonLines(logging.Formatter):
    """One JSON document a line. An exception gives its type and place, not its message: that may quote a trace."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat()
        line: dict[str, object] = {
            "time": at,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            line |= {"error": record.exc_info[0].__name__}
            line |= {"stack": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]}
        return orjson.dumps(line, default=str).decode()


def configure_logging(*, is_verbose: bool = False) -> None:
    """Log to standard error in the form that TRACEJURY_LOG names. Raises `ValueError` for an unknown form.

    As JSON, each answered request is a line, too.
    """
    form = os.environ.get(FORM, "text")
    if form not in {"text", "json"}:
        raise ValueError(f"{FORM} is {form!r}. Try: text or json")
    level = logging.DEBUG if is_verbose else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(levelname)s %(name)s: %(message)s")
    if form == "json":
        logging.getLogger("tracejury").setLevel(min(level, logging.INFO))
        for handler in _handlers():
            handler.setFormatter(JsonLines())


def _handlers() -> list[logging.Handler]:
    """Those of the root and of every library that logs by its own."""
    known = (logging.getLogger(name) for name in list(logging.root.manager.loggerDict))
    return [handler for logger in (logging.root, *known) for handler in logger.handlers]


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Where spans and durations (seconds) go; `close` sends what is left."""

    tracer: Tracer
    durations: Histogram
    close: Callable[[], None]


def signals(environment: Mapping[str, str] = os.environ) -> Signals | None:
    """Signals sent by OTLP over HTTP as the standard variables say; None where no endpoint is set.

    The exporter reads the variables itself (headers, time-out, service name and the others). Without its package a
    warning says what to install, and nothing is sent.
    """
    if not any(environment.get(name) for name in ENDPOINTS) or environment.get("OTEL_SDK_DISABLED") == "true":
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ModuleNotFoundError:
        _log.warning(
            "OTEL_EXPORTER_OTLP_* is set, but the exporter is not installed. Try: pip install tracejury[telemetry]"
        )
        return None
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return signals_of(BatchSpanProcessor(OTLPSpanExporter()), PeriodicExportingMetricReader(OTLPMetricExporter()))


def signals_of(processor: SpanProcessor, reader: MetricReader) -> Signals:
    """Signals of providers of our own: what other libraries record by the global ones may quote a trace."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    resource = Resource.create({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "tracejury"})
    spans, metrics = TracerProvider(resource=resource, shutdown_on_exit=False), MeterProvider([reader], resource)
    spans.add_span_processor(processor)

    def close() -> None:
        spans.shutdown()
        metrics.shutdown()

    durations = metrics.get_meter("tracejury").create_histogram(
        "http.server.request.duration", unit="s", description="Duration of HTTP server requests."
    )
    return Signals(tracer=spans.get_tracer("tracejury"), durations=durations, close=close)


def observe_command(context: click.Context) -> None:
    """A span from now to the end of the command, by its name alone."""
    signal_set = signals()
    if signal_set is None:
        return
    span = signal_set.tracer.start_span(f"tracejury {context.invoked_subcommand}")

    def end() -> None:
        span.end()
        signal_set.close()

    context.call_on_close(end)


class Observed:
    """Records each HTTP request: method, route (its pattern, never the path itself), status and duration."""

    def __init__(self, app: ASGIApp, *, routes: Sequence[Route], signals: Signals | None) -> None:
        self.app, self.routes, self.signals = app, routes, signals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, started, status = time.time_ns(), time.perf_counter(), 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, sent)
        finally:
            self._record(scope, status, began, time.perf_counter() - started)

    def _record(self, scope: Scope, status: int, began: int, seconds: float) -> None:
        method, route = scope["method"] if scope["method"] in _METHODS else "_OTHER", self._route(scope)
        fields = {"method": method, "route": route, "status": status, "seconds": round(seconds, 4)}
        _log.info("request", extra={"fields": fields})
        if self.signals is None:
            return
        attributes = {"http.request.method": method, "http.route": route, "http.response.status_code": status}
        self.signals.durations.record(seconds, attributes)
        self._span(f"{method} {route}", attributes, began, seconds)

    def _span(self, name: str, attributes: Mapping[str, str | int], began: int, seconds: float) -> None:
        from opentelemetry.trace import SpanKind, StatusCode

        assert self.signals is not None
        span = self.signals.tracer.start_span(name, kind=SpanKind.SERVER, attributes=attributes, start_time=began)
        if int(attributes["http.response.status_code"]) >= 500:
            span.set_status(StatusCode.ERROR)
        span.end(began + round(seconds * 1e9))

    def _route(self, scope: Scope) -> str:
        full = (route.path for route in self.routes if route.matches(scope)[0] is not Match.NONE)
        return next(full, PAGES)
