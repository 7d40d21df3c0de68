"""What a request may do: its token, and that the person behind it still has the right."""

from __future__ import annotations

from tracejury.app.config import config
from tracejury.app.grants import TRACE, Grant, TokenError, check
from tracejury.app.session import RANK, Role
from tracejury.ingest.store import read_transaction
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import Person, person


def checked(space: Workspace, token: object, *, subject: str, purpose: str = TRACE, role: Role = "annotator") -> Grant:
    """The token's grant. Raises `TokenError` for a token that is not good for this, and, where people sign in,
    for a person who has been deactivated, has lost the role or has signed out since it was made.
    """
    grant = check(space.secret(), token, subject=subject, purpose=purpose)
    account = still_may(space, grant.user, role)
    if account is not None and account.epoch != grant.epoch:
        raise TokenError("this person has signed out")
    return grant


def still_may(space: Workspace, name: str, role: Role) -> Person | None:
    """The person, who must have the role; None where nobody signs in. Raises `TokenError`."""
    if config().sign_in == "off":
        return None
    with read_transaction(space.engine) as connection:
        account = person(connection, name)
    if account is None:
        raise ClosedAccountError
    if RANK[account.role] < RANK[role]:
        raise TokenError("this person no longer has the right to do this", status=403)
    return account


class ClosedAccountError(TokenError):
    """The person has been deactivated: nothing of theirs is refused for what it says, it only waits."""

    def __init__(self) -> None:
        super().__init__(
            "your account is deactivated",
            status=403,
            remedy="ask an administrator to activate it; unsaved labels stay in this browser and are saved then",
        )
