"""The page behind an invitation's link: one chooses a password, is signed in, and the link is good no more."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.app.conftest import OpenPage

from tracejury.app import session
from tracejury.app.api.invitation import PATH, invitation_routes
from tracejury.app.api.signin import is_signed_in
from tracejury.app.config import config
from tracejury.app.signin import COOKIE
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace
from tracejury.judging.store.invitations import invitations, invite
from tracejury.judging.store.people import add_person, person

PASSWORD = "a long enough secret"


@pytest.fixture
def space(empty: Workspace, quick_passwords: None, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "password")
    config.cache_clear()
    with write_transaction(empty.engine) as connection:
        add_person(connection, "root", role="admin", by="me", password=PASSWORD)
    return empty


@pytest.fixture
def code(space: Workspace) -> str:
    with write_transaction(space.engine) as connection:
        return invite(
            connection, "Mary Jane", role="adjudicator", days=1, by="root", now=time.time_ns() // 1000
        )  # fmt: skip


@pytest.fixture
def client(space: Workspace) -> Iterator[TestClient]:
    app = Starlette(routes=list(invitation_routes(lambda: space, is_on=lambda: True)))
    with TestClient(app, follow_redirects=False) as made:
        yield made


def test_who_opens_the_link_chooses_a_password_and_is_signed_in(
    space: Workspace, client: TestClient, code: str
) -> None:
    form = client.get(PATH, params={"code": code})
    assert (form.status_code, "<b>Mary Jane</b>, adjudicator" in form.text) == (200, True)
    joined = client.post(PATH, data={"code": code, "password": PASSWORD, "again": PASSWORD})
    assert (joined.status_code, joined.headers["location"]) == (303, "/")
    assert is_signed_in(joined.cookies[COOKIE])
    with read_transaction(space.engine) as connection:
        found = person(connection, "Mary Jane")
    assert found is not None
    assert found.role == "adjudicator"
    again = client.post(PATH, data={"code": code, "password": "another long secret", "again": "another long secret"})
    assert (again.status_code, COOKIE in again.cookies) == (410, False)
    assert client.get(PATH, params={"code": code}).status_code == 410


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"again": "different"}, 422, "differ"),
        ({"password": "short", "again": "short"}, 422, "use 10 or more"),
        ({"code": "guess"}, 410, "was used, revoked or has expired"),
        ({"role": "admin", "name": "root", "again": ""}, 422, "differ"),
    ],
)
def test_what_is_refused_makes_nobody_known(
    space: Workspace, client: TestClient, code: str, fields: dict[str, str], status: int, words: str
) -> None:
    answer = client.post(PATH, data={"code": code, "password": PASSWORD, "again": PASSWORD} | fields)
    assert (answer.status_code, words in answer.text) == (status, True)
    with read_transaction(space.engine) as connection:
        assert person(connection, "Mary Jane") is None


def test_a_form_of_another_site_is_refused(client: TestClient, code: str) -> None:
    fields = {"code": code, "password": PASSWORD, "again": PASSWORD}
    assert client.post(PATH, data=fields, headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_markup_in_a_link_stays_text(client: TestClient) -> None:
    assert "<script" not in client.get(PATH, params={"code": '"><script>alert(1)</script>'}).text


def test_there_is_no_such_page_where_nobody_signs_in_with_a_password(space: Workspace, code: str) -> None:
    app = Starlette(routes=list(invitation_routes(lambda: space, is_on=lambda: False)))
    with TestClient(app) as client:
        assert client.get(PATH, params={"code": code}).status_code == client.post(PATH).status_code == 404


def test_an_administrator_makes_a_link_that_is_shown_once_and_revokes_it(
    space: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="root", role="admin"))
    at = open_page("admin")
    at.text_input(key="invite_name").input("ada")
    at.button(key="FormSubmitter:invite-Create link").click().run()
    (link,) = [one.value for one in at.code]
    assert f"{PATH}?code=" in link
    at.run()
    assert [one.value for one in at.code] == []
    with read_transaction(space.engine) as connection:
        (offer,) = invitations(connection, now=time.time_ns() // 1000)
    assert (offer.name, offer.role) == ("ada", "annotator")
    at.button(key=f"revoke-{offer.key}").click().run()
    assert [one.value for one in at.success] == ["The invitation of ada is revoked."]
    with read_transaction(space.engine) as connection:
        assert invitations(connection, now=time.time_ns() // 1000) == []
