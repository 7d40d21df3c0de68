"""Two people go through a queue by keyboard: everything is met, nothing twice, repeats unnoticed, k kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, WebSocket, expect

from tests.browser.profile import forget
from tests.browser.team import person_page, team_queue, team_server, team_space
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.guidelines import acknowledged, publish
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.queues.places import assignments
from tracejury.judging.queues.queue_store import FIRST, REPEAT
from tracejury.judging.records import DIMENSIONS, ErrorLabel, Review
from tracejury.judging.store import Workspace

pytestmark = pytest.mark.browser
COUNT = 4
HIDDEN = "words that only Zoe wrote"


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = team_space(tmp_path_factory.mktemp("queue") / "home", COUNT)
    with write_transaction(made.engine) as connection:
        for number in range(COUNT):
            error = ErrorLabel(
                label_id=f"zoe-{number}", trace_id=f"t{number}", annotator="zoe", span_ids=("tool000000000004",),
                dimensions=("TC",), impact="high", description=HIDDEN,
            )  # fmt: skip
            done = Review(trace_id=f"t{number}", annotator="zoe", status="submitted")
            put_labels(connection, errors=[error], scores=[], reviews=[done], author="test")
    return made


@pytest.fixture(scope="module")
def key(space: Workspace) -> int:
    return team_queue(space, COUNT, repeat_share=0.5)  # 2 of 4 come again


@pytest.fixture(scope="module")
def address(space: Workspace, key: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log: Path = tmp_path_factory.mktemp("log") / "server.txt"
    with team_server(space, log) as opened:
        yield opened


def ready(page: Page) -> str:
    page.wait_for_selector(".tj-desk[data-ready]")
    return str(page.get_attribute(".tj-desk", "data-ready"))


def listen(page: Page) -> list[bytes]:
    """Every byte that the server sends to the page from here on, by HTTP and by WebSocket."""
    heard: list[bytes] = []

    def by_http(route: Route) -> None:
        response = route.fetch(max_retries=3)  # of a connection that the server closed as idle, as browsers do
        heard.append(response.body())
        route.fulfill(response=response)

    def by_socket(socket: WebSocket) -> None:
        socket.on("framereceived", lambda data: heard.append(data.encode() if isinstance(data, str) else data))

    page.route("**/api/**", by_http)
    page.on("websocket", by_socket)
    return heard


def label_all(page: Page, score: str) -> list[str]:
    """Label by keys until the queue says that nothing is left; gives the traces in the order met."""
    met: list[str] = []
    end = page.get_by_text("You have no traces left in this queue.")
    while len(met) < 3 * COUNT:
        page.wait_for_function(
            """(before) => document.body.innerText.includes('You have no traces left in this queue')
              || (document.querySelector('.tj-desk[data-ready]')
                && document.querySelector('.tj-desk').dataset.ready !== before)""",
            arg=met[-1] if met else "",
        )
        if end.is_visible():
            return met
        met.append(ready(page))
        expect(page.locator('[data-tj="status"]')).to_have_text("blind")
        expect(page.locator(".tj-card")).to_have_count(0)
        page.keyboard.press("z")
        page.keyboard.press("w")
        for _ in DIMENSIONS:
            page.keyboard.press(score)
        page.keyboard.press("Control+Enter")
    raise AssertionError(f"the queue does not end: {met}")


def test_two_people_label_everything_by_keys_and_never_meet_a_word_of_others(
    profile: BrowserContext, address: str, space: Workspace, key: int
) -> None:
    for name, score in (("ada", "3"), ("ben", "0")):
        page = person_page(profile, address, name)
        ready(page)
        heard = listen(page)
        page.reload()
        met = label_all(page, score)
        assert len(met) == COUNT + 2
        assert set(met) == {f"t{number}" for number in range(COUNT)}
        assert any(b"moons" in body for body in heard)  # the traces did come this way
        assert not any(HIDDEN.encode() in body or b"zoe" in body for body in heard)
        assert "occasion" not in page.url
        forget(profile)
    with read_transaction(space.engine) as connection:
        rows = assignments(connection, key, now=0)
    states = Counter((who, occasion, state) for _, _, who, occasion, state, _ in rows)
    assert states == {
        (who, occasion, "counted"): count for who in ("ada", "ben") for occasion, count in ((FIRST, COUNT), (REPEAT, 2))
    }


def test_previous_goes_back_to_what_was_submitted_and_a_new_guideline_comes_first(
    profile: BrowserContext, address: str, space: Workspace
) -> None:
    second = team_queue(space, 3, name="second", k=5)
    with write_transaction(space.engine) as connection:
        publish(connection, {"general": "Read the whole trace."}, author="root")
    page = person_page(profile, address, "judy", f"/work?queue={second}")
    expect(page.get_by_text("You have not read version 1 of the guideline yet.")).to_be_visible()
    page.get_by_role("button", name="Open guideline").click()
    page.get_by_role("button", name="I have read version 1").click()
    expect(page.get_by_text("You have acknowledged version 1.")).to_be_visible()
    with read_transaction(space.engine) as connection:
        assert acknowledged(connection, "judy") == 1
    page.goto(f"{address}/work?queue={second}")
    first = ready(page)
    page.keyboard.press("z")
    page.keyboard.press("w")
    for _ in DIMENSIONS:
        page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    page.wait_for_function(
        "(before) => document.querySelector('.tj-desk[data-ready]')?.dataset.ready !== before", arg=first
    )
    next_one = ready(page)
    assert next_one != first
    page.locator('[data-tj="previous"]').click()
    page.wait_for_selector(f'.tj-desk[data-ready="{first}"]')
    expect(page.locator('[data-tj="status"]')).to_have_text("submitted")
    page.reload()
    page.wait_for_selector(f'.tj-desk[data-ready="{first}"]')
    page.locator('[data-tj="next"]').click()
    page.wait_for_selector(f'.tj-desk[data-ready="{next_one}"]')
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Submit or skip this trace to get the next one.")).to_be_visible()
    page.keyboard.press("j")  # a notice that passes by takes no key
    expect(page.locator(".tj-desk")).to_have_attribute("data-current", "S2")
