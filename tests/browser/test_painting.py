"""On the first visit of a page its numbers and tables show before its charts begin."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tracejury.app.painting import MOST_S

NOTE = """(() => {
    const noted = window.__noted = {};
    const look = () => {
        for (const [name, selector] of Object.entries(%s))
            if (!(name in noted) && (name === 'asked' ? document.querySelector(selector)
                                                      : document.querySelector(selector)?.getClientRects().length))
                noted[name] = performance.now();
        requestAnimationFrame(look);
    };
    look();
})()"""

ANSWERED = """() => performance.getEntriesByType('resource').find(
    (entry) => entry.name.includes('/api/painted/'))?.startTime ?? Infinity"""


@pytest.mark.browser
@pytest.mark.parametrize(
    ("path", "first", "chart"),
    [
        ("/agreement", ".st-key-answer [data-testid=stMarkdownContainer]", ".st-key-chart-forest .main-svg"),
        pytest.param(
            *("/explore", ".st-key-traces canvas", ".st-key-chart-positions .main-svg"), marks=pytest.mark.soak
        ),
        pytest.param(*("/compare", ".tjc-row", ".st-key-chart-lanes .main-svg"), marks=pytest.mark.soak),
    ],
)
def test_what_a_page_is_for_shows_before_its_charts(
    first_page: Page, sample_server: str, path: str, first: str, chart: str
) -> None:
    page = first_page
    page.add_init_script(NOTE % repr({"first": first, "chart": chart, "asked": '[class*="st-key-painted"]'}))
    page.goto(sample_server + path)
    expect(page.locator(chart).first).to_be_visible()
    page.wait_for_function("() => window.__noted.chart !== undefined")
    noted = page.evaluate("() => window.__noted")
    waited = min(noted["chart"], page.evaluate(ANSWERED)) - noted["asked"]
    is_given_up = waited > MOST_S * 1000  # a busy machine paints later than a page waits
    assert noted["first"] < noted["chart"] or is_given_up
    expect(page.locator('[class*="st-key-painted"]')).to_have_count(0)  # nothing of the wait is left on the page
