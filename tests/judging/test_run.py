"""The grid: every cell in one state, none paid twice, none lost; pace, budget, cache, pause, juries."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event, select
from tests.fake_provider import verdict
from tests.judging.grid import AGENTS, PRICES, RUBRICS, Counting, Grid, answer, plan_more, planned

from tracejury.ingest.store import read_transaction
from tracejury.judging import wiring as work
from tracejury.judging.judges.jury import jury_score
from tracejury.judging.judges.limits import BatchedWriter, Budget, RateLimiter, StopRunError
from tracejury.judging.judges.model import ModelError, ModelReply, ModelRequest
from tracejury.judging.records import Failure
from tracejury.judging.runs.run_store import (
    SqlRunStore,
    judge_version,
    last_run_of,
    next_run,
    want_failed_again,
    wish,
    worker_is_dead,
    worker_name,
)
from tracejury.judging.runs.runner import Cell, Ended, ModelSetup, Progress, RunSpec, RunStatus
from tracejury.judging.runs.verdicts import outcome
from tracejury.judging.store import tables


def judge_of(request: ModelRequest) -> str:
    return "LC" if "(LC)" in str(request.prompt) else "EE"


def test_every_cell_of_the_grid_is_judged_once_and_kept(tmp_path: Path) -> None:
    grid, model = planned(tmp_path, traces=3, repeats=2), Counting()
    summary = grid.run(model)
    assert (summary.status, summary.states) == ("done", {"scored": 12})  # 3 traces x 2 judges x 2 repeats
    assert len(model.requests) == 12
    assert summary.spent_usd == pytest.approx(0.12)
    assert grid.rows("select distinct score, model, prompt_tokens, cost_usd from cell") == [(2, "m", 100, 0.01)]
    assert grid.rows("select count(*) from reply") == [(12,)]


def test_a_second_start_pays_nothing(tmp_path: Path) -> None:
    grid, model = planned(tmp_path), Counting()
    grid.run(model)
    again = grid.run(model)
    assert (again.status, again.judged, len(model.requests)) == ("done", 0, 6)


def test_one_call_goes_ahead_and_the_others_of_its_trace_follow(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=2, repeats=3, concurrency=16)
    first: dict[str, int] = {}
    done: Counter[str] = Counter()
    early = []

    async def script(request: ModelRequest) -> str:
        trace = request.prompt.prefix_hash
        leads = trace not in first
        first.setdefault(trace, 1)
        if not leads and done[trace] == 0:
            early.append(trace)
        await asyncio.sleep(0.05)
        done[trace] += 1
        return verdict(2)

    model = Counting(script=lambda number, request: script(request))
    assert grid.run(model).states == {"scored": 12}
    assert early == []
    assert model.most_in_flight >= 5  # then the five followers of a trace together


def test_no_more_calls_at_a_time_than_wished(tmp_path: Path) -> None:
    grid, model = planned(tmp_path, traces=4, repeats=3, concurrency=3), Counting(delay_s=0.01)
    grid.run(model)
    assert model.most_in_flight == 3


def test_in_the_papers_order_each_judge_has_a_lead_call_of_its_own(tmp_path: Path) -> None:
    grid, model = planned(tmp_path, traces=1, repeats=2, order="paper"), Counting()
    assert grid.run(model).states == {"scored": 4}
    prefixes = Counter(request.prompt.prefix_hash for request in model.requests)
    assert sorted(prefixes.values()) == [2, 2]


def test_transient_errors_are_tried_again_and_lasting_ones_are_not(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",))
    model = Counting(script=lambda n, _: ModelError("transient", "hm") if n < 3 else verdict(1))
    assert grid.run(model).states == {"scored": 1}
    assert grid.rows("select attempts from cell") == [(4,)]
    again = plan_more(grid.engine, tmp_path, rubrics=("EE",))
    lasting = Counting(script=lambda n, _: ModelError("bad_request", "no"))
    assert again.run(lasting).states == {"error": 1}
    assert len(lasting.requests) == 1


def test_attempts_end_and_the_cell_is_an_error_that_says_why(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",), attempts=3)
    model = Counting(script=lambda n, _: ModelError("rate_limit", "slow down"))
    summary = grid.run(model)
    assert (summary.states, len(model.requests)) == ({"error": 1}, 3)
    assert summary.failures[0][1:] == ("error", "rate_limit: slow down")


def test_retry_after_holds_all_calls(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, repeats=4, rubrics=("LC",))
    at: list[float] = []

    def script(number: int, _: ModelRequest) -> str | ModelError:
        at.append(time.monotonic())
        return ModelError("rate_limit", "wait", retry_after_s=0.5) if number == 1 else verdict(2)

    assert grid.run(Counting(script=script)).states == {"scored": 4}
    assert max(at) - at[1] >= 0.5


def test_a_wrong_key_stops_the_run_and_leaves_the_cells_waiting(tmp_path: Path) -> None:
    grid = planned(tmp_path)
    model = Counting(script=lambda n, _: ModelError("auth", "invalid key") if n >= 2 else verdict(2))
    summary = grid.run(model)
    assert summary.status == "paused"
    assert "invalid key" in summary.message
    assert grid.states() == {"scored": 2, "pending": 4}
    assert grid.run(Counting()).states == {"scored": 6}


def test_errors_in_a_row_stop_the_run(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=10, concurrency=1, give_up_after=3)
    summary = grid.run(Counting(script=lambda n, _: ModelError("bad_request", "broken")))
    assert (summary.status, grid.states()) == ("paused", {"error": 3, "pending": 17})
    assert summary.message == "3 errors in a row, the last: bad_request: broken"


def test_a_fault_of_ours_in_one_cell_never_ends_the_run(tmp_path: Path) -> None:
    def script(number: int, request: ModelRequest) -> str:
        if number == 1:
            raise ZeroDivisionError("ours")
        return verdict(2)

    grid = planned(tmp_path)
    summary = grid.run(Counting(script=script))
    assert summary.states == {"scored": 5, "error": 1}
    assert summary.failures[0][2] == "unexpected ZeroDivisionError: ours"


def test_failed_cells_can_be_wanted_again_and_only_they_are_paid(tmp_path: Path) -> None:
    grid = planned(tmp_path)
    model = Counting(script=lambda n, r: "prose" if judge_of(r) == "EE" else verdict(3))
    assert grid.run(model).states == {"scored": 3, "unparsable": 3}
    assert want_failed_again(grid.engine, grid.run_key) == 3
    second = Counting()
    assert grid.run(second).states == {"scored": 6}
    assert {judge_of(request) for request in second.requests} == {"EE"}
    assert len(second.requests) == 3  # the old replies are not replayed
    assert grid.rows("select count(*), sum(void) from reply") == [(12, 6)]  # 3 + 3 x (reply and repair) + 3
    assert want_failed_again(grid.engine, grid.run_key) == 0


def test_the_last_run_of_a_kind_is_found_for_failed_only(tmp_path: Path) -> None:
    grid = planned(tmp_path)
    assert last_run_of(grid.engine, grid.spec) == grid.run_key
    assert last_run_of(grid.engine, RunSpec(rubrics=("LC",), models=("m",))) is None


# the budget -----------------------------------------------------------------------------------------------------


def priced(number: int, request: ModelRequest) -> ModelReply:
    """Costs what PRICES say of the text, counted by letters: 1e-6 a letter."""
    letters = len(request.prompt.judge_model + request.prompt.prefix + request.prompt.suffix)
    return ModelReply(
        text=verdict(2), finish_reason="stop", prompt_tokens=letters, completion_tokens=10, cost_usd=letters * 1e-6
    )


@pytest.mark.parametrize("concurrency", [1, 8])
def test_the_budget_is_never_passed_and_the_rest_waits(tmp_path: Path, concurrency: int) -> None:
    grid, model = planned(tmp_path, traces=10, concurrency=concurrency, budget_usd=0.1), Counting(script=priced)
    summary = grid.run(model)
    assert summary.status == "paused"
    assert "the budget of $0.1000 is reached" in summary.message
    assert 0.05 < summary.spent_usd <= 0.1
    assert grid.states() == {"scored": len(model.requests), "pending": 20 - len(model.requests)}
    more = grid.run(Counting(script=priced), changes={"budget_usd": 1.0})
    assert (more.status, more.states) == ("done", {"scored": 20})


def test_a_repair_that_the_budget_forbids_is_made_later_and_the_first_reply_is_not_paid_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",), budget_usd=0.03)
    unreadable = ModelReply(text="hm", finish_reason="stop", prompt_tokens=1, completion_tokens=1, cost_usd=0.02)
    summary = grid.run(Counting(script=lambda n, _: unreadable))
    assert (summary.status, grid.states()) == ("paused", {"pending": 1})
    second = Counting()
    assert grid.run(second, changes={"budget_usd": 1.0}).states == {"scored": 1}
    assert [len(request.turns) for request in second.requests] == [2]  # only the repair was sent
    assert grid.rows("select cost_usd from cell") == [(0.03,)]


def test_a_budget_without_prices_is_refused() -> None:
    from tests.judging.grid import RUBRICS

    from tracejury.judging.runs.runner import ModelSetup, check_spec

    spec = RunSpec(rubrics=("LC",), models=("m",), budget_usd=1.0)
    with pytest.raises(ValueError, match="a budget needs prices, and none are known for m"):
        check_spec(spec, rubrics=RUBRICS, models={"m": ModelSetup(call=Counting())}, agents={})


@settings(deadline=None)  # how long an event loop takes to start tells nothing here
@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=30), st.floats(0.1, 5.0))
def test_no_order_of_calls_passes_the_budget(costs: list[float], limit: float) -> None:
    async def spend() -> float:
        budget = Budget(limit, 0.0)

        async def one(cost: float) -> None:
            try:
                async with budget.room_for(cost):
                    await asyncio.sleep(0)
                    budget.spent_usd += cost * 0.9
            except StopRunError:
                pass

        await asyncio.gather(*(one(cost) for cost in costs))
        return budget.spent_usd

    assert asyncio.run(spend()) <= limit + 1e-9


# pace -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [{"rpm": 1200}, {"tpm": 4_800_000}])
def test_calls_are_spaced_evenly_under_the_limits(tmp_path: Path, limits: dict[str, int]) -> None:
    """60 s / 1,200 calls, and (4,000 tokens kept for each answer, the prompt counted as none) 60 s / 1,200 calls."""
    grid = planned(tmp_path, traces=2, repeats=2, concurrency=8, **limits)
    at: list[float] = []

    def script(number: int, _: ModelRequest) -> str:
        at.append(time.monotonic())
        return verdict(2)

    runner = grid.runner(Counting(script=script))
    runner.models = {"m": replace(runner.models["m"], prices=None, count=lambda _: 0)}
    started = time.monotonic()
    assert asyncio.run(runner.run()).states == {"scored": 8}
    assert all(moment >= started + place * 0.05 - 0.001 for place, moment in enumerate(at))


def test_two_processes_of_a_run_book_their_moments_in_one_line(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1)
    one, other = (SqlRunStore(grid.engine, grid.run_key, worker=f"elsewhere:{n}:1") for n in range(2))
    waits = [store.book("m", gap_s=60.0) for store in (one, other, one)]
    assert waits == pytest.approx([0, 60, 120], abs=5)
    assert one.book("another model", gap_s=60.0) == 0
    other.hold("m", 600.0)
    assert one.book("m", gap_s=60.0) == pytest.approx(600, abs=5)


def test_the_limit_a_minute_holds_for_two_workers_together(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=6, rpm=600)
    at: list[float] = []

    def script(number: int, _: ModelRequest) -> str:
        at.append(time.monotonic())
        return verdict(2)

    models = [Counting(script=script), Counting(script=script)]

    async def both() -> None:
        runners = [grid.runner(model) for model in models]
        for number, runner in enumerate(runners):
            runner.store.worker = f"elsewhere:{number}:1"  # type: ignore[attr-defined]
        await asyncio.gather(*(runner.run() for runner in runners))

    started = time.monotonic()
    asyncio.run(both())
    assert grid.states() == {"scored": 12}
    assert min(len(model.requests) for model in models) > 0
    assert all(moment >= started + place * 0.1 - 0.001 for place, moment in enumerate(at))  # ten a second together


def test_a_call_that_waits_for_its_moment_is_not_sent_when_the_run_stops(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=8, concurrency=8, rpm=60)

    def script(number: int, _: ModelRequest) -> str:
        asyncio.get_running_loop().call_later(0.3, runner.stop)  # the next moment is a second away
        return verdict(2)

    model = Counting(script=script)
    runner = grid.runner(model)
    asyncio.run(runner.run())
    assert len(model.requests) == 1
    assert grid.states() == {"scored": 1, "pending": 15}


def test_a_provider_that_asks_to_wait_for_hours_stops_the_run() -> None:
    pace = RateLimiter(backoff_s=1)
    with pytest.raises(StopRunError, match="asks to wait 86,400 s"):
        asyncio.run(pace.back_off(0, ModelError("rate_limit", "tomorrow", retry_after_s=86_400)))


# asked, answer unknown ------------------------------------------------------------------------------------------


def outcomes(grid: Grid) -> dict[str, int]:
    rows = grid.rows("select coalesce(outcome, 'under way'), count(*) from request group by 1")
    return {str(outcome): int(str(count)) for outcome, count in rows}


def test_a_request_is_recorded_before_it_goes_out_and_marked_with_its_reply(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",))
    under_way: list[dict[str, int]] = []

    def script(number: int, _: ModelRequest) -> str:
        under_way.append(outcomes(grid))
        return verdict(2)

    assert grid.run(Counting(script=script)).unanswered.requests == 0
    assert under_way == [{"under way": 1}]
    assert outcomes(grid) == {"answered": 1}


def killed_in_flight(grid: Grid) -> None:
    """A worker claims a cell, sends its request and is gone: as a kill leaves the store."""
    gone = worker_name().rpartition(":")[0] + ":0"  # this process id, started at another time
    model = Counting(script=lambda n, r: ModelError("transient", "never read"))
    runner = grid.runner(model, changes={"concurrency": 1})

    class Dies(SqlRunStore):
        def note_failed(self, cell: Cell, request_hash: str, *, is_unknown: bool) -> None:
            raise OSError("killed here")

        def finish(self, ended: Sequence[Ended]) -> Sequence[bool]:
            raise OSError("killed here")

    runner.store = Dies(grid.engine, grid.run_key, worker=gone)
    with pytest.raises(OSError, match="killed here"):
        asyncio.run(runner.run())
    assert outcomes(grid) == {"under way": 1}


def test_what_was_sent_by_a_worker_that_died_is_counted_and_asked_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",), prices={"m": PRICES})
    killed_in_flight(grid)
    before = grid.watch()
    assert (before["unanswered"], before["states"]) == (1, {"running": 1})
    model = Counting()
    summary = grid.run(model)
    assert (summary.states, len(model.requests)) == ({"scored": 1}, 1)
    assert outcomes(grid) == {"unknown": 1, "answered": 1}
    prompt = sum(map(len, (p := model.requests[0].prompt) and (p.judge_model, p.prefix, p.suffix)))
    most = prompt * PRICES.prompt + 4_000 * PRICES.completion  # one token a letter here, 4,000 kept for the answer
    assert (summary.unanswered.requests, summary.unanswered.most_usd) == (1, pytest.approx(most))
    assert grid.watch()["unanswered_usd"] == pytest.approx(most)
    assert summary.spent_usd == pytest.approx(0.01)  # what is known to be paid, beside it


def test_what_was_sent_by_a_worker_that_died_can_be_left_alone_until_wanted_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",))
    killed_in_flight(grid)
    model = Counting()
    summary = grid.run(model, changes={"ask_again": False})
    assert (summary.states, model.requests) == ({"error": 1}, [])
    assert summary.failures[0][2].startswith("unanswered: sent before without a known answer, perhaps paid")
    assert want_failed_again(grid.engine, grid.run_key) == 1
    assert grid.run(model, changes={"ask_again": False}).states == {"scored": 1}
    assert len(model.requests) == 1


def test_a_time_limit_leaves_an_unknown_answer_and_a_refused_call_does_not(tmp_path: Path) -> None:
    errors = [ModelError("timeout", "no answer"), ModelError("rate_limit", "slow down")]
    grid = planned(tmp_path, traces=1, rubrics=("LC",))
    summary = grid.run(Counting(script=lambda n, _: errors[n] if n < 2 else verdict(2)))
    assert summary.states == {"scored": 1}
    assert outcomes(grid) == {"unknown": 1, "failed": 1, "answered": 1}
    left = plan_more(grid.engine, tmp_path, rubrics=("EE",), ask_again=False)
    model = Counting(script=lambda n, _: errors[0])
    assert left.run(model).states == {"error": 1}
    assert len(model.requests) == 1  # not tried again: it may have been paid


def test_without_a_price_what_was_perhaps_paid_is_unknown_and_not_zero(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",))
    runner = grid.runner(Counting(script=lambda n, _: ModelError("timeout", "x") if n == 0 else verdict(2)))
    runner.models = {"m": replace(runner.models["m"], prices=None)}
    summary = asyncio.run(runner.run())
    assert (summary.unanswered.requests, summary.unanswered.most_usd) == (1, None)


def test_what_was_perhaps_paid_counts_against_the_budget(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",), budget_usd=0.05)
    killed_in_flight(grid)
    with grid.engine.begin() as connection:
        connection.exec_driver_sql("update request set most_usd = 0.049")
    summary = grid.run(Counting())
    assert (summary.status, summary.spent_usd) == ("paused", 0)
    assert "$0.0490 perhaps" in summary.message


def test_writes_made_together_fail_together() -> None:
    written: list[list[int]] = []

    async def write(items: Sequence[int]) -> Sequence[int]:
        await asyncio.sleep(0.01)
        written.append(list(items))
        if 2 in items:
            raise OSError("disk full")
        return [10 * item for item in items]

    async def all_of(*numbers: int) -> list[object]:
        together = BatchedWriter[int, int](write)
        first = asyncio.create_task(together(numbers[0]))
        await asyncio.sleep(0.001)  # its write is under way
        return list(await asyncio.gather(first, *(together(n) for n in numbers[1:]), return_exceptions=True))

    ends = asyncio.run(all_of(0, 1, 2, 3))
    assert written == [[0], [1, 2, 3]]  # the last three while the first was written
    assert [type(end) for end in ends] == [int, OSError, OSError, OSError]
    assert asyncio.run(all_of(3, 5, 4)) == [30, 50, 40]  # to each the result of its own


# resume, cache, other workers -----------------------------------------------------------------------------------


def test_a_reply_stored_before_the_cell_was_finished_is_replayed_and_not_paid_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",))

    class Dies(SqlRunStore):
        def finish(self, ended: Sequence[Ended]) -> Sequence[bool]:
            raise OSError("killed here")

    runner = grid.runner(Counting())
    runner.store = Dies(grid.engine, grid.run_key, worker="elsewhere:1:1")
    with pytest.raises(OSError, match="killed here"):
        asyncio.run(runner.run())
    assert grid.rows("select state from cell") == [("replied",)]
    grid.rows("select 1")
    with grid.engine.begin() as connection:
        connection.exec_driver_sql("update cell set claimed_at = 0")  # the lease is over
    second = Counting()
    assert grid.run(second).states == {"scored": 1}
    assert second.requests == []
    assert grid.rows("select cost_usd from cell") == [(0.01,)]  # what it cost, once


def test_reasoning_beside_an_answer_stands_in_its_cell_also_where_the_reply_is_taken_from_an_earlier_run(
    tmp_path: Path,
) -> None:
    thinks = Counting(script=lambda number, request: replace(answer(verdict(2)), reasoning="The plan holds."))
    grid = planned(tmp_path, traces=1, rubrics=("LC",))
    grid.run(thinks)
    again = plan_more(grid.engine, tmp_path, rubrics=("LC",))
    again.run(thinks)
    assert len(thinks.requests) == 1
    with read_transaction(again.engine) as connection:
        cells = connection.scalars(select(tables.cell.c.cell_key)).all()
        outcomes = [outcome(connection, cell) for cell in cells]
    assert len(outcomes) == 2
    assert [one.call.reasoning for one in outcomes if one is not None] == ["The plan holds."] * 2


def test_the_next_cell_is_found_without_sorting_all_that_wait(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=2)
    asked: list[tuple[str, Any]] = []
    event.listen(grid.engine, "before_cursor_execute", lambda _, __, sql, values, *___: asked.append((sql, values)))
    assert {cell.trace_id for cell in SqlRunStore(grid.engine, grid.run_key).claim()} == {f"{1:032x}"}
    ((sql, values),) = [one for one in asked if "LIMIT" in one[0]]
    with read_transaction(grid.engine) as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert not [step for step in plan if "ORDER BY" in step]


def test_a_worker_beside_another_finds_its_next_cell_without_sorting_all_that_wait(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=4)
    assert len(SqlRunStore(grid.engine, grid.run_key, worker="elsewhere:1:1").claim()) == 2
    asked: list[tuple[str, Any]] = []
    event.listen(grid.engine, "before_cursor_execute", lambda _, __, sql, values, *___: asked.append((sql, values)))
    assert {cell.trace_id for cell in SqlRunStore(grid.engine, grid.run_key).claim()} == {f"{2:032x}"}
    reads = [one for one in asked if one[0].startswith("SELECT") and "cell" in one[0]]
    with read_transaction(grid.engine) as connection:
        plans = [
            row[3] for sql, values in reads for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)
        ]
    assert len(reads) >= 4
    assert not [step for step in plans if "ORDER BY" in step or step == "SCAN cell"]


def test_cells_of_a_living_worker_are_left_alone_and_those_of_a_dead_one_taken(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=2)
    living = SqlRunStore(grid.engine, grid.run_key, worker="elsewhere:1:1")
    assert len(living.claim()) == 2
    ours = SqlRunStore(grid.engine, grid.run_key)
    assert [cell.trace_id for cell in ours.claim()] == [f"{2:032x}"] * 2
    assert list(ours.claim()) == []
    gone = worker_name().rpartition(":")[0] + ":0"  # this process id, started at another time
    assert worker_is_dead(gone)
    assert not worker_is_dead(worker_name())
    with grid.engine.begin() as connection:
        connection.exec_driver_sql("update cell set worker = ? where worker = ?", (gone, ours.worker))
    assert len(SqlRunStore(grid.engine, grid.run_key, worker="third:1:1").claim()) == 2


def test_a_worker_that_lost_its_cell_cannot_overwrite_the_outcome(tmp_path: Path) -> None:
    from tracejury.judging.records import Call

    grid = planned(tmp_path, traces=1, rubrics=("LC",))
    slow = SqlRunStore(grid.engine, grid.run_key, worker="slow:1:1")
    (cell,) = slow.claim()
    with grid.engine.begin() as connection:
        connection.exec_driver_sql("update cell set claimed_at = 0")
    assert grid.run(Counting()).states == {"scored": 1}
    late = Failure(rubric="LC", trace_id=cell.trace_id, state="error", reason="late", call=Call(model="m"))
    assert slow.finish([Ended(cell, late)]) == [False]
    assert grid.states() == {"scored": 1}


def test_a_clock_that_jumps_ends_no_lease_of_a_worker_that_is_here(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=2)
    elsewhere = SqlRunStore(grid.engine, grid.run_key, worker="elsewhere:1:1")
    here = SqlRunStore(grid.engine, grid.run_key)
    assert (len(here.claim()), len(elsewhere.claim())) == (2, 2)
    with grid.engine.begin() as connection:
        connection.exec_driver_sql("update cell set claimed_at = 0")  # as after an hour of sleep
    other = SqlRunStore(grid.engine, grid.run_key, worker="third:1:1")
    assert [cell.trace_id for cell in other.claim()] == [f"{2:032x}"] * 2  # of another host only the clock tells
    assert list(other.claim()) == []


@pytest.mark.parametrize("judges", [("LC",), ("LC", "EE")])
def test_what_a_worker_could_not_give_back_it_takes_up_again(judges: tuple[str, ...], tmp_path: Path) -> None:
    class Full(SqlRunStore):
        def finish(self, ended: Sequence[Ended]) -> Sequence[bool]:
            raise OSError("no space left")

    grid = planned(tmp_path, traces=1, rubrics=judges)
    runner = grid.runner(Counting())
    runner.store = Full(grid.engine, grid.run_key)
    with pytest.raises(OSError, match="no space left"):
        asyncio.run(runner.run())
    SqlRunStore(grid.engine, grid.run_key).pause("no space left")  # as the worker does then
    wish(grid.engine, grid.run_key, "queued")
    assert next_run(grid.engine) == grid.run_key
    again = Counting()
    ended = asyncio.run(asyncio.wait_for(grid.runner(again).run(), 30))
    assert ended.states == {"scored": len(judges)}
    assert len(again.requests) <= 1  # what was answered is replayed


def test_a_run_whose_worker_died_before_saying_that_it_is_done_is_taken_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1)
    grid.run(Counting())
    assert next_run(grid.engine) is None
    with grid.engine.begin() as connection:
        connection.exec_driver_sql("update run set status = 'running', worker = 'elsewhere:1:1'")
    assert next_run(grid.engine) is None  # it has just shown itself
    with grid.engine.begin() as connection:
        connection.exec_driver_sql("update run set heartbeat_at = 0")
    assert next_run(grid.engine) == grid.run_key
    assert grid.run(Counting()).status == "done"
    assert next_run(grid.engine) is None


def test_a_paused_run_can_be_cancelled_and_taken_up_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=2)
    stopped = Counting(script=lambda n, _: ModelError("auth", "expired") if n else verdict(2))
    assert grid.run(stopped).status == "paused"
    wish(grid.engine, grid.run_key, "cancelled")
    assert (grid.watch()["status"], next_run(grid.engine)) == ("cancelled", None)
    wish(grid.engine, grid.run_key, "paused")  # too late
    assert grid.watch()["status"] == "cancelled"
    wish(grid.engine, grid.run_key, "queued")
    again = Counting()
    assert grid.run(again).states == {"scored": 4}
    assert len(again.requests) == 3  # what was paid before is not asked for again


def test_a_worker_that_comes_late_takes_no_run_back_from_its_end(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",))
    late, quick = (SqlRunStore(grid.engine, grid.run_key, worker=f"elsewhere:{n}:1") for n in (1, 2))
    runner = grid.runner(Counting())
    runner.store = quick
    assert late.unfinished() == 1  # so it is about to say "running", or "paused" for a fault of its own
    assert asyncio.run(runner.run()).status == "done"
    assert late.begin(resumes=True) == "done"
    assert (late.end("running"), late.end("paused", "out of money")) == ("done", "done")
    late.pause("cannot be worked on")
    assert (grid.watch()["status"], grid.watch()["message"]) == ("done", "")


def test_who_judges_the_last_cell_decides_and_not_who_speaks_last(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1)
    first, second = (SqlRunStore(grid.engine, grid.run_key, worker=f"elsewhere:{n}:1") for n in (1, 2))
    assert len(first.claim()) == 2
    assert second.end("running") == "running"
    assert second.end("paused", "the budget is reached") == "paused"
    assert first.begin(resumes=False) == "paused"  # a person's or a worker's: it stays so
    assert first.begin(resumes=True) == "running"
    want = grid.rows("select count(*) from cell where state = 'running'")
    assert want == [(2,)]


def test_a_run_cancelled_before_its_worker_was_ready_stays_cancelled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    grid, model = planned(tmp_path, traces=1), Counting()

    def setups(spec: RunSpec) -> dict[str, ModelSetup]:
        wish(grid.engine, grid.run_key, "cancelled")  # while litellm is imported
        return {"m": ModelSetup(call=model, prices=PRICES)}

    monkeypatch.setattr(work, "model_setups", setups)
    assert work.worker_loop(grid.engine, home=tmp_path, once=True) == 1
    assert (grid.watch()["status"], grid.states(), model.requests) == ("cancelled", {"pending": 2}, [])
    assert grid.run(model).status == "done"  # who starts it by name means it


def test_a_pause_taken_back_before_the_worker_heeded_it_is_no_pause(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1)
    wish(grid.engine, grid.run_key, "paused")
    runner = grid.runner(Counting(), resumes=False)
    wish_again = runner.store.end

    def end(status: RunStatus, message: str = "", *, is_wish: bool = False) -> RunStatus:
        wish(grid.engine, grid.run_key, "queued")
        return wish_again(status, message, is_wish=is_wish)

    runner.store.end = end  # type: ignore[method-assign]
    assert asyncio.run(runner.run()).status == "queued"
    assert next_run(grid.engine) == grid.run_key


def test_failed_cells_wanted_while_a_worker_ends_are_not_called_done(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",), attempts=1)
    grid.run(Counting(script=lambda number, request: ModelError("bad_request", "odd")))
    ending = SqlRunStore(grid.engine, grid.run_key)
    assert want_failed_again(grid.engine, grid.run_key) == 1
    assert ending.end("running") == "running"
    assert (grid.watch()["status"], next_run(grid.engine)) == ("queued", grid.run_key)


def test_two_workers_share_a_run_without_paying_twice(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=6, repeats=2)
    models = [Counting(delay_s=0.005), Counting(delay_s=0.005)]

    async def both() -> None:
        runners = [grid.runner(model) for model in models]
        for number, runner in enumerate(runners):
            runner.store.worker = f"elsewhere:{number}:1"  # type: ignore[attr-defined]
        await asyncio.gather(*(runner.run() for runner in runners))

    asyncio.run(both())
    assert grid.states() == {"scored": 24}
    assert sum(len(model.requests) for model in models) == 24
    assert min(len(model.requests) for model in models) > 0


def test_the_same_request_is_answered_from_an_earlier_run(tmp_path: Path) -> None:
    grid = planned(tmp_path, repeats=2)
    grid.run(Counting())
    again, model = plan_more(grid.engine, tmp_path, repeats=3), Counting()
    summary = again.run(model)
    assert summary.states == {"scored": 18}
    assert len(model.requests) == 6  # only the third repeat is new
    assert summary.spent_usd == pytest.approx(0.06)
    note = again.rows(
        f"select count(*) from cell where run_key = {again.run_key} and notes like '%response_cache%' and cost_usd = 0"
    )
    assert note == [(12,)]


def test_other_parameters_are_another_request_and_the_cache_can_be_left_out(tmp_path: Path) -> None:
    grid = planned(tmp_path)
    grid.run(Counting())
    for spec in ({"parameters": {"temperature": 0.5}}, {"use_cache": False}):
        model = Counting()
        plan_more(grid.engine, tmp_path, **spec).run(model)
        assert len(model.requests) == 6


def test_unreadable_replies_are_not_taken_from_the_cache(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1)
    grid.run(Counting(script=lambda n, _: "prose"))
    model = Counting()
    assert plan_more(grid.engine, tmp_path).run(model).states == {"scored": 2}
    assert len(model.requests) == 2


def test_pausing_lets_calls_under_way_finish_and_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracejury.judging.runs.runner.HEARTBEAT_S", 0.1)
    grid = planned(tmp_path, traces=8, concurrency=2)

    def script(number: int, _: ModelRequest) -> str:
        if number == 3:
            wish(grid.engine, grid.run_key, "paused")
        return verdict(2)

    summary = grid.run(Counting(script=script, delay_s=0.2))
    assert (summary.status, summary.message) == ("paused", "paused by a person")
    states = grid.states()
    assert set(states) == {"scored", "pending"}
    assert next_run(grid.engine) is None
    wish(grid.engine, grid.run_key, "queued")
    assert next_run(grid.engine) == grid.run_key
    assert grid.run(Counting()).states == {"scored": 16}


def test_a_stop_from_outside_loses_nothing(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=8, concurrency=2)

    def script(number: int, _: ModelRequest) -> str:
        if number == 2:
            runner.stop()
        return verdict(2)

    model = Counting(script=script, delay_s=0.02)
    runner = grid.runner(model)
    asyncio.run(runner.run())
    assert grid.states()["scored"] == len(model.requests) >= 3
    assert set(grid.states()) == {"scored", "pending"}


def test_progress_counts_to_the_end(tmp_path: Path) -> None:
    seen: list[Progress] = []
    planned(tmp_path).run(Counting(), progress=seen.append)
    assert [step.finished for step in seen] == [1, 2, 3, 4, 5, 6]
    assert {step.total for step in seen} == {6}
    assert seen[-1].states["scored"] == 6
    assert seen[-1].spent_usd == pytest.approx(0.06)
    assert seen[-1].rate is not None


def test_a_run_can_be_watched(tmp_path: Path) -> None:
    grid = planned(tmp_path)
    grid.run(Counting(script=lambda n, r: verdict(0 if judge_of(r) == "LC" else 3)))
    seen = grid.watch()
    assert (seen["status"], seen["states"], seen["replies"]) == ("done", {"scored": 6}, 6)
    assert seen["scores"] == {"LC": {"0": 3}, "EE": {"3": 3}}
    assert seen["cost_usd"] == pytest.approx(0.06)
    assert seen["worker_alive"] is False


# modes ----------------------------------------------------------------------------------------------------------


def test_span_by_span_is_one_cell_of_many_calls_and_resumes_at_the_span_where_it_stopped(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",), mode="span")
    model = Counting(script=lambda n, _: ModelError("auth", "expired") if n == 2 else verdict(2))
    assert grid.run(model).status == "paused"
    second = Counting(script=lambda n, _: verdict(1))
    assert grid.run(second).states == {"scored": 1}
    assert (len(model.requests), len(second.requests)) == (3, 1)  # three acting spans; two were paid before
    assert grid.rows("select score, cost_usd from cell") == [(1, 0.03)]


def test_a_jury_asks_each_model_and_keeps_their_verdicts_beside_its_own(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=2, rubrics=("LC",), models=("a", "b", "c"), mode="jury")
    summary = grid.run(*(Counting(script=lambda n, _, s=score: verdict(s)) for score in (1, 1, 3)))  # type: ignore[misc]
    assert summary.states == {"scored": 6}
    assert grid.rows("select model, score, count(*) from cell group by 1, 2 order by 1") == [
        ("a", 1, 2),
        ("a + b + c", 1, 2),
        ("b", 1, 2),
        ("c", 3, 2),
    ]


@pytest.mark.parametrize(
    ("scores", "rule", "score", "tied"),
    [
        ([1, 1, 3], "majority", 1.0, ()),
        ([0, 0, 3, 3, 2], "majority", None, (0, 3)),
        ([0, 1], "majority", None, (0, 1)),
        ([0, None, None], "majority", 0.0, ()),  # a score of 0 is a vote, a missing one is none
        ([None, None], "majority", None, ()),
        ([0, 3, 3], "mean", 2.0, ()),
        ([0, None, 1], "mean", 0.5, ()),
    ],
)
def test_a_jury_s_score_and_its_ties(
    scores: list[int | None], rule: str, score: float | None, tied: tuple[int, ...]
) -> None:
    result = jury_score(scores, rule)  # type: ignore[arg-type]
    assert (result.score, result.tied, result.missing) == (score, tied, scores.count(None))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"rubrics": ()}, "at least one judge"),
        ({"models": ("a", "b")}, "in mode 'jury' only"),
        ({"mode": "jury"}, "a jury needs two models"),
        ({"repeats": 0}, "repeats must be 1 or more"),
        ({"budget_usd": -1}, "cannot be negative"),
        ({"mode": "span", "batch": True}, "cannot go span by span"),
    ],
)
def test_a_run_that_makes_no_sense_is_refused(spec: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RunSpec(**{"rubrics": ("LC",), "models": ("m",), **spec})  # type: ignore[arg-type]


def test_a_spec_survives_its_way_through_json() -> None:
    spec = RunSpec(rubrics=("LC",), models=("a", "b"), mode="jury", parameters={"temperature": 0}, budget_usd=0.0)
    assert RunSpec.from_json(spec.to_json()) == spec


def test_a_trace_that_cannot_be_read_fails_its_cells_and_no_others(tmp_path: Path) -> None:
    grid = planned(tmp_path)

    class Missing(SqlRunStore):
        def trace(self, trace_id: str):  # type: ignore[no-untyped-def]
            if trace_id.endswith("2"):
                raise KeyError(trace_id)
            return super().trace(trace_id)

    runner = grid.runner(Counting())
    runner.store = Missing(grid.engine, grid.run_key)
    assert asyncio.run(runner.run()).states == {"scored": 4, "error": 2}


def test_the_answer_helper_raises_errors() -> None:
    with pytest.raises(ModelError):
        answer(ModelError("auth", "x"))


def test_the_migrations_give_the_very_tables_of_the_code(tmp_path: Path, migrates_itself: None) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from tracejury.judging.store import metadata, open_workspace

    with open_workspace(tmp_path).engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), metadata)
    assert [change for change in found if "_fts" not in str(change)] == []


def test_a_worker_takes_waiting_runs_and_pauses_one_that_cannot_be_worked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    from tracejury.judging.runs.runner import ModelSetup

    model, seen = Counting(), list[tuple[int, str]]()
    monkeypatch.setattr(work, "model_setups", lambda spec: {name: ModelSetup(call=model) for name in spec.models})
    good = planned(tmp_path)
    bad = plan_more(good.engine, tmp_path, budget_usd=1.0)  # no prices are known for this model
    with pytest.raises(ValueError, match="a budget needs prices"):
        work.worker_loop(good.engine, home=tmp_path, once=True, on_run=lambda key, s: seen.append((key, s.status)))
    assert seen == [(good.run_key, "done")]
    assert (bad.watch()["status"], next_run(good.engine)) == ("paused", None)
    assert "a budget needs prices" in str(bad.watch()["message"])
    assert work.worker_loop(good.engine, home=tmp_path, once=True) == 0


def test_a_trace_too_long_for_its_model_is_cut_to_fit_and_keeps_every_span(tmp_path: Path) -> None:
    from tests.judging.grid import AGENTS, RUBRICS
    from tests.judging.traces import SPAN_IDS, small_trace

    from tracejury.judging.judges.judge import ModelCapabilities
    from tracejury.judging.judges.trace_text import render_trace
    from tracejury.judging.runs.runner import ModelSetup, Runner

    long = small_trace(trace_id=f"{1:032x}", tool_output="word " * 20_000)
    grid, model = planned(tmp_path, [long], rubrics=("LC",)), Counting()
    context = 40_000  # letters, counted by len; the whole text has 100,000
    setups = {"m": ModelSetup(call=model, context=context, count=len, capabilities=ModelCapabilities())}
    store = SqlRunStore(grid.engine, grid.run_key)
    summary = asyncio.run(Runner(grid.spec, store, rubrics=RUBRICS, models=setups, agents=AGENTS).run())
    assert summary.states == {"scored": 1}
    sent = str(model.requests[0].prompt)
    assert len(render_trace(long).text) > 100_000
    assert len(sent) < context
    assert "characters left out" in sent
    assert all(span_id in sent for span_id in SPAN_IDS)


def test_what_cannot_be_cut_to_fit_is_too_long_and_not_sent(tmp_path: Path) -> None:
    from tests.judging.grid import AGENTS, RUBRICS

    from tracejury.judging.runs.runner import ModelSetup, Runner

    grid, model = planned(tmp_path, 1, rubrics=("LC",)), Counting()
    setups = {"m": ModelSetup(call=model, context=1_000, count=len)}
    store = SqlRunStore(grid.engine, grid.run_key)
    summary = asyncio.run(Runner(grid.spec, store, rubrics=RUBRICS, models=setups, agents=AGENTS).run())
    assert (summary.states, model.requests) == ({"too_long": 1}, [])


@pytest.mark.parametrize(
    ("agent", "told"), [("auto", True), ("none", False), ("open-deep-research", True), ("are-react", False)]
)
def test_the_agent_description_is_chosen_by_the_trace_or_by_name(tmp_path: Path, agent: str, told: bool) -> None:
    from dataclasses import replace

    from tests.judging.traces import small_trace

    trace = small_trace(agent="search_agent")
    listing = replace(trace.spans[0], attributes={"smolagents.tools_names": ["inspect_file_as_text"]})
    trace = replace(trace, spans=(listing, *trace.spans[1:]))
    grid, model = planned(tmp_path, [trace], rubrics=("trail",), agent=agent), Counting()
    grid.run(model)
    assert ("A manager and a search agent".lower() in str(model.requests[0].prompt).lower()) is told
    assert grid.rows("select agent_text = '' from judge_version") == [(int(agent == "none"),)]


def test_a_run_that_goes_on_takes_the_limits_of_today(tmp_path: Path) -> None:
    from dataclasses import replace

    from tracejury.judging.runs.run_store import renew_limits

    grid = planned(tmp_path, budget_usd=0.0)
    assert grid.run(Counting(script=priced)).status == "paused"
    renew_limits(grid.engine, grid.run_key, replace(grid.spec, budget_usd=1.0, rubrics=("PQ",), rpm=6000))
    assert (grid.spec.budget_usd, grid.spec.rpm, grid.spec.rubrics) == (1.0, 6000, ("LC", "EE"))
    assert grid.run(Counting(script=priced)).states == {"scored": 6}


def test_judges_that_are_not_shown_the_reasoning_of_a_trace_are_another_version() -> None:
    shown = RunSpec(judges=("LC",), models=("m",))
    versions = [judge_version(RUBRICS["LC"], "m", spec, AGENTS) for spec in (shown, replace(shown, reasoning=False))]
    assert versions[0].version != versions[1].version
    assert [one.parameters for one in versions] == [{}, {"trace_reasoning": "hidden"}]
    assert RunSpec.from_json(replace(shown, reasoning=False).to_json()).reasoning is False
