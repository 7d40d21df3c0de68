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
    words = _fts5_words(query) if is_sqlite else _words(query)
    if not words:
        return []
    if is_sqlite:
        return _hits(connection, _SQLITE, match=_fts5(connection, words), limit=limit)
    return _hits(connection, _POSTGRESQL, match=_tsquery(words), spans=SPANS_A_BLOCK, limit=limit)


def _hits(connection: Connection, keys: str, **parameters: str | int) -> list[Hit]:
    """The spans whose keys a statement gives; `parameters` are its own, `limit` among them."""
    statement = (
        "SELECT trace.trace_id, span.seq, span.span_id, span.name FROM span"
        f" JOIN trace ON trace.trace_key = span.trace_key WHERE span.span_key IN ({keys})"
        " ORDER BY span.span_key LIMIT :limit"
    )
    return [Hit(*row) for row in connection.execute(text(statement), parameters)]


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
    rows = [{"key": key, "words": _tsvector(key, document)} for key, document in documents]
    if rows:
        statement = "INSERT INTO span_search(span_key, body) VALUES (:key, CAST(:words AS tsvector))"
        connection.execute(text(statement), rows)


def _tsvector(span_key: int, document: str) -> str:
    """The words of a span, each behind the number of the block that the span stands in: so they are indexed."""
    block = f"{span_key // SPANS_A_BLOCK:x}"
    return " ".join(f"'{block} {word}'" for word in set(_words(document[:_TSVECTOR_CHARACTERS])))


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
SPANS_A_BLOCK = 5_000
"""Spans whose words stand together in PostgreSQL's index, which gives the rows of a word all at once, in no order.

Block after block they come in order, and no more blocks are looked at than a search needs: of a word that every span
holds the rows of one block, of a rare word some 15 microseconds a block.
"""
_POSTGRESQL = (
    "SELECT hit.span_key FROM generate_series(0, (SELECT max(span_key) FROM span_search) / :spans) AS block"
    " CROSS JOIN LATERAL (SELECT span_key FROM span_search"
    " WHERE body @@ CAST(replace(:match, '#', to_hex(block)) AS tsquery) ORDER BY span_key) AS hit LIMIT :limit"
)
_PREFIX_CHARACTERS = 3  # of the longest prefixes that the index of SQLite holds
_WORDS_SPELT_OUT = 100
_TSVECTOR_CHARACTERS = 200_000  # a tsvector holds a megabyte; what stands beyond is not found there
_WORD_CHARACTERS = 400  # a word of a tsvector has at most 2,046 bytes; of a longer one its beginning is found


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


def _words(text: str) -> list[str]:
    """The words of a text for PostgreSQL: letters and digits alone, they need no quoting there."""
    return [word[:_WORD_CHARACTERS] for word in re.findall(r"[^\W_]+", text.lower())]


def _tsquery(words: Sequence[str]) -> str:
    """The words as a query, with # for the number of a block."""
    return " & ".join(f"'# {word}'" for word in words) + ":*"
