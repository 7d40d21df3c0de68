"""Charts of scores: judges and people on the same traces: a frame in, a plotly figure out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from tracejury.app.components.charts.style import (
    BLUE,
    CARD,
    GREY,
    HEAD,
    SCORE_COLORS,
    VERMILLION,
    count_axis,
    faint,
    finished,
    name_rows,
    series_color,
    shortened,
    squares,
)
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.frames import in_order
from tracejury.judging.agreement.marks import bias_lines
from tracejury.judging.agreement.reliability import RELIABLE, TENTATIVE
from tracejury.judging.agreement.rounding import half_up
from tracejury.judging.agreement.scores import POINTS
from tracejury.judging.records import DIMENSIONS

FAILED = "#6B6F76"
NOT_APPLICABLE = "#9CA1A9"  # quiet on a light page and on a dark one
TIED, ERRORS_ONLY = "#CC79A7", "#009E73"
BIN = 0.02  # width of a bar of alpha


def score_grid(confusion: pd.DataFrame, *, is_dark: bool = False) -> go.Figure:
    """Reference score by judge score: squares shaded by the share of the row, counts written in; each can be clicked.

    `confusion`: reference_score, judge_score, count, share, in this order in `customdata`. Pale where fewer than ten
    traces have that reference score: their shares say little.
    """
    shares = confusion["share"].fillna(0).to_numpy()
    of = confusion.groupby("reference_score")["count"].transform("sum")
    size = len(set(confusion["reference_score"]))
    figure = squares(
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
    return finished(figure, height=HEAD + 52 * size, legend=False)


def bucket_confusion(confusion: pd.DataFrame) -> pd.DataFrame:
    """The confusion of scores 0..3 in the three buckets 0, 1–2, 3."""
    names = {0: "0", 1: "1–2", 2: "1–2", 3: "3"}
    bucketed = confusion.assign(
        reference_score=confusion["reference_score"].map(names), judge_score=confusion["judge_score"].map(names)
    )
    table = bucketed.groupby(["reference_score", "judge_score"], sort=False)["count"].sum().reset_index()
    of = table.groupby("reference_score")["count"].transform("sum")
    return table.assign(of=of, share=(table["count"] / of.where(of > 0)).astype("float64"))


def bias_plot(
    drawn: pd.DataFrame, lines: pd.DataFrame | None = None, *, between: tuple[float, float] | None = None
) -> go.Figure:
    """Judge minus reference against their mean, with the mean difference and 1.96 standard deviations around it.

    `drawn`: trace_id, judge_model, dimension, reference_score, judge_score, in this order in `customdata`, a mark each,
    spread a little so that equal pairs stay visible. `lines`: `marks.bias_lines` of all pairs where these are a part.
    `between`: the 95 % interval of the mean.
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
    return finished(figure, height=380, legend=False).update_layout(margin={"r": 104})


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
        color = series_color(list(order or known).index(label))
        n = "" if units is None else f" (n {units[label]:,})"
        counts, _ = np.histogram(values, bins=edges)
        shares = counts / max(len(values), 1)
        figure.add_scatter(
            x=edges[:-1], y=shares, name=shortened(label) + n, mode="lines", fill="tozeroy", legendgroup=label,
            line={"shape": "hv", "color": color, "width": 2}, fillcolor=faint(color, 0.12), hoverinfo="skip",
        )  # fmt: skip
        steps = [step for step, count in enumerate(counts) if count]
        figure.add_scatter(  # Plotly chooses no point of a line: these are hit in its place
            x=edges[steps] + BIN / 2, y=shares[steps], mode="markers", name=shortened(label) + n, showlegend=False,
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
    return finished(figure, height=340)


def rater_grid(pairs: pd.DataFrame, *, metric: str, title: str, is_dark: bool = False) -> go.Figure:
    """Every pair of raters: its value as shade and text, the overlap n below it; each can be clicked.

    `pairs`: rater_a, rater_b, n and the metric; each pair is drawn on both sides of the diagonal. `customdata` is
    (rater_a, rater_b, n, value).
    """
    mirrored = pairs.rename(columns={"rater_a": "rater_b", "rater_b": "rater_a"})
    both = pd.concat([pairs, mirrored], ignore_index=True)
    both = both[both["n"] > 0]
    raters = list(dict.fromkeys([*pairs["rater_a"], *pairs["rater_b"]]))
    size = int(np.clip(CARD / max(len(raters), 1) - 4, 26, 54))  # squares of many raters must not cover each other
    values = both[metric]
    figure = squares(
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
    name_rows(figure, raters, [shortened(rater, 24) for rater in raters])
    figure.update_xaxes(
        categoryorder="array", categoryarray=raters, range=[-0.6, len(raters) - 0.4], tickmode="array",
        tickvals=raters, ticktext=[shortened(rater, 24) for rater in raters], tickangle=-90 if len(raters) > 4 else 0,
    )  # fmt: skip
    below = 150 if len(raters) > 4 else 0  # upright names take their room from the plot
    return finished(figure, height=HEAD + below + (size + 8) * max(len(raters), 1), legend=False)


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
        of_outcome = cells[cells["outcome"] == outcome]
        words = outcome.replace("_", " ")
        look = {"color": colors[outcome]} if outcome in colors else _failed_look(outcome)
        figure.add_bar(
            x=of_outcome["dimension"], y=of_outcome["count"], name=words, marker=look,
            customdata=of_outcome[["dimension", "outcome", "count"]],
            hovertemplate=words + ", cells: %{y:,}<extra>%{x}</extra>",
        )  # fmt: skip
    figure.update_layout(barmode="stack", bargap=max(0.2, 1 - 0.12 * len(order)), legend={"traceorder": "normal"})
    figure.update_xaxes(categoryorder="array", categoryarray=order)
    stacked = cells.groupby("dimension")["count"].sum()
    count_axis(figure, "cells", int(stacked.max()) if len(stacked) else 0)
    return finished(figure, height=320)


def _failed_look(state: str) -> dict[str, Any]:
    """Dark and hatched, each kind of failure its own way: no failure may pass for a score."""
    shapes = {"unparsable": "/", "too_long": ".", "refused": "x"}
    hatch = {"shape": shapes.get(state, "-"), "fgcolor": "#FFFFFF", "bgcolor": FAILED, "size": 6}
    return {"color": FAILED, "pattern": hatch}


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


def _signed(value: float) -> str:
    """With the minus of the axis beside it."""
    return f"{value:+.2f}".replace("-", "−")


def calibration_dots(table: pd.DataFrame) -> go.Figure:
    """The mean reference score with its interval where a judge gave each score, beside the line of equal scores.

    `table`: `calibration.calibration_table` of one judge. `customdata` is (judge_score, low, high, n).
    """
    known = table.dropna(subset=["reference"])
    figure = go.Figure()
    figure.add_scatter(
        x=[0, POINTS - 1], y=[0, POINTS - 1], mode="lines", name="equal scores", hoverinfo="skip",
        line={"color": GREY, "width": 1, "dash": "dot"},
    )  # fmt: skip
    figure.add_scatter(
        x=known["judge_score"], y=known["reference"], mode="markers", name="mean reference score, 95 % interval",
        marker={"color": BLUE, "size": 10, "symbol": np.where(known["n"] < TOO_FEW, "circle-open", "circle")},
        error_y={
            "type": "data", "symmetric": False, "array": known["reference_high"] - known["reference"],
            "arrayminus": known["reference"] - known["reference_low"], "thickness": 1.4, "width": 5,
        },
        customdata=known[["judge_score", "reference_low", "reference_high", "n"]].to_numpy(),
        hovertemplate="judge %{customdata[0]:.0f}: reference %{y:.2f} [%{customdata[1]:.2f}, %{customdata[2]:.2f}]"
        "<br>n = %{customdata[3]:,}<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title="judge score", range=[-0.3, POINTS - 0.7], dtick=1, zeroline=False)
    figure.update_yaxes(title="mean reference score", range=[-0.2, POINTS - 0.8], dtick=1, zeroline=False)
    return finished(figure, height=380)
