"""Which state of the store something was made from: numbers that change whenever what it was made from does.

The keys of caches, and of estimates that are kept on disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, Table, func, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.store import schema
from tracejury.judging.store import tables

Revision = tuple[int, ...]
RULE_RATES = "rates of the matching rule"
"""The setting that holds what the matching rule reached on pairs that people labelled here."""
REMOVED = "traces removed"
"""What the audit log says when traces, perhaps with their labels, were taken out."""


def newest_rows(*appended: Table) -> list[ColumnElement[int]]:
    """Of tables that are only appended to: the newest key of each and how many rows, then when the newest was written.

    The number, since of two that write at once the one with the smaller key may end later. The time, since a restored
    backup that goes another way must not pass for what was there before. Last how often traces were removed: then
    rows are missing, and the newest may be the same.
    """
    keys = {table: next(iter(table.primary_key)) for table in appended}
    newest: list[ColumnElement[int]] = [largest(key) for key in keys.values()]
    newest += [select(func.count()).select_from(table).scalar_subquery() for table in appended]
    for table, key in keys.items():
        if "created_at" in table.c:
            written = select(table.c.created_at).order_by(key.desc()).limit(1).scalar_subquery()
            newest.append(func.coalesce(written, 0))
    removals = select(func.count()).where(tables.audit.c.what == REMOVED).scalar_subquery()
    return [*newest, removals]


def largest(column: ColumnElement[int]) -> ColumnElement[int]:
    """The largest value of a column, 0 of an empty table."""
    return select(func.coalesce(func.max(column), 0)).scalar_subquery()


def read_revision(connection: Connection, parts: Iterable[ColumnElement[int]]) -> Revision:
    """The parts as they are now, all of one moment."""
    return tuple(int(value) for value in connection.execute(select(*parts)).one())


def traces_parts() -> list[ColumnElement[int]]:
    """What changes whenever a trace comes, goes or is read again."""
    return [*newest_rows(schema.trace), largest(schema.trace.c.ingested_at)]


def traces_revision(connection: Connection) -> Revision:
    """Changes whenever a trace comes, goes or is read again."""
    return read_revision(connection, traces_parts())


def revision(connection: Connection) -> Revision:
    """Changes whenever anything that an estimate depends on changes: the key for caches.

    Counts stand beside the newest keys: cells that wait again change no key, and the clock of a process may be
    behind that of another.
    """
    return tuple(int(value) for value in connection.execute(_statement()).one())


@cache
def _statement() -> Select[*tuple[Any, ...]]:
    """What `revision` asks, which is asked for every estimate of every page."""
    appended = newest_rows(
        schema.trace, tables.error_label, tables.score_label, tables.review, tables.match, tables.finding_review,
        tables.finding,
    )  # fmt: skip
    finished = tables.cell.c.finished_at
    cells = (select(func.count(finished)).scalar_subquery(), largest(finished))
    matched = tables.matching.c
    matching = (select(func.count(matched.cell_key)).scalar_subquery(), largest(matched.last_label))
    scored = select(tables.setting.c.created_at).where(tables.setting.c.name == RULE_RATES).scalar_subquery()
    return select(*appended, *matching, func.coalesce(scored, 0), largest(schema.trace.c.ingested_at), *cells)
