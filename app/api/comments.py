"""The routes of comments at the desk: what this person may read of a trace, and what they write on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracejury.app.api.answers import NotServedError, answered, answered_body
from tracejury.app.api.rights import checked, still_may
from tracejury.app.grants import Grant
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
    put_comment,
)
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import people


def comment_routes(space: Callable[[], Workspace]) -> tuple[Route, ...]:
    """GET `{comments, people}` of a trace; POST `{comment_id, span_id, label_id, body}`, or `{comment_id, deleted}`."""

    async def get(request: Request) -> Response:
        trace_id, token = request.path_params["trace_id"], request.query_params.get("token")
        return await answered(lambda: _get(space(), trace_id, token))

    async def post(request: Request) -> Response:
        trace_id = request.path_params["trace_id"]
        return await answered_body(request, lambda body: _post(space(), trace_id, body))

    path = "/api/comments/{trace_id:path}"
    return (Route(path, get), Route(path, post, methods=["POST"]))


def _get(space: Workspace, trace_id: str, token: object) -> dict[str, Any]:
    grant = checked(space, token, subject=trace_id)
    role = _role(space, grant)
    with read_transaction(space.engine) as connection:
        readable = comments_on(connection, trace_id, reader=grant.user, role=role, occasion=grant.occasion)
        known = [one for one in people(connection) if one.active and one.name != grant.user]
    if any(one.author != grant.user and not one.while_blind for one in readable):
        note_seen(space.engine, annotator=grant.user, trace_ids=[trace_id], what=SEEN_AS)
    to_reader = [one.comment_id for one in readable if grant.user in one.mentions]
    mark_read(space.engine, to_reader, reader=grant.user)
    named = [one.name for one in known if role != "annotator" or one.role in LEADS]
    return {"comments": [_shown(one, grant.user) for one in readable], "people": named}


def _post(space: Workspace, trace_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    grant = checked(space, body.get("token"), subject=trace_id)
    comment_id, text = str(body.get("comment_id")), body.get("body")
    try:
        with write_transaction(space.engine) as connection:
            if body.get("deleted") is True:
                delete_comment(connection, comment_id, author=grant.user)
                return {"deleted": comment_id}
            comment = put_comment(
                connection, comment_id=comment_id, author=grant.user, body=text if isinstance(text, str) else "",
                trace_id=trace_id, span_id=_text(body.get("span_id")), label_id=_text(body.get("label_id")),
                occasion=grant.occasion,
            )  # fmt: skip
    except CommentError as error:
        reason, _, remedy = str(error).partition(". Try: ")
        raise NotServedError(422, reason, remedy) from error
    return _shown(comment, grant.user)


def _role(space: Workspace, grant: Grant) -> Role:
    """The role of who asks; without sign-in nobody has one, and each is treated as an annotator."""
    account = still_may(space, grant.user, "annotator")
    return "annotator" if account is None else account.role


def _shown(comment: Comment, reader: str) -> dict[str, Any]:
    return asdict(comment) | {"is_own": comment.author == reader}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
