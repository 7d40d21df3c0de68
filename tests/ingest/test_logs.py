"""Logs in plain text and executions of workflows: aider, CrewAI, n8n, Dify, Flowise."""

import json

import pytest
from tests.ingest import log_files as made
from tests.ingest.envelope_files import ANSWER, ARGUMENTS, GOAL, RESULT, SESSION, SYSTEM, dumped
from tests.ingest.trail_files import read_all

from tracejury.ingest.trace import Rejected, Trace


@pytest.mark.parametrize("name", made.CHATS)
def test_a_chat_of_aider_is_a_call_of_its_model_for_each_answer(name: str) -> None:
    file, trace_id, data = made.CHATS[name]
    (trace,) = read_all(data(), f"harbour/{file}")
    assert isinstance(trace, Trace)
    assert (trace.format, trace.trace_id, trace.goal, trace.final_answer) == ("aider", trace_id, GOAL, ANSWER)
    root, call = trace.spans
    assert (root.kind, call.kind) == ("AGENT", "LLM")
    asked = [trace.messages[position] for position in call.input_messages]
    told = (call.model, call.prompt_tokens, call.completion_tokens)
    if name == "aider":
        assert (told, [one.role for one in asked]) == (("m-1", 7, 2), ["user"])
        assert any("v0.86.1" in str(event) for event in root.events)
    else:
        assert [(one.role, one.content) for one in asked] == [("system", f"{SYSTEM}\n\nBe brief."), ("user", GOAL)]


def test_each_start_of_aider_is_a_trace_and_one_without_a_question_is_none() -> None:
    first = made.aider_chat().decode()
    idle = "\n# aider chat started at 2026-01-02 10:00:00\n\n> Aider v0.86.1  \n"
    again = first.replace("2026-01-01", "2026-01-03").replace("7 sent", "2.1k sent")
    first = first.replace("7 sent", "1,234 sent, 1,000 cache hit")
    one, other = read_all((first + idle + again).encode(), "harbour/.aider.chat.history.md")
    assert isinstance(one, Trace)
    assert isinstance(other, Trace)
    assert other.trace_id == "harbour-2026-01-03 10:00:00"
    assert one.spans[1].prompt_tokens == 1234
    assert (other.spans[1].prompt_tokens, other.final_answer) == (None, ANSWER)  # a rounded count is no count
    (refused,) = read_all(idle.encode(), "harbour/.aider.chat.history.md")
    assert isinstance(refused, Rejected)


@pytest.mark.parametrize("name", made.CREWS)
def test_a_log_of_a_crew_is_a_span_for_each_task(name: str) -> None:
    file, data = made.CREWS[name]
    (trace,) = read_all(data(), file)
    assert isinstance(trace, Trace)
    assert (trace.format, trace.trace_id, trace.goal, trace.final_answer) == ("crewai", "crew", GOAL, ANSWER)
    root, task = trace.spans
    assert (root.kind, task.kind, task.name, task.input, task.output) == ("CHAIN", "AGENT", "pilot", GOAL, ANSWER)
    assert task.start_time is not None
    assert task.end_time == task.start_time + 2_000_000
    assert len([one for one in read_all(data() * 2, file) if isinstance(one, Trace)]) == (2 if name == "text" else 0)


def test_what_looks_like_a_field_in_the_output_of_a_crew_is_its_text() -> None:
    told = 'It is so, agent="pilot", status="failed"'
    text = f'2026-01-01 10:00:00: task_name="t", task="x", agent="a", status="completed", output="{told}"\n\n'
    (trace,) = read_all(text.encode(), "crew.txt")
    assert isinstance(trace, Trace)
    assert trace.final_answer == told


@pytest.mark.parametrize("name", made.WORKFLOWS)
def test_an_execution_of_a_workflow_is_a_span_for_each_node_that_ran(name: str) -> None:
    (trace,) = read_all(dumped(made.WORKFLOWS[name]()), "run.json")
    assert isinstance(trace, Trace)
    assert (trace.format, trace.trace_id, trace.goal, trace.final_answer) == ("workflow", SESSION, GOAL, ANSWER)
    (call,) = [span for span in trace.spans if span.kind == "LLM"]
    (tool,) = [span for span in trace.spans if span.kind == "TOOL"]
    assert (call.model, call.prompt_tokens, call.completion_tokens, call.total_tokens) == ("m-1", 7, 2, 9)
    asked = [(trace.messages[one].role, trace.messages[one].content) for one in call.input_messages]
    assert asked == [("system", SYSTEM), ("user", GOAL)]
    assert trace.messages[call.output_messages[0]].content == ANSWER
    assert (tool.tool_name, json.loads(str(tool.tool_arguments))) == ("tide", ARGUMENTS)
    assert tool.output in (RESULT, json.dumps({"text": RESULT}, separators=(",", ":")))
    if name == "n8n":
        (agent,) = [span for span in trace.spans if span.kind == "AGENT"]
        assert (call.parent_span_id, tool.parent_span_id) == (agent.span_id, agent.span_id)


def test_an_execution_without_the_data_of_its_nodes_is_refused_with_the_way_out() -> None:
    row = {**made.n8n(), "data": {"resultData": {}}}
    (refused,) = read_all(json.dumps({"runData": None, **row}).encode(), "run.json")
    assert isinstance(refused, Rejected)
    assert "includeData" in refused.remedy
