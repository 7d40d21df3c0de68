"""The view A against B: two judges, repeats or people on the same traces."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from tracejury.app import estimates, options
from tracejury.app.components import charts, layout
from tracejury.app.components.data_table import data_table
from tracejury.app.components.drilldown import chosen_point
from tracejury.app.components.estimate_text import counted, definition, plain
from tracejury.app.components.headline import headline
from tracejury.app.estimates import estimate
from tracejury.app.options import ArmOption
from tracejury.app.painting import paint
from tracejury.app.placeholders import with_placeholder
from tracejury.app.views.agreement.cards import plot
from tracejury.app.views.agreement.drilldowns import listed
from tracejury.app.views.agreement.slices import versus_slices_card
from tracejury.judging.agreement.compare import holm
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.reports.estimates import SUITES
from tracejury.judging.reports.filters import Filters


def versus_view(filters: Filters, inputs: Inputs) -> None:
    judge_models = [str(name) for name in estimate(filters, "compared")["judge_model"]]
    sides = options.arms(judge_models, estimates.reference(filters))
    if len(sides) < 2:
        st.info(
            "A comparison needs two sides on the same traces besides the reference: two judges, two repeats of one "
            "judge, a judge and a second person, or two other people."
        )
        return
    versus_card(filters, sides)


@st.fragment(key="card-versus")
@with_placeholder(height=700)
def versus_card(filters: Filters, sides: list[ArmOption]) -> None:
    by_words = {side.words: side for side in sides}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        about = "A judge, one of its versions or repeats, or a person in the judge's place."
        left = str(st.selectbox("Side A", list(by_words), key="side_a", bind="query-params", width=260, help=about))
        right = str(st.selectbox("Side B", list(by_words), index=1, key="side_b", bind="query-params", width=260))
        kind = st.segmented_control(
            "Errors", ["caught", "localized"], default="caught", required=True, key="versus_kind"
        )
    if left == right:
        st.info("Choose two different sides.")
        return
    texts = by_words[left].text, by_words[right].text
    try:
        table = estimate(filters, "differences", *texts)
    except ValueError as error:
        st.info(plain(str(error)))
        return
    is_suite = set(table["dimension"]) <= {SUITES}
    table = table[(table["impact"] == "all") & (table["kind"] == kind)]
    table = table[table["metric"] == "recall"] if is_suite else table
    if table.empty or not int(table["n"].max()):
        st.info("There is no error that both sides judged under the same dimension.")
        return
    tests = estimate(filters, "found_by_one", *texts)
    tests = tests[tests["kind"] == kind].drop(columns="kind").reset_index(drop=True)
    table, tests, number = adjusted(table, tests)
    table = table.assign(label=table["dimension"].replace({SUITES: "any judge"}))
    recall = table[table["metric"] == "recall"]
    headline(
        recall.assign(value=recall["difference"]),
        title=f"Recall, {kind}: A minus B", about=definition("recall"),
    )  # fmt: skip
    st.caption("Of the traces that both sides answered, whether or not other judge models did.")
    paint("versus")
    with st.container(border=True):
        layout.title(
            "Differences",
            "Each with its 95 % interval: Student's t on the jackknife, leaving out one trace on both sides at once.",
        )
        shown = table.assign(label=table["label"] + " " + table["metric"])
        event = plot(charts.paired_dots(shown, left=left, right=right), key="chart-versus", alt="Paired differences")
        point = chosen_point(event)
        st.caption(
            f"Red: p < .05 by Holm over all {counted(number, 'comparison')} on this page (differences and "
            "McNemar's tests). Hover for the interval, which is not corrected for several comparisons. "
            + (
                (
                    "The sides share no dimension, so each counts as one judge that caught an error if any of its "
                    "judges did."
                )
                if is_suite
                else ""
            )
        )
    with st.container(border=True):
        versus_slices_card(filters, *texts, str(kind))
    with st.container(border=True):
        layout.title(
            f"McNemar on {kind} errors",
            f"Errors that only one side caught; p over traces, Holm's correction over all {number:,} comparisons "
            "on this page. The chi-square and exact p, printed as in the paper, treat the errors of a trace as "
            "independent and so reject too often.",
        )
        named = tests.rename(columns={"only_left": "only A", "only_right": "only B"})
        row = data_table(named, columns=MCNEMAR, key="mcnemar", is_chosen=True)
        if row is None:
            st.caption("Select a row to list the errors that only one side caught.")
    flips = estimate(filters, "flips", *texts)
    of = ""
    if row is not None:
        of = f" by {tests['dimension'].iloc[row]}: {kind} by one side alone"
        flips = found_by_one_side(flips[flips["dimension"] == tests["dimension"].iloc[row]], str(kind))
    elif point is not None:
        of = f" by {point[0]}, whose mark is chosen"
        flips = flips[flips["dimension"] == str(point[0])]
    with st.container(border=True):
        layout.title(f"{counted(len(flips), 'error')} treated differently{of}", plain(f"A: {left}; B: {right}"))
        side = (
            by_words[left] if by_words[left].judge_model else by_words[right]
        )  # Compare shows a judge, not two people
        named = flips.rename(columns={"left": "A", "right": "B"}).assign(judge_model=side.judge_model or "")
        listed(filters, named, key="rows-flips", repeat=side.repeat)


MCNEMAR: dict[str, ColumnConfig] = {
    **{
        name: st.column_config.NumberColumn(name, format="localized", help=about)
        for name, about in (
            ("n", "Errors of the judge that both sides answered"),
            ("both", "Errors that both sides caught"),
            ("only A", "Errors that only side A caught"),
            ("only B", "Errors that only side B caught"),
            ("neither", "Errors that neither side caught"),
        )
    },
    "p_clustered": st.column_config.NumberColumn(
        "p, by trace",
        format="%.3g",
        help="McNemar's test over traces (Obuchowski 1998): errors of one trace may depend",
    ),
    "p_holm": st.column_config.NumberColumn(
        "p, Holm", format="%.3g", help="The p by trace, corrected for all comparisons on this page"
    ),
    "statistic": st.column_config.NumberColumn(
        "chi-square",
        format="%.3f",
        help="Of McNemar's test, with continuity correction; n/a where neither side alone caught an error",
    ),
    "p_corrected": st.column_config.NumberColumn("p, corrected", format="%.3g", help="Of the chi-square"),
    "p_exact": st.column_config.NumberColumn("p, exact", format="%.3g", help="Of the exact binomial test"),
}
"""The columns of McNemar's test."""


def adjusted(differences: pd.DataFrame, tests: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Both with `p_holm` over all of them, differences with `significant` by it; how many comparisons there are."""
    p = np.concatenate([differences["p"].to_numpy(dtype=np.float64), tests["p_clustered"].to_numpy(dtype=np.float64)])
    corrected, size = holm(p), len(differences)
    return (
        differences.assign(p_holm=corrected[:size], significant=corrected[:size] < ALPHA),
        tests.assign(p_holm=corrected[size:]),
        int((~np.isnan(p)).sum()),
    )


ALPHA = 0.05


def found_by_one_side(flips: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Of errors treated differently, those that McNemar's test counts: of the judge's own, found by one side alone."""
    words = ["localized"] if kind == "localized" else ["caught", "localized"]
    return flips[flips["relevant"] & (flips["left"].isin(words) != flips["right"].isin(words))]
