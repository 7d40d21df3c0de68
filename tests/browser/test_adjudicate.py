"""An adjudicator settles a trace in the browser, from the list to the gold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.researcher import settled
from tests.browser.team import person_page, team_server, team_space
from tests.judging.team import submit
from tracejury.ingest.store import read_transaction
from tracejury.judging.adjudication.adjudication_items import decisions_by_trace
from tracejury.judging.reports.frames import default_reference
from tracejury.judging.store import Workspace

pytestmark = pytest.mark.browser
ERROR = {"span_ids": ["tool000000000004"], "dimensions": ["TC"], "impact": "high", "label_id": "ada-1",
         "description": "<img src=x onerror=alert(1)> ![x](https://evil.example/x.png)"}  # fmt: skip
PLAN = {"span_ids": ["plan000000000002"], "dimensions": ["PQ"], "impact": "high", "label_id": "ada-3"}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = team_space(tmp_path_factory.mktemp("adjudicate") / "home", 2)
    submit(made, "ada", "t0", scores={"LC": 3}, errors=[ERROR])
    submit(made, "ben", "t0", scores={"LC": 0})
    submit(made, "ada", "t1", scores={"LC": 3, "TC": 1}, errors=[ERROR | {"label_id": "ada-2"}, PLAN])
    submit(made, "ben", "t1", scores={"LC": 3, "TC": 3}, errors=[ERROR | {"label_id": "ben-2", "impact": "low"}])
    return made


@pytest.fixture(scope="module")
def address(space: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log: Path = tmp_path_factory.mktemp("log") / "server.txt"
    with team_server(space, log) as opened:
        yield opened


def test_a_trace_is_settled_and_its_gold_written(profile: BrowserContext, address: str, space: Workspace) -> None:
    page = person_page(profile, address, "judy", "/adjudicate")
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    expect(page.get_by_text("Undecided:")).to_be_visible()
    expect(page.get_by_text("<img src=x onerror=alert(1)>")).to_be_visible()
    text = page.locator("[data-testid=stMain]").inner_text()
    assert "ben" not in text.split()
    assert "ada" not in text.split()
    page.get_by_role("button", name="Keep R").click()
    expect(page.get_by_text("Kept.")).to_be_visible()
    page.get_by_test_id("stForm").get_by_text("2", exact=True).click()
    page.get_by_label("Reason").first.fill("Half of the answer holds.")
    page.get_by_role("button", name="Save all scores").click()
    expect(page.get_by_text("LC is 2.")).to_be_visible()
    # while the page is drawn anew its old one, which could not be pressed yet, stands beside it
    page.get_by_role("button", name="Save as gold Shortcut G", exact=True, disabled=False).click()
    expect(page.get_by_text("Gold version 1 is saved.")).to_be_visible()
    assert not any("evil.example" in url for url in urls)
    with read_transaction(space.engine) as connection:
        assert default_reference(connection) == "gold"
        decided = decisions_by_trace(connection)["t0"]
    assert (decided.version, dict(decided.scores)) == (1, {"LC": 2})


def test_a_trace_is_decided_by_keys_alone(profile: BrowserContext, address: str, space: Workspace) -> None:
    page = person_page(profile, address, "judy", "/adjudicate?trace=t1")
    expect(page.get_by_text("Raters differ in: impact")).to_be_visible()
    page.mouse.click(5, 400)
    page.keyboard.press("a")
    expect(page.get_by_text(re.compile(r"\d points? accepted"))).to_be_visible()
    for left in (1, 0):
        settled(page)
        keep = page.get_by_role("button", name=re.compile(r"Keep R[12]'s Shortcut")).first  # only a rater who marked it
        page.keyboard.press(keep.inner_text().split()[-1])
        expect(page.get_by_text(f"{left} of 2 errors undecided")).to_be_visible()
    with read_transaction(space.engine) as connection:
        decided = decisions_by_trace(connection)["t1"]
    assert len(decided.errors) == 2
    assert dict(decided.scores) == {"LC": 3}
