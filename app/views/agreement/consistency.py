"""The view Consistency: a judge's repeats against each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from tracejury.app import estimates
from tracejury.app.components import charts
from tracejury.app.components.data_table import chosen_row, words
from tracejury.app.components.drilldown import chosen_point
from tracejury.app.components.estimate_text import (
    FEW_NOTE,
    NO_INTERVAL,
    cell_text,
    definition,
    estimate_column,
    estimate_text,
    greyed,
    plain,
    with_labels,
)
from tracejury.app.components.judges import split_labels
from tracejury.app.datasets import open_to_me
from tracejury.app.estimates import estimate
from tracejury.app.painting import paint
from tracejury.app.placeholders import with_placeholder
from tracejury.app.views.agreement.cards import card, plot
from tracejury.app.views.agreement.drilldowns import compare_link, drill_into_repeats, open_trace, repeat_of
from tracejury.app.views.agreement.slices import consistency_slices_card
from tracejury.judging.agreement.estimate import TOO_FEW, reason_of
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.rounding import half_up
from tracejury.judging.reports.filters import Filters


@with_placeholder(height=700)
def consistency_view(filters: Filters, inputs: Inputs) -> None:
    table = inputs.consistency
    if table.empty or int(table["repeats"].max()) < 2:
        st.info(
            "Consistency needs two or more repeats of the same judge on the same traces. Try: start a run with "
            "repeats on the Runs page, or `tracejury judge --repeats 5`."
        )
        return
    repeated = table[table["repeats"] > 1]
    with st.container(border=True):
        consistency_table(filters, repeated)
    paint("consistency")
    with st.container(border=True):
        repeats_card(filters, with_labels(repeated))
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, height="stretch"):
        alpha_card(filters)
    with right, st.container(border=True, height="stretch"):
        rationale_card(filters)
    with st.container(border=True):
        consistency_slices_card(filters)


@card("consistency", "Consistency over repeats", definition("alpha_interval"), height=300)
def consistency_table(filters: Filters, table: pd.DataFrame) -> None:
    several = ["split"] if table["split"].nunique() > 1 else []
    shown, few = consistency_cells(table, several)
    event = st.dataframe(
        greyed(shown, few), hide_index=True, width="content", height=38 + 35 * min(len(shown), 12), key="consistency",
        on_select="rerun", selection_mode="single-row", alt="Consistency over repeats",
        column_config={
            name: estimate_column(shown[name], words(name), definition(name)) for name in few.columns
        }
        | {name: words(name) for name in ("judge_model", "not_applicable")},
    )  # fmt: skip
    row = chosen_row(event, len(table))
    if row is None:
        st.caption("Value [95 % interval] over n traces. Select a row to list them. " + FEW_NOTE)
        return
    one = table.iloc[row]
    drill_into_repeats(
        filters, str(one["judge_model"]), str(one["dimension"]), str(one["split"]), key="rows-consistency"
    )


CONSISTENCY = {"alpha_interval": "alpha", "mean_sd": "mean_sd", "identical": "identical", "unscored": "unscored"}
"""Estimates of `reliability_table` and the names of their bounds."""


def consistency_cells(table: pd.DataFrame, several: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The estimates of consistency with their intervals, and which of them are grey."""
    shown = table[["judge_model", "dimension", *several, "repeats", "n", "failed", "not_applicable"]].reset_index(
        drop=True
    )
    for name, bounds in CONSISTENCY.items():
        cells = table[[name, f"{bounds}_low", f"{bounds}_high", "reason"]].itertuples(index=False, name=None)
        shown[name] = [_with_bounds(value, low, high, reason_of(why, name)) for value, low, high, why in cells]
    for name in ("p_below_667", "p_below_800"):
        cells = table[[name, "reason"]].itertuples(index=False, name=None)
        shown[name] = [f"n/a: {reason_of(why, name)}" if pd.isna(value) else half_up(value, 3) for value, why in cells]
    is_few = (shown["n"] < TOO_FEW).to_numpy()
    return shown, pd.DataFrame(dict.fromkeys([*CONSISTENCY, "p_below_667", "p_below_800"], is_few))


def _with_bounds(value: float | None, low: float | None, high: float | None, reason: str | None) -> str:
    if value is None or math.isnan(value):
        return f"n/a: {reason}"
    return estimate_text(value, low, high, without=NO_INTERVAL)


@card(
    "repeats",
    "Traces by repeats",
    "Colour: the score of each repeat. Below: the standard deviation over repeats, scores scaled to 0..1.",
    height=560,
)
def repeats_card(filters: Filters, table: pd.DataFrame) -> None:
    label = st.selectbox("Judge", list(dict.fromkeys(table["label"])), key="repeats_judge", width=240)
    judge_model, dimension = table.loc[table["label"] == label, ["judge_model", "dimension"]].iloc[0]
    marks = open_to_me(estimate(filters, "repeat_marks", str(judge_model), str(dimension)))
    event = plot(
        charts.repeat_strip(marks, units=int(marks["units"].iloc[0]) if len(marks) else None),
        key="chart-repeats",
        alt="Score strip",
    )
    point = chosen_point(event)
    if point is not None:
        opened = compare_link(filters, trace=str(point[0]), judge_model=str(judge_model), repeat=repeat_of(point[1]))
        open_trace(opened, key="repeats-open")
    spread = estimate(filters, "repeat_spread", str(judge_model), str(dimension))
    event = plot(charts.spread_histogram(spread["sd"].to_numpy()), key="chart-spread", alt="Standard deviations")
    point = chosen_point(event)
    if point is not None:
        drill_into_repeats(
            filters,
            str(judge_model),
            str(dimension),
            "",
            between=(float(point[0]), float(point[1])),
            key="rows-spread",
        )


@card(
    "alpha",
    "Distribution of alpha",
    "Bootstrap by trace. Below .667, alpha supports no conclusion; from .8 up, it is reliable (Krippendorff).",
    height=420,
)
def alpha_card(filters: Filters) -> None:
    drawn = labelled(filters, estimate(filters, "alpha_samples"))
    table = labelled(filters, estimates.inputs(filters).consistency).set_index("label")
    samples = {str(label): part["alpha"].to_numpy() for label, part in drawn.groupby("label", sort=False)}
    if not samples:
        st.caption("Alpha is undefined for every judge here: no variation, or fewer than two pairable traces.")
        return
    units = {str(label): int(n) for label, n in table["n"].items()}
    event = plot(
        charts.alpha_histogram(samples, order=repeated_labels(filters), units=units),
        key="chart-alpha",
        alt="Bootstrap distribution of alpha",
    )
    point = chosen_point(event)
    if point is None:
        st.caption("n traces each. Click an outline to list its traces.")
        return
    one = table.loc[str(point[0])]
    st.caption(plain(alpha_words(one.to_dict(), draws=len(samples[str(point[0])]))))
    drill_into_repeats(filters, str(one["judge_model"]), str(one["dimension"]), str(one["split"]), key="rows-alpha")


def alpha_words(row: Mapping[Any, Any], *, draws: int) -> str:
    """A judge's alpha with its interval, and how much of its distribution lies below Krippendorff's limits."""
    alpha = cell_text(
        {"value": row["alpha_interval"], "low": row["alpha_low"], "high": row["alpha_high"], "n": row["n"]}
    )
    below = f"P(alpha < .667) {half_up(row['p_below_667'], 3)}, P(alpha < .8) {half_up(row['p_below_800'], 3)}"
    return f"Alpha {alpha} traces; {below}, of {draws:,} defined resamples of these traces"


@card("rationale", "Rationale consistency", definition("sci"), height=420)
def rationale_card(filters: Filters) -> None:
    by_trace = labelled(filters, estimate(filters, "trace_rationales"))
    known = open_to_me(by_trace.dropna(subset=["cosine"]))
    if known.empty:
        st.caption("No judge wrote two rationales for the same trace.")
        return
    event = plot(
        charts.consistency_violins(known, order=repeated_labels(filters)), key="chart-sci", alt="Rationale consistency"
    )
    point = chosen_point(event)
    if point is not None:
        open_trace(compare_link(filters, trace=str(point[0]), judge_model=str(point[1])), key="sci-open")
    by = str(known["vectoriser"].iloc[0])
    st.caption(f"Texts compared by {plain(VECTORISERS.get(by, by))}. A dot is a trace; click it to open it.")


VECTORISERS = {"tfidf char_wb 3-5": "their sequences of 3 to 5 characters, with more weight on rare ones (TF-IDF)"}


def repeated_labels(filters: Filters) -> list[str]:
    """Every judge with a consistency, in the table's order: each has one colour in all charts of the view."""
    return [str(label) for label in labelled(filters, estimates.inputs(filters).consistency)["label"]]


def labelled(filters: Filters, rows: pd.DataFrame) -> pd.DataFrame:
    """With labels as the table of consistency has them: with the split where it holds several."""
    several = estimates.inputs(filters).consistency["split"].nunique() > 1
    return split_labels(with_labels(rows), is_split=several)
