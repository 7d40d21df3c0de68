"""Messages by content: what was said in a trace, once, whatever number of spans repeat it."""

from __future__ import annotations

from tracejury.ingest.trace import Message, ToolCall


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
