"""OpenTelemetry GenAI: `gen_ai.*` attributes, span events and log records that carry message text.

Names and meanings: opentelemetry-semantic-conventions, "Generative AI"; the older spellings (events, `gen_ai.prompt`,
`prompt_tokens`) are read too.
"""

from __future__ import annotations

from typing import cast

from tracejury.ingest.conventions.context import Context, SpanLog, forget_zero_tokens, put, put_count
from tracejury.ingest.conventions.message_json import content_text, read_message, read_messages, rest_of
from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, Message, SpanDraft, SpanKind

NAME = "genai"

_OPERATIONS: dict[str, SpanKind] = {
    "chat": "LLM", "text_completion": "LLM", "generate_content": "LLM", "completion": "LLM", "responses": "LLM",
    "embeddings": "EMBEDDING", "embedding": "EMBEDDING", "retrieval": "RETRIEVER", "rerank": "RERANKER",
    "execute_tool": "TOOL", "invoke_agent": "AGENT", "create_agent": "AGENT", "invoke_workflow": "CHAIN",
    "execute_task": "CHAIN", "execute_event_loop_cycle": "CHAIN", "chain": "CHAIN",
}  # fmt: skip
_ROLES = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}  # fmt: skip
_CHOICES = ("gen_ai.choice", "gen_ai.content.completion")
_EVENTS = frozenset({*_ROLES, *_CHOICES, "gen_ai.content.prompt"})
_TEXT_AGAIN = ("gen_ai.prompt", "message.content")
"""Attributes in which litellm repeats the text of a log record's body."""
_DETAILS = "gen_ai.client.inference.operation.details"
_SIDES = (("gen_ai.input.messages", "input_messages"), ("gen_ai.output.messages", "output_messages"))


def apply(draft: SpanDraft, context: Context) -> None:
    """Move GenAI's attributes, the message events of the span and its log records into columns."""
    logs = context.logs.get(draft.span_id, [])
    if not logs and not draft.events and "gen_ai" not in context.roots:
        return
    _kind(draft)
    _model(draft)
    _tokens(draft)
    put(draft, "agent", "gen_ai.agent.name")
    if draft.kind == "TOOL":
        _tool(draft)
    _attribute_messages(draft, context)
    context.note_filled(draft)
    _event_messages(draft, context)
    _log_messages(draft, logs, context)


def _kind(draft: SpanDraft) -> None:
    operation = draft.attributes.get("gen_ai.operation.name")
    if isinstance(operation, str) and draft.kind == "UNKNOWN":
        draft.kind = _OPERATIONS.get(operation.lower(), "UNKNOWN")


def _model(draft: SpanDraft) -> None:
    put(draft, "model", "gen_ai.response.model")
    put(draft, "model", "gen_ai.request.model")


def _tokens(draft: SpanDraft) -> None:
    put_count(draft, "prompt_tokens", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
    put_count(draft, "completion_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
    put_count(draft, "total_tokens", "gen_ai.usage.total_tokens", "llm.usage.total_tokens")
    put_count(
        draft,
        "reasoning_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.details.reasoning_tokens",
    )
    forget_zero_tokens(draft)


def _tool(draft: SpanDraft) -> None:
    put(draft, "tool_name", "gen_ai.tool.name")
    put(draft, "tool_call_id", "gen_ai.tool.call.id")
    for key, column in (("gen_ai.tool.call.arguments", "tool_arguments"), ("gen_ai.tool.call.result", "output")):
        value = draft.attributes.get(key)
        if value is not None and getattr(draft, column) is None:
            setattr(draft, column, value if isinstance(value, str) else json_text(value))
            del draft.attributes[key]


def _attribute_messages(draft: SpanDraft, context: Context) -> None:
    """`gen_ai.input.messages` and the like, as JSON text or as values; the system instructions come first."""
    system = _system(draft.attributes)
    for key, column in _SIDES:
        value = draft.attributes.get(key)
        held = inner_json(value) if isinstance(value, str) else value
        said = read_messages(held)
        if said is None or getattr(draft, column):
            continue
        before = [system] if system is not None and column == "input_messages" else []
        place(draft, column, [*before, *(item.message for item in said)], context)
        system = None if before else system
        rest = rest_of(said)
        if rest is None:
            del draft.attributes[key]
        else:
            draft.attributes[key] = rest
    if system is not None:
        draft.input_messages = [context.add(system), *draft.input_messages]


def _system(attributes: dict[str, Json]) -> Message | None:
    value = attributes.get("gen_ai.system_instructions")
    if value is None:
        return None
    del attributes["gen_ai.system_instructions"]
    held = inner_json(value) if isinstance(value, str) else value
    parts = held if isinstance(held, list) else [value]
    texts = [
        part["content"]
        for part in parts
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("content"), str)
    ]
    whole = len(texts) == len(parts)
    return Message("system", "\n".join(cast("list[str]", texts)) if whole else content_text(value))


def _event_messages(draft: SpanDraft, context: Context) -> None:
    """Span events that carry messages, in their order; an event keeps its name, time and what is no message."""
    kept: list[dict[str, Json]] = []
    for event in draft.events:
        name, attributes = event.get("name"), event.get("attributes")
        said = None
        if name == _DETAILS and isinstance(attributes, dict):
            held = dict(attributes)
            _from_details(draft, held, context)
            kept.append({**event, "attributes": held})
            continue
        if isinstance(name, str) and name in _EVENTS and isinstance(attributes, dict):
            said = _from_event(name, attributes)
        if said is None:
            kept.append(event)
            continue
        column, messages, rest = said
        if draft.kind == "TOOL" and not _of_tool(draft, column, messages):
            kept.append(event)
            continue
        for message in messages if draft.kind != "TOOL" else ():
            append(draft, column, message, context)
        kept.append({**event, "attributes": rest})
    draft.events = kept


def _from_event(name: str, attributes: dict[str, Json]) -> tuple[str, list[Message], dict[str, Json]] | None:
    if name.startswith("gen_ai.content."):
        key = "gen_ai.prompt" if name.endswith("prompt") else "gen_ai.completion"
        value = attributes.get(key)
        said = read_messages(inner_json(value) if isinstance(value, str) else value)
        if said is None or rest_of(said) is not None:
            return None
        column = "input_messages" if key == "gen_ai.prompt" else "output_messages"
        return column, [item.message for item in said], {k: v for k, v in attributes.items() if k != key}
    body = {key: _opened(value) for key, value in attributes.items() if not key.startswith("gen_ai.")}
    read = read_body(name, body)
    if read is None:
        return None
    column, message, rest = read
    others = {key: value for key, value in attributes.items() if key.startswith("gen_ai.")}
    return column, [message], {**others, **rest}


def _opened(value: Json) -> Json:
    held = inner_json(value) if isinstance(value, str) else None
    return value if held is None else held


def _log_messages(draft: SpanDraft, logs: list[SpanLog], context: Context) -> None:
    """Log records of the span, by time; one whose text became a message keeps only what is no message."""
    for log in logs:
        if log.event_name in _EVENTS and isinstance(log.body, dict):
            read = read_body(log.event_name, log.body)
            if read is not None:
                append(draft, read[0], read[1], context)
                log.body = read[2] or None
                for key in _TEXT_AGAIN:
                    if read[1].content is not None and log.attributes.get(key) == read[1].content:
                        del log.attributes[key]
        elif log.event_name == _DETAILS:
            _from_details(draft, log.body if isinstance(log.body, dict) and log.body else log.attributes, context)


def _from_details(draft: SpanDraft, source: dict[str, Json], context: Context) -> None:
    """The messages of an event of details, which some write as a log record and some as an event of the span."""
    system = _system(source)
    if system is not None:
        append(draft, "input_messages", system, context)
    for key, column in _SIDES:
        value = source.get(key)
        said = read_messages(inner_json(value) if isinstance(value, str) else value)
        if said is None or (draft.kind == "TOOL" and not _of_tool(draft, column, [item.message for item in said])):
            continue
        for item in said if draft.kind != "TOOL" else ():
            append(draft, column, item.message, context)
        rest = rest_of(said)
        if rest is None:
            del source[key]
        else:
            source[key] = rest


def _of_tool(draft: SpanDraft, side: str, said: list[Message]) -> bool:
    """What a tool was given and gave back, told as a message: columns of its span. False: it stays in the event."""
    column = "output" if side == "output_messages" else "tool_arguments"
    content = said[0].content if len(said) == 1 and not said[0].tool_calls else None
    if content is None:
        return False
    if getattr(draft, column) is None:
        setattr(draft, column, content)
    return bool(getattr(draft, column) == content)


def read_body(name: str, body: dict[str, Json]) -> tuple[str, Message, dict[str, Json]] | None:
    """The column, the message and the rest of a `gen_ai.*.message` or `gen_ai.choice` body; None when it is none."""
    outer: dict[str, Json] = {}
    column = "input_messages"
    value = dict(body)
    if name in _CHOICES:
        column = "output_messages"
        inner = value.pop("message", None)
        if isinstance(inner, dict):
            outer, value = value, dict(inner)
        elif isinstance(inner, (str, list)):
            outer, value = value, {"content": inner}
        elif inner is not None:
            return None
    value.setdefault("role", _ROLES.get(name, "assistant"))
    if name == "gen_ai.tool.message" and isinstance(value.get("id"), str):
        value.setdefault("tool_call_id", value.pop("id"))
    said = read_message(value)
    if said is None:
        return None
    rest = {**outer, **(said.rest if isinstance(said.rest, dict) else {})}
    return column, said.message, rest


def place(draft: SpanDraft, column: str, messages: list[Message], context: Context) -> None:
    """Put messages into an empty column."""
    setattr(draft, column, [context.add(message) for message in messages])


def append(draft: SpanDraft, column: str, message: Message, context: Context) -> None:
    """One more message at the end of a column; where attributes filled it, what an event repeats is not said twice."""
    says_nothing = message.role == "assistant" and not message.content and not message.tool_calls
    if says_nothing and getattr(draft, column):
        return  # litellm logs a reply that is a call alone without the call; a tool's empty answer is an answer
    position = context.add(message)
    if not context.is_filled(draft, column) or position not in getattr(draft, column):
        setattr(draft, column, [*getattr(draft, column), position])
