"""The story of `envelope_files` as saved chats and sessions of agents, made here after their tools' own forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.ingest.envelope_files import ANSWER, ARGUMENTS, GOAL, RESULT, SESSION, SYSTEM, dumped, lines
from tests.ingest.vendor_files import messages

Row = dict[str, Any]
ID, NAME = "call_1", "tide"
TEXT = json.dumps(ARGUMENTS)
THOUGHT = "The table tells it."


def openai() -> list[Row]:
    asked, (answer,) = messages("")
    return [{"role": "system", "content": SYSTEM}, *asked, answer]


def text(words: str) -> Row:
    return {"type": "text", "text": words}


def said(role: str, *parts: Row, **more: object) -> Row:
    return {"role": role, "content": [*parts], **more}


def anthropic() -> list[Row]:
    use = {"type": "tool_use", "id": ID, "name": NAME, "input": ARGUMENTS}
    return [
        said("user", text(f"<task>{GOAL}</task>"), text("<environment_details>/w</environment_details>"), ts=1.79e12),
        said("assistant", use), said("user", {"type": "tool_result", "tool_use_id": ID, "content": [text(RESULT)]}),
        said("assistant", text(ANSWER)),
    ]  # fmt: skip


def gemini(key: str) -> list[Row]:
    """Contents of Gemini: bare, or as ADK's events and Qwen Code's records wrap them."""
    contents = [
        {"role": "user", "parts": [{"text": GOAL}]},
        {"role": "model", "parts": [{"functionCall": {"id": ID, "name": NAME, "args": ARGUMENTS}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": ID, "name": NAME, "response": {"output": RESULT}}}]},
        {"role": "model", "parts": [{"text": ANSWER}]},
    ]
    if key == "content":
        return [{"content": one, "author": "pilot", "id": f"e{n}", "invocation_id": "i", "timestamp": 1.79e9 + n}
                for n, one in enumerate(contents)]  # fmt: skip
    return [
        {"uuid": f"u{n}", "parentUuid": f"u{n - 1}", "sessionId": SESSION, "type": "x", "message": one,
         "timestamp": f"2026-01-01T00:00:0{n}Z", "usageMetadata": {"promptTokenCount": 1}}
        for n, one in enumerate(contents)
    ]  # fmt: skip


def gemini_cli() -> Row:
    result = [{"functionResponse": {"id": ID, "name": NAME, "response": {"output": RESULT}}}]
    call = {"id": ID, "name": NAME, "args": ARGUMENTS, "result": result, "status": "success"}
    return {"sessionId": SESSION, "projectHash": "h", "messages": [
        {"id": "1", "timestamp": "2026-01-01T00:00:00Z", "type": "user", "content": GOAL},
        {"id": "2", "timestamp": "2026-01-01T00:00:03Z", "type": "gemini", "content": "", "toolCalls": [call],
         "thoughts": [{"subject": "Plan", "description": THOUGHT}], "model": "m-1",
         "tokens": {"input": 7, "output": 2}},
        {"id": "3", "timestamp": "2026-01-01T00:00:05Z", "type": "gemini", "content": ANSWER},
    ]}  # fmt: skip


def gemini_stream() -> list[Row]:
    return [
        {"type": "init", "session_id": SESSION, "model": "m-1"}, {"type": "message", "role": "user", "content": GOAL},
        {"type": "tool_use", "tool_name": NAME, "tool_id": ID, "parameters": ARGUMENTS},
        {"type": "tool_result", "tool_id": ID, "status": "success", "output": RESULT},
        {"type": "message", "role": "assistant", "content": ANSWER[:4], "delta": True},
        {"type": "message", "role": "assistant", "content": ANSWER[4:], "delta": True},
        {"type": "result", "status": "success", "stats": {"total_tokens": 9}},
    ]  # fmt: skip


def copilot() -> list[Row]:
    request = {"toolCallId": ID, "name": NAME, "arguments": ARGUMENTS}
    return [
        {"type": "session.start", "data": {"sessionId": SESSION, "producer": "copilot-agent"}, "id": "1"},
        {"type": "user.message", "data": {"content": GOAL}, "id": "2"},
        {"type": "assistant.message", "data": {"messageId": "m", "content": "", "toolRequests": [request]}, "id": "3"},
        {"type": "tool.execution_start", "data": {"toolCallId": ID, "toolName": NAME}, "id": "4"},
        {"type": "tool.execution_complete", "data": {"toolCallId": ID, "success": True, "result": {"content": RESULT}}},
        {"type": "assistant.message", "data": {"messageId": "n", "content": ANSWER, "toolRequests": []}, "id": "6"},
    ]


def cursor() -> list[Row]:
    call = {"type": "tool_call", "call_id": ID, "session_id": SESSION}
    return [
        {"type": "system", "subtype": "init", "session_id": SESSION, "model": "m-1"},
        {"type": "user", "message": said("user", text(GOAL)), "session_id": SESSION},
        {**call, "subtype": "started", "tool_call": {"tideToolCall": {"args": ARGUMENTS}}},
        {**call, "subtype": "completed", "tool_call": {"tideToolCall": {
            "args": ARGUMENTS, "result": {"success": {"content": RESULT}}}}},
        {"type": "assistant", "message": said("assistant", text(ANSWER)), "session_id": SESSION},
        {"type": "result", "subtype": "success", "result": ANSWER, "session_id": SESSION},
    ]  # fmt: skip


def goose() -> list[Row]:
    call = {"type": "toolRequest", "id": ID, "toolCall": {"status": "success", "value": {
        "name": NAME, "arguments": ARGUMENTS}}}  # fmt: skip
    result = {"type": "toolResponse", "id": ID, "toolResult": {"status": "success", "value": [text(RESULT)]}}
    return [said("user", text(GOAL)), said("assistant", call), said("user", result), said("assistant", text(ANSWER))]


def opencode() -> Row:
    tool = {"type": "tool", "callID": ID, "tool": NAME, "state": {
        "status": "completed", "input": ARGUMENTS, "output": RESULT}}  # fmt: skip
    about = {"role": "assistant", "modelID": "m-1", "time": {"created": 1_790_000_001_000}, "tokens": {"input": 7}}
    return {"info": {"id": SESSION, "title": "t"}, "messages": [
        {"info": {"role": "user", "time": {"created": 1_790_000_000_000}}, "parts": [text(GOAL)]},
        {"info": about, "parts": [{"type": "step-start"}, {"type": "reasoning", "text": THOUGHT}, tool]},
        {"info": about, "parts": [text(ANSWER), {"type": "step-finish"}]},
    ]}  # fmt: skip


def ui() -> list[Row]:
    tool = {"type": "tool-tide", "toolCallId": ID, "state": "output-available", "input": ARGUMENTS, "output": RESULT}
    return [{"id": "1", "role": "user", "parts": [text(GOAL)]},
            {"id": "2", "role": "assistant", "parts": [{"type": "step-start"}, tool, text(ANSWER)]}]  # fmt: skip


def share_gpt() -> list[Row]:
    turns = [("human", GOAL), ("function_call", json.dumps({"name": NAME, "arguments": ARGUMENTS})),
             ("observation", RESULT), ("gpt", ANSWER)]  # fmt: skip
    return [{"id": SESSION, "conversations": [{"from": who, "value": value} for who, value in turns]}]


def pydantic() -> list[Row]:
    return [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": GOAL}]},
        {"kind": "response", "parts": [{"part_kind": "thinking", "content": THOUGHT}, {
            "part_kind": "tool-call", "tool_name": NAME, "args": ARGUMENTS, "tool_call_id": ID}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "content": RESULT, "tool_call_id": ID}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": ANSWER}], "model_name": "m-1"},
    ]  # fmt: skip


def letta() -> list[Row]:
    call = {"name": NAME, "arguments": TEXT, "tool_call_id": ID}
    return [
        {"message_type": "user_message", "content": GOAL},
        {"message_type": "reasoning_message", "reasoning": THOUGHT},
        {"message_type": "tool_call_message", "tool_call": call},
        {"message_type": "tool_return_message", "tool_return": RESULT, "tool_call_id": ID, "status": "success"},
        {"message_type": "assistant_message", "content": ANSWER},
    ]


def semantic_kernel() -> list[Row]:
    items = [
        ("user", {"$type": "TextContent", "Text": GOAL}),
        ("assistant", {"$type": "FunctionCallContent", "Id": ID, "FunctionName": NAME, "Arguments": ARGUMENTS}),
        ("tool", {"$type": "FunctionResultContent", "CallId": ID, "FunctionName": NAME, "Result": RESULT}),
        ("assistant", {"$type": "TextContent", "Text": ANSWER}),
    ]
    return [{"Role": {"Label": role}, "Items": [item]} for role, item in items]


def langgraph() -> list[Row]:
    held = [
        {"type": "human", "content": GOAL}, {"type": "tool", "content": RESULT, "tool_call_id": ID, "name": NAME},
        {"type": "ai", "content": "", "tool_calls": [{"name": NAME, "args": ARGUMENTS, "id": ID, "type": "tool_call"}]},
        {"type": "ai", "content": ANSWER},
    ]  # fmt: skip
    asked, result, call, answer = held
    config = {"configurable": {"thread_id": SESSION, "checkpoint_id": "c"}}
    return [{"values": {"messages": [asked, call, result, answer]}, "next": [], "config": config}]


def smolagents() -> list[Row]:
    def step(number: int, said: str, call: str, arguments: object, observed: str, **more: object) -> Row:
        calls = [{"id": call, "type": "function", "function": {"name": NAME, "arguments": arguments}}]
        return {"step_number": number, "model_output": said, "observations": observed, "tool_calls": calls, **more}

    return [{"task": GOAL}, step(1, "Look.", ID, ARGUMENTS, RESULT, is_final_answer=False),
            {"step_number": 2, "model_output": "So.", "observations": "", "action_output": ANSWER,
             "is_final_answer": True}]  # fmt: skip


def tau() -> list[Row]:
    gold = {"task": {"actions": [{"name": "SECRET"}], "instruction": "SECRET"}}
    return [{"task_id": SESSION, "reward": 1.0, "info": gold, "traj": openai(), "trial": 0}]


def thread() -> Row:
    """Messages of OpenAI's threads, the newest first."""
    return {"object": "list", "data": [
        {"object": "thread.message", "role": role, "thread_id": SESSION, "created_at": 1_790_000_000 + second,
         "content": [{"type": "text", "text": {"value": words, "annotations": []}}]}
        for role, second, words in (("assistant", 9, ANSWER), ("user", 0, GOAL))
    ]}  # fmt: skip


def ai_sdk() -> Row:
    """Messages of the AI SDK before version 5, with the calls of tools beside the words."""
    call = {"state": "result", "toolCallId": ID, "toolName": NAME, "args": ARGUMENTS, "result": RESULT}
    asked = {"role": "user", "content": GOAL}
    return {"id": SESSION, "messages": [asked, {"role": "assistant", "content": ANSWER, "toolInvocations": [call]}]}


def gateway() -> Row:
    """A request and its answer, as gateways log them."""
    *asked, answer = openai()
    response = {"choices": [{"index": 0, "message": answer}], "usage": {"total_tokens": 9}}
    return {"request_id": SESSION, "request": {"model": "m-1", "messages": asked}, "response": response}


def continued() -> Row:
    """A session of Continue."""
    asked, result = {"role": "user", "content": GOAL}, {"role": "tool", "content": RESULT, "toolCallId": ID}
    call = {"id": ID, "type": "function", "function": {"name": NAME, "arguments": TEXT}}
    turns = [asked, {"role": "assistant", "content": "", "toolCalls": [call]}, result]
    held = [{"message": one, "contextItems": []} for one in (*turns, {"role": "assistant", "content": ANSWER})]
    return {"sessionId": SESSION, "title": "t", "history": held}


def chat_gpt() -> list[Row]:
    """A chat of ChatGPT's export, with an answer that was generated anew."""

    def turn(role: str, kind: str, words: str, **more: object) -> Row:
        content = {"content_type": kind, **({"parts": [words]} if kind == "text" else {"text": words})}
        return {"author": {"role": role, "name": more.pop("name", None)}, "content": content, "create_time": 1.79e9,
                "recipient": more.pop("recipient", "all"), "metadata": {"model_slug": "m-1"}}  # fmt: skip

    told = [
        None, turn("system", "text", ""), turn("user", "text", GOAL),
        {"author": {"role": "assistant"}, "recipient": "all", "metadata": {}, "content": {
            "content_type": "thoughts", "thoughts": [{"summary": "Look", "content": THOUGHT}]}},
        turn("assistant", "code", TEXT, recipient=NAME), turn("tool", "execution_output", RESULT, name=NAME),
        turn("assistant", "text", ANSWER),
    ]  # fmt: skip
    nodes = {f"n{n}": {"id": f"n{n}", "message": one, "parent": f"n{n - 1}" if n else None, "children": [f"n{n + 1}"]}
             for n, one in enumerate(told)}  # fmt: skip
    nodes["x"] = {"id": "x", "message": turn("assistant", "text", "At eleven."), "parent": "n5", "children": []}
    return [{"title": "t", "conversation_id": SESSION, "id": SESSION, "mapping": nodes, "current_node": "n6"}]


def claude_ai() -> list[Row]:
    """A chat of Claude's export."""
    use = {"type": "tool_use", "id": ID, "name": NAME, "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": ID, "content": [text(RESULT)]}
    thought = {"type": "thinking", "thinking": THOUGHT}
    chat = [("human", GOAL, [text(GOAL)]), ("assistant", ANSWER, [thought, use, result, text(ANSWER)])]
    return [{"uuid": SESSION, "name": "t", "chat_messages": [
        {"uuid": f"u{n}", "text": words, "content": parts, "sender": who, "attachments": [], "files": []}
        for n, (who, words, parts) in enumerate(chat)]}]  # fmt: skip


def ag_ui() -> list[Row]:
    begun = {"threadId": "t", "runId": SESSION, "input": {"messages": [{"id": "u", "role": "user", "content": GOAL}]}}
    return [
        {"type": "RUN_STARTED", **begun},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": THOUGHT},
        {"type": "TOOL_CALL_START", "toolCallId": ID, "toolCallName": NAME, "parentMessageId": "m"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": ID, "delta": TEXT[:5]},
        {"type": "TOOL_CALL_ARGS", "toolCallId": ID, "delta": TEXT[5:]}, {"type": "TOOL_CALL_END", "toolCallId": ID},
        {"type": "TOOL_CALL_RESULT", "messageId": "k", "toolCallId": ID, "content": RESULT, "role": "tool"},
        {"type": "TEXT_MESSAGE_START", "messageId": "n", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "n", "delta": ANSWER[:3]},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "n", "delta": ANSWER[3:]},
        {"type": "TEXT_MESSAGE_END", "messageId": "n"}, {"type": "RUN_FINISHED", "threadId": "t", "runId": SESSION},
    ]  # fmt: skip


def sent(events: list[Row]) -> bytes:
    """Events as a server sends them."""
    return "".join(f"event: message\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def cline() -> list[Row]:
    told = [
        ("say", "task", GOAL), ("say", "api_req_started", json.dumps({"tokensIn": 7, "tokensOut": 2})),
        ("ask", "use_mcp_server", json.dumps({"tool": NAME})), ("say", "mcp_server_response", RESULT),
        ("say", "api_req_started", json.dumps({"tokensIn": 9, "tokensOut": 3})),
        ("say", "text", ANSWER[:3]), ("say", "completion_result", ANSWER), ("ask", "completion_result", ""),
    ]  # fmt: skip
    rows = [{"ts": 1_790_000_000_000 + n, "type": kind, kind: what, "text": words, "partial": False}
            for n, (kind, what, words) in enumerate(told)]  # fmt: skip
    rows[2] = {**rows[2], "ask": "tool", "text": json.dumps({"tool": NAME, **ARGUMENTS})}
    return [*rows[:5], {**rows[5], "partial": True}, *rows[6:]]


def strands() -> list[Row]:
    call, result = {"toolUseId": ID, "name": NAME, "input": ARGUMENTS}, {"toolUseId": ID, "content": [{"text": RESULT}]}
    asked, given = said("user", {"text": GOAL}), said("user", {"toolResult": {**result, "status": "success"}})
    return [asked, said("assistant", {"toolUse": call}), given, said("assistant", {"text": ANSWER})]


def spend_logs() -> list[Row]:
    """The two calls of one session in LiteLLM's log, each with all that was said before."""
    asked, made = openai(), []
    for number, end in enumerate((2, 4)):
        response = {"object": "chat.completion", "model": "m-1", "choices": [{"index": 0, "message": asked[end]}],
                    "usage": {"prompt_tokens": 7, "completion_tokens": 2}}  # fmt: skip
        about = {"request_id": f"r{number}", "session_id": SESSION, "call_type": "acompletion", "spend": 0.1}
        made.append({**about, "messages": asked[:end], "response": json.dumps(response)})
    return made


def portkey() -> Row:
    *asked, answer = openai()
    body = {"choices": [{"message": answer}], "model": "m-1", "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    return {"id": "log", "trace_id": SESSION, "request": {"method": "POST", "body": {"messages": asked}},
            "response": {"status": 200, "body": body}}  # fmt: skip


def helicone() -> Row:
    row = portkey()
    return {"request_id": SESSION, "request_body": row["request"]["body"], "response_body": row["response"]["body"]}


def vertex_batch() -> Row:
    *asked, answer = gemini("content")
    contents, candidate = [one["content"] for one in asked], {"content": answer["content"], "finishReason": "STOP"}
    used = {"promptTokenCount": 7, "candidatesTokenCount": 2}
    request = {"contents": contents, "systemInstruction": {"parts": [{"text": SYSTEM}]}}
    return {"id": SESSION, "status": "", "request": request, "response": {
        "candidates": [candidate], "usageMetadata": used, "modelVersion": "m-1"}}  # fmt: skip


def bedrock_batch() -> Row:
    *asked, answer = anthropic()
    output = {"type": "message", "model": "m-1", "usage": {"input_tokens": 7, "output_tokens": 2}, **answer}
    return {"recordId": SESSION, "modelInput": {"system": SYSTEM, "messages": asked}, "modelOutput": output}


def dify() -> Row:
    """Messages of Dify's API: a question with its answer is one."""
    thought = {"id": ID, "tool": NAME, "tool_input": TEXT, "observation": RESULT, "thought": "", "position": 1}
    about = {"id": "m", "conversation_id": SESSION, "inputs": {}, "created_at": 1_790_000_000}
    return {"data": [{**about, "query": GOAL, "answer": ANSWER, "agent_thoughts": [thought]}], "has_more": False}


def flowise() -> list[Row]:
    used = [{"tool": NAME, "toolInput": ARGUMENTS, "toolOutput": RESULT}]
    asked = {"id": "1", "role": "userMessage", "content": GOAL, "sessionId": SESSION, "chatflowid": "f"}
    return [asked, {**asked, "id": "2", "role": "apiMessage", "content": ANSWER, "usedTools": json.dumps(used)}]


FILES: dict[str, Callable[[], bytes]] = {
    "messages": lambda: dumped(openai()),
    "message lines": lambda: lines(openai()),
    "request": lambda: dumped({"model": "m-1", "messages": openai(), "tools": []}),
    "anthropic, cline": lambda: dumped(anthropic()),
    "adk session": lambda: dumped({"id": SESSION, "app_name": "pilot", "events": gemini("content")}),
    "qwen code": lambda: lines(gemini("message")),
    "gemini cli": lambda: dumped(gemini_cli()),
    "gemini cli stream": lambda: lines(gemini_stream()),
    "copilot cli": lambda: lines(copilot()),
    "cursor": lambda: lines(cursor()),
    "goose": lambda: lines([{"working_dir": "/w", "description": "d"}, *goose()]),
    "goose export": lambda: dumped({"id": SESSION, "working_dir": "/w", "conversation": goose()}),
    "opencode": lambda: dumped(opencode()),
    "ui messages": lambda: dumped(ui()),
    "sharegpt": lambda: dumped(share_gpt()),
    "pydantic ai": lambda: dumped(pydantic()),
    "letta": lambda: dumped(letta()),
    "semantic kernel": lambda: dumped(semantic_kernel()),
    "langgraph": lambda: dumped(langgraph()),
    "smolagents": lambda: dumped(smolagents()),
    "tau-bench": lambda: dumped(tau()),
    "ai sdk 4": lambda: dumped(ai_sdk()),
    "gateway": lambda: lines([gateway()]),
    "continue": lambda: dumped(continued()),
    "chatgpt export": lambda: dumped(chat_gpt()),
    "claude.ai export": lambda: dumped(claude_ai()),
    "ag-ui lines": lambda: lines(ag_ui()),
    "ag-ui stream": lambda: sent(ag_ui()),
    "cline ui": lambda: dumped(cline()),
    "strands messages": lambda: dumped(strands()),
    "litellm spend logs": lambda: lines(spend_logs()),
    "portkey": lambda: lines([portkey()]),
    "helicone": lambda: lines([helicone()]),
    "vertex batch": lambda: lines([vertex_batch()]),
    "bedrock batch": lambda: lines([bedrock_batch()]),
    "dify messages": lambda: dumped(dify()),
    "flowise messages": lambda: dumped(flowise()),
    "training rows": lambda: lines([{"messages": json.dumps(openai()), "instance_id": SESSION}]),
}
