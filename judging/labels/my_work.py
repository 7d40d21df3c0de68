"""What waits for one person: open traces, traces returned for another look, and those on which others differ."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, select

from tracejury.judging.labels.comments import Comment, mentioned, messages, not_read_by, put_comment
from tracejury.judging.labels.label_store import touched
from tracejury.judging.labels.sightings import sightings
from tracejury.judging.queues.places import FINISHED
from tracejury.judging.store import tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.people import Role

_review, _lease, _item, _queue = tables.review, tables.lease, tables.queue_item, tables.queue


class MyTrace(NamedTuple):
    """A trace that a person may open at the desk; without a queue it is work of their own."""

    trace_id: str
    queue_key: int | None
    queue: str | None
    is_open: bool


def my_traces(connection: Connection, annotator: str) -> list[MyTrace]:
    """The traces that a queue gave this person or that they began without one, in the order in which they met them.

    A trace of several queues stands once: where it is open, else where it was met last. A place that expired or was
    taken out of its queue unfinished is not among them.
    """
    rows = connection.execute(
        select(_item.c.trace_id, _queue.c.queue_key, _queue.c.name, _lease.c.outcome)
        .join(_item, _item.c.item_key == _lease.c.item_key)
        .join(_queue, _queue.c.queue_key == _item.c.queue_key)
        .where(
            _lease.c.annotator == annotator,
            _lease.c.outcome.in_(FINISHED) | (_lease.c.outcome.is_(None) & _item.c.retired_at.is_(None)),
        )
        .order_by(_lease.c.lease_key)
    ).all()
    places: dict[str, MyTrace] = {}
    for row in rows:
        place = MyTrace(row.trace_id, row.queue_key, row.name, row.outcome is None)
        if place.is_open or row.trace_id not in places or not places[row.trace_id].is_open:
            places[row.trace_id] = place
    met = set(connection.scalars(select(_item.c.trace_id).join(_lease, _lease.c.item_key == _item.c.item_key).where(
        _lease.c.annotator == annotator
    )))  # fmt: skip
    own = [MyTrace(one, None, None, status == "open") for one, status in touched(connection, annotator).items()]
    return [*places.values(), *(one for one in own if one.trace_id not in met)]


def returned(connection: Connection, *, reader: str, role: Role) -> list[Comment]:
    """Returns to this person that they have not answered by submitting the trace again, the newest first."""
    returns = [one for one in mentioned(connection, reader=reader, role=role) if one.kind == "return"]
    return [one for one in returns if _is_unanswered(connection, reader, one)]


def unread_comments(connection: Connection, *, reader: str, role: Role) -> list[Comment]:
    """What others wrote to this person, without a read mark: messages, mentions, and returns not yet answered.

    What may not reach this person now (`may_see_judges`) is left out, and is unread once it may.
    """
    new = not_read_by(reader)
    named = mentioned(connection, new, reader=reader, role=role)
    received = [one for one in messages(connection, reader, new) if one.author != reader]
    return received + [one for one in named if one.kind != "return" or _is_unanswered(connection, reader, one)]


def disputed(connection: Connection, annotator: str, disputes: Collection[str]) -> tuple[list[str], int]:
    """Of the disputed traces those that this person submitted and on which they have seen others, and how many
    traces they submitted without having seen others: of these nothing is told.
    """
    status = touched(connection, annotator)
    submitted = [trace_id for trace_id, one in status.items() if one == "submitted"]
    known = [one for one in submitted if _has_seen_others(connection, annotator, one)]
    return [one for one in known if one in disputes], len(submitted) - len(known)


def return_traces(
    connection: Connection,
    trace_ids: Collection[str],
    names: Collection[str],
    *,
    by: str,
    reason: str,
    while_blind: bool = False,
) -> int:
    """Ask these people to look again at those of the traces that they submitted; how many that were.

    The trace stays submitted until its annotator reopens it, so no count changes by the asking. The reason stays
    readable then only `while_blind`, by which its author says that it tells nothing of judges or others.
    """
    returns = [
        (trace_id, name)
        for name in names
        for trace_id, status in touched(connection, name).items()
        if trace_id in trace_ids and status == "submitted"
    ]
    for trace_id, name in returns:
        put_comment(
            connection, comment_id=uuid.uuid4().hex, author=by, body=reason, kind="return", trace_id=trace_id,
            to=[name], while_blind=while_blind,
        )  # fmt: skip
        detail = {"to": name, "while_blind": while_blind}
        record(connection, who=by, what="trace returned", subject=trace_id, detail=detail)
    return len(returns)


def _has_seen_others(connection: Connection, annotator: str, trace_id: str) -> bool:
    if sightings(connection, annotator=annotator, trace_id=trace_id):
        return True
    own = (_review.c.annotator == annotator, _review.c.trace_id == trace_id, _review.c.occasion == 0)
    newest = select(_review.c.revealed).where(*own).order_by(_review.c.row_key.desc()).limit(1)
    return bool(connection.scalar(newest))


def _is_unanswered(connection: Connection, reader: str, sent_back: Comment) -> bool:
    return (_submitted_at(connection, reader, str(sent_back.trace_id)) or 0) < sent_back.written_at


def _submitted_at(connection: Connection, annotator: str, trace_id: str) -> int | None:
    """When this person submitted the trace last, in UTC microseconds."""
    own = (_review.c.annotator == annotator, _review.c.trace_id == trace_id, _review.c.status == "submitted")
    at: int | None = connection.scalar(
        select(_review.c.created_at).where(*own).order_by(_review.c.row_key.desc()).limit(1)
    )
    return at
