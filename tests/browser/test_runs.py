"""A run started from the browser, and its process seen to fail."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.researcher import settled
from tracejury.judging.runs.run_control import watch
from tracejury.judging.store import Workspace

pytestmark = pytest.mark.browser


def test_a_run_that_cannot_be_worked_on_is_paused_with_its_reason(
    page: Page, sample_server: str, sample_space: Workspace
) -> None:
    page.goto(f"{sample_server}/runs")
    settled(page)
    page.get_by_text("Start a run").click()
    settled(page)  # what is typed while the page draws its fields anew is lost
    model = page.get_by_label("Model", exact=True)
    model.fill("scripted/model")
    model.press("Enter")  # estimates; it starts nothing
    expect(model).to_have_value("scripted/model")
    page.get_by_role("button", name="Start the run").click(timeout=240_000)
    expect(page.get_by_text("Run 5 starts")).to_be_visible()
    expect(page.locator(".st-key-resume button")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("no provider is known for the model").first).to_be_visible()
    assert watch(sample_space.engine, 5)["status"] == "paused"
