"""Langfuse's SDK, which since version 3 writes OpenTelemetry spans: `langfuse.observation.*`.

Names: `langfuse._client.attributes.LangfuseOtelSpanAttributes`. The export of its server is a format of its own.
"""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, put, put_usage
from tracejury.ingest.conventions.langsmith import take_side
from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import SpanDraft, SpanKind

NAME = "langfuse"

_BASE = "langfuse.observation."
_KINDS: dict[str, SpanKind] = {
    "generation": "LLM", "span": "CHAIN", "event": "EVENT", "agent": "AGENT", "tool": "TOOL", "chain": "CHAIN",
    "retriever": "RETRIEVER", "evaluator": "EVALUATOR", "embedding": "EMBEDDING", "guardrail": "GUARDRAIL",
}  # fmt: skip
_RUNS = ("pydantic_ai.all_messages", "all_messages_events")
"""What Pydantic AI tells of the work of an agent."""
_TOOL_NAMES = ("ai.toolCall.name", "gen_ai.tool.name")
"""What another tracer told of a span that Langfuse keeps as one of no particular kind."""


def _told_kind(draft: SpanDraft) -> SpanKind | None:
    if any(key in draft.attributes for key in _TOOL_NAMES):
        return "TOOL"
    if not draft.attributes.keys().isdisjoint(_RUNS):
        return "AGENT"
    if draft.attributes.get("ag2.span.type") == "agent":
        put(draft, "agent", "ag2.agent.name")
        return "AGENT"
    return None


def apply(draft: SpanDraft, context: Context) -> None:
    """Move Langfuse's attributes into columns."""
    if "langfuse" not in context.roots:
        return
    kind = draft.attributes.get(f"{_BASE}type")
    if isinstance(kind, str) and draft.kind == "UNKNOWN":
        draft.kind = (_told_kind(draft) if kind.lower() == "span" else None) or _KINDS.get(kind.lower(), "UNKNOWN")
    put(draft, "model", f"{_BASE}model.name")
    put(draft, "status_message", f"{_BASE}status_message")
    value = draft.attributes.get(f"{_BASE}usage_details")
    put_usage(draft, inner_json(value) if isinstance(value, str) else value, f"{_BASE}usage_details.")
    for side in ("input", "output"):
        if f"{_BASE}{side}" in draft.attributes:
            take_side(draft, f"{_BASE}{side}", side, context)
