"""What opinions need to know of the spans they name: read for many traces or spans at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, select

from tracejury.ingest.store import schema
from tracejury.ingest.store.one_of import is_one_of

AT_ONCE: Final = 5_000  # ids in one question to the database
_span, _trace = schema.span, schema.trace


def parents_of(connection: Connection, trace_id: str) -> dict[str, str | None]:
    """The parent of each span of a trace, in reading order."""
    return parents_by_trace(connection, [trace_id]).get(trace_id, {})


def parents_by_trace(connection: Connection, trace_ids: Collection[str]) -> dict[str, dict[str, str | None]]:
    """The parent of each span in reading order, by trace."""
    parents: dict[str, dict[str, str | None]] = {}
    for trace_id, span_id, parent in rows_by_trace(connection, trace_ids, _span.c.parent_span_id):
        parents.setdefault(trace_id, {})[span_id] = parent
    return parents


def rows_by_trace(
    connection: Connection, trace_ids: Collection[str], *columns: ColumnElement[Any]
) -> Iterator[Row[*tuple[Any, ...]]]:
    """trace_id, span_id and these columns of every span of these traces."""
    return _rows(connection, _trace.c.trace_id, trace_ids, *columns)


def ordinals_of(connection: Connection, trace_id: str) -> dict[str, str]:
    """What the desk calls each span of a trace (S1 is the first), by id."""
    return {row.span_id: f"S{row.seq + 1}" for row in _rows(connection, _trace.c.trace_id, [trace_id], _span.c.seq)}


def named_spans(
    connection: Connection, span_ids: Collection[str], *columns: ColumnElement[Any]
) -> Iterator[Row[*tuple[Any, ...]]]:
    """trace_id, span_id and these columns of every span of any trace that has one of the ids."""
    return _rows(connection, _span.c.span_id, span_ids, *columns)


def _rows(
    connection: Connection, key: ColumnElement[str], values: Collection[str], *columns: ColumnElement[Any]
) -> Iterator[Row[*tuple[Any, ...]]]:
    query = select(_trace.c.trace_id, _span.c.span_id, *columns).join(_trace, _trace.c.trace_key == _span.c.trace_key)
    ids = list(dict.fromkeys(values))
    for at in range(0, len(ids), AT_ONCE):
        some = query.where(is_one_of(key, ids[at : at + AT_ONCE])).order_by(_span.c.trace_key, _span.c.seq)
        yield from connection.execute(some).all()
