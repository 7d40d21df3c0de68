"""One message written as JSON, in the forms that frameworks use, as our `Message` and what it holds beyond that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, Message, ToolCall

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
_CLASSES = {
    "HumanMessage": "user", "AIMessage": "assistant", "AIMessageChunk": "assistant", "SystemMessage": "system",
    "ToolMessage": "tool", "FunctionMessage": "function",
}  # fmt: skip


_TOOL_BLOCKS = frozenset({"toolUse", "toolResult", "tool_use", "tool_result"})
_TEXT_PARTS = ("text", "input_text", "output_text", None)


class ParsedMessage(NamedTuple):
    """A message, and the rest of its JSON form (None when nothing but nulls is left)."""

    message: Message
    rest: Json


def read_message(value: Json) -> ParsedMessage | None:
    """The message that a JSON value writes; None when it is in no form known here.

    Known: OpenAI's role and content, the items of its Responses API, the parts of OpenTelemetry GenAI, LangChain's
    three forms, `[role, text]`.
    """
    if isinstance(value, dict):
        if isinstance(value.get("role"), str):
            return _with_role(value)
        return _response_item(value) or _langchain(value)
    if isinstance(value, list) and len(value) == 2 and all(isinstance(item, str) for item in value):
        role, content = value
        return ParsedMessage(Message(str(role), str(content)), None)
    return None


def read_messages(values: Json) -> list[ParsedMessage] | None:
    """Each message of a list; None when one of them cannot be read (or there is none)."""
    if not isinstance(values, list) or not values:
        return None
    if len(values) == 1 and isinstance(values[0], list) and values[0] and not isinstance(values[0][0], str):
        return read_messages(values[0])
    read = [read_message(value) for value in values]
    return None if None in read else [said for said in read if said is not None]


def rest_of(said: Sequence[ParsedMessage]) -> Json:
    """What a list of messages holds beyond them: one entry a message, or None when there is nothing."""
    return [item.rest for item in said] if any(item.rest is not None for item in said) else None


def merged(flat: Message, said: Message) -> Message | None:
    """Both as one message when they say the same (a field that one of them lacks does not count), else None."""
    if flat == said:
        return flat
    if flat.role is not None and said.role is not None and flat.role != said.role:
        return None
    only_the_role = flat.content is None and not flat.tool_calls  # as some write a message whose form they do not know
    if not only_the_role and (flat.content or "") != (said.content or ""):
        return None
    if not _agree(flat.name, said.name) or not _agree(flat.tool_call_id, said.tool_call_id):
        return None
    calls = _merged_calls(flat.tool_calls, said.tool_calls)
    if calls is None:
        return None
    content = said.content if flat.content is None else flat.content
    role = said.role if flat.role is None else flat.role
    return Message(role, content, calls, flat.name or said.name, flat.tool_call_id or said.tool_call_id)


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


def arguments_text(arguments: Json) -> str | None:
    """Tool arguments as text: as the source writes them, JSON text of what is no text, None for JSON null."""
    if arguments is None or arguments == "null":
        return None
    return arguments if isinstance(arguments, str) else json_text(arguments)


def read_tool_calls(values: Json) -> tuple[tuple[ToolCall, ...], Json] | None:
    """Tool calls in OpenAI's or LangChain's form, and what they hold beyond; None when one is in neither form."""
    if values is None:
        return (), None
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


def _with_role(value: dict[str, Json]) -> ParsedMessage | None:
    role, content = value["role"], value.get("content")
    if len(value) == 2 and not isinstance(content, list) and "content" in value:
        return ParsedMessage(Message(str(role), content_text(content)), None)
    if isinstance(value.get("parts"), list):
        return _genai(value)
    blocks = _blocks(content)
    if blocks is not None and not value.get("tool_calls"):
        beside = without_nulls({key: item for key, item in value.items() if key not in ("role", "content")})
        if blocks.rest is not None:
            beside["content"] = blocks.rest
        return ParsedMessage(replace(blocks.message, role=str(role)), beside or None)
    read = read_tool_calls(value.get("tool_calls"))
    if read is None:
        return None
    calls, calls_rest = read
    known = {"role", "content", "tool_calls"}
    fields: dict[str, str | None] = {"name": None, "tool_call_id": None}
    for key in fields:
        item = value.get(key)
        if isinstance(item, str):
            fields[key] = item
            known.add(key)
    rest: dict[str, Json] = {key: item for key, item in value.items() if key not in known and item is not None}
    if calls_rest is not None:
        rest["tool_calls"] = calls_rest
    message = Message(str(role), content_text(content), calls, fields["name"], fields["tool_call_id"])
    return ParsedMessage(message, rest or None)


def _blocks(content: Json) -> ParsedMessage | None:
    """Content that holds calls of tools or their results among its parts, as Anthropic and Bedrock write it."""
    parts = content if isinstance(content, list) else []
    if not any(isinstance(part, dict) and (_TOOL_BLOCKS & {*part, part.get("type")}) for part in parts):
        return None
    texts: list[Json] = []
    calls: list[ToolCall] = []
    call_id: str | None = None
    rests: list[Json] = []
    for part in parts:
        left = _inner_block(part)
        kind = left.pop("type", None)
        if kind in ("toolUse", "tool_use"):
            name, arguments, own = left.pop("name", None), left.pop("input", None), _popped_id(left)
            calls.append(ToolCall(_text_or_json(name), arguments_text(arguments), own))
        elif kind in ("toolResult", "tool_result") and call_id is None:
            texts.append(content_text(left.pop("content", None)))
            call_id = _popped_id(left)
        else:
            texts.append(text_of_parts([part]) or part)
            left = {}
        rests.append(without_nulls(left) or None)
    told: list[Json] = [text for text in texts if text is not None]
    text = "\n".join(map(str, told)) if all(isinstance(one, str) for one in told) else json_text(told)
    message = Message(None, text if told else None, tuple(calls), None, call_id)
    return ParsedMessage(message, rests if any(rest is not None for rest in rests) else None)


def _inner_block(part: Json) -> dict[str, Json]:
    """The fields of a part with its kind as `type`: Bedrock names the kind by the key that holds them."""
    if not isinstance(part, dict):
        return {}
    for kind in ("toolUse", "toolResult"):
        inner = part.get(kind)
        if isinstance(inner, dict):
            return {**inner, "type": kind}
    return dict(part)


def _popped_id(left: dict[str, Json]) -> str | None:
    key = next((key for key in ("toolUseId", "tool_use_id", "id") if key in left), "id")
    return _text_or_json(left.pop(key, None))


def _genai(value: dict[str, Json]) -> ParsedMessage | None:
    """OpenTelemetry GenAI: `parts` of type text, tool_call, tool_call_response and others."""
    texts: list[Json] = []
    calls: list[ToolCall] = []
    tool_call_id: str | None = None
    rests: list[Json] = []
    parts = value["parts"]
    assert isinstance(parts, list)
    for part in parts:
        if not isinstance(part, dict):
            return None
        kind, left = part.get("type"), dict(part)
        left.pop("type", None)
        if kind == "text" and isinstance(part.get("content"), str):
            texts.append(left.pop("content"))
        elif kind == "tool_call":
            name, call_id = left.pop("name", None), left.pop("id", None)
            arguments = arguments_text(left.pop("arguments", None))
            calls.append(ToolCall(_text_or_json(name), arguments, _text_or_json(call_id)))
        elif kind == "tool_call_response" and tool_call_id is None:
            texts.append(left.pop("response", left.pop("result", None)))
            tool_call_id = _text_or_json(left.pop("id", None))
        else:
            texts.append(part)
            left = {}
        rests.append(without_nulls(left) or None)
    beside = read_tool_calls(value.get("tool_calls"))  # litellm writes the calls beside the parts, as OpenAI does
    known = {"role", "parts", "name"}
    rest: dict[str, Json] = {}
    if beside is not None and beside[0]:
        calls.extend(beside[0])
        known.add("tool_calls")
        if beside[1] is not None:
            rest["tool_calls"] = beside[1]
    if tool_call_id is None and isinstance(value.get("tool_call_id"), str):
        tool_call_id = str(value["tool_call_id"])
        known.add("tool_call_id")
    rest.update({key: item for key, item in value.items() if key not in known and item is not None})
    if any(item is not None for item in rests):
        rest["parts"] = rests
    content = None if not texts else content_text(texts[0] if len(texts) == 1 else texts)
    message = Message(str(value["role"]), content, tuple(calls), _text_or_json(value.get("name")), tool_call_id)
    return ParsedMessage(message, rest or None)


def read_response(value: Json) -> tuple[list[ParsedMessage], dict[str, Json]] | None:
    """The messages of an answer of OpenAI's Responses API, and its other fields; None when it is no such answer."""
    if not isinstance(value, dict) or value.get("object") != "response":
        return None
    said = read_messages(value.get("output"))
    return None if said is None else (said, {key: item for key, item in value.items() if key != "output"})


def _response_item(value: dict[str, Json]) -> ParsedMessage | None:
    """An item of the Responses API that has no role: a call of a tool, its result, or what the model thought."""
    left = dict(value)
    match left.pop("type", None):
        case "function_call":
            name, arguments, call_id = (left.pop(key, None) for key in ("name", "arguments", "call_id"))
            call = ToolCall(_text_or_json(name), arguments_text(arguments), _text_or_json(call_id))
            message = Message("assistant", None, (call,))
        case "function_call_output":
            content, call_id = left.pop("output", None), left.pop("call_id", None)
            message = Message("tool", content_text(content), (), None, _text_or_json(call_id))
        case "reasoning" if isinstance(left.get("summary"), list):
            message = Message("assistant", content_text(left.pop("summary")))
        case _:
            return None
    return ParsedMessage(message, without_nulls(left) or None)


def _langchain(value: dict[str, Json]) -> ParsedMessage | None:
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
    said = _with_role({**as_openai, "content": fields["content"]}) if len(as_openai) > 1 else None
    if said is None:
        return None
    rest = {**outer, **(said.rest if isinstance(said.rest, dict) else {})}
    return ParsedMessage(said.message, without_nulls(rest) or None)


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
    call = ToolCall(_text_or_json(name), arguments_text(arguments), _text_or_json(left.pop("id", None)))
    return call, without_nulls(left) or None


def _text_or_json(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)


def _agree(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _merged_calls(flat: tuple[ToolCall, ...], said: tuple[ToolCall, ...]) -> tuple[ToolCall, ...] | None:
    if len(flat) != len(said):
        return None
    calls = []
    for one, other in zip(flat, said, strict=True):
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
