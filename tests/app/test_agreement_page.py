"""The Agreement page as a person sees it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import update
from streamlit.testing.v1 import AppTest

from app import loading
from ingest.batch import ingest
from ingest.store import reading, trace_ids, writing
from judging.ledger import Workspace, tables
from judging.ledger.labels import ensure_annotator
from tests.app.conftest import OpenPage
from tests.app.marks import click, drawn, marks_of, numbers, texts
from tests.app.workspaces import DATA, REPEATED, hold_blind


def test_an_empty_workspace_says_what_brings_traces(empty: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement")
    assert "No trace is here yet" in at.info[0].value
    assert "tracejury ingest" in at.info[0].value


def test_without_a_review_the_page_asks_for_one(empty: Workspace, open_page: OpenPage) -> None:
    ingest(empty.engine, [DATA / "samples" / "trail"])
    with writing(empty.engine) as connection:
        ensure_annotator(connection, "ada")
    assert "No person has submitted a review" in open_page("agreement").info[0].value


def test_the_overview_names_the_human_the_errors_and_what_failed(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement")
    summary = next(text for text in texts(at.caption) if text.startswith("Human"))
    # ada: 23 errors on 6 traces; each imported judge failed on one trace
    assert "Human: ada · 23 errors on 6 traces" in summary
    assert "2 failed judgements" in summary
    assert texts(at.subheader) == ["Judges at a glance", "Coverage by impact", "Every judge"]
    assert len(at.get("plotly_chart")) == 2


def test_the_table_shows_n_and_says_why_a_figure_is_undefined(full: Workspace, open_page: OpenPage) -> None:
    table = open_page("agreement").dataframe[0].value
    gf = table[(table["system"] == "checks") & (table["judge"] == "GF")].iloc[0]
    assert gf["caught.precision"] == "n/a: no positive predicted"
    assert gf["caught.recall"].startswith("0.000 [0.000, ")
    assert gf["caught.recall"].endswith("n 4")


def test_a_person_chosen_in_the_address_is_the_human(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", human="ben")
    assert any("Human: ben" in text for text in texts(at.caption))


def test_the_majority_of_people_is_a_human_to_choose_and_says_what_it_could_not_decide(
    full: Workspace, open_page: OpenPage
) -> None:
    at = open_page("agreement", human="majority of people", view="Raters")
    summary = next(text for text in texts(at.caption) if text.startswith("Human"))
    assert "Human: majority of people (" in summary
    assert "without a majority" in summary
    assert "tied" in summary
    assert "Votes of the majority" in texts(at.subheader)
    assert "Votes of the majority" not in texts(open_page("agreement", human="ben", view="Raters").subheader)
    assert "Verdicts on findings beyond the human errors" in texts(at.subheader)


def test_confirmed_only_counts_no_proposal(full: Workspace, open_page: OpenPage) -> None:
    table = open_page("agreement", matches="confirmed").dataframe[0].value
    careful = table[table["system"] == "careful-judge"].iloc[0]
    assert careful["caught.recall"].startswith("0.000 ")


def test_every_view_draws(full: Workspace, open_page: OpenPage) -> None:
    seen = {
        view: texts(open_page("agreement", view=view).subheader)
        for view in ("Errors", "Scores", "Consistency", "Raters", "A against B", "Team")
    }
    assert "Every human error under every judge" in seen["Errors"]
    assert "Human scores against judge scores" in seen["Scores"]
    assert "Distribution of alpha" in seen["Consistency"]
    assert "Human ceiling" in seen["Raters"]
    assert "Human ceiling for errors" in seen["Raters"]
    assert "Matchers" in seen["Raters"]
    assert "McNemar on caught errors" in seen["A against B"]
    assert "Who labelled how much" in seen["Team"]


@pytest.mark.parametrize("view", ["Errors", "Scores", "Consistency", "Raters"])
def test_no_mark_stands_for_a_trace_that_one_labels_blind(full: Workspace, open_page: OpenPage, view: str) -> None:
    def drawn(at: AppTest) -> str:
        return "".join(chart.proto.spec for chart in at.get("plotly_chart"))

    before = open_page("agreement", view=view)
    with reading(full.engine) as connection:
        trace_id = next(one for one in trace_ids(connection) if one in drawn(before))
    hold_blind(full, "me", trace_id)
    after = open_page("agreement", view=view)
    assert trace_id not in drawn(after)
    assert len(after.get("plotly_chart")) == len(before.get("plotly_chart"))
    assert any("1 trace that you are at work on yourself" in text for text in texts(after.caption))


def test_a_run_and_a_person_can_stand_on_either_side(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", view="A against B", side_a=REPEATED, side_b=f"{REPEATED}, run 1")
    assert [box.value for box in at.selectbox if box.key in {"side_a", "side_b"}] == [REPEATED, f"{REPEATED}, run 1"]
    tests = at.dataframe[0].value
    assert list(tests["judge"]) == ["LC"]
    # the two runs found nothing, so no error tells them apart
    assert (tests["only A"].iloc[0], tests["only B"].iloc[0]) == (0, 0)

    at = open_page("agreement", view="A against B", side_a="checks", side_b="person ben")
    tests = at.dataframe[0].value
    assert set(tests["judge"]) >= {"LC", "TC"}
    assert int(tests["only B"].sum()) > 0  # ben saw errors that no check finds


def test_consistency_shows_the_judge_with_repeats_alone(full: Workspace, open_page: OpenPage) -> None:
    table = open_page("agreement", view="Consistency").dataframe[0].value
    assert list(table["system"]) == [REPEATED]
    # 6 traces by 3 runs, one of them failed
    assert (table["runs"].iloc[0], table["n"].iloc[0], table["failed"].iloc[0]) == (3, 6, 1)


def test_without_repeats_consistency_says_how_to_get_them(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", view="Consistency", judges="checks")
    assert "--runs 5" in at.info[0].value


def test_a_split_that_is_not_there_is_no_crash(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("agreement", split="nowhere")
    assert any("Human: ada" in text for text in texts(at.caption))  # the address is cleaned by Streamlit


def test_names_from_outside_make_no_markup(full: Workspace, open_page: OpenPage) -> None:
    evil = "![x](http://example.invalid/x.png)"
    with writing(full.engine) as connection:
        for table in (tables.annotator, tables.error_label, tables.score_label, tables.review):
            connection.execute(update(table).where(table.c.annotator == "ada").values(annotator=evil))
    at = open_page("agreement", human=evil)
    assert not any(evil in text for text in texts(at.caption))


def test_where_every_judgement_failed_the_page_says_so_and_not_that_there_are_no_errors(
    full: Workspace, open_page: OpenPage
) -> None:
    with writing(full.engine) as connection:
        failed = update(tables.cell).where(tables.cell.c.model == REPEATED).values(state="refused", score=None)
        connection.execute(failed)
    at = open_page("agreement", judges=REPEATED, human="ada")
    assert any("error pairs counts here: the judgements failed (6 cells)" in text for text in texts(at.caption))
    at = open_page("agreement", judges=REPEATED, human="ada", missing="misses")
    assert not any("the judgements failed" in text for text in texts(at.caption))


def test_where_a_split_leaves_everything_out_the_page_names_the_split(full: Workspace, open_page: OpenPage) -> None:
    loading.split_folder().mkdir()
    (loading.split_folder() / "none.json").write_text('{"dev": ["no such trace"]}')
    for view in ("Errors", "Scores"):
        assert "The split may leave out" in open_page("agreement", view=view, split="none").info[0].value


def test_a_file_of_several_splits_draws_each_share_and_each_square_once(full: Workspace, open_page: OpenPage) -> None:
    """Else the parts of two splits lie on one another, and shares come to twice the whole."""
    with reading(full.engine) as connection:
        ids = trace_ids(connection)
    loading.split_folder().mkdir()
    (loading.split_folder() / "two.json").write_text(json.dumps({"dev": ids[:3], "test": ids[3:]}))
    at = open_page("agreement", view="Scores", split="two", judges="checks", human="ada")
    bars = pd.concat([pd.DataFrame({"row": bar["y"], "share": numbers(bar["x"])}) for bar in drawn(at, "prevalence")])
    assert any("(dev)" in row for row in bars["row"])
    bars = bars[~bars["row"].str.endswith("(n 0)")]
    np.testing.assert_allclose(bars.groupby("row")["share"].sum(), 1)
    at = open_page("agreement", view="Errors", split="two", judges="checks", human="ada")
    (squares,) = drawn(at, "grid")
    places = list(zip(squares["x"], squares["y"], strict=True))
    assert len(places) == len(set(places))
    whole = open_page("agreement", view="Errors", judges="checks", human="ada")
    assert sorted(squares["text"]) == sorted(drawn(whole, "grid")[0]["text"])


CHARTS = {
    "Overview": ("chart-forest", "chart-impact"),
    "Errors": ("chart-strip", "chart-grid", "chart-map"),
    "Scores": ("chart-confusion", "chart-buckets", "chart-bias", "chart-prevalence"),
    "Consistency": ("chart-runs", "chart-spread", "chart-sci"),
    "Raters": ("chart-raters", "chart-items"),
    "A against B": ("chart-versus",),
}


@pytest.mark.parametrize("view", list(CHARTS))
def test_a_click_on_a_mark_of_any_chart_lists_what_is_behind_it_or_opens_it(
    full: Workspace, open_page: OpenPage, view: str
) -> None:
    at = open_page("agreement", view=view, human="ada", side_a="careful-judge", side_b="hasty-judge")
    assert {chart.proto.id.rpartition("-chart-")[2] for chart in at.get("plotly_chart")} >= {
        key.removeprefix("chart-") for key in CHARTS[view]
    }
    for key in CHARTS[view]:
        clicked = marks_of(at, key)
        assert clicked, key
        for mark in clicked:
            click(at, key, {"customdata": mark})
            assert not at.exception, (key, at.exception)
            said = [*texts(at.caption), *(button.label for button in at.button)]
            assert any("behind this" in text or text == "Open in Compare" for text in said), (key, mark)
            click(at, key)
