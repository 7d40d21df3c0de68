"""The parts of a message (text, reasoning, calls, results, pictures and files) in the forms of every provider.

Forms: OpenAI (chat and Responses), Anthropic, Bedrock Converse, Gemini (parts without `type`), OpenTelemetry GenAI,
Vercel AI SDK, LangChain, LlamaIndex (`block_type`), Genkit, Haystack, Pydantic AI.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple

from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import Json, ToolCall

Fields = dict[str, Json]


class Result(NamedTuple):
    """What a tool gave back, as a part of a message."""

    call_id: str | None
    name: str | None
    content: str | None


class Piece(NamedTuple):
    """What one part says, and the fields of it (`rest`) that this does not tell."""

    text: str | None = None
    reasoning: str | None = None
    call: ToolCall | None = None
    result: Result | None = None
    rest: Json = None
    is_known: bool = True


_TEXT = frozenset({"text", "input_text", "output_text", "summary_text", "refusal"})
_REASONING = frozenset({
    "reasoning", "thinking", "reasoning_text", "reasoning_content", "redacted_thinking", "redacted_reasoning", "think",
})  # fmt: skip
_CALLS = frozenset({
    "tool_call", "tool_use", "tooluse", "function_call", "server_tool_call", "server_tool_use", "mcp_tool_use",
    "tool_request", "toolcall", "functioncall",
})  # fmt: skip
_RESULTS = frozenset({
    "tool_call_response", "tool_result", "toolresult", "function_call_output", "server_tool_call_response",
    "tool_response", "function_response", "function_result", "functionresult",
})  # fmt: skip
_MEDIA = {
    "image": "image", "image_url": "image", "input_image": "image", "image_file": "image", "audio": "audio",
    "input_audio": "audio", "audio_url": "audio", "video": "video", "video_url": "video", "input_video": "video",
    "file": "file", "input_file": "file", "document": "document", "document_url": "document", "blob": "file",
    "uri": "file", "binary": "file", "media": "file",
}  # fmt: skip
_INNER: dict[str, str] = {
    "functionCall": "tool_call", "function_call": "tool_call", "toolUse": "tool_call", "toolRequest": "tool_call",
    "tool_call": "tool_call", "functionResponse": "tool_result", "function_response": "tool_result",
    "toolResult": "tool_result", "toolResponse": "tool_result", "tool_call_result": "tool_result",
    "inlineData": "file", "inline_data": "file", "fileData": "file", "file_data": "file", "media": "file",
    "image": "image", "document": "document", "video": "video", "audio": "audio", "image_url": "image",
    "reasoningContent": "reasoning", "reasoning_content": "reasoning", "reasoning": "reasoning",
    "executableCode": "code", "executable_code": "code", "codeExecutionResult": "code_result",
    "code_execution_result": "code_result",
}  # fmt: skip
"""Parts without `type` name their kind by the key that holds their fields: Gemini, Bedrock, Genkit, Haystack."""
CODE_EXECUTION = "code_execution"
"""What Gemini and Anthropic call the tool that runs code where the model itself runs."""
_NAMES = ("name", "toolName", "tool_name")
_IDS = ("id", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "call_id", "callId", "ref", "toolUseID")
_ARGUMENTS = ("arguments", "args", "input", "tool_kwargs", "server_tool_call")
_CONTENTS = ("content", "result", "response", "output", "results", "server_tool_call_response", "run")
_MIMES = ("mime_type", "mimeType", "media_type", "mediaType", "contentType", "content_type", "format", "file_type")
_ADDRESSES = ("uri", "url", "fileUri", "file_uri", "image_url", "image.image.url", "video_url", "audio_url", "file_url")
_BYTES = (
    "data", "bytes", "content", "base64", "base64_image", "base64_data", "binary_content", "file_data", "blob", "image",
)  # fmt: skip
_SCHEMES = ("http://", "https://", "data:", "gs://", "s3://", "file://")
_FILE_NAMES = ("filename", "file_name", "name", "title", "displayName")
_FILE_IDS = ("file_id", "fileId", "id")


_KIND_KEYS = ("type", "block_type", "$type", "content_type")
"""What names the kind of a part: LlamaIndex, Microsoft.Extensions.AI and Semantic Kernel differ from the others."""


def read_part(part: Json) -> Piece:
    """What one part of a message's content says, in whatever form; an unknown one is its JSON text."""
    if isinstance(part, str):
        return Piece(text=part)
    if not isinstance(part, dict):
        return Piece(text=json_text(part), is_known=False)
    kind_key = next((key for key in _KIND_KEYS if key in part), "type")
    kind = part.get(kind_key)
    if isinstance(kind, str) and "/" not in kind:
        reader = _by_type(kind.replace("-", "_").lower())
        if reader is not None:
            return reader({key: item for key, item in part.items() if key != kind_key}) or _unknown(part)
    return _without_type(part) or _unknown(part)


def read_content(content: Json) -> tuple[str | None, str | None, Json]:
    """The words and the reasoning of content that holds no call and no result, and what these do not tell."""
    if content is None or isinstance(content, str):
        return content, None, None
    pieces = [read_part(part) for part in (content if isinstance(content, list) else [content])]
    return joined([p.text for p in pieces]), joined([p.reasoning for p in pieces]), rests_of(pieces)


def joined(texts: Sequence[str | None]) -> str | None:
    """The texts a line each; None where there is none."""
    present = [text for text in texts if text is not None]
    return "\n".join(present) if present else None


def rests_of(pieces: Sequence[Piece]) -> Json:
    """What the parts hold beyond what is told of them, one entry a part; None where nothing."""
    return [piece.rest for piece in pieces] if any(piece.rest is not None for piece in pieces) else None


def arguments_text(arguments: Json) -> str | None:
    """Tool arguments as text: as the source writes them, JSON text of what is no text, None for JSON null."""
    if arguments is None or arguments == "null":
        return None
    return arguments if isinstance(arguments, str) else json_text(arguments)


def text_or_json(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)


def result_text(value: Json) -> tuple[str | None, Json]:
    """What a tool gave back as words: text, the texts of its parts, else JSON; and what that does not tell."""
    if value is None or isinstance(value, str):
        return value, None
    if isinstance(value, dict) and set(value) == {"type", "value"}:  # the output of a tool in the Vercel AI SDK
        words, rest = result_text(value["value"])
        return words, rest if value["type"] in ("text", "json", "content") else {"type": value["type"]}
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        if len(value) == 1 and isinstance(value[0], dict) and set(value[0]) == {"json"}:
            return json_text(value[0]["json"]), None
        pieces = [read_part(part) for part in value]
        if all(piece.is_known and piece.text is not None for piece in pieces):
            return joined([piece.text for piece in pieces]), rests_of(pieces)
    return json_text(value), None


def _by_type(kind: str) -> Callable[[Fields], Piece | None] | None:
    if kind in _TEXT:
        return _text
    if kind in _REASONING:
        return _reasoning
    if kind in _CALLS:
        return _call
    if kind == "function":
        return _function
    if kind in _RESULTS or kind.endswith("_tool_result"):
        return _result
    return (lambda left: _media(_MEDIA[kind], left)) if kind in _MEDIA else None


def _function(left: Fields) -> Piece | None:
    """OpenAI's call of a function where parts are expected (Koog); a function without arguments is a definition."""
    inner = left.get("function")
    return _call(left) if isinstance(inner, dict) and "arguments" in inner else None


def _without_type(part: Fields) -> Piece | None:
    if isinstance(part.get("text"), str):
        return _thought(part) if part.get("thought") is True else _text(dict(part))
    for key, kind in _INNER.items():
        inner = part.get(key)
        if inner is None:
            continue
        piece = _inner(kind, inner)
        if piece is not None:
            beside: Fields = {
                name: item for name, item in part.items() if name not in (key, "type") and item is not None
            }
            if beside and piece.rest is not None:
                beside[key] = piece.rest
            return piece._replace(rest=beside or piece.rest)
    if set(part) <= {"text", "type"} and isinstance(part.get("text"), dict):
        return _text(dict(part))
    return None


def _inner(kind: str, inner: Json) -> Piece | None:
    if kind.startswith("code"):
        return _code(kind, inner) if isinstance(inner, dict) else None
    if kind == "reasoning" and isinstance(inner, str):
        return Piece(reasoning=inner)
    if kind in _MEDIA and isinstance(inner, str):
        inner = {"url": inner}
    reader = _by_type(kind)
    return reader(dict(inner)) if reader is not None and isinstance(inner, dict) else None


def _code(kind: str, inner: Fields) -> Piece:
    """Code that Gemini itself ran, as the call of a tool, or its output, as the result."""
    left = dict(inner)
    own = text_or_json(left.pop("id", None))
    if kind == "code":
        return Piece(call=ToolCall(CODE_EXECUTION, arguments_text(left), own))
    words, outcome = text_or_json(left.pop("output", None)), left.pop("outcome", None)
    failed = outcome if outcome not in (None, "OUTCOME_OK", "OUTCOME_UNSPECIFIED", 0, 1) else None
    content = joined([text_or_json(failed), words])
    return Piece(result=Result(own, CODE_EXECUTION, content or ""), rest=_left(left))


def _text(left: Fields) -> Piece | None:
    for key in ("text", "content", "refusal"):
        value = left.get(key)
        if isinstance(value, dict) and isinstance(value.get("value"), str):  # Azure's agents, OpenAI's assistants
            beside: Json = {
                name: item for name, item in value.items() if name != "value" and item not in (None, [], "")
            }
            left[f"{key}.beside"] = beside or None
            value = value["value"]
        if isinstance(value, str):
            left.pop(key)
            return Piece(text=value, rest=_left(left))
    return None


def _thought(part: Fields) -> Piece:
    """Gemini marks what the model thought by `thought: true` beside the text."""
    left = {key: item for key, item in part.items() if key not in ("text", "thought")}
    return Piece(reasoning=str(part["text"]), rest=_left(left))


def _reasoning(left: Fields) -> Piece | None:
    for key in ("thinking", "reasoning", "text", "content", "reasoning_text", "reasoningText", "summary", "think"):
        value = left.get(key)
        words = joined([text_of(item) for item in value]) if isinstance(value, list) else text_of(value)
        if words is None and key in ("thinking", "think") and value not in (None, {}, []):
            words, value = json_text(value), None
        if words is not None:
            left.pop(key)
            if isinstance(value, dict):  # Bedrock signs it
                left.update({name: item for name, item in value.items() if name != "text"})
            return Piece(reasoning=words, rest=_left(left))
    return Piece(reasoning="(redacted by the provider)", rest=_left(left))


def text_of(value: Json) -> str | None:
    """The text of a string or of an object that holds one under `text`."""
    if isinstance(value, dict):
        value = value.get("text")
    return value if isinstance(value, str) else None


def _call(left: Fields) -> Piece | None:
    inner = left.pop("function", None)
    if isinstance(inner, dict):
        left = {**left, **inner}
    name, arguments, call_id = _pop(left, _NAMES), _pop(left, _ARGUMENTS), _pop(left, _IDS)
    if name is None and arguments is None:
        return None
    call = ToolCall(text_or_json(name), arguments_text(arguments), text_or_json(call_id))
    return Piece(call=call, rest=_left(left))


def _result(left: Fields) -> Piece | None:
    origin = left.pop("origin", None)
    if isinstance(origin, dict):  # Haystack repeats the call that is answered
        left = {**origin, **left}
        left.pop("arguments", None)
    if isinstance(run := left.get("run"), dict) and not left.keys() & set(_CONTENTS[:-1]):  # Amp tells how the tool ran
        left = {**left, **run}
        del left["run"]
    content, call_id, name = _pop(left, _CONTENTS), _pop(left, _IDS), _pop(left, _NAMES)
    words, rest = result_text(content)
    if rest is not None:
        left["content"] = rest
    return Piece(result=Result(text_or_json(call_id), text_or_json(name), words), rest=_left(left))


def _media(kind: str, left: Fields) -> Piece | None:
    """A picture, sound or file as a placeholder that names type, size, address and hash; its bytes stay in the rest."""
    for key in ("source", "image", "image_url", "input_audio", "file", "audio", "data", "s3Location", "inlineData"):
        inner = left.get(key)
        if isinstance(inner, dict):
            left = {**{name: item for name, item in left.items() if name != key}, **inner}
    kind = str(left.pop("modality", kind))
    mime, name = _popped_text(left, _MIMES), _popped_text(left, _FILE_NAMES)
    address = _popped_text(left, _ADDRESSES)
    left.pop("type", None)
    data_key = next((name for name in _BYTES if isinstance(left.get(name), str)), None)
    data: str | None = str(left[data_key]) if data_key is not None else None
    if data_key is not None and data is not None and data.startswith(_SCHEMES):
        address, data = data, None
        left.pop(data_key)
    if address is not None and address.startswith("data:"):
        head, _, data = address.removeprefix("data:").partition(",")
        mime, left["url"], address = mime or head.partition(";")[0], f"data:{head},{data}", None
    file_id = _popped_text(left, _FILE_IDS)
    if not any((mime, name, address, data, file_id)):
        return None
    return Piece(text=placeholder(kind, mime, name, address, data, file_id), rest=_left(left))


def placeholder(
    kind: str, mime: str | None, name: str | None, address: str | None, data: str | None, file_id: str | None
) -> str:
    """`[image image/png, 8 bytes, sha256 ...]`: what stands in the text for something that is no text."""
    facts = [" ".join(filter(None, (kind, name, mime)))]
    if data is not None:
        raw = _decoded(data)
        size = f"{len(data):,} characters" if raw is None else f"{len(raw):,} bytes"
        facts += [size, f"sha256 {sha256(data.encode() if raw is None else raw).hexdigest()}"]
    if address is not None:
        facts.append(f"at {address}")
    if file_id is not None:
        facts.append(f"file {file_id}")
    return f"[{', '.join(facts)}]"


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data + "=" * (-len(data) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _unknown(part: Fields) -> Piece:
    return Piece(text=json_text(part), is_known=False)


def _pop(left: Fields, names: Sequence[str]) -> Json:
    """The first of these fields that is there, taken out."""
    for name in names:
        if left.get(name) is not None:
            return left.pop(name)
    return None


def _popped_text(left: Fields, names: Sequence[str]) -> str | None:
    for name in names:
        if isinstance(left.get(name), str) and left[name]:
            return str(left.pop(name))
    return None


def _left(left: Fields) -> Json:
    """What is left of a part; nulls and empty values, as the Responses API's `annotations` mostly are, say nothing."""
    return {key: item for key, item in left.items() if item not in (None, [], "", {})} or None
