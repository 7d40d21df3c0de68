"""Providers that send spans and log records to the receiver of `loopback` as OTLP over HTTP."""

from __future__ import annotations

from typing import Any


def tracers_to(address: str | None) -> Any:
    """A tracer provider; without an address it sends nothing."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracers = TracerProvider()
    if address is not None:
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{address}/v1/traces")))
    return tracers


def loggers_to(address: str) -> Any:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    loggers = LoggerProvider()
    loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{address}/v1/logs")))
    return loggers
