"""Saved views: the filters of a page under a name, shared by the team."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy import Connection, delete, insert, select

from tracejury.judging.store import tables
from tracejury.judging.store.audit import record

LONGEST = 80  # characters of a name
_PREFIX = "view"
_setting = tables.setting


class ViewError(ValueError):
    """A view that is not saved; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedView:
    """`query` holds the filters as they stand in the page's address."""

    page: str
    name: str
    query: Mapping[str, Sequence[str]]
    author: str


def save_view(connection: Connection, view: SavedView) -> None:
    """Keep a view; one of the same page and name is replaced. Raises `ViewError` for a name that cannot be used."""
    if not view.name.strip():
        raise ViewError("the view has no name: give it one")
    if len(view.name) > LONGEST:
        raise ViewError(f"the name has {len(view.name)} characters: use at most {LONGEST}")
    connection.execute(delete(_setting).where(_setting.c.name == _key(view.page, view.name)))
    query = {key: list(values) for key, values in view.query.items()}
    stored = {"query": query, "author": view.author}
    connection.execute(
        insert(_setting).values(
            name=_key(view.page, view.name), value=orjson.dumps(stored).decode(), created_at=time.time_ns() // 1000
        )
    )
    record(connection, who=view.author, what="saved view", subject=f"{view.page}: {view.name}", detail=query)


def saved_views(connection: Connection, page: str) -> list[SavedView]:
    """The views of a page, by name."""
    prefix = _key(page, "")
    is_here = _setting.c.name.startswith(prefix, autoescape=True)
    rows = connection.execute(select(_setting.c.name, _setting.c.value).where(is_here))
    views = []
    for row in rows:
        stored = orjson.loads(row.value)
        views.append(
            SavedView(page=page, name=row.name.removeprefix(prefix), query=stored["query"], author=stored["author"])
        )
    return sorted(views, key=lambda view: view.name.casefold())


def delete_view(connection: Connection, *, page: str, name: str, author: str) -> None:
    """Take a view away; the audit log keeps what it held."""
    gone = [view for view in saved_views(connection, page) if view.name == name]
    connection.execute(delete(_setting).where(_setting.c.name == _key(page, name)))
    for view in gone:
        record(connection, who=author, what="deleted view", subject=f"{page}: {name}", detail=dict(view.query))


def _key(page: str, name: str) -> str:
    return f"{_PREFIX}:{page}:{name.strip()}"
