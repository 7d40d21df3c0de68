"""Dialects whose tools do not run here: one question to a harbour's desk, as each tool's documentation writes it.

The samples are written by hand after these pages (what tools themselves wrote is in `dialects`):

| dialect | after |
|---|---|
| Vercel AI SDK 3 to 6 | ai-sdk.dev, "Telemetry"; `packages/ai/src/telemetry` |
| Claude Code | code.claude.com, "Monitoring"; detailed beta tracing |
| Codex | `codex-rs/otel`, its events `codex.*` |
| Gemini CLI | its page "Observability" |
| Azure AI agents, Semantic Kernel | `gen_ai.event.content` of azure-ai-projects and Semantic Kernel |
| Genkit | its pages on telemetry; `core/src/tracing/instrumentation.ts` |
| Haystack 2 | `haystack/core/pipeline/base.py`, `haystack/components/agents/agent.py` (version 3 is in `dialects`) |
| ADK 1.x | `google/adk/telemetry/tracing.py` |
| Pydantic AI | `pydantic_ai/models/instrumented.py`, versions 1 to 3 |
| Logfire for OpenAI and Anthropic | `logfire/_internal/integrations/llm_providers` |
| Koog | its page "OpenTelemetry support": an event's body as the attribute `body` |
| Mastra | its page "AI Tracing", the OpenTelemetry exporter |
| CrewAI | `crewai/telemetry/telemetry.py`; OpenLLMetry's instrumentation |
| DSPy, Bedrock | OpenInference's instrumentations |
| LiveKit Agents | `livekit/agents/telemetry/trace_types.py` |
| LangWatch | `langwatch/attributes.py` |
| Spring AI | its page "Observability", its handlers of observations in its public repository |
| Braintrust | its page "OpenTelemetry" |
| prompt flow | its page "Trace span specification" |
| Monocle | files of its exporter in its public repository |
| Pipecat | its page "OpenTelemetry Tracing": `input`, `output` |
| OpenLIT, Langtrace | events `gen_ai.content.*`, of messages or of plain text |
| any-agent | files of its traces in its public repository |
"""

import json
from typing import Any

import pytest
from tests.ingest.spans import otlp, span, trace

from tracejury.ingest.readers import read_bytes
from tracejury.ingest.trace import Span, Trace
from tracejury.judging.judges.trace_text import render_trace

ASKED, ANSWERED, RULE = "How deep is the harbour?", "Nine metres.", "Be exact."
CALL, ARGUMENTS, RESULT = "k7", '{"at":"quay"}', '{"depth":9}'


def calls(found: Trace) -> list[Span]:
    return [one for one in found.spans if one.kind == "LLM"]


def tool(found: Trace) -> Span:
    return next(one for one in found.spans if one.kind == "TOOL")


def words(found: Trace, one: Span) -> list[str | None]:
    return [found.messages[at].content for at in (*one.input_messages, *one.output_messages)]


def check(found: Trace, *, tokens: int | None = 12) -> None:
    """What every sample tells: the question, the call of the tool with its result, the answer."""
    text = render_trace(found).text
    assert ASKED in text
    assert ANSWERED in text
    assert (tool(found).tool_name, tool(found).tool_arguments, tool(found).output) == ("sonar", ARGUMENTS, RESULT)
    assert found.goal == ASKED
    assert found.final_answer == ANSWERED
    assert not [warning for warning in found.all_warnings if warning.startswith("no_")]
    if tokens is not None:
        assert sum(one.total_tokens or 0 for one in found.leaf_llm_spans()) == tokens


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_the_vercel_ai_sdk(version: int) -> None:
    base = "ai.result." if version == 3 else "ai.response."
    given, got = ("args", "result") if version < 6 else ("input", "output")
    counts = ("promptTokens", "completionTokens") if version < 5 else ("inputTokens", "outputTokens")
    asked = [{"role": "system", "content": RULE}, {"role": "user", "content": [{"type": "text", "text": ASKED}]}]
    call = {"toolCallId": CALL, "toolName": "sonar", "args" if version < 5 else "input": json.loads(ARGUMENTS)}
    found = trace(
        span("ai.streamText", {"ai.operationId": "ai.streamText", f"{base}text": ANSWERED,
                               "ai.prompt": {"system": RULE, "messages": asked[1:]}}),
        span("ai.streamText.doStream",
             {"ai.operationId": "ai.streamText.doStream", "ai.model.id": "m", "ai.prompt.messages": asked,
              f"{base}toolCalls": [call], f"{base}reasoning": "Ask the sonar.",
              "ai.prompt.tools": [json.dumps({"name": "sonar", "description": "Measures depth."})],
              f"ai.usage.{counts[0]}": 8, f"ai.usage.{counts[1]}": 4}, parent=0),
        span("ai.toolCall", {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "sonar", "ai.toolCall.id": CALL,
                             f"ai.toolCall.{given}": ARGUMENTS, f"ai.toolCall.{got}": RESULT}, parent=0),
        scope="ai",
    )  # fmt: skip
    check(found)
    (call_span,) = calls(found)
    (answer,) = (found.messages[at] for at in call_span.output_messages)
    assert (answer.tool_calls[0].name, answer.tool_calls[0].id, answer.reasoning) == ("sonar", CALL, "Ask the sonar.")
    assert words(found, call_span)[:2] == [RULE, ASKED]


@pytest.mark.parametrize("name", ["ai.toolCall.name", "gen_ai.tool.name"])
def test_a_tool_that_langfuse_keeps_as_a_span_is_a_tool(name: str) -> None:
    kind = {"langfuse.observation.type": "span", name: "sonar", "langfuse.observation.input": ARGUMENTS}
    found = trace(span("ai.toolCall", {**kind, "langfuse.observation.output": RESULT}))
    assert (tool(found).tool_name, tool(found).tool_arguments, tool(found).output) == ("sonar", ARGUMENTS, RESULT)


def test_an_agent_of_ag2_that_langfuse_keeps_as_a_span_is_an_agent() -> None:
    attributes = {"langfuse.observation.type": "span", "ag2.span.type": "agent", "ag2.agent.name": "desk"}
    found = trace(span("invoke_agent desk", attributes), span("other", {"langfuse.observation.type": "span"}))
    assert [(one.kind, one.agent) for one in found.spans] == [("AGENT", "desk"), ("CHAIN", None)]


def test_genkit() -> None:
    def action(name: str, subtype: str, given: Any, got: Any, parent: int | None = 0) -> dict[str, Any]:
        fields = {"type": "action", "metadata:subtype": subtype, "name": name, "input": given, "output": got}
        return span(name, {f"genkit:{key}": value for key, value in fields.items()}, parent=parent)

    usage = {"inputTokens": 8, "outputTokens": 4, "totalTokens": 12}
    asked = [{"role": "user", "content": [{"text": ASKED}]}]
    request = {"toolRequest": {"name": "sonar", "ref": CALL, "input": json.loads(ARGUMENTS)}}
    check(trace(
        action("deskFlow", "flow", json.dumps(ASKED), json.dumps(ANSWERED), None),
        action("googleai/m", "model", {"messages": asked},
               {"message": {"role": "model", "content": [request]}, "finishReason": "stop", "usage": usage}),
        action("sonar", "tool", ARGUMENTS, RESULT),
        action("books", "retriever", {"query": ASKED}, {"documents": [{"content": [{"text": "A chart."}]}]}),
    ))  # fmt: skip


def test_haystack() -> None:
    asked = {"messages": [{"role": "user", "content": [{"text": ASKED}]}]}
    message = {"role": "assistant", "content": [{"text": ANSWERED}],
               "meta": {"model": "m", "usage": {"prompt_tokens": 8, "completion_tokens": 4}}}  # fmt: skip
    found = trace(
        span("haystack.agent.run", {"haystack.agent.input": asked, "haystack.agent.output": {"messages": [message]}}),
        span("haystack.component.run",
             {"haystack.component.type": "OpenAIChatGenerator", "haystack.component.name": "chat_generator",
              "haystack.component.input": asked,
              "haystack.component.output": {"replies": [message]},
              "haystack.component.input_spec": {"messages": {"type": "list"}}}, parent=0),
        span("haystack.component.run",
             {"haystack.component.type": "ToolInvoker", "haystack.component.name": "sonar",
              "haystack.component.input": ARGUMENTS, "haystack.component.output": RESULT}, parent=0),
        span("haystack.component.run",
             {"haystack.component.type": "InMemoryBM25Retriever", "haystack.component.name": "retriever",
              "haystack.component.output": {"documents": [{"content": "A chart."}]}}, parent=0),
    )  # fmt: skip
    check(found)
    assert [one.kind for one in found.spans] == ["AGENT", "LLM", "TOOL", "RETRIEVER"]
    assert calls(found)[0].model == "m"


def test_googles_adk() -> None:
    base = "gcp.vertex.agent."
    request = {"model": "m", "config": {"system_instruction": RULE, "tools": [{"function_declarations": []}]},
               "contents": [{"role": "user", "parts": [{"text": ASKED}]}]}  # fmt: skip
    response = {"content": {"role": "model", "parts": [{"text": ANSWERED}]}, "finish_reason": "STOP",
                "usage_metadata": {"prompt_token_count": 8, "candidates_token_count": 4}}  # fmt: skip
    found = trace(
        span("invocation"),
        span("agent_run [desk]", parent=0),
        span("call_llm", {"gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "m",
                          f"{base}llm_request": request, f"{base}llm_response": response}, parent=1),
        span("execute_tool sonar", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "sonar",
                                    f"{base}tool_call_args": ARGUMENTS, f"{base}tool_response": RESULT,
                                    f"{base}llm_request": "{}", f"{base}llm_response": "{}"}, parent=1),
        scope="gcp.vertex.agent",
    )  # fmt: skip
    check(found)
    assert words(found, calls(found)[0]) == [RULE, ASKED, ANSWERED]


def test_claude_code() -> None:
    found = trace(
        span("claude_code.interaction", {"span.type": "interaction", "user_prompt": ASKED, "user_prompt_length": 24}),
        span("claude_code.llm_request",
             {"span.type": "llm_request", "model": "m", "input_tokens": 8, "output_tokens": 4, "success": True,
              "user_system_prompt": RULE, "new_context": f"[USER]\n{ASKED}", "response.has_tool_call": True}, parent=0),
        span("claude_code.tool",
             {"span.type": "tool", "tool_name": "sonar", "tool_use_id": CALL,
              "tool_input": f"[TOOL INPUT: sonar]\n{ARGUMENTS}"},
             parent=0, events=[("tool.output", {"output": RESULT})]),
        span("claude_code.llm_request",
             {"span.type": "llm_request", "model": "m", "new_context": f"[TOOL RESULT: {CALL}]\n{RESULT}",
              "response.model_output": ANSWERED}, parent=0),
    )  # fmt: skip
    check(found, tokens=None)
    first, second = calls(found)
    assert words(found, first) == [RULE, ASKED]
    assert [found.messages[at].tool_call_id for at in second.input_messages] == [CALL]
    assert (first.prompt_tokens, first.completion_tokens) == (8, 4)


def test_what_claude_code_redacts_is_no_message() -> None:
    found = trace(span("claude_code.interaction", {"span.type": "interaction", "user_prompt": "<REDACTED>"}))
    assert found.goal is None
    assert found.messages == ()


def test_events_of_codex_on_the_span_of_a_turn() -> None:
    found = trace(
        span("run_turn", events=[
            ("codex.user_prompt", {"event.name": "codex.user_prompt", "prompt": ASKED, "prompt_length": "24"}),
            ("codex.tool_result", {"event.name": "codex.tool_result", "tool_name": "sonar", "call_id": CALL,
                                   "arguments": ARGUMENTS, "output": RESULT, "success": "true"}),
            ("codex.sse_event", {"event.name": "codex.sse_event", "event.kind": "response.completed",
                                 "input_token_count": "8", "output_token_count": "4"}),
        ]),
    )  # fmt: skip
    (turn,) = found.spans
    assert (turn.kind, turn.prompt_tokens, turn.completion_tokens) == ("AGENT", 8, 4)
    assert found.goal == ASKED
    answers = [found.messages[at] for at in turn.output_messages]
    assert [(m.role, m.content, m.tool_call_id) for m in answers] == [("assistant", None, None), ("tool", RESULT, CALL)]
    assert answers[0].tool_calls[0].arguments == ARGUMENTS


@pytest.mark.parametrize("family", ["claude_code.", "", "gemini_cli."])
def test_log_events_of_a_coding_agent_become_messages_of_their_span(family: str) -> None:
    def record(name: str, fields: dict[str, str]) -> dict[str, Any]:
        listed = [{"key": key, "value": {"stringValue": value}} for key, value in fields.items()]
        return {"traceId": "ab" * 16, "spanId": f"{1:016x}", "timeUnixNano": "1790000000000000001",
                "eventName": f"{family}{name}", "attributes": listed}  # fmt: skip

    logs = [record("user_prompt", {"prompt": ASKED}), record("assistant_response", {"response": ANSWERED})]
    document = json.loads(otlp(span("turn", {"gen_ai.operation.name": "chat"})))
    document["resourceLogs"] = [{"scopeLogs": [{"logRecords": logs}]}]
    (found,) = read_bytes(json.dumps(document).encode(), file="hand.json")
    assert isinstance(found, Trace)
    assert [message.content for message in found.messages] == [ASKED, ANSWERED]


@pytest.mark.parametrize("content", [json.dumps({"content": ASKED, "role": "user"}), ASKED])
def test_events_whose_body_stands_in_one_attribute(content: str) -> None:
    choice = {"message": {"role": "assistant", "content": ANSWERED}, "finish_reason": "stop"}
    found = trace(span("chat", {"gen_ai.operation.name": "chat"}, events=[
        ("gen_ai.user.message", {"gen_ai.event.content": content}),
        ("gen_ai.choice", {"gen_ai.event.content": json.dumps(choice)}),
    ]))  # fmt: skip
    assert words(found, found.spans[0]) == [ASKED, ANSWERED]


def test_koogs_events_hold_their_body_in_an_attribute() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": ANSWERED}}
    found = trace(span("llm", {"gen_ai.operation.name": "chat"}, events=[
        ("gen_ai.user.message", {"gen_ai.system": "x", "body": json.dumps({"role": "user", "content": ASKED})}),
        ("gen_ai.choice", {"body": json.dumps(choice)}),
    ]))  # fmt: skip
    assert words(found, found.spans[0]) == [ASKED, ANSWERED]
    assert "body" not in render_trace(found).text


def test_mastra_keeps_words_and_tool_calls_of_an_answer_beside_each_other() -> None:
    asked = {"messages": [{"role": "system", "content": RULE}, {"role": "user", "content": ASKED}]}
    call = {"toolCallId": CALL, "toolName": "sonar", "args": json.loads(ARGUMENTS)}
    found = trace(
        span("desk", {"gen_ai.operation.name": "invoke_agent", "gen_ai.completion": json.dumps({"text": ANSWERED})}),
        span("chat m", {"gen_ai.operation.name": "chat", "gen_ai.prompt": json.dumps(asked),
                        "gen_ai.completion": json.dumps({"text": "Ask it.", "toolCalls": [call]}),
                        "gen_ai.usage.input_tokens": 8, "gen_ai.usage.output_tokens": 4}, parent=0),
        span("tool", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "sonar",
                      "gen_ai.tool.input": ARGUMENTS, "gen_ai.tool.output": RESULT}, parent=0),
    )  # fmt: skip
    check(found)
    answer = found.messages[calls(found)[0].output_messages[0]]
    assert (answer.content, answer.tool_calls[0].name, answer.tool_calls[0].id) == ("Ask it.", "sonar", CALL)


@pytest.mark.parametrize("operation", [{"gen_ai.operation.name": "chat"}, {}])
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_logfires_request_and_response(provider: str, operation: dict[str, str]) -> None:
    asked: list[dict[str, Any]] = [{"role": "user", "content": ASKED}]
    request = (
        {"messages": [{"role": "system", "content": RULE}, *asked], "model": "m"}
        if provider == "openai"
        else {"messages": asked, "system": RULE, "model": "m", "max_tokens": 9}
    )
    call = {"id": CALL, "type": "function", "function": {"name": "sonar", "arguments": ARGUMENTS}}
    counts = {"prompt_tokens": 8, "completion_tokens": 4} if provider == "openai" else {
        "input_tokens": 8, "output_tokens": 4}  # fmt: skip
    answer = {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "usage": counts}
    result = {"role": "tool", "tool_call_id": CALL, "content": RESULT}
    last = {"message": {"role": "assistant", "content": ANSWERED}, "usage": None}
    again = {**request, "messages": [*request["messages"], answer["message"], result]}
    found = trace(
        span("desk", {"logfire.msg": "desk"}),
        span("Chat with 'm'", {"request_data": request, "response_data": json.dumps(answer), **operation}, parent=0),
        span("tool", {"gen_ai.tool.name": "sonar", "tool_arguments": ARGUMENTS, "tool_response": RESULT}, parent=0),
        span("Chat with 'm'", {"request_data": json.dumps(again), "response_data": last, **operation}, parent=0),
        scope=f"logfire.{provider}",
    )
    check(found)
    assert [one.model for one in calls(found)] == ["m", "m"]
    assert words(found, calls(found)[0])[:2] == [RULE, ASKED]


@pytest.mark.parametrize("body", [{}, {"acme.text": ASKED}])
def test_an_event_whose_body_is_unknown_makes_no_message(body: dict[str, str]) -> None:
    event = ("gen_ai.user.message", {"gen_ai.system": "x", **body})
    found = trace(span("chat", {"gen_ai.operation.name": "chat"}, events=[event]))
    assert found.messages == ()
    assert (ASKED in render_trace(found).text) == bool(body)


def test_messages_in_an_unknown_form_are_shown_as_they_stand_and_none_is_invented() -> None:
    value = [{"role": "user", "utterance": ASKED}]
    found = trace(span("chat", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(value)}))
    assert found.messages == ()
    assert f" gen_ai.input.messages:\n  {json.dumps(value)}\n" in render_trace(found).text


def test_an_event_of_no_known_name_stays_an_event() -> None:
    found = trace(span("chat", {"gen_ai.operation.name": "chat"}, events=[("acme.note", {"content": "Low water."})]))
    assert found.messages == ()
    assert found.spans[0].events[0]["attributes"] == {"content": "Low water."}


@pytest.mark.parametrize("key", ["pydantic_ai.all_messages", "all_messages"])
def test_pydantic_ai_without_spans_of_its_model(key: str) -> None:
    messages = [
        {"role": "system", "parts": [{"type": "text", "content": RULE}]},
        {"role": "user", "parts": [{"type": "text", "content": ASKED}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": CALL, "name": "sonar", "arguments": ARGUMENTS}]},
        {"role": "user", "parts": [{"type": "tool_call_response", "id": CALL, "name": "sonar", "result": RESULT}]},
        {"role": "assistant", "parts": [{"type": "text", "content": ANSWERED}]},
    ]
    found = trace(
        span("agent run", {"gen_ai.operation.name": "invoke_agent", "agent_name": "desk", "final_result": ANSWERED,
                           key: messages, "logfire.json_schema": "{}"}),
        span("running tool", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "sonar",
                              "tool_arguments": ARGUMENTS, "tool_response": RESULT}, parent=0),
    )  # fmt: skip
    check(found, tokens=None)
    assert words(found, found.spans[0])[-1] == ANSWERED


@pytest.mark.parametrize("telling", ["final_result", "all_messages_events"])
def test_a_run_of_pydantic_ai_that_names_no_operation_is_an_agents(telling: str) -> None:
    found = trace(span("agent run", {"agent_name": "desk", telling: ANSWERED}), span("other", {"agent_name": "desk"}))
    assert [(one.kind, one.agent) for one in found.spans] == [("AGENT", "desk"), ("UNKNOWN", None)]


def test_pydantic_ai_with_spans_of_its_model_tells_nothing_twice() -> None:
    said = [{"role": "user", "parts": [{"type": "text", "content": ASKED}]}]
    found = trace(
        span("agent run", {"gen_ai.operation.name": "invoke_agent", "pydantic_ai.all_messages": said}),
        span("chat m", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": said}, parent=0),
    )
    assert not found.spans[0].input_messages
    assert "all_messages" not in render_trace(found).text


def test_crewais_own_telemetry() -> None:
    found = trace(
        span("Crew Execution", {"crew_inputs": {"question": ASKED}, "crew_output": ANSWERED}),
        span("Task Execution", {"formatted_description": "Measure it.", "task_output": ANSWERED}, parent=0),
    )
    assert (found.goal, found.final_answer, found.spans[1].input) == (ASKED, ANSWERED, "Measure it.")


def test_dspy_through_openinference() -> None:
    found = trace(
        span("LM.__call__", {"openinference.span.kind": "LLM", "output.value": json.dumps([ANSWERED]),
                             "input.value": {"prompt": None, "messages": [{"role": "user", "content": ASKED}]}})
    )  # fmt: skip
    assert words(found, found.spans[0]) == [ASKED, ANSWERED]


def test_bedrock_through_openinference() -> None:
    given = {"modelId": "m", "system": [{"text": RULE}], "messages": [{"role": "user", "content": [{"text": ASKED}]}]}
    got = {"output": {"message": {"role": "assistant", "content": [{"text": ANSWERED}]}}, "stopReason": "end_turn"}
    found = trace(
        span("bedrock.converse", {"openinference.span.kind": "LLM", "input.value": given, "output.value": got})
    )
    text = render_trace(found).text
    assert (found.goal, found.final_answer) == (ASKED, ANSWERED)
    assert RULE in text


def test_a_reranker_tells_what_it_got_and_what_it_kept() -> None:
    found = trace(span("rerank", {
        "openinference.span.kind": "RERANKER", "reranker.query": ASKED,
        "reranker.input_documents.0.document.content": "A chart.",
        "reranker.output_documents.0.document.content": "A sounding.",
        "reranker.output_documents.0.document.score": 1,
    }))  # fmt: skip
    assert found.spans[0].input == ASKED
    assert found.spans[0].output == '[{"content":"A sounding.","score":1}]'
    assert "A chart." in render_trace(found).text


@pytest.mark.parametrize("times", [1, 2])
def test_messages_encoded_more_than_once_are_read(times: int) -> None:
    value: Any = [{"role": "user", "parts": [{"type": "text", "content": ASKED}]}]
    for _ in range(times + 1):
        value = json.dumps(value)
    found = trace(span("chat", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": value}))
    assert found.goal == ASKED


@pytest.mark.parametrize("cut", [40, 60, 66])
def test_messages_that_are_cut_off_are_read_as_far_as_they_go(cut: int) -> None:
    whole = json.dumps([{"role": "user", "parts": [{"type": "text", "content": ASKED}]}])
    found = trace(
        span("chat", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": whole[:cut] + "...[TRUNCATED]"})
    )
    assert "[TRUNCATED]" in render_trace(found).text
    assert any(warning.startswith("cut_off_json") for warning in found.all_warnings)


def test_a_message_that_is_cut_off_before_it_says_anything_is_no_message() -> None:
    whole = json.dumps([{"role": "user", "parts": [{"type": "text", "content": one}]} for one in (ASKED, RULE)])
    cut = whole[: whole.rindex("content")] + "...[TRUNCATED]"
    found = trace(span("chat", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": cut}))
    assert words(found, calls(found)[0]) == [ASKED]


def test_plain_text_where_messages_were_expected_is_a_message() -> None:
    found = trace(span("chat", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": ASKED,
                                "gen_ai.output.messages": ANSWERED, "gen_ai.system_instructions": RULE}))  # fmt: skip
    assert [(m.role, m.content) for m in found.messages] == [("system", RULE), ("user", ASKED), ("assistant", ANSWERED)]


@pytest.mark.parametrize(
    ("halves", "number"),
    [({"low": 14, "high": 0, "unsigned": False}, 14), ({"low": -1, "high": 0, "unsigned": True}, 2**32 - 1),
     ({"low": 0, "high": 1}, 2**32)],
)  # fmt: skip
def test_integers_in_two_halves_are_numbers(halves: dict[str, Any], number: int) -> None:
    document = json.loads(otlp(span("chat", {"gen_ai.operation.name": "chat"})))
    (one,) = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    one["attributes"].append({"key": "gen_ai.usage.input_tokens", "value": {"intValue": halves}})
    (found,) = read_bytes(json.dumps(document).encode(), file="hand.json")
    assert isinstance(found, Trace)
    assert found.spans[0].prompt_tokens == number


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("chat.completions", "LLM"),
        ("llm_call", "LLM"),
        ("tool_call", "TOOL"),
        ("agent_call", "AGENT"),
        ("tidy", "UNKNOWN"),
    ],
)
def test_an_operation_of_a_name_of_its_own_tells_its_kind_by_its_words(operation: str, kind: str) -> None:
    assert trace(span("x", {"gen_ai.operation.name": operation})).spans[0].kind == kind


def test_semantic_kernels_events_of_prompt_and_completion() -> None:
    said = [{"role": "assistant", "content": ANSWERED, "finish_reason": "stop"}]
    found = trace(span("chat", {"gen_ai.operation.name": "chat.completions"}, events=[
        ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([{"role": "user", "content": ASKED}])}),
        ("gen_ai.content.completion", {"gen_ai.completion": json.dumps(said)}),
    ]))  # fmt: skip
    assert words(found, found.spans[0]) == [ASKED, ANSWERED]


def test_one_bad_byte_within_messages_is_shown_as_an_escape_and_named() -> None:
    asked = json.dumps([{"role": "user", "content": "Where is the caf\u00e9?"}])
    data = otlp(span("chat", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": asked}))
    (found,) = read_bytes(data.replace(rb"\\u00e9", b"\xe9"), file="hand.json")
    assert isinstance(found, Trace)
    assert found.goal == r"Where is the caf\xe9?"
    assert any(warning.startswith("escaped_text") for warning in found.all_warnings)


@pytest.mark.parametrize("prefix", ["llm.input_messages.0.message", "gen_ai.prompt.0"])
def test_a_picture_in_flattened_messages_is_a_placeholder(prefix: str) -> None:
    data, asked = "iVBORw0KGgo=", {"type": "text", "text": ASKED}
    if prefix.startswith("llm"):
        contents = {f"{prefix}.contents.0.message_content.{key}": value for key, value in asked.items()}
        contents[f"{prefix}.contents.1.message_content.type"] = "image"
        contents[f"{prefix}.contents.1.message_content.image.image.url"] = f"data:image/png;base64,{data}"
    else:
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        contents = {f"{prefix}.content": json.dumps([asked, picture])}
    found = trace(span("llm", {"openinference.span.kind" if prefix.startswith("llm") else "traceloop.x": "LLM",
                               f"{prefix}.role": "user", **contents}))  # fmt: skip
    text = render_trace(found).text
    assert f" user:\n  {ASKED}\n  [image image/png, 8 bytes, sha256 " in text
    assert data not in text


def test_agentcores_log_records_hold_what_a_span_said() -> None:
    call = json.dumps([{"toolUse": {"toolUseId": CALL, "name": "sonar", "input": json.loads(ARGUMENTS)}}])
    body = {
        "input": {"messages": [{"role": "user", "content": {"content": json.dumps([{"text": ASKED}])}}]},
        "output": {"messages": [{"role": "assistant", "content": {"message": call, "finish_reason": "tool_use"}}]},
    }
    record = {"traceId": "ab" * 16, "spanId": f"{1:016x}", "timeUnixNano": "1790000000000000001", "body": body,
              "attributes": [{"key": "event.name", "value": {"stringValue": "strands.telemetry.tracer"}}]}  # fmt: skip
    document = json.loads(otlp(span("chat", {"gen_ai.operation.name": "chat"})))
    document["resourceLogs"] = [{"scopeLogs": [{"logRecords": [record]}]}]
    (found,) = read_bytes(json.dumps(document).encode(), file="hand.json")
    assert isinstance(found, Trace)
    assert [(m.role, m.content) for m in found.messages] == [("user", ASKED), ("assistant", None)]
    assert found.messages[1].tool_calls[0].id == CALL
    assert ASKED not in json.dumps([log.body for log in found.logs])


def test_attributes_of_mlflow_that_were_sent_as_otlp_are_read_from_their_json() -> None:
    request = {"messages": [{"role": "user", "content": ASKED}], "model": "m"}
    answer = {"choices": [{"message": {"role": "assistant", "content": ANSWERED}}]}
    found = trace(
        span("predict", {"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": json.dumps({"question": ASKED}),
                         "mlflow.spanOutputs": json.dumps(ANSWERED)}),
        span("chat", {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": json.dumps(request),
                      "mlflow.spanOutputs": json.dumps(answer),
                      "mlflow.chat.tokenUsage": json.dumps({"total_tokens": 12})}, parent=0),
    )  # fmt: skip
    assert (found.goal, found.final_answer) == (ASKED, ANSWERED)
    (call,) = calls(found)
    assert (words(found, call), call.model, call.total_tokens) == ([ASKED, ANSWERED], "m", 12)


CALLED = {"type": "function_call", "call_id": CALL, "name": "sonar", "arguments": ARGUMENTS}
GIVEN = {"type": "function_call_output", "call_id": CALL, "name": "sonar", "output": RESULT}
USER = {"type": "message", "role": "user", "content": [ASKED]}


def test_livekit() -> None:
    found = trace(
        span("agent_session", {"lk.room_name": "quay"}), span("agent_turn", {"lk.user_input": ASKED}, parent=0),
        span("llm_node", {"lk.chat_ctx": {"items": [USER]}, "lk.response.text": "",
                          "lk.response.function_calls": json.dumps([CALLED])}, parent=1),
        span("function_tool", {"lk.function_tool.name": "sonar", "lk.function_tool.arguments": ARGUMENTS,
                               "lk.function_tool.output": RESULT}, parent=1),
        span("llm_node", {"lk.chat_ctx": {"items": [USER, CALLED, GIVEN]}, "lk.response.text": ANSWERED}, parent=1),
        scope="livekit-agents",
    )  # fmt: skip
    check(found, tokens=None)
    assert [one.kind for one in found.spans] == ["CHAIN", "AGENT", "LLM", "TOOL", "LLM"]
    assert [found.messages[at].role for at in found.spans[4].input_messages] == ["user", "assistant", "tool"]


def test_langwatch() -> None:
    def typed(kind: str, value: Any) -> str:
        return json.dumps({"type": kind, "value": value})

    asked = {"role": "user", "content": ASKED}
    call = {"id": CALL, "type": "function", "function": {"name": "sonar", "arguments": ARGUMENTS}}
    calling, answer = (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "assistant", "content": ANSWERED},
    )

    given = {"role": "tool", "tool_call_id": CALL, "content": RESULT}

    def model(said: list[Any], answered: Any) -> dict[str, Any]:
        return {"langwatch.span.type": "llm", "langwatch.input": typed("chat_messages", said),
                "langwatch.output": typed("chat_messages", [answered]), "gen_ai.usage.prompt_tokens": 5,
                "gen_ai.usage.completion_tokens": 1}  # fmt: skip

    found = trace(
        span("desk", {"langwatch.span.type": "agent", "langwatch.input": typed("text", ASKED),
                      "langwatch.output": typed("text", ANSWERED)}),
        span("chat", model([asked], calling), parent=0),
        span("sonar", {"langwatch.span.type": "tool", "langwatch.input": typed("json", json.loads(ARGUMENTS)),
                       "langwatch.output": typed("text", RESULT)}, parent=0),
        span("chat", model([asked, calling, given], answer), parent=0),
    )  # fmt: skip
    check(found)


def test_monocle() -> None:
    def told(kind: str, given: Any, made: Any, **entities: str) -> dict[str, Any]:
        named = {f"entity.{n}.{part}": text for n, (type_, name) in enumerate(entities.items(), 1)
                 for part, text in (("type", type_.replace("_", ".")), ("name", name))}  # fmt: skip
        events = [("data.input", {"input": given}), ("data.output", {"response": made} if made else {}),
                  ("metadata", {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6})]  # fmt: skip
        return span(kind, {"monocle_apptrace.version": "0.5.1", "span.type": kind, **named}, parent=0, events=events)

    asked, model = json.dumps({"user": ASKED}), {"inference_gemini": "g", "model_llm_m": "m-1"}
    begun = told("agentic.invocation", ASKED, ANSWERED, agent_adk="desk")
    found = trace(
        {**begun, "parent": None}, told("inference", [json.dumps({"system": RULE}), asked], None, **model),
        told("agentic.tool.invocation", ARGUMENTS, RESULT, tool_adk="sonar"),
        told("inference", [asked, json.dumps({"model": None})], json.dumps({"model": ANSWERED}), **model),
    )  # fmt: skip
    check(found)
    assert {one.model for one in calls(found)} == {"m-1"}
    assert found.spans[0].agent == "desk"
    assert words(found, calls(found)[0]) == [RULE, ASKED]


def test_braintrusts_attributes_hold_json() -> None:
    message = {"role": "assistant", "content": ANSWERED}
    found = trace(
        span("desk", {"braintrust.span_attributes": json.dumps({"type": "task"}), "braintrust.input": ASKED,
                      "braintrust.output": ANSWERED}),
        span("sonar", {"braintrust.span_attributes": json.dumps({"type": "tool"}), "braintrust.input": ARGUMENTS,
                       "braintrust.output": RESULT}, parent=0),
        span("chat", {"braintrust.span_attributes": json.dumps({"type": "llm"}),
                      "braintrust.input_json": json.dumps([{"role": "user", "content": ASKED}]),
                      "braintrust.output_json": json.dumps([{"index": 0, "message": message}]),
                      "braintrust.metrics": json.dumps({"prompt_tokens": 8, "completion_tokens": 4})}, parent=0),
    )  # fmt: skip
    assert [one.kind for one in found.spans] == ["CHAIN", "TOOL", "LLM"]
    assert (tool(found).tool_name, tool(found).tool_arguments, tool(found).output) == ("sonar", ARGUMENTS, RESULT)
    (call,) = calls(found)
    assert (words(found, call), call.total_tokens) == ([ASKED, ANSWERED], 12)
    assert (found.goal, found.final_answer) == (ASKED, ANSWERED)


@pytest.mark.parametrize("in_events", [False, True])
def test_prompt_flow(in_events: bool) -> None:
    request, choice = {"messages": [{"role": "user", "content": ASKED}]}, {"role": "assistant", "content": ANSWERED}

    def told(kind: str, given: str, made: str, parent: int | None = None, **more: int) -> dict[str, Any]:
        sides = {} if in_events else {"inputs": given, "output": made}
        events = [("promptflow.function.inputs", {"payload": given}), ("promptflow.function.output", {"payload": made})]
        counts = {f"llm.usage.{name}": count for name, count in more.items()}
        attributes = {"framework": "promptflow", "span_type": kind, **sides, **counts}
        return span(kind, attributes, parent=parent, events=events)

    made = json.dumps({"choices": [{"message": choice}]})
    found = trace(
        told("Flow", ASKED, ANSWERED),
        told("LLM", json.dumps(request), made, parent=0, prompt_tokens=8, completion_tokens=4),
    )
    assert not any(one.events for one in found.spans)
    assert [one.kind for one in found.spans] == ["CHAIN", "LLM"]
    (call,) = calls(found)
    assert (words(found, call), call.total_tokens) == ([ASKED, ANSWERED], 12)
    assert (found.goal, found.final_answer) == (ASKED, ANSWERED)


def test_a_chain_with_texts_of_a_prompt_is_no_call_of_a_model() -> None:
    told = {"gen_ai.prompt": json.dumps({"question": ASKED}), "gen_ai.completion": json.dumps({"output": ANSWERED})}
    found = trace(span("desk", {"langsmith.span.kind": "chain", **told}), span("desk", told, parent=0))
    assert [one.kind for one in found.spans] == ["CHAIN", "UNKNOWN"]


def test_what_a_first_span_looked_up_is_no_answer() -> None:
    found = trace(
        span("retrieve", {"openinference.span.kind": "RETRIEVER", "input.value": ASKED,
                          "retrieval.documents.0.document.content": RESULT}),
        span("chat", {"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user",
                      "llm.input_messages.0.message.content": ASKED,
                      "llm.output_messages.0.message.role": "assistant",
                      "llm.output_messages.0.message.content": ANSWERED}),
    )  # fmt: skip
    assert (found.goal, found.final_answer) == (ASKED, ANSWERED)


def test_spring_ai_tells_a_tool_by_names_of_its_own() -> None:
    found = trace(span("tool_call sonar", {
        "spring.ai.kind": "tool_call", "spring.ai.tool.definition.name": "sonar",
        "spring.ai.tool.call.arguments": ARGUMENTS, "spring.ai.tool.call.result": RESULT}))  # fmt: skip
    assert (tool(found).tool_name, tool(found).tool_arguments, tool(found).output) == ("sonar", ARGUMENTS, RESULT)


@pytest.mark.parametrize("sign", ["'", '"'])
@pytest.mark.parametrize("is_list", [False, True])
def test_spring_ais_entries_of_a_prompt_are_messages(is_list: bool, sign: str) -> None:
    rule = f"Be exact, say {sign}nine{sign}."
    entries = [f"{sign}{role}{sign}:{sign}{text}{sign}" for role, text in (("system", rule), ("user", ASKED))]
    prompt = entries if is_list else f"[{', '.join(entries)}]"
    found = trace(span("chat m", {"gen_ai.operation.name": "chat", "gen_ai.prompt": prompt,
                                  "gen_ai.completion": [ANSWERED]}))  # fmt: skip
    told = [(found.messages[at].role, found.messages[at].content) for at in calls(found)[0].input_messages]
    assert told == [("system", rule), ("user", ASKED)]
    assert (found.goal, found.final_answer) == (ASKED, ANSWERED)


@pytest.mark.parametrize("is_json", [False, True])
def test_what_spring_ai_logs_of_a_call_is_what_it_was_asked_and_answered(is_json: bool) -> None:
    asked = json.dumps({"messages": [{"role": "user", "content": ASKED}]} if is_json else [ASKED])
    answered = json.dumps(
        {"choices": [{"message": {"role": "assistant", "content": ANSWERED}}]} if is_json else [ANSWERED]
    )
    bodies = [f"Chat Model Prompt Content:\n{asked}", f"Chat Model Completion:\n{answered}", "Chat Model Metadata:\nm"]
    records = [{"traceId": "ab" * 16, "spanId": f"{1:016x}", "timeUnixNano": f"179000000000000000{number}",
                "body": {"stringValue": body}} for number, body in enumerate(bodies)]  # fmt: skip
    document = json.loads(otlp(span("chat m", {"gen_ai.operation.name": "chat"})))
    document["resourceLogs"] = [{"scopeLogs": [{"logRecords": records}]}]
    (found,) = read_bytes(json.dumps(document).encode(), file="hand.json")
    assert isinstance(found, Trace)
    assert words(found, calls(found)[0]) == [ASKED, ANSWERED]
    assert (found.goal, found.final_answer) == (ASKED, ANSWERED)
    assert [log.body.get("body") for log in found.logs if isinstance(log.body, dict)] == [None, None, bodies[2]]


@pytest.mark.parametrize(
    ("attributes", "events"),
    [
        ({"input": json.dumps([{"role": "user", "content": ASKED}]), "output": ANSWERED}, []),
        ({"prompt": ASKED, "response": ANSWERED}, []),
        ({}, [("gen_ai.content.prompt", {"gen_ai.prompt": ASKED}),
              ("gen_ai.content.completion", {"gen_ai.completion": ANSWERED})]),
        ({}, [("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([ASKED])}),
              ("gen_ai.content.completion", {"gen_ai.completion": json.dumps(
                  [{"message": {"role": "assistant", "content": ANSWERED}}])})]),
        ({"gen_ai.operation.name": None, "gen_ai.request.model": "m-1", "gen_ai.prompt": ASKED,
          "gen_ai.completion": ANSWERED}, []),
    ],
    ids=["pipecat", "by hand", "events of plain text", "events of texts and choices", "without an operation"],
)  # fmt: skip
def test_plain_names_and_plain_text_are_what_a_model_was_asked_and_answered(
    attributes: dict[str, Any], events: list[Any]
) -> None:
    told = {name: one for name, one in {"gen_ai.operation.name": "chat", **attributes}.items() if one is not None}
    found = trace(span("llm", told, events=events))
    (call,) = calls(found)
    assert [(found.messages[at].role, found.messages[at].content) for at in call.input_messages] == [("user", ASKED)]
    assert words(found, call) == [ASKED, ANSWERED]
    assert (found.goal, found.final_answer) == (ASKED, ANSWERED)


def any_agent() -> dict[str, Any]:
    """A trace of any-agent: contexts with ids as numbers, the final output beside the spans."""

    def context(number: int | None) -> dict[str, Any]:
        trace_id = None if number is None else 82133397360970879726729369602474908892
        return {"trace_id": trace_id, "span_id": number, "is_remote": False, "trace_flags": {"value": 0}}

    def told(number: int, above: int | None, operation: str, **more: Any) -> dict[str, Any]:
        attributes = {
            "gen_ai.operation.name": operation,
            **{key.replace("__", "."): item for key, item in more.items()},
        }
        times = {"start_time": 1747826300309195206 + number, "end_time": 1747826300409195206 + number}
        return {"name": operation, "kind": "internal", "parent": context(above), "context": context(number), **times,
                "status": {"status_code": "unset"}, "attributes": attributes, "links": [], "events": []}  # fmt: skip

    called = json.dumps([{"name": "sonar", "arguments": ARGUMENTS}])
    return {"spans": [
        told(17068284808009816463, 12467580156169360485, "call_llm", genai__output=called),
        told(5760157677501279, 12467580156169360485, "execute_tool", gen_ai__tool__name="sonar",
             gen_ai__tool__args=ARGUMENTS, genai__output=RESULT),
        told(12467580156169360485, None, "invoke_agent", gen_ai__agent__name="desk"),
    ], "final_output": ANSWERED}  # fmt: skip


@pytest.mark.parametrize("is_printed", [False, True])
def test_any_agent_and_what_a_container_printed(is_printed: bool) -> None:
    data = json.dumps(any_agent()).encode()
    if is_printed:
        printed = json.dumps(any_agent(), indent=1).splitlines(keepends=True)
        data = b"\n".join(json.dumps({"log": line, "stream": "stdout", "time": "t"}).encode() for line in printed)
    (found,) = read_bytes(data, file="trace.json")
    assert isinstance(found, Trace)
    assert (found.trace_id, found.format) == (f"{82133397360970879726729369602474908892:032x}", "otel_sdk")
    assert [(one.kind, one.depth) for one in found.spans] == [("AGENT", 0), ("TOOL", 1), ("LLM", 1)]
    assert (tool(found).tool_name, tool(found).tool_arguments, tool(found).output) == ("sonar", ARGUMENTS, RESULT)
    assert [call.name for at in calls(found)[0].output_messages for call in found.messages[at].tool_calls] == ["sonar"]
    assert found.final_answer == ANSWERED
