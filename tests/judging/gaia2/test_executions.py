"""GAIA2 end to end in ARE's own environment, offline: every way an execution may end, with its trace stored."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.build import workspace

from tracejury.app.cli import main
from tracejury.ingest.check import check_store
from tracejury.ingest.readers import read_traces
from tracejury.ingest.store import load, read_transaction
from tracejury.ingest.trace import Json, Trace
from tracejury.judging.gaia2.answers import Chat, ScriptChat, Spending, script_digest
from tracejury.judging.gaia2.benchmark import Benchmark, Done, Models, plan
from tracejury.judging.gaia2.environment import AreEnvironment
from tracejury.judging.gaia2.folders import execution_states, request_stop
from tracejury.judging.gaia2.scenarios import STAND_INS, read_scenarios
from tracejury.judging.gaia2.settings import ExecutionSettings
from tracejury.judging.judges.model import ModelReply, Prices
from tracejury.judging.reports.benchmark_outcomes import executions_of, outcome_tables
from tracejury.judging.store.workspace import Workspace

# The first of these tests may have to make the environment, where `make test` has not.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
DATA = Path(__file__).resolve().parents[3] / "data" / "gaia2"
GOOD_JUDGE = ["- Evaluation: [[true]]\n- Evaluation: [[SUCCESS]]"]
ENTRY = json.loads((DATA / "scripts/boat_entry.json").read_text(encoding="utf-8"))
MOVES = json.loads((DATA / "scripts/boat_moves.json").read_text(encoding="utf-8"))


class Bench:
    """A workspace in which scenarios are run with scripted models."""

    def __init__(self, folder: Path, are: AreEnvironment) -> None:
        self.home: Workspace = workspace(folder)
        self.are = are

    def make(
        self,
        agent: Sequence[Json] | Chat = ENTRY,
        judge: Sequence[Json] | None = GOOD_JUDGE,
        *,
        capability: str = "execution",
        repeats: int = 1,
        again: Sequence[str] = (),
        spending: Spending | None = None,
        prices: Prices | None = None,
        limit: int | None = 1,
        scenarios: Sequence[str | Path] = (STAND_INS,),
        **settings: Any,
    ) -> list[Done]:
        given = ExecutionSettings(
            model="script:agent", judge_model=None if judge is None else "script:judge", **settings
        )
        chosen = read_scenarios(scenarios, capabilities=[capability], limit=limit)
        models = Models(
            agent=(lambda: agent) if callable(agent) else lambda: ScriptChat(agent),
            judge=None if judge is None else lambda: ScriptChat(judge),
            prices=prices,
            judge_prices=prices,
        )
        self.benchmark = Benchmark(
            home=self.home.home,
            engine=self.home.engine,
            environment=self.are,
            models=models,
            spending=spending or Spending(),
        )
        jobs = plan(self.home.home, chosen, given, repeats=repeats, again=again)
        return self.benchmark.run(jobs, workers=1)

    def trace(self, done: Done) -> Trace:
        with read_transaction(self.home.engine) as connection:
            return load(connection, done.job.name)

    def folder(self, done: Done) -> Path:
        return done.job.folder(self.home.home)


@pytest.fixture
def bench(tmp_path: Path, are: AreEnvironment) -> Bench:
    return Bench(tmp_path / "home", are)


def ended(done: Sequence[Done]) -> tuple[str, float | None, float | None, str | None]:
    (one,) = done
    return (one.execution.status, one.execution.score, one.execution.judge_score, one.execution.fault)


def kinds(trace: Trace) -> dict[str, int]:
    names = [span.kind for span in trace.spans]
    return {kind: names.count(kind) for kind in dict.fromkeys(names)}


# How executions end


def test_a_right_execution_succeeds_and_is_a_trace_with_its_settings(bench: Bench) -> None:
    done = bench.make(seed=3)
    assert ended(done) == ("success", 1.0, 1.0, None)
    trace, setting = bench.trace(done[0]), bench.trace(done[0]).attributes["benchmark"]
    assert kinds(trace) == {"CHAIN": 5, "AGENT": 1, "LLM": 3, "TOOL": 3, "EVENT": 1}
    assert isinstance(setting, dict)
    assert (setting["agent_model"], setting["judge_model"]) == ("script:agent", "script:judge")
    assert (setting["repeat"], setting["settings"]) == (1, done[0].job.settings.hash)
    assert all(span.total_tokens for span in trace.spans if span.kind == "LLM")
    assert [problem for problem in check_store(bench.home.engine) if "abab" not in problem.subject] == []
    assert not any(name.split(".")[0] == "are" for name in sys.modules)


def test_a_second_start_makes_nothing_and_again_makes_only_what_ended_so(bench: Bench) -> None:
    assert [one.execution.status for one in bench.make()] == ["success"]
    assert bench.make() == []
    assert bench.make(again=["timeout"]) == []
    assert [one.job.attempt for one in bench.make(again=["success"])] == [2]
    with read_transaction(bench.home.engine) as connection:
        statuses = [execution.status for execution in executions_of(connection)]
        rates = outcome_tables(connection)["gaia2_gsr"].set_index("capability")
    assert statuses == ["superseded", "success"]
    assert rates.loc["all", ["executions", "scored", "repeats"]].tolist() == [1, 1, 1]


def test_a_judge_that_says_no_is_a_failure_of_the_agent(bench: Bench) -> None:
    done = bench.make(judge=["Evaluation: [[False]]\nEvaluation: [[Failure]]"])
    assert ended(done) == ("failed", 0.0, 0.0, "agent")
    outcome = bench.trace(done[0]).outcome
    assert outcome is not None
    assert "tool judge reject" in (outcome.rationale or "")


@pytest.mark.soak
def test_an_unreadable_answer_is_asked_once_more_and_then_no_verdict(bench: Bench) -> None:
    assert ended(bench.make(judge=["I cannot say", *GOOD_JUDGE])) == ("success", 1.0, 1.0, None)
    done = bench.make(judge=["I cannot say"], again=["success"])
    assert ended(done) == ("judge_failed", 0.0, None, "judge")
    calls = (bench.folder(done[0]) / "judge_calls.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(call)["answer"]["text"] for call in calls] == ["I cannot say", "I cannot say"]


def test_a_judge_that_fails_in_an_early_turn_ends_the_execution_with_its_trace(bench: Bench) -> None:
    done = bench.make(MOVES, [{"error": "no key", "kind": "auth"}], capability="adaptability")
    assert ended(done) == ("judge_failed", 0.0, None, "judge")  # stock ARE would poll until its time limit
    assert kinds(bench.trace(done[0]))["TOOL"] == 5


def test_three_turns_with_a_wait_and_two_notifications_are_as_in_the_gui_file(bench: Bench) -> None:
    done = bench.make(MOVES, capability="adaptability")
    assert ended(done) == ("success", 1.0, 1.0, None)
    trace = bench.trace(done[0])
    assert sum(span.name.startswith("turn ") for span in trace.spans) == 3
    assert sum(span.name == "environment_notifications" for span in trace.spans) == 2
    assert sum(event.matched is True for event in trace.expected_events) >= 6
    (gui,) = read_traces(bench.folder(done[0]) / "trace" / "gui")
    assert isinstance(gui, Trace)
    assert [span.span_id for span in trace.spans] == [span.span_id for span in gui.spans]
    (state,) = execution_states(bench.home.home)
    assert (state.turn, state.step) == (trace.spans[-1].turn, trace.spans[-1].step) == (2, 11)


def test_without_a_judge_an_execution_has_no_score(bench: Bench) -> None:
    assert ended(bench.make(judge=None)) == ("no_judge", None, None, None)


@pytest.mark.soak
def test_the_limit_of_steps_is_kept_and_named(bench: Bench) -> None:
    search = json.dumps({"action": "Contacts__search_contacts", "action_input": {"query": "Runa"}})
    done = bench.make([f"Thought: again\n\nAction:\n{search}"], max_iterations=3)
    assert ended(done) == ("max_iterations", 0.0, 0.0, "agent")
    assert kinds(bench.trace(done[0]))["LLM"] == 3


@pytest.mark.soak
def test_errors_of_the_model_are_named(bench: Bench) -> None:
    done = bench.make([{"error": "the model is out"}], max_iterations=2)
    assert done[0].execution.status == "max_iterations"
    assert done[0].message == "2 of 2 calls of the model failed: the model is out"


def test_an_oracle_execution_counts_in_no_rate(bench: Bench) -> None:
    assert ended(bench.make(judge=None, oracle=True)) == ("oracle", None, None, None)


def test_a_scenario_that_are_cannot_set_up_is_an_execution_with_the_cause(bench: Bench, tmp_path: Path) -> None:
    broken = json.loads((DATA / "scenarios/execution/boat_entry.json").read_text(encoding="utf-8"))
    broken["events"][1]["action"]["function"] = "no_such_function"
    (tmp_path / "broken.json").write_text(json.dumps(broken), encoding="utf-8")
    done = bench.make(scenarios=[tmp_path / "broken.json"])
    assert ended(done) == ("setup_failed", None, None, "set-up")
    assert "no_such_function" in (done[0].message or "")
    assert len(bench.trace(done[0]).spans) == 1


# Limits and ends from outside


def test_a_model_that_hangs_is_ended_at_the_limit_with_the_trace_so_far(bench: Bench) -> None:
    done = bench.make([ENTRY[0], {"hang": 300}], time_limit_s=25)
    assert ended(done) == ("timeout", 0.0, None, "time limit")
    assert kinds(bench.trace(done[0]))["TOOL"] == 1


class Slow:
    """A model that answers once and then says nothing until it is let go."""

    def __init__(self) -> None:
        self.waiting, self.go = threading.Event(), threading.Event()
        self.asked = 0

    def __call__(self, messages: Sequence[Mapping[str, Json]], parameters: Mapping[str, Json]) -> ModelReply:
        self.asked += 1
        if self.asked > 1:
            self.waiting.set()
            self.go.wait(60)
        return ModelReply(text=ENTRY[min(self.asked, len(ENTRY)) - 1])


def started(bench: Bench, model: Slow) -> tuple[threading.Thread, list[Done]]:
    """An execution under way in another thread, at the second question to its model."""
    made: list[Done] = []
    thread = threading.Thread(target=lambda: made.extend(bench.make(model)))
    thread.start()
    assert model.waiting.wait(60)
    return thread, made


def test_a_worker_that_is_killed_leaves_a_stopped_execution_with_the_live_rows(bench: Bench) -> None:
    model = Slow()
    thread, made = started(bench, model)
    (folder,) = {state.folder for state in execution_states(bench.home.home)}
    pid = json.loads((folder / "state.json").read_text(encoding="utf-8"))["pid"]
    os.kill(pid, signal.SIGKILL)
    thread.join(60)
    model.go.set()
    assert ended(made) == ("stopped", None, None, "person")
    assert "stopped without a result" in (made[0].message or "")
    assert kinds(bench.trace(made[0]))["TOOL"] == 1


def test_an_execution_is_shown_live_and_ends_when_a_person_says_so(bench: Bench) -> None:
    model = Slow()
    thread, made = started(bench, model)
    (state,) = execution_states(bench.home.home)
    assert (state.status, state.scenario, state.repeat) == ("running", "tracejury_boat_entry", 1)
    request_stop(state.folder)
    thread.join(60)
    model.go.set()
    assert ended(made) == ("stopped", None, None, "person")
    (after,) = execution_states(bench.home.home)
    assert (after.status, after.last_tool) == ("stopped", "Calendar__add_calendar_event")
    assert [one.execution.status for one in bench.make()] == ["success"]  # a stopped execution is taken up again


def test_an_execution_whose_starter_was_killed_keeps_its_trace_at_the_next_start(
    tmp_path: Path, are: AreEnvironment
) -> None:
    (tmp_path / "hang.json").write_text(json.dumps([ENTRY[0], {"hang": 300}]), encoding="utf-8")
    home = tmp_path / "home"
    words = ["samples", "--capability", "execution", "--repeats", "1", "--no-judge", "--home", str(home)]
    command = [sys.executable, "-m", "tracejury.app.cli", "gaia2", "run", *words, "--model"]
    script = f"script:{tmp_path / 'hang.json'}"
    with subprocess.Popen([*command, script, "--are-python", str(are.python)], stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 600
        while time.monotonic() < until and not any(state.step for state in execution_states(home)):
            time.sleep(0.2)
        (state,) = execution_states(home)
        process.kill()
    result = state.folder / "result.json"
    while time.monotonic() < until and not result.exists():
        time.sleep(0.2)
    assert result.exists(), "the worker saw that its parent was gone, and wrote its trace"
    one = Bench(home, are)
    jobs = plan(home, read_scenarios([STAND_INS], capabilities=["execution"]), _same(script), repeats=1)
    assert [job.attempt for job in jobs] == [1]
    models = Models(agent=lambda: ScriptChat(ENTRY), judge=None)
    benchmark = Benchmark(home=home, engine=one.home.engine, environment=are, models=models)
    (done,) = benchmark.run(jobs, workers=1)
    assert (done.job.attempt, done.execution.status) == (2, "no_judge")
    with read_transaction(one.home.engine) as connection:
        first = load(connection, jobs[0].name)
    assert kinds(first)["TOOL"] == 1
    assert first.outcome is not None
    assert first.outcome.exception_message == "ended by a signal"


def _same(script: str) -> ExecutionSettings:
    return ExecutionSettings(model=script, judge_model=None, script=script_digest(script))


def test_the_budget_ends_an_execution_before_the_next_call(bench: Bench) -> None:
    prices = Prices(prompt=1e-4, completion=1e-4)
    done = bench.make(prices=prices, spending=Spending(limit_usd=1.0), max_tokens=1000)
    assert done[0].execution.status == "stopped"
    assert "the budget of $1.0000" in (done[0].message or "")


# The commands


def test_the_command_runs_the_shipped_scenarios_offline_and_reports_both_rates(
    tmp_path: Path, are: AreEnvironment
) -> None:
    scripts = DATA / "scripts"
    words = ["gaia2", "run", "samples", "--capability", "execution", "--repeats", "1", "--home", str(tmp_path / "w")]
    models = ["--model", f"script:{scripts / 'boat_entry.json'}", "--judge-model", f"script:{scripts / 'judge.json'}"]
    more = ["--then-judge", "checks", "--are-python", str(are.python), "--json"]
    dry = CliRunner().invoke(main, [*words, *models, "--dry-run", "--json"])
    assert json.loads(dry.stdout)["left"] == 1
    made = CliRunner().invoke(main, [*words, *models, *more])
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert (told["gsr"], told["judged_rate"], told["left"]) == (1.0, 1.0, 0)
    assert told["executions"][0]["status"] == "success"
    again = CliRunner().invoke(main, [*words, *models, *more])
    assert json.loads(again.stdout) == {"executions": [], "left": 0}
    shown = CliRunner().invoke(main, ["gaia2", "executions", "--home", str(tmp_path / "w"), "--json"])
    assert [one["status"] for one in json.loads(shown.stdout)] == ["success"]


@pytest.mark.soak
def test_the_proof_fails_under_the_stock_engine_and_succeeds_under_ours(are: AreEnvironment) -> None:
    made = CliRunner().invoke(main, ["gaia2", "proof", "--are-python", str(are.python), "--json"])
    assert made.exit_code == 0, made.output
    stock, ours = json.loads(made.stdout)
    assert (stock["success"], ours["success"]) == (False, True)
    assert "tool judge reject" in stock["rationale"]


def test_the_callback_of_the_help_page_brings_maseval_reports(tmp_path: Path, are: AreEnvironment) -> None:
    page = (DATA.parent / "help" / "gaia2.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    report = {"task_id": "t", "repeat_idx": 1, "status": "agent_error", "traces": {}, "eval": None, "error": None}
    use = f"\nToTracejury({str(tmp_path / 'reports')!r}).on_task_repeat_end(None, {report!r})\n"
    done = subprocess.run([are.python, "-I", "-c", code + use], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (trace,) = read_traces(tmp_path / "reports")
    assert isinstance(trace, Trace)
    assert (trace.trace_id, trace.format) == ("t_1", "maseval")
