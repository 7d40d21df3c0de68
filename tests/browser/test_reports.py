"""What is downloaded is what the button says, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from tests.browser.researcher import settled

pytestmark = pytest.mark.browser


def test_the_export_holds_as_many_rows_as_its_button_says_and_only_those_of_the_filter(
    page: Page, sample_server: str, tmp_path: Path
) -> None:
    page.goto(f"{sample_server}/reports?judge_models=hasty-judge&reference=ada")
    settled(page)
    button = page.locator(".st-key-pairs-csv button").first
    expect(button).to_contain_text("rows (current filter)")
    rows = int(button.inner_text().split("Export ")[1].split(" ")[0].replace(",", ""))
    with page.expect_download() as caught:
        button.click()
    file = tmp_path / "pairs.csv"
    caught.value.save_as(file)
    frame = pd.read_csv(file)
    assert len(frame) == rows
    assert set(frame["judge_model"]) == {"hasty-judge"}


def test_the_stable_address_gives_the_same_rows(page: Page, sample_server: str) -> None:
    page.goto(f"{sample_server}/reports?judge_models=hasty-judge&reference=ada")
    settled(page)
    address = page.locator("code", has_text="/api/export/").first.inner_text()
    answer = page.request.get(sample_server + address.strip())
    assert answer.ok
    assert "hasty-judge" in answer.text()
    assert "careful-judge" not in answer.text()
