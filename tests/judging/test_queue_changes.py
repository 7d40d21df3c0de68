"""Queues after they were made: nothing that somebody did is lost, and exactly k count whatever is changed."""

import time
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from sqlalchemy import select
from tests.judging.team import HOUR, T0, many_traces, op, queue_of, send, submit, trace_id

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.guidelines import acknowledge, publish
from tracejury.judging.queues import queue_changes
from tracejury.judging.queues.places import (
    Assigned,
    assignments,
    next_item,
    progress,
)
from tracejury.judging.queues.queue_changes import settings_of
from tracejury.judging.queues.queue_store import QueueError, queues, queues_for
from tracejury.judging.store import Workspace, tables
from tracejury.judging.store.people import add_person


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return many_traces(tmp_path / "home", 8)


def now() -> int:
    return time.time_ns() // 1000


def change(space: Workspace, queue: int, **more: object) -> list[str]:
    with write_transaction(space.engine) as connection:
        (row,) = [row for row in queues(connection) if row.queue_key == queue]
        after = replace(settings_of(row), **more)  # type: ignore[arg-type]
        return queue_changes.change_queue(connection, queue, after, by="root", now=now())


def act(space: Workspace, name: str, *args: object) -> object:
    with write_transaction(space.engine) as connection:
        return getattr(queue_changes, name)(connection, *args, by="root", now=now())


def take(space: Workspace, queue: int, who: str) -> Assigned | None:
    return next_item(space.engine, queue, who, now=now())


def met_by(space: Workspace, queue: int, who: str) -> set[str]:
    """Label to the end of the queue."""
    met = set()
    while (place := take(space, queue, who)) is not None:
        met.add(place.trace_id)
        submit(space, who, place.trace_id, occasion=place.occasion)
    return met


def states(space: Workspace, queue: int, number: int = 0) -> dict[str, str]:
    with read_transaction(space.engine) as connection:
        rows = assignments(connection, queue, now=now())
    return {who: state for trace, _, who, _, state, _ in rows if trace == trace_id(number) and who}


def logged(space: Workspace) -> list[tuple[str, dict[str, object]]]:
    with read_transaction(space.engine) as connection:
        rows = connection.execute(select(tables.audit.c.what, tables.audit.c.detail).order_by(tables.audit.c.row_key))
        return [(row.what, orjson.loads(row.detail)) for row in rows]


class TestSettings:
    def test_every_setting_changes_and_the_log_says_what_it_was(self, space: Workspace) -> None:
        queue = queue_of(space, 4, name="pilot")
        with write_transaction(space.engine) as connection:
            publish(connection, {"general": "Read."}, author="root")
        changed = change(
            space, queue, name="main", k=3, overlap_share=0.5, repeat_share=0.1, blind=False, lease_s=3600,
            hide=("agent",), guideline_version=1, due_at=T0,
        )  # fmt: skip
        assert len(changed) == 9
        with read_transaction(space.engine) as connection:
            (row,) = queues(connection)
        assert (row.name, row.k, row.blind, row.lease_s, row.guideline_version, row.due_at) == (
            "main",
            3,
            False,
            3600,
            1,
            T0,
        )
        assert row.places == 3 + 3 + 1 + 1
        what, detail = logged(space)[-1]
        assert what == "queue changed"
        assert detail["name"] == ["pilot", "main"]
        assert detail["k"] == [1, 3]
        assert change(space, queue, k=3) == []
        assert logged(space)[-1] == (what, detail)

    @pytest.mark.parametrize(
        ("more", "says"),
        [({"name": "other"}, "exists"), ({"name": " "}, "needs a name"), ({"k": 0}, "at least one person"),
         ({"lease_s": 5}, "too short"), ({"guideline_version": 7}, "no version 7")],
    )  # fmt: skip
    def test_what_cannot_be_is_refused_in_words(self, space: Workspace, more: dict[str, object], says: str) -> None:
        queue = queue_of(space, 2, name="pilot")
        queue_of(space, 2, name="other")
        with pytest.raises(QueueError, match=says):
            change(space, queue, **more)

    def test_raising_k_counts_those_who_were_extra_in_the_order_in_which_they_submitted(self, space: Workspace) -> None:
        queue = queue_of(space, 1, k=1)
        for who in ("ada", "ben", "cyd"):
            submit(space, who, trace_id(0))
        assert states(space, queue) == {"ada": "counted", "ben": "extra", "cyd": "extra"}
        change(space, queue, k=2)
        assert states(space, queue) == {"ada": "counted", "ben": "counted", "cyd": "extra"}
        change(space, queue, k=4)
        assert states(space, queue) == dict.fromkeys(("ada", "ben", "cyd"), "counted")
        change(space, queue, k=1)
        assert states(space, queue) == {"ada": "counted", "ben": "extra", "cyd": "extra"}

    def test_lowering_k_sends_nobody_home_who_is_at_work_and_what_they_submit_is_kept_as_extra(
        self, space: Workspace
    ) -> None:
        queue = queue_of(space, 1, k=2)
        for who in ("ada", "ben"):
            assert take(space, queue, who) is not None
        submit(space, "ada", trace_id(0))
        change(space, queue, k=1)
        assert take(space, queue, "ben") is not None
        submit(space, "ben", trace_id(0))
        assert states(space, queue) == {"ada": "counted", "ben": "extra"}

    def test_an_overlap_that_is_widened_keeps_the_items_it_has(self, space: Workspace) -> None:
        queue = queue_of(space, 8, k=2, overlap_share=0.25)

        def shared() -> set[str]:
            with read_transaction(space.engine) as connection:
                return set(
                    connection.scalars(select(tables.queue_item.c.trace_id).where(tables.queue_item.c.wanted == 2))
                )

        before = shared()
        change(space, queue, overlap_share=0.5)
        assert len(before) == 2
        assert len(shared()) == 4
        assert before < shared()
        change(space, queue, overlap_share=0.25)
        assert len(shared()) == 2

    def test_a_reopened_place_that_runs_out_is_the_next_persons_and_k_count_still(self, space: Workspace) -> None:
        queue = queue_of(space, 1, k=1, lease_s=60)
        for who in ("ada", "ben"):
            submit(space, who, trace_id(0))
        send(space, "ada", trace_id(0), op("review.put", status="open"))
        assert states(space, queue) == {"ada": "at work", "ben": "extra"}
        assert next_item(space.engine, queue, "cyd", now=now() + HOUR) is None
        assert states(space, queue) == {"ada": "expired", "ben": "counted"}
        submit(space, "ada", trace_id(0))
        assert states(space, queue) == {"ada": "extra", "ben": "counted"}

    def test_labels_carry_the_guideline_that_the_queue_asks_for(self, space: Workspace) -> None:
        with write_transaction(space.engine) as connection:
            for text in ("Read.", "Read twice."):
                publish(connection, {"general": text}, author="root")
            for version in (1, 2):
                acknowledge(connection, "ada", version)
        queue = queue_of(space, 1, guideline_version=1)
        place = take(space, queue, "ada")
        assert place is not None
        submit(space, "ada", place.trace_id)
        submit(space, "ada", trace_id(5))
        with read_transaction(space.engine) as connection:
            rows = connection.execute(select(tables.review.c.trace_id, tables.review.c.guideline_version)).all()
        assert dict(map(tuple, rows)) == {place.trace_id: "1", trace_id(5): "2"}


class TestClosing:
    def test_a_closed_queue_hands_out_nothing_but_a_place_held_may_be_finished(self, space: Workspace) -> None:
        queue = queue_of(space, 4)
        place = take(space, queue, "ada")
        assert place is not None
        act(space, "close_queue", queue)
        assert take(space, queue, "ben") is None
        assert take(space, queue, "ada") == place
        with read_transaction(space.engine) as connection:
            assert [row.queue_key for row in queues_for(connection, "ada")] == [queue]
            assert queues_for(connection, "ben") == []
        submit(space, "ada", place.trace_id)
        assert take(space, queue, "ada") is None
        with read_transaction(space.engine) as connection:
            assert (progress(connection, queue, "ada").done, progress(connection, queue, "ada").total) == (1, 1)
            assert queues_for(connection, "ada") == []
            assert len(queues_for(connection, "ada", also=queue)) == 1
        act(space, "reopen_queue", queue)
        assert take(space, queue, "ben") is not None
        assert [what for what, _ in logged(space)][-2:] == ["queue closed", "queue reopened"]

    def test_work_done_elsewhere_does_not_count_in_a_closed_queue_until_it_opens(self, space: Workspace) -> None:
        queue = queue_of(space, 1)
        act(space, "close_queue", queue)
        submit(space, "ada", trace_id(0))
        assert states(space, queue) == {}
        act(space, "reopen_queue", queue)
        assert take(space, queue, "ada") is None
        assert states(space, queue) == {"ada": "counted"}

    def test_closing_twice_is_refused(self, space: Workspace) -> None:
        queue = queue_of(space, 1)
        with pytest.raises(QueueError, match="is open"):
            act(space, "reopen_queue", queue)
        act(space, "close_queue", queue)
        with pytest.raises(QueueError, match="already closed"):
            act(space, "close_queue", queue)


class TestTraces:
    def test_added_traces_are_handed_out_and_the_overlap_grows_with_them(self, space: Workspace) -> None:
        queue = queue_of(space, 4, k=2, overlap_share=0.5)
        before = {trace: wanted for trace, wanted, *_ in self.rows(space, queue)}
        assert act(space, "add_traces", queue, [trace_id(number) for number in range(8)]) == 4
        after = {trace: wanted for trace, wanted, *_ in self.rows(space, queue)}
        assert sorted(after.values()) == [1] * 4 + [2] * 4
        assert all(after[trace] == wanted for trace, wanted in before.items())
        assert len(met_by(space, queue, "ada")) == 8
        with pytest.raises(QueueError, match="already"):
            act(space, "add_traces", queue, [trace_id(0)])
        with pytest.raises(QueueError, match="ingest it first"):
            act(space, "add_traces", queue, ["f" * 32])

    def test_a_retired_trace_is_handed_out_no_more_and_its_labels_stay(self, space: Workspace) -> None:
        queue = queue_of(space, 3)
        submit(space, "ada", trace_id(0))
        assert act(space, "retire_traces", queue, [trace_id(0), trace_id(1)]) == 1
        assert met_by(space, queue, "ben") == {trace_id(2)}
        with read_transaction(space.engine) as connection:
            (row,) = queues(connection)
            assert (row.items, row.places, row.done) == (1, 1, 1)
            assert connection.scalars(select(tables.review.c.annotator)).all() == ["ada", "ben"]
            assert len(connection.execute(select(tables.score_label)).all()) == 14
        assert act(space, "add_traces", queue, [trace_id(0)]) == 1
        assert states(space, queue) == {"ada": "counted"}
        assert [what for what, _ in logged(space)][-2:] == ["traces retired from queue", "traces added to queue"]

    def test_whoever_is_at_work_on_a_trace_that_is_retired_loses_nothing_and_goes_on_elsewhere(
        self, space: Workspace
    ) -> None:
        queue = queue_of(space, 2)
        place = take(space, queue, "ada")
        assert place is not None
        send(space, "ada", place.trace_id, op("score.put", dimension="LC", value=2))
        act(space, "retire_traces", queue, [place.trace_id])
        other = take(space, queue, "ada")
        assert other is not None
        assert other.trace_id != place.trace_id
        submit(space, "ada", place.trace_id)
        with read_transaction(space.engine) as connection:
            done = connection.scalars(select(tables.lease.c.outcome).where(tables.lease.c.lease_key == place.lease_key))
            assert done.all() == ["counted"]
            assert progress(connection, queue, "ada").total == 1

    def test_a_trace_that_is_not_in_the_queue_cannot_be_taken_out(self, space: Workspace) -> None:
        queue = queue_of(space, 2)
        with pytest.raises(QueueError, match="is not in the queue"):
            act(space, "retire_traces", queue, [trace_id(5)])
        with pytest.raises(QueueError, match="no trace was chosen"):
            act(space, "retire_traces", queue, [])

    def rows(self, space: Workspace, queue: int) -> list[tuple[str, int, str, int, str, bool]]:
        with read_transaction(space.engine) as connection:
            return assignments(connection, queue, now=now())


class TestPeople:
    def test_a_queue_that_is_assigned_is_those_peoples_alone(self, space: Workspace) -> None:
        queue = queue_of(space, 4)
        act(space, "assign_queue", queue, ["ada"])
        assert take(space, queue, "ben") is None
        with read_transaction(space.engine) as connection:
            assert queues_for(connection, "ben") == []
            assert progress(connection, queue, "ben").total == 0
        submit(space, "ben", trace_id(0))
        assert states(space, queue) == {}
        assert len(met_by(space, queue, "ada")) == 4
        act(space, "assign_queue", queue, [])
        with read_transaction(space.engine) as connection:
            assert len(queues_for(connection, "ben")) == 1
        assert [detail for what, detail in logged(space) if what == "queue assigned"] == [
            {"from": [], "to": ["ada"]}, {"from": ["ada"], "to": []},
        ]  # fmt: skip

    def test_an_assigned_item_keeps_a_place_for_its_person_and_comes_to_them_first(self, space: Workspace) -> None:
        queue = queue_of(space, 4, k=2)
        act(space, "assign_items", queue, [trace_id(2)], ["ada"])
        assert {trace_id(2)} < met_by(space, queue, "ben")
        assert trace_id(2) not in met_by(space, queue, "cyd")  # the place that is left is Ada's
        first = take(space, queue, "ada")
        assert first is not None
        assert first.trace_id == trace_id(2)
        submit(space, "ada", trace_id(2))
        assert states(space, queue, 2) == {"ada": "counted", "ben": "counted"}

    def test_a_place_that_is_kept_no_more_or_skipped_is_anyones(self, space: Workspace) -> None:
        queue = queue_of(space, 1)
        act(space, "assign_items", queue, [trace_id(0)], ["ada"])
        assert take(space, queue, "ben") is None
        act(space, "unassign_items", queue, [trace_id(0)], ["ada"])
        assert take(space, queue, "ben") is not None
        other = queue_of(space, 1)
        act(space, "assign_items", other, [trace_id(0)], ["cyd"])
        assert take(space, other, "ben") is None
        assert take(space, other, "cyd") is not None
        send(space, "cyd", trace_id(0), op("review.put", status="skipped", reason="I wrote this agent"))
        assert take(space, other, "ben") is not None

    def test_an_item_has_never_more_people_assigned_than_it_wants(self, space: Workspace) -> None:
        queue = queue_of(space, 2, k=2)
        submit(space, "ada", trace_id(0))
        with pytest.raises(QueueError, match=r"wants 2 and would have 3 \(ada, ben, cyd\): raise k"):
            act(space, "assign_items", queue, [trace_id(0), trace_id(1)], ["ben", "cyd"])
        assert act(space, "assign_items", queue, [trace_id(0)], ["ben"]) == 1
        assert act(space, "assign_items", queue, [trace_id(0)], ["ben"]) == 0

    def test_single_items_may_go_to_people_from_outside_the_queue(self, space: Workspace) -> None:
        queue = queue_of(space, 4)
        act(space, "assign_queue", queue, ["ada"])
        act(space, "assign_items", queue, [trace_id(1)], ["ben"])
        assert met_by(space, queue, "ben") == {trace_id(1)}
        assert met_by(space, queue, "ada") == {trace_id(0), trace_id(2), trace_id(3)}

    def test_places_are_shared_out_evenly_and_nobody_gets_a_trace_twice(self, space: Workspace) -> None:
        queue = queue_of(space, 8, k=2)
        submit(space, "ada", trace_id(0))
        dealt = act(space, "share_out", queue, ["ada", "ben", "cyd"])
        assert isinstance(dealt, dict)
        loads = [dealt["ada"] + 1, dealt["ben"], dealt["cyd"]]  # 16 places, one of them done by Ada
        assert sorted(loads) == [5, 5, 6]
        for who in ("ada", "ben", "cyd"):
            met_by(space, queue, who)
        with read_transaction(space.engine) as connection:
            (row,) = queues(connection)
        assert row.done == 16
        assert act(space, "share_out", queue, ["ada", "ben", "cyd"]) == {"ada": 0, "ben": 0, "cyd": 0}

    def test_only_active_people_are_assigned_once_people_are_known(self, space: Workspace) -> None:
        queue = queue_of(space, 1)
        with write_transaction(space.engine) as connection:
            add_person(connection, "ada", role="annotator", by="root")
        act(space, "assign_queue", queue, ["ada"])
        with pytest.raises(QueueError, match="'eve' is not an active person"):
            act(space, "assign_queue", queue, ["ada", "eve"])

    def test_open_places_of_a_person_go_to_others_evenly_and_what_was_done_stays(self, space: Workspace) -> None:
        queue = queue_of(space, 6)
        act(space, "assign_items", queue, [trace_id(number) for number in range(6)], ["ada"])
        first = take(space, queue, "ada")
        assert first is not None
        submit(space, "ada", first.trace_id)
        drafted = take(space, queue, "ada")
        assert drafted is not None
        send(space, "ada", drafted.trace_id, op("score.put", dimension="LC", value=1))
        given = act(space, "reassign", queue, "ada", ["ben", "cyd", "ada"])
        assert isinstance(given, dict)
        assert sorted(given.values()) == [2, 3]
        assert take(space, queue, "ada") is None
        heirs = {who: met_by(space, queue, who) for who in ("ben", "cyd")}
        assert (len(heirs["ben"]), len(heirs["cyd"])) == (given["ben"], given["cyd"])
        assert heirs["ben"] | heirs["cyd"] == {trace_id(number) for number in range(6)} - {first.trace_id}
        with read_transaction(space.engine) as connection:
            (row,) = queues(connection)
            kept = connection.scalars(select(tables.score_label.c.annotator)).all()
        assert (row.done, kept.count("ada")) == (6, 8)

    def test_reassigning_refuses_what_nobody_could_label_blind_and_changes_nothing(self, space: Workspace) -> None:
        queue = queue_of(space, 1, k=2)
        act(space, "assign_items", queue, [trace_id(0)], ["ada", "ben"])
        with pytest.raises(QueueError, match="none of ben can take trace"):
            act(space, "reassign", queue, "ada", ["ben"])
        with pytest.raises(QueueError, match="cyd has no open place"):
            act(space, "reassign", queue, "cyd", ["ada"])
        assert {place.annotator for who in ("ada", "ben") if (place := take(space, queue, who))} == {"ada", "ben"}
