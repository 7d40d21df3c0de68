"""Vercel AI SDK, versions 3 to 6: `ai.prompt*`, `ai.response.*` (earlier `ai.result.*`), `ai.toolCall.*`, `ai.usage.*`.

Names: ai-sdk.dev, "Telemetry". From version 7 its own exporter writes the GenAI conventions.
"""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, forget_zero_tokens, put, put_count
from tracejury.ingest.conventions.conversation import open_value, take_conversation
from tracejury.ingest.conventions.parts import read_part
from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import Json, Message, SpanDraft, SpanKind, ToolCall

NAME = "vercel_ai"

_OPERATIONS: dict[str, SpanKind] = {
    "ai.generateText": "AGENT", "ai.streamText": "AGENT", "ai.generateObject": "CHAIN", "ai.streamObject": "CHAIN",
    "ai.toolCall": "TOOL", "ai.embed": "CHAIN", "ai.embedMany": "CHAIN", "ai.rerank": "RERANKER",
}  # fmt: skip
_LEAVES: dict[str, SpanKind] = {
    "doGenerate": "LLM", "doStream": "LLM", "doEmbed": "EMBEDDING", "doEmbedMany": "EMBEDDING", "doRerank": "RERANKER",
}  # fmt: skip
_BASES = ("ai.response.", "ai.result.")


def apply(draft: SpanDraft, context: Context) -> None:
    """Move the AI SDK's attributes into columns."""
    if "ai" not in context.roots:
        return
    _kind(draft)
    if draft.kind == "AGENT":
        put(draft, "agent", "ai.telemetry.functionId")
    for key in ("ai.response.model", "ai.model.id"):
        put(draft, "model", key)
    _tokens(draft)
    if draft.kind == "TOOL":
        _tool(draft)
        return
    for key in ("ai.prompt.messages", "ai.prompt"):
        take_conversation(draft, key, "input_messages", context, role="user")
    for base in _BASES:
        _answer(draft, base, context)
    _embedded(draft)


def _kind(draft: SpanDraft) -> None:
    operation = draft.attributes.get("ai.operationId", draft.name)
    if not isinstance(operation, str) or draft.kind != "UNKNOWN":
        return
    leaf = operation.rpartition(".")[2]
    draft.kind = _LEAVES.get(leaf) or _OPERATIONS.get(operation.partition(" ")[0], "UNKNOWN")


def _tokens(draft: SpanDraft) -> None:
    put_count(draft, "prompt_tokens", "ai.usage.inputTokens", "ai.usage.promptTokens")
    put_count(draft, "completion_tokens", "ai.usage.outputTokens", "ai.usage.completionTokens")
    put_count(draft, "total_tokens", "ai.usage.totalTokens")
    reasoning = ("ai.usage.reasoningTokens", "ai.usage.outputTokenDetails.reasoningTokens")
    put_count(draft, "reasoning_tokens", *reasoning)
    forget_zero_tokens(draft)


def _tool(draft: SpanDraft) -> None:
    put(draft, "tool_name", "ai.toolCall.name")
    put(draft, "tool_call_id", "ai.toolCall.id")
    for column, keys in (("tool_arguments", ("args", "input")), ("output", ("result", "output"))):
        for key in keys:
            _text(draft, column, f"ai.toolCall.{key}")


def _answer(draft: SpanDraft, base: str, context: Context) -> None:
    """Text, reasoning, object, files and calls of tools together are one message of the assistant."""
    if draft.output_messages:
        return
    calls, reasoning = _calls(draft, base), _reasoning(draft, base)
    texts = [*_popped(draft, f"{base}text"), *_popped(draft, f"{base}object"), *_files(draft, base)]
    if texts or calls or reasoning:
        message = Message("assistant", "\n".join(texts) if texts else None, calls, None, None, reasoning)
        draft.output_messages = [context.add(message)]


def _calls(draft: SpanDraft, base: str) -> tuple[ToolCall, ...]:
    key = f"{base}toolCalls"
    listed = open_value(draft, key, draft.attributes.get(key))
    if not isinstance(listed, list) or not listed:
        return ()
    pieces = [read_part({**call, "type": "tool-call"} if isinstance(call, dict) else call) for call in listed]
    calls = tuple(piece.call for piece in pieces if piece.call is not None)
    if len(calls) == len(listed):
        del draft.attributes[key]
        return calls
    return ()


def _reasoning(draft: SpanDraft, base: str) -> str | None:
    for key in (f"{base}reasoning", f"{base}reasoningText"):
        value = open_value(draft, key, draft.attributes.get(key))
        parts = value if isinstance(value, list) else [value] if value else []
        texts = [part if isinstance(part, str) else read_part({"type": "reasoning", **part}).reasoning
                 for part in parts if isinstance(part, (str, dict))]  # fmt: skip
        if texts and all(text is not None for text in texts):
            del draft.attributes[key]
            return "\n".join(text for text in texts if text is not None)
    return None


def _popped(draft: SpanDraft, key: str) -> list[str]:
    value = draft.attributes.get(key)
    if not value:
        return []
    del draft.attributes[key]
    return [value if isinstance(value, str) else json_text(value)]


def _files(draft: SpanDraft, base: str) -> list[str]:
    """Files that the model made, as placeholders; their bytes stay in the attribute."""
    value = open_value(draft, f"{base}files", draft.attributes.get(f"{base}files"))
    parts = value if isinstance(value, list) else []
    return [text for part in parts if isinstance(part, dict)
            if (text := read_part({"type": "file", **part}).text) is not None]  # fmt: skip


def _embedded(draft: SpanDraft) -> None:
    for key in ("ai.value", "ai.values"):
        if draft.kind in ("EMBEDDING", "CHAIN"):
            _text(draft, "input", key)


def _text(draft: SpanDraft, column: str, key: str) -> None:
    value: Json = draft.attributes.get(key)
    if value is None or getattr(draft, column) is not None:
        return
    setattr(draft, column, value if isinstance(value, str) else json_text(value))
    del draft.attributes[key]
