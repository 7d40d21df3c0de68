"""The same story as each tool saves a chat or a session: one agent, two model calls, a tool call with its result."""

import json
from pathlib import Path

import pytest
from tests.ingest import chat_store_files as stores
from tests.ingest import conversation_files as made
from tests.ingest import framework_files as frameworks
from tests.ingest.envelope_files import ANSWER, ARGUMENTS, GOAL, RESULT, SESSION
from tests.ingest.trail_files import read_all

from tracejury.ingest.readers import read_bytes, read_traces
from tracejury.ingest.trace import Rejected, Trace
from tracejury.judging.judges.trace_text import render_trace

NAMELESS = frozenset({
    "messages", "message lines", "request", "anthropic, cline", "goose", "ui messages", "pydantic ai", "letta",
    "semantic kernel", "smolagents", "cline ui", "strands messages",
})  # fmt: skip
"""Files that name no session: the trace is called as the file."""


@pytest.mark.parametrize("name", [*made.FILES, *stores.FILES])
def test_a_saved_conversation_is_a_trace_with_each_call_of_a_tool_and_its_result(name: str) -> None:
    (trace,) = read_all({**made.FILES, **stores.FILES}[name](), "story.json")
    assert isinstance(trace, Trace)
    assert (trace.format, trace.goal, trace.final_answer) == ("conversation", GOAL, ANSWER)
    assert trace.trace_id == ("story" if name in NAMELESS | stores.NAMELESS else SESSION)
    assert [span.kind for span in trace.spans] == ["AGENT", "LLM", "TOOL", "LLM"]
    tool = trace.spans[2]
    assert (tool.tool_name, json.loads(str(tool.tool_arguments))) == ("tide", ARGUMENTS)
    assert tool.output in (RESULT, json.dumps({"output": RESULT}, separators=(",", ":")))
    call, answer = trace.spans[1], trace.spans[3]
    assert [one.name for one in trace.messages[call.output_messages[0]].tool_calls] == ["tide"]
    assert trace.messages[answer.input_messages[-1]].content == tool.output
    assert not [warning for warning in trace.all_warnings if warning.startswith("no_")]
    assert "SECRET" not in render_trace(trace).text


@pytest.mark.parametrize("name", stores.SHORT)
def test_a_chat_without_tools_is_a_call_for_each_answer_on_the_branch_that_is_shown(name: str) -> None:
    (trace,) = read_all(stores.SHORT[name](), "story.json")
    assert isinstance(trace, Trace)
    assert (trace.format, trace.goal, trace.final_answer) == ("conversation", GOAL, ANSWER)
    assert trace.trace_id == ("story" if name in ("ai studio", "sillytavern") else SESSION)
    assert [span.kind for span in trace.spans] == ["AGENT", "LLM"]
    assert stores.OTHER not in render_trace(trace).text
    is_cut = any("1 message on other branches" in warning for warning in trace.all_warnings)
    assert is_cut == (name in ("open webui", "librechat"))
    if name in ("open webui", "ollama"):
        call = trace.spans[1]
        assert (call.model, call.prompt_tokens, call.completion_tokens) == ("m-1", 7, 2)
    if name == "rasa":
        assert RESULT in render_trace(trace).text


@pytest.mark.parametrize(
    "name", ["litellm spend logs", "portkey", "helicone", "vertex batch", "bedrock batch", "cline ui"]
)
def test_the_model_and_the_tokens_of_a_logged_call_stand_at_the_call(name: str) -> None:
    (trace,) = read_all(made.FILES[name](), "story.json")
    assert isinstance(trace, Trace)
    last = trace.spans[3]
    assert (last.prompt_tokens, last.completion_tokens) == ((9, 3) if name == "cline ui" else (7, 2))
    assert last.model == (None if name == "cline ui" else "m-1")


def test_a_snapshot_of_messages_takes_the_place_of_the_events_that_told_them() -> None:
    snapshot = [one | {"id": f"s{number}"} for number, one in enumerate(made.openai())]
    more = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "z", "role": "assistant", "delta": "Good sailing."}
    events = [*made.ag_ui()[:-1], {"type": "MESSAGES_SNAPSHOT", "messages": snapshot}, more]
    (trace,) = read_all(made.lines(events), "events.jsonl")
    assert isinstance(trace, Trace)
    told = [message.content for message in trace.messages if message.content]
    assert (told.count(GOAL), told.count(RESULT), told.count(ANSWER)) == (1, 1, 1)
    assert trace.final_answer == "Good sailing."


@pytest.mark.parametrize(
    "thought",
    [
        {"reasoning_details": [{"type": "reasoning.text", "text": made.THOUGHT}, {"type": "x", "data": "y"}]},
        {"tool_plan": made.THOUGHT},
    ],
)
def test_what_a_model_thought_stands_at_its_answer_in_every_form(thought: dict[str, object]) -> None:
    answer = {"role": "assistant", "content": ANSWER, **thought}
    (trace,) = read_all(made.dumped([{"role": "user", "content": GOAL}, answer]), "chat.json")
    assert isinstance(trace, Trace)
    assert made.THOUGHT in [message.reasoning for message in trace.messages]


def test_branches_of_a_chat_that_are_left_out_are_counted() -> None:
    (trace,) = read_all(made.FILES["chatgpt export"](), "conversations.json")
    assert isinstance(trace, Trace)
    assert any("1 message on other branches" in warning for warning in trace.all_warnings)
    assert "At eleven." not in render_trace(trace).text
    assert made.THOUGHT in str(trace.messages)


@pytest.mark.parametrize(
    "answer",
    [
        {"id": made.SESSION, "object": "response", "model": "m-1", "status": "completed", "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": made.THOUGHT}]},
            {"type": "function_call", "name": made.NAME, "arguments": made.TEXT, "call_id": made.ID},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}],
         "usage": {"input_tokens": 7, "output_tokens": 2}},
        {"id": "batch_req", "custom_id": made.SESSION, "error": None, "response": {"status_code": 200, "body": {
            "object": "chat.completion", "model": "m-1", "usage": {"prompt_tokens": 7, "completion_tokens": 2},
            "choices": [{"message": {"role": "assistant", "content": ANSWER}}]}}},
        {"custom_id": made.SESSION, "result": {"type": "succeeded", "message": {
            "type": "message", "role": "assistant", "model": "m-1", "content": [made.text(ANSWER)],
            "usage": {"input_tokens": 7, "output_tokens": 2}}}},
        {"responseId": made.SESSION, "modelVersion": "m-1", "candidates": [{"content": {
            "role": "model", "parts": [{"text": ANSWER}]}}], "usageMetadata": {
                "promptTokenCount": 7, "candidatesTokenCount": 2}},
    ],
)  # fmt: skip
def test_an_answer_without_its_request_is_a_call_whose_question_is_missing(answer: dict[str, object]) -> None:
    (trace,) = read_all(made.lines([answer]), "answer.jsonl")
    assert isinstance(trace, Trace)
    assert (trace.trace_id, trace.goal, trace.final_answer) == (made.SESSION, None, ANSWER)
    (call,) = [span for span in trace.spans if span.kind == "LLM"]
    assert (call.model, call.prompt_tokens, call.completion_tokens) == ("m-1", 7, 2)
    assert any(warning.startswith("no_request") for warning in trace.all_warnings)


CHUNK = {"object": "chat.completion.chunk", "id": made.SESSION, "model": "m-1"}
BLOCK = {"type": "content_block_delta", "index": 0}


@pytest.mark.parametrize(
    ("events", "kinds"),
    [
        ([*({**CHUNK, "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in (ANSWER[:3], ANSWER[3:])),
          {**CHUNK, "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}], ["AGENT", "LLM"]),
        ([{**CHUNK, "choices": [{"delta": {"tool_calls": [{"index": 0, **piece}]}}]} for piece in (
            {"id": made.ID, "function": {"name": made.NAME, "arguments": ""}},
            {"function": {"arguments": made.TEXT[:5]}}, {"function": {"arguments": made.TEXT[5:]}})]
         + [{**CHUNK, "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}], ["AGENT", "LLM", "TOOL"]),
        ([{"type": "message_start", "message": {"id": made.SESSION, "type": "message", "role": "assistant",
                                                "model": "m-1", "content": [], "usage": {"input_tokens": 7}}},
          {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
          *({**BLOCK, "delta": {"type": "text_delta", "text": piece}} for piece in (ANSWER[:3], ANSWER[3:])),
          {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 2}}, {"type": "message_stop"}],
         ["AGENT", "LLM"]),
        ([{"responseId": made.SESSION, "modelVersion": "m-1", "candidates": [{"content": {
            "role": "model", "parts": [{"text": piece}]}}]} for piece in (ANSWER[:3], ANSWER[3:])]
         + [{"responseId": made.SESSION, "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 2}}],
         ["AGENT", "LLM"]),
        ([{"id": made.SESSION, "model": "m-1", "message": {"role": "assistant", "content": piece}, "done": piece == "",
           "prompt_eval_count": 7, "eval_count": 2} for piece in (ANSWER[:3], ANSWER[3:], "")], ["AGENT", "LLM"]),
    ],
    ids=["openai", "a call in pieces", "anthropic", "gemini", "ollama"],
)  # fmt: skip
def test_an_answer_that_was_sent_in_pieces_is_put_together(events: list[dict[str, object]], kinds: list[str]) -> None:
    (trace,) = read_all(made.sent(events), "stream.txt")
    assert isinstance(trace, Trace)
    assert (trace.trace_id, [span.kind for span in trace.spans]) == (made.SESSION, kinds)
    call = trace.spans[1]
    assert (call.model, call.prompt_tokens, call.completion_tokens) == ("m-1", 7, 2)
    (message,) = (trace.messages[position] for position in call.output_messages)
    if kinds[-1] == "TOOL":
        assert [(one.name, one.arguments) for one in message.tool_calls] == [(made.NAME, made.TEXT)]
    else:
        assert message.content == trace.final_answer == ANSWER


def test_a_request_of_a_batch_that_failed_is_named_beside_the_answers_of_the_others() -> None:
    failed = {"recordId": "2", "modelInput": {"messages": made.anthropic()[:1]}, "error": {"errorMessage": "throttled"}}
    trace, refused = sorted(read_all(made.lines([made.bedrock_batch(), failed]), "out.jsonl"), key=str, reverse=True)
    assert isinstance(trace, Trace)
    assert isinstance(refused, Rejected)
    assert (trace.trace_id, refused.place) == (made.SESSION, "line 2")
    assert "throttled" in refused.reason


def test_files_of_one_name_in_the_folders_of_tasks_are_traces_of_their_own() -> None:
    names = ("tasks/17/history.json", "tasks/18/history.json")
    found = [one for name in names for one in read_all(made.dumped(made.openai()), name)]
    assert [one.trace_id for one in found if isinstance(one, Trace)] == ["17-history", "18-history"]


def test_the_files_of_one_task_are_one_trace_with_the_tokens_that_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "1790").mkdir()
    (tmp_path / "1790" / "api_conversation_history.json").write_bytes(made.dumped(made.anthropic()))
    (tmp_path / "1790" / "ui_messages.json").write_bytes(made.dumped(made.cline()))
    (trace,) = read_traces(tmp_path)
    assert isinstance(trace, Trace)
    assert (trace.trace_id, trace.goal, trace.final_answer) == ("1790", GOAL, ANSWER)
    assert [(one.prompt_tokens, one.completion_tokens) for one in trace.spans if one.kind == "LLM"] == [(7, 2), (9, 3)]
    (again,) = read_bytes(trace.source.data, file=trace.source.file, format="conversation")
    assert isinstance(again, Trace)
    assert again.spans == trace.spans


def test_the_messages_of_a_session_one_a_file_are_one_trace(tmp_path: Path) -> None:
    folder = tmp_path / f"session_{made.SESSION}" / "agents" / "agent_pilot" / "messages"
    folder.mkdir(parents=True)
    for number, message in enumerate(made.strands()):
        record = {"message": message, "message_id": number, "created_at": f"2026-01-01T00:00:0{number}Z"}
        (folder / f"message_{number}.json").write_bytes(made.dumped(record))
    (trace,) = read_traces(tmp_path)
    assert isinstance(trace, Trace)
    assert (trace.trace_id, trace.goal, trace.final_answer) == (f"{made.SESSION}-pilot", GOAL, ANSWER)
    assert [span.kind for span in trace.spans] == ["AGENT", "LLM", "TOOL", "LLM"]


@pytest.mark.parametrize(
    "request_body",
    [
        {"contents": made.gemini("content"), "systemInstruction": {"parts": [{"text": made.SYSTEM}]}},
        {"system": [made.text(made.SYSTEM)], "messages": made.anthropic()},
        {"prompt_blueprint": {"prompt_template": {"messages": made.openai()}}, "request_id": 7},
        {"instructions": made.SYSTEM, "input": [{"role": "user", "content": GOAL}], "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}]},
        {"system": made.SYSTEM, "prompt": GOAL, "completion": ANSWER},
        {"system": made.SYSTEM, "inputs": GOAL, "parameters": {}, "generated_text": ANSWER},
        {"prompt": made.openai()[:2], "completion": [{"role": "assistant", "content": ANSWER}]},
        {"object": "chat.completion", "input": made.openai()[:2], "choices": [{"message": made.openai()[-1]}]},
    ],
)  # fmt: skip
def test_what_a_request_tells_the_model_beside_its_messages_comes_first(request_body: dict[str, object]) -> None:
    (trace,) = read_all(made.dumped(request_body), "request.json")
    assert isinstance(trace, Trace)
    assert (trace.goal, trace.final_answer) == (GOAL, ANSWER)
    first = next(span for span in trace.spans if span.kind == "LLM").input_messages[0]
    assert (trace.messages[first].role, trace.messages[first].content) == ("system", made.SYSTEM)


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


def test_rows_without_an_id_stay_apart_where_one_begins_as_another() -> None:
    rows = [{"messages": made.openai()}, {"messages": [*made.openai(), {"role": "user", "content": "Sure?"}, {
        "role": "assistant", "content": "Yes."}]}]  # fmt: skip
    found = [one.final_answer for one in read_all(made.lines(rows), "train.jsonl") if isinstance(one, Trace)]
    assert found == [ANSWER, "Yes."]


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
        [["model", "m-1"], ["name of run", "of Monday"]],  # a table
        [{"query": "SELECT 1", "result": "1"}],
        [{"request": "GET /", "response": "200 OK"}],
        [{"question": GOAL, "answer": ANSWER}],  # a data set: nobody says that a model answered
        {"examples": [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}]},
        {"run": {"steps": [{"thought": "t", "action": "a", "observation": "o"}]}},
        [{"role": "user", "content": "only a question"}],
    ],
)
def test_records_that_are_no_conversation_are_refused_with_a_way_out(value: object) -> None:
    (refused,) = read_all(made.dumped(value), "records.json")
    assert isinstance(refused, Rejected)
    assert "--map" in refused.remedy
    assert "conversation" in refused.remedy


ASKED = {"role": "user", "content": GOAL}
USED = {"promptTokenCount": 7, "candidatesTokenCount": 2}


def gemini(*parts: dict[str, object], **more: object) -> dict[str, object]:
    return {"candidates": [{"content": {"role": "model", "parts": [*parts]}}], **more}


CODE = {"language": "PYTHON", "code": "tide('harbour')"}
OUTPUT = {"outcome": "OUTCOME_OK", "output": RESULT}
HOSTED: dict[str, tuple[dict[str, object], str]] = {
    "gemini": (gemini({"executableCode": CODE}, {"codeExecutionResult": OUTPUT}, {"text": ANSWER},
                      usageMetadata=USED), "code_execution"),
    "gemini, snake case": (gemini({"executable_code": CODE}, {"code_execution_result": OUTPUT}, {"text": ANSWER},
                                  usage_metadata=USED, usageMetadata=USED), "code_execution"),
    "anthropic": ({"type": "message", "role": "assistant", "model": "m-1", "content": [
        {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": CODE},
        {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": RESULT},
        {"type": "text", "text": ANSWER}], "usage": {"input_tokens": 7, "output_tokens": 2}}, "code_execution"),
    **{name: ({"object": "response", "output": [
        {"id": "i1", "status": "completed", **item},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}],
        "usage": {"input_tokens": 7, "output_tokens": 2}}, name) for name, item in {
            "code_interpreter": {"type": "code_interpreter_call", "code": CODE["code"], "outputs": [
                {"type": "logs", "logs": RESULT}]},
            "file_search": {"type": "file_search_call", "queries": [CODE["code"]], "results": [{"text": RESULT}]},
            "tide": {"type": "mcp_call", "name": "tide", "server_label": "s", "arguments": CODE["code"],
                     "output": RESULT}}.items()},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTED)
def test_a_tool_that_ran_at_the_provider_is_a_call_with_its_result_and_no_part_of_the_answer(name: str) -> None:
    response, tool_name = HOSTED[name]
    (trace,) = read_all(made.dumped({"request": {"messages": [ASKED]}, "response": response}), "call.json")
    assert isinstance(trace, Trace)
    assert (trace.goal, trace.final_answer) == (GOAL, ANSWER)
    (tool,) = [span for span in trace.spans if span.kind == "TOOL"]
    assert tool.tool_name == tool_name
    assert str(CODE["code"]) in str(tool.tool_arguments)
    assert RESULT in str(tool.output)
    assert sum(span.prompt_tokens or 0 for span in trace.spans) == 7
    assert not trace.spans[0].events


@pytest.mark.parametrize("pieces", [[ANSWER], [ANSWER[:3], ANSWER[3:]]], ids=["whole", "in pieces"])
def test_an_answer_that_stands_in_a_list_beside_its_request_is_read(pieces: list[str]) -> None:
    response = [*map(gemini, ({"text": one} for one in pieces[:-1])), gemini({"text": pieces[-1]}, usageMetadata=USED)]
    row = {"request": {"contents": [{"role": "user", "parts": [{"text": GOAL}]}]}, "status": "", "response": response}
    (trace,) = read_all(made.dumped(row), "predictions.jsonl")
    assert isinstance(trace, Trace)
    assert (trace.goal, trace.final_answer) == (GOAL, ANSWER)
    assert [span.prompt_tokens for span in trace.spans] == [None, 7]


@pytest.mark.parametrize(
    "value",
    [
        [[GOAL, ANSWER]],
        {"history": [[["/tmp/pier.png", None], None], [GOAL, ANSWER], ["And on Monday?", None]]},
        {"data": [[[GOAL, ANSWER]]], "fn_index": 3},
        [["user", GOAL], ["assistant", ANSWER]],
        [[ASKED, {"role": "assistant", "content": ANSWER}]],
    ],
    ids=["pairs", "with a file", "a request to Gradio", "speakers", "a list of chats"],
)
def test_pairs_of_what_was_asked_and_answered_are_a_chat(value: object) -> None:
    (trace,) = read_all(made.dumped(value), "chat.json")
    assert isinstance(trace, Trace)
    assert trace.final_answer == ANSWER
    assert [span.kind for span in trace.spans] == ["AGENT", "LLM"]
    asked = [trace.messages[position].content for position in trace.spans[1].input_messages]
    assert GOAL in asked


def sampled(sample: str, kind: str, **data: object) -> dict[str, object]:
    return {"run_id": "r1", "event_id": 0, "sample_id": sample, "type": kind, "data": data, "created_at": None}


def test_each_sample_of_openai_evals_is_a_trace_without_what_its_scorer_said() -> None:
    first = [ASKED, {"role": "assistant", "content": "Which day?"}, {"role": "user", "content": "Sunday."}]
    rows = [
        {"spec": {"completion_fns": ["m-1"], "eval_name": "tides", "run_id": "r1"}},
        sampled("tides.0", "sampling", prompt=first[:1], sampled=["Which day?"]),
        sampled("tides.0", "sampling", prompt=first, sampled=ANSWER),
        sampled("tides.0", "match", correct=False, expected="SECRET", sampled=ANSWER),
        sampled("tides.1", "sampling", prompt=GOAL, sampled=[ANSWER]),
        {"final_report": {"accuracy": 0.0}},
    ]
    traces = [one for one in read_all(made.lines(rows), "r1.jsonl") if isinstance(one, Trace)]
    assert [(one.trace_id, one.goal, one.final_answer) for one in traces] == [
        ("r1-tides.0", GOAL, ANSWER), ("r1-tides.1", GOAL, ANSWER)]  # fmt: skip
    assert [span.kind for span in traces[0].spans] == ["AGENT", "LLM", "LLM"]
    assert traces[0].spans[1].model == "m-1"
    assert "SECRET" not in render_trace(traces[0]).text
    assert any("1 event of the evaluation not shown (match)" in one for one in traces[0].all_warnings)


@pytest.mark.parametrize("arguments", [[[GOAL, {"until": []}]], {"gen_args_0": {"arg_0": GOAL, "arg_1": {}}},
                                       {"gen_args_0": {"arg_0": json.dumps([ASKED])}}])  # fmt: skip
def test_a_sample_of_lm_eval_is_a_trace_and_one_without_words_is_refused_by_name(arguments: object) -> None:
    row = {"doc_id": 4, "doc": {"answer": "SECRET"}, "target": "SECRET", "arguments": arguments, "resps": [[ANSWER]]}
    trace, refused = read_all(made.lines([row, {**row, "resps": [[[-1.5, True]]]}]), "samples_tides.jsonl")[::-1]
    assert isinstance(trace, Trace)
    assert (trace.goal, trace.final_answer) == (GOAL, ANSWER)
    assert "SECRET" not in render_trace(trace).text
    assert isinstance(refused, Rejected)
    assert (refused.place, "lm-eval" in refused.reason) == ("line 2", True)


@pytest.mark.parametrize(
    ("row", "named", "remedy"),
    [
        ({"question_id": 81, "answer_id": "a", "model_id": "m", "choices": [{"index": 0, "turns": ["One.", "Two."]}]},
         "answers of MT-bench", "question.jsonl"),
        ({"question_id": 81, "category": "writing", "turns": ["Write."]}, "questions of MT-bench", "messages"),
        ({"question_id": 81, "judge": ["m", "single-v1"], "judgment": "Rating: [[9]]", "score": 9},
         "judgments of MT-bench", "labels import"),
        ({"results": {}, "configs": {}, "versions": {}}, "results of lm-eval", "samples_"),
        (sampled("tides.0", "match", correct=True), "OpenAI's evals", "sampling"),
        ({"instance_id": "i", "model_patch": "diff", "model_name_or_path": "m"}, "SWE-bench", ".traj"),
        ({"resourceMetrics": []}, "metrics", "resourceSpans"),
        ({"task_id": "t", "model_answer": "17", "reasoning_trace": "s"}, "GAIA", "traces"),
        ({"type": "result", "subtype": "success", "result": "r", "session_id": "s", "num_turns": 2},
         "Claude", "stream"),
    ],
)  # fmt: skip
def test_what_stands_beside_traces_is_refused_by_name_with_a_way_out(
    row: dict[str, object], named: str, remedy: str
) -> None:
    (refused,) = read_all(made.lines([row]), "rows.jsonl")
    assert isinstance(refused, Rejected)
    assert named in refused.reason
    assert remedy in refused.remedy


@pytest.mark.parametrize("name", frameworks.RUNS)
def test_a_run_of_a_framework_is_a_trace_with_its_call_of_a_tool(name: str) -> None:
    (trace,) = read_all(frameworks.RUNS[name](), "story.json")
    assert isinstance(trace, Trace)
    assert (trace.format, trace.goal, trace.final_answer) == ("conversation", GOAL, ANSWER)
    assert [span.kind for span in trace.spans] == ["AGENT", "LLM", "TOOL", "LLM"]
    tool = trace.spans[2]
    assert (tool.tool_name, json.loads(str(tool.tool_arguments)), tool.output) == ("tide", ARGUMENTS, RESULT)
    assert trace.messages[trace.spans[1].output_messages[0]].tool_calls[0].name == "tide"
    assert "SECRET" not in render_trace(trace).text


@pytest.mark.parametrize("name", frameworks.SHORT)
def test_a_question_with_its_answer_is_a_trace_in_the_form_of_each_tool(name: str) -> None:
    (trace,) = read_all(frameworks.SHORT[name](), "story.json")
    assert isinstance(trace, Trace)
    assert (trace.goal, trace.final_answer) == (GOAL, ANSWER)
    assert [span.kind for span in trace.spans] == ["AGENT", "LLM"]
    text = render_trace(trace).text
    assert "SECRET" not in text
    assert (RESULT in text) == (name == "ragas")
    assert (trace.spans[1].model == "m-1") == (b"m-1" in frameworks.SHORT[name]())


@pytest.mark.parametrize(
    "row",
    [
        {"question_id": "q", "conversation_a": [ASKED, {"role": "assistant", "content": ANSWER}],
         "conversation_b": [ASKED, {"role": "assistant", "content": "Noon."}], "winner": "model_a"},
        {"prompt": GOAL, "chosen": ANSWER, "rejected": "Noon."},
        {"prompt": [ASKED], "chosen": [{"role": "assistant", "content": ANSWER}],
         "rejected": [{"role": "assistant", "content": "Noon."}]},
    ],
)  # fmt: skip
def test_both_answers_of_a_row_that_compares_two_are_traces(row: dict[str, object]) -> None:
    traces = [one for one in read_all(made.lines([row]), "pairs.jsonl") if isinstance(one, Trace)]
    assert [(one.goal, one.final_answer) for one in traces] == [(GOAL, ANSWER), (GOAL, "Noon.")]
    assert len({one.trace_id for one in traces}) == 2


def test_updates_of_a_graph_are_one_run_and_chats_of_both_sides_stay_apart() -> None:
    said = frameworks.lang_chain()
    updates = [
        {"agent": {"messages": [said[1]]}},
        {"tools": {"messages": [said[2]]}},
        {"agent": {"messages": said[3:]}},
    ]
    (trace,) = read_all(made.lines(updates), "stream.jsonl")
    assert isinstance(trace, Trace)
    assert [span.kind for span in trace.spans] == ["AGENT", "LLM", "TOOL", "LLM"]
    assert (trace.goal, trace.final_answer) == (None, ANSWER)


def test_a_row_of_a_table_whose_messages_are_cut_off_is_named() -> None:
    whole = json.dumps([ASKED, {"role": "assistant", "content": ANSWER}])
    rows = [frameworks.csv_of({"id": "1", "messages": whole}),
            frameworks.csv_of({"id": "2", "messages": whole[:40]}).split(b"\r\n", 1)[1]]  # fmt: skip
    refused, trace = read_all(b"".join(rows), "chats.csv")
    assert isinstance(trace, Trace)
    assert isinstance(refused, Rejected)
    assert (refused.place, trace.final_answer) == ("row 3", ANSWER)
    assert "cut off" in refused.reason


@pytest.mark.parametrize("is_list", [False, True])
def test_a_chat_without_an_answer_is_named_beside_those_that_have_one(is_list: bool) -> None:
    rows = [{"messages": made.openai()}, {"messages": [{"role": "user", "content": "Anyone there?"}]}]
    refused, trace = read_all(made.dumped(rows) if is_list else made.lines(rows), "chats.jsonl")
    assert isinstance(trace, Trace)
    assert isinstance(refused, Rejected)
    assert (refused.place, refused.reason) == (
        "[1]" if is_list else "line 2", "holds messages and no answer of a model")  # fmt: skip


def test_a_call_that_was_made_again_is_no_part_of_the_first() -> None:
    row = {"request": {"messages": [ASKED]}, "response": {"choices": [{"message": {
        "role": "assistant", "content": ANSWER}}]}}  # fmt: skip
    traces = read_all(made.lines([row, row, row]), "log.jsonl")
    assert [one.final_answer for one in traces if isinstance(one, Trace)] == [ANSWER] * 3
