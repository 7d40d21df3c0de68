"""Guidelines: versions of Markdown per dimension, what changed between them, and who has read which."""

from __future__ import annotations

import difflib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import orjson
from sqlalchemy import Connection, Row, func, insert, select

from tracejury.judging.records import DIMENSIONS
from tracejury.judging.store import tables
from tracejury.judging.store.audit import record

GENERAL = "general"
PARTS: tuple[str, ...] = (GENERAL, *DIMENSIONS)
LONGEST = 200_000  # characters of one part
_guideline, _read = tables.guideline, tables.acknowledgement


class GuidelineError(ValueError):
    """A guideline that is not published; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guideline:
    """One version: `body` holds Markdown by part, `general` or a dimension; empty parts are left out."""

    version: int
    body: Mapping[str, str]
    author: str
    note: str
    at: int


Change = Literal["same", "added", "removed"]


def publish(connection: Connection, body: Mapping[str, str], *, author: str, note: str = "") -> int:
    """Store a new version and return its number. Raises `GuidelineError` where it says nothing new."""
    unknown = [part for part in body if part not in PARTS]
    if unknown:
        raise GuidelineError(f"{unknown[0]!r} is not a part of a guideline: use {', '.join(PARTS)}")
    parts = {part: body[part].strip() for part in PARTS if body.get(part, "").strip()}
    long = [part for part, text in parts.items() if len(text) > LONGEST]
    if not parts:
        raise GuidelineError("the guideline is empty: write at least one part")
    if long:
        raise GuidelineError(f"{long[0]} is longer than {LONGEST} characters")
    before = guideline(connection)
    if before is not None and dict(before.body) == parts:
        raise GuidelineError(f"the text equals version {before.version}")
    version = 1 if before is None else before.version + 1
    connection.execute(
        insert(_guideline).values(
            version=version,
            body=orjson.dumps(parts).decode(),
            author=author,
            note=note.strip(),
            created_at=time.time_ns() // 1000,
        )
    )
    record(connection, who=author, what="guideline published", subject=f"version {version}", detail={"note": note})
    return version


def guideline(connection: Connection, version: int | None = None) -> Guideline | None:
    """A version, the newest by default; None where there is none."""
    query = select(_guideline).order_by(_guideline.c.version.desc()).limit(1)
    row = connection.execute(query if version is None else query.where(_guideline.c.version == version)).one_or_none()
    return None if row is None else _to_guideline(row)


def guidelines(connection: Connection) -> list[Guideline]:
    """All versions, newest first."""
    return [_to_guideline(row) for row in connection.execute(select(_guideline).order_by(_guideline.c.version.desc()))]


def diff(old: Guideline, new: Guideline) -> dict[str, list[tuple[Change, str]]]:
    """The lines of each part that differs: same, added or removed, in reading order."""
    changed = {}
    for part in PARTS:
        before, after = old.body.get(part, "").splitlines(), new.body.get(part, "").splitlines()
        if before != after:
            changed[part] = _lines(before, after)
    return changed


def acknowledge(connection: Connection, annotator: str, version: int) -> None:
    """A person says that they have read this version. Again changes nothing. Raises `KeyError` for no such version."""
    if guideline(connection, version) is None:
        raise KeyError(f"no guideline of version {version}")
    if not has_read(connection, annotator, version):
        connection.execute(
            insert(_read).values(annotator=annotator, version=version, created_at=time.time_ns() // 1000)
        )


def acknowledged(connection: Connection, annotator: str) -> int | None:
    """The newest version that this person has read: the one that stands at their labels."""
    newest: int | None = connection.scalar(select(func.max(_read.c.version)).where(_read.c.annotator == annotator))
    return newest


def has_read(connection: Connection, annotator: str, version: int) -> bool:
    """Whether this person has acknowledged this very version."""
    query = select(_read.c.acknowledgement_key).where(_read.c.annotator == annotator, _read.c.version == version)
    return connection.scalar(query.limit(1)) is not None


def to_acknowledge(connection: Connection, annotator: str, *, pinned: int | None = None) -> int | None:
    """The version that this person must read before going on; None where they may work.

    `pinned` is the version that a queue asks for; without it the newest is asked for.
    """
    if pinned is not None:
        return None if has_read(connection, annotator, pinned) else pinned
    newest = connection.scalar(select(func.max(_guideline.c.version)))
    return newest if newest is not None and (acknowledged(connection, annotator) or 0) < newest else None


def readers(connection: Connection) -> dict[str, int]:
    """The newest version each person has read."""
    query = select(_read.c.annotator, func.max(_read.c.version)).group_by(_read.c.annotator)
    return {row[0]: row[1] for row in connection.execute(query).all()}


def _lines(before: Sequence[str], after: Sequence[str]) -> list[tuple[Change, str]]:
    kinds: dict[str, Change] = {"  ": "same", "+ ": "added", "- ": "removed"}
    return [(kinds[line[:2]], line[2:]) for line in difflib.ndiff(before, after) if line[:2] in kinds]


def _to_guideline(row: Row[tuple[object, ...]]) -> Guideline:
    values = row._mapping
    return Guideline(
        version=values["version"],
        body=orjson.loads(values["body"]),
        author=values["author"],
        note=values["note"],
        at=values["created_at"],
    )
