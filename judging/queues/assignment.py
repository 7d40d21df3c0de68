"""Who is meant to do what: people assigned to a whole queue, and to single items of it.

A queue that nobody is assigned to is everyone's; else only its people are handed its items. Whoever is assigned
to an item has a place kept there until they have begun; the places left over are anyone's in the queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from tracejury.judging.store import tables

_table = tables.assignment
NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Assignments:
    """What holds in one queue: the people of the whole queue, and those of single items."""

    queue: frozenset[str] = NOBODY
    items: Mapping[int, frozenset[str]] = field(default_factory=dict)

    def of(self, item_key: int) -> frozenset[str]:
        """The people of one item."""
        return self.items.get(item_key, NOBODY)

    def may_take(self, annotator: str, item_key: int) -> bool:
        """Whether this person may be handed the item at all."""
        return not self.queue or annotator in self.queue or annotator in self.of(item_key)

    def concerns(self, annotator: str) -> bool:
        """Whether there is anything in the queue for this person."""
        return not self.queue or annotator in self.queue or any(annotator in people for people in self.items.values())

    def kept_from(self, annotator: str, item_key: int, begun: Collection[str]) -> int:
        """Places of the item that this person cannot have: those of the people assigned who have not begun."""
        people = self.of(item_key)
        return 0 if annotator in people else len(people.difference(begun))


def assignments_of(connection: Connection, queue_key: int) -> Assignments:
    """What holds in a queue now."""
    return all_assignments(connection, queue_key).get(queue_key, Assignments())


def all_assignments(connection: Connection, queue_key: int | None = None) -> dict[int, Assignments]:
    """What holds now, by queue; queues that are everyone's are left out."""
    query = select(_table.c.queue_key, _table.c.item_key, _table.c.annotator).where(_table.c.withdrawn_at.is_(None))
    if queue_key is not None:
        query = query.where(_table.c.queue_key == queue_key)
    people: dict[int, set[str]] = defaultdict(set)
    items: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for key, item_key, annotator in connection.execute(query):
        (people[key] if item_key is None else items[key][item_key]).add(annotator)
    return {
        key: Assignments(
            queue=frozenset(people.get(key, ())),
            items={item: frozenset(names) for item, names in items.get(key, {}).items()},
        )
        for key in people.keys() | items.keys()
    }
