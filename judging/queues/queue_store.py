"""Queues: which traces one holds, how they are drawn, what it asks of people, and what may be made.

Who gets which of them stands in `judging.queues.places`, what is changed later in `judging.queues.queue_changes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    case,
    func,
    insert,
    or_,
    select,
)

from tracejury.ingest.store import schema
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.queues import queueing, strategies
from tracejury.judging.queues.assignment import Assignments, all_assignments
from tracejury.judging.queues.strategies import Stratum
from tracejury.judging.queues.strategies import judge_spread as judge_spread
from tracejury.judging.store import tables
from tracejury.judging.store.audit import record

FIRST, REPEAT, PRACTICE = 0, 1, 2
"""The occasions of a person's work on a trace: in earnest, the hidden repeat, practice."""

Hidden = Literal["agent", "model"]
Sampling = Literal["all", "random", "stratified", "disputed", "predicted", "coverage", "hand"]
_queue, _item, _lease, _review = tables.queue, tables.queue_item, tables.lease, tables.review
is_live = _item.c.retired_at.is_(None)


class QueueError(ValueError):
    """A queue that cannot be made; the message says why."""


@dataclass(frozen=True, kw_only=True)
class TraceFilter:
    """Which traces a queue takes. Empty and None mean all; `search` looks into name and goal.

    `untouched` leaves out traces that somebody has submitted. Of the rest `count` are taken as `sampling` says
    (`draw_traces`); `stratum` is what a stratified sample is drawn by. Sampling by `hand` takes `trace_ids` alone, in
    their order.
    """

    trace_ids: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    search: str = ""
    with_errors: bool = False
    min_spans: int = 0
    max_spans: int | None = None
    untouched: bool = False
    sampling: Sampling = "all"
    stratum: Stratum = "format"
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    """How a queue works, as far as it may be changed; `overlap_share` of the items want `k` people, the others one.

    People must have read `guideline_version` (None: the newest). `due_at` is told, it stops nobody. Of practice,
    `answers_by` names whose labels are right (None: the adjudicated ones, else the author's). A queue with `after_key`
    opens to who has reached `pass_mark` percent of the points of that practice queue.
    """

    name: str
    k: int = 1
    overlap_share: float = 1.0
    repeat_share: float = 0.0
    blind: bool = True
    lease_s: int = 4 * 3600
    hide: tuple[Hidden, ...] = ()
    guideline_version: int | None = None
    due_at: int | None = None
    answers_by: str | None = None
    after_key: int | None = None
    pass_mark: int | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise QueueError("a queue needs a name")
        if self.k < 1:
            raise QueueError(f"k is {self.k}: an item wants at least one person")
        for title, share in (("overlap", self.overlap_share), ("repeats", self.repeat_share)):
            if not 0 <= share <= 1:
                raise QueueError(f"the share of {title} is {share}: it lies between 0 and 1")
        if self.pass_mark is not None and not 0 <= self.pass_mark <= 100:
            raise QueueError(f"the pass mark is {self.pass_mark} %: it lies between 0 and 100")
        if self.lease_s < 60:
            raise QueueError(f"a lease of {self.lease_s} s is too short to label a trace: give 60 s or more")


@dataclass(frozen=True, kw_only=True)
class QueueSpec(QueueSettings):
    """A queue to be made. Seed and kind stay as they are: another order would be another queue."""

    author: str
    seed: int = 1
    practice: bool = False
    chosen_by: TraceFilter = field(default_factory=TraceFilter)


# ---- making queues ---------------------------------------------------------------------------------------------


def find_traces(connection: Connection, chosen_by: TraceFilter, *, seed: int = 1) -> list[str]:
    """The traces that a filter takes, in order of ingestion."""
    return list(draw_traces(connection, chosen_by, seed=seed))


def draw_traces(connection: Connection, chosen_by: TraceFilter, *, seed: int = 1) -> dict[str, float | None]:
    """The traces that a filter takes, in order of ingestion, each with the chance with which it was drawn.

    The chance is None where there is none: the first traces of a list, traces named one by one, and a draw from those
    that are left once others were submitted, whose chances depend on the earlier draw. Traces chosen by hand come as
    they are named, unknown ones too: `make_queue` and `add_traces` refuse these.
    """
    if chosen_by.sampling == "hand":
        return dict.fromkeys(chosen_by.trace_ids)
    rows = [row for row in connection.execute(_matching(chosen_by)).all() if _has_one(row, chosen_by)]
    every = len(rows)
    if chosen_by.untouched:
        touched = set(connection.scalars(select(_review.c.trace_id).where(_review.c.status == "submitted")))
        rows = [row for row in rows if row.trace_id not in touched]
    count = len(rows) if chosen_by.count is None else min(chosen_by.count, len(rows))
    drawn = _drawn(connection, chosen_by, rows, count, seed)
    is_known = not chosen_by.trace_ids and len(rows) == every
    return {trace_id: chance if is_known else None for trace_id, chance in drawn.items()}


def _drawn(
    connection: Connection, chosen_by: TraceFilter, rows: Sequence[Row[Any]], count: int, seed: int
) -> dict[str, float | None]:
    names = [row.trace_id for row in rows]
    match chosen_by.sampling:
        case "all" | "hand":
            return dict.fromkeys(names[:count], 1.0 if count == len(names) else None)
        case "random":
            return dict.fromkeys(queueing.random_sample(names, count, seed=seed), count / max(len(names), 1))
        case "stratified":
            return _stratified(strategies.strata(rows, chosen_by.stratum), count, seed)
        case "disputed":
            spreads = strategies.judge_spread(connection)
            return _by_size({name: spreads.get(name, 0.0) for name in names}, count, seed)
        case "predicted":
            return _by_size(strategies.predicted_errors(connection, names), count, seed)
        case "coverage":
            return _by_size(strategies.rarity(rows), count, seed)


def _stratified(strata: dict[str, str], count: int, seed: int) -> dict[str, float | None]:
    """A stratified sample; without chances where a stratum got none, for its traces could not be drawn."""
    drawn = queueing.stratified_sample(strata, count, seed=seed)
    is_whole = {strata[trace_id] for trace_id in drawn} == set(strata.values())
    return {trace_id: chance if is_whole else None for trace_id, chance in drawn.items()}


def _by_size(sizes: dict[str, float], count: int, seed: int) -> dict[str, float | None]:
    chances = queueing.chances(sizes, count) if sizes else {}
    return {trace_id: chances[trace_id] for trace_id in queueing.systematic_sample(chances, seed=seed)}


def make_queue(
    connection: Connection,
    spec: QueueSpec,
    trace_ids: Sequence[str],
    *,
    now: int,
    chances: Mapping[str, float | None] | None = None,
) -> int:
    """Make a queue of these traces and return its key. `chances` are those of `draw_traces`. Raises `QueueError`."""
    trace_ids, chances = list(dict.fromkeys(trace_ids)), chances or {}
    if not trace_ids:
        raise QueueError("no trace fits the filter, so the queue would be empty: choose a wider filter")
    must_be_present(connection, trace_ids)
    if spec.practice:
        must_not_be_live(connection, trace_ids)
    must_be_free(connection, spec.name)
    must_be_published(connection, spec.guideline_version)
    key = connection.execute(insert(_queue).values(_queue_row(spec, now))).inserted_primary_key
    assert key is not None
    wants = queueing.people_by_trace(trace_ids, k=spec.k, share=spec.overlap_share, seed=spec.seed)
    rows = [
        {
            "queue_key": key[0],
            "trace_id": trace_id,
            "position": position,
            "wanted": wants[trace_id],
            "is_practice": spec.practice,
            "inclusion": chances.get(trace_id),
        }
        for position, trace_id in enumerate(trace_ids)
    ]
    connection.execute(insert(_item), rows)
    record(connection, who=spec.author, what="queue made", subject=spec.name, detail={"items": len(rows)}, at=now)
    return int(key[0])


def must_be_present(connection: Connection, trace_ids: Sequence[str]) -> None:
    """Raises `QueueError` for a trace that is not in the workspace."""
    present = set(connection.scalars(select(schema.trace.c.trace_id)))
    unknown = [trace_id for trace_id in trace_ids if trace_id not in present]
    if unknown:
        raise QueueError(f"trace {unknown[0]} is not in this workspace: ingest it first")


def must_not_be_live(connection: Connection, trace_ids: Sequence[str]) -> None:
    """Raises `QueueError` for a trace that an open blind queue holds: whoever practised it could not label it blind."""
    live = live_blind(connection)
    live_ids = [trace_id for trace_id in trace_ids if trace_id in live]
    if live_ids:
        raise QueueError(
            f"trace {live_ids[0]} is in the live blind queue {live[live_ids[0]]!r}, and {len(live_ids)} of these "
            "traces are in such queues: practise other traces"
        )


def live_blind(connection: Connection) -> dict[str, str]:
    """The traces of open blind queues, practice left out, each with the name of such a queue."""
    query = (
        select(_item.c.trace_id, _queue.c.name)
        .join(_queue, _queue.c.queue_key == _item.c.queue_key)
        .where(is_live, _item.c.is_practice.is_(False), _queue.c.blind.is_(True), _queue.c.closed_at.is_(None))
        .order_by(_queue.c.queue_key.desc())
    )
    return {row.trace_id: row.name for row in connection.execute(query)}


def must_be_free(connection: Connection, name: str, *, but: int | None = None) -> None:
    """Raises `QueueError` where another queue than `but` has this name."""
    owner = connection.scalar(select(_queue.c.queue_key).where(_queue.c.name == name))
    if owner is not None and owner != but:
        raise QueueError(f"a queue named {name!r} exists: choose another name")


def must_be_published(connection: Connection, version: int | None) -> None:
    """Raises `QueueError` for a version of the guideline that does not exist."""
    known = select(tables.guideline.c.version).where(tables.guideline.c.version == version)
    if version is not None and connection.scalar(known) is None:
        raise QueueError(f"there is no version {version} of the guideline: publish it first")


def queues(connection: Connection) -> list[Row[Any]]:
    """Every queue with `items`, `places` (people wanted, summed), `done` (places that count) and `is_practice`.

    `least_chance` and `most_chance` are those of its traces to be drawn, None where no trace has a known one; `unknown`
    counts the traces without. Retired items count in none of them.
    """
    items = (
        select(
            _item.c.queue_key,
            func.sum(case((is_live, 1), else_=0)).label("items"),
            func.sum(case((is_live, _item.c.wanted), else_=0)).label("places"),
            func.max(case((_item.c.is_practice, 1), else_=0)).label("is_practice"),
            func.min(case((is_live, _item.c.inclusion))).label("least_chance"),
            func.max(case((is_live, _item.c.inclusion))).label("most_chance"),
            func.sum(case((and_(is_live, _item.c.inclusion.is_(None)), 1), else_=0)).label("unknown"),
        )
        .group_by(_item.c.queue_key)
        .subquery()
    )
    done = (
        select(_item.c.queue_key, func.count().label("done"))
        .join(_lease, _lease.c.item_key == _item.c.item_key)
        .where(_lease.c.outcome == "counted", _lease.c.occasion != REPEAT, is_live)
        .group_by(_item.c.queue_key)
        .subquery()
    )
    query = (
        select(
            _queue,
            items.c["items"],
            items.c.places,
            items.c.is_practice,
            items.c.least_chance,
            items.c.most_chance,
            items.c.unknown,
            func.coalesce(done.c.done, 0).label("done"),
        )
        .join(items, items.c.queue_key == _queue.c.queue_key)
        .outerjoin(done, done.c.queue_key == _queue.c.queue_key)
        .order_by(_queue.c.queue_key)
    )
    return list(connection.execute(query).all())


def queues_for(connection: Connection, annotator: str, *, also: int | None = None) -> list[Row[Any]]:
    """The queues in which this person may work: open ones that are theirs, and those in which they hold a place.

    `also` is a queue that was asked for by name: it is among them where this person has ever met an item of it.
    """
    assigned = all_assignments(connection)
    rows = connection.execute(
        select(_item.c.queue_key, _lease.c.outcome, _item.c.retired_at)
        .join(_lease, _lease.c.item_key == _item.c.item_key)
        .where(_lease.c.annotator == annotator)
    ).all()
    at_work = {row.queue_key for row in rows if row.outcome is None and row.retired_at is None}
    named = {row.queue_key for row in rows if row.queue_key == also}
    return [
        row
        for row in queues(connection)
        if row.queue_key in at_work | named
        or (row.closed_at is None and assigned.get(row.queue_key, Assignments()).concerns(annotator))
    ]


def _matching(chosen_by: TraceFilter) -> Select[Any]:
    trace = schema.trace
    conditions: list[ColumnElement[bool]] = [trace.c.spans >= chosen_by.min_spans]
    if chosen_by.max_spans is not None:
        conditions.append(trace.c.spans <= chosen_by.max_spans)
    if chosen_by.trace_ids:
        conditions.append(is_one_of(trace.c.trace_id, chosen_by.trace_ids))
    if chosen_by.formats:
        conditions.append(is_one_of(trace.c.format, chosen_by.formats))
    if chosen_by.with_errors:
        conditions.append(trace.c.error_spans > 0)
    if chosen_by.search:
        search = chosen_by.search
        conditions.append(
            or_(trace.c.name.icontains(search, autoescape=True), trace.c.goal.icontains(search, autoescape=True))
        )
    columns = (trace.c.trace_id, trace.c.format, trace.c.models, trace.c.agents, trace.c.tools, trace.c.spans)
    return select(*columns).where(*conditions).order_by(trace.c.trace_key)


def _has_one(row: Row[Any], chosen_by: TraceFilter) -> bool:
    """Whether the trace has one of the models and one of the agents asked for."""
    for names, column in ((chosen_by.models, row.models), (chosen_by.agents, row.agents)):
        if names and set(names).isdisjoint(orjson.loads(column)):
            return False
    return True


def _queue_row(spec: QueueSpec, now: int) -> dict[str, Any]:
    return {
        "name": spec.name,
        "k": spec.k,
        "overlap_share": spec.overlap_share,
        "repeat_share": spec.repeat_share,
        "blind": spec.blind,
        "seed": spec.seed,
        "lease_s": spec.lease_s,
        "hide": orjson.dumps(spec.hide).decode(),
        "filter": orjson.dumps(spec.chosen_by).decode(),
        "author": spec.author,
        "guideline_version": spec.guideline_version,
        "due_at": spec.due_at,
        "answers_by": spec.answers_by,
        "after_key": spec.after_key,
        "pass_mark": spec.pass_mark,
        "created_at": now,
    }
