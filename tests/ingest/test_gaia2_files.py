"""GAIA2 in all its other forms: lite files, files of one execution, rows, benchmark outputs, gaia2-cli folders."""

import io
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracejury.ingest.formats.gaia2.execution_outcome import EXECUTION_RAISED, JUDGE_RAISED, NO_JUDGE
from tracejury.ingest.readers import read_bytes, read_files, read_traces, units
from tracejury.ingest.trace import Rejected, Span, Trace

SMALL = Path(__file__).parent / "gaia2"
NAME = "scenario_ficus_run_1_0a1b2c3d"


def content(form: str) -> Any:
    return json.loads((SMALL / form / f"{NAME}.json").read_text(encoding="utf-8"))


def one(path: Path) -> Trace:
    (trace,) = read_traces(path)
    assert isinstance(trace, Trace), trace
    return trace


def read(value: Any, file: str = f"{NAME}.json") -> list[Trace | Rejected]:
    return list(read_bytes(json.dumps(value).encode(), file=file))


def folder(tmp_path: Path, *forms: str) -> Path:
    for form in forms:
        (tmp_path / form).mkdir(parents=True)
        shutil.copy(SMALL / form / f"{NAME}.json", tmp_path / form / f"{NAME}.json")
    return tmp_path


def score(trace: Trace) -> float | None:
    assert trace.outcome is not None
    return trace.outcome.score


def kinds(trace: Trace) -> dict[str, int]:
    return dict(Counter(span.kind for span in trace.spans))


def said(trace: Trace, agent: str) -> list[tuple[Any, ...]]:
    """What each model call that succeeded was sent and answered."""
    return [
        (
            [(trace.messages[m].role, (trace.messages[m].content or "").rstrip("\n")) for m in span.input_messages],
            [trace.messages[m].content for m in span.output_messages],
            span.prompt_tokens,
            span.turn,
            span.end_time,
            span.clock,
            span.attributes.get("format_retries"),
        )
        for span in trace.spans
        if span.kind == "LLM" and span.status == "OK" and span.agent == agent
    ]


def call(span: Span) -> tuple[Any, ...]:
    told = (span.attributes.get(key) for key in ("event_time", "nested", "oracle_match", "automatic"))
    return (span.tool_name, span.output, span.status, span.turn, span.agent, span.clock, span.end_time, *told)


def calls(trace: Trace) -> list[tuple[Any, ...]]:
    return [call(span) for span in trace.spans if span.kind == "TOOL"]


# Lite files


def test_a_lite_file_alone_gives_turns_agents_model_calls_and_tools() -> None:
    (trace,) = read(content("lite"))
    assert isinstance(trace, Trace)
    # CHAIN: execution, 2 turns, the plan. EVENT: notification, and the two errors that no tool call bears.
    assert kinds(trace) == {"CHAIN": 4, "AGENT": 3, "LLM": 6, "TOOL": 6, "EVENT": 3}
    assert trace.expected_events == ()
    assert score(trace) == 0.0


def test_a_lite_file_does_not_know_when_a_model_call_began() -> None:
    (trace,) = read(content("lite"))
    assert isinstance(trace, Trace)
    assert {span.duration_s for span in trace.spans if span.kind == "LLM"} == {None}


def test_rows_of_a_sub_agent_keep_the_order_of_the_conversation_on_the_wall_clock() -> None:
    (trace,) = read(content("lite"))
    assert isinstance(trace, Trace)
    assert [span.name for span in trace.spans if span.agent == "Garden" and span.clock == "wall"] == [
        "Garden",
        "llm",
        "Garden__water",
        "llm",
        "final_answer",
    ]


def test_the_answer_of_an_automatic_message_is_not_known_from_the_lite_file() -> None:
    (trace,) = read(content("lite"))
    assert isinstance(trace, Trace)
    assert trace.final_answer is None


def test_a_lite_file_without_conversation_is_refused() -> None:
    (found,) = read(content("lite") | {"per_agent_interaction_histories": {}})
    assert isinstance(found, Rejected)
    assert "hf or gui file" in found.remedy


def test_a_sub_agent_whose_call_is_not_found_stands_under_the_execution_with_a_warning() -> None:
    lite = content("lite")
    main = next(iter(lite["per_agent_interaction_histories"].values()))
    for message in main:
        message["content"] = message["content"].replace("Garden__expert_agent", "Garden__ask")
    (trace,) = read(lite)
    assert isinstance(trace, Trace)
    (sub,) = [span for span in trace.spans if span.kind == "AGENT" and span.clock == "wall"]
    assert sub.parent_span_id == "execution"
    assert sub.warnings[0].startswith("unknown_parent")


def test_token_lists_that_do_not_fit_the_answers_are_kept_and_warned_of() -> None:
    lite = content("lite")
    next(iter(lite["per_agent_llm_usage_stats"].values()))["prompt_tokens"].append(777)
    (trace,) = read(lite)
    assert isinstance(trace, Trace)
    assert any(warning.startswith("usage_mismatch") for warning in trace.all_warnings)
    assert "777" in json.dumps(trace.attributes["llm_usage_rest"])


# The files of one execution together


def test_hf_and_lite_of_one_execution_become_one_trace(tmp_path: Path) -> None:
    trace = one(folder(tmp_path, "hf", "lite"))
    assert (trace.trace_id, trace.attributes["form"]) == (NAME, "hf+lite")
    assert [event.matched for event in trace.expected_events] == [True, True, None]
    assert trace.final_answer == "Max iterations (5) reached. Stopping."


def test_the_pair_tells_of_the_conversation_what_the_gui_file_tells(tmp_path: Path) -> None:
    pair, gui = one(folder(tmp_path / "pair", "hf", "lite")), one(folder(tmp_path / "gui", "gui"))
    for agent in ("default", "Garden"):
        assert said(pair, agent) == said(gui, agent)
    assert calls(pair) == calls(gui)


@pytest.mark.shared
def test_real_pairs_tell_of_the_conversation_what_their_gui_files_tell(shared: Path, tmp_path: Path) -> None:
    compared = 0
    for execution in sorted((shared / "gaia2").iterdir()):
        forms = {form: next(iter((execution / form).glob("*.json")), None) for form in ("gui", "hf", "lite")}
        if None in forms.values() or execution.name == "tutorial_oracle":
            continue
        traces = {}
        for wanted in (("gui",), ("hf", "lite")):
            home = tmp_path / execution.name / "+".join(wanted)
            for form in wanted:
                source = forms[form]
                assert source is not None
                (home / form).mkdir(parents=True)
                shutil.copy(source, home / form / source.name)
            traces[wanted[0]] = one(home)
        for agent in {span.agent for span in traces["gui"].spans if span.kind == "LLM"}:
            assert said(traces["hf"], str(agent)) == said(traces["gui"], str(agent)), execution.name
        assert calls(traces["hf"]) == calls(traces["gui"]), execution.name
        assert not traces["hf"].all_warnings or execution.name == "gaia2_judge_exception_lastturn"
        compared += 1
    assert compared >= 10


def test_gui_and_lite_together_take_rows_from_the_log_and_the_rationale_from_the_lite_file(tmp_path: Path) -> None:
    trace = one(folder(tmp_path, "gui", "hf", "lite"))
    assert trace.attributes["form"] == "gui+hf+lite"
    assert trace.outcome is not None
    assert (trace.outcome.score, trace.spans[0].status) == (0.0, "ERROR")
    assert (trace.outcome.rationale or "").startswith("Failure: Agent did not perform")
    assert not any(warning.startswith("outcome_unclear") for warning in trace.warnings)


def test_the_kept_bytes_of_a_pair_give_the_same_trace_again(tmp_path: Path) -> None:
    trace = one(folder(tmp_path, "hf", "lite"))
    (again,) = read_bytes(trace.source.data, file="kept")
    assert isinstance(again, Trace)
    assert (again.trace_id, again.spans, again.messages, again.outcome, again.attributes) == (
        trace.trace_id,
        trace.spans,
        trace.messages,
        trace.outcome,
        trace.attributes,
    )


def test_reading_a_folder_twice_gives_equal_traces(tmp_path: Path) -> None:
    home = folder(tmp_path, "gui", "hf", "lite")
    assert list(read_traces(home)) == list(read_traces(home))


def test_a_broken_lite_file_is_named_and_the_hf_file_is_read(tmp_path: Path) -> None:
    home = folder(tmp_path, "hf", "lite")
    (home / "lite" / f"{NAME}.json").write_text('{"per_agent_interaction_histories": {"agent_1": 7}}', encoding="utf-8")
    rejected, trace = read_traces(home)
    assert isinstance(rejected, Rejected)
    assert rejected.place == "per_agent_interaction_histories.agent_1"
    assert isinstance(trace, Trace)
    assert trace.attributes["form"] == "hf"


def test_files_of_one_name_that_are_no_gaia2_are_left_to_other_readers(tmp_path: Path) -> None:
    home = folder(tmp_path, "hf")
    (home / "lite").mkdir()
    (home / "lite" / f"{NAME}.json").write_text('{"hello": 1}', encoding="utf-8")
    results = list(read_traces(home))
    assert sorted(type(result).__name__ for result in results) == ["Rejected", "Trace"]


# The five cases behind "Invalid" (formats page of GAIA2, 2.5)

CASES = [
    # decision, has_exception (hf), rationale (lite), score, reason, status of the root row
    ("Valid", False, "None", 1.0, None, "OK"),
    ("Invalid", False, "Failure: \nAgent and oracle counters do not match", 0.0, None, "ERROR"),
    ("Invalid", True, "Exception", None, JUDGE_RAISED, "UNSET"),
    ("Invalid", False, "None", None, NO_JUDGE, "UNSET"),
    ("Invalid", True, "None", 0.0, EXECUTION_RAISED, "ERROR"),
]


@pytest.mark.parametrize(("decision", "raised", "rationale", "expected", "reason", "status"), CASES)
def test_the_pair_tells_the_cases_of_the_outcome_apart(
    tmp_path: Path, decision: str, raised: bool, rationale: str, expected: float | None, reason: str | None, status: str
) -> None:
    hf, lite = content("hf"), content("lite")
    hf["metadata"]["annotation"]["validation_decision"] = lite["validation_decision"] = decision
    hf["metadata"]["definition"] |= {"has_exception": raised, "exception_message": "it broke" if raised else None}
    lite["validation_rationale"] = rationale
    for form, value in (("hf", hf), ("lite", lite)):
        (tmp_path / form).mkdir()
        (tmp_path / form / "execution.json").write_text(json.dumps(value), encoding="utf-8")
    trace = one(tmp_path)
    assert trace.outcome is not None
    assert (trace.outcome.score, trace.outcome.reason, trace.spans[0].status) == (expected, reason, status)
    assert trace.outcome.rationale == (None if rationale == "None" else rationale)
    assert any(w.startswith("judge_exception") for w in trace.warnings) == (reason == JUDGE_RAISED)


@pytest.mark.parametrize(
    ("row", "expected", "reason"),
    [
        ({"status": "success", "score": 1.0, "rationale": "None"}, 1.0, None),
        ({"status": "failed", "score": 0.0, "rationale": "Failure: x", "has_exception": False}, 0.0, None),
        ({"status": "failed", "score": 0.0, "rationale": "Exception", "has_exception": True}, None, JUDGE_RAISED),
        ({"status": "no_validation", "has_exception": False}, None, NO_JUDGE),
        (
            {"status": "failed", "score": 0.0, "has_exception": True, "exception_message": "it broke"},
            0.0,
            EXECUTION_RAISED,
        ),
    ],
)
def test_a_leaderboard_row_tells_the_cases_of_the_outcome_apart(
    row: dict[str, Any], expected: float | None, reason: str | None
) -> None:
    (trace,) = read({"scenario_id": "scenario_ficus", "run_number": 1, "data": json.dumps(content("hf")), **row})
    assert isinstance(trace, Trace)
    assert trace.outcome is not None
    assert (trace.outcome.score, trace.outcome.reason) == (expected, reason)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("execution", "expected", "reason"),
    [
        ("gaia2_success", 1.0, None),
        ("gaia2_fail_soft_lastturn", 0.0, None),
        ("gaia2_fail_counts_turn0", 0.0, None),
        ("gaia2_no_judge", None, NO_JUDGE),
        ("gaia2_judge_exception_lastturn", None, JUDGE_RAISED),
        ("tutorial_maxiter6", None, NO_JUDGE),
    ],
)
def test_real_executions_have_their_outcome(
    shared: Path, execution: str, expected: float | None, reason: str | None
) -> None:
    traces = [found for found in read_traces(shared / "gaia2" / execution) if isinstance(found, Trace)]
    assert len(traces) == 1
    assert traces[0].outcome is not None
    assert (traces[0].outcome.score, traces[0].outcome.reason) == (expected, reason)


def test_no_row_quotes_the_rationale_since_it_tells_what_the_oracle_expected(tmp_path: Path) -> None:
    trace = one(folder(tmp_path, "gui", "hf", "lite"))
    assert "oracle" in (trace.outcome.rationale if trace.outcome and trace.outcome.rationale else "")
    shown = [text for span in trace.spans for text in (span.status_message, span.input, span.output) if text]
    assert not [text for text in shown if "oracle" in text]


def test_an_execution_that_raised_shows_its_exception() -> None:
    (trace,) = read(
        {
            "scenario_id": "s",
            "status": "failed",
            "data": json.dumps(content("hf")),
            "has_exception": True,
            "exception_message": "it broke",
        }
    )
    assert isinstance(trace, Trace)
    assert (trace.spans[0].status, trace.spans[0].status_message) == ("ERROR", "it broke")


# Rows


def rows() -> list[dict[str, Any]]:
    data = json.dumps(content("hf"))
    base = {"scenario_id": "scenario_ficus", "data": data, "config": "adaptability", "phase_name": "noise"}
    return [
        {**base, "run_number": 1, "status": "success", "score": 1.0, "run_config": '{"model": "made-up-model"}'},
        {**base, "run_number": 2, "status": "failed", "score": 0.0, "rationale": "Failure: late"},
        {
            "scenario_id": "scenario_ficus",
            "run_number": 3,
            "status": "failed",
            "exception_type": "ScenarioTimeoutError",
        },
    ]


def as_parquet(values: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    names = sorted({name for value in values for name in value})
    pq.write_table(pa.Table.from_pylist([{name: value.get(name) for name in names} for value in values]), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["list", "lines", "parquet"])
def test_rows_are_read_from_json_json_lines_and_parquet(form: str) -> None:
    data = {
        "list": lambda: json.dumps(rows()).encode(),
        "lines": lambda: "\n".join(map(json.dumps, rows())).encode(),
        "parquet": lambda: as_parquet(rows()),
    }[form]()
    first, second, lost = read_bytes(data, file="rows")
    assert isinstance(first, Trace)
    assert isinstance(second, Trace)
    assert first.trace_id == "scenario_ficus_adaptability_noise_made-up-model_run_1"
    assert (score(first), score(second)) == (1.0, 0.0)
    assert first.attributes["capability"] == "adaptability"
    assert first.attributes["row"]["run_config"] == {"model": "made-up-model"}  # type: ignore[index, call-overload]
    assert isinstance(lost, Trace)
    assert (lost.trace_id, len(lost.spans), score(lost)) == ("scenario_ficus_run_3", 1, None)
    assert lost.outcome is not None
    assert lost.outcome.exception_type == "ScenarioTimeoutError"


def test_a_data_set_row_of_a_scenario_that_never_ran_is_refused_as_such() -> None:
    scenario = content("hf") | {"completed_events": []}
    row = {"id": "x", "scenario_id": "scenario_ficus", "split": "validation", "data": json.dumps(scenario)}
    for data in (json.dumps([row]).encode(), as_parquet([row])):
        (found,) = read_bytes(data, file="rows")
        assert isinstance(found, Rejected)
        assert "never ran" in found.reason
        assert "are-benchmark" in found.remedy


# Benchmark outputs


def benchmark(tmp_path: Path, *lines: dict[str, Any]) -> Path:
    home = folder(tmp_path, "hf")
    (home / "output.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return home


def line(trace_id: str | None, status: str, score: float | None, **metadata: Any) -> dict[str, Any]:
    metadata = {"scenario_id": "scenario_ficus", "run_number": 1, "status": status, **metadata}
    return {"task_id": "scenario_ficus", "trace_id": trace_id, "score": score, "metadata": metadata}


def test_output_jsonl_settles_the_outcome_of_an_hf_file(tmp_path: Path) -> None:
    home = benchmark(tmp_path, line(f"somewhere/hf/{NAME}.json", "failed", 0.0, rationale="Failure: too late"))
    trace = one(home)
    assert trace.outcome is not None
    assert (trace.outcome.score, trace.outcome.rationale) == (0.0, "Failure: too late")


def test_output_jsonl_settles_hf_files_that_lie_beside_it(tmp_path: Path) -> None:
    home = benchmark(tmp_path, line(f"somewhere/{NAME}.json", "success", 1.0))
    shutil.move(home / "hf" / f"{NAME}.json", home / f"{NAME}.json")
    assert score(one(home)) == 1.0


def test_an_execution_without_a_trace_file_is_an_execution_with_its_status_and_says_so(tmp_path: Path) -> None:
    home = benchmark(
        tmp_path,
        line(f"somewhere\\hf\\{NAME}.json", "success", 1.0),
        line(None, "failed", 0.0, run_number=2, exception_type="ScenarioTimeoutError"),
        line("somewhere/hf/gone.json", "failed", 0.0, run_number=3),
    )
    trace, timeout, gone = (found for found in read_traces(home) if isinstance(found, Trace))
    assert len(trace.spans) > 1
    assert (timeout.trace_id, timeout.source.place) == ("scenario_ficus_run_2_0a1b2c3d", "output.jsonl line 2")
    assert (len(timeout.spans), score(timeout), len(gone.spans), score(gone)) == (1, None, 1, 0.0)
    assert timeout.outcome is not None
    assert timeout.outcome.exception_type == "ScenarioTimeoutError"
    assert gone.trace_id == "gone"
    assert any("gone.json was not given" in warning for warning in gone.warnings)


def test_statistics_that_count_other_executions_are_named_and_alone_are_no_trace(tmp_path: Path) -> None:
    home = benchmark(tmp_path, line(f"hf/{NAME}.json", "success", 1.0))
    statistics = {"statistics": {"per_capability": {}, "global": {"total_runs": 5}}}
    (home / "benchmark_stats.json").write_text(json.dumps(statistics), encoding="utf-8")
    trace, found = read_traces(home)
    assert isinstance(trace, Trace)
    assert isinstance(found, Rejected)
    assert "count 5 executions, but output.jsonl 1" in found.reason
    (alone,) = read(statistics, "benchmark_stats.json")
    assert isinstance(alone, Rejected)
    assert "statistics of 5 benchmark executions" in alone.reason


@pytest.mark.shared
def test_a_real_benchmark_folder_gives_its_four_executions_and_nothing_else(shared: Path) -> None:
    found = list(read_traces(shared / "gaia2/bench_cli"))
    assert all(isinstance(trace, Trace) for trace in found)
    assert [len(trace.spans) for trace in found if isinstance(trace, Trace)] == [165] * 4


def test_a_benchmark_folder_read_in_units_gives_what_it_gives_as_a_whole(tmp_path: Path) -> None:
    home = benchmark(
        tmp_path,
        line(f"hf/{NAME}.json", "success", 1.0),
        line(None, "failed", 0.0),
        line("hf/two.json", "failed", 0.0),
    )
    shutil.copy(home / "hf" / f"{NAME}.json", home / "hf" / "two.json")
    (home / "other.json").write_text('{"hello": 1}', encoding="utf-8")
    whole = sorted(map(repr, read_traces(home)))
    assert len(whole) == 4  # two traces, the execution without one, the file that is no trace
    assert sorted(repr(found) for unit in units(home) for found in read_files(unit)) == whole


# gaia2-cli


def test_a_gaia2_cli_folder_is_one_trace() -> None:
    trace = one(SMALL / "cli")
    assert (trace.trace_id, kinds(trace)) == ("scenario_ficus_cli", {"CHAIN": 2, "LLM": 3, "TOOL": 2, "EVENT": 2})
    assert [span.name for span in trace.spans if span.kind in {"LLM", "TOOL"}] == [
        "llm",
        "Garden__water",
        "llm",
        "llm",
        "AgentUserInterface__send_message_to_user",
    ]
    assert (trace.goal, trace.final_answer) == ("Water the ficus.", "The ficus is watered.")
    assert [(event.event_id, event.matched) for event in trace.expected_events] == [
        ("OracleEvent-AGENT-o1", True),
        ("OracleEvent-AGENT-o2", False),
    ]
    assert score(trace) == 0.0


def test_model_calls_of_gaia2_cli_have_messages_tool_calls_and_tokens() -> None:
    first, second, third = [span for span in one(SMALL / "cli").spans if span.kind == "LLM"]
    messages = one(SMALL / "cli").messages
    assert messages[first.output_messages[0]].tool_calls[0].name == "bash"
    assert (first.prompt_tokens, first.completion_tokens, first.duration_s) == (40, 9, 1.5)
    assert first.output_messages[0] in second.input_messages
    assert (third.status, third.status_message, third.output_messages) == ("ERROR", "HTTP status 503", ())


def test_what_a_judge_of_gaia2_cli_wrote_is_marked_as_gold() -> None:
    (log,) = one(SMALL / "cli").logs
    assert log.holds_answer
    assert "OracleEvent" not in json.dumps(one(SMALL / "cli").attributes)


def test_a_result_of_gaia2_cli_alone_is_no_trace() -> None:
    (found,) = read_traces(SMALL / "cli/scenario_ficus_cli/result.json")
    assert isinstance(found, Rejected)
    assert "whole folder" in found.remedy
