"""A trace as Arrow rows of a corpus, and back: the columns of the span table, messages stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson
import pyarrow as pa

from tracejury.ingest.pack import content_digest, dump, first_sequences, trace_row
from tracejury.ingest.table import ARROW_TYPES
from tracejury.ingest.trace import (
    SPAN_COLUMNS,
    ExpectedEvent,
    Message,
    Outcome,
    Rejected,
    Source,
    Span,
    ToolCall,
    Trace,
)

Row = dict[str, Any]
_TEXT, _INT, _TIME, _TEXTS = (ARROW_TYPES[name] for name in ("text", "int", "time", "texts"))
_CALL = pa.struct([("name", _TEXT), ("arguments", _TEXT), ("id", _TEXT)])
_POSITIONS = pa.list_(pa.int32())

SPANS = pa.schema([(c.name, _POSITIONS if c.type == "messages" else ARROW_TYPES[c.type]) for c in SPAN_COLUMNS])
TRACES = pa.schema(
    [
        ("trace_id", _TEXT), ("digest", _TEXT), ("file", _TEXT), ("place", _TEXT), ("format", _TEXT), ("name", _TEXT),
        ("goal", _TEXT), ("final_answer", _TEXT), ("attributes", _TEXT), ("warnings", _TEXTS), ("status", _TEXT),
        ("spans", _INT), ("messages", _INT), ("llm_spans", _INT), ("tool_spans", _INT), ("error_spans", _INT),
        ("warning_count", _INT), ("depth", _INT), ("agents", _TEXTS), ("models", _TEXTS), ("tools", _TEXTS),
        ("start_time", _TIME), ("end_time", _TIME), ("duration_s", pa.float64()), ("prompt_tokens", _INT),
        ("completion_tokens", _INT), ("total_tokens", _INT), ("outcome", _TEXT), ("expected_events", _TEXT),
        ("units", _POSITIONS),
    ]
)  # fmt: skip
MESSAGES = pa.schema(
    [
        ("trace_id", _TEXT), ("message", pa.int32()), ("role", _TEXT), ("content", _TEXT),
        ("tool_calls", pa.list_(_CALL)), ("name", _TEXT), ("tool_call_id", _TEXT), ("reasoning", _TEXT),
        ("first_seq", _INT),
    ]
)  # fmt: skip
WARNINGS = pa.schema([("trace_id", _TEXT), ("seq", _INT), ("span_id", _TEXT), ("code", _TEXT), ("warning", _TEXT)])
REJECTED = pa.schema([("file", _TEXT), ("place", _TEXT), ("reason", _TEXT), ("remedy", _TEXT), ("lost", _INT)])
SOURCES = pa.schema([("unit", pa.int32()), ("address", _TEXT), ("size", _INT), ("mark", _TEXT), ("digest", _TEXT)])
SCHEMAS: dict[str, pa.Schema] = {
    "traces": TRACES, "spans": SPANS, "messages": MESSAGES, "warnings": WARNINGS, "rejected": REJECTED,
    "sources": SOURCES,
}  # fmt: skip
"""The tables that a build writes. `seq` and `span_id` of a warning are empty where it is about the whole trace."""


def batches(trace: Trace, units: Sequence[int]) -> dict[str, pa.RecordBatch]:
    """Give the rows of a trace by table; `units` number the inputs of the partition that it was read from.

    Raises what Arrow and orjson raise for values that no column holds.
    """
    return {
        "traces": batch([_trace(trace, units)], TRACES),
        "spans": batch([_span(span) for span in trace.spans], SPANS),
        "messages": batch(_messages(trace), MESSAGES),
        "warnings": batch(_warnings(trace), WARNINGS),
    }


def batch(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Give rows as Arrow columns of a schema."""
    columns = [pa.array([row[column.name] for row in rows], column.type) for column in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def rejected_row(one: Rejected) -> Row:
    """Give a rejected input as a row of REJECTED."""
    return {name: getattr(one, name) for name in REJECTED.names}


def _trace(trace: Trace, units: Sequence[int]) -> Row:
    row = trace_row(trace)
    for name in ("agents", "models", "tools", "warnings"):
        row[name] = orjson.loads(row[name])
    events = dump([asdict(event) for event in trace.expected_events]).decode() if trace.expected_events else None
    return {**row, "digest": content_digest(trace), "expected_events": events, "units": list(units)}


def _span(span: Span) -> Row:
    row: Row = {column.name: getattr(span, column.name) for column in SPAN_COLUMNS}
    for name in ("events", "links"):
        row[name] = dump(list(row[name])).decode()
    row["attributes"] = dump(dict(span.attributes)).decode()
    return row


def _messages(trace: Trace) -> list[Row]:
    first = first_sequences(trace)
    return [
        {
            "trace_id": trace.trace_id,
            "message": position,
            **asdict(message),
            "tool_calls": [asdict(call) for call in message.tool_calls],
            "first_seq": first.get(position),
        }
        for position, message in enumerate(trace.messages)
    ]


def _warnings(trace: Trace) -> list[Row]:
    places: list[tuple[int | None, str | None, str]] = [(None, None, warning) for warning in trace.warnings]
    places += [(span.seq, span.span_id, warning) for span in trace.spans for warning in span.warnings]
    return [
        {"trace_id": trace.trace_id, "seq": seq, "span_id": span_id, "code": text.partition(":")[0], "warning": text}
        for seq, span_id, text in places
    ]


def trace_of(row: Row, spans: Sequence[Row], messages: Sequence[Row]) -> Trace:
    """Give the trace whose rows these are, times as integers of microseconds; no log records, no source bytes."""
    events = orjson.loads(row["expected_events"]) if row["expected_events"] else []
    return Trace(
        trace_id=row["trace_id"],
        format=row["format"],
        source=Source(file=row["file"], place=row["place"]),
        spans=tuple(map(_span_of, sorted(spans, key=lambda span: span["seq"]))),
        messages=tuple(map(_message_of, sorted(messages, key=lambda message: message["message"]))),
        goal=row["goal"],
        final_answer=row["final_answer"],
        attributes=orjson.loads(row["attributes"]),
        expected_events=tuple(ExpectedEvent(**{**e, "depends_on": tuple(e["depends_on"])}) for e in events),
        outcome=Outcome(**orjson.loads(row["outcome"])) if row["outcome"] else None,
        warnings=tuple(row["warnings"]),
    )


def _span_of(row: Row) -> Span:
    values = {column.name: row[column.name] for column in SPAN_COLUMNS}
    for name in ("events", "links"):
        values[name] = tuple(orjson.loads(values[name]))
    for name in ("input_messages", "output_messages", "warnings"):
        values[name] = tuple(values[name])
    return Span(**{**values, "attributes": orjson.loads(values["attributes"])})


def _message_of(row: Row) -> Message:
    calls = tuple(ToolCall(**call) for call in row["tool_calls"])
    return Message(row["role"], row["content"], calls, row["name"], row["tool_call_id"], row["reasoning"])
