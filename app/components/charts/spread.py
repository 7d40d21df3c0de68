"""Charts of how far repeats of one judge differ: a frame in, a plotly figure out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from tracejury.app.components.charts.style import (
    BLUE,
    CARD,
    HEAD,
    ROW,
    SCORE_COLORS,
    count_axis,
    finished,
    name_rows,
    narrow,
    series_color,
    shortened,
)
from tracejury.judging.agreement.marks import MOST_ITEMS, MOST_MARKS, disputed_items


def repeat_strip(ratings: pd.DataFrame, *, units: int | None = None) -> go.Figure:
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
"""Bounds of the bars of `spread_histogram`; scores 0 and 1 of two repeats are .707 apart."""


def in_bar(spread: pd.Series, bounds: tuple[float, float]) -> pd.Series:
    """Whether each value is among those of a bar of `spread_histogram`; the last one holds its upper bound too."""
    low, high = bounds
    return spread.between(low, high, inclusive="both" if high >= SPREAD_BINS[-1] else "left")


def spread_histogram(spread: NDArray[np.float64]) -> go.Figure:
    """Histogram of the standard deviation over repeats of each trace, scores scaled to 0..1; each bar can be clicked.

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
    count_axis(figure, "traces", int(binned.max()))
    return finished(figure, height=260, legend=False)


def consistency_violins(cosines: pd.DataFrame, *, order: Sequence[str] | None = None) -> go.Figure:
    """Mean pairwise cosine of the rationales of each trace, one violin a judge (`cosines`: label, cosine).

    A mark is a trace where there are few enough to draw; `customdata` is (trace_id, judge_model, dimension). `order`
    as in `alpha_histogram`.
    """
    figure, points = go.Figure(), "all" if len(cosines) <= MOST_MARKS else False
    labels = [str(label) for label in dict.fromkeys(cosines.dropna(subset=["cosine"])["label"])]
    for label in labels:
        part = cosines[cosines["label"] == label].dropna(subset=["cosine"])
        color = series_color(list(order or labels).index(label))
        figure.add_violin(
            y=part["cosine"], name=label, line={"color": color}, box={"visible": True},
            meanline={"visible": True}, points=points, pointpos=0, marker={"size": 4, "opacity": 0.5}, spanmode="hard",
            customdata=part.reindex(columns=["trace_id", "judge_model", "dimension"]).to_numpy(),
        )  # fmt: skip
    figure.update_xaxes(tickmode="array", tickvals=labels, ticktext=[shortened(label, 24) for label in labels])
    figure.update_yaxes(title="mean cosine of a trace's rationales", range=[0, 1.03])
    return finished(figure, height=340, legend=False)


def _score_marks(known: pd.DataFrame, order: Sequence[object], *, x_title: str, width: int) -> go.Figure:
    """One square a score; `width` pixels have room for all of them side by side."""
    size = int(np.clip(width / max(len(order), 1) - 1, 3, 14))
    place = {unit: position for position, unit in enumerate(order)}
    raters = sorted(set(known["rater"]))
    figure = go.Figure()
    for score, color in enumerate(SCORE_COLORS):
        rows = known[known["value"].round() == score]
        figure.add_scatter(
            x=[place[unit] for unit in rows["unit"]],
            y=rows["rater"],
            mode="markers",
            name=f"score {score}",
            marker=narrow(size, color),
            customdata=rows[["unit", "rater"]].to_numpy(),
            hovertemplate="%{customdata[1]}: " + str(score) + "<br>trace %{customdata[0]}<extra></extra>",
        )
    figure.update_xaxes(title=x_title, showticklabels=False, showgrid=False, range=[-1, max(len(order), 12)])
    name_rows(figure, raters)
    return finished(figure, height=HEAD + ROW * max(len(raters), 2))
