"""CrewAI: its own telemetry (`crew_inputs`, `formatted_description`, `task_output`) and OpenLLMetry's `crewai.*`.

Names: `crewai/telemetry/telemetry.py` (texts are there with `share_crew`), and the package
opentelemetry-instrumentation-crewai.
"""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, put
from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import SpanDraft

NAME = "crewai"

_ROOTS = frozenset({"crewai", "crew_inputs", "crew_output", "task_output", "formatted_description", "crew_key"})
_INPUTS = ("crew_inputs", "formatted_description", "crewai.task.description", "crewai.crew.inputs")
_OUTPUTS = ("crew_output", "task_output", "crewai.crew.result", "crewai.task.output", "crewai.agent.result")


def apply(draft: SpanDraft, context: Context) -> None:
    """Move a crew's and a task's input and output into columns."""
    if not _ROOTS & context.roots:
        return
    if draft.kind == "UNKNOWN":
        draft.kind = "CHAIN"
    if draft.kind == "AGENT":
        put(draft, "agent", "crewai.agent.role")
    for column, keys in (("input", _INPUTS), ("output", _OUTPUTS)):
        for key in keys:
            value = draft.attributes.get(key)
            if value and getattr(draft, column) is None:
                setattr(draft, column, value if isinstance(value, str) else json_text(value))
                del draft.attributes[key]
