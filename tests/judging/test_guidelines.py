"""Guidelines: versions, what changed, who has read which, and the version that stands at each label."""

from pathlib import Path

import pytest
from sqlalchemy import select
from tests.judging.team import many_traces, op, send, submit, trace_id

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.guidelines import (
    GuidelineError,
    acknowledge,
    acknowledged,
    diff,
    guideline,
    guidelines,
    publish,
    readers,
    to_acknowledge,
)
from tracejury.judging.store import Workspace, tables


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return many_traces(tmp_path / "home", 2)


def versions(space: Workspace, *bodies: dict[str, str]) -> None:
    for number, body in enumerate(bodies, 1):
        with write_transaction(space.engine) as connection:
            assert publish(connection, body, author="root", note=f"note {number}") == number


def test_versions_count_up_and_all_are_kept(space: Workspace) -> None:
    versions(space, {"general": "Read first.", "LC": "  "}, {"general": "Read first.", "LC": "Facts must hold."})
    with read_transaction(space.engine) as connection:
        assert [one.version for one in guidelines(connection)] == [2, 1]
        newest, first = guideline(connection), guideline(connection, 1)
        assert guideline(connection, 3) is None
    assert newest is not None
    assert first is not None
    assert dict(newest.body) == {"general": "Read first.", "LC": "Facts must hold."}
    assert dict(first.body) == {"general": "Read first."}
    assert (newest.author, newest.note) == ("root", "note 2")


def test_the_difference_names_lines_by_part_and_leaves_out_parts_that_are_the_same(space: Workspace) -> None:
    versions(space, {"general": "One.", "LC": "a\nb\nc"}, {"general": "One.", "LC": "a\nB\nc", "TC": "new"})
    with read_transaction(space.engine) as connection:
        new, old = guidelines(connection)
    assert diff(old, new) == {
        "LC": [("same", "a"), ("removed", "b"), ("added", "B"), ("same", "c")],
        "TC": [("added", "new")],
    }
    assert diff(old, old) == {}


@pytest.mark.parametrize(
    ("body", "message"),
    [({}, "empty"), ({"LC": " \n"}, "empty"), ({"XX": "a"}, "not a part"), ({"LC": "a" * 200_001}, "longer than"),
     ({"general": "Same."}, "the text equals version 1")],
)  # fmt: skip
def test_what_says_nothing_is_not_published(space: Workspace, body: dict[str, str], message: str) -> None:
    versions(space, {"general": "Same."})
    with write_transaction(space.engine) as connection, pytest.raises(GuidelineError, match=message):
        publish(connection, body, author="root")


def test_each_new_version_must_be_acknowledged_before_going_on(space: Workspace) -> None:
    with read_transaction(space.engine) as connection:
        assert to_acknowledge(connection, "ada") is None  # there is no guideline yet
    versions(space, {"general": "One."})
    with write_transaction(space.engine) as connection:
        assert to_acknowledge(connection, "ada") == 1
        acknowledge(connection, "ada", 1)
        acknowledge(connection, "ada", 1)
        assert to_acknowledge(connection, "ada") is None
        assert to_acknowledge(connection, "ben") == 1
        assert len(connection.execute(select(tables.acknowledgement)).all()) == 1
        publish(connection, {"general": "Two."}, author="root")
        assert to_acknowledge(connection, "ada") == 2
        assert acknowledged(connection, "ada") == 1
        assert readers(connection) == {"ada": 1}
        with pytest.raises(KeyError, match="version 9"):
            acknowledge(connection, "ada", 9)


def test_every_label_stores_the_version_its_author_had_read(space: Workspace) -> None:
    versions(space, {"general": "One."})
    submit(space, "ada", trace_id(0), scores={"LC": 1}, errors=[{"impact": "low"}])
    with write_transaction(space.engine) as connection:
        acknowledge(connection, "ada", 1)
        publish(connection, {"general": "Two."}, author="root")
    send(space, "ada", trace_id(0), op("score.put", dimension="LC", value=2))
    with write_transaction(space.engine) as connection:
        acknowledge(connection, "ada", 2)
    submit(space, "ada", trace_id(1), scores={"LC": 3}, errors=[{"impact": "low"}])
    send(space, "ada", trace_id(1), op("score.put", dimension="LC", value=0), version="pilot")
    with read_transaction(space.engine) as connection:
        assert connection.scalars(select(tables.score_label.c.guideline_version)).all() == [None, "1", "2", "pilot"]
        assert connection.scalars(select(tables.error_label.c.guideline_version)).all() == [None, "2"]
        assert connection.scalars(select(tables.review.c.guideline_version)).all() == [None, "2"]
