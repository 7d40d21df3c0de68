"""Full-text search over spans."""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlalchemy import Connection, text


class Hit(NamedTuple):
    """A span that holds all the words asked for."""

    trace_id: str
    seq: int
    span_id: str
    name: str


def search(connection: Connection, query: str, *, limit: int = 200) -> list[Hit]:
    """Spans that hold every word of `query` (the last word as a prefix), in order of ingestion."""
    words = re.findall(r"\w+", query)
    if not words:
        return []
    match = " ".join(f'"{word}"' for word in words[:-1]) + f' "{words[-1]}"*'
    rows = connection.execute(
        text(
            "SELECT trace.trace_id, span.seq, span.span_id, span.name FROM span_fts"
            " JOIN span ON span.span_key = span_fts.rowid JOIN trace ON trace.trace_key = span.trace_key"
            " WHERE span_fts MATCH :match ORDER BY span.span_key LIMIT :limit"
        ),
        {"match": match.strip(), "limit": limit},
    )
    return [Hit(*row) for row in rows]
