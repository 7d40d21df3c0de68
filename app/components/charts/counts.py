"""Charts of counts and sizes: bars, histograms, boxes and the grid of dimensions: a frame in, a plotly figure out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tracejury.app.components.charts.style import (
    BLUE,
    GREY,
    HEAD,
    ORANGE,
    count_axis,
    faint,
    finished,
    shortened,
    squares,
)
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.frames import DIMENSION_ORDER, in_order
from tracejury.judging.records import DIMENSIONS

SIDE_COLORS: Final = {"annotator": ORANGE, "judge": BLUE}


def dimension_grid(grid: pd.DataFrame, *, is_dark: bool = False) -> go.Figure:
    """Dimension of the reference error by judge: share caught as shade, caught of errors as text.

    `grid` as `errors.dimension_grid` gives it for one judge model; `customdata` is (dimension, judge, caught,
    localized, errors).
    """
    judges = in_order(grid["dimension"], DIMENSION_ORDER)
    dimensions = in_order(grid["error_dimension"], DIMENSION_ORDER)
    shown = grid[grid["errors"] > 0]
    figure = squares(
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
    return finished(figure, height=HEAD + 44 * max(len(dimensions), 1), legend=False)


def counted_bars(counts: pd.DataFrame, *, x_title: str) -> go.Figure:
    """Horizontal bars of `counts` (label, count), in the order given; `customdata` is (label, count)."""
    labels = [str(label) for label in counts["label"]]
    figure = go.Figure(
        go.Bar(
            x=counts["count"],
            y=labels,
            orientation="h",
            marker={"color": BLUE},
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
    return finished(figure, height=HEAD + 22 * max(len(labels), 2), legend=False)


def place_bars(counts: pd.DataFrame, *, places: int) -> go.Figure:
    """Where in the trace errors start: how many have their first span in each of `places` equal parts of it.

    `counts`: place (0 the first part), side (annotator, judge), count; people stand beside judges. `customdata` is
    (side, place, the part in words).
    """
    figure = go.Figure()
    parts = [f"{part / places:.0%} to {(part + 1) / places:.0%}" for part in range(places)]
    for side, color in SIDE_COLORS.items():
        by_place = counts[counts["side"] == side].groupby("place")["count"].sum().reindex(range(places), fill_value=0)
        figure.add_bar(
            x=[(part + 0.5) / places for part in range(places)], y=by_place.tolist(),
            name=f"{side} ({by_place.sum():,})",
            marker={"color": color}, customdata=[[side, part, words] for part, words in enumerate(parts)],
            hovertemplate="%{customdata[2]} of the trace, errors: %{y:,}<extra>" + side + "</extra>",
        )  # fmt: skip
    figure.update_layout(barmode="group", bargap=0.1)
    figure.update_xaxes(title="position in the trace, first span 0, last span 1", range=[0, 1])
    count_axis(figure, "errors", max(max(bars.y) for bars in figure.data))
    return finished(figure, height=300)


def histogram(values: Sequence[int], *, x_title: str, y_title: str) -> go.Figure:
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
            marker={"color": BLUE},
            customdata=np.stack([least, most], axis=1),
            hovertemplate=f"%{{customdata[0]:,}} to %{{customdata[1]:,}} {x_title}: %{{y:,}} {y_title}<extra></extra>",
        )
    )
    figure.update_layout(bargap=0.04)
    figure.update_xaxes(title=x_title, dtick=1 if high - low < 8 else None)
    count_axis(figure, y_title, int(counts.max()) if len(counts) else 0)
    return finished(figure, height=260, legend=False)


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
    return finished(figure, height=HEAD + 34 * max(len(stored), 2))


BOX = ("label", "n", "low", "q1", "median", "q3", "high", "outliers")


def box_numbers(values: pd.DataFrame) -> pd.DataFrame:
    """What `boxes` draws of `values` (label, value), one row per label: a browser need not hold every value.

    Quartiles as Plotly's own (Hazen); `low` and `high` are the values farthest out that lie within 1.5 times the
    quartiles' distance of them, `outliers` those beyond.
    """
    rows = []
    for label, part in values.dropna(subset=["value"]).groupby("label", sort=False)["value"]:
        numbers = part.to_numpy(dtype="float64")
        q1, median, q3 = np.quantile(numbers, (0.25, 0.5, 0.75), method="hazen")
        reach = 1.5 * (q3 - q1)
        is_out = (numbers < q1 - reach) | (numbers > q3 + reach)
        inside = numbers[~is_out]
        rows.append((str(label), len(numbers), inside.min(), q1, median, q3, inside.max(), numbers[is_out].tolist()))
    return pd.DataFrame(rows, columns=list(BOX))


def boxes(numbers: pd.DataFrame, *, y_title: str, noun: str = "values") -> go.Figure:
    """One box a label (`numbers` as `box_numbers` gives them), what lies beyond it shown value by value.

    `customdata` begins with (label, n) of a box and is (label, value) of a mark beyond it; `noun`: what n counts.
    """
    figure = go.Figure()
    for row in numbers.to_dict("records"):
        figure.add_box(
            x=[row["label"]], q1=[row["q1"]], median=[row["median"]], q3=[row["q3"]], lowerfence=[row["low"]],
            upperfence=[row["high"]], name=row["label"], marker={"color": BLUE}, boxpoints=False, hoverinfo="skip",
        )  # fmt: skip
    _reach_boxes(figure, numbers, noun)
    _mark_outliers(figure, numbers)
    labels = [str(label) for label in numbers["label"]]
    shown = [f"{shortened(label, 24)}<br>n {n:,}" for label, n in zip(labels, numbers["n"], strict=True)]
    figure.update_xaxes(
        categoryorder="array", categoryarray=in_order(numbers["label"], DIMENSIONS), tickmode="array", tickvals=labels,
        ticktext=shown,
    )  # fmt: skip
    figure.update_yaxes(title=y_title, rangemode="tozero")
    return finished(figure, height=300, legend=False).update_layout(bargap=0.5)  # as wide as a box


def _reach_boxes(figure: go.Figure, numbers: pd.DataFrame, noun: str) -> None:
    """An unseen bar over each box, which can be clicked: Plotly reports clicks on marks, on boxes none."""
    spare = 0.01 * float(numbers["high"].max()) if len(numbers) else 0.0  # a box of one value has no height
    low, high = (numbers["low"] - spare).clip(lower=0), numbers["high"] + spare
    figure.add_bar(
        x=numbers["label"],
        base=low,
        y=high - low,
        marker={"color": "rgba(0,0,0,0)"},
        selected={"marker": {"color": faint(BLUE, 0.2)}},
        unselected={"marker": {"opacity": 0}},
        customdata=numbers[["label", "n", "median", "q1", "q3"]].to_numpy(),
        hovertemplate="median %{customdata[2]:,.3~g}, quartiles %{customdata[3]:,.3~g} and %{customdata[4]:,.3~g}"
        "<br>%{customdata[1]:,} " + noun + "<extra>%{x}</extra>",
    )


def _mark_outliers(figure: go.Figure, numbers: pd.DataFrame) -> None:
    beyond = [(str(row["label"]), value) for row in numbers.to_dict("records") for value in row["outliers"]]
    if beyond:
        figure.add_scatter(
            x=[label for label, _ in beyond], y=[value for _, value in beyond], mode="markers",
            marker={"color": BLUE, "size": 6}, customdata=[list(one) for one in beyond],
            hovertemplate="%{y:,.3~g}<extra>%{x}</extra>",
        )  # fmt: skip
