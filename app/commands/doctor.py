"""The command `doctor`: what of this machine and this workspace works, and what to do about what does not."""

from __future__ import annotations

import multiprocessing
import os
import platform
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

import click
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from tracejury.app.commands.faults import error_words
from tracejury.app.commands.output import print_json
from tracejury.app.config import SETTINGS, config, unknown_settings
from tracejury.ingest.store import open_engine, read_transaction, schema
from tracejury.judging.gaia2.environment import Gaia2Error, find
from tracejury.judging.runs.run_owner import database_now
from tracejury.judging.store import tables
from tracejury.judging.store.people import someone_can_sign_in
from tracejury.judging.store.workspace import HEAD, database_file, database_url, home_folder, schema_version

State = Literal["ok", "note", "stops"]
SHOWN = ("streamlit", "sqlalchemy", "pandas", "litellm")
LEAST_BYTES, FEW_BYTES = 100_000_000, 1_000_000_000
LABELS = (tables.error_label, tables.score_label)
SKEW_S = 5.0
WORKER_S = 120.0
KEYS = (
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "OPENROUTER_API_KEY", "AZURE_API_KEY",
    "GROQ_API_KEY", "DEEPSEEK_API_KEY", "AWS_ACCESS_KEY_ID", "HF_TOKEN",
)  # fmt: skip
"""Where providers that are often used look for their keys; any other *_API_KEY that is set is named too."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """What was looked at: `stops` where no work is possible until the remedy is done, `note` where some is not."""

    subject: str
    state: State
    message: str
    remedy: str = ""


def doctor(home: Path | None, *, as_json: bool) -> int:
    """Print one line a check, or JSON; exit code 1 where something stops work. Makes and changes nothing."""
    results = list(checks(home_folder(home)))
    stops = any(one.state == "stops" for one in results)
    if as_json:
        print_json({"works": not stops, "checks": [asdict(one) for one in results]})
    else:
        for one in results:
            remedy = f". Try: {one.remedy}" if one.remedy else ""
            click.echo(f"{one.state:5}  {one.subject:13}  {one.message}{remedy}")
    return 1 if stops else 0


def checks(home: Path) -> Iterator[Check]:
    """Every check, those of the database only where it can be opened."""
    yield versions()
    of_settings = settings()
    yield of_settings
    yield folder(home)
    yield disk(home)
    database = _tried("database", lambda: database_of(home))
    yield database
    if database.state == "ok":
        yield from (_tried("backup", lambda: _with_database(home, backup)),) if database_file(home) is None else ()
        if of_settings.state == "ok":
            yield _tried("sign-in", lambda: _with_database(home, sign_in))
        yield _tried("clock", lambda: _with_database(home, clock))
        yield estimates(home)
    yield provider_keys(os.environ)
    yield gaia2()


def _tried(subject: str, look: Callable[[], Check]) -> Check:
    """The check, or what failed in it with its remedy."""
    try:
        return look()
    except ModuleNotFoundError as error:
        remedy = f"pip install {error.name}, or 'tracejury[postgres]' for PostgreSQL"
        return Check(subject=subject, state="stops", message=f"needs the package {error.name}", remedy=remedy)
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        message, _, remedy = error_words(error).partition(". Try: ")
        return Check(subject=subject, state="stops", message=message, remedy=remedy)


def versions() -> Check:
    """The versions that bug reports need; a library that is missing stops work."""
    needed = [re.split(r"[^\w.-]", line)[0] for line in requires("tracejury") or () if "extra ==" not in line]
    missing = [name for name in needed if _version(name) is None]
    if missing:
        remedy = "install Tracejury again (`pip install --force-reinstall`), in an environment of its own"
        return Check(subject="versions", state="stops", message=f"missing: {', '.join(missing)}", remedy=remedy)
    libraries = ", ".join(f"{name} {_version(name)}" for name in SHOWN)
    own = f"tracejury {_version('tracejury')}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return Check(subject="versions", state="ok", message=f"{own}, {libraries}")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def settings() -> Check:
    """The variables TRACEJURY_*: whether the app starts with them."""
    try:
        mode = config().sign_in
    except ValueError as error:
        return Check(subject="settings", state="stops", message=str(error), remedy="correct or unset the variable")
    if unknown := unknown_settings():
        summary = f"sign-in {mode}; unknown settings: {', '.join(unknown)}"
        return Check(subject="settings", state="note", message=summary, remedy=f"one of {', '.join(SETTINGS)}")
    names = sorted(name for name in os.environ if name.startswith("TRACEJURY_"))
    return Check(subject="settings", state="ok", message=f"sign-in {mode}; set: {', '.join(names) or 'none'}")


def folder(home: Path) -> Check:
    """Who may read and write the workspace's folder."""
    place = _nearest(home)
    if not os.access(place, os.W_OK | os.X_OK):
        remedy = f"give yourself the right to write (`ls -ld {place}`), or choose another --home"
        return Check(subject="home", state="stops", message=f"{place} cannot be written", remedy=remedy)
    if place != home:
        message = f"{home} does not exist yet; the first command that stores something creates it"
        return Check(subject="home", state="note", message=message, remedy="tracejury ingest PATH, or tracejury demo")
    if home.stat().st_mode & 0o007:
        message = f"{home} can be written, and every user of this machine can read it"
        return Check(subject="home", state="note", message=message, remedy=f"chmod o= {home}, if others must not")
    return Check(subject="home", state="ok", message=f"{home} can be read and written")


def _nearest(home: Path) -> Path:
    """The folder itself, or the nearest one above that is there."""
    return next(place for place in (home, *home.absolute().parents) if place.is_dir())


def disk(home: Path) -> Check:
    """Free space, beside what a backup of the database takes."""
    free = shutil.disk_usage(_nearest(home)).free
    file = database_file(home)
    size = file.stat().st_size if file is not None and file.is_file() else 0
    message = f"{free / 1e9:,.1f} GB free, the database holds {size / 1e9:,.2f} GB"
    if free < LEAST_BYTES:
        return Check(subject="disk", state="stops", message=message, remedy="free space on this disk (`df -h`)")
    if free < max(FEW_BYTES, size):
        remedy = "free space: a backup takes as much as the database"
        return Check(subject="disk", state="note", message=message, remedy=remedy)
    return Check(subject="disk", state="ok", message=message)


def database_of(home: Path) -> Check:
    """Whether the database opens and has the schema of this version; none is made or migrated."""
    file = database_file(home)
    if file is not None and not file.is_file():
        message = "none yet; the first command that stores something creates it"
        return Check(subject="database", state="note", message=message, remedy="tracejury ingest PATH")
    return _with_database(home, _opened)


def _with_database(home: Path, look: Callable[[Engine], Check]) -> Check:
    engine = open_engine(database_url(home))
    try:
        return look(engine)
    finally:
        engine.dispose()


def _opened(engine: Engine) -> Check:
    known = schema_version(engine)
    if known is None:
        return Check(subject="database", state="note", message="empty", remedy="tracejury ingest PATH")
    if known != HEAD:
        remedy = "the version of Tracejury that made it, or a new --home"
        message = f"has the schema {known}, this version reads {HEAD}"
        return Check(subject="database", state="stops", message=message, remedy=remedy)
    with read_transaction(engine) as connection:
        traces = connection.scalar(select(func.count()).select_from(schema.trace)) or 0
        message = f"{_server(connection)}, schema {known}, traces: {traces:,}"
    return Check(subject="database", state="ok", message=f"{message} (`tracejury verify` reads all of it)")


def _server(connection: Connection) -> str:
    name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[connection.dialect.name]
    return f"{name} {'.'.join(map(str, connection.dialect.server_version_info or ()))}"


def backup(engine: Engine) -> Check:
    """Whether the programs are there that back up a server's database."""
    missing = [name for name in ("pg_dump", "pg_restore") if shutil.which(name) is None]
    if missing:
        remedy = "install PostgreSQL's client programs, for `tracejury backup` and `restore`"
        return Check(subject="backup", state="note", message=f"missing: {', '.join(missing)}", remedy=remedy)
    return Check(
        subject="backup", state="ok", message=f"pg_dump and pg_restore are installed for {engine.url.database}"
    )


def sign_in(engine: Engine) -> Check:
    """Whether an administrator can sign in, where people must."""
    mode = config().sign_in
    if mode == "off":
        return Check(subject="sign-in", state="ok", message="off: whoever reaches the app has all rights")
    with read_transaction(engine) as connection:
        if someone_can_sign_in(connection, by_email=mode == "oidc"):
            return Check(subject="sign-in", state="ok", message=f"{mode}, with an administrator")
    remedy = (
        "`TRACEJURY_SIGN_IN=off tracejury serve` with the same --home on this machine, add a person with the role "
        f"admin and {'an e-mail address' if mode == 'oidc' else 'a password'} on its Admin page, then stop it and "
        "start it again"
    )
    return Check(subject="sign-in", state="stops", message=f"{mode}, and no administrator can sign in", remedy=remedy)


def clock(engine: Engine) -> Check:
    """This machine's clock against the database's and the newest label."""
    with read_transaction(engine) as connection:
        newest = max(connection.scalar(select(func.max(one.c.created_at))) or 0 for one in LABELS) / 1e6
        now, there = time.time(), database_now(connection) / 1e6
    late = [
        f"{seconds:,.0f} s {words}"
        for seconds, words in (
            (there - now, "behind the database's clock"),
            (now - there, "ahead of the database's clock"),
            (newest - now, "behind the newest label"),
        )
        if seconds > SKEW_S
    ]
    if late:
        remedy = "set the clock (NTP): tokens and leases expire by it"
        return Check(subject="clock", state="note", message=", ".join(late), remedy=remedy)
    return Check(subject="clock", state="ok", message=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)))


def estimates(home: Path) -> Check:
    """Start the process that computes estimates, as the app does, and have it read the workspace."""
    from tracejury.judging.reports import estimate_worker

    started = time.monotonic()
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=context, initializer=estimate_worker.start, initargs=(str(home),))
    try:
        pool.submit(int).result(timeout=WORKER_S)
    except (BrokenProcessPool, OSError, TimeoutError) as error:
        message = f"the process that computes them did not start: {type(error).__name__}"
        remedy = "`tracejury verify`, and free memory; the app's own messages say more"
        return Check(subject="estimates", state="stops", message=message, remedy=remedy)
    finally:
        estimate_worker.end(pool)
    seconds = time.monotonic() - started
    return Check(
        subject="estimates",
        state="ok",
        message=f"the process that computes them starts and reads the data in {seconds:.1f} s",
    )


def provider_keys(environment: Mapping[str, str]) -> Check:
    """Which keys of providers are set; a key itself is never shown."""
    names = dict.fromkeys((*KEYS, *sorted(name for name in environment if name.endswith("_API_KEY"))))
    present = [name for name in names if environment.get(name, "").strip()]
    odd = [name for name in names if environment.get(name, "").strip() != environment.get(name, "")]
    message = f"present: {', '.join(present) or 'none'}; absent: {', '.join(n for n in names if n not in present)}"
    if odd:
        remedy = "set it again without them: providers refuse such a key"
        return Check(
            subject="provider keys", state="note", message=f"{message}; spaces around {', '.join(odd)}", remedy=remedy
        )
    if not present:
        remedy = "export the key of your provider; the offline checks and --api-base of a local model need none"
        return Check(subject="provider keys", state="note", message=message, remedy=remedy)
    return Check(subject="provider keys", state="ok", message=message)


def gaia2() -> Check:
    """The environment that runs ARE, which only `tracejury gaia2` needs."""
    try:
        environment = find()
    except Gaia2Error as error:
        message, _, remedy = str(error).partition(". Try: ")
        return Check(subject="GAIA2", state="note", message=message, remedy=remedy)
    message = f"ARE {environment.are_version} on Python {environment.python_version}: {environment.python}"
    return Check(subject="GAIA2", state="ok", message=message)
