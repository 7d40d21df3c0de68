"""The routes of comments at the desk: what this person may read of a trace, and what they write on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracejury.app.api.answers import NotServedError, answered, answered_body
from tracejury.app.api.rights import checked, still_may
from tracejury.app.config import config
from tracejury.app.session import Role
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.comments import (
    LEADS,
    SEEN_AS,
    Comment,
    CommentError,
    comments_on,
    delete_comment,
    mark_read,
    names_without_account,
    put_comment,
)
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.store import Workspace
from tracejury.judging.store.locks import COMMENTS
from tracejury.judging.store.people import Person, people


def comment_routes(space: Callable[[], Workspace]) -> tuple[Route, ...]:
    """GET `{comments, hidden, people}` of a trace; POST `{comment_id, span_id, label_id, body}`, or
    `{comment_id, deleted}`.
    """

    async def get(request: Request) -> Response:
        trace_id, query = request.path_params["trace_id"], request.query_params
        return await answered(lambda: _get(space(), trace_id, query.get("token"), query.get("others") == "show"))

    async def post(request: Request) -> Response:
        trace_id = request.path_params["trace_id"]
        return await answered_body(request, lambda body: _post(space(), trace_id, body))

    path = "/api/comments/{trace_id:path}"
    return (Route(path, get), Route(path, post, methods=["POST"]))


def _get(space: Workspace, trace_id: str, token: object, is_asked: bool) -> dict[str, Any]:
    grant = checked(space, token, subject=trace_id)
    account = still_may(space, grant.user, "annotator")
    role, most = _roles(account, is_asked)
    with read_transaction(space.engine) as connection:
        read = partial(comments_on, connection, trace_id, reader=grant.user, occasion=grant.occasion)
        readable = read(role=role)
        every = readable if most == role else read(role=most)
        named = _people(connection, grant.user, account)
    if any(one.author != grant.user and not one.while_blind for one in readable):
        note_seen(space.engine, annotator=grant.user, trace_ids=[trace_id], what=SEEN_AS)
    to_reader = [one.comment_id for one in readable if grant.user in one.mentions]
    mark_read(space.engine, to_reader, reader=grant.user)
    shown = [_shown(one, grant.user) for one in readable]
    return {"comments": shown, "hidden": len(every) - len(readable), "people": named}


def _post(space: Workspace, trace_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    grant = checked(space, body.get("token"), subject=trace_id)
    comment_id, text = str(body.get("comment_id")), body.get("body")
    try:
        with write_transaction(space.engine, COMMENTS) as connection:
            if body.get("deleted") is True:
                delete_comment(connection, comment_id, author=grant.user)
                return {"deleted": comment_id}
            comment = put_comment(
                connection, comment_id=comment_id, author=grant.user, body=text if isinstance(text, str) else "",
                trace_id=trace_id, span_id=_text(body.get("span_id")), label_id=_text(body.get("label_id")),
                occasion=grant.occasion, others=_without_account(connection),
            )  # fmt: skip
    except CommentError as error:
        reason, _, remedy = str(error).partition(". Try: ")
        raise NotServedError(422, reason, remedy) from error
    return _shown(comment, grant.user)


def _roles(account: Person | None, is_asked: bool) -> tuple[Role, Role]:
    """By which role comments are shown, and by which they would be where the reader asks for those of others.

    Who signs in has one. Without sign-in everyone has every right; at the desk they label, so that they are shown what
    an annotator is until they ask.
    """
    if account is not None:
        return account.role, account.role
    return "admin" if is_asked else "annotator", "admin"


def _people(connection: Connection, reader: str, account: Person | None) -> list[str]:
    """Whom the reader may mention: an annotator those who lead, without sign-in everyone who labelled or wrote here."""
    is_led = account is not None and account.role == "annotator"
    known = [one.name for one in people(connection) if one.active and (not is_led or one.role in LEADS)]
    return sorted({*known, *_without_account(connection)} - {reader})


def _without_account(connection: Connection) -> set[str]:
    return names_without_account(connection) if config().sign_in == "off" else set()


def _shown(comment: Comment, reader: str) -> dict[str, Any]:
    return asdict(comment) | {"is_own": comment.author == reader}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
