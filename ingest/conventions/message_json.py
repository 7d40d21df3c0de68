"""One message written as JSON, in the forms that frameworks use, as our `Message` and what it holds beyond that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from tracejury.ingest.conventions.parts import (
    Piece,
    arguments_text,
    joined,
    read_part,
    rests_of,
    result_text,
    text_of,
    text_or_json,
)
from tracejury.ingest.leftovers import decisions_of
from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, Message, ToolCall

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "model": "assistant"}
_CLASSES = {
    "HumanMessage": "user", "AIMessage": "assistant", "AIMessageChunk": "assistant", "SystemMessage": "system",
    "ToolMessage": "tool", "FunctionMessage": "function",
}  # fmt: skip


_ENCODED = ('[{"type"', '[{"text"', '[{"toolUse"', '[{"toolResult"', '[{"reasoningContent"')
"""How parts begin that stand as JSON text where a text was expected."""
_WORDS = ("text", "message", "body", "value")
"""Where some write a message's words, beside `content` and `parts`."""
_BESIDE_CONTENT = frozenset({"finish_reason", "finishReason", "stop_reason", "index", "tool.result", "id"})
_TEXT_PARTS = ("text", "input_text", "output_text", None)


class ParsedMessage(NamedTuple):
    """A message, and the rest of its JSON form (None when nothing but nulls is left)."""

    message: Message
    rest: Json


def read_message(value: Json) -> ParsedMessage | None:
    """The message that a JSON value writes; None when it is in no form known here, or writes several."""
    read = read_turn(value)
    return read[0] if read is not None and len(read) == 1 else None


def message_of(value: dict[str, Json]) -> ParsedMessage:
    """As `read_message`; of a form not known here the role and the content as they stand, and all else as the rest."""
    read = read_message(value)
    if read is not None:
        return read
    role = value.get("role")
    read_keys = ("content", "role") if isinstance(role, str) else ("content",)
    rest: dict[str, Json] = {key: item for key, item in value.items() if key not in read_keys and item is not None}
    return ParsedMessage(Message(text_or_json(role), content_text(value.get("content"))), rest or None)


def unread_of(turn: ParsedMessage) -> dict[str, Json]:
    """A role and calls of tools that are of no form known here, by their names."""
    rest = turn.rest if isinstance(turn.rest, dict) else {}
    calls = rest.get("tool_calls")
    if isinstance(calls, list) and all(call in (None, {"type": "function"}) for call in calls):
        calls = None
    return without_nulls({"role": rest.get("role"), "tool_calls": calls})


def read_turn(value: Json) -> list[ParsedMessage] | None:
    """The messages that one JSON value writes: one, or one for each tool's result; None in a form not known here.

    Known: role and content or parts as every provider writes them, the items of OpenAI's Responses API, LangChain's
    three forms, AutoGen's `source`, `[role, text]`.
    """
    if isinstance(value, dict):
        if isinstance(value.get("role"), str):
            return _with_role(value)
        return _response_item(value) or _langchain(value) or _with_source(value)
    if isinstance(value, list) and len(value) == 2 and all(isinstance(item, str) for item in value):
        role, content = value
        return [ParsedMessage(Message(_role(role), str(content)), None)]
    return None


def read_messages(values: Json) -> list[ParsedMessage] | None:
    """Each message of a list; None when one of them cannot be read (or there is none)."""
    if not isinstance(values, list) or not values:
        return None
    if len(values) == 1 and isinstance(values[0], list) and values[0] and not isinstance(values[0][0], str):
        return read_messages(values[0])
    read = [read_turn(value) for value in values]
    return None if None in read else [message for turn in read if turn is not None for message in turn]


def rest_of(messages: Sequence[ParsedMessage]) -> Json:
    """What a list of messages holds beyond them: one entry a message, or None when there is nothing."""
    return [item.rest for item in messages] if any(item.rest is not None for item in messages) else None


def merged(flat: Message, message: Message) -> Message | None:
    """Both as one message when they say the same (a field that one of them lacks does not count), else None."""
    if flat == message:
        return flat
    if flat.role is not None and message.role is not None and flat.role != message.role:
        return None
    only_the_role = flat.content is None and not flat.tool_calls  # as some write a message whose form they do not know
    if not only_the_role and (flat.content or "") != (message.content or ""):
        return None
    if not _agree(flat.name, message.name) or not _agree(flat.tool_call_id, message.tool_call_id):
        return None
    calls = _merged_calls(flat.tool_calls, message.tool_calls)
    if calls is None:
        return None
    content = message.content if flat.content is None else flat.content
    role = message.role if flat.role is None else flat.role
    reasoning = flat.reasoning or message.reasoning
    return Message(
        role, content, calls, flat.name or message.name, flat.tool_call_id or message.tool_call_id, reasoning
    )


def text_of_parts(parts: Json) -> str | None:
    """The text of content that is a list of text parts alone; None when it is more than text."""
    if not isinstance(parts, list) or not parts:
        return None
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("type") in _TEXT_PARTS and _holds_only_text(part):
            text = part.get("text")
            if not isinstance(text, str):
                return None
            texts.append(text)
        else:
            return None
    return texts[0] if len(texts) == 1 else "\n".join(texts)


def _holds_only_text(part: dict[str, Json]) -> bool:
    """Nothing beside the text but what is empty, as the Responses API's `annotations` mostly are."""
    return all(key in ("type", "text") or item in (None, [], "") for key, item in part.items())


def content_text(content: Json) -> str | None:
    """Content as a message keeps it: text, the text of text parts, else JSON text."""
    if content is None or isinstance(content, str):
        return content
    text = text_of_parts(content)
    return json_text(content) if text is None else text


def read_tool_calls(values: Json) -> tuple[tuple[ToolCall, ...], Json] | None:
    """Tool calls in OpenAI's or LangChain's form, and what they hold beyond; None when one is in neither form."""
    if values is None or values == "":
        return (), None
    values = inner_json(values) if isinstance(values, str) else values
    if not isinstance(values, list):
        return None
    calls: list[ToolCall] = []
    rests: list[Json] = []
    for value in values:
        if not isinstance(value, dict):
            return None
        call, rest = _tool_call(value)
        calls.append(call)
        rests.append(rest)
    return tuple(calls), (rests if any(rest is not None for rest in rests) else None)


def without_nulls(value: dict[str, Json]) -> dict[str, Json]:
    return {key: item for key, item in value.items() if item is not None}


def _with_role(value: dict[str, Json]) -> list[ParsedMessage] | None:
    role, content = value["role"], value.get("content")
    if len(value) == 2 and "content" in value and (content is None or isinstance(content, str)):
        opened = _double_encoded(content)
        if opened is None:
            return [ParsedMessage(Message(_role(role), content), None)]
        content = opened
    for key in ("parts", "content", "contents", "_content", "blocks"):
        parts = content if key == "content" else value.get(key)
        beside: dict[str, Json] = {}
        if isinstance(parts, dict):
            parts, beside = _unwrapped(parts)
            if role == "tool" and isinstance(beside.get("id"), str):
                beside["tool_call_id"] = beside.pop("id")
        if isinstance(parts, list):
            return _from_parts({**beside, **value}, key, parts)
    return _one_text(value)


def _double_encoded(content: str | None) -> list[Json] | None:
    """The parts of content that stands as their JSON text; None where it is plain text."""
    parts = inner_json(content) if content is not None and content.startswith(_ENCODED) else None
    known = isinstance(parts, list) and all(isinstance(part, dict) and read_part(part).is_known for part in parts)
    return parts if known and isinstance(parts, list) else None


def _unwrapped(content: dict[str, Json]) -> tuple[list[Json], dict[str, Json]]:
    """The parts in content that is an object, and what stands beside them.

    The object is one part, or `{"content" | "message": "[...]", "finish_reason"}` as AgentCore logs it.
    """
    for key in ("content", "message"):
        inner = content.get(key)
        beside = {name: item for name, item in content.items() if name != key}
        if not isinstance(inner, (str, list)) or not beside.keys() <= _BESIDE_CONTENT:
            continue
        parts = _double_encoded(inner) if isinstance(inner, str) else inner
        return ([inner] if parts is None else parts), beside
    return [content], {}


def _one_text(value: dict[str, Json]) -> list[ParsedMessage] | None:
    """A message whose content is one text, with the calls of tools beside it, as OpenAI writes it."""
    calls_key = "function_call" if isinstance(value.get("function_call"), dict) and not value.get("tool_calls") else ""
    read = read_tool_calls([value[calls_key]] if calls_key else value.get("tool_calls"))
    if read is None:
        return None
    calls, calls_rest = read
    known = {"role", "content", "tool_calls", calls_key}
    fields: dict[str, str | None] = {"name": None, "tool_call_id": None}
    for key in fields:
        item = value.get(key)
        if isinstance(item, str):
            fields[key] = item
            known.add(key)
    reasoning = _thought_beside(value, known)
    rest: dict[str, Json] = {key: item for key, item in value.items() if key not in known and item is not None}
    if calls_rest is not None:
        rest[calls_key or "tool_calls"] = calls_rest
    content = content_text(value.get("content"))
    if content is None:
        content = _said_otherwise(value, rest)
        is_silent = content is None and "content" not in value and not calls and reasoning is None
        if is_silent and any(True for _ in decisions_of(rest)):
            return None  # it says something, in a form that is not known here
    message = Message(_role(value["role"]), content, calls, fields["name"], fields["tool_call_id"], reasoning)
    return [ParsedMessage(message, rest or None)]


def _said_otherwise(value: dict[str, Json], rest: dict[str, Json]) -> str | None:
    """The words of a message without content, taken out of the rest: under another name, of a refusal, of a sound."""
    names = ("refusal",) if "content" in value else ("refusal", *_WORDS)
    named = next((name for name in names if isinstance(value.get(name), str) and value[name]), None)
    if named is not None:
        return str(rest.pop(named))
    audio = value.get("audio")
    transcript = audio.get("transcript") if isinstance(audio, dict) else None
    return transcript if isinstance(transcript, str) else None


def _thought_beside(value: dict[str, Json], known: set[str]) -> str | None:
    """What the model thought: `reasoning_content` (DeepSeek, litellm), `reasoning` (vLLM), `reasoning_details`
    (OpenRouter), `tool_plan` (Cohere).
    """
    for key in ("reasoning_content", "reasoning", "tool_plan"):
        item = value.get(key)
        if isinstance(item, str) and item:
            known.add(key)
            return item
    details = value.get("reasoning_details")
    parts = [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []
    words = joined([text for one in parts if isinstance(text := one.get("text", one.get("summary")), str)])
    if words:
        known.add("reasoning_details")
    return words


def _role(role: Json) -> str:
    return _ROLES.get(str(role), str(role))


def _from_parts(value: dict[str, Json], key: str, parts: list[Json]) -> list[ParsedMessage] | None:
    """The messages of one that holds parts: each result of a tool is a message of its own, with its call's id."""
    pieces = [read_part(part) for part in parts]
    outer = _outer(value, key, pieces)
    if outer is None:
        return None
    frame, rest = outer
    groups: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece.result is not None or (groups[-1] and groups[-1][0].result is not None):
            groups.append([])
        groups[-1].append(piece)
    messages = [_message_of(frame, group) for group in groups if group or len(groups) == 1]
    if frame.tool_calls or frame.reasoning:
        _set_beside(messages, frame)
    return [ParsedMessage(message, rest if number == 0 else None) for number, message in enumerate(messages)]


def _outer(value: dict[str, Json], key: str, pieces: list[Piece]) -> tuple[Message, Json] | None:
    """What stands beside the parts as a message without content, and the rest of the whole."""
    beside = read_tool_calls(value.get("tool_calls"))  # litellm writes the calls beside the parts, as OpenAI does
    if beside is None:
        return None
    known = {"role", key}
    if isinstance(value.get("name"), str):
        known.add("name")
    if isinstance(value.get("tool_call_id"), str):
        known.add("tool_call_id")
    reasoning = _thought_beside(value, known)
    call_ids = {call.id for piece in pieces if (call := piece.call) is not None}
    calls = tuple(call for call in beside[0] if call.id is None or call.id not in call_ids)
    rest: dict[str, Json] = {}
    if beside[0]:
        known.add("tool_calls")
        if beside[1] is not None:
            rest["tool_calls"] = beside[1]
    rest.update({name: item for name, item in value.items() if name not in known and item is not None})
    if (parts_rest := rests_of(pieces)) is not None:
        rest[key] = parts_rest
    name, call_id = text_or_json(value.get("name")), value.get("tool_call_id")
    call_id = call_id if isinstance(call_id, str) else None
    return Message(_role(value["role"]), None, calls, name, call_id, reasoning), rest or None


def _message_of(frame: Message, pieces: list[Piece]) -> Message:
    if pieces and (result := pieces[0].result) is not None:
        return Message("tool", result.content, (), result.name or frame.name, result.call_id or frame.tool_call_id)
    calls = tuple(piece.call for piece in pieces if piece.call is not None)
    content, reasoning = joined([piece.text for piece in pieces]), joined([piece.reasoning for piece in pieces])
    return Message(frame.role, content, calls, frame.name, frame.tool_call_id, reasoning)


def _set_beside(messages: list[Message], frame: Message) -> None:
    """Give the first message that is no tool's result the calls and the thoughts that stand beside the parts."""
    number = next((number for number, message in enumerate(messages) if message.role != "tool"), 0)
    message = messages[number]
    messages[number] = replace(
        message, tool_calls=message.tool_calls + frame.tool_calls, reasoning=message.reasoning or frame.reasoning
    )


def read_response(value: Json) -> tuple[list[ParsedMessage], dict[str, Json]] | None:
    """The messages of an answer of OpenAI's Responses API, and its other fields; None when it is no such answer."""
    if not isinstance(value, dict) or value.get("object") != "response":
        return None
    turns = read_messages(value.get("output"))
    return None if turns is None else (turns, {key: item for key, item in value.items() if key != "output"})


def _response_item(value: dict[str, Json]) -> list[ParsedMessage] | None:
    """An item of the Responses API that has no role: a call of a tool, its result, or what the model thought.

    A tool that runs at the provider is one item, which holds its result too.
    """
    left, kind = dict(value), str(value.get("type"))
    left.pop("type", None)
    if kind == "reasoning" and isinstance(left.get("summary"), list):
        parts = (*_list(left.pop("summary")), *_list(left.get("content")))
        thoughts = [text_or_json(part) if (text := text_of(part)) is None else text for part in parts]
        if isinstance(left.get("content"), list):
            del left["content"]
        message = Message("assistant", None, (), None, None, joined(thoughts) or "")
        return [ParsedMessage(message, without_nulls(left) or None)]
    if kind.endswith(_CALL_OUTPUT):
        (content, rest), call_id = result_text(left.pop("output", None)), left.pop("call_id", None)
        left["output"] = rest
        return [ParsedMessage(Message("tool", content, (), None, text_or_json(call_id)), without_nulls(left) or None)]
    if kind.endswith("_call") and kind != "tool_call":
        return _response_call(kind, left)
    return None


_CALL_OUTPUT = "_call_output"
CALL_GIVEN = ("arguments", "input", "action", "operation", "code", "queries")
"""Where a call of the Responses API holds what it gives to the tool: a function's, one of OpenAI's own."""
CALL_CAME = ("output", "outputs", "results", "result", "error")


def _response_call(kind: str, left: dict[str, Json]) -> list[ParsedMessage]:
    """The call in an item of the Responses API, and what came of it where the item holds that."""
    is_function = kind in ("function_call", "custom_tool_call")
    name = left.pop("name", None) if is_function or "name" in left else kind.removesuffix("_call")
    given = next((left.pop(key) for key in CALL_GIVEN if left.get(key) is not None), None)
    call_id = left.pop("call_id", None) or (None if is_function else left.get("id"))
    came = None if is_function else next((left.pop(key) for key in CALL_CAME if left.get(key) is not None), None)
    if kind == "image_generation_call" and isinstance(came, str):
        came = [{"type": "image", "data": came}]
    call = ToolCall(text_or_json(name), arguments_text(given), text_or_json(call_id))
    made = [ParsedMessage(Message("assistant", None, (call,)), without_nulls(left) or None)]
    if came is not None:
        content, rest = result_text(came)
        made.append(ParsedMessage(Message("tool", content, (), call.name, call.id), rest))
    return made


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _langchain(value: dict[str, Json]) -> list[ParsedMessage] | None:
    """LangChain: `{"lc", "id", "kwargs"}`, `{"type", "data"}` or the bare fields with a `type`."""
    fields, kind = value, value.get("type")
    outer: dict[str, Json] = {}
    if isinstance(value.get("kwargs"), dict) and isinstance(value.get("id"), list):
        fields = value["kwargs"]  # type: ignore[assignment]
        path = value["id"]
        kind = _CLASSES.get(str(path[-1])) if path else None  # type: ignore[index]
        outer = {key: item for key, item in value.items() if key not in ("kwargs", "lc", "type", "id")}
    elif isinstance(value.get("data"), dict):
        fields = value["data"]  # type: ignore[assignment]
        outer = {key: item for key, item in value.items() if key not in ("data", "type")}
    if not isinstance(kind, str) or "content" not in fields:
        return None
    role = _ROLES.get(kind, kind)
    if role not in ("user", "assistant", "system", "tool", "function", "developer", "chat"):
        return None
    as_openai: dict[str, Json] = {
        **{key: item for key, item in fields.items() if key not in ("type", "tool_calls") or item},
        "role": role,
    }
    as_openai.pop("type", None)
    message = _with_role({**as_openai, "content": fields["content"]}) if len(as_openai) > 1 else None
    if message is None:
        return None
    first = message[0].rest
    rest = without_nulls({**outer, **(first if isinstance(first, dict) else {})})
    return [ParsedMessage(message[0].message, rest or None), *message[1:]]


_SOURCELESS = frozenset({"SystemMessage", "FunctionExecutionResultMessage"})
_ROLES_OF_KINDS = {
    "SystemMessage": "system", "UserMessage": "user", "FunctionExecutionResultMessage": "tool",
    "ToolCallExecutionEvent": "tool",
}  # fmt: skip
_PARTS_OF_KINDS = {
    "AssistantMessage": "tool_call", "ToolCallRequestEvent": "tool_call",
    "FunctionExecutionResultMessage": "tool_result", "ToolCallExecutionEvent": "tool_result",
}  # fmt: skip
"""What the items of AutoGen's content are, which name no type."""


def _with_source(value: dict[str, Json]) -> list[ParsedMessage] | None:
    """AutoGen: `{"type": "TextMessage", "source": NAME, "content": ...}`."""
    source, kind = value.get("source"), value.get("type")
    if "content" not in value or not isinstance(kind, str) or not kind.endswith(("Message", "Event")):
        return None
    if not isinstance(source, str) and kind not in _SOURCELESS:
        return None
    role = _ROLES_OF_KINDS.get(kind) or ("user" if source == "user" else "assistant")
    left = {key: item for key, item in value.items() if key not in ("source", "type")}
    part = _PARTS_OF_KINDS.get(kind)
    if part is not None and isinstance(left["content"], list):
        left["content"] = [{"type": part, **one} if isinstance(one, dict) else one for one in left["content"]]
    named = isinstance(source, str) and source not in ("user", "assistant")
    return _with_role({**left, "role": role, **({"name": source} if named else {})})


def _tool_call(value: dict[str, Json]) -> tuple[ToolCall, Json]:
    left = dict(value)
    function = left.pop("function", None)
    if isinstance(function, dict):
        inner = dict(function)
        name, arguments = inner.pop("name", None), inner.pop("arguments", None)
        inner = without_nulls(inner)
        if inner:
            left["function"] = inner
    else:
        if function is not None:
            left["function"] = function
        name = left.pop("name", None)
        arguments = left.pop("args", None) if "args" in left else left.pop("arguments", None)
    call = ToolCall(text_or_json(name), arguments_text(arguments), text_or_json(left.pop("id", None)))
    return call, without_nulls(left) or None


def _agree(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _merged_calls(flat: tuple[ToolCall, ...], others: tuple[ToolCall, ...]) -> tuple[ToolCall, ...] | None:
    if len(flat) != len(others):
        return None
    calls = []
    for one, other in zip(flat, others, strict=True):
        if not _agree(one.name, other.name) or not _agree(one.id, other.id):
            return None
        if not _same_arguments(one.arguments, other.arguments):
            return None
        arguments = other.arguments if one.arguments is None else one.arguments
        calls.append(ToolCall(one.name or other.name, arguments, one.id or other.id))
    return tuple(calls)


def _same_arguments(one: str | None, other: str | None) -> bool:
    if one is None or other is None or one == other:
        return True
    value = inner_json(one)
    if value is not None:
        return value == inner_json(other)
    try:
        return bool(orjson.loads(one) == orjson.loads(other))
    except orjson.JSONDecodeError:
        return False
