"""Logfire's instrumentations of model providers: `request_data` and `response_data`, each a JSON object.

Names: Logfire's `_internal/integrations/llm_providers`. Its newer spans follow the GenAI conventions.
"""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, put_usage
from tracejury.ingest.conventions.conversation import take_conversation
from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import Json, SpanDraft

NAME = "logfire"

_REQUEST, _RESPONSE = "request_data", "response_data"


def apply(draft: SpanDraft, context: Context) -> None:
    """Make messages of what was asked and answered; the model and the tokens go where they belong."""
    request = _opened(draft, _REQUEST)
    if not {"messages", "input", "prompt"} & request.keys() or not ({"model"} & request.keys() or draft.kind == "LLM"):
        return
    if draft.kind == "UNKNOWN":
        draft.kind = "LLM"
    model, response = request.get("model"), _opened(draft, _RESPONSE)
    draft.model = draft.model or (model if isinstance(model, str) else None)
    take_conversation(draft, _REQUEST, "input_messages", context, role="user")
    take_conversation(draft, _RESPONSE, "output_messages", context, role="assistant")
    if draft.total_tokens is None and draft.prompt_tokens is None:
        put_usage(draft, response.get("usage"), "response_data.usage.")


def _opened(draft: SpanDraft, key: str) -> dict[str, Json]:
    value = draft.attributes.get(key)
    content = inner_json(value) if isinstance(value, str) else value
    return content if isinstance(content, dict) else {}
