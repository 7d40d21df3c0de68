"""Blind by construction: every byte that reaches the page before submitting, and what is revealed after."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.app.desk_judges import MARKERS, judge, other_person
from tests.app.desk_traces import desk_trace, long_trace
from tests.browser import desk as desk_fixtures
from tests.browser.desk import Desk, OpenDesk, store
from tests.browser.profile import box_of
from tracejury.app.cli import main
from tracejury.ingest.store import write_transaction
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.store import Workspace

pytestmark = pytest.mark.browser
space, server, open_desk = desk_fixtures.space, desk_fixtures.server, desk_fixtures.open_desk

LAST, TOOL = "last000000000006", "tool000000000004"


class Sent:
    """Every byte that the server sends to a context's pages: documents, scripts, API answers, websocket frames."""

    def __init__(self, context: BrowserContext) -> None:
        self.pieces: list[tuple[str, bytes]] = []
        context.route("**/*", self._answer)
        context.on("page", self._page)

    def _page(self, page: Page) -> None:
        page.on("websocket", lambda socket: socket.on("framereceived", self._frame))

    def _frame(self, payload: str | bytes) -> None:
        self.pieces.append(("websocket", payload.encode() if isinstance(payload, str) else payload))

    def _answer(self, route: Route) -> None:
        answer = route.fetch(max_retries=3)  # of a connection that the server closed as idle, as browsers do
        self.pieces.append((route.request.url, answer.body() + str(answer.headers).encode()))
        if route.request.is_navigation_request():
            route.continue_()  # Chromium lets a page that did not come over the network open no websocket
        else:
            route.fulfill(response=answer)

    def holding(self, *marks: str) -> list[tuple[str, str]]:
        pieces = [(place, data.lower()) for place, data in self.pieces]
        return [(place, mark) for mark in marks for place, data in pieces if mark.lower().encode() in data]


@pytest.fixture
def sent(chromium: Browser, server: str) -> Iterator[tuple[Sent, Page]]:
    """A page and the record of all that reaches it."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    record = Sent(context)
    yield record, context.new_page()
    context.close()


def labelled(space: Workspace, trace_id: str) -> str:
    store(space, desk_trace(trace_id))
    judge(space, trace_id, (LAST, TOOL))
    other_person(space, trace_id, LAST)
    return trace_id


def use_everything(desk: Desk) -> None:
    """What a person does before submitting, with every view of the desk and every refusal of it."""
    desk.keys("j", "j", "j", "]", "a", "1", "h", "d")
    desk.page.keyboard.type("I saw this")
    desk.keys("Escape", "g", "f", "p", "v", "v", "q", "w", "2", "i")
    desk.keys("/")
    desk.page.keyboard.type("MARKER")
    desk.keys("Enter", "/", "Escape", "Shift+V")
    expect(desk.page.locator('[data-tj="judge"]')).to_contain_text("[S6] LLM")
    desk.keys("j", "Shift+V", "?")
    desk.page.click('dialog[open] [aria-label="Close"]')
    desk.keys("Shift+G")
    desk.page.click('dialog[open] [aria-label="Close"]')
    desk.page.evaluate(
        "async ([id]) => { const token = performance.getEntriesByType('resource').map(e => new URL(e.name))"
        ".find(u => u.pathname.includes('/api/trace/')).searchParams.get('token');"
        "for (const path of ['reveal/' + id, 'text/' + id, 'settings', 'compare/texts/' + id, 'export/errors'])"
        "await fetch(`/api/${path}?token=${encodeURIComponent(token)}&trace_id=${id}`); }",
        [desk.trace_id],
    )
    desk.saved()


def test_not_one_byte_of_judges_or_others_reaches_the_page_before_submitting(
    sent: tuple[Sent, Page], server: str, space: Workspace
) -> None:
    record, page = sent
    desk = Desk(page, server, space, labelled(space, "blindness"))
    use_everything(desk)
    assert record.holding(*MARKERS) == []
    assert record.holding("How many moons"), "the record does hold what was sent"
    assert any(place == "websocket" and b"blindness" in data for place, data in record.pieces)
    refused = [data for place, data in record.pieces if "/api/reveal/" in place and b"submit this trace first" in data]
    assert len(refused) == 1
    desk.submit()
    assert record.holding(*MARKERS) == [], "nor by submitting"
    desk.reveal()
    marks_shown = {mark for _, mark in record.holding(*MARKERS)}
    assert marks_shown >= {"MARKERFINDING", "MARKEROTHER", "oracle-7", "MARKERCITE"}, "the marks would have been found"
    assert marks_shown.isdisjoint({"zoe-the-other", "MARKERRAW", "MARKERRUN", "MARKERNOTE"})


def test_hidden_names_reach_the_page_only_after_submitting(
    sent: tuple[Sent, Page], server: str, space: Workspace
) -> None:
    record, page = sent
    store(space, desk_trace("hidden-names"))
    with write_transaction(space.engine) as connection:
        make_queue(connection, QueueSpec(name="hides", author="boss", hide=("agent", "model")), ["hidden-names"], now=1)
    desk = Desk(page, server, space, "hidden-names")
    desk.keys("j", "j", "Shift+V")
    expect(page.locator('[data-tj="toast"]')).to_contain_text("names that this queue hides")
    expect(page.locator('[data-block="1"] .tj-agent')).to_have_text("agent 1")
    assert record.holding("test/model-1", "model-1") == []
    desk.submit()
    expect(page.locator('[data-block="1"]')).to_contain_text("test/model-1")


def test_revealed_findings_stand_beside_ones_own_and_lead_to_their_spans(open_desk: OpenDesk, space: Workspace) -> None:
    desk = open_desk(trace_id=labelled(space, "revealing"))
    page = desk.page
    desk.keys("j", "j", "j", "a", "1", "h")
    desk.saved()
    assert page.locator('[data-tj="reveal"]').is_hidden()
    desk.submit()
    desk.keys("i")
    assert "Choose Reveal" in desk.toast()
    desk.reveal()
    findings = page.locator('[data-tj="judges"] .tj-finding')
    expect(findings).to_have_count(3)
    expect(page.locator(".tj-said h3 bdi")).to_have_text(["marker-system/oracle-7", "Person 1"])
    expect(findings.first.locator(".tj-finding-head")).to_have_text("LChighMARKERCATEGORY")
    expect(findings.first.locator(".tj-cite-lost")).to_have_text("S99 MARKERCITE matches no span")
    findings.first.get_by_role("button", name="Go to span S6").click()
    assert desk.current() == "S6"
    findings.nth(1).get_by_role("button", name="Go to span S4").click()
    assert desk.current() == "S4"
    findings.first.locator(".tj-quote-text").click()
    assert desk.current() == "S6"
    expect(findings.nth(1).locator(".tj-quote-place")).to_have_text("not in the trace")
    assert findings.nth(1).locator("button.tj-quote-text").count() == 0
    assert desk.outside == []


def test_what_is_added_after_the_reveal_is_marked_and_the_blind_answer_is_closed(
    open_desk: OpenDesk, space: Workspace
) -> None:
    desk = open_desk(trace_id=labelled(space, "after-reveal"))
    page = desk.page
    desk.keys("a", "1", "h")
    desk.submit()
    desk.reveal()
    before = desk.stored()
    expect(page.locator(".tj-card .tj-closed")).to_contain_text("This blind label can no longer change")
    expect(page.locator('.tj-card [data-hold="dim-LC"]')).to_be_disabled()
    desk.keys("2", "l", "Backspace", "e", "+", "u")
    assert "closed" in desk.toast() or "Nothing to undo" in desk.toast()
    assert desk.saved() == before, "no key changes what was made blind"
    desk.keys("t", "a", "3", "m", "w", "2")
    state = desk.saved()
    assert [(error["dimensions"], error["phase"]) for error in state["errors"]] == [
        (["LC"], "blind"),
        (["PQ"], "revealed"),
    ]
    assert (state["scores"]["LC"]["value"], state["scores"]["LC"]["phase"]) == (2, "revealed")
    page.reload()
    desk.ready()
    expect(page.locator(".tj-error-row.tj-after, .tj-card.tj-after")).to_have_count(1)
    expect(page.locator(".tj-upper")).to_contain_text("after reveal")
    desk.keys("w")
    expect(page.locator('[data-dimension="LC"] .tj-tag-after')).to_have_text("blind 0")
    expect(page.locator('[data-dimension="LC"] .tj-was')).to_have_text("0")
    expect(page.locator('[data-tj="status"]')).to_have_text("revealed")
    assert page.locator('[data-tj="reopen"]').is_hidden()


def test_the_text_a_judge_reads_is_shown_byte_for_byte(open_desk: OpenDesk, space: Workspace) -> None:
    desk = open_desk()
    desk.keys("j", "j", "j", "Shift+V")
    host = desk.page.locator('[data-tj="judge"]')
    expect(host).to_be_visible()
    printed = CliRunner().invoke(main, ["text", desk.trace_id, "--home", str(space.home)]).stdout_bytes
    assert host.evaluate("node => node.textContent").encode() == printed
    assert host.locator("img, script, iframe").count() == 0
    header = host.locator('[data-header="3"]')
    assert abs(offset(header, host)) < 40
    desk.keys("k")
    assert abs(offset(host.locator('[data-header="2"]'), host)) < 40
    host.locator('[data-header="4"]').click()
    assert desk.current() == "S5"
    desk.keys("Shift+V")
    expect(host).to_be_hidden()
    expect(desk.page.locator('[data-block="4"]')).to_be_visible()
    assert desk.outside == []


def test_of_400_000_characters_of_judges_text_few_are_drawn_while_it_scrolls(open_desk: OpenDesk) -> None:
    desk = open_desk(long_trace(6001, "long-judge-text"))
    desk.keys("Shift+V")
    host = desk.page.locator('[data-tj="judge"]')
    expect(host).to_be_visible(timeout=20_000)
    assert host.evaluate("node => node.textContent.length") > 400_000
    headers, drawn, changes = host.evaluate(
        """async (node) => {
          const headers = [...node.querySelectorAll("[data-header]")];
          const isDrawn = (header) => header.checkVisibility({ contentVisibilityAuto: true });
          const frame = () => new Promise(requestAnimationFrame);
          const observer = new MutationObserver(() => {});
          observer.observe(node, { childList: true, subtree: true, characterData: true, attributes: true });
          let most = 0;
          for (let i = 0; i < 20; i++) {
            node.scrollTop += 2700;
            await frame();
            await frame();
            most = Math.max(most, headers.filter(isDrawn).length);
          }
          return [headers.length, most, observer.takeRecords().length];
        }"""
    )
    print(f"\nof {headers} spans of the text at most {drawn} drawn at once, {changes} changes while scrolling")
    assert headers == 6001
    assert 0 < drawn < headers / 10
    assert changes == 0
    desk.keys("Shift+V", "/")
    desk.page.keyboard.type("step 1500")
    desk.keys("Enter", "Shift+V")
    header = host.locator(f'[data-header="{int(desk.current()[1:]) - 1}"]')
    expect(header).to_be_in_viewport()
    assert abs(offset(header, host)) < 60


def offset(node: Any, host: Any) -> float:
    inner, outer = box_of(node), box_of(host)
    return float(inner["y"] - outer["y"])


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.soak)])
def test_no_serious_finding_of_axe(profile: BrowserContext, server: str, space: Workspace, scheme: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = profile.new_page()
    page.emulate_media(color_scheme=scheme)
    desk = Desk(page, server, space, labelled(space, f"axe-{scheme}"))
    assert desk.page.get_attribute(".tj-desk", "data-scheme") == scheme
    desk.keys("j", "j", "j", "]", "a", "1", "7", "h", "a", "2", "l", "w", "2")
    desk.saved()

    def problems(step: str) -> list[Any]:
        violations = axe.Axe().run(desk.page, context=".tj-desk").response["violations"]
        return [(step, each["id"], [node["html"] for node in each["nodes"]]) for each in violations]

    assert problems("the desk") == []
    desk.keys("Shift+D")
    desk.page.keyboard.type("why this tool?")
    desk.keys("Control+Enter")
    expect(desk.page.locator(".tj-desk").get_by_role("dialog", name="Comments").locator("li")).to_be_visible()
    assert problems("the comments") == []
    desk.keys("Escape")
    desk.submit()
    desk.reveal()
    desk.keys("a", "3", "m", "Shift+V")
    expect(desk.page.locator('[data-tj="judge"]')).to_be_visible()
    assert problems("revealed, beside the judge's text") == []
    if scheme == "light":
        desk.keys("?")
        assert problems("the cheat sheet") == []


def test_the_chip_says_what_was_seen_and_the_labels_are_stored_as_not_blind(
    open_desk: OpenDesk, space: Workspace
) -> None:
    desk = open_desk(trace_id=labelled(space, "seen-first"))
    chip = desk.page.locator('[data-tj="status"]')
    expect(chip).to_have_text("blind")
    note_seen(space.engine, annotator="me", trace_ids=[desk.trace_id], what="Compare")
    desk.page.reload()
    desk.ready()
    expect(chip).to_have_text(re.compile(r"not blind: Compare opened \d\d:\d\d"))
    desk.keys("a", "1", "h")
    assert [error["phase"] for error in desk.saved()["errors"]] == ["revealed"]
