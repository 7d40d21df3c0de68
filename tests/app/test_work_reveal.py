"""What judges and others said: shown to those who submitted and asked for it, refused to everyone else."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.app.desk_judges import JUDGE_MODEL, MARKERS, OTHER, judge, other_person
from tests.app.desk_traces import desk_trace

from tracejury.app.api import work
from tracejury.app.grants import Grant, mint
from tracejury.ingest.store import pack, read_transaction, write, write_transaction
from tracejury.judging.labels import item_state
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.store import Workspace, open_workspace
from tracejury.judging.store.people import ensure_annotator

TRACE = "desk-trace"
LAST, TOOL = "last000000000006", "tool000000000004"


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    opened = open_workspace(tmp_path / "home")
    with write_transaction(opened.engine) as connection:
        write(connection, pack(desk_trace()))
    judge(opened, TRACE, (LAST, TOOL))
    other_person(opened, TRACE, LAST)
    return opened


class Person:
    """Someone at the desk, by its routes."""

    def __init__(self, space: Workspace, name: str, occasion: int = 0) -> None:
        self.space, self.name = space, name
        self.token = mint(space.secret(), Grant(name, TRACE, occasion))
        self.client = TestClient(Starlette(routes=list(work.work_routes(lambda: space))))
        self.occasion = occasion

    def does(self, kind: str, **payload: Any) -> Any:
        state = item_state.state(self.space.engine, annotator=self.name, trace_id=TRACE, occasion=self.occasion)
        op = {"op_id": str(uuid.uuid4()), "kind": kind, "payload": payload, "client_time": None}
        batch = {"token": self.token, "trace_id": TRACE, "base_revision": state["revision"], "ops": [op]}
        return self.client.post("/api/ops", json=batch)

    def submits(self) -> None:
        assert self.does("review.put", status="submitted", no_error=True).status_code == 200

    def reveal(self) -> Any:
        return self.client.get(f"/api/reveal/{TRACE}", params={"token": self.token})


def refused(answer: Any) -> str:
    assert answer.status_code == 403
    assert [marker for marker in MARKERS if marker in answer.text] == []
    return str(answer.json()["error"])


def test_before_submitting_it_is_refused_with_the_reason(space: Workspace) -> None:
    ann = Person(space, "ann")
    assert "hidden until you submit" in refused(ann.reveal())
    ann.does("review.put", status="skipped", reason="too long")
    assert "hidden until you submit" in refused(ann.reveal())


def test_submitting_alone_reveals_nothing(space: Workspace) -> None:
    ann = Person(space, "ann")
    ann.submits()
    assert "not revealed on this trace" in refused(ann.reveal())


def test_a_reveal_before_submitting_is_not_stored(space: Workspace) -> None:
    ann = Person(space, "ann")
    assert ann.does("reveal").status_code == 422
    ann.submits()
    assert "not revealed on this trace" in refused(ann.reveal())


def test_after_submit_and_reveal_the_judges_answers_are_there(space: Workspace) -> None:
    ann = Person(space, "ann")
    ann.submits()
    ann.does("reveal")
    [judge_model] = ann.reveal().json()["judge_models"]
    assert judge_model["name"] == JUDGE_MODEL
    assert [(each["rubric"], each["state"], each["score"]) for each in judge_model["judges"]] == [
        ("LC", "scored", 1),
        ("EE", "unparsable", None),
    ]
    first, second = judge_model["findings"]
    assert first["citations"] == [["S6", LAST], ["S99 MARKERCITE", None]]
    assert (first["impact"], first["evidence_place"], first["rubric"]) == ("high", "verbatim", "LC")
    assert second["evidence_place"] == "not found"


def test_reopening_closes_it_again(space: Workspace) -> None:
    ann = Person(space, "ann")
    ann.submits()
    ann.does("reveal")
    ann.does("review.put", status="open")
    assert "hidden until you submit" in refused(ann.reveal())


def test_one_persons_reveal_opens_nothing_for_another_or_for_a_repeat(space: Workspace) -> None:
    ann, ben, again = Person(space, "ann"), Person(space, "ben"), Person(space, "ann", occasion=1)
    ann.submits()
    ann.does("reveal")
    assert ann.reveal().status_code == 200
    refused(ben.reveal())
    refused(again.reveal())


def test_no_token_and_a_token_of_another_trace_are_refused(space: Workspace) -> None:
    ann = Person(space, "ann")
    ann.submits()
    ann.does("reveal")
    assert ann.client.get(f"/api/reveal/{TRACE}").status_code == 401
    other = mint(space.secret(), Grant("ann", "another"))
    assert ann.client.get(f"/api/reveal/{TRACE}", params={"token": other}).status_code == 403


def test_others_are_shown_without_their_names_and_only_once_they_submitted(tmp_path: Path) -> None:
    space = open_workspace(tmp_path / "people")
    with write_transaction(space.engine) as connection:
        write(connection, pack(desk_trace()))
        ensure_annotator(connection, "gold", kind="adjudicated")
    other_person(space, TRACE, LAST, submitted=False)
    ann = Person(space, "ann")
    ann.submits()
    ann.does("reveal")
    assert ann.reveal().json() == {"judge_models": [], "people": [], "own_scores": {}}
    other_person(space, TRACE, LAST)
    [person] = ann.reveal().json()["people"]
    assert person["name"] == "Person 1"
    assert OTHER not in ann.reveal().text
    assert [(error["dimensions"], error["span_ids"]) for error in person["errors"]] == [(["TC"], [LAST])]
    assert person["scores"] == [{"dimension": "TC", "value": 2, "not_applicable": False, "phase": "blind"}]


def test_labels_after_the_reveal_are_marked_and_blind_ones_stay(space: Workspace) -> None:
    ann = Person(space, "ann")
    blind = {"label_id": "blind-label", "span_ids": [TOOL], "dimensions": ["LC"], "impact": "low"}
    ann.does("error.put", **blind)
    ann.does("score.put", dimension="LC", value=3)
    ann.submits()
    ann.does("reveal")
    assert ann.does("error.put", **{**blind, "impact": "high"}).status_code == 422
    assert ann.does("error.delete", label_id="blind-label").status_code == 422
    assert ann.does("error.put", **{**blind, "label_id": "late-label"}).status_code == 200
    ann.does("score.put", dimension="LC", value=1)
    with read_transaction(space.engine) as connection:
        own_labels = [label for label in error_labels(connection) if label.annotator == "ann"]
    assert [(label.label_id, label.phase, label.impact) for label in own_labels] == [
        ("blind-label", "blind", "low"),
        ("late-label", "revealed", "low"),
    ]
    assert ann.reveal().json()["own_scores"]["LC"]["value"] == 3, "the blind score stands beside the later one"


def test_no_route_of_the_desk_tells_anything_before(space: Workspace) -> None:
    ann = Person(space, "ann")
    params = {"token": ann.token, "trace_id": TRACE}
    paths = (
        f"/api/trace/{TRACE}", f"/api/trace/{TRACE}?rest=1", f"/api/span/{TRACE}/0?count=64&whole=1",
        f"/api/search/{TRACE}?q=MARKERFINDING", f"/api/text/{TRACE}", f"/api/reveal/{TRACE}", "/api/settings",
    )  # fmt: skip
    for path in paths:
        answer = ann.client.get(path, params=params)
        assert [marker for marker in MARKERS if marker in answer.text] == [], path
    assert [marker for marker in MARKERS if marker in ann.does("review.put", status="open").text] == []
