"""`tracejury doctor`: what it finds, what it advises, and that it shows no key and changes nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import time
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import update

from tracejury.app.cli import main
from tracejury.app.commands import doctor, serving
from tracejury.app.config import SETTINGS, config
from tracejury.ingest.store import open_engine, write_transaction
from tracejury.judging.store import tables
from tracejury.judging.store.people import add_person
from tracejury.judging.store.workspace import database_url

SUBJECTS = [
    "versions",
    "settings",
    "home",
    "disk",
    "database",
    "sign-in",
    "clock",
    "estimates",
    "provider keys",
    "GAIA2",
]


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "HF_TOKEN")) or "TRACEJURY" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRACEJURY_CACHE", str(tmp_path / "cache"))
    config.cache_clear()
    yield
    config.cache_clear()


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_home, tmp_path / "home"))


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the process of estimates, which takes seconds to start."""
    monkeypatch.setattr(doctor, "estimates", lambda _home: doctor.Check(subject="estimates", state="ok", message=""))


def looked(home: Path, *, code: int = 0) -> dict[str, dict[str, str]]:
    done = CliRunner().invoke(main, ["doctor", "--home", str(home), "--json"])
    assert done.exit_code == code, done.output
    answer = json.loads(done.stdout)
    assert answer["works"] is (code == 0)
    for one in answer["checks"]:
        assert one["state"] == "ok" or one["remedy"], one
    return {one["subject"]: one for one in answer["checks"]}


def test_a_whole_workspace_works_in_every_check(home: Path) -> None:
    found = looked(home)
    assert list(found) == SUBJECTS
    assert {name for name, one in found.items() if one["state"] == "stops"} == set()
    assert "the process that computes them starts" in found["estimates"]["message"]
    assert "SQLite 3." in found["database"]["message"]


def test_a_process_of_estimates_that_cannot_read_the_workspace_stops_work(home: Path) -> None:
    with sqlite3.connect(home / "tracejury.db") as connection:
        connection.execute("DROP TABLE review")
    assert "did not start" in looked(home, code=1)["estimates"]["message"]


def test_the_lines_for_people_hold_state_subject_and_remedy(home: Path, no_worker: None) -> None:
    lines = CliRunner().invoke(main, ["doctor", "--home", str(home)]).stdout.splitlines()
    assert [line[7:22].strip() for line in lines] == SUBJECTS
    assert "Try: tracejury gaia2 setup" in lines[-1]


def test_a_key_is_named_and_never_shown(home: Path, no_worker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
    monkeypatch.setenv("LAB_API_KEY", "lab-not-to-be-seen\n")
    done = CliRunner().invoke(main, ["doctor", "--home", str(home)])
    assert "not-to-be-seen" not in done.output
    assert "present: OPENAI_API_KEY, LAB_API_KEY; absent: ANTHROPIC_API_KEY" in done.stdout
    assert "spaces around LAB_API_KEY" in done.stdout


def test_a_home_that_is_not_there_is_no_fault_and_is_not_made(tmp_path: Path) -> None:
    found = looked(tmp_path / "none")
    assert (found["home"]["state"], found["database"]["state"]) == ("note", "note")
    assert not (tmp_path / "none").exists()


def test_a_home_that_cannot_be_written_stops_work(home: Path, no_worker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "access", lambda path, *_args, **_more: path != home)
    assert looked(home, code=1)["home"]["message"].endswith("cannot be written")


@pytest.mark.parametrize(("free", "state"), [(10_000_000, "stops"), (500_000_000, "note"), (5_000_000_000, "ok")])
def test_little_space_is_told(
    free: int, state: str, home: Path, no_worker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _path: usage(0, 0, free))
    assert looked(home, code=int(state == "stops"))["disk"]["state"] == state


def test_another_schema_stops_work_and_stays_as_it_is(home: Path) -> None:
    with sqlite3.connect(home / "tracejury.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0009'")
    found = looked(home, code=1)
    assert "0009" in found["database"]["message"]
    assert "estimates" not in found
    with sqlite3.connect(home / "tracejury.db") as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0009",)]


def test_a_file_that_is_no_database_stops_work(tmp_path: Path) -> None:
    (tmp_path / "tracejury.db").write_bytes(b"no database at all" * 1000)
    assert "restore" in looked(tmp_path, code=1)["database"]["remedy"]


@pytest.mark.parametrize("url", ["nonsense", "postgresql+psycopg://nobody@127.0.0.1:1/none"])
def test_a_database_that_cannot_be_reached_stops_work(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJURY_DATABASE", url)
    assert looked(tmp_path, code=1)["database"]["state"] == "stops"


def test_a_wrong_setting_stops_work(home: Path, no_worker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJURY_NEW_PEOPLE", "lab.example")
    assert "TRACEJURY_NEW_PEOPLE" in looked(home, code=1)["settings"]["message"]


def test_a_setting_that_nothing_reads_is_named(home: Path, no_worker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJURY_SIGNIN", "password")
    of_settings = looked(home)["settings"]
    assert (of_settings["state"], "unknown settings: TRACEJURY_SIGNIN" in of_settings["message"]) == ("note", True)
    assert "TRACEJURY_SIGN_IN" in of_settings["remedy"]


def test_every_setting_of_the_help_is_known_and_none_beside() -> None:
    page = (Path(__file__).resolve().parents[2] / "data/help/team.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(TRACEJURY_\w+)` \|", page, re.MULTILINE)) == set(SETTINGS)


def test_sign_in_without_an_administrator_stops_work(
    home: Path, no_worker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "password")
    assert "no administrator" in looked(home, code=1)["sign-in"]["message"]
    engine = open_engine(database_url(home))
    with write_transaction(engine) as connection:
        add_person(connection, "root", role="admin", by="test", password="long enough for all")
    engine.dispose()
    assert looked(home)["sign-in"]["state"] == "ok"


@pytest.fixture
def ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app's process ends as soon as `serve` has started it."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    monkeypatch.setattr(serving, "start_child", lambda *_args, **_options: ended)


def test_serve_says_before_it_starts_that_the_workspace_is_new_or_empty(
    home: Path, tmp_path: Path, ends_at_once: None
) -> None:
    mistyped = tmp_path / "hmoe"
    for state in ("is new and empty", "holds no traces"):
        first = CliRunner().invoke(main, ["serve", "--home", str(mistyped), "--port", "0"]).stderr.splitlines()[0]
        assert first.startswith(f"the workspace {mistyped} {state}. Try: ")
        assert "--home" in first
    assert "the workspace" not in CliRunner().invoke(main, ["serve", "--home", str(home), "--port", "0"]).stderr


@pytest.mark.parametrize(("mode", "proof"), [("password", "a password"), ("oidc", "an e-mail address")])
def test_serve_says_before_it_starts_that_no_administrator_can_sign_in(
    mode: str, proof: str, home: Path, ends_at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", mode)
    served = CliRunner().invoke(main, ["serve", "--home", str(home), "--port", "0"])
    warning, starting = served.stderr.splitlines()[:2]
    assert warning.startswith(f"sign-in is {mode}, and no administrator can sign in. Try: `TRACEJURY_SIGN_IN=off ")
    assert proof in warning
    assert starting == "starting the app"
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "off")
    config.cache_clear()
    assert "administrator" not in CliRunner().invoke(main, ["serve", "--home", str(home), "--port", "0"]).stderr


def test_a_clock_behind_the_newest_label_is_told(home: Path, no_worker: None) -> None:
    engine = open_engine(database_url(home))
    with write_transaction(engine) as connection:
        connection.execute(update(tables.error_label).values(created_at=int((time.time() + 3600) * 1e6)))
    engine.dispose()
    assert "behind the newest label" in looked(home)["clock"]["message"]


def test_a_library_that_is_missing_stops_work(home: Path, no_worker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "requires", lambda _name: ["click>=8", "no-such-library>=1", "x; extra == 'hub'"])
    assert looked(home, code=1)["versions"]["message"] == "missing: no-such-library"
