"""What stands under plain names: what the readers of tools' exports hand over, and `input`, `prompt`, `response`.

Teams that trace by hand, and small tools (Pipecat, any-agent), call it so. Asked last, and only where nothing else told
what went in or came out.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracejury.ingest.conventions.context import Context, column_of
from tracejury.ingest.conventions.langsmith import take_side
from tracejury.ingest.trace import SpanDraft

NAME = "exported"

_EXPORTED = {"input": ("export.input",), "output": ("export.output",)}
_PLAIN = {
    "input": ("input", "prompt", "llm.input", "llm.prompt", "gen_ai.input"),
    "output": (
        "output", "completion", "response", "llm.output", "llm.completion", "llm.response", "gen_ai.output",
        "genai.output",
    ),
}  # fmt: skip
_ROOTS = frozenset({"input", "prompt", "output", "completion", "response", "llm", "gen_ai", "genai"})
_KINDS = frozenset({"LLM", "TOOL", "AGENT"})


def apply(draft: SpanDraft, context: Context) -> None:
    """Make messages of a model call's sides, and text of others'."""
    if "export" in context.roots:
        _take(draft, context, _EXPORTED)
    elif draft.kind in _KINDS and not _ROOTS.isdisjoint(context.roots):
        _take(draft, context, {side: names for side, names in _PLAIN.items() if not _is_told(draft, side)})


def _take(draft: SpanDraft, context: Context, names: Mapping[str, tuple[str, ...]]) -> None:
    for side, some in names.items():
        key = next((name for name in some if draft.attributes.get(name) not in (None, "")), None)
        if key is not None:
            take_side(draft, key, side, context)


def _is_told(draft: SpanDraft, side: str) -> bool:
    """Whether this side of a span has words or messages."""
    return bool(getattr(draft, f"{side}_messages")) or getattr(draft, column_of(draft, side)) is not None
