"""Fixtures for the tests of pages: a workspace with samples, an empty one, and a page opened in either."""

from __future__ import annotations

import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import streamlit as st
import streamlit.config
from argon2 import PasswordHasher
from sqlalchemy import delete, func, select
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner
from tests.app.workspaces import filled, now_of

from tracejury.app import session
from tracejury.app.config import config
from tracejury.app.pages import ACCOUNT, PAGES
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace, open_workspace, people, tables
from tracejury.judging.store.revisions import Revision

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"
OpenPage = Callable[..., AppTest]
RUN_S = 240.0
"""When a run of a script is given up. Only one that never ends takes so long, on whatever machine."""


@pytest.fixture(scope="session", autouse=True)
def _read_once() -> Iterator[None]:
    """As the app's server does it: without magic (`app/.streamlit/config.toml`), a script is compiled once and what
    is installed is looked through once, not for every run of every test."""
    kept = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: kept)
        patch.setattr(local_script_runner, "require_widgets_deltas", _wait_for_end)
        streamlit.config.set_option("runner.magicEnabled", False)
        yield


def _wait_for_end(runner: local_script_runner.LocalScriptRunner, timeout: float) -> None:
    """Wait until the script has ended. Streamlit's own wait reads the wall clock, and fails a test where the machine
    slept or its clock was set. Raises `RuntimeError` with the place of each thread where it never ends."""
    script = runner._script_thread
    assert script is not None
    try:
        script.join(max(timeout, RUN_S))
        if script.is_alive():
            stacks = ["".join(traceback.format_stack(frame)) for frame in sys._current_frames().values()]
            raise RuntimeError("\n\n".join(["the script did not end; each thread stood at", *stacks]))
    except BaseException:
        runner.request_stop()  # else who waits for its thread waits for ever
        raise


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The filled workspace; only ever copied."""
    home = tmp_path_factory.mktemp("samples") / "home"
    filled(home).engine.dispose()
    return home


@pytest.fixture
def clean_caches() -> Iterator[None]:
    """The app opens its workspace once a process: each test must open its own."""

    def clear() -> None:
        config.cache_clear()
        st.cache_resource.clear()
        st.cache_data.clear()

    clear()
    yield
    clear()


@pytest.fixture
def full(sample_home: Path, tmp_path: Path, clean_caches: None) -> Workspace:
    shutil.copytree(sample_home, tmp_path / "home")
    return open_workspace(tmp_path / "home")


@pytest.fixture
def shown(sample_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """The filled workspace itself, for who only looks: estimates that one test had made are there for the next.

    `tests.sharing` has these tests come before those that start anew.
    """
    monkeypatch.setenv("TRACEJURY_HOME", str(sample_home))
    config.cache_clear()
    session.workspace.clear()  # type: ignore[attr-defined]
    space = open_workspace(sample_home)
    before = state_of(space)
    yield space
    config.cache_clear()
    session.workspace.clear()  # type: ignore[attr-defined]
    with write_transaction(space.engine) as connection:
        connection.execute(delete(tables.seen))  # looking is recorded; what is copied from here begins blind
    assert state_of(space) == before, "a test that only looks has written"


def state_of(space: Workspace) -> tuple[Revision, int, list[str]]:
    """What is stored, in the store, in its audit log and beside it."""
    with read_transaction(space.engine) as connection:
        events = connection.scalar(select(func.count()).select_from(tables.audit)) or 0
    return now_of(space), events, sorted(file.name for file in space.home.rglob("*") if "-" not in file.suffix)


@pytest.fixture
def empty(tmp_path: Path, clean_caches: None) -> Workspace:
    return open_workspace(tmp_path / "home")


@pytest.fixture
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password takes a quarter of a second on purpose; `tests/judging/test_people.py` takes it."""
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(people, "_hasher", lambda: quick)


@pytest.fixture
def open_page() -> OpenPage:
    """Open a page by its file's name, with query parameters; fails on any exception shown."""

    def opened(name: str, **query: str | list[str]) -> AppTest:
        at = AppTest.from_file(str(MAIN), default_timeout=RUN_S)
        at.switch_page(str(next(page.script for page in (*PAGES, ACCOUNT) if page.file == name)))
        for key, value in query.items():
            at.query_params[key] = value
        at.run()
        assert [problem.value for problem in at.exception] == []
        return at

    return opened
