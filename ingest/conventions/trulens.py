"""TruLens: `ai.observability.*` (and the earlier `trulens.*`) of its OpenTelemetry spans.

Names: `trulens.otel.semconv.trace.SpanAttributes`. The expected answer of a record is taken out by the reader of
event tables, for it is the right answer.
"""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, column_of, put, put_count
from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import SpanDraft, SpanKind

NAME = "trulens"

_KINDS: dict[str, SpanKind] = {
    "record_root": "CHAIN", "generation": "LLM", "retrieval": "RETRIEVER", "reranking": "RERANKER",
    "embedding": "EMBEDDING", "tool": "TOOL", "tool_invocation": "TOOL", "mcp": "TOOL", "agent": "AGENT",
    "agent_invocation": "AGENT", "eval": "EVALUATOR", "eval_root": "EVALUATOR", "graph_node": "CHAIN",
    "graph_task": "CHAIN", "workflow_step": "CHAIN", "graph": "CHAIN",
}  # fmt: skip
_BASES = ("ai.observability.", "trulens.")


def apply(draft: SpanDraft, context: Context) -> None:
    """Move TruLens' attributes into columns."""
    if not {"ai", "trulens"} & context.roots:
        return
    for base in _BASES:
        _kind(draft, base)
        put(draft, "model", f"{base}cost.model")
        put_count(draft, "prompt_tokens", f"{base}cost.num_prompt_tokens")
        put_count(draft, "completion_tokens", f"{base}cost.num_completion_tokens")
        put_count(draft, "total_tokens", f"{base}cost.num_tokens")
        put_count(draft, "reasoning_tokens", f"{base}cost.num_reasoning_tokens")
        for name in ("record_root.input", "record_root.main_input", "retrieval.query_text"):
            _text(draft, "input", base + name)
        for name in ("record_root.output", "record_root.main_output", "call.return"):
            _text(draft, "output", base + name)
        _arguments(draft, base)


def _kind(draft: SpanDraft, base: str) -> None:
    kind = draft.attributes.get(f"{base}span_type")
    if isinstance(kind, str) and draft.kind == "UNKNOWN":
        draft.kind = _KINDS.get(kind.lower().removeprefix("spanattributes.spantype."), "UNKNOWN")


def _text(draft: SpanDraft, column: str, key: str) -> None:
    """A value into an empty column; a second that says the same is dropped, one that differs stays an attribute."""
    value = draft.attributes.get(key)
    if value is None:
        return
    text = value if isinstance(value, str) else json_text(value)
    if getattr(draft, column) is None:
        setattr(draft, column, text)
    elif getattr(draft, column) != text:
        return
    del draft.attributes[key]


def _arguments(draft: SpanDraft, base: str) -> None:
    """`call.kwargs.<name>` together as JSON: a tool's arguments, or the input of a call that names none."""
    prefix = f"{base}call.kwargs."
    named = {key.removeprefix(prefix): value for key, value in draft.attributes.items() if key.startswith(prefix)}
    column = column_of(draft, "input")
    if not named or getattr(draft, column) is not None:
        return
    setattr(draft, column, json_text(named))
    for name in named:
        del draft.attributes[prefix + name]
