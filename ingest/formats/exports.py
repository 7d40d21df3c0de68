"""What the readers of tools' exports share: spans whose messages are known already, made into a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tracejury.ingest.conventions.agents import name_agents
from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.conventions.conversation import raise_messages
from tracejury.ingest.formats.spans import kept
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import Json, LogRecord, Message, Source, SpanDraft, Trace
from tracejury.ingest.tree import assemble


@dataclass(slots=True)
class Shaped:
    """A span with its messages, before the messages of the trace are numbered."""

    draft: SpanDraft
    inputs: list[Message] = field(default_factory=list)
    outputs: list[Message] = field(default_factory=list)


def shaped_trace(
    shaped: Sequence[Shaped],
    *,
    trace_id: str,
    format: str,
    source: Source,
    attributes: dict[str, Json] | None = None,
    goal: str | None = None,
    final_answer: str | None = None,
    logs: Sequence[SpanLog] = (),
    warnings: Sequence[str] = (),
) -> Trace:
    """The trace of these spans; messages are numbered in the order of time, and every log may hold the right answer."""
    table = MessageTable()
    for item in sorted(shaped, key=lambda item: (item.draft.start_time is None, item.draft.start_time or 0)):
        item.draft.input_messages = [table.place(message) for message in item.inputs]
        item.draft.output_messages = [table.place(message) for message in item.outputs]
        raise_messages(item.draft, table)
    drafts = [item.draft for item in shaped]
    name_agents(drafts)
    return assemble(
        drafts,
        trace_id=trace_id,
        format=format,
        source=source,
        messages=table,
        attributes=attributes,
        goal=goal,
        final_answer=final_answer,
        logs=[LogRecord(span_id=log.span_id or None, body=log.as_json(), holds_answer=True) for log in logs],
        warnings=warnings,
    )


def opinion(name: str, trace_id: str, span_id: str | None, body: Json) -> SpanLog:
    """A log record that holds what others said of a span (scores, feedback), and with it maybe the right answer."""
    return SpanLog(
        trace_id=trace_id, span_id=span_id or "", event_name=name, time=None, body=kept(body), attributes={}, rest={}
    )


def without_wrapper(value: Json, name: str) -> Json:
    """The value that an SDK wrapped as `{"output": value}` because it keeps objects alone."""
    return value[name] if isinstance(value, dict) and len(value) == 1 and name in value else value


def as_text(value: Json) -> str | None:
    """Text as it is, anything else as JSON text, None as None."""
    return value if value is None or isinstance(value, str) else json_text(value)
