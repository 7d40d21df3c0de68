"""LangChain and LangGraph through OpenInference, LangSmith or OpenLLMetry: what their `metadata` says of a span."""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context
from tracejury.ingest.conventions.message_json import read_message
from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import Json, SpanDraft

NAME = "langgraph"

_PLACES = ("langsmith.metadata.", "traceloop.association.properties.")


def apply(draft: SpanDraft, context: Context) -> None:
    """Number the step of a span that belongs to a node of a graph, and name its agent; the attributes stay."""
    if not {"metadata", "langsmith", "traceloop"} & context.roots:
        return
    value: Json = draft.attributes.get("metadata")
    content = inner_json(value) if isinstance(value, str) else value
    metadata = content if isinstance(content, dict) else {}
    step, agent = _said(draft, metadata, "langgraph_step"), _said(draft, metadata, "lc_agent_name")
    if isinstance(step, str) and step.isascii() and step.isdigit() and len(step) < 10:
        step = int(step)
    if isinstance(step, int) and not isinstance(step, bool) and draft.step is None:
        draft.step = step
    if isinstance(agent, str) and agent and draft.agent is None:
        draft.agent = agent
    if draft.kind == "TOOL" and draft.tool_call_id is None and draft.output is not None:
        draft.tool_call_id = _answered_call(draft.output)


def _said(draft: SpanDraft, metadata: dict[str, Json], key: str) -> Json:
    values = (metadata.get(key), *(draft.attributes.get(place + key) for place in _PLACES))
    return next((value for value in values if value is not None), None)


def _answered_call(output: str) -> str | None:
    """The call that a tool's result answers, where the result is written as LangChain's message of it."""
    content = inner_json(output) if '"tool_call_id"' in output else None
    turn = read_message(content) if isinstance(content, dict) else None
    return None if turn is None else turn.message.tool_call_id
