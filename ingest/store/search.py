"""Full-text search over spans."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.exc import DatabaseError


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
    if is_sqlite:
        return _hits(connection, _SQLITE, match=_fts5(connection, words), limit=limit)
    return _postgresql_hits(connection, _tsquery(words), limit)


def _hits(connection: Connection, keys: str, **parameters: str | int) -> list[Hit]:
    """The spans whose keys a statement gives; `parameters` are its own, `limit` among them."""
    statement = (
        "SELECT trace.trace_id, span.seq, span.span_id, span.name FROM span"
        f" JOIN trace ON trace.trace_key = span.trace_key WHERE span.span_key IN ({keys})"
        " ORDER BY span.span_key LIMIT :limit"
    )
    return [Hit(*row) for row in connection.execute(text(statement), parameters)]


def _postgresql_hits(connection: Connection, match: str, limit: int) -> list[Hit]:
    """The first hits among the first rows, where that is enough of them, else by the index of words.

    The index gives all rows of a word, in no order: a second for one that most spans hold. To go through the rows in
    order takes as long for a word that few hold. The planner cannot tell them apart: it knows no number for a prefix.
    """
    hits = _hits(connection, _AMONG_FIRST_ROWS, match=match, limit=limit, rows=_FIRST_ROWS)
    if _MANY_HITS <= len(hits) < limit:
        hits = _hits(connection, _AMONG_FIRST_ROWS, match=match, limit=limit, rows=10 * _FIRST_ROWS)
    return hits if len(hits) == limit else _hits(connection, _BY_INDEX, match=match, limit=limit)


def make_index(connection: Connection) -> None:
    """Make the index of words of an SQLite database that has none, as the migrations do."""
    connection.exec_driver_sql(
        "CREATE VIRTUAL TABLE span_fts USING fts5("
        "body, content='', detail='none', prefix='1 2 3', tokenize='unicode61 remove_diacritics 2')"
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
# of PostgreSQL: a LIMIT within and MATERIALIZED hold the planner to the order of work that is written here
_AMONG_FIRST_ROWS = (
    "SELECT span_key FROM (SELECT span_key, body FROM span_search ORDER BY span_key LIMIT :rows) AS row"
    " WHERE body @@ to_tsquery('simple', :match) ORDER BY span_key LIMIT :limit"
)
_BY_INDEX = (
    "WITH hit AS MATERIALIZED (SELECT span_key FROM span_search WHERE body @@ to_tsquery('simple', :match))"
    " SELECT span_key FROM hit ORDER BY span_key LIMIT :limit"
)
_FIRST_ROWS = 1_000
_MANY_HITS = 20  # among the first rows: then ten times as many take less time than all the rows of the index
_PREFIX_CHARACTERS = 3  # of the longest prefixes that the index of SQLite holds
_WORDS_SPELT_OUT = 100
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


def _fts5(connection: Connection, words: Sequence[str]) -> str:
    """The words as a query. For a prefix FTS5 merges every row of every word that begins so, however few are wanted,
    unless it has an index of prefixes of that length; the rows of words that are spelt out it reads one by one.
    """
    *whole, last = words
    ends = _words_from(connection, last) if len(last) > _PREFIX_CHARACTERS else None
    final = f'"{last}"*' if not ends else " OR ".join(f'"{word}"' for word in ends)
    return " AND ".join([*(f'"{word}"' for word in whole), f"({final})"])


def _words_from(connection: Connection, prefix: str) -> list[str] | None:
    """The words of the index that begin with `prefix`; None where they are more than a query should spell out, or
    where one cannot be: FTS5 cuts words at 32 kB, within a letter too.
    """
    connection.exec_driver_sql(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.span_fts_word USING fts5vocab(main, span_fts, 'instance')"
    )
    first = text("SELECT term FROM temp.span_fts_word WHERE term >= :at ORDER BY term LIMIT 1")
    words: list[str] = []
    at = prefix
    while len(words) <= _WORDS_SPELT_OUT:
        try:
            word = connection.scalar(first, {"at": at})
        except DatabaseError:
            return None
        if word is None or not word.startswith(prefix):
            return words
        words.append(word)
        at = f"{word}\1"  # no word holds this character: what follows is the next word
    return None


def _tsquery(words: Sequence[str]) -> str:
    return " & ".join([*words[:-1], f"{words[-1]}:*"])
