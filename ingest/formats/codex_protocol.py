"""The events that `codex exec --json` printed before September 2025, as those that it prints now.

`{"id", "msg": {"type": "agent_message", ...}}` a line (openai/codex, `codex-rs/protocol/src/protocol.rs`), after a line
of settings and one of the prompt; its MCP server notifies of the same as `codex/event`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracejury.ingest.conventions.parts import joined
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.trace import Json

Record = dict[str, Json]

_WORDS = {"agent_message": "message", "agent_reasoning": "text"}
_LEFT_OUT = frozenset({
    "agent_message_delta", "agent_reasoning_delta", "agent_reasoning_section_break", "exec_command_output_delta",
    "turn_diff", "task_started", "session_configured",
})  # fmt: skip
"""Events that say again, or piece by piece, what another says."""


def is_protocol(record: Json) -> bool:
    """Whether this is an event of that time."""
    return isinstance(record, dict) and isinstance(message := _message(record), dict) and "type" in message


def modern(records: Sequence[Record], name: str) -> list[Record]:
    """The events of a thread as they are printed now, first its start with what was asked; its id, else `name`."""
    messages = [message for one in records if isinstance(message := _message(one), dict)]
    begun = next((one for one in messages if one.get("type") == "session_configured"), {})
    settings = {key: item for one in records if _message(one) is None for key, item in one.items()}
    own = as_text(begun.get("session_id")) or name
    first: Record = {"type": "thread.started", "thread_id": own, "prompt": settings.pop("prompt", None)}
    model = begun.get("model", settings.get("model"))
    begun_calls = {str(one.get("call_id")): one for one in messages if str(one.get("type")).endswith("_begin")}
    whole = [{**begun_calls.get(str(one.get("call_id")), {}), **one} for one in messages]
    events = [event for message in whole for event in _events(message)]
    usage = next((counts for one in reversed(messages) if (counts := _usage(one)) is not None), None)
    end: list[Record] = [{"type": "turn.completed", "usage": usage}] if usage is not None else []
    return [{**first, "model": model}, *events, *end]


def _message(record: Record) -> Json:
    """What an event tells; within a notification of the MCP server too."""
    params = record.get("params")
    body = params if isinstance(params, dict) and record.get("method") == "codex/event" else record
    return body.get("msg")


def _usage(message: Record) -> Json:
    """The tokens of the whole thread so far."""
    if message.get("type") != "token_count":
        return None
    info = message.get("info")
    return info.get("total_token_usage") if isinstance(info, dict) else message if "input_tokens" in message else None


def _events(message: Record) -> Iterator[Record]:
    kind, own = str(message["type"]), message.get("call_id")
    if kind in _WORDS:
        item: Record = {"type": kind.replace("agent_reasoning", "reasoning"), "text": message.get(_WORDS[kind])}
        yield {"type": "item.completed", "item": item}
    elif (item_type := _ITEMS.get(kind.rpartition("_")[0])) is not None and kind.endswith(("_begin", "_end")):
        is_end = kind.endswith("_end")
        item = {**message, "id": own, "type": item_type, **_call(message, item_type, is_end=is_end)}
        yield {"type": "item.completed" if is_end else "item.started", "item": item}
    elif kind == "error":
        yield {"type": "error", "message": message.get("message")}
    elif kind not in _LEFT_OUT and kind not in ("token_count", "task_complete"):
        yield message


_ITEMS = {
    "exec_command": "command_execution", "mcp_tool_call": "mcp_tool_call", "patch_apply": "file_change",
    "web_search": "web_search",
}  # fmt: skip


def _call(message: Record, kind: str, *, is_end: bool) -> Record:
    """The fields of a call by today's names."""
    if kind == "mcp_tool_call":
        invocation, result = message.get("invocation"), message.get("result")
        ended = result if isinstance(result, dict) else {}
        called = invocation if isinstance(invocation, dict) else {}
        return {**called, "result": ended.get("Ok"), "error": ended.get("Err")}
    outputs = [as_text(message.get(name)) or None for name in ("stdout", "stderr")]
    printed = as_text(message.get("aggregated_output")) or joined(outputs)
    if kind == "file_change":
        return {"status": printed or ("completed" if message.get("success") is not False else "failed")}
    return {"aggregated_output": printed if is_end else None}
