"""Tokens for scripts: made by a person for one use and a number of days, revoked at any time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Literal, NamedTuple

from itsdangerous import BadData, URLSafeSerializer
from starlette.requests import Request

from tracejury.app import signin
from tracejury.app.api.rights import still_may
from tracejury.app.config import config
from tracejury.app.grants import TokenError
from tracejury.app.session import person_of_session, workspace
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace
from tracejury.judging.store.audit import record
from tracejury.judging.store.locks import PEOPLE
from tracejury.judging.store.people import script_epoch

Use = Literal["export", "otlp"]
USES: Mapping[Use, str] = {"export": "reading exports", "otlp": "sending traces"}
PREFIX = "tracejury_"
"""Tells these tokens from those of pages, and shows a reader of a log what was leaked."""
USUAL_DAYS, MOST_DAYS = 7, 90
DAY_S = 86_400
REMEDY = "make another: `tracejury token`, or the Account page"


class Script(NamedTuple):
    """What a script's token allows. `epoch` counts how often this person took all of theirs back."""

    user: str
    use: str
    until: int
    epoch: int


def mint_script(space: Workspace, user: str, *, use: Use, days: int, by: str, now: float | None = None) -> str:
    """A token that ends by itself; that it was made stands in the audit log, the token nowhere."""
    if not 1 <= days <= MOST_DAYS:
        raise ValueError(f"{days} days: use 1 to {MOST_DAYS}")
    with write_transaction(space.engine, PEOPLE) as connection:
        until = round((time.time() if now is None else now) + days * DAY_S)
        script = Script(user, use, until, script_epoch(connection, user))
        record(connection, who=by, what="script token made", subject=user, detail={"use": use, "days": days})
    return PREFIX + _serializer(space).dumps(list(script))


def is_script(token: str | None) -> bool:
    return token is not None and token.startswith(PREFIX)


def checked_script(space: Workspace, token: str | None, *, use: Use) -> Script:
    """What the token allows. Raises `TokenError` unless it is genuine, still good, for this use, and its person may."""
    try:
        script = Script(*_serializer(space).loads((token or "").removeprefix(PREFIX)))
    except (BadData, ValueError, TypeError) as error:
        raise TokenError("the token is not genuine", remedy=REMEDY) from error
    if script.until <= time.time():
        raise TokenError("the token has expired", remedy=REMEDY)
    if script.use != use:
        raise TokenError(f"the token is for {script.use}", status=403, remedy=REMEDY)
    with read_transaction(space.engine) as connection:
        if script.epoch != script_epoch(connection, script.user):
            raise TokenError("the token was revoked", remedy=REMEDY)
    still_may(space, script.user, "researcher")
    return script


def bearer(request: Request) -> str | None:
    """The token of an `Authorization: Bearer` header."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if kind.lower() == "bearer" else None


def _serializer(space: Workspace) -> URLSafeSerializer:
    return URLSafeSerializer(space.secret(), salt="tracejury-script")


def may_read_metrics(authorization: str | None, cookie: str | None) -> bool:
    """Whether the app's own measurements may be read: with a token for exports, or by a signed-in administrator."""
    kind, _, token = (authorization or "").partition(" ")
    try:
        checked_script(workspace(), token.strip() if kind.lower() == "bearer" else None, use="export")
    except TokenError:
        account = (
            person_of_session(signin.read(workspace().secret(), cookie)) if config().sign_in == "password" else None
        )
        return account is not None and account.role == "admin"
    return True
