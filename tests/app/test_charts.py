"""Each chart's data: what is drawn is what the frame says."""

from __future__ import annotations

from html import unescape
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.util import AttributeDictionary

from tracejury.app.components import charts
from tracejury.app.components.charts import FINAL, rater_dots
from tracejury.app.components.drilldown import chosen_point
from tracejury.app.components.judges import JUDGE_METRICS
from tracejury.judging.agreement import scores
from tracejury.judging.agreement.frames import DIMENSION_ORDER
from tracejury.judging.agreement.metrics import METRICS


def traces(figure: object, name: str) -> object:
    return next(trace for trace in figure.data if unescape(trace.name or "") == name)  # type: ignore[attr-defined]


def test_forest_draws_estimates_with_their_intervals_and_names_the_undefined() -> None:
    estimates = pd.DataFrame(
        [("LC", 0.5, 0.4, 0.7, 20, None), ("EE", 0.9, 0.5, 1.0, 4, None), ("PA", None, None, None, 0, "no positives")],
        columns=["label", "value", "low", "high", "n", "reason"],
    ).astype({"value": "float64", "low": "float64", "high": "float64"})
    figure = charts.forest(estimates, title="Recall")
    judge = traces(figure, "judge, 95 % interval")
    assert list(judge.x) == [0.5]
    np.testing.assert_allclose(judge.error_x.array, [0.2])
    np.testing.assert_allclose(judge.error_x.arrayminus, [0.1])
    few = traces(figure, "n < 10: too few")
    assert list(few.y) == ["EE  (n 4)"]
    assert few.marker.symbol == "circle-open"
    assert [a.text for a in figure.layout.annotations] == ["n/a: no positives"]
    # read from the top: LC, EE, PA
    assert list(figure.layout.yaxis.categoryarray) == ["PA  (n 0)", "EE  (n 4)", "LC  (n 20)"]


def test_forest_draws_the_human_ceiling_of_each_row() -> None:
    estimates = pd.DataFrame(
        {
            "label": ["LC", "EE"], "value": [0.5, 0.6], "low": [0.4, 0.5], "high": [0.6, 0.7], "n": [20, 20],
            "reason": [None, None], "ceiling": [0.9, np.nan], "ceiling_low": [0.8, np.nan],
            "ceiling_high": [1.0, np.nan],
        }
    )  # fmt: skip
    figure = charts.forest(estimates, title="AC2")
    assert list(traces(figure, "human ceiling").x) == [0.9]
    assert [v for v in traces(figure, "its 95 % interval").x if v is not None] == [0.8, 1.0]


def coverage() -> pd.DataFrame:
    rows = [
        ("LC", impact, kind, hits, n)
        for impact, n in (("low", 4), ("medium", 20), ("high", 10), ("all", 34))
        for kind, hits in (("caught", n // 2), ("localized", n // 4))
    ]
    frame = pd.DataFrame(rows, columns=["label", "impact", "kind", "hits", "n"])
    share = frame["hits"] / frame["n"]
    return frame.assign(coverage=share, coverage_low=share / 2, coverage_high=share + 0.1)


def test_impact_bars_hold_the_shares_in_order_of_impact_and_pale_below_ten() -> None:
    figure = charts.impact_bars(coverage())
    caught, localized = figure.data
    assert (caught.name, localized.name) == ("caught", "localized")
    np.testing.assert_allclose(caught.y, [0.5, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(localized.y, [0.25, 0.25, 0.2, 8 / 34])
    assert [label.split("<br>")[1] for label in caught.x] == ["n 4", "n 20", "n 10", "n 34"]
    assert list(caught.marker.opacity) == [charts.FAINT, 1, 1, 1]


def confusion(counts: list[list[int]]) -> pd.DataFrame:
    rows = [(h, m, counts[h][m], sum(counts[h])) for h in range(4) for m in range(4)]
    frame = pd.DataFrame(rows, columns=["reference_score", "judge_score", "count", "of"])
    return frame.assign(share=frame["count"] / frame["of"].where(frame["of"] > 0))


COUNTS = [[3, 1, 0, 0], [0, 2, 2, 0], [0, 0, 0, 0], [0, 0, 1, 4]]


def test_score_grid_marks_each_cell_and_can_be_clicked() -> None:
    (grid,) = charts.score_grid(confusion(COUNTS)).data
    assert grid.marker.symbol == "square"
    cells = {(row[0], row[1]): row[2] for row in grid.customdata}
    assert len(cells) == 16
    assert (cells[0, 0], cells[1, 2], cells[3, 3]) == (3, 2, 4)
    assert list(grid.text)[:2] == ["3", "1"]


def test_buckets_join_one_and_two() -> None:
    table = charts.bucket_confusion(confusion(COUNTS)).set_index(["reference_score", "judge_score"])
    # rows 1 and 2 together: 0, 2+2+0+0, 0; row 0: 3, 1+0, 0
    assert table.loc[("1–2", "1–2"), "count"] == 4
    assert table.loc[("0", "1–2"), "count"] == 1
    assert table.loc[("3", "3"), "share"] == 4 / 5
    assert int(table["count"].sum()) == 13


def test_dimension_grid_leaves_out_cells_without_errors() -> None:
    grid = pd.DataFrame(
        [("LC", "LC", 12, 6, 3, 0.5), ("LC", "EE", 12, 1, 0, 1 / 12), ("EE", "EE", 0, 0, 0, np.nan)],
        columns=["error_dimension", "dimension", "errors", "caught", "localized", "share"],
    )
    (marks,) = charts.dimension_grid(grid).data
    assert list(marks.text) == ["6/12", "1/12"]
    assert [tuple(row[:2]) for row in marks.customdata] == [("LC", "LC"), ("LC", "EE")]


def test_dimensions_stand_in_the_order_of_the_tables_on_a_grid_and_a_strip() -> None:
    grid = pd.DataFrame(
        [(dimension, judge, 1, 1, 0, 1.0) for dimension in ("PQ", "PA") for judge in ("PQ", "PA")],
        columns=["error_dimension", "dimension", "errors", "caught", "localized", "share"],
    )
    figure = charts.dimension_grid(grid)
    pairs = pd.DataFrame(
        [("t", "e", f"m {dimension}", "low", 1) for dimension in ("PQ", "PA")],
        columns=["trace_id", "error_id", "label", "impact", "level"],
    )
    order = [dimension for dimension in DIMENSION_ORDER if dimension in {"PQ", "PA"}]
    assert list(figure.layout.xaxis.categoryarray) == list(figure.layout.yaxis.categoryarray)[::-1] == order
    strip = charts.coverage_strip(pairs).layout.yaxis.categoryarray  # read from the top
    assert list(strip)[::-1] == [f"m {dimension}" for dimension in order]


def test_coverage_strip_puts_the_best_known_error_first() -> None:
    pairs = pd.DataFrame(
        [
            ("t", "e1", "A", "low", 0),
            ("t", "e1", "B", "low", 1),
            ("t", "e2", "A", "high", 2),
            ("t", "e2", "B", "high", 2),
        ],
        columns=["trace_id", "error_id", "label", "impact", "level"],
    )
    figure = charts.coverage_strip(pairs)
    assert [trace.name for trace in figure.data] == ["missed (1)", "caught (1)", "localized (2)"]
    assert list(figure.data[2].x) == [0, 0]  # e2: 4 points, e1: 1
    assert list(figure.data[0].x) == [1]
    assert list(figure.data[0].customdata[0]) == ["t", "e1", "A", "low"]


def rates_of(*rows: tuple[str, str, float, float]) -> pd.DataFrame:
    """Precision and recall of 20 errors, 15 predicted."""
    frame = pd.DataFrame(rows, columns=["label", "kind", "precision", "recall"]).astype({"precision": "float64"})
    bounds = {"precision_low": 0.1, "precision_high": 0.9, "recall_low": 0.2, "recall_high": 0.8}
    return frame.assign(judge_model="m", dimension="LC", split="all", tp=12, fp=3, positives=20, **bounds)


def test_precision_recall_leaves_out_the_undefined_and_joins_both_kinds() -> None:
    rates = rates_of(("A", "caught", 0.8, 0.6), ("A", "localized", 0.7, 0.4), ("B", "caught", np.nan, 0.0))
    figure = charts.precision_recall(rates)
    caught = traces(figure, "caught")
    assert (list(caught.x), list(caught.y)) == ([0.6], [0.8])
    assert list(caught.customdata[0]) == ["m", "LC", "all", "caught", "A", 0.1, 0.9, 15, 0.2, 0.8, 20]
    assert list(caught.marker.symbol) == ["circle"]
    few = traces(charts.precision_recall(rates.assign(positives=9)), "caught")
    assert few.marker.symbol[0] == "circle-open"  # recall has nine errors to go by, however many its precision has
    arrow = next(a for a in figure.layout.annotations if a.showarrow)
    assert (arrow.ax, arrow.ay, arrow.x, arrow.y) == (0.6, 0.8, 0.4, 0.7)


def test_an_equal_f1_curve_holds_its_f1() -> None:
    figure = charts.precision_recall(rates_of(("A", "caught", 0.5, 0.5)).head(0))
    curve = figure.data[1]  # F1 = 0.4
    recall, precision = np.array(curve.x[1:]), np.array(curve.y[1:])
    np.testing.assert_allclose(2 * precision * recall / (precision + recall), 0.4, atol=1e-6)


def test_bias_lines_are_the_mean_and_two_deviations() -> None:
    pairs = pd.DataFrame(
        {
            "trace_id": list("abcd"),
            "judge_model": "m",
            "dimension": "LC",
            "reference_score": [0.0, 1, 2, 3],
            "judge_score": [1.0, 1, 3, 3],
        }
    )
    figure = charts.bias_plot(pairs)
    # differences 1 0 1 0: mean .5, sample deviation .5774, so .5 - 1.1316 and .5 + 1.1316
    levels = sorted(round(shape.y0, 3) for shape in figure.layout.shapes)
    assert levels == [-0.632, 0.5, 1.632]
    np.testing.assert_allclose(np.array(figure.data[0].y), [1, 0, 1, 0], atol=0.081)


def test_repeat_strip_sorts_by_spread_and_draws_no_failed_repeat() -> None:
    ratings = pd.DataFrame(
        [
            ("t1", "repeat 0", 2),
            ("t1", "repeat 1", 2),
            ("t2", "repeat 0", 0),
            ("t2", "repeat 1", 3),
            ("t3", "repeat 0", None),
        ],
        columns=["unit", "rater", "value"],
    ).astype({"value": "float64"})
    figure = charts.repeat_strip(ratings)
    marks = {(x, y, trace.name) for trace in figure.data for x, y in zip(trace.x, trace.y, strict=True)}
    assert (0, "repeat 1", "score 3") in marks  # t2 spreads most
    assert len(marks) == 4


def test_item_strip_needs_two_ratings() -> None:
    ratings = pd.DataFrame(
        [("t1", "ada", 2.0), ("t1", "ben", 0.0), ("t2", "ada", 1.0)], columns=["unit", "rater", "value"]
    )
    units = {row[0] for trace in charts.item_strip(ratings).data for row in trace.customdata}
    assert units == {"t1"}


def test_rater_grid_draws_each_pair_on_both_sides_and_says_undefined() -> None:
    pairs = pd.DataFrame(
        [("ada", "ben", 12, 0.5), ("ada", "judge", 3, np.nan), ("ben", "judge", 0, np.nan)],
        columns=["rater_a", "rater_b", "n", "ac2"],
    )
    (grid,) = charts.rater_grid(pairs, metric="ac2", title="AC2").data
    assert list(grid.text) == ["0.50<br>n 12", "n/a<br>n 3", "0.50<br>n 12", "n/a<br>n 3"]
    (grid,) = charts.rater_grid(pairs.assign(ac2=[-0.002, -0.25, 1]), metric="ac2", title="AC2").data
    assert list(grid.text)[:2] == ["0.00<br>n 12", "−0.25<br>n 3"]


def test_alpha_histogram_shows_krippendorffs_limits_and_drops_undefined_draws() -> None:
    figure = charts.alpha_histogram({"LC": np.array([0.5, np.nan, 0.7])})
    shares = dict(zip(np.round(figure.data[0].x, 2), figure.data[0].y, strict=True))
    assert {start: share for start, share in shares.items() if share} == {0.5: 0.5, 0.7: 0.5}
    assert [shape.x0 for shape in figure.layout.shapes] == [0.667, 0.8]


def test_prevalence_bars_stack_the_shares_of_each_side() -> None:
    rows = [("LC", side, score, 1, 4, 0.25) for side in ("reference", "judge") for score in range(4)]
    frame = pd.DataFrame(rows, columns=["label", "side", "score", "count", "n", "share"])
    figure = charts.prevalence_bars(frame)
    assert [trace.name for trace in figure.data] == ["0", "1", "2", "3"]
    assert list(figure.data[0].y) == ["LC · reference  (n 4)", "LC · judge  (n 4)"]
    assert sum(trace.x[0] for trace in figure.data) == 1
    assert max(figure.data[0].marker.opacity) < 1  # of four traces
    assert list(figure.data[2].customdata[1][3:5]) == ["judge", 2]


def test_paired_dots_mark_differences_that_leave_out_zero() -> None:
    frame = pd.DataFrame(
        [("LC recall", 0.2, 0.6, -0.4, -0.6, -0.2, 30, True), ("EE recall", 0.5, 0.6, -0.1, -0.3, 0.1, 30, False)],
        columns=["label", "left", "right", "difference", "low", "high", "n", "significant"],
    )
    figure = charts.paired_dots(frame, left="A", right="B")
    assert [trace.line.color for trace in figure.data[:2]] == [charts.VERMILLION, charts.GREY]
    assert list(traces(figure, "B").x) == [0.6, 0.6]


def test_lanes_cross_out_a_citation_of_no_span() -> None:
    marks = pd.DataFrame(
        [("e1|7", "annotator", 3, "caught", "LC high", True), ("|9", "judge", 0, "unmatched", "LC cites zz", False)],
        columns=["key", "lane", "seq", "state", "label", "is_valid"],
    )
    figure = charts.lanes(marks, spans=10)
    assert list(traces(figure, "caught").x) == [4]  # spans are counted from S1
    assert list(traces(figure, "unmatched").marker.symbol) == ["x"]
    assert traces(figure, "caught").customdata[0][0] == "e1|7"


def test_place_bars_name_how_many_of_each_side_and_hold_the_count_of_each_part() -> None:
    counts = pd.DataFrame(
        [(0, "annotator", 2), (9, "annotator", 1), (9, "judge", 4)], columns=["place", "side", "count"]
    )
    figure = charts.place_bars(counts, places=10)
    assert [trace.name for trace in figure.data] == ["annotator (3)", "judge (4)"]
    assert [list(trace.y) for trace in figure.data] == [[2, *[0] * 8, 1], [*[0] * 9, 4]]


def test_places_counted_trace_by_trace_have_no_tick_for_each_error_of_their_sum() -> None:
    counts = pd.DataFrame([(8, "judge", 1)] * 80, columns=["place", "side", "count"])
    assert charts.place_bars(counts, places=10).layout.yaxis.dtick is None
    assert charts.place_bars(counts[:3], places=10).layout.yaxis.dtick == 1


def test_score_bars_keep_scores_failures_and_not_applicable_apart() -> None:
    cells = pd.DataFrame(
        [("LC", "0", 2), ("LC", "3", 1), ("LC", "n/a", 4), ("LC", "unparsable", 1)],
        columns=["dimension", "outcome", "count"],
    )
    figure = charts.score_bars(cells)
    assert [(trace.name, list(trace.y)) for trace in figure.data] == [
        ("0", [2]), ("3", [1]), ("n/a", [4]), ("unparsable", [1]),
    ]  # fmt: skip
    assert all("cells: " in trace.hovertemplate for trace in figure.data)


def test_every_colour_of_a_series_is_told_apart_by_name_not_by_colour_alone() -> None:
    assert len(set(charts.SERIES)) == len(charts.SERIES)
    assert len(set(charts.SCORE_COLORS)) == 4


def test_boxes_violins_bars_and_sizes_hold_their_values() -> None:
    values = pd.DataFrame({"label": ["LC"] * 5 + ["EE"], "value": [1.0, 2.0, 3.0, 4.0, 40.0, np.nan]})
    found = charts.box_numbers(values)
    # n = 5: Hazen's quartiles lie at ranks 0.25 * 5 + 0.5 = 1.75, 3 and 4.25; 40 is beyond 13 + 1.5 * 11.25
    assert found.to_dict("records") == [
        {"label": "LC", "n": 5, "low": 1, "q1": 1.75, "median": 3, "q3": 13, "high": 4, "outliers": [40.0]}
    ]
    plain = charts.boxes(charts.box_numbers(values[:4]), y_title="s").data
    assert [(one.type, one.y is None) for one in plain] == [("box", True), ("bar", False)]
    assert list(plain[0].median) == [2.5]
    box, reach, beyond = charts.boxes(found, y_title="s").data
    assert (box.name, list(box.median), [list(one) for one in beyond.customdata]) == ("LC", [3.0], [["LC", 40.0]])
    assert list(reach.customdata[0][:2]) == ["LC", 5]  # over the box and its whiskers, which are no marks to click
    assert reach.base[0] <= 1 < 4 <= reach.base[0] + reach.y[0] < 40
    assert list(charts.boxes(found, y_title="s").layout.xaxis.ticktext) == ["LC<br>n 5"]
    cosines = pd.DataFrame({"label": ["LC", "LC"], "cosine": [0.5, 0.7]})
    assert list(charts.consistency_violins(cosines).data[0].y) == [0.5, 0.7]
    counts = pd.DataFrame({"label": ["a", "b"], "count": [3, 1]})
    assert list(charts.counted_bars(counts, x_title="n").data[0].x) == [3, 1]
    sizes = pd.DataFrame({"trace_id": ["t0"], "label": ["t"], "before": [100], "after": [20]})
    assert [list(bar.x) for bar in charts.size_bars(sizes).data] == [[100], [20]]
    assert [bar.customdata.tolist() for bar in charts.size_bars(sizes).data] == [[["t0", "t"]]] * 2
    few = charts.histogram([1, 2, 2], x_title="x", y_title="y").data[0]
    assert (few.x.tolist(), few.y.tolist(), few.customdata.tolist()) == ([1, 2], [1, 2], [[1, 1], [2, 2]])
    numbers = np.array([3, 4, 40, 41, 97])  # wide bars: each says what it counts, and together they count all
    wide = charts.histogram(list(numbers), x_title="x", y_title="y").data[0]
    counted = [int(((numbers >= low) & (numbers <= high)).sum()) for low, high in wide.customdata]
    assert (wide.y.tolist(), sum(counted)) == (counted, 5)
    spread = np.array([0.0, 0.1, 0.12, 0.15, 0.5**0.5, np.nan])
    bars = charts.spread_histogram(spread).data[0]
    assert (sum(bars.y), bars.y[2], bars.y[3]) == (5, 2, 1)
    for bounds, count in zip(bars.customdata, bars.y, strict=True):  # a click on a bar lists as many as it counts
        assert charts.in_bar(pd.Series(spread), tuple(bounds)).sum() == count
    pairs = pd.DataFrame([("LC", "TC", 2)], columns=["a", "b", "count"])
    assert list(charts.pair_grid(pairs, order=["LC", "TC"]).data[0].text) == ["2"]


def luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def squares(*, is_dark: bool, n: int = 50) -> Any:
    """A row of shares from 0 to 1 and the same below it."""
    pairs = pd.DataFrame({"rater_a": "a", "rater_b": [f"b{place}" for place in range(101)], "n": n})
    rated = pairs.assign(ac2=np.linspace(0, 1, 101))
    (grid,) = charts.rater_grid(rated, metric="ac2", title="AC2", is_dark=is_dark).data
    return grid


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("n", [5, 50])
def test_text_on_every_square_can_be_read_pale_or_not(is_dark: bool, n: int) -> None:
    grid = squares(is_dark=is_dark, n=n)
    for fill, ink in zip(grid.marker.color, grid.textfont.color, strict=True):
        assert contrast(fill, ink) >= 4.5


@pytest.mark.parametrize(("is_dark", "page"), [(False, "#FFFFFF"), (True, "#171613")])
def test_the_more_a_square_counts_the_farther_it_is_from_the_page_in_both_schemes(is_dark: bool, page: str) -> None:
    fills = list(squares(is_dark=is_dark).marker.color)[:101]
    away = [contrast(fill, page) for fill in fills]
    assert away == sorted(away)
    assert away[0] < 1.5
    assert away[-1] > 4.5


def test_a_long_name_keeps_its_end_on_the_axis_and_is_whole_below_the_pointer() -> None:
    jury = "openai/gpt-4.1-mini + openai/o4-mini + openai/gpt-5-nano · jury majority LC"
    estimates = pd.DataFrame(
        [(jury, 0.5, 0.4, 0.7, 20, None)], columns=["label", "value", "low", "high", "n", "reason"]
    )
    figure = charts.forest(estimates, title="Recall")
    (shown,) = figure.layout.yaxis.ticktext
    assert len(shown) < 50
    assert shown.endswith("jury majority LC  (n 20)")
    assert figure.data[0].customdata[0][3] == jury


def test_a_judge_has_one_colour_in_all_charts_of_a_page() -> None:
    order = ["LC", "EE"]
    alpha = charts.alpha_histogram({"EE": np.array([0.5, 0.7])}, order=order).data[0]
    cosines = pd.DataFrame({"label": ["LC", "LC", "EE", "EE"], "cosine": [0.5, 0.7, 0.6, 0.6]})
    violins = {violin.name: violin.line.color for violin in charts.consistency_violins(cosines, order=order).data}
    assert alpha.line.color == violins["EE"] != violins["LC"]


def test_the_axis_of_bias_reaches_to_its_lines_and_their_values_stand_beside_the_plot() -> None:
    drawn = pd.DataFrame(
        {"trace_id": ["t"], "judge_model": "m", "dimension": "LC", "reference_score": [0.0], "judge_score": [3.0]}
    )
    lines = pd.DataFrame({"n": [9], "mean": [-0.2], "sd": [2.0]})
    figure = charts.bias_plot(drawn, lines)
    # -0.2 - 1.96 * 2 = -4.12
    assert figure.layout.yaxis.range[0] < -4.12
    assert [(a.text, a.xanchor, a.x) for a in figure.layout.annotations] == [
        ("mean −0.20", "left", 1), ("−4.12", "left", 1), ("+3.72", "left", 1),
    ]  # fmt: skip


def test_squares_of_many_raters_do_not_cover_each_other() -> None:
    names = [f"rater {n}" for n in range(12)]
    pairs = pd.DataFrame(
        [(a, b, 20, 0.5) for a in names for b in names if a < b], columns=["rater_a", "rater_b", "n", "ac2"]
    )
    figure = charts.rater_grid(pairs, metric="ac2", title="AC2")
    assert figure.data[0].marker.size * len(names) < charts.CARD


def test_a_name_that_looks_like_markup_is_drawn_as_it_is_written_and_a_click_gives_it_back() -> None:
    evil = '<a href="http://example.invalid">x</a> & <b>y</b>'
    pairs = pd.DataFrame({"rater_a": [evil], "rater_b": ["ada"], "n": [12], "ac2": [0.5]})
    figure = charts.rater_grid(pairs, metric="ac2", title="AC2")
    said = figure.to_json()
    assert "<a" not in said.replace("\\u003c", "<")
    assert figure.data[0].text[0] == "0.50<br>n 12"  # our own line breaks stay
    assert set(figure.data[0].y) == set(figure.layout.yaxis.categoryarray)
    click = AttributeDictionary({"selection": {"points": [{"customdata": list(figure.data[0].customdata[0])}]}})
    assert chosen_point(click) == [evil, "ada", 12, 0.5]


def test_a_rater_s_name_is_drawn_as_it_is_written_and_a_click_on_its_dot_gives_it_back() -> None:
    for name in ('<a href="http://example.invalid">x</a>', "R&amp;D"):
        figure = rater_dots({"LC": {name: 2.0, "ada": 1.0}}, {"LC": 2.0})
        assert "<a" not in figure.to_json().replace("\\u003c", "<")
        marks = [list(mark) for trace in figure.data for mark in trace.customdata]
        clicked = [AttributeDictionary({"selection": {"points": [{"customdata": mark}]}}) for mark in marks]
        assert [chosen_point(click) for click in clicked] == [
            [rater, "LC"] for rater in (*sorted([name, "ada"]), FINAL)
        ]


def test_marks_too_small_for_a_square_are_upright_lines_and_the_nearest_is_clicked() -> None:
    def strip(errors: int) -> Any:
        rows = [("t", f"e{place}", "A", "low", 1) for place in range(errors)]
        return charts.coverage_strip(pd.DataFrame(rows, columns=["trace_id", "error_id", "label", "impact", "level"]))

    roomy, dense = strip(20), strip(300)
    assert (roomy.data[1].marker.symbol, roomy.data[1].marker.size) == ("square", 11)
    assert (dense.data[1].marker.symbol, dense.data[1].marker.size) == ("line-ns-open", charts.UPRIGHT)
    assert dense.data[1].marker.line.width == 3
    assert len(dense.data[1].customdata) == 300
    assert (dense.layout.hovermode, dense.layout.hoverdistance) == ("closest", charts.REACH)


def test_impact_bars_have_a_line_for_what_people_reach_pale_where_it_is_of_few() -> None:
    shown = coverage().assign(
        judge_model="m", dimension="LC", split="all", ceiling=0.6, ceiling_low=0.5, ceiling_high=0.7
    )
    figure = charts.impact_bars(shown.assign(ceiling_n=np.where(shown["impact"] == "low", 9, 40)))
    lines = [
        trace for trace in figure.data if trace.customdata is not None and trace.customdata[0][-1] == charts.CEILING
    ]
    assert [line.offsetgroup for line in lines] == ["caught", "localized"]
    for line in lines:
        assert list(line.y) == [0.6] * 4
        assert list(line.x) == list(figure.data[0].x)  # each across the bar of its impact
        np.testing.assert_allclose(line.error_y.array, [0.1] * 4)
        assert line.marker.color[0] == charts.style.faint(charts.ORANGE)
        assert line.marker.color[1] == charts.ORANGE
        assert [row[3] for row in line.customdata] == ["low", "medium", "high", "all"]
        assert [row[7] for row in line.customdata] == [9, 40, 40, 40]
    assert "human ceiling, 95 % interval (n 9 to 40)" in [trace.name for trace in figure.data]
    unknown = charts.impact_bars(shown.assign(ceiling=np.nan, ceiling_n=np.nan))
    assert [trace.name for trace in unknown.data] == ["caught", "localized"]


def test_the_map_has_a_diamond_for_people_hollow_where_it_is_of_few() -> None:
    people = pd.DataFrame(
        {"dimension": ["LC", "any"], "split": "all", "kind": "caught", "precision": [0.7, 0.5], "recall": [0.6, 0.5],
         "precision_low": 0.4, "precision_high": 0.9, "precision_n": [9, 50], "recall_low": 0.3, "recall_high": 0.8,
         "recall_n": [12, 50]}
    )  # fmt: skip
    figure = charts.precision_recall(rates_of(("A", "caught", 0.5, 0.5)), people)
    marks = traces(figure, "people, caught (n 9 to 50)")
    assert (list(marks.x), list(marks.y)) == ([0.6, 0.5], [0.7, 0.5])  # type: ignore[attr-defined]
    assert list(marks.marker.symbol) == ["diamond-open", "diamond"]  # type: ignore[attr-defined]
    assert [(row[1], row[3], row[-1]) for row in marks.customdata] == [  # type: ignore[attr-defined]
        ("LC", "caught", charts.CEILING), ("any", "caught", charts.CEILING),
    ]  # fmt: skip


def test_each_step_of_alpha_that_holds_resamples_can_be_clicked_and_none_other() -> None:
    figure = charts.alpha_histogram({"LC": np.array([0.5, 0.501, np.nan, 0.7])}, units={"LC": 12})
    outline, steps = figure.data
    assert outline.name == "LC (n 12)"
    assert outline.customdata is None
    assert [(row[0], row[3]) for row in steps.customdata] == [("LC", 2 / 3), ("LC", 1 / 3)]
    assert steps.marker.opacity == 0
    np.testing.assert_allclose([row[2] - row[1] for row in steps.customdata], charts.BIN)
    assert all(row[1] < x < row[2] for x, row in zip(steps.x, steps.customdata, strict=True))


def test_the_mean_of_a_bias_is_drawn_with_its_interval() -> None:
    pairs = pd.DataFrame(
        {
            "trace_id": ["a", "b"],
            "judge_model": "m",
            "dimension": "LC",
            "reference_score": [1.0, 2.0],
            "judge_score": [2.0, 2.0],
        }
    )
    figure = charts.bias_plot(pairs, between=(-0.25, 1.0))
    assert "mean +0.50<br>[−0.25, +1.00]" in [note.text for note in figure.layout.annotations]
    assert [(band.y0, band.y1) for band in figure.layout.shapes if band.type == "rect"] == [(-0.25, 1.0)]
    unknown = charts.bias_plot(pairs, between=(np.nan, np.nan))
    assert "mean +0.50" in [note.text for note in unknown.layout.annotations]


def test_a_bar_of_where_errors_start_says_whose_errors_of_which_part_it_counts() -> None:
    counts = pd.DataFrame({"place": [0, 3], "side": ["annotator", "judge"], "count": [2, 5]})
    reference, judge = charts.place_bars(counts, places=10).data
    assert [tuple(row[:2]) for row in reference.customdata] == [("annotator", place) for place in range(10)]
    assert (judge.y[3], judge.customdata[3][2]) == (5, "30% to 40%")


@pytest.mark.parametrize("metric", scores.SCORE_METRICS, ids=lambda metric: metric.name)
def test_a_metric_of_scores_is_offered_and_drawn_as_its_record_says(metric: scores.ScoreMetric) -> None:
    (offered,) = [figure for figure in JUDGE_METRICS if figure.name == f"scores.{metric.name}"]
    assert offered.metric == metric
    row = {"label": "x LC", "value": 0.5, "low": 0.4, "high": 0.6, "n": 12, "reason": None}
    drawn = charts.forest(pd.DataFrame([row]), title=offered.title, metric=metric)
    low, high = drawn.layout.xaxis.range
    assert low < metric.limits[0] < metric.limits[1] < high
    words = {"high": "higher is better", "low": "lower is better", "zero": "0 is best"}[metric.best]
    assert drawn.layout.xaxis.title.text == f"{offered.title} ({words})"
    assert [line.x0 for line in drawn.layout.shapes] == [metric.aim]


def test_an_error_has_its_best_value_at_0_and_an_agreement_at_1() -> None:
    aims = {metric.name: metric.aim for metric in METRICS}
    assert [aims[name] for name in ("mae", "nmae", "bias", "ac2", "recall", "unscored")] == [0, 0, 0, 1, 1, 0]


def test_recall_by_threshold_has_a_line_a_judge_and_a_mark_of_confirmed_matches_where_there_are_any() -> None:
    rows = [
        {"label": name, "threshold": at, "recall": recall, "recall_low": 0.1, "recall_high": 0.9, "n": n,
         "confirmed_recall": confirmed, "confirmed_recall_low": 0.1, "confirmed_recall_high": 0.5}
        for name, n, confirmed in (("a", 40, 0.25), ("b", 5, float("nan")))
        for at, recall in ((0.45, 0.5), (0.95, 0.4))
    ]  # fmt: skip
    figure = charts.threshold_lines(pd.DataFrame(rows))
    a, a_confirmed, b, b_confirmed = figure.data
    assert (list(a.x), list(a.y), a.name, set(a.marker.symbol)) == ([0.45, 0.95], [0.5, 0.4], "a", {"circle"})
    assert (list(a_confirmed.y), list(b_confirmed.y), set(b.marker.symbol)) == ([0.25], [], {"circle-open"})


def test_rows_without_any_value_keep_their_names_and_reasons_apart() -> None:
    rows = pd.DataFrame({"label": ["a", "b"], "value": np.nan, "low": np.nan, "high": np.nan, "n": 0, "reason": "why"})
    figure = charts.forest(rows, title="Recall")
    assert (figure.layout.yaxis.type, [note.y for note in figure.layout.annotations]) == (
        "category", ["a  (n 0)", "b  (n 0)"],
    )  # fmt: skip


def test_recall_over_time_has_the_periods_in_their_order_and_leaves_out_what_is_unknown() -> None:
    rows = [("a", "2026-W02", 0.5, 30), ("a", "2026-W10", float("nan"), 0), ("b", "2026-W10", 0.25, 4)]
    table = pd.DataFrame(rows, columns=["label", "period", "recall", "n"])
    figure = charts.period_dots(table.assign(recall_low=0.1, recall_high=0.9, traces=3))
    a, b = figure.data
    assert (list(a.x), list(b.x)) == (["2026-W02"], ["2026-W10"])
    assert list(figure.layout.xaxis.categoryarray) == ["2026-W02", "2026-W10"]
    assert (set(a.marker.symbol), set(b.marker.symbol)) == ({"circle"}, {"circle-open"})


def test_calibration_has_a_mark_a_score_that_the_judge_gave() -> None:
    table = pd.DataFrame(
        {"judge_score": [0, 1, 2, 3], "n": [12, 3, 0, 20], "reference": [0.5, 1.5, float("nan"), 2.5],
         "reference_low": 0.1, "reference_high": 2.9}
    )  # fmt: skip
    _, dots = charts.calibration_dots(table).data
    assert (list(dots.x), list(dots.y)) == ([0, 1, 3], [0.5, 1.5, 2.5])
    assert list(dots.marker.symbol) == ["circle", "circle-open", "circle"]
    assert [row[0] for row in dots.customdata] == [0, 1, 3]
