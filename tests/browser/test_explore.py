"""From words to the span that holds them, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.researcher import choose_first_row, settled

pytestmark = pytest.mark.browser


def test_a_hit_opens_its_span_in_work(page: Page, sample_server: str) -> None:
    page.goto(f"{sample_server}/explore?q=library")
    settled(page)
    expect(page.get_by_role("heading", name="with all the words")).to_be_visible()
    choose_first_row(page.locator(".st-key-hits"))
    page.locator(".st-key-hit-open button").click()
    page.wait_for_url("**/work?**span=**")
    expect(page.locator(".tj-desk")).to_be_visible()
