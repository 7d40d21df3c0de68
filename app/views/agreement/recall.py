"""Cards of recall: by the confidence of matches, over periods of labelling, beside what judge models cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from tracejury.app.components import charts
from tracejury.app.components.data_table import data_table
from tracejury.app.components.estimate_text import aligned, cell_text, estimate_text, plain, wide_cell_text, with_labels
from tracejury.app.components.judges import split_labels
from tracejury.app.estimates import estimate
from tracejury.app.views.agreement.cards import card, few_names, plot, why_no_errors
from tracejury.judging.agreement.costs import NOT_RECORDED, VALUES
from tracejury.judging.agreement.estimate import TOO_FEW, reason_of
from tracejury.judging.agreement.match_rates import why_no_recall, why_undefined
from tracejury.judging.agreement.rounding import half_up
from tracejury.judging.reports.filters import Filters


@card(
    "thresholds",
    "Recall by the confidence of matches",
    "Share of the reference errors that any judge of a judge model caught, when a proposed match counts only from "
    "a given confidence up; at the far right, only matches that people confirmed count. Proposals below the "
    "confidence are dropped and errors are not matched again; matching again could only add matches.",
    height=420,
)
def thresholds_card(filters: Filters) -> None:
    table = estimate(filters, "table.match_thresholds")
    table = split_labels(table.assign(label=table["judge_model"]))
    drawn = table[table["recall"].notna() | table["confirmed_recall"].notna()]
    if len(drawn):
        plot(charts.threshold_lines(drawn), key="chart-thresholds", alt="Recall by the confidence of matches")
        st.caption(f"Hover for the 95 % interval and n. Hollow: n < {TOO_FEW}.")
    for reason, names in not_drawn(table).items():
        st.caption(plain(f"Not drawn, {reason}: {few_names(names)}."))


def not_drawn(table: pd.DataFrame) -> dict[str, list[str]]:
    """The judges of `match_rates.match_thresholds` whose recall, or that of confirmed matches, is undefined, by why."""
    reasons: dict[str, list[str]] = {}
    for row in table.drop_duplicates("label").to_dict("records"):
        empty = [name for name in ("recall", "confirmed_recall") if pd.isna(row[name])]
        for reason in dict.fromkeys(why_no_recall(row, name) for name in empty):
            reasons.setdefault(reason, []).append(str(row["label"]))
    return reasons


@card(
    "periods",
    "Recall over time",
    "Share of the reference errors that any judge of a judge model caught, by guideline version or by the ISO week "
    "in which the reference's labels were submitted, with its 95 % interval by trace. Drift: a permutation test of all "
    "periods, with whole traces exchanged.",
    height=420,
)
def periods_card(filters: Filters) -> None:
    by = st.segmented_control(
        "Periods", list(PERIODS), default="week", format_func=PERIODS.__getitem__, required=True, key="periods_by",
        label_visibility="collapsed",
    )  # fmt: skip
    table = estimate(filters, "table.recall_by_period")
    table = table[table["by"] == by].assign(label=lambda rows: rows["judge_model"])
    if not int(table["n"].sum()):
        st.caption(why_no_errors(filters))
        return
    plot(charts.period_dots(table), key="chart-periods", alt="Recall over time")
    st.caption(plain(f"{drift_words(table)} Hover for n. Hollow: n < {TOO_FEW}."))


PERIODS = {"week": "weeks", "guideline": "guideline versions"}


def drift_words(table: pd.DataFrame) -> str:
    """The drift of each judge model in words; of one period that there is none to test."""
    if table["period"].nunique() < 2:
        return f"There is only one period ({table['period'].iloc[0]}); drift needs two."
    tested = table.drop_duplicates("label").dropna(subset=["drift_p"])
    each = [f"{label} p = {half_up(p, 3)}" for label, p in zip(tested["label"], tested["drift_p"], strict=True)]
    return f"Drift: {', '.join(each)}." if each else "Drift needs two periods with errors that were matched."


@card(
    "costs",
    "Cost against agreement",
    "What all judges of a judge model cost or took per trace (a reply from the cache counts at its original "
    "cost), against its recall by any judge or the F1 of all its judges together. Diamonds are on the front: no "
    "other judge model is both as cheap and as good. The front goes by the estimates alone; intervals may overlap.",
    height=520,
)
def costs_card(filters: Filters) -> None:
    with st.container(horizontal=True):
        metric = st.segmented_control(
            "Metric", VALUES, default="recall", format_func={"recall": "Recall", "f1": "F1"}.__getitem__,
            required=True, key="costs_metric", label_visibility="collapsed",
        )  # fmt: skip
        spent = st.segmented_control(
            "Spent", list(SPENT_WORDS), default="cost_usd", format_func=SPENT_WORDS.__getitem__, required=True,
            key="costs_spent", label_visibility="collapsed",
        )  # fmt: skip
    table = estimate(filters, "table.cost_agreement")
    table = split_labels(table[table["metric"] == metric].assign(label=lambda rows: rows["judge_model"]))
    drawn = table.dropna(subset=["value", str(spent)])
    if table.empty:
        st.caption(why_no_errors(filters))
        return
    if len(drawn):
        chart = charts.cost_front(drawn, spent=str(spent), title=SPENT_WORDS[str(spent)])
        plot(chart, key="chart-costs", alt="Cost against agreement")
    data_table(cost_cells(table), key="costs", columns=dict.fromkeys((str(metric), *SPENT_WORDS.values()), RIGHT))
    st.caption(
        "Value [95 % interval] and n: errors (of F1 pairs of an error and a judge), or traces with a record. The front "
        "is among judge models whose cost is recorded. "
        f"Hollow: n < {TOO_FEW}."
    )


SPENT_WORDS = {"cost_usd": "dollars per trace", "tokens": "tokens per trace"}
RIGHT = st.column_config.TextColumn(alignment="right")


def cost_cells(table: pd.DataFrame) -> pd.DataFrame:
    """`costs.cost_agreement` of one metric in words: estimates with interval and n, or why there is none."""
    rows = table.to_dict("records")
    metric = str(table["metric"].iloc[0])
    front = {True: "on the front", False: "beaten in both", None: "n/a"}
    spent = {words: aligned([_spent_text(row, name) for row in rows]) for name, words in SPENT_WORDS.items()}
    values = aligned([cell_text({**row, "reason": reason_of(row["reason"], "value")}) for row in rows])
    return pd.DataFrame(
        {"judge model": table["label"], metric: values, **spent, "front": [front[row["on_front"]] for row in rows]}
    )


def _spent_text(row: Mapping[Any, Any], name: str) -> str:
    return wide_cell_text(row, name, reason=NOT_RECORDED[name], digits=4 if name == "cost_usd" else 0)


@card(
    "sensitivity",
    "Recall without the matching rule's mistakes",
    "Recall of caught errors according to the matches, and corrected for how often the rule matches an error that "
    "the judge described and how often it leaves one that the judge did not describe (Rogan and Gladen 1978). "
    "Lowest and highest: the recall if the rule only made false matches, or only missed matches.",
    height=320,
)
def sensitivity_card(filters: Filters) -> None:
    table = estimate(filters, "table.match_sensitivity")
    table = split_labels(with_labels(table[(table["impact"] == "all") & (table["positives"] > 0)]))
    if table.empty:
        st.caption(why_no_errors(filters))
        return
    data_table(sensitivity_cells(table), key="sensitivity", columns=dict.fromkeys(SENSITIVITY_WORDS.values(), RIGHT))
    st.caption(plain(rule_words(table.to_dict("records")[0])))


SENSITIVITY_WORDS = {
    "recall": "recall", "recall_corrected": "corrected", "recall_lowest": "lowest", "recall_highest": "highest",
}  # fmt: skip


def sensitivity_cells(table: pd.DataFrame) -> pd.DataFrame:
    """`match_rates.match_sensitivity` in words, one row per judge."""
    rows = table.to_dict("records")
    cells = {words: [_sensitivity_text(row, name) for row in rows] for name, words in SENSITIVITY_WORDS.items()}
    return pd.DataFrame({"judge": table["label"], "errors": table["positives"], **cells})


def _sensitivity_text(row: Mapping[Any, Any], name: str) -> str:
    if pd.isna(row[name]):
        return f"n/a: {why_undefined(row, name)}"
    return estimate_text(row[name], row.get(f"{name}_low"), row.get(f"{name}_high"))


def rule_words(row: Mapping[Any, Any]) -> str:
    """What the matching rule reached, on whose pairs, and whose errors correct."""
    rates = [
        f"{name} {wide_cell_text(row, f'rule_{name}', reason='no labelled pair')}" for name in ("precision", "recall")
    ]
    whose = {"own pairs": "pairs labelled in this workspace", "shipped pairs": "the pairs that the rule ships with"}
    by = "" if row["measured_on"] == row["corrected_by"] else f"; corrected by {whose[row['corrected_by']]}"
    sentence = f"The rule on {whose[row['measured_on']]}: {', '.join(rates)}{by}."
    return f"{sentence} Measure it on these traces: tracejury match sample, then match score."
