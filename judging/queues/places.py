"""Places in queues: who works on which trace next, leases that expire, and who counts once k people have.

A person's place in a queue is a lease: taken when the item is handed out, closed when they submit or skip.
"Room" of an item is what it wants less those who count and those who are at work on it. Every change happens
in the caller's write transaction, so that two people can never both be the last one wanted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    and_,
    func,
    insert,
    select,
    update,
)

from tracejury.ingest.store import write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.queues import queueing
from tracejury.judging.queues.assignment import Assignments, all_assignments, assignments_of
from tracejury.judging.queues.queue_store import FIRST, PRACTICE, REPEAT, Hidden, is_live
from tracejury.judging.store import tables
from tracejury.judging.store.locks import QUEUES

SUBMITTED = ("counted", "extra")
FINISHED = (*SUBMITTED, "skipped")
SECOND = 1_000_000
Status = Literal["open", "submitted", "skipped"]
Outcome = Literal["counted", "extra", "skipped", "expired"]
_queue, _item, _lease, _review = tables.queue, tables.queue_item, tables.lease, tables.review


@dataclass(frozen=True, kw_only=True, slots=True)
class Assigned:
    """A person's place in a queue. `outcome` is None while they are at work on it."""

    lease_key: int
    queue_key: int
    item_key: int
    trace_id: str
    annotator: str
    occasion: int
    expires_at: int
    outcome: Outcome | None
    late: bool
    blind: bool
    hide: tuple[Hidden, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """`done` and `total` count items of one person (hidden repeats among them), `team` and `team_total` places.

    `done` holds what was skipped, too: nothing is left to do on it.
    """

    done: int
    total: int
    team: int
    team_total: int
    skipped: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbours:
    """Lease keys of the places before and after; None at the ends."""

    previous: int | None
    next: int | None


# ---- handing out -----------------------------------------------------------------------------------------------


def next_item(engine: Engine, queue_key: int, annotator: str, *, now: int) -> Assigned | None:
    """The place at which this person works next: the one they hold, else a new one; None when nothing is left.

    Asking again gives the same place until it is submitted or skipped. A closed queue gives nothing new, but a
    place that is held may be finished. Raises `KeyError` for an unknown queue.
    """
    with write_transaction(engine, QUEUES) as connection:
        return take_next(connection, queue_key, annotator, now=now)


def take_next(connection: Connection, queue_key: int, annotator: str, *, now: int) -> Assigned | None:
    """As `next_item`, in the caller's write transaction."""
    queue = connection.execute(select(_queue).where(_queue.c.queue_key == queue_key).with_for_update()).one_or_none()
    if queue is None:
        raise KeyError(f"no queue {queue_key}")
    _expire(connection, queue_key, now)
    lease = connection.execute(
        _places(
            _lease.c.annotator == annotator, _item.c.queue_key == queue_key, _lease.c.outcome.is_(None), is_live
        ).limit(1)
    ).one_or_none()  # fmt: skip
    if lease is not None:
        return _assigned(lease)
    if queue.closed_at is not None:
        return None
    _credit_earlier_work(connection, queue, annotator, now)
    again = _due_repeat(connection, queue, annotator, is_end=False)
    item = None if again is not None else _free_item(connection, queue, annotator, now)
    if item is not None:
        occasion = PRACTICE if item.is_practice else FIRST
        return _take(connection, queue, item.item_key, annotator, occasion, now)
    again = again if again is not None else _due_repeat(connection, queue, annotator, is_end=True)
    return None if again is None else _take(connection, queue, again, annotator, REPEAT, now)


def place_by_key(connection: Connection, lease_key: int, annotator: str) -> Assigned | None:
    """This person's place of that key; None where it is nobody's or someone else's."""
    row = connection.execute(_places(_lease.c.lease_key == lease_key, _lease.c.annotator == annotator)).one_or_none()
    return None if row is None else _assigned(row)


def place_of(connection: Connection, queue_key: int, annotator: str, trace_id: str) -> Assigned | None:
    """This person's place on a trace in a queue: the open one, else the one met last."""
    rows = connection.execute(
        _places(_lease.c.annotator == annotator, _item.c.queue_key == queue_key, _item.c.trace_id == trace_id)
    ).all()
    best = max(rows, key=lambda row: (row.outcome is None, row.lease_key), default=None)
    return None if best is None else _assigned(best)


def neighbours(connection: Connection, place: Assigned) -> Neighbours:
    """The places before and after in the order in which this person met them.

    While a hidden repeat is open its first time is left out: nobody copies from themselves.
    """
    rows = connection.execute(
        _places(_lease.c.annotator == place.annotator, _item.c.queue_key == place.queue_key)
    ).all()
    open_repeats = {row.item_key for row in rows if row.occasion == REPEAT and row.outcome is None}
    keys = [
        row.lease_key
        for row in rows
        if not (row.occasion == FIRST and row.item_key in open_repeats)
        and (row.retired_at is None or row.outcome in FINISHED)
    ]
    if place.lease_key not in keys:
        return Neighbours(previous=None, next=None)
    at = keys.index(place.lease_key)
    return Neighbours(previous=keys[at - 1] if at > 0 else None, next=keys[at + 1] if at + 1 < len(keys) else None)


def occasion_of(connection: Connection, annotator: str, trace_id: str) -> int:
    """The occasion on which a person who opens this trace works: an open repeat or practice goes first."""
    rows = connection.execute(
        _places(_lease.c.annotator == annotator, _item.c.trace_id == trace_id, _lease.c.outcome.is_(None))
    ).all()
    return max((row.occasion for row in rows), default=FIRST)


def due_at(connection: Connection, queue_key: int) -> int | None:
    """When the queue is wanted, in microseconds."""
    due: int | None = connection.scalar(select(_queue.c.due_at).where(_queue.c.queue_key == queue_key))
    return due


def pinned_guideline(connection: Connection, *, annotator: str, trace_id: str, occasion: int) -> int | None:
    """The version that the queue asks for in which this person met the trace last; None: it asks for the newest."""
    version: int | None = connection.scalar(
        select(_queue.c.guideline_version)
        .join(_item, _item.c.queue_key == _queue.c.queue_key)
        .join(_lease, _lease.c.item_key == _item.c.item_key)
        .where(_lease.c.annotator == annotator, _lease.c.occasion == occasion, _item.c.trace_id == trace_id)
        .order_by(_lease.c.taken_at.desc(), _lease.c.lease_key.desc())
        .limit(1)
    )
    return version


def progress(connection: Connection, queue_key: int, annotator: str) -> Progress:
    """How far one person and the team are in a queue."""
    queue = connection.execute(select(_queue).where(_queue.c.queue_key == queue_key)).one_or_none()
    if queue is None:
        raise KeyError(f"no queue {queue_key}")
    items = connection.execute(select(_item).where(_item.c.queue_key == queue_key, is_live)).all()
    leases = [lease for lease in _leases_of(connection, queue_key) if lease.retired_at is None]
    counted = Counter(lease.item_key for lease in leases if lease.outcome == "counted" and lease.occasion != REPEAT)
    own = [lease for lease in leases if lease.annotator == annotator]
    done = sum(1 for lease in own if lease.outcome in FINISHED)
    return Progress(
        done=done,
        total=done + _left_to(connection, queue, annotator, leases, items, counted),
        team=sum(min(counted[item.item_key], item.wanted) for item in items if not item.is_practice),
        team_total=sum(item.wanted for item in items if not item.is_practice),
        skipped=sum(1 for lease in own if lease.outcome == "skipped"),
    )


def active_times(connection: Connection, queue_key: int, annotator: str) -> list[int]:
    """Milliseconds at work on each trace of the queue that this person has submitted and that was timed."""
    here = select(_item.c.trace_id).where(_item.c.queue_key == queue_key)
    own = (_review.c.annotator == annotator, _review.c.trace_id.in_(here))
    newest = select(func.max(_review.c.row_key)).where(*own).group_by(_review.c.trace_id, _review.c.occasion)
    timed = (_review.c.row_key.in_(newest), _review.c.status == "submitted", _review.c.active_ms > 0)
    return list(connection.scalars(select(_review.c.active_ms).where(*timed).order_by(_review.c.active_ms)))


def _left_to(
    connection: Connection,
    queue: Row[Any],
    annotator: str,
    leases: Sequence[Row[Any]],
    items: Sequence[Row[Any]],
    counted: Counter[int],
) -> int:
    """How many places this person still has before them, hidden repeats (as planned) among them."""
    own = [lease for lease in leases if lease.annotator == annotator]
    first = {lease.item_key: lease for lease in own if lease.occasion != REPEAT}
    at_work = sum(1 for lease in own if lease.outcome is None)
    if queue.closed_at is not None:
        return at_work
    assigned = assignments_of(connection, queue.queue_key)
    begun, not_given = _begun(leases), left_out(connection, queue.queue_key, annotator)
    free: int = sum(
        _has_room(item, counted[item.item_key], annotator, assigned, begun[item.item_key])
        for item in items
        if (item.item_key not in first or first[item.item_key].outcome == "expired") and item.trace_id not in not_given
    )
    if free == 0 and at_work == 0:
        return int(_due_repeat(connection, queue, annotator, is_end=True) is not None)
    usable = sum(1 for lease in first.values() if lease.outcome in ("counted", "extra", None)) + free
    planned = queueing.round_half_up(queue.repeat_share * usable)
    repeated = sum(1 for lease in own if lease.occasion == REPEAT)
    return at_work + free + max(0, planned - repeated)


def practised(connection: Connection, annotator: str) -> set[str]:
    """The traces that this person has met in practice."""
    return set(connection.scalars(_traces_met(_lease.c.annotator == annotator, _lease.c.occasion == PRACTICE)))


def left_out(connection: Connection, queue_key: int, annotator: str) -> set[str]:
    """The traces of a blind queue that this person is not given, since practice showed them.

    What is assigned to the person is given all the same.
    """
    assigned = assignments_of(connection, queue_key)
    query = (
        select(_item)
        .join(_queue, _queue.c.queue_key == _item.c.queue_key)
        .where(_item.c.queue_key == queue_key, _queue.c.blind, is_live, _item.c.is_practice.is_(False))
    )
    items = {row.trace_id: row.item_key for row in connection.execute(query)}
    return {
        trace_id
        for trace_id in practised(connection, annotator) & items.keys()
        if annotator not in assigned.of(items[trace_id])
    }


def _traces_met(*conditions: ColumnElement[bool]) -> Select[tuple[str]]:
    return select(_item.c.trace_id).join(_lease, _lease.c.item_key == _item.c.item_key).where(*conditions).distinct()


# ---- what a person's work does to their places -----------------------------------------------------------------


def follow_review(
    connection: Connection, *, annotator: str, trace_id: str, occasion: int, status: Status, now: int
) -> int | None:
    """Close or reopen this person's places on the trace as their review says; the key of the item, if there is one.

    Called in the transaction that stores the review. A trace may stand in several queues: one piece of work
    counts in each of them, also in one that has not handed it out to this person, if it would.
    """
    first: int | None = None
    for item in _items_of(connection, trace_id, occasion):
        lease = _lease_of(connection, item.item_key, annotator, occasion)
        if lease is None and (
            status != "submitted" or occasion == REPEAT or not _is_open_to(connection, item, annotator)
        ):
            continue
        if lease is None:
            _insert_lease(connection, item.item_key, annotator, occasion, now, now)
        match status:
            case "submitted":
                submit(connection, item.item_key, annotator, occasion, now=now)
            case "skipped":
                skip(connection, item.item_key, annotator, occasion, now=now)
            case "open":
                reopen(connection, item.item_key, annotator, occasion, now=now)
        first = item.item_key if first is None else first
    return first


def submit(connection: Connection, item_key: int, annotator: str, occasion: int, *, now: int) -> Outcome:
    """Close a place: `counted` while fewer people count than the item wants, else `extra`. Kept either way.

    Submitting again changes nothing. After the lease's end the place is marked `late`. Raises `KeyError`
    where this person has no such place.
    """
    item = connection.execute(select(_item).where(_item.c.item_key == item_key).with_for_update()).one()
    lease = _must_lease(connection, item_key, annotator, occasion)
    if lease.outcome in {"counted", "extra"}:
        return "counted" if lease.outcome == "counted" else "extra"
    others = connection.scalar(
        select(func.count()).where(
            _lease.c.item_key == item_key, _lease.c.occasion == occasion, _lease.c.outcome == "counted"
        )
    )
    has_room = occasion != FIRST or int(others or 0) < item.wanted
    outcome: Outcome = "counted" if has_room else "extra"
    _close(connection, lease.lease_key, outcome, now, late=lease.late or now > lease.expires_at)
    return outcome


def skip(connection: Connection, item_key: int, annotator: str, occasion: int, *, now: int) -> None:
    """Give a place up; it is not handed to this person again. The reason stands at the review."""
    lease = _must_lease(connection, item_key, annotator, occasion)
    _close(connection, lease.lease_key, "skipped", now, late=lease.late)
    recount(connection, [item_key])


def recount(connection: Connection, item_keys: Iterable[int]) -> int:
    """Hold these items to their rule: of those who submitted, the first `wanted` count, the others are extra.

    A place that somebody has reopened is kept for them. Gives how many places changed sides.
    """
    changed = 0
    for item in connection.execute(select(_item).where(is_one_of(_item.c.item_key, item_keys))).all():
        leases = connection.execute(
            select(_lease)
            .where(_lease.c.item_key == item.item_key, _lease.c.occasion == FIRST, _lease.c.outcome.in_(SUBMITTED))
            .order_by(_lease.c.ended_at, _lease.c.lease_key)
        ).all()
        now_counted = sum(lease.outcome == "counted" for lease in leases)
        room = min(item.wanted, max(now_counted, item.wanted - _reopened(connection, item)))
        counted = leases[:room]
        for lease in leases:
            outcome: Outcome = "counted" if lease in counted else "extra"
            if lease.outcome != outcome:
                connection.execute(update(_lease).where(_lease.c.lease_key == lease.lease_key).values(outcome=outcome))
                changed += 1
    return changed


def reopen(connection: Connection, item_key: int, annotator: str, occasion: int, *, now: int) -> None:
    """A person is at work on a finished item again: the place is theirs for another lease."""
    lease = _must_lease(connection, item_key, annotator, occasion)
    if lease.outcome in FINISHED:
        _renew(connection, lease.lease_key, item_key, now)


def touch(connection: Connection, *, annotator: str, trace_id: str, occasion: int, now: int) -> None:
    """Whoever works keeps their places: a running lease on the trace is put off. An expired one is not revived."""
    own = (
        select(_lease.c.lease_key, _queue.c.lease_s)
        .join(_item, _item.c.item_key == _lease.c.item_key)
        .join(_queue, _queue.c.queue_key == _item.c.queue_key)
        .where(
            _lease.c.annotator == annotator,
            _lease.c.occasion == occasion,
            _item.c.trace_id == trace_id,
            _lease.c.outcome.is_(None),
            _lease.c.expires_at > now,
        )
    )
    for key, lease_s in connection.execute(own).all():
        connection.execute(
            update(_lease)
            .where(_lease.c.lease_key == key, _lease.c.outcome.is_(None))
            .values(expires_at=now + lease_s * SECOND)
        )


# ---- what the administrator sees -------------------------------------------------------------------------------


def assignments(connection: Connection, queue_key: int, *, now: int) -> list[tuple[str, int, str, int, str, bool]]:
    """Every place of a queue: trace_id, wanted, annotator, occasion, state, late. Retired items are left out.

    The state is the outcome, or `at work`, or `expired` where a lease ran out and nobody has asked since.
    Items that nobody has met come with an empty annotator and the state `open`.
    """
    rows = connection.execute(
        select(
            _item.c.trace_id, _item.c.wanted, _lease.c.annotator, _lease.c.occasion, _lease.c.outcome,
            _lease.c.expires_at, _lease.c.late,
        )
        .outerjoin(_lease, _lease.c.item_key == _item.c.item_key)
        .where(_item.c.queue_key == queue_key, is_live)
        .order_by(_item.c.position, _lease.c.lease_key)
    ).all()  # fmt: skip
    return [
        (row.trace_id, row.wanted, "", FIRST, "open", False)
        if row.annotator is None
        else (row.trace_id, row.wanted, row.annotator, row.occasion, _state(row, now), row.late)
        for row in rows
    ]


def traces_of(connection: Connection, queue_key: int) -> list[str]:
    """The traces in a queue, retired ones left out."""
    query = select(_item.c.trace_id).where(_item.c.queue_key == queue_key, is_live).order_by(_item.c.position)
    return list(connection.scalars(query))


def assigned_names(connection: Connection, queue_key: int) -> dict[str, list[str]]:
    """Who is assigned to single items of a queue, by trace."""
    people = assignments_of(connection, queue_key).items
    rows = connection.execute(
        select(_item.c.item_key, _item.c.trace_id).where(is_one_of(_item.c.item_key, people))
    ).all()
    return {row.trace_id: sorted(people[row.item_key]) for row in rows}


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """One person in one queue: items done, at work on, and kept for them that they have not begun."""

    queue_key: int
    annotator: str
    done: int
    at_work: int
    waiting: int


def workload(connection: Connection, *, now: int) -> list[Load]:
    """Everyone who has or is meant to have work in a queue, by queue and name; hidden repeats are left out."""
    rows = connection.execute(
        select(_item.c.queue_key, _lease)
        .join(_item, _item.c.item_key == _lease.c.item_key)
        .where(is_live, _lease.c.occasion != REPEAT)
    ).all()
    live = set(connection.scalars(select(_item.c.item_key).where(is_live)))
    begun, done, at_work = _begun(rows), Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    waiting = Counter[tuple[int, str]]()
    for row in rows:
        done[row.queue_key, row.annotator] += row.outcome in FINISHED
        at_work[row.queue_key, row.annotator] += _state(row, now) == "at work"
    for queue_key, assigned in all_assignments(connection).items():
        for item_key, people in assigned.items.items():
            for name in people - begun.get(item_key, set()) if item_key in live else ():
                waiting[queue_key, name] += 1
        waiting.update(dict.fromkeys(((queue_key, name) for name in assigned.queue), 0))
    keys = sorted(done.keys() | at_work.keys() | waiting.keys())
    return [
        Load(queue_key=key, annotator=who, done=done[key, who], at_work=at_work[key, who], waiting=waiting[key, who])
        for key, who in keys
    ]


def _state(lease: Any, now: int) -> str:
    if lease.outcome is not None:
        return str(lease.outcome)
    return "at work" if lease.expires_at > now else "expired"


def _places(*conditions: ColumnElement[bool]) -> Select[Any]:
    return (
        select(
            _lease, _item.c.queue_key, _item.c.trace_id, _item.c.is_practice, _item.c.wanted, _item.c.retired_at,
            _queue.c.blind, _queue.c.hide,
        )
        .join(_item, _item.c.item_key == _lease.c.item_key)
        .join(_queue, _queue.c.queue_key == _item.c.queue_key)
        .where(*conditions)
        .order_by(_lease.c.lease_key)
    )  # fmt: skip


def _assigned(row: Row[Any]) -> Assigned:
    return Assigned(
        lease_key=row.lease_key,
        queue_key=row.queue_key,
        item_key=row.item_key,
        trace_id=row.trace_id,
        annotator=row.annotator,
        occasion=row.occasion,
        expires_at=row.expires_at,
        outcome=row.outcome,
        late=row.late,
        blind=row.blind,
        hide=tuple(orjson.loads(row.hide)),
    )


def _expire(connection: Connection, queue_key: int, now: int) -> None:
    """End the leases that ran out. Where one had been reopened, the next who submitted counts instead."""
    items = select(_item.c.item_key).where(_item.c.queue_key == queue_key)
    over = (_lease.c.item_key.in_(items), _lease.c.outcome.is_(None), _lease.c.expires_at <= now)
    touched = set(connection.scalars(select(_lease.c.item_key).where(*over)))
    if touched:
        connection.execute(update(_lease).where(*over).values(outcome="expired", ended_at=_lease.c.expires_at))
        recount(connection, touched)


def _leases_of(connection: Connection, queue_key: int) -> list[Row[Any]]:
    return list(connection.execute(_places(_item.c.queue_key == queue_key)).all())


def _begun(leases: Iterable[Row[Any]]) -> dict[int, set[str]]:
    """By item, the people who have finished it or are at work on it: no place is kept for them any more."""
    begun: dict[int, set[str]] = defaultdict(set)
    for lease in leases:
        if lease.occasion != REPEAT and lease.outcome != "expired":
            begun[lease.item_key].add(lease.annotator)
    return begun


def _has_room(item: Row[Any], count: int, annotator: str, assigned: Assignments, begun: Collection[str]) -> bool:
    if not assigned.may_take(annotator, item.item_key):
        return False
    return bool(item.is_practice or count + assigned.kept_from(annotator, item.item_key, begun) < item.wanted)


def _free_item(connection: Connection, queue: Row[Any], annotator: str, now: int) -> Row[Any] | None:
    """The first item in this person's order that has room; one they let expire goes first, then those assigned.

    What practice showed them is left out; traces of which they have seen judges or others come last.
    """
    items = {
        row.trace_id: row
        for row in connection.execute(select(_item).where(_item.c.queue_key == queue.queue_key, is_live)).all()
    }
    assigned = assignments_of(connection, queue.queue_key)
    leases = [lease for lease in _leases_of(connection, queue.queue_key) if lease.occasion != REPEAT]
    begun = _begun(leases)
    counts = Counter(
        lease.item_key
        for lease in leases
        if lease.outcome == "counted" or (lease.outcome is None and lease.expires_at > now)
    )
    own_outcomes = {lease.item_key: lease.outcome for lease in leases if lease.annotator == annotator}
    not_given = left_out(connection, queue.queue_key, annotator)
    seen = set(connection.scalars(select(tables.seen.c.trace_id).where(tables.seen.c.annotator == annotator)))
    free = [
        item
        for item in (items[trace_id] for trace_id in queueing.order(items, seed=queue.seed, person=annotator))
        if own_outcomes.get(item.item_key, "expired") == "expired"
        and item.trace_id not in not_given
        and _has_room(item, counts[item.item_key], annotator, assigned, begun[item.item_key])
    ]
    free.sort(
        key=lambda item: (
            item.item_key not in own_outcomes,
            annotator not in assigned.of(item.item_key),
            item.trace_id in seen,
        )
    )
    return free[0] if free else None


def _due_repeat(connection: Connection, queue: Row[Any], annotator: str, *, is_end: bool) -> int | None:
    """The item that this person is to meet a second time now. A repeat that expired is taken up again."""
    rows = connection.execute(
        _places(
            _lease.c.annotator == annotator, _item.c.queue_key == queue.queue_key, _item.c.is_practice.is_(False),
            is_live,
        ).order_by(None).order_by(_lease.c.ended_at, _lease.c.lease_key)
    ).all()  # fmt: skip
    items = {row.trace_id: row.item_key for row in rows}
    expired = [row.item_key for row in rows if row.occasion == REPEAT and row.outcome == "expired"]
    if expired:
        return int(expired[0])
    again = queueing.next_repeat(
        [row.trace_id for row in rows if row.occasion == FIRST and row.outcome in ("counted", "extra")],
        [row.trace_id for row in rows if row.occasion == REPEAT],
        share=queue.repeat_share,
        seed=queue.seed,
        person=annotator,
        unfit=_revealed(connection, annotator),
        is_end=is_end,
    )
    return None if again is None else items[again]


def _revealed(connection: Connection, annotator: str) -> set[str]:
    return set(
        connection.scalars(
            select(_review.c.trace_id).where(_review.c.annotator == annotator, _review.c.revealed.is_(True))
        )
    )


def _credit_earlier_work(connection: Connection, queue: Row[Any], annotator: str, now: int) -> None:
    """What this person submitted before the queue came to it counts: nobody labels the same trace twice unasked."""
    newest = (
        select(func.max(_review.c.row_key))
        .where(_review.c.annotator == annotator, _review.c.occasion == FIRST)
        .group_by(_review.c.trace_id)
    )
    met = select(_lease.c.item_key).where(_lease.c.annotator == annotator, _lease.c.occasion == FIRST)
    keys = connection.scalars(
        select(_item.c.item_key)
        .join(_review, _review.c.trace_id == _item.c.trace_id)
        .where(
            _item.c.queue_key == queue.queue_key,
            _item.c.is_practice.is_(False),
            is_live,
            _item.c.item_key.not_in(met),
            _review.c.row_key.in_(newest),
            _review.c.status == "submitted",
        )
        .order_by(_item.c.item_key)
    ).all()
    assigned = assignments_of(connection, queue.queue_key)
    for item_key in (key for key in keys if assigned.may_take(annotator, key)):
        _insert_lease(connection, item_key, annotator, FIRST, now, now)
        submit(connection, item_key, annotator, FIRST, now=now)


def _take(connection: Connection, queue: Row[Any], item_key: int, annotator: str, occasion: int, now: int) -> Assigned:
    lease = _lease_of(connection, item_key, annotator, occasion)
    if lease is None:
        _insert_lease(connection, item_key, annotator, occasion, now, now + queue.lease_s * SECOND)
    else:
        _renew(connection, lease.lease_key, item_key, now)
    row = connection.execute(
        _places(_lease.c.item_key == item_key, _lease.c.annotator == annotator, _lease.c.occasion == occasion)
    ).one()
    return _assigned(row)


def _insert_lease(
    connection: Connection, item_key: int, annotator: str, occasion: int, now: int, expires_at: int
) -> None:
    connection.execute(
        insert(_lease).values(
            item_key=item_key,
            annotator=annotator,
            occasion=occasion,
            taken_at=now,
            expires_at=expires_at,
            late=False,
        )
    )


def _renew(connection: Connection, lease_key: int, item_key: int, now: int) -> None:
    lease_s = connection.scalar(
        select(_queue.c.lease_s)
        .join(_item, _item.c.queue_key == _queue.c.queue_key)
        .where(_item.c.item_key == item_key)
    )
    connection.execute(
        update(_lease)
        .where(_lease.c.lease_key == lease_key)
        .values(outcome=None, ended_at=None, taken_at=now, expires_at=now + int(lease_s or 0) * SECOND)
    )


def _close(connection: Connection, lease_key: int, outcome: Outcome, now: int, *, late: bool) -> None:
    connection.execute(
        update(_lease).where(_lease.c.lease_key == lease_key).values(outcome=outcome, ended_at=now, late=late)
    )


def _reopened(connection: Connection, item: Row[Any]) -> int:
    """How many people have taken a finished place of the item up again: it is still theirs."""
    submitted = select(_review.c.annotator).where(
        _review.c.trace_id == item.trace_id, _review.c.occasion == FIRST, _review.c.status == "submitted"
    )
    query = select(func.count()).where(
        _lease.c.item_key == item.item_key,
        _lease.c.occasion == FIRST,
        _lease.c.outcome.is_(None),
        _lease.c.annotator.in_(submitted),
    )
    return int(connection.scalar(query) or 0)


def _is_open_to(connection: Connection, item: Row[Any], annotator: str) -> bool:
    """Whether work of this person that the queue has not handed out counts at this item."""
    closed_at = connection.scalar(select(_queue.c.closed_at).where(_queue.c.queue_key == item.queue_key))
    is_open = item.retired_at is None and closed_at is None
    return is_open and assignments_of(connection, item.queue_key).may_take(annotator, item.item_key)


def _items_of(connection: Connection, trace_id: str, occasion: int) -> list[Row[Any]]:
    is_practice = _item.c.is_practice.is_(occasion == PRACTICE)
    query = select(_item).where(and_(_item.c.trace_id == trace_id, is_practice)).order_by(_item.c.item_key)
    return list(connection.execute(query).all())


def _lease_of(connection: Connection, item_key: int, annotator: str, occasion: int) -> Row[Any] | None:
    return connection.execute(
        select(_lease).where(
            _lease.c.item_key == item_key, _lease.c.annotator == annotator, _lease.c.occasion == occasion
        )
    ).one_or_none()


def _must_lease(connection: Connection, item_key: int, annotator: str, occasion: int) -> Row[Any]:
    lease = _lease_of(connection, item_key, annotator, occasion)
    if lease is None:
        raise KeyError(f"{annotator} has no place at item {item_key} (occasion {occasion})")
    return lease
