"""Each dialect of attribute names fills the same columns; what none knows stays in the attributes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracejury.ingest.conventions import CONVENTIONS, translate
from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.readers import read_traces
from tracejury.ingest.trace import Message, SpanDraft, ToolCall, Trace

CALL = ToolCall("search", '{"q": "x"}', "call_1")


def mapped(
    attributes: dict[str, Any], *, name: str = "s", events: Any = (), logs: Any = ()
) -> tuple[SpanDraft, list[Message], list[Message]]:
    """A span of these attributes after translation, with the messages it was given and those it answered."""
    draft = SpanDraft(span_id="a" * 16, name=name, attributes=dict(attributes), events=list(events))
    table = MessageTable()
    translate([draft], table, logs=logs)
    said = table.messages
    return draft, [said[p] for p in draft.input_messages], [said[p] for p in draft.output_messages]


GENAI_PARTS = [
    {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "call_1", "name": "search", "arguments": '{"q": "x"}'}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "found"}]},
]
OPENAI = [
    {"role": "user", "content": "hi"},
    {
        "role": "assistant", "content": None,
        "tool_calls": [{"id": "call_1", "function": {"name": "search", "arguments": '{"q": "x"}'}}],
    },
    {"role": "tool", "content": "found", "tool_call_id": "call_1"},
]  # fmt: skip
SAID = [Message("user", "hi"), Message("assistant", None, (CALL,)), Message("tool", "found", (), None, "call_1")]
ANSWER = [Message("assistant", "done")]

DIALECTS: dict[str, dict[str, Any]] = {
    "openinference": {
        "openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 5,
        "llm.token_count.completion": 2, "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "hi", "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.id": "call_1",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "search",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"q": "x"}',
        "llm.input_messages.2.message.role": "tool", "llm.input_messages.2.message.content": "found",
        "llm.input_messages.2.message.tool_call_id": "call_1",
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "done",
    },
    "genai": {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 2, "gen_ai.input.messages": json.dumps(GENAI_PARTS),
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "done"}]}],
    },
    "openllmetry": {
        "llm.request.type": "chat", "gen_ai.request.model": "m", "gen_ai.usage.prompt_tokens": 5,
        "gen_ai.usage.completion_tokens": 2, "llm.usage.total_tokens": 7, "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "hi", "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.id": "call_1", "gen_ai.prompt.1.tool_calls.0.name": "search",
        "gen_ai.prompt.1.tool_calls.0.arguments": '{"q": "x"}', "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.content": "found", "gen_ai.prompt.2.tool_call_id": "call_1",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "done",
    },
    "langsmith": {
        "langsmith.span.kind": "llm", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 2, "gen_ai.prompt": json.dumps({"messages": OPENAI}),
        "gen_ai.completion": json.dumps({"choices": [{"message": {"role": "assistant", "content": "done"}}]}),
    },
    "openai_agents": {
        "span_data.type": "generation", "span_data.model": "m", "span_data.usage.input_tokens": 5,
        "span_data.usage.output_tokens": 2, "span_data.input": json.dumps(OPENAI),
        "span_data.output": json.dumps([{"role": "assistant", "content": "done"}]),
    },
    "logfire events": {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 2,
        "events": json.dumps([
            {"event.name": "gen_ai.user.message", **OPENAI[0]},
            {"event.name": "gen_ai.assistant.message", **OPENAI[1]},
            {"event.name": "gen_ai.tool.message", "content": "found", "id": "call_1"},
            {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "done"}},
        ]),
    },
    "mlflow": {
        "mlflow.spanType": "CHAT_MODEL", "mlflow.spanInputs": {"model": "m", "messages": OPENAI},
        "mlflow.spanOutputs": {"choices": [{"message": {"role": "assistant", "content": "done"}}]},
        "mlflow.chat.tokenUsage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
    },
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_call_fills_the_same_columns_in_every_dialect(dialect: str) -> None:
    draft, said, answered = mapped(DIALECTS[dialect])
    assert (draft.kind, draft.model, draft.prompt_tokens, draft.completion_tokens, draft.total_tokens) == (
        "LLM", "m", 5, 2, 7,
    )  # fmt: skip
    assert said == SAID
    assert answered == ANSWER


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_became_messages_stands_in_no_attribute(dialect: str) -> None:
    draft, _, _ = mapped(DIALECTS[dialect])
    left = json.dumps(draft.attributes)
    assert "found" not in left
    assert "done" not in left


TOOLS: dict[str, dict[str, Any]] = {
    "openinference": {
        "openinference.span.kind": "TOOL", "tool.name": "search", "input.value": '{"q":"x"}', "output.value": "y",
    },
    "genai": {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.id": "c",
        "gen_ai.tool.call.arguments": {"q": "x"}, "gen_ai.tool.call.result": "y",
    },
    "openllmetry": {
        "traceloop.span.kind": "tool", "traceloop.entity.name": "search", "traceloop.entity.input": '{"q":"x"}',
        "traceloop.entity.output": "y",
    },
    "langsmith": {"langsmith.span.kind": "tool", "gen_ai.prompt": '{"q":"x"}', "gen_ai.completion": "y"},
    "openai_agents": {
        "span_data.type": "function", "span_data.name": "search", "span_data.input": '{"q":"x"}',
        "span_data.output": "y",
    },
    "mlflow": {"mlflow.spanType": "TOOL", "mlflow.spanInputs": {"q": "x"}, "mlflow.spanOutputs": "y"},
    "trulens": {
        "ai.observability.span_type": "tool", "ai.observability.call.kwargs.q": "x",
        "ai.observability.call.return": "y",
    },
}  # fmt: skip


@pytest.mark.parametrize("dialect", TOOLS)
def test_a_tool_call_fills_the_same_columns_in_every_dialect(dialect: str) -> None:
    draft, _, _ = mapped(TOOLS[dialect], name="search")
    assert (draft.kind, draft.tool_name, draft.tool_arguments, draft.output) == ("TOOL", "search", '{"q":"x"}', "y")
    assert draft.input is None


@pytest.mark.parametrize(
    "attributes",
    [
        {"openinference.span.kind": "AGENT", "agent.name": "geo"},
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "geo"},
        {"traceloop.span.kind": "agent", "traceloop.entity.name": "geo"},
        {"span_data.type": "agent", "span_data.name": "geo"},
    ],
)
def test_an_agent_is_named_in_every_dialect(attributes: dict[str, Any]) -> None:
    draft, _, _ = mapped(attributes)
    assert (draft.kind, draft.agent) == ("AGENT", "geo")


@pytest.mark.parametrize("name", ["litellm_request"])
def test_litellm_requests_are_model_calls(name: str) -> None:
    draft, said, _ = mapped({"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "hi"}, name=name)
    assert draft.kind == "LLM"
    assert said == SAID[:1]


def test_a_langgraph_span_knows_its_step() -> None:
    draft, _, _ = mapped(
        {"openinference.span.kind": "CHAIN", "metadata": '{"langgraph_step": 3, "langgraph_node": "a"}'}
    )
    assert draft.step == 3


def test_an_unknown_dialect_keeps_its_attributes_and_nothing_is_guessed() -> None:
    attributes = {"acme.kind": "llm", "acme.tokens": 5, "n": [1, 2]}
    draft, said, answered = mapped(attributes, name="step")
    assert draft.attributes == attributes
    assert (draft.kind, draft.name, draft.prompt_tokens, said, answered) == ("UNKNOWN", "step", None, [], [])


def test_message_events_of_a_span_become_messages_in_order() -> None:
    def event(name: str, **attributes: Any) -> dict[str, Any]:
        return {"name": name, "time": 1, "attributes": {"gen_ai.system": "openai", **attributes}}

    draft, said, answered = mapped(
        {"gen_ai.operation.name": "chat"},
        events=[
            event("gen_ai.user.message", content="hi"),
            event("gen_ai.assistant.message", tool_calls=json.dumps(OPENAI[1]["tool_calls"])),
            event("gen_ai.tool.message", content="found", id="call_1"),
            event("gen_ai.choice", index=0, finish_reason="stop", message='{"role": "assistant", "content": "done"}'),
        ],
    )
    assert (said, answered) == (SAID, ANSWER)
    assert [e["name"] for e in draft.events][-1] == "gen_ai.choice"
    assert draft.events[-1]["attributes"] == {"gen_ai.system": "openai", "index": 0, "finish_reason": "stop"}


def test_an_empty_answer_of_a_tool_is_an_answer() -> None:
    event = {"name": "gen_ai.tool.message", "time": 2, "attributes": {"content": "", "id": "call_1"}}
    question = {"name": "gen_ai.user.message", "time": 1, "attributes": {"content": "hi"}}
    _, said, _ = mapped({"gen_ai.operation.name": "chat"}, events=[question, event])
    assert [(message.role, message.content, message.tool_call_id) for message in said] == [
        ("user", "hi", None), ("tool", "", "call_1"),
    ]  # fmt: skip


def test_a_reasoning_count_beyond_the_columns_range_is_kept_and_told() -> None:
    usage = {"input_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2**63}}
    draft, _, _ = mapped({"span_data.type": "generation", "span_data.model": "m", "span_data.usage": usage})
    assert (draft.reasoning_tokens, draft.prompt_tokens) == (None, 5)
    assert any(warning.startswith("not_a_count: ") and "reasoning_tokens" in warning for warning in draft.warnings)


def test_an_agent_span_with_parts_of_a_final_result_alone_is_read() -> None:
    draft, _, _ = mapped({"gen_ai.operation.name": "invoke_agent", "final_result.x": "1"})
    assert (draft.kind, draft.output, draft.attributes["final_result.x"]) == ("AGENT", None, "1")


def test_log_records_are_joined_to_their_span_and_said_once() -> None:
    def log(name: str, body: Any, at: int) -> SpanLog:
        return SpanLog(trace_id="t", span_id="a" * 16, event_name=name, time=at, body=body, attributes={}, rest={})

    logs = [
        log("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "content": "done"}}, 9),
        log("gen_ai.user.message", {"content": "hi"}, 1),
        log("gen_ai.user.message", {"content": "hi"}, 2),
    ]
    _, said, answered = mapped({"gen_ai.operation.name": "chat"}, logs=logs)
    assert said == [Message("user", "hi"), Message("user", "hi")]  # said twice: two turns may be the same words
    assert answered == ANSWER
    assert "done" not in json.dumps([item.as_json() for item in logs])


def test_attributes_and_events_that_say_the_same_are_said_once() -> None:
    event = {"name": "gen_ai.user.message", "time": 1, "attributes": {"content": "hi"}}
    parts = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}])
    _, said, _ = mapped({"gen_ai.operation.name": "chat", "gen_ai.input.messages": parts}, events=[event])
    assert said == [Message("user", "hi")]


def test_messages_that_differ_from_the_input_are_both_kept_with_a_warning() -> None:
    draft, said, _ = mapped(
        {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "hi",
            "input.value": '{"messages": [{"role": "user", "content": "ho"}]}',
        }
    )
    assert said == [Message("user", "hi")]
    assert draft.input == '{"messages": [{"role": "user", "content": "ho"}]}'
    assert draft.warnings == ["messages_differ: input.value and llm.input_messages disagree; both are kept"]


def test_arguments_that_the_flattened_message_lacks_come_from_the_output() -> None:
    draft, _, answered = mapped({
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search",
        "output.value": json.dumps({"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "search", "arguments": {"q": "x"}}}
        ]}),
    })  # fmt: skip
    assert answered == [Message("assistant", None, (ToolCall("search", '{"q":"x"}', "c"),))]
    assert draft.output is None
    assert draft.attributes["output.value"] == {"tool_calls": [{"type": "function"}]}


def test_a_repr_of_another_message_is_not_taken_for_ours() -> None:
    def call(written: str) -> SpanDraft:
        return mapped(
            {
                "openinference.span.kind": "LLM",
                "llm.input_messages.0.message.role": "tool-call",
                "llm.input_messages.0.message.content": "it's",
                "input.value": json.dumps({"messages": [written], "kwargs": {}}),
            }
        )[0]

    end = "tool_calls=None, raw=None, token_usage=None)"
    role = "<MessageRole.TOOL_CALL: 'tool-call'>"
    same = call(f"ChatMessage(role={role}, content=[{{'type': 'text', 'text': \"it's\"}}], {end}")
    assert same.input == '{"kwargs":{}}'
    other = call(f"ChatMessage(role={role}, content=[{{'type': 'text', 'text': \"its\"}}], {end}")
    assert other.input is not None
    assert "ChatMessage" in other.input
    more = call(f"ChatMessage(role={role}, content=[{{'type': 'text', 'text': \"it's\"}}], tool_calls=[1], raw=None)")
    assert more.attributes["input.value"] == {"messages": ["tool_calls=[1], raw=None)"]}


@pytest.mark.parametrize("value", [0, "0"])
def test_a_call_of_no_tokens_was_not_counted(value: Any) -> None:
    draft, _, _ = mapped({
        "openinference.span.kind": "LLM", "llm.token_count.prompt": value, "llm.token_count.completion": value,
    })  # fmt: skip
    assert (draft.prompt_tokens, draft.completion_tokens, draft.total_tokens) == (None, None, None)
    assert draft.warnings[0].startswith("zero_tokens")


def test_no_completion_token_beside_counted_ones_is_a_zero() -> None:
    draft, _, _ = mapped({
        "openinference.span.kind": "LLM", "llm.token_count.prompt": 9, "llm.token_count.completion": 0,
    })  # fmt: skip
    assert (draft.prompt_tokens, draft.completion_tokens, draft.total_tokens) == (9, 0, 9)


def test_every_convention_has_a_name_of_its_own() -> None:
    names = [convention.NAME for convention in CONVENTIONS]
    assert len(set(names)) == len(names) >= 8


@pytest.mark.shared
def test_real_genai_log_records_give_the_text_that_the_spans_lack(shared: Path) -> None:
    folder = shared / "otel" / "other"
    found = [item for item in read_traces(folder / "genai_openai_v2.*.jsonl") if isinstance(item, Trace)]
    (trace,) = found
    (optin,) = (item for item in read_traces(folder / "genai_openai_v2_optin.otlp.pb") if isinstance(item, Trace))
    for one in (trace, optin):
        calls = [span for span in one.spans if span.kind == "LLM"]
        assert [len(call.input_messages) for call in calls] == [1, 3]
        assert (one.goal, one.final_answer) == ("Capital of France?", "Paris is the capital of France.")
        assert {span.agent for span in one.spans} == {"geo"}
