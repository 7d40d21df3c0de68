"""What an import of scores made elsewhere must know of the workspace: its traces, and whose the named spans are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from sqlalchemy import Connection, func, select

from tracejury.ingest.store import schema
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.labels.score_import import TraceIndex


def trace_index(connection: Connection, span_ids: Collection[str]) -> TraceIndex:
    """The workspace's traces and where spans of these ids (lower case, without 0x) stand."""
    trace, span = schema.trace, schema.span
    places: dict[str, list[tuple[str, str]]] = defaultdict(list)
    spellings = sorted({one for bare in span_ids for one in (bare, bare.upper(), f"0x{bare}")})
    rows = connection.execute(
        select(trace.c.trace_id, span.c.span_id, span.c.depth, trace.c.trace_key)
        .join(trace, trace.c.trace_key == span.c.trace_key)
        .where(is_one_of(span.c.span_id, spellings))
    ).all()
    for row in rows:
        places[row.span_id.lower().removeprefix("0x")].append((row.trace_id, row.span_id))
    roots = _only_roots(connection, {(row.trace_key, row.trace_id, row.span_id) for row in rows if row.depth == 0})
    traces = frozenset(connection.scalars(select(trace.c.trace_id)))
    return TraceIndex(traces=traces, spans={key: tuple(spots) for key, spots in places.items()}, roots=frozenset(roots))


def _only_roots(connection: Connection, spans: set[tuple[int, str, str]]) -> set[tuple[str, str]]:
    """Of root spans those that are the only root of their trace: what is said of one is said of the trace."""
    span = schema.span
    keys = {key for key, _, _ in spans}
    counts: dict[int, int] = dict(
        connection.execute(
            select(span.c.trace_key, func.count())
            .where(is_one_of(span.c.trace_key, keys), span.c.depth == 0)
            .group_by(span.c.trace_key)
        ).all()
    )
    return {(trace_id, span_id) for key, trace_id, span_id in spans if counts.get(key) == 1}
