"""A workspace: its home folder, its database, the migrations that bring it up to date."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import URL, Connection, Engine, insert, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from tracejury.ingest.store import open_engine, read_transaction, write_transaction
from tracejury.judging.store import tables
from tracejury.judging.store.locks import SETTINGS

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS = Path(__file__).parent / "migrations"
DEFAULT_HOME = ".tracejury"
FILE = "tracejury.db"
SECRET = "secret"
HEAD = "0102"  # the newest migration: tests hold it against the migrations folder


class WorkspaceError(Exception):
    """A workspace that cannot be opened; the message says which and what to do."""


class NoWorkspaceError(WorkspaceError):
    """A folder without a workspace; whoever asked says how one is made."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Where everything is kept. `home` also holds the user's own rubrics."""

    home: Path
    engine: Engine

    def secret(self) -> str:
        """The key that signs this workspace's tokens, made at its first use."""
        with read_transaction(self.engine) as connection:
            known = _setting(connection, SECRET)
        if known is not None:
            return known
        with write_transaction(self.engine, SETTINGS) as connection:
            known = _setting(connection, SECRET)
            if known is None:
                known = secrets.token_urlsafe(32)
                connection.execute(
                    insert(tables.setting).values(name=SECRET, value=known, created_at=time.time_ns() // 1000)
                )
        return known


def open_workspace(home: Path | str | None = None, *, create: bool = True) -> Workspace:
    """Open (and migrate, where needed) the workspace at `home`; where there is none it is made if `create`.

    `home` defaults to TRACEJURY_HOME, then to `./.tracejury`; the database to TRACEJURY_DATABASE, then to
    `home/tracejury.db`. Raises `WorkspaceError`, `NoWorkspaceError` among them.
    """
    folder = home_folder(home)
    if not create and not has_workspace(home):
        raise NoWorkspaceError(f"there is no workspace at {folder}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"cannot make the workspace folder {folder}: {error.strerror}. Try: another --home"
        ) from error
    try:
        engine = open_engine(database_url(folder))
        migrate(engine)
    except ModuleNotFoundError as error:
        raise WorkspaceError(
            f"the database of {folder} needs the package {error.name}. Try: SQLite, or PostgreSQL with "
            "pip install 'tracejury[postgres]'"
        ) from error
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip()
        raise WorkspaceError(
            f"cannot open the database of {folder}: {reason}. Try: check TRACEJURY_HOME and TRACEJURY_DATABASE; where "
            "the file is damaged, `tracejury restore` restores a backup"
        ) from error
    return Workspace(home=folder, engine=engine)


def has_workspace(home: Path | str | None) -> bool:
    """Return whether the folder holds a workspace's file; a database beside it (TRACEJURY_DATABASE) is not asked."""
    file = database_file(home)
    return file is None or file.exists()


def home_folder(home: Path | str | None) -> Path:
    """The workspace's folder: what is given, else TRACEJURY_HOME, else `./.tracejury`."""
    return Path(home or os.environ.get("TRACEJURY_HOME") or DEFAULT_HOME)


def database_url(home: Path | str | None) -> str:
    """The database of the workspace at `home`: TRACEJURY_DATABASE, else the SQLite file in it."""
    file = URL.create("sqlite", database=str(home_folder(home).resolve() / FILE))  # a glued path would lose ? and %
    return os.environ.get("TRACEJURY_DATABASE") or file.render_as_string()


def database_file(home: Path | str | None) -> Path | None:
    """The SQLite file of the workspace at `home`, None where its database is another."""
    return None if os.environ.get("TRACEJURY_DATABASE") else home_folder(home).resolve() / FILE


def migrate(engine: Engine) -> None:
    """Bring the schema to the newest migration; nothing happens where it is there already."""
    before = schema_version(engine)
    if before == HEAD:
        return
    from alembic.util.exc import CommandError

    try:
        with write_transaction(engine) as connection:  # one process migrates, others wait and find it done
            upgrade(connection)
    except CommandError as error:
        raise WorkspaceError(
            f"the database has the schema {before}, which this version ({HEAD}) cannot read; nothing was changed. "
            "Try: choose a new home (--home NEW) and fill it by `tracejury ingest` and `tracejury labels import`, with "
            "the labels that the other version writes by `tracejury labels export --out labels.json`"
        ) from error


def upgrade(connection: Connection) -> None:
    """Bring the schema to the newest migration, in the caller's write transaction."""
    from alembic import command

    command.upgrade(alembic_config(connection), "head")


def known_versions() -> set[str]:
    """Give the schema versions that the migrations bring up to date, the newest among them."""
    from alembic.script import ScriptDirectory

    return {script.revision for script in ScriptDirectory(str(_MIGRATIONS)).walk_revisions()}


def alembic_config(connection: Connection) -> Config:
    """Alembic's settings for this connection; the migrations stand beside this module."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def schema_version(engine: Engine) -> str | None:
    """The migration that the database is at, None for one that is empty."""
    with read_transaction(engine) as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        value = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        return None if value is None else str(value)


def _setting(connection: Connection, name: str) -> str | None:
    value = connection.scalar(select(tables.setting.c.value).where(tables.setting.c.name == name))
    return None if value is None else str(value)
