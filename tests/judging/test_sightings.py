"""Blind is what the store says: whoever saw judges or others before submitting has labels that are not blind."""

from pathlib import Path
from typing import Any

import pytest
from tests.build import span_id
from tests.judging.team import many_traces, op, send, submit, trace_id

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels import item_state
from tracejury.judging.labels.anchoring import at_work_blind, may_see_judges
from tracejury.judging.labels.sightings import note_seen, require_blind, sightings
from tracejury.judging.labels.submissions import submissions
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import load_frames
from tracejury.judging.store import Workspace
from tracejury.judging.store.audit import audit_log

ONE, TWO = trace_id(0), trace_id(1)
ERROR: dict[str, Any] = {"span_ids": [span_id(2)], "dimensions": ["TC"], "impact": "high"}


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return many_traces(tmp_path / "home", 3)


def state(space: Workspace, who: str = "ada", trace: str = ONE) -> dict[str, Any]:
    return item_state.state(space.engine, annotator=who, trace_id=trace)


def phases(space: Workspace, who: str = "ada") -> set[str]:
    now = state(space, who)
    return {one["phase"] for one in [*now["errors"], *now["scores"].values()]}


def saw(space: Workspace, what: str = "Compare", who: str = "ada", *traces: str) -> None:
    note_seen(space.engine, annotator=who, trace_ids=traces or [ONE], what=what)


def blind_reviews(space: Workspace) -> dict[tuple[str, str], bool]:
    with read_transaction(space.engine) as connection:
        found = submissions(connection)
    return {(row.annotator, row.trace_id): row.blind for row in found.itertuples()}


def test_labels_made_after_seeing_are_stored_as_revealed_and_the_state_says_what_was_seen(space: Workspace) -> None:
    saw(space)
    send(
        space,
        "ada",
        ONE,
        op("error.put", **ERROR, label_id="a", phase="blind"),
        op("score.put", dimension="TC", value=1),
    )
    assert phases(space) == {"revealed"}
    assert [one["what"] for one in state(space)["seen"]] == ["Compare"]
    assert state(space, "ben")["seen"] == []
    assert state(space, trace=TWO)["seen"] == []


def test_a_draft_made_before_seeing_is_not_blind_once_it_is_submitted(space: Workspace) -> None:
    send(space, "ada", ONE, op("error.put", **ERROR, label_id="a"), op("score.put", dimension="TC", value=1))
    saw(space)
    send(space, "ada", ONE, op("review.put", status="submitted"))
    assert phases(space) == {"revealed"}
    assert state(space)["scores"]["TC"]["value"] == 1
    assert blind_reviews(space) == {("ada", ONE): False}


def test_seeing_after_submitting_leaves_the_answer_blind_and_marks_what_is_changed_then(space: Workspace) -> None:
    submit(space, "ada", ONE, scores={"TC": 1}, errors=[ERROR | {"label_id": "a"}])
    saw(space)
    send(space, "ada", ONE, op("review.put", status="open"), op("score.put", dimension="TC", value=3))
    send(space, "ada", ONE, op("review.put", status="submitted"))
    assert blind_reviews(space) == {("ada", ONE): True}
    assert state(space)["scores"]["TC"]["phase"] == "revealed"
    assert state(space)["errors"][0]["phase"] == "blind"


@pytest.mark.parametrize("blind_only", [True, False])
def test_blind_labels_only_leaves_out_what_was_not_blind(space: Workspace, blind_only: bool) -> None:
    saw(space, "Export")
    submit(space, "ada", ONE, scores={"TC": 1}, errors=[ERROR | {"label_id": "a"}])
    submit(space, "ada", TWO, scores={"TC": 2}, errors=[ERROR | {"label_id": "b"}])
    with read_transaction(space.engine) as connection:
        frames = load_frames(connection, Filters(reference="ada", blind_only=blind_only))
    assert set(frames.ratings["unit"]) == ({TWO} if blind_only else {ONE, TWO})


def test_the_first_sighting_is_kept_and_each_place_once(space: Workspace) -> None:
    note_seen(space.engine, annotator="ada", trace_ids=[ONE, TWO], what="Export", at=5)
    note_seen(space.engine, annotator="ada", trace_ids=[ONE], what="Export", at=9)
    note_seen(space.engine, annotator="ada", trace_ids=[ONE], what="Compare", at=3)
    note_seen(space.engine, annotator="ada", trace_ids=[], what="Compare", at=3)
    with read_transaction(space.engine) as connection:
        found = sightings(connection, annotator="ada", trace_id=ONE)
    assert [(one.what, one.at) for one in found] == [("Compare", 3), ("Export", 5)]


@pytest.mark.parametrize("role", ["annotator", "adjudicator", "researcher", "admin"])
def test_where_blind_labels_are_required_nobody_sees_a_trace_before_submitting_it(space: Workspace, role: Any) -> None:
    def may() -> bool:
        with read_transaction(space.engine) as connection:
            return may_see_judges(connection, annotator="ada", role=role, trace_id=ONE)

    assert may() == (role != "annotator")
    with write_transaction(space.engine) as connection:
        require_blind(connection, required=True, by="root")
    assert not may()
    with read_transaction(space.engine) as connection:
        assert ONE in at_work_blind(connection, "ada")
    submit(space, "ada", ONE, scores={})
    assert may()
    with read_transaction(space.engine) as connection:
        assert at_work_blind(connection, "ada") == {TWO, trace_id(2)}
    with write_transaction(space.engine) as connection:
        require_blind(connection, required=False, by="root")
    with read_transaction(space.engine) as connection:
        assert at_work_blind(connection, "ada") == frozenset()
        assert list(audit_log(connection, what="require blind labels")["subject"]) == ["false", "true"]
