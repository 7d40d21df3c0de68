"""Backups of a PostgreSQL database by the server's own programs, and how they come back."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import delete, func, select
from tests.build import TRACE, small_trace, span_id

from tracejury.app.cli import main
from tracejury.ingest.batch import store
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.apply_ops import apply_ops
from tracejury.judging.labels.ops import Op
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.backup import back_up
from tracejury.judging.store.workspace import HEAD

pytestmark = pytest.mark.usefixtures("client_programs")


@pytest.fixture
def space(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("TRACEJURY_DATABASE", database)
    opened = open_workspace(tmp_path / "home")
    store(opened.engine, [small_trace()])
    label = {"label_id": "one", "span_ids": [span_id(4)], "dimensions": ["TC"], "impact": "high"}
    op = Op(op_id="operation-one", kind="error.put", payload=label)
    apply_ops(opened.engine, annotator="ada", trace_id=TRACE, base_revision=0, ops=[op])
    return opened


def run(*arguments: object, exit_code: int = 0) -> str:
    outcome = CliRunner().invoke(main, [str(one) for one in arguments])
    assert outcome.exit_code == exit_code, outcome.output
    gc.collect()  # a command's connections end with its process, which here goes on
    return outcome.output


def refused(*arguments: object) -> str:
    return run(*arguments, exit_code=1)


def rows(space: Workspace) -> dict[str, int]:
    with read_transaction(space.engine) as connection:
        counts = {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in tables.metadata.sorted_tables
        }
    space.engine.dispose()
    return counts


def lose_labels(space: Workspace) -> None:
    with write_transaction(space.engine) as connection:
        connection.execute(delete(tables.error_label))
    space.engine.dispose()


def test_a_backup_made_beside_a_writer_brings_every_row_back(space: Workspace, tmp_path: Path) -> None:
    before = rows(space)
    with write_transaction(space.engine) as connection:
        connection.execute(delete(tables.error_label))  # not committed: no part of the backup
        run("backup", tmp_path / "team.dump", "--home", space.home)
        connection.rollback()
    lose_labels(space)
    assert rows(space)["error_label"] == 0
    run("restore", tmp_path / "team.dump", "--yes", "--home", space.home)
    assert before["error_label"] > 0
    assert rows(space) == before
    assert (tmp_path / "team.dump").stat().st_mode & 0o077 == 0
    assert list((space.home / "backups").glob("*-before-restore.dump"))


def test_nothing_is_replaced_while_others_are_connected(space: Workspace, tmp_path: Path) -> None:
    before = rows(space)
    run("backup", tmp_path / "team.dump", "--home", space.home)
    with space.engine.connect():
        said = refused("restore", tmp_path / "team.dump", "--yes", "--home", space.home)
    assert "1 other connection;" in said
    assert "Try: stop the app" in said
    assert rows(space) == before


@pytest.mark.parametrize("content", [b"", b"{}", b"SQLite format 3\0" + b"x" * 500, b"PGDMP" + b"x" * 500])
def test_only_a_backup_of_postgresql_is_restored(space: Workspace, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.dump").write_bytes(content)
    before = rows(space)
    assert "Try: " in refused("restore", tmp_path / "bad.dump", "--yes", "--home", space.home)
    assert rows(space) == before


def test_a_backup_that_only_another_version_reads_changes_nothing(space: Workspace, tmp_path: Path) -> None:
    with space.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    back_up(space.engine, tmp_path / "newer.dump")
    with space.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{HEAD}'")
    before = rows(space)
    said = refused("restore", tmp_path / "newer.dump", "--yes", "--home", space.home)
    assert "has the schema 9999, which this version" in said
    assert rows(space) == before


def test_a_backup_of_one_database_is_not_put_into_the_other(
    space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space.engine.dispose()
    run("backup", tmp_path / "team.dump", "--home", space.home)
    monkeypatch.delenv("TRACEJURY_DATABASE")
    said = refused("restore", tmp_path / "team.dump", "--home", tmp_path / "other")
    assert "is a backup of PostgreSQL" in said
    assert "tracejury move" in said


def test_without_the_programs_a_backup_says_what_to_install(
    space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    said = refused("backup", tmp_path / "team.dump", "--home", space.home)
    assert "pg_dump is not installed. Try: install PostgreSQL's client programs" in said
    assert not list(tmp_path.glob("*team.dump*"))
