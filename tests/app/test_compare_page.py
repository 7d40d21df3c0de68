"""The Compare page as a person sees it, apart from its island (tests/browser has that)."""

from __future__ import annotations

import time

import orjson
import pytest
from sqlalchemy import delete, select
from streamlit.testing.v1 import AppTest
from tests.app.conftest import OpenPage

from tracejury.app import listings
from tracejury.ingest.store import read_transaction, trace_ids, write_transaction
from tracejury.judging.matching.comparison import Comparison, compare_trace, judged_and_labelled, undecided
from tracejury.judging.queues.places import next_item
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.records import ScoreLabel, Verdict
from tracejury.judging.store import Workspace, tables


def island(at: AppTest) -> dict[str, object]:
    """The data of the comparison's island."""
    for element in at.get("bidi_component"):
        proto = element.proto  # type: ignore[attr-defined]
        if "comparison" in proto.component_name:
            data: dict[str, object] = orjson.loads(proto.json)
            return data
    raise AssertionError("the island is not on the page")


def test_an_empty_workspace_says_what_brings_traces(empty: Workspace, open_page: OpenPage) -> None:
    assert "This workspace holds no traces" in open_page("compare").info[0].value


def test_the_trace_and_the_judge_of_the_address_are_shown(full: Workspace, open_page: OpenPage) -> None:
    with read_transaction(full.engine) as connection:
        trace_id = list(undecided(connection, reference="ben", judge_model="hasty-judge"))[-1]
    at = open_page("compare", trace=trace_id, person="ben", judge_model="hasty-judge")
    data = island(at)
    assert (data["trace_id"], data["reference"], data["judge_model"]) == (trace_id, "ben", "hasty-judge")


def test_pairs_hold_every_error_of_the_person_once_or_as_often_as_it_is_found(
    shown: Workspace, open_page: OpenPage
) -> None:
    at = open_page("compare", judge_model="careful-judge")
    data = island(at)
    errors = [pair["error"]["id"] for pair in data["pairs"] if pair["error"] is not None]  # type: ignore[attr-defined]
    caption = next(c.value for c in at.caption if "reference error" in c.value)
    assert caption.startswith(f"{len(set(errors))} reference error")


def test_scores_stand_side_by_side_and_a_failure_is_no_score(shown: Workspace, open_page: OpenPage) -> None:
    ids = [str(row) for row in open_page("compare").selectbox(key="compare_trace").options]
    first = ids[0].split(" ")[0]
    at = open_page("compare", trace=first, judge_model="checks", person="ada")
    table = at.dataframe[0].value
    assert list(table["dimension"]) == ["LC", "EE", "PQ", "PA", "GF", "TS", "TC"]
    assert set(table["judge outcome"]) <= {"scored", "not applicable"}


def without_cells(space: Workspace, judge_model: str) -> str:
    """The first trace, on which the judge now has no verdict."""
    with write_transaction(space.engine) as connection:
        for table in (tables.citation, tables.match, tables.matching, tables.finding_review, tables.finding):
            connection.execute(delete(table))
        version = connection.scalar(
            select(tables.judge_version.c.judge_version).where(tables.judge_version.c.model == judge_model)
        )
        first = trace_ids(connection)[0]
        connection.execute(
            delete(tables.cell).where(tables.cell.c.judge_version == version, tables.cell.c.trace_id == first)
        )
    return first


def test_a_judge_without_answer_on_the_trace_says_so(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("compare", trace=without_cells(full, "hasty-judge"), judge_model="hasty-judge")
    assert any("has not judged this trace" in info.value for info in at.info)


def test_of_many_traces_those_are_listed_that_both_sides_spoke_of_and_the_one_asked_for(
    full: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = without_cells(full, "hasty-judge")
    with write_transaction(full.engine) as connection:
        _, second, *both = trace_ids(connection)
        own = (tables.review.c.annotator == "ben", tables.review.c.trace_id == second)
        connection.execute(delete(tables.review).where(*own))
        assert judged_and_labelled(connection, reference="ben", judge_model="hasty-judge") == set(both)

    def listed(**address: str) -> list[str]:
        chosen = open_page("compare", person="ben", judge_model="hasty-judge", **address)
        return [str(one).split(" ")[0] for one in chosen.selectbox(key="compare_trace").options]

    assert listed() == [first, second, *both]
    monkeypatch.setattr(listings, "MANY", len(both))
    assert listed() == both
    assert listed(trace=first) == [first, *both]
    assert listed(trace="nothing") == both


def test_an_unknown_trace_in_the_address_falls_back_to_the_first(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("compare", trace="nothing")
    assert island(at)["trace_id"] == at.selectbox(key="compare_trace").value


def test_a_trace_the_judge_failed_on_is_no_list_of_missed_errors(full: Workspace, open_page: OpenPage) -> None:
    sides = {"reference": "ada", "judge_model": "careful-judge"}
    with read_transaction(full.engine) as connection:
        judged = list(undecided(connection, **sides))
        cells = {t: compare_trace(connection, trace_id=t, **sides).cells for t in trace_ids(connection)}
    (failed,) = [
        t for t, judged_cells in cells.items() if not any(isinstance(cell.outcome, Verdict) for cell in judged_cells)
    ]
    assert (
        open_page("compare", person="ada", judge_model="careful-judge").selectbox(key="compare_trace").value
        == judged[0]
    )
    at = open_page("compare", person="ada", judge_model="careful-judge", trace=failed)
    assert any("failed on this trace" in info.value for info in at.info)
    at.button(key="to_judged").click().run()
    assert at.selectbox(key="compare_trace").value == judged[0]


def test_who_is_at_work_on_the_trace_blind_is_shown_nothing_of_it(full: Workspace, open_page: OpenPage) -> None:
    with read_transaction(full.engine) as connection:
        wanted = next(iter(undecided(connection, reference="ada", judge_model="careful-judge")))
    with write_transaction(full.engine) as connection:
        key = make_queue(connection, QueueSpec(name="own", author="root", k=3), [wanted], now=1)
    assert next_item(full.engine, key, "me", now=time.time_ns() // 1000) is not None
    at = open_page("compare", trace=wanted, person="ada", judge_model="careful-judge")
    assert "blind" in at.info[0].value
    assert not at.get("bidi_component")
    assert not at.expander


def test_reasoning_beside_an_answer_stands_below_the_raw_reply() -> None:
    def page() -> None:
        from tracejury.app.views.compare import reply
        from tracejury.judging.matching.comparison import JudgedCell
        from tracejury.judging.records import Call, Failure

        call = Call(model="m", raw_reply="RAW", reasoning="THOUGHTS")
        outcome = Failure(rubric="LC", trace_id="t", state="unparsable", reason="no", call=call)
        reply(JudgedCell(cell_key=1, rubric="LC", outcome=outcome))

    at = AppTest.from_function(page)
    at.session_state["reply-1"] = True
    at.run()
    assert [code.value for code in at.code] == ["RAW", "THOUGHTS"]


def test_own_dimensions_stand_below_the_seven(empty: Workspace) -> None:
    from tracejury.app.views.compare import score_table  # a page runs when it is imported

    scores = tuple(
        ScoreLabel(trace_id="t", annotator="ada", dimension=name, value=value)
        for name, value in (("helpfulness", 2.0), ("LC", 1.0), ("trail.overall", 5.0))
    )
    table = score_table(
        Comparison(trace_id="t", reference="ada", judge_model="checks", pairs=(), cells=(), scores=scores)
    )
    assert list(table["dimension"]) == ["LC", "helpfulness"]
