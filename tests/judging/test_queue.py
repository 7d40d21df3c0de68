"""Queues as people meet them: who gets what, who counts, what expires, what nobody sees twice by accident."""

import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.judging.team import HOUR, T0, many_traces, op, queue_of, send, submit, trace_id

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.queues.places import (
    Assigned,
    Progress,
    active_times,
    assignments,
    left_out,
    neighbours,
    next_item,
    occasion_of,
    place_by_key,
    place_of,
    progress,
)
from tracejury.judging.queues.queue_changes import (
    add_traces,
    assign_items,
    close_queue,
    reopen_queue,
    retire_traces,
    share_out,
)
from tracejury.judging.queues.queue_store import (
    FIRST,
    PRACTICE,
    REPEAT,
    QueueError,
    QueueSpec,
    TraceFilter,
    draw_traces,
    find_traces,
    judge_spread,
    live_blind,
    make_queue,
    queues,
)
from tracejury.judging.queues.strategies import predicted_errors, recorded_chances
from tracejury.judging.records import Call, Verdict
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace, tables


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return many_traces(tmp_path / "home", 12)


def take(space: Workspace, queue: int, who: str = "ada", now: int | None = None) -> Assigned:
    place = next_item(space.engine, queue, who, now=time.time_ns() // 1000 if now is None else now)
    assert place is not None
    return place


def finish(space: Workspace, queue: int, who: str = "ada") -> list[Assigned]:
    """Label to the end of the queue."""
    met = []
    while (place := next_item(space.engine, queue, who, now=time.time_ns() // 1000)) is not None:
        met.append(place)
        submit(space, who, place.trace_id, occasion=place.occasion)
        assert len(met) < 100
    return met


def verdict(number: int, score: int, model: str, judge: str = "TC") -> Verdict:
    return Verdict(
        rubric=judge, trace_id=trace_id(number), state="scored", score=score, criteria="", rationale="", findings=(),
        call=Call(model=model),
    )  # fmt: skip


def outcomes(space: Workspace, queue: int) -> list[tuple[str, str, str]]:
    with read_transaction(space.engine) as connection:
        rows = assignments(connection, queue, now=time.time_ns() // 1000)
    return sorted((trace, who, state) for trace, _, who, _, state, _ in rows)


class TestOneAfterAnother:
    def test_a_person_alone_meets_every_trace_once_in_an_order_of_their_own(self, space: Workspace) -> None:
        queue = queue_of(space, 12)
        met = [place.trace_id for place in finish(space, queue)]
        assert sorted(met) == [trace_id(number) for number in range(12)]
        assert met != sorted(met)
        with read_transaction(space.engine) as connection:
            assert progress(connection, queue, "ada") == Progress(done=12, total=12, team=12, team_total=12)

    def test_active_times_are_those_of_the_newest_submission_of_each_timed_trace(self, space: Workspace) -> None:
        queue = queue_of(space, 12)
        for active_ms in (90_000, None, 30_000):
            place = take(space, queue)
            submit(space, "ada", place.trace_id)
            review = op("review.put", status="submitted", no_error=True, reason="", active_ms=active_ms)
            send(space, "ada", place.trace_id, review)
        with read_transaction(space.engine) as connection:
            assert active_times(connection, queue, "ada") == [30_000, 90_000]
            assert active_times(connection, queue, "ben") == []

    def test_asking_again_gives_the_same_place_until_it_is_submitted(self, space: Workspace) -> None:
        queue = queue_of(space, 12)
        first = take(space, queue)
        assert take(space, queue) == first
        submit(space, "ada", first.trace_id)
        assert take(space, queue).trace_id != first.trace_id

    def test_two_people_never_hold_an_item_that_wants_one(self, space: Workspace) -> None:
        queue = queue_of(space, 12)
        held_by = [take(space, queue, f"p{number}").trace_id for number in range(12)]
        assert len(set(held_by)) == 12
        assert next_item(space.engine, queue, "p12", now=time.time_ns() // 1000) is None

    def test_overlap_items_are_handed_to_k_people_and_no_more(self, space: Workspace) -> None:
        queue = queue_of(space, 12, k=3, overlap_share=0.5)
        for who in ("ada", "ben", "cyd", "dan"):
            finish(space, queue, who)
        counted = [trace for trace, _, state in outcomes(space, queue) if state == "counted"]
        assert sorted(counted.count(trace_id(number)) for number in range(12)) == [1] * 6 + [3] * 6
        with read_transaction(space.engine) as connection:
            assert progress(connection, queue, "dan").team == progress(connection, queue, "dan").team_total == 24
            (row,) = queues(connection)
            assert (row.items, row.places, row.done) == (12, 24, 24)

    def test_a_skipped_item_goes_to_another_person_and_not_back(self, space: Workspace) -> None:
        queue = queue_of(space, 1)
        place = take(space, queue)
        send(space, "ada", place.trace_id, op("review.put", status="skipped", reason="I know this agent's author"))
        assert next_item(space.engine, queue, "ada", now=time.time_ns() // 1000) is None
        assert take(space, queue, "ben").trace_id == place.trace_id

    def test_previous_and_next_walk_through_done_items(self, space: Workspace) -> None:
        queue = queue_of(space, 12)
        first = take(space, queue)
        submit(space, "ada", first.trace_id)
        second = take(space, queue)
        with read_transaction(space.engine) as connection:
            assert neighbours(connection, first).previous is None
            assert neighbours(connection, first).next == second.lease_key
            assert neighbours(connection, second).previous == first.lease_key
            assert neighbours(connection, second).next is None
            assert place_by_key(connection, first.lease_key, "ada") is not None
            assert place_by_key(connection, first.lease_key, "ben") is None

    def test_what_was_submitted_before_the_queue_counts(self, space: Workspace) -> None:
        submit(space, "ada", trace_id(3))
        queue = queue_of(space, 4, k=2)
        met = [place.trace_id for place in finish(space, queue)]
        assert sorted(met) == [trace_id(number) for number in (0, 1, 2)]
        assert (trace_id(3), "ada", "counted") in outcomes(space, queue)

    def test_the_review_names_the_item_it_was_made_for(self, space: Workspace) -> None:
        queue = queue_of(space, 2)
        place = take(space, queue)
        submit(space, "ada", place.trace_id)
        with read_transaction(space.engine) as connection:
            assert connection.scalars(select(tables.review.c.item_key)).all() == [place.item_key]


class TestLeases:
    def test_an_expired_item_is_handed_to_another_and_the_late_submit_is_kept_and_flagged(
        self, space: Workspace
    ) -> None:
        queue = queue_of(space, 1, lease_s=3600)
        past = time.time_ns() // 1000 - 2 * HOUR
        place = take(space, queue, "ada", now=past)
        assert next_item(space.engine, queue, "ben", now=past) is None
        assert take(space, queue, "ben").trace_id == place.trace_id
        submit(space, "ben", place.trace_id)
        submit(space, "ada", place.trace_id)
        with read_transaction(space.engine) as connection:
            rows = assignments(connection, queue, now=T0)
        assert sorted((who, state, late) for _, _, who, _, state, late in rows) == [
            ("ada", "extra", True),
            ("ben", "counted", False),
        ]

    def test_a_late_submit_counts_where_nobody_else_came(self, space: Workspace) -> None:
        queue = queue_of(space, 1, lease_s=3600)
        place = take(space, queue, "ada", now=time.time_ns() // 1000 - 2 * HOUR)
        submit(space, "ada", place.trace_id)
        with read_transaction(space.engine) as connection:
            assert assignments(connection, queue, now=T0) == [(place.trace_id, 1, "ada", FIRST, "counted", True)]

    def test_who_comes_back_after_the_lease_goes_on_with_what_they_began(self, space: Workspace) -> None:
        queue = queue_of(space, 12, lease_s=3600)
        now = time.time_ns() // 1000
        first = take(space, queue, "ada", now=now - 2 * HOUR)
        again = take(space, queue, "ada", now=now)
        assert again.trace_id == first.trace_id
        assert again.expires_at == now + HOUR

    def test_whoever_works_keeps_the_lease(self, space: Workspace) -> None:
        queue = queue_of(space, 1, lease_s=3600)
        place = take(space, queue, now=time.time_ns() // 1000 - HOUR + 60_000_000)
        send(space, "ada", place.trace_id, op("score.put", dimension="LC", value=1))
        with read_transaction(space.engine) as connection:
            lease = place_by_key(connection, place.lease_key, "ada")
        assert lease is not None
        assert lease.expires_at > place.expires_at + HOUR // 2

    def test_reopening_frees_the_count_and_holds_the_place(self, space: Workspace) -> None:
        queue = queue_of(space, 1)
        place = take(space, queue)
        submit(space, "ada", place.trace_id)
        send(space, "ada", place.trace_id, op("review.put", status="open"))
        assert outcomes(space, queue) == [(place.trace_id, "ada", "at work")]
        assert next_item(space.engine, queue, "ben", now=time.time_ns() // 1000) is None
        assert take(space, queue).lease_key == place.lease_key
        submit(space, "ada", place.trace_id)
        assert outcomes(space, queue) == [(place.trace_id, "ada", "counted")]


@pytest.mark.parametrize(
    ("rounds", "has_leases"),
    [
        (10, False),
        (10, True),
        pytest.param(100, False, marks=pytest.mark.soak),
        pytest.param(100, True, marks=pytest.mark.soak),
    ],
)
def test_three_at_once_for_two_places_give_two_counted_and_one_extra_each_time(
    tmp_path: Path, rounds: int, has_leases: bool
) -> None:
    """People without a place, and people whose leases ran out; 200 items in the long form."""
    space = many_traces(tmp_path / "home", rounds)
    queue = queue_of(space, rounds, k=2)
    people = ("ada", "ben", "cyd")
    if has_leases:
        with write_transaction(space.engine) as connection:
            items = connection.scalars(select(tables.queue_item.c.item_key)).all()
            connection.execute(
                tables.lease.insert(),
                [
                    {"item_key": item, "annotator": who, "occasion": 0, "taken_at": 1, "expires_at": 2, "late": False}
                    for item in items
                    for who in people
                ],
            )
    barrier = threading.Barrier(3)
    failures: list[BaseException] = []

    def work(who: str) -> None:
        try:
            for number in range(rounds):
                barrier.wait(60)
                submit(space, who, trace_id(number), scores={})
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(who,)) for who in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    by_trace: dict[str, list[str]] = {}
    for trace, _, state in outcomes(space, queue):
        by_trace.setdefault(trace, []).append(state)
    assert len(by_trace) == rounds
    assert all(sorted(states) == ["counted", "counted", "extra"] for states in by_trace.values())
    with read_transaction(space.engine) as connection:  # extra is kept like the others
        assert connection.scalar(select(func.count()).select_from(tables.review)) == 3 * rounds


def test_many_asking_at_once_never_share_an_item(space: Workspace) -> None:
    queue = queue_of(space, 12)
    barrier, places = threading.Barrier(8), []

    def ask(who: str) -> None:
        barrier.wait(120)
        places.append(take(space, queue, who).trace_id)

    threads = [threading.Thread(target=ask, args=(f"p{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(places)) == len(places) == 8


class TestHiddenRepeats:
    def test_a_share_comes_again_later_with_empty_hands(self, space: Workspace) -> None:
        queue = queue_of(space, 12, repeat_share=0.25)
        met = finish(space, queue)
        again = [place for place in met if place.occasion == REPEAT]
        assert len(met) == 15  # 12 and a quarter of 12
        assert len({place.trace_id for place in again}) == 3
        first_at = {place.trace_id: number for number, place in enumerate(met) if place.occasion == FIRST}
        for number, place in enumerate(met):
            if place.occasion == REPEAT:
                assert number - first_at[place.trace_id] > 1

    def test_repeats_take_no_place_from_others(self, space: Workspace) -> None:
        queue = queue_of(space, 12, k=2, repeat_share=0.5)
        for who in ("ada", "ben"):
            finish(space, queue, who)
        firsts = [state for _, who, state in outcomes(space, queue)]
        assert set(firsts) == {"counted"}
        with read_transaction(space.engine) as connection:
            done = progress(connection, queue, "ben")
        assert (done.done, done.total, done.team, done.team_total) == (18, 18, 24, 24)

    def test_the_counter_goes_up_with_a_repeat_as_with_any_item_and_the_total_stays(self, space: Workspace) -> None:
        """Or the person would know which one it was."""
        queue = queue_of(space, 12, repeat_share=0.25)
        seen = []
        while (place := next_item(space.engine, queue, "ada", now=time.time_ns() // 1000)) is not None:
            submit(space, "ada", place.trace_id, occasion=place.occasion)
            with read_transaction(space.engine) as connection:
                done = progress(connection, queue, "ada")
            seen.append((done.done, done.total))
        assert seen == [(number, 15) for number in range(1, 16)]

    def test_while_a_repeat_is_open_its_first_time_cannot_be_walked_to(self, space: Workspace) -> None:
        queue = queue_of(space, 2, repeat_share=1)
        met = []
        while (place := take(space, queue)).occasion == FIRST:
            met.append(place)
            submit(space, "ada", place.trace_id)
        before = next(one for one in met if one.trace_id == place.trace_id)
        with read_transaction(space.engine) as connection:
            assert occasion_of(connection, "ada", place.trace_id) == REPEAT
            assert occasion_of(connection, "ben", place.trace_id) == FIRST
            assert place_of(connection, queue, "ada", place.trace_id) == place  # by an address of the trace
            assert place_of(connection, queue, "ben", place.trace_id) is None
            others = [one for one in met if one != before]
            assert neighbours(connection, place).previous in {one.lease_key for one in others}
            assert neighbours(connection, before).previous is None
        submit(space, "ada", place.trace_id, occasion=REPEAT)
        with read_transaction(space.engine) as connection:
            assert occasion_of(connection, "ada", place.trace_id) == FIRST

    def test_a_trace_whose_judges_were_revealed_is_not_repeated(self, space: Workspace) -> None:
        queue = queue_of(space, 2, repeat_share=1)
        for _ in range(2):
            place = take(space, queue)
            submit(space, "ada", place.trace_id)
            send(space, "ada", place.trace_id, op("reveal"))
        assert next_item(space.engine, queue, "ada", now=time.time_ns() // 1000) is None


class TestPractice:
    def test_everyone_does_every_practice_item_on_an_occasion_of_its_own(self, space: Workspace) -> None:
        queue = queue_of(space, 3, practice=True)
        submit(space, "ada", trace_id(0))  # work in earnest does not count as practice
        for who in ("ada", "ben"):
            met = finish(space, queue, who)
            assert sorted(place.trace_id for place in met) == [trace_id(number) for number in range(3)]
            assert {place.occasion for place in met} == {PRACTICE}
        with read_transaction(space.engine) as connection:
            assert progress(connection, queue, "ben").done == progress(connection, queue, "ben").total == 3

    def test_practice_does_not_count_in_a_queue_in_earnest(self, space: Workspace) -> None:
        practice, queue = queue_of(space, 1, practice=True), queue_of(space, 1, blind=False)
        finish(space, practice)
        assert take(space, queue).occasion == FIRST


class TestMakingQueues:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"name": " "}, "needs a name"),
            ({"k": 0}, "at least one person"),
            ({"overlap_share": 1.5}, "between 0 and 1"),
            ({"repeat_share": -0.1}, "between 0 and 1"),
            ({"lease_s": 5}, "too short"),
        ],
    )
    def test_impossible_queues_are_refused(self, changes: dict[str, object], message: str) -> None:
        with pytest.raises(QueueError, match=message):
            QueueSpec(**({"name": "q", "author": "root"} | changes))  # type: ignore[arg-type]

    def test_empty_unknown_and_taken_are_refused_with_a_reason(self, space: Workspace) -> None:
        queue_of(space, 1, name="one")
        for name, ids, message in (("two", [], "no trace fits"), ("two", ["f" * 32], "not in this workspace"),
                                   ("one", [trace_id(0)], "exists")):  # fmt: skip
            with write_transaction(space.engine) as connection, pytest.raises(QueueError, match=message):
                make_queue(connection, QueueSpec(name=name, author="root"), ids, now=T0)

    def test_making_a_queue_is_in_the_audit_log(self, space: Workspace) -> None:
        queue_of(space, 3, name="one")
        with read_transaction(space.engine) as connection:
            row = connection.execute(select(tables.audit)).one()
        assert (row.who, row.what, row.subject, row.detail) == ("root", "queue made", "one", '{"items":3}')

    def test_filters_and_samples(self, space: Workspace) -> None:
        submit(space, "ada", trace_id(0))
        with read_transaction(space.engine) as connection:
            assert len(find_traces(connection, TraceFilter())) == 12
            assert find_traces(connection, TraceFilter(trace_ids=(trace_id(5),))) == [trace_id(5)]
            assert trace_id(0) not in find_traces(connection, TraceFilter(untouched=True))
            assert find_traces(connection, TraceFilter(min_spans=3)) == []
            assert find_traces(connection, TraceFilter(models=("none",))) == []
            assert find_traces(connection, TraceFilter(search="100% sure")) == []
            assert len(find_traces(connection, TraceFilter(search="RU"))) == 12  # of the name "run"
            assert len(find_traces(connection, TraceFilter(sampling="random", count=5), seed=2)) == 5
            assert len(find_traces(connection, TraceFilter(sampling="stratified", count=5), seed=2)) == 5
            assert len(find_traces(connection, TraceFilter(sampling="disputed", count=5))) == 5

    def test_where_judges_disagree_most_is_sampled_first(self, space: Workspace) -> None:
        for model, scores in (("m1", (3, 2, 1)), ("m2", (0, 2, 2))):
            verdicts = [verdict(number, score, model) for number, score in enumerate(scores)]
            import_outcomes(space.engine, [*verdicts, verdict(7, 3, model, judge="LC")], model=model, author="root")
        with read_transaction(space.engine) as connection:
            assert judge_spread(connection) == {trace_id(0): 3, trace_id(1): 0, trace_id(2): 1, trace_id(7): 0}
            most = draw_traces(connection, TraceFilter(sampling="disputed", count=2))
            assert len(most) == 2
            drawn = [find_traces(connection, TraceFilter(sampling="disputed", count=2), seed=n) for n in range(60)]
        often = Counter(one for each in drawn for one in each)
        assert often[trace_id(0)] == 60  # its share of the spreads is above 1
        assert often[trace_id(2)] > often[trace_id(1)]

    def test_the_chance_of_each_trace_is_stored_with_its_item(self, space: Workspace) -> None:
        def made(name: str, chosen_by: TraceFilter) -> dict[str, float | None] | None:
            with write_transaction(space.engine) as connection:
                chances = draw_traces(connection, chosen_by, seed=3)
                make_queue(connection, QueueSpec(name=name, author="root"), [*chances], now=T0, chances=chances)
                return recorded_chances(connection)

        with read_transaction(space.engine) as connection:
            assert recorded_chances(connection) is None
            by_name = draw_traces(connection, TraceFilter(trace_ids=(trace_id(1),)))
            assert set(by_name.values()) == {None}  # named, not drawn
            assert set(draw_traces(connection, TraceFilter(count=3)).values()) == {None}  # the first three
            assert set(draw_traces(connection, TraceFilter()).values()) == {1.0}
        drawn = made("random", TraceFilter(sampling="random", count=3))
        assert drawn is not None
        assert set(drawn.values()) == {3 / 12}
        submit(space, "ada", next(iter(drawn)))
        with read_transaction(space.engine) as connection:
            later = draw_traces(connection, TraceFilter(untouched=True, sampling="random", count=3))
        assert set(later.values()) == {None}  # depends on the draw before
        twice = made("again", TraceFilter(sampling="coverage", count=3))
        assert set((twice or {}).values()) == {None}  # nobody knows the chance to be in either

    def test_a_trace_chosen_by_hand_has_no_known_chance_even_if_another_queue_takes_all(self, space: Workspace) -> None:
        by_hand = TraceFilter(trace_ids=(trace_id(5), trace_id(2)), sampling="hand")
        with write_transaction(space.engine) as connection:
            for name, chosen_by in (("hand", by_hand), ("all", TraceFilter())):
                chances = draw_traces(connection, chosen_by)
                make_queue(connection, QueueSpec(name=name, author="root"), [*chances], now=T0, chances=chances)
            assert list(draw_traces(connection, by_hand)) == [trace_id(5), trace_id(2)]
            known = recorded_chances(connection) or {}
            hand, every = queues(connection)
        assert {name for name, chance in known.items() if chance is None} == {trace_id(5), trace_id(2)}
        assert (hand.unknown, hand.least_chance) == (2, None)
        assert (every.unknown, every.least_chance, every.most_chance) == (0, 1.0, 1.0)

    def test_more_errors_are_expected_where_the_checks_and_people_found_more(self, space: Workspace) -> None:
        with read_transaction(space.engine) as connection:
            assert set(predicted_errors(connection, [trace_id(0), trace_id(1)]).values()) == {0.0}
            assert len(find_traces(connection, TraceFilter(sampling="predicted", count=4))) == 4
            assert len(find_traces(connection, TraceFilter(sampling="coverage", count=4))) == 4


class TestWhatPracticeAndOthersShowed:
    """Nobody labels blind what practice showed them; what they saw otherwise comes last."""

    def practised(self, space: Workspace, who: str = "ada") -> None:
        assert len(finish(space, queue_of(space, 2, practice=True), who)) == 2

    def test_practised_traces_are_left_out_of_ones_share_and_of_the_count(self, space: Workspace) -> None:
        self.practised(space)
        live = queue_of(space, 4)
        with read_transaction(space.engine) as connection:
            assert left_out(connection, live, "ada") == {trace_id(0), trace_id(1)}
            assert left_out(connection, live, "ben") == set()
            assert progress(connection, live, "ada").total == 2
        assert {place.trace_id for place in finish(space, live)} == {trace_id(2), trace_id(3)}
        assert {place.trace_id for place in finish(space, live, "ben")} == {trace_id(0), trace_id(1)}

    def test_a_practised_trace_is_not_assigned_and_not_dealt(self, space: Workspace) -> None:
        self.practised(space)
        live = queue_of(space, 4, k=2)
        with write_transaction(space.engine) as connection:
            with pytest.raises(QueueError, match="ada practised trace"):
                assign_items(connection, live, [trace_id(1)], ["ada"], by="root", now=T0)
            assert share_out(connection, live, ["ada", "ben"], by="root", now=T0) == {"ada": 2, "ben": 4}

    def test_a_practice_queue_takes_no_trace_of_an_open_blind_queue(self, space: Workspace) -> None:
        live = queue_of(space, 3, name="pilot")
        with pytest.raises(QueueError, match="in the live blind queue 'pilot'"):
            queue_of(space, 4, practice=True)
        with write_transaction(space.engine) as connection:
            assert live_blind(connection) == {trace_id(number): "pilot" for number in range(3)}
            close_queue(connection, live, by="root", now=T0)
        drill = queue_of(space, 2, practice=True)
        queue_of(space, 5, name="next", blind=False)
        with write_transaction(space.engine) as connection:
            assert add_traces(connection, drill, [trace_id(2)], by="root", now=T0) == 1
            reopen_queue(connection, live, by="root", now=T0)
            retire_traces(connection, drill, [trace_id(2)], by="root", now=T0)
            with pytest.raises(QueueError, match="practise other traces"):
                add_traces(connection, drill, [trace_id(2)], by="root", now=T0)

    def test_traces_seen_otherwise_come_last(self, space: Workspace) -> None:
        seen = {trace_id(number) for number in (0, 3, 5)}
        note_seen(space.engine, annotator="ada", trace_ids=seen, what="Compare")
        met = [place.trace_id for place in finish(space, queue_of(space, 6))]
        assert len(met) == 6
        assert set(met[-3:]) == seen
