"""A file dropped, looked at, stored: in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.workspaces import DATA
from tests.browser.researcher import settled

pytestmark = pytest.mark.browser


def test_files_are_reported_on_first_and_stored_only_then(page: Page, sample_server: str) -> None:
    page.goto(f"{sample_server}/ingest")
    settled(page)
    expect(page.get_by_text("6 traces, ")).to_be_visible()
    page.locator("input[type=file]").set_input_files(
        [DATA / "samples" / "otel_sdk" / "ferry.spans.jsonl", DATA / "labels" / "ada.json"]
    )
    store = page.locator(".st-key-store button")
    expect(store).to_contain_text("Store ")
    expect(page.get_by_text("1 rejected")).to_be_visible()  # labels are no traces
    store.click()
    expect(page.get_by_text("stored with")).to_be_visible()
