"""TruLens: its event table (`trulens_events`) as JSON, JSON lines, CSV, parquet or the SQLite file itself.

Columns: `trulens.core.schema.event.Event`; a row is a span, `record`, `record_attributes` and `trace` are JSON.
The expected answer that a row may hold goes to the logs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.otel import Intake, kind_name, parent_or_none, traces
from tracejury.ingest.formats.rows import Row, columns_of, opened, read_rows, time_of
from tracejury.ingest.formats.spans import brief, kept, status_of
from tracejury.ingest.parse import clean_text
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, Trace

NAME = "trulens"

_MARKS = frozenset({"record", "record_attributes", "trace", "start_timestamp"})
_TAKEN = frozenset({"record", "record_attributes", "trace", "start_timestamp", "timestamp", "resource_attributes"})
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
    values = row.values
    record, attributes, context = (_object(values, key, row.place) for key in ("record", "record_attributes", "trace"))
    span_id = as_text(context.get("span_id"))
    if span_id is None:
        raise IngestError("a row whose trace has no span_id", place=row.place, remedy="export the whole event table")
    trace_id = as_text(context.get("trace_id")) or "unnamed"
    gold = {key: item for key, item in attributes.items() if any(word in key.lower() for word in _GOLD)}
    draft = SpanDraft(
        span_id=span_id, attributes={key: kept(item) for key, item in attributes.items() if key not in gold}
    )
    parent = record.get("parent_span_id") or context.get("parent_id")
    draft.parent_span_id = parent_or_none(as_text(parent))
    draft.name = as_text(record.get("name")) or ""
    for column, key in (("start_time", "start_timestamp"), ("end_time", "timestamp")):
        moment = time_of(values.get(key))
        setattr(draft, column, moment)
        if moment is None and values.get(key) is not None:
            draft.attributes[key] = kept(values[key])
            draft.warnings.append(f"unreadable_time: {key} is {brief(values[key])}; left empty, kept as an attribute")
    draft.status = status_of(draft, record.get("status"), "status")
    if record.get("kind") is not None:
        draft.attributes["otel.kind"] = kind_name(record["kind"])
    resource = opened(values.get("resource_attributes"))
    if resource:
        draft.attributes["otel.resource"] = kept(resource)
    known = {"name", "kind", "parent_span_id", "status"}
    draft.attributes.update({f"record.{key}": kept(item) for key, item in record.items() if key not in known})
    draft.attributes.update({key: kept(item) for key, item in values.items() if key not in _TAKEN})
    intake.spans.append((trace_id, draft))
    if gold:
        log = SpanLog(
            trace_id=trace_id, span_id=span_id, event_name="ground_truth", time=None, body=gold, attributes={}, rest={}
        )
        intake.logs.append(log)


def _object(values: dict[str, Json], key: str, place: str) -> dict[str, Json]:
    value = opened(values.get(key))
    if not isinstance(value, dict):
        raise IngestError(f"{key} is {brief(value)}, not an object", place=place, remedy="export the event table again")
    return value


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
