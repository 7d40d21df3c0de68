"""Which agent each span works for: the nearest agent above it."""

from __future__ import annotations

from collections.abc import Sequence

from tracejury.ingest.trace import SpanDraft


def name_agents(drafts: Sequence[SpanDraft]) -> None:
    """Fill `agent`: an AGENT span works for itself, every other for the agent of its parent."""
    by_id: dict[str, SpanDraft] = {}
    for draft in drafts:
        by_id.setdefault(draft.span_id, draft)
        if draft.kind == "AGENT" and draft.agent is None:
            draft.agent = draft.name.removesuffix(".run") or None
    walked: set[int] = set()
    for draft in drafts:
        path: list[SpanDraft] = []
        here: SpanDraft | None = draft
        while here is not None and here.agent is None and id(here) not in walked:
            walked.add(id(here))
            path.append(here)
            here = by_id.get(here.parent_span_id) if here.parent_span_id is not None else None
        if here is not None and here.agent is not None:
            for span in path:
                span.agent = here.agent
