"""Who works on a run: one process, its owner, until it is gone.

An owner's name is drawn, so no other process has it, whatever hosts, process ids and clocks say. That it lives is
told twice. A file beside an SQLite database is locked while its process is there: the system lets go of it however
the process ends, and not while it merely sleeps. Where no such file is (a database on a server), the owner's last sign
of life is compared with the database's own clock. Who takes a run over counts its epoch up, and an owner of an earlier
epoch writes nothing more.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from sqlalchemy import Connection, Engine, text

try:
    import fcntl
except ImportError:  # a system without such locks: there the sign of life alone tells
    fcntl = None  # type: ignore[assignment]

HEARTBEAT_S = 2.0
GONE_S = 60.0  # without a sign of life for so long, an owner of whom nothing else is known is gone
FOLDER = "run-owners"
Presence = Literal["here", "gone", "unknown"]


class RunHeldError(Exception):
    """Another process works on the run; the message says which, and what to do."""


class RunTakenError(Exception):
    """This process is no longer the owner of the run: it stopped for so long that another took the run over."""


class Owner:
    """This process as the owner of a run: a name, and a file of that name that stays locked while the process lives."""

    def __init__(self, engine: Engine) -> None:
        self.name = uuid4().hex
        self.file = _locked_file(_folder(engine), self.name)

    def leave(self) -> None:
        """Let go of the name; safe to call again."""
        if self.file is not None:
            path, descriptor = self.file
            path.unlink(missing_ok=True)
            os.close(descriptor)
            self.file = None


def presence(engine: Engine, name: str) -> Presence:
    """Whether the process of an owner is there, running or stopped; unknown where no lock can tell."""
    folder = _folder(engine)
    if folder is None or fcntl is None:
        return "unknown"
    try:
        descriptor = os.open(folder / name, os.O_RDONLY)
    except OSError:
        return "unknown"
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "here"
    except OSError:
        return "unknown"
    finally:
        os.close(descriptor)
    return "gone"


def process_of(engine: Engine, name: str) -> str | None:
    """The process id that an owner wrote into its file; None where it has none here."""
    folder = _folder(engine)
    with suppress(OSError):
        return None if folder is None else (folder / name).read_text(encoding="utf-8").strip() or None
    return None


def forget(engine: Engine, name: str) -> None:
    """Remove the file of an owner that is gone."""
    folder = _folder(engine)
    if folder is not None:
        (folder / name).unlink(missing_ok=True)


def is_alive(connection: Connection, run: Any) -> bool:
    """Whether the owner of a run (its row) is at work: there, and heard of lately."""
    if run.owner is None or silent_s(connection, run) >= GONE_S:
        return False
    return presence(connection.engine, run.owner) != "gone"


def silent_s(connection: Connection, run: Any) -> float:
    """Seconds since the last sign of life of a run's owner, by the database's clock."""
    return (database_now(connection) - (run.heartbeat_at or 0)) / 1_000_000


def database_now(connection: Connection) -> int:
    """UTC microseconds since 1970 by the database's clock: one for all processes, wherever they run."""
    return int(connection.scalar(_NOW[connection.dialect.name]) or 0)


_NOW = {
    "sqlite": text("SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"),
    "postgresql": text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"),
}


def _folder(engine: Engine) -> Path | None:
    """Where owners of runs of an SQLite file lock theirs; None where the database is no file of this machine."""
    name = engine.url.database
    if engine.dialect.name != "sqlite" or not name or name == ":memory:":
        return None
    return Path(name).resolve().parent / FOLDER


def _locked_file(folder: Path | None, name: str) -> tuple[Path, int] | None:
    """A new file that is locked from before it can be seen; None where that cannot be."""
    if folder is None or fcntl is None:
        return None
    path, hidden = folder / name, folder / f".{name}"
    try:
        folder.mkdir(exist_ok=True)
        descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        hidden.replace(path)
    except OSError:
        os.close(descriptor)
        hidden.unlink(missing_ok=True)
        return None
    return path, descriptor
