"""The grid: every cell in one state, none paid twice, none lost; pace, budget, cache, pause, juries."""

import asyncio
import os
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
from tests.judging.grid import AGENTS, PRICES, RUBRICS, Counting, Grid, answer, kill, plan_more, planned

from tracejury.ingest.store import read_transaction
from tracejury.judging import wiring as work
from tracejury.judging.judges.jury import jury_score
from tracejury.judging.judges.limits import BatchedWriter, Budget, RateLimiter, StopRunError
from tracejury.judging.judges.model import ModelError, ModelReply, ModelRequest
from tracejury.judging.records import Call, Failure
from tracejury.judging.reports.columns import load_columns
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import LazyFrames
from tracejury.judging.runs.model_setup import ModelSetup
from tracejury.judging.runs.paid_costs import paid_elsewhere
from tracejury.judging.runs.run_control import (
    ensure_free,
    judge_version,
    last_run_of,
    request_status,
    want_failed_again,
)
from tracejury.judging.runs.run_owner import GONE_S, Owner, RunHeldError, RunTakenError
from tracejury.judging.runs.run_spec import RunSpec, RunStatus
from tracejury.judging.runs.run_store import Cell, Ended, Paid, RunStore, Sending
from tracejury.judging.runs.runner import Progress
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
        if not leads:
            await model.together(5)  # the five followers of a trace
        done[trace] += 1
        return verdict(2)

    model = Counting(script=lambda number, request: script(request))
    assert grid.run(model).states == {"scored": 12}
    assert early == []


def test_no_more_calls_at_a_time_than_wished(tmp_path: Path) -> None:
    async def script() -> str:
        await model.together(3)
        return verdict(2)

    grid, model = planned(tmp_path, traces=4, repeats=3, concurrency=3), Counting(script=lambda *_: script())
    assert grid.run(model).states == {"scored": 24}
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
    letters = len(request.prompt.system + request.prompt.prefix + request.prompt.suffix)
    return ModelReply(
        text=verdict(2), finish_reason="stop", prompt_tokens=letters, completion_tokens=10, cost_usd=letters * 1e-6
    )


@pytest.mark.parametrize("concurrency", [1, 8])
def test_the_budget_is_never_passed_and_the_rest_waits(tmp_path: Path, concurrency: int) -> None:
    grid, model = planned(tmp_path, traces=10, concurrency=concurrency, budget_usd=0.1), Counting(script=priced)
    summary = grid.run(model)
    assert (summary.status, grid.watch()["status"]) == ("out of budget", "out of budget")
    assert "the budget of $0.1000 is reached" in summary.message
    assert 0.05 < summary.spent_usd <= 0.1
    assert grid.states() == {"scored": len(model.requests), "pending": 20 - len(model.requests)}
    more = grid.run(Counting(script=priced), changes={"budget_usd": 1.0})
    assert (more.status, more.states) == ("done", {"scored": 20})


def test_a_repair_that_the_budget_forbids_is_made_later_and_the_first_reply_is_not_paid_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",), budget_usd=0.03)
    unreadable = ModelReply(text="hm", finish_reason="stop", prompt_tokens=1, completion_tokens=1, cost_usd=0.02)
    summary = grid.run(Counting(script=lambda n, _: unreadable))
    assert (summary.status, grid.states()) == ("out of budget", {"pending": 1})
    second = Counting()
    assert grid.run(second, changes={"budget_usd": 1.0}).states == {"scored": 1}
    assert [len(request.turns) for request in second.requests] == [2]  # only the repair was sent
    assert grid.rows("select cost_usd from cell") == [(0.03,)]


def test_a_budget_without_prices_is_refused() -> None:
    from tests.judging.grid import RUBRICS

    from tracejury.judging.runs.model_setup import ModelSetup, check_spec

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


def test_a_call_that_waits_for_its_moment_is_not_sent_when_the_run_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = planned(tmp_path, traces=8, concurrency=8, rpm=1)  # the next moment is a minute away
    is_waiting, stopping, sleep_until = asyncio.Event(), [], RateLimiter._sleep_until

    async def noted(limiter: RateLimiter, moment: float) -> None:
        if moment > asyncio.get_running_loop().time():
            is_waiting.set()
        await sleep_until(limiter, moment)

    async def stop_when_one_waits() -> None:
        await is_waiting.wait()
        runner.stop()

    def script(number: int, _: ModelRequest) -> str:
        stopping.append(asyncio.get_running_loop().create_task(stop_when_one_waits()))
        return verdict(2)

    monkeypatch.setattr(RateLimiter, "_sleep_until", noted)

    model = Counting(script=script)
    runner = grid.runner(model)
    asyncio.run(runner.run())
    assert len(model.requests) == 1
    assert grid.states() == {"scored": 1, "pending": 15}


def test_a_provider_that_asks_to_wait_for_hours_stops_the_run() -> None:
    limiter = RateLimiter(backoff_s=1)
    with pytest.raises(StopRunError, match="asks for a pause of 86,400 s"):
        asyncio.run(limiter.back_off(0, ModelError("rate_limit", "tomorrow", retry_after_s=86_400)))


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


class Dies(RunStore):
    """A store whose process is killed at its next failure, outcome or farewell."""

    def note_failed(self, cell: Cell, request_hash: str, *, is_unknown: bool) -> None:
        raise OSError("killed here")

    def finish(self, ended: Sequence[Ended]) -> Sequence[None]:
        raise OSError("killed here")

    def end(
        self, status: RunStatus, message: str = "", *, is_by_person: bool = False, is_whole: bool = True
    ) -> RunStatus:
        kill(self)
        raise OSError("killed here")


def killed(grid: Grid, model: Counting, **changes: object) -> None:
    """The run's owner is gone in the middle of its work, as a kill leaves the database."""
    runner = grid.runner(model, changes=changes)
    runner.store = Dies(grid.engine, grid.run_key)
    with pytest.raises(OSError, match="killed here"):
        asyncio.run(runner.run())


def killed_in_flight(grid: Grid) -> None:
    """An owner sends a request and is gone before the answer."""
    killed(grid, Counting(script=lambda n, r: ModelError("transient", "never read")), concurrency=1)
    assert outcomes(grid) == {"under way": 1}


def test_what_was_sent_by_an_owner_that_died_is_counted_and_asked_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",), prices={"m": PRICES})
    killed_in_flight(grid)
    before = grid.watch()
    assert (before["unanswered"], before["states"]) == (1, {"running": 1})
    model = Counting()
    summary = grid.run(model)
    assert (summary.states, len(model.requests)) == ({"scored": 1}, 1)
    assert outcomes(grid) == {"unknown": 1, "answered": 1}
    prompt = sum(map(len, (p := model.requests[0].prompt) and (p.system, p.prefix, p.suffix)))
    most = prompt * PRICES.prompt + 4_000 * PRICES.completion  # one token a letter here, 4,000 kept for the answer
    assert (summary.unanswered.requests, summary.unanswered.most_usd) == (1, pytest.approx(most))
    assert grid.watch()["unanswered_usd"] == pytest.approx(most)
    assert summary.spent_usd == pytest.approx(0.01)  # what is known to be paid, beside it


def test_what_was_sent_by_an_owner_that_died_can_be_left_alone_until_wanted_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",))
    killed_in_flight(grid)
    model = Counting()
    summary = grid.run(model, changes={"ask_again": False})
    assert (summary.states, model.requests) == ({"error": 1}, [])
    assert summary.failures[0][2].startswith(
        "unanswered: sent before without a known answer (it may have been charged)"
    )
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
    assert (summary.status, summary.spent_usd) == ("out of budget", 0)
    assert "$0.0490 perhaps" in summary.message


def test_writes_made_together_fail_together() -> None:
    written: list[list[int]] = []

    async def all_of(*numbers: int) -> list[object]:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def write(items: Sequence[int]) -> Sequence[int]:
            begun.set()
            await may_end.wait()
            written.append(list(items))
            if 2 in items:
                raise OSError("disk full")
            return [10 * item for item in items]

        together = BatchedWriter[int, int](write)
        tasks = [asyncio.create_task(together(numbers[0]))]
        await begun.wait()
        tasks += [asyncio.create_task(together(number)) for number in numbers[1:]]
        await asyncio.sleep(0)  # each of them asks
        may_end.set()
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    ends = asyncio.run(all_of(0, 1, 2, 3))
    assert written == [[0], [1, 2, 3]]  # the last three while the first was written
    assert [type(end) for end in ends] == [int, OSError, OSError, OSError]
    assert asyncio.run(all_of(3, 5, 4)) == [30, 50, 40]  # to each the result of its own


# resume, cache, owners -----------------------------------------------------------------------------------


def test_a_reply_stored_before_the_cell_was_finished_is_replayed_and_not_paid_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",))

    killed(grid, Counting())
    assert grid.rows("select state from cell") == [("running",)]
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


def taken(grid: Grid) -> RunStore:
    """A store whose process owns the run."""
    store = RunStore(grid.engine, grid.run_key)
    assert store.take(resumes=True) == "running"
    return store


def test_the_next_cell_is_found_without_sorting_or_reading_all_that_wait(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=2)
    store = taken(grid)
    asked: list[tuple[str, Any]] = []
    event.listen(grid.engine, "before_cursor_execute", lambda _, __, sql, values, *___: asked.append((sql, values)))
    assert {cell.trace_id for cell in store.claim()} == {f"{1:032x}"}
    reads = [one for one in asked if one[0].startswith("SELECT") and "cell" in one[0]]
    with read_transaction(grid.engine) as connection:
        plans = [
            row[3] for sql, values in reads for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)
        ]
    assert len(reads) >= 3
    assert not [step for step in plans if "ORDER BY" in step or step == "SCAN cell"]


def silence(grid: Grid, seconds: float = GONE_S + 4) -> None:
    """The owner gave no sign of life for so long."""
    with grid.engine.begin() as connection:
        connection.exec_driver_sql(f"update run set heartbeat_at = heartbeat_at - {int(seconds * 1e6)}")


def far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lock of a file tells whether an owner lives: as on a server's database."""
    monkeypatch.setattr("tracejury.judging.runs.run_owner._folder", lambda engine: None)


def test_who_starts_a_run_that_is_at_work_is_told_who_holds_it(tmp_path: Path) -> None:
    grid, beside = planned(tmp_path, traces=1), Counting()
    taken(grid)
    told = rf"run 1 is at work in process {os.getpid()} of this machine; its last heartbeat was 0 s ago. Try: wait"
    with pytest.raises(RunHeldError, match=told):
        grid.run(beside)
    with pytest.raises(RunHeldError, match="is at work"):
        ensure_free(grid.engine, grid.run_key)
    assert (beside.requests, grid.watch()["owner_alive"]) == ([], True)
    other = plan_more(grid.engine, tmp_path, use_cache=False)
    assert other.run(Counting()).states == {"scored": 2}  # other runs go on beside it


def test_an_owner_s_name_is_its_own_whatever_host_and_process_it_has(tmp_path: Path) -> None:
    """Two PID namespaces of one host name: the same host, the same process id, even the same start."""
    grid, model = planned(tmp_path, traces=1), Counting()
    first = taken(grid)
    second = RunStore(grid.engine, grid.run_key)
    with pytest.raises(RunHeldError):
        second.take(resumes=True)
    assert first.owner is not None
    assert Owner(grid.engine).name != first.owner.name
    first.end("paused")
    grid.run(model)
    assert len(model.requests) == 2


@pytest.mark.parametrize("is_far", [False, True])
@pytest.mark.parametrize("ahead_s", [90, -90])
def test_a_clock_that_is_wrong_takes_no_run_from_its_owner(
    ahead_s: int, is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_far:
        far_away(monkeypatch)
    grid, model, beside = planned(tmp_path, traces=3), Counting(), Counting()

    def script(number: int, _: ModelRequest) -> str:
        if number == 1:
            with monkeypatch.context() as wrong:
                wrong.setattr("time.time_ns", lambda real=time.time_ns: real() + ahead_s * 10**9)
                wrong.setattr("time.time", lambda real=time.time: real() + ahead_s)
                with pytest.raises(RunHeldError):
                    RunStore(grid.engine, grid.run_key).take(resumes=True)
        return verdict(2)

    model.script = script
    assert grid.run(model).states == {"scored": 6}
    assert (len(model.requests), beside.requests) == (6, [])


def asleep(grid: Grid, monkeypatch: pytest.MonkeyPatch, *, at: int) -> tuple[Counting, Counting]:
    """An owner sleeps for 64 s while its call number `at` is under way; another takes over; then it wakes."""
    far_away(monkeypatch)
    first, second = Counting(), Counting()

    async def script(number: int, _: ModelRequest) -> str:
        if number == at:
            silence(grid)
            successor = asyncio.create_task(grid.runner(second).run())
            while len(second.requests) < 6 - at - 1:  # all but what the sleeper sent
                await asyncio.sleep(0.01)
            running.append(successor)
        return verdict(2)

    running: list[asyncio.Task[Any]] = []
    first.script = script

    async def both() -> None:
        with pytest.raises(RunTakenError, match="sends nothing more"):
            await grid.runner(first, changes={"concurrency": 1}).run()
        assert (await running[0]).status == "done"

    asyncio.run(both())
    return first, second


@pytest.mark.parametrize("at", [0, 3])
def test_an_owner_that_slept_through_its_time_sends_nothing_more_and_no_cell_is_sent_twice(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = planned(tmp_path, traces=3)
    first, second = asleep(grid, monkeypatch, at=at)
    assert grid.states() == {"scored": 6}
    assert len(first.requests) == at + 1
    sent = [str(request.prompt) for request in (*first.requests, *second.requests)]
    assert len(sent) == len(set(sent)) == 6
    assert grid.rows("select outcome, count(*) from request group by 1") == [("answered", 6)]
    assert grid.rows("select sum(cost_usd) from reply") == [(pytest.approx(0.06),)]


def test_every_write_of_a_former_owner_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far_away(monkeypatch)
    grid = planned(tmp_path, traces=1)
    former = taken(grid)
    cell, other = former.claim()
    former.note_sent([Sending(cell=other, request_hash="h", most_usd=None)])
    silence(grid)
    taken(grid).lose_requests(after_s=-1)
    late = Failure(rubric="LC", trace_id=cell.trace_id, state="error", reason="late", call=Call(model="m"))
    for write in (
        lambda: former.note_sent([Sending(cell=cell, request_hash="h", most_usd=None)]),
        lambda: former.note_failed(other, "h", is_unknown=False),
        lambda: former.finish([Ended(cell, late)]),
        lambda: former.release([cell.key]),
        lambda: former.note_batch("m", "batch-1", []),
        lambda: former.collect("batch-1", []),
        lambda: former.end("paused", "late"),
        former.claim,
        former.heartbeat,
    ):
        with pytest.raises(RunTakenError):
            write()
    former.keep_replies([Paid(other, "h", answer(verdict(2)))])  # its request was given up: perhaps paid, and counted
    assert grid.rows("select count(*) from reply") == [(0,)]
    assert outcomes(grid) == {"unknown": 1}
    assert grid.states() == {"pending": 2}


def test_an_answer_that_a_sleeper_never_brings_is_asked_for_once_its_time_has_run_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far_away(monkeypatch)
    grid, model = planned(tmp_path, traces=1), Counting()
    sleeper = taken(grid)
    sleeper.note_sent([Sending(cell=cell, request_hash="h", most_usd=0.01) for cell in sleeper.claim()[:1]])
    silence(grid)

    def script(number: int, _: ModelRequest) -> str:
        if number == 0:  # the other cell: this one is still to be answered
            with grid.engine.begin() as connection:
                connection.exec_driver_sql("update request set sent_at = 0 where epoch = 1")
        return verdict(2)

    model.script = script
    summary = grid.run(model)
    assert (summary.states, len(model.requests), summary.unanswered.requests) == ({"scored": 2}, 2, 1)


def test_an_owner_that_is_only_silent_keeps_its_run_where_the_system_says_that_it_is_there(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1)
    owner = taken(grid)
    silence(grid)
    with pytest.raises(RunHeldError, match=rf"64 s ago. Try: it is suspended or hangs.*\(kill {os.getpid()}\)"):
        grid.run(Counting())
    kill(owner)
    assert grid.run(Counting()).states == {"scored": 2}  # at once: the system let go of its lock
    assert list((tmp_path / "run-owners").iterdir()) == []


def test_where_no_lock_tells_a_silent_owner_is_waited_for_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far_away(monkeypatch)
    grid = planned(tmp_path, traces=1)
    taken(grid)
    silence(grid, GONE_S - 20)
    with pytest.raises(RunHeldError, match="another machine or database client"):
        grid.run(Counting())
    silence(grid, 30)
    assert grid.watch()["owner_alive"] is False
    assert grid.run(Counting()).states == {"scored": 2}


@pytest.mark.parametrize("judges", [("LC",), ("LC", "EE")])
def test_a_store_that_fails_pauses_the_run_and_what_was_answered_is_replayed(
    judges: tuple[str, ...], tmp_path: Path
) -> None:
    class Full(RunStore):
        def finish(self, ended: Sequence[Ended]) -> Sequence[None]:
            raise OSError("no space left")

    grid = planned(tmp_path, traces=1, rubrics=judges)
    runner = grid.runner(Counting())
    runner.store = Full(grid.engine, grid.run_key)
    with pytest.raises(OSError, match="no space left"):
        asyncio.run(runner.run())
    assert (grid.watch()["status"], grid.watch()["message"]) == ("paused", "OSError: no space left")
    again = Counting()
    ended = asyncio.run(asyncio.wait_for(grid.runner(again).run(), 30))
    assert ended.states == {"scored": len(judges)}
    assert len(again.requests) <= 1  # what was answered is replayed


def test_a_run_whose_owner_died_before_saying_that_it_is_done_is_ended_by_the_next(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1)

    class DiesLast(RunStore):
        end = Dies.end  # type: ignore[assignment]

    runner = grid.runner(Counting())
    runner.store = DiesLast(grid.engine, grid.run_key)
    with pytest.raises(OSError, match="killed here"):
        asyncio.run(runner.run())
    assert (grid.states(), grid.watch()["status"], grid.watch()["owner_alive"]) == ({"scored": 2}, "running", False)
    assert grid.run(Counting()).status == "done"


def test_a_paused_run_can_be_cancelled_and_taken_up_again(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=2)
    stopped = Counting(script=lambda n, _: ModelError("auth", "expired") if n else verdict(2))
    assert grid.run(stopped).status == "paused"
    request_status(grid.engine, grid.run_key, "cancelled")
    assert grid.watch()["status"] == "cancelled"
    request_status(grid.engine, grid.run_key, "paused")  # too late
    assert grid.watch()["status"] == "cancelled"
    request_status(grid.engine, grid.run_key, "queued")
    again = Counting()
    assert grid.run(again).states == {"scored": 4}
    assert len(again.requests) == 3  # what was paid before is not asked for again


def test_a_run_cancelled_before_its_owner_was_ready_stays_cancelled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    grid, model = planned(tmp_path, traces=1), Counting()

    def setups(spec: RunSpec) -> dict[str, ModelSetup]:
        request_status(grid.engine, grid.run_key, "cancelled")  # while litellm is imported
        return {"m": ModelSetup(call=model, prices=PRICES)}

    monkeypatch.setattr(work, "model_setups", setups)
    assert work.work_on(grid.engine, grid.run_key, home=tmp_path, resumes=False).status == "cancelled"
    assert (grid.watch()["status"], grid.states(), model.requests) == ("cancelled", {"pending": 2}, [])
    assert grid.run(model).status == "done"  # who starts it by name means it


def test_a_pause_taken_back_before_the_owner_heeded_it_is_no_pause(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1)
    runner = grid.runner(Counting())
    really_end = runner.store.end

    def end(status: RunStatus, message: str = "", **how: bool) -> RunStatus:
        request_status(grid.engine, grid.run_key, "queued")
        return really_end(status, message, **how)

    def script(number: int, _: ModelRequest) -> str:
        request_status(grid.engine, grid.run_key, "paused")
        runner.stopping.heed("paused")
        return verdict(2)

    runner.models = {"m": replace(runner.models["m"], call=Counting(script=script))}
    runner.store.end = end  # type: ignore[method-assign]
    assert asyncio.run(runner.run()).status == "queued"
    assert grid.watch()["owner_alive"] is False


def test_failed_cells_wanted_while_an_owner_ends_are_not_called_done(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1, rubrics=("LC",), attempts=1)
    grid.run(Counting(script=lambda number, request: ModelError("bad_request", "odd")))
    request_status(grid.engine, grid.run_key, "queued")
    assert want_failed_again(grid.engine, grid.run_key) == 1
    ending = taken(grid)
    assert ending.end("running") == "queued"
    assert grid.watch()["status"] == "queued"


def test_a_budget_that_ends_with_the_last_cell_ends_a_run_that_is_done(tmp_path: Path) -> None:
    grid = planned(tmp_path, traces=1)
    owner = taken(grid)
    with grid.engine.begin() as connection:
        connection.exec_driver_sql("update cell set state = 'error'")
    assert owner.end("out of budget", "the budget is reached") == "done"
    assert (grid.watch()["status"], grid.watch()["message"]) == ("done", "")


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
    with read_transaction(again.engine) as connection:
        paid = paid_elsewhere(connection)
        spent = LazyFrames(connection, load_columns(connection), Filters()).costs_of_repeats
    cached = {key for (key,) in again.rows(f"select cell_key from cell where run_key = {again.run_key} and repeat < 2")}
    assert paid == dict.fromkeys(cached, 0.01)
    assert set(spent["cost_usd"].round(6)) == {0.02}  # two judges a trace, each paid once, in whichever run
    assert len(spent) == 9


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

    async def script(number: int) -> str:
        if number == 3:
            request_status(grid.engine, grid.run_key, "paused")
        await asyncio.sleep(2 if number > 3 else 0)  # which leaves the run ten seconds to see the request
        return verdict(2)

    summary = grid.run(Counting(script=lambda number, _: script(number)))
    assert (summary.status, summary.message) == ("paused", "paused by a person")
    states = grid.states()
    assert set(states) == {"scored", "pending"}
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
    assert seen["owner_alive"] is False


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
        ({"rubrics": ()}, "at least one dimension"),
        ({"models": ("a", "b")}, "only in mode 'jury'"),
        ({"mode": "jury"}, "a jury needs two or more models"),
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

    class Missing(RunStore):
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


def test_a_trace_too_long_for_its_model_is_cut_to_fit_and_keeps_every_span(tmp_path: Path) -> None:
    from tests.judging.grid import AGENTS, RUBRICS
    from tests.judging.traces import SPAN_IDS, small_trace

    from tracejury.judging.judges.judge import ModelCapabilities
    from tracejury.judging.judges.trace_text import render_trace
    from tracejury.judging.runs.model_setup import ModelSetup
    from tracejury.judging.runs.runner import Runner

    long = small_trace(trace_id=f"{1:032x}", tool_output="word " * 20_000)
    grid, model = planned(tmp_path, [long], rubrics=("LC",)), Counting()
    context = 40_000  # letters, counted by len; the whole text has 100,000
    setups = {"m": ModelSetup(call=model, context=context, count=len, capabilities=ModelCapabilities())}
    store = RunStore(grid.engine, grid.run_key)
    summary = asyncio.run(Runner(grid.spec, store, rubrics=RUBRICS, models=setups, agents=AGENTS).run())
    assert summary.states == {"scored": 1}
    sent = str(model.requests[0].prompt)
    assert len(render_trace(long).text) > 100_000
    assert len(sent) < context
    assert "characters left out" in sent
    assert all(span_id in sent for span_id in SPAN_IDS)


def test_what_cannot_be_cut_to_fit_is_too_long_and_not_sent(tmp_path: Path) -> None:
    from tests.judging.grid import AGENTS, RUBRICS

    from tracejury.judging.runs.model_setup import ModelSetup
    from tracejury.judging.runs.runner import Runner

    grid, model = planned(tmp_path, 1, rubrics=("LC",)), Counting()
    setups = {"m": ModelSetup(call=model, context=1_000, count=len)}
    store = RunStore(grid.engine, grid.run_key)
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

    from tracejury.judging.runs.run_control import renew_limits

    grid = planned(tmp_path, budget_usd=0.0)
    assert grid.run(Counting(script=priced)).status == "out of budget"
    renew_limits(grid.engine, grid.run_key, replace(grid.spec, budget_usd=1.0, rubrics=("PQ",), rpm=6000))
    assert (grid.spec.budget_usd, grid.spec.rpm, grid.spec.rubrics) == (1.0, 6000, ("LC", "EE"))
    assert grid.run(Counting(script=priced)).states == {"scored": 6}


def test_judges_that_are_not_shown_the_reasoning_of_a_trace_are_another_version() -> None:
    shown = RunSpec(rubrics=("LC",), models=("m",))
    versions = [judge_version(RUBRICS["LC"], "m", spec, AGENTS) for spec in (shown, replace(shown, reasoning=False))]
    assert versions[0].version != versions[1].version
    assert [one.parameters for one in versions] == [{}, {"trace_reasoning": "hidden"}]
    assert RunSpec.from_json(replace(shown, reasoning=False).to_json()).reasoning is False
