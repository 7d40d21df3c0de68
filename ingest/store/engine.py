"""Opening the database and its transactions: WAL, and a write lock taken at once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url

T = TypeVar("T")
_WRITERS = 0x7472616365  # "trace": the advisory lock that writers of a subject share, and a writer alone has
TRACES = "traces"
"""The subject of those who write traces: they number rows by hand."""
_CONNECTIONS, _MORE = 20, 20
"""To PostgreSQL from one process: as many are kept, and so many more are opened while all are in use."""


def open_engine(url: str) -> Engine:
    """An engine for `url` (SQLite or PostgreSQL). Raises `sqlalchemy.exc.ArgumentError` on a malformed URL."""
    pool = {} if url.startswith("sqlite") else {"pool_size": _CONNECTIONS, "max_overflow": _MORE, "pool_pre_ping": True}
    engine = create_engine(_read_only(url) or url, **pool)
    event.listen(engine, "before_cursor_execute", _escape_nul, retval=True)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _on_sqlite_connect)
        event.listen(engine, "begin", _on_sqlite_begin)
    return engine


def _read_only(url: str) -> URL | None:
    """The URL that reads an SQLite file which may not be written, None for any other.

    Such a file cannot have the log that SQLite keeps beside it; where one was left, it is read too.
    """
    parts = make_url(url)
    file = parts.database or ""
    if parts.get_backend_name() != "sqlite" or not os.path.isfile(file) or _is_writable(file):
        return None
    log = f"{file}-wal"
    has_log = os.path.isfile(log) and os.path.getsize(log) > 0
    options = {"mode": "ro", "uri": "true"} | ({} if has_log else {"immutable": "1"})
    return URL.create("sqlite", database=f"file:{quote(file)}", query=options)


def _is_writable(file: str) -> bool:
    return os.access(file, os.W_OK) and os.access(os.path.dirname(file) or ".", os.W_OK)


@contextmanager
def read_transaction(engine: Engine) -> Iterator[Connection]:
    """A connection that sees one state of the database."""
    one_state = (
        engine if engine.dialect.name == "sqlite" else engine.execution_options(isolation_level="REPEATABLE READ")
    )
    with one_state.connect() as connection, connection.begin():
        yield connection


@contextmanager
def write_transaction(engine: Engine, *subjects: str) -> Iterator[Connection]:
    """One write transaction: all of it or nothing.

    SQLite takes its write lock at the beginning: a transaction that reads first and writes later cannot wait
    for another writer, it fails at once with "database is locked". PostgreSQL gets the same order by locks of
    ours: what is read before writing (the newest revision, the people counted) is still so when it is written.
    There, writers that name their `subjects` ("run 3", "labels: of ...") wait for those of the same subjects alone,
    those of a whole ("labels") for its parts, too; one that names none waits for all, and all for it. Which write
    takes which: `judging.store.locks`. Keys of rows then follow each other within a subject only: of two subjects, the
    row with the smaller key may be committed later.
    """
    with engine.connect().execution_options(tracejury_writes=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(_locks(subjects))
        yield connection


def _locks(subjects: Sequence[str]) -> str:
    """The statement that takes the locks, always in the same order: two writers never wait for each other."""
    if not subjects:
        return f"SELECT pg_advisory_xact_lock({_WRITERS})"
    wholes = {one.partition(":")[0] for one in subjects if ":" in one}
    shared = dict.fromkeys(map(_key, wholes), "_shared")
    kinds = sorted({**shared, **dict.fromkeys(map(_key, subjects), "")}.items())
    own = (f"pg_advisory_xact_lock{kind}({key})" for key, kind in kinds)
    return f"SELECT pg_advisory_xact_lock_shared({_WRITERS}), {', '.join(own)}"


def _key(subject: str) -> int:
    return int.from_bytes(blake2b(subject.encode(), digest_size=8).digest(), signed=True)


def _on_sqlite_connect(dbapi_connection: Any, _record: object) -> None:
    dbapi_connection.isolation_level = None  # the driver must not begin transactions by itself
    cursor = dbapi_connection.cursor()
    for pragma in ("synchronous=NORMAL", "busy_timeout=30000", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    with suppress(sqlite3.OperationalError):  # of a file that may only be read
        cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA cache_size=-32000")
    cursor.close()


def _on_sqlite_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("tracejury_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _escape_nul(
    _connection: Connection, _cursor: object, statement: str, parameters: Any, _context: object, is_many: bool
) -> tuple[str, Any]:
    """NUL in a text as its six-character escape: PostgreSQL refuses it, and what SQLite took could never move there."""
    are_rows = is_many and _are_rows(parameters)
    rows = parameters if are_rows else [parameters]
    if any(_holds_nul(row) for row in rows):
        rows = [_escaped(row) for row in rows]
        return statement, rows if are_rows else rows[0]
    return statement, parameters


def _are_rows(parameters: Any) -> bool:
    """Whether parameters of many rows are a row each: an INSERT that returns keys takes those of many at once."""
    return not isinstance(parameters, Mapping) and all(isinstance(row, Mapping | tuple | list) for row in parameters)


def _holds_nul(row: Mapping[str, Any] | Sequence[Any]) -> bool:
    for value in row.values() if isinstance(row, Mapping) else row:  # a generator would take twice as long
        if value.__class__ is str and "\0" in value:
            return True
    return False


def _escaped(row: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any] | tuple[Any, ...]:
    if isinstance(row, Mapping):
        return dict(zip(row, _escaped(tuple(row.values())), strict=True))
    return tuple(value.replace("\0", "\\u0000") if isinstance(value, str) else value for value in row)


def chunks(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    """The items, so many at a time: a statement takes a bounded number of parameters."""
    return (items[at : at + size] for at in range(0, len(items), size))
