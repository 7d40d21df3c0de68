"""Small traces and workspaces for tests, built through the public calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracejury.ingest.batch import store
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.trace import LogRecord, Source, SpanDraft, ToolCall, Trace
from tracejury.ingest.tree import assemble
from tracejury.judging.records import ErrorLabel, Evidence, Finding
from tracejury.judging.store import Workspace, open_workspace

TRACE = "ab" * 16
LONG_TEXT = "A river guide lists the ferry at nine, noon and three; the noon boat does not run in winter. " * 8


def span_id(number: int) -> str:
    return f"{number:016x}"


def trace_of(
    drafts: Sequence[SpanDraft], *, trace_id: str = TRACE, messages: MessageTable | None = None, **more: Any
) -> Trace:
    return assemble(
        drafts,
        trace_id=trace_id,
        format="trail",
        source=Source(file=f"{trace_id}.json", data=trace_id.encode()),
        messages=messages or MessageTable(),
        **more,
    )


def small_trace(trace_id: str = TRACE) -> Trace:
    """An agent that plans, asks a model twice, calls a tool that fails, and answers."""
    table = MessageTable()
    system = table.add("system", "You are a careful clerk. " + LONG_TEXT)
    task = table.add("user", "When does the last ferry leave?")
    plan = table.add("assistant", "[PLAN]:\n1. Look in the timetable.\n2. Answer.")
    call = table.add("assistant", "I look it up.", (ToolCall("timetable", '{"day": "Monday"}', "call_1"),))
    seen = table.add("tool-response", "Observation:\n" + LONG_TEXT)
    last = table.add("assistant", "The last ferry leaves at three.")
    drafts = [
        SpanDraft(span_id=span_id(1), name="run", kind="AGENT", agent="clerk", start_time=1_000_000, end_time=9_000_000,
                  status="OK", input='{"task": "When does the last ferry leave?"}', output="Three o'clock."),
        SpanDraft(span_id=span_id(2), parent_span_id=span_id(1), name="plan", kind="LLM", agent="clerk",
                  start_time=1_100_000, end_time=2_000_000, status="OK", model="m", prompt_tokens=10,
                  completion_tokens=5, total_tokens=15, input_messages=[system, task], output_messages=[plan]),
        SpanDraft(span_id=span_id(3), parent_span_id=span_id(1), name="call", kind="LLM", agent="clerk",
                  start_time=2_100_000, end_time=3_000_000, status="OK", model="m", prompt_tokens=20,
                  completion_tokens=5, total_tokens=25, input_messages=[system, task, plan], output_messages=[call]),
        SpanDraft(span_id=span_id(4), parent_span_id=span_id(1), name="Timetable", kind="TOOL", agent="clerk",
                  tool_name="timetable", tool_arguments='{"day": "Monday"}', start_time=3_100_000, end_time=3_200_000,
                  status="ERROR", status_message="KeyError: 'Monday'", output=LONG_TEXT,
                  events=[{"name": "exception", "attributes": {"exception.type": "KeyError"}}],
                  attributes={"otel.scope": {"name": "x", "version": "1"}, "long": LONG_TEXT, "odd": {"$text": "y"}}),
        SpanDraft(span_id=span_id(5), parent_span_id=span_id(1), name="call", kind="LLM", agent="clerk",
                  start_time=3_300_000, end_time=4_000_000, status="OK", model="m",
                  input_messages=[system, task, plan, call, seen], output_messages=[last]),
    ]  # fmt: skip
    return trace_of(
        drafts,
        trace_id=trace_id,
        messages=table,
        goal="When does the last ferry leave?",
        final_answer="Three o'clock.",
        logs=[LogRecord(span_id=span_id(1), body={"true_answer": "half past four"}, holds_answer=True)],
    )


def workspace(home: Path, *traces: Trace) -> Workspace:
    opened = open_workspace(home)
    report = store(opened.engine, traces or (small_trace(),))
    assert report.rejected == []
    return opened


def error_label(number: int = 1, *, spans: Sequence[int] = (4,), trace_id: str = TRACE, **more: Any) -> ErrorLabel:
    values: dict[str, Any] = {
        "label_id": f"label-{number}",
        "trace_id": trace_id,
        "annotator": "ada",
        "span_ids": tuple(span_id(one) for one in spans),
        "dimensions": ("TC",),
        "impact": "high",
        "description": "The tool is called with a day it does not know.",
        "evidence": (Evidence(quote="KeyError: 'Monday' was raised by the timetable", span_id=span_id(4)),),
    }
    return ErrorLabel(**(values | more))


def finding(description: str, *spans: int, **more: Any) -> Finding:
    from tracejury.judging.records import Citation

    cites = tuple(Citation(cite=span_id(one), span_id=span_id(one)) for one in spans)
    return Finding(**({"description": description, "evidence": "", "citations": cites} | more))
