"""Pydantic AI: what its agent spans hold beside the GenAI conventions that it follows."""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, put
from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import SpanDraft

NAME = "pydantic_ai"


def apply(draft: SpanDraft, context: Context) -> None:
    """The agent's answer becomes the output of its span."""
    if draft.kind != "AGENT" or "final_result" not in draft.attributes:
        return
    put(draft, "agent", "agent_name")
    put(draft, "model", "model_name")
    value = draft.attributes["final_result"]
    if value is not None and draft.output is None:
        draft.output = value if isinstance(value, str) else json_text(value)
        del draft.attributes["final_result"]
