"""litellm's own OpenTelemetry callback: span names, request types, and what it tells of the raw provider request.

Under a span of the user's own litellm makes no span for a call (unless USE_OTEL_LITELLM_REQUEST_SPAN is set): it writes
each call's attributes on that span, one call over the other, and the raw requests below are all that tells the calls
apart. They are model calls then. Below a span of litellm's own a raw request repeats that span and stays UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejury.ingest.conventions.context import Context, put, put_usage
from tracejury.ingest.conventions.message_json import read_messages, rest_of
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.trace import Json, SpanDraft, SpanKind

NAME = "litellm"

RAW = "raw_gen_ai_request"
_NAMES: dict[str, SpanKind] = {"litellm_request": "LLM", "litellm-acompletion": "LLM", "litellm-completion": "LLM"}
_CALLS: dict[str, SpanKind] = {
    "completion": "LLM", "acompletion": "LLM", "text_completion": "LLM", "atext_completion": "LLM",
    "responses": "LLM", "aresponses": "LLM", "embedding": "EMBEDDING", "aembedding": "EMBEDDING",
    "rerank": "RERANKER", "arerank": "RERANKER",
}  # fmt: skip


def apply(draft: SpanDraft, context: Context) -> None:
    """Name the kind of a litellm span."""
    if draft.kind == "UNKNOWN":
        call = draft.attributes.get("llm.call_type") or draft.attributes.get("call_type")
        draft.kind = _NAMES.get(draft.name, _CALLS.get(call, "UNKNOWN") if isinstance(call, str) else "UNKNOWN")
    if draft.kind == "LLM":
        put(draft, "model", "llm.model")


def raise_raw_requests(drafts: Sequence[SpanDraft], context: Context) -> None:
    """Make model calls of the raw requests that hang on a span that is not litellm's own."""
    raws = [draft for draft in drafts if draft.name == RAW and _is_ours(draft)]
    if not raws:
        return
    by_id = {draft.span_id: draft for draft in drafts}
    for raw in raws:
        parent = by_id.get(raw.parent_span_id or "")
        if parent is not None and _is_ours(parent):
            continue
        _read_raw(raw, context)
        if parent is not None and "litellm.call_id" in parent.attributes:
            _tell_apart(parent, raw)


def _tell_apart(parent: SpanDraft, raw: SpanDraft) -> None:
    """The span around the calls is no call itself, and what it repeats of this one is said by the call alone."""
    if parent.kind == "LLM":
        parent.kind = "CHAIN"
        parent.warnings.append(
            "litellm_parent: litellm wrote the attributes of its calls on this span, each over the one before; "
            f"the calls themselves are the {RAW} spans below"
        )
    messages = {*raw.input_messages, *raw.output_messages}
    parent.input_messages = [place for place in parent.input_messages if place not in messages]
    parent.output_messages = [place for place in parent.output_messages if place not in messages]


def _is_ours(draft: SpanDraft) -> bool:
    scope = draft.attributes.get("otel.scope")
    return isinstance(scope, dict) and scope.get("name") == "litellm"


def _read_raw(draft: SpanDraft, context: Context) -> None:
    """The provider's request and answer, each field a Python literal under `llm.<provider>.`."""
    prefix = next((key.removesuffix("model") for key in draft.attributes if _is_model(key)), None)
    if draft.kind != "UNKNOWN" or prefix is None:
        return
    draft.kind = "LLM"
    put(draft, "model", f"{prefix}model")
    _side(draft, f"{prefix}messages", "input_messages", context)
    _side(draft, f"{prefix}choices", "output_messages", context)
    put_usage(draft, opened(draft.attributes.get(f"{prefix}usage")), f"{prefix}usage.")


def _is_model(key: str) -> bool:
    return key.startswith("llm.") and key.endswith(".model") and key.count(".") == 2


def _side(draft: SpanDraft, key: str, column: str, context: Context) -> None:
    content = opened(draft.attributes.get(key))
    beside: list[Json] = []
    if column == "output_messages" and isinstance(content, list) and all(isinstance(item, dict) for item in content):
        beside = [{k: v for k, v in item.items() if k != "message"} for item in content if isinstance(item, dict)]
        content = [item.get("message") for item in content if isinstance(item, dict)]
    turns = read_messages(content)
    if turns is None or getattr(draft, column):
        return
    setattr(draft, column, [context.add(item.message) for item in turns])
    rest = rest_of(turns)
    if rest is None and not beside:
        del draft.attributes[key]
    else:
        draft.attributes[key] = rest if not beside else {"beside": beside, "messages": rest}
