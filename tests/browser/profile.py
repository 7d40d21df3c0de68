"""The profile of the tests' browser: what it fetched and compiled stays from page to page, all else goes with the test.

Chromium keeps compiled scripts in a profile alone, never in a context beside it: there, opening a page takes a third
more CPU time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, FloatRect, Locator, Page, Request

SLOW_MS = 60_000  # a machine that also builds and tests
KEPT_BY_SITES = "cookies,local_storage,indexeddb"


def forget(profile: BrowserContext) -> None:
    """Close the pages that tests opened and take away what sites keep: the next test, or person, is new here."""
    profile.set_offline(False)
    blank, *opened = profile.pages
    for page in opened:
        page.close()
    session = profile.new_cdp_session(blank)
    session.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": KEPT_BY_SITES})
    session.detach()
    profile.clear_cookies()


def sized_page(context: BrowserContext, height: int) -> Page:
    """A page in the profile, or in any other context, that is patient."""
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": height})
    page.set_default_timeout(SLOW_MS)
    return page


def box_of(shown: Locator) -> FloatRect:
    """Where an element stands once it stands still: a page that is drawn anew moves it, or has it not for a moment."""
    before = None
    for _ in range(SLOW_MS // 50):
        box = shown.bounding_box()
        if box is not None and box == before:
            return box
        before = box
        shown.page.wait_for_timeout(50)
    pytest.fail(f"{shown} does not come to rest")


@contextmanager
def alone(browser: Browser) -> Iterator[BrowserContext]:
    """A context without anything from before, for what a test changes for all pages and cannot take back."""
    context = browser.new_context(viewport={"width": 1280, "height": 1100}, accept_downloads=True)
    yield context
    context.close()


@contextmanager
def watched(context: BrowserContext, server: str) -> Iterator[Page]:
    """A page of the context; fails when a script broke or anything was asked of another host."""
    opened = sized_page(context, 1100)
    problems: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith((server, "data:", "blob:")) and not _is_streamlits(request.url):
            problems.append(f"asked of another host: {request.url}")

    opened.on("request", note)
    opened.on("pageerror", lambda error: problems.append(f"script: {error}"))
    yield opened
    opened.close()
    assert problems == []


def _is_streamlits(url: str) -> bool:
    """A Material icon as the page's favicon is fetched by Streamlit from its maker."""
    return url.startswith("https://fonts.gstatic.com/s/i/short-term/release/materialsymbols")
