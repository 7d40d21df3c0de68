"""OpenAI Agents SDK: the fields of its span data as `span_data.*`, and Logfire's `events` list of GenAI messages."""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, column_of, put, put_count
from tracejury.ingest.conventions.genai import read_body
from tracejury.ingest.conventions.message_json import read_messages, read_response, rest_of
from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, Message, SpanDraft, SpanKind

NAME = "openai_agents"

_TYPES: dict[str, SpanKind] = {
    "agent": "AGENT", "function": "TOOL", "generation": "LLM", "response": "LLM", "handoff": "CHAIN",
    "guardrail": "GUARDRAIL", "custom": "CHAIN", "mcp_tools": "CHAIN", "turn": "CHAIN", "task": "CHAIN",
}  # fmt: skip
_REASONING = "span_data.usage.output_tokens_details.reasoning_tokens"
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
    _turn(draft)
    if draft.kind == "AGENT":
        put(draft, "agent", "span_data.name")
    elif draft.kind == "TOOL":
        put(draft, "tool_name", "span_data.name")
    put(draft, "model", "span_data.model")
    _usage(draft)
    put_count(draft, "prompt_tokens", "span_data.usage.input_tokens")
    put_count(draft, "completion_tokens", "span_data.usage.output_tokens")
    put_count(draft, "total_tokens", "span_data.usage.total_tokens")
    for side in ("input", "output"):
        _side(draft, side, context)
    _response(draft, context)
    if kind == "response" and draft.status != "ERROR" and not draft.input_messages and not draft.output_messages:
        draft.warnings.append(
            "no_text: the SDK exports no text of a call of the responses API; let the tracing processor add "
            "span_data.input and span_data.response"
        )


def _turn(draft: SpanDraft) -> None:
    """A turn of the loop, which the SDK exports as a custom span: its number and the agent whose turn it is."""
    data = draft.attributes.get("span_data.data")
    if not isinstance(data, dict) or data.get("sdk_span_type") != "turn":
        return
    number, agent = data.get("turn"), data.get("agent_name")
    if isinstance(number, int) and not isinstance(number, bool) and draft.step is None:
        draft.step = number
    if isinstance(agent, str) and draft.agent is None:
        draft.agent = agent


def _usage(draft: SpanDraft) -> None:
    """`usage` as an object: its counts by their own names, so that they are found; the rest stays."""
    usage = draft.attributes.get("span_data.usage")
    if not isinstance(usage, dict) or draft.kind != "LLM":
        return
    del draft.attributes["span_data.usage"]
    draft.attributes.update({f"span_data.usage.{key}": item for key, item in usage.items() if item is not None})
    details = usage.get("output_tokens_details")
    count = details.get("reasoning_tokens") if isinstance(details, dict) else None
    if count is not None:
        draft.attributes[_REASONING] = count
        put_count(draft, "reasoning_tokens", _REASONING)


def _response(draft: SpanDraft, context: Context) -> None:
    """The answer of the responses API, where a processor added it: its items are the messages."""
    read = read_response(draft.attributes.get("span_data.response"))
    if read is None or draft.output_messages:
        return
    messages, others = read
    draft.output_messages = [context.add(item.message) for item in messages]
    instructions = others.get("instructions")
    if isinstance(instructions, str) and draft.input_messages:
        draft.input_messages = [context.add(Message("system", instructions)), *draft.input_messages]
    rest = rest_of(messages)
    draft.attributes["span_data.response"] = others if rest is None else {**others, "output": rest}
    if draft.model is None and isinstance(others.get("model"), str):
        draft.model = str(others["model"])


def _side(draft: SpanDraft, side: str, context: Context) -> None:
    key = f"span_data.{side}"
    value = draft.attributes.get(key)
    if value is None:
        return
    content = inner_json(value) if isinstance(value, str) else value
    turns = read_messages(content) if draft.kind == "LLM" else None
    column = column_of(draft, side)
    if turns is not None and not getattr(draft, f"{side}_messages"):
        setattr(draft, f"{side}_messages", [context.add(item.message) for item in turns])
        rest = rest_of(turns)
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
    content = inner_json(value) if isinstance(value, str) else value
    if not isinstance(content, list) or not content:
        return
    read = []
    for item in content:
        name = item.get("event.name") if isinstance(item, dict) else None
        if not isinstance(name, str) or not isinstance(item, dict):
            return
        body = read_body(name, {k: v for k, v in item.items() if k != "event.name"})
        if body is None:
            return
        read.append((name, *body))
    for column in ("input_messages", "output_messages"):
        if not getattr(draft, column):
            listed = [message for _, side, messages, _ in read if side == column for message in messages]
            setattr(draft, column, [context.add(message) for message in listed])
    rests: list[Json] = [{"event.name": name, **rest} for name, _, _, rest in read]
    draft.attributes[key] = rests
