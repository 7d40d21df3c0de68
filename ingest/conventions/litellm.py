"""litellm's own OpenTelemetry callback: span names and the request types that OpenLLMetry's names do not cover."""

from __future__ import annotations

from ingest.conventions.context import Context, put
from ingest.trace import SpanDraft, SpanKind

NAME = "litellm"

_NAMES: dict[str, SpanKind] = {"litellm_request": "LLM", "litellm-acompletion": "LLM", "litellm-completion": "LLM"}
_CALLS: dict[str, SpanKind] = {
    "completion": "LLM", "acompletion": "LLM", "text_completion": "LLM", "atext_completion": "LLM",
    "responses": "LLM", "aresponses": "LLM", "embedding": "EMBEDDING", "aembedding": "EMBEDDING",
    "rerank": "RERANKER", "arerank": "RERANKER",
}  # fmt: skip


def apply(draft: SpanDraft, context: Context) -> None:
    """Name the kind of a litellm span. Its raw provider request repeats the call above it and stays UNKNOWN."""
    if draft.kind == "UNKNOWN":
        call = draft.attributes.get("llm.call_type") or draft.attributes.get("call_type")
        draft.kind = _NAMES.get(draft.name, _CALLS.get(call, "UNKNOWN") if isinstance(call, str) else "UNKNOWN")
    if draft.kind == "LLM":
        put(draft, "model", "llm.model")
