"""LangSmith's OpenTelemetry export: `langsmith.*`, with a run's inputs and outputs as JSON in `gen_ai.prompt`."""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, column_of
from tracejury.ingest.conventions.message_json import read_message, read_messages, rest_of
from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, SpanDraft, SpanKind

NAME = "langsmith"

_KINDS: dict[str, SpanKind] = {
    "llm": "LLM", "chain": "CHAIN", "tool": "TOOL", "retriever": "RETRIEVER", "embedding": "EMBEDDING",
    "prompt": "PROMPT", "parser": "CHAIN", "agent": "AGENT",
}  # fmt: skip


def apply(draft: SpanDraft, context: Context) -> None:
    """Move LangSmith's attributes into columns."""
    if not {"langsmith", "gen_ai"} & context.roots:
        return
    attributes = draft.attributes
    kind = attributes.get("langsmith.span.kind")
    if isinstance(kind, str) and draft.kind == "UNKNOWN":
        draft.kind = _KINDS.get(kind.lower(), "UNKNOWN")
    has_text = "gen_ai.prompt" in attributes or "gen_ai.completion" in attributes
    if draft.kind == "UNKNOWN" and kind is None and has_text and draft.model is not None:
        draft.kind = "LLM"  # as Quarkus traces a call: a model and two texts, no operation
    _agent(draft)
    if "gen_ai.prompt" in attributes:
        take_side(draft, "gen_ai.prompt", "input", context)
    if "gen_ai.completion" in attributes:
        take_side(draft, "gen_ai.completion", "output", context)


def _agent(draft: SpanDraft) -> None:
    """LangChain names the agent of each span in its metadata; the span of that name is the agent itself."""
    name = draft.attributes.get("langsmith.metadata.lc_agent_name")
    if not isinstance(name, str) or not name:
        return
    if draft.kind == "CHAIN" and draft.name == name:
        draft.kind = "AGENT"


def take_side(draft: SpanDraft, key: str, side: str, context: Context) -> None:
    """An attribute that holds all that went in (`side` input) or came out: messages of a model call, else text."""
    value = draft.attributes[key]
    column = column_of(draft, side)
    if value is None or getattr(draft, column) is not None:
        return
    content = inner_json(value) if isinstance(value, str) else value
    if (
        draft.kind == "LLM"
        and not getattr(draft, f"{side}_messages")
        and _as_messages(draft, key, content, side, context)
    ):
        return
    setattr(draft, column, value if isinstance(value, str) else json_text(value))
    del draft.attributes[key]


def _as_messages(draft: SpanDraft, key: str, content: Json, side: str, context: Context) -> bool:
    """Inputs `{"messages": [...]}` and outputs `{"generations" | "choices" | message}` become messages."""
    listed, others = _listed(content)
    turns = read_messages(listed)
    if turns is None:
        return False
    setattr(draft, f"{side}_messages", [context.add(item.message) for item in turns])
    if others:
        setattr(draft, side, json_text(others))
    rest = rest_of(turns)
    if rest is None:
        del draft.attributes[key]
    else:
        draft.attributes[key] = rest
    return True


def _listed(content: Json) -> tuple[Json, dict[str, Json]]:
    if isinstance(content, list):
        return content, {}
    if not isinstance(content, dict):
        return None, {}
    for name in ("messages", "message", "generations", "choices", "output"):
        value = content.get(name)
        others = {key: item for key, item in content.items() if key != name}
        if name in ("generations", "choices") and isinstance(value, list):
            inner = value[0] if len(value) == 1 and isinstance(value[0], list) else value
            messages = [item.get("message") if isinstance(item, dict) else None for item in inner]
            if messages and all(message is not None for message in messages):
                left: list[Json] = [_beside_message(item) for item in inner if isinstance(item, dict)]
                return messages, {**others, name: left} if any(left) else others
        elif isinstance(value, list):
            return value, others
        elif isinstance(value, dict) and read_message(value) is not None:
            return [value], others
    return ([content], {}) if read_message(content) is not None else (None, {})


def _beside_message(item: dict[str, Json]) -> dict[str, Json]:
    """What a generation holds beside its message; its `text` only where it says something else."""
    left = {key: value for key, value in item.items() if key != "message"}
    turn = read_message(item["message"])
    if turn is not None and left.get("text") == (turn.message.content or ""):
        del left["text"]
    return left
