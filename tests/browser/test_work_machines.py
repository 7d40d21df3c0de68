"""Two machines, the same person and trace: nothing interrupts, nothing typed is lost, no word becomes a command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.app.desk_traces import desk_trace
from tests.browser import desk as desk_fixtures
from tests.browser.desk import Desk, OpenDesk, Server, store
from tracejury.judging.store import open_workspace

pytestmark = pytest.mark.browser
space, server, open_desk = desk_fixtures.space, desk_fixtures.server, desk_fixtures.open_desk

KEY_MS = 40
SENTENCE = (
    "As an aside, she skips step 3 and should answer 2 moons"  # a, s, o, digits and spaces are all keys or presses
)


@pytest.fixture
def elsewhere(chromium: Browser) -> Iterator[BrowserContext]:
    """The other machine: a browser with a storage of its own."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    yield context
    context.close()


def typed(page: Page, text: str) -> None:
    page.keyboard.type(text, delay=KEY_MS)


def other_machine(elsewhere: BrowserContext, desk: Desk) -> Desk:
    return Desk(elsewhere.new_page(), desk.server, desk.space, desk.trace_id)


def changed_elsewhere(other: Desk, words: str) -> None:
    """An impact and a description of the error in hand, an error more, a score."""
    other.keys("h", "d")
    other.page.keyboard.type(words)
    other.keys("Escape", "j", "a", "2", "l", "w", "3")
    other.saved()


def check_merged(desk: Desk, sentence: str) -> None:
    state = desk.saved()
    first, second = state["errors"]
    assert first["description"] == sentence
    assert (first["dimensions"], first["impact"]) == (["LC"], "high"), (
        "what only the other machine changed is taken over"
    )
    assert (second["dimensions"], second["impact"]) == (["EE"], "low")
    assert state["scores"]["LC"]["value"] == 3
    assert desk.page.locator("dialog[open]").count() == 0
    assert desk.current() == "S1", "no letter of the sentence was a command"
    assert state["review"]["status"] == "open"


def test_a_sentence_typed_while_another_machine_works_is_stored_whole_and_acts_on_nothing(
    open_desk: OpenDesk, elsewhere: BrowserContext
) -> None:
    desk = open_desk()
    desk.keys("a", "1")
    desk.saved()
    other = other_machine(elsewhere, desk)
    desk.keys("d")
    typed(desk.page, SENTENCE[:12])
    changed_elsewhere(other, "their words")
    typed(desk.page, SENTENCE[12:])
    field = desk.page.locator(".tj-card.tj-now textarea")
    expect(field).to_be_focused()
    expect(field).to_have_value(SENTENCE)
    note = desk.page.locator('[data-tj="note"]')
    expect(note).to_contain_text(f"Error 1, description: here “{SENTENCE}”, on the other machine “their words”")
    expect(note).to_contain_text("Error 1, impact: high (was nothing)")
    desk.keys("Escape")
    check_merged(desk, SENTENCE)
    expect(desk.page.locator('.tj-card [data-hold="impact-high"]')).to_have_attribute("aria-pressed", "true")
    note.get_by_role("button", name="Use the other machine").click()
    assert desk.saved()["errors"][0]["description"] == "their words"
    desk.keys("u")
    assert desk.saved()["errors"][0]["description"] == SENTENCE
    assert desk.saved()["errors"][0]["impact"] == "high"


@pytest.mark.soak
def test_the_same_after_an_offline_stretch_and_a_reload(
    open_desk: OpenDesk, profile: BrowserContext, elsewhere: BrowserContext
) -> None:
    desk = open_desk()
    desk.keys("a", "1")
    desk.saved()
    other = other_machine(elsewhere, desk)
    desk.page.route("**/api/ops", lambda route: route.abort())
    desk.keys("d")
    typed(desk.page, SENTENCE)
    expect(desk.page.locator('[data-tj="saved"]')).to_contain_text("unsaved, retrying")
    changed_elsewhere(other, "their words")
    desk.page.unroute("**/api/ops")
    profile.set_offline(True)
    profile.set_offline(False)
    desk.page.reload()
    desk.ready()
    check_merged(desk, SENTENCE)
    other.page.reload()
    other.ready()
    assert other.stored() == desk.stored()
    note = desk.page.locator('[data-tj="note"]')
    both = f"Error 1, description: here “{SENTENCE}”, on the other machine “their words”"
    expect(note).to_contain_text(both)
    desk.page.reload()
    desk.ready()
    expect(note).to_contain_text(both)
    note.get_by_role("button", name="Use the other machine").click()
    assert desk.saved()["errors"][0]["description"] == "their words"
    expect(note).not_to_contain_text("on the other machine")
    desk.page.reload()
    desk.ready()
    expect(note).not_to_contain_text("on the other machine")


@pytest.mark.soak
def test_the_same_over_a_server_that_was_killed(
    profile: BrowserContext, elsewhere: BrowserContext, tmp_path: Path
) -> None:
    space = open_workspace(tmp_path / "killed")
    store(space, desk_trace("machines"))
    server = Server(space.home, tmp_path / "server.txt")
    try:
        desk = Desk(profile.new_page(), server.url, space, "machines")
        desk.keys("a", "1")
        desk.saved()
        other = other_machine(elsewhere, desk)
        changed_elsewhere(other, "their words")
        server.kill()
        desk.keys("d")
        typed(desk.page, SENTENCE[:20])
        desk.page.wait_for_timeout(3000)
        typed(desk.page, SENTENCE[20:])
        server.start()
        check_merged(desk, SENTENCE)
    finally:
        server.stop()


def test_a_second_tab_merges_and_nothing_opens(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("a", "1")
    desk.saved()
    other = open_desk(trace_id=desk.trace_id)
    changed_elsewhere(other, "their words")
    desk.page.bring_to_front()
    desk.keys("d")
    typed(desk.page, SENTENCE)
    desk.keys("Escape")
    check_merged(desk, SENTENCE)


def test_a_submission_that_another_machine_made_incomplete_is_not_stored_as_submitted(
    open_desk: OpenDesk, elsewhere: BrowserContext
) -> None:
    desk = open_desk()
    desk.keys("z", "w", *"0123210")
    desk.saved()
    other = other_machine(elsewhere, desk)
    other.keys("z", "a")
    other.saved()
    desk.keys("Control+Enter")
    expect(desk.page.locator('[data-tj="note"]')).to_contain_text("Not submitted")
    state = desk.saved()
    assert (state["review"]["status"], len(state["errors"])) == ("open", 1)
