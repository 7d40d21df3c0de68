"""Invitations: a link, good once and for some days, by which a new person sets their own password.

The lead fixes name and role. The store holds a hash of the link's secret, so that nobody who reads the store can
use a link.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, Row, insert, select, update

from tracejury.judging.store import tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.people import PeopleError, Person, Role, add_person, checked_role, free_name

DAY = 24 * 3600 * 1_000_000  # microseconds
MOST_DAYS = 30
_table = tables.invitation


@dataclass(frozen=True, kw_only=True, slots=True)
class Invitation:
    """An invitation that still holds; `expires_at` in UTC microseconds."""

    key: int
    name: str
    role: Role
    author: str
    expires_at: int


def invite(connection: Connection, name: str, *, role: str, days: int, by: str, now: int) -> str:
    """Return the secret of a new link for this person; it is stored nowhere. Raises `PeopleError`."""
    name = free_name(connection, name)
    if not 1 <= days <= MOST_DAYS:
        raise PeopleError(f"an invitation cannot last {days} days: choose 1 to {MOST_DAYS}")
    if any(one.name == name for one in invitations(connection, now=now)):
        raise PeopleError(f"{name!r} is invited already: revoke that invitation first")
    secret = secrets.token_urlsafe(32)
    row = {
        "secret_hash": _hash(secret), "name": name, "role": checked_role(role), "author": by,
        "expires_at": now + days * DAY, "created_at": now,
    }  # fmt: skip
    connection.execute(insert(_table).values(row))
    record(connection, who=by, what="person invited", subject=name, detail={"role": role, "days": days}, at=now)
    return secret


def invitation(connection: Connection, secret: str, *, now: int) -> Invitation | None:
    """Return what the link offers; None where it is unknown, used, revoked or expired."""
    row = connection.execute(select(_table).where(_table.c.secret_hash == _hash(secret))).one_or_none()
    return None if row is None or not _holds(row, now) else _invitation(row)


def accept(connection: Connection, secret: str, *, password: str, now: int) -> Person:
    """Make the invited person known with their own password; the link is good no more. Raises `PeopleError`."""
    offer = invitation(connection, secret, now=now)
    if offer is None:
        raise PeopleError("the invitation was used, revoked or has expired: ask an administrator for another")
    person = add_person(connection, offer.name, role=offer.role, by=offer.author, password=password)
    used = update(_table).where(_table.c.invitation_key == offer.key, _table.c.used_at.is_(None)).values(used_at=now)
    if connection.execute(used).rowcount != 1:
        raise PeopleError("the invitation was used a moment ago: sign in")
    record(connection, who=offer.name, what="invitation accepted", subject=offer.name, at=now)
    return person


def revoke(connection: Connection, key: int, *, by: str, now: int) -> None:
    """Make a link good no more."""
    row = connection.execute(select(_table).where(_table.c.invitation_key == key)).one_or_none()
    if row is None or not _holds(row, now):
        raise PeopleError("the invitation was used, revoked or has expired already: reload the page")
    connection.execute(update(_table).where(_table.c.invitation_key == key).values(revoked_at=now))
    record(connection, who=by, what="invitation revoked", subject=row.name, at=now)


def invitations(connection: Connection, *, now: int) -> list[Invitation]:
    """Return the invitations that still hold, in the order in which they were made."""
    rows = connection.execute(select(_table).order_by(_table.c.invitation_key)).all()
    return [_invitation(row) for row in rows if _holds(row, now)]


def _holds(row: Row[tuple[object, ...]], now: int) -> bool:
    return row.used_at is None and row.revoked_at is None and bool(now < row.expires_at)


def _invitation(row: Row[tuple[object, ...]]) -> Invitation:
    return Invitation(
        key=row.invitation_key,
        name=row.name,
        role=checked_role(row.role),
        author=row.author,
        expires_at=row.expires_at,
    )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
