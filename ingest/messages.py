"""Messages by content: what was said in a trace, once, whatever number of spans repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracejury.ingest.trace import Message, ToolCall, Trace


class MessageTable:
    """Collects the messages of one trace; equal messages get the same position."""

    def __init__(self) -> None:
        self._positions: dict[Message, int] = {}

    def add(
        self,
        role: str | None,
        content: str | None,
        tool_calls: tuple[ToolCall, ...] = (),
        *,
        name: str | None = None,
        tool_call_id: str | None = None,
    ) -> int:
        """The position of this message, new or seen before."""
        return self.place(Message(role, content, tool_calls, name, tool_call_id))

    def place(self, message: Message) -> int:
        """As `add`, for a message at hand."""
        return self._positions.setdefault(message, len(self._positions))

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._positions)


def numbered_as(trace: Trace, stored: Sequence[Message]) -> Trace:
    """The trace with its messages at the positions that they have in `stored`, those that are new behind them.

    Labels point at messages by position, so a trace that grew must keep the positions that it had.
    """
    table = MessageTable()
    for message in (*stored, *trace.messages):
        table.place(message)
    if table.messages == trace.messages:
        return trace
    now = [table.place(message) for message in trace.messages]
    spans = tuple(
        replace(
            span,
            input_messages=tuple(now[position] for position in span.input_messages),
            output_messages=tuple(now[position] for position in span.output_messages),
        )
        for span in trace.spans
    )
    return replace(trace, spans=spans, messages=table.messages)
