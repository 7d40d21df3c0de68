"""OpenAI Agents SDK: `span_data.*` as its exporters flatten it, and Logfire's `events` list of GenAI messages."""

from __future__ import annotations

from ingest.conventions.context import Context, put, put_count
from ingest.conventions.genai import read_body
from ingest.conventions.said import read_messages, rest_of
from ingest.parse import inner_json, json_text
from ingest.trace import Json, SpanDraft, SpanKind

NAME = "openai_agents"

_TYPES: dict[str, SpanKind] = {
    "agent": "AGENT", "function": "TOOL", "generation": "LLM", "response": "LLM", "handoff": "CHAIN",
    "guardrail": "GUARDRAIL", "custom": "CHAIN", "mcp_tools": "CHAIN", "turn": "CHAIN", "task": "CHAIN",
}  # fmt: skip
_EVENT_LISTS = ("events", "all_messages_events")


def apply(draft: SpanDraft, context: Context) -> None:
    """Move what the Agents SDK writes into columns."""
    if not {"span_data", *_EVENT_LISTS} & context.roots:
        return
    attributes = draft.attributes
    kind = attributes.get("span_data.type")
    if isinstance(kind, str):
        _span_data(draft, kind, context)
    for key in _EVENT_LISTS:
        if key in attributes and not draft.input_messages:
            _events(draft, key, context)


def _span_data(draft: SpanDraft, kind: str, context: Context) -> None:
    if draft.kind == "UNKNOWN":
        draft.kind = _TYPES.get(kind, "UNKNOWN")
    if draft.kind == "AGENT":
        put(draft, "agent", "span_data.name")
    elif draft.kind == "TOOL":
        put(draft, "tool_name", "span_data.name")
    put(draft, "model", "span_data.model")
    put_count(draft, "prompt_tokens", "span_data.usage.input_tokens")
    put_count(draft, "completion_tokens", "span_data.usage.output_tokens")
    put_count(draft, "total_tokens", "span_data.usage.total_tokens")
    for side in ("input", "output"):
        _side(draft, side, context)


def _side(draft: SpanDraft, side: str, context: Context) -> None:
    key = f"span_data.{side}"
    value = draft.attributes.get(key)
    if value is None:
        return
    held = inner_json(value) if isinstance(value, str) else value
    said = read_messages(held) if draft.kind == "LLM" else None
    column = "tool_arguments" if draft.kind == "TOOL" and side == "input" else side
    if said is not None and not getattr(draft, f"{side}_messages"):
        setattr(draft, f"{side}_messages", [context.add(item.message) for item in said])
        rest = rest_of(said)
        if rest is not None:
            draft.attributes[key] = rest
            return
    elif getattr(draft, column) is None:
        setattr(draft, column, value if isinstance(value, str) else json_text(value))
    else:
        return
    del draft.attributes[key]


def _events(draft: SpanDraft, key: str, context: Context) -> None:
    value = draft.attributes[key]
    held = inner_json(value) if isinstance(value, str) else value
    if not isinstance(held, list) or not held:
        return
    read = []
    for item in held:
        name = item.get("event.name") if isinstance(item, dict) else None
        if not isinstance(name, str) or not isinstance(item, dict):
            return
        said = read_body(name, {k: v for k, v in item.items() if k != "event.name"})
        if said is None:
            return
        read.append((name, *said))
    for column in ("input_messages", "output_messages"):
        if not getattr(draft, column):
            setattr(draft, column, [context.add(message) for _, side, message, _ in read if side == column])
    rests: list[Json] = [{"event.name": name, **rest} for name, _, _, rest in read]
    draft.attributes[key] = rests
