"""Monocle: the kind of a span in `span.type`, its agent, tool and model in `entity.N.*`, its texts in two events.

Names: `monocle_apptrace/instrumentation/common/constants.py` and the metamodel of each framework.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracejury.ingest.conventions.context import Context, column_of, put_usage
from tracejury.ingest.conventions.message_json import content_text
from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, Message, SpanDraft, SpanKind

NAME = "monocle"

_KINDS: dict[str, SpanKind] = {
    "inference": "LLM", "inference.framework": "LLM", "inference.modelapi": "CHAIN", "retrieval": "RETRIEVER",
    "retrieval.embedding": "EMBEDDING", "embedding": "EMBEDDING", "workflow": "CHAIN", "generic": "CHAIN",
    "agentic.turn": "CHAIN", "agentic.request": "CHAIN", "agentic.invocation": "AGENT", "agentic.delegation": "CHAIN",
    "agentic.tool.invocation": "TOOL", "agentic.mcp.invocation": "TOOL", "http.process": "CHAIN", "http.send": "CHAIN",
}  # fmt: skip
_ENTITIES = {"agent.": "agent", "tool.": "tool_name", "model.llm": "model"}
"""Column of an entity's name by how its type begins."""
_ROLES = {"model": "assistant", "ai": "assistant", "human": "user"}
_SIDES = {"data.input": ("input", "query", "question"), "data.output": ("response", "output")}
"""By event, the attributes that hold its text."""


def apply(draft: SpanDraft, context: Context) -> None:
    """Move Monocle's attributes, and the texts of its events, into columns."""
    if "monocle_apptrace" not in context.roots:
        return
    kind = draft.attributes.get("span.type")
    if draft.kind == "UNKNOWN" and isinstance(kind, str):
        draft.kind = _KINDS.get(kind, "UNKNOWN")
    for begin, column in _ENTITIES.items():
        name = next(_entities(draft, begin), None)
        if name is not None and getattr(draft, column) is None and (column != "tool_name" or draft.kind == "TOOL"):
            setattr(draft, column, name)
    draft.events = [_told(draft, event, context) for event in draft.events]


def _entities(draft: SpanDraft, begin: str) -> Iterator[str]:
    """The names of entities whose type begins so."""
    for key, value in draft.attributes.items():
        if key.startswith("entity.") and key.endswith(".type") and str(value).startswith(begin):
            name = draft.attributes.get(f"{key.removesuffix('type')}name")
            yield from [name] if isinstance(name, str) else []


def _told(draft: SpanDraft, event: dict[str, Json], context: Context) -> dict[str, Json]:
    """The event without what of it became columns."""
    name, attributes = str(event.get("name")), event.get("attributes")
    if not isinstance(attributes, dict):
        return event
    if name == "metadata" and draft.kind == "LLM":
        put_usage(draft, attributes, "monocle.")
    key = next((key for key in _SIDES.get(name, ()) if attributes.get(key) is not None), None)
    if key is None or not _take(draft, name, attributes[key], context):
        return event
    return {**event, "attributes": {own: item for own, item in attributes.items() if own != key}}


def _take(draft: SpanDraft, event: str, value: Json, context: Context) -> bool:
    side = event.removeprefix("data.")
    if draft.kind == "LLM":
        role = "user" if side == "input" else "assistant"
        messages = [one for item in (value if isinstance(value, list) else [value]) for one in _messages(item, role)]
        if getattr(draft, f"{side}_messages") or not messages:
            return False
        setattr(draft, f"{side}_messages", [context.add(one) for one in messages])
        return True
    column = column_of(draft, side)
    if getattr(draft, column) is not None:
        return False
    setattr(draft, column, value if isinstance(value, str) else json_text(value))
    return True


def _messages(item: Json, role: str) -> Iterator[Message]:
    """The messages in `{"user": words}`, or in plain words; nulls, as Monocle writes calls of tools, say nothing."""
    value = inner_json(item) if isinstance(item, str) else item
    if not isinstance(value, dict):
        if item:
            yield Message(role, content_text(item))
        return
    for who, words in value.items():
        if words is not None:
            yield Message(_ROLES.get(who, who), content_text(words))
