"""Nothing lost: the server dies and comes back, the pass runs out, the trace grows, the page is loaded anew."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from tests.app.desk_traces import desk_trace, huge_trace
from tests.browser import desk as desk_fixtures
from tests.browser.desk import Desk, OpenDesk, Server, store
from tracejury.app import grants
from tracejury.ingest.store import pack, write, write_transaction
from tracejury.judging.store import Workspace, open_workspace

pytestmark = pytest.mark.browser
space, server, open_desk = desk_fixtures.space, desk_fixtures.server, desk_fixtures.open_desk


def test_work_waits_for_a_server_that_was_killed_and_comes_back(profile: BrowserContext, tmp_path: Path) -> None:
    space = open_workspace(tmp_path / "killed")
    store(space, desk_trace("killed"))
    server = Server(space.home, tmp_path / "server.txt")
    try:
        desk = Desk(profile.new_page(), server.url, space, "killed")
        desk.keys("a", "1")
        desk.saved()
        server.kill()
        desk.keys("h", "d")
        desk.page.keyboard.type("written while nobody listened")
        desk.keys("Escape", "w", "3", "1")
        expect(desk.page.locator('[data-tj="saved"]')).to_contain_text("unsaved, retrying")
        assert desk.stored()["errors"][0]["impact"] is None
        server.start()
        state = desk.saved(45_000)
        [error] = state["errors"]
        assert (error["dimensions"], error["impact"]) == (["LC"], "high")
        assert error["description"] == "written while nobody listened"
        assert {key: score["value"] for key, score in state["scores"].items()} == {"LC": 3, "EE": 1}
        desk.page.wait_for_selector('.tj-desk[data-ready="killed"]')
        expect(desk.page.locator(".tj-card textarea")).to_have_value("written while nobody listened")
    finally:
        server.stop()


def expired(space: Workspace, token: str, trace_id: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same grant, signed half an hour ago."""
    grant = grants.check(space.secret(), token, subject=trace_id)
    with monkeypatch.context() as patch:
        real = time.time
        patch.setattr("itsdangerous.timed.time.time", lambda: real() - 1800)
        return grants.mint(space.secret(), grant)


def test_a_pass_that_ran_out_is_renewed_and_everything_arrives(
    open_desk: OpenDesk, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = open_desk()
    statuses: list[int] = []

    def with_an_old_pass(route: Route) -> None:
        """Until the page is told that its pass ran out, it is sent as if it were of half an hour ago."""
        body = json.loads(route.request.post_data or "{}")
        if 401 not in statuses:
            body["token"] = expired(space, body["token"], desk.trace_id, monkeypatch)
        answer = route.fetch(post_data=json.dumps(body), max_retries=3)
        statuses.append(answer.status)
        route.fulfill(response=answer)

    desk.page.route("**/api/ops", with_an_old_pass)
    desk.keys("a", "1", "h", "w", "2")
    state = desk.saved()
    assert statuses[0] == 401
    assert statuses[-1] == 200
    assert (state["revision"], state["errors"][0]["impact"], state["scores"]["LC"]["value"]) == (4, "high", 2)
    assert desk.page.get_attribute(".tj-desk", "data-ready") == desk.trace_id
    expect(desk.page.locator('.tj-card [aria-pressed="true"]')).to_have_count(2)


@pytest.mark.soak
def test_a_pass_runs_out_while_offline_and_is_renewed_silently_while_online(
    profile: BrowserContext, tmp_path: Path
) -> None:
    """Passes of this server live for eight seconds."""
    space = open_workspace(tmp_path / "short")
    store(space, desk_trace("short"))
    server = Server(space.home, tmp_path / "server.txt", DESK_TOKEN_S="8")
    try:
        desk = Desk(profile.new_page(), server.url, space, "short")
        answers: list[tuple[str, int]] = []
        desk.page.on("response", lambda one: "/api/" in one.url and answers.append((one.request.method, one.status)))
        desk.keys("a", "1")
        desk.saved()
        desk.page.wait_for_timeout(10_000)  # more than a life: the page renews its pass by itself
        desk.keys("h")
        desk.saved()
        assert answers
        assert {status for _, status in answers} == {200}
        profile.set_offline(True)
        desk.keys("2", "d")
        desk.page.keyboard.type("written offline")
        desk.keys("Escape", "w", "3")
        desk.page.wait_for_timeout(9_000)
        expect(desk.page.locator('[data-tj="saved"]')).to_contain_text("unsaved")
        profile.set_offline(False)
        state = desk.saved(60_000)
        [error] = state["errors"]
        assert (error["dimensions"], error["impact"], error["description"]) == (["LC", "EE"], "high", "written offline")
        assert state["scores"]["LC"]["value"] == 3
        assert desk.page.get_attribute(".tj-desk", "data-ready") == "short"
    finally:
        server.stop()


def test_undo_and_redo_reach_over_a_reload(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("a", "1", "h", "d")
    desk.page.keyboard.type("why")
    desk.keys("Escape")
    full = desk.saved()["errors"]
    desk.page.reload()
    desk.ready()
    desk.keys("u", "u")
    [error] = desk.saved()["errors"]
    assert (error["description"], error["impact"]) == ("", None)
    desk.page.reload()
    desk.ready()
    desk.keys("Shift+U", "Shift+U")
    assert desk.saved()["errors"] == full


def test_undo_does_not_reach_over_what_another_tab_did(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.keys("a", "1")
    desk.saved()
    other = open_desk(trace_id=desk.trace_id)
    other.keys("2")
    after = other.saved()["errors"]
    desk.page.bring_to_front()
    desk.page.reload()
    desk.ready()
    desk.keys("u")
    assert "Nothing to undo" in desk.toast()
    assert desk.saved()["errors"] == after


def test_a_trace_that_grows_under_the_page_is_opened_again_with_its_labels(
    open_desk: OpenDesk, space: Workspace
) -> None:
    trace = huge_trace("grows")
    desk = open_desk(trace)
    desk.keys("j", "a", "1", "h")
    before = desk.saved()["errors"]
    late = replace(trace.spans[1], seq=2, span_id="late", output="it came late", tool_name="late")
    with write_transaction(space.engine) as connection:
        write(connection, pack(replace(trace, spans=(*trace.spans, late))), replaces=pack(trace))
    desk.page.get_by_role("button", name="Show all 5,280,006 characters").click()
    expect(desk.page.locator('[data-tj="busy"]')).to_contain_text("This trace has new spans")
    desk.page.get_by_role("button", name="Reopen trace").click()
    expect(desk.page.locator('[data-tj="tree-count"]')).to_have_text("3 spans")
    desk.ready()
    desk.keys("2")
    [error] = desk.saved()["errors"]
    assert error["dimensions"] == ["LC", "EE"], "the label that was there is still in hand"
    assert error["label_id"] == before[0]["label_id"]
