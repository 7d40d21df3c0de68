"""One workspace, server and browser for each module of desk tests; each test starts with an empty storage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from ingest.trace import Trace
from judging.ledger import Workspace, open_workspace
from tests.app.desk_traces import desk_trace
from tests.browser.desk import Desk, OpenDesk, Server, store


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return open_workspace(tmp_path_factory.mktemp("desk") / "home")


@pytest.fixture(scope="module")
def server(space: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the app on a free port; ends with the module."""
    store(space, desk_trace("first"))
    running = Server(space.home, tmp_path_factory.mktemp("log") / "server.txt")
    yield running.url
    running.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def warm_context(browser: Browser) -> BrowserContext:
    """Streamlit's own scripts are fetched and compiled once a module, not once a test."""
    return browser.new_context(viewport={"width": 1280, "height": 800})


@pytest.fixture
def context(warm_context: BrowserContext, server: str) -> Iterator[BrowserContext]:
    yield warm_context
    warm_context.set_offline(False)
    for page in warm_context.pages:
        page.close()
    page = warm_context.new_page()
    page.goto(f"{server}/_stcore/health")
    page.evaluate("localStorage.clear()")
    page.close()


@pytest.fixture
def open_desk(context: BrowserContext, server: str, space: Workspace, request: pytest.FixtureRequest) -> OpenDesk:
    """Opens a fresh trace of this test (or the one given) in a page of the context."""

    def opened(trace: Trace | None = None, trace_id: str | None = None, user: str = "me") -> Desk:
        name = trace_id or (trace.trace_id if trace else request.node.name.split("[")[0])
        if trace_id is None:
            store(space, trace or desk_trace(name))
        return Desk(context.new_page(), server, space, name, user)

    return opened
