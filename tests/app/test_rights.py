"""What a token may do: one purpose, one subject, and only while the person has the right."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from itsdangerous import TimestampSigner
from tests.build import workspace

from tracejury.app import signin
from tracejury.app.api.rights import ClosedAccountError, checked
from tracejury.app.config import config
from tracejury.app.grants import CLOCK_S, MAX_AGE_S, Grant, TokenError, check, mint
from tracejury.ingest.store import write_transaction
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import add_person, change_person, sign_out


@pytest.fixture
def space(tmp_path: Path, quick_passwords: None, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "password")
    config.cache_clear()
    opened = workspace(tmp_path)
    with write_transaction(opened.engine) as connection:
        for name, role in (("root", "admin"), ("ada", "researcher")):
            add_person(connection, name=name, role=role, password="a long enough word", by="root")  # type: ignore[arg-type]
    yield opened  # type: ignore[misc]
    config.cache_clear()


def test_a_subject_of_one_purpose_is_none_of_another() -> None:
    token = mint("secret", Grant("ada", "export"))
    assert check("secret", token, subject="export") == Grant("ada", "export")
    with pytest.raises(TokenError):
        check("secret", token, subject="export", purpose="export")


@pytest.mark.parametrize(
    ("ahead_s", "holds"), [(90, True), (-90, True), (CLOCK_S + 60, False), (-MAX_AGE_S - 60, False)]
)
def test_a_token_of_a_clock_that_is_a_little_ahead_holds(
    ahead_s: int, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two machines of one team, or of one whose clock was set back since."""
    now = time.time()
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _self: int(now + ahead_s))
    token = mint("secret", Grant("ada", "x"))
    with nullcontext() if holds else pytest.raises(TokenError, match="expired"):
        assert check("secret", token, subject="x").user == "ada"
    if ahead_s > 0:
        assert (signin.read("secret", signin.mint("secret", signin.Session("ada", 0))) is not None) == holds


def test_a_person_who_lost_the_role_or_the_place_holds_a_dead_token(space: Workspace) -> None:
    token = mint(space.secret(), Grant("ada", "export"), purpose="export")
    asked = {"subject": "export", "purpose": "export", "role": "researcher"}
    assert checked(space, token, **asked).user == "ada"  # type: ignore[arg-type]
    for change in ({"role": "annotator"}, {"active": False}):
        with write_transaction(space.engine) as connection:
            change_person(connection, name="ada", by="root", **change)  # type: ignore[arg-type]
        with pytest.raises(TokenError) as caught:
            checked(space, token, **asked)  # type: ignore[arg-type]
        assert caught.value.status == 403
    assert isinstance(caught.value, ClosedAccountError)  # the last change deactivated her


def test_signing_out_ends_the_tokens_made_before(space: Workspace) -> None:
    token = mint(space.secret(), Grant("ada", "trace-1"))
    assert checked(space, token, subject="trace-1").user == "ada"
    sign_out(space.engine, "ada")
    with pytest.raises(TokenError, match="signed out") as caught:
        checked(space, token, subject="trace-1")
    assert caught.value.status == 401  # the page asks for another; work that waits is not refused
    assert checked(space, mint(space.secret(), Grant("ada", "trace-1", epoch=1)), subject="trace-1").user == "ada"
    with pytest.raises(TokenError):
        checked(space, mint(space.secret(), Grant("root", "trace-1", epoch=1)), subject="trace-1")
