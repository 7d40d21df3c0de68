"""An hf file: no log of the agent, only app events; rows are the execution, its turns, tool calls and events."""

from __future__ import annotations

from tracejury.ingest.formats.gaia2.export import Event, Export
from tracejury.ingest.formats.gaia2.oracle import matched_ids
from tracejury.ingest.formats.gaia2.rows import Rows, event_draft, tool_draft
from tracejury.ingest.formats.gaia2.values import text
from tracejury.ingest.trace import Json, SpanDraft


def replay_events(export: Export, rows: Rows) -> None:
    """Every completed event but the checks of conditions as a row, in the order of the file."""
    matched = matched_ids(export)
    for number, event in enumerate(export.completed):
        if event.is_condition:
            continue
        draft = completed_draft(event, agent=rows.main_agent, matched=matched, number=number)
        if draft.kind == "TOOL":
            rows.add(draft, parent=rows.open_turn())
        else:
            rows.add_event(draft, opens=note_asked(event, rows))
        if draft.kind == "TOOL" and event.is_message_to_user and not event.exception:
            rows.end_turn(text(event.args.get("content")))


def completed_draft(event: Event, *, agent: str | None, matched: frozenset[str], number: int) -> SpanDraft:
    """One completed event as a row: a tool call of the agent, or an event of user or environment."""
    span_id = event.event_id or f"event-{number}"
    if event.event_type != "AGENT":
        return event_draft(event, span_id)
    draft = tool_draft(event, span_id, agent=agent)
    if event.event_id in matched:
        draft.attributes["oracle_match"] = event.event_id
    return draft


def note_asked(event: Event, rows: Rows) -> bool:
    """Whether the event is the user's (tutorials call a message of the user ENV); what was asked is noted."""
    content = event.args.get("content")
    if event.is_message_to_agent and isinstance(content, str):
        rows.asked.append(content)
    return event.event_type == "USER" or event.is_message_to_agent


def condition_checks(export: Export) -> dict[str, Json]:
    """How many checks of conditions were left out, and the ids of those that came true: turns depend on them."""
    checks = [event for event in export.completed if event.is_condition]
    true: list[Json] = [event.event_id for event in checks if event.return_value == "True" and event.event_id]
    return {"checks": len(checks), "true": true} if checks else {}
