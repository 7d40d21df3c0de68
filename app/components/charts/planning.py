"""Charts of a planned study: power and width over numbers of traces, one line per number of repeats."""

from __future__ import annotations

from typing import Final

import pandas as pd
import plotly.graph_objects as go

from tracejury.app.components.charts.style import BLUE, GRID, LEGEND, ORANGE, SKY, VERMILLION

HEIGHT: Final = 300  # pixels
_TICKS: Final = (20, 50, 100, 200, 500, 1_000, 2_000, 5_000)  # traces
_COLORS: Final = (BLUE, ORANGE, SKY, VERMILLION)
_DASHES: Final = ("solid", "dash", "dot", "dashdot")


def power_curve(curves: pd.DataFrame, *, goal: float) -> go.Figure:
    """The power over traces (`study.study_curves`), with a line at the power that is wanted."""
    figure = _lines(curves, "power", scale=1.0)
    figure.add_hline(y=goal, line={"width": 1, "dash": "dot", "color": GRID})
    return _finished(figure, y_title="Power", limits=(0, 1.02))


def width_curve(curves: pd.DataFrame, *, goal: float) -> go.Figure:
    """The width of the 95 % interval over traces, in points, with a line at the width that is wanted."""
    figure = _lines(curves, "width", scale=100.0)
    figure.add_hline(y=100 * goal, line={"width": 1, "dash": "dot", "color": GRID})
    return _finished(figure, y_title="Width of the 95 % interval, points")


def _lines(curves: pd.DataFrame, column: str, *, scale: float) -> go.Figure:
    figure = go.Figure()
    for place, (repeats, part) in enumerate(curves.groupby("repeats")):
        name = f"{repeats} repeat" + ("" if repeats == 1 else "s")
        figure.add_scatter(
            x=part["traces"],
            y=scale * part[column],
            mode="lines",
            name=name,
            line={"color": _COLORS[place % len(_COLORS)], "dash": _DASHES[place % len(_DASHES)], "width": 2},
            hovertemplate=f"%{{x:,}} traces, {name}: %{{y:.3g}}<extra></extra>",
        )
    return figure


def _finished(figure: go.Figure, *, y_title: str, limits: tuple[float, float] | None = None) -> go.Figure:
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 8, "r": 16, "t": 40, "b": 8},
        legend=LEGEND,
        showlegend=True,
        font={"size": 13},
        hovermode="closest",
        dragmode=False,
    )
    figure.update_xaxes(title="Traces", type="log", gridcolor=GRID, automargin=True, tickvals=_TICKS)
    figure.update_yaxes(title=y_title, gridcolor=GRID, automargin=True, range=limits, rangemode="tozero")
    return figure
