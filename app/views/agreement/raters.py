"""The view Raters: people and judges in pairs, the human ceiling, votes of the majority."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from tracejury.app import estimates
from tracejury.app.components import charts, layout
from tracejury.app.components.data_table import cell_table, chosen_cell, chosen_row, data_table
from tracejury.app.components.drilldown import chosen_point, listing
from tracejury.app.components.estimate_text import (
    FEW_NOTE,
    definition,
    estimate_column,
    greyed,
    is_dark,
    plain,
    title_of,
    wide_table,
)
from tracejury.app.components.headline import headline
from tracejury.app.components.judges import split_labels
from tracejury.app.datasets import open_to_me
from tracejury.app.estimates import estimate
from tracejury.app.painting import paint
from tracejury.app.placeholders import with_placeholder
from tracejury.app.session import link_params
from tracejury.app.views.agreement.cards import card, few_names, plot
from tracejury.app.views.agreement.drilldowns import (
    compare_link,
    drill_into_ceiling,
    drill_into_raters,
    listed,
    open_trace,
)
from tracejury.app.views.agreement.slices import people_slices_card
from tracejury.judging.agreement import majority
from tracejury.judging.agreement.error_rates import RATES
from tracejury.judging.agreement.frames import DIMENSION_ORDER
from tracejury.judging.agreement.inputs import InputName, Inputs
from tracejury.judging.agreement.matchers import ALL, decided_by_both
from tracejury.judging.agreement.raters import PAIR_METRICS
from tracejury.judging.reports.filters import Filters

CEILING_TITLES = {"pair_alpha" if name == "alpha" else name: metric.title for name, metric in PAIR_METRICS.items()}
"""By the names of `people_estimates`: those of a judge and its reference."""


def raters_view(filters: Filters, inputs: Inputs) -> None:
    if estimate(filters, "rated")["rater"].nunique() < 2:
        st.info("Two or more raters (people or judges) must score the same dimension before they can be compared.")
    else:
        people = inputs.people_estimates[inputs.people_estimates["metric"] == "exact"]
        people = split_labels(people.assign(label=people["dimension"]))
        headline(people, title="Exact accuracy between people", about=definition("exact"))
        paint("raters")
        with st.container(border=True):
            raters_card(filters)
        with st.container(border=True):
            ceiling_card(filters, inputs)
    with st.container(border=True):
        error_ceiling_card(filters, inputs)
    with st.container(border=True):
        people_slices_card(filters)
    if filters.reference == majority.MAJORITY:
        with st.container(border=True):
            majority_card(filters)
    for decided in DECIDERS:
        with st.container(border=True):
            st.fragment(deciders_card, key=f"card-{decided}")(filters, decided=decided)


@card(
    "raters", "Every pair of raters", "People and judges on the traces that both scored; n is the overlap.", height=520
)
def raters_card(filters: Filters) -> None:
    rated = set(estimate(filters, "rated")["dimension"])
    dimensions = [d for d in DIMENSION_ORDER if d in rated]
    with st.container(horizontal=True):
        dimension = st.selectbox("Dimension", dimensions, key="raters_dimension", width=160)
        metric = st.selectbox(
            "Metric", list(PAIR_METRICS), index=list(PAIR_METRICS).index("ac2"), key="raters_metric", width=240,
            format_func=lambda name: PAIR_METRICS[name].title,
        )  # fmt: skip
    pairs = estimate(filters, "rater_pairs", str(dimension))
    left, right = st.columns([1, 1])
    with left:
        event = plot(
            charts.rater_grid(pairs, metric=str(metric), title=PAIR_METRICS[str(metric)].title, is_dark=is_dark()),
            key="chart-raters",
            alt="Raters",
        )
        of_pair = chosen_point(event)
    paint("raters")
    with right:
        items = open_to_me(estimate(filters, "item_marks", str(dimension)))
        event = plot(charts.item_strip(items), key="chart-items", alt="Raters by items")
        point = chosen_point(event)
        if point is None:
            st.caption("Items with the largest differences come first. Click an item to open it.")
        else:
            open_trace(compare_link(filters, trace=str(point[0])), key="items-open")
    if of_pair is not None:
        drill_into_raters(filters, str(dimension), str(metric), str(of_pair[0]), str(of_pair[1]))
    undefined = pairs[pairs["n"] == 0]
    if len(undefined):
        names = few_names(f"{p.rater_a} and {p.rater_b}" for p in undefined.itertuples())
        st.caption(f"No common trace: {plain(names)}.")


@card(
    "ceiling",
    "Human ceiling",
    "The judge's metrics between people, on traces that two or more people scored.",
    height=320,
)
def ceiling_card(filters: Filters, inputs: Inputs) -> None:
    people = inputs.people_estimates[inputs.people_estimates["n"] > 0]
    table = people.drop_duplicates(["dimension", "split"])
    if table.empty:
        st.caption("No trace was scored by two people, so there is no human ceiling yet. Try: a queue with overlap.")
        return
    shown, few = wide_table(people, list(CEILING_TITLES), ["dimension", "split"])
    titles: dict[str, ColumnConfig] = {
        name: estimate_column(shown[name], title, definition(name)) for name, title in CEILING_TITLES.items()
    }
    whose = shown[["dimension", "split"]].to_numpy().tolist()
    raters = table.set_index(["dimension", "split"])["raters"]
    shown.insert(2, "raters", [int(raters.loc[tuple(key)]) for key in whose])
    shown = shown if shown["split"].nunique() > 1 else shown.drop(columns="split")
    event = st.dataframe(
        greyed(shown, few), hide_index=True, height="auto", key="ceiling", on_select="rerun",
        selection_mode="single-row", column_config={**titles}, alt="Human ceiling",
    )  # fmt: skip
    row = chosen_row(event, len(whose))
    if row is not None:
        listed(filters, estimate(filters, "rows_for_people", *whose[row]), key="rows-ceiling")
    else:
        st.caption("Value [95 % interval] over n traces. Select a row to list them. " + FEW_NOTE)


@card(
    "error-ceiling",
    "Human ceiling for errors",
    "One person's errors against another person in the judge's place: same matcher, blind labels, all pairs of people.",
    height=320,
)
def error_ceiling_card(filters: Filters, inputs: Inputs) -> None:
    table = inputs.error_ceiling[inputs.error_ceiling["impact"] == "all"]
    table = table[table.groupby(["dimension", "split", "kind"])["n"].transform("max") > 0]  # undefined ones say why
    if table.empty:
        st.caption(
            "No trace with an error was submitted by two people, so there is no ceiling yet. Try: a queue with overlap."
        )
        return
    shown, few = wide_table(table, RATES, ["dimension", "split", "kind"])
    whose = shown[["dimension", "split", "kind"]].to_numpy().tolist()
    shown = shown if shown["split"].nunique() > 1 else shown.drop(columns="split")
    rates: dict[str, ColumnConfig] = {
        name: estimate_column(shown[name], title_of(name), definition(name)) for name in RATES
    }
    event = st.dataframe(
        greyed(shown, few), hide_index=True, height="auto", width="content",
        column_config={**rates}, key="error-ceiling",
        on_select="rerun", selection_mode="single-cell", alt="Human ceiling for errors",
    )  # fmt: skip
    cell = chosen_cell(event, len(whose))
    if cell is not None and cell[1] in RATES:
        dimension, split, kind = whose[cell[0]]
        drill_into_ceiling(filters, f"{kind}.{cell[1]}", "", dimension, split, key="rows-error-ceiling")
    st.caption(
        "Click an estimate to list its comparisons. any: the other person reported the error under any dimension. "
        "Over both directions, its precision and F1 equal its recall. " + FEW_NOTE
    )


@with_placeholder(height=200)
def deciders_card(filters: Filters, *, decided: str) -> None:
    """People who decided the same things, about which `DECIDERS` says its words."""
    title, about, nobody, counts, table_of = DECIDERS[decided]
    layout.title(title, about)
    inputs = estimates.inputs(filters)
    table = table_of(inputs)
    if table.empty:
        st.caption(nobody)
        return
    row = data_table(table, digits=3, key=decided, is_chosen=True)
    if ALL in set(table.iloc[:, 0]):
        st.caption("all: everyone, where there are three or more people; its alpha covers all of them.")
    if row is None:
        st.caption("Select a row to list the decisions of both.")
        return
    first, second = map(str, table.iloc[row, :2])
    both = decided_by_both(inputs.frame(counts), first, second)
    chosen = listing(open_to_me(both), key=f"rows-{decided}")
    if chosen is not None:
        open_trace(decided_link(filters, chosen), key=f"{decided}-open")


def decided_link(filters: Filters, row: Mapping[str, Any]) -> dict[str, str]:
    """The address of a pair, or of a finding alone, under the judge whose finding and the person whose error it is."""
    finding, findings, errors = str(row["finding_id"]), estimate(filters, "findings"), estimate(filters, "error_pairs")
    of = findings[findings["finding_id"].astype(str) == finding]["judge_model"]
    label = str(row.get("label_id") or "")
    by = errors[errors["error_id"] == label]["annotator"]
    return link_params(
        trace=str(row["trace_id"]), judge_model=None if of.empty else str(of.iloc[0]), pair=f"{label}|{finding}",
        person=None if by.empty else str(by.iloc[0]),
    )  # fmt: skip


DECIDERS: dict[str, tuple[str, str, str, InputName, Callable[[Inputs], pd.DataFrame]]] = {
    "matcher_agreement": (
        "Matchers",
        "Agreement beyond chance between people who decided the same matches.",
        "No two people have decided matches yet.",
        "match_decisions",
        lambda inputs: inputs.matcher_agreement,
    ),
    "reviewer_agreement": (
        "Reviews of unmatched findings",
        "Agreement beyond chance between people who reviewed the same findings as valid new errors, false alarms "
        "or duplicates.",
        "No two people have reviewed the same findings yet.",
        "finding_decisions",
        lambda inputs: inputs.reviewer_agreement,
    ),
}


@card(
    "majority",
    "Votes of the majority",
    "On traces that two or more people submitted. A score counts when more than half of those who answered gave "
    "it; an error counts when more than half of the people on the trace marked it.",
    height=260,
)
def majority_card(filters: Filters) -> None:
    table = estimate(filters, "table.majority_votes")
    cell = cell_table(table, key="majority")
    if cell is None:
        st.caption("Click a number to list its votes.")
    else:
        votes = rows_for_votes(estimate(filters, "votes"), str(table["about"].iloc[cell[0]]), cell[1])
        row = listing(open_to_me(votes), key="rows-majority")
        if row is not None:
            link = compare_link(filters, trace=str(row["trace_id"]), dimension=str(row["about"]))
            open_trace(link, key="rows-majority-open")
    st.caption(
        "Tied: exactly half; minority: fewer; one person: nobody else answered. None of them is part of the "
        "majority: such a score is left out and counted as missing, such an error is not an error of the "
        "majority, and a finding that matches no other error counts as unmatched. Because each person has a vote "
        "in the majority, nobody's agreement with it is a ceiling; the human ceiling compares people in pairs."
    )


def rows_for_votes(votes: pd.DataFrame, about: str, column: str) -> pd.DataFrame:
    """The votes on a dimension, or on errors, that a column of `majority.vote_table` counts."""
    rows = votes[votes["about"] == about]
    several = rows[rows["outcome"] != "one person"]
    outcome = column.replace("_", " ")
    if outcome in majority.OUTCOMES:
        return rows[rows["outcome"] == outcome]
    return several[several["votes"] == several["people"]] if column == "unanimous" else several
