"""GAIA2 gui and hf files become spans: golden row counts of real exports, and the rules on a small one of ours."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracejury.ingest.formats import gaia2
from tracejury.ingest.trace import Rejected, Source, Span, Trace

SMALL = Path(__file__).parent / "gaia2"
NAME = "scenario_ficus_run_1_0a1b2c3d"
SIM, WALL = 1_700_000_000, 1_790_000_000


def read_one(data: bytes, file: str = f"{NAME}.json") -> Trace:
    (trace,) = gaia2.read(Source(file=file, data=data))
    assert isinstance(trace, Trace), trace
    return trace


def small(form: str, change: Callable[[dict[str, Any]], None] = lambda export: None) -> Trace:
    export = json.loads((SMALL / form / f"{NAME}.json").read_text(encoding="utf-8"))
    change(export)
    return read_one(json.dumps(export).encode())


def refused(data: bytes) -> Rejected:
    (found,) = gaia2.read(Source(file="broken.json", data=data))
    assert isinstance(found, Rejected), found
    return found


def counts(trace: Trace) -> tuple[int, str]:
    kinds = Counter(span.kind for span in trace.spans)
    return len(trace.spans), "/".join(str(kinds[kind]) for kind in ("CHAIN", "AGENT", "LLM", "TOOL", "EVENT"))


def turns(trace: Trace) -> int:
    return sum(span.name.startswith("turn ") and span.kind == "CHAIN" for span in trace.spans)


def matched(trace: Trace) -> tuple[int, int]:
    return len(trace.expected_events), sum(event.matched is True for event in trace.expected_events)


def named(trace: Trace, name: str) -> Span:
    return next(span for span in trace.spans if span.name == name)


def parent_of(trace: Trace, span: Span) -> Span:
    return next(other for other in trace.spans if other.span_id == span.parent_span_id)


# Rows, CHAIN/AGENT/LLM/TOOL/EVENT, turns, (expected, matched): formats page of GAIA2, end of 2.8.
GUI = [
    ("gaia2_success", 49, "16/3/12/12/6", 3, (7, 6)),
    ("gaia2_fail_soft_lastturn", 49, "16/3/12/12/6", 3, (7, 6)),
    ("gaia2_no_judge", 49, "16/3/12/12/6", 3, (7, 0)),
    ("gaia2_fail_counts_turn0", 24, "8/1/6/6/3", 1, (7, 0)),
    ("gaia2_a2a", 45, "14/4/12/12/3", 1, (3, 0)),
    ("tutorial_agent_usage", 37, "12/1/10/10/4", 1, (1, 0)),
    ("tutorial_maxiter6", 24, "8/1/6/7/2", 1, (1, 0)),
    ("tutorial_maxiter80", 246, "82/1/80/81/2", 1, (1, 0)),
    ("tutorial_llm_error", 27, "9/1/7/6/4", 1, (1, 0)),
    ("tutorial_oracle", 6, "2/0/0/1/3", 1, (1, 0)),
]


@pytest.mark.shared
@pytest.mark.parametrize(("execution", "rows", "kinds", "turn_count", "expected"), GUI)
def test_a_real_gui_file_gives_the_golden_rows(
    shared: Path, execution: str, rows: int, kinds: str, turn_count: int, expected: tuple[int, int]
) -> None:
    (path,) = (shared / "gaia2" / execution / "gui").glob("*.json")
    trace = read_one(path.read_bytes(), path.name)
    assert (*counts(trace), turns(trace), matched(trace)) == (rows, kinds, turn_count, expected)
    assert trace.trace_id == path.stem


@pytest.mark.shared
@pytest.mark.parametrize(
    ("execution", "rows"), [("gaia2_success", 20), ("tutorial_agent_usage", 13), ("tutorial_oracle", 6)]
)
def test_a_real_hf_file_gives_the_golden_rows(shared: Path, execution: str, rows: int) -> None:
    (path,) = (shared / "gaia2" / execution / "hf").glob("*.json")
    assert len(read_one(path.read_bytes(), path.name).spans) == rows


@pytest.mark.shared
@pytest.mark.parametrize("form", ["gui", "hf"])
def test_real_files_have_unique_ids_one_root_no_orphans_no_doubts(shared: Path, form: str) -> None:
    paths = sorted((shared / "gaia2").glob(f"*/{form}/*.json"))
    assert len(paths) >= 12
    for path in paths:
        trace = read_one(path.read_bytes(), path.name)
        ids = [span.span_id for span in trace.spans]
        assert len(set(ids)) == len(ids)
        assert [span.span_id for span in trace.spans if span.parent_span_id not in ids] == ["execution"]
        assert {warning.split(":")[0] for warning in trace.all_warnings} <= {"outcome_unclear"}
        assert all(span.duration_s is None or span.duration_s >= 0 for span in trace.spans)


@pytest.mark.shared
def test_sub_agents_of_a_real_execution_stand_under_the_open_expert_call_on_a_wall_clock(shared: Path) -> None:
    (path,) = (shared / "gaia2/gaia2_a2a/gui").glob("*.json")
    trace = read_one(path.read_bytes(), path.name)
    subs = [span for span in trace.spans if span.kind == "AGENT" and span.clock == "wall"]
    assert [span.name for span in subs] == ["Contacts", "Calendar", "EmailClientV2"]
    assert [parent_of(trace, span).tool_name for span in subs] == [f"{span.name}__expert_agent" for span in subs]
    assert {span.start_time // 10**15 for span in trace.spans if span.start_time and span.clock == "sim"} == {1}
    assert all(span.duration_s is None or span.duration_s < 60 for span in trace.spans)


def test_the_small_execution_has_the_rows_its_log_tells_of() -> None:
    trace = small("gui")
    # CHAIN: execution, 2 turns, steps 0-3 and 4 of the main agent, 0-1 of the sub-agent, the plan.
    # AGENT: the main agent once a turn, the sub-agent. LLM: one of each step.
    # EVENT: user, frost, notification, the unknown entry.
    # TOOL: expert call, water, find_plant nested in it, final_answer, message, take_in, the automatic message.
    assert counts(trace) == (32, "11/3/7/7/4")
    assert turns(trace) == 2


def test_an_hf_file_has_turns_calls_and_events_and_no_agent() -> None:
    trace = small("hf")
    assert counts(trace) == (11, "3/0/0/6/2")
    assert {span.agent for span in trace.spans if span.kind == "TOOL"} == {"default"}
    assert [span.turn for span in trace.spans if span.kind == "EVENT"] == [0, 1]


def test_goal_is_the_task_and_the_answer_the_last_message_that_succeeded() -> None:
    trace = small("gui")
    assert trace.goal == "Received at: 2023-11-14 22:13:22\nSender: User\nMessage: Water the ficus and tell me."
    assert trace.final_answer == "Max iterations (5) reached. Stopping."
    assert small("hf").goal == "Water the ficus and tell me."

    def last_message_fails(export: dict[str, Any]) -> None:
        export["completed_events"][-1]["metadata"]["exception"] = "the user is gone"

    assert small("hf", last_message_fails).final_answer == "The ficus is watered."


def test_times_of_the_two_clocks_never_mix() -> None:
    trace = small("gui")
    for span in trace.spans:
        base = SIM if span.clock == "sim" else WALL
        assert span.start_time is not None
        assert 0 <= span.start_time / 1e6 - base < 20, span
    root = trace.spans[0]
    assert (root.start_time, root.end_time) == (SIM * 10**6, SIM * 10**6 + 9_000_000)


def test_a_sub_agent_stands_under_the_call_that_asked_it_and_its_nested_call_under_its_own() -> None:
    trace = small("gui")
    sub = named(trace, "Garden")
    assert (sub.kind, sub.clock, parent_of(trace, sub).tool_name) == ("AGENT", "wall", "Garden__expert_agent")
    nested = named(trace, "Garden__find_plant")
    assert (nested.attributes["nested"], nested.clock, nested.agent) == (True, "sim", "Garden")
    assert parent_of(trace, nested).tool_name == "Garden__water"


def test_reading_order_is_the_order_of_the_log_though_the_clocks_differ() -> None:
    names = [span.name for span in small("gui").spans if span.kind == "TOOL"]
    assert names == [
        "Garden__expert_agent",
        "Garden__water",
        "Garden__find_plant",
        "final_answer",
        "AgentUserInterface__send_message_to_user",
        "Garden__take_in",
        "AgentUserInterface__send_message_to_user",
    ]


def test_a_renamed_event_is_joined_by_time_app_and_function_and_counts_as_matched() -> None:
    trace = small("gui")
    water = named(trace, "Garden__water")
    assert water.attributes["event_id"] == "AGENT-Garden.water-2222"
    assert water.attributes["oracle_match"] == "OracleEvent-AGENT-o1"
    assert water.attributes["full_args"] == {"plant": "ficus", "litres": 1, "tags": ["green"]}
    assert (water.attributes["operation_type"], water.attributes["return_value_type"]) == ("WRITE", "str")
    assert [event.matched for event in trace.expected_events] == [True, True, None]


def test_expected_events_have_parsed_arguments_and_the_turn_of_their_dependencies() -> None:
    first, second, third = small("hf").expected_events
    assert first.args == {"plant": "ficus", "tags": ["green"], "note": None}
    assert (first.turn, second.turn, third.turn) == (0, 0, 1)
    assert (first.comparator, first.relative_time, second.depends_on) == ("EQUAL", 1.0, ("OracleEvent-AGENT-o1",))


def test_condition_checks_are_no_rows_but_the_true_ones_are_remembered() -> None:
    trace = small("hf")
    assert trace.attributes["conditions"] == {"checks": 2, "true": ["condition_turn_1-CHECK_1"]}
    assert not [span for span in trace.spans if "condition" in span.name]


def test_a_token_count_of_zero_from_an_engine_that_cannot_count_is_unknown() -> None:
    calls = [span for span in small("gui").spans if span.kind == "LLM"]
    assert [call.prompt_tokens for call in calls if call.agent == "Garden"] == [None, None]
    assert [call.reasoning_tokens for call in calls if call.agent == "default" and call.prompt_tokens] == [0] * 4


def test_a_format_retry_is_told_by_its_call_and_a_call_that_raised_is_an_error() -> None:
    calls = [span for span in small("gui").spans if span.kind == "LLM" and span.agent == "default"]
    assert (calls[0].status, calls[0].attributes["format_retries"]) == ("OK", 1)
    assert calls[0].attributes["rejected_outputs"] == ["The LLM output was not formatted correctly: just words"]
    assert (calls[1].status, calls[1].status_message) == ("ERROR", "RuntimeError: 429 too many requests")
    assert calls[1].output_messages == ()


def test_errors_stand_where_they_happened() -> None:
    trace = small("gui")
    failed = {(span.kind, span.name, span.turn) for span in trace.spans if span.status == "ERROR"}
    assert failed == {
        ("CHAIN", "step 1", 0),  # its model call raised
        ("LLM", "llm", 0),
        ("CHAIN", "step 2", 0),  # its answer could not be parsed
        ("TOOL", "Garden__take_in", 1),
        ("AGENT", "default", 1),  # out of iterations
    }


def test_the_automatic_last_message_belongs_to_no_step() -> None:
    trace = small("gui")
    last = [span for span in trace.spans if span.tool_name == "AgentUserInterface__send_message_to_user"][-1]
    assert (last.attributes["automatic"], last.step, parent_of(trace, last).kind) == (True, None, "AGENT")


def test_an_answer_sent_again_is_the_same_message() -> None:
    calls = [span for span in small("gui").spans if span.kind == "LLM" and span.agent == "default"]
    assert calls[0].output_messages[0] in calls[2].input_messages


def test_an_unknown_log_type_is_an_event_with_a_warning_and_keeps_its_fields() -> None:
    span = named(small("gui"), "current_app_state")
    assert (span.kind, span.input) == ("EVENT", "Garden: cold")
    assert span.warnings[0].startswith("unknown_log_type: ")
    assert span.attributes["log_rest"][0]["mood"] == "icy"  # type: ignore[index, call-overload]


def test_a_log_entry_that_is_no_json_is_kept_as_text() -> None:
    trace = small("gui", lambda export: export["world_logs"].insert(5, "{cut off"))
    (span,) = [span for span in trace.spans if span.input == "{cut off"]
    assert span.warnings[0].startswith("unreadable_log: world_logs[5]")


def test_an_event_that_the_agents_log_forgot_is_a_row_in_the_turn_of_its_time() -> None:
    def forget(export: dict[str, Any]) -> None:
        export["world_logs"] = [entry for entry in export["world_logs"] if '"Event-ENV-e1"' not in entry]
        export["completed_events"][-3]["event_time"] = SIM + 8.5

    trace = small("gui", forget)
    (span,) = [span for span in trace.spans if any("event_without_log" in warning for warning in span.warnings)]
    assert span.turn == 1


def test_a_call_without_an_observation_is_unfinished_and_not_lost() -> None:
    def cut(export: dict[str, Any]) -> None:
        place = next(
            n for n, entry in enumerate(export["world_logs"]) if "Garden__take_in" in entry and "tool_call" in entry
        )
        del export["world_logs"][place + 1 :]

    span = named(small("gui", cut), "Garden__take_in")
    assert (span.status, span.output) == ("UNSET", None)
    assert any(warning.startswith("unfinished") for warning in span.warnings)


def test_a_scenario_that_never_ran_is_refused_with_a_remedy() -> None:
    export = json.loads((SMALL / "hf" / f"{NAME}.json").read_text(encoding="utf-8"))
    export["completed_events"] = []
    found = refused(json.dumps(export).encode())
    assert "'scenario_ficus' never ran" in found.reason
    assert found.place == "completed_events"
    assert "are-run" in found.remedy


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"metadata": None}, "metadata"),
        ({"metadata": {"definition": []}}, "metadata.definition"),
        ({"completed_events": {}}, "completed_events"),
        ({"completed_events": [7]}, "completed_events[0]"),
        ({"world_logs": "text"}, "world_logs"),
    ],
)
def test_a_file_of_the_wrong_shape_is_refused_by_place(change: dict[str, Any], place: str) -> None:
    export = json.loads((SMALL / "hf" / f"{NAME}.json").read_text(encoding="utf-8")) | change
    found = refused(json.dumps(export).encode())
    assert (found.file, found.place) == ("broken.json", place)
    assert found.remedy


def test_from_the_hf_file_alone_a_refusal_is_not_told_from_a_missing_judge() -> None:
    trace = small("hf")
    assert trace.outcome is not None
    assert (trace.outcome.decision, trace.outcome.score, trace.spans[0].status) == ("Invalid", None, "UNSET")
    assert "either the judge said no or no judge was configured" in (trace.outcome.reason or "")
    assert trace.warnings[0].startswith("outcome_unclear: ")


def test_reading_twice_gives_equal_traces() -> None:
    assert small("gui") == small("gui")
