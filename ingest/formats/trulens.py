"""TruLens: its event table (`trulens_events`) as JSON, JSON lines, CSV, parquet or the SQLite file itself.

Columns: `trulens.core.schema.event.Event`; a row is a span, `record`, `record_attributes` and `trace` are JSON.
The expected answer that a row may hold goes to the logs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.formats.fields import Fields, plain_name
from tracejury.ingest.formats.otel import Intake, kind_name, parent_or_none, traces
from tracejury.ingest.formats.rows import Row, columns_of, opened, read_rows
from tracejury.ingest.formats.spans import brief, kept, status_of
from tracejury.ingest.parse import clean_text
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Rejected, Source, SpanDraft, Trace

NAME = "trulens"

_MARKS = frozenset({"record", "record_attributes", "trace", "start_timestamp"})
_SQLITE = b"SQLite format 3\x00"
_GOLD = ("ground_truth", "expected_output", "expected_response")


def sniff(sample: FileSample) -> bool:
    """The columns of the event table, or an SQLite file that has the table."""
    if sample.data.startswith(_SQLITE):
        return sample.whole and b"trulens_events" in sample.data
    return (sample.keys if sample.start[:1] in (b"{", b"[") else columns_of(sample)) >= _MARKS


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the table."""
    intake, bad = Intake(), 0
    rows = _sqlite(source.data) if source.data.startswith(_SQLITE) else read_rows(source.data, lists=("events",))
    for row in rows:
        try:
            if row.error is not None:
                raise row.error
            _take(row, intake)
        except IngestError as error:
            bad += 1
            yield rejected(source.file, error)
    if intake.spans or not bad:
        yield from traces(intake, format=NAME, source=source)


def _take(row: Row, intake: Intake) -> None:
    values = Fields(row.values)
    record, attributes, context = (_object(values, key, row.place) for key in ("record", "record_attributes", "trace"))
    span_id = context.text("spanid")
    if span_id is None:
        raise IngestError("a row whose trace has no span_id", place=row.place, remedy="export the whole event table")
    trace_id = context.text("traceid") or "unnamed"
    gold = {key: item for key, item in attributes.raw.items() if any(word in key.lower() for word in _GOLD)}
    draft = SpanDraft(span_id=span_id, warnings=values.warnings)
    draft.attributes = {key: kept(item) for key, item in attributes.raw.items() if key not in gold}
    draft.parent_span_id = parent_or_none(record.text("parentspanid") or context.text("parentid"))
    draft.name = record.text("name") or ""
    draft.start_time, draft.end_time = values.time("starttimestamp"), values.time("timestamp")
    draft.status = status_of(draft, record.take("status"), "status")
    if (kind := record.take("kind")) is not None:
        draft.attributes["otel.kind"] = kind_name(kind)
    if resource := opened(values.take("resourceattributes")):
        draft.attributes["otel.resource"] = kept(resource)
    draft.attributes.update({f"record.{key}": kept(item) for key, item in record.values.items()})
    draft.attributes.update({key: kept(item) for key, item in values.values.items()})
    intake.spans.append((trace_id, draft))
    if gold:
        log = SpanLog(
            trace_id=trace_id, span_id=span_id, event_name="ground_truth", time=None, body=gold, attributes={}, rest={}
        )
        intake.logs.append(log)


def _object(values: Fields, key: str, place: str) -> Fields:
    value = opened(values.take(plain_name(key)))
    if not isinstance(value, dict):
        raise IngestError(f"{key} is {brief(value)}, not an object", place=place, remedy="export the event table again")
    return Fields(value, key, values.warnings)


def _sqlite(data: bytes) -> Iterator[Row]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(data)
        connection.row_factory = sqlite3.Row
        for number, row in enumerate(connection.execute("SELECT * FROM trulens_events")):
            cells = {key: clean_text(cell) if isinstance(cell, str) else cell for key, cell in dict(row).items()}
            yield Row(f"trulens_events row {number}", {key: cell for key, cell in cells.items() if cell is not None})
    except sqlite3.Error as error:
        raise IngestError(f"damaged SQLite file: {error}", remedy="export the table trulens_events") from error
    finally:
        connection.close()
