"""What a person has seen of a trace from judges and others: labels made after that are not blind."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, delete, func, insert, select

from tracejury.ingest.store import read_transaction, schema, write_transaction
from tracejury.judging.store import tables
from tracejury.judging.store.audit import record

_seen, _review, _setting = tables.seen, tables.review, tables.setting
_REQUIRED = "blind_required"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighting:
    """What was seen (a page, an export) and when it was first seen, in UTC microseconds."""

    what: str
    at: int


def note_seen(engine: Engine, *, annotator: str, trace_ids: Iterable[str], what: str, at: int = 0) -> None:
    """Store that this person has now seen what judges or others say of the traces; the first time is kept."""
    ids = set(trace_ids)
    known = select(_seen.c.trace_id).where(_seen.c.annotator == annotator, _seen.c.what == what)
    with read_transaction(engine) as connection:
        new = ids.difference(connection.scalars(known)) if ids else ids
    if not new:
        return
    row = {"annotator": annotator, "what": what, "created_at": at or time.time_ns() // 1000}
    with write_transaction(engine, f"seen by {annotator}") as connection:
        rows = [{**row, "trace_id": one} for one in sorted(new.difference(connection.scalars(known)))]
        if rows:
            connection.execute(insert(_seen), rows)


def sightings(connection: Connection, *, annotator: str, trace_id: str) -> tuple[Sighting, ...]:
    """What this person has seen of the trace, the first sighting first."""
    rows = connection.execute(
        select(_seen.c.what, _seen.c.created_at)
        .where(_seen.c.annotator == annotator, _seen.c.trace_id == trace_id)
        .order_by(_seen.c.created_at, _seen.c.seen_key)
    )
    return tuple(Sighting(what=row.what, at=row.created_at) for row in rows)


def seen_before_submitting(connection: Connection) -> set[tuple[str, str]]:
    """(annotator, trace_id) of the reviews whose author saw judges or others before submitting for the first time."""
    done = (
        select(_review.c.annotator, _review.c.trace_id, func.min(_review.c.created_at).label("at"))
        .where(_review.c.status == "submitted", _review.c.occasion == 0)
        .group_by(_review.c.annotator, _review.c.trace_id)
        .subquery()
    )
    query = (
        select(_seen.c.annotator, _seen.c.trace_id)
        .join(done, (done.c.annotator == _seen.c.annotator) & (done.c.trace_id == _seen.c.trace_id))
        .where(_seen.c.created_at <= done.c.at)
        .distinct()
    )
    return {(row.annotator, row.trace_id) for row in connection.execute(query)}


# ---- what an administrator requires ------------------------------------------------------------------------------


def is_blind_required(connection: Connection) -> bool:
    """Whether pages and exports refuse a person the traces that this person has not submitted."""
    return connection.scalar(select(_setting.c.value).where(_setting.c.name == _REQUIRED)) is not None


def require_blind(connection: Connection, *, required: bool, by: str) -> None:
    """Set or lift the requirement; the audit log says who did."""
    connection.execute(delete(_setting).where(_setting.c.name == _REQUIRED))
    if required:
        row = {"name": _REQUIRED, "value": "true", "created_at": time.time_ns() // 1000}
        connection.execute(insert(_setting).values(row))
    record(connection, who=by, what="require blind labels", subject="true" if required else "false")


def not_submitted(connection: Connection, annotator: str) -> set[str]:
    """The traces of the workspace that this person has not submitted."""
    submitted = select(_review.c.trace_id).where(
        _review.c.annotator == annotator, _review.c.occasion == 0, _review.c.status == "submitted"
    )
    return set(connection.scalars(select(schema.trace.c.trace_id).where(schema.trace.c.trace_id.not_in(submitted))))
