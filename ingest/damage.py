"""Traces of a damaged file: marked with what may be missing, so that the whole file takes their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracejury.ingest.trace import Rejected, Trace
from tracejury.ingest.words import counted

DAMAGED = "damaged"
"""Code of the warning on a trace of which parts may be missing."""
_SPREAD = frozenset(
    (
        "langfuse", "langsmith", "weave", "trulens", "phoenix", "openai_agents", "otlp", "otel_sdk", "otel_js",
        "zipkin", "opik", "claude_code", "codex", "openhands", "span_table",
    )
)  # fmt: skip
"""Formats in which the spans of one trace may stand in several documents of a file: a damaged one may hold some."""
_NAMED = 5  # absent spans named in a warning


def mark_damaged(trace: Trace, damage: Sequence[Rejected]) -> Trace:
    """The trace with a warning of what may be missing, where damaged parts of its file may hold spans of it."""
    files = trace.source.file.split(" + ")
    parts = [part for part in damage if part.file in files]
    if not parts or trace.format not in _SPREAD or is_damaged(trace.warnings):
        return trace
    return replace(trace, warnings=(_warning(trace, parts), *trace.warnings))


def is_damaged(warnings: Sequence[str]) -> bool:
    """Whether these are the warnings of a trace of which parts may be missing."""
    return any(warning.startswith(f"{DAMAGED}:") for warning in warnings)


def _warning(trace: Trace, parts: Sequence[Rejected]) -> str:
    places = ", ".join(part.place for part in parts[:_NAMED] if part.place)
    lost = counted(sum(part.lost for part in parts), "byte")
    size = f"{lost} in {counted(len(parts), 'part')} of the file could not be read"
    absent = _absent_spans(trace)
    named = f": {', '.join(absent[:_NAMED])}{' …' if len(absent) > _NAMED else ''}" if absent else ""
    return f"{DAMAGED}: {size} ({places}); {counted(len(absent), 'span')} referred to but missing{named}"


def _absent_spans(trace: Trace) -> list[str]:
    """Ids of spans that the trace's own spans, or log records, name, and that are not in it."""
    ids = {span.span_id for span in trace.spans}
    parents = [span.parent_span_id for span in trace.spans]
    logged = [log.span_id for log in trace.logs]
    return sorted({one for one in [*parents, *logged] if one is not None and one not in ids})
