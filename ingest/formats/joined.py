"""Files of OpenTelemetry's forms read together: each document of them is read as what it is.

No file is recognised as this; it is the format of a trace whose parts came in several forms.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from tracejury.ingest.formats import jaeger, otel_js, otel_sdk, otlp, span_table, zipkin
from tracejury.ingest.formats.otel import Intake, take_documents, traces
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import Json, Rejected, Source, Trace

NAME = "joined"
FORMATS = frozenset({one.NAME for one in (otlp, otel_sdk, otel_js, jaeger, zipkin, span_table)} | {NAME})


def sniff(sample: FileSample) -> bool:
    """Never: a single file has a form of its own."""
    return False


def read(source: Source) -> Iterator[Trace | Rejected]:
    """The traces of all documents."""
    intake = Intake()
    bad = yield from collect((source,), intake)
    if intake.spans or intake.logs or not bad:
        yield from traces(intake, format=NAME, source=source)


def collect(sources: Iterable[Source], intake: Intake) -> Generator[Rejected, None, int]:
    """Add what the documents of the files hold; yields and counts those that hold nothing."""
    return (yield from take_documents(sources, lambda value, place: take(value, intake, place), intake.warnings))


def take(value: Json, intake: Intake, place: str) -> None:
    """Add what a document holds. Raises `IngestError` where it holds no span and no log record."""
    first = value[0] if isinstance(value, list) and value else value
    keys = first.keys() if isinstance(first, dict) else frozenset[str]()
    nested = (
        next((one for one in (first.get("data"), first.get("spans")) if one), None) if isinstance(first, dict) else None
    )
    inner = nested[0] if isinstance(nested, list) and nested else nested
    if isinstance(first, dict) and (isinstance(first.get("context"), dict) or {"body", "trace_id"} <= keys):
        otel_sdk.take(value, intake, place)
    elif {"traceId", "id", "localEndpoint"} <= keys:
        zipkin.take(value, intake, place)
    elif not keys.isdisjoint({"_spanContext", "hrTime"}) or {"traceId", "id"} <= keys:
        otel_js.take(value, intake, place)
    elif "traceID" in keys or (isinstance(inner, dict) and "traceID" in inner):
        jaeger.take(value, intake, place)
    elif span_table.holds_rows(value) or not otlp.take_item(value, intake):
        span_table.take(value, intake, place)
