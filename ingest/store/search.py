"""Full-text search over spans."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import NamedTuple

from sqlalchemy import Connection, text


class Hit(NamedTuple):
    """A span that holds all the words asked for."""

    trace_id: str
    seq: int
    span_id: str
    name: str


def search(connection: Connection, query: str, *, limit: int = 200) -> list[Hit]:
    """Spans that hold every word of `query` (the last word as a prefix), in order of ingestion; any text is a query."""
    is_sqlite = connection.dialect.name == "sqlite"
    words = _fts5_words(query) if is_sqlite else re.findall(r"[^\W_]+", query)
    if not words:
        return []
    found = _SQLITE if is_sqlite else _POSTGRESQL
    rows = connection.execute(
        text(
            "SELECT trace.trace_id, span.seq, span.span_id, span.name FROM span"
            f" JOIN trace ON trace.trace_key = span.trace_key WHERE span.span_key IN ({found})"
            " ORDER BY span.span_key LIMIT :limit"
        ),
        {"match": _fts5(words) if is_sqlite else _tsquery(words), "limit": limit},
    )
    return [Hit(*row) for row in rows]


def make_index(connection: Connection) -> None:
    """Make the index of words of an SQLite database that has none, as the migrations do."""
    connection.exec_driver_sql(
        "CREATE VIRTUAL TABLE span_fts USING fts5("
        "body, content='', detail='none', tokenize='unicode61 remove_diacritics 2')"
    )


def index_spans(connection: Connection, documents: Iterable[tuple[int, str]]) -> None:
    """Make spans findable: `(span_key, document)` each."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("INSERT INTO span_fts(rowid, body) VALUES (?, ?)", list(documents))
        return
    statement = text("INSERT INTO span_search(span_key, body) VALUES (:key, to_tsvector('simple', :body))")
    rows = [{"key": key, "body": body[:_TSVECTOR_CHARACTERS].replace("\0", " ")} for key, body in documents]
    connection.execute(statement, rows)


def forget_spans(connection: Connection, documents: Iterable[tuple[int, str]]) -> None:
    """Take spans out of the index; SQLite's needs the very documents that were put in."""
    if connection.dialect.name == "sqlite":
        delete = "INSERT INTO span_fts(span_fts, rowid, body) VALUES ('delete', ?, ?)"
        connection.exec_driver_sql(delete, list(documents))
        return
    keys = [{"key": key} for key, _ in documents]
    connection.execute(text("DELETE FROM span_search WHERE span_key = :key"), keys)


# the first spans alone: of words that most spans hold, all their rows would take a second
_SQLITE = "SELECT rowid FROM span_fts WHERE span_fts MATCH :match ORDER BY rowid LIMIT :limit"
_POSTGRESQL = (
    "SELECT span_key FROM span_search WHERE body @@ to_tsquery('simple', :match) ORDER BY span_key LIMIT :limit"
)
_TSVECTOR_CHARACTERS = 200_000  # a tsvector holds a megabyte; what stands beyond is not found there


def _fts5_words(query: str) -> list[str]:
    """The words that SQLite's own tokenizer makes of a text: one that it would cut in two is no word of an index
    without places.
    """
    text = query.encode("utf-8", "replace").decode().replace("\0", " ")
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("CREATE VIRTUAL TABLE said USING fts5(body, tokenize='unicode61 remove_diacritics 2')")
        memory.execute("CREATE VIRTUAL TABLE word USING fts5vocab(said, 'instance')")
        memory.execute("INSERT INTO said(body) VALUES (?)", [text])
        return [term for (term,) in memory.execute("SELECT term FROM word ORDER BY offset")]


def _fts5(words: Sequence[str]) -> str:
    return " ".join([*(f'"{word}"' for word in words[:-1]), f'"{words[-1]}"*'])


def _tsquery(words: Sequence[str]) -> str:
    return " & ".join([*words[:-1], f"{words[-1]}:*"])
