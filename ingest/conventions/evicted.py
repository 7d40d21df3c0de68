"""Calls whose first attributes the tracer dropped (it keeps 128): their head from earlier calls, where proven."""

from __future__ import annotations

from collections.abc import Sequence

from tracejury.ingest.conventions.context import Context, Gap
from tracejury.ingest.trace import Message, SpanDraft

_NOT_RECORDED = Message(None, None)
"""Stands where a message is missing, so that no other changes its number."""


def rebuild_heads(context: Context, drafts: Sequence[SpanDraft]) -> None:
    """Fill each gap from earlier calls of the same agent where all that both hold is equal, else leave it empty."""
    if not context.gaps:
        return
    calls = sorted(
        (draft for draft in drafts if draft.kind == "LLM"), key=lambda d: (d.start_time is None, d.start_time or 0)
    )
    order = {id(draft): number for number, draft in enumerate(calls)}
    for gap in sorted(context.gaps, key=lambda g: order.get(id(g.draft), len(order))):
        earlier = [call for call in calls[: order.get(id(gap.draft), 0)] if call.agent == gap.draft.agent]
        _rebuild(gap, earlier, context)


def _rebuild(gap: Gap, earlier: list[SpanDraft], context: Context) -> None:
    messages = context.messages.messages
    positions = _wanted(gap.said)
    used: list[str] = []
    for call in reversed(earlier):
        if not positions:
            break
        by_position = {
            number: messages[position]
            for number, position in enumerate(call.input_messages)
            if messages[position] != _NOT_RECORDED
        }
        filled = positions & by_position.keys()
        if filled and _agree(gap.said, by_position):
            gap.said.update({number: by_position[number] for number in filled})
            positions -= filled
            used.append(call.span_id)
    gap.draft.warnings.append(_told(_wanted_text(gap), positions, used))
    last = max(gap.said)
    gap.draft.input_messages = [context.add(gap.said.get(number, _NOT_RECORDED)) for number in range(last + 1)]


def _wanted(messages: dict[int, Message]) -> set[int]:
    """Numbers that are missing, and the one whose role was dropped before its content."""
    missing = set(range(max(messages) + 1)) - messages.keys()
    return missing | {number for number, message in messages.items() if message.role is None}


def _agree(messages: dict[int, Message], others: dict[int, Message]) -> bool:
    shared = [number for number in messages if number in others]
    return bool(shared) and all(_equal(messages[number], others[number]) for number in shared)


def _equal(one: Message, other: Message) -> bool:
    return one == other or (one.role is None and one.content == other.content and not one.tool_calls)


def _wanted_text(gap: Gap) -> str:
    return "evicted_attributes: the tracer dropped the first attributes of this call (its limit is 128)"


def _told(what: str, missing: set[int], used: list[str]) -> str:
    if not missing:
        return (
            f"{what}; its first messages are copied from {', '.join(used)}, which agrees wherever both hold a message"
        )
    numbers = ", ".join(str(number) for number in sorted(missing)[:20]) + (", ..." if len(missing) > 20 else "")
    return f"{what}; messages {numbers} are in no earlier call of this agent either, so they or their roles are missing"
