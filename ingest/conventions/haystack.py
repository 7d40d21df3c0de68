"""Haystack's own tracing: `haystack.pipeline.*`, `haystack.component.*`, `haystack.agent.*`.

Names: `haystack/core/pipeline/base.py` and `haystack/components/agents/agent.py`. Texts are there where content tracing
is switched on (HAYSTACK_CONTENT_TRACING_ENABLED).
"""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, column_of, put, put_usage
from tracejury.ingest.conventions.conversation import open_value, read_conversation, take_conversation
from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import Json, SpanDraft, SpanKind

NAME = "haystack"

_ENDINGS: tuple[tuple[str, SpanKind], ...] = (
    ("Generator", "LLM"), ("Retriever", "RETRIEVER"), ("Embedder", "EMBEDDING"), ("Ranker", "RERANKER"),
    ("PromptBuilder", "PROMPT"), ("ToolInvoker", "TOOL"), ("Agent", "AGENT"), ("Evaluator", "EVALUATOR"),
)  # fmt: skip
_STEPS: dict[str, SpanKind] = {
    "haystack.agent.step.llm": "LLM", "haystack.agent.step.tool": "TOOL", "haystack.agent.step": "CHAIN",
    "haystack.agent.hook": "CHAIN",
}  # fmt: skip
"""Spans of an agent's loop by their name, since version 3."""
_BASES = (
    "haystack.component.", "haystack.agent.step.llm.", "haystack.agent.step.tool.", "haystack.agent.step.",
    "haystack.agent.",
)  # fmt: skip
_SIDES = tuple(
    (side, (*(f"{base}{side}" for base in _BASES), f"haystack.pipeline.{side}_data")) for side in ("input", "output")
)
_ROLES = {"input": "user", "output": "assistant"}


def apply(draft: SpanDraft, context: Context) -> None:
    """Move Haystack's attributes into columns."""
    if "haystack" not in context.roots:
        return
    _kind(draft)
    for side, keys in _SIDES:
        for key in keys:
            _side(draft, side, key, context)
    if draft.attributes.get("haystack.tool.error") is True and draft.status == "UNSET":
        draft.status = "ERROR"


def _kind(draft: SpanDraft) -> None:
    kind = draft.attributes.get("haystack.component.type")
    if draft.kind != "UNKNOWN":
        return
    if draft.name in _STEPS:
        draft.kind = _STEPS[draft.name]
    elif isinstance(kind, str):
        draft.kind = next((ours for ending, ours in _ENDINGS if kind.endswith(ending)), "CHAIN")
    elif draft.name.startswith("haystack.agent"):
        draft.kind = "AGENT"
    elif draft.name.startswith("haystack."):
        draft.kind = "CHAIN"
    put(draft, "tool_name", "haystack.tool.name")
    put(draft, "tool_call_id", "haystack.tool.call.id")
    name = draft.attributes.get("haystack.component.name")
    if draft.kind in ("TOOL", "AGENT") and isinstance(name, str):
        column = "tool_name" if draft.kind == "TOOL" else "agent"
        setattr(draft, column, getattr(draft, column) or name)


def _side(draft: SpanDraft, side: str, key: str, context: Context) -> None:
    value = draft.attributes.get(key)
    if value in (None, {}, "{}"):
        return
    column = f"{side}_messages"
    if draft.kind == "AGENT" and side == "output":
        _answer(draft, key, value, context)
        return
    if draft.kind in ("LLM", "AGENT") and take_conversation(draft, key, column, context, role=_ROLES[side]):
        if side == "output":
            _meta(draft, draft.attributes.get(key))
        return
    column = column_of(draft, side)
    if getattr(draft, column) is None:
        setattr(draft, column, value if isinstance(value, str) else json_text(value))
        del draft.attributes[key]


def _answer(draft: SpanDraft, key: str, value: Json, context: Context) -> None:
    """The last message of an agent's whole conversation; its steps tell the others, and the attribute stays."""
    conversation = read_conversation(open_value(draft, key, value), "assistant")
    if conversation is not None and not draft.output_messages:
        draft.output_messages = [context.add(conversation.messages[-1].message)]


def _meta(draft: SpanDraft, rest: Json) -> None:
    """Model and counts, which Haystack keeps with each reply (chat) or beside the replies."""
    holders = rest if isinstance(rest, list) else [rest]
    if isinstance(rest, dict):
        messages, metas = rest.get("messages"), rest.get("meta")
        holders = [*(messages if isinstance(messages, list) else []), *(metas if isinstance(metas, list) else [metas])]
    for holder in holders:
        inner = holder.get("meta", holder.get("_meta", holder)) if isinstance(holder, dict) else None
        if not isinstance(inner, dict):
            continue
        if draft.model is None and isinstance(inner.get("model"), str):
            draft.model = str(inner["model"])
        if draft.total_tokens is None and draft.prompt_tokens is None:
            put_usage(draft, inner.get("usage"), "haystack.usage.")
