"""Downloads are made for who asked, under each kind of sign-in and role; or the press says why not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from streamlit.runtime.scriptrunner_utils.exceptions import StopException
from tests.app.conftest import OpenPage

from tracejury.app import session, signin
from tracejury.app.config import config
from tracejury.app.session import NoRightError, Role
from tracejury.ingest.store import write_transaction
from tracejury.judging.reports import health
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import add_person, change_person, person, sign_out

SECRET = "a long enough secret"
Pressed = dict[str, Callable[[], Any]]


@pytest.fixture
def space(full: Workspace, quick_passwords: None) -> Iterator[Workspace]:
    with write_transaction(full.engine) as connection:
        add_person(connection, "root", role="admin", by="me", password=SECRET, email="root@example.org")
        add_person(connection, "ruth", role="researcher", by="root", password=SECRET, email="ruth@example.org")
    yield full
    config.cache_clear()


def offered(open_page: OpenPage, space: Workspace, page: str, *, mode: str, name: str) -> Pressed:
    """The downloads of a page, drawn for somebody who signed in, by label: what is called when one is pressed."""
    downloads: Pressed = {}

    def button(label: str, data: Any, **_options: Any) -> bool:
        if callable(data):
            downloads[label] = data
        return False

    with write_transaction(space.engine) as connection:
        known = person(connection, name)
    assert known is not None

    cookie = signin.mint(space.secret(), signin.Session(known.name, known.epoch))
    context = SimpleNamespace(cookies={signin.COOKIE: cookie}, headers={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(st, "download_button", button)
        if mode == "password":
            patch.setattr(st, "context", context)
        if mode == "oidc":
            patch.setattr(session, "_person_of_provider", lambda: known)
        at = open_page(page)
        if page == "admin":
            at.segmented_control(key="admin_view").set_value("Backup").run()
    return downloads


def pressed(make: Callable[[], Any]) -> Any:
    """What a press gives: Streamlit calls it in a thread of its own, where no page runs."""
    outcome: list[Any] = []

    def press() -> None:
        try:
            outcome.append(make())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=press)
    thread.start()
    thread.join()
    return outcome[0]


@pytest.mark.parametrize(
    ("mode", "page", "name"),
    [
        pytest.param("off", "reports", "root", marks=pytest.mark.soak),
        ("password", "reports", "ruth"),
        pytest.param("oidc", "reports", "ruth", marks=pytest.mark.soak),
        ("off", "admin", "root"),
        ("password", "admin", "root"),
        ("oidc", "admin", "root"),
    ],
)
def test_every_download_gives_its_file_whoever_may_press_it(
    mode: str, page: str, name: str, space: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", mode)
    config.cache_clear()
    health.backup(space.engine, space.home / health.FOLDER)
    downloads = offered(open_page, space, page, mode=mode, name=name)
    assert len(downloads) >= (7 if page == "reports" else 1)
    for label, make in downloads.items():
        made = pressed(make)
        assert isinstance(made, (bytes, str)), (label, made)
        assert made


def signed_out(space: Workspace) -> None:
    sign_out(space.engine, "ruth")


def deactivated(space: Workspace) -> None:
    with write_transaction(space.engine) as connection:
        change_person(connection, "ruth", by="root", active=False)


def of_role(role: Role) -> Callable[[Workspace], None]:
    def change(space: Workspace) -> None:
        with write_transaction(space.engine) as connection:
            change_person(connection, "ruth", by="root", role=role)

    return change


@pytest.mark.parametrize("mode", ["password", "oidc"])
@pytest.mark.parametrize("change", [signed_out, deactivated, of_role("annotator"), of_role("adjudicator")])
def test_a_download_pressed_without_the_right_says_so_and_gives_nothing(
    mode: str,
    change: Callable[[Workspace], None],
    space: Workspace,
    open_page: OpenPage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", mode)
    config.cache_clear()
    downloads = offered(open_page, space, "reports", mode=mode, name="ruth")
    change(space)
    for make in downloads.values():
        refused = pressed(make)
        assert isinstance(refused, NoRightError)
        assert "Try: sign in again" in str(refused)


def test_what_stops_a_page_reaches_whoever_pressed_as_an_error(
    space: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`st.stop` and the like are no plain exceptions: Streamlit would answer nothing, and the button stay dead."""
    monkeypatch.setattr(session, "user", lambda: session.User(name="ruth", role="researcher"))

    def stops() -> bytes:
        raise StopException

    assert isinstance(pressed(session.deferred(stops, role="researcher")), NoRightError)


def test_who_asked_stands_for_nobody_else_afterwards(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    who = session.User(name="ruth", role="researcher")
    monkeypatch.setattr(session, "user", lambda: who)
    make = session.deferred(lambda: session.signed_in(), role="researcher")
    assert make() == who
    assert session._asker.get() is None
