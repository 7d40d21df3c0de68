"""The published small inputs that break other tools (`../shared/cases/spans.jsonl`), each with its right answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.trail_files import read_one

from tracejury.ingest.gaps import GAPS
from tracejury.ingest.labels import Annotation, read_annotation
from tracejury.ingest.trace import Trace

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def cases(shared: Path) -> dict[str, Any]:
    lines = (shared / "cases" / "spans.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["case"]: case["input"] for case in map(json.loads, lines)}


def leaf_tokens(trace: Trace) -> int:
    return sum(span.total_tokens or 0 for span in trace.leaf_llm_spans())


def test_every_case_has_a_test_here(cases: dict[str, Any]) -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    assert [case for case in cases if f'cases["{case}"]' not in here] == []


def test_tokens_of_an_agent_are_not_added_to_those_of_its_calls(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-01"])
    assert leaf_tokens(trace) == 12 + 18
    assert trace.spans[0].total_tokens == 30  # the agent's own column still says what the source says


def test_tokens_of_a_call_within_a_tool_are_counted_once(cases: dict[str, Any]) -> None:
    assert leaf_tokens(read_one(cases["span-02"])) == 10


def test_a_call_near_the_attribute_limit_is_flagged_as_truncated(cases: dict[str, Any]) -> None:
    (call,) = read_one(cases["span-04"]).spans
    assert [w.split(":")[0] for w in call.warnings] == ["evicted_attributes"]
    assert "may be incomplete" in call.warnings[0]
    assert len(call.input_messages) == 60


def test_messages_after_an_evicted_head_keep_their_numbers(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-05"])
    (call,) = trace.spans
    said = [trace.messages[position] for position in call.input_messages]
    assert (said[0].role, said[0].content) == (None, None)  # nothing proves them: marked missing
    assert (said[1].role, said[1].content) == (None, None)
    assert (said[2].role, said[2].content) == (None, "m2")
    assert (said[3].role, said[3].content) == ("user", "m3")
    assert "messages 0, 1, 2" in call.warnings[0]


def test_an_evicted_head_is_rebuilt_from_the_previous_call_of_the_same_agent(cases: dict[str, Any]) -> None:
    late = cases["span-05"]["spans"][0]
    roles = ("system", "user", "assistant", "user")
    early = json.loads(json.dumps(late))
    early.update(span_id="9999999999999999", timestamp="2025-03-19T15:59:00.000000Z")
    early["span_attributes"] = {"openinference.span.kind": "LLM"}
    for number, role in enumerate(roles):
        early["span_attributes"][f"llm.input_messages.{number}.message.role"] = role
        early["span_attributes"][f"llm.input_messages.{number}.message.content"] = f"m{number}"
    trace = read_one({**cases["span-05"], "spans": [early, late]})
    said = [trace.messages[position] for position in trace.spans[1].input_messages]
    assert [(m.role, m.content) for m in said[:4]] == list(zip(roles, ("m0", "m1", "m2", "m3"), strict=True))
    assert "copied from 9999999999999999" in trace.spans[1].warnings[0]


def test_an_evicted_head_is_not_rebuilt_from_a_call_that_says_something_else(cases: dict[str, Any]) -> None:
    late = cases["span-05"]["spans"][0]
    early = json.loads(json.dumps(late))
    early.update(span_id="9999999999999999", timestamp="2025-03-19T15:59:00.000000Z")
    early["span_attributes"] = {"openinference.span.kind": "LLM"}
    for number in range(4):
        early["span_attributes"][f"llm.input_messages.{number}.message.role"] = "user"
        early["span_attributes"][f"llm.input_messages.{number}.message.content"] = f"m{number}" if number < 3 else "no"
    trace = read_one({**cases["span-05"], "spans": [early, late]})
    assert trace.messages[trace.spans[1].input_messages[0]].content is None


def test_a_call_without_output_is_no_error(cases: dict[str, Any]) -> None:
    (call,) = read_one(cases["span-06"]).spans
    assert (call.status, call.output, call.output_messages) == ("OK", None, ())
    assert len(call.input_messages) == 63


def test_a_tool_without_parent_is_a_second_root(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-07"])
    assert [(span.name, span.depth) for span in trace.spans] == [
        ("CodeAgent.run", 0), ("Step 1", 1), ("FinalAnswerTool", 0),
    ]  # fmt: skip
    assert trace.final_answer == "33149"  # the agent has no output: the answer is the tool's argument


def test_a_trace_without_calls_still_gives_its_task_and_answer(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-10"])
    assert (trace.goal, trace.final_answer) == ("2+2?", "4")
    assert trace.spans[0].input == '{"task": "2+2?"}'


def test_messages_are_read_from_the_input_where_no_flattened_ones_are(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-11"])
    (call,) = trace.spans
    assert [(trace.messages[p].role, trace.messages[p].content) for p in call.input_messages] == [("user", "hi")]
    assert call.input == '{"kwargs":{}}'


def test_tool_arguments_that_are_no_json_stay_the_raw_text(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-13"])
    (call,) = trace.messages[trace.spans[0].output_messages[0]].tool_calls
    assert (call.name, call.arguments) == ("q", '"SELECT * FROM t" oops')


def test_null_tool_arguments_stay_null(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-14"])
    (call,) = trace.messages[trace.spans[0].output_messages[0]].tool_calls
    assert (call.name, call.arguments) == ("page_down", None)


def test_nul_in_a_label_becomes_a_readable_escape(cases: dict[str, Any]) -> None:
    (found,) = read_annotation(json.dumps(cases["span-15"]).encode(), file="a.json", trace_id="t")
    assert isinstance(found, Annotation)
    assert found.errors[0].evidence == "hypothetically using frame\\u0000by\\u0000frame analysis"


def test_nul_in_a_span_becomes_a_readable_escape(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-16"])
    assert trace.spans[0].output == "a\\u0000b"
    assert trace.warnings[0].startswith("escaped_text")


def test_a_root_keeps_the_parent_that_is_not_in_the_trace(cases: dict[str, Any]) -> None:
    (span,) = read_one(cases["span-18"]).spans
    assert (span.depth, span.parent_span_id) == (0, "ffffffffffffffff")
    assert span.warnings[0].startswith("orphan")


def test_children_of_a_missing_span_are_roots_all_kept(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-19"])
    assert [(s.name, s.depth) for s in trace.spans] == [("create_agent", 0), ("Step 1", 0), ("Step 2", 0)]
    assert [s.parent_span_id for s in trace.spans] == ["d" * 16, "e" * 16, "e" * 16]


def test_no_orphan_is_dropped(cases: dict[str, Any]) -> None:
    assert len(read_one(cases["span-20"]).spans) == 2


def test_an_identical_duplicate_is_kept_once_and_said(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-22"])
    assert len(trace.spans) == 2
    assert [w.split(":")[0] for w in trace.warnings if w.partition(":")[0] not in GAPS] == ["duplicate_span"]
    assert leaf_tokens(trace) == 8032


def test_an_end_before_the_start_is_clamped_and_flagged(cases: dict[str, Any]) -> None:
    (span,) = read_one(cases["span-23"]).spans
    assert (span.duration_s, span.end_time) == (0.0, span.start_time)
    assert span.warnings[0].startswith("negative_duration: ends 0.5 s before")


def test_token_counts_written_as_text_are_numbers(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-26"])
    (agent,) = trace.spans
    assert (agent.prompt_tokens, agent.completion_tokens, agent.total_tokens) == (3, 1, 4)
    assert (trace.goal, trace.final_answer, agent.agent) == ("2+2?", "4", "CodeAgent")


def test_a_plan_that_stands_only_in_the_output_value_survives(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-28"])
    message = trace.messages[trace.spans[1].output_messages[0]]
    assert (message.role, message.content) == ("assistant", "1. Search\n2. Answer <end_plan>")


def test_an_agent_span_yields_task_and_answer(cases: dict[str, Any]) -> None:
    trace = read_one(cases["span-29"])
    assert (trace.goal, trace.final_answer) == ("q", "33149")
