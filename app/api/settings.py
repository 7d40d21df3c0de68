"""The desk's settings of one person, kept on the server: their keys and how they like to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, select, update
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracejury.app.api.answers import NotServedError, answered, answered_body
from tracejury.app.api.rights import checked
from tracejury.app.components.annotator.shortcuts import key_conflict
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace, tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.locks import PEOPLE
from tracejury.judging.store.people import ensure_annotator

DESK = "desk"
"""Where the desk's settings stand in `annotator.settings`; what else stands there is not the desk's."""

RELOAD = "reload the page"
PANES = ("left", "side")
WIDEST = 60  # percent of the desk


def settings_routes(space: Callable[[], Workspace]) -> tuple[Route, ...]:
    """GET and PUT of `{revision, keys, pretty, panes}`; the token of any trace says whose they are."""

    async def get(request: Request) -> Response:
        query = dict(request.query_params)
        return await answered(lambda: _get(space(), query))

    async def put(request: Request) -> Response:
        return await answered_body(request, lambda body: _put(space(), body))

    return (Route("/api/settings", get), Route("/api/settings", put, methods=["PUT"]))


def desk_settings(connection: Connection, user: str) -> dict[str, Any]:
    """What is stored of this person: `revision` counts the changes from 0 on, `keys` holds {act: key}.

    `panes` are widths in percent of the desk, 0 for a folded pane; one that is not named has its own width.
    """
    stored = _all(connection, user).get(DESK, {})
    return {
        "revision": stored.get("revision", 0),
        "keys": stored.get("keys", {}),
        "pretty": stored.get("pretty", True),
        "panes": stored.get("panes", {}),
    }


def _get(space: Workspace, query: Mapping[str, str]) -> dict[str, Any]:
    grant = checked(space, query.get("token"), subject=str(query.get("trace_id")))
    with read_transaction(space.engine) as connection:
        return desk_settings(connection, grant.user)


def _put(space: Workspace, body: Mapping[str, Any]) -> dict[str, Any]:
    grant = checked(space, body.get("token"), subject=str(body.get("trace_id")))
    keys, pretty, panes = body.get("keys"), body.get("pretty"), body.get("panes", {})
    if not isinstance(keys, dict) or not isinstance(pretty, bool) or not _are_widths(panes):
        raise NotServedError(
            422, "settings are {keys: {act: key}, pretty: true or false, panes: {left: 0 to 60, side: 0 to 60}}", RELOAD
        )
    problem = key_conflict(keys)
    if problem is not None:
        raise NotServedError(422, problem, "choose another key")
    with write_transaction(space.engine, PEOPLE) as connection:
        before = desk_settings(connection, grant.user)
        if body.get("base_revision") != before["revision"]:
            raise NotServedError(409, "the settings were changed in another window", "the page reads them again")
        after = {"revision": before["revision"] + 1, "keys": keys, "pretty": pretty, "panes": panes}
        ensure_annotator(connection, grant.user)
        everything = orjson.dumps({**_all(connection, grant.user), DESK: after}).decode()
        table = tables.annotator
        connection.execute(update(table).where(table.c.annotator == grant.user).values(settings=everything))
        record(connection, who=grant.user, what="desk settings changed", subject=grant.user, detail={"keys": keys})
    return after


def _are_widths(panes: object) -> bool:
    return isinstance(panes, dict) and all(
        name in PANES and type(width) is int and 0 <= width <= WIDEST for name, width in panes.items()
    )


def _all(connection: Connection, user: str) -> dict[str, Any]:
    text = connection.scalar(select(tables.annotator.c.settings).where(tables.annotator.c.annotator == user))
    return {} if text is None else dict(orjson.loads(text))
