"""Compare by key in a real browser: each decision is stored, text stays text."""

from __future__ import annotations

from contextlib import suppress

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from playwright.sync_api import TimeoutError as NotYet

from tests.browser.profile import box_of
from tests.browser.researcher import settled
from tests.judging.team import op, send
from tracejury.ingest.store import read_transaction
from tracejury.judging.labels import item_state
from tracejury.judging.matching.comparison import compare_trace, undecided
from tracejury.judging.matching.finding_reviews import finding_reviews
from tracejury.judging.matching.standing import decisions
from tracejury.judging.store import Workspace

pytestmark = pytest.mark.browser
BESIDE = "fa21f05d076c101d4989538cae9f0356"
"""A trace on which an unmatched finding of the careful judge stands beside an error of ben's."""


def first_trace(space: Workspace, judge_model: str, state: str) -> str:
    with read_transaction(space.engine) as connection:
        for trace_id, waiting in undecided(connection, reference="ben", judge_model=judge_model).items():
            comparison = compare_trace(connection, trace_id=trace_id, reference="ben", judge_model=judge_model)
            if waiting and any(pair.state == state and not pair.is_decided for pair in comparison.pairs):
                return trace_id
    raise AssertionError(f"no undecided {state} pair of {judge_model}")


def with_a_partner(space: Workspace) -> tuple[str, str]:
    """A trace and a judge with an error and a finding that stand alone: either may be matched."""
    with read_transaction(space.engine) as connection:
        for judge_model in ("careful-judge", "hasty-judge", "checks"):
            for trace_id in undecided(connection, reference="ben", judge_model=judge_model):
                comparison = compare_trace(connection, trace_id=trace_id, reference="ben", judge_model=judge_model)
                if {"missed", "unmatched"} <= {pair.state for pair in comparison.pairs}:
                    return trace_id, judge_model
    raise AssertionError("every error and every finding has its partner")


def status_of(space: Workspace, key: str) -> str:
    label_id, finding_key = key.split("|")
    with read_transaction(space.engine) as connection:
        return next(
            d.status for d in decisions(connection) if (d.label_id, str(d.finding_key)) == (label_id, finding_key)
        )


def opened_pair(page: Page, server: str, trace_id: str, judge: str) -> Locator:
    """The row of the first localized pair, chosen."""
    page.goto(f"{server}/compare?trace={trace_id}&person=ben&judge_model={judge}")
    settled(page)
    row = page.locator(".tjc-row", has=page.locator('[data-state="localized"]')).first
    row.click()
    return row


def test_y_confirms_and_n_rejects_and_both_are_stored(page: Page, sample_server: str, sample_space: Workspace) -> None:
    trace_id = first_trace(sample_space, "careful-judge", "localized")
    row = opened_pair(page, sample_server, trace_id, "careful-judge")
    key = row.get_attribute("data-key")
    assert key is not None
    expect(page.locator(".tjc-text mark").first).to_be_visible()
    page.keyboard.press("y")
    expect(page.locator(f'.tjc-row[data-key="{key}"] .tjc-done')).to_have_attribute("title", "confirmed by ruth")
    assert status_of(sample_space, key) == "confirmed"
    page.locator(f'.tjc-row[data-key="{key}"]').click()
    page.keyboard.press("n")
    expect(page.locator(f'.tjc-row[data-key="{key}"]')).to_have_count(0)
    expect(page.locator(f'.tjc-row[data-key="{key.split("|")[0]}|"] [data-state="missed"]')).to_be_visible()
    assert status_of(sample_space, key) == "rejected"
    # matched again by a person: M, then the finding from the list
    page.locator(f'.tjc-row[data-key="{key.split("|")[0]}|"]').click()
    page.keyboard.press("m")
    page.get_by_label("Match with").select_option(value=f"|{key.split('|')[1]}")
    expect(page.locator(f'.tjc-row[data-key="{key}"] .tjc-done')).to_have_attribute("title", "confirmed by ruth")
    page.reload()
    settled(page)
    expect(page.locator(f'.tjc-row[data-key="{key}"] .tjc-done')).to_have_attribute("title", "confirmed by ruth")


def test_an_unmatched_finding_is_judged_by_key_and_u_leads_to_the_next_trace(
    page: Page, sample_server: str, sample_space: Workspace
) -> None:
    trace_id = first_trace(sample_space, "checks", "unmatched")
    page.goto(f"{sample_server}/compare?trace={trace_id}&person=ben&judge_model=checks")
    settled(page)
    extra = page.locator(".tjc-row", has=page.locator('[data-state="unmatched"]'))
    expect(extra.first).to_be_visible()
    count = extra.count()
    for place in range(count):
        extra.nth(place).click()
        page.keyboard.press("f")
        expect(extra.nth(place).locator(".tjc-done")).to_have_text("✓")
    with read_transaction(sample_space.engine) as connection:
        assert list(finding_reviews(connection).values()).count("false alarm") >= count
    waiting = page.locator('.tjc-row[data-decided="no"]')
    still_open = page.locator("[data-tjc-open]")
    for _ in range(40):  # the list may be drawn anew between two looks
        left = still_open.get_attribute("data-tjc-open")
        if left == "0":
            break
        waiting.first.click()
        page.keyboard.press("y")
        with suppress(AssertionError):  # the row went away under the mouse: choose again
            expect(still_open).not_to_have_attribute("data-tjc-open", str(left), timeout=8_000)
    expect(page.locator("[data-tjc-open]")).to_have_text("all decided")
    for _ in range(10):  # a key that is pressed while the page learns of the decisions may be lost
        page.keyboard.press("u")
        with suppress(NotYet):
            page.wait_for_function(f"!location.search.includes('{trace_id}')", timeout=8_000)
            break
    assert trace_id not in page.url


def test_the_pair_of_the_address_is_the_one_shown(page: Page, sample_server: str, sample_space: Workspace) -> None:
    trace_id = first_trace(sample_space, "hasty-judge", "localized")
    with read_transaction(sample_space.engine) as connection:
        comparison = compare_trace(connection, trace_id=trace_id, reference="ben", judge_model="hasty-judge")
    error = next(pair.error for pair in reversed(comparison.pairs) if pair.error is not None)
    page.goto(f"{sample_server}/compare?trace={trace_id}&person=ben&judge_model=hasty-judge&pair={error.label_id}")
    settled(page)
    chosen = page.locator('.tjc-row[aria-selected="true"]')
    expect(chosen).to_be_visible()
    assert (chosen.get_attribute("data-key") or "").startswith(error.label_id)
    stays_in_sight_beside_long_spans(page)


def stays_in_sight_beside_long_spans(page: Page) -> None:
    """What is compared is not scrolled away with the spans that it names."""
    expect(page.locator(".tjc-text").first).to_be_visible()
    page.evaluate("""() => {
        const text = document.querySelector('.tjc-texts .tjc-text');
        text.append('\\n'.repeat(300));
        document.querySelector('.tjc-texts').scrollTop = 3000;
    }""")
    assert page.evaluate("() => document.querySelector('.tjc-texts').scrollTop") > 1000
    main, card = (box_of(page.locator(name).first) for name in (".tjc-main", ".tjc-card h3"))
    assert main["y"] < card["y"] < main["y"] + main["height"] / 2


def test_a_decision_that_cannot_be_stored_says_so_and_is_not_shown_as_made(
    page: Page, sample_server: str, sample_space: Workspace
) -> None:
    trace_id = first_trace(sample_space, "hasty-judge", "localized")
    page.route("**/api/compare/decide", lambda route: route.abort())
    row = opened_pair(page, sample_server, trace_id, "hasty-judge")
    page.keyboard.press("y")
    expect(page.get_by_role("alert").filter(has_text="Not saved")).to_be_visible()
    expect(row.locator(".tjc-done")).to_have_text("·")


def test_a_pass_that_ran_out_is_renewed_and_the_decision_stored(
    page: Page, sample_server: str, sample_space: Workspace
) -> None:
    trace_id = first_trace(sample_space, "hasty-judge", "localized")
    row = opened_pair(page, sample_server, trace_id, "hasty-judge")
    key = row.get_attribute("data-key")
    assert key is not None
    tokens: list[str] = []

    def run_out(route: Route) -> None:
        tokens.append(route.request.post_data_json["token"])
        if len(tokens) == 1:
            route.fulfill(status=401, json={"error": "the token has expired", "remedy": "reload the page"})
        else:
            route.continue_()

    page.route("**/api/compare/decide", run_out)
    done = page.locator(f'.tjc-row[data-key="{key}"] .tjc-done')
    is_confirmed = "confirmed" in (done.get_attribute("title") or "")  # by a test before this one
    press, status = ("n", "rejected") if is_confirmed else ("y", "confirmed")
    page.keyboard.press(press)
    expect(done).to_have_attribute("title", f"{status} by ruth")
    assert status_of(sample_space, key) == status
    assert len(set(tokens)) == 2


def opened_under_a_clock(page: Page, server: str, space: Workspace) -> str:
    """A trace that holds what stands alone, open on Compare; its passes age as the test's clock says."""
    trace_id, judge = with_a_partner(space)
    page.clock.install()
    page.goto(f"{server}/compare?trace={trace_id}&person=ben&judge_model={judge}")
    settled(page)
    return trace_id


def test_an_error_that_its_person_put_otherwise_meanwhile_is_shown_with_the_next_pass(
    first_page: Page, sample_server: str, sample_space: Workspace
) -> None:
    page = first_page
    trace_id = opened_under_a_clock(page, sample_server, sample_space)
    expect(page.locator(".tjc-row").first).to_be_visible()
    error = item_state.state(sample_space.engine, annotator="ben", trace_id=trace_id)["errors"][0]
    changed = op("error.put", **{**error, "description": "Put otherwise now."})
    send(sample_space, "ben", trace_id, op("review.put", status="open"), changed, op("review.put", status="submitted"))
    page.clock.fast_forward(11 * 60 * 1000)
    expect(page.locator(".tjc-row").filter(has_text="Put otherwise now.").first).to_be_visible()


@pytest.mark.soak
def test_the_pass_is_renewed_at_half_its_life_and_what_is_open_stays_open(
    first_page: Page, sample_server: str, sample_space: Workspace
) -> None:
    page = first_page
    opened_under_a_clock(page, sample_server, sample_space)
    page.locator(".tjc-row", has=page.locator('[data-state="unmatched"]')).first.click()
    expect(page.locator(".tjc-texts .tjc-span").first).to_be_visible()
    page.keyboard.press("m")
    choice = page.get_by_label("Match with")
    expect(choice).to_be_visible()
    page.evaluate("document.querySelector('.tjc-acts select').dataset.kept = 'yes'")
    token = "() => document.querySelector('[data-tjc]').dataset.pass"
    before = page.evaluate(token)
    page.clock.fast_forward(11 * 60 * 1000)
    page.wait_for_function("(before) => document.querySelector('[data-tjc]').dataset.pass !== before", arg=before)
    assert page.evaluate("document.querySelector('.tjc-acts select').dataset.kept") == "yes"


def test_a_candidate_is_one_digit_and_z_takes_it_back(page: Page, sample_server: str, sample_space: Workspace) -> None:
    page.goto(f"{sample_server}/compare?trace={BESIDE}&person=ben&judge_model=checks")
    settled(page)
    row = page.locator('.tjc-row[data-key^="|"]').first  # a finding alone
    row.click()
    candidate_by_digit(page, sample_space, str(row.get_attribute("data-key")))


def candidate_by_digit(page: Page, space: Workspace, key: str) -> None:
    first = page.locator(".tjc-candidate").first
    expect(first).to_contain_text("S")
    page.keyboard.press("1")
    matched = page.locator(f'.tjc-row[data-key$="{key}"]:not([data-key="{key}"])')
    expect(matched.locator(".tjc-done")).to_have_attribute("title", "confirmed by ruth")
    pair = str(matched.get_attribute("data-key"))
    assert status_of(space, pair) == "confirmed"
    page.keyboard.press("z")
    expect(page.locator(f'.tjc-row[data-key="{key}"][aria-selected="true"]')).to_be_visible()
    expect(page.locator(f'.tjc-row[data-key="{pair}"]')).to_have_count(0)
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("v")  # no key is a command while the dialog is open
    page.get_by_role("button", name="Close").click()
    expect(page.locator(f'.tjc-row[data-key="{key}"] .tjc-done')).to_have_text("·")


def test_list_and_evidence_of_both_stand_in_one_view(page: Page, sample_server: str, sample_space: Workspace) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    trace_id = first_trace(sample_space, "hasty-judge", "localized")
    opened_pair(page, sample_server, trace_id, "hasty-judge")
    expect(page.locator(".tjc-text mark").first).to_be_visible()
    for part in (".tjc-list", ".tjc-acts", ".tjc-cards", ".tjc-texts"):
        box = box_of(page.locator(part))
        assert box["height"] > 30
        assert box["y"] + box["height"] <= 800, part
