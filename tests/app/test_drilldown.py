"""What a click lists: as many errors, traces or findings as the estimate that was clicked counts."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pandas as pd
import pytest
from streamlit.util import AttributeDictionary
from tests.app.conftest import OpenPage
from tests.app.workspaces import REPEATED

from tracejury.app import datasets, estimates
from tracejury.app.components import drilldown
from tracejury.app.components.drilldown import kept_point
from tracejury.app.estimates import estimate
from tracejury.judging.agreement import errors
from tracejury.judging.agreement.error_rates import RATES
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.reports.estimates import ACCURACIES, SUITES
from tracejury.judging.reports.filters import Filters
from tracejury.judging.store import Workspace


def clicked(*points: list[object]) -> AttributeDictionary:
    return AttributeDictionary({"selection": {"points": [{"customdata": point} for point in points]}})


def test_a_chart_that_is_drawn_again_with_more_keeps_the_mark_that_was_clicked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What people reach comes later than the rest: who has clicked by then must not lose what they see."""
    monkeypatch.setattr(drilldown.st, "session_state", {})

    def point(event: AttributeDictionary, *, of: str = "a choice", drawn: str) -> object:
        return kept_point(event, key="chart", of=of, drawn=drawn)

    assert point(clicked(), drawn="first") is None
    assert point(clicked(["LC"]), drawn="first") == ["LC"]
    assert point(clicked(), drawn="with people") == ["LC"]  # Streamlit knows of no click on the new chart
    assert point(clicked(), drawn="with people") == ["LC"]
    assert point(clicked(["TC"]), drawn="with people") == ["TC"]
    assert point(clicked(), drawn="with people") is None  # taken back
    assert point(clicked(["TC"]), drawn="with people") == ["TC"]
    assert point(clicked(), of="another choice", drawn="first") is None


@pytest.fixture(params=["drop", "disagree"])
def choice(request: pytest.FixtureRequest, full: Workspace) -> Filters:
    missing: Missing = request.param
    return Filters(reference="ada", missing=missing, draws=0)


def listed(choice: Filters, *asked: str) -> pd.DataFrame:
    return estimate(choice, "rows_for_errors", *asked)


def test_behind_every_rate_stand_as_many_errors_as_its_n(choice: Filters) -> None:
    rates = errors.error_estimates(estimates.inputs(choice).error_rates)
    assert set(rates["metric"]) == set(RATES)
    for row in rates.itertuples():
        found = listed(choice, row.judge_model, row.dimension, row.split, row.impact, "", row.kind, row.metric)
        assert len(found) == row.n, row
        if row.metric == "recall":
            assert found[row.kind].sum() == row.tp


def test_behind_a_bar_of_a_suite_stands_each_error_once_caught_or_not_as_the_bar_says(choice: Filters) -> None:
    suite = estimates.inputs(choice).suite
    assert suite["n"].sum() > 0
    for row in suite.itertuples():
        found = listed(choice, row.judge_model, SUITES, row.split, row.impact, "", row.kind, "")
        assert (len(found), found[row.kind].sum()) == (row.n, row.hits), row
        assert not found.duplicated(["trace_id", "error_id"]).any()


def test_behind_a_bar_of_one_judge_stand_no_errors_of_another(choice: Filters) -> None:
    for row in estimates.inputs(choice).coverage.itertuples():
        found = listed(choice, row.judge_model, row.dimension, row.split, row.impact, "", row.kind, "")
        assert (len(found), found[row.kind].sum()) == (row.n, row.hits), row
        assert set(found["judge_model"]) <= {row.judge_model}
        assert set(found["dimension"]) <= {row.dimension}


def test_behind_a_square_of_dimensions_by_judges_stand_its_errors(shown: Workspace) -> None:
    choice = Filters(reference="ada", draws=0)
    grid = errors.all_splits(estimate(choice, "table.dimension_grid"))
    assert grid.loc[grid["dimension"].isin(DIMENSIONS), "errors"].sum() > 0
    for row in grid[grid["dimension"].isin(DIMENSIONS)].itertuples():
        found = listed(choice, row.judge_model, row.dimension, "", "all", row.error_dimension, "", "")
        assert (len(found), found["caught"].sum(), found["localized"].sum()) == (row.errors, row.caught, row.localized)


def test_behind_a_score_estimate_stand_as_many_traces_as_its_n(choice: Filters) -> None:
    table = estimates.inputs(choice).score_estimates
    for row in table[table["metric"].isin([*ACCURACIES, "ac2", "bias"])].itertuples():
        found = estimate(choice, "rows_for_scores", row.judge_model, row.dimension, row.split, "", "", row.metric)
        assert len(found) == row.n, row


def test_behind_a_share_of_a_score_stand_the_traces_that_were_given_it(shown: Workspace) -> None:
    choice = Filters(reference="ada", draws=0)
    for row in estimate(choice, "table.score_prevalence").itertuples():
        score = str(row.score)
        reference, model = (score, "") if row.side == "reference" else ("", score)
        found = estimate(choice, "rows_for_scores", row.judge_model, row.dimension, row.split, reference, model, "")
        assert len(found) == row.count


def test_behind_two_raters_stand_the_traces_both_scored_and_where_compare_shows_them(full: Workspace) -> None:
    choice = Filters(reference="ada", draws=0)
    for row in estimate(choice, "rater_pairs", "LC").itertuples():
        found = estimate(choice, "rows_for_raters", "LC", row.rater_a, row.rater_b)
        assert len(found) == row.n
        if row.n:
            assert (found["first"] == found["second"]).mean() == pytest.approx(row.exact)
    both = estimate(choice, "rows_for_raters", "LC", f"{REPEATED} repeat 1", "ben").iloc[0]
    assert (both["annotator"], both["judge_model"], both["repeat"]) == ("ben", REPEATED, "repeat 1")


def test_behind_the_ceiling_stand_the_traces_that_two_people_scored(shown: Workspace) -> None:
    choice = Filters(draws=0)
    table = estimates.inputs(choice).human_ceiling
    assert int(table["n"].max()) > 1
    for row in table.itertuples():
        found = estimate(choice, "rows_for_people", row.dimension, row.split)
        assert len(found) == row.n
    assert "ada: " in found["scores"].iloc[0]


def test_behind_the_ceiling_of_errors_stand_as_many_comparisons_as_its_n(shown: Workspace) -> None:
    choice = Filters(draws=0)
    table = estimates.inputs(choice).error_ceiling
    of_all = table[table["impact"] == "all"]
    assert int(of_all["n"].max()) > 1
    for row in of_all.itertuples():
        found = estimate(choice, "rows_for_people_errors", row.dimension, row.split, row.kind, row.metric)
        assert len(found) == row.n, row


def test_rows_with_a_finding_say_what_it_says(shown: Workspace) -> None:
    found = estimate(Filters(reference="ada"), "findings")
    few = found[found["judge_model"] == "careful-judge"].head(2)
    said = datasets.with_finding_texts(few)
    every = datasets.findings(Filters(reference="ada")).set_index("finding_id")
    assert list(said["description"]) == list(every.loc[few["finding_id"], "description"])
    assert said["description"].map(len).min() > 0


def test_a_list_opens_compare_at_the_pair_of_the_judge_that_was_clicked(shown: Workspace, open_page: OpenPage) -> None:
    choice = Filters(reference="ada", draws=0)
    pairs = estimate(choice, "error_pairs")
    mine = pairs[(pairs["judge_model"] == "checks") & pairs["caught"].eq(True)]
    one = mine.iloc[-1]
    at = open_page("compare", trace=one["trace_id"], person="ada", judge_model="checks", pair=one["error_id"],
                   dimension=one["dimension"])  # fmt: skip
    island = next(part for part in at.get("bidi_component") if "focus" in part.proto.json)
    held = orjson.loads(island.proto.json)
    chosen = next(pair for pair in held["pairs"] if pair["key"] == held["focus"])
    assert chosen["error"]["id"] == one["error_id"]
    assert chosen["finding"]["dimension"] == one["dimension"]


def test_the_choice_is_the_one_of_the_page(choice: Filters) -> None:
    """Failed judgements stand behind an estimate only where they count as misses."""
    kept, other = (
        len(listed(replace(choice, missing=missing), "careful-judge", "", "", "all", "", "caught", "recall"))
        for missing in ("drop", "disagree")
    )
    assert kept < other


def test_the_pairs_of_one_judge_s_bias_are_those_of_its_estimate(shown: Workspace) -> None:
    choice = Filters(reference="ada", draws=0)
    table = estimates.inputs(choice).score_estimates
    for row in table[(table["metric"] == "bias") & (table["n"] > 0)].itertuples():
        line = estimate(choice, "bias_lines", row.judge_model, row.dimension, row.split).iloc[0]
        assert (line["n"], line["mean"]) == (row.n, pytest.approx(row.value))
        assert len(estimate(choice, "bias_marks", row.judge_model, row.dimension, row.split)) == row.n


def test_behind_the_ceiling_of_an_impact_stand_as_many_comparisons_as_its_n(shown: Workspace) -> None:
    choice = Filters(draws=0)
    table = estimates.inputs(choice).error_ceiling
    for row in table[table["metric"] == "recall"].itertuples():
        found = estimate(choice, "rows_for_people_errors", row.dimension, row.split, row.kind, row.metric, row.impact)
        assert len(found) == row.n, row


def test_the_ids_of_a_list_leave_room_for_what_they_are_about(monkeypatch: pytest.MonkeyPatch) -> None:
    held: dict[str, dict[str, dict[str, object]]] = {}
    monkeypatch.setattr(drilldown, "data_table", lambda _, **settings: held.update(columns=settings["columns"]))
    monkeypatch.setattr(drilldown.st, "caption", lambda _: None)
    few = pd.DataFrame({"trace_id": ["t"], "error_id": ["e"], "impact": ["low"]})
    assert drilldown.listing(few, key="k") is None
    assert held["columns"] == {}
    drilldown.listing(few.assign(**dict.fromkeys("abcd", "x")), key="k")
    assert {name: (column["label"], column["width"]) for name, column in held["columns"].items()} == {
        "trace_id": ("trace", drilldown.ID_WIDTH), "error_id": ("error", drilldown.ID_WIDTH),
    }  # fmt: skip
