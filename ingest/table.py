"""The span table as Arrow and pandas, as CSV and Parquet: the same columns and types whatever the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection, Select, select

from tracejury.ingest.spreadsheet import csv_text
from tracejury.ingest.store import schema
from tracejury.ingest.trace import SPAN_COLUMNS, Message, Span, Trace

_TOOL_CALL = pa.struct([("name", pa.string()), ("arguments", pa.string()), ("id", pa.string())])
_MESSAGE = pa.struct(
    [
        ("message", pa.int32()),
        ("role", pa.string()),
        ("content", pa.string()),
        ("tool_calls", pa.list_(_TOOL_CALL)),
        ("name", pa.string()),
        ("tool_call_id", pa.string()),
        ("reasoning", pa.string()),
    ]
)
ARROW_TYPES: dict[str, pa.DataType] = {
    "text": pa.string(),
    "int": pa.int64(),
    "real": pa.float64(),
    "time": pa.timestamp("us", tz="UTC"),
    "messages": pa.list_(_MESSAGE),
    "texts": pa.list_(pa.string()),
    "json": pa.string(),
}
SCHEMA = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in SPAN_COLUMNS])
GROUP_SPANS, GROUP_TEXT = 20_000, 64 * 1024**2
_DICTIONARY_LIMIT = 256 * 1024**2  # bytes: a text that repeats is written once a row group


def span_rows(trace: Trace) -> list[dict[str, Any]]:
    """One dictionary a span with every column; messages whole, times as UTC microseconds, JSON as values."""
    rows = [message_row(position, message) for position, message in enumerate(trace.messages)]
    return [_row(span, rows) for span in trace.spans]


def span_table(traces: Iterable[Trace]) -> pa.Table:
    """The span table of `traces` under `SCHEMA`; empty traces give an empty table of the same schema."""
    batches = [_batch(trace) for trace in traces]
    return pa.Table.from_batches(batches, schema=SCHEMA)


def span_frame(traces: Iterable[Trace]) -> pd.DataFrame:
    """The span table as pandas (nullable integers, UTC times, lists of dictionaries for messages)."""
    types = {pa.int64(): pd.Int64Dtype(), pa.string(): pd.StringDtype()}
    frame: pd.DataFrame = span_table(traces).to_pandas(types_mapper=types.get)
    return frame


def write_parquet(traces: Iterable[Trace], file: Path) -> int:
    """Write the span table as Parquet (zstd); returns the number of spans.

    Traces share a row group until it holds GROUP_SPANS spans or GROUP_TEXT characters: a text that many spans
    repeat is written once a group.
    """
    count = 0
    with pq.ParquetWriter(
        file, SCHEMA, compression="zstd", compression_level=9, use_dictionary=True,
        dictionary_pagesize_limit=_DICTIONARY_LIMIT, data_page_size=16 * 1024**2, write_statistics=False,
    ) as writer:  # fmt: skip
        for group in _groups(traces):
            writer.write_table(pa.Table.from_batches(group, schema=SCHEMA).combine_chunks())
            count += sum(batch.num_rows for batch in group)
    return count


def _groups(traces: Iterable[Trace]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    for trace in traces:
        group.append(_batch(trace))
        if sum(b.num_rows for b in group) >= GROUP_SPANS or sum(b.nbytes for b in group) >= GROUP_TEXT:
            yield group
            group = []
    if group:
        yield group


def write_csv(frame: pd.DataFrame, file: Path) -> None:
    """Write a frame as CSV: lists as JSON, and no cell that a spreadsheet would run as a formula."""
    safe = frame.copy()
    for name in safe.columns:
        column = safe[name]
        if not (pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype)):
            safe[name] = [_cell(value) for value in column]
    file.write_text(csv_text(safe), encoding="utf-8", newline="")


def trace_frame(connection: Connection) -> pd.DataFrame:
    """The list of traces with their summaries, in order of ingestion; lists as text, times in UTC."""
    hidden = {"trace_key", "source_key", "attributes", "outcome", "warnings"}
    columns = [column for column in schema.trace.c if column.name not in hidden]
    frame = query_frame(connection, select(*columns).order_by(schema.trace.c.trace_key))
    for name in ("agents", "models", "tools"):
        frame[name] = [", ".join(orjson.loads(value)) for value in frame[name]]
    for name in ("start_time", "end_time", "ingested_at"):
        frame[name] = pd.to_datetime(frame[name].astype("Int64"), unit="us", utc=True)
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        frame[name] = frame[name].astype("Int64")
    return frame


def query_frame(connection: Connection, query: Select[Any], *, dtype: str | None = None) -> pd.DataFrame:
    """What a query finds, its columns by their names. As tuples: pandas asks every other row object for its type."""
    result = connection.execute(query)
    names = list(result.keys())
    return pd.DataFrame([tuple(row) for row in result.all()], columns=names, dtype=dtype)


def _cell(value: Any) -> Any:
    if isinstance(value, (list, dict)) or type(value).__name__ == "ndarray":
        return orjson.dumps(value, default=_plain).decode()
    return value


def _plain(value: Any) -> Any:
    return value.tolist()


def message_row(position: int, message: Message) -> dict[str, Any]:
    """Give every field of a message and its position in the trace."""
    return {"message": position, **asdict(message), "tool_calls": [asdict(call) for call in message.tool_calls]}


def _row(span: Span, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {column.name: getattr(span, column.name) for column in SPAN_COLUMNS}
    row["input_messages"] = [rows[position] for position in span.input_messages]
    row["output_messages"] = [rows[position] for position in span.output_messages]
    for name in ("events", "links", "warnings"):
        row[name] = list(row[name])
    row["attributes"] = dict(span.attributes)
    return row


def _batch(trace: Trace) -> pa.RecordBatch:
    rows = span_rows(trace)
    return pa.RecordBatch.from_arrays(
        [pa.array(_values(rows, c.name, c.type), ARROW_TYPES[c.type]) for c in SPAN_COLUMNS], schema=SCHEMA
    )


def _values(rows: Sequence[dict[str, Any]], name: str, kind: str) -> Iterator[Any]:
    if kind == "json":
        return (orjson.dumps(row[name]).decode() for row in rows)
    return (row[name] for row in rows)
