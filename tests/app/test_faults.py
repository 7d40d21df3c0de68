"""Every command under every fault of the machine: a message with a remedy and an exit status, never a traceback."""

from __future__ import annotations

import io
import re
import resource
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, event
from tests.app.workspaces import DATA

from tracejury.app.cli import main
from tracejury.app.commands import serving
from tracejury.app.commands.faults import error_words, text_on_terminals
from tracejury.app.config import config
from tracejury.judging.store import open_workspace

PREDICTIONS = DATA / "samples" / "predictions" / "careful-judge"
TRACE = sorted((DATA / "samples" / "trail").glob("*.json"))[0]
ARGUMENTS: dict[str, list[str]] = {
    "demo": ["--no-serve"],
    "serve": ["--port", "0"],
    "ingest": [str(DATA / "samples" / "gaia2")],
    "fetch": ["trail"],
    "traces": ["--csv", "{out}/traces.csv"],
    "traces remove": [TRACE.stem],
    "traces replace": [str(TRACE)],
    "backup": ["{out}/backup.db"],
    "restore": ["{file}", "--yes"],
    "move": ["--to", "sqlite:///{out}/moved.db"],
    "spans": [TRACE.stem, "--csv", "{out}/spans.csv"],
    "text": [TRACE.stem],
    "judge": ["--dimensions", "LC"],
    "labels import": [str(DATA / "labels" / "ada.json")],
    "labels export": ["--out", "{out}/labels.json"],
    "verdicts import": [str(PREDICTIONS), "--judge-model", "another"],
    "verdicts export": ["--out", "{out}/verdicts.json"],
    "match": [],
    "match sample": ["--out", "{out}/pairs.csv", "--n", "5"],
    "match score": [str(DATA / "labels" / "ada.json")],
    "report": ["--out", "{out}/report", "--draws", "0", "--table", "table_03_caught"],
    "token": [],
    "verify": [],
    "doctor": [],
    "plan": ["--judge-model", "careful-judge", "--width", "10"],
    "corpus build": [str(TRACE), "--out", "{out}/corpus"],
    "corpus check": ["{out}/corpus"],
    "corpus summary": ["{out}/corpus"],
    "corpus sample": ["{out}/corpus"],
    "gaia2 setup": ["--check"],
    "gaia2 run": ["samples", "--dry-run", "--oracle", "--no-judge"],
    "gaia2 fetch": [],
    "gaia2 executions": [],
    "gaia2 stop": ["--all"],
    "gaia2 proof": ["--are-python", "{out}/none"],
    "map suggest": [str(TRACE)],
    "rubric new": ["mine"],
    "rubric check": [str(DATA.parent / "judging" / "judges" / "rubrics" / "LC.toml")],
}
NO_WORKSPACE = (
    "serve",
    "fetch",
    "gaia2 setup",
    "gaia2 run",
    "gaia2 fetch",
    "gaia2 proof",
    "map suggest",
    "rubric check",
    "doctor",
    "corpus build",
    "corpus check",
    "corpus summary",
)
"""Commands that end before they open a workspace, or need none."""


def commands(group: click.Group, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield f"{before}{name}"
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")


def takes_home(name: str) -> bool:
    command: click.Command = main
    for part in name.split():
        assert isinstance(command, click.Group)
        command = command.commands[part]
    return any(parameter.name == "home" for parameter in command.params)


def test_every_command_is_tried() -> None:
    assert set(commands(main)) == set(ARGUMENTS)


@contextmanager
def full_disk(_home: Path) -> Iterator[None]:
    """SQLite's own limit: the file may not grow by a page."""

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA max_page_count=1")  # it stays at what there is

    event.listen(Engine, "connect", limit)
    try:
        yield
    finally:
        event.remove(Engine, "connect", limit)


@contextmanager
def small_files(_home: Path) -> Iterator[None]:
    """As `ulimit -f`."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def bad_pages(home: Path) -> Iterator[None]:
    file = home / "tracejury.db"
    raw = bytearray(file.read_bytes())
    for place in range(4096 * 40, len(raw), 4096 * 3):
        raw[place : place + 2048] = b"\xff" * 2048
    file.write_bytes(raw)
    yield


@contextmanager
def deep_recursion(_home: Path) -> Iterator[None]:
    def fail(_home: object, *, create: bool) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracejury.app.commands.output.open_workspace", fail)
        yield


FAULTS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "full disk": full_disk, "small files": small_files, "bad pages": bad_pages, "deep recursion": deep_recursion,
}  # fmt: skip


@pytest.fixture(scope="module")
def spoilt_home(tmp_path_factory: pytest.TempPathFactory, sample_home: Path) -> Path:
    """The filled workspace, its log written back into the one file."""
    home = tmp_path_factory.mktemp("spoilt") / "home"
    shutil.copytree(sample_home, home)
    with sqlite3.connect(home / "tracejury.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return home


@pytest.fixture
def home(spoilt_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(serving, "serve", lambda *_args, **_options: 0)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    shutil.copytree(spoilt_home, tmp_path / "home")
    return tmp_path / "home"


def run(name: str, home: Path) -> Result:
    out = home.parent / "out"
    out.mkdir(exist_ok=True)
    arguments = [one.format(out=out, file=home / "tracejury.db") for one in ARGUMENTS[name]]
    own_home = ["--home", str(home)] if takes_home(name) else []
    return CliRunner().invoke(main, [*name.split(), *arguments, *own_home])


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_command_under_a_fault_ends_with_a_message(name: str, fault: str, home: Path) -> None:
    with FAULTS[fault](home):
        outcome = run(name, home)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    assert "Traceback" not in outcome.output
    assert outcome.exit_code in (0, 1), outcome.output
    assert "unexpected failure" not in outcome.output
    if fault == "deep recursion" and name not in NO_WORKSPACE:
        assert outcome.exit_code == 1
        assert "Try:" in outcome.output


@pytest.mark.parametrize("name", ["ingest", "verdicts import", "traces remove"])
def test_a_full_disk_is_named_with_what_helps(name: str, home: Path) -> None:
    with full_disk(home):
        outcome = run(name, home)
    assert outcome.exit_code == 1
    assert "Try:" in outcome.output


def test_damaged_pages_are_problems_that_verify_lists(home: Path) -> None:
    with bad_pages(home):
        outcome = run("verify", home)
    assert outcome.exit_code == 1
    assert "restore" in outcome.output


def test_a_backup_is_put_back_over_a_database_that_cannot_be_opened(home: Path) -> None:
    assert run("backup", home).exit_code == 0
    (home / "tracejury.db").write_bytes(b"no database at all" * 1000)
    outcome = CliRunner().invoke(
        main, ["restore", str(home.parent / "out" / "backup.db"), "--yes", "--home", str(home)]
    )
    assert outcome.exit_code == 0, outcome.output
    assert list((home / "backups").glob("*-damaged.db"))
    assert run("verify", home).exit_code == 0


@pytest.mark.parametrize(
    "words", ["traces", "judge --dry-run", "match", "report --out {out}", "labels export --out {out}"]
)
def test_a_mistyped_home_is_refused_and_no_workspace_is_made(words: str, tmp_path: Path) -> None:
    home = tmp_path / "typo"
    outcome = CliRunner().invoke(main, [*words.format(out=tmp_path / "out").split(), "--home", str(home)])
    assert (outcome.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert f"there is no workspace at {home}. Try: another --home, or `tracejury ingest PATH`" in outcome.output


def test_a_dry_run_of_gaia2_writes_nothing(tmp_path: Path) -> None:
    words = ["gaia2", "run", "samples", "--oracle", "--dry-run", "--home", str(tmp_path / "home")]
    outcome = CliRunner().invoke(main, words)
    assert outcome.exit_code == 0, outcome.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a?b", "a%20b", "a%b", "a#b", "ä ö", "a&mode=ro", "file:x", "a;b", "a@b"])
def test_a_workspace_lands_where_its_path_says_whatever_the_path(name: str, tmp_path: Path) -> None:
    home = tmp_path / name
    open_workspace(home).engine.dispose()
    assert (home / "tracejury.db").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "x.db"), "df -h"), (OSError(27, "File too large"), "ulimit -f"),
        (MemoryError(), "memory"), (RecursionError(), "flatten"), (KeyError("x"), "report it"),
        (sqlite3.OperationalError("database or disk is full"), "df -h"),
    ],
)  # fmt: skip
def test_every_fault_has_a_remedy(error: Exception, words: str) -> None:
    assert words in error_words(error)
    assert "Try:" in error_words(error)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_given_text_and_a_file_is_given_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of a trace must not move the cursor, set the title or write over a line."""
    name = "pilot\x1b]0;own title\x07\x9b2J\rgone"
    for stream, written in (
        (Terminal(), "a\tb pilot\\x1b]0;own title\\x07\\x9b2J\\x0dgone\r\n"),
        (io.StringIO(), f"a\tb {name}\r\n"),
    ):
        monkeypatch.setattr(sys, "stdout", stream)
        with text_on_terminals():
            click.echo(f"a\tb {name}\r")
            sys.stdout.write("\rread 1 of 2\r")
        assert stream.getvalue() == f"{written}\rread 1 of 2\r"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRACEJURY_SIGN_IN", "ldap"),
        ("TRACEJURY_NEW_PEOPLE", "lab.example"),
        ("TRACEJURY_PROXIES", "proxy"),
        ("TRACEJURY_TIMEOUT", "nan"),
        ("TRACEJURY_TIMEOUT", "0"),
        ("TRACEJURY_TIMEOUT", "30s"),
    ],
)
def test_a_wrong_setting_is_named_with_its_values_and_is_no_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    config.cache_clear()
    monkeypatch.setenv(name, value)
    served = CliRunner().invoke(main, ["serve", "--home", str(tmp_path / "home")])
    config.cache_clear()
    assert served.exit_code == 1
    assert re.search(rf"Error: {name} .*'{value}': use .*Try: correct or unset the variable", served.output)
