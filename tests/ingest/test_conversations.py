"""The same story as each tool saves a chat or a session: one agent, two model calls, a tool call with its result."""

import json

import pytest
from tests.ingest import conversation_files as made
from tests.ingest.envelope_files import ANSWER, ARGUMENTS, GOAL, RESULT, SESSION
from tests.ingest.trail_files import read_all

from tracejury.ingest.trace import Rejected, Trace
from tracejury.judging.judges.trace_text import render_trace

NAMELESS = frozenset({
    "messages", "message lines", "request", "anthropic, cline", "goose", "ui messages", "pydantic ai", "letta",
    "semantic kernel", "smolagents",
})  # fmt: skip
"""Files that name no session: the trace is called as the file."""


@pytest.mark.parametrize("name", made.FILES)
def test_a_saved_conversation_is_a_trace_with_each_call_of_a_tool_and_its_result(name: str) -> None:
    (trace,) = read_all(made.FILES[name](), "story.json")
    assert isinstance(trace, Trace)
    assert (trace.format, trace.goal, trace.final_answer) == ("conversation", GOAL, ANSWER)
    assert trace.trace_id == ("story" if name in NAMELESS else SESSION)
    assert [span.kind for span in trace.spans] == ["AGENT", "LLM", "TOOL", "LLM"]
    tool = trace.spans[2]
    assert (tool.tool_name, json.loads(str(tool.tool_arguments))) == ("tide", ARGUMENTS)
    assert tool.output in (RESULT, json.dumps({"output": RESULT}, separators=(",", ":")))
    call, answer = trace.spans[1], trace.spans[3]
    assert [one.name for one in trace.messages[call.output_messages[0]].tool_calls] == ["tide"]
    assert trace.messages[answer.input_messages[-1]].content == tool.output
    assert not [warning for warning in trace.all_warnings if warning.startswith("no_")]
    assert "SECRET" not in render_trace(trace).text


def test_files_of_one_name_in_the_folders_of_tasks_are_traces_of_their_own() -> None:
    names = ("tasks/17/history.json", "tasks/18/history.json")
    found = [one for name in names for one in read_all(made.dumped(made.openai()), name)]
    assert [one.trace_id for one in found if isinstance(one, Trace)] == ["17-history", "18-history"]


def test_messages_of_a_thread_are_put_in_their_order() -> None:
    (trace,) = read_all(made.dumped(made.thread()), "thread.json")
    assert isinstance(trace, Trace)
    assert (trace.trace_id, trace.goal, trace.final_answer) == (SESSION, GOAL, ANSWER)


def test_what_the_model_thought_used_and_cost_stands_at_its_call() -> None:
    (trace,) = read_all(made.FILES["gemini cli"](), "story.json")
    assert isinstance(trace, Trace)
    call = trace.spans[1]
    assert trace.messages[call.output_messages[0]].reasoning == f"Plan: {made.THOUGHT}"
    assert (call.model, call.prompt_tokens, call.completion_tokens) == ("m-1", 7, 2)


def test_a_history_of_browser_use_is_its_steps_with_what_each_action_gave() -> None:
    def step(action: dict[str, object], given: str, *, is_done: bool = False) -> dict[str, object]:
        output = {"memory": "m", "next_goal": f"then {given}", "action": [action]}
        result = [{"is_done": is_done, "extracted_content": given}]
        return {"model_output": output, "result": result, "state": {"url": "x"}, "metadata": {"step_end_time": 1.79e9}}

    steps = [
        step({"go_to_url": {"url": "https://tide"}}, "opened"),
        step({"done": {"text": ANSWER}}, ANSWER, is_done=True),
    ]
    (trace,) = read_all(made.dumped({"history": steps}), "run.json")
    assert isinstance(trace, Trace)
    assert (trace.goal, trace.final_answer) == (None, ANSWER)
    tools = [(span.tool_name, span.output) for span in trace.spans if span.kind == "TOOL"]
    assert tools == [("go_to_url", "opened"), ("done", ANSWER)]
    calls = [span for span in trace.spans if span.kind == "LLM"]
    assert trace.messages[calls[0].output_messages[0]].reasoning == "memory: m\nnext_goal: then opened"
    assert calls[0].end_time == 1_790_000_000_000_000


def test_words_beside_a_message_that_no_form_has_a_place_for_are_shown() -> None:
    note = "It did not look at the swell, which mattered more to the sailor than the hour of the tide."
    asked, answer = {"role": "user", "content": GOAL}, {"role": "assistant", "content": ANSWER, "critique": note}
    (trace,) = read_all(made.dumped({"messages": [asked, answer]}), "chat.json")
    assert isinstance(trace, Trace)
    assert note in render_trace(trace).text


def test_each_row_of_training_data_is_a_trace_and_a_record_that_is_no_message_an_event() -> None:
    rows = [{"messages": made.openai()}, {"messages": [*made.openai()[:2], {"type": "note", "words": "A pause."}, {
        "role": "assistant", "content": "Noon."}]}]  # fmt: skip
    first, second = read_all(made.lines(rows), "train.jsonl")
    assert isinstance(first, Trace)
    assert isinstance(second, Trace)
    assert (first.trace_id, second.trace_id, second.final_answer) == ("train-1", "train-2", "Noon.")
    assert second.spans[0].events[0]["attributes"] == {"type": "note", "words": "A pause."}


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "admin", "content": "x"}, {"role": "user", "content": "y"}],  # people of a system, not speakers
        [{"instance_id": "i", "model_patch": "diff", "model_name_or_path": "m"}],
        {"run": {"steps": [{"thought": "t", "action": "a", "observation": "o"}]}},
        [{"role": "user", "content": "only a question"}],
    ],
)
def test_records_that_are_no_conversation_are_refused_with_a_way_out(value: object) -> None:
    (refused,) = read_all(made.dumped(value), "records.json")
    assert isinstance(refused, Rejected)
    assert "--map" in refused.remedy
    assert "conversation" in refused.remedy
