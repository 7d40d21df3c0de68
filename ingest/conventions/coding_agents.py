"""Coding agents' own telemetry: Claude Code (spans of its beta, span events, log events), Codex and Gemini CLI.

Names: Claude Code's page "Monitoring" (`claude_code.*`; the texts are there where OTEL_LOG_USER_PROMPTS,
OTEL_LOG_TOOL_CONTENT and the detailed beta are switched on), Codex's `codex-rs/otel` (`codex.*`), Gemini CLI's
`telemetry/constants.ts` (`gemini_cli.*`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tracejury.ingest.conventions.context import Context, SpanLog, put, put_count
from tracejury.ingest.conventions.conversation import read_conversation
from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, Message, SpanDraft, SpanKind, ToolCall

NAME = "coding_agents"

_CLAUDE = "claude_code."
_FAMILIES = (_CLAUDE, "codex.", "gemini_cli.")
_SPANS: dict[str, SpanKind] = {
    "interaction": "AGENT", "llm_request": "LLM", "tool": "TOOL", "tool.execution": "CHAIN",
    "tool.blocked_on_user": "CHAIN", "hook": "CHAIN",
}  # fmt: skip
_EVENTS = frozenset({
    "user_prompt", "assistant_response", "tool_result", "tool_call", "api_request_body", "api_response_body",
    "api_response", "api_request", "sse_event",
})  # fmt: skip
_HIDDEN = frozenset({"<REDACTED>", "[REDACTED]", "REDACTED"})
_SEPARATOR = "\n\n---\n\n"
_SAID = ("prompt", "response", "response_text", "content", "text", "body")
_NAMES = ("tool_name", "function_name", "tool")
_IDS = ("tool_use_id", "call_id", "gen_ai.tool.call.id", "tool_call_id")
_ARGUMENTS = ("arguments", "tool_input", "tool_parameters", "function_args", "parameters")
_RESULTS = ("output", "result", "tool_result", "content", "error", "error.message", "error_message")
_TOOL_FIELDS = ("full_command", "bash_command", "file_path", "skill_name", "subagent_type", "command", "pattern")
_COUNTS = (
    ("prompt_tokens", "input_token_count"), ("completion_tokens", "output_token_count"),
    ("reasoning_tokens", "reasoning_token_count"), ("total_tokens", "total_token_count"),
)  # fmt: skip


class _Event(NamedTuple):
    """One event of a span, or log record beside it: its bare name, and its fields, from which what is told leaves."""

    name: str
    fields: dict[str, Json]
    log: SpanLog | None


def apply(draft: SpanDraft, context: Context) -> None:
    """Move what coding agents write into columns."""
    logs = context.logs.get(draft.span_id, [])
    events = list(_events(draft, logs)) if logs or draft.events else []
    is_claude = draft.name.startswith(_CLAUDE) or (str(draft.attributes.get("span.type")) in _SPANS)
    if not is_claude and not events:
        return
    if is_claude:
        _claude_span(draft, context)
    for event in events:
        _take(draft, event, context)
    if is_claude and draft.kind == "TOOL":
        _fields_as_arguments(draft)


def _events(draft: SpanDraft, logs: list[SpanLog]) -> Iterator[_Event]:
    for event in draft.events:
        fields = event.get("attributes")
        name = event.get("name")
        if isinstance(fields, dict):
            named = fields.get("event.name", name)
            bare = _bare(named if isinstance(named, str) else "")
            if bare is not None:
                yield _Event(bare, fields, None)
            elif name == "tool.output":
                yield _Event("tool_result", fields, None)
    for log in logs:
        bare = _bare(log.event_name or (log.body if isinstance(log.body, str) else ""))
        if bare is not None:
            yield _Event(bare, log.attributes, log)


def _bare(name: str) -> str | None:
    """The name of a known event without its family; Claude Code's log events stand without it too."""
    for family in _FAMILIES:
        if name.startswith(family):
            name = name.removeprefix(family)
            break
    return name if name in _EVENTS else None


def _claude_span(draft: SpanDraft, context: Context) -> None:
    attributes = draft.attributes
    kind = attributes.get("span.type", draft.name.removeprefix(_CLAUDE))
    if draft.kind == "UNKNOWN" and isinstance(kind, str):
        draft.kind = _SPANS.get(kind, "UNKNOWN")
    if draft.kind == "LLM":
        _claude_call(draft, context)
    elif draft.kind == "TOOL":
        put(draft, "tool_name", "tool_name")
        put(draft, "tool_call_id", "tool_use_id")
        for key, column in (("tool_input", "tool_arguments"), ("new_context", "output")):
            text = _headed(attributes.get(key))
            if text is not None and getattr(draft, column) is None:
                setattr(draft, column, text[1])
                del attributes[key]
    elif draft.kind == "AGENT":
        _say(draft, "input_messages", "user", attributes, ("user_prompt",), context)
    if attributes.get("success") is False and draft.status == "UNSET":
        draft.status = "ERROR"
        put(draft, "status_message", "error")


def _claude_call(draft: SpanDraft, context: Context) -> None:
    put(draft, "model", "model")
    put_count(draft, "prompt_tokens", "input_tokens")
    put_count(draft, "completion_tokens", "output_tokens")
    attributes = draft.attributes
    for key, role in (("user_system_prompt", "system"), ("system_prompt_preview", "system")):
        _say(draft, "input_messages", role, attributes, (key,), context)
    value = attributes.get("new_context")
    if isinstance(value, str) and value:
        content = inner_json(value)
        conversation = read_conversation(content, "user") if content is not None else None
        messages = list(_context_messages(value))
        if conversation is not None:
            messages = [item.message for item in conversation.messages]
        draft.input_messages = [*draft.input_messages, *(context.add(message) for message in messages)]
        del attributes["new_context"]
    _say(draft, "input_messages", "system", attributes, ("system_reminders",), context)
    _say(draft, "output_messages", "assistant", attributes, ("response.model_output",), context)


def _context_messages(text: str) -> Iterator[Message]:
    """`[USER]` and `[TOOL RESULT: id]` head each message of what is new to the model."""
    for piece in text.split(_SEPARATOR):
        headed = _headed(piece)
        head, words = headed if headed is not None else ("", piece)
        if head.startswith("TOOL RESULT"):
            yield Message("tool", words, (), None, head.partition(":")[2].strip() or None)
        else:
            yield Message("user", words)


def _headed(value: Json) -> tuple[str, str] | None:
    """`[HEAD]` on a line of its own, and the words under it; the whole where there is no such line."""
    if not isinstance(value, str) or not value:
        return None
    first, newline, words = value.partition("\n")
    if newline and first.startswith("[") and first.endswith("]") and first[1:5].isupper():
        return first[1:-1], words
    return "", value


def _take(draft: SpanDraft, event: _Event, context: Context) -> None:
    if event.name == "user_prompt":
        if draft.kind == "UNKNOWN":
            draft.kind = "AGENT"
        _say(draft, "input_messages", "user", event.fields, _SAID, context)
    elif event.name == "assistant_response":
        _say(draft, "output_messages", "assistant", event.fields, _SAID, context)
    elif event.name in ("tool_result", "tool_call"):
        _tool_result(draft, event, context)
    elif event.name in ("api_request_body", "api_request"):
        _body(draft, event, "input_messages", "user", ("body", "request_text"), context)
    elif event.name in ("api_response_body", "api_response"):
        _body(draft, event, "output_messages", "assistant", ("body", "response_text"), context)
        _counts(draft, event.fields)
    elif event.fields.get("event.kind") == "response.completed":
        _counts(draft, event.fields)


def _say(
    draft: SpanDraft, column: str, role: str, fields: dict[str, Json], keys: tuple[str, ...], context: Context
) -> None:
    """One more message at the end of a column, from the first key that holds its words."""
    key = next((key for key in keys if isinstance(fields.get(key), str) and fields[key]), None)
    if key is None or fields[key] in _HIDDEN:
        return
    position = context.add(Message(role, str(fields.pop(key))))
    if position not in getattr(draft, column):
        setattr(draft, column, [*getattr(draft, column), position])


def _body(draft: SpanDraft, event: _Event, column: str, role: str, keys: tuple[str, ...], context: Context) -> None:
    """A whole request or answer of the provider, as JSON text."""
    key = next((key for key in keys if isinstance(event.fields.get(key), str) and event.fields[key]), None)
    if key is None or getattr(draft, column):
        return
    conversation = read_conversation(inner_json(str(event.fields[key])) or event.fields[key], role)
    if conversation is not None:
        setattr(draft, column, [context.add(item.message) for item in conversation.messages])
        others: Json = {name: item for name, item in conversation.others.items() if name not in ("tools",)}
        event.fields[key] = others


def _tool_result(draft: SpanDraft, event: _Event, context: Context) -> None:
    """A call of a tool with its result: columns of the tool's own span, else a call and its answer among messages."""
    fields = event.fields
    name, call_id = _popped(fields, _NAMES), _popped(fields, _IDS)
    arguments, result = _popped(fields, _ARGUMENTS), _popped(fields, _RESULTS)
    if draft.kind == "TOOL":
        columns = (("tool_name", name), ("tool_call_id", call_id), ("tool_arguments", arguments), ("output", result))
        for column, value in columns:
            if value is not None and getattr(draft, column) is None:
                setattr(draft, column, value)
        return
    messages = []
    if arguments is not None:
        messages.append(Message("assistant", None, (ToolCall(name, arguments, call_id),)))
    if result is not None:
        messages.append(Message("tool", result, (), name, call_id))
    draft.output_messages = [*draft.output_messages, *(context.add(message) for message in messages)]


def _popped(fields: dict[str, Json], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = fields.get(key)
        if value not in (None, ""):
            del fields[key]
            return value if isinstance(value, str) else json_text(value)
    return None


def _counts(draft: SpanDraft, fields: dict[str, Json]) -> None:
    for column, key in _COUNTS:
        value = fields.get(key)
        count = int(value) if isinstance(value, str) and value.isdigit() else value
        if isinstance(count, int) and not isinstance(count, bool) and getattr(draft, column) is None:
            setattr(draft, column, count)


def _fields_as_arguments(draft: SpanDraft) -> None:
    """What Claude Code tells of a call without its whole input: the command, the file."""
    named = {key: draft.attributes[key] for key in _TOOL_FIELDS if draft.attributes.get(key)}
    if named and draft.tool_arguments is None:
        draft.tool_arguments = json_text(named)
        for key in named:
            del draft.attributes[key]
