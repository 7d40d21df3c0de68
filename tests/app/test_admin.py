"""The administrator's page: people, queues, who holds what, backups; each act through its form."""

from __future__ import annotations

import sqlite3
import time

import pytest
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

from app import session
from ingest.store import reading, trace_ids, writing
from judging.ledger import Workspace, health, open_workspace, tables
from judging.ledger.people import people
from judging.ledger.queue import QueueSpec, make_queue, next_item
from tests.app.conftest import MAIN, OpenPage
from tests.judging.team import submit


def test_a_person_is_added_and_changed(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("admin")
    assert "every right" in at.caption[0].value
    at.text_input(key="new_name").input("judy")
    at.selectbox(key="new_role").select("adjudicator")
    at.text_input(key="new_password").input("a long enough secret")
    at.button(key="FormSubmitter:add_person-Add").click().run()
    assert [one.value for one in at.success] == ["judy is added as adjudicator."]
    at.selectbox(key="role-judy").select("researcher")
    at.button(key="FormSubmitter:change-judy-Save").click().run()
    with reading(full.engine) as connection:
        assert [(one.name, one.role, one.has_password) for one in people(connection)] == [("judy", "researcher", True)]
        whats = connection.scalars(select(tables.audit.c.what)).all()
    assert whats == ["person added", "role changed"]


def test_a_short_password_is_refused_in_words_and_nobody_is_added(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("admin")
    at.text_input(key="new_name").input("judy")
    at.text_input(key="new_password").input("short")
    at.button(key="FormSubmitter:add_person-Add").click().run()
    assert "take 10 or more" in at.error[0].value
    with reading(full.engine) as connection:
        assert people(connection) == []


def test_a_queue_is_made_from_the_traces_of_the_filter(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Queues").run()
    at.selectbox(key="filter_sampling").select("random")
    at.number_input(key="filter_count").set_value(4).run()
    assert "4 traces of 6 would be in it." in [caption.value for caption in at.caption]
    at.text_input(key="queue_name").input("pilot")
    at.number_input(key="queue_overlap").set_value(50)
    at.button(key="FormSubmitter:make_queue-Make the queue").click().run()
    assert [one.value for one in at.success] == ["The queue is made of 4 traces."]
    with reading(full.engine) as connection:
        made = connection.execute(select(tables.queue)).one()
        wanted = connection.scalars(select(tables.queue_item.c.wanted)).all()
    assert (made.name, made.k, made.blind, made.lease_s, made.author) == ("pilot", 2, True, 14_400, "me")
    assert sorted(wanted) == [1, 1, 2, 2]


def test_a_queue_without_a_name_is_refused(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Queues").run()
    at.button(key="FormSubmitter:make_queue-Make the queue").click().run()
    assert "needs a name" in at.error[0].value
    with reading(full.engine) as connection:
        assert connection.execute(select(tables.queue)).all() == []


def test_the_matrix_shows_who_holds_what(full: Workspace, open_page: OpenPage) -> None:
    now = time.time_ns() // 1000
    with writing(full.engine) as connection:
        ids = trace_ids(connection)[:2]
        key = make_queue(connection, QueueSpec(name="pilot", author="root", k=2), ids, now=now)
    submit(full, "cyd", ids[0])
    assert next_item(full.engine, key, "dan", now=now) is not None
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Who holds what").run()
    table = at.dataframe[0].value.set_index("trace")
    assert table.loc[ids[0], "cyd"] == "counted"
    assert table["counted"].tolist() == [1, 0]
    assert sorted(table["dan"]) == ["", "at work"]


def test_a_backup_is_a_whole_database_that_opens(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Backup").run()
    at.button(key="backup").click().run()
    (made,) = health.backups(full.home / health.FOLDER)
    assert made.name in at.success[0].value
    with sqlite3.connect(made) as copy:
        assert copy.execute("SELECT count(*) FROM trace").fetchone() == (6,)
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    home = full.home.parent / "restored"
    home.mkdir()
    made.rename(home / "tracejury.db")
    with reading(open_workspace(home).engine) as connection:
        assert len(trace_ids(connection)) == 6


def test_a_backup_that_cannot_be_written_says_so_and_leaves_nothing(full: Workspace) -> None:
    blocked = full.home / "blocked"
    blocked.write_text("a file, not a folder", encoding="utf-8")
    with pytest.raises(health.BackupError, match="could not be written"):
        health.backup(full.engine, blocked)


def test_health_counts_and_names_failures(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Health").run()
    shown = {metric.label: metric.value for metric in at.metric}
    assert shown["Traces"] == "6"
    assert shown["Database"] == "sqlite"
    assert "the reply is no JSON" in at.dataframe[0].value["reason"].tolist()


def test_a_worker_that_fell_silent_counts_as_gone(full: Workspace) -> None:
    now = time.time_ns() // 1000
    with writing(full.engine) as connection:
        connection.execute(
            tables.run.insert(),
            [
                {"name": name, "status": status, "spec": "{}", "author": "me", "message": "", "created_at": now,
                 "worker": worker, "heartbeat_at": seen}
                for name, status, worker, seen in (
                    ("a", "running", "w1", now - 1_000_000), ("b", "running", "w2", now - 600_000_000),
                    ("c", "queued", None, None), ("d", "done", "w3", now),
                )
            ],
        )  # fmt: skip
    runs = {run.name: run.is_alive for run in health.health(full.engine, now=now).runs}
    assert runs == {"a": True, "b": False, "c": None}


def test_only_an_administrator_gets_in(full: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by the navigation nor by running the page's file."""
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="judy", role="researcher"))
    assert "Admin" not in [header.value for header in open_page("admin").header]
    alone = AppTest.from_file(str(MAIN.parent / "views" / "admin.py"), default_timeout=60).run()
    assert alone.error[0].value.startswith("This page needs the role admin")
    assert alone.header == []
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="root", role="admin"))
    assert "Admin" in [header.value for header in open_page("admin").header]
