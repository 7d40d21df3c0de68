"""From a mark on the Agreement page to the error behind it, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.profile import box_of
from tests.browser.researcher import choose_first_row, settled

pytestmark = pytest.mark.browser


def test_a_click_on_a_bar_lists_its_errors_and_leads_to_compare(page: Page, sample_server: str) -> None:
    page.goto(f"{sample_server}/agreement?judge_models=careful-judge&reference=ada")
    settled(page)
    bars = page.locator(".st-key-chart-impact .bars .point path")
    expect(bars).to_have_count(8)  # four impacts, caught and localized
    bars.nth(3).click(force=True)  # all impacts, caught
    # the bar counts 17 of ada's errors: 6 more are on the trace where the careful judge failed
    expect(page.get_by_text("17 rows for this point")).to_be_visible()
    choose_first_row(page.locator(".st-key-rows-impact"))
    page.get_by_role("button", name="Open in Compare").click()
    page.wait_for_url("**/compare?**")
    assert "judge_model=careful-judge" in page.url
    assert "pair=" in page.url
    expect(page.locator('.tjc-row[aria-selected="true"]')).to_be_visible()


def test_filters_stand_in_the_address_and_hold_on_another_page(page: Page, sample_server: str) -> None:
    page.goto(f"{sample_server}/agreement?reference=ben")
    settled(page)
    expect(page.get_by_text("Reference: ben")).to_be_visible()
    page.get_by_test_id("stSelectbox").filter(has_text="Matches").locator("input").click()
    page.get_by_role("option", name="confirmed").click()
    page.wait_for_url("**matches=confirmed**")
    expect(page.get_by_text("confirmed matches only").first).to_be_visible()
    page.get_by_role("link", name="Reports").click()
    page.wait_for_url("**/reports**")
    settled(page)
    expect(page.get_by_text("confirmed matches only").first).to_be_visible()
    expect(page.get_by_text("Reference: ben")).to_be_visible()


def test_a_click_on_a_square_lists_the_traces_with_these_scores(page: Page, sample_server: str) -> None:
    page.goto(f"{sample_server}/agreement?view=Scores&judge_models=checks&reference=ada")
    settled(page)
    squares = page.locator(".st-key-chart-confusion .scatterlayer .points path")
    expect(squares).to_have_count(16)
    count = int(page.locator(".st-key-chart-confusion .textpoint text").nth(15).text_content() or "")
    squares.nth(15).click(force=True)  # reference 3, judge 3
    expect(page.locator(".st-key-rows-confusion")).to_be_visible()
    expect(page.get_by_text(f"{count} row")).to_be_visible()


@pytest.mark.soak
def test_a_click_on_an_error_of_the_strip_opens_it_under_the_judge_of_its_row(page: Page, sample_server: str) -> None:
    page.goto(f"{sample_server}/agreement?view=Errors&judge_models=checks&reference=ada")
    settled(page)
    marks = page.locator(".st-key-chart-strip .scatterlayer .points path")
    expect(marks.first).to_be_visible()
    marks.last.click(force=True)  # localized
    named = page.get_by_text("judge checks")
    expect(named).to_be_visible()
    dimension = named.inner_text().split()[-1]
    page.get_by_role("button", name="Open in Compare").click()
    page.wait_for_url("**/compare?**")
    assert f"dimension={dimension}" in page.url
    chosen = page.locator('.tjc-row[aria-selected="true"]')
    expect(chosen).to_contain_text("localized")
    expect(chosen).to_contain_text(re.compile(rf"Finding S\d+ {dimension}"))


def test_a_click_beside_a_small_mark_opens_the_nearest(page: Page, sample_server: str) -> None:
    page.goto(f"{sample_server}/agreement?view=Errors&judge_models=checks&reference=ada")
    settled(page)
    marks = page.locator(".st-key-chart-strip .scatterlayer .points path")
    expect(marks.first).to_be_visible()
    box = box_of(marks.last)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] + 5)  # outside of the mark, below it
    expect(page.get_by_text("judge checks")).to_be_visible()


@pytest.mark.soak
def test_a_click_on_an_outline_of_alpha_lists_the_traces_of_its_runs(page: Page, sample_server: str) -> None:
    page.goto(f"{sample_server}/agreement?view=Consistency")
    settled(page)
    steps = page.locator(".st-key-chart-alpha .scatterlayer .points path")
    expect(steps.first).to_be_attached()
    steps.last.click(force=True)
    expect(page.get_by_text("P(alpha < .667)").last).to_be_visible()
    expect(page.get_by_text("6 rows for this point")).to_be_visible()
    expect(page.locator(".st-key-rows-alpha")).to_be_visible()
