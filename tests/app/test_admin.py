"""The administrator's page: people, queues, who holds what, backups; each act through its form."""

from __future__ import annotations

import sqlite3
import time
from datetime import date

import pytest
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from tests.app.conftest import MAIN, OpenPage
from tests.app.marks import choose
from tests.judging.team import submit

from tracejury.app import session
from tracejury.ingest.store import read_transaction, trace_ids, write_transaction
from tracejury.judging.labels.comments import comments
from tracejury.judging.queues.places import next_item
from tracejury.judging.queues.queue_store import QueueSpec, make_queue, queues
from tracejury.judging.reports import health
from tracejury.judging.runs.verdicts import add_run
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.people import add_person, people


def test_a_person_is_added_and_changed(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("admin")
    assert "all rights" in at.caption[0].value
    at.text_input(key="new_name_0").input("judy")
    at.selectbox(key="new_role_0").select("adjudicator")
    at.text_input(key="new_password_0").input("a long enough secret")
    at.button(key="FormSubmitter:add_person-Add").click().run()
    assert [one.value for one in at.success] == ["judy is added as adjudicator."]
    assert [at.text_input(key=f"new_{name}_1").value for name in ("name", "password")] == ["", ""]
    assert at.selectbox(key="new_role_1").value == "annotator"
    at.selectbox(key="role-judy").select("researcher")
    at.button(key="FormSubmitter:change-judy-Save").click().run()
    with read_transaction(full.engine) as connection:
        assert [(one.name, one.role, one.has_password) for one in people(connection)] == [("judy", "researcher", True)]
        whats = connection.scalars(select(tables.audit.c.what)).all()
    assert whats == ["person added", "role changed"]


def test_a_short_password_is_refused_in_words_and_nobody_is_added(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("admin")
    at.text_input(key="new_name_0").input("judy")
    at.text_input(key="new_password_0").input("short")
    at.button(key="FormSubmitter:add_person-Add").click().run()
    assert "use 10 or more" in at.error[0].value
    assert at.text_input(key="new_name_0").value == "judy"  # what was refused can be mended
    with read_transaction(full.engine) as connection:
        assert people(connection) == []


def test_a_queue_is_made_from_the_traces_of_the_filter(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Queues").run()
    at.selectbox(key="filter_sampling").select("random")
    at.number_input(key="filter_count").set_value(4).run()
    (words,) = [caption.value for caption in at.caption if "4 traces of 6 match these filters." in caption.value]
    assert "All have the same chance to be drawn" in words
    at.text_input(key="queue_name").input("pilot")
    at.number_input(key="queue_overlap").set_value(50)
    at.button(key="FormSubmitter:make_queue-Create queue").click().run()
    assert [one.value for one in at.success] == ["The queue is created with 4 traces."]
    with read_transaction(full.engine) as connection:
        made = connection.execute(select(tables.queue)).one()
        wanted = connection.scalars(select(tables.queue_item.c.wanted)).all()
    assert (made.name, made.k, made.blind, made.lease_s, made.author) == ("pilot", 2, True, 14_400, "me")
    assert sorted(wanted) == [1, 1, 2, 2]


def at_hand_picked(open_page: OpenPage, ids: str) -> AppTest:
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Queues").run()
    at.selectbox(key="filter_sampling").select("hand").run()
    at.text_area(key="filter_ids").input(ids).run()
    return at


def test_a_queue_is_made_from_exactly_the_traces_chosen_by_hand_with_unknown_chances(
    full: Workspace, open_page: OpenPage
) -> None:
    with read_transaction(full.engine) as connection:
        first, second, *_ = trace_ids(connection)
    at = at_hand_picked(open_page, f" {second}\n\n{first} \n{second}")
    (words,) = [caption.value for caption in at.caption if "2 traces of 6 chosen by hand." in caption.value]
    assert "Their chance to be drawn is unknown" in words
    at.text_input(key="queue_name").input("telling")
    at.button(key="FormSubmitter:make_queue-Create queue").click().run()
    assert [one.value for one in at.success] == ["The queue is created with 2 traces."]
    assert at.dataframe[0].value["chances"].tolist() == ["unknown"]
    assert at.text_area(key="filter_ids").value == ""
    with read_transaction(full.engine) as connection:
        items = connection.execute(select(tables.queue_item).order_by(tables.queue_item.c.position)).all()
    assert [(item.trace_id, item.inclusion) for item in items] == [(second, None), (first, None)]


@pytest.mark.parametrize(("ids", "why"), [("abc\ndef", "trace abc is not in this workspace"), ("", "would be empty")])
def test_no_queue_is_made_of_unknown_ids_or_of_none(full: Workspace, open_page: OpenPage, ids: str, why: str) -> None:
    at = at_hand_picked(open_page, ids)
    known = [one.value.replace("\\", "") for one in at.error]
    assert known == (["This workspace holds no trace 'abc'; 2 of 2 IDs unknown. " + CORRECT] if ids else [])
    at.text_input(key="queue_name").input("telling")
    at.button(key="FormSubmitter:make_queue-Create queue").click().run()
    assert why in at.error[-1].value
    with read_transaction(full.engine) as connection:
        assert queues(connection) == []


CORRECT = "Try: correct or delete these lines."


def test_a_queue_without_a_name_is_refused(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Queues").run()
    at.button(key="FormSubmitter:make_queue-Create queue").click().run()
    assert "needs a name" in at.error[0].value
    with read_transaction(full.engine) as connection:
        assert connection.execute(select(tables.queue)).all() == []


def test_the_matrix_shows_who_holds_what(full: Workspace, open_page: OpenPage) -> None:
    now = time.time_ns() // 1000
    with write_transaction(full.engine) as connection:
        ids = trace_ids(connection)[:2]
        key = make_queue(connection, QueueSpec(name="pilot", author="root", k=2), ids, now=now)
    submit(full, "cyd", ids[0])
    assert next_item(full.engine, key, "dan", now=now) is not None
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Assignments").run()
    loads = at.dataframe[0].value.set_index("person")["pilot"].to_dict()
    assert loads == {"cyd": "1 done", "dan": "0 done, 1 at work"}
    table = at.dataframe[1].value.set_index("trace")
    assert table.loc[ids[0], "cyd"] == "counted"
    assert table["counted"].tolist() == [1, 0]
    assert sorted(table["dan"]) == ["", "at work"]


def a_queue(full: Workspace, count: int, **more: object) -> int:
    with write_transaction(full.engine) as connection:
        spec = QueueSpec(**({"name": "pilot", "author": "root"} | more))  # type: ignore[arg-type]
        return make_queue(connection, spec, trace_ids(connection)[:count], now=time.time_ns() // 1000)


def tick(at: AppTest, key: str, *rows: int) -> None:
    """Tick rows of a table, as a click on its left edge does."""
    at.session_state[key] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}


def success_text(at: AppTest) -> str:
    """What the page says was done, as it is shown."""
    return str(at.success[0].value).replace("\\", "")


def test_a_queue_is_changed_closed_and_reopened(full: Workspace, open_page: OpenPage) -> None:
    key = a_queue(full, 2)
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Queues").run()
    at.text_input(key=f"settings-{key}_name").input("main")
    at.number_input(key=f"settings-{key}_k").set_value(3)
    at.checkbox(key=f"settings-{key}_blind").uncheck()
    at.date_input(key=f"settings-{key}_due").set_value(date(2030, 1, 31))
    at.button(key=f"FormSubmitter:settings-{key}-Save").click().run()
    assert success_text(at) == "pilot: name, k, blind, due changed."
    with read_transaction(full.engine) as connection:
        (row,) = queues(connection)
    assert (row.name, row.k, row.places, row.blind, row.lease_s) == ("main", 3, 6, False, 14_400)
    assert row.due_at == 1_896_134_399_000_000  # 2030-01-31 23:59:59 UTC
    at.segmented_control(key="change_part").set_value("Close or reopen").run()
    at.button(key="close_queue").click().run()
    assert at.dataframe[0].value["state"].tolist() == ["closed"]
    at.button(key="reopen_queue").click().run()
    assert [one.value for one in at.success] == ["main is open again."]


def test_a_name_that_is_taken_is_refused_and_nothing_changes(full: Workspace, open_page: OpenPage) -> None:
    key = a_queue(full, 2)
    a_queue(full, 2, name="other")
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Queues").run()
    at.text_input(key=f"settings-{key}_name").input("other")
    at.button(key=f"FormSubmitter:settings-{key}-Save").click().run()
    assert "exists\\: choose another name" in at.error[0].value
    with read_transaction(full.engine) as connection:
        assert [row.name for row in queues(connection)] == ["pilot", "other"]


def test_traces_are_taken_out_and_put_in(full: Workspace, open_page: OpenPage) -> None:
    key = a_queue(full, 3)
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Queues").run()
    at.segmented_control(key="change_part").set_value("Traces").run()
    out = at.dataframe[1].value["trace"].iloc[1]
    tick(at, f"items-{key}-3", 1)
    at.run()
    at.button(key="take_out").click().run()
    assert at.success[0].value == "1 trace removed from pilot."
    assert out not in at.dataframe[1].value["trace"].tolist()
    assert "6 traces fit, 4 of them are not in pilot." in [one.value for one in at.caption]
    at.button(key="put_in").click().run()
    assert at.success[0].value == "4 traces put into pilot."
    assert len(at.dataframe[1].value) == 6


def test_people_are_assigned_to_a_queue_and_to_items(full: Workspace, open_page: OpenPage) -> None:
    key = a_queue(full, 4, k=2)
    with write_transaction(full.engine) as connection:
        for name in ("cyd", "dan"):
            add_person(connection, name, role="annotator", by="root")
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Assignments").run()
    at.multiselect(key=f"people-of-{key}").set_value(["dan"])
    at.button(key=f"FormSubmitter:queue-people-{key}-Save").click().run()
    assert at.success[0].value == "The queue is open to dan."
    assert at.dataframe[0].value.set_index("person")["pilot"].to_dict() == {"cyd": "–", "dan": "0 done"}
    tick(at, f"assign-{key}-4", 0, 2)
    at.multiselect(key=f"assign-people-{key}").set_value(["cyd"])
    at.run()
    at.button(key="assign").click().run()
    assert at.success[0].value == "2 places kept."
    assert at.dataframe[1].value["cyd"].tolist() == ["assigned", "", "assigned", ""]
    assert at.dataframe[0].value.set_index("person")["pilot"]["cyd"] == "0 done, 2 waiting"
    at.multiselect(key=f"assign-people-{key}").set_value(["cyd", "dan"])
    at.run()
    at.button(key="share_out").click().run()
    assert success_text(at) == "Distributed: cyd 2, dan 4."


def at_assignments(full: Workspace, open_page: OpenPage) -> AppTest:
    with write_transaction(full.engine) as connection:
        for name in ("cyd", "dan", "eve"):
            add_person(connection, name, role="annotator", by="root")
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Assignments").run()
    return at


def test_open_places_of_a_person_go_to_those_chosen_and_what_is_done_stays(
    full: Workspace, open_page: OpenPage
) -> None:
    key = a_queue(full, 2)
    done = next_item(full.engine, key, "cyd", now=time.time_ns() // 1000)
    assert done is not None
    submit(full, "cyd", done.trace_id)
    assert next_item(full.engine, key, "cyd", now=time.time_ns() // 1000) is not None
    at = at_assignments(full, open_page)
    assert at.button(key="reassign").disabled
    at.selectbox(key=f"reassign-from-{key}").select("cyd")
    at.multiselect(key=f"assign-people-{key}").set_value(["cyd", "dan"])
    at.run()
    assert "To dan." in [one.value for one in at.caption]
    at.button(key="reassign").click().run()
    assert success_text(at) == "Open places of cyd reassigned: dan 1. Drafts of cyd stay stored."
    loads = at.dataframe[0].value.set_index("person")["pilot"].to_dict()
    assert loads == {"cyd": "1 done", "dan": "0 done, 1 waiting", "eve": "0 done"}


@pytest.mark.parametrize("while_blind", [True, False])
def test_submitted_traces_are_returned_with_the_reason_to_the_people_chosen(
    full: Workspace, open_page: OpenPage, while_blind: bool
) -> None:
    key = a_queue(full, 2, k=2)
    with read_transaction(full.engine) as connection:
        ids = trace_ids(connection)[:2]
    submit(full, "cyd", ids[0])
    submit(full, "dan", ids[0])
    submit(full, "cyd", ids[1])
    at = at_assignments(full, open_page)
    place = at.dataframe[1].value["trace"].tolist().index(ids[0])
    tick(at, f"assign-{key}-2", place)
    at.multiselect(key=f"assign-people-{key}").set_value(["cyd", "eve"])
    at.run()
    assert at.button(key="return").disabled
    at.text_area(key="return_reason").input("S2 again")
    at.checkbox(key="return_while_blind").set_value(while_blind)
    at.run()
    at.button(key="return").click().run()
    assert success_text(at) == "1 submitted trace returned."
    with read_transaction(full.engine) as connection:
        sent = [one for one in comments(connection) if one.kind == "return"]
        assert [(one.trace_id, one.mentions, one.body, one.author, one.while_blind) for one in sent] == [
            (ids[0], ("cyd",), "S2 again", "me", while_blind)
        ]


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
    with read_transaction(open_workspace(home).engine) as connection:
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


def test_an_owner_of_a_run_that_fell_silent_counts_as_gone(full: Workspace) -> None:
    now = time.time_ns() // 1000
    with write_transaction(full.engine) as connection:
        connection.execute(
            tables.run.insert(),
            [
                {"name": name, "status": status, "spec": "{}", "author": "me", "message": "", "created_at": now,
                 "owner": owner, "heartbeat_at": seen}
                for name, status, owner, seen in (
                    ("a", "running", "w1", now - 1_000_000), ("b", "running", "w2", now - 600_000_000),
                    ("c", "queued", None, None), ("d", "done", "w3", now), ("e", "out of budget", None, now),
                )
            ],
        )  # fmt: skip
    runs = {run.name: run.is_alive for run in health.health(full.engine).runs}
    assert runs == {"a": True, "b": False, "c": None, "e": None}


def test_only_an_administrator_gets_in(full: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by the navigation nor by running the page's file."""
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="judy", role="researcher"))
    assert "Admin" not in [header.value for header in open_page("admin").header]
    alone = AppTest.from_file(str(MAIN.parent / "views" / "admin.py"), default_timeout=60).run()
    assert alone.error[0].value.startswith("This page needs the role admin")
    assert alone.header == []
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="root", role="admin"))
    assert "Admin" in [header.value for header in open_page("admin").header]


def test_the_counters_of_health_lead_to_what_they_count(full: Workspace, open_page: OpenPage) -> None:
    with write_transaction(full.engine) as connection:
        add_run(connection, name="left", spec={"judges": ["LC"], "models": ["m"]}, author="test")
    at = open_page("admin")
    at.segmented_control(key="admin_view").set_value("Health").run()
    assert at.button(key="traces-open").label == "All traces in Explore"
    at.session_state["label_rows"] = True
    at.run()
    rows = next(frame.value for frame in at.dataframe if "scores" in frame.value)
    assert list(rows["annotator"]) == ["ada", "ben"]
    tiles = {metric.label: metric.value for metric in at.metric}
    assert tiles["Label rows"] == f"{int(rows[['errors', 'scores']].to_numpy().sum()):,}"
    choose(at, "label_rows_of", 0)
    assert at.button(key="label-rows-open").label == "Open in Explore"
    choose(at, "unfinished", 0)
    assert at.button(key="unfinished-open").label == "Open in Runs"
