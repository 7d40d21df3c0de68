"""Copies of the database while people work, and a copy put back in its place."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, func, select, text

from tracejury.ingest.store import schema
from tracejury.ingest.words import counted
from tracejury.judging.store import tables
from tracejury.judging.store.workspace import (
    HEAD,
    SECRET,
    Workspace,
    WorkspaceError,
    database_file,
    known_versions,
    migrate,
    open_workspace,
)

FOLDER = "backups"
_OF_SQLITE, _OF_POSTGRESQL = b"SQLite format 3\0", b"PGDMP"
"""How the two kinds of backup begin."""
_OTHER_SESSIONS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'"
)


def back_up(engine: Engine, file: Path) -> None:
    """Write the whole database to `file`, as it is at one moment. Raises `WorkspaceError`; nothing half is left."""
    _refuse_own(engine, file)
    with _whole_or_not_at_all(file) as partial:
        if engine.dialect.name == "sqlite":
            _copy(engine, partial)
        else:
            _run(["pg_dump", "--format=custom", f"--file={partial}"], engine.url)


def back_up_first(workspace: Workspace, reason: str) -> Path:
    """Back up into the workspace's own folder, before something is taken away; the file."""
    folder = workspace.home / FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"cannot make the folder {folder}: {error.strerror}. Try: check the path and its rights"
        ) from error
    suffix = "db" if workspace.engine.dialect.name == "sqlite" else "dump"
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    number = len(list(folder.glob(f"tracejury-{stamp}-*")))
    file = folder / f"tracejury-{stamp}-{number}-{reason}.{suffix}"
    back_up(workspace.engine, file)
    return file


def count_rows(connection: Connection) -> tuple[int, int]:
    """Give how many traces a workspace holds, and how many rows of anything else but the key that signs its tokens."""
    counts = {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in tables.metadata.sorted_tables
    }
    keys = connection.scalar(select(func.count()).where(tables.setting.c.name == SECRET)) or 0
    traces = counts.pop(schema.trace.name)
    return traces, sum(counts.values()) - keys


def restore(workspace: Workspace, file: Path) -> None:
    """Put a backup in the place of everything that the database holds, and bring it up to date.

    Raises `WorkspaceError` for a file that is not a backup of Tracejury, or that only a newer version can read; the
    database is then as it was.
    """
    engine = workspace.engine
    _refuse_own(engine, file)
    if engine.dialect.name == "sqlite":
        _check_sqlite(file)
        engine.dispose()
        with closing(sqlite3.connect(file)) as source, closing(_raw(engine)) as target:
            source.backup(target)
    else:
        _check_dump(file, engine.url)
        _refuse_while_used(engine)
        options = ["--clean", "--if-exists", "--single-transaction", "--no-owner", "--exit-on-error"]
        _run(["pg_restore", *options, f"--dbname={engine.url.database}", str(file)], engine.url)
    engine.dispose()
    migrate(engine)


def set_damaged_aside(home: Path | str | None, backup: Path) -> Path | None:
    """Move a SQLite database that cannot be opened into the folder of backups; where it is now, None of a good one.

    Raises `WorkspaceError`, with everything as it was, where `backup` cannot take its place.
    """
    try:
        open_workspace(home).engine.dispose()
    except WorkspaceError:
        file = database_file(home)
        if file is None or not file.is_file():
            raise
        _check_sqlite(backup)
        folder = file.parent / FOLDER
        folder.mkdir(exist_ok=True)
        aside = folder / f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-damaged.db"
        for suffix in ("", "-wal", "-shm"):
            part = file.with_name(file.name + suffix)
            if part.exists():
                part.replace(aside.with_name(aside.name + suffix))
        return aside
    return None


@contextmanager
def _whole_or_not_at_all(file: Path) -> Iterator[Path]:
    """A new file beside `file`, readable by its owner alone, that takes its name once it is complete."""
    if file.exists() and not file.is_file():  # a device would be replaced by a file
        raise WorkspaceError(f"{file} is there and is no file; nothing was written. Try: the name of a new file")
    try:
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        os.close(number)
    except OSError as error:
        raise WorkspaceError(f"cannot write {file}: {error.strerror}. Try: another folder") from error
    partial = Path(name)
    try:
        yield partial
        partial.replace(file)
    except (OSError, sqlite3.Error) as error:
        raise WorkspaceError(f"cannot write the backup {file}: {error}. Try: free space, or another folder") from error
    finally:
        partial.unlink(missing_ok=True)


def _refuse_own(engine: Engine, file: Path) -> None:
    """Raise where `file` is the database itself: whoever has it open would go on writing into what was replaced."""
    database = engine.url.database or ""
    own = [Path(f"{database}{suffix}") for suffix in ("", "-wal", "-shm")] if engine.dialect.name == "sqlite" else []
    if any(one.exists() and file.exists() and file.samefile(one) for one in own):
        raise WorkspaceError(f"{file} belongs to the workspace's own database; nothing was changed. Try: another file")


def _copy(engine: Engine, file: Path) -> None:
    """Copy an SQLite database while others read and write it, into one file without a log beside it, and check it."""
    with closing(_raw(engine)) as source, closing(sqlite3.connect(file)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode=DELETE")
        answer = target.execute("PRAGMA quick_check").fetchone()
    if answer is None or answer[0] != "ok":
        raise sqlite3.DatabaseError(f"the copy is damaged: {answer}")


def _raw(engine: Engine) -> sqlite3.Connection:
    return sqlite3.connect(engine.url.database or "", timeout=30)


def _check_sqlite(file: Path) -> None:
    """Raise unless the file is a whole database of Tracejury."""
    if _begins_with(file, _OF_POSTGRESQL):
        raise WorkspaceError(
            f"{file} is a backup of PostgreSQL, and this workspace's database is SQLite. Try: set TRACEJURY_DATABASE "
            "to a PostgreSQL database, restore it there, then `tracejury move --to sqlite:///FILE`"
        )
    try:
        with closing(sqlite3.connect(file.resolve().as_uri() + "?mode=ro", uri=True)) as connection:
            version = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise WorkspaceError(f"{file} is not a backup of Tracejury: {error}. Try: another file") from error
    if state != "ok":
        raise WorkspaceError(f"the backup {file} is damaged: {state}. Try: an earlier one")
    _check_version(file, None if version is None else str(version[0]))


def _check_version(file: Path, version: str | None) -> None:
    """Raise for a backup with a schema that no migration begins from."""
    if version not in known_versions():
        raise WorkspaceError(
            f"the backup {file} has the schema {version}, which this version ({HEAD}) cannot read; nothing was "
            "changed. Try: the version of Tracejury that made it"
        )


def _check_dump(file: Path, url: URL) -> None:
    """Raise unless the file is what `pg_dump` wrote of a database of Tracejury."""
    if _begins_with(file, _OF_SQLITE):
        raise WorkspaceError(
            f"{file} is a backup of SQLite, and this workspace's database is PostgreSQL. Try: unset "
            "TRACEJURY_DATABASE, restore it into a new --home, then `tracejury move --to` the PostgreSQL database"
        )
    if not _begins_with(file, _OF_POSTGRESQL):
        raise WorkspaceError(f"{file} is not a backup of Tracejury: `pg_dump` did not write it. Try: another file")
    if " alembic_version " not in _run(["pg_restore", "--list", str(file)], url):
        raise WorkspaceError(f"{file} is not a backup of Tracejury: it holds another database. Try: another file")
    rows = _run(["pg_restore", "--data-only", "--table=alembic_version", "--file=-", str(file)], url)
    version = re.search(r"^COPY \S*alembic_version .*\n(\w+)$", rows, re.MULTILINE)
    _check_version(file, None if version is None else version[1])


def _begins_with(file: Path, magic: bytes) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(magic)) == magic
    except OSError as error:
        raise WorkspaceError(f"cannot read {file}: {error.strerror}. Try: check the path and its rights") from error


def _refuse_while_used(engine: Engine) -> None:
    """Raise while others are connected: tables that somebody reads cannot be replaced, `pg_restore` would wait."""
    engine.dispose()
    with engine.connect() as connection:
        others = connection.scalar(_OTHER_SESSIONS)
    if others:
        raise WorkspaceError(
            f"the database is used over {counted(others, 'other connection')}; nothing was changed. "
            "Try: stop the app and every command that uses it, then restore again"
        )


def _run(command: Sequence[str], url: URL) -> str:
    """What a program of PostgreSQL prints, run on this database; the password goes by the environment alone."""
    program = shutil.which(command[0])
    if program is None:
        raise WorkspaceError(
            f"the program {command[0]} is not installed. Try: install PostgreSQL's client programs, of the server's "
            "version or newer (Debian: apt-get install postgresql-client)"
        )
    done = subprocess.run(
        [program, *command[1:]], env=os.environ | _libpq(url), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise WorkspaceError(
            f"{command[0]} failed: {done.stderr.strip()[:500]}. Try: check the database and its rights, and that the "
            "program is of the server's version or newer"
        )
    return done.stdout


def _libpq(url: URL) -> dict[str, str]:
    """Where the database is, as PostgreSQL's programs read it from the environment."""
    host = url.host or url.query.get("host")
    parts = {
        "PGHOST": host, "PGPORT": url.port, "PGUSER": url.username, "PGPASSWORD": url.password,
        "PGDATABASE": url.database, "PGSSLMODE": url.query.get("sslmode"),
        "PGSSLROOTCERT": url.query.get("sslrootcert"),
    }  # fmt: skip
    return {name: str(part) for name, part in parts.items() if part}
