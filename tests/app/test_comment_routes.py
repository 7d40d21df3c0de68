"""Comments at the desk: never on the wire to whoever labels the trace blind, recorded as seen when read."""

import time
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.build import span_id
from tests.judging.team import many_traces, op, queue_of, send, submit, trace_id

from tracejury.app.api import work
from tracejury.app.config import config
from tracejury.app.grants import Grant, mint
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.my_work import return_traces, unread_comments
from tracejury.judging.labels.sightings import sightings
from tracejury.judging.queues.places import next_item
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import Role, add_person

TRACE, SECRET = trace_id(0), "the judge LC and ben are both wrong"


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "password")
    config.cache_clear()
    space = many_traces(tmp_path / "home", 2)
    roles: dict[str, Role] = {"ada": "annotator", "ben": "annotator", "lead": "admin"}
    with write_transaction(space.engine) as connection:
        for name, role in roles.items():
            add_person(connection, name, role=role, by="test")
    return space


class Person:
    def __init__(self, space: Workspace, name: str) -> None:
        self.token = mint(space.secret(), Grant(name, TRACE, 0))
        self.client = TestClient(Starlette(routes=list(work.work_routes(lambda: space))))

    def writes(self, comment_id: str, **more: object) -> Any:
        return self.client.post(f"/api/comments/{TRACE}", json={"token": self.token, "comment_id": comment_id} | more)

    def reads(self, **more: str) -> Any:
        return self.client.get(f"/api/comments/{TRACE}", params={"token": self.token} | more)


def seen(space: Workspace, who: str) -> list[str]:
    with read_transaction(space.engine) as connection:
        return [one.what for one in sightings(connection, annotator=who, trace_id=TRACE)]


def test_a_blind_annotator_gets_no_word_of_others_and_reading_after_submission_is_recorded(space: Workspace) -> None:
    ada, ben, lead = (Person(space, name) for name in ("ada", "ben", "lead"))
    assert lead.writes("c1", body=f"@ada {SECRET}", span_id=span_id(2)).json()["mentions"] == ["ada"]
    assert ben.writes("c2", body="my question @lead").status_code == 200
    before = ada.reads()
    assert (before.json()["comments"], SECRET in before.text, seen(space, "ada")) == ([], False, [])
    assert [one["comment_id"] for one in ben.reads().json()["comments"]] == ["c2"]
    assert [one["comment_id"] for one in lead.reads().json()["comments"]] == ["c1", "c2"]
    submit(space, "ada", TRACE)
    after = ada.reads().json()["comments"]
    assert [(one["comment_id"], one["is_own"], one["span_id"]) for one in after] == [
        ("c1", False, span_id(2)),
        ("c2", False, None),
    ]
    assert seen(space, "ada") == ["Comments"]
    with read_transaction(space.engine) as connection:
        assert unread_comments(connection, reader="ada", role="annotator") == []


def test_a_return_that_may_be_read_while_blind_leaves_labels_blind(space: Workspace) -> None:
    submit(space, "ada", TRACE)
    with write_transaction(space.engine) as connection:
        return_traces(connection, [TRACE], ["ada"], by="lead", reason="S2 again", while_blind=True)
    send(space, "ada", TRACE, op("review.put", status="open"))
    ben = Person(space, "ben")
    assert ben.writes("c2", body=SECRET).status_code == 200
    read = Person(space, "ada").reads()
    assert ([one["body"] for one in read.json()["comments"]], SECRET in read.text) == (["S2 again"], False)
    assert seen(space, "ada") == []
    submit(space, "ada", TRACE)
    assert len(Person(space, "ada").reads().json()["comments"]) == 2
    assert seen(space, "ada") == ["Comments"]


def test_an_annotator_is_offered_only_those_who_lead(space: Workspace) -> None:
    assert Person(space, "ada").reads().json()["people"] == ["lead"]
    assert Person(space, "lead").reads().json()["people"] == ["ada", "ben"]


def test_without_sign_in_comments_of_others_come_when_asked_for_and_who_worked_here_can_be_named(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "off")
    config.cache_clear()
    uma, vic = Person(space, "uma"), Person(space, "vic")  # they have no account
    submit(space, "vic", TRACE)
    assert uma.reads().json()["people"] == ["ada", "ben", "lead", "vic"]
    assert uma.writes("c1", body=f"@vic {SECRET}").json()["mentions"] == ["vic"]
    assert vic.writes("c2", body="@uma why?").json()["mentions"] == ["uma"]
    assert [one["comment_id"] for one in vic.reads().json()["comments"]] == ["c1", "c2"]  # vic has submitted
    closed = uma.reads().json()
    assert ([one["comment_id"] for one in closed["comments"]], closed["hidden"], seen(space, "uma")) == (["c1"], 1, [])
    opened = uma.reads(others="show").json()
    assert [one["comment_id"] for one in opened["comments"]] == ["c1", "c2"]
    assert (opened["hidden"], seen(space, "uma")) == (0, ["Comments"])


def test_without_sign_in_a_blind_queue_keeps_comments_of_others_closed(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "off")
    config.cache_clear()
    assert Person(space, "vic").writes("c2", body=SECRET).status_code == 200
    assert next_item(space.engine, queue_of(space, 1), "uma", now=time.time_ns() // 1000) is not None
    answer = Person(space, "uma").reads(others="show")
    assert (answer.json()["comments"], answer.json()["hidden"], SECRET in answer.text) == ([], 0, False)


def test_who_signs_in_cannot_ask_for_what_is_hidden(space: Workspace) -> None:
    assert Person(space, "ben").writes("c2", body=SECRET).status_code == 200
    answer = Person(space, "ada").reads(others="show").json()
    assert (answer["comments"], answer["hidden"], seen(space, "ada")) == ([], 0, [])


def test_a_comment_is_changed_and_deleted_by_its_author_alone(space: Workspace) -> None:
    ada, ben = Person(space, "ada"), Person(space, "ben")
    assert ada.writes("c1", body="one").json()["edited_at"] is None
    assert ada.writes("c1", body="two").json()["body"] == "two"
    assert ben.writes("c1", body="three").status_code == ben.writes("c1", deleted=True).status_code == 422
    assert ada.writes("c1", deleted=True).json() == {"deleted": "c1"}
    assert ada.reads().json()["comments"] == []


@pytest.mark.parametrize("body", [None, "", " \n", 7, ["a"]])
def test_what_is_no_text_is_refused_with_a_remedy(space: Workspace, body: object) -> None:
    answer = Person(space, "ada").writes("c1", body=body)
    assert (answer.status_code, answer.json()["remedy"]) == (422, "write one")


def test_a_pass_of_another_trace_opens_nothing(space: Workspace) -> None:
    ada = Person(space, "ada")
    ada.token = mint(space.secret(), Grant("ada", trace_id(1), 0))
    assert (ada.reads().status_code, ada.writes("c1", body="x").status_code) == (403, 403)
