"""Traces removed and replaced on the command line and on the Ingest page: backed up, labels kept or listed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from sqlalchemy import func, select
from tests.app.conftest import OpenPage
from tests.app.test_ingest_page import SAMPLES, upload
from tests.app.workspaces import DATA

from tracejury.app.cli import main
from tracejury.ingest.batch import ingest
from tracejury.ingest.check import check_store
from tracejury.ingest.store import read_transaction, search, trace_ids
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.revisions import revision


def run(*arguments: str) -> str:
    outcome = CliRunner().invoke(main, list(arguments))
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def count(space: Workspace, name: str) -> int:
    with read_transaction(space.engine) as connection:
        return int(connection.scalar(select(func.count()).select_from(tables.metadata.tables[name])) or 0)


def labelled(space: Workspace) -> str:
    """The trace with most error labels."""
    label = tables.error_label.c
    query = select(label.trace_id).group_by(label.trace_id).order_by(func.count().desc()).limit(1)
    with read_transaction(space.engine) as connection:
        return str(connection.scalar(query))


def test_a_removed_trace_keeps_its_labels_and_they_count_with_it_again(full: Workspace) -> None:
    home, trace_id = str(full.home), labelled(full)
    with read_transaction(full.engine) as connection:
        before, cached = len(trace_ids(connection)), revision(connection)
    labels = count(full, "error_label")
    assert "kept" in run("traces", "remove", trace_id[:10], "--home", home)
    with read_transaction(full.engine) as connection:
        assert len(trace_ids(connection)) == before - 1
        assert revision(connection) != cached
        assert all(hit.trace_id != trace_id for hit in search(connection, "the"))
    assert count(full, "error_label") == labels
    assert check_store(full.engine) == []
    run("ingest", *map(str, SAMPLES), "--home", home)
    with read_transaction(full.engine) as connection:
        assert len(trace_ids(connection)) == before


def test_labels_go_only_when_asked_for_and_the_backup_has_them(full: Workspace, tmp_path: Path) -> None:
    home, trace_id = str(full.home), labelled(full)
    labels = count(full, "error_label")
    assert count(full, "matching")
    told = orjson.loads(run("traces", "remove", trace_id, "--with-labels", "--json", "--home", home))
    assert told["labels"] > 0
    with read_transaction(full.engine) as connection:
        for table in (tables.error_label, tables.score_label, tables.review, tables.op):
            assert connection.scalar(select(func.count()).where(table.c.trace_id == trace_id)) == 0
        cells = select(tables.cell.c.cell_key).where(tables.cell.c.trace_id == trace_id)
        matched = select(func.count()).where(tables.matching.c.cell_key.in_(cells))
        assert connection.scalar(matched) == 0, "no matching claims labels that are gone"
    assert count(full, "error_label") < labels
    run("restore", told["backup"], "--home", str(tmp_path / "other"))
    assert count(open_workspace(tmp_path / "other"), "error_label") == labels


def test_a_trace_that_is_not_there_is_not_removed_and_nothing_else_is(full: Workspace) -> None:
    before = count(full, "trace")
    outcome = CliRunner().invoke(main, ["traces", "remove", "nowhere", "--home", str(full.home)])
    assert outcome.exit_code == 1
    assert "no trace 'nowhere'" in outcome.output
    assert count(full, "trace") == before
    assert not (full.home / "backups").exists()


def test_replacing_names_the_labels_whose_span_is_gone(full: Workspace, tmp_path: Path) -> None:
    trace_id = labelled(full)
    document = orjson.loads(next(file for file in SAMPLES if file.stem == trace_id).read_bytes())
    document["spans"] = [dict(document["spans"][0], child_spans=[])]
    (tmp_path / "changed.json").write_bytes(orjson.dumps(document))
    refused = ingest(full.engine, [tmp_path / "changed.json"])
    assert "traces replace" in refused.rejected[0].remedy
    labels = count(full, "error_label")
    told = orjson.loads(
        CliRunner()
        .invoke(main, ["traces", "replace", str(tmp_path / "changed.json"), "--home", str(full.home), "--json"])
        .stdout
    )
    assert told["replaced"] == [trace_id]
    assert told["unanchored"]
    assert {one["trace_id"] for one in told["unanchored"]} == {trace_id}
    assert count(full, "error_label") == labels
    assert list((full.home / "backups").iterdir())


def test_a_backup_is_whole_or_not_there(full: Workspace, tmp_path: Path) -> None:
    run("backup", str(tmp_path / "copy.db"), "--home", str(full.home))
    assert [file.name for file in tmp_path.glob("*.db")] == ["copy.db"]
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
    outcome = CliRunner().invoke(main, ["backup", str(tmp_path / "no" / "copy.db"), "--home", str(full.home)])
    assert outcome.exit_code == 1
    assert "Try: another folder" in outcome.output


def test_a_backup_takes_the_place_of_no_device_or_pipe(full: Workspace, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    outcome = CliRunner().invoke(main, ["backup", str(tmp_path / "pipe"), "--home", str(full.home)])
    assert outcome.exit_code == 1
    assert "is no file" in outcome.output
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"x" * 5000, b"{}"])
def test_only_a_backup_is_restored(full: Workspace, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.db").write_bytes(content)
    before = count(full, "trace")
    outcome = CliRunner().invoke(main, ["restore", str(tmp_path / "bad.db"), "--yes", "--home", str(full.home)])
    assert outcome.exit_code == 1
    assert "is not a backup of Tracejury" in outcome.output
    assert count(full, "trace") == before


def test_a_full_workspace_is_not_overwritten_unasked(full: Workspace, tmp_path: Path) -> None:
    run("backup", str(tmp_path / "copy.db"), "--home", str(full.home))
    outcome = CliRunner().invoke(main, ["restore", str(tmp_path / "copy.db"), "--home", str(full.home)])
    assert outcome.exit_code == 1
    assert "--yes" in outcome.output


def test_a_workspace_of_labels_alone_is_not_overwritten_unasked(full: Workspace, tmp_path: Path) -> None:
    """Labels wait for their traces: a workspace without traces is not an empty one."""
    run("backup", str(tmp_path / "copy.db"), "--home", str(full.home))
    home = tmp_path / "labels"
    run("labels", "import", str(DATA / "labels" / "ada.json"), "--home", str(home))
    before = count(open_workspace(home), "error_label")
    restore = ["restore", str(tmp_path / "copy.db"), "--home", str(home)]
    outcome = CliRunner().invoke(main, restore)
    assert outcome.exit_code == 1
    assert "0 traces and " in outcome.output
    assert count(open_workspace(home), "error_label") == before > 0
    run(*restore, "--yes")
    assert list((home / "backups").glob("*-before-restore.db"))


def test_an_empty_workspace_is_filled_without_a_question(full: Workspace, tmp_path: Path) -> None:
    run("backup", str(tmp_path / "copy.db"), "--home", str(full.home))
    empty = open_workspace(tmp_path / "empty")
    assert empty.secret()
    empty.engine.dispose()
    run("restore", str(tmp_path / "copy.db"), "--home", str(empty.home))
    assert count(open_workspace(empty.home), "trace") == count(full, "trace")


def of_another_version(file: Path) -> Path:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    return file


def test_a_backup_that_only_another_version_reads_changes_nothing(full: Workspace, tmp_path: Path) -> None:
    run("backup", str(tmp_path / "copy.db"), "--home", str(full.home))
    newer = of_another_version(tmp_path / "copy.db")
    before = count(full, "trace")
    outcome = CliRunner().invoke(main, ["restore", str(newer), "--yes", "--home", str(full.home)])
    assert outcome.exit_code == 1
    assert "has the schema 9999, which this version" in outcome.output
    assert count(open_workspace(full.home), "trace") == before


@pytest.mark.parametrize("is_newer", [True, False])
def test_a_damaged_database_stays_where_the_backup_cannot_take_its_place(
    full: Workspace, tmp_path: Path, is_newer: bool
) -> None:
    backup = tmp_path / "copy.db"
    run("backup", str(backup), "--home", str(full.home))
    if is_newer:
        of_another_version(backup)
    else:
        backup.write_bytes(backup.read_bytes()[:40_000])
    full.engine.dispose()
    damaged = full.home / "tracejury.db"
    damaged.write_bytes(b"no database" * 1000)
    outcome = CliRunner().invoke(main, ["restore", str(backup), "--yes", "--home", str(full.home)])
    assert outcome.exit_code == 1
    assert damaged.read_bytes() == b"no database" * 1000
    assert not (full.home / "backups").exists()


@pytest.mark.parametrize("command", ["backup", "restore"])
@pytest.mark.parametrize("name", ["tracejury.db", "tracejury.db-wal", "link.db"])
def test_a_copy_never_takes_the_place_of_the_database_itself(full: Workspace, command: str, name: str) -> None:
    """The app would go on writing into the file that was replaced: every later label would be lost."""
    (full.home / "link.db").symlink_to(full.home / "tracejury.db")
    with read_transaction(full.engine):
        before = (full.home / "tracejury.db").stat().st_ino
        options = ["--yes"] if command == "restore" else []
        outcome = CliRunner().invoke(main, [command, str(full.home / name), *options, "--home", str(full.home)])
        assert outcome.exit_code == 1
        assert "belongs to the workspace's own database" in outcome.output
        assert (full.home / "tracejury.db").stat().st_ino == before


def test_the_ingest_page_removes_chosen_traces(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("ingest")
    at.session_state["removal"] = True
    at.run()
    trace_id = labelled(full)
    at.multiselect(key="remove-traces").set_value([trace_id]).run()
    assert "Delete their labels too" in at.checkbox(key="remove-labels").label
    at.button(key="remove").click().run()
    assert not at.exception
    assert "1 trace removed, their labels stay" in at.success[0].value
    with read_transaction(full.engine) as connection:
        assert trace_id not in trace_ids(connection)


def test_the_ingest_page_replaces_changed_traces_only_when_told(full: Workspace, open_page: OpenPage) -> None:
    document = orjson.loads(SAMPLES[0].read_bytes())
    document["spans"][0]["span_name"] = "changed"
    at = upload(open_page("ingest"), ("changed.json", orjson.dumps(document)))
    assert at.button(key="store").disabled
    at.toggle(key="replace").set_value(True).run()
    assert not at.button(key="store").disabled
    at.button(key="store").click().run()
    assert not at.exception
    assert "replaced other content" in at.success[0].value
