"""The whole app by its addresses as people who label a trace blind: every frame that reaches their browsers, and what
stands in the page. Answers of routes: `tests/app/test_by_role.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser

from tests.app.desk_judges import JUDGE_MODEL, MARKERS, OTHER, judge, other_person
from tests.app.workspaces import hold_blind
from tests.browser.team import fill_in, team_server, team_space
from tests.browser.test_work_blind import LAST, TOOL
from tracejury.app.pages import ACCOUNT, PAGES
from tracejury.ingest.store import write_transaction
from tracejury.judging.labels.comments import put_comment
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import add_person

pytestmark = [pytest.mark.browser, pytest.mark.soak]
BLIND = "t0"
ADDRESS = {"trace": BLIND, "span": LAST, "person": OTHER, "judge_model": JUDGE_MODEL, "others": "show", "as": "root"}
OF_PLACE = {JUDGE_MODEL, "oracle-7", "MARKERRUN", "MARKERDETAIL", OTHER}
"""Names of judges, runs and people: those who lead see them in lists, and the address of this test holds some."""
DONE = '[data-testid="stApp"][data-test-script-state="notRunning"]'


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    space = team_space(tmp_path_factory.mktemp("roles") / "home", 2)
    with write_transaction(space.engine) as connection:
        add_person(connection, "res", role="researcher", by="test", password="a long enough secret")
        add_person(connection, "free", role="admin", by="test", password="a long enough secret")
    judge(space, BLIND, (LAST, TOOL))
    other_person(space, BLIND, LAST)
    with write_transaction(space.engine) as connection:
        put_comment(connection, comment_id="c1", author="ben", body="@ada MARKERCOMMENT", trace_id=BLIND, span_id=LAST)
    for name in ("ada", "judy", "res", "root"):
        hold_blind(space, name, BLIND)
    return space


@pytest.fixture(scope="module")
def address(space: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with team_server(space, tmp_path_factory.mktemp("log") / "server.txt") as opened:
        yield opened


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["ada", "judy", "res", "root", "free"])
def test_no_frame_on_a_trace_reaches_who_labels_it_blind(name: str, chromium: Browser, address: str) -> None:
    """`free` labels nothing: what is looked for does reach them."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    sent: list[bytes] = []
    page = context.new_page()
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sent.append(as_bytes(frame))))
    page.goto(f"{address}/guideline")
    fill_in(page, name)
    page.wait_for_url(lambda url: "signin" not in url)
    for one in (*PAGES, ACCOUNT):
        page.goto(f"{address}/{one.file}?{urlencode(ADDRESS)}")
        page.wait_for_selector(DONE, timeout=60_000)
        page.locator("h1, h2, h3, .tj-desk[data-ready]").first.wait_for(timeout=60_000)
        page.wait_for_load_state("networkidle")
        sent.append(page.content().encode())
    context.close()
    looked_for = {*MARKERS, "MARKERCOMMENT"} - OF_PLACE
    marks = {mark for mark in looked_for for frame in sent if mark.encode() in frame}
    if name == "free":
        assert marks >= {"MARKERFINDING", "MARKEROTHER", "MARKERREASON"}
    else:
        assert marks == set()


def as_bytes(frame: str | bytes) -> bytes:
    return frame.encode() if isinstance(frame, str) else frame
