"""Comments by keys: one opens the box, another stores it; what is typed survives a server that does not answer."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser import desk as desk_fixtures
from tests.browser.desk import OpenDesk
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.comments import comments, put_comment
from tracejury.judging.labels.sightings import sightings

pytestmark = pytest.mark.browser
space, server, open_desk = desk_fixtures.space, desk_fixtures.server, desk_fixtures.open_desk


def test_a_comment_is_written_on_an_error_and_on_a_span_by_keys(open_desk: OpenDesk) -> None:
    desk = open_desk()
    page = desk.page
    desk.keys("j", "a", "1", "Shift+D")
    box = page.get_by_role("dialog", name="Comments")
    expect(box.get_by_label("Comment", exact=True)).to_be_focused()
    expect(box).to_contain_text("About error 1 at S2")
    page.keyboard.type("a1 <b>not bold</b>")
    page.keyboard.press("Control+Enter")
    expect(box.locator("li")).to_contain_text("a1 <b>not bold</b>")
    desk.keys("Escape")
    assert [len(desk.saved()["errors"]), desk.saved()["review"]["status"]] == [1, "open"]
    desk.keys("Shift+Tab", "j", "Shift+D")
    expect(box).to_contain_text("About S3")
    desk.keys("Escape")
    with read_transaction(desk.space.engine) as connection:
        (stored,) = [one for one in comments(connection) if one.trace_id == desk.trace_id]
    assert (stored.author, stored.body, stored.label_id) == (
        "me", "a1 <b>not bold</b>", desk.stored()["errors"][0]["label_id"],
    )  # fmt: skip


def test_a_comment_that_could_not_be_saved_is_still_there_after_a_reload(open_desk: OpenDesk) -> None:
    desk = open_desk()
    page = desk.page
    desk.keys("Shift+D")
    page.route("**/api/comments/**", lambda route: route.abort())
    page.keyboard.type("why this tool?")
    page.keyboard.press("Control+Enter")
    expect(page.locator('[data-tj="toast"]')).to_contain_text("The text stays in this browser")
    page.unroute("**/api/comments/**")
    page.reload()
    desk.ready()
    desk.keys("Shift+D")
    box = page.get_by_role("dialog", name="Comments")
    expect(box.get_by_label("Comment", exact=True)).to_have_value("why this tool?")
    page.keyboard.press("Control+Enter")
    expect(box.locator("li")).to_contain_text("why this tool?")
    expect(box.get_by_label("Comment", exact=True)).to_have_value("")


def test_others_comments_come_only_after_submission(open_desk: OpenDesk) -> None:
    desk = open_desk()
    with write_transaction(desk.space.engine) as connection:
        put_comment(connection, comment_id="of-ben", author="ben", body="The plan is wrong", trace_id=desk.trace_id)
    box = desk.page.get_by_role("dialog", name="Comments")
    desk.keys("Shift+D")
    expect(box).to_contain_text("1 comment of others is hidden until you submit this trace")
    expect(box).not_to_contain_text("The plan is wrong")
    desk.keys("Escape")
    desk.submit()
    desk.keys("Shift+D")
    expect(box).to_contain_text("The plan is wrong")
    expect(box).not_to_contain_text("hidden until")


def test_without_sign_in_comments_of_others_are_read_earlier_by_a_deliberate_press(open_desk: OpenDesk) -> None:
    desk = open_desk()
    with write_transaction(desk.space.engine) as connection:
        put_comment(connection, comment_id="of-ben-2", author="ben", body="Look at S3", trace_id=desk.trace_id)
    box = desk.page.get_by_role("dialog", name="Comments")
    desk.keys("Shift+D")
    box.get_by_role("button", name="Show now").click()
    expect(box).to_contain_text("Look at S3")
    expect(box.get_by_label("Comment", exact=True)).to_be_focused()
    with read_transaction(desk.space.engine) as connection:
        seen = sightings(connection, annotator="me", trace_id=desk.trace_id)
    assert [one.what for one in seen] == ["Comments"]
