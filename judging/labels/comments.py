"""Comments on a span or an error, returns of submitted traces, and messages: each revision is a row.

Who may read what is decided by who reads and where, never by what the text says: a comment on a trace reaches
another person only where judges' answers and other people's labels of that trace may reach that person.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import orjson
from sqlalchemy import ColumnElement, Connection, Engine, Row, func, insert, or_, select

from tracejury.ingest.spreadsheet import csv_of_rows
from tracejury.ingest.store import read_transaction, schema, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.labels.anchoring import may_see_judges
from tracejury.judging.queues.places import occasion_of
from tracejury.judging.queues.queue_store import FIRST
from tracejury.judging.store import tables
from tracejury.judging.store.people import Person, Role, people

Kind = Literal["comment", "return", "message"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LONGEST = 10_000  # characters of one comment
SEEN_AS = "Comments"
"""What `note_seen` calls it when a person reads what others wrote about a trace."""
LEADS: tuple[Role, ...] = ("adjudicator", "researcher", "admin")
COLUMNS = (
    "comment_id", "kind", "trace_id", "span_id", "label_id", "author", "mentions", "body", "while_blind", "written_at",
    "edited_at", "deleted",
)  # fmt: skip
_table, _read = tables.comment, tables.comment_read


class CommentError(ValueError):
    """A comment that is not stored; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comment:
    """The newest revision of a comment; times in UTC microseconds. `mentions` of a message: none means everyone.

    `while_blind`: the author of a return says that it tells nothing of judges or others, so that whom it names may
    read it while they label the trace.
    """

    comment_id: str
    kind: Kind
    trace_id: str | None
    span_id: str | None
    label_id: str | None
    author: str
    body: str
    mentions: tuple[str, ...]
    written_at: int
    edited_at: int | None
    while_blind: bool


# ---- writing ---------------------------------------------------------------------------------------------------


def put_comment(
    connection: Connection,
    *,
    comment_id: str,
    author: str,
    body: str,
    kind: Kind = "comment",
    trace_id: str | None = None,
    span_id: str | None = None,
    label_id: str | None = None,
    occasion: int = 0,
    to: Collection[str] | None = None,
    others: Collection[str] = (),
    while_blind: bool = False,
    at: int = 0,
) -> Comment:
    """Store a comment or a new revision of it; the same again is stored once.

    Mentions are the people whom the text names with @, or `to`; `others` have no account and can be named too
    (`names_without_account`, where nobody signs in). Raises `CommentError`.
    """
    body = body.strip()
    _check(connection, comment_id, author, body, trace_id)
    named = mentions(body, people(connection), others) if to is None else tuple(sorted(set(to)))
    row = {
        "comment_id": comment_id, "kind": kind, "trace_id": trace_id, "span_id": span_id, "label_id": label_id,
        "occasion": occasion, "body": body, "mentions": _json(named), "deleted": False,
        "author": author, "while_blind": while_blind and kind == "return",
    }  # fmt: skip
    before = _newest(connection, comment_id)
    if before is None or any(getattr(before, name) != value for name, value in row.items()):
        connection.execute(insert(_table).values(created_at=at or time.time_ns() // 1000, **row))
    return comments(connection, _table.c.comment_id == comment_id)[0]


def delete_comment(connection: Connection, comment_id: str, *, author: str) -> None:
    """Show a comment no longer; its revisions stay stored. Raises `CommentError` for somebody else's."""
    before = _newest(connection, comment_id)
    if before is None or before.author != author:
        raise CommentError("only its author can delete a comment. Try: reload the page")
    if not before.deleted:
        row = {column.name: getattr(before, column.name) for column in _table.c if column.name != "row_key"}
        connection.execute(insert(_table).values(row | {"deleted": True, "created_at": time.time_ns() // 1000}))


def names_without_account(connection: Connection) -> set[str]:
    """The names under which somebody labelled or wrote here without an account, authors of imported labels too."""
    review = tables.review
    writers = {*connection.scalars(select(review.c.annotator).distinct()), *connection.scalars(select(_table.c.author))}
    return writers - {one.name for one in people(connection)}


def mentions(body: str, known: Iterable[Person], others: Collection[str] = ()) -> tuple[str, ...]:
    """The active people whom a text names with @, by name or shown name, and `others`; the longer of two names
    counts.
    """
    accounts = {alias: one.name for one in known if one.active for alias in (one.display_name, one.name)}
    names = {one: one for one in others} | accounts
    if not names:
        return ()
    longest_first = sorted(names, key=lambda alias: (-len(alias), alias))
    pattern = rf"@({'|'.join(map(re.escape, longest_first))})(?!\w)"
    return tuple(sorted({names[match] for match in re.findall(pattern, body)}))


def _check(connection: Connection, comment_id: str, author: str, body: str, trace_id: str | None) -> None:
    if not body:
        raise CommentError("the text is empty. Try: write one")
    if len(body) > LONGEST:
        raise CommentError(f"the comment has {len(body):,} characters. Try: {LONGEST:,} or fewer")
    if not comment_id or len(comment_id) > 64:
        raise CommentError("the comment has no id. Try: reload the page")
    known = schema.trace.c.trace_id
    if trace_id is not None and connection.scalar(select(known).where(known == trace_id)) is None:
        raise CommentError(f"this workspace holds no trace {trace_id!r}. Try: reload the page")
    before = _newest(connection, comment_id)
    if before is not None and (before.author, before.trace_id) != (author, trace_id):
        raise CommentError("the comment belongs to somebody else or to another trace. Try: reload the page")


# ---- reading ---------------------------------------------------------------------------------------------------


def comments(connection: Connection, *conditions: ColumnElement[bool]) -> list[Comment]:
    """The newest revision of each comment, deleted ones left out, the first written first."""
    rows = connection.execute(select(_table).where(*conditions).order_by(_table.c.row_key)).all()
    first: dict[str, Row[tuple[object, ...]]] = {}
    for row in rows:
        first.setdefault(row.comment_id, row)
    newest = {row.comment_id: row for row in rows}
    return [_comment(one, newest[key]) for key, one in first.items() if not newest[key].deleted]


def comments_on(connection: Connection, trace_id: str, *, reader: str, role: Role, occasion: int = 0) -> list[Comment]:
    """The comments on a trace that may reach this person now: their own of this occasion, others' as the rule says."""
    others_or_own = or_(_table.c.author != reader, _table.c.occasion == occasion)
    here = comments(connection, _table.c.trace_id == trace_id, others_or_own)
    if may_see_judges(connection, annotator=reader, role=role, trace_id=trace_id):
        return here
    return [one for one in here if one.author == reader or (occasion == FIRST and _is_for_blind(one, reader))]


def _is_for_blind(comment: Comment, reader: str) -> bool:
    """Whether it is a return to this person that they may read while they label the trace, but for a hidden repeat."""
    return comment.while_blind and reader in comment.mentions


def mentioned(connection: Connection, *conditions: ColumnElement[bool], reader: str, role: Role) -> list[Comment]:
    """Others' comments and returns that name this person and may reach this person now, the newest first."""
    named_once = select(_table.c.comment_id).where(_table.c.mentions.contains(_json(reader), autoescape=True))
    on_traces = comments(
        connection, _table.c.comment_id.in_(named_once), _table.c.trace_id.is_not(None), _table.c.author != reader,
        *conditions,
    )  # fmt: skip
    named = [one for one in on_traces if reader in one.mentions]
    traces = {str(one.trace_id) for one in named}
    open_to = {
        trace_id for trace_id in traces if may_see_judges(connection, annotator=reader, role=role, trace_id=trace_id)
    }
    blind_first = {one for one in traces - open_to if occasion_of(connection, reader, one) == FIRST}
    return [
        one
        for one in reversed(named)
        if one.trace_id in open_to or (one.trace_id in blind_first and _is_for_blind(one, reader))
    ]


def messages(connection: Connection, reader: str, *conditions: ColumnElement[bool]) -> list[Comment]:
    """Messages about no trace that this person wrote or received, the newest first."""
    written = comments(connection, _table.c.trace_id.is_(None), *conditions)
    return [one for one in reversed(written) if one.author == reader or not one.mentions or reader in one.mentions]


def not_read_by(reader: str) -> ColumnElement[bool]:
    """The condition that this person has no read mark on a comment; a mark holds for its later revisions."""
    return _table.c.comment_id.not_in(select(_read.c.comment_id).where(_read.c.annotator == reader))


def mark_read(engine: Engine, comment_ids: Iterable[str], *, reader: str) -> None:
    """Store that this person has read these comments, or was told of them; the first time is kept."""
    ids = set(comment_ids)
    known = select(_read.c.comment_id).where(_read.c.annotator == reader, is_one_of(_read.c.comment_id, ids))
    with read_transaction(engine) as connection:
        if not ids.difference(connection.scalars(known)):
            return
    with write_transaction(engine, f"read by {reader}") as connection:
        new = sorted(ids.difference(connection.scalars(known)))
        row = {"annotator": reader, "created_at": time.time_ns() // 1000}
        if new:
            connection.execute(insert(_read), [{**row, "comment_id": one} for one in new])


def to_csv(connection: Connection, authors: Collection[str] = ()) -> str:
    """Every revision of every comment (of these authors), in the order in which they were stored; `deleted` marks the
    last of some.
    """
    chosen = (is_one_of(_table.c.author, authors),) if authors else ()
    rows = connection.execute(select(_table).where(*chosen).order_by(_table.c.row_key)).all()
    written: dict[str, int] = {}
    for row in rows:
        written.setdefault(row.comment_id, row.created_at)
    return csv_of_rows(COLUMNS, (_csv_row(row, written[row.comment_id]) for row in rows))


def _csv_row(row: Row[tuple[object, ...]], written_at: int) -> dict[str, object]:
    named = {name: getattr(row, name) for name in COLUMNS if hasattr(row, name)}
    edited_at = row.created_at if row.created_at != written_at else None
    return named | {
        "mentions": " ".join(orjson.loads(row.mentions)), "written_at": written_at, "edited_at": edited_at,
    }  # fmt: skip


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _newest(connection: Connection, comment_id: str) -> Row[tuple[object, ...]] | None:
    newest = select(func.max(_table.c.row_key)).where(_table.c.comment_id == comment_id)
    return connection.execute(select(_table).where(_table.c.row_key == newest.scalar_subquery())).one_or_none()


def _comment(first: Row[tuple[object, ...]], newest: Row[tuple[object, ...]]) -> Comment:
    return Comment(
        comment_id=newest.comment_id,
        kind=newest.kind,
        trace_id=newest.trace_id,
        span_id=newest.span_id,
        label_id=newest.label_id,
        author=newest.author,
        body=newest.body,
        mentions=tuple(orjson.loads(newest.mentions)),
        written_at=first.created_at,
        edited_at=newest.created_at if newest.row_key != first.row_key else None,
        while_blind=newest.while_blind,
    )
