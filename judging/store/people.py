"""People: who there is, what they may do, their passwords, and the limit on guessing them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import orjson
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, Engine, Row, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.locks import PEOPLE

Role = Literal["annotator", "adjudicator", "researcher", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
PERSON = "person"
SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1000  # characters: hashing takes time by length

WINDOW_S = 15 * 60
DAY_S = 24 * 3600
TRIES_BY_NAME = 8
"""Wrong passwords of one name from one address (or known device) in a window, which doubles with every so many more."""
TRIES_BY_ADDRESS = 40
TRIES_ANYWHERE = 200
"""Wrong passwords of one name from all addresses in a window: whoever guesses from many does not go on for ever."""
_TRIED, _IN, _OUT = "sign-in tried", "signed in", "signed out"
_EPOCH, _SCRIPTS = "epoch", "script_epoch"  # counters in `annotator.settings`
_SECOND = 1_000_000
_table = tables.annotator


class PeopleError(ValueError):
    """A change that is not made; the message says why and what to do."""


class DeactivatedError(Exception):
    """The password is right, and an administrator has deactivated the account."""


class TooManyTriesError(Exception):
    """Too many wrong passwords of late; `wait_s` seconds from now it goes on."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"too many attempts: wait {max(1, round(wait_s / 60))} min")
        self.wait_s = wait_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """Someone who can sign in. `epoch` is part of every session: a new one ends the sessions made before."""

    name: str
    display_name: str
    role: Role
    email: str | None
    has_password: bool
    active: bool
    epoch: int


def add_person(
    connection: Connection,
    name: str,
    *,
    role: Role,
    by: str,
    display_name: str = "",
    email: str | None = None,
    password: str | None = None,
) -> Person:
    """Make someone known. A name that so far only stood at imported labels becomes a person. Raises `PeopleError`."""
    name = free_name(connection, name)
    values = {
        "display_name": display_name.strip() or name,
        "kind": PERSON,
        "role": checked_role(role),
        "email": _free_email(connection, email, name),
        "password_hash": None if password is None else hashed(password),
        "active": True,
    }
    ensure_annotator(connection, name)
    connection.execute(update(_table).where(_table.c.annotator == name).values(**values))
    record(connection, who=by, what="person added", subject=name, detail={"role": role})
    return _must(connection, name)


def change_person(
    connection: Connection,
    name: str,
    *,
    by: str,
    role: Role | None = None,
    email: str | None = None,
    active: bool | None = None,
    password: str | None = None,
) -> Person:
    """Change what is given; None leaves as it is. A new password and a deactivation end this person's sessions
    and tokens.

    Raises `PeopleError`: nobody may take away the last active administrator.
    """
    before = _must(connection, name)
    values: dict[str, Any] = {}
    if role is not None and role != before.role:
        values["role"] = checked_role(role)
    if email is not None and (email.strip().lower() or None) != before.email:
        values["email"] = _free_email(connection, email, name)
    if active is not None and active != before.active:
        values["active"] = active
    if password is not None:
        values["password_hash"] = hashed(password)
    if not values:
        return before
    loses_admin = before.role == "admin" and before.active and (values.get("role") or active is False)
    if loses_admin and _active_admins(connection) <= 1:
        raise PeopleError(f"{name} is the last administrator: make someone else one first")
    if password is not None or active is False:
        values["settings"] = _ended(_row(connection, name), _EPOCH, _SCRIPTS)
    connection.execute(update(_table).where(_table.c.annotator == name).values(**values))
    detail: dict[str, Any] = {key: values[key] for key in ("role", "email", "active") if key in values}
    record(
        connection, who=by, what="role changed" if "role" in values else "person changed", subject=name,
        detail=detail | ({"from": before.role} if "role" in values else {}) | ({"password": "new"} if password else {}),
    )  # fmt: skip
    return _must(connection, name)


def people(connection: Connection) -> list[Person]:
    """Everyone who can be given work, in order of name."""
    rows = connection.execute(select(_table).where(_table.c.kind == PERSON).order_by(_table.c.annotator))
    return [_person(row) for row in rows]


def person(connection: Connection, name: str) -> Person | None:
    """The active person of that name."""
    row = _row(connection, name)
    return None if row is None or row.kind != PERSON or not row.active else _person(row)


def is_deactivated(connection: Connection, *, name: str = "", email: str = "") -> bool:
    """Whether an account of this name or e-mail address is there, and an administrator has deactivated it."""
    of = (
        (_table.c.annotator == name) | (_table.c.email == email.strip().lower())
        if email
        else _table.c.annotator == name
    )
    query = select(_table.c.annotator).where(of, _table.c.kind == PERSON, _table.c.active.is_(False))
    return connection.scalar(query.limit(1)) is not None


def person_by_email(connection: Connection, email: str) -> Person | None:
    """The active person whose address this is, whatever its case."""
    row = connection.execute(
        select(_table).where(_table.c.email == email.strip().lower(), _table.c.kind == PERSON)
    ).one_or_none()
    return None if row is None or not row.active else _person(row)


def welcome(connection: Connection, email: str) -> Person | None:
    """Make the owner of a new address an annotator; None where the address is known, or is none that can be kept.

    They are named by the part before the @, or by the whole address where that name is taken.
    """
    email = email.strip().lower()
    if connection.scalar(select(_table.c.annotator).where(_table.c.email == email)) is not None:
        return None
    for name in (email.partition("@")[0], email):
        try:
            if _row(connection, name) is None:
                return add_person(connection, name, role="annotator", by="sign-in", email=email)
        except PeopleError:
            continue
    return None


def someone_can_sign_in(connection: Connection, *, by_email: bool = False) -> bool:
    """Whether there is an active administrator with a password (or with an e-mail address)."""
    proof = _table.c.email if by_email else _table.c.password_hash
    query = select(func.count()).where(_table.c.role == "admin", _table.c.active.is_(True), proof.is_not(None))
    return bool(connection.scalar(query))


# ---- passwords -------------------------------------------------------------------------------------------------


def hashed(password: str) -> str:
    """Argon2id, with the library's parameters. Raises `PeopleError` for a password that is too short."""
    if len(password) < SHORTEST_PASSWORD:
        raise PeopleError(f"the password has {len(password)} characters: use {SHORTEST_PASSWORD} or more")
    if len(password) > LONGEST_PASSWORD:
        raise PeopleError(f"the password is longer than {LONGEST_PASSWORD} characters")
    return _hasher().hash(password)


def sign_in(
    engine: Engine, name: str, password: str, *, address: str = "", device: str = "", now: int | None = None
) -> Person | None:
    """The person, or None for a wrong name or password: the two take the same time and sound the same.

    `device` names a browser in which this person signed in before: what strangers tried elsewhere does not hold it up.
    The attempt is written down before the password is looked at, so that many at once cannot slip through.
    Raises `TooManyTriesError`, and `DeactivatedError` where the password is right.
    """
    at = time.time_ns() // 1000 if now is None else now
    name = name.strip()[:200]
    with write_transaction(engine, "sign-in") as connection:
        _refuse_guessing(connection, name, address, device, at)
        record(connection, who=name, what=_TRIED, subject=name, detail=_from(address, device), at=at)
    with read_transaction(engine) as connection:
        row = _row(connection, name)
    usable = row is not None and row.kind == PERSON and row.password_hash is not None
    is_right = _verified(
        row.password_hash if usable and row is not None else _nobodys_hash(), password[:LONGEST_PASSWORD]
    )
    if not (usable and is_right) or row is None:
        return None
    if not row.active:
        raise DeactivatedError
    with write_transaction(engine, "sign-in") as connection:
        if _hasher().check_needs_rehash(row.password_hash):
            connection.execute(
                update(_table)
                .where(_table.c.annotator == name, _table.c.password_hash == row.password_hash)
                .values(password_hash=_hasher().hash(password))
            )
        record(connection, who=name, what=_IN, subject=name, detail=_from(address, device), at=at)
        return person(connection, name)


def sign_out(engine: Engine, name: str) -> None:
    """End this person's sessions, on every machine."""
    with write_transaction(engine, PEOPLE) as connection:
        row = _row(connection, name)
        if row is None:
            return
        connection.execute(update(_table).where(_table.c.annotator == name).values(settings=_ended(row, _EPOCH)))
        record(connection, who=name, what=_OUT, subject=name)


def script_epoch(connection: Connection, name: str) -> int:
    """How often this person's tokens for scripts were revoked; 0 for somebody nobody knows yet."""
    row = _row(connection, name)
    return 0 if row is None else int(orjson.loads(row.settings).get(_SCRIPTS, 0))


def revoke_script_tokens(connection: Connection, name: str, *, by: str) -> None:
    """End every token for scripts that was made for this person."""
    ensure_annotator(connection, name)
    settings = _ended(_row(connection, name), _SCRIPTS)
    connection.execute(update(_table).where(_table.c.annotator == name).values(settings=settings))
    record(connection, who=by, what="script tokens revoked", subject=name)


def _from(address: str, device: str) -> dict[str, str]:
    return {"address": address, **({"device": device} if device else {})}


def _refuse_guessing(connection: Connection, name: str, address: str, device: str, now: int) -> None:
    """By name and address, by address, and by name: tries since the last success. A known device counts by itself."""
    here = _tries(connection, name, {"device": device} if device else {"address": address}, now)
    _refuse(here, TRIES_BY_NAME, now, window_s=WINDOW_S * 2 ** max(0, len(here) // TRIES_BY_NAME - 1))
    if device:
        return
    _refuse(_tries(connection, None, {"address": address}, now) if address else [], TRIES_BY_ADDRESS, now)
    _refuse(_tries(connection, name, {}, now), TRIES_ANYWHERE, now)


def _refuse(tries: list[int], most: int, now: int, *, window_s: int = WINDOW_S) -> None:
    """Raise when the last `most` of the tries stand within the window."""
    if len(tries) < most:
        return
    wait = tries[-most] + min(window_s, DAY_S) * _SECOND - now
    if wait > 0:
        raise TooManyTriesError(max(1, wait // _SECOND))


def _tries(connection: Connection, name: str | None, origin: Mapping[str, str], now: int) -> list[int]:
    """When it was tried within a day: under this name (None: any) from this origin; a success takes its own away."""
    times: list[tuple[str, int]] = []
    for row in _attempts(connection, now):
        what, subject, at, known = row.what, row.subject, row.created_at, orjson.loads(row.detail)
        is_here = all(known.get(key, "") == value for key, value in origin.items())
        if not is_here or (name is not None and subject != name) or ("device" in known and "device" not in origin):
            continue
        times = [one for one in times if one[0] != subject] if what == _IN else [*times, (subject, at)]
    return [at for _, at in times]


def _attempts(connection: Connection, now: int) -> Sequence[Row[str, str, str, int]]:
    table = tables.audit
    return connection.execute(
        select(table.c.what, table.c.subject, table.c.detail, table.c.created_at)
        .where(table.c.what.in_((_TRIED, _IN)), table.c.created_at > now - DAY_S * _SECOND)
        .order_by(table.c.row_key)
    ).all()


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher()


@cache
def _nobodys_hash() -> str:
    return _hasher().hash("nobody has this password")


def _verified(password_hash: str, password: str) -> bool:
    try:
        return _hasher().verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


# ---- rows ------------------------------------------------------------------------------------------------------


def _row(connection: Connection, name: str) -> Row[Any] | None:
    return connection.execute(select(_table).where(_table.c.annotator == name)).one_or_none()


def _must(connection: Connection, name: str) -> Person:
    row = _row(connection, name)
    if row is None or row.kind != PERSON:
        raise PeopleError(f"there is no person {name!r}")
    return _person(row)


def _person(row: Row[Any]) -> Person:
    return Person(
        name=row.annotator,
        display_name=row.display_name,
        role=checked_role(row.role),
        email=row.email,
        has_password=row.password_hash is not None,
        active=row.active,
        epoch=int(orjson.loads(row.settings).get(_EPOCH, 0)),
    )


def free_name(connection: Connection, name: str) -> str:
    """Return the name without spaces around it. Raises `PeopleError` for one that is none or is taken."""
    name = name.strip()
    if not re.fullmatch(r"[\w.@+-][\w .@+-]{0,63}", name):
        raise PeopleError(f"{name!r} is not a valid name: use 1 to 64 letters, digits, spaces or . _ @ + -")
    known = _row(connection, name)
    if known is not None and known.kind != "imported":
        raise PeopleError(f"{name!r} is taken: choose another name")
    return name


def checked_role(role: str) -> Role:
    """Return the role. Raises `PeopleError` for a word that is none."""
    for known in ROLES:
        if role == known:
            return known
    raise PeopleError(f"{role!r} is not a role: use one of {', '.join(ROLES)}")


def _free_email(connection: Connection, email: str | None, name: str) -> str | None:
    email = (email or "").strip().lower() or None
    if email is None:
        return None
    if not re.fullmatch(r"[^\s@]+@[^\s@]+", email):
        raise PeopleError(f"{email!r} is not an e-mail address")
    owner = connection.scalar(select(_table.c.annotator).where(_table.c.email == email))
    if owner is not None and owner != name:
        raise PeopleError(f"{email} belongs to {owner}")
    return email


def _ended(row: Row[Any] | None, *counters: str) -> str:
    """The settings with these counters one up: what was made under the old numbers is good no more."""
    settings = {} if row is None else orjson.loads(row.settings)
    return orjson.dumps({**settings, **{name: int(settings.get(name, 0)) + 1 for name in counters}}).decode()


def _active_admins(connection: Connection) -> int:
    query = select(func.count()).where(_table.c.role == "admin", _table.c.active.is_(True), _table.c.kind == PERSON)
    return int(connection.scalar(query) or 0)


def ensure_annotator(connection: Connection, name: str, *, kind: str = "imported") -> None:
    """Make the annotator known under this name unless it is."""
    known = connection.scalar(select(tables.annotator.c.annotator).where(tables.annotator.c.annotator == name))
    if known is None:
        insert_of = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
        statement = insert_of(tables.annotator).values(
            annotator=name,
            display_name=name,
            kind=kind,
            role="annotator",
            settings="{}",
            active=True,
            created_at=time.time_ns() // 1000,
        )
        connection.execute(statement.on_conflict_do_nothing())  # another may have made it meanwhile


def gold_names(connection: Connection) -> frozenset[str]:
    """Under whose name adjudicated labels stand: nobody's own opinion."""
    table = tables.annotator
    return frozenset(connection.scalars(select(table.c.annotator).where(table.c.kind == "adjudicated")))
