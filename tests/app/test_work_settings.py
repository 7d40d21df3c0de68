"""The desk's settings on the server: each person's own, conflicts refused, nothing else of the account touched."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import select
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tracejury.app.api import work
from tracejury.app.components.annotator.shortcuts import key_conflict, reserved, shortcuts
from tracejury.app.grants import Grant, mint
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.people import add_person, person, sign_out

TRACE = "any-trace"


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return open_workspace(tmp_path / "home")


@pytest.fixture
def client(space: Workspace) -> TestClient:
    return TestClient(Starlette(routes=list(work.work_routes(lambda: space))))


def token(space: Workspace, user: str = "ann") -> str:
    return mint(space.secret(), Grant(user, TRACE))


def got(client: TestClient, space: Workspace, user: str = "ann") -> Any:
    return client.get("/api/settings", params={"token": token(space, user), "trace_id": TRACE})


def put(client: TestClient, space: Workspace, keys: Any, base: int = 0, user: str = "ann", pretty: Any = False) -> Any:
    body = {"token": token(space, user), "trace_id": TRACE, "base_revision": base, "keys": keys, "pretty": pretty}
    return client.put("/api/settings", json=body)


def test_at_first_the_keys_are_those_of_the_sheet(client: TestClient, space: Workspace) -> None:
    assert got(client, space).json() == {"revision": 0, "keys": {}, "pretty": True, "panes": {}}


def test_a_change_is_kept_for_its_person_alone(client: TestClient, space: Workspace) -> None:
    assert put(client, space, {"newError": "B"}, pretty=True).json()["revision"] == 1
    assert got(client, space).json() == {"revision": 1, "keys": {"newError": "B"}, "pretty": True, "panes": {}}
    assert got(client, space, "ben").json()["keys"] == {}


def test_a_change_on_top_of_another_windows_is_refused(client: TestClient, space: Workspace) -> None:
    put(client, space, {"newError": "B"})
    answer = put(client, space, {"newError": "'"}, base=0)
    assert answer.status_code == 409
    assert "another window" in answer.json()["error"]
    assert got(client, space).json()["keys"] == {"newError": "B"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"newError": "J"}, "J is used by “Next span”."),
        ({"newError": "B", "next": "B"}, "B is used by “New error here"),
        ({"newError": "R"}, "R is reserved."),
        ({"newError": "3"}, "3 is reserved."),
        ({"submit": "B"}, "The key of “Check, save and submit” is fixed."),
        ({"dance": "B"}, "There is no action 'dance'"),
        ({"newError": 7}, "The key of “New error here, selection as evidence” is none."),
        ({"newError": "x" * 30}, "is none"),
    ],
)
def test_keys_that_cannot_be_are_refused_with_the_reason(
    client: TestClient, space: Workspace, keys: Any, message: str
) -> None:
    answer = put(client, space, keys)
    assert answer.status_code == 422
    assert message in answer.json()["error"]
    assert got(client, space).json()["revision"] == 0


def test_two_acts_may_change_places(client: TestClient, space: Workspace) -> None:
    assert put(client, space, {"next": "K", "previous": "J"}).status_code == 200


@pytest.mark.parametrize("panes", [[], {"top": 20}, {"left": 61}, {"left": -1}, {"side": True}, {"side": "20%"}])
def test_widths_of_panes_are_kept_within_bounds(client: TestClient, space: Workspace, panes: Any) -> None:
    body = {"token": token(space), "trace_id": TRACE, "base_revision": 0, "keys": {}, "pretty": True}
    assert client.put("/api/settings", json=body | {"panes": panes}).status_code == 422
    assert client.put("/api/settings", json=body | {"panes": {"left": 30, "side": 0}}).status_code == 200
    assert got(client, space).json()["panes"] == {"left": 30, "side": 0}


@pytest.mark.parametrize("pretty", [None, 1, "yes"])
def test_settings_of_another_form_are_refused(client: TestClient, space: Workspace, pretty: Any) -> None:
    assert put(client, space, {}, pretty=pretty).status_code == 422
    assert put(client, space, [], pretty=True).status_code == 422


def test_without_a_token_there_are_none(client: TestClient) -> None:
    assert client.get("/api/settings", params={"trace_id": TRACE}).status_code == 401
    assert client.put("/api/settings", json={"trace_id": TRACE, "keys": {}, "pretty": True}).status_code == 401


def test_the_rest_of_the_account_stays_as_it_is(client: TestClient, space: Workspace) -> None:
    """The same column counts the sessions that were ended: a new key must not bring one back."""
    with write_transaction(space.engine) as connection:
        add_person(connection, "ann", role="annotator", by="boss", password="long enough password")
    sign_out(space.engine, "ann")
    put(client, space, {"newError": "B"})
    sign_out(space.engine, "ann")
    with read_transaction(space.engine) as connection:
        account = person(connection, "ann")
        assert account is not None
        assert (account.epoch, account.role) == (2, "annotator")
        settings_json = connection.scalar(
            select(tables.annotator.c.settings).where(tables.annotator.c.annotator == "ann")
        )
    assert set(orjson.loads(settings_json or "")) == {"epoch", "desk"}
    assert got(client, space).json()["keys"] == {"newError": "B"}


def test_the_server_knows_every_key_of_the_island() -> None:
    source = (Path(work.__file__).parents[1] / "components" / "annotator" / "js" / "keys.mjs").read_text("utf-8")
    assert list(shortcuts()) == re.findall(r'\{ id: "(\w+)"', source)
    assert {"R", "C", "Tab", "Ctrl+Enter", "0", "9"} <= reserved()
    assert key_conflict({}) is None
    owners = [key for one in shortcuts().values() for key in one.keys]
    assert len(owners) == len(set(owners)), "no key stands twice in the table"
