"""What an upload would bring, before anything is stored: formats, traces, doubles, doubts, refusals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import orjson
import pandas as pd
from sqlalchemy import Connection, select

from tracejury.ingest.damage import is_damaged
from tracejury.ingest.gaps import GAPS, Gaps, find_gaps
from tracejury.ingest.late import may_complete
from tracejury.ingest.readers import read_inputs
from tracejury.ingest.store import content_digest, schema
from tracejury.ingest.trace import LooseLogs, Rejected, Trace
from tracejury.judging.judges.trace_text import render_trace

READ_LIMIT = 200  # traces whose judge's text is measured; it takes longer than reading them
COLUMNS = (
    "state", "trace_id", "format", "name", "spans", "messages", "llm_spans", "tool_spans", "unknown_spans", "agents",
    "orphans", "no_times", "warnings", "text", "judge_text", "file",
)  # fmt: skip


@dataclass(kw_only=True)
class Preflight:
    """`traces` has one row each (`COLUMNS`); `state` is new, there already, changed, or twice in this upload.

    A whole trace is new too where the one that is there came of a damaged file, and replaces that.

    `text` counts all characters of a trace's spans, `judge_text` those that a judge reads (missing beyond
    `READ_LIMIT`).
    """

    traces: pd.DataFrame
    rejected: list[Rejected] = field(default_factory=list)
    loose: list[LooseLogs] = field(default_factory=list)
    """Log records whose spans stand in another file: joined to stored traces, or kept for those that come."""
    warnings: Counter[str] = field(default_factory=Counter)
    warning_texts: list[str] = field(default_factory=list)
    unread: int = 0
    """Traces of which not all could be read: model calls without messages, tool calls without text."""

    joinable: int = 0
    """Traces of an id that is there with other content, in formats whose files are joined."""

    @property
    def changed(self) -> int:
        """Traces of an id that is there with other content."""
        return int((self.traces["state"] == "changed").sum())

    @property
    def new(self) -> int:
        """Traces that would be stored."""
        return int((self.traces["state"] == "new").sum())

    @property
    def late(self) -> int:
        """What may complete stored traces: traces with other content, and files of log records."""
        return self.joinable + len(self.loose)


def inspect(connection: Connection, inputs: Mapping[str, bytes]) -> Preflight:
    """Read everything and store nothing."""
    trace = schema.trace.c
    stored = connection.execute(select(trace.trace_id, trace.digest, trace.format, trace.warnings)).all()
    known = {row.trace_id: row.digest for row in stored}
    format_of = {row.trace_id: row.format for row in stored}
    damaged = {row.trace_id for row in stored if is_damaged(orjson.loads(row.warnings))}
    preflight = Preflight(traces=pd.DataFrame(columns=list(COLUMNS)))
    rows: list[tuple[object, ...]] = []
    seen: set[str] = set()
    gaps: dict[str, Gaps] = defaultdict(Gaps)
    for item in read_inputs(inputs):
        if isinstance(item, LooseLogs):
            preflight.loose.append(item)
            continue
        if isinstance(item, Rejected):
            preflight.rejected.append(item)
            continue
        state = _state(item, known, seen)
        if state == "changed" and item.trace_id in damaged and not is_damaged(item.warnings):
            state = "new"
        preflight.joinable += state == "changed" and may_complete(format_of[item.trace_id], item.format)
        seen.add(item.trace_id)
        rows.append(_row(item, state, measured=len(rows) < READ_LIMIT))
        for warning in item.all_warnings:
            preflight.warnings[warning.split(":", 1)[0]] += 1
            if warning.partition(":")[0] not in GAPS:
                preflight.warning_texts.append(f"{item.source.file}: {warning}")
        gaps[item.source.file] += find_gaps(item.spans, item.messages, format=item.format)
        preflight.unread += any(warning.partition(":")[0] in GAPS for warning in item.warnings)
    preflight.warning_texts[:0] = [f"{file}: {warning}" for file, each in gaps.items() for warning in each.warnings()]
    preflight.traces = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"judge_text": "Int64"})
    return preflight


def storable(inputs: Mapping[str, bytes]) -> Iterator[Trace | Rejected]:
    """The inputs read again, to be stored one trace at a time."""
    yield from read_inputs(inputs)


def _state(trace: Trace, known: Mapping[str, str], seen: set[str]) -> str:
    if trace.trace_id in seen:
        return "twice in this upload"
    if trace.trace_id not in known:
        return "new"
    return "already stored" if content_digest(trace) == known[trace.trace_id] else "changed"


def _row(trace: Trace, state: str, *, measured: bool) -> tuple[object, ...]:
    spans = trace.spans
    ids = {span.span_id for span in spans}
    agents = sorted({span.agent for span in spans if span.agent})
    kinds = Counter(span.kind for span in spans)
    orphans = sum(span.parent_span_id is not None and span.parent_span_id not in ids for span in spans)
    return (
        state,
        trace.trace_id,
        trace.format,
        spans[0].name if spans else "",
        len(spans),
        len(trace.messages),
        kinds["LLM"],
        kinds["TOOL"],
        kinds["UNKNOWN"],
        ", ".join(agents),
        orphans,
        sum(span.start_time is None for span in spans),
        len(trace.all_warnings),
        _all_text(trace),
        len(render_trace(trace).text) if measured else None,
        trace.source.file,
    )


def _all_text(trace: Trace) -> int:
    """Characters that the spans hold when each repeats its messages, as the source does."""
    texts = [len(message.content or "") for message in trace.messages]
    own = sum(
        len(text or "")
        for span in trace.spans
        for text in (span.input, span.output, span.tool_arguments, span.status_message)
    )
    return own + sum(texts[p] for span in trace.spans for p in (*span.input_messages, *span.output_messages))
