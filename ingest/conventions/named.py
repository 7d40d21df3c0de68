"""Dialects that differ in names alone: LiveKit Agents, LangWatch's SDK, Spring AI, Braintrust, prompt flow.

Names: `livekit/agents/telemetry/trace_types.py`; `langwatch/attributes.py`; Spring AI's page "Observability";
Braintrust's page "OpenTelemetry"; prompt flow's page "Trace span specification". Each is one entry of `_DIALECTS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tracejury.ingest.conventions.context import Context, put, put_usage
from tracejury.ingest.conventions.conversation import take_conversation
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, SpanDraft, SpanKind

NAME = "named"


class _Dialect(NamedTuple):
    """The first part of its names, what tells the kind of a span, where messages and other texts stand."""

    root: str
    kind: str
    """The attribute that tells the kind; empty for the name of the span."""
    kinds: Mapping[str, SpanKind]
    asked: Sequence[str] = ()
    answered: Sequence[str] = ()
    texts: Mapping[str, str] = {}
    """Column by attribute."""
    tool_texts: Mapping[str, str] = {}
    """As `texts`, on spans of tools."""
    events: Mapping[str, str] = {}
    """Events whose `payload` is the value of an attribute, by its name."""
    usage: str = ""
    """Where the tokens of a call stand: in one object, or under names that begin so and end with a dot."""


_DIALECTS = (
    _Dialect(
        "lk", "",
        {"llm_node": "LLM", "function_tool": "TOOL", "agent_turn": "AGENT", "agent_session": "CHAIN",
         "user_turn": "CHAIN", "tts_node": "CHAIN", "stt_node": "CHAIN", "job_entrypoint": "CHAIN"},
        ("lk.chat_ctx", "lk.pii.chat_ctx"),
        ("lk.response.function_calls", "lk.pii.response.function_calls", "lk.response.text", "lk.pii.response.text"),
        {"lk.user_input": "input", "lk.pii.user_input": "input", "lk.user_transcript": "output",
         "lk.pii.user_transcript": "output", "lk.input_text": "input", "lk.pii.input_text": "input"},
        {"lk.function_tool.name": "tool_name", "lk.function_tool.id": "tool_call_id",
         "lk.function_tool.arguments": "tool_arguments", "lk.pii.function_tool.arguments": "tool_arguments",
         "lk.function_tool.output": "output", "lk.pii.function_tool.output": "output"},
    ),
    _Dialect(
        "langwatch", "langwatch.span.type",
        {"llm": "LLM", "tool": "TOOL", "agent": "AGENT", "chain": "CHAIN", "span": "CHAIN", "workflow": "CHAIN",
         "component": "CHAIN", "module": "CHAIN", "server": "CHAIN", "client": "CHAIN", "producer": "CHAIN",
         "consumer": "CHAIN", "task": "CHAIN", "rag": "RETRIEVER", "guardrail": "GUARDRAIL", "evaluation": "EVALUATOR"},
        ("langwatch.input",), ("langwatch.output",),
        {"langwatch.input": "input", "langwatch.output": "output"},
        {"langwatch.input": "tool_arguments", "langwatch.output": "output"},
    ),
    _Dialect(
        "spring", "spring.ai.kind",
        {"tool_call": "TOOL", "chat_client": "CHAIN", "advisor": "CHAIN", "vector_store": "RETRIEVER"},
        (), (), {"spring.ai.chat.client.user.text": "input"},
        {"spring.ai.tool.definition.name": "tool_name", "spring.ai.tool.call.arguments": "tool_arguments",
         "spring.ai.tool.call.result": "output"},
    ),
    _Dialect(
        "braintrust", "braintrust.span_attributes",
        {"llm": "LLM", "tool": "TOOL", "function": "TOOL", "task": "CHAIN", "eval": "CHAIN", "score": "EVALUATOR"},
        ("braintrust.input_json", "braintrust.input"), ("braintrust.output_json", "braintrust.output"),
        {"braintrust.input_json": "input", "braintrust.input": "input", "braintrust.output_json": "output",
         "braintrust.output": "output"},
        {"braintrust.input_json": "tool_arguments", "braintrust.input": "tool_arguments",
         "braintrust.output_json": "output", "braintrust.output": "output"},
        usage="braintrust.metrics",
    ),
    _Dialect(
        "span_type", "span_type",
        {"Flow": "CHAIN", "Function": "CHAIN", "LLM": "LLM", "Tool": "TOOL", "Retrieval": "RETRIEVER",
         "Embedding": "EMBEDDING"},
        ("inputs",), ("output",), {"inputs": "input", "output": "output"},
        {"inputs": "tool_arguments", "output": "output"}, usage="llm.usage.",
        events={"promptflow.function.inputs": "inputs", "promptflow.function.output": "output"},
    ),
)  # fmt: skip


def apply(draft: SpanDraft, context: Context) -> None:
    """Move the attributes of these dialects into columns."""
    for dialect in _DIALECTS:
        if dialect.root in context.roots:
            _apply(dialect, draft, context)


def _apply(dialect: _Dialect, draft: SpanDraft, context: Context) -> None:
    told = draft.attributes.get(dialect.kind) if dialect.kind else draft.name
    told = opened(told)
    if draft.kind == "UNKNOWN":
        draft.kind = dialect.kinds.get(str(told.get("type") if isinstance(told, dict) else told), "UNKNOWN")
    _usage(dialect, draft)
    _hoist(dialect, draft)
    texts = dialect.tool_texts if draft.kind == "TOOL" else dialect.texts
    for key in (*dialect.asked, *dialect.answered, *texts):
        if key in draft.attributes:
            draft.attributes[key] = _bare(draft.attributes[key])
    if draft.kind == "LLM":
        for names, column, role in (
            (dialect.asked, "input_messages", "user"), (dialect.answered, "output_messages", "assistant")
        ):  # fmt: skip
            for key in names:
                if draft.attributes.get(key) not in ("", None):
                    take_conversation(draft, key, column, context, role=role)
        return
    for key, column in texts.items():
        value = draft.attributes.get(key)
        if value is not None and not isinstance(value, str):
            draft.attributes[key] = json_text(value)
        put(draft, column, key)


def _hoist(dialect: _Dialect, draft: SpanDraft) -> None:
    """Make attributes of events that hold one; those of the same text go."""
    left = []
    for event in draft.events if dialect.events else ():
        name, held = dialect.events.get(str(event.get("name"))), event.get("attributes")
        payload = held.get("payload") if isinstance(held, dict) and len(held) == 1 else None
        if name is None or payload is None or draft.attributes.setdefault(name, payload) != payload:
            left.append(event)
    if dialect.events:
        draft.events = left


def _usage(dialect: _Dialect, draft: SpanDraft) -> None:
    if dialect.usage.endswith("."):
        named = {key for key in draft.attributes if key.startswith(dialect.usage)}
        put_usage(draft, {key.removeprefix(dialect.usage): draft.attributes[key] for key in named}, dialect.usage)
    elif dialect.usage and isinstance(used := opened(draft.attributes.get(dialect.usage)), dict):
        put_usage(draft, used, f"{dialect.usage}.")


def _bare(value: Json) -> Json:
    """The value in LangWatch's `{"type": ..., "value": ...}`; the items in LiveKit's `{"items": [...]}`."""
    inner = inner_json(value) if isinstance(value, str) else value
    if isinstance(inner, dict) and inner.keys() == {"type", "value"}:
        return inner["value"]
    return inner["items"] if isinstance(inner, dict) and inner.keys() == {"items"} else value
