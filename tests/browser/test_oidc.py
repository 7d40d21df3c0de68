"""Signing in by OpenID Connect, with a real provider beside the app and a real browser between them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from sqlalchemy import select

from tests.browser.profile import SLOW_MS, sized_page
from tests.browser.team import PEOPLE, free_port, team_server, team_space
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace, tables
from tracejury.judging.store.people import Person, change_person, people

mock = pytest.importorskip("oidc_provider_mock", reason="oidc-provider-mock is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:authlib"),
    pytest.mark.filterwarnings("ignore::authlib.deprecate.AuthlibDeprecationWarning"),
]

SECRETS = """
[auth]
redirect_uri = "{address}/oauth2callback"
cookie_secret = "{cookie_secret}"
client_id = "tracejury"
client_secret = "{client_secret}"
server_metadata_url = "{provider}/.well-known/openid-configuration"
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """Ada and root are known here, Zoe's domain is welcome, Eve's is not, and Max's address nobody has checked."""
    claims = {
        **{name: (f"{name.capitalize()}@Lab.Example", True) for name in PEOPLE},
        "zoe": ("zoe@lab.example", True),
        "eve": ("eve@elsewhere.example", True),
        "max": ("max@lab.example", False),
    }
    users = [
        mock.User(sub=sub, claims={"email": email, "email_verified": is_checked})
        for sub, (email, is_checked) in claims.items()
    ]
    with mock.run_server_in_thread(user_claims=users) as running:
        yield f"http://localhost:{running.server_port}"


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = team_space(tmp_path_factory.mktemp("oidc") / "home", 2)
    with write_transaction(made.engine) as connection:
        for name in PEOPLE:
            change_person(connection, name, by="test", email=f"{name}@lab.example")
    return made


@pytest.fixture(scope="module")
def address(space: Workspace, provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("started-here")
    port = free_port()
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "secrets.toml").write_text(
        SECRETS.format(
            address=f"http://127.0.0.1:{port}", provider=provider, cookie_secret=secrets.token_hex(24),
            client_secret=secrets.token_hex(16),
        ),
        encoding="utf-8",
    )  # fmt: skip
    log = folder / "server.txt"
    own = {"TRACEJURY_SIGN_IN": "oidc", "TRACEJURY_NEW_PEOPLE": "@lab.example"}
    with team_server(space, log, port=port, folder=folder, **own) as opened:
        yield opened


@pytest.fixture
def page(profile: BrowserContext) -> Page:
    return sized_page(profile, 900)


def enter(page: Page, address: str, who: str) -> None:
    """From our page to the provider's, where one says who one is, and back."""
    page.goto(address)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name=who, exact=True).first.click()
    page.wait_for_url(f"{address}/**")


def links(page: Page) -> list[str]:
    page.get_by_test_id("stTopNavLink").first.wait_for()
    return [text.strip().splitlines()[-1] for text in page.get_by_test_id("stTopNavLink").all_inner_texts()]


def known(space: Workspace) -> dict[str, Person]:
    with read_transaction(space.engine) as connection:
        return {one.name: one for one in people(connection)}


def test_the_address_decides_who_one_is_and_the_store_what_one_may(
    page: Page, chromium: Browser, address: str, space: Workspace
) -> None:
    enter(page, address, "ada")
    page.wait_for_selector(".tj-desk[data-ready]")
    assert links(page) == ["Work", "My work", "Guideline", "Help", "Account"]
    page.reload()
    page.wait_for_selector(".tj-desk[data-ready]")
    context = chromium.new_context()
    other = context.new_page()
    other.set_default_timeout(SLOW_MS)
    enter(other, address, "root")
    other.wait_for_selector(".tj-desk[data-ready]")
    assert "Admin" in links(other)
    context.close()
    with read_transaction(space.engine) as connection:
        whats = connection.execute(select(tables.audit.c.who, tables.audit.c.what)).all()
    assert ("ada", "signed in") in [tuple(row) for row in whats]


@pytest.mark.soak
def test_signing_out_is_for_good_until_one_signs_in_again(page: Page, address: str) -> None:
    enter(page, address, "ben")
    page.wait_for_selector(".tj-desk[data-ready]")
    page.goto(f"{address}/account")
    expect(page.get_by_text("Signed in as ben, annotator.")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="End Session")).to_be_visible()  # the provider asks; here one is out
    page.goto(f"{address}/work")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    expect(page.locator(".tj-desk")).to_have_count(0)


@pytest.mark.parametrize("who", ["eve", pytest.param("max", marks=pytest.mark.soak)])
def test_a_stranger_and_an_unchecked_address_get_no_place(page: Page, address: str, space: Workspace, who: str) -> None:
    enter(page, address, who)
    expect(page.get_by_text("is not a member of this workspace")).to_be_visible()
    expect(page.locator(".tj-desk")).to_have_count(0)
    assert who not in known(space)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="End session").click()
    page.wait_for_url(f"{address}/**")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def test_a_new_address_of_a_welcome_domain_makes_an_annotator(page: Page, address: str, space: Workspace) -> None:
    enter(page, address, "zoe")
    page.wait_for_selector(".tj-desk[data-ready]")
    zoe = known(space)["zoe"]
    assert (zoe.role, zoe.email, zoe.has_password) == ("annotator", "zoe@lab.example", False)
    assert links(page) == ["Work", "My work", "Guideline", "Help", "Account"]


def test_who_is_deactivated_at_work_loses_pages_and_api_and_comes_back_with_everything(
    page: Page, address: str, space: Workspace
) -> None:
    enter(page, address, "judy")
    page.wait_for_selector(".tj-desk[data-ready]")
    page.keyboard.press("a")
    page.wait_for_selector('[data-tj="saved"][data-kind="saved"]')
    with page.expect_request("**/api/trace/**") as request:
        page.reload()
    page.wait_for_selector(".tj-desk[data-ready]")
    with write_transaction(space.engine) as connection:
        change_person(connection, "judy", by="root", active=False)
    assert page.request.get(request.value.url).status == 403
    page.keyboard.press("h")
    expect(page.locator('[data-tj="saved"]')).to_contain_text("account deactivated")
    page.reload()
    expect(page.get_by_text("Your account is deactivated.")).to_be_visible()
    with write_transaction(space.engine) as connection:
        change_person(connection, "judy", by="root", active=True)
        (label,) = connection.scalars(
            select(tables.error_label.c.impact).where(tables.error_label.c.annotator == "judy")
        )
    assert label is None, "nothing was stored while she was out"
    page.reload()
    page.wait_for_selector(".tj-desk[data-ready]")
    page.wait_for_selector('[data-tj="saved"][data-kind="saved"]')
    expect(page.locator('[data-hold="impact-high"]')).to_have_attribute("aria-pressed", "true")
