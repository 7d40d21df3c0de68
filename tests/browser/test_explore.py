"""From words to the span that holds them, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.researcher import choose_first_row, settled

pytestmark = pytest.mark.browser


def test_a_hit_opens_its_span_in_work(page: Page, sample_server: str) -> None:
    page.goto(f"{sample_server}/explore?q=library")
    settled(page)
    expect(page.get_by_role("heading", name="with all words")).to_be_visible()
    choose_first_row(page.locator(".st-key-hits"))
    page.locator(".st-key-hit-open button").click()
    page.wait_for_url("**/work?**span=**")
    expect(page.locator(".tj-desk")).to_be_visible()


def test_a_bar_of_where_errors_start_lists_them_and_leads_to_compare_and_the_span(
    page: Page, sample_server: str
) -> None:
    page.goto(f"{sample_server}/explore")
    settled(page)
    bars = page.locator(".st-key-chart-positions .bars .point path")
    expect(bars).to_have_count(20)  # ten parts of the run, people and judges
    bars.nth(9).click(force=True)  # people's errors in the last part of the run
    listed = page.locator(".st-key-rows-positions")
    expect(listed).to_be_visible()
    expect(page.get_by_text("for this point. Select a row")).to_be_visible()
    choose_first_row(listed)
    page.get_by_role("button", name="Open in Compare").click()
    page.wait_for_url("**/compare?**")
    assert "person=" in page.url
    expect(page.locator('.tjc-row[aria-selected="true"]')).to_be_visible()
