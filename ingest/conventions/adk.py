"""Google's Agent Development Kit 1.x: requests, answers, arguments and results as JSON in `gcp.vertex.agent.*`.

Names: `google/adk/telemetry/tracing.py`. Where content is not captured they hold `{}`.
"""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, put, put_usage
from tracejury.ingest.conventions.conversation import take_conversation
from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import Json, SpanDraft, SpanKind

NAME = "adk"

_BASE = "gcp.vertex.agent."
_EMPTY: tuple[Json, ...] = ("{}", {}, "<not specified>", "<elided>")
_NAMES: tuple[tuple[str, SpanKind], ...] = (
    ("call_llm", "LLM"), ("execute_tool", "TOOL"), ("agent_run", "AGENT"), ("invoke_agent", "AGENT"),
    ("invocation", "CHAIN"), ("tool_response", "TOOL"), ("tool_call", "TOOL"),
)  # fmt: skip
_USAGE = {"input": "prompt_token_count", "output": "candidates_token_count", "total": "total_token_count"}


def apply(draft: SpanDraft, context: Context) -> None:
    """Move ADK's attributes into columns."""
    if "gcp" not in context.roots:
        return
    if draft.kind == "UNKNOWN":
        draft.kind = next((kind for name, kind in _NAMES if draft.name.startswith(name)), "UNKNOWN")
    if draft.kind == "TOOL":
        _tool(draft)
    elif draft.kind == "LLM":
        _model_call(draft, context)
    elif draft.kind == "UNKNOWN" and draft.attributes.get(f"{_BASE}data") is not None:
        put(draft, "input", f"{_BASE}data")


def _model_call(draft: SpanDraft, context: Context) -> None:
    for name, column, role in (
        ("llm_request", "input_messages", "user"),
        ("llm_response", "output_messages", "assistant"),
    ):
        key = _BASE + name
        if draft.attributes.get(key) not in _EMPTY:
            take_conversation(draft, key, column, context, role=role)
    rest = draft.attributes.get(f"{_BASE}llm_response")
    usage = rest.get("usage_metadata", rest.get("usageMetadata")) if isinstance(rest, dict) else None
    if isinstance(usage, dict) and draft.prompt_tokens is None:
        put_usage(draft, {ours: usage.get(theirs) for ours, theirs in _USAGE.items()}, f"{_BASE}usage.")


def _tool(draft: SpanDraft) -> None:
    for name, column in (("tool_call_args", "tool_arguments"), ("tool_response", "output")):
        key = _BASE + name
        value = draft.attributes.get(key)
        is_there = value is not None and (value not in _EMPTY or column == "tool_arguments")
        if is_there and getattr(draft, column) is None:
            setattr(draft, column, value if isinstance(value, str) else json_text(value))
            del draft.attributes[key]
