"""Tokens for scripts: of one person, for one use and some days, revoked with the right, the password or a word."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import select
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.app.conftest import OpenPage
from tests.build import workspace

from tracejury.app import session
from tracejury.app.api.otlp import otlp_routes
from tracejury.app.api.scripts import DAY_S, checked_script, is_script, mint_script
from tracejury.app.cli import main
from tracejury.app.config import config
from tracejury.app.grants import Grant, TokenError, mint
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.people import add_person, change_person, revoke_script_tokens, sign_out


@pytest.fixture
def space(tmp_path: Path, quick_passwords: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "password")
    monkeypatch.setenv("TRACEJURY_HOME", str(tmp_path / "home"))
    config.cache_clear()
    opened = workspace(tmp_path / "home")
    with write_transaction(opened.engine) as connection:
        for name, role in (("root", "admin"), ("ada", "researcher"), ("ann", "annotator")):
            add_person(connection, name=name, role=role, password="a long enough word", by="root")  # type: ignore[arg-type]
    yield opened
    config.cache_clear()


def make(space: Workspace, user: str = "ada", **more: Any) -> str:
    return mint_script(space, user, **({"use": "export", "days": 7, "by": "root"} | more))


def test_it_says_whose_it_is_and_stands_nowhere_in_the_store(space: Workspace) -> None:
    token = make(space)
    assert is_script(token)
    assert checked_script(space, token, use="export").user == "ada"
    with read_transaction(space.engine) as connection:
        (detail,) = connection.scalars(
            select(tables.audit.c.detail).where(tables.audit.c.what == "script token made")
        ).all()
        settings = connection.scalars(select(tables.annotator.c.settings)).all()
    assert "export" in detail
    assert token not in " ".join([detail, *settings])


def test_it_ends_after_its_days(space: Workspace) -> None:
    token = make(space, days=1, now=time.time() - DAY_S - 1)
    with pytest.raises(TokenError, match="has expired"):
        checked_script(space, token, use="export")
    with pytest.raises(ValueError, match="1 to 90"):
        make(space, days=91)


def test_it_is_for_one_use(space: Workspace) -> None:
    with pytest.raises(TokenError, match="is for otlp"):
        checked_script(space, make(space, use="otlp"), use="export")


@pytest.mark.parametrize("change", [{"role": "annotator"}, {"active": False}, {"password": "another long word"}])
def test_it_ends_with_the_right_the_place_and_the_password(space: Workspace, change: dict[str, Any]) -> None:
    token = make(space)
    with write_transaction(space.engine) as connection:
        change_person(connection, name="ada", by="root", **change)
    with pytest.raises(TokenError):
        checked_script(space, token, use="export")


def test_signing_out_of_the_browser_leaves_scripts_alone_and_taking_back_ends_one_persons(space: Workspace) -> None:
    mine, roots = make(space), make(space, "root")
    sign_out(space.engine, "ada")
    assert checked_script(space, mine, use="export").user == "ada"
    with write_transaction(space.engine) as connection:
        revoke_script_tokens(connection, "ada", by="ada")
    with pytest.raises(TokenError, match="revoked"):
        checked_script(space, mine, use="export")
    assert checked_script(space, roots, use="export").user == "root"
    assert checked_script(space, make(space), use="export").user == "ada"


@pytest.mark.parametrize("token", [None, "", "tracejury_", "tracejury_forged", "tracejury_WyJyb290Il0.x"])
def test_what_is_not_genuine_is_refused(space: Workspace, token: str | None) -> None:
    with pytest.raises(TokenError, match="not genuine"):
        checked_script(space, token, use="export")
    page = mint(space.secret(), Grant("ada", "pairs"), purpose="export")
    with pytest.raises(TokenError, match="not genuine"):
        checked_script(space, page, use="export")


def test_an_exporter_of_traces_needs_one_where_people_sign_in(space: Workspace) -> None:
    client = TestClient(Starlette(routes=list(otlp_routes(lambda: space))))
    body = {"resourceSpans": []}
    assert client.post("/v1/traces", json=body).status_code == 401
    for use, status in (("export", 403), ("otlp", 200)):
        header = {"Authorization": f"Bearer {make(space, use=use)}"}
        assert client.post("/v1/traces", json=body, headers=header).status_code == status


class TestTheCommand:
    def run(self, *words: str) -> Any:
        return CliRunner().invoke(main, ["token", *words])

    def test_it_prints_the_token_and_says_how_long_it_is_good(self, space: Workspace) -> None:
        made = self.run("--person", "ada", "--days", "2")
        assert (made.exit_code, made.stderr.strip()) == (
            0, "for ada, to export, expires in 2 days; --revoke ends it",
        )  # fmt: skip
        token = made.stdout.strip()
        assert checked_script(space, token, use="export").user == "ada"
        assert self.run("--person", "ada", "--revoke").exit_code == 0
        with pytest.raises(TokenError, match="revoked"):
            checked_script(space, token, use="export")

    @pytest.mark.parametrize("who", ["ann", "nobody"])
    def test_who_has_not_the_right_gets_none(self, space: Workspace, who: str) -> None:
        refused = self.run("--person", who)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "NAME of a researcher" in refused.stderr

    def test_where_nobody_signs_in_the_one_person_gets_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TRACEJURY_HOME", str(tmp_path / "alone"))
        monkeypatch.delenv("TRACEJURY_SIGN_IN", raising=False)
        config.cache_clear()
        alone = open_workspace(tmp_path / "alone")
        made = self.run()
        assert checked_script(alone, made.stdout.strip(), use="export").user == config().user
        assert self.run("--revoke").exit_code == 0
        with pytest.raises(TokenError, match="revoked"):
            checked_script(alone, made.stdout.strip(), use="export")


class TestTheAccountPage:
    @pytest.fixture(autouse=True)
    def signed_in(self, space: Workspace, clean_caches: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(session, "signed_in", lambda: session.User(name="ada", role="researcher"))

    def test_a_token_is_shown_once_and_taken_back(self, space: Workspace, open_page: OpenPage) -> None:
        at = open_page("account")
        at.number_input(key="script_days").set_value(3)
        at.button(key="FormSubmitter:script_token-Create token").click().run()
        token = at.code[0].value
        assert checked_script(space, token, use="export").user == "ada"
        at.run()
        assert [one.value for one in at.code] == []
        at.button(key="revoke_tokens").click().run()
        with pytest.raises(TokenError, match="revoked"):
            checked_script(space, token, use="export")

    def test_an_annotator_is_offered_none(self, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(session, "signed_in", lambda: session.User(name="ann", role="annotator"))
        at = open_page("account")
        assert [one.key for one in at.button] == ["sign_out"] + [
            one.key for one in at.button if one.key and one.key.startswith("FormSubmitter:own_password")
        ]
