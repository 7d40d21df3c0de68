"""Queues after they were made: settings, traces put in and taken out, closing, and the people assigned.

Nothing that somebody did is ever taken away: an item leaves its queue by being retired, and after every change
of how many people an item wants, the first of those who submitted count (`place_store.recount`). Each change stands in
the audit log with what it was before. All of it happens in the caller's write transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import orjson
from sqlalchemy import Connection, Row, insert, select, update

from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.queues import places as place_store
from tracejury.judging.queues import queue_store as queue
from tracejury.judging.queues import queueing
from tracejury.judging.queues.assignment import NOBODY, assignments_of
from tracejury.judging.queues.queue_store import QueueError, QueueSettings
from tracejury.judging.store import tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.people import people

_queue, _item, _lease, _assignment = tables.queue, tables.queue_item, tables.lease, tables.assignment


# ---- settings --------------------------------------------------------------------------------------------------


def settings_of(row: Row[Any]) -> QueueSettings:
    """The settings of a row of `queue.queues`."""
    settings = {one.name: getattr(row, one.name) for one in fields(QueueSettings)}
    return QueueSettings(**settings | {"hide": tuple(orjson.loads(row.hide))})


def change_queue(connection: Connection, queue_key: int, after: QueueSettings, *, by: str, now: int) -> list[str]:
    """Give a queue these settings; gives the names of those that changed. Raises `QueueError`.

    Leases that run keep their end. Another k or overlap holds for work done already: who counts is decided anew.
    """
    row = _must(connection, queue_key)
    before = settings_of(row)
    changed = [one.name for one in fields(QueueSettings) if getattr(before, one.name) != getattr(after, one.name)]
    if not changed:
        return []
    queue.must_be_free(connection, after.name, but=queue_key)
    queue.must_be_published(connection, after.guideline_version)
    values = {name: getattr(after, name) for name in changed}
    if "hide" in values:
        values["hide"] = orjson.dumps(after.hide).decode()
    connection.execute(update(_queue).where(_queue.c.queue_key == queue_key).values(values))
    if {"k", "overlap_share"}.intersection(changed):
        _want_anew(connection, queue_key, after, seed=row.seed)
    detail = {name: [getattr(before, name), getattr(after, name)] for name in changed}
    record(connection, who=by, what="queue changed", subject=after.name, detail=detail, at=now)
    return changed


def close_queue(connection: Connection, queue_key: int, *, by: str, now: int) -> None:
    """Hand nothing out any more. Whoever is at work may finish; what is submitted late is kept and counts."""
    row = _must(connection, queue_key)
    if row.closed_at is not None:
        raise QueueError(f"the queue {row.name!r} is already closed")
    _set(connection, queue_key, closed_at=now)
    record(connection, who=by, what="queue closed", subject=row.name, at=now)


def reopen_queue(connection: Connection, queue_key: int, *, by: str, now: int) -> None:
    """Hand items out again."""
    row = _must(connection, queue_key)
    if row.closed_at is None:
        raise QueueError(f"the queue {row.name!r} is open")
    _set(connection, queue_key, closed_at=None)
    record(connection, who=by, what="queue reopened", subject=row.name, at=now)


# ---- traces ----------------------------------------------------------------------------------------------------


def add_traces(connection: Connection, queue_key: int, trace_ids: Sequence[str], *, by: str, now: int) -> int:
    """Put traces in, behind those that are there; retired ones come back with their work. How many are new."""
    row = _must(connection, queue_key)
    queue.must_be_present(connection, trace_ids)
    known = {item.trace_id: item for item in _items(connection, queue_key)}
    back = [known[one].item_key for one in trace_ids if one in known and known[one].retired_at is not None]
    new = [one for one in dict.fromkeys(trace_ids) if one not in known]
    if not back and not new:
        raise QueueError("all of these traces are already in the queue")
    if any(item.is_practice for item in known.values()):
        queue.must_not_be_live(connection, trace_ids)
    connection.execute(update(_item).where(is_one_of(_item.c.item_key, back)).values(retired_at=None))
    _insert_items(connection, row, new, first=len(known), is_practice=any(item.is_practice for item in known.values()))
    _want_anew(connection, queue_key, settings_of(row), seed=row.seed, grows=True)
    detail = {"new": len(new), "back": len(back), "traces": list(trace_ids)[:100]}
    record(connection, who=by, what="traces added to queue", subject=row.name, detail=detail, at=now)
    return len(new) + len(back)


def retire_traces(connection: Connection, queue_key: int, trace_ids: Collection[str], *, by: str, now: int) -> int:
    """Take traces out: nobody is handed them any more, their labels stay. Gives how many of them had work."""
    row = _must(connection, queue_key)
    keys = [item.item_key for item in _chosen(connection, row, trace_ids)]
    connection.execute(update(_item).where(is_one_of(_item.c.item_key, keys)).values(retired_at=now))
    worked = len(set(connection.scalars(select(_lease.c.item_key).where(is_one_of(_lease.c.item_key, keys)))))
    detail = {"traces": sorted(trace_ids)[:100], "count": len(keys), "with_work": worked}
    record(connection, who=by, what="traces retired from queue", subject=row.name, detail=detail, at=now)
    return worked


# ---- people ----------------------------------------------------------------------------------------------------


def assign_queue(connection: Connection, queue_key: int, names: Iterable[str], *, by: str, now: int) -> None:
    """The queue is these people's alone; nobody: it is everyone's. Places that others hold stay theirs."""
    row = _must(connection, queue_key)
    before, after = assignments_of(connection, queue_key).queue, frozenset(names)
    _must_be_people(connection, after - before)
    _withdraw(connection, queue_key, None, before - after, now)
    _assign(connection, queue_key, None, after - before, by, now)
    if before != after:
        detail = {"from": sorted(before), "to": sorted(after)}
        record(connection, who=by, what="queue assigned", subject=row.name, detail=detail, at=now)


def assign_items(
    connection: Connection, queue_key: int, trace_ids: Collection[str], names: Collection[str], *, by: str, now: int
) -> int:
    """Keep a place in each of these items for each of these people; how many places are new. Raises `QueueError`.

    An item never has more people assigned than it wants: who has submitted it counts as one of them.
    """
    row = _must(connection, queue_key)
    items = _chosen(connection, row, trace_ids)
    _must_be_people(connection, names)
    assigned, counted = assignments_of(connection, queue_key), _people_at(connection, items, ("counted",))
    practised = {name: place_store.practised(connection, name) if row.blind else set() for name in names}
    number = 0
    for item in items:
        new = frozenset(names) - assigned.of(item.item_key)
        _must_not_be_practised(item, [name for name in sorted(new) if item.trace_id in practised[name]])
        wanting = assigned.of(item.item_key) | new | counted.get(item.item_key, NOBODY)
        if len(wanting) > item.wanted and new and not item.is_practice:
            raise QueueError(
                f"trace {item.trace_id} wants {item.wanted} and would have {len(wanting)} "
                f"({', '.join(sorted(wanting))}): raise k, or take somebody off it first"
            )
        _assign(connection, queue_key, item.item_key, new, by, now)
        number += len(new)
    _record_items(connection, row, "items assigned", items, sorted(names), number, by, now)
    return number


def unassign_items(
    connection: Connection, queue_key: int, trace_ids: Collection[str], names: Collection[str], *, by: str, now: int
) -> int:
    """Keep no place in these items for these people any more; what they did stays. How many places it were."""
    row = _must(connection, queue_key)
    items = _chosen(connection, row, trace_ids)
    assigned = assignments_of(connection, queue_key)
    gone = 0
    for item in items:
        people_off = assigned.of(item.item_key).intersection(names)
        _withdraw(connection, queue_key, item.item_key, people_off, now)
        gone += len(people_off)
    _record_items(connection, row, "items unassigned", items, sorted(names), gone, by, now)
    return gone


def share_out(connection: Connection, queue_key: int, names: Sequence[str], *, by: str, now: int) -> dict[str, int]:
    """Give every place that is still free to one of these people, evenly; how many each got.

    A free place is one that nobody has begun and that is kept for nobody. Nobody gets an item twice.
    """
    row = _must(connection, queue_key)
    names = list(dict.fromkeys(names))
    _must_be_people(connection, names)
    if not names:
        raise QueueError("nobody was chosen")
    items = [item for item in _items(connection, queue_key) if item.retired_at is None and not item.is_practice]
    assigned = assignments_of(connection, queue_key)
    met = _people_at(connection, items, (None, *place_store.FINISHED))
    aside = _people_at(connection, items, ("extra", "skipped"))  # they hold no place, and get the item no more
    for name in names:
        practised = place_store.practised(connection, name) if row.blind else set()
        for item in (one for one in items if one.trace_id in practised):
            if name not in assigned.of(item.item_key) | met.get(item.item_key, NOBODY):
                aside[item.item_key] = aside.get(item.item_key, NOBODY) | {name}
                met[item.item_key] = met.get(item.item_key, NOBODY) | {name}
    open_places = {
        item.trace_id: (
            item.wanted + len(aside.get(item.item_key, NOBODY)),
            assigned.of(item.item_key) | met.get(item.item_key, NOBODY),
        )
        for item in items
    }
    plan = queueing.deal(open_places, names, seed=row.seed)
    keys = {item.trace_id: item.item_key for item in items}
    for trace_id, shares in plan.items():
        _assign(connection, queue_key, keys[trace_id], shares, by, now)
    dealt = Counter(name for shares in plan.values() for name in shares)
    detail = {name: dealt[name] for name in names}
    record(connection, who=by, what="queue shared out", subject=row.name, detail=detail, at=now)
    return detail


def reassign(
    connection: Connection, queue_key: int, leaver: str, heirs: Sequence[str], *, by: str, now: int
) -> dict[str, int]:
    """Give every place that this person has not finished to the others, evenly; how many each got.

    Places that were kept for the person and those on which the person is at work are theirs no longer; drafts and
    everything submitted stay stored. Raises `QueueError` where somebody else cannot take a place.
    """
    row = _must(connection, queue_key)
    heirs = [name for name in dict.fromkeys(heirs) if name != leaver]
    _must_be_people(connection, heirs)
    if not heirs:
        raise QueueError("nobody was chosen to take the places")
    items = [item for item in _items(connection, queue_key) if item.retired_at is None and not item.is_practice]
    assigned = assignments_of(connection, queue_key)
    at_work = _people_at(connection, items, (None,))
    met = _people_at(connection, items, (None, *place_store.FINISHED))
    done = _people_at(connection, items, place_store.FINISHED)
    places = [
        item
        for item in items
        if leaver in assigned.of(item.item_key) | at_work.get(item.item_key, NOBODY)
        and leaver not in done.get(item.item_key, NOBODY)
    ]
    if not places:
        raise QueueError(f"{leaver} has no open place in the queue {row.name!r}")
    keys = [item.item_key for item in places]
    for key in keys:
        _withdraw(connection, queue_key, key, [leaver], now)
    open_of = (is_one_of(_lease.c.item_key, keys), _lease.c.annotator == leaver, _lease.c.outcome.is_(None))
    first = _lease.c.occasion != queue.REPEAT
    connection.execute(update(_lease).where(*open_of, first).values(outcome="expired", ended_at=now))
    place_store.recount(connection, keys)
    shares = _shares(connection, row, places, heirs, holders={
        item.item_key: assigned.of(item.item_key) | met.get(item.item_key, NOBODY) for item in places
    })  # fmt: skip
    for item_key, name in shares.items():
        _assign(connection, queue_key, item_key, [name], by, now)
    counts = Counter(shares.values())
    detail = {"from": leaver, **{name: counts[name] for name in heirs}}
    record(connection, who=by, what="open places reassigned", subject=row.name, detail=detail, at=now)
    return {name: counts[name] for name in heirs}


def _shares(
    connection: Connection, row: Row[Any], places: Sequence[Row[Any]], heirs: Sequence[str], *,
    holders: Mapping[int, Collection[str]],
) -> dict[int, str]:  # fmt: skip
    """By item the person with the fewest places so far who has not met it and could label it blind."""
    practised = {name: place_store.practised(connection, name) if row.blind else set() for name in heirs}
    counts = Counter(dict.fromkeys(heirs, 0))
    shares = {}
    for item in places:
        able = [one for one in heirs if one not in holders[item.item_key] and item.trace_id not in practised[one]]
        if not able:
            raise QueueError(f"none of {', '.join(heirs)} can take trace {item.trace_id}: choose more people")
        shares[item.item_key] = min(able, key=lambda name: (counts[name], heirs.index(name)))
        counts[shares[item.item_key]] += 1
    return shares


def _must_not_be_practised(item: Row[Any], names: Sequence[str]) -> None:
    if names and not item.is_practice:
        raise QueueError(
            f"{names[0]} practised trace {item.trace_id} and could not label it blind: choose somebody else"
        )


# ---- rows ------------------------------------------------------------------------------------------------------


def _must(connection: Connection, queue_key: int) -> Row[Any]:
    row = connection.execute(select(_queue).where(_queue.c.queue_key == queue_key).with_for_update()).one_or_none()
    if row is None:
        raise QueueError(f"there is no queue {queue_key}: reload the page")
    return row


def _set(connection: Connection, queue_key: int, **values: Any) -> None:
    connection.execute(update(_queue).where(_queue.c.queue_key == queue_key).values(values))


def _items(connection: Connection, queue_key: int) -> list[Row[Any]]:
    query = select(_item).where(_item.c.queue_key == queue_key).order_by(_item.c.position, _item.c.item_key)
    return list(connection.execute(query).all())


def _chosen(connection: Connection, row: Row[Any], trace_ids: Collection[str]) -> list[Row[Any]]:
    live = {item.trace_id: item for item in _items(connection, row.queue_key) if item.retired_at is None}
    unknown = [one for one in trace_ids if one not in live]
    if not trace_ids:
        raise QueueError("no trace was chosen")
    if unknown:
        raise QueueError(f"trace {unknown[0]} is not in the queue {row.name!r}")
    return [live[one] for one in dict.fromkeys(trace_ids)]


def _insert_items(
    connection: Connection, row: Row[Any], trace_ids: Sequence[str], *, first: int, is_practice: bool
) -> None:
    rows = [
        {"queue_key": row.queue_key, "trace_id": one, "position": place, "wanted": 1, "is_practice": is_practice}
        for place, one in enumerate(trace_ids, first)
    ]
    if rows:
        connection.execute(insert(_item), rows)


def _want_anew(
    connection: Connection, queue_key: int, settings: QueueSettings, *, seed: int, grows: bool = False
) -> None:
    """Say how many people each live item wants, and hold those that changed to it.

    Where the queue only grows, an item that wants several goes on to, whatever the share makes of it.
    """
    live = {item.trace_id: item for item in _items(connection, queue_key) if item.retired_at is None}
    now_shared = {trace_id for trace_id, item in live.items() if item.wanted > 1}
    shared = queueing.overlap(live, share=settings.overlap_share, seed=seed, now=now_shared)
    if grows:
        shared |= now_shared
    places = {trace_id: settings.k if trace_id in shared else 1 for trace_id in live}
    changed = [item for trace_id, item in live.items() if item.wanted != places[trace_id]]
    for item in changed:
        connection.execute(update(_item).where(_item.c.item_key == item.item_key).values(wanted=places[item.trace_id]))
    place_store.recount(connection, [item.item_key for item in changed if not item.is_practice])


def _people_at(
    connection: Connection, items: Sequence[Row[Any]], outcomes: Collection[str | None]
) -> dict[int, frozenset[str]]:
    """By item, the people whose place has one of these outcomes, None for those at work."""
    rows = connection.execute(
        select(_lease.c.item_key, _lease.c.annotator, _lease.c.outcome).where(
            is_one_of(_lease.c.item_key, (item.item_key for item in items)), _lease.c.occasion != queue.REPEAT
        )
    ).all()
    people: dict[int, frozenset[str]] = {}
    for row in rows:
        if row.outcome in outcomes:
            people[row.item_key] = people.get(row.item_key, NOBODY) | {row.annotator}
    return people


def _assign(
    connection: Connection, queue_key: int, item_key: int | None, names: Iterable[str], by: str, now: int
) -> None:
    rows = [
        {"queue_key": queue_key, "item_key": item_key, "annotator": name, "author": by, "created_at": now}
        for name in sorted(names)
    ]
    if rows:
        connection.execute(insert(_assignment), rows)


def _withdraw(connection: Connection, queue_key: int, item_key: int | None, names: Collection[str], now: int) -> None:
    place = _assignment.c.item_key.is_(None) if item_key is None else _assignment.c.item_key == item_key
    connection.execute(
        update(_assignment)
        .where(
            _assignment.c.queue_key == queue_key, place, is_one_of(_assignment.c.annotator, names),
            _assignment.c.withdrawn_at.is_(None),
        )
        .values(withdrawn_at=now)
    )  # fmt: skip


def _must_be_people(connection: Connection, names: Collection[str]) -> None:
    """Only active people can be given work; where nobody is known yet (sign-in off), any name will do."""
    known = people(connection)
    active = {one.name for one in known if one.active}
    unknown = sorted(set(names) - active)
    if known and unknown:
        raise QueueError(f"{unknown[0]!r} is not an active person: add or activate them under People")


def _record_items(
    connection: Connection, row: Row[Any], what: str, items: Sequence[Row[Any]], names: list[str], places: int, by: str,
    now: int,
) -> None:  # fmt: skip
    detail = {"people": names, "places": places, "traces": [item.trace_id for item in items][:100]}
    record(connection, who=by, what=what, subject=row.name, detail=detail, at=now)
