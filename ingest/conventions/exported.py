"""What the readers of tools' exports hand over as it stands: `export.input` and `export.output` of a run or a call."""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context
from tracejury.ingest.conventions.langsmith import take_side
from tracejury.ingest.trace import SpanDraft

NAME = "exported"


def apply(draft: SpanDraft, context: Context) -> None:
    """Make messages of a model call's sides, and text of others'."""
    if "export" not in context.roots:
        return
    for side in ("input", "output"):
        if f"export.{side}" in draft.attributes:
            take_side(draft, f"export.{side}", side, context)
