"""Signing in: the form, the cookie, the redirect, the limit; and that nothing a browser claims makes anyone someone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest
from tests.app.conftest import MAIN

from tracejury.app import signin
from tracejury.app.api.signin import NOBODY, WRONG, is_signed_in, signin_routes
from tracejury.app.config import config
from tracejury.app.signin import COOKIE, Session, SignInFirst, local_path, mint
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import TRIES_BY_NAME, add_person, change_person, person, sign_out

SECRET = "a long enough secret"


@pytest.fixture
def space(empty: Workspace, quick_passwords: None, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "password")
    config.cache_clear()
    with write_transaction(empty.engine) as connection:
        add_person(connection, "root", role="admin", by="me", password=SECRET)
        add_person(connection, "ada", role="annotator", by="root", password=SECRET, email="ada@example.org")
    return empty


async def whatever(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"page {request.url.path}")


@pytest.fixture
def client(space: Workspace) -> Iterator[TestClient]:
    routes = [*signin_routes(lambda: space, is_on=lambda: True), Route("/{rest:path}", whatever)]
    app = Starlette(routes=routes, middleware=[Middleware(SignInFirst, is_signed_in=is_signed_in)])
    with TestClient(app, follow_redirects=False) as made:
        yield made


def enter(client: TestClient, name: str = "ada", password: str = SECRET, **more: Any) -> Any:
    fields = {"name": name, "password": password, "next": "/work?trace=1"}
    return client.post("/api/signin", data=fields | more.pop("fields", {}), **more)


def page(client: TestClient, path: str = "/work?trace=1", **headers: str) -> Any:
    return client.get(path, headers={"accept": "text/html,*/*"} | headers)


class TestTheWayIn:
    def test_who_is_not_signed_in_is_sent_to_the_form_and_comes_back_to_where_they_wanted(
        self, client: TestClient
    ) -> None:
        sent = page(client)
        assert sent.status_code == 303
        assert sent.headers["location"] == "/api/signin?next=%2Fwork%3Ftrace%3D1"
        form = client.get(sent.headers["location"])
        assert form.status_code == 200
        assert 'value="/work?trace=1"' in form.text
        entered = enter(client)
        assert (entered.status_code, entered.headers["location"]) == (303, "/work?trace=1")
        assert page(client).text == "page /work"
        assert page(client).text == "page /work"  # a reload

    def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(self, client: TestClient) -> None:
        cookie = enter(client).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Secure" not in cookie  # this test is plain HTTP
        behind_tls = enter(client, headers={"origin": "https://testserver"})
        assert "Secure" in behind_tls.headers["set-cookie"]

    @pytest.mark.parametrize(("name", "password"), [("ada", "no"), ("eve", SECRET), ("", "")])
    def test_a_wrong_name_and_a_wrong_password_get_the_same_answer_and_no_cookie(
        self, client: TestClient, name: str, password: str
    ) -> None:
        answer = enter(client, name, password)
        assert answer.status_code == 401
        assert WRONG in answer.text
        assert "set-cookie" not in answer.headers
        assert page(client).status_code == 303

    def test_guessing_is_stopped_even_for_the_right_password(self, client: TestClient) -> None:
        for _ in range(TRIES_BY_NAME):
            assert enter(client, password="wrong").status_code == 401
        answer = enter(client)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 800
        assert "set-cookie" not in answer.headers

    def test_what_was_typed_is_shown_as_text(self, client: TestClient) -> None:
        answer = enter(client, '"><script>alert(1)</script>', "wrong")
        assert "<script>" not in answer.text
        assert "script-src" not in answer.headers["content-security-policy"]
        assert "default-src 'none'" in answer.headers["content-security-policy"]

    def test_a_form_of_another_site_is_refused(self, client: TestClient) -> None:
        for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
            assert enter(client, headers=headers).status_code == 403
        assert enter(client, headers={"sec-fetch-site": "same-origin"}).status_code == 303

    def test_a_huge_form_is_refused(self, client: TestClient) -> None:
        assert enter(client, "a" * 20_000).status_code == 413

    def test_without_an_administrator_the_form_says_what_to_do(
        self, empty: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = TestClient(Starlette(routes=list(signin_routes(lambda: empty, is_on=lambda: True))))
        assert NOBODY in client.get("/api/signin").text

    def test_the_form_is_not_there_when_passwords_are_not_the_way_in(self, empty: Workspace) -> None:
        client = TestClient(Starlette(routes=list(signin_routes(lambda: empty, is_on=lambda: False))))
        assert client.get("/api/signin").status_code == 404
        assert client.post("/api/signin", data={"name": "a", "password": "b"}).status_code == 404

    @pytest.mark.parametrize("path", ["/api/health", "/_stcore/health", "/static/a.js"])
    def test_what_is_no_page_is_not_redirected(self, client: TestClient, path: str) -> None:
        assert page(client, path).status_code == 200
        assert client.get("/work", headers={"accept": "*/*"}).status_code == 200  # only a browser's page is sent on


class TestSessions:
    @pytest.mark.parametrize("cookie", ["", "x", "WyJhZGEiLDBd.aaaa.bbbb"])
    def test_forged_cookies_are_nobody(self, client: TestClient, cookie: str) -> None:
        assert page(client, cookie=f"{COOKIE}={cookie}").status_code == 303

    def test_a_token_of_another_kind_or_secret_is_no_session(self, client: TestClient, space: Workspace) -> None:
        from tracejury.app.grants import Grant
        from tracejury.app.grants import mint as mint_grant

        for token in (mint_grant(space.secret(), Grant("ada", "export")), mint("another secret", Session("ada", 0))):
            assert page(client, cookie=f"{COOKIE}={token}").status_code == 303
        assert page(client, cookie=f"{COOKIE}={mint(space.secret(), Session('ada', 0))}").status_code == 200

    def test_signing_out_a_new_password_and_a_deactivation_end_the_session(
        self, client: TestClient, space: Workspace
    ) -> None:
        enter(client)
        sign_out(space.engine, "ada")
        assert page(client).status_code == 303
        enter(client)
        assert page(client).status_code == 200
        with write_transaction(space.engine) as connection:
            change_person(connection, "ada", by="root", password="another long secret")
        assert page(client).status_code == 303
        enter(client, password="another long secret")
        with write_transaction(space.engine) as connection:
            change_person(connection, "ada", by="root", active=False)
        assert page(client).status_code == 303
        right = enter(client, password="another long secret")
        assert (right.status_code, "Your account is deactivated" in right.text) == (403, True)
        wrong = enter(client, password="no such secret")
        assert (wrong.status_code, "deactivated" in wrong.text) == (401, False)

    def test_an_old_cookie_is_no_session(self, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        cookie = mint(space.secret(), Session("ada", 0))
        assert signin.read(space.secret(), cookie) == Session("ada", 0)
        monkeypatch.setattr(signin, "MAX_AGE_S", -1)
        assert signin.read(space.secret(), cookie) is None


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("/work?trace=a%2Fb", "/work?trace=a%2Fb"), (None, "/"), ("", "/"), ("work", "/"), ("//evil.example", "/"),
        ("/\\evil.example", "/"), ("https://evil.example", "/"), ("/ok\r\nSet-Cookie: a=b", "/"),
    ],
)  # fmt: skip
def test_one_only_comes_back_to_a_path_of_this_app(wanted: str | None, expected: str) -> None:
    assert local_path(wanted) == expected


class TestPages:
    """What the script shows to whom; the browser's cookies are put in its place."""

    def opened(self, monkeypatch: pytest.MonkeyPatch, cookie: str | None, page: str = "work") -> AppTest:
        class Context:
            cookies = {} if cookie is None else {COOKIE: cookie}

        monkeypatch.setattr(st, "context", Context())
        at = AppTest.from_file(str(MAIN), default_timeout=60)
        at.switch_page(f"views/{page}.py")
        at.query_params["as"] = "root"  # means nothing where people sign in
        return at.run()

    def test_nobody_sees_a_page_without_a_session(self, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        at = self.opened(monkeypatch, None)
        assert [info.value for info in at.info] == ["You are signed out. Reload this page to sign in."]
        assert not at.exception

    def test_the_role_is_the_stores_and_reaches_the_pages_on_the_server(
        self, space: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ada = mint(space.secret(), Session("ada", 0))
        at = self.opened(monkeypatch, ada, "account")
        assert at.text[0].value == "Signed in as ada, annotator."
        assert "Admin" not in [header.value for header in self.opened(monkeypatch, ada, "admin").header]
        root = self.opened(monkeypatch, mint(space.secret(), Session("root", 0)), "admin")
        assert root.header[0].value == "Admin"

    def test_signing_out_on_the_account_page_ends_the_session(
        self, space: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        at = self.opened(monkeypatch, mint(space.secret(), Session("ada", 0)), "account")
        at.button(key="sign_out").click().run()
        assert at.info[0].value.startswith("You are signed out")
        with read_transaction(space.engine) as connection:
            found = person(connection, "ada")
        assert found is not None
        assert found.epoch == 1

    @pytest.mark.parametrize(
        ("claims", "name"),
        [
            ({"is_logged_in": True, "email": "ADA@example.org", "email_verified": True}, "ada"),
            ({"is_logged_in": True, "email": "ada@example.org", "email_verified": False}, None),
            ({"is_logged_in": True, "email": "eve@example.org"}, None),
            ({"is_logged_in": True}, None),
            ({"is_logged_in": False}, None),
        ],
    )
    def test_with_a_provider_the_verified_address_decides(
        self, space: Workspace, monkeypatch: pytest.MonkeyPatch, claims: dict[str, Any], name: str | None
    ) -> None:
        monkeypatch.setenv("TRACEJURY_SIGN_IN", "oidc")
        config.cache_clear()
        monkeypatch.setattr(st, "user", claims)
        at = self.opened(monkeypatch, None, "account")
        shown = [text.value for text in at.text]
        assert shown == ([] if name is None else [f"Signed in as {name}, annotator."])
        assert not at.exception


def test_with_sign_in_off_one_person_on_this_machine_has_every_right(
    empty: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = AppTest.from_file(str(MAIN), default_timeout=60)
    at.switch_page("views/admin.py")
    at.run()
    assert at.header[0].value == "Admin"


class TestWhoSends:
    def test_eight_wrong_passwords_of_a_stranger_leave_a_known_device_the_way_in(self, client: TestClient) -> None:
        assert enter(client).status_code == 303
        del client.cookies[COOKIE]
        stranger = TestClient(client.app, follow_redirects=False)
        for _ in range(TRIES_BY_NAME):
            assert enter(stranger, password="wrong").status_code == 401
        assert enter(stranger).status_code == 429
        assert enter(client).status_code == 303

    def test_the_cookie_of_a_device_is_for_its_own_person_and_opens_nothing(self, client: TestClient) -> None:
        enter(client)
        device = client.cookies[signin.DEVICE]
        assert signin.known_device("another secret", device, "ada") == ""
        stranger = TestClient(client.app, follow_redirects=False, cookies={signin.DEVICE: device})
        assert page(stranger).status_code == 303
        for _ in range(TRIES_BY_NAME):
            enter(stranger, name="root", password="wrong")
        assert enter(stranger, name="root").status_code == 429

    def test_a_header_of_a_proxy_that_nobody_named_gives_no_new_address(self, client: TestClient) -> None:
        for number in range(TRIES_BY_NAME):
            enter(client, password="wrong", headers={"x-forwarded-for": f"10.0.0.{number}"})
        assert enter(client, headers={"x-forwarded-for": "10.9.9.9"}).status_code == 429
