"""Saved views: kept by page and name, replaced by name, gone only when taken away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace, open_workspace
from tracejury.judging.store.audit import audit_log
from tracejury.judging.store.views import LONGEST, SavedView, ViewError, delete_view, save_view, saved_views


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return open_workspace(tmp_path / "home")


def view(name: str, page: str = "agreement", **query: list[str]) -> SavedView:
    return SavedView(page=page, name=name, query=query, author="ruth")


def test_a_view_comes_back_as_it_was_saved_and_only_on_its_page(space: Workspace) -> None:
    wanted = view("two judges", judges=["a, b", "c"], matches=["confirmed"])
    with write_transaction(space.engine) as connection:
        save_view(connection, wanted)
        save_view(connection, view("other", page="explore"))
    with read_transaction(space.engine) as connection:
        assert saved_views(connection, "agreement") == [wanted]


def test_the_same_name_is_replaced_and_names_are_sorted(space: Workspace) -> None:
    with write_transaction(space.engine) as connection:
        for one in (view("b", repeat=["repeat 0"]), view("A"), view("b ", repeat=["repeat 1"])):
            save_view(connection, one)
    with read_transaction(space.engine) as connection:
        views = saved_views(connection, "agreement")
    assert [one.name for one in views] == ["A", "b"]
    assert views[1].query == {"repeat": ["repeat 1"]}


def test_percent_and_underscore_in_a_page_match_nothing_else(space: Workspace) -> None:
    with write_transaction(space.engine) as connection:
        save_view(connection, view("x", page="agreement"))
    with read_transaction(space.engine) as connection:
        assert saved_views(connection, "a%") == []
        assert saved_views(connection, "agreemen_") == []


def test_a_view_taken_away_stays_in_the_audit_log(space: Workspace) -> None:
    with write_transaction(space.engine) as connection:
        save_view(connection, view("gone", split=["dev"]))
        delete_view(connection, page="agreement", name="gone", author="max")
    with read_transaction(space.engine) as connection:
        assert saved_views(connection, "agreement") == []
        log = audit_log(connection)
    assert list(log["what"][:2]) == ["deleted view", "saved view"]
    assert log["who"].iloc[0] == "max"
    assert '"dev"' in log["detail"].iloc[0]


@pytest.mark.parametrize("name", ["", "   ", "x" * (LONGEST + 1)])
def test_a_name_that_cannot_be_used_says_why(space: Workspace, name: str) -> None:
    with write_transaction(space.engine) as connection, pytest.raises(ViewError, match="name"):
        save_view(connection, view(name))
