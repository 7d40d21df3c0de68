"""A store moved between SQLite and PostgreSQL: every row, the same reports, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from sqlalchemy import create_engine, delete, insert, inspect
from tests.app.workspaces import filled
from tests.build import TRACE, small_trace, span_id
from tests.judging.test_row_order import exported

from tracejury.app.cli import main
from tracejury.ingest.batch import store
from tracejury.ingest.check import check_store
from tracejury.ingest.store import open_engine, read_transaction, search, write_transaction
from tracejury.judging import moving
from tracejury.judging.integrity import check_opinions
from tracejury.judging.labels.apply_ops import apply_ops
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.labels.ops import Op
from tracejury.judging.runs.run_store import RunStore
from tracejury.judging.store import Workspace, WorkspaceError, open_workspace, tables


def contents(space: Workspace) -> list[moving.MovedTable]:
    with read_transaction(space.engine) as connection:
        return [moving.content_of(connection, table) for table in tables.metadata.sorted_tables]


def put_label(space: Workspace, number: int) -> None:
    label = {"label_id": f"label-{number}", "span_ids": [span_id(4)], "dimensions": ["TC"], "impact": "high"}
    op = Op(op_id=f"operation-{number}", kind="error.put", payload=label)
    apply_ops(space.engine, annotator="ada", trace_id=TRACE, base_revision=number, ops=[op])


@pytest.fixture
def small(tmp_path: Path) -> Workspace:
    opened = open_workspace(tmp_path / "small")
    store(opened.engine, [small_trace()])
    put_label(opened, 0)
    return opened


def tables_of(url: str) -> list[str]:
    engine = create_engine(url)
    names = inspect(engine).get_table_names()
    engine.dispose()
    return names


def test_to_postgresql_and_back_nothing_changes(
    new_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = filled(tmp_path / "here")
    before, reports = contents(here), exported(here.home, tmp_path / "out-here")
    url = new_database()
    outcome = CliRunner().invoke(main, ["move", "--to", url, "--json", "--home", str(here.home)])
    assert outcome.exit_code == 0, outcome.output
    assert [moving.MovedTable(**one) for one in orjson.loads(outcome.stdout)] == before
    assert sum(one.rows for one in before) > 500
    assert contents(here) == before

    monkeypatch.setenv("TRACEJURY_DATABASE", url)
    there = open_workspace(tmp_path / "there")
    assert contents(there) == before
    assert exported(there.home, tmp_path / "out-there") == reports
    assert check_store(there.engine) == []
    assert check_opinions(there.engine) == []

    back = tmp_path / "back" / "tracejury.db"
    back.parent.mkdir()
    assert moving.move(there.engine, f"sqlite:///{back}") == before
    there.engine.dispose()
    monkeypatch.delenv("TRACEJURY_DATABASE")
    assert contents(open_workspace(back.parent)) == before
    assert check_store(open_workspace(back.parent).engine) == []


def test_new_rows_go_on_after_those_that_were_brought(
    small: Workspace, new_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database()
    moving.move(small.engine, url)
    monkeypatch.setenv("TRACEJURY_DATABASE", url)
    there = open_workspace(tmp_path / "there")
    put_label(there, 1)
    with read_transaction(there.engine) as connection:
        assert [label.label_id for label in error_labels(connection)] == ["label-0", "label-1"]
        assert [hit.seq for hit in search(connection, "careful cler")] == [1]
    there.engine.dispose()


@pytest.mark.parametrize("held", ["a row of ours", "a table of others"])
def test_a_target_that_holds_anything_is_refused(small: Workspace, tmp_path: Path, held: str) -> None:
    url = f"sqlite:///{tmp_path / 'target.db'}"
    target = open_engine(url)
    with write_transaction(target) as connection:
        if held == "a row of ours":
            tables.setting.create(connection)
            connection.execute(insert(tables.setting).values(name="secret", value="theirs", created_at=1))
        else:
            connection.exec_driver_sql("CREATE TABLE visits (at INTEGER)")
    before = tables_of(url)
    with pytest.raises(WorkspaceError, match=r"is not empty: it holds the table .* Try: an empty database"):
        moving.move(small.engine, url)
    assert tables_of(url) == before


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("fault", ["stopped by hand", "a row is lost"])
def test_what_is_interrupted_leaves_the_target_empty(
    small: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest,
    kind: str, fault: str,
) -> None:  # fmt: skip
    url = f"sqlite:///{tmp_path / 'target.db'}" if kind == "sqlite" else request.getfixturevalue("new_database")()
    before = contents(small)
    copy_table = moving._copy_table

    def faulty(origin: moving.Connection, copy: moving.Connection, table: moving.Table) -> moving.MovedTable:
        moved = copy_table(origin, copy, table)
        if table is tables.error_label:
            if fault == "stopped by hand":
                raise KeyboardInterrupt
            copy.execute(delete(tables.error_label))
        return moved

    monkeypatch.setattr(moving, "_copy_table", faulty)
    with pytest.raises(KeyboardInterrupt if fault == "stopped by hand" else WorkspaceError):
        moving.move(small.engine, url)
    assert tables_of(url) == []
    assert contents(small) == before
    monkeypatch.undo()
    assert moving.move(small.engine, url) == before


def test_one_changed_character_changes_the_content(small: Workspace) -> None:
    before = {one.name: one for one in contents(small)}
    with write_transaction(small.engine) as connection:
        connection.execute(tables.error_label.update().values(impact="higH"))
    after = {one.name: one for one in contents(small)}
    assert [name for name in before if before[name] != after[name]] == ["error_label"]


def test_a_run_at_work_is_not_left_behind(tmp_path: Path) -> None:
    from tests.judging.grid import planned

    grid = planned(tmp_path, traces=1)
    run = RunStore(grid.engine, grid.run_key)
    run.take(resumes=True)
    with pytest.raises(WorkspaceError, match=r"is at work; nothing was moved\. Try: pause it"):
        moving.move(grid.engine, f"sqlite:///{tmp_path / 'target.db'}")
    run.leave()


def test_a_workspace_is_not_moved_into_itself(small: Workspace, database: str, tmp_path: Path) -> None:
    """The lock of the source would wait for that of the target for ever."""
    (tmp_path / "link.db").symlink_to(small.home / "tracejury.db")
    for source, url in ((small.engine, f"sqlite:///{tmp_path / 'link.db'}"), (open_engine(database), database)):
        with pytest.raises(WorkspaceError, match=r"own database; nothing was moved\. Try: an empty one"):
            moving.move(source, url)


@pytest.mark.parametrize("url", ["nonsense", "postgresql+psycopg://nobody@127.0.0.1:9/none", "mysql+none://x"])
def test_a_target_that_cannot_be_reached_is_an_error_with_a_remedy(small: Workspace, url: str) -> None:
    outcome = CliRunner().invoke(main, ["move", "--to", url, "--home", str(small.home)])
    assert outcome.exit_code == 1
    assert "Try: " in outcome.output
