"""Under the content security policy every page draws all it has, and nothing is asked of another host."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage

from tests.browser.profile import sized_page
from tracejury.app.pages import PAGES

pytestmark = pytest.mark.browser


def test_every_page_keeps_to_the_policy(profile: BrowserContext, sample_server: str) -> None:
    page = sized_page(profile, 1400)
    broken: list[str] = []
    elsewhere: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Content-Security-Policy" in message.text:
            broken.append(f"{page.url}: {message.text[:200]}")

    page.on("console", note)
    page.on("pageerror", lambda error: broken.append(f"{page.url}: {error}"))
    page.on("request", lambda request: elsewhere.append(request.url) if is_elsewhere(request.url) else None)

    def is_elsewhere(url: str) -> bool:
        return not url.startswith((sample_server, "data:", "blob:"))

    for spec in PAGES:
        page.goto(f"{sample_server}/{spec.file}")
        page.locator("[data-testid=stMain] [data-testid=stElementContainer]").first.wait_for(state="attached")
        page.wait_for_function("!document.querySelector('[data-testid=stStatusWidget]')")
        page.wait_for_load_state("networkidle")
        assert page.locator("[data-testid=stException]").count() == 0
    assert broken == []
    assert elsewhere == []
    page.close()


def test_a_foreign_name_or_site_gets_nothing_from_the_running_app(sample_server: str) -> None:
    for path, headers in (("/", {"Host": "evil.example"}), ("/_stcore/metrics", {}), ("/", {"Origin": "http://x"})):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(sample_server + path, headers=headers), timeout=60)
        assert refused.value.code == 403
        assert "frame-ancestors" in refused.value.headers["Content-Security-Policy"]
