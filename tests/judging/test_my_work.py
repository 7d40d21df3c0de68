"""What waits for one person: their own traces alone, returns until answered, disputes only once others were seen."""

from pathlib import Path

import pytest
from tests.judging.team import HOUR, T0, many_traces, op, queue_of, send, submit, trace_id

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.comments import mark_read, put_comment
from tracejury.judging.labels.my_work import MyTrace, disputed, my_traces, return_traces, returned, unread_comments
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.queues.places import next_item, take_next
from tracejury.judging.queues.queue_changes import retire_traces
from tracejury.judging.store import Workspace

ONE, TWO, THREE = (trace_id(number) for number in range(3))


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return many_traces(tmp_path / "home", 3)


def mine(space: Workspace, who: str) -> list[MyTrace]:
    with read_transaction(space.engine) as connection:
        return my_traces(connection, who)


def back(space: Workspace, who: str) -> list[str]:
    with read_transaction(space.engine) as connection:
        return [one.body for one in returned(connection, reader=who, role="annotator")]


def give_back(space: Workspace, who: str, *traces: str) -> int:
    with write_transaction(space.engine) as connection:
        return return_traces(connection, traces, [who], by="lead", reason="look at the plan again")


def test_traces_are_those_that_a_queue_gave_or_that_were_begun_without_one(space: Workspace) -> None:
    key = queue_of(space, 2, name="pilot", k=2)
    place = next_item(space.engine, key, "ada", now=T0)
    assert place is not None
    send(space, "ada", THREE, op("score.put", dimension="LC", value=1))
    assert mine(space, "ada") == [MyTrace(place.trace_id, key, "pilot", True), MyTrace(THREE, None, None, True)]
    assert mine(space, "ben") == []
    submit(space, "ada", place.trace_id)
    assert mine(space, "ada")[0].is_open is False


def test_a_place_that_expired_or_was_taken_out_is_nobodys(space: Workspace) -> None:
    key = queue_of(space, 1)
    assert next_item(space.engine, key, "ada", now=T0)
    with write_transaction(space.engine) as connection:
        assert take_next(connection, key, "ben", now=T0 + 5 * HOUR)
    assert mine(space, "ada") == []
    with write_transaction(space.engine) as connection:
        retire_traces(connection, key, [ONE], by="lead", now=T0)
    assert mine(space, "ben") == []


def test_a_return_waits_until_the_trace_is_submitted_again_and_only_submitted_ones_are_returned(
    space: Workspace,
) -> None:
    submit(space, "ada", ONE)
    send(space, "ada", TWO, op("score.put", dimension="LC", value=1))
    assert (give_back(space, "ada", ONE, TWO), back(space, "ada")) == (1, ["look at the plan again"])
    assert back(space, "ben") == []
    send(space, "ada", ONE, op("review.put", status="open"))
    submit(space, "ada", ONE)
    assert back(space, "ada") == []


def new(space: Workspace, who: str) -> list[str]:
    with read_transaction(space.engine) as connection:
        return [one.body for one in unread_comments(connection, reader=who, role="annotator")]


def test_what_others_wrote_is_unread_until_marked_and_a_mark_is_its_readers_alone(space: Workspace) -> None:
    with write_transaction(space.engine) as connection:
        put_comment(connection, comment_id="m", author="lead", body="to all", kind="message", to=[])
        put_comment(connection, comment_id="n", author="ada", body="to lead", kind="message", to=["lead"])
    assert [new(space, who) for who in ("ada", "ben", "lead")] == [["to all"], ["to all"], ["to lead"]]
    for _ in range(2):
        mark_read(space.engine, ["m"], reader="ada")
    with write_transaction(space.engine) as connection:
        put_comment(connection, comment_id="m", author="lead", body="to all, edited", kind="message", to=[])
    assert [new(space, who) for who in ("ada", "ben")] == [[], ["to all, edited"]]


def test_a_mention_is_told_only_once_it_may_be_read_and_no_longer_when_it_names_others(space: Workspace) -> None:
    for comment_id, to in (("c", ["ada"]), ("d", ["ada"]), ("d", ["ben"])):
        with write_transaction(space.engine) as connection:
            put_comment(connection, comment_id=comment_id, author="lead", body=comment_id, trace_id=ONE, to=to)
    assert new(space, "ada") == []
    submit(space, "ada", ONE)
    assert new(space, "ada") == ["c"]


def test_a_return_that_was_answered_is_not_told(space: Workspace) -> None:
    submit(space, "ada", ONE)
    give_back(space, "ada", ONE)
    assert new(space, "ada") == ["look at the plan again"]
    send(space, "ada", ONE, op("review.put", status="open"))
    submit(space, "ada", ONE)
    assert new(space, "ada") == []


def test_a_mention_is_no_return(space: Workspace) -> None:
    submit(space, "ada", ONE)
    with write_transaction(space.engine) as connection:
        put_comment(connection, comment_id="c", author="ben", body="see S2", trace_id=ONE, to=["ada"])
    assert back(space, "ada") == []


def test_disputes_are_told_only_of_traces_on_which_the_person_has_seen_others(space: Workspace) -> None:
    for trace in (ONE, TWO):
        submit(space, "ada", trace)
    with read_transaction(space.engine) as connection:
        assert disputed(connection, "ada", {ONE, TWO, THREE}) == ([], 2)
    note_seen(space.engine, annotator="ada", trace_ids=[ONE], what="Compare")
    send(space, "ada", TWO, op("reveal"))
    with read_transaction(space.engine) as connection:
        assert disputed(connection, "ada", {ONE, THREE}) == ([ONE], 0)
        assert disputed(connection, "ben", {ONE}) == ([], 0)
