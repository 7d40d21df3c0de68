"""Finds what a reader lost: leaf values of a source that stand nowhere in the trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from tracejury.ingest.formats.rows import opened
from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import Trace

TIME_KEYS = frozenset({
    "timestamp", "Timestamp", "duration", "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano",
    "observedTimeUnixNano", "start_time", "end_time", "startTime", "endTime", "start_time_unix_nano",
    "end_time_unix_nano", "time_unix_nano", "start_timestamp", "completed", "observed_timestamp", "started_at",
    "ended_at",
})  # fmt: skip
"""Told as microseconds in the table; their own tests hold them."""
ID_KEYS = frozenset({"traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_id", "parent_span_id"})
"""Told in their normal form."""


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Each scalar of a JSON value with the key it stands under, JSON and Python literals in texts opened too."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, key)
    elif isinstance(value, str) and (held := opened(value)) != value:
        yield from leaves(held, key)
    elif value is not None and value != "":
        yield key, value


def texts(value: Any) -> Iterator[str]:
    """Every text of a trace, JSON within texts opened too; the source's own bytes left out."""
    if isinstance(value, str):
        yield value
        held = inner_json(value)
        if held is not None:
            yield from texts(held)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from texts(item)
    elif is_dataclass(value):
        for field in fields(value):
            if field.name != "source":
                yield from texts(getattr(value, field.name))
    elif value is not None:
        yield str(value)


def lost(document: Any, traces: list[Trace], skip: frozenset[str] = frozenset()) -> list[tuple[str, Any]]:
    """The leaves of a source document that no text of its traces holds: as a whole, in any case, or within a text."""
    held = {text for trace in traces for text in texts(trace)}
    lower = {text.lower() for text in held}
    whole = "\n".join(held)
    missing = []
    for key, leaf in leaves(document):
        if key in TIME_KEYS or key in ID_KEYS or key in skip:
            continue
        text = str(leaf)
        if text in held or text.lower() in lower or text in whole:
            continue
        missing.append((key, leaf))
    return missing
