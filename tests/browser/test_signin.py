"""Signing in as people do: the form, a reload, their pages and no others, the way out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.team import fill_in, person_page, team_server, team_space
from tracejury.app.pages import PAGES
from tracejury.judging.store import Workspace

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return team_space(tmp_path_factory.mktemp("signin") / "home", 1)


@pytest.fixture(scope="module")
def address(space: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log: Path = tmp_path_factory.mktemp("log") / "server.txt"
    with team_server(space, log) as opened:
        yield opened


def test_one_signs_in_stays_in_over_a_reload_and_signs_out(profile: BrowserContext, address: str) -> None:
    page = profile.new_page()
    page.goto(f"{address}/guideline")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert "/api/signin" in page.url
    fill_in(page, "ada", "not her password")
    expect(page.get_by_role("alert")).to_have_text("Name or password is wrong.")
    fill_in(page, "ada")
    expect(page.get_by_role("heading", name="Guideline")).to_be_visible(timeout=60_000)
    assert page.url == f"{address}/guideline"
    page.reload()
    expect(page.get_by_role("heading", name="Guideline")).to_be_visible(timeout=60_000)
    page.goto(f"{address}/account")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible(timeout=60_000)
    page.reload()
    expect(page.get_by_label("Password")).to_be_visible()


def test_an_annotator_has_the_pages_of_an_annotator_and_no_address_gives_more(
    profile: BrowserContext, address: str
) -> None:
    page = person_page(profile, address, "ada")
    page.wait_for_selector(".tj-desk[data-ready]")
    links = [text.strip() for text in page.get_by_test_id("stTopNavLink").all_inner_texts()]
    titles = [one.title for one in PAGES if one.role == "annotator"]
    assert [link.splitlines()[-1] for link in links] == [*titles, "Account"]
    for wanted in ("admin", "adjudicate", "compare", "reports"):
        page.goto(f"{address}/{wanted}?as=root")
        page.wait_for_selector(".tj-desk[data-ready]", timeout=60_000)  # the desk is all there is
        expect(page.get_by_role("heading", name=wanted.capitalize(), exact=True)).to_have_count(0)


def test_the_cookie_cannot_be_read_by_a_script(profile: BrowserContext, address: str) -> None:
    page = person_page(profile, address, "ada")
    page.wait_for_selector(".tj-desk[data-ready]")
    assert "tracejury_session" not in str(page.evaluate("document.cookie"))
    assert "tracejury_session" in {str(cookie.get("name")) for cookie in page.context.cookies()}


def test_a_download_of_someone_who_signed_in_arrives(profile: BrowserContext, address: str) -> None:
    page = person_page(profile, address, "root")
    page.wait_for_url(lambda url: "signin" not in url, timeout=60_000)
    page.goto(f"{address}/reports")
    button = page.get_by_role("button", name="All tables as ZIP")
    button.wait_for(timeout=60_000)
    with page.expect_download(timeout=60_000) as arrived:
        button.click()
    assert arrived.value.path().read_bytes().startswith(b"PK")
