"""Charts of recall: by the confidence of matches, over periods of labelling, beside what a judge model costs."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from tracejury.app.components.charts.style import GREY, finished, series_color, shortened
from tracejury.judging.agreement.estimate import TOO_FEW

HEIGHT = 360
CONFIRMED = 1.05
"""Where the axis of confidences has the matches that people confirmed."""


def threshold_lines(table: pd.DataFrame) -> go.Figure:
    """One line per judge: recall over the confidence from which proposed matches count; a diamond: confirmed alone.

    `table`: `match_rates.match_thresholds` with a `label` for each judge. `customdata` is (label, low, high, n).
    """
    figure = go.Figure()
    for place, (label, part) in enumerate(table.groupby("label", sort=False)):
        look = {"legendgroup": str(place), "name": shortened(str(label))}
        color = series_color(place)
        known = part.dropna(subset=["recall"])
        figure.add_scatter(
            x=known["threshold"], y=known["recall"], mode="lines+markers", line={"color": color}, **look,
            marker={"size": 8, "symbol": _filled(known, "circle")},
            customdata=known[["label", "recall_low", "recall_high", "n"]].to_numpy(),
            hovertemplate="%{customdata[0]}, confidence from %{x}<br>" + _ESTIMATE,
        )  # fmt: skip
        alone = part.dropna(subset=["confirmed_recall"]).head(1)
        names = [f"confirmed_recall{end}" for end in ("", "_low", "_high")]
        value, low, high = (alone[name] for name in names)
        figure.add_scatter(
            x=[CONFIRMED] * len(alone), y=value, mode="markers", showlegend=False, **look,
            marker={"color": color, "symbol": _filled(alone, "diamond"), "size": 10}, error_y=_bars(value, low, high),
            customdata=alone[["label", *names[1:], "n"]].to_numpy(),
            hovertemplate="%{customdata[0]}, confirmed matches alone<br>" + _ESTIMATE,
        )  # fmt: skip
    ticks = [0.45, 0.55, 0.65, 0.75, 0.85, 0.95, CONFIRMED]
    figure.update_xaxes(
        title="minimum confidence of a proposed match", tickvals=ticks, range=[0.42, CONFIRMED + 0.06],
        ticktext=[*(f"{tick:.2f}" for tick in ticks[:-1]), "confirmed"], zeroline=False,
    )  # fmt: skip
    return _of_recall(figure)


_ESTIMATE = "recall %{y:.3f} [%{customdata[1]:.3f}, %{customdata[2]:.3f}], n = %{customdata[3]:,}<extra></extra>"


def cost_front(table: pd.DataFrame, *, spent: str, title: str) -> go.Figure:
    """Dollars or tokens per trace against recall or F1, one mark per judge model; a line joins those unbeaten in both.

    `table`: `costs.cost_agreement` of one metric, with a `label` for each judge model; `spent` names its column across.
    The front is by the estimates in dollars, and is drawn over dollars alone. `customdata` is (label, low, high, n,
    spent_low, spent_high, spent_n).
    """
    figure = go.Figure()
    front = table[table["on_front"].eq(True)].sort_values([spent, "value"])
    if spent == "cost_usd":
        figure.add_scatter(
            x=front[spent], y=front["value"], mode="lines", line={"color": GREY, "dash": "dot", "shape": "hv"},
            hoverinfo="skip", name="front", showlegend=False,
        )  # fmt: skip
    ends = [f"{spent}_low", f"{spent}_high"]
    for place in range(len(table)):
        part = table.iloc[[place]]
        symbol = "diamond" if part["on_front"].eq(True).all() else "circle"
        figure.add_scatter(
            x=part[spent], y=part["value"], mode="markers", name=shortened(str(part["label"].iloc[0])),
            marker={"color": series_color(place), "size": 11, "symbol": _filled(part, symbol)},
            error_y=_bars(part["value"], part["low"], part["high"]),
            error_x=_bars(part[spent], *(part[end] for end in ends)),
            cliponaxis=False, customdata=part[["label", "low", "high", "n", *ends, f"{spent}_n"]].to_numpy(),
            hovertemplate="%{customdata[0]}<br>%{x} [%{customdata[4]}, %{customdata[5]}] per trace, over "
                "%{customdata[6]:,} traces<br>%{y:.3f} [%{customdata[1]:.3f}, %{customdata[2]:.3f}], n = "
                "%{customdata[3]:,}<extra></extra>",
        )  # fmt: skip
    is_far = bool((table[spent] > 0).all()) and table[spent].max() > 20 * table[spent].min()
    figure.update_xaxes(title=title, type="log" if is_far else "linear", rangemode="tozero", zeroline=False)
    return _of_share(figure, str(table["metric"].iloc[0]) if len(table) else "")


def _bars(value: pd.Series, low: pd.Series, high: pd.Series) -> dict[str, object]:
    """Bars of an interval, thin; none where it is unknown."""
    return {
        "type": "data", "symmetric": False, "array": high - value, "arrayminus": value - low, "thickness": 1.2,
        "width": 4,
    }  # fmt: skip


def _filled(rows: pd.DataFrame, symbol: str) -> list[str]:
    """The symbol of each row, hollow where n < 10."""
    return [symbol if n >= TOO_FEW else f"{symbol}-open" for n in rows["n"]]


def _of_recall(figure: go.Figure) -> go.Figure:
    return _of_share(figure, "recall")


def _of_share(figure: go.Figure, title: str) -> go.Figure:
    figure.update_yaxes(title=title, range=[-0.02, 1.02], tickformat=".1f", zeroline=False)
    return finished(figure, height=HEIGHT)


def period_dots(table: pd.DataFrame) -> go.Figure:
    """Recall with its interval in each period of labelling, one line per judge.

    `table`: `over_time.recall_by_period` of one kind of period, with a `label` for each judge.
    """
    figure = go.Figure()
    for place, (label, part) in enumerate(table.groupby("label", sort=False)):
        known, color = part.dropna(subset=["recall"]), series_color(place)
        figure.add_scatter(
            x=known["period"], y=known["recall"], mode="lines+markers", name=shortened(str(label)),
            line={"color": color}, marker={"size": 8, "symbol": _filled(known, "circle")},
            error_y=_bars(known["recall"], known["recall_low"], known["recall_high"]),
            customdata=known[["label", "recall_low", "recall_high", "n", "traces"]].to_numpy(),
            hovertemplate="%{customdata[0]}, %{x}, %{customdata[4]:,} traces<br>" + _ESTIMATE,
        )  # fmt: skip
    periods = sorted(table["period"].unique())
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=periods)
    return _of_recall(figure)
