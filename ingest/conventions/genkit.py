"""Genkit: `genkit:type`, `genkit:metadata:subtype`, `genkit:input`, `genkit:output` (JSON text).

Names: Genkit's `core/src/tracing/instrumentation.ts` and its page "Telemetry".
"""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, column_of, put_usage
from tracejury.ingest.conventions.conversation import take_conversation
from tracejury.ingest.parse import json_text, unquoted
from tracejury.ingest.trace import Json, SpanDraft, SpanKind

NAME = "genkit"

_KINDS: dict[str, SpanKind] = {
    "flow": "CHAIN", "model": "LLM", "background-model": "LLM", "tool": "TOOL", "retriever": "RETRIEVER",
    "embedder": "EMBEDDING", "reranker": "RERANKER", "evaluator": "EVALUATOR", "prompt": "PROMPT",
    "executable-prompt": "PROMPT", "agent": "AGENT", "session-flow": "AGENT", "flowStep": "CHAIN", "util": "CHAIN",
    "indexer": "CHAIN", "action": "CHAIN", "helper": "CHAIN", "dotprompt": "PROMPT", "promptTemplate": "PROMPT",
}  # fmt: skip
_INPUT, _OUTPUT = "genkit:input", "genkit:output"


def apply(draft: SpanDraft, context: Context) -> None:
    """Move Genkit's attributes into columns."""
    if "genkit:type" not in context.roots:
        return
    _kind(draft)
    name = draft.attributes.get("genkit:name")
    if draft.kind == "LLM":
        _model_call(draft, name, context)
    if draft.kind == "TOOL" and draft.tool_name is None and isinstance(name, str):
        draft.tool_name = name
    _text(draft, column_of(draft, "input"), _INPUT)
    _text(draft, "output", _OUTPUT)
    if draft.attributes.get("genkit:state") == "error" and draft.status == "UNSET":
        draft.status = "ERROR"


def _kind(draft: SpanDraft) -> None:
    subtype, kind = draft.attributes.get("genkit:metadata:subtype"), draft.attributes.get("genkit:type")
    if draft.kind == "UNKNOWN":
        plain = str(subtype).removesuffix(".v2")
        draft.kind = _KINDS.get(plain) or _KINDS.get(str(kind), "UNKNOWN")


def _model_call(draft: SpanDraft, name: Json, context: Context) -> None:
    if draft.model is None and isinstance(name, str):
        draft.model = name.rpartition("/")[2] or None
    take_conversation(draft, _INPUT, "input_messages", context, role="user")
    if take_conversation(draft, _OUTPUT, "output_messages", context, role="assistant"):
        rest = draft.attributes.get(_OUTPUT)
        usage = rest.get("usage") if isinstance(rest, dict) else None
        if isinstance(usage, dict):
            counts = {"input": "inputTokens", "output": "outputTokens", "total": "totalTokens"}
            put_usage(draft, {ours: usage.get(theirs) for ours, theirs in counts.items()}, "genkit:usage:")


def _text(draft: SpanDraft, column: str, key: str) -> None:
    value = draft.attributes.get(key)
    if value is None or getattr(draft, column) is not None or (isinstance(value, dict) and draft.kind == "LLM"):
        return
    setattr(draft, column, unquoted(value) if isinstance(value, str) else json_text(value))
    del draft.attributes[key]
