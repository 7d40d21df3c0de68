"""LangGraph through OpenInference, LangSmith or OpenLLMetry: the step of a span from its `metadata`."""

from __future__ import annotations

from ingest.conventions.context import Context
from ingest.parse import inner_json
from ingest.trace import Json, SpanDraft

NAME = "langgraph"

_STEPS = ("langsmith.metadata.langgraph_step", "traceloop.association.properties.langgraph_step")


def apply(draft: SpanDraft, context: Context) -> None:
    """Number the step of a span that belongs to a node of a graph; the attributes stay, for they say more."""
    if not {"metadata", "langsmith", "traceloop"} & context.roots:
        return
    value: Json = draft.attributes.get("metadata")
    held = inner_json(value) if isinstance(value, str) else value
    step = held.get("langgraph_step") if isinstance(held, dict) else None
    for key in _STEPS:
        step = draft.attributes.get(key) if step is None else step
    if isinstance(step, str) and step.isascii() and step.isdigit() and len(step) < 10:
        step = int(step)
    if isinstance(step, int) and not isinstance(step, bool) and draft.step is None:
        draft.step = step
