"""AWS's distribution of OpenTelemetry (AgentCore): messages in a log record beside the span, as `input` and `output`.

Body: `{"input": {"messages": [{"role", "content"}]}, "output": {...}}`; a content is text, or an object that holds the
text or the JSON of the blocks under `content`, `message` or `tool.result`.
"""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, SpanLog
from tracejury.ingest.conventions.message_json import ParsedMessage, content_text, read_message
from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import Json, Message, SpanDraft

NAME = "agentcore"

_WRAPPED = ("content", "message", "tool.result")


def apply(draft: SpanDraft, context: Context) -> None:
    """Make messages of the log records that hold them; what is no message stays in the record."""
    for log in context.logs.get(draft.span_id, []):
        body = log.body
        if isinstance(body, dict) and not {"input", "output"}.isdisjoint(body):
            log.body = {side: _taken(draft, side, body, context) for side in body} or None
            _close(log)


def _taken(draft: SpanDraft, side: str, body: dict[str, Json], context: Context) -> Json:
    """Fill an empty column with the messages of a side; gives back what is left of it."""
    content, column = body[side], f"{side}_messages"
    messages = content.get("messages") if isinstance(content, dict) else None
    if side not in ("input", "output") or not isinstance(messages, list) or getattr(draft, column):
        return content
    parsed = [_message(item) for item in messages]
    if any(one is None for one in parsed):
        return content
    setattr(draft, column, [context.add(one.message) for one in parsed if one is not None])
    rest: list[Json] = [one.rest for one in parsed if one is not None and one.rest is not None]
    return rest or None


def _message(item: Json) -> ParsedMessage | None:
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        return None
    content, beside = item.get("content"), {key: one for key, one in item.items() if key not in ("role", "content")}
    if isinstance(content, dict):
        key = next((key for key in _WRAPPED if key in content), None)
        if key is None:
            return None
        beside.update({name: one for name, one in content.items() if name != key})
        content = content[key]
    blocks = inner_json(content) if isinstance(content, str) else content
    turn = read_message({"role": item["role"], "content": content if blocks is None else blocks})
    if turn is None:
        turn = ParsedMessage(Message(str(item["role"]), content_text(content)), None)
    left: Json = {**beside, **({"content": turn.rest} if turn.rest is not None else {})} or None
    return ParsedMessage(turn.message, left)


def _close(log: SpanLog) -> None:
    """A body of which nothing is left is none."""
    if isinstance(log.body, dict) and all(item is None for item in log.body.values()):
        log.body = None
