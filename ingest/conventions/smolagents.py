"""smolagents through OpenInference: messages written as Python reprs, agents known by the task they are given."""

from __future__ import annotations

import re

from ingest.conventions.context import Context
from ingest.parse import inner_json
from ingest.trace import SpanDraft

NAME = "smolagents"

_NAMED = re.compile(r"You're a helpful agent named '([^'\n]{1,80})'")
_STEP = re.compile(r"Step (\d{1,6})")


def apply(draft: SpanDraft, context: Context) -> None:
    """Name the agent of an AGENT span and number the step of a CHAIN span."""
    if draft.kind not in ("AGENT", "CHAIN") or not _is_ours(draft, context):
        return
    step = _STEP.fullmatch(draft.name)
    if draft.kind == "CHAIN" and step is not None and draft.step is None:
        draft.step = int(step[1])
    if draft.kind == "AGENT" and draft.agent is None:
        draft.agent = agent_name(draft)


def agent_name(draft: SpanDraft) -> str:
    """The name that a manager gave its agent, else its class (`CodeAgent.run` is `CodeAgent`)."""
    held = inner_json(draft.input or "")
    task = held.get("task") if isinstance(held, dict) else None
    named = _NAMED.search(task) if isinstance(task, str) else None
    return named[1] if named is not None else draft.name.removesuffix(".run")


def _is_ours(draft: SpanDraft, context: Context) -> bool:
    scope = draft.attributes.get("otel.scope")
    name = scope.get("name") if isinstance(scope, dict) else None
    return name == "openinference.instrumentation.smolagents" or "smolagents" in context.roots
