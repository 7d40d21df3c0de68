"""Dialects of attribute names, each mapped to the columns of the span table; what none knows stays in attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from tracejury.ingest.conventions import (
    adk,
    agentcore,
    coding_agents,
    crewai,
    exported,
    genai,
    genkit,
    haystack,
    langfuse,
    langgraph,
    langsmith,
    litellm,
    logfire,
    mapped,
    mlflow,
    monocle,
    named,
    openai_agents,
    openinference,
    openllmetry,
    pydantic_ai,
    smolagents,
    trulens,
    vercel_ai,
)
from tracejury.ingest.conventions.agents import name_agents
from tracejury.ingest.conventions.context import Context, SpanLog
from tracejury.ingest.conventions.conversation import SIDES, raise_messages
from tracejury.ingest.conventions.evicted import rebuild_heads
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.trace import SpanDraft


class Convention(Protocol):
    """What a module of `ingest/conventions` offers: its name, and `apply`, which moves what it knows into columns."""

    NAME: str

    def apply(self, draft: SpanDraft, context: Context) -> None: ...


CONVENTIONS: tuple[Convention, ...] = cast(
    "tuple[Convention, ...]",
    (
        mapped, openinference, genai, openllmetry, langsmith, langfuse, litellm, openai_agents, pydantic_ai, logfire,
        mlflow, trulens, vercel_ai, genkit, haystack, adk, coding_agents, crewai, langgraph, smolagents, agentcore,
        monocle, named, exported,
    ),
)  # fmt: skip
"""Asked in this order (the user's own maps first); a column that one has filled is not touched by the next."""


def translate(drafts: Sequence[SpanDraft], messages: MessageTable, *, logs: Sequence[SpanLog] = ()) -> None:
    """Fill the columns of a trace's drafts from their attributes, in every dialect, and name the agents.

    `draft.attributes` holds the source's attributes before and, after, those that became no column.
    """
    context = Context(messages)
    for log in sorted(logs, key=lambda log: log.time or 0):
        context.logs.setdefault(log.span_id, []).append(log)
    for draft in drafts:
        context.begin(draft)
        for convention in CONVENTIONS:
            convention.apply(draft, context)
        has_gap = bool(context.gaps) and context.gaps[-1].draft is draft  # its input is put together below
        raise_messages(draft, messages, sides=("output",) if has_gap else SIDES)
    litellm.raise_raw_requests(drafts, context)
    pydantic_ai.place_conversations(drafts, context)
    for draft in drafts:
        _complete(draft)
    name_agents(drafts)
    rebuild_heads(context, drafts)


def _complete(draft: SpanDraft) -> None:
    if draft.kind == "TOOL" and draft.tool_name is None:
        draft.tool_name = draft.name or None
    counted = draft.prompt_tokens is not None and draft.completion_tokens is not None
    if draft.total_tokens is None and counted:
        draft.total_tokens = cast("int", draft.prompt_tokens) + cast("int", draft.completion_tokens)
