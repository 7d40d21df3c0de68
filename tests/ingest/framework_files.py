"""The story of `envelope_files` as frameworks and evaluations write runs, made here after their documentation."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from pyarrow import Table, parquet
from tests.ingest.conversation_files import ID, NAME, TEXT, THOUGHT, openai
from tests.ingest.envelope_files import ANSWER, ARGUMENTS, GOAL, RESULT, SESSION, dumped, lines

Row = dict[str, Any]
ASKED: Row = {"role": "user", "content": GOAL}
ANSWERED: Row = {"role": "assistant", "content": ANSWER}


def lang_chain() -> list[Row]:
    call = {"name": NAME, "args": ARGUMENTS, "id": ID, "type": "tool_call"}
    return [
        {"type": "human", "content": GOAL, "id": "1"},
        {"type": "ai", "content": "", "tool_calls": [call], "id": "2"},
        {"type": "tool", "content": RESULT, "tool_call_id": ID, "id": "3"},
        {"type": "ai", "content": ANSWER, "id": "4"},
    ]


def sql_history() -> list[Row]:
    """LangChain's table of messages."""
    stored = [{"type": one["type"], "data": one} for one in lang_chain()]
    return [{"id": n, "session_id": SESSION, "message": json.dumps(one)} for n, one in enumerate(stored)]


def agents_session() -> list[Row]:
    """The table of messages in a session of OpenAI's Agents SDK."""
    items: list[Row] = [
        ASKED, {"type": "function_call", "call_id": ID, "name": NAME, "arguments": TEXT},
        {"type": "function_call_output", "call_id": ID, "output": RESULT}, {"type": "message", **ANSWERED},
    ]  # fmt: skip
    return [{"id": n, "session_id": SESSION, "message_data": json.dumps(one)} for n, one in enumerate(items)]


def executor() -> Row:
    action = {"tool": NAME, "tool_input": ARGUMENTS, "log": THOUGHT, "type": "AgentAction"}
    return {"input": GOAL, "intermediate_steps": [[action, RESULT]], "output": ANSWER}


def re_act() -> Row:
    steps = {"thought_0": THOUGHT, "tool_name_0": NAME, "tool_args_0": ARGUMENTS, "observation_0": RESULT}
    return {"question": GOAL, "trajectory": steps, "answer": ANSWER}


def haystack() -> Row:
    call = {"tool_name": NAME, "arguments": ARGUMENTS, "id": ID}
    given = {"result": RESULT, "origin": call, "error": False}
    contents = [("user", {"text": GOAL}), ("assistant", {"tool_call": call}), ("tool", {"tool_call_result": given}),
                ("assistant", {"text": ANSWER})]  # fmt: skip
    return {"messages": [{"_role": role, "_content": [part], "_meta": {}} for role, part in contents]}


def thread_history() -> list[Row]:
    """The states of a thread as LangGraph's server lists them, the newest first."""
    states = [lang_chain()[:end] for end in (4, 3, 2, 1)]
    return [{"values": {"messages": some}, "next": [], "checkpoint": {"thread_id": SESSION}} for some in states]


def smolagents() -> Row:
    """A row of the answers that smolagents' example for GAIA writes."""
    call = {"id": ID, "type": "function", "function": {"name": NAME, "arguments": ARGUMENTS}}
    steps = [{"task": GOAL}, {"step_number": 1, "tool_calls": [call], "model_output": "Look.", "observations": RESULT},
             {"step_number": 2, "tool_calls": [], "model_output": ANSWER, "observations": None}]  # fmt: skip
    return {"question": GOAL, "intermediate_steps": steps, "task_id": SESSION, "true_answer": "SECRET"}


def ragas() -> Row:
    return {"user_input": [{key: item for key, item in one.items() if key != "id"} for one in lang_chain()],
            "reference": "SECRET"}  # fmt: skip


def deep_eval() -> Row:
    tool = {"name": NAME, "inputParameters": ARGUMENTS, "output": RESULT}
    case = {"input": GOAL, "actualOutput": ANSWER, "expectedOutput": "SECRET", "toolsCalled": [tool], "success": True}
    return {"testCases": [case], "metricsScores": []}


def semantic_kernel() -> Row:
    """A chat of Semantic Kernel in Python."""
    call = {"content_type": "function_call", "id": ID, "name": NAME, "arguments": TEXT}
    given = {"content_type": "function_result", "id": ID, "name": NAME, "result": RESULT}
    items = [("user", {"content_type": "text", "text": GOAL}), ("assistant", call), ("tool", given),
             ("assistant", {"content_type": "text", "text": ANSWER})]  # fmt: skip
    return {"messages": [{"content_type": "message", "role": role, "items": [item]} for role, item in items]}


def agent_framework() -> Row:
    """A thread of Microsoft's Agent Framework in Python."""
    contents = [
        ("user", {"type": "text", "text": GOAL}),
        ("assistant", {"type": "function_call", "call_id": ID, "name": NAME, "arguments": TEXT}),
        ("tool", {"type": "function_result", "call_id": ID, "result": RESULT}),
        ("assistant", {"type": "text", "text": ANSWER}),
    ]
    return {"messages": [{"role": {"type": "role", "value": role}, "contents": [one]} for role, one in contents]}


def extensions_ai() -> list[Row]:
    """Messages of Microsoft.Extensions.AI, as its own serializer names fields."""
    contents = [
        ("user", {"$type": "text", "Text": GOAL}),
        ("assistant", {"$type": "functionCall", "CallId": ID, "Name": NAME, "Arguments": ARGUMENTS}),
        ("tool", {"$type": "functionResult", "CallId": ID, "Result": RESULT}),
        ("assistant", {"$type": "text", "Text": ANSWER}),
    ]
    return [{"Role": role, "Contents": [one]} for role, one in contents]


def lang_chain_4j() -> list[Row]:
    request = {"id": ID, "name": NAME, "arguments": TEXT}
    return [{"contents": [{"text": GOAL, "type": "TEXT"}], "type": "USER"},
            {"toolExecutionRequests": [request], "type": "AI"},
            {"id": ID, "toolName": NAME, "text": RESULT, "type": "TOOL_EXECUTION_RESULT"},
            {"text": ANSWER, "type": "AI"}]  # fmt: skip


def ai_sdk(*, is_whole: bool) -> Row:
    """What `generateText` returns; each step's response holds what all steps said, or what it said itself."""
    call = {"type": "tool-call", "toolCallId": ID, "toolName": NAME, "input": ARGUMENTS}
    given = {"type": "tool-result", "toolCallId": ID, "toolName": NAME, "output": {"type": "text", "value": RESULT}}
    first = [{"role": "assistant", "content": [call]}, {"role": "tool", "content": [given]}]
    last = [{"role": "assistant", "content": [{"type": "text", "text": ANSWER}]}]
    request = {"body": json.dumps({"messages": [ASKED]})}
    responses = [{"messages": first}, {"messages": [*first * is_whole, *last]}]
    return {"text": ANSWER, "steps": [{"request": request, "response": one} for one in responses]}


def pydantic_hosted() -> list[Row]:
    """A tool that ran at the provider, as Pydantic AI writes it."""
    told = {"tool_name": NAME, "tool_call_id": ID}
    return [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": GOAL}]},
        {"kind": "response", "parts": [
            {**told, "part_kind": "builtin-tool-call", "args": ARGUMENTS},
            {**told, "part_kind": "builtin-tool-return", "content": RESULT},
            {"part_kind": "text", "content": ANSWER}]},
    ]  # fmt: skip


def legacy() -> list[Row]:
    """Messages with one call of a function, as OpenAI wrote them first."""
    return [ASKED, {"role": "assistant", "content": None, "function_call": {"name": NAME, "arguments": TEXT}},
            {"role": "function", "name": NAME, "content": RESULT}, ANSWERED]  # fmt: skip


def eleven_labs() -> Row:
    call = {"request_id": ID, "tool_name": NAME, "params_as_json": TEXT}
    given = {"request_id": ID, "tool_name": NAME, "result_value": RESULT, "is_error": False}
    turns = [("user", GOAL, [], []), ("agent", None, [call], []), ("agent", None, [], [given]),
             ("agent", ANSWER, [], [])]  # fmt: skip
    return {"conversation_id": SESSION, "transcript": [
        {"role": role, "message": words, "tool_calls": calls, "tool_results": results}
        for role, words, calls, results in turns]}  # fmt: skip


RUNS: dict[str, Callable[[], bytes]] = {
    "langchain's table": lambda: dumped(sql_history()), "agents sdk's table": lambda: dumped(agents_session()),
    "langchain's executor": lambda: dumped(executor()), "dspy's react": lambda: dumped(re_act()),
    "semantic kernel": lambda: dumped(semantic_kernel()), "agent framework": lambda: dumped(agent_framework()),
    "extensions.ai": lambda: dumped(extensions_ai()), "langchain4j": lambda: dumped(lang_chain_4j()),
    "the ai sdk's steps": lambda: dumped(ai_sdk(is_whole=True)),
    "the ai sdk's steps alone": lambda: dumped(ai_sdk(is_whole=False)),
    "pydantic ai's hosted tool": lambda: dumped(pydantic_hosted()),
    "openai's first calls": lambda: dumped(legacy()), "elevenlabs": lambda: dumped(eleven_labs()),
    "calls as text": lambda: dumped([
        {**one, "tool_calls": json.dumps(one["tool_calls"])} if one.get("tool_calls") else one for one in openai()]),
    "haystack": lambda: dumped(haystack()), "langgraph's history": lambda: dumped(thread_history()),
    "langgraph's values": lambda: lines([{"messages": lang_chain()[:end]} for end in (1, 2, 3, 4)]),
    "calls, the newest first": lambda: lines([
        {"request": {"messages": openai()[:end]}, "response": {"choices": [{"message": openai()[end]}]}}
        for end in (4, 2)]),
    "smolagents' answers": lambda: lines([smolagents()]), "ragas": lambda: lines([ragas()]),
    "deepeval": lambda: dumped(deep_eval()),
}  # fmt: skip
"""Runs with a call of a tool."""


def csv_of(row: Row) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, row)
    writer.writeheader()
    writer.writerow(row)
    return file.getvalue().encode()


def parquet_of(row: Row) -> bytes:
    file = io.BytesIO()
    parquet.write_table(Table.from_pylist([row]), file)
    return file.getvalue()


SHORT: dict[str, Callable[[], bytes]] = {
    "promptfoo": lambda: dumped({"results": {"results": [{
        "prompt": {"raw": json.dumps([ASKED])}, "vars": {}, "response": {"output": ANSWER}}]}}),
    "helm": lambda: dumped({"request_states": [{
        "instance": {"references": [{"output": "SECRET"}]}, "request": {"prompt": GOAL, "model": "m-1"},
        "result": {"completions": [{"text": ANSWER}]}}]}),
    "ragas": lambda: lines([{"user_input": GOAL, "response": ANSWER, "retrieved_contexts": [RESULT]}]),
    "rows of messages": lambda: lines([{"input_messages": json.dumps([ASKED]), "output_messages": [ANSWERED]}]),
    "azure's gateway": lambda: lines([{"category": "GatewayLlmLogs", "properties": {
        "RequestMessages": json.dumps([ASKED]), "ResponseMessages": json.dumps([ANSWERED])}}]),
    "a log of logs": lambda: lines([{"timestamp": 1, "message": json.dumps({
        "input": {"inputBodyJson": {"messages": [ASKED]}}, "output": {"outputBodyJson": {"output": {
            "message": ANSWERED}}}})}]),
    "a response with its input": lambda: dumped({"object": "response", "model": "m-1", "input": GOAL, "output": [
        {"type": "message", **ANSWERED}]}),
    "crewai": lambda: dumped({"raw": ANSWER, "tasks_output": [{"description": "d", "messages": [ASKED, ANSWERED]}]}),
    "agentbench": lambda: lines([{"index": 3, "output": {"status": "completed", "history": [
        ASKED, {"role": "agent", "content": ANSWER}]}}]),
    "spring's memory": lambda: dumped([{"conversation_id": SESSION, "content": words, "type": kind}
                                      for kind, words in (("USER", GOAL), ("ASSISTANT", ANSWER))]),
    "cohere": lambda: dumped({"message": GOAL, "response": {"text": ANSWER, "chat_history": [
        {"role": "USER", "message": GOAL}, {"role": "CHATBOT", "message": ANSWER}]}}),
    "retell": lambda: dumped({"call_id": "c", "transcript_object": [ASKED, {"role": "agent", "content": ANSWER}]}),
    "a refusal": lambda: dumped([ASKED, {"role": "assistant", "content": None, "refusal": ANSWER}]),
    "a sound": lambda: dumped([ASKED, {"role": "assistant", "content": None, "audio": {"transcript": ANSWER}}]),
    "har": lambda: dumped({"log": {"entries": [{
        "request": {"postData": {"text": json.dumps({"messages": [ASKED]})}},
        "response": {"content": {"text": json.dumps({"choices": [{"message": ANSWERED}]})}}}]}}),
    "vcr": lambda: dumped({"interactions": [{
        "request": {"body": json.dumps({"messages": [ASKED]})},
        "response": {"body": {"string": json.dumps({"choices": [{"message": ANSWERED}]})}}}]}),
    "chat-ui": lambda: dumped({"title": "t", "model": "m-1", "messages": [
        {"from": "user", "content": GOAL}, {"from": "assistant", "content": ANSWER}]}),
    "upper case": lambda: dumped([{"role": "USER", "content": GOAL}, {"role": "Assistant", "content": ANSWER}]),
    "kebab case": lambda: dumped({"chat-messages": [ASKED, ANSWERED]}),
    "turns": lambda: dumped({"conversation": {"turns": [ASKED, ANSWERED]}}),
    "authors": lambda: dumped([{"author": "user", "text": GOAL}, {"author": "assistant", "text": ANSWER}]),
    "speakers": lambda: dumped({"dialogue": [{"speaker": "human", "utterance": GOAL},
                                             {"speaker": "agent", "utterance": ANSWER}]}),
    "columns of speakers": lambda: lines([{"user": GOAL, "assistant": ANSWER}]),
    "a plain log": lambda: lines([{"query": GOAL, "response": ANSWER, "ts": "2026-01-01"}]),
    "a log with models": lambda: lines([{"input": GOAL, "output": ANSWER, "model": "m-1"}]),
    "csv": lambda: csv_of({"prompt": GOAL, "response": ANSWER, "model": "m-1"}),
    "csv of messages": lambda: csv_of({"task": "t", "messages": json.dumps([ASKED, ANSWERED])}),
    "parquet": lambda: parquet_of({"conversations": [ASKED, {**ANSWERED, "tool_calls": None}]}),
}  # fmt: skip
"""A question and its answer."""
