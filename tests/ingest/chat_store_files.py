"""The story of `envelope_files` as chats and runs that tools keep in forms of their own, made here after these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.ingest.conversation_files import ID, NAME, TEXT, THOUGHT, openai, text
from tests.ingest.envelope_files import ANSWER, ARGUMENTS, GOAL, RESULT, SESSION, SYSTEM, dumped, lines

Row = dict[str, Any]
CALL = {"id": ID, "type": "function", "function": {"name": NAME, "arguments": TEXT}}
OTHER = "At eleven."


# chat interfaces, without tools ---------------------------------------------------------------------------------


def open_webui() -> list[Row]:
    """A chat with an answer that was generated anew."""
    asked = {
        "id": "a",
        "parentId": None,
        "childrenIds": ["b", "x"],
        "role": "user",
        "content": GOAL,
        "timestamp": 1.79e9,
    }
    answer = {"id": "b", "parentId": "a", "childrenIds": [], "role": "assistant", "content": ANSWER, "model": "m-1",
              "done": True, "usage": {"prompt_tokens": 7, "completion_tokens": 2}}  # fmt: skip
    messages = {"a": asked, "b": answer, "x": {**answer, "id": "x", "content": OTHER}}
    chat = {
        "id": "",
        "title": "t",
        "models": ["m-1"],
        "history": {"messages": messages, "currentId": "b"},
        "messages": [],
    }
    return [{"id": SESSION, "user_id": "u", "title": "t", "chat": chat, "archived": False}]


def libre_chat() -> Row:
    rows = [("m0", None, True, GOAL), ("x", "m0", False, OTHER), ("m1", "m0", False, ANSWER)]
    return {"conversationId": SESSION, "endpoint": "openAI", "title": "t", "messages": [
        {"messageId": own, "parentMessageId": above, "sender": "User" if is_user else "M", "text": words,
         "isCreatedByUser": is_user, "model": None if is_user else "m-1", "createdAt": "2026-01-01T00:00:00Z"}
        for own, above, is_user, words in rows]}  # fmt: skip


def ai_studio() -> Row:
    chunks = [
        {"text": GOAL, "role": "user", "tokenCount": 7},
        {"text": THOUGHT, "role": "model", "isThought": True, "tokenCount": 5},
        {"text": ANSWER, "role": "model", "finishReason": "STOP", "tokenCount": 2},
    ]
    system = {"parts": [{"text": SYSTEM}]}
    return {"runSettings": {"model": "m-1"}, "systemInstruction": system, "chunkedPrompt": {"chunks": chunks}}


def rasa() -> Row:
    at = {"timestamp": 1.79e9}
    return {"sender_id": SESSION, "slots": {}, "events": [
        {"event": "action", "name": "action_session_start", "policy": None, **at},
        {"event": "user", "text": GOAL, "parse_data": {"intent": {"name": "ask", "confidence": 0.9}}, **at},
        {"event": "slot", "name": "hour", "value": RESULT, **at},
        {"event": "bot", "text": ANSWER, "data": {"buttons": None}, **at}]}  # fmt: skip


def bot_framework() -> list[Row]:
    def activity(kind: str, who: str, words: str | None) -> Row:
        about = {"timestamp": "2026-01-01T00:00:00Z", "channelId": "emulator", "conversation": {"id": SESSION}}
        return {"type": kind, "id": "i", "from": {"id": who, "role": who}, "text": words, **about}

    return [
        activity("conversationUpdate", "user", None),
        activity("message", "user", GOAL),
        activity("message", "bot", ANSWER),
    ]


def ollama() -> Row:
    answer = {"role": "assistant", "content": ANSWER}
    response = {"model": "m-1", "message": answer, "done": True, "prompt_eval_count": 7, "eval_count": 2}
    return {"id": SESSION, "request": {"model": "m-1", "messages": openai()[:2]}, "response": response}


SHORT: dict[str, Callable[[], bytes]] = {
    "open webui": lambda: dumped(open_webui()),
    "librechat": lambda: dumped(libre_chat()),
    "ai studio": lambda: dumped(ai_studio()),
    "rasa": lambda: dumped(rasa()),
    "bot framework": lambda: dumped(bot_framework()),
    "ollama": lambda: lines([ollama()]),
    "sillytavern": lambda: lines(silly_tavern()),
    "typingmind": lambda: dumped(typing_mind()),
}


# editors and agents ---------------------------------------------------------------------------------------------


def lm_studio() -> Row:
    def step(*content: Row, **more: object) -> Row:
        return {"type": "contentBlock", "content": [*content], **more}

    about = {"identifier": "m-1", "stats": {"promptTokensCount": 7, "predictedTokensCount": 2}}
    call = {"type": "toolCallRequest", "toolCallRequestId": ID, "name": NAME, "parameters": ARGUMENTS}
    steps = [
        step(text(THOUGHT), style={"type": "thinking"}), step(call), {"type": "toolStatus", "callId": 1},
        step({"type": "toolCallResult", "toolCallRequestId": ID, "content": RESULT}), step(text(ANSWER), genInfo=about),
    ]  # fmt: skip
    asked = {"versions": [{"type": "singleStep", "role": "user", "content": [text(GOAL)]}], "currentlySelected": 0}
    first = {"type": "multiStep", "role": "assistant", "steps": [step(text(OTHER))]}
    answer = {"versions": [first, {**first, "steps": steps}], "currentlySelected": 1}
    return {"name": "t", "createdAt": 1.79e12, "systemPrompt": SYSTEM, "messages": [asked, answer]}


def _vs_code_request() -> Row:
    calls = [{"id": ID, "name": NAME, "arguments": TEXT}]
    rounds = [{"response": "", "thinking": {"text": THOUGHT}, "toolCalls": calls}, {"response": ANSWER}]
    metadata = {"toolCallRounds": rounds, "toolCallResults": {ID: {"content": [{"value": RESULT}]}}, "promptTokens": 7,
                "outputTokens": 2, "sessionId": SESSION}  # fmt: skip
    return {"requestId": "r", "message": {"text": GOAL, "parts": []}, "response": [{"value": ANSWER}],
            "timestamp": 1.79e12, "modelId": "m-1", "result": {"timings": {}, "metadata": metadata}}  # fmt: skip


def vs_code() -> Row:
    """The export of a chat with Copilot in VS Code."""
    return {"responderUsername": "GitHub Copilot", "requests": [_vs_code_request()]}


def vs_code_journal() -> list[Row]:
    """The session file of the same, which grows by a line a change."""
    request = _vs_code_request()
    first, result = {**request, "response": [], "result": None}, request["result"]
    return [
        {"kind": 0, "v": {"version": 3, "sessionId": SESSION, "requests": []}},
        {"kind": 2, "k": ["requests"], "v": [first]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "At"}]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": request["response"], "i": 0},
        {"kind": 1, "k": ["requests", 0, "result"], "v": result}, {"kind": 3, "k": ["requests", 0, "requestId"]},
    ]  # fmt: skip


def continued() -> Row:
    """A session of Continue whose results stand at the calls alone."""
    state = {"toolCallId": ID, "toolCall": CALL, "status": "done", "output": [{"name": "r", "content": RESULT}]}
    turns = [("user", GOAL), ("thinking", THOUGHT), ("assistant", ""), ("assistant", ANSWER)]
    history: list[Row] = [{"message": {"role": role, "content": words}, "contextItems": []} for role, words in turns]
    history[2]["toolCallStates"] = [state]
    return {"sessionId": SESSION, "title": "t", "history": history}


def kiro(*, is_pair: bool = False) -> Row:
    """A saved chat of Kiro, or of Amazon Q, which keeps pairs."""
    use = {"id": ID, "name": NAME, "args": ARGUMENTS}
    given = {"tool_use_id": ID, "content": [{"Text": RESULT}], "status": "Success"}
    pairs = [
        ({"Prompt": {"prompt": GOAL}}, {"ToolUse": {"message_id": "m", "content": "", "tool_uses": [use]}}),
        ({"ToolUseResults": {"tool_use_results": [given]}}, {"Response": {"message_id": "n", "content": ANSWER}}),
    ]
    turns: list[Any] = [[{"content": one}, other] for one, other in pairs]
    named = [{"user": one, "assistant": other} for one, other in turns]
    return {"conversation_id": SESSION, "history": turns if is_pair else named, "transcript": ["> x"]}


def zed() -> Row:
    use = {"ToolUse": {"id": ID, "name": NAME, "raw_input": TEXT, "input": ARGUMENTS}}
    given = {ID: {"tool_use_id": ID, "tool_name": NAME, "content": {"Text": RESULT}}}
    return {"version": "0.3.0", "title": "t", "model": {"provider": "p", "model": "m-1"}, "messages": [
        {"User": {"id": "u", "content": [{"Text": GOAL}]}},
        {"Agent": {"content": [{"Thinking": {"text": THOUGHT}}, use], "tool_results": given}},
        {"Agent": {"content": [{"Text": ANSWER}], "tool_results": {}}}]}  # fmt: skip


def trae() -> Row:
    call, used = {"call_id": ID, "name": NAME, "arguments": ARGUMENTS}, {"input_tokens": 7, "output_tokens": 2}
    given = {"role": "user", "tool_result": {"call_id": ID, "success": True, "result": RESULT, "error": None}}

    def turn(asked: list[Row], words: str, calls: list[Row] | None) -> Row:
        response = {"content": words, "model": "m-1", "usage": used, "tool_calls": calls}
        return {"timestamp": "2026-01-01T00:00:00", "input_messages": asked, "response": response}

    steps = [{"step_number": 1, "tool_calls": [call], "tool_results": [given["tool_result"]]}]
    return {"task": GOAL, "max_steps": 2, "success": True, "final_result": ANSWER, "agent_steps": steps,
            "llm_interactions": [turn(openai()[:2], "", [call]), turn([given], ANSWER, None)]}  # fmt: skip


def pi() -> list[Row]:
    """A session of Pi or OpenClaw, which begins with a record that names it."""
    used = {"input": 7, "output": 2, "totalTokens": 9}
    call = {"type": "toolCall", "id": ID, "name": NAME, "arguments": ARGUMENTS}
    thought = {"type": "thinking", "thinking": THOUGHT}
    turns = [
        {"role": "user", "content": [text(GOAL)]},
        {"role": "assistant", "model": "m-1", "usage": used, "content": [thought, call]},
        {"role": "toolResult", "toolCallId": ID, "toolName": NAME, "content": [text(RESULT)], "isError": False},
        {"role": "assistant", "model": "m-1", "usage": used, "content": [text(ANSWER)]},
    ]  # fmt: skip
    told = [{"type": "message", "id": f"m{n}", "message": one} for n, one in enumerate(turns)]
    return [{"type": "session", "version": 3, "id": SESSION, "cwd": "/w"}, *told]


def amp() -> Row:
    result = {"type": "tool_result", "toolUseID": ID, "run": {"status": "done", "result": RESULT}}
    turns = [[text(GOAL)], [{"type": "tool_use", "id": ID, "name": NAME, "input": ARGUMENTS}], [result], [text(ANSWER)]]
    roles = ("user", "assistant") * 2
    told = [{"role": role, "messageId": n, "content": turns[n]} for n, role in enumerate(roles)]
    return {"v": 1, "id": SESSION, "messages": told}


def kimi() -> list[Row]:
    """The context of Kimi's command line: parts and calls beside each other, and marks between the messages."""
    return [
        {"role": "_system_prompt", "content": SYSTEM}, {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": GOAL},
        {"role": "assistant", "content": [{"type": "think", "think": THOUGHT}], "tool_calls": [CALL]},
        {"role": "_usage", "token_count": 9}, {"role": "tool", "content": [text(RESULT)], "tool_call_id": ID},
        {"role": "assistant", "content": [text(ANSWER)]},
    ]  # fmt: skip


# frameworks and platforms ---------------------------------------------------------------------------------------


def llama_index() -> Row:
    def told(role: str, words: str, **more: object) -> Row:
        return {"role": role, "additional_kwargs": more, "blocks": [{"block_type": "text", "text": words}]}

    asked, given = told("user", GOAL), told("tool", RESULT, tool_call_id=ID)
    chat = [asked, told("assistant", "", tool_calls=[CALL]), given, told("assistant", ANSWER)]
    return {"store": {SESSION: chat}, "class_name": "SimpleChatStore"}


def _lang_chain(kind: str, words: str, **more: object) -> Row:
    return {"content": words, "type": kind, "additional_kwargs": {}, "response_metadata": {}, **more}


def lang_chain_events() -> list[Row]:
    """What `astream_events` gives of an agent, a line each."""
    asked = _lang_chain("human", GOAL)
    called = _lang_chain("ai", "", tool_calls=[{"name": NAME, "args": ARGUMENTS, "id": ID, "type": "tool_call"}])
    given, answer = _lang_chain("tool", RESULT, name=NAME, tool_call_id=ID), _lang_chain("ai", ANSWER)
    told = [
        ("on_chain_start", {"input": {"messages": [asked]}}),
        ("on_chat_model_start", {"input": {"messages": [[asked]]}}),
        ("on_chat_model_stream", {"chunk": _lang_chain("AIMessageChunk", "")}),
        ("on_chat_model_end", {"output": called}),
        ("on_tool_start", {"input": ARGUMENTS}), ("on_tool_end", {"output": given}),
        ("on_chat_model_start", {"input": {"messages": [[asked, called, given]]}}),
        ("on_chat_model_end", {"output": answer}),
    ]  # fmt: skip
    about = {"name": NAME, "run_id": "r", "parent_ids": [], "metadata": {"thread_id": SESSION}}
    return [{"event": kind, "data": data, **about} for kind, data in told]


def copilot_studio() -> Row:
    def activity(role: int, kind: str, name: str | None, **more: object) -> Row:
        return {
            "type": kind,
            "name": name,
            "timestamp": 1_790_000_000,
            "from": {"id": "x", "role": role},
            "channelId": "c",
            **more,
        }

    step = {"stepId": "s", "taskDialogId": NAME}
    return {"id": SESSION, "activities": [
        activity(1, "message", None, text=GOAL),
        activity(0, "event", "DynamicPlanStepTriggered", value={**step, "thought": THOUGHT}),
        activity(0, "event", "DynamicPlanStepBindUpdate", value={**step, "arguments": ARGUMENTS}),
        activity(0, "event", "DynamicPlanStepFinished", value={**step, "observation": {"content": RESULT}}),
        activity(0, "message", None, text=ANSWER)]}  # fmt: skip


def bedrock_agent() -> list[Row]:
    """The trace that an agent of Bedrock tells step by step."""
    given = {"function": NAME, "parameters": [{"name": key, "value": value} for key, value in ARGUMENTS.items()]}
    prompt, used = (
        {"system": SYSTEM, "messages": [{"role": "user", "content": GOAL}]},
        {"inputTokens": 7, "outputTokens": 2},
    )
    steps: list[Row] = [
        {"modelInvocationInput": {"text": dumped(prompt).decode(), "type": "ORCHESTRATION"}},
        {"modelInvocationOutput": {"metadata": {"usage": used}, "rawResponse": {"content": "<call>"}}},
        {"rationale": {"text": THOUGHT}}, {"invocationInput": {"actionGroupInvocationInput": given}},
        {"observation": {"actionGroupInvocationOutput": {"text": RESULT}}},
        {"observation": {"finalResponse": {"text": ANSWER}}},
    ]  # fmt: skip
    return [{"sessionId": SESSION, "trace": {"orchestrationTrace": one}} for one in steps]


def bedrock_log() -> list[Row]:
    """The two calls of an agent in Bedrock's log of invocations, each with all that was said before."""
    turns = [
        {"role": "user", "content": [{"text": GOAL}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": ID, "name": NAME, "input": ARGUMENTS}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": ID, "content": [{"text": RESULT}]}}]},
        {"role": "assistant", "content": [{"text": ANSWER}]},
    ]

    def logged(request_id: str, end: int) -> Row:
        output = {"output": {"message": turns[end]}, "usage": {"inputTokens": 7, "outputTokens": 2}}
        return {"schemaType": "ModelInvocationLog", "requestId": request_id, "modelId": "m-1",
                "input": {"inputBodyJson": {"messages": turns[:end], "system": [{"text": SYSTEM}]}},
                "output": {"outputBodyJson": output}}  # fmt: skip

    return [logged(SESSION, 1), logged("r2", 3)]


def adk_cases() -> Row:
    turn = {
        "invocation_id": "i", "user_content": {"role": "user", "parts": [{"text": GOAL}]},
        "final_response": {"role": "model", "parts": [{"text": ANSWER}]}, "intermediate_data": {
            "tool_uses": [{"id": ID, "name": NAME, "args": ARGUMENTS}],
            "tool_responses": [{"id": ID, "name": NAME, "response": {"output": RESULT}}]},
    }  # fmt: skip
    return {"eval_set_id": "s", "eval_cases": [{"eval_id": SESSION, "conversation": [turn]}]}


def agno() -> Row:
    asked, *rest = openai()
    told = [{"role": "user", "content": "Earlier", "from_history": True}, asked, *rest]
    return {"session_id": SESSION, "agent_id": "a", "runs": [{"run_id": "r", "session_id": SESSION, "messages": told}]}


def letta() -> Row:
    """An agent's file, in which what the user wrote stands as JSON."""
    asked = dumped({"type": "user_message", "message": GOAL}).decode()
    told = [
        {"role": "user", "content": [text(asked)]},
        {"role": "assistant", "content": [text("")], "tool_calls": [CALL]},
        {"role": "tool", "content": [text(RESULT)], "tool_call_id": ID},
        {"role": "assistant", "content": [text(ANSWER)]},
    ]
    return {"agents": [{"id": SESSION, "name": "pilot", "messages": told}], "tools": []}


def assistants() -> Row:
    """The messages of a thread, the newest first, and the steps of its run."""
    given = [("assistant", ANSWER, 3), ("user", GOAL, 0)]
    told = [{"id": f"m{at}", "object": "thread.message", "created_at": 1_790_000_000 + at, "role": role,
             "content": [{"type": "text", "text": {"value": words, "annotations": []}}]}
            for role, words, at in given]  # fmt: skip
    call = {"id": ID, "type": "function", "function": {**CALL["function"], "output": RESULT}}  # type: ignore[dict-item]
    step = {"id": "s", "created_at": 1_790_000_001, "type": "tool_calls", "step_details": {"tool_calls": [call]}}
    return {"thread": {"id": SESSION}, "messages": told, "run_steps": [step]}


def hermes() -> list[Row]:
    """A row of training data in which the model wrote its call between tags."""
    call, result = dumped({"name": NAME, "arguments": ARGUMENTS}).decode(), {"name": NAME, "content": RESULT}
    told = [("human", GOAL), ("gpt", f"<tool_call>\n{call}\n</tool_call>"),
            ("tool", f"<tool_response>\n{dumped(result).decode()}\n</tool_response>"), ("gpt", ANSWER)]  # fmt: skip
    return [{"id": SESSION, "conversations": [{"from": who, "value": words} for who, words in told]}]


def silly_tavern() -> list[Row]:
    told = [(True, GOAL), (False, ANSWER)]
    head = {"user_name": "You", "character_name": "M", "chat_metadata": {}}
    return [head, *({"name": "x", "is_user": is_user, "mes": words, "swipes": [words]} for is_user, words in told)]


def typing_mind() -> Row:
    told = [{"role": role, "content": [text(words)]} for role, words in (("user", GOAL), ("assistant", ANSWER))]
    return {"data": {"chats": [{"id": SESSION, "chatTitle": "t", "messages": told}], "folders": []}, "checksum": "x"}


MADE: dict[str, Callable[[], Any]] = {
    "assistants": assistants, "hermes rows": hermes, "sillytavern": silly_tavern, "typingmind": typing_mind,
    "lm studio": lm_studio, "vs code": vs_code, "vs code journal": vs_code_journal, "continue, calls alone": continued,
    "kiro": kiro, "zed": zed, "trae": trae, "pi": pi, "amp": amp, "kimi": kimi, "llama-index store": llama_index,
    "langchain events": lang_chain_events, "copilot studio": copilot_studio, "bedrock agent": bedrock_agent,
    "bedrock log": bedrock_log, "adk cases": adk_cases, "agno": agno, "letta file": letta,
    "amazon q": lambda: kiro(is_pair=True), "open webui": open_webui, "librechat": libre_chat, "ai studio": ai_studio,
    "rasa": rasa, "bot framework": bot_framework,
}  # fmt: skip
FILES: dict[str, Callable[[], bytes]] = {
    name: (lambda make=make: lines(make()) if isinstance(make(), list) else dumped(make()))  # type: ignore[misc]
    for name, make in MADE.items()
    if name not in SHORT
}
NAMELESS = frozenset({"lm studio", "zed", "trae", "kimi"})
"""Files that name no session: the trace is called as the file."""
