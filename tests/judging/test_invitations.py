"""Invitations: good once, for some days, for the name and role that the lead fixed; no secret is stored."""

from pathlib import Path

import pytest
from tests.judging.team import T0

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace, open_workspace
from tracejury.judging.store.audit import audit_log
from tracejury.judging.store.invitations import DAY, accept, invitation, invitations, invite, revoke
from tracejury.judging.store.people import PeopleError, Person, add_person, person, sign_in

PASSWORD = "a long enough secret"


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return open_workspace(tmp_path / "home")


def made(space: Workspace, name: str = "ada", role: str = "adjudicator", days: int = 7) -> str:
    with write_transaction(space.engine) as connection:
        return invite(connection, name, role=role, days=days, by="root", now=T0)


def accepted(space: Workspace, secret: str, now: int = T0, password: str = PASSWORD) -> Person:
    with write_transaction(space.engine) as connection:
        return accept(connection, secret, password=password, now=now)


def holds(space: Workspace, secret: str, now: int = T0) -> bool:
    with read_transaction(space.engine) as connection:
        return invitation(connection, secret, now=now) is not None


def test_it_makes_the_person_once_with_the_role_that_was_fixed(space: Workspace) -> None:
    secret = made(space)
    assert accepted(space, secret).role == "adjudicator"
    assert sign_in(space.engine, "ada", PASSWORD) is not None
    assert not holds(space, secret)
    with pytest.raises(PeopleError, match="used, revoked or has expired"):
        accepted(space, secret, password="another long secret")
    assert sign_in(space.engine, "ada", "another long secret") is None


def test_it_expires_and_is_revoked(space: Workspace) -> None:
    late, gone = made(space, days=2), made(space, "ben")
    assert (holds(space, late, T0 + 2 * DAY - 1), holds(space, late, T0 + 2 * DAY)) == (True, False)
    with read_transaction(space.engine) as connection:
        (of_ben,) = [one.key for one in invitations(connection, now=T0) if one.name == "ben"]
    with write_transaction(space.engine) as connection:
        revoke(connection, of_ben, by="root", now=T0)
    for secret, now in ((late, T0 + 3 * DAY), (gone, T0), ("unknown", T0)):
        with pytest.raises(PeopleError, match="used, revoked or has expired"):
            accepted(space, secret, now)
    with read_transaction(space.engine) as connection:
        assert person(connection, "ada") is None


def test_a_password_that_is_refused_leaves_the_link_good(space: Workspace) -> None:
    secret = made(space)
    with pytest.raises(PeopleError, match="use 10 or more"):
        accepted(space, secret, password="short")
    assert holds(space, secret)
    assert accepted(space, secret).name == "ada"


def test_no_secret_stands_in_the_store_or_the_audit_log(space: Workspace) -> None:
    secret = made(space)
    with read_transaction(space.engine) as connection:
        assert list(audit_log(connection)["what"]) == ["person invited"]
    space.engine.dispose()
    for file in space.home.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("name", "role", "days", "reason"),
    [("root", "admin", 7, "taken"), ("ben", "admin", 7, "invited already"),
     ("", "admin", 7, "is not a valid name"), ("cyd", "king", 7, "is not a role"),
     ("cyd", "admin", 0, "choose 1 to 30"), ("cyd", "admin", 31, "choose 1 to 30")],
)  # fmt: skip
def test_what_cannot_be_offered_is_refused(space: Workspace, name: str, role: str, days: int, reason: str) -> None:
    with write_transaction(space.engine) as connection:
        add_person(connection, "root", role="admin", by="test")
    made(space, "ben")
    with pytest.raises(PeopleError, match=reason):
        made(space, name, role, days)
