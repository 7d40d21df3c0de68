"""A workspace that may only be read (a mounted archive, another's folder) can be read: listed, exported, verified."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.app.test_faults import TRACE

from tracejury.app.cli import main
from tracejury.ingest.store import engine
from tracejury.judging.store import Workspace

READS = (
    ["traces"], ["spans", TRACE.stem], ["text", TRACE.stem], ["verify"], ["labels", "export", "--out", "{out}/l.json"],
    ["verdicts", "export", "--out", "{out}/v.json"],
    ["report", "--out", "{out}/report", "--draws", "0", "--table", "table_03_caught"],
)  # fmt: skip


@pytest.fixture
def read_only(full: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The filled workspace where nothing may be written; whoever is root may write everywhere, so it is told."""
    full.engine.dispose()
    with closing(sqlite3.connect(full.home / "tracejury.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    monkeypatch.setattr(engine, "_is_writable", lambda _file: False)
    return full.home


@pytest.mark.parametrize("command", READS, ids=lambda command: command[0])
def test_what_only_reads_works(command: list[str], read_only: Path, tmp_path: Path) -> None:
    before = {file.name: file.read_bytes() for file in read_only.glob("tracejury.db*")}
    outcome = CliRunner().invoke(main, [*(one.format(out=tmp_path) for one in command), "--home", str(read_only)])
    assert outcome.exit_code == 0, outcome.output
    assert {file.name: file.read_bytes() for file in read_only.glob("tracejury.db*")} == before


def test_what_writes_says_why_not(read_only: Path) -> None:
    outcome = CliRunner().invoke(main, ["ingest", str(TRACE.parent.parent / "gaia2"), "--home", str(read_only)])
    assert outcome.exit_code == 1
    assert "readonly" in outcome.output
    assert "Try:" in outcome.output
