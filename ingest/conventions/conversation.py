"""A conversation in whatever wraps it: an attribute's value as messages, with what is wrong with it named.

A value may be a list of messages, an object that holds them (a provider's request or answer), JSON text of these
(also twice encoded, also cut off), or plain text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from tracejury.ingest.conventions.context import Context
from tracejury.ingest.conventions.message_json import ParsedMessage, read_messages, read_turn, rest_of
from tracejury.ingest.conventions.parts import read_content, read_part
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.parse import closed_json, inner_json, json_text
from tracejury.ingest.trace import Json, Message, SpanDraft

_LISTS = ("messages", "contents", "input_messages", "output_messages", "new_messages", "choices", "candidates",
          "generations", "replies", "outputs", "message", "output", "input", "content", "prompt", "text")  # fmt: skip
"""Keys under which requests and answers hold their messages, the more particular first."""
_MESSAGE_IN = ("message", "content", "delta")
_SYSTEM = ("system", "systemInstruction", "system_instruction", "instructions", "systemPrompt", "system_prompt")


class Conversation(NamedTuple):
    """Messages, and what the value holds beyond them."""

    messages: list[ParsedMessage]
    others: dict[str, Json]


def read_conversation(value: Json, role: str) -> Conversation | None:
    """The messages of a value already opened; what has no role is messages by `role`. None in no form known here."""
    if isinstance(value, str):
        return Conversation([ParsedMessage(Message(role, value), None)], {}) if value.strip() else None
    if isinstance(value, list):
        messages = read_messages(value) or _each_holds(value, role) or _of_parts(value, role)
        return None if messages is None else Conversation(messages, {})
    if not isinstance(value, dict) or not value:
        return None
    turn = read_turn(value)
    if turn is not None:
        return Conversation(turn, {})
    if isinstance(value.get("toolCalls"), list):
        return _with_calls(value, role)
    system, left = _system_first(value)
    for key in _LISTS:
        messages = _messages_in(left.get(key), role)
        if messages is not None:
            return Conversation([*system, *messages], {name: item for name, item in left.items() if name != key})
    match left:  # what a decorator saw of a call: its one argument is the prompt
        case {"args": [str(prompt)], **others} if prompt.strip() and not any(others.values()):
            return Conversation([*system, ParsedMessage(Message(role, prompt), None)], {})
    return None


def _with_calls(value: dict[str, Json], role: str) -> Conversation | None:
    """The answer of an SDK that keeps its text and its `toolCalls` beside each other."""
    calls = [{"type": "tool-call", **call} for call in cast("list[Json]", value["toolCalls"]) if isinstance(call, dict)]
    text = value.get("text")
    parts: list[Json] = [{"type": "text", "text": text}] if isinstance(text, str) and text else []
    messages = _of_parts([*parts, *calls], role)
    others = {name: item for name, item in value.items() if name not in ("text", "toolCalls")}
    return None if messages is None else Conversation(messages, others)


def take_conversation(draft: SpanDraft, key: str, column: str, context: Context, *, role: str) -> bool:
    """Put the messages of an attribute into an empty column; False where its value is in no form known here.

    JSON that is cut off is read as far as it goes, with a warning; plain text is one message of `role`.
    """
    value = draft.attributes.get(key)
    if value is None or getattr(draft, column):
        return False
    warned = len(draft.warnings)
    conversation = read_conversation(open_value(draft, key, value), role)
    if conversation is None:
        return False
    if len(draft.warnings) > warned:
        conversation = _without_stub(conversation)
    setattr(draft, column, [context.add(item.message) for item in conversation.messages])
    rest = rest_of(conversation.messages)
    if conversation.others:
        rest = {**conversation.others, "messages": rest} if rest is not None else conversation.others
    if rest is None:
        del draft.attributes[key]
    else:
        draft.attributes[key] = rest
    return True


def _without_stub(conversation: Conversation) -> Conversation:
    """The messages of JSON that is cut off without the last one, where it was cut before it said anything."""
    last = conversation.messages[-1].message
    part = inner_json(last.content or "")
    has_words = bool(last.content) and not (isinstance(part, dict) and part.keys() <= {"type", "id"})
    is_stub = not (has_words or last.tool_calls or last.reasoning) and len(conversation.messages) > 1
    return conversation._replace(messages=conversation.messages[:-1]) if is_stub else conversation


SIDES = ("input", "output")


def raise_messages(draft: SpanDraft, table: MessageTable, *, sides: Sequence[str] = SIDES) -> None:
    """Make messages of what went into a model and came out of it where a source tells it as one text."""
    if draft.kind != "LLM":
        return
    for side in sides:
        role = "user" if side == "input" else "assistant"
        text = getattr(draft, side)
        if not text or getattr(draft, f"{side}_messages"):
            continue
        content = opened(text)
        if isinstance(content, str) and (cut := closed_json(content)) is not None:
            draft.warnings.append(_cut_off(side, text))
            content = cut
        is_open = not isinstance(content, str) or content[:1] not in ("{", "[")
        conversation = read_conversation(content, role) if is_open else None
        if conversation is None:
            continue
        if isinstance(opened(text), str):
            conversation = _without_stub(conversation)
        setattr(draft, f"{side}_messages", [table.place(item.message) for item in conversation.messages])
        setattr(draft, side, json_text(conversation.others) if conversation.others and side == "input" else None)
        if conversation.others and side == "output":  # why it ended, what it cost: beside what was said
            draft.attributes["output.beside"] = conversation.others
        rest = rest_of(conversation.messages)
        if rest is not None:
            draft.attributes[f"{side}.messages"] = rest


def open_value(draft: SpanDraft, key: str, value: Json) -> Json:
    """The value within a text attribute (or each text of a list): its JSON, as far as it goes; other text stays."""
    if isinstance(value, list) and value:
        opened_items = [inner_json(item) if isinstance(item, str) else None for item in value]
        return cast("Json", opened_items) if all(isinstance(item, dict) for item in opened_items) else value
    if not isinstance(value, str):
        return value
    content = inner_json(value)
    if content is not None:
        return content
    cut = closed_json(value)
    if cut is not None:
        draft.warnings.append(_cut_off(key, value))
        return cut
    return value


def _cut_off(name: str, text: str) -> str:
    return f"cut_off_json: {name} is incomplete JSON, which ends in {text[-60:]!r}; read up to its end"


def _system_first(value: dict[str, Json]) -> tuple[list[ParsedMessage], dict[str, Json]]:
    """The instructions that stand beside the messages (Anthropic, Bedrock, Gemini, ADK) as the first message."""
    left = dict(value)
    config = left.get("config")
    holders = [left] if not isinstance(config, dict) else [left, dict(config)]
    for holder in holders:
        for key in _SYSTEM:
            text = _words(holder.get(key))
            if text:
                del holder[key]
                if holder is not left:
                    left["config"] = holder
                return [ParsedMessage(Message("system", text), None)], left
    return [], left


def _words(value: Json) -> str | None:
    if isinstance(value, dict) and isinstance(value.get("parts"), list):
        value = value["parts"]
    return read_content(value)[0] if isinstance(value, (str, list)) else None


def _messages_in(value: Json, role: str) -> list[ParsedMessage] | None:
    """The messages under a key: a list of them or of what holds one each, one alone, parts without a role, or text."""
    if isinstance(value, str):
        return [ParsedMessage(Message(role, value), None)] if value.strip() else None
    if isinstance(value, list):
        inner = value[0] if len(value) == 1 and isinstance(value[0], list) else value
        return read_messages(inner) or _each_holds(inner, role) or _of_parts(inner, role)
    if isinstance(value, dict):
        turn = read_turn(value)
        if turn is not None:
            return turn
        if isinstance(value.get("parts"), list):
            return read_turn({"role": role, **value})
        for key in ("message", "messages"):
            if (messages := _messages_in(value.get(key), role)) is not None:
                return messages
    return None


def _each_holds(values: Json, role: str) -> list[ParsedMessage] | None:
    """`choices`, `candidates`, `generations`: each holds one message, or its text."""
    messages: list[ParsedMessage] = []
    for item in values if isinstance(values, list) else []:
        if not isinstance(item, dict):
            return None
        key = next((key for key in _MESSAGE_IN if isinstance(item.get(key), dict)), None)
        inner = item[key] if key is not None else None
        if key is None and isinstance(item.get("text"), str) and not read_part(item).rest:
            inner = {"role": role, "content": item["text"]}
        turn = read_turn({"role": role, **inner}) if isinstance(inner, dict) else None
        if turn is None:
            return None
        beside: dict[str, Json] = {name: value for name, value in item.items() if name != key and value is not None}
        messages += [turn[0]._replace(rest=_both(turn[0].rest, beside)), *turn[1:]]
    return messages or None


def _both(rest: Json, beside: dict[str, Json]) -> Json:
    return {**beside, **(rest if isinstance(rest, dict) else {})} or None


def _of_parts(values: Sequence[Json], role: str) -> list[ParsedMessage] | None:
    """Texts or parts without a role: one message for texts each, one for parts together."""
    if not values:
        return None
    if all(isinstance(item, str) for item in values):
        return [ParsedMessage(Message(role, str(item)), None) for item in values]
    if all(isinstance(item, dict) and read_part(item).is_known for item in values):
        return read_turn({"role": role, "content": list(values)})
    if role == "assistant" and all(isinstance(item, dict) and {"name", "arguments"} <= item.keys() for item in values):
        return read_turn({"role": role, "tool_calls": list(values)})
    return None
