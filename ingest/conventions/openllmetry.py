"""OpenLLMetry (Traceloop): `traceloop.*`, `gen_ai.prompt.<i>.*`, `gen_ai.completion.<i>.*`, `llm.request.*`.

Names: the package opentelemetry-semantic-conventions-ai. litellm's own OpenTelemetry callback writes the same.
"""

from __future__ import annotations

from dataclasses import replace

from tracejury.ingest.conventions.context import Context, column_of, put_count
from tracejury.ingest.conventions.message_json import content_text, merged
from tracejury.ingest.conventions.parts import arguments_text, read_content
from tracejury.ingest.parse import inner_json, json_text, unquoted
from tracejury.ingest.trace import Json, Message, SpanDraft, SpanKind, ToolCall

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
        messages = [_message(part, attributes, f"{prefix}{number}.", column) for number, part in fields]
        table_messages = [context.messages.messages[position] for position in getattr(draft, column)]
        if not table_messages:
            setattr(draft, column, [context.add(message) for message in messages])
        elif (both := _both(messages, table_messages)) is not None:
            setattr(draft, column, [context.add(message) for message in both])
        else:
            _put_back(messages, attributes, prefix, column)
    put_count(draft, "total_tokens", "llm.usage.total_tokens")


def _both(flat: list[Message], table_messages: list[Message]) -> list[Message] | None:
    """Each message as both tell it; a call that the other form leaves out (litellm's) is put in. None: they differ."""
    if len(flat) != len(table_messages):
        return None
    messages = []
    for one, other in zip(flat, table_messages, strict=True):
        both = merged(one, other if other.tool_calls else replace(other, tool_calls=one.tool_calls))
        if both is None:
            return None
        messages.append(both)
    return messages


def _put_back(messages: list[Message], attributes: dict[str, Json], prefix: str, column: str) -> None:
    """Messages that say something else than what stands in the column stay attributes."""
    for number, message in enumerate(messages):
        attributes[f"{prefix}{number}"] = {
            "role": message.role,
            "content": message.content,
            "tool_calls": [[call.name, call.arguments, call.id] for call in message.tool_calls],
            "tool_call_id": message.tool_call_id,
        }


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
        elif draft.kind == "TOOL" and draft.tool_name in (None, name):
            draft.tool_name = name
            del attributes["traceloop.entity.name"]
    for side in ("input", "output"):
        _side(draft, side, column_of(draft, side))
    if draft.kind == "TOOL":
        _bare_arguments(draft)


def _side(draft: SpanDraft, side: str, column: str) -> None:
    """What went in or came out, which newer versions write twice; a text that stands as JSON without its quotes."""
    attributes, key, again = draft.attributes, f"traceloop.entity.{side}", f"gen_ai.task.{side}"
    value = attributes.get(key)
    if value is None:
        return
    text = value if isinstance(value, str) else json_text(value)
    if attributes.get(again) == value:
        del attributes[again]
    if getattr(draft, column) is None:
        setattr(draft, column, text)
    if getattr(draft, column) == text:
        setattr(draft, column, unquoted(text))
        del attributes[key]


def _bare_arguments(draft: SpanDraft) -> None:
    """LangChain's `{"input_str": "{...}", "tags": ..., "metadata": ...}`: the arguments alone; the rest stays."""
    content = inner_json(draft.tool_arguments or "")
    text = content.get("input_str") if isinstance(content, dict) else None
    if isinstance(content, dict) and isinstance(text, str) and "metadata" in content:
        draft.tool_arguments = text
        draft.attributes["traceloop.entity.input"] = {key: item for key, item in content.items() if key != "input_str"}


def _flattened(attributes: dict[str, Json], prefix: str) -> list[tuple[int, Fields]]:
    fields: dict[int, Fields] = {}
    for key in [key for key in attributes if key.startswith(prefix)]:
        number, _, field = key.removeprefix(prefix).partition(".")
        if field and number.isascii() and number.isdigit() and len(number) < 7:
            fields.setdefault(int(number), {})[field] = attributes.pop(key)
    return sorted(fields.items())


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
    text, reasoning = content_text(content), None
    if opened is not None:
        text, reasoning, rest = read_content(opened)
        if rest is not None:
            attributes[f"{path}content"] = rest
    tool_calls = tuple(_call(call) for _, call in sorted(calls.items()))
    return Message(_text(role), text, tool_calls, None, _text(call_id), reasoning)


def _call(fields: Fields) -> ToolCall:
    return ToolCall(_text(fields.get("name")), arguments_text(fields.get("arguments")), _text(fields.get("id")))


def _text(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)
