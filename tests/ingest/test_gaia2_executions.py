"""GAIA2 executions: those without a trace, completed ones, their setting, and what may be counted together."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.build import workspace

from tracejury.ingest.batch import Report, ingest
from tracejury.ingest.check import check_store
from tracejury.ingest.formats.gaia2.execution_outcome import EXECUTION_RAISED, TIME_LIMIT
from tracejury.ingest.formats.gaia2.setting import place_of
from tracejury.ingest.gsr import Execution, execution_of
from tracejury.ingest.readers import read_bytes, read_traces
from tracejury.ingest.store import load, read_transaction
from tracejury.ingest.trace import Rejected, Trace
from tracejury.judging.reports.benchmark_outcomes import executions_of, grouped, outcome_tables
from tracejury.judging.store.workspace import Workspace

SMALL = Path(__file__).parent / "gaia2"
NAME = "scenario_ficus_run_1_0a1b2c3d"


def execution_of_trace(trace: Trace) -> Execution:
    assert trace.outcome is not None
    return execution_of(trace.trace_id, trace.outcome, trace.attributes, duration_s=None)


def content(form: str, **definition: Any) -> Any:
    export = json.loads((SMALL / form / f"{NAME}.json").read_text(encoding="utf-8"))
    if definition:
        export["metadata"]["definition"] |= definition
    return export


def put(folder: Path, form: str, value: Any = None, name: str = NAME) -> None:
    (folder / form).mkdir(parents=True, exist_ok=True)
    (folder / form / f"{name}.json").write_text(json.dumps(value or content(form)), encoding="utf-8")


def one(value: Any, file: str = f"{NAME}.json") -> Trace:
    (trace,) = read_bytes(json.dumps(value).encode(), file=file)
    assert isinstance(trace, Trace), trace
    return trace


def setting(trace: Trace) -> dict[str, Any]:
    found = trace.attributes["benchmark"]
    assert isinstance(found, dict)
    return found


def taken(home: Workspace, *paths: Path, **options: Any) -> Report:
    report = ingest(home.engine, paths, **options)
    assert report.rejected == []
    return report


def problems(home: Workspace) -> list[str]:
    return [one.problem for one in check_store(home.engine) if "abab" not in one.subject]


def output(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def row(number: int, status: str, score: float | None, trace: str | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"scenario_id": "scenario_ficus", "run_number": number, "status": status, **more}
    return {"task_id": "scenario_ficus", "trace_id": trace, "score": score, "metadata": metadata}


# Executions without a trace


def test_an_execution_without_a_trace_has_the_models_of_the_executions_beside_it(tmp_path: Path) -> None:
    home = tmp_path / "standard" / "time"
    put(home, "hf")
    (home / "output.jsonl").write_text(output(row(1, "success", 1.0, f"hf/{NAME}.json"), row(2, "failed", 0.0)))
    _, missing = (trace for trace in read_traces(home) if isinstance(trace, Trace))
    assert setting(missing) == {
        "harness": "ARE",
        "scenario": "scenario_ficus",
        "repeat": 2,
        "capability": "time",
        "phase": "standard",
        "agent": content("hf")["metadata"]["simulation"]["agent_id"],
        "agent_model": content("hf")["metadata"]["simulation"]["model_id"],
    }


def test_the_kept_bytes_of_an_execution_without_a_trace_give_it_again(tmp_path: Path) -> None:
    put(tmp_path / "bench", "hf")
    lines = output(row(1, "success", 1.0, f"hf/{NAME}.json"), row(2, "failed", 0.0), row(3, "failed", 0.0, "hf/x.json"))
    (tmp_path / "bench" / "output.jsonl").write_text(lines)
    home = workspace(tmp_path / "home")
    assert taken(home, tmp_path / "bench").traces == 3
    assert problems(home) == []


def test_an_execution_that_raised_before_its_first_event_scores_zero() -> None:
    raised = content("hf", has_exception=True, exception_type="RuntimeError", exception_message="no agent today")
    raised["completed_events"], raised["metadata"]["annotation"]["validation_decision"] = [], "Invalid"
    trace = one(raised)
    assert trace.outcome is not None
    assert (trace.outcome.score, trace.outcome.reason) == (0.0, EXECUTION_RAISED)
    assert (len(trace.spans), trace.spans[0].status_message) == (1, "no agent today")
    execution = execution_of_trace(trace)
    assert (execution.status, execution.fault, execution.score, execution.judge_score) == (
        "agent_raised",
        "agent",
        0.0,
        None,
    )  # no judge was asked


def test_an_execution_without_a_trace_is_not_offered_to_judges(tmp_path: Path) -> None:
    from tracejury.ingest.store import trace_ids

    put(tmp_path / "bench", "hf")
    lines = output(row(1, "success", 1.0, f"hf/{NAME}.json"), row(2, "failed", 0.0))
    (tmp_path / "bench" / "output.jsonl").write_text(lines)
    home = workspace(tmp_path / "home")
    taken(home, tmp_path / "bench")
    with read_transaction(home.engine) as connection:
        bare = set(trace_ids(connection)) - set(trace_ids(connection, with_steps=True))
    assert bare == {"scenario_ficus_run_2_0a1b2c3d"}


def test_the_time_limit_is_no_verdict_and_zero_as_are_counts_it(tmp_path: Path) -> None:
    (tmp_path / "output.jsonl").write_text(output(row(2, "failed", 0.0, exception_type="ScenarioTimeoutError")))
    (trace,) = read_traces(tmp_path)
    assert isinstance(trace, Trace)
    execution = execution_of_trace(trace)
    assert (execution.score, execution.judge_score, execution.reason) == (0.0, None, TIME_LIMIT)
    assert (execution.status, execution.fault) == ("timeout", "time limit")


# Completing an execution


@pytest.mark.parametrize("order", [("hf", "lite"), ("lite", "hf")])
@pytest.mark.parametrize("together", [True, False])
def test_the_files_of_an_execution_join_whenever_they_come(
    tmp_path: Path, order: Sequence[str], together: bool
) -> None:
    for form in ("hf", "lite"):
        put(tmp_path / "out", form)
    home, paths = workspace(tmp_path / "home"), [tmp_path / "out" / form for form in order]
    reports = [taken(home, *paths)] if together else [taken(home, path) for path in paths]
    assert (sum(one.traces for one in reports), sum(len(one.completed) for one in reports)) == (1, 1)
    (at_once,) = (one for one in read_traces(tmp_path / "out") if isinstance(one, Trace))
    with read_transaction(home.engine) as connection:
        stored = load(connection, NAME)
    assert [span.span_id for span in stored.spans] == [span.span_id for span in at_once.spans]
    assert stored.outcome == at_once.outcome
    assert taken(home, tmp_path / "out").duplicates == 1
    assert problems(home) == []


def test_output_jsonl_ingested_first_is_completed_by_the_traces(tmp_path: Path) -> None:
    put(tmp_path / "out", "hf")
    file = tmp_path / "out" / "output.jsonl"
    file.write_text(output(row(1, "success", 1.0, f"elsewhere/hf/{NAME}.json"), row(2, "failed", 0.0)))
    home = workspace(tmp_path / "home")
    assert (taken(home, file).traces, len(taken(home, tmp_path / "out").completed)) == (2, 2)
    with read_transaction(home.engine) as connection:
        models = {execution.agent_model for execution in executions_of(connection)}
    assert models == {content("hf")["metadata"]["simulation"]["model_id"]}
    assert problems(home) == []


def test_other_content_of_the_same_name_is_refused_with_the_form_that_differs(tmp_path: Path) -> None:
    put(tmp_path / "a", "hf")
    put(tmp_path / "b", "hf", content("hf", seed=99))
    home = workspace(tmp_path / "home")
    taken(home, tmp_path / "a")
    (refused,) = ingest(home.engine, [tmp_path / "b"]).rejected
    assert "in the workspace already" in refused.reason
    assert "the two have different hf files" in refused.reason


def test_an_execution_is_not_changed_under_the_labels_that_name_its_spans(tmp_path: Path) -> None:
    from tracejury.judging.runs.offline import judge_all

    for form in ("hf", "lite"):
        put(tmp_path / "out", form)
    home = workspace(tmp_path / "home")
    taken(home, tmp_path / "out" / "hf")
    judge_all(home.engine, traces=[NAME])
    (refused,) = ingest(home.engine, [tmp_path / "out" / "lite"]).rejected
    assert "it stays unchanged" in refused.reason


# What was executed


@pytest.mark.parametrize(
    ("file", "config", "phase"),
    [
        ("bench/mini/standard/hf/x.json", "mini", "standard"),
        ("bench/noise/search/lite/x.json", "search", "noise"),
        ("standard/my_own/hf/x.json", "my_own", "standard"),
        ("C:\\runs\\agent2agent\\time\\output.jsonl", "time", "agent2agent"),
        ("runs/today/hf/x.json", None, None),
        ("x.json", None, None),
    ],
)
def test_folders_tell_config_and_phase(file: str, config: str | None, phase: str | None) -> None:
    found = place_of(file)
    assert (found.config, found.phase) == (config, phase)


def test_the_file_goes_before_its_folders() -> None:
    told = {"config": "search", "has_tool_augmentation": True, "has_a2a_augmentation": False}
    trace = one(content("hf", **told), file=f"standard/mini/hf/{NAME}.json")
    assert (setting(trace)["capability"], setting(trace)["phase"]) == ("search", "noise")


@pytest.mark.parametrize(
    ("flags", "phase"),
    [
        ({"has_a2a_augmentation": True}, "agent2agent"),
        ({"has_env_events_augmentation": True}, "noise"),
        ({"has_a2a_augmentation": True, "has_tool_augmentation": True}, "agent2agent+noise"),
        ({}, "standard"),
    ],
)
def test_the_phase_is_what_the_file_says_of_augmentations(flags: dict[str, bool], phase: str) -> None:
    names = ("has_a2a_augmentation", "has_tool_augmentation", "has_env_events_augmentation")
    assert setting(one(content("hf", **dict.fromkeys(names, False) | flags)))["phase"] == phase


def test_an_oracle_execution_counts_in_no_rate() -> None:
    oracle = content("hf")
    oracle["metadata"]["runner_config"] = {**(oracle["metadata"]["runner_config"] or {}), "oracle": True}
    execution = execution_of_trace(one(oracle))
    assert (execution.status, execution.score, execution.judge_score) == ("oracle", None, None)


def test_executions_of_different_models_are_never_counted_together(tmp_path: Path) -> None:
    for number, model in enumerate(("one", "two")):
        export = content("hf")
        export["metadata"]["simulation"]["model_id"] = model
        put(tmp_path / "out", "hf", export, name=f"scenario_ficus_run_{number}_{number:08x}")
    home = workspace(tmp_path / "home")
    taken(home, tmp_path / "out")
    with read_transaction(home.engine) as connection:
        rates = outcome_tables(connection)["gaia2_gsr"]
    assert rates[rates["capability"] == "all"]["agent_model"].tolist() == ["one", "two"]


# MASEval


def report(**changes: Any) -> dict[str, Any]:
    reports: list[dict[str, Any]] = json.loads((SMALL / "maseval/report.json").read_text(encoding="utf-8"))
    return reports[0] | changes


def test_a_second_model_on_the_same_tasks_is_another_execution() -> None:
    other = report()
    for model in other["traces"]["models"].values():
        model["model_id"] = "vendor/other model"
    first, second = one([report()], "a.json"), one([other], "b.json")
    assert (first.trace_id, second.trace_id) == ("local_ficus_0_made-up-model", "local_ficus_0_vendor-other-model")
    assert setting(second)["repeat"] == 0


def test_an_answer_that_the_agent_rejected_stands_at_its_own_call() -> None:
    """Two calls whose answers had no action leave an error message each; the third is answered."""

    def message(role: str, content: str) -> dict[str, str]:
        return {"role": role, "content": content}

    def rejection(text: str) -> dict[str, str]:
        return message(
            "user", f"[OUTPUT OF STEP 1] ERROR:\n***\nThe LLM output was not formatted correctly: {text}\n***\n"
        )

    changed = report()
    agents, models = changed["traces"]["agents"], changed["traces"]["models"]
    (agent,), (model,) = agents.values(), models.values()
    agent["messages"] = [
        message("user", "[TASK]: \ndo it\n"),
        rejection("hello"),
        rejection("hi"),
        message("assistant", "Action"),
    ]
    model["logs"] = [
        {"timestamp": f"2026-01-01T00:00:0{n}", "message_count": n + 2, "response_length": size, "status": "success"}
        for n, size in enumerate((5, 2, 6))
    ]
    calls = [span for span in one([changed], "r.json").spans if span.kind == "LLM"]
    assert [call.output for call in calls] == ["hello", "hi", None]
    assert [len(call.output_messages) for call in calls] == [0, 0, 1]
    assert [len(call.input_messages) for call in calls] == [1, 2, 3]


# The shared executions: what each fault showed


def tables(tmp_path: Path, *paths: Path) -> dict[str, Any]:
    home = workspace(tmp_path / "home")
    taken(home, *paths)
    assert problems(home) == []
    with read_transaction(home.engine) as connection:
        return outcome_tables(connection)


@pytest.mark.shared
def test_a_real_benchmark_of_two_configs_has_the_digits_of_its_statistics(shared: Path, tmp_path: Path) -> None:
    home = shared / "cases/gaia2_runs/two_runs_benchmark"
    told = json.loads((home / "benchmark_stats.json").read_bytes())["statistics"]
    rates = tables(tmp_path, home)["gaia2_gsr"].set_index("capability")
    assert rates.loc["all", ["scored", "succeeded"]].tolist() == [9, 4]
    assert rates.loc["macro", "gsr"] == 0.41666666666666663
    for name, estimates in (("all", "micro_"), ("macro", "macro_")):
        assert rates.loc[name, "gsr"] * 100 == pytest.approx(told["global"][f"{estimates}success_rate"], abs=1e-12)
        assert rates.loc[name, "gsr_sd"] * 100 == pytest.approx(told["global"][f"{estimates}success_rate_std"])
        assert rates.loc[name, "gsr_sem"] * 100 == pytest.approx(told["global"][f"{estimates}success_rate_sem"])
    for name, key in (("execution", "execution"), ("mini", "mini_standard")):
        of_capability = told["per_capability"][key]
        assert rates.loc[name, "gsr"] * 100 == pytest.approx(of_capability["success_rate"], abs=1e-12)
        assert rates.loc[name, "gsr_sd"] * 100 == pytest.approx(of_capability["success_rate_std"])
        assert rates.loc[name, "pass_at_k_rate"] * 100 == of_capability["pass_at_k_percent"]
        assert rates.loc[name, "pass_k_rate"] * 100 == of_capability["pass_k_percent"]
    # Judged ones only: without the one that timed out, the one whose judge raised, and the one that raised itself.
    assert rates.loc["all", ["judged", "judged_succeeded"]].tolist() == [6, 4]


@pytest.mark.shared
def test_statistics_above_the_executions_are_compared_with_them(shared: Path, tmp_path: Path) -> None:
    shutil.copytree(shared / "cases/gaia2_runs/two_runs_benchmark", tmp_path / "bench")
    shutil.rmtree(tmp_path / "bench/mini")
    (refused,) = (one for one in read_traces(tmp_path / "bench") if isinstance(one, Rejected))
    assert refused.reason == "the statistics count 9 executions, but execution/standard/output.jsonl 6"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("case", "scored", "succeeded", "judged"),
    [
        ("no_trace_in_gsr", 2, 1, 1),
        ("raised_before_first_event", 1, 0, 0),
        ("maseval_judge_exception", 2, 1, 1),
        ("hf_then_lite", 1, 0, 1),
        ("a2a_phase", 1, 1, 1),
        ("mini_pooled", 3, 1, 2),
    ],
)
def test_shared_executions_count_as_their_harness_counts_them(
    shared: Path, tmp_path: Path, case: str, scored: int, succeeded: int, judged: int
) -> None:
    rates = tables(tmp_path, shared / "cases/gaia2_runs" / case)["gaia2_gsr"].set_index("capability")
    assert rates.loc["all", ["scored", "succeeded", "judged"]].tolist() == [scored, succeeded, judged]


@pytest.mark.shared
def test_maseval_executions_without_a_trace_are_executions_with_a_status(shared: Path, tmp_path: Path) -> None:
    made = tables(tmp_path, shared / "cases/gaia2_runs/maseval_no_trace")
    found = {(execution.status, execution.fault) for execution in made["gaia2_executions"].itertuples()}
    assert {status for status, _ in found} == {"success", "agent_raised", "timeout", "setup_failed"}
    assert ("timeout", "time limit") in found
    assert not made["gaia2_executions"]["reason"].dropna().str.contains(r"\.py|report holds no", regex=True).any()


@pytest.mark.shared
def test_groups_of_all_shared_executions_keep_models_and_harnesses_apart(shared: Path, tmp_path: Path) -> None:
    home = workspace(tmp_path / "home")
    taken(home, *(shared / "cases/gaia2_runs" / name for name in ("two_models", "maseval_two_models", "oracle_run")))
    with read_transaction(home.engine) as connection:
        keys = [key[:1] + key[2:3] for key in grouped(executions_of(connection))]
        rates = outcome_tables(connection)["gaia2_gsr"]
    assert keys == [
        ("ARE", ""),
        ("ARE", "openai/gpt-4o-mini"),
        ("ARE", "scripted/one"),
        ("MASEval", "scripted/one"),
        ("MASEval", "scripted/two"),
    ]
    assert rates["executions"].sum() == 8  # four executions, each in its capability and in all; the oracle one in none
