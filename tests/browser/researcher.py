"""What the browser tests of the researcher's pages do again and again."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


def settled(page: Page) -> None:
    """Wait until Streamlit has run and the page has its title."""
    expect(page.get_by_role("heading", level=2).first).to_be_visible()
    page.wait_for_function("!document.querySelector('[data-testid=\"stStatusWidget\"]')")


def choose_first_row(table: Locator) -> None:
    """Tick the first row of a `st.dataframe`: it is drawn on a canvas, so by place."""
    table.locator("canvas").first.click(position={"x": 16, "y": 35 + 17}, force=True)
