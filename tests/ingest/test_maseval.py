"""MASEval reports become traces: rows, messages joined to calls, outcome; before and after 0.5.0."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracejury.ingest.formats import maseval
from tracejury.ingest.formats.gaia2.execution_outcome import JUDGE_RAISED
from tracejury.ingest.readers import read_bytes, read_traces
from tracejury.ingest.trace import Rejected, Source, Trace

REPORT = Path(__file__).parent / "gaia2/maseval/report.json"


def report(**changes: Any) -> dict[str, Any]:
    reports: list[dict[str, Any]] = json.loads(REPORT.read_text(encoding="utf-8"))
    return reports[0] | changes


def one(value: dict[str, Any]) -> Trace:
    (trace,) = read_bytes(json.dumps([value]).encode(), file="report.json")
    assert isinstance(trace, Trace), trace
    assert trace.format == "maseval"
    return trace


def test_a_report_is_an_execution_with_model_calls_and_tools_in_order_of_time() -> None:
    trace = one(report())
    assert [(span.kind, span.name, span.status) for span in trace.spans] == [
        ("CHAIN", "local_ficus_0_made-up-model", "OK"),
        ("LLM", "llm", "OK"),
        ("TOOL", "Garden__water", "ERROR"),
        ("LLM", "llm", "ERROR"),
        ("LLM", "llm", "OK"),
        ("TOOL", "Garden__water", "OK"),
        ("LLM", "llm", "OK"),
        ("TOOL", "AgentUserInterface__send_message_to_user", "OK"),
    ]
    assert {span.clock for span in trace.spans} == {"wall"}


def test_the_text_of_a_call_is_found_by_how_many_messages_it_was_sent() -> None:
    trace = one(report())
    calls = [span for span in trace.spans if span.kind == "LLM"]
    answers = [trace.messages[m].content for call in calls for m in call.output_messages]
    assert [len(answer or "") for answer in answers] == [
        call.attributes["response_length"] for call in calls if call.status == "OK"
    ]
    assert [len(call.input_messages) for call in calls] == [1, 0, 3, 5]
    assert (calls[1].status_message, calls[1].output_messages) == ("RateLimitError: 429 too many requests", ())
    assert [call.duration_s for call in calls] == [0.25, 0.5, 0.25, 0.25]


def test_an_invocation_has_one_moment_and_keeps_simulated_times_apart() -> None:
    first = next(span for span in one(report()).spans if span.kind == "TOOL")
    assert (first.duration_s, first.output, first.status_message) == (0.0, None, "no such plant")
    assert first.attributes["meta"]["simulation_time_before"] == 1700000003.25  # type: ignore[index, call-overload]


def test_goal_answer_and_outcome() -> None:
    trace = one(report())
    assert (trace.goal or "").startswith("Received at: 2023-11-14")
    assert trace.final_answer == "The ficus is watered."
    assert trace.outcome is not None
    assert (trace.outcome.score, trace.outcome.rationale, trace.outcome.row_status) == (1.0, None, "success")


def test_token_totals_stand_at_the_execution_since_calls_have_none() -> None:
    trace = one(report())
    assert [span.prompt_tokens for span in trace.spans] == [321, *[None] * 7]
    assert trace.attributes["usage"]["models"]["agent_model"]["input_tokens"] == 321  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("changes", "score", "reason"),
    [
        ({"eval": [{"gsr": 0.0, "status": "failed", "rationale": "Failure: late"}]}, 0.0, None),
        ({"eval": [{"gsr": 0.0, "status": "failed", "rationale": "Exception"}]}, None, JUDGE_RAISED),
        ({"eval": [{"gsr": None, "status": "exception", "error": "no key"}]}, None, "verdict exception: no key"),
        ({"eval": None}, None, "the report holds no GAIA2 verdict"),
        ({"status": "environment_error"}, None, "status environment_error: the task did not get as far as a verdict"),
    ],
)
def test_an_execution_without_a_score_says_why(
    changes: dict[str, Any], score: float | None, reason: str | None
) -> None:
    outcome = one(report(**changes)).outcome
    assert outcome is not None
    assert (outcome.score, outcome.reason) == (score, reason)


def test_a_report_from_before_0_5_0_without_usage_and_task_is_read() -> None:
    old = report()
    del old["usage"], old["task"]
    assert len(one(old).spans) == 8


def test_a_set_up_that_failed_is_an_execution_of_its_root_alone() -> None:
    old_form = {
        "task_id": "local_ficus",
        "repeat_idx": 1,
        "status": "setup_failed",
        "error": {"error_type": "ValueError", "error_message": "no scenario"},
        "traces": {},
        "config": {},
        "eval": None,
    }
    trace = one(old_form)
    assert (trace.trace_id, len(trace.spans)) == ("local_ficus_1", 1)
    assert trace.outcome is not None
    assert (trace.outcome.score, trace.outcome.row_status) == (None, "setup_failed")
    assert (trace.outcome.exception_type, trace.outcome.exception_message) == ("ValueError", "no scenario")
    assert trace.warnings == ("no_trace: the execution left no trace; its status and score count",)


def test_json_lines_of_reports_are_read_line_by_line() -> None:
    data = (json.dumps(report()) + "\n{broken\n" + json.dumps(report(repeat_idx=1)) + "\n").encode()
    first, broken, second = maseval.read(Source(file="r.jsonl", data=data))
    assert isinstance(first, Trace)
    assert isinstance(broken, Rejected)
    assert "line 2" in broken.place
    assert isinstance(second, Trace)
    assert second.trace_id == "local_ficus_1_made-up-model"


@pytest.mark.shared
def test_real_reports_give_a_root_with_calls_and_tools(shared: Path) -> None:
    rows = {}
    for path in sorted((shared / "gaia2/maseval").glob("report*.json")):
        for found in read_traces(path):
            rows[path.stem] = len(found.spans) if isinstance(found, Trace) else found.reason.split(",")[0]
    # Six steps have six calls and six invocations; the fifth execution stopped after five, and ARE wrote to the user.
    assert rows == {
        "report_fail_counts": 13,
        "report_fail_soft": 13,
        "report_judge_offline": 13,
        "report_maxiter": 12,
        "report_single_setup_failed": 1,
        "report_single_success": 13,
        "report_success": 13,
    }
