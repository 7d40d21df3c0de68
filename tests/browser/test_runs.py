"""A run queued and paused from the browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.researcher import settled
from tracejury.judging.runs.run_store import watch
from tracejury.judging.store import Workspace

pytestmark = pytest.mark.browser


def test_a_run_is_queued_and_paused(page: Page, sample_server: str, sample_space: Workspace) -> None:
    page.goto(f"{sample_server}/runs")
    settled(page)
    page.get_by_text("Start a run").click()
    page.get_by_label("Model", exact=True).fill("scripted/model")
    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_text("is queued")).to_be_visible()
    page.locator(".st-key-pause button").click()
    expect(page.locator(".st-key-resume button")).to_be_visible()
    assert watch(sample_space.engine, 5)["status"] == "paused"
