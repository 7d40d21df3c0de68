"""OpenLLMetry (Traceloop): `traceloop.*`, `gen_ai.prompt.<i>.*`, `gen_ai.completion.<i>.*`, `llm.request.*`.

Names: the package opentelemetry-semantic-conventions-ai. litellm's own OpenTelemetry callback writes the same.
"""

from __future__ import annotations

from ingest.conventions.context import Context, put_count
from ingest.conventions.said import arguments_text, content_text
from ingest.parse import inner_json, json_text
from ingest.trace import Json, Message, SpanDraft, SpanKind, ToolCall

NAME = "openllmetry"

_KINDS: dict[str, SpanKind] = {"workflow": "CHAIN", "task": "CHAIN", "agent": "AGENT", "tool": "TOOL"}
_REQUESTS: dict[str, SpanKind] = {
    "chat": "LLM", "completion": "LLM", "embedding": "EMBEDDING", "rerank": "RERANKER", "acompletion": "LLM",
}  # fmt: skip
_SIDES = (("gen_ai.prompt.", "input_messages"), ("gen_ai.completion.", "output_messages"))

Fields = dict[str, Json]


def apply(draft: SpanDraft, context: Context) -> None:
    """Move OpenLLMetry's attributes into columns."""
    attributes = draft.attributes
    if not {"traceloop", "gen_ai", "llm"} & context.roots or "openinference" in context.roots:
        return
    _kind(draft)
    _entity(draft)
    for prefix, column in _SIDES:
        fields = _flattened(attributes, prefix)
        if not fields:
            continue
        messages = [_message(found, attributes, f"{prefix}{number}.", column) for number, found in fields]
        if not getattr(draft, column):
            setattr(draft, column, [context.add(message) for message in messages])
    put_count(draft, "total_tokens", "llm.usage.total_tokens")


def _kind(draft: SpanDraft) -> None:
    if draft.kind != "UNKNOWN":
        return
    for key, kinds in (("traceloop.span.kind", _KINDS), ("llm.request.type", _REQUESTS)):
        value = draft.attributes.get(key)
        if isinstance(value, str) and value.lower() in kinds:
            draft.kind = kinds[value.lower()]
            return
    if any(key.startswith(("gen_ai.prompt.", "gen_ai.completion.")) for key in draft.attributes):
        draft.kind = "LLM"


def _entity(draft: SpanDraft) -> None:
    attributes = draft.attributes
    name = attributes.get("traceloop.entity.name")
    if isinstance(name, str) and name:
        if draft.kind == "AGENT" and draft.agent is None:
            draft.agent = name
            del attributes["traceloop.entity.name"]
        elif draft.kind == "TOOL" and draft.tool_name is None:
            draft.tool_name = name
            del attributes["traceloop.entity.name"]
    into = "tool_arguments" if draft.kind == "TOOL" else "input"
    for key, column in (("traceloop.entity.input", into), ("traceloop.entity.output", "output")):
        value = attributes.get(key)
        if value is not None and getattr(draft, column) is None:
            setattr(draft, column, value if isinstance(value, str) else json_text(value))
            del attributes[key]


def _flattened(attributes: dict[str, Json], prefix: str) -> list[tuple[int, Fields]]:
    found: dict[int, Fields] = {}
    for key in [key for key in attributes if key.startswith(prefix)]:
        number, _, field = key.removeprefix(prefix).partition(".")
        if field and number.isascii() and number.isdigit() and len(number) < 7:
            found.setdefault(int(number), {})[field] = attributes.pop(key)
    return sorted(found.items())


def _message(fields: Fields, attributes: dict[str, Json], path: str, column: str) -> Message:
    role, content = fields.pop("role", None), fields.pop("content", None)
    calls: dict[int, Fields] = {}
    for key in [key for key in fields if key.startswith(("tool_calls.", "function_call."))]:
        number, _, name = key.removeprefix("tool_calls.").partition(".")
        if number == "function_call":
            number = "0"
        name = name.removeprefix("function.")
        if number.isascii() and number.isdigit() and name in ("id", "name", "arguments"):
            calls.setdefault(int(number), {})[name] = fields.pop(key)
    call_id = fields.pop("tool_call_id", None) if isinstance(fields.get("tool_call_id"), str) else None
    for key, value in fields.items():
        attributes[f"{path}{key}"] = value
    if role is None and column == "output_messages":
        role = "assistant"
    opened = inner_json(content) if isinstance(content, str) and content.startswith('[{"type"') else None
    text = content_text(content if opened is None else opened)
    return Message(_text(role), text, tuple(_call(call) for _, call in sorted(calls.items())), None, _text(call_id))


def _call(fields: Fields) -> ToolCall:
    return ToolCall(_text(fields.get("name")), arguments_text(fields.get("arguments")), _text(fields.get("id")))


def _text(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)
