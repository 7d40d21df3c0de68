"""Short-lived tokens for the API routes: bound to a person and to one trace (or one purpose)."""

from __future__ import annotations

from typing import NamedTuple

from itsdangerous import BadData, SignatureExpired, URLSafeTimedSerializer

MAX_AGE_S = 20 * 60
"""The desk's tokens: its page renews them while it is open and the person is signed in."""
LONG_AGE_S = 12 * 3600
"""Tokens of exports, which scripts use, and of pages that do not renew theirs."""
TRACE = "trace"


class Grant(NamedTuple):
    """What a token allows: this person, this subject (a trace id, or `export`)."""

    user: str
    subject: str
    occasion: int = 0


class TokenError(Exception):
    """A token that is missing, forged, out of date or for something else; `status` is the HTTP code."""

    def __init__(self, reason: str, *, status: int = 401) -> None:
        super().__init__(reason)
        self.status = status


def mint(secret: str, grant: Grant, *, purpose: str = TRACE) -> str:
    """A token for `purpose`: subjects of different purposes never meet, whatever a trace calls itself."""
    return _serializer(secret, purpose).dumps(list(grant))


def check(secret: str, token: object, *, subject: str, purpose: str = TRACE, max_age_s: int | None = None) -> Grant:
    """The grant of `token`. Raises `TokenError` unless it is genuine, fresh, and for `purpose` and `subject`."""
    if max_age_s is None:
        max_age_s = MAX_AGE_S if purpose == TRACE else LONG_AGE_S
    if not isinstance(token, str) or not token:
        raise TokenError("no token was sent")
    try:
        user, granted, occasion = _serializer(secret, purpose).loads(token, max_age=max_age_s)
    except SignatureExpired as error:
        raise TokenError("the token is out of date: reload the page") from error
    except (BadData, ValueError, TypeError) as error:
        raise TokenError("the token is not genuine") from error
    if granted != subject:
        raise TokenError("the token is for something else", status=403)
    return Grant(user, granted, occasion)


def _serializer(secret: str, purpose: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(secret, salt=f"tracejury-api-{purpose}")
