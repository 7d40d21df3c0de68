"""The annotator's desk as a person uses it: a real browser, a real server, a real store."""

from __future__ import annotations

import base64
import io
import time
import wave
from dataclasses import replace
from hashlib import sha256

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from tests.app.desk_traces import EMOJI_CRLF_RTL, desk_trace, huge_trace, long_trace, spoken_trace
from tests.browser import desk as desk_fixtures
from tests.browser.desk import Desk, OpenDesk, store
from tests.browser.profile import box_of
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.store import Workspace

pytestmark = pytest.mark.browser
space, server, open_desk = desk_fixtures.space, desk_fixtures.server, desk_fixtures.open_desk


def test_four_keys_make_a_label_that_is_stored_and_survives_reload(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("J", "J", "J")
    assert desk.current() == "S4"
    desk.select(3, "output", "Second line: שלום")
    desk.keys("a", "1", "7", "h")
    state = desk.saved()
    [error] = state["errors"]
    assert error["span_ids"] == ["tool000000000004"]
    assert (error["dimensions"], error["impact"], error["phase"]) == (["LC", "TC"], "high", "blind")
    [evidence] = error["evidence"]
    assert EMOJI_CRLF_RTL[evidence["start"] : evidence["end"]] == evidence["quote"] == "Second line: שלום"
    assert EMOJI_CRLF_RTL.startswith(evidence["before"] + evidence["quote"] + evidence["after"][:3], 0)
    desk.page.reload()
    desk.ready()
    expect(desk.page.locator(".tj-card .tj-quote-text")).to_have_text("Second line: שלום")
    expect(desk.page.locator('.tj-card [aria-pressed="true"]')).to_have_count(3)
    assert desk.current() == "S4", "the address follows the span in hand"
    assert desk.stored() == state


QUOTES = (
    ("Start 😀", None, "Start 😀"),
    ("😀", "Second", "😀 here.\r\nSecond"),
    ("Third 👩‍👩‍👧", "Last ", "Third 👩‍👩‍👧 end.\r\nLast "),
    ("and ", " esc.", "and \x1b esc."),
    ("reversed", " and ", "reversed\u202c and "),
)


def test_evidence_is_the_code_points_of_the_stored_text(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("J", "J", "J", "a")
    for start, end, _ in QUOTES:
        desk.select(3, "output", start, end)
        desk.keys("e")
    values = desk.saved()["errors"][0]["evidence"]
    assert [evidence["quote"] for evidence in values] == [quote for _, _, quote in QUOTES]
    for evidence in values:
        assert EMOJI_CRLF_RTL[evidence["start"] : evidence["end"]] == evidence["quote"]
        assert EMOJI_CRLF_RTL[: evidence["start"]].endswith(evidence["before"])
        assert EMOJI_CRLF_RTL[evidence["end"] :].startswith(evidence["after"])
        assert (evidence["span_id"], evidence["field"]) == ("tool000000000004", "output")


def test_evidence_by_mouse_and_by_sentence_keys(open_desk: OpenDesk) -> None:
    desk = open_desk()
    goal = desk.page.locator('[data-block="1"] .tj-text[data-field="message:1"]')
    goal.hover()  # which looks again where the page was drawn anew, as scrolling alone does not
    box = box_of(goal)
    desk.page.mouse.move(box["x"] + 1, box["y"] + 8)
    desk.page.mouse.down()
    desk.page.mouse.move(box["x"] + 120, box["y"] + 8, steps=4)
    desk.page.mouse.up()
    desk.keys("a", "2", "l")
    stored = "How many moons has Mars? Answer with a number."
    [by_mouse] = desk.saved()["errors"][0]["evidence"]
    assert by_mouse["start"] == 0
    assert 5 < by_mouse["end"] < len(stored)
    assert by_mouse["quote"] == stored[: by_mouse["end"]]
    desk.keys("j", "j", "j", "j")
    assert desk.current() == "S6"
    desk.keys("]", "]", "}", "e")
    by_keys = desk.saved()["errors"][0]["evidence"][1]
    assert by_keys["quote"] == "Mars has three moons."
    assert desk.stored()["errors"][0]["span_ids"] == ["plan000000000002", "last000000000006"]


def test_typing_in_a_field_triggers_no_key_and_is_saved_while_typing(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("a", "d")
    text = "jk1234 uU A? /[]+-l m h Backspace"
    desk.page.keyboard.type(text)
    state = desk.saved()
    assert [(error["description"], error["dimensions"], error["impact"]) for error in state["errors"]] == [
        (text, [], None)
    ]
    assert desk.current() == "S1"
    desk.keys("Escape", "j")
    assert desk.current() == "S2"
    desk.keys("/")
    desk.page.keyboard.type("a1h")
    assert len(desk.saved()["errors"]) == 1


def test_offline_everything_is_kept_and_then_arrives_once(open_desk: OpenDesk, profile: BrowserContext) -> None:
    desk = open_desk()
    profile.set_offline(True)
    desk.keys("a", "3", "m", "w", "0", "2")
    expect(desk.page.locator('[data-tj="saved"]')).to_contain_text("unsaved")
    time.sleep(2)
    assert desk.stored()["revision"] == 0
    assert int(desk.page.get_attribute('[data-tj="saved"]', "data-unsaved") or 0) == 5
    profile.set_offline(False)
    state = desk.saved()
    assert state["revision"] == 5
    assert state["errors"][0]["dimensions"] == ["PQ"]
    assert {key: score["value"] for key, score in state["scores"].items()} == {"LC": 0, "EE": 2}


def test_unsaved_work_survives_the_death_of_the_tab(open_desk: OpenDesk, profile: BrowserContext) -> None:
    desk = open_desk()
    profile.set_offline(True)
    desk.keys("a", "5", "h")
    expect(desk.page.locator('[data-tj="saved"]')).to_contain_text("3 unsaved")
    assert desk.stored()["revision"] == 0
    desk.page.close()  # what it sends with its last breath may arrive: it counts once
    profile.set_offline(False)
    again = open_desk(trace_id=desk.trace_id)
    state = again.saved()
    assert (state["revision"], state["errors"][0]["impact"]) == (3, "high")
    expect(again.page.locator('.tj-card [data-hold="dim-GF"]')).to_have_attribute("aria-pressed", "true")


def test_an_answer_lost_on_the_way_stores_once(open_desk: OpenDesk) -> None:
    desk = open_desk()
    lost = iter([True, True])

    def drop_answer(route: Route) -> None:
        if next(lost, False):
            route.fetch()
            route.abort()
        else:
            route.continue_()

    desk.page.route("**/api/ops", drop_answer)
    desk.keys("a", "1", "l")
    state = desk.saved()
    assert (state["revision"], len(state["errors"])) == (3, 1)


def test_a_500_keeps_the_item_and_the_text(open_desk: OpenDesk) -> None:
    desk = open_desk()
    failing = [True]
    desk.page.route(
        "**/api/ops",
        lambda route: route.fulfill(status=500, body="broken") if failing else route.continue_(),
    )
    desk.keys("z", "w")
    for _ in DIMENSIONS:
        desk.keys("3")
    desk.keys("Control+Enter")
    expect(desk.page.locator('[data-tj="toast"]')).to_contain_text("Not saved yet", timeout=15_000)
    expect(desk.page.locator('[data-tj="saved"]')).to_contain_text("unsaved")
    assert desk.page.get_attribute(".tj-desk", "data-ready") == desk.trace_id
    failing.clear()
    desk.page.click('[data-tj="saved"]')
    state = desk.saved()
    assert state["review"]["status"] == "submitted"
    assert len(state["scores"]) == 7


def test_undo_and_redo_go_over_everything(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("a", "1", "h", "d")
    desk.page.keyboard.type("a long story")
    desk.keys("Escape", "w", "0", "ArrowUp", "t", "Backspace")
    assert desk.saved()["scores"]["LC"]["value"] is None, "in the scores pane, Backspace takes the score back"
    desk.keys("u")
    assert desk.saved()["scores"]["LC"]["value"] == 0
    desk.keys("u", "u")
    state = desk.saved()
    assert (state["scores"]["LC"]["value"], state["errors"][0]["description"]) == (None, "")
    desk.keys("u", "u", "u")
    assert desk.saved()["errors"] == []
    for _ in range(5):
        desk.keys("Shift+U")
    state = desk.saved()
    assert state["errors"][0]["description"] == "a long story"
    assert (state["errors"][0]["impact"], state["scores"]["LC"]["value"]) == ("high", 0)


def test_a_deleted_error_comes_back_whole(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("j", "]", "a", "4", "m", "d")
    desk.page.keyboard.type("why")
    desk.keys("Escape")
    before = desk.saved()["errors"]
    desk.keys("Backspace")
    assert desk.saved()["errors"] == []
    desk.keys("u")
    assert desk.saved()["errors"] == before


def test_submit_asks_for_what_is_missing_and_goes_to_the_next_trace(open_desk: OpenDesk, space: Workspace) -> None:
    store(space, desk_trace("submit-a"))
    store(space, desk_trace("submit-b"))
    desk = open_desk(trace_id="submit-a")
    desk.keys("Control+Enter")
    assert "This trace has no labelled error" in desk.toast()
    assert desk.page.evaluate("document.activeElement.type") == "checkbox"
    desk.keys("a", "Control+Enter")
    assert "Error 1 has no dimension" in desk.toast()
    assert desk.page.evaluate("document.activeElement.textContent").endswith("LC")
    desk.keys("1", "Control+Enter")
    assert "Error 1 has no impact" in desk.toast()
    desk.keys("l", "Control+Enter")
    assert "Score of Logical Consistency is missing" in desk.toast()
    missing = desk.page.locator('[data-tj="missing"]')
    expect(missing).to_contain_text("7 answers are missing")
    expect(missing.get_by_role("button")).to_have_count(7)
    expect(missing).to_contain_text("Score of Plan Quality")
    desk.keys(*"012333")
    expect(missing).to_contain_text("One answer is missing")
    desk.keys("n", "Control+Enter")
    desk.ready("submit-b")
    expect(desk.page.locator('[data-tj="toast"]')).to_have_text("Submitted. Next: trace submit-b")
    state = desk.stored()
    assert state["review"]["status"] == "submitted"
    assert state["review"]["active_ms"] > 0
    assert [state["scores"][key]["value"] for key in DIMENSIONS] == [0, 1, 2, 3, 3, 3, None]
    assert state["scores"]["TC"]["not_applicable"] is True


def test_a_submitted_trace_is_closed_until_it_is_reopened(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.submit()
    desk.keys("a", "w", "0")
    assert "finished" in desk.toast()
    assert desk.saved()["scores"]["LC"]["value"] == 0
    desk.page.click('[data-tj="reopen"]')
    desk.keys("w", "2")
    state = desk.saved()
    assert (state["review"]["status"], state["scores"]["LC"]["value"]) == ("open", 2)


def test_skip_wants_a_reason(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("s")
    desk.page.click("dialog[open] .tj-primary")
    expect(desk.page.locator("dialog[open]")).to_be_visible()
    desk.page.keyboard.type("the trace is cut off")
    desk.page.click("dialog[open] .tj-primary")
    desk.page.wait_for_function("!document.querySelector('dialog[open]')")
    state = desk.saved()
    assert (state["review"]["status"], state["review"]["reason"]) == ("skipped", "the trace is cut off")


def test_trace_text_is_text_and_nothing_from_outside_is_loaded(open_desk: OpenDesk) -> None:
    desk = open_desk()
    expect(desk.page.locator('[data-block="4"] .tj-chip')).to_contain_text("image/png")
    expect(desk.page.locator('[data-block="4"] .tj-text').last).to_contain_text("<script src=http://evil.example/x.js>")
    expect(desk.page.locator('[data-block="5"] .tj-text').last).to_contain_text("<img src=x onerror=alert(1)>")
    assert desk.page.locator(".tj-desk img, .tj-desk script, .tj-desk iframe").count() == 0
    odd = desk.page.locator('[data-block="3"] .tj-text[data-field="output"]')
    expect(odd.locator(".tj-control")).to_have_text(["RLO", "PDF", "␛"])
    assert odd.get_attribute("dir") == "auto"
    assert desk.outside == []


def test_repeats_are_counted_openable_and_can_hold_evidence(open_desk: OpenDesk) -> None:
    desk = open_desk()
    repeats = desk.page.locator('[data-block="2"] .tj-repeats')
    expect(repeats).to_have_text("3 messages seen before (S2)")
    assert desk.page.locator('[data-block="2"] [data-field="message:1"]').count() == 0
    repeats.click()
    desk.select(2, "message:1", "moons")
    desk.keys("a")
    [evidence] = desk.saved()["errors"][0]["evidence"]
    assert (evidence["span_id"], evidence["field"], evidence["start"]) == ("call000000000003", "message:1", 9)


def test_reading_keys(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("p")
    assert desk.current() == "S2"
    desk.keys("Shift+J")
    assert desk.current() == "S3"
    desk.keys("Shift+K", "o")
    assert desk.current() == "S1"
    expect(desk.page.locator(".tj-row")).to_have_count(1)
    desk.keys("o", "g", "f")
    expect(desk.page.locator(".tj-strip.tj-open")).to_have_count(2)
    desk.keys("/")
    desk.page.keyboard.type("three moons")
    expect(desk.page.locator('[data-tj="tree-count"]')).to_have_text("1 of 6")
    desk.keys("Enter")
    assert desk.current() == "S6"
    desk.keys("/", "Escape")
    expect(desk.page.locator('[data-tj="tree-count"]')).to_have_text("6 spans")
    desk.page.click(".tj-filter:has-text('failed')")
    expect(desk.page.locator('[data-tj="tree-count"]')).to_have_text("1 of 6")


def test_laid_out_json_still_gives_places_in_the_stored_text(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("j", "j", "j")
    arguments = desk.page.locator('[data-block="3"] .tj-text[data-field="tool_arguments"]')
    assert arguments.inner_text().count("\n") > 3
    desk.select(3, "tool_arguments", '"moons of Mars"', '"limit"')
    desk.keys("a")
    [evidence] = desk.saved()["errors"][0]["evidence"]
    stored = '{"query": "moons of Mars", "limit": [1, 2]}'
    assert stored[evidence["start"] : evidence["end"]] == evidence["quote"] == '"moons of Mars", "limit"'


def test_rendered_markdown_gives_places_in_the_stored_text_and_raw_is_a_key_away(open_desk: OpenDesk) -> None:
    stored = "# Result 😀\n\nMars has **two** moons: `Phobos` and *Deimos*.\n\n|a|b|\n|-|-|\n|1|<b>x</b>|"
    desk = open_desk(spoken_trace("spoken", stored), user="renderer")  # the way of reading is kept
    host = desk.page.locator('[data-block="1"] .tj-text[data-field="message:0"]')
    expect(host.locator("table td").nth(1)).to_have_text("<b>x</b>")
    expect(host.locator("strong")).to_have_text("two")
    desk.keys("j")
    desk.select(1, "message:0", "two", "Deimos")
    desk.keys("a")
    desk.select(1, "message:0", "1", "<b>x")
    desk.keys("e", "v")
    expect(host.locator("strong")).to_have_count(0)
    assert host.inner_text() == stored
    quotes = desk.saved()["errors"][0]["evidence"]
    assert [stored[one["start"] : one["end"]] for one in quotes] == [one["quote"] for one in quotes]
    assert [one["quote"] for one in quotes] == ["two** moons: `Phobos` and *Deimos", "1|<b>x"]
    assert desk.outside == []


def test_a_layout_that_arrives_late_leaves_the_selection(open_desk: OpenDesk) -> None:
    waiting: list[Route] = []
    stored = "Mars has **two** moons."
    desk = open_desk(spoken_trace("late", stored))
    desk.page.route("**/api/layout/**", lambda route: waiting.append(route))
    desk.page.reload()
    desk.ready()
    desk.keys("j")
    desk.select(1, "message:0", "has **two")
    for _ in range(500):
        if waiting:
            break
        desk.page.wait_for_timeout(20)
    waiting[0].continue_()
    expect(desk.page.locator('[data-block="1"] .tj-md-strong')).to_have_text("two")
    desk.keys("a")
    assert desk.saved()["errors"][0]["evidence"][0]["quote"] == "has **two"


def test_panes_are_resized_and_folded_and_stay_so_for_the_person(open_desk: OpenDesk) -> None:
    desk = open_desk(user="folder")
    left, middle = desk.page.locator(".tj-left"), desk.page.locator(".tj-middle")
    bar = desk.page.get_by_role("separator", name="Width of the spans")
    box = box_of(bar)
    desk.page.mouse.move(box["x"] + 5, box["y"] + 200)
    desk.page.mouse.down()
    desk.page.mouse.move(box["x"] + 125, box["y"] + 200, steps=5)
    desk.page.mouse.up()
    wide = left.evaluate("each => each.clientWidth")
    assert wide > 340
    with desk.page.expect_response("**/api/settings"):
        desk.page.get_by_role("separator", name="Width of the labels").press("Enter")
    expect(desk.page.locator(".tj-side")).not_to_be_visible()
    desk.page.evaluate("localStorage.clear()")
    desk.page.reload()
    desk.ready()
    assert abs(left.evaluate("each => each.clientWidth") - wide) < 12
    expect(desk.page.locator(".tj-side")).not_to_be_visible()
    before = middle.evaluate("each => each.clientWidth")
    desk.keys("a")
    expect(desk.page.locator(".tj-card")).to_be_visible()
    assert middle.evaluate("each => each.clientWidth") < before
    bar.press("ArrowLeft")
    assert desk.current() == "S1", "on the bar an arrow is no command"
    assert left.evaluate("each => each.clientWidth") < wide
    assert desk.outside == []


def test_jumps_and_the_outline_lead_through_a_trace(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("Shift+L")
    assert desk.toast() == "You have labelled no span"
    desk.keys("j", "a", "Shift+F")
    assert desk.current() == "S4"
    desk.keys("Shift+X")
    assert desk.current() == "S5"
    desk.keys("Shift+X")
    assert desk.current() == "S4", "after the last the first again"
    desk.keys("Shift+L")
    assert desk.current() == "S2"
    desk.keys("Shift+B")
    expect(desk.page.locator('[data-tj="tree-count"]')).to_have_text("4 of 6")
    expect(desk.page.locator(".tj-row-name")).to_have_text(["Agent.run", "Model.call", "search", "Model.call"])


@pytest.mark.parametrize(
    "width", [*(pytest.param(wide, marks=pytest.mark.soak) for wide in (1024, 640)), 420]
)  # 640: 1280 at 200 %
def test_no_control_is_cut_by_the_edge_of_a_small_window(open_desk: OpenDesk, width: int) -> None:
    desk = open_desk(desk_trace(f"narrow-{width}"))
    desk.page.set_viewport_size({"width": width, "height": 700})
    for pane, key in (("scores", "w"), ("errors", "a"), ("tree", None), ("text", None)):
        desk.keys(key) if key else desk.page.evaluate(FOCUS, pane)
        spilt = desk.page.evaluate(SPILT)
        assert spilt == [], pane
    desk.page.set_viewport_size({"width": 1280, "height": 800})


FOCUS = """pane => {
  const tab = document.querySelector(`[data-pane="${pane}"]`);
  tab.offsetParent ? tab.click() : document.querySelector(`[data-tj="${pane}"]`).focus();
}"""
SPILT = """() => [...document.querySelectorAll('.tj-desk button, .tj-desk input, .tj-desk textarea')]
  .filter((each) => each.offsetParent !== null)
  .map((each) => [each.textContent || each.className, each.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && (box.left < 0 || box.right > innerWidth)).map(([name]) => name)"""


def test_several_spans_and_the_mouse_do_all_that_keys_do(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("a", "j", "+", "j", "+", "-")
    page = desk.page
    page.click('[data-hold="dim-TS"]')
    page.click('[data-hold="impact-medium"]')
    page.click('[data-hold="category"]')
    page.get_by_role("option", name="Goal Deviation").click()
    page.click('[data-dimension="GF"] [data-score="1"]')
    page.click('[data-hold="sure-3"]')
    page.fill('[data-hold="note-GF"]', "half of it")
    state = desk.saved()
    [error] = state["errors"]
    assert error["span_ids"] == ["run0000000000001", "plan000000000002"]
    assert (error["dimensions"], error["impact"], error["category"]) == (["TS"], "medium", "Goal Deviation")
    score = state["scores"]["GF"]
    assert (score["value"], score["confidence"], score["note"]) == (1, 3, "half of it")
    expect(page.locator(".tj-row .tj-marks")).to_have_count(2)


def test_keys_can_be_changed_and_conflicts_are_refused(open_desk: OpenDesk) -> None:
    desk = open_desk(user="keys")
    desk.keys("?")
    desk.page.click('[data-action="newError"]')
    desk.keys("j")
    expect(desk.page.locator("dialog[open] [role=alert]")).to_contain_text("used by “Next span”")
    desk.page.click('[data-action="newError"]')
    desk.keys("b")
    desk.page.click('dialog[open] [aria-label="Close"]')
    desk.keys("a")
    assert desk.saved()["errors"] == []
    desk.keys("b")
    assert len(desk.saved()["errors"]) == 1
    desk.page.evaluate("localStorage.clear()")
    desk.page.reload()
    desk.ready()
    desk.keys("b", "v")
    assert len(desk.saved()["errors"]) == 2, "the server keeps the keys, also for another browser"
    other = open_desk(trace_id=desk.trace_id)
    other.keys("b")
    assert other.stored()["errors"] == [], "another person has their own"


def test_the_way_of_reading_is_kept_on_the_server(open_desk: OpenDesk, space: Workspace) -> None:
    desk = open_desk(user="reader")
    with desk.page.expect_response("**/api/settings") as answer:
        desk.keys("v")
    assert answer.value.status == 200
    desk.page.evaluate("localStorage.clear()")
    desk.page.reload()
    desk.ready()
    expect(desk.page.locator('[data-tj="pretty"]')).to_have_attribute("aria-pressed", "true")


def test_keys_of_other_pages_are_left_alone(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.page.get_by_role("link", name="Other").click()
    field = desk.page.get_by_label("Elsewhere")
    field.click()
    desk.page.keyboard.type("ja1h")
    expect(field).to_have_value("ja1h")
    desk.keys("Enter")
    desk.page.mouse.click(600, 600)
    desk.keys("a", "1")
    desk.page.get_by_role("link", name="Work").click()
    desk.page.wait_for_selector(".tj-desk[data-ready]")
    assert desk.stored()["revision"] == 0


def test_a_link_opens_its_span(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.open(span="odd0000000000005")
    assert desk.current() == "S5"
    top = desk.page.evaluate(
        "document.querySelector('[data-block=\"4\"]').getBoundingClientRect().top - "
        "document.querySelector('[data-tj=text]').getBoundingClientRect().top"
    )
    assert 0 <= top < 400


def test_5_mb_show_their_head_and_all_when_asked(open_desk: OpenDesk) -> None:
    desk = open_desk(huge_trace("huge"))
    host = desk.page.locator('[data-block="1"] .tj-text')
    assert len(host.inner_text()) < 5_000
    desk.page.get_by_role("button", name="Show all 5,280,006 characters").click()
    expect(desk.page.get_by_role("button", name="Show less")).to_be_attached(timeout=20_000)
    assert desk.page.evaluate("document.querySelector('[data-block=\"1\"] .tj-text').textContent.length") == 5_280_006
    desk.keys("/")
    desk.page.keyboard.type("needle")
    expect(desk.page.locator('[data-tj="tree-count"]')).to_have_text("1 of 2")


def test_sound_is_played_from_the_traces_own_bytes_by_its_own_keys(open_desk: OpenDesk) -> None:
    made = io.BytesIO()
    with wave.open(made, "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(16_000))
    data = base64.b64encode(made.getvalue()).decode()
    placeholder = f"[audio wav, {len(made.getvalue())} bytes, sha256 {sha256(made.getvalue()).hexdigest()}]"
    trace = spoken_trace("sound", placeholder)
    (first, *others) = trace.spans
    desk = open_desk(replace(trace, spans=(replace(first, attributes={"audio": data}), *others)))
    desk.page.get_by_role("button", name="Show audio player").first.click()
    player = desk.page.locator("audio")
    expect(player).to_be_focused()
    desk.keys("Space")
    desk.page.wait_for_function("document.querySelector('audio').currentTime > 0")
    desk.keys("a", "1")
    expect(desk.page.locator(".tj-card")).to_have_count(1)
    assert player.evaluate("node => [node.isConnected, node.duration]") == [True, 1]
    assert desk.outside == []


@pytest.mark.parametrize("count", [21, pytest.param(200, marks=pytest.mark.soak)])
def test_labels_by_keys_only_none_missed(open_desk: OpenDesk, count: int) -> None:
    trace = long_trace(301, f"keys-only-{count}")
    desk = open_desk(trace)
    began = time.monotonic()
    for number in range(count):
        desk.keys("j", "a", str(number % 7 + 1), "lmh"[number % 3])
    state = desk.saved(60_000)
    print(f"\n{count} labels by {4 * count} keys in {time.monotonic() - began:.1f} s, all stored")
    spans = [span.span_id for span in trace.spans]
    assert [error["span_ids"] for error in state["errors"]] == [[span_id] for span_id in spans[1 : count + 1]]
    assert [error["dimensions"] for error in state["errors"]] == [[DIMENSIONS[n % 7]] for n in range(count)]
    assert [error["impact"] for error in state["errors"]] == [["low", "medium", "high"][n % 3] for n in range(count)]
    assert state["revision"] == 3 * count


COUNT_RUNS = """() => {
    window.tjRuns = 0;
    const app = document.querySelector('[data-testid="stApp"]');
    const count = () => { window.tjRuns += app.dataset.testScriptState === "running"; };
    new MutationObserver(count).observe(app, { attributeFilter: ["data-test-script-state"] });
}"""


def test_from_key_to_stored_by_one_request_without_a_rerun(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("w")
    desk.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    desk.page.evaluate(COUNT_RUNS)
    sent: list[str] = []
    desk.page.on("request", lambda request: sent.append(request.url.rpartition("/")[2]))
    for value in "0123" * 5:
        desk.keys(value)
        desk.page.wait_for_function("document.querySelector('[data-tj=saved]').dataset.unsaved === '0'", polling=5)
    assert desk.stored()["revision"] == 20
    assert sent.count("ops") == 20
    assert desk.page.evaluate("window.tjRuns") == 0


@pytest.mark.soak
def test_33_000_spans_are_usable_and_few_rows_are_drawn(open_desk: OpenDesk) -> None:
    desk = open_desk(long_trace(33_001, "thirty-three-thousand"))
    expect(desk.page.locator('[data-tj="tree-count"]')).to_have_text("33,001 spans")
    assert desk.page.locator(".tj-row").count() < 80
    desk.keys("j", "j", "a", "1", "h")
    desk.saved()
    expect(desk.page.locator('[data-block="2"]')).to_contain_text("I read page 0 now.", timeout=60_000)
    desk.keys("/")
    desk.page.keyboard.type("step 10999")
    desk.keys("Enter")
    assert desk.current() == "S32999"
    expect(desk.page.locator('[data-block="32999"]')).to_contain_text("I read page 10999 now.", timeout=20_000)


def test_a_category_is_chosen_by_typing_and_the_four_keys_go_on(open_desk: OpenDesk) -> None:
    desk = open_desk()
    page = desk.page
    desk.keys("a", "Shift+T")
    expect(page.get_by_role("option")).to_have_count(21)
    page.keyboard.type("tse")
    expect(page.get_by_role("option")).to_have_count(1)
    desk.keys("Enter", "1", "h")  # the list is left: dimension and impact
    [error] = desk.saved()["errors"]
    assert (error["category"], error["dimensions"], error["impact"]) == ("Tool Selection Errors", ["LC"], "high")
    desk.keys("a", "Shift+T", "1", "2")  # the one used last stands first, by its number
    second = desk.saved()["errors"][1]
    assert (second["category"], second["dimensions"]) == ("Tool Selection Errors", ["EE"])
    desk.keys("Shift+T", "ArrowDown", "ArrowDown", "Escape", "m")  # Esc leaves everything as it was
    assert desk.saved()["errors"][1] == second | {"impact": "medium"}
    desk.keys("Shift+T", "1")
    assert desk.saved()["errors"][1]["category"] is None  # "No category" is the first where there is one
    desk.keys("u")
    assert desk.saved()["errors"][1]["category"] == "Tool Selection Errors"
    page.reload()
    desk.ready()
    desk.keys("Shift+T")
    page.keyboard.type("goal dev")
    desk.keys("Enter")
    assert desk.saved()["errors"][0]["category"] == "Goal Deviation"
    assert desk.outside == []


def test_esc_leaves_a_note_into_the_scores_where_it_was_written(open_desk: OpenDesk) -> None:
    """Else the next digit would be a dimension of an error, not a score."""
    desk = open_desk()
    desk.keys("a", "1", "w", "2", "ArrowUp", "d")
    desk.page.keyboard.type("a note")
    desk.keys("Escape", "ArrowDown", "3", "n")
    state = desk.saved()
    assert state["errors"][0]["dimensions"] == ["LC"]
    scores = {key: (score["value"], score["not_applicable"], score["note"]) for key, score in state["scores"].items()}
    assert scores == {"LC": (2, False, "a note"), "EE": (3, False, ""), "PQ": (None, True, "")}


def test_undo_and_redo_go_over_scores_notes_and_confidence(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("a", "1", "h", "Shift+T", "3", "z", "w", "2", "ArrowUp", ".", ",", "d")
    desk.page.keyboard.type("a note")
    desk.keys("Escape", "ArrowDown", "n")
    full = desk.saved()
    assert full["scores"]["LC"] == full["scores"]["LC"] | {"value": 2, "confidence": 1, "note": "a note"}
    desk.keys(*["u"] * 20)
    bare = desk.saved()
    assert bare["errors"] == []
    assert all(
        (one["value"], one["confidence"], one["note"], one["not_applicable"]) == (None, None, "", False)
        for one in bare["scores"].values()
    )
    desk.keys(*["Shift+U"] * 20)
    again = desk.saved()
    assert (again["errors"], again["scores"]) == (full["errors"], full["scores"])


def description(desk: Desk) -> str:
    return str(desk.stored()["errors"][0]["description"])


def test_words_of_an_input_method_are_composed_in_peace_and_then_saved(
    open_desk: OpenDesk, profile: BrowserContext
) -> None:
    """Somebody who writes Japanese looks at choices for longer than the pause after which words are saved."""
    desk = open_desk()
    desk.keys("a", "1", "h", "d")
    method = profile.new_cdp_session(desk.page)
    field = "document.activeElement.dataset.hold"
    for words in ("に", "にほ", "にほん"):
        end = {"selectionStart": len(words), "selectionEnd": len(words)}
        method.send("Input.imeSetComposition", {"text": words, **end})
        desk.page.evaluate("document.activeElement.dataset.kept = 'yes'")
        desk.page.wait_for_timeout(500)
        assert desk.page.evaluate("document.activeElement.dataset.kept") == "yes", f"a new field after {words}"
        assert desk.page.evaluate(field) == "description"
    assert description(desk) == ""
    method.send("Input.insertText", {"text": "日本"})
    desk.keys("!")
    desk.saved()
    assert description(desk) == "日本!"


def test_a_piece_of_evidence_taken_away_takes_no_words_with_it(open_desk: OpenDesk) -> None:
    """The card is not drawn anew while its words are typed: its buttons must not put back what it was drawn from."""
    desk = open_desk()
    desk.select(3, "output", "Second line: שלום")
    desk.keys("a", "1", "h", "d")
    desk.page.keyboard.type("It names the wrong line.")
    desk.saved()
    desk.page.get_by_label("Remove evidence 1").click()
    [error] = desk.saved()["errors"]
    assert (error["evidence"], error["description"]) == ([], "It names the wrong line.")


@pytest.mark.parametrize(
    ("field", "keys", "button"),
    [pytest.param("description", ["d"], "dim-GF", marks=pytest.mark.soak), ("note-LC", ["w", "d"], "LC-2")],
)
def test_words_that_are_not_stored_yet_stay_in_their_field_when_a_button_is_pressed(
    open_desk: OpenDesk, field: str, keys: list[str], button: str
) -> None:
    desk = open_desk()
    desk.keys("a", "1", "h", *keys)
    assert desk.page.evaluate("document.activeElement.dataset.hold") == field
    shown = desk.page.evaluate(
        """([field, button]) => {
            const part = (name) => document.querySelector(`[data-hold="${name}"]`);
            part(field).value = "half a sent";
            part(field).dispatchEvent(new Event("input"));
            part(button).click();
            return part(field).value;
        }""",
        [field, button],
    )
    assert shown == "half a sent"
    desk.page.keyboard.type("ence")
    state = desk.saved()
    words = state["errors"][0]["description"] if field == "description" else state["scores"]["LC"]["note"]
    assert words == "half a sentence"


def test_a_fields_own_undo_reaches_over_what_was_saved_meanwhile(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("a", "1", "h", "d")
    desk.page.keyboard.type("first")
    desk.saved()
    desk.page.keyboard.type(" second")
    desk.saved()
    assert description(desk) == "first second"
    desk.page.keyboard.press("Control+z")
    desk.saved()
    assert description(desk) != "first second"
    desk.keys("Escape", "u")
    desk.saved()
    assert description(desk) == ""
    expect(desk.page.get_by_label("Description")).to_have_value("")
