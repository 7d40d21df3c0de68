"""Charts of errors: what judges caught, missed and found beside people: a frame in, a plotly figure out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from tracejury.app.components.charts.style import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    GRID,
    HEAD,
    ORANGE,
    PURPLE,
    ROW,
    SCORE_COLORS,
    SKY,
    VERMILLION,
    faint,
    finished,
    name_rows,
    narrow,
    shortened,
    squares,
)
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.frames import DIMENSION_ORDER, IMPACTS, KINDS
from tracejury.judging.agreement.marks import found_first
from tracejury.judging.agreement.metric import Best, Metric

PALE_ORANGE = "#F6D58C"
KIND_COLORS: Final = {"caught": SKY, "localized": BLUE}
LEVELS: Final = (("missed", GREY), ("caught", SKY), ("localized", BLUE))
MATCH_COLORS: Final = {
    "localized": BLUE, "caught": SKY, "missed": GREY, "unmatched": VERMILLION, "not proposed yet": PURPLE,
}  # fmt: skip
LANES_HEIGHT = 170  # pixels, of the timeline of both sides
WHOSE: Final = ["judge_model", "dimension", "split"]
"""Of which judge a mark is: the first of its `customdata`."""
BEST: Final[dict[Best, str]] = {"high": "higher is better", "low": "lower is better", "zero": "0 is best"}
CEILING: Final = "between people"
"""Last of the `customdata` of a mark of what people reach."""


def forest(estimates: pd.DataFrame, *, title: str, metric: Metric | None = None) -> go.Figure:
    """One row per judge: estimate and 95 % interval, hollow where n < 10; undefined ones are named; all can be clicked.

    `metric` gives the ends of the axis, which way is good, and the line of the best value; without it 0 to 1.

    `estimates`: label, value, low, high, n, reason; optional judge_model, dimension, split (`customdata` begins with
    them); optional ceiling, ceiling_low, ceiling_high: what people reach among themselves on the same dimension, drawn
    as a band behind the row.
    """
    rows, limits = estimates.reset_index(drop=True), (0.0, 1.0) if metric is None else metric.limits
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
            x=limits[0], y=y, text=f"n/a: {reason}", showarrow=False, xanchor="left", font={"color": GREY}, hovertext=y
        )
    name_rows(
        figure,
        list(rows["row"]),
        [f"{shortened(str(label))}  (n {n:,})" for label, n in zip(rows["label"], rows["n"], strict=True)],
    )
    figure.update_xaxes(title=title if metric is None else f"{title} ({BEST[metric.best]})", range=_padded(limits),
                        zeroline=False)  # fmt: skip
    if metric is not None and metric.aim is not None:
        figure.add_vline(x=metric.aim, line={"color": GREY, "width": 1, "dash": "dot"})
    return finished(figure, height=HEAD + ROW * max(len(rows), 2), legend=len(figure.data) > 1)


def ranks(table: pd.DataFrame) -> go.Figure:
    """One row per judge model, best first: its rank and the ranks that cannot be ruled out.

    `table` as `ranking.rank_table` gives it for one split, ranks known. `customdata` is (judge_model, recall, n).
    """
    figure = go.Figure()
    figure.add_scatter(
        x=table["rank"], y=table["judge_model"], mode="markers", marker={"color": BLUE, "size": 9},
        error_x=_bars(table["rank"], table["rank_low"], table["rank_high"]),
        customdata=table[["judge_model", "recall", "n"]].to_numpy(),
        hovertemplate="%{customdata[0]}: rank %{x}<br>recall %{customdata[1]:.3f}, n = %{customdata[2]:,}"
        "<extra></extra>",
    )  # fmt: skip
    names = list(table["judge_model"])
    name_rows(figure, names, names)
    figure.update_xaxes(
        title="rank by errors caught (1 is best)", range=[0.5, len(table) + 0.5], tick0=1, dtick=1 + len(table) // 10,
        zeroline=False,
    )  # fmt: skip
    return finished(figure, height=HEAD + ROW * max(len(table), 2), legend=False)


def impact_bars(coverage: pd.DataFrame) -> go.Figure:
    """Coverage by impact, caught beside localized, one panel a judge; n under each impact, faint where n < 10.

    `coverage` as `errors.coverage_of` gives it, with a `label` for the panel; with ceiling, ceiling_low,
    ceiling_high and ceiling_n a line across each bar says what people reach. `customdata` begins with (judge_model,
    dimension, split, impact, kind); that of a line ends with `CEILING`.
    """
    labels = list(dict.fromkeys(coverage["label"]))
    columns = min(3 if len(labels) > 4 else 2, max(1, len(labels)))
    lines = max(1, math.ceil(len(labels) / columns))
    titles = [shortened(str(label), 24 if columns == 3 else 34) for label in labels]
    figure = make_subplots(
        rows=lines, cols=columns, shared_yaxes=True, subplot_titles=titles, vertical_spacing=0.45 / lines,
        horizontal_spacing=0.05,
    )  # fmt: skip
    figure.update_annotations(font={"size": 13})
    for note, label in zip(figure.layout.annotations, labels, strict=True):
        note.hovertext = str(label)
    for place, label in enumerate(labels):
        rows = coverage[coverage["label"] == label]
        for kind in KINDS:
            bars = rows[rows["kind"] == kind].set_index("impact").reindex(index=list(IMPACTS))
            bars = bars.reindex(columns=[*bars.columns.union(WHOSE, sort=False)])
            bars[WHOSE] = bars[WHOSE].ffill().bfill()
            _impact_bar(figure, bars, kind, 1 + place // columns, 1 + place % columns, is_first=place == 0)
            if "ceiling" in bars:
                _impact_ceiling(figure, bars, kind, 1 + place // columns, 1 + place % columns)
    _name_ceiling(figure, coverage)
    figure.update_yaxes(range=[0, 1.05], tickformat=".0%", showgrid=True, gridcolor=GRID)
    figure.update_layout(barmode="group", bargap=0.25, bargroupgap=0.05, scattermode="group", scattergap=0.25)
    figure.update_xaxes(tickangle=0, tickfont={"size": 11})
    finished(figure, height=80 + 190 * lines)
    return figure.update_layout(margin={"t": 56})  # the panels' titles stand where other charts begin


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
        rows = pairs[pairs["level"] == level]
        figure.add_scatter(
            x=[place[error] for error in rows["error_id"]],
            y=rows["label"],
            mode="markers",
            name=f"{name} ({len(rows) if counts is None else counts[level]:,})",
            marker=narrow(size, color) | {"opacity": 0.45 if level == 0 else 1},
            customdata=rows[["trace_id", "error_id", "label", "impact"]].to_numpy(),
            hovertemplate="%{customdata[2]}: "
            + name
            + "<br>%{customdata[3]} impact, trace %{customdata[0]}<extra></extra>",
        )
    figure.update_xaxes(
        title="reference errors, those that most judges caught first", showticklabels=False, showgrid=False,
        range=[-1, max(len(place), 12)],
    )  # fmt: skip
    name_rows(figure, labels)
    return finished(figure, height=HEAD + ROW * max(len(labels), 2))


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
            customdata=part.assign(predicted=part["tp"] + part["fp"])[_RATE_COLUMNS].to_numpy(),
            hovertemplate="%{customdata[4]}, %{customdata[3]}"
            "<br>precision %{y:.3f} [%{customdata[5]:.3f}, %{customdata[6]:.3f}], n = %{customdata[7]:,}"
            "<br>recall %{x:.3f} [%{customdata[8]:.3f}, %{customdata[9]:.3f}], n = %{customdata[10]:,}<extra></extra>",
        )
    if people is not None and len(people):
        _map_ceiling(figure, people.dropna(subset=["precision", "recall"]))
    caught = known[known["kind"] == "caught"]
    for text, x, y in zip(_uncrowded(caught), caught["recall"], caught["precision"], strict=True):
        figure.add_annotation(x=x, y=y, text=shortened(text), showarrow=False, yshift=14, font={"size": 12})
    figure.update_xaxes(title="recall (coverage)", range=[-0.03, 1.12])
    figure.update_yaxes(title="precision", range=[-0.03, 1.09])
    return finished(figure, height=420)


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


_RATE_COLUMNS: Final = [
    *WHOSE, "kind", "label", "precision_low", "precision_high", "predicted", "recall_low", "recall_high", "positives",
]  # fmt: skip


def _least(rates: pd.DataFrame) -> NDArray[np.int64]:
    """The smaller n of precision and recall."""
    return np.asarray(np.minimum(rates["tp"] + rates["fp"], rates["positives"]), dtype=np.int64)


def prevalence_bars(prevalence: pd.DataFrame) -> go.Figure:
    """Share of each score by reference and by judge, stacked, pale where n < 10; each part can be clicked.

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
        of_score = rows[rows["score"] == score]
        figure.add_bar(
            x=of_score["share"],
            y=of_score["row"],
            orientation="h",
            name=str(score),
            marker={"color": color, "opacity": np.where(of_score["n"] < TOO_FEW, FAINT, 1.0)},
            customdata=of_score[[*WHOSE, "side", "score", "count", "n", "share_low", "share_high"]].to_numpy(),
            hovertemplate="score "
            + str(score)
            + ": %{customdata[5]} of %{customdata[6]} (%{x:.0%}) [%{customdata[7]:.0%}, %{customdata[8]:.0%}]"
            "<extra>%{y}</extra>",
        )
    figure.update_layout(barmode="stack", legend={"title": {"text": "score"}, "traceorder": "normal"})
    figure.update_xaxes(title="share of traces scored by both", tickformat=".0%", range=[0, 1])
    name_rows(
        figure,
        order,
        [" · ".join((shortened(row[: row.rindex(" · ")], 28), row[row.rindex(" · ") + 3 :])) for row in order],
    )
    figure.update_yaxes(showgrid=False)  # its lines would show through pale bars
    return finished(figure, height=HEAD + 22 * max(len(order), 2))


def paired_dots(differences: pd.DataFrame, *, left: str, right: str) -> go.Figure:
    """Two sides of each metric joined by a line; bold where the interval of the difference leaves out 0.

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
    name_rows(figure, labels)
    figure.update_xaxes(title="value on each side, 0 to 1", range=_padded((0, 1)))
    return finished(figure, height=HEAD + ROW * max(len(labels), 2))


def lanes(marks: pd.DataFrame, *, spans: int) -> go.Figure:
    """One trace as two lanes, annotator and judge: where their errors stand, what each came to; marks can be clicked.

    `marks`: key, lane (annotator, judge), seq, state (localized, caught, missed, unmatched, not proposed yet), label,
    is_valid (a cited id that exists). `customdata` is (key, label).
    """
    figure = go.Figure()
    for state, color in MATCH_COLORS.items():
        of_state = marks[marks["state"] == state]
        if of_state.empty:
            continue
        figure.add_scatter(
            x=of_state["seq"] + 1,
            y=of_state["lane"],
            mode="markers",
            name=state,
            marker={
                "color": color,
                "size": 13,
                "symbol": ["diamond" if valid else "x" for valid in of_state["is_valid"]],
                "line": {"width": 1, "color": GREY},
            },
            customdata=of_state[["key", "label"]].to_numpy(),
            hovertemplate="%{customdata[1]}<br>S%{x}<extra>" + state + "</extra>",
        )
    figure.update_xaxes(title="span, in reading order", tickprefix="S", range=[0.2, spans + 0.8], zeroline=False)
    figure.update_yaxes(categoryorder="array", categoryarray=["judge", "annotator"], range=[-0.5, 1.5])
    return finished(figure, height=LANES_HEIGHT)


def pair_grid(counts: pd.DataFrame, *, order: Sequence[str], is_dark: bool = False) -> go.Figure:
    """How often two names occur together: a square grid of counts (`counts`: a, b, count, which are `customdata`)."""
    most = max(int(counts["count"].max()) if len(counts) else 0, 1)
    figure = squares(
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
    return finished(figure, height=HEAD + 38 * max(len(order), 1), legend=False)


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
    color = [ORANGE if count >= TOO_FEW else faint(ORANGE) for count in known["ceiling_n"]]
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


def _by_model_and_dimension(label: str) -> tuple[str, int]:
    """Judges of one model stand together, in the order of the tables."""
    model, _, dimension = label.rpartition(" ")
    return (model, DIMENSION_ORDER.index(dimension)) if dimension in DIMENSION_ORDER else (label, -1)


def _padded(limits: tuple[float, float]) -> list[float]:
    reach = (limits[1] - limits[0]) * 0.03
    return [limits[0] - reach, limits[1] + reach]
