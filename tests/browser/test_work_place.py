"""Where one is: a fresh visit goes back to the draft, links that lead nowhere say so, skipped is not done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.app.desk_traces import desk_trace
from tests.browser.desk import Desk, Server, store
from tracejury.ingest.store import write_transaction
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.store import Workspace, open_workspace

pytestmark = pytest.mark.browser


@pytest.fixture
def home(tmp_path: Path) -> Workspace:
    space = open_workspace(tmp_path / "home")
    for name in ("t1", "t2", "t3"):
        store(space, desk_trace(name))
    return space


@pytest.fixture
def address(home: Workspace, tmp_path: Path) -> Iterator[str]:
    running = Server(home.home, tmp_path / "server.txt")
    yield running.url
    running.stop()


def shown(page: Page, url: str, trace_id: str) -> None:
    page.goto(url, wait_until="commit")
    page.wait_for_selector(f'.tj-desk[data-ready="{trace_id}"]', timeout=60_000)


def test_a_fresh_visit_opens_the_draft_at_its_span_and_passes_what_is_finished(
    profile: BrowserContext, home: Workspace, address: str
) -> None:
    desk = Desk(profile.new_page(), address, home, "t2")
    desk.keys("j", "j", "a", "1", "h")
    desk.saved()
    page = desk.page
    page.evaluate("localStorage.clear()")  # as another browser would come
    shown(page, f"{address}/", "t2")
    assert desk.current() == "S3"
    page.goto(f"{address}/?trace=t1", wait_until="commit")
    desk.ready("t1")
    page.keyboard.press("s")
    page.keyboard.type("too long")
    page.click("dialog[open] .tj-primary")
    desk.ready("t2")
    page.wait_for_selector('[data-tj="saved"][data-kind="saved"]')
    expect(page.locator('[data-tj="queue"]')).to_contain_text("0 of 3 done")
    shown(page, f"{address}/?trace=gone", "t2")
    expect(page.get_by_text("This workspace holds no trace 'gone'")).to_be_visible()


def test_a_link_to_a_trace_outside_ones_share_says_so_and_why(
    profile: BrowserContext, home: Workspace, address: str
) -> None:
    with write_transaction(home.engine) as connection:
        key = make_queue(connection, QueueSpec(name="mine", author="boss"), ["t1"], now=1)
    page = profile.new_page()
    shown(page, f"{address}/?queue={key}&trace=t3", "t1")
    expect(
        page.get_by_text("You may not open trace 't3' here: it is not assigned to you in this queue")
    ).to_be_visible()
    shown(page, f"{address}/?queue={key}&trace=gone", "t1")
    expect(page.get_by_text("this workspace holds no such trace")).to_be_visible()
