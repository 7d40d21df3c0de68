"""What a GAIA2 scenario expected the agent to do, and which of it the judge is known to have matched."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tracejury.ingest.formats.gaia2.export import Event, Export
from tracejury.ingest.formats.gaia2.values import without_empty
from tracejury.ingest.trace import ExpectedEvent, Json

_CONDITION = re.compile(r"condition_turn_(\d{1,6})\b")


def expected_events(export: Export) -> tuple[ExpectedEvent, ...]:
    """The oracle events of the plan.

    ARE renames an agent event to the oracle event it matched, in every judged turn but the last; so an oracle id
    among the agent's completed events means matched, and its absence means nothing (None, never False). In an
    oracle execution no agent was judged, and all are None.
    """
    turns = turn_of_events(export.planned)
    matched = matched_ids(export)
    return tuple(
        ExpectedEvent(
            event_id=event.event_id or f"oracle-{number}",
            app=event.app,
            function=event.function,
            args=dict(event.args),
            relative_time=event.relative_time,
            event_time=event.event_time,
            comparator=event.comparator,
            depends_on=event.depends_on,
            turn=turns.get(event.event_id or ""),
            matched=True if event.event_id in matched else None,
        )
        for number, event in enumerate(export.oracle)
    )


def matched_ids(export: Export) -> frozenset[str]:
    """Oracle ids that agent events bear: the judge's renaming."""
    if export.main_agent is None:
        return frozenset()
    oracle = {event.event_id for event in export.oracle}
    return frozenset(
        event.event_id
        for event in export.completed
        if event.event_id and event.event_id in oracle and event.event_type == "AGENT"
    )


def oracle_details(export: Export) -> list[Json]:
    """What an oracle event says beside the columns of `ExpectedEvent`: types of arguments, anything unusual."""
    return [
        without_empty(
            {
                "event_id": event.event_id,
                "class_name": event.class_name,
                "event_type": event.event_type,
                "operation_type": event.operation_type,
                "action_id": event.action_id,
                "arg_types": without_empty(dict(event.arg_types)),
                **event.rest,
            }
        )
        for event in export.oracle
    ]


def turn_of_events(planned: tuple[Event, ...]) -> dict[str, int]:
    """The turn of each planned event, by its dependencies.

    A turn begins with what waits for `condition_turn_<k>`, or for a message of the agent to the user.
    """
    by_id = {event.event_id: event for event in planned if event.event_id}
    turns: dict[str, int] = {}
    for start in by_id:
        stack = [start]
        while stack:
            here = stack[-1]
            waiting = [d for d in by_id[here].depends_on if d in by_id and d not in turns and d not in stack]
            if waiting and here not in turns:
                stack.append(waiting[0])
                continue
            stack.pop()
            turns.setdefault(here, _turn(by_id[here], by_id, turns))
    return turns


def _turn(event: Event, by_id: Mapping[str, Event], turns: Mapping[str, int]) -> int:
    earlier = [0]
    for dependency in event.depends_on:
        if condition := _CONDITION.match(dependency):
            earlier.append(int(condition.group(1)))
        elif dependency in by_id:
            ends_turn = by_id[dependency].is_oracle and by_id[dependency].is_message_to_user
            earlier.append(turns.get(dependency, 0) + ends_turn)
    return max(earlier)
