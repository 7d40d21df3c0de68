"""The view Scores: reference scores against judge scores."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tracejury.app import estimates
from tracejury.app.components import charts
from tracejury.app.components.data_table import chosen_row
from tracejury.app.components.drilldown import chosen_point
from tracejury.app.components.estimate_text import (
    FEW_NOTE,
    aligned,
    cell_text,
    counted,
    definition,
    greyed,
    is_dark,
    plain,
    with_labels,
)
from tracejury.app.components.headline import headline
from tracejury.app.components.judges import split_labels
from tracejury.app.datasets import open_to_me
from tracejury.app.estimates import estimate
from tracejury.app.painting import paint
from tracejury.app.views.agreement.cards import SPLIT_MAY, card, counts_of, plot
from tracejury.app.views.agreement.drilldowns import compare_link, drill_into_scores, open_trace
from tracejury.app.views.agreement.slices import score_slices_card
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.reports.estimates import each_once
from tracejury.judging.reports.filters import Filters


def scores_view(filters: Filters, inputs: Inputs) -> None:
    if not counts_of(filters)["score_pairs"]:
        st.info(
            f"{plain(str(estimates.reference(filters)))} scored no dimension that a judge also scored. Try: score "
            "traces from 0 to 3 on the Work page; TRAIL annotations hold errors, not scores of these dimensions."
            + SPLIT_MAY
            * (filters.split is not None)
        )
        return
    exact = with_labels(inputs.scores_beside_people)
    headline(split_labels(exact[exact["metric"] == "exact"]), title="Exact accuracy", about=definition("exact"))
    paint("scores")
    with st.container(border=True):
        confusion_card(filters)
    with st.container(border=True):
        score_slices_card(filters)
    with st.container(border=True):
        calibration_card(filters)
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, height="stretch"):
        bias_card(filters)
    with right, st.container(border=True, height="stretch"):
        prevalence_card(filters)


@card(
    "confusion",
    "Reference scores against judge scores",
    "Counts; the shade is the share of the reference score's row.",
    height=420,
)
def confusion_card(filters: Filters) -> None:
    table = with_labels(estimate(filters, "table.score_confusion"))
    labels = list(dict.fromkeys(table["label"]))
    label = st.selectbox("Judge", ["all judges", *labels], key="confusion_judge", width=240)
    rows = each_once(table) if label == "all judges" else table[table["label"] == label]
    summed = rows.groupby(["reference_score", "judge_score"])["count"].sum().reset_index()
    of = summed.groupby("reference_score")["count"].transform("sum")
    summed = summed.assign(share=(summed["count"] / of.where(of > 0)).astype("float64"))
    left, right = st.columns(2)
    with left:
        failed = "" if int(summed["count"].sum()) else ": every cell failed or was not applicable"
        st.caption(f"Four points, n = {int(summed['count'].sum()):,}{failed}")
        event = plot(charts.score_grid(summed, is_dark=is_dark()), key="chart-confusion", alt="Confusion of scores")
    with right:
        st.caption("Three buckets: 0, 1–2, 3")
        in_buckets = plot(
            charts.score_grid(charts.bucket_confusion(summed), is_dark=is_dark()),
            key="chart-buckets",
            alt="Confusion of buckets",
        )
    of_square, of_bucket = chosen_point(event), chosen_point(in_buckets)
    if of_square is None and of_bucket is None:
        st.caption(f"Pale: fewer than {TOO_FEW} traces with this reference score. Click a square to list its traces.")
    for point, key in ((of_square, "rows-confusion"), (of_bucket, "rows-buckets")):
        if point is not None:
            reference_score, judge_score = (str(score).replace("–", ",") for score in point[:2])
            drill_into_scores(
                filters, reference_score=reference_score, judge_score=judge_score, of=rows["label"], key=key
            )


@card(
    "calibration",
    "Calibration",
    "Mean reference score of the traces to which a judge gave each score, with its 95 % interval. On the dotted "
    "line, a judge's score means the same as a reference score.",
    height=460,
)
def calibration_card(filters: Filters) -> None:
    table = split_labels(with_labels(estimate(filters, "table.score_calibration")))
    labels = list(dict.fromkeys(table.loc[table["n"] > 0, "label"]))
    if not labels:
        st.caption("No judge gave a score to a trace that the reference scored.")
        return
    label = st.selectbox("Judge", labels, key="calibration_judge", width=240)
    rows = table[table["label"] == label]
    event = plot(charts.calibration_dots(rows), key="chart-calibration", alt="Calibration")
    point = chosen_point(event)
    if point is None:
        st.caption(f"Hollow: n < {TOO_FEW}. Click a mark to list its traces.")
        return
    one = rows.iloc[0]
    drill_into_scores(
        filters, judge_model=str(one["judge_model"]), dimension=str(one["dimension"]), split=str(one["split"]),
        judge_score=f"{float(point[0]):g}", key="rows-calibration",
    )  # fmt: skip


@card("bias", "Bias", definition("bias") + " Lines: mean and ±1.96 standard deviations (Bland and Altman).", height=420)
def bias_card(filters: Filters) -> None:
    table = split_labels(with_labels(estimates.inputs(filters).scores_beside_people))
    means = table[(table["metric"] == "bias") & (table["n"] > 0)].set_index("label")
    label = st.selectbox("Judge", ["all judges", *means.index], key="bias_judge", width=240)
    alone = means.loc[means.index == label] if len(means) > 1 else means
    one = alone.to_dict("records")[0] if len(alone) else None
    key = () if one is None else tuple(str(one[name]) for name in ("judge_model", "dimension", "split"))
    drawn, lines = estimate(filters, "bias_marks", *key), estimate(filters, "bias_lines", *key)
    bounds = lines.iloc[0] if one is None else one
    between = float(bounds["low"]), float(bounds["high"])
    event = plot(
        charts.bias_plot(open_to_me(drawn), lines, between=between),
        key="chart-bias",
        alt="Judge minus reference against their mean",
    )
    point = chosen_point(event)
    if point is None:
        every = int(lines["n"].iloc[0])
        some = "" if len(drawn) == every else ", evenly spread points are drawn; the lines are of all"
        by = " In brackets: the 95 % interval of the mean, by trace over all its judges." * (one is None)
        st.caption(f"{counted(every, 'score pair')}{some}. Click a mark to open its trace.{by}")
    else:
        open_trace(compare_link(filters, trace=str(point[0]), judge_model=point[1]), key="bias-open")
    bias_means(filters, means)


def bias_means(filters: Filters, means: pd.DataFrame) -> None:
    """Each judge's mean with its interval and n, and the pairs behind the one that is chosen."""
    if means.empty:
        return
    texts = aligned([cell_text(dict(row)) for _, row in means.iterrows()])
    cells = pd.DataFrame({"judge": means.index, "mean bias": texts})
    few = pd.DataFrame({"mean bias": (means["n"] < TOO_FEW).to_numpy()})
    event = st.dataframe(
        greyed(cells, few), hide_index=True, width="content", height=min(38 + 35 * len(cells), 213), key="bias-means",
        on_select="rerun", selection_mode="single-row", alt="Mean bias of each judge",
        column_config={"mean bias": st.column_config.TextColumn("mean bias [95 %]", alignment="right")},
    )  # fmt: skip
    row = chosen_row(event, len(means))
    if row is None:
        st.caption(
            "Select a judge to list its pairs. There is no human ceiling here: every pair of people counts in "
            "both directions, so their bias is always 0. " + FEW_NOTE
        )
        return
    one = means.iloc[row]
    drill_into_scores(
        filters, judge_model=str(one["judge_model"]), dimension=str(one["dimension"]), split=str(one["split"]),
        metric="bias", key="rows-bias",
    )  # fmt: skip


@card(
    "prevalence",
    "Frequency of each score",
    "Where one score dominates, kappa is low even when agreement is high; read AC2 instead.",
    height=420,
)
def prevalence_card(filters: Filters) -> None:
    table = split_labels(with_labels(estimate(filters, "table.score_prevalence")))
    event = plot(charts.prevalence_bars(table), key="chart-prevalence", alt="Prevalence of scores")
    point = chosen_point(event)
    if point is not None:
        judge_model, dimension, split, side, score = map(str, point[:5])
        reference_score, judge_score = (score, "") if side == "reference" else ("", score)
        drill_into_scores(
            filters,
            judge_model=judge_model,
            dimension=dimension,
            split=split,
            reference_score=reference_score,
            judge_score=judge_score,
            key="rows-prevalence",
        )
    flags = split_labels(with_labels(estimate(filters, "table.score_flags")))
    odd = flags[flags["flags"] != ""]
    if len(odd):
        st.caption("Look at: " + plain("; ".join(f"{r.label} is {r.flags} (n {r.n})" for r in odd.itertuples())))
