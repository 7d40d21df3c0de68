"""Pydantic AI: what its spans hold beside the GenAI conventions that it follows."""

from __future__ import annotations

from collections.abc import Sequence

from tracejury.ingest.conventions.context import Context, put
from tracejury.ingest.conventions.conversation import take_conversation
from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import SpanDraft

NAME = "pydantic_ai"

_CONVERSATIONS = ("pydantic_ai.all_messages", "all_messages")
_TELLING = frozenset({"final_result", "all_messages_events", *_CONVERSATIONS})
"""What a span that names an agent holds where it is the agent's own span."""


def apply(draft: SpanDraft, context: Context) -> None:
    """The agent's answer becomes the output of its span; a tool's arguments and result go where they belong."""
    if draft.kind == "TOOL":
        _text(draft, "tool_arguments", "tool_arguments")
        _text(draft, "output", "tool_response")
    if draft.kind == "UNKNOWN" and "agent_name" in draft.attributes and not _TELLING.isdisjoint(draft.attributes):
        draft.kind = "AGENT"
        put(draft, "agent", "agent_name")
    if draft.kind != "AGENT":
        return
    if "final_result" in draft.attributes:
        put(draft, "agent", "agent_name")
        put(draft, "model", "model_name")
        _text(draft, "output", "final_result")


def place_conversations(drafts: Sequence[SpanDraft], context: Context) -> None:
    """Where no model call tells what was said, an agent's list of all messages does."""
    agents = [draft for draft in drafts if any(key in draft.attributes for key in _CONVERSATIONS)]
    if not agents or any(draft.kind == "LLM" and draft.input_messages for draft in drafts):
        return
    for draft in agents:
        for key in _CONVERSATIONS:
            if take_conversation(draft, key, "input_messages", context, role="user"):
                _split(draft, context)


def _split(draft: SpanDraft, context: Context) -> None:
    """The last message is the answer, unless the agent's output tells it already."""
    last = context.messages.messages[draft.input_messages[-1]]
    if last.role == "assistant" and not last.tool_calls:
        draft.output_messages = [draft.input_messages[-1]]
        draft.input_messages = draft.input_messages[:-1]
        if draft.output is not None and draft.output == last.content:
            draft.output = None


def _text(draft: SpanDraft, column: str, key: str) -> None:
    value = draft.attributes.get(key)
    if value is not None and getattr(draft, column) is None:
        setattr(draft, column, value if isinstance(value, str) else json_text(value))
        del draft.attributes[key]
