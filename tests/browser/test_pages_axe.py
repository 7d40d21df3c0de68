"""The desk's other pages as assistive technology meets them: axe finds nothing serious, in light and in dark."""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.profile import SLOW_MS, sized_page
from tracejury.app.pages import PAGES
from tracejury.ingest.store import write_transaction
from tracejury.judging.labels.comments import put_comment
from tracejury.judging.store import Workspace

pytestmark = pytest.mark.browser

PLACES = (
    ("adjudicate", "To decide", "Scores"),
    ("admin", "People", "Add a person"),
    ("admin", "Queues", "Create a queue"),
    ("guideline", "Write", "General"),
    ("my_work", None, "Messages (1)"),
)
"""Page, its view where it has several, and a word that stands there once it is drawn."""
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
IS_DRAWN = """(scheme) => {
    const shown = document.querySelector('[data-testid="stApp"]');
    const [red] = getComputedStyle(shown).backgroundColor.match(/[0-9]+/g);
    return (Number(red) > 127) === (scheme === 'light');
}"""


IS_STILL = """async () => {
    const frame = () => new Promise(requestAnimationFrame);
    await frame();
    await frame();
    const ends = (moving) => Number.isFinite(moving.effect.getComputedTiming().endTime);
    return document.querySelector('[data-testid="stApp"]').dataset.testScriptState === 'notRunning'
        && !document.querySelector('[data-testid="stSkeleton"]')
        && !document.getAnimations().some((moving) => moving.playState === 'running' && ends(moving));
}"""
"""The script has ended, its late parts are there and their colours have faded in."""


def serious(page: Page) -> list[Any]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    violations = axe.Axe().run(page).response["violations"]
    return [
        (each["id"], [node["html"] for node in each["nodes"]])
        for each in violations
        if each["impact"] in {"serious", "critical"}
    ]


def choose_view(page: Page, view: str) -> None:
    choice = page.get_by_role("radio", name=view, exact=True)
    choice.wait_for()
    if choice.get_attribute("aria-checked") != "true":
        choice.click(force=True)


def test_no_serious_finding_of_axe(profile: BrowserContext, sample_server: str, sample_space: Workspace) -> None:
    with write_transaction(sample_space.engine) as connection:
        put_comment(connection, comment_id="m", author="lead", body="Version 2 is out", kind="message", to=["ruth"])
    page = sized_page(profile, 1000)
    page.set_default_timeout(2 * SLOW_MS)  # the first page imports what charts need
    for name, view, word in PLACES:
        page.emulate_media(color_scheme="light")
        page.goto(f"{sample_server}/{name}")
        if view is not None:
            choose_view(page, view)
        page.get_by_text(word, exact=True).first.wait_for(state="attached")
        page.mouse.move(5, 5)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function(IS_DRAWN, arg=scheme)
            page.wait_for_function(IS_STILL)
            assert (name, view, scheme, serious(page)) == (name, view, scheme, [])


@pytest.mark.soak
def test_every_page_is_one_press_away_at_1024_pixels(profile: BrowserContext, sample_server: str) -> None:
    page = sized_page(profile, 768)
    page.set_viewport_size({"width": 1024, "height": 768})
    page.goto(f"{sample_server}/help")
    links = page.get_by_test_id("stTopNavLink")
    for spec in PAGES:
        expect(links.filter(has_text=re.compile(f"^{spec.title}$"))).to_be_in_viewport(ratio=1)
    expect(page.get_by_text(re.compile(r"^\d+ more$"))).to_have_count(0)
