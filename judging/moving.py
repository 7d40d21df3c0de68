"""The whole store moved into another database, SQLite or PostgreSQL: row by row, compared before it counts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, LargeBinary, Row, Table, func, insert, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from tracejury.ingest.check import renew_search
from tracejury.ingest.store import open_engine, read_transaction, write_transaction
from tracejury.judging.runs.run_owner import is_alive
from tracejury.judging.store import WorkspaceError, tables
from tracejury.judging.store.workspace import upgrade

_TABLES: Sequence[Table] = tables.metadata.sorted_tables  # a row comes after the rows that it refers to
_MADE_ANEW = ("alembic_version", "span_search", "span_fts")
"""Tables that a migration and the index of words fill (SQLite keeps the index in several, named alike)."""
_ROWS_AT_ONCE, _BODIES_AT_ONCE = 500, 8


@dataclass(frozen=True, kw_only=True, slots=True)
class MovedTable:
    """Rows of one table and the hash of their content (blake2b, 32 hex digits, the same in any order of rows)."""

    name: str
    rows: int
    content: str


def move(source: Engine, url: str) -> list[MovedTable]:
    """Copy every row into the empty database at `url`; what was copied, table by table, in the order of the tables.

    Nobody writes to the source meanwhile, and it keeps everything. One transaction fills the target, and it is read
    back and compared before it ends: after a failure or an interruption the target is as empty as before. Raises
    `WorkspaceError` for a target that holds anything, for a run at work, and for content that the target refuses.
    """
    target = _opened(url)
    try:
        _refuse_same(source, target)
        with write_transaction(source) as origin, write_transaction(target) as copy:
            _refuse_runs(origin)
            _refuse_full(copy, target)
            upgrade(copy)
            return _fill(origin, copy)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip()
        message = f"cannot move into {_named(target)}: {reason}. Try: check the URL, and that the database is there"
        raise WorkspaceError(f"{message}; the target was left as it was") from error
    finally:
        target.dispose()


def content_of(connection: Connection, table: Table) -> MovedTable:
    """How many rows a table holds, and the hash of what stands in them."""
    return _summed(table, (row for rows in _chunks(connection, table) for row in rows))


def _opened(url: str) -> Engine:
    try:
        return open_engine(url)
    except ModuleNotFoundError as error:
        raise WorkspaceError(f"{url.partition(':')[0]} needs the package {error.name}. Try: install it") from error
    except SQLAlchemyError as error:
        raise WorkspaceError(
            "the target is not a database URL. Try: sqlite:////path/to/file.db, or "
            "postgresql+psycopg://user:password@host/database"
        ) from error


def _named(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=True)


def _refuse_same(source: Engine, target: Engine) -> None:
    """Raise where both are one database, or the target holds something: before a lock of one waits for the other."""
    if _place(source) == _place(target):
        raise WorkspaceError(f"{_named(target)} is the workspace's own database; nothing was moved. Try: an empty one")
    with read_transaction(target) as connection:
        _refuse_full(connection, target)


def _place(engine: Engine) -> tuple[object, ...]:
    url = engine.url
    if engine.dialect.name == "sqlite":
        return ("sqlite", os.path.realpath(url.database or ""))
    return (engine.dialect.name, url.host or url.query.get("host"), url.port, url.database)


def _refuse_runs(origin: Connection) -> None:
    """Raise where a process works on a run: its next verdict would be stored in the old database alone."""
    for run in origin.execute(select(tables.run).where(tables.run.c.status == "running")).all():
        if is_alive(origin, run):
            raise WorkspaceError(f"run {run.run_key} is at work; nothing was moved. Try: pause it, then move again")


def _refuse_full(copy: Connection, target: Engine) -> None:
    """Raise unless the target holds nothing: no row of ours, and no table of anybody else's."""
    known = {table.name: table for table in _TABLES}
    for name in inspect(copy).get_table_names():
        if name in known and copy.execute(select(known[name]).limit(1)).first() is None:
            continue
        if name.startswith(_MADE_ANEW):
            continue
        raise WorkspaceError(
            f"{_named(target)} is not empty: it holds the table {name}; nothing was moved. Try: an empty database"
        )


def _fill(origin: Connection, copy: Connection) -> list[MovedTable]:
    moved = [_copy_table(origin, copy, table) for table in _TABLES]
    for one, table in zip(moved, _TABLES, strict=True):
        arrived = content_of(copy, table)
        if arrived != one:
            raise WorkspaceError(
                f"the table {table.name} arrived with {arrived.rows:,} rows of {one.rows:,}, or with other "
                "content; nothing was kept in the target. Try: move again, and report it if it happens again"
            )
    renew_search(copy)
    if copy.dialect.name == "postgresql":
        _count_on(copy)
    return moved


def _copy_table(origin: Connection, copy: Connection, table: Table) -> MovedTable:
    def copied() -> Iterator[Row[Any]]:
        for rows in _chunks(origin, table):
            _insert(copy, table, [row._mapping for row in rows])
            yield from rows

    return _summed(table, copied())


def _insert(copy: Connection, table: Table, rows: Sequence[Mapping[Any, Any]]) -> None:
    try:
        copy.execute(insert(table), [dict(row) for row in rows])
    except (SQLAlchemyError, ValueError) as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise WorkspaceError(
            f"the other database does not take rows of the table {table.name}: {reason}; nothing was moved. Try: "
            "`tracejury verify` on this workspace"
        ) from error


def _chunks(connection: Connection, table: Table) -> Iterator[Sequence[Row[Any]]]:
    """A table's rows, so many at a time that long bodies do not fill the memory."""
    size = _BODIES_AT_ONCE if any(isinstance(column.type, LargeBinary) for column in table.c) else _ROWS_AT_ONCE
    with connection.execute(select(table).execution_options(yield_per=size)) as result:
        yield from result.partitions()


def _summed(table: Table, rows: Iterator[Row[Any]]) -> MovedTable:
    count = total = 0
    for row in rows:
        count += 1
        total += int.from_bytes(hashlib.blake2b(repr(tuple(row)).encode(), digest_size=16).digest())
    return MovedTable(name=table.name, rows=count, content=f"{total % 2**128:032x}")


def _count_on(copy: Connection) -> None:
    """PostgreSQL's own counters go on after the keys that were brought."""
    for table in _TABLES:
        key = table.autoincrement_column
        if key is not None:
            last = select(func.max(key)).scalar_subquery()
            sequence = func.pg_get_serial_sequence(table.name, key.name)
            copy.execute(select(func.setval(sequence, func.coalesce(last, text("1")), last.is_not(None))))
