"""The Agreement page as a person sees it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import cycle, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import update
from streamlit.testing.v1 import AppTest
from streamlit.util import AttributeDictionary
from tests.app.conftest import OpenPage
from tests.app.marks import choose, click, drawn, marks_of, numbers, spec_of, texts
from tests.app.workspaces import DATA, REPEATED, hold_blind, of_people

from tracejury.app import estimates, listings, options
from tracejury.app.components.charts import CEILING
from tracejury.app.estimates import estimate
from tracejury.ingest.batch import ingest
from tracejury.ingest.store import read_transaction, trace_ids, write_transaction
from tracejury.judging.agreement.rounding import half_up
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.matching.deciding import decide
from tracejury.judging.matching.standing import decisions
from tracejury.judging.records import MatchStatus
from tracejury.judging.reports.estimate_files import EstimateKey
from tracejury.judging.reports.filters import Filters
from tracejury.judging.store import Workspace, tables
from tracejury.judging.store.people import ensure_annotator


def test_an_empty_workspace_says_what_brings_traces(empty: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement")
    assert "This workspace holds no traces" in at.info[0].value
    assert "tracejury ingest" in at.info[0].value


def test_without_a_review_the_page_asks_for_one(empty: Workspace, open_page: OpenPage) -> None:
    ingest(empty.engine, [DATA / "samples" / "trail"])
    with write_transaction(empty.engine) as connection:
        ensure_annotator(connection, "ada")
    assert "No annotator has submitted a trace" in open_page("agreement").info[0].value


def test_the_overview_names_the_human_the_errors_and_what_failed(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement")
    summary = next(text for text in texts(at.caption) if text.startswith("Reference"))
    # ada: 23 errors on 6 traces; each imported judge failed on one trace, 13 errors are on the four others
    assert "Reference: ada · 13 errors on 4 traces" in summary
    assert "compared on the 4 of 6 that all answered" in summary
    assert "2 failed cells (10 error pairs) left out" in summary
    assert summary.count("left out") == 1  # what the row of filters shows is not said again
    assert "all traces" not in summary
    assert any("of the reference errors" in text and "people among themselves" in text for text in texts(at.markdown))
    own = open_page("agreement", same_traces="false")
    summary = next(text for text in texts(own.caption) if text.startswith("Reference"))
    assert "Reference: ada · 23 errors on 6 traces" in summary
    assert "in common" in summary
    assert "each is compared on its own" in summary
    assert texts(at.subheader) == [
        "Judge models, by what they caught", "Judges at a glance", "Coverage by impact", "Every judge"
    ]  # fmt: skip
    assert len(at.get("plotly_chart")) == 3


def test_an_error_that_no_judge_could_find_is_counted_beside_the_others_and_listed(
    full: Workspace, open_page: OpenPage
) -> None:
    with write_transaction(full.engine) as connection:
        vague = replace(next(e for e in error_labels(connection) if e.annotator == "ada"), span_ids=())
        put_labels(connection, errors=[vague], scores=[], reviews=[], author="ada")
    at = open_page("agreement", view="Errors", same_traces="false")
    summary = next(text for text in texts(at.caption) if text.startswith("Reference"))
    assert "22 errors on " in summary
    assert "(1 more in no estimate; see Errors)" in summary
    assert "1 error in no estimate" in texts(at.subheader)
    listed = at.dataframe[-1].value
    assert listed[["trace_id", "error_id", "lacks"]].to_numpy().tolist() == [[vague.trace_id, vague.label_id, "span"]]


def test_the_table_shows_n_and_says_why_an_estimate_is_undefined(shown: Workspace, open_page: OpenPage) -> None:
    table = open_page("agreement", same_traces="false").dataframe[1].value
    gf = table[(table["judge_model"] == "checks") & (table["dimension"] == "GF")].iloc[0]
    assert gf["caught.precision"] == "n/a: no positive predicted"
    assert gf["caught.recall"].startswith("0.000 [0.000, ")
    assert gf["caught.recall"].endswith("n \u20074")  # in line with the n of two digits


def test_a_person_chosen_in_the_address_is_the_reference(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", reference="ben")
    assert any("Reference: ben" in text for text in texts(at.caption))


def test_the_majority_of_people_is_a_human_to_choose_and_says_what_it_could_not_decide(
    shown: Workspace, open_page: OpenPage
) -> None:
    at = open_page("agreement", reference="majority", view="Raters")
    summary = next(text for text in texts(at.caption) if text.startswith("Reference"))
    assert "Reference: majority (" in summary
    assert "without a majority" in summary
    assert "tied" in summary
    assert "Votes of the majority" in texts(at.subheader)
    assert "Votes of the majority" not in texts(open_page("agreement", reference="ben", view="Raters").subheader)
    assert "Reviews of unmatched findings" in texts(at.subheader)


def test_confirmed_only_counts_no_proposal(shown: Workspace, open_page: OpenPage) -> None:
    tables = [shown_table.value for shown_table in open_page("agreement", matches="confirmed").dataframe]
    table = next(one for one in tables if "caught.recall" in one)
    careful = table[table["judge_model"] == "careful-judge"].iloc[0]
    assert careful["caught.recall"].startswith("0.000 ")


def test_every_view_draws(shown: Workspace, open_page: OpenPage) -> None:
    seen = {
        view: texts(open_page("agreement", view=view).subheader)
        for view in ("Errors", "Scores", "Consistency", "Raters", "A against B", "Team")
    }
    assert "Reference errors by judge" in seen["Errors"]
    assert "Reference scores against judge scores" in seen["Scores"]
    assert "Distribution of alpha" in seen["Consistency"]
    assert "Human ceiling" in seen["Raters"]
    assert "Human ceiling for errors" in seen["Raters"]
    assert "Matchers" in seen["Raters"]
    assert "McNemar on caught errors" in seen["A against B"]
    assert "Work by person" in seen["Team"]


@pytest.mark.parametrize("view", ["Errors", "Scores", "Consistency", "Raters"])
def test_no_mark_stands_for_a_trace_that_one_labels_blind(full: Workspace, open_page: OpenPage, view: str) -> None:
    def drawn(at: AppTest) -> str:
        return "".join(chart.proto.spec for chart in at.get("plotly_chart"))

    before = open_page("agreement", view=view)
    with read_transaction(full.engine) as connection:
        trace_id = next(one for one in trace_ids(connection) if one in drawn(before))
    hold_blind(full, "me", trace_id)
    after = open_page("agreement", view=view)
    assert trace_id not in drawn(after)
    assert len(after.get("plotly_chart")) == len(before.get("plotly_chart"))
    assert any("1 trace that you are labelling" in text for text in texts(after.caption))


def test_a_run_and_a_person_can_stand_on_either_side(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", view="A against B", side_a=REPEATED, side_b=f"{REPEATED}, repeat 1")
    assert [box.value for box in at.selectbox if box.key in {"side_a", "side_b"}] == [REPEATED, f"{REPEATED}, repeat 1"]
    tests = next(one.value for one in at.dataframe if "only A" in one.value)
    assert list(tests["dimension"]) == ["LC"]
    # the two runs found nothing, so no error tells them apart
    assert (tests["only A"].iloc[0], tests["only B"].iloc[0]) == (0, 0)

    at = open_page("agreement", view="A against B", side_a="checks", side_b="person ben")
    tests = next(one.value for one in at.dataframe if "only A" in one.value)
    assert set(tests["dimension"]) >= {"LC", "TC"}
    assert int(tests["only B"].sum()) > 0  # ben saw errors that no check finds
    for place, row in tests.iterrows():
        choose(at, "mcnemar", int(str(place)))
        one_side = int(row["only A"] + row["only B"])
        assert any(text.startswith(f"{one_side} error") for text in texts(at.subheader)), row["dimension"]


def test_consistency_shows_the_judge_with_repeats_alone(full: Workspace, open_page: OpenPage) -> None:
    table = open_page("agreement", view="Consistency").dataframe[0].value
    assert list(table["judge_model"]) == [REPEATED]
    # 6 traces by 3 runs, one of them failed
    assert (table["repeats"].iloc[0], table["n"].iloc[0], table["failed"].iloc[0]) == (3, 6, 1)
    # 4 of 6 traces were scored alike in all runs, by Wilson between .30 and .90; 1 of 18 judgements failed
    assert table["identical"].iloc[0] == "0.667 [0.300, 0.903]"
    assert table["unscored"].iloc[0].startswith("0.056 [0.004, 0.454]")  # of 6 traces
    assert table["mean_sd"].iloc[0].endswith("]")


def test_without_repeats_consistency_says_how_to_get_them(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", view="Consistency", judge_models="checks")
    assert "--repeats 5" in at.info[0].value


def test_a_split_that_is_not_there_is_no_crash(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", split="nowhere")
    assert any("Reference: ada" in text for text in texts(at.caption))  # the address is cleaned by Streamlit


def test_names_from_outside_make_no_markup(full: Workspace, open_page: OpenPage) -> None:
    evil = "![x](http://example.invalid/x.png)"
    with write_transaction(full.engine) as connection:
        for table in (tables.annotator, tables.error_label, tables.score_label, tables.review):
            connection.execute(update(table).where(table.c.annotator == "ada").values(annotator=evil))
    at = open_page("agreement", reference=evil)
    assert not any(evil in text for text in texts(at.caption))


def test_where_every_judgement_failed_the_page_says_so_and_not_that_there_are_no_errors(
    full: Workspace, open_page: OpenPage
) -> None:
    with write_transaction(full.engine) as connection:
        failed = update(tables.cell).where(tables.cell.c.model == REPEATED).values(state="refused", score=None)
        connection.execute(failed)
    at = open_page("agreement", judge_models=REPEATED, reference="ada")
    assert any("error pairs counts here: 6 cells failed" in text for text in texts(at.caption))
    at = open_page("agreement", judge_models=REPEATED, reference="ada", missing="misses")
    assert not any("cells failed" in text for text in texts(at.caption))


def test_where_a_split_leaves_everything_out_the_page_names_the_split(full: Workspace, open_page: OpenPage) -> None:
    options.split_folder().mkdir()
    (options.split_folder() / "none.json").write_text('{"dev": ["no such trace"]}')
    for view in ("Errors", "Scores"):
        assert "The filter Split may exclude" in open_page("agreement", view=view, split="none").info[0].value


def test_a_file_of_several_splits_draws_each_share_and_each_square_once(full: Workspace, open_page: OpenPage) -> None:
    """Else the parts of two splits lie on one another, and shares come to twice the whole."""
    with read_transaction(full.engine) as connection:
        ids = trace_ids(connection)
    options.split_folder().mkdir()
    (options.split_folder() / "two.json").write_text(json.dumps({"dev": ids[:3], "test": ids[3:]}))
    at = open_page("agreement", view="Scores", split="two", judge_models="checks", reference="ada")
    bars = pd.concat([pd.DataFrame({"row": bar["y"], "share": numbers(bar["x"])}) for bar in drawn(at, "prevalence")])
    assert any("(dev)" in row for row in bars["row"])
    bars = bars[~bars["row"].str.endswith("(n 0)")]
    np.testing.assert_allclose(bars.groupby("row")["share"].sum(), 1)
    at = open_page("agreement", view="Errors", split="two", judge_models="checks", reference="ada")
    (squares,) = drawn(at, "grid")
    places = list(zip(squares["x"], squares["y"], strict=True))
    assert len(places) == len(set(places))
    whole = open_page("agreement", view="Errors", judge_models="checks", reference="ada")
    assert sorted(squares["text"]) == sorted(drawn(whole, "grid")[0]["text"])


CHARTS = {
    "Overview": ("chart-forest", "chart-impact"),
    "Errors": ("chart-strip", "chart-grid", "chart-map"),
    "Scores": ("chart-confusion", "chart-buckets", "chart-bias", "chart-prevalence"),
    "Consistency": ("chart-repeats", "chart-spread", "chart-alpha", "chart-sci"),
    "Raters": ("chart-raters", "chart-items"),
    "A against B": ("chart-versus",),
    "Team": ("chart-team",),
}


@pytest.mark.parametrize("view", list(CHARTS))
def test_a_click_on_a_mark_of_any_chart_lists_what_is_behind_it_or_opens_it(
    shown: Workspace, open_page: OpenPage, view: str
) -> None:
    at = open_page("agreement", view=view, reference="ada", side_a="careful-judge", side_b="hasty-judge")
    assert {chart.proto.id.rpartition("-chart-")[2] for chart in at.get("plotly_chart")} >= {
        key.removeprefix("chart-") for key in CHARTS[view]
    }
    for key in CHARTS[view]:
        clicked = marks_of(at, key)
        assert clicked, key
        for mark in clicked if len(clicked) < 4 else (*clicked[:2], *clicked[-2:]):
            click(at, key, {"customdata": mark})
            assert not at.exception, (key, at.exception)
            said = [*texts(at.caption), *(button.label for button in at.button)]
            is_nobodys = key == "chart-prevalence" and mark[5] == 0  # a score that was never given
            assert ("No rows contribute to this point." in said) == is_nobodys, (key, mark)
            told = any(" for this point. " in text or text == "Open in Compare" for text in said)
            assert told != is_nobodys, (key, mark)
        at.session_state[key] = AttributeDictionary({"selection": {"points": [], "point_indices": []}})


def behind(at: AppTest) -> list[int]:
    """How many rows stand behind each mark that is clicked."""
    return [int(text.split()[0].replace(",", "")) for text in texts(at.caption) if "for this point" in text]


@pytest.mark.parametrize(("view", "chart", "n"), [("Overview", "impact", 7), ("Errors", "map", None)])
def test_a_mark_of_what_people_reach_opens_as_many_comparisons_as_its_n(
    shown: Workspace, open_page: OpenPage, view: str, chart: str, n: int | None
) -> None:
    at = open_page("agreement", view=view, reference="ada", judge_models="checks")
    every = [mark for trace in drawn(at, chart) for mark in trace.get("customdata") or () if mark[-1] == CEILING]
    assert {mark[3] for mark in every} == ({"low", "medium", "high", "all"} if n else {"caught", "localized"})
    for mark in every[:4]:
        click(at, f"chart-{chart}", {"customdata": mark})
        assert not at.exception
        found = behind(at)
        if n is not None:
            assert found == [mark[n]], mark
        else:  # all errors that F1 counts: at least those of either rate
            assert max(mark[6], mark[9]) <= found[0] <= mark[6] + mark[9], mark


def test_while_the_ceiling_is_computed_cards_are_drawn_without_it_and_say_so(
    full: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = EstimateKey(name="error_ceiling", filters=Filters(), revision=())
    monkeypatch.setattr(estimates, "pending", lambda _, name: late if name == "error_ceiling" else None)
    for module in ("placeholders", "views.agreement.cards", "views.agreement.overview"):
        monkeypatch.setattr(f"tracejury.app.{module}.watch", lambda *_, **__: None)  # it would draw the page for ever
    for view, chart, cards in (("Overview", "impact", 2), ("Errors", "map", 1)):
        at = open_page("agreement", view=view, reference="ada")
        said = [text for text in texts(at.caption) if text.startswith("The human ceiling is being computed")]
        assert len(said) == cards
        marks = [mark for trace in drawn(at, chart) for mark in trace.get("customdata") or ()]
        assert marks
        assert not [mark for mark in marks if mark[-1] == CEILING]


def test_the_alpha_of_an_outline_is_told_with_its_limits_and_the_traces_it_is_of(
    shown: Workspace, open_page: OpenPage
) -> None:
    at = open_page("agreement", view="Consistency")
    (mark,) = marks_of(at, "chart-alpha")
    click(at, "chart-alpha", {"customdata": mark})
    (said,) = [text for text in texts(at.caption) if text.startswith("Alpha")]
    assert "n 6 traces" in said
    assert "P\\(alpha \\< .667\\)" in said
    assert "2,000 defined resamples" in said
    assert behind(at) == [6]


def test_each_number_of_the_majority_lists_as_many_votes_as_it_counts(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", reference="majority", view="Raters")
    table = next(frame.value for frame in at.dataframe if "unanimous" in frame.value)
    rows, columns, seen = table.to_dict("records"), cycle(("n", "unanimous", "majority", "tied", "one_person")), 0
    assert len(rows) > 5  # each column at least once
    for place, (row, column) in enumerate(zip(rows, columns, strict=False)):
        choose(at, "majority", (place, column))
        assert not at.exception
        (told,) = [text.split()[0] for text in texts(at.caption) if "this point" in text]
        assert told == (str(row[column]) if row[column] else "No"), (row["about"], column)
        seen += row[column]
    assert seen > 0
    choose(at, "majority", (0, "n"))
    choose(at, "rows-majority", 0)
    assert at.button(key="rows-majority-open").label == "Open in Compare"


def test_the_bias_of_all_judges_has_an_interval_as_each_judge_s_has(shown: Workspace, open_page: OpenPage) -> None:
    lines = estimate(Filters(reference="ada"), "bias_lines").iloc[0]
    assert lines["low"] < lines["mean"] < lines["high"]
    at = open_page("agreement", view="Scores", reference="ada")
    said = [note["text"] for note in spec_of(at, "bias")["layout"]["annotations"]]
    assert any(f"[{lines['low']:+.2f}, {lines['high']:+.2f}]".replace("-", "−") in text for text in said)


def test_means_of_the_team_have_intervals_and_few_traces_none_too_sure(shown: Workspace, open_page: OpenPage) -> None:
    table = open_page("agreement", view="Team").dataframe[0].value.set_index("annotator")
    assert list(table["submitted"]) == [7, 7]
    told = re.fullmatch(r"([\d.]+) \[([\d.]+), ([\d.]+)\]  n (\d+)", table.loc["ben", "errors_per_trace"])
    assert told is not None
    assert told.group(1, 4) == ("3.4", "7")  # 24 errors
    assert 0 <= float(told[2]) < 3.4 < float(told[3])
    assert set(table["minutes_per_trace"]) == {"n/a: no trace timed"}  # imported


def test_a_bar_of_the_team_lists_the_traces_that_the_person_submitted(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", view="Team")
    (bars,) = drawn(at, "team")
    assert len(bars["customdata"]) == 2
    for name, count in bars["customdata"]:
        click(at, "chart-team", {"customdata": [name, count]})
        assert behind(at) == [count] == [7]
        choose(at, "rows-team", 0)
        assert at.button(key="rows-team-open").label == "Open in Compare"
        choose(at, "rows-team", 6)  # a review of a trace that is not here
        assert "The workspace does not hold this trace." in texts(at.caption)
    rows = next(table.value for table in at.dataframe if "submitted_at" in table.value)
    assert int(rows["errors"].sum()) == 24  # ben's, two of them on the trace that is not here
    hold_blind(full, "me", str(rows["trace_id"].iloc[0]))
    at.run()
    assert behind(at) == [6]


def test_the_mean_bias_of_each_judge_has_its_interval_and_opens_its_pairs(
    shown: Workspace, open_page: OpenPage
) -> None:
    at = open_page("agreement", view="Scores", reference="ada", judge_models="checks")
    means = next(table.value for table in at.dataframe if "mean bias" in table.value)
    rows = estimates.inputs(Filters(reference="ada", judge_models=("checks",))).score_estimates
    of_bias = rows[(rows["metric"] == "bias") & (rows["n"] > 0)]
    assert len(means) == len(of_bias)
    for place, row in enumerate(of_bias.itertuples()):
        assert means["mean bias"].iloc[place].endswith(f"n {row.n}")
        choose(at, "bias-means", place)
        assert behind(at) == [row.n]
    at.selectbox(key="bias_judge").set_value("checks LC").run()
    line = of_bias[of_bias["dimension"] == "LC"].iloc[0]
    chart = next(chart for chart in at.get("plotly_chart") if chart.proto.id.endswith("-chart-bias"))
    written = [note["text"] for note in json.loads(chart.proto.spec)["layout"]["annotations"]]
    assert f"mean {line['value']:+.2f}<br>[{line['low']:+.2f}, {line['high']:+.2f}]".replace("-", "−") in written
    assert any(text.startswith(f"{line['n']} score pairs") for text in texts(at.caption))


def test_each_estimate_of_a_slice_lists_as_many_rows_as_it_counts(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", view="Errors", reference="ada", judge_models="checks", slice="span kind of the error")
    card = next(table.value for table in at.dataframe if "judge × slice, p" in table.value)
    estimates = estimate(Filters(reference="ada", judge_models=("checks",)), "errors_by_slice", "kind")
    recall = estimates[(estimates["kind"] == "caught") & (estimates["metric"] == "recall")]
    assert set(recall["slice"]) <= set(card.columns)
    assert set(card["judge × slice, p"]) == {"n/a: no other judge model", "n/a: no positives"}
    place, dimension = next((n, name.split()[1]) for n, name in enumerate(card["judge"]) if name == "checks LC")
    known = recall[(recall["dimension"] == dimension) & (recall["n"] > 0)]
    for row in known.itertuples():
        choose(at, "slices-caught", (place, str(row.slice)))
        assert behind(at) == [row.n]
    # 23 errors of ada's, each in one slice
    whole = estimates[
        (estimates["kind"] == "caught") & (estimates["metric"] == "recall") & (estimates["dimension"] == "LC")
    ]
    assert int(whole[["tp", "fp", "fn", "tn", "failed", "not_matched"]].to_numpy().sum()) == 23


def test_scores_have_no_span_kind_and_the_card_says_so(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", view="Scores", slice="span kind of the error")
    assert any(text.startswith("Span kinds belong to the reference's errors") for text in texts(at.caption))
    at = open_page("agreement", view="Scores", slice="length of the trace")
    assert any("judge × slice, p" in table.value for table in at.dataframe)


@pytest.fixture
def people_alone(tmp_path: Path, clean_caches: None) -> Workspace:
    return of_people(tmp_path / "home", ("ada", "ben", "cleo"))


def test_people_are_compared_where_no_judge_has_answered(people_alone: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement")
    assert "Every pair of raters" in texts(at.subheader)
    assert any("3 people compared" in text for text in texts(at.caption))
    (squares,) = drawn(at, "raters")
    assert {tuple(mark[:2]) for mark in squares["customdata"]} == set(permutations(("ada", "ben", "cleo"), 2))
    click(at, "chart-raters", {"customdata": squares["customdata"][0]})
    assert behind(at) == [squares["customdata"][0][2]]
    choose(at, "rows-raters", 0)
    assert at.button(key="raters-open").label == "Open in Work"


def test_the_errors_that_people_were_compared_on_open_in_work_while_there_is_no_judge(
    people_alone: Workspace, open_page: OpenPage
) -> None:
    at = open_page("agreement", view="Raters")
    estimates = next(table.value for table in at.dataframe if "kind" in table.value)
    choose(at, "error-ceiling", (len(estimates) - 1, "recall"))
    assert behind(at) == [int(estimates["recall"].iloc[-1].rpartition("n ")[2])]
    choose(at, "rows-error-ceiling", 0)
    assert at.button(key="rows-error-ceiling-open").label == "Open the span in Work"
    with read_transaction(people_alone.engine) as connection:
        error = error_labels(connection)[0]
    assert listings.first_span(error.label_id) == error.span_ids[0]


@pytest.mark.parametrize("view", ["Overview", "Errors", "Scores", "Consistency"])
def test_the_views_of_judges_say_why_they_are_empty(people_alone: Workspace, open_page: OpenPage, view: str) -> None:
    at = open_page("agreement", view=view)
    assert "No judge has given a verdict yet" in at.info[0].value
    assert "Raters, A against B, Team compare people" in at.info[0].value
    assert not at.get("plotly_chart")


def test_two_further_people_can_stand_against_each_other_without_a_judge(
    people_alone: Workspace, open_page: OpenPage
) -> None:
    at = open_page("agreement", view="A against B", reference="ada", side_a="person ben", side_b="person cleo")
    assert "McNemar on caught errors" in texts(at.subheader)
    assert "0 errors treated differently" in texts(at.subheader)  # cleo says what ben says


def test_the_team_is_shown_without_a_judge_and_leads_to_work(people_alone: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", view="Team")
    click(at, "chart-team", {"customdata": ["cleo", 7]})
    choose(at, "rows-team", 0)
    assert at.button(key="rows-team-open").label == "Open in Work"


def test_a_row_of_two_matchers_lists_the_pairs_both_decided_and_opens_one(full: Workspace, open_page: OpenPage) -> None:
    pairs = estimate(Filters(reference="ada"), "error_pairs")
    one = pairs[(pairs["judge_model"] == "careful-judge") & pairs["caught"].eq(True)].iloc[0]
    with read_transaction(full.engine) as connection:
        found = next(match for match in decisions(connection) if match.label_id == one["error_id"])
    said: tuple[tuple[str, MatchStatus], ...] = (("ada", "confirmed"), ("ben", "rejected"))
    for who, status in said:
        with write_transaction(full.engine) as connection:
            decide(connection, label_id=found.label_id, finding_key=found.finding_key, status=status, author=who)
    at = open_page("agreement", view="Raters", reference="ada")
    table = next(table.value for table in at.dataframe if "matcher_a" in table.value)
    choose(at, "matcher_agreement", 0)
    assert behind(at) == [int(table["n"].iloc[0])]
    choose(at, "rows-matcher_agreement", 0)
    assert at.button(key="matcher_agreement-open").label == "Open in Compare"


def test_raters_and_two_sides_begin_with_their_numbers(shown: Workspace, open_page: OpenPage) -> None:
    between = estimates.inputs(Filters()).human_ceiling
    tiles = {metric.label: metric.value for metric in open_page("agreement", view="Raters").metric}
    assert tiles == {str(row.dimension): half_up(row.exact, 3) for row in between.itertuples() if row.n}
    at = open_page("agreement", view="A against B", side_a="careful-judge", side_b="hasty-judge")
    table = estimate(Filters(), "differences", "judge_model=careful-judge", "judge_model=hasty-judge")
    kept = table[(table["impact"] == "all") & (table["kind"] == "caught") & (table["metric"] == "recall")]
    assert [metric.value for metric in at.metric] == [half_up(value, 3) for value in kept["difference"]]
    assert kept["left"].iloc[0] - kept["right"].iloc[0] == pytest.approx(kept["difference"].iloc[0])
