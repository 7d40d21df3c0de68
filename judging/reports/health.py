"""How the workspace is: its size, who works on runs, what failed of late; and its backup while people work."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import Connection, Engine, Select, Table, func, select

from tracejury.ingest.gaps import GAPS
from tracejury.ingest.store import marked_traces, read_transaction, schema
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.records import FAILED_STATES
from tracejury.judging.runs.run_owner import is_alive, silent_s
from tracejury.judging.store import tables
from tracejury.judging.store.backup import FOLDER as FOLDER
from tracejury.judging.store.backup import back_up
from tracejury.judging.store.judge_models import is_own_word
from tracejury.judging.store.workspace import WorkspaceError


class BackupError(Exception):
    """A backup that was not made; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class RunHealth:
    """A run that is not finished. `is_alive`: the process that owns it is at work; None while none owns it."""

    run_key: int
    name: str
    status: str
    seen_s: float | None
    is_alive: bool | None


@dataclass(frozen=True, kw_only=True)
class Health:
    """Sizes in bytes, None where the database is no file. `errors`: judge, trace, reason of the newest failed cells.

    `unread` counts traces of which not all could be read (a model call without messages, for one).
    """

    database: str
    bytes: int | None
    log_bytes: int | None
    traces: int
    unread: int
    labels: int
    runs: tuple[RunHealth, ...]
    errors: tuple[tuple[str, str, str], ...]


def health(engine: Engine, *, hidden: Collection[str] = ()) -> Health:
    """Return the state of the workspace; no failure on a `hidden` trace is among `errors`."""
    file = database_file(engine)
    log = None if file is None else file.with_name(f"{file.name}-wal")
    with read_transaction(engine) as connection:
        return Health(
            database=engine.dialect.name,
            bytes=None if file is None else file.stat().st_size,
            log_bytes=log.stat().st_size if log is not None and log.exists() else None,
            traces=_count(connection, schema.trace.c.trace_key),
            unread=len(marked_traces(connection, *GAPS)),
            labels=_count(connection, tables.error_label.c.row_key) + _count(connection, tables.score_label.c.row_key),
            runs=tuple(_runs(connection)),
            errors=tuple(_errors(connection, hidden)),
        )


def database_file(engine: Engine) -> Path | None:
    """The file of an SQLite database; None for one that is in memory or on a server."""
    name = engine.url.database
    return Path(name) if engine.dialect.name == "sqlite" and name and name != ":memory:" else None


def backup(engine: Engine, folder: Path) -> Path:
    """Copy the database into `folder` while others read and write it; the copy is whole and checked.

    Raises `BackupError` where the database is not an SQLite file, or the copy is damaged or cannot be written.
    """
    if database_file(engine) is None:
        raise BackupError(f"the database is on a {engine.dialect.name} server: back it up with its own tools")
    target = folder / f"tracejury-{datetime.now(UTC):%Y%m%d-%H%M%S}-{time.monotonic_ns() % 1_000_000:06d}.db"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        back_up(engine, target)
    except (OSError, WorkspaceError) as error:
        raise BackupError(f"the backup could not be written to {folder}: {error}") from error
    return target


def backups(folder: Path) -> list[Path]:
    """The backups there are, newest first."""
    return sorted(folder.glob("tracejury-*.db"), reverse=True)


def label_rows(connection: Connection) -> pd.DataFrame:
    """annotator, errors, scores: the rows that `Health.labels` counts, by whose they are."""
    counts = [
        {str(who): int(number) for who, number in connection.execute(_by_annotator(table)).all()}
        for table in (tables.error_label, tables.score_label)
    ]
    rows = [(who, *(of.get(who, 0) for of in counts)) for who in sorted(set().union(*counts))]
    return pd.DataFrame(rows, columns=["annotator", "errors", "scores"])


def _by_annotator(table: Table) -> Select[Any]:
    return select(table.c.annotator, func.count()).group_by(table.c.annotator)


def _count(connection: Connection, key: object) -> int:
    return int(connection.scalar(select(func.count(key))) or 0)  # type: ignore[arg-type]


def _runs(connection: Connection) -> list[RunHealth]:
    run = tables.run
    rows = connection.execute(
        select(run).where(run.c.status.not_in(("done", "cancelled"))).order_by(run.c.run_key)
    ).all()
    return [
        RunHealth(
            run_key=row.run_key,
            name=row.name,
            status=row.status,
            seen_s=None if row.heartbeat_at is None else silent_s(connection, row),
            is_alive=None if row.owner is None else is_alive(connection, row),
        )
        for row in rows
    ]


def _errors(connection: Connection, hidden: Collection[str], most: int = 20) -> list[tuple[str, str, str]]:
    cell = tables.cell
    rows = connection.execute(
        select(cell.c.rubric, cell.c.trace_id, cell.c.reason, cell.c.state)
        .where(cell.c.state.in_(FAILED_STATES), is_own_word(), ~is_one_of(cell.c.trace_id, hidden))
        .order_by(cell.c.finished_at.desc())
        .limit(most)
    ).all()
    return [(row.rubric, row.trace_id, row.reason or row.state) for row in rows]
