"""GSR as ARE and as MASEval count it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracejury.ingest.formats.gaia2.execution_outcome import JUDGE_RAISED, NO_JUDGE
from tracejury.ingest.gsr import Execution, execution_of, gsr
from tracejury.ingest.readers import read_traces
from tracejury.ingest.trace import Trace


def execution_of_trace(trace: Trace) -> Execution:
    assert trace.outcome is not None
    return execution_of(trace.trace_id, trace.outcome, trace.attributes, duration_s=None)


def execution(scenario: str, score: float | None, *, capability: str = "search", **more: Any) -> Execution:
    told = {"judge_score": score, "reason": None if score is not None else NO_JUDGE} | more
    return Execution(trace_id=scenario, scenario=scenario, capability=capability, score=score, **told)


def test_only_scored_executions_count() -> None:
    found = gsr([execution("a", 1.0), execution("b", 0.0), execution("c", None)])
    assert (found.micro.executions, found.micro.scored, found.micro.rate) == (3, 2, 0.5)


def test_an_execution_whose_judge_raised_counts_zero_as_in_are_and_is_not_judged() -> None:
    executions = [execution("a", 1.0), execution("b", 0.0, judge_score=None, reason=JUDGE_RAISED)]
    assert gsr(executions).micro.rate == 0.5
    assert gsr(one.judged for one in executions).micro.rate == 1.0


def test_macro_is_the_mean_over_capabilities_and_micro_over_executions() -> None:
    executions = [
        execution("a", 1.0),
        execution("b", 1.0, capability="time"),
        execution("c", 0.0, capability="time"),
        execution("d", 0.0, capability="time"),
    ]
    found = gsr(executions)
    assert found.micro.rate == 0.5  # 2 of 4
    assert found.macro == pytest.approx((1 + 1 / 3) / 2)
    assert {name: one.rate for name, one in found.by_capability.items()} == {"search": 1.0, "time": 1 / 3}


def test_phases_are_counted_apart() -> None:
    found = gsr([execution("a", 1.0), execution("a", 0.0, phase="noise")])
    assert {name: one.rate for name, one in found.by_capability.items()} == {"search": 1.0, "search_noise": 0.0}
    assert found.micro.scenarios == 2


def test_pass_at_k_needs_one_success_and_pass_k_all() -> None:
    found = gsr(
        [execution("a", 1.0, repeat=1), execution("a", 0.0, repeat=2), execution("b", 1.0), execution("c", None)]
    )
    assert (found.micro.scenarios, found.micro.pass_at_k, found.micro.pass_k) == (3, 2, 1)


def test_without_any_scored_execution_the_rate_is_undefined_not_zero() -> None:
    found = gsr([execution("a", None)])
    assert (found.micro.rate, found.macro) == (None, None)


def test_executions_without_a_trace_count_through_output_jsonl(tmp_path: Path) -> None:
    def line(number: int, status: str, score: float | None, **more: Any) -> str:
        metadata = {"scenario_id": "s", "run_number": number, "status": status, "config": "time", **more}
        return json.dumps({"task_id": "s", "trace_id": None, "score": score, "metadata": metadata})

    lines = [
        line(1, "failed", 0.0, exception_type="ScenarioTimeoutError"),
        line(2, "no_validation", None),
        line(3, "success", 1.0),
    ]
    (tmp_path / "output.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = gsr(execution_of_trace(one) for one in read_traces(tmp_path) if isinstance(one, Trace))
    assert (found.micro.executions, found.micro.scored, found.micro.rate) == (3, 2, 0.5)
    assert list(found.by_capability) == ["time"]


@pytest.mark.shared
def test_real_executions_are_counted_as_their_rows_say(shared: Path) -> None:
    names = ["success", "fail_soft_lastturn", "fail_counts_turn0", "no_judge", "judge_exception_lastturn"]
    traces = [one for name in names for one in read_traces(shared / f"gaia2/gaia2_{name}") if isinstance(one, Trace)]
    executions = [execution_of_trace(trace) for trace in traces]
    found = gsr(executions)
    # hf_row.json: scores 1, 0, 0, none, 0 (the judge raised)
    assert (found.micro.executions, found.micro.scored, found.micro.rate) == (5, 4, 0.25)
    assert [one.reason for one in executions if one.judge_score is None] == [NO_JUDGE, JUDGE_RAISED]


@pytest.mark.shared
def test_a_real_benchmark_gives_the_rates_of_its_own_statistics(shared: Path) -> None:
    home = shared / "gaia2/bench_cli"
    told = json.loads((home / "benchmark_stats.json").read_bytes())["statistics"]["global"]
    traces = [one for one in read_traces(home) if isinstance(one, Trace)]
    found = gsr(map(execution_of_trace, traces))
    assert (found.micro.executions, found.micro.scored, found.micro.succeeded) == (
        told["total_runs"],
        told["validated_runs"],
        told["success_runs"],
    )
    assert found.micro.rate == told["micro_success_rate"] / 100
    assert found.macro == told["macro_success_rate"] / 100
    assert (found.micro.scenarios, found.micro.pass_at_k, found.micro.pass_k) == (
        told["total_scenarios"],
        told["pass_at_k"],
        told["pass_k"],
    )
