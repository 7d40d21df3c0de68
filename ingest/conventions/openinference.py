"""OpenInference (Arize): `openinference.span.kind`, `llm.*`, `tool.*`, `input.value`, `output.value`.

Names and meanings: the package openinference-semantic-conventions. Messages are flattened to
`llm.input_messages.<i>.message.*`; sorted as text 10 comes before 2, so the numbers are read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from tracejury.ingest.conventions.context import Context, Gap, forget_zero_tokens, put, put_count
from tracejury.ingest.conventions.message_json import (
    ParsedMessage,
    content_text,
    merged,
    read_message,
    read_messages,
    read_response,
    rest_of,
    text_of_parts,
)
from tracejury.ingest.conventions.parts import arguments_text, read_content
from tracejury.ingest.conventions.smolagents import chat_message_tails
from tracejury.ingest.parse import inner_json, inner_json_as_is, json_text
from tracejury.ingest.trace import SPAN_KINDS, Json, Message, SpanDraft, SpanKind, ToolCall
from tracejury.ingest.words import counted

NAME = "openinference"

_PREFIXES = ("llm.input_messages", "llm.output_messages")
_MOST_MESSAGES = 100_000
_NEAR_LIMIT = 100
"""OpenTelemetry keeps 128 attributes a span; from here on a call that lacks its input text is suspected."""

Fields = dict[str, Json]


def apply(draft: SpanDraft, context: Context) -> None:
    """Move OpenInference's attributes into the columns of `draft`."""
    attributes = draft.attributes
    _kind(draft)
    had_input = "input.value" in attributes
    inputs, outputs = _flattened(attributes)
    said_in = {number: _message(fields, draft, 0, number, context) for number, fields in sorted(inputs.items())}
    said_out = {number: _message(fields, draft, 1, number, context) for number, fields in sorted(outputs.items())}
    put(draft, "model", "llm.model_name")
    put(draft, "agent", "agent.name")
    if draft.kind == "AGENT":
        put(draft, "agent", "graph.node.id")  # CrewAI's spans are named by the method, the node by the agent's role
    _tokens(draft)
    if draft.kind == "TOOL":
        _tool(draft)
    if "output.value" in attributes:
        _output(draft, said_out)
    draft.output_messages = draft.output_messages or [context.add(message) for message in said_out.values()]
    if had_input:
        _input(draft, said_in)
    _place_inputs(draft, said_in, context, had_input=had_input)
    if {"retrieval", "reranker"} & context.roots:
        _documents(draft)


def _kind(draft: SpanDraft) -> None:
    kind = draft.attributes.get("openinference.span.kind")
    if isinstance(kind, str) and kind.upper() in SPAN_KINDS and draft.kind == "UNKNOWN":
        draft.kind = cast("SpanKind", kind.upper())
        if kind.upper() == kind:
            del draft.attributes["openinference.span.kind"]


def _flattened(attributes: dict[str, Json]) -> tuple[dict[int, Fields], dict[int, Fields]]:
    """The fields of each message by its number, for input and output; they leave `attributes`."""
    for prefix in _PREFIXES:
        if prefix in attributes:
            _flatten(attributes, prefix)
    groups: tuple[dict[int, Fields], dict[int, Fields]] = ({}, {})
    for key in [key for key in attributes if key.startswith(_PREFIXES)]:
        path = _path(key)
        if path is not None:
            side, number, field = path
            groups[side].setdefault(number, {})[field] = attributes.pop(key)
    return groups


@lru_cache(maxsize=65_536)
def _path(key: str) -> tuple[int, int, str] | None:
    parts = key.split(".", 3)
    if len(parts) < 4 or not (parts[2].isascii() and parts[2].isdigit() and len(parts[2]) < 7):
        return None
    return (0 if parts[1] == "input_messages" else 1), int(parts[2]), parts[3].removeprefix("message.")


def _flatten(attributes: dict[str, Json], prefix: str) -> None:
    """Messages that stand as a list (Phoenix, MLflow) written as the flattened attributes they came from."""
    value = attributes[prefix]
    content = inner_json(value) if isinstance(value, str) else value
    if not isinstance(content, list) or not content or not all(isinstance(item, dict) for item in content):
        return
    del attributes[prefix]
    stack: list[tuple[str, Json]] = [(f"{prefix}.{number}", item) for number, item in enumerate(content)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, dict) and node:
            stack.extend((f"{path}.{key}", item) for key, item in node.items())
        elif isinstance(node, list) and node and all(isinstance(item, dict) for item in node):
            stack.extend((f"{path}.{number}", item) for number, item in enumerate(node))
        elif node is not None:
            attributes[path] = node


def _message(fields: Fields, draft: SpanDraft, side: int, number: int, context: Context) -> Message:
    """One message from its fields; those no message has go back into `attributes`."""
    role, content = fields.pop("role", None), fields.pop("content", None)
    if not fields and (role is None or isinstance(role, str)) and (content is None or isinstance(content, str)):
        return context.plain(role, content)
    calls = _tool_calls(fields)
    parts = _parts(fields)
    reasoning: str | None = None
    if content is None and parts is not None:
        content, reasoning, rest = read_content(cast("Json", parts))
        if rest is not None:
            fields["contents"] = rest
    elif parts is not None and text_of_parts(cast("Json", parts)) != content:
        fields["contents"] = cast("Json", parts)
    texts = {key: _pop_text(fields, key) for key in ("name", "tool_call_id")}
    for key, value in fields.items():
        draft.attributes[f"{_PREFIXES[side]}.{number}.message.{key}"] = value
    said_role = role if role is None or isinstance(role, str) else json_text(role)
    return Message(said_role, content_text(content), calls, texts["name"], texts["tool_call_id"], reasoning)


def _pop_text(fields: Fields, key: str) -> str | None:
    return cast("str", fields.pop(key)) if isinstance(fields.get(key), str) else None


def _tool_calls(fields: Fields) -> tuple[ToolCall, ...]:
    by_number: dict[int, dict[str, Json]] = {}
    for key in [key for key in fields if key.startswith("tool_calls.")]:
        _, number, name = [*key.split(".", 2), "", ""][:3]
        name = name.removeprefix("tool_call.")
        if number.isascii() and number.isdigit() and name in ("id", "function.name", "function.arguments"):
            by_number.setdefault(int(number), {})[name] = fields.pop(key)
    old_name = _pop_text(fields, "function_call_name")
    old_arguments = fields.pop("function_call_arguments_json", None) if old_name is not None else None
    calls = [
        ToolCall(
            _name(call.get("function.name")), arguments_text(call.get("function.arguments")), _name(call.get("id"))
        )
        for _, call in sorted(by_number.items())
    ]
    if old_name is not None:
        calls.append(ToolCall(old_name, arguments_text(old_arguments)))
    return tuple(calls)


def _documents(draft: SpanDraft) -> None:
    """`retrieval.documents.<i>.document.*` together as JSON: what a retriever or reranker documents."""
    put(draft, "input", "reranker.query")
    for prefix, column in (("reranker.input_documents.", "input"), *((base, "output") for base in _FOUND)):
        documents: dict[int, dict[str, Json]] = {}
        for key in [key for key in draft.attributes if key.startswith(prefix)]:
            number, _, name = key.removeprefix(prefix).partition(".")
            if number.isascii() and number.isdigit() and len(number) < 7 and name.startswith("document."):
                value = draft.attributes[key]
                content = inner_json(value) if isinstance(value, str) and name == "document.metadata" else None
                documents.setdefault(int(number), {})[name.removeprefix("document.")] = (
                    value if content is None else content
                )
        if documents and getattr(draft, column) is None:
            setattr(draft, column, json_text([document for _, document in sorted(documents.items())]))
            for key in [key for key in draft.attributes if key.startswith(prefix)]:
                del draft.attributes[key]


_FOUND = ("retrieval.documents.", "reranker.output_documents.")


def _name(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)


def _parts(fields: Fields) -> list[dict[str, Json]] | None:
    """`contents.<j>.message_content.*` as a list of parts with the names of their kind."""
    parts: dict[int, dict[str, Json]] = {}
    for key in [key for key in fields if key.startswith("contents.")]:
        _, number, name = [*key.split(".", 2), "", ""][:3]
        if number.isascii() and number.isdigit() and name.startswith("message_content."):
            parts.setdefault(int(number), {})[name.removeprefix("message_content.")] = fields.pop(key)
    return [part for _, part in sorted(parts.items())] or None


def _tokens(draft: SpanDraft) -> None:
    put_count(draft, "prompt_tokens", "llm.token_count.prompt")
    put_count(draft, "completion_tokens", "llm.token_count.completion")
    put_count(draft, "total_tokens", "llm.token_count.total")
    put_count(
        draft,
        "reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "llm.token_count.reasoning",
    )
    forget_zero_tokens(draft)


def _tool(draft: SpanDraft) -> None:
    attributes = draft.attributes
    put(draft, "tool_name", "tool.name")
    put(draft, "tool_name", "tool_call.function.name")
    put(draft, "tool_call_id", "tool_call.id")
    put(draft, "tool_call_id", "tool.id")
    put(draft, "tool_arguments", "tool_call.function.arguments")
    value = attributes.get("input.value")
    if draft.tool_arguments is None and value is not None:
        draft.tool_arguments = value if isinstance(value, str) else json_text(value)
        del attributes["input.value"]


def _input(draft: SpanDraft, flat: dict[int, Message]) -> None:
    """`input.value` beside the flattened messages: kept once where both say the same, twice where they differ."""
    value = draft.attributes.get("input.value")
    if value is None or draft.input is not None:
        return
    del draft.attributes["input.value"]
    text = value if isinstance(value, str) else json_text(value)
    if flat and isinstance(value, str):
        # What equals our cleaned messages needs no cleaning: this spares most calls a search through their text.
        items, others = _split_messages(inner_json_as_is(value))
        if items is not None and _plainly_same(flat, items):
            draft.input = json_text(others) if others else None
            return
    opened = inner_json(value) if isinstance(value, str) else value
    items, others = _split_messages(opened) if flat or draft.kind == "LLM" else (None, {})
    tails = chat_message_tails(flat, items) if flat and items else None
    if tails is not None:
        draft.input = json_text(others) if others else None
        if any(tails):
            draft.attributes["input.value"] = {"messages": [*tails]}
        return
    messages = read_messages(items)
    if messages is None:
        draft.input = text
        return
    if flat and not _same(flat, messages) and not _same_after_instructions(flat, messages):
        draft.input = text
        draft.warnings.append("messages_differ: input.value and llm.input_messages disagree; both are kept")
        return
    if not flat:
        flat.update(enumerate(item.message for item in messages))
    draft.input = json_text(others) if others else None
    rest = rest_of(messages)
    if rest is not None:
        draft.attributes["input.value"] = {"messages": rest}


def _split_messages(content: Json) -> tuple[list[Json] | None, dict[str, Json]]:
    """The `messages` that an input's JSON holds, and its other keys; None where it holds no list of them."""
    if isinstance(content, list):
        return content, {}
    if not isinstance(content, dict):
        return None, {}
    messages = content.get("messages")
    if not isinstance(messages, list):
        return None, {}
    return messages, {key: item for key, item in content.items() if key != "messages"}


def _plainly_same(flat: dict[int, Message], written: list[Json]) -> bool:
    """A quick yes for the common case: a role and one text each, equal throughout, and nothing beside them."""
    if len(flat) != len(written):
        return False
    for number, value in enumerate(written):
        message = flat.get(number)
        if message is None or not isinstance(value, dict) or len(value) != 2 or value.get("role") != message.role:
            return False
        content = value.get("content")
        if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
            part = content[0]
            content = part.get("text") if len(part) == 2 and part.get("type") == "text" else content
        if content != message.content or message.role is None:
            return False
    return True


def _same(flat: dict[int, Message], written: list[ParsedMessage]) -> bool:
    """Whether both hold the same messages; what the flattened form lacks (tool arguments) is filled in."""
    if len(flat) > len(written):
        return False
    agreed = {}
    for number, message in enumerate(written):
        flat_message = flat.get(number)
        both = message.message if flat_message is None else merged(flat_message, message.message)
        if both is None:
            return False
        agreed[number] = both
    if any(number not in agreed for number in flat):
        return False
    flat.clear()
    flat.update(agreed)
    return True


def _same_after_instructions(flat: dict[int, Message], written: list[ParsedMessage]) -> bool:
    """As `_same` where the instructions stand first in the flattened form alone, as for the Responses API."""
    if 0 not in flat or flat[0].role not in ("system", "developer") or len(flat) != len(written) + 1:
        return False
    rest = {number - 1: message for number, message in flat.items() if number}
    if not _same(rest, written):
        return False
    flat.update({number + 1: message for number, message in rest.items()})
    return True


def _output(draft: SpanDraft, messages: dict[int, Message]) -> None:
    """`output.value` beside the flattened output messages, as `_input` does."""
    value = draft.attributes["output.value"]
    if value is None or draft.output is not None:
        return
    del draft.attributes["output.value"]
    text = value if isinstance(value, str) else json_text(value)
    if len(messages) == 1 and 0 in messages and text == messages[0].content and not messages[0].tool_calls:
        return
    content = inner_json(value) if isinstance(value, str) else value
    if _response(draft, messages, content):
        return
    written = read_message(content) if isinstance(content, dict) and (messages or draft.kind == "LLM") else None
    if written is None:
        draft.output = text
        return
    both = merged(messages[0], written.message) if 0 in messages else written.message
    if both is None or len(messages) > 1:
        draft.output = text
        draft.warnings.append("messages_differ: output.value and llm.output_messages disagree; both are kept")
        return
    messages[0] = both
    if written.rest is not None:
        draft.attributes["output.value"] = written.rest


def _response(draft: SpanDraft, messages: dict[int, Message], content: Json) -> bool:
    """An answer of the Responses API: its items are the messages, its other fields stay beside."""
    read = read_response(content)
    if read is None:
        return False
    written, others = read
    if messages and not _same(messages, written):
        return False
    messages.update(enumerate(item.message for item in written))
    rest = rest_of(written)
    draft.attributes["output.value"] = others if rest is None else {**others, "output": rest}
    return True


def _place_inputs(draft: SpanDraft, messages: dict[int, Message], context: Context, *, had_input: bool) -> None:
    if not messages or draft.input_messages:
        return
    if max(messages) >= _MOST_MESSAGES:
        draft.warnings.append(
            f"message_numbers: the messages are numbered up to {max(messages)}, "
            f"but the call holds {counted(len(messages), 'message')}; shown in order"
        )
    elif set(messages) != set(range(len(messages))) or next(iter(messages.values())).role is None:
        context.gaps.append(Gap(draft=draft, said=messages))
        return
    draft.input_messages = [context.add(message) for message in messages.values()]
    if draft.kind == "LLM" and not had_input and context.attribute_count >= _NEAR_LIMIT:
        draft.warnings.append(
            f"evicted_attributes: {context.attribute_count} attributes, near OpenTelemetry's limit of 128, and no "
            "input.value: the tracer dropped some; the messages may be incomplete"
        )
