"""Charts of people's scores: raters side by side on one trace, and practice beside the right answers."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from tracejury.app.components.charts.style import BLUE, CLICKS, GRID, LEGEND, ORANGE, SERIES, without_markup
from tracejury.judging.records import DIMENSIONS

NOT_APPLICABLE = -1
FINAL = "final"
"""Stands in `customdata` where a rater does: the mark of the final score."""


def rater_dots(scores: Mapping[str, Mapping[str, float | None]], final: Mapping[str, float | None]) -> go.Figure:
    """One row per dimension, one mark per rater, shifted so that equal scores stay apart; a ring is the final one.

    "Not applicable" (None) stands left of 0. `customdata` is (rater, dimension).
    """
    raters = sorted({rater for by_rater in scores.values() for rater in by_rater})
    rows = [dimension for dimension in DIMENSIONS if dimension in scores]
    apart = min(0.28, 0.8 / max(len(raters), 1))  # of a row: marks of one score stay whole
    figure = go.Figure()
    for place, rater in enumerate(raters):
        shift = (place - (len(raters) - 1) / 2) * apart
        points = [(_x(scores[d][rater]), rows.index(d) + shift, d) for d in rows if rater in scores[d]]
        figure.add_scatter(
            x=[x for x, *_ in points],
            y=[y for _, y, _ in points],
            customdata=[[rater, d] for *_, d in points],
            mode="markers",
            name=rater,
            marker={"size": 11, "color": SERIES[place % len(SERIES)]},
            hovertemplate="%{customdata[0]}: %{x}<extra></extra>",
        )
    decided = [(_x(final[d]), rows.index(d), d) for d in rows if d in final]
    if decided:
        figure.add_scatter(
            x=[x for x, *_ in decided],
            y=[y for _, y, _ in decided],
            customdata=[[FINAL, d] for *_, d in decided],
            mode="markers",
            name=FINAL,
            marker={"size": 22, "color": "rgba(0,0,0,0)", "line": {"width": 2, "color": BLUE}},
            hovertemplate="%{customdata[0]}: %{x}<extra></extra>",
        )
    figure.update_xaxes(
        title={"text": "score", "font": {"size": 12}},
        range=[-1.5, 3.5],
        tickvals=[-1, 0, 1, 2, 3],
        ticktext=["n/a", "0", "1", "2", "3"],
        gridcolor=GRID,
        zeroline=False,
    )
    figure.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=rows, range=[len(rows) - 0.5, -0.5], gridcolor=GRID, zeroline=False
    )
    return _finished(figure, 90 + 42 * max(2, len(rows)))


def calibration_bars(calibration: pd.DataFrame) -> go.Figure:
    """Mean own score beside the mean right one by dimension; `calibration` as `practice.calibration` gives it."""
    labels = [f"{row.dimension} (n {row.n})" for row in calibration.itertuples()]
    figure = go.Figure()
    figure.add_bar(x=labels, y=calibration["own"], name="your score", marker_color=ORANGE)
    figure.add_bar(x=labels, y=calibration["correct"], name="correct score", marker_color=BLUE)
    figure.update_yaxes(title={"text": "mean score", "font": {"size": 12}}, range=[0, 3.1], gridcolor=GRID)
    return _finished(figure.update_layout(barmode="group"), 300)


def _finished(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(height=height, margin={"l": 8, "r": 8, "t": 36, "b": 8}, legend=LEGEND, **CLICKS)
    return without_markup(figure)


def _x(value: float | None) -> float:
    return NOT_APPLICABLE if value is None else value
