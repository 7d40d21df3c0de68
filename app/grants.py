"""Short-lived tokens for the API routes: bound to a person and to one trace, or one data set."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from itsdangerous import BadData, SignatureExpired, URLSafeTimedSerializer

MAX_AGE_S = 20 * 60
"""A page renews its token while it is open and the person is signed in."""
CLOCK_S = 5 * 60
"""So far may the clock that a token was made by be ahead: of another machine, or of this one before it was set."""
TRACE = "trace"


class Grant(NamedTuple):
    """What a token allows: this person, this subject (a trace id, or a data set's name).

    `epoch` is that of the session it was made in: signing out ends it too.
    """

    user: str
    subject: str
    occasion: int = 0
    epoch: int = 0


class TokenError(Exception):
    """A token that is missing, forged, out of date or for something else; `status` is the HTTP code."""

    def __init__(self, reason: str, *, status: int = 401, remedy: str = "reload the page") -> None:
        super().__init__(reason)
        self.status, self.remedy = status, remedy


def mint(secret: str, grant: Grant, *, purpose: str = TRACE) -> str:
    """A token for `purpose`: subjects of different purposes never meet, whatever a trace calls itself."""
    return _serializer(secret, purpose).dumps(list(grant))


def check(secret: str, token: object, *, subject: str, purpose: str = TRACE) -> Grant:
    """The grant of `token`. Raises `TokenError` unless it is genuine, fresh, and for `purpose` and `subject`."""
    if not isinstance(token, str) or not token:
        raise TokenError("no token was sent")
    try:
        grant = Grant(*read_signed(_serializer(secret, purpose), token, max_age_s=MAX_AGE_S))
    except SignatureExpired as error:
        raise TokenError("the token has expired") from error
    except (BadData, ValueError, TypeError) as error:
        raise TokenError("the token is not genuine") from error
    if grant.subject != subject:
        raise TokenError("the token is for something else", status=403)
    return grant


def read_signed(serializer: URLSafeTimedSerializer, token: str, *, max_age_s: float) -> Any:
    """Give what was signed. Raises `itsdangerous.BadData` unless it is genuine and fresh, give or take `CLOCK_S`."""
    content, signed_at = serializer.loads(token, return_timestamp=True)
    age_s = time.time() - signed_at.timestamp()
    if not -CLOCK_S <= age_s <= max_age_s:
        raise SignatureExpired(f"signed {age_s:.0f} seconds ago")
    return content


def _serializer(secret: str, purpose: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(secret, salt=f"tracejury-api-{purpose}")
