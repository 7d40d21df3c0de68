"""smolagents through OpenInference: messages written as Python reprs, agents known by the task they are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tracejury.ingest.conventions.context import Context
from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import Json, Message, SpanDraft

NAME = "smolagents"

_NAMED = re.compile(r"You're a helpful agent named '([^'\n]{1,80})'")
_NOTHING_ELSE = "tool_calls=None, raw=None, token_usage=None)"
_STEP = re.compile(r"Step (\d{1,6})")


def apply(draft: SpanDraft, context: Context) -> None:
    """Name the agent of an AGENT span and number the step of a CHAIN span."""
    if draft.kind not in ("AGENT", "CHAIN") or not _is_ours(draft, context):
        return
    step = _STEP.fullmatch(draft.name)
    if draft.kind == "CHAIN" and step is not None and draft.step is None:
        draft.step = int(step[1])
    if draft.kind == "AGENT" and draft.agent is None:
        draft.agent = agent_name(draft)


def agent_name(draft: SpanDraft) -> str:
    """The name that a manager gave its agent, else its class (`CodeAgent.run` is `CodeAgent`)."""
    content = inner_json(draft.input or "")
    task = content.get("task") if isinstance(content, dict) else None
    named = _NAMED.search(task) if isinstance(task, str) else None
    return named[1] if named is not None else draft.name.removesuffix(".run")


def chat_message_tails(messages: Mapping[int, Message], written: Sequence[Json]) -> list[str | None] | None:
    """What the reprs of `ChatMessage` hold after role and content, None where nothing; None when they differ.

    smolagents 1.2x writes `input.value` with a Python repr for each message. It is not parsed: the repr that our
    message would have is made and must be the beginning of what is written.
    """
    if len(messages) != len(written):
        return None
    tails: list[str | None] = []
    for number, text in enumerate(written):
        message = messages.get(number)
        if message is None or message.role is None or not isinstance(text, str):
            return None
        role = f"<MessageRole.{message.role.upper().replace('-', '_')}: {message.role!r}>"
        for content in (f"[{{'type': 'text', 'text': {message.content!r}}}]", repr(message.content)):
            start = f"ChatMessage(role={role}, content={content}, "
            if text.startswith(start):
                break
        else:
            return None
        tail = text[len(start) :]
        tails.append(None if tail == _NOTHING_ELSE else tail)
    return tails


def _is_ours(draft: SpanDraft, context: Context) -> bool:
    scope = draft.attributes.get("otel.scope")
    name = scope.get("name") if isinstance(scope, dict) else None
    return name == "openinference.instrumentation.smolagents" or "smolagents" in context.roots
