"""Every chart of the researcher's pages: a frame in, a plotly figure out; no page, no store.

One palette (Okabe and Ito's, made for colour-blind readers) in light and dark. Matrices that can be clicked are grids
of square markers: Streamlit reports no clicks on heatmaps. `customdata` of a mark holds what it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from tracejury.judging.agreement.figure import TOO_FEW
from tracejury.judging.agreement.frames import DIMENSION_ORDER, IMPACTS, KINDS, in_order
from tracejury.judging.agreement.marks import MOST_ITEMS, MOST_MARKS, bias_lines, disputed_items, found_first
from tracejury.judging.agreement.metric import Best, Metric
from tracejury.judging.agreement.reliability import RELIABLE, TENTATIVE
from tracejury.judging.agreement.rounding import half_up
from tracejury.judging.records import DIMENSIONS

BLUE, SKY, ORANGE, VERMILLION = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
PALE_ORANGE = "#F6D58C"
FAILED = "#6B6F76"
NOT_APPLICABLE = "#9CA1A9"  # quiet on a light page and on a dark one
TIED, ERRORS_ONLY = "#CC79A7", "#009E73"
GREEN, PURPLE, YELLOW, GREY = "#009E73", "#CC79A7", "#F0E442", "#8A8F98"
SERIES: Final = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, YELLOW)
"""In the order in which judges, models and people take them; the eighth begins again."""
KIND_COLORS: Final = {"caught": SKY, "localized": BLUE}
LEVELS: Final = (("missed", GREY), ("caught", SKY), ("localized", BLUE))
SCORE_COLORS: Final = (VERMILLION, ORANGE, SKY, BLUE)
SIDE_COLORS: Final = {"annotator": ORANGE, "judge": BLUE}
MATCH_COLORS: Final = {
    "localized": BLUE, "caught": SKY, "missed": GREY, "unmatched": VERMILLION, "not proposed yet": PURPLE,
}  # fmt: skip
LANES_HEIGHT = 170  # pixels, of the timeline of both sides
WHOSE: Final = ["judge_model", "dimension", "split"]
"""Of which judge a mark is: the first of its `customdata`."""
BEST: Final[dict[Best, str]] = {"high": "higher is better", "low": "lower is better", "zero": "0 is best"}
CEILING: Final = "between people"
"""Last of the `customdata` of a mark of what people reach."""
FAINT = 0.45  # opacity of a figure with too few units
ROW, HEAD = 26, 96  # pixels of one row of a grid or forest, and of everything around the rows
CARD = 400  # pixels that a chart in half a page of 1280 has for its marks
LEGEND: Final = {
    "orientation": "h", "xref": "container", "x": 0, "xanchor": "left", "yref": "container", "y": 1, "yanchor": "top",
}  # fmt: skip
"""Along the top of the whole chart: beside the plot alone it would be narrow where names are long."""
BIN = 0.02  # width of a bar of alpha
SMALLEST, UPRIGHT = 8, 16  # pixels: a smaller square is hard to hit; how high a line stands in its place
REACH = 20  # pixels from a mark within which it is the one that is clicked, where none is nearer
CLICKS: Final[dict[str, Any]] = {
    "clickmode": "event+select", "hovermode": "closest", "hoverdistance": REACH, "dragmode": False,
}  # fmt: skip
"""How a chart's marks are pointed at and clicked."""
RGB = tuple[int, int, int]


class Scale(NamedTuple):
    """Colours of a share of 0, a half and 1 on a page of this colour."""

    page: str
    low: str
    middle: str
    high: str


LIGHT: Final = Scale("#FFFFFF", "#E8EEF4", SKY, BLUE)
DARK: Final = Scale("#171613", "#262D35", BLUE, SKY)
GRID = "rgba(138,143,152,0.25)"


def forest(figures: pd.DataFrame, *, title: str, metric: Metric | None = None) -> go.Figure:
    """One row a judge: estimate and 95 % interval, hollow where n < 10; undefined ones are named; each can be clicked.

    `metric` gives the ends of the axis, which way is good, and the line of the best value; without it 0 to 1.

    `figures`: label, value, low, high, n, reason; optional judge_model, dimension, split (`customdata` begins with
    them); optional ceiling, ceiling_low, ceiling_high: what people reach among themselves on the same dimension, drawn
    as a band behind the row.
    """
    rows, limits = figures.reset_index(drop=True), (0.0, 1.0) if metric is None else metric.limits
    rows["row"] = [f"{label}  (n {n:,})" for label, n in zip(rows["label"], rows["n"], strict=True)]
    figure = go.Figure()
    if "ceiling" in rows.columns:
        _draw_ceilings(figure, rows)
    for is_enough, name in ((True, "judge, 95 % interval"), (False, f"n < {TOO_FEW}: too few")):
        part = rows[rows["value"].notna() & ((rows["n"] >= TOO_FEW) == is_enough)]
        if part.empty:
            continue
        figure.add_scatter(
            x=part["value"],
            y=part["row"],
            mode="markers",
            name=name,
            marker={
                "color": BLUE if is_enough else GREY,
                "size": 9,
                "symbol": "circle" if is_enough else "circle-open",
            },
            error_x=_bars(part["value"], part["low"], part["high"]),
            customdata=part.reindex(columns=[*WHOSE, "label", "low", "high", "n"]).to_numpy(),
            hovertemplate="%{customdata[3]}<br>%{x:.3f} [%{customdata[4]:.3f}, %{customdata[5]:.3f}]"
            "<br>n = %{customdata[6]:,}<extra></extra>",
        )
    undefined = rows[rows["value"].isna()]
    for y, reason in zip(undefined["row"], undefined["reason"], strict=True):
        figure.add_annotation(
            x=limits[0], y=y, text=f"n/a: {reason}", showarrow=False, xanchor="left", font={"color": GREY}
        )
    _rows(
        figure,
        list(rows["row"]),
        [f"{_shortened(str(label))}  (n {n:,})" for label, n in zip(rows["label"], rows["n"], strict=True)],
    )
    figure.update_xaxes(title=title if metric is None else f"{title} ({BEST[metric.best]})", range=_padded(limits),
                        zeroline=False)  # fmt: skip
    if metric is not None and metric.aim is not None:
        figure.add_vline(x=metric.aim, line={"color": GREY, "width": 1, "dash": "dot"})
    return _finished(figure, height=HEAD + ROW * max(len(rows), 2), legend=len(figure.data) > 1)


def impact_bars(coverage: pd.DataFrame) -> go.Figure:
    """Coverage by impact, caught beside localized, one panel a judge; n under each impact, faint where n < 10.

    `coverage` as `errors.coverage_of` gives it, with a `label` for the panel; with ceiling, ceiling_low,
    ceiling_high and ceiling_n a line across each bar says what people reach. `customdata` begins with (judge_model,
    dimension, split, impact, kind); that of a line ends with `CEILING`.
    """
    labels = list(dict.fromkeys(coverage["label"]))
    columns = min(3 if len(labels) > 4 else 2, max(1, len(labels)))
    lines = max(1, math.ceil(len(labels) / columns))
    titles = [_shortened(str(label), 24 if columns == 3 else 34) for label in labels]
    figure = make_subplots(
        rows=lines, cols=columns, shared_yaxes=True, subplot_titles=titles, vertical_spacing=0.45 / lines,
        horizontal_spacing=0.05,
    )  # fmt: skip
    figure.update_annotations(font={"size": 13})
    for place, label in enumerate(labels):
        mine = coverage[coverage["label"] == label]
        for kind in KINDS:
            bars = mine[mine["kind"] == kind].set_index("impact").reindex(index=list(IMPACTS))
            bars = bars.reindex(columns=[*bars.columns.union(WHOSE, sort=False)])
            bars[WHOSE] = bars[WHOSE].ffill().bfill()
            _impact_bar(figure, bars, kind, 1 + place // columns, 1 + place % columns, is_first=place == 0)
            if "ceiling" in bars:
                _impact_ceiling(figure, bars, kind, 1 + place // columns, 1 + place % columns)
    _name_ceiling(figure, coverage)
    figure.update_yaxes(range=[0, 1.05], tickformat=".0%", showgrid=True, gridcolor=GRID)
    figure.update_layout(barmode="group", bargap=0.25, bargroupgap=0.05, scattermode="group", scattergap=0.25)
    figure.update_xaxes(tickangle=0, tickfont={"size": 11})
    _finished(figure, height=80 + 190 * lines)
    return figure.update_layout(margin={"t": 56})  # the panels' titles stand where other charts begin


def score_grid(confusion: pd.DataFrame, *, title: str = "", is_dark: bool = False) -> go.Figure:
    """Human score by judge score: squares shaded by the share of the row, counts written in; each can be clicked.

    `confusion`: human, model, count, share; `customdata` is (human, model, count, share). Pale where fewer than ten
    traces have that human score: their shares say little.
    """
    shares = confusion["share"].fillna(0).to_numpy()
    of = confusion.groupby("reference_score")["count"].transform("sum")
    size = len(set(confusion["reference_score"]))
    figure = _squares(
        x=confusion["judge_score"].astype(str),
        y=confusion["reference_score"].astype(str),
        color=shares,
        text=[f"{count:,}" if count else "·" for count in confusion["count"]],
        custom=confusion[["reference_score", "judge_score", "count", "share"]],
        hover="reference %{customdata[0]}, judge %{customdata[1]}<br>traces: %{customdata[2]:,}, "
        "%{customdata[3]:.0%} of the row<extra></extra>",
        marker_size=44,
        is_pale=np.asarray(of < TOO_FEW),
        is_dark=is_dark,
    )
    order = [str(value) for value in dict.fromkeys(confusion["reference_score"])]
    figure.update_xaxes(
        title="judge score", type="category", categoryorder="array", categoryarray=order, range=[-0.6, size - 0.4]
    )
    figure.update_yaxes(
        title="reference score",
        type="category",
        categoryorder="array",
        categoryarray=order[::-1],
        range=[-0.6, size - 0.4],
    )
    return _finished(figure, height=HEAD + 52 * size, title=title, legend=False)


def bucket_confusion(confusion: pd.DataFrame) -> pd.DataFrame:
    """The confusion of scores 0..3 in the three buckets 0, 1–2, 3."""
    names = {0: "0", 1: "1–2", 2: "1–2", 3: "3"}
    bucketed = confusion.assign(
        reference_score=confusion["reference_score"].map(names), judge_score=confusion["judge_score"].map(names)
    )
    table = bucketed.groupby(["reference_score", "judge_score"], sort=False)["count"].sum().reset_index()
    of = table.groupby("reference_score")["count"].transform("sum")
    return table.assign(of=of, share=(table["count"] / of.where(of > 0)).astype("float64"))


def dimension_grid(grid: pd.DataFrame, *, is_dark: bool = False) -> go.Figure:
    """Dimension of the human error by judge: share caught as shade, caught of errors as text.

    `grid` as `errors.dimension_grid` gives it for one judge model; `customdata` is (dimension, judge, caught,
    localized, errors).
    """
    judges = in_order(grid["dimension"], DIMENSION_ORDER)
    dimensions = in_order(grid["error_dimension"], DIMENSION_ORDER)
    shown = grid[grid["errors"] > 0]
    figure = _squares(
        x=shown["dimension"],
        y=shown["error_dimension"],
        color=shown["share"].to_numpy(),
        text=[
            f"{c}/{n}" if n < 1000 else f"{c}<br>/{n:,}" for c, n in zip(shown["caught"], shown["errors"], strict=True)
        ],
        custom=shown[["error_dimension", "dimension", "caught", "localized", "errors"]],
        hover="%{customdata[0]} errors, judge %{customdata[1]}<br>%{customdata[2]} of %{customdata[4]} caught, "
        "%{customdata[3]} localized<extra></extra>",
        marker_size=38,
        is_pale=(shown["errors"] < TOO_FEW).to_numpy(),
        is_dark=is_dark,
    )
    figure.update_xaxes(title="judge", categoryorder="array", categoryarray=judges, range=[-0.6, len(judges) - 0.4])
    figure.update_yaxes(
        title="dimension of the error",
        categoryorder="array",
        categoryarray=dimensions[::-1],
        range=[-0.6, len(dimensions) - 0.4],
    )
    return _finished(figure, height=HEAD + 44 * max(len(dimensions), 1), legend=False)


def coverage_strip(pairs: pd.DataFrame, *, counts: Sequence[int] | None = None) -> go.Figure:
    """Errors by judges as the paper's Figures 3 and 4: missed, caught, localized; each mark can be clicked.

    `pairs`: label (the judge), error_id, trace_id, impact, level 0..2; one mark each. `counts` of the levels where
    these are a part of all. `customdata` is (trace_id, error_id, label).
    """
    place = {error: position for position, error in enumerate(found_first(pairs))}
    labels = sorted(dict.fromkeys(pairs["label"]), key=_by_model_and_dimension)
    size = max(3, min(11, 900 // max(len(place), 1)))
    figure = go.Figure()
    for level, (name, color) in enumerate(LEVELS):
        mine = pairs[pairs["level"] == level]
        figure.add_scatter(
            x=[place[error] for error in mine["error_id"]],
            y=mine["label"],
            mode="markers",
            name=f"{name} ({len(mine) if counts is None else counts[level]:,})",
            marker=_narrow(size, color) | {"opacity": 0.45 if level == 0 else 1},
            customdata=mine[["trace_id", "error_id", "label", "impact"]].to_numpy(),
            hovertemplate="%{customdata[2]}: "
            + name
            + "<br>%{customdata[3]} impact, trace %{customdata[0]}<extra></extra>",
        )
    figure.update_xaxes(
        title="reference errors, those that most judges caught first", showticklabels=False, showgrid=False,
        range=[-1, max(len(place), 12)],
    )  # fmt: skip
    _rows(figure, labels)
    return _finished(figure, height=HEAD + ROW * max(len(labels), 2))


def precision_recall(rates: pd.DataFrame, people: pd.DataFrame | None = None) -> go.Figure:
    """One mark a judge and kind, an arrow from caught to localized, over curves of equal F1.

    `people`: what they reach on each other's errors by dimension, as `judges.between_people` gives it: diamonds, whose
    `customdata` ends with `CEILING`.

    `rates`: label, kind, precision, recall, each with `_low` and `_high`, n, tp, fp, positives, judge_model,
    dimension, split. Judges with an undefined precision or recall are left out: the table names them. `customdata`
    begins with (judge_model, judge, split, kind).
    """
    figure = go.Figure()
    for f in (0.2, 0.4, 0.6, 0.8):
        recall = np.linspace(f / (2 - f) + 1e-9, 1, 60)
        figure.add_scatter(
            x=recall, y=f * recall / (2 * recall - f), mode="lines", line={"color": GREY, "width": 1, "dash": "dot"},
            showlegend=False, hoverinfo="skip",
        )  # fmt: skip
        figure.add_annotation(x=1, y=f / (2 - f), text=f"F1 {f:g}", showarrow=False, xanchor="left", font={"size": 11})
    known = rates.dropna(subset=["precision", "recall"])
    for _, part in known.groupby("label", sort=False):
        ends = part.set_index("kind")
        if {"caught", "localized"} <= set(ends.index):
            tail, head = ends.loc["caught"], ends.loc["localized"]
            figure.add_annotation(
                x=head["recall"], y=head["precision"], ax=tail["recall"], ay=tail["precision"],
                xref="x", yref="y", axref="x", ayref="y", text="",
                showarrow=True, arrowhead=2, arrowwidth=1, arrowcolor=GREY,
            )  # fmt: skip
    for kind in KINDS:
        part = known[known["kind"] == kind]
        figure.add_scatter(
            x=part["recall"],
            y=part["precision"],
            mode="markers",
            name=kind,
            cliponaxis=False,
            marker={
                "color": KIND_COLORS[kind],
                "size": 11,
                "symbol": ["circle-open" if few else "circle" for few in _least(part) < TOO_FEW],
            },
            customdata=part.assign(predicted=part["tp"] + part["fp"])[_RATES_SAID].to_numpy(),
            hovertemplate="%{customdata[4]}, %{customdata[3]}"
            "<br>precision %{y:.3f} [%{customdata[5]:.3f}, %{customdata[6]:.3f}], n = %{customdata[7]:,}"
            "<br>recall %{x:.3f} [%{customdata[8]:.3f}, %{customdata[9]:.3f}], n = %{customdata[10]:,}<extra></extra>",
        )
    if people is not None and len(people):
        _map_ceiling(figure, people.dropna(subset=["precision", "recall"]))
    caught = known[known["kind"] == "caught"]
    for text, x, y in zip(_uncrowded(caught), caught["recall"], caught["precision"], strict=True):
        figure.add_annotation(x=x, y=y, text=_shortened(text), showarrow=False, yshift=14, font={"size": 12})
    figure.update_xaxes(title="recall (coverage)", range=[-0.03, 1.12])
    figure.update_yaxes(title="precision", range=[-0.03, 1.09])
    return _finished(figure, height=420)


def _map_ceiling(figure: go.Figure, people: pd.DataFrame) -> None:
    """A diamond a dimension and kind; hollow where n < 10 of one of the two rates."""
    for kind, color in (("caught", PALE_ORANGE), ("localized", ORANGE)):
        part = people[people["kind"] == kind]
        if part.empty:
            continue
        least = np.minimum(part["precision_n"], part["recall_n"])
        ends = [f"{rate}_{end}" for rate in ("precision", "recall") for end in ("low", "high", "n")]
        figure.add_scatter(
            x=part["recall"],
            y=part["precision"],
            mode="markers",
            name=f"people, {kind} ({_of_n(pd.Series(least))})",
            cliponaxis=False,
            marker={
                "color": color,
                "size": 11,
                "symbol": ["diamond-open" if few else "diamond" for few in least < TOO_FEW],
                "line": {"width": 1.5, "color": ORANGE},
            },
            customdata=part.assign(judge_model="", of=CEILING)[[*WHOSE, "kind", *ends, "of"]].to_numpy(),
            hovertemplate="between people: %{customdata[1]}, %{customdata[3]}"
            "<br>precision %{y:.3f} [%{customdata[4]:.3f}, %{customdata[5]:.3f}], n = %{customdata[6]:,}"
            "<br>recall %{x:.3f} [%{customdata[7]:.3f}, %{customdata[8]:.3f}], n = %{customdata[9]:,}<extra></extra>",
        )


_RATES_SAID: Final = [
    *WHOSE, "kind", "label", "precision_low", "precision_high", "predicted", "recall_low", "recall_high", "positives",
]  # fmt: skip


def _least(rates: pd.DataFrame) -> NDArray[np.int64]:
    """The smaller n of precision and recall."""
    return np.asarray(np.minimum(rates["tp"] + rates["fp"], rates["positives"]), dtype=np.int64)


def bias_plot(
    drawn: pd.DataFrame, lines: pd.DataFrame | None = None, *, between: tuple[float, float] | None = None
) -> go.Figure:
    """Judge minus reference against their mean, with the mean difference and 1.96 standard deviations around it.

    `drawn`: trace_id, judge_model, dimension, human, model, a mark each, spread a little so that equal pairs stay
    visible; `customdata` is (trace_id, judge_model, dimension, human, model). `lines`: `marks.bias_lines` of all pairs
    where these are a part. `between`: the 95 % interval of the mean.
    """
    mean = ((drawn["judge_score"] + drawn["reference_score"]) / 2).to_numpy(dtype=np.float64)
    shake = np.random.default_rng(0).uniform(-0.08, 0.08, size=(2, len(drawn)))
    figure = go.Figure(
        go.Scatter(
            x=mean + shake[0],
            y=(drawn["judge_score"] - drawn["reference_score"]).to_numpy(dtype=np.float64) + shake[1],
            mode="markers",
            marker={"color": BLUE, "size": 8, "opacity": 0.8},
            customdata=drawn[["trace_id", "judge_model", "dimension", "reference_score", "judge_score"]].to_numpy(),
            hovertemplate="%{customdata[1]} %{customdata[2]}: reference %{customdata[3]:.0f}, judge "
            "%{customdata[4]:.0f}"
            "<br>trace %{customdata[0]}<extra></extra>",
        )
    )
    _draw_bias(figure, bias_lines(drawn) if lines is None else lines, between)
    figure.update_xaxes(title="mean of both scores", range=[-0.2, 3.2], dtick=1)
    figure.update_yaxes(title="judge − reference", dtick=1)
    return _finished(figure, height=380, legend=False).update_layout(margin={"r": 104})


def run_strip(ratings: pd.DataFrame, *, units: int | None = None) -> go.Figure:
    """Traces by repeats, colour the score; traces with the widest spread first; each mark can be clicked.

    `ratings`: unit, rater, value (missing: unscored), a mark each; `units`: of how many, where these are a part.
    `customdata` is (unit, rater).
    """
    known = ratings.dropna(subset=["value"])
    groups = known.groupby("unit")["value"]
    order = list((groups.max() - groups.min()).sort_values(ascending=False, kind="stable").index)
    more = "" if units in {None, len(order)} else f": {len(order):,} of {units:,}"
    return _score_marks(known, order, x_title=f"traces, widest spread first{more}", width=2 * CARD)


def item_strip(ratings: pd.DataFrame) -> go.Figure:
    """Raters by items, the items on which they differ most first; each mark can be clicked.

    `ratings`: unit, rater, value; items with fewer than two ratings are left out.
    """
    shown = disputed_items(ratings)
    spread = shown.groupby("unit")["value"].var(ddof=0).sort_values(ascending=False, kind="stable")
    title = f"items, most disagreement first (at most {MOST_ITEMS})"
    return _score_marks(shown, list(spread.index), x_title=title, width=CARD)


SPREAD_BINS: Final = np.arange(16) / 20
"""Bounds of the bars of `spread_histogram`; scores 0 and 1 of two runs are .707 apart."""


def in_bar(spread: pd.Series, bounds: tuple[float, float]) -> pd.Series:
    """Whether each value is among those of a bar of `spread_histogram`; the last one holds its upper bound too."""
    low, high = bounds
    return spread.between(low, high, inclusive="both" if high >= SPREAD_BINS[-1] else "left")


def spread_histogram(spread: NDArray[np.float64]) -> go.Figure:
    """Histogram of the standard deviation over runs of each trace, scores scaled to 0..1; each bar can be clicked.

    `customdata` is the bar's (lower, upper) bound; a bar holds what is at least the one and below the other.
    """
    known = spread[~np.isnan(spread)]
    counts, edges = np.histogram(known, bins=SPREAD_BINS)
    figure = go.Figure(
        go.Bar(
            x=(edges[:-1] + edges[1:]) / 2, y=counts, width=np.diff(edges), marker={"color": BLUE},
            customdata=np.stack([edges[:-1], edges[1:]], axis=1),
            hovertemplate="%{customdata[0]:.2f} to %{customdata[1]:.2f}: traces: %{y:,}<extra></extra>",
        )
    )  # fmt: skip
    figure.update_xaxes(title="standard deviation over repeats (scores scaled to 0..1)", range=[0, 0.75])
    binned, _ = np.histogram(known, bins=np.arange(0, 0.8, 0.05))
    _counts(figure, "traces", int(binned.max()))
    return _finished(figure, height=260, legend=False)


def consistency_violins(cosines: pd.DataFrame, *, order: Sequence[str] | None = None) -> go.Figure:
    """Mean pairwise cosine of the rationales of each trace, one violin a judge (`cosines`: label, cosine).

    A mark is a trace where there are few enough to draw; `customdata` is (trace_id, judge_model, dimension). `order`
    as in `alpha_histogram`.
    """
    figure, points = go.Figure(), "all" if len(cosines) <= MOST_MARKS else False
    labels = [str(label) for label in dict.fromkeys(cosines.dropna(subset=["cosine"])["label"])]
    for label in labels:
        part = cosines[cosines["label"] == label].dropna(subset=["cosine"])
        color = _series(list(order or labels).index(label))
        figure.add_violin(
            y=part["cosine"], name=label, line={"color": color}, box={"visible": True},
            meanline={"visible": True}, points=points, pointpos=0, marker={"size": 4, "opacity": 0.5}, spanmode="hard",
            customdata=part.reindex(columns=["trace_id", "judge_model", "dimension"]).to_numpy(),
        )  # fmt: skip
    figure.update_xaxes(tickmode="array", tickvals=labels, ticktext=[_shortened(label, 24) for label in labels])
    figure.update_yaxes(title="mean cosine of a trace's rationales", range=[0, 1.03])
    return _finished(figure, height=340, legend=False)


def alpha_histogram(
    samples: Mapping[str, NDArray[np.float64]],
    *,
    order: Sequence[str] | None = None,
    units: Mapping[str, int] | None = None,
) -> go.Figure:
    """Bootstrap distribution of alpha, one outline a judge, with Krippendorff's limits .667 and .8; it can be clicked.

    `order`: all judges of the page; a judge has the colour of its place among them. `units`: of how many each alpha is.
    `customdata` of an outline is (label, from, to, share) of each step that is not empty.
    """
    known = {label: values[~np.isnan(values)] for label, values in samples.items()}
    lowest = min((float(values.min()) for values in known.values() if len(values)), default=0.0)
    start = max(-1.0, math.floor(min(lowest, 0.5) * 10) / 10)
    edges = np.round(np.arange(start, 1.0001 + BIN, BIN), 2)
    figure = go.Figure()
    for label, values in known.items():
        color = _series(list(order or known).index(label))
        n = "" if units is None else f" (n {units[label]:,})"
        counts, _ = np.histogram(values, bins=edges)
        shares = counts / max(len(values), 1)
        figure.add_scatter(
            x=edges[:-1], y=shares, name=_shortened(label) + n, mode="lines", fill="tozeroy", legendgroup=label,
            line={"shape": "hv", "color": color, "width": 2}, fillcolor=_faint(color, 0.12), hoverinfo="skip",
        )  # fmt: skip
        steps = [step for step, count in enumerate(counts) if count]
        figure.add_scatter(  # Plotly chooses no point of a line: these are hit in its place
            x=edges[steps] + BIN / 2, y=shares[steps], mode="markers", name=_shortened(label) + n, showlegend=False,
            legendgroup=label, marker={"color": color, "size": 12, "opacity": 0},
            customdata=[[label, edges[step], edges[step + 1], shares[step]] for step in steps],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]:.2f} to %{customdata[2]:.2f}: %{customdata[3]:.1%}"
            "<extra></extra>",
        )  # fmt: skip
    for limit, side, shift in ((TENTATIVE, "right", -3), (RELIABLE, "left", 3)):
        figure.add_vline(x=limit, line={"color": GREY, "dash": "dash", "width": 1})
        figure.add_annotation(
            x=limit, y=1, yref="paper", text=f"{limit:g}", showarrow=False, xanchor=side, yanchor="top", xshift=shift
        )
    figure.update_xaxes(title="Krippendorff's alpha (interval)", range=[start, 1.02])
    figure.update_yaxes(title="share of resamples", tickformat=".0%", rangemode="tozero")
    return _finished(figure, height=340)


def rater_grid(pairs: pd.DataFrame, *, metric: str, title: str, is_dark: bool = False) -> go.Figure:
    """Every pair of raters: the figure as shade and text, the overlap n below it; each can be clicked.

    `pairs`: rater_a, rater_b, n and the metric; each pair is drawn on both sides of the diagonal. `customdata` is
    (rater_a, rater_b, n, value).
    """
    mirrored = pairs.rename(columns={"rater_a": "rater_b", "rater_b": "rater_a"})
    both = pd.concat([pairs, mirrored], ignore_index=True)
    both = both[both["n"] > 0]
    raters = list(dict.fromkeys([*pairs["rater_a"], *pairs["rater_b"]]))
    size = int(np.clip(CARD / max(len(raters), 1) - 4, 26, 54))  # squares of many raters must not cover each other
    values = both[metric]
    figure = _squares(
        x=both["rater_b"],
        y=both["rater_a"],
        color=values.fillna(0).clip(lower=0).to_numpy(),
        text=[f"{half_up(v, 2).replace('-', '−') or 'n/a'}<br>n {n}" for v, n in zip(values, both["n"], strict=True)],
        custom=both[["rater_a", "rater_b", "n", metric]],
        hover="%{customdata[0]} and %{customdata[1]}<br>"
        + title
        + " %{customdata[3]:.3f}, n = %{customdata[2]}<extra></extra>",
        marker_size=size,
        is_pale=(both["n"] < TOO_FEW).to_numpy(),
        is_dark=is_dark,
        text_size=12 if size > 40 else 10,
    )
    _rows(figure, raters, [_shortened(rater, 24) for rater in raters])
    figure.update_xaxes(
        categoryorder="array", categoryarray=raters, range=[-0.6, len(raters) - 0.4], tickmode="array",
        tickvals=raters, ticktext=[_shortened(rater, 24) for rater in raters], tickangle=-90 if len(raters) > 4 else 0,
    )  # fmt: skip
    below = 150 if len(raters) > 4 else 0  # upright names take their room from the plot
    return _finished(figure, height=HEAD + below + (size + 8) * max(len(raters), 1), legend=False)


def prevalence_bars(prevalence: pd.DataFrame) -> go.Figure:
    """Share of each score by human and by judge, stacked, pale where n < 10; each part can be clicked.

    `prevalence`: label, side, score, count, n, share with its bounds, judge_model, dimension, split. `customdata`
    begins with (judge_model, dimension, split, side, score).
    """
    figure = go.Figure()
    rows = prevalence.assign(
        row=prevalence["label"] + " · " + prevalence["side"] + "  (n " + prevalence["n"].map("{:,}".format) + ")"
    )
    rows = rows.reindex(columns=[*rows.columns.union([*WHOSE, "share_low", "share_high"], sort=False)])
    order = list(dict.fromkeys(rows["row"]))
    for score, color in enumerate(SCORE_COLORS):
        mine = rows[rows["score"] == score]
        figure.add_bar(
            x=mine["share"],
            y=mine["row"],
            orientation="h",
            name=str(score),
            marker={"color": color, "opacity": np.where(mine["n"] < TOO_FEW, FAINT, 1.0)},
            customdata=mine[[*WHOSE, "side", "score", "count", "n", "share_low", "share_high"]].to_numpy(),
            hovertemplate="score "
            + str(score)
            + ": %{customdata[5]} of %{customdata[6]} (%{x:.0%}) [%{customdata[7]:.0%}, %{customdata[8]:.0%}]"
            "<extra>%{y}</extra>",
        )
    figure.update_layout(barmode="stack", legend={"title": {"text": "score"}, "traceorder": "normal"})
    figure.update_xaxes(title="share of traces scored by both", tickformat=".0%", range=[0, 1])
    _rows(
        figure,
        order,
        [" · ".join((_shortened(row[: row.rindex(" · ")], 28), row[row.rindex(" · ") + 3 :])) for row in order],
    )
    figure.update_yaxes(showgrid=False)  # its lines would show through pale bars
    return _finished(figure, height=HEAD + 22 * max(len(order), 2))


def paired_dots(differences: pd.DataFrame, *, left: str, right: str, limits: tuple[float, float] = (0, 1)) -> go.Figure:
    """Two sides of each figure joined by a line; bold where the interval of the difference leaves out 0.

    `differences`: label, judge, left, right, difference, low, high, n, significant. `customdata` begins with the judge.
    """
    rows = differences.dropna(subset=["left", "right"])
    labels = list(rows["label"])
    figure = go.Figure()
    for row in rows.itertuples(index=False):
        figure.add_scatter(
            x=[row.left, row.right], y=[row.label, row.label], mode="lines", hoverinfo="skip", showlegend=False,
            line={"color": VERMILLION if row.significant else GREY, "width": 3 if row.significant else 1},
        )  # fmt: skip
    for side, name, color in (("left", left, GREEN), ("right", right, PURPLE)):
        figure.add_scatter(
            x=rows[side], y=labels, mode="markers", name=name,
            marker={"color": color, "size": 10, "opacity": np.where(rows["n"] < TOO_FEW, FAINT, 1.0)},
            customdata=rows.reindex(columns=["dimension", "difference", "low", "high", "n"]).to_numpy(),
            hovertemplate="%{fullData.name} %{x:.3f}<br>difference %{customdata[1]:+.3f} [%{customdata[2]:+.3f}, "
            "%{customdata[3]:+.3f}], n = %{customdata[4]}<extra>%{y}</extra>",
        )  # fmt: skip
    _rows(figure, labels)
    figure.update_xaxes(
        title="value on each side, 0 to 1" if limits == (0, 1) else "value on each side", range=_padded(limits)
    )
    return _finished(figure, height=HEAD + ROW * max(len(labels), 2))


def lanes(marks: pd.DataFrame, *, spans: int) -> go.Figure:
    """One trace as two lanes, annotator and judge: where their errors stand, what each came to; marks can be clicked.

    `marks`: key, lane (annotator, judge), seq, state (localized, caught, missed, unmatched, not proposed yet), label,
    is_valid (a cited id that exists). `customdata` is (key, label).
    """
    figure = go.Figure()
    for state, color in MATCH_COLORS.items():
        mine = marks[marks["state"] == state]
        if mine.empty:
            continue
        figure.add_scatter(
            x=mine["seq"] + 1,
            y=mine["lane"],
            mode="markers",
            name=state,
            marker={
                "color": color,
                "size": 13,
                "symbol": ["diamond" if valid else "x" for valid in mine["is_valid"]],
                "line": {"width": 1, "color": GREY},
            },
            customdata=mine[["key", "label"]].to_numpy(),
            hovertemplate="%{customdata[1]}<br>S%{x}<extra>" + state + "</extra>",
        )
    figure.update_xaxes(title="span, in reading order", tickprefix="S", range=[0.2, spans + 0.8], zeroline=False)
    figure.update_yaxes(categoryorder="array", categoryarray=["judge", "annotator"], range=[-0.5, 1.5])
    return _finished(figure, height=LANES_HEIGHT)


def counted_bars(counts: pd.DataFrame, *, x_title: str, color: str = BLUE) -> go.Figure:
    """Horizontal bars of `counts` (label, count), in the order given; `customdata` is (label, count)."""
    labels = [str(label) for label in counts["label"]]
    figure = go.Figure(
        go.Bar(
            x=counts["count"],
            y=labels,
            orientation="h",
            marker={"color": color},
            text=[f"{count:,}" for count in counts["count"]],
            textposition="outside",
            textangle=0,
            cliponaxis=False,
            customdata=list(zip(labels, counts["count"].tolist(), strict=True)),
            hovertemplate="%{y}: %{x:,}<extra></extra>",
        )
    )
    figure.update_yaxes(
        categoryorder="array", categoryarray=labels[::-1], showgrid=False,
        range=[min(-0.6, len(labels) - 2.6), len(labels) - 0.4],
    )  # fmt: skip
    most = int(counts["count"].max()) if len(counts) else 0
    figure.update_xaxes(title=x_title, rangemode="tozero", tickformat=",d", dtick=1 if most < 6 else None)
    return _finished(figure, height=HEAD + 22 * max(len(labels), 2), legend=False)


def place_bars(counts: pd.DataFrame, *, places: int) -> go.Figure:
    """Where in the run errors start: how many have their first span in each of `places` equal parts of it.

    `counts`: place (0 the first part), side (human, judge), count; people stand beside judges. `customdata` is (side,
    place, the part in words).
    """
    figure = go.Figure()
    parts = [f"{part / places:.0%} to {(part + 1) / places:.0%}" for part in range(places)]
    for side, color in SIDE_COLORS.items():
        mine = counts[counts["side"] == side].groupby("place")["count"].sum().reindex(range(places), fill_value=0)
        figure.add_bar(
            x=[(part + 0.5) / places for part in range(places)], y=mine.tolist(), name=f"{side} ({mine.sum():,})",
            marker={"color": color}, customdata=[[side, part, words] for part, words in enumerate(parts)],
            hovertemplate="%{customdata[2]} of the trace, errors: %{y:,}<extra>" + side + "</extra>",
        )  # fmt: skip
    figure.update_layout(barmode="group", bargap=0.1)
    figure.update_xaxes(title="position in the trace, first span 0, last span 1", range=[0, 1])
    _counts(figure, "errors", max(max(bars.y) for bars in figure.data))
    return _finished(figure, height=300)


def pair_grid(counts: pd.DataFrame, *, order: Sequence[str], is_dark: bool = False) -> go.Figure:
    """How often two names occur together: a square grid of counts (`counts`: a, b, count, which are `customdata`)."""
    most = max(int(counts["count"].max()) if len(counts) else 0, 1)
    figure = _squares(
        x=counts["b"],
        y=counts["a"],
        color=counts["count"].to_numpy() / most,
        text=[str(count) for count in counts["count"]],
        custom=counts[["a", "b", "count"]],
        hover="%{customdata[0]} with %{customdata[1]}, errors: %{customdata[2]}<extra></extra>",
        marker_size=34,
        is_dark=is_dark,
    )
    figure.update_xaxes(categoryorder="array", categoryarray=list(order), range=[-0.6, len(order) - 0.4])
    figure.update_yaxes(categoryorder="array", categoryarray=list(order)[::-1], range=[-0.6, len(order) - 0.4])
    return _finished(figure, height=HEAD + 38 * max(len(order), 1), legend=False)


def histogram(values: Sequence[int], *, x_title: str, y_title: str, color: str = BLUE) -> go.Figure:
    """A histogram of whole numbers; `customdata` of a bar is the least and the greatest number that it counts."""
    whole = np.asarray(values, dtype="int64")
    low, high = (int(whole.min()), int(whole.max())) if len(whole) else (0, 0)
    width = max(1, math.ceil((high - low + 1) / 30))
    counts, edges = np.histogram(whole, bins=np.arange(low - 0.5, high + width, width))
    least, most = np.ceil(edges[:-1]).astype("int64"), np.floor(edges[1:]).astype("int64")
    figure = go.Figure(
        go.Bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=counts,
            marker={"color": color},
            customdata=np.stack([least, most], axis=1),
            hovertemplate=f"%{{customdata[0]:,}} to %{{customdata[1]:,}} {x_title}: %{{y:,}} {y_title}<extra></extra>",
        )
    )
    figure.update_layout(bargap=0.04)
    figure.update_xaxes(title=x_title, dtick=1 if high - low < 8 else None)
    _counts(figure, y_title, int(counts.max()) if len(counts) else 0)
    return _finished(figure, height=260, legend=False)


def size_bars(stored: pd.DataFrame) -> go.Figure:
    """Characters as the sources hold them beside what a judge reads (`stored`: trace_id, label, before, after).

    `customdata` is (trace_id, label).
    """
    figure = go.Figure()
    for column, name, color in (("before", "all text of the spans", GREY), ("after", "judge's view", BLUE)):
        figure.add_bar(
            x=stored[column], y=stored["label"], orientation="h", name=name, marker={"color": color},
            customdata=stored[["trace_id", "label"]].to_numpy(),
            hovertemplate=name + ", characters: %{x:,}<extra>%{y}</extra>",
        )  # fmt: skip
    figure.update_layout(barmode="group", bargap=0.3)
    figure.update_yaxes(categoryorder="array", categoryarray=list(stored["label"]), autorange="reversed")
    figure.update_xaxes(title="characters", tickformat=",d")
    return _finished(figure, height=HEAD + 34 * max(len(stored), 2))


def score_bars(cells: pd.DataFrame) -> go.Figure:
    """Scores given by each judge of a run, stacked; answers without a score and failures named beside them.

    `cells`: judge, outcome (`0` to `3`, `n/a`, `tied`, `errors_only`, or the name of a failure), count, which are its
    `customdata`.
    """
    unscored = {"n/a": NOT_APPLICABLE, "tied": TIED, "errors_only": ERRORS_ONLY}
    colors = {str(score): color for score, color in enumerate(SCORE_COLORS)} | unscored
    order = in_order(cells["dimension"], DIMENSIONS)
    figure = go.Figure()
    for outcome in in_order(cells["outcome"], ("0", "1", "2", "3", *unscored)):
        mine = cells[cells["outcome"] == outcome]
        said = outcome.replace("_", " ")
        look = {"color": colors[outcome]} if outcome in colors else _failed_look(outcome)
        figure.add_bar(
            x=mine["dimension"], y=mine["count"], name=said, marker=look,
            customdata=mine[["dimension", "outcome", "count"]],
            hovertemplate=said + ", cells: %{y:,}<extra>%{x}</extra>",
        )  # fmt: skip
    figure.update_layout(barmode="stack", bargap=max(0.2, 1 - 0.12 * len(order)), legend={"traceorder": "normal"})
    figure.update_xaxes(categoryorder="array", categoryarray=order)
    stacked = cells.groupby("dimension")["count"].sum()
    _counts(figure, "cells", int(stacked.max()) if len(stacked) else 0)
    return _finished(figure, height=320)


def _failed_look(state: str) -> dict[str, Any]:
    """Dark and hatched, each kind of failure its own way: no failure may pass for a score."""
    shapes = {"unparsable": "/", "too_long": ".", "refused": "x"}
    hatch = {"shape": shapes.get(state, "-"), "fgcolor": "#FFFFFF", "bgcolor": FAILED, "size": 6}
    return {"color": FAILED, "pattern": hatch}


BOX = ("label", "n", "low", "q1", "median", "q3", "high", "outliers")


def box_figures(values: pd.DataFrame) -> pd.DataFrame:
    """What `boxes` draws of `values` (label, value), one row a label: a browser need not hold every value.

    Quartiles as Plotly's own (Hazen); `low` and `high` are the values farthest out that lie within 1.5 times the
    quartiles' distance of them, `outliers` those beyond.
    """
    rows = []
    for label, part in values.dropna(subset=["value"]).groupby("label", sort=False)["value"]:
        given = part.to_numpy(dtype="float64")
        q1, median, q3 = np.quantile(given, (0.25, 0.5, 0.75), method="hazen")
        reach = 1.5 * (q3 - q1)
        is_out = (given < q1 - reach) | (given > q3 + reach)
        inside = given[~is_out]
        rows.append((str(label), len(given), inside.min(), q1, median, q3, inside.max(), given[is_out].tolist()))
    return pd.DataFrame(rows, columns=list(BOX))


def boxes(figures: pd.DataFrame, *, y_title: str, noun: str = "values") -> go.Figure:
    """One box a label (`figures` as `box_figures` gives them), what lies beyond it shown value by value.

    `customdata` begins with (label, n) of a box and is (label, value) of a mark beyond it; `noun`: what n counts.
    """
    figure = go.Figure()
    for row in figures.to_dict("records"):
        figure.add_box(
            x=[row["label"]], q1=[row["q1"]], median=[row["median"]], q3=[row["q3"]], lowerfence=[row["low"]],
            upperfence=[row["high"]], name=row["label"], marker={"color": BLUE}, boxpoints=False, hoverinfo="skip",
        )  # fmt: skip
    _reach_boxes(figure, figures, noun)
    _mark_outliers(figure, figures)
    labels = [str(label) for label in figures["label"]]
    shown = [f"{_shortened(label, 24)}<br>n {n:,}" for label, n in zip(labels, figures["n"], strict=True)]
    figure.update_xaxes(
        categoryorder="array", categoryarray=in_order(figures["label"], DIMENSIONS), tickmode="array", tickvals=labels,
        ticktext=shown,
    )  # fmt: skip
    figure.update_yaxes(title=y_title, rangemode="tozero")
    return _finished(figure, height=300, legend=False).update_layout(bargap=0.5)  # as wide as a box


def _reach_boxes(figure: go.Figure, figures: pd.DataFrame, noun: str) -> None:
    """An unseen bar over each box, which can be clicked: Plotly reports clicks on marks, on boxes none."""
    spare = 0.01 * float(figures["high"].max()) if len(figures) else 0.0  # a box of one value has no height
    low, high = (figures["low"] - spare).clip(lower=0), figures["high"] + spare
    figure.add_bar(
        x=figures["label"],
        base=low,
        y=high - low,
        marker={"color": "rgba(0,0,0,0)"},
        selected={"marker": {"color": _faint(BLUE, 0.2)}},
        unselected={"marker": {"opacity": 0}},
        customdata=figures[["label", "n", "median", "q1", "q3"]].to_numpy(),
        hovertemplate="median %{customdata[2]:,.3~g}, quartiles %{customdata[3]:,.3~g} and %{customdata[4]:,.3~g}"
        "<br>%{customdata[1]:,} " + noun + "<extra>%{x}</extra>",
    )


def _mark_outliers(figure: go.Figure, figures: pd.DataFrame) -> None:
    beyond = [(str(row["label"]), value) for row in figures.to_dict("records") for value in row["outliers"]]
    if beyond:
        figure.add_scatter(
            x=[label for label, _ in beyond], y=[value for _, value in beyond], mode="markers",
            marker={"color": BLUE, "size": 6}, customdata=[list(one) for one in beyond],
            hovertemplate="%{y:,.3~g}<extra>%{x}</extra>",
        )  # fmt: skip


def _draw_ceilings(figure: go.Figure, rows: pd.DataFrame) -> None:
    """The human ceiling of each row: a pale bar for its interval, a line for its value."""
    known = rows[rows["ceiling"].notna()]
    wide = known.dropna(subset=["ceiling_low", "ceiling_high"])
    if len(wide):
        gap = np.full(len(wide), None, dtype=object)
        figure.add_scatter(
            x=np.stack([wide["ceiling_low"], wide["ceiling_high"], gap], axis=1).ravel(),
            y=np.stack([wide["row"], wide["row"], gap], axis=1).ravel(),
            mode="lines",
            line={"color": "rgba(230,159,0,0.30)", "width": 16},
            hoverinfo="skip",
            name="its 95 % interval",
            legendrank=1002,
        )
    if len(known):
        figure.add_scatter(
            x=known["ceiling"],
            y=known["row"],
            mode="markers",
            name="human ceiling",
            legendrank=1001,
            marker={"symbol": "line-ns-open", "size": 16, "color": ORANGE, "line": {"width": 3}},
            customdata=known.reindex(columns=[*WHOSE, "ceiling_low", "ceiling_high"]).assign(of=CEILING).to_numpy(),
            hovertemplate="between people %{x:.3f} [%{customdata[3]:.3f}, %{customdata[4]:.3f}]<extra>%{y}</extra>",
        )


def _bars(values: pd.Series, low: pd.Series, high: pd.Series) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": (high - values).clip(lower=0).to_numpy(),
        "arrayminus": (values - low).clip(lower=0).to_numpy(),
        "color": GREY,
        "thickness": 1.5,
        "width": 4,
    }


def _impact_bar(figure: go.Figure, bars: pd.DataFrame, kind: str, row: int, column: int, *, is_first: bool) -> None:
    n = bars["n"].fillna(0).astype(int)
    figure.add_bar(
        x=[f"{impact}<br>n {count:,}" for impact, count in zip(bars.index, n, strict=True)],
        y=bars["coverage"],
        name=kind,
        legendgroup=kind,
        offsetgroup=kind,
        showlegend=is_first,
        marker={"color": KIND_COLORS[kind], "opacity": np.where(n < TOO_FEW, FAINT, 1.0)},
        error_y=_bars(bars["coverage"], bars["coverage_low"], bars["coverage_high"]),
        customdata=bars.reset_index()
        .assign(kind=kind, hits=bars["hits"].fillna(0).to_numpy(), n=n.to_numpy())[
            [*WHOSE, "impact", "kind", "hits", "n", "coverage_low", "coverage_high"]
        ]
        .to_numpy(),
        hovertemplate=kind + ": %{customdata[5]} of %{customdata[6]} (%{y:.1%}) [%{customdata[7]:.1%}, "
        "%{customdata[8]:.1%}]<extra></extra>",
        row=row,
        col=column,
    )


def _impact_ceiling(figure: go.Figure, bars: pd.DataFrame, kind: str, row: int, column: int) -> None:
    """What people reach on the errors of each impact, across the judge's bar; pale where n < 10."""
    known = bars[bars["ceiling"].notna()]
    if known.empty:
        return
    n = bars["n"].fillna(0).astype(int).loc[known.index]
    color = [ORANGE if count >= TOO_FEW else _faint(ORANGE) for count in known["ceiling_n"]]
    figure.add_scatter(
        x=[f"{impact}<br>n {count:,}" for impact, count in zip(known.index, n, strict=True)],
        y=known["ceiling"],
        mode="markers",
        offsetgroup=kind,
        showlegend=False,
        marker={"symbol": "line-ew-open", "size": 16, "color": color, "line": {"width": 3, "color": color}},
        error_y=_bars(known["ceiling"], known["ceiling_low"], known["ceiling_high"]) | {"color": ORANGE},
        customdata=known.reset_index()
        .assign(kind=kind, of=CEILING)[[*WHOSE, "impact", "kind", "ceiling_low", "ceiling_high", "ceiling_n", "of"]]
        .to_numpy(),
        hovertemplate=kind + " between people %{y:.1%} [%{customdata[5]:.1%}, %{customdata[6]:.1%}], "
        "n = %{customdata[7]:,}<extra></extra>",
        row=row,
        col=column,
    )


def _name_ceiling(figure: go.Figure, coverage: pd.DataFrame) -> None:
    """A legend of what people reach, with of how many comparisons it is."""
    known = coverage["ceiling_n"][coverage["ceiling"].notna()] if "ceiling" in coverage else pd.Series(dtype="float64")
    if len(known):
        figure.add_scatter(
            x=[None], y=[None], mode="markers", name=f"human ceiling, 95 % interval ({_of_n(known)})", hoverinfo="skip",
            marker={"symbol": "line-ew-open", "size": 12, "color": ORANGE, "line": {"width": 3, "color": ORANGE}},
        )  # fmt: skip


def _of_n(counts: pd.Series) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"n {low:,}" if low == high else f"n {low:,} to {high:,}"


def _squares(
    *,
    x: pd.Series,
    y: pd.Series,
    color: NDArray[np.float64],
    text: Sequence[str],
    custom: pd.DataFrame,
    hover: str,
    marker_size: int,
    is_pale: NDArray[np.bool_] | None = None,
    is_dark: bool = False,
    text_size: int = 12,
) -> go.Figure:
    """A grid of square markers on one scale of blues, 0 close to the page to 1 far from it, with readable text on each.

    Where `is_pale`, the colour is half the page's. `is_dark`: the scheme of the page; the least never shines.
    """
    pale = np.zeros(len(color), dtype=bool) if is_pale is None else is_pale
    scale = DARK if is_dark else LIGHT
    fills = [_on_scale(float(shade), scale, is_pale=bool(few)) for shade, few in zip(color, pale, strict=True)]
    return go.Figure(
        go.Scatter(
            x=list(x),
            y=list(y),
            mode="markers+text",
            text=list(text),
            textfont={"size": text_size, "color": [_readable_on(fill) for fill in fills]},
            marker={
                "symbol": "square",
                "size": marker_size,
                "color": [_css(fill) for fill in fills],
                "line": {"width": 1, "color": GREY},
            },
            customdata=custom.to_numpy(),
            hovertemplate=hover,
        )
    )


def _on_scale(shade: float, scale: Scale, *, is_pale: bool) -> RGB:
    """The colour of a share: from nearly that of the page over the middle one at a half to the last."""
    low, high, part = (
        (scale.low, scale.middle, shade * 2) if shade <= 0.5 else (scale.middle, scale.high, shade * 2 - 1)
    )
    color = _mixed(_rgb(low), _rgb(high), min(max(part, 0.0), 1.0))
    return _mixed(color, _rgb(scale.page), 0.5) if is_pale else color


def _readable_on(fill: RGB) -> str:
    """Black or white, whichever has the higher contrast: one of the two always has 4.5 to 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in fill)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "#000000"


def _mixed(one: RGB, other: RGB, part: float) -> RGB:
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _rgb(color: str) -> RGB:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _css(color: RGB) -> str:
    return "#{:02X}{:02X}{:02X}".format(*color)


def _faint(color: str, opacity: float = FAINT) -> str:
    """The colour of what too few units stand behind."""
    red, green, blue = _rgb(color)
    return f"rgba({red},{green},{blue},{opacity})"


def _score_marks(known: pd.DataFrame, order: Sequence[object], *, x_title: str, width: int) -> go.Figure:
    """One square a score; `width` pixels have room for all of them side by side."""
    size = int(np.clip(width / max(len(order), 1) - 1, 3, 14))
    place = {unit: position for position, unit in enumerate(order)}
    raters = sorted(set(known["rater"]))
    figure = go.Figure()
    for score, color in enumerate(SCORE_COLORS):
        mine = known[known["value"].round() == score]
        figure.add_scatter(
            x=[place[unit] for unit in mine["unit"]],
            y=mine["rater"],
            mode="markers",
            name=f"score {score}",
            marker=_narrow(size, color),
            customdata=mine[["unit", "rater"]].to_numpy(),
            hovertemplate="%{customdata[1]}: " + str(score) + "<br>trace %{customdata[0]}<extra></extra>",
        )
    figure.update_xaxes(title=x_title, showticklabels=False, showgrid=False, range=[-1, max(len(order), 12)])
    _rows(figure, raters)
    return _finished(figure, height=HEAD + ROW * max(len(raters), 2))


def _narrow(width: int, color: str) -> dict[str, Any]:
    """A square; where there is room for a few pixels alone, an upright line as high as its row: seen and hit sooner."""
    if width >= SMALLEST:
        return {"symbol": "square", "size": width, "color": color}
    return {"symbol": "line-ns-open", "size": UPRIGHT, "color": color, "line": {"width": width, "color": color}}


def _draw_bias(figure: go.Figure, lines: pd.DataFrame, between: tuple[float, float] | None) -> None:
    """The lines, each with its value at the right of the plot, where no mark stands; the axis reaches to them."""
    mean, sd = float(lines["mean"].iloc[0]), float(lines["sd"].iloc[0])
    is_bounded = between is not None and not any(map(math.isnan, between))
    bounds = f"<br>[{_signed(between[0])}, {_signed(between[1])}]" if between is not None and is_bounded else ""
    drawn = [] if math.isnan(mean) else [(mean, VERMILLION, "solid", f"mean {_signed(mean)}{bounds}")]
    if between is not None and bounds:
        figure.add_hrect(y0=between[0], y1=between[1], fillcolor=VERMILLION, opacity=0.15, line_width=0)
    if not math.isnan(sd):
        drawn += [(y, GREY, "dash", _signed(y)) for y in (mean - 1.96 * sd, mean + 1.96 * sd)]
    for y, color, dash, text in drawn:
        figure.add_hline(y=y, line={"color": color, "dash": dash, "width": 2 if dash == "solid" else 1})
        figure.add_annotation(
            x=1, xref="paper", y=y, text=text, showarrow=False, xanchor="left", xshift=4, font={"size": 12}
        )  # fmt: skip
    reach = max(3.4, *(abs(y) + 0.2 for y, *_ in drawn)) if drawn else 3.4
    figure.update_yaxes(range=[-reach, reach])


def _uncrowded(points: pd.DataFrame) -> list[str]:
    """Labels of marks that have room; a mark close to a labelled one keeps its name for the pointer."""
    shown: list[tuple[float, float]] = []
    labels = []
    for label, x, y in zip(points["label"], points["recall"], points["precision"], strict=True):
        has_room = all(abs(x - a) > 0.16 or abs(y - b) > 0.05 for a, b in shown)
        labels.append(str(label) if has_room else "")
        if has_room:
            shown.append((x, y))
    return labels


def _signed(value: float) -> str:
    """With the minus of the axis beside it."""
    return f"{value:+.2f}".replace("-", "−")


def _counts(figure: go.Figure, title: str, most: int) -> None:
    """An axis of counts from 0 on: no tick stands at half a trace."""
    figure.update_yaxes(title=title, rangemode="tozero", tickformat=",d", dtick=1 if most < 6 else None, nticks=6)


def _by_model_and_dimension(label: str) -> tuple[str, int]:
    """Judges of one model stand together, in the order of the tables."""
    model, _, dimension = label.rpartition(" ")
    return (model, DIMENSION_ORDER.index(dimension)) if dimension in DIMENSION_ORDER else (label, -1)


def _shortened(text: str, most: int = 34) -> str:
    """The text with its middle left out where it is too long for an axis: its last words name the dimension."""
    if len(text) <= most:
        return text
    tail = text[-(most // 2) :]
    tail = tail[tail.index(" ") + 1 :] if " " in tail else tail
    return f"{text[: most - 1 - len(tail)].rstrip()}…{tail}"


def _rows(figure: go.Figure, names: Sequence[str], shown: Sequence[str] | None = None) -> None:
    """One row a name, read from the top; long names are shortened on the axis alone."""
    texts = [_shortened(name) for name in names] if shown is None else list(shown)
    figure.update_yaxes(
        categoryorder="array", categoryarray=list(names)[::-1], range=[-0.6, len(names) - 0.4], tickmode="array",
        tickvals=list(names), ticktext=texts,
    )  # fmt: skip


def _series(place: int) -> str:
    return SERIES[place % len(SERIES)]


def _padded(limits: tuple[float, float]) -> list[float]:
    reach = (limits[1] - limits[0]) * 0.03
    return [limits[0] - reach, limits[1] + reach]


def _finished(figure: go.Figure, *, height: int, legend: bool = True, title: str = "") -> go.Figure:
    """One look: room for long names, a legend above, quiet lines, no tools but the picture's download."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 16, "t": 40 if legend or title else 16, "b": 8},
        legend=LEGEND,
        showlegend=legend,
        title={"text": title, "font": {"size": 14}} if title else None,
        hoverlabel={"align": "left"},
        font={"size": 13},
        **CLICKS,
    )
    figure.update_xaxes(automargin=True, gridcolor=GRID, title_font={"size": 12})
    figure.update_yaxes(automargin=True, gridcolor=GRID, title_font={"size": 12})
    return without_markup(figure)


def without_markup(figure: go.Figure) -> go.Figure:
    """Names from outside as they are: Plotly would make links and type of what looks like HTML in them.

    `customdata` is written the same way, since hovering shows it; a click reads it with `html.unescape`.
    """
    for trace in figure.data:
        for name in ("x", "y", "name", "text", "customdata"):
            if trace[name] is not None:
                trace[name] = _as_written(trace[name])
    for axis in [*figure.select_xaxes(), *figure.select_yaxes()]:
        for name in ("categoryarray", "tickvals", "ticktext"):
            if axis[name] is not None:
                axis[name] = _as_written(axis[name])
    for note in figure.layout.annotations:
        for name in ("x", "y", "text"):
            note[name] = _as_written(note[name])
    return figure


def _as_written(value: Any) -> Any:
    """Every text in it without markup but for our own line breaks."""
    if isinstance(value, str):
        return escape(value, quote=False).replace("&lt;br&gt;", "<br>")
    if isinstance(value, np.ndarray):
        return np.frompyfunc(_as_written, 1, 1)(value) if value.dtype.kind in "OU" else value
    return [_as_written(one) for one in value] if isinstance(value, (list, tuple)) else value
