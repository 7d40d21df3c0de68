"""Leading a study: what people are told and refused while a lead changes rules, accounts and queues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.profile import forget
from tests.browser.team import person_page, team_queue, team_server, team_space
from tests.judging.team import submit
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.guidelines import publish
from tracejury.judging.labels.item_state import state
from tracejury.judging.labels.sightings import is_blind_required, sightings
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.runs.offline import judge_all
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import change_person

pytestmark = pytest.mark.browser
ERROR = {"span_ids": ["tool000000000004"], "dimensions": ["TC"], "impact": "high"}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = team_space(tmp_path_factory.mktemp("leading") / "home", 4)
    submit(made, "ada", "t0", scores={"LC": 3}, errors=[ERROR])
    submit(made, "ben", "t0", scores={"LC": 0})
    judge_all(made.engine)
    propose_matches(made.engine)
    return made


@pytest.fixture(scope="module")
def address(space: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log: Path = tmp_path_factory.mktemp("log") / "server.txt"
    with team_server(space, log) as opened:
        yield opened


def ready(page: Page, *, after: str = "") -> str:
    page.wait_for_selector(f'.tj-desk[data-ready]:not([data-ready="{after}"])')
    return str(page.get_attribute(".tj-desk", "data-ready"))


def submit_trace(page: Page) -> None:
    page.keyboard.press("z")
    for dimension in DIMENSIONS:
        page.locator(f'[data-dimension="{dimension}"] [role="radio"]').get_by_text("1", exact=True).click()
    page.keyboard.press("Control+Enter")


def seen_of(space: Workspace, who: str, trace_id: str) -> set[str]:
    with read_transaction(space.engine) as connection:
        return {one.what for one in sightings(connection, annotator=who, trace_id=trace_id)}


def blind_required(space: Workspace) -> bool:
    with read_transaction(space.engine) as connection:
        return is_blind_required(connection)


def test_what_compare_and_adjudicate_show_is_recorded_as_seen(
    profile: BrowserContext, address: str, space: Workspace
) -> None:
    page = person_page(profile, address, "judy", "/compare?trace=t0&person=ada&judge_model=checks")
    expect(page.get_by_text("1 reference error:")).to_be_visible()
    assert seen_of(space, "judy", "t0") == {"Compare"}
    page.goto(f"{address}/adjudicate")
    expect(page.get_by_text("Undecided:")).to_be_visible()
    assert seen_of(space, "judy", "t0") == {"Compare", "Adjudicate"}
    assert seen_of(space, "judy", "t1") == set()


def test_the_switch_that_requires_blind_labels_closes_compare_until_one_has_submitted(
    profile: BrowserContext, address: str, space: Workspace
) -> None:
    page = person_page(profile, address, "root", "/admin")
    page.get_by_text("Require blind labels").click()
    while not blind_required(space):  # the server answers a click when it can
        page.wait_for_timeout(100)
    page.reload()
    expect(page.get_by_role("switch", name="Require blind labels")).to_be_checked()
    forget(profile)
    page = person_page(profile, address, "judy", "/compare?trace=t0&person=ada&judge_model=checks")
    expect(page.get_by_text("You are labelling this trace blind.")).to_be_visible()
    submit(space, "judy", "t0", scores={"LC": 1})
    page.reload()
    expect(page.get_by_text("1 reference error:")).to_be_visible()


def test_a_guideline_published_meanwhile_is_told_at_once_and_read_before_the_next_trace(
    profile: BrowserContext, address: str, space: Workspace
) -> None:
    key = team_queue(space, 4, name="guided", k=5)
    page = person_page(profile, address, "ben", f"/work?queue={key}")
    first = ready(page)
    with write_transaction(space.engine) as connection:
        publish(connection, {"general": "Read the whole trace."}, author="root")
    expect(page.get_by_text("Version 1 of the guideline is published.")).to_be_visible(timeout=45_000)
    assert ready(page) == first  # the trace in hand may be finished
    submit_trace(page)
    expect(page.get_by_text("You have not read version 1 of the guideline yet.")).to_be_visible(timeout=30_000)
    expect(page.get_by_text("You can finish this trace")).to_have_count(0)
    assert state(space.engine, annotator="ben", trace_id=first)["review"]["status"] == "submitted"
    page.get_by_role("button", name="Open guideline").click()
    page.get_by_role("button", name="I have read version 1").click()
    expect(page.get_by_text("You have acknowledged version 1.")).to_be_visible()
    page.goto(f"{address}/work?queue={key}")
    assert ready(page) != first


def test_who_is_deactivated_at_work_is_told_so_and_loses_nothing(
    profile: BrowserContext, address: str, space: Workspace
) -> None:
    key = team_queue(space, 3, name="closing", k=5)
    page = person_page(profile, address, "ada", "/guideline?version=1")
    page.get_by_role("button", name="I have read version 1").click()
    expect(page.get_by_text("You have acknowledged version 1.")).to_be_visible()
    page.goto(f"{address}/work?queue={key}")
    trace_id = ready(page)
    with write_transaction(space.engine) as connection:
        change_person(connection, "ada", by="root", active=False)
    page.keyboard.press("a")
    page.keyboard.press("1")
    chip = page.locator('[data-tj="saved"]')
    expect(chip).to_contain_text("account deactivated")
    assert "ask an administrator" in str(chip.get_attribute("title"))
    assert state(space.engine, annotator="ada", trace_id=trace_id)["errors"] == []
    with write_transaction(space.engine) as connection:
        change_person(connection, "ada", by="root", active=True)
