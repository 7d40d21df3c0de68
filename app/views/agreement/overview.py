"""The view Overview: judges at a glance, coverage by impact, every estimate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from tracejury.app import estimates
from tracejury.app.components import charts
from tracejury.app.components.answer import answer, by_slice
from tracejury.app.components.data_table import chosen_cell, data_table
from tracejury.app.components.drilldown import kept_point
from tracejury.app.components.estimate_text import (
    FEW_NOTE,
    aligned,
    cell_text,
    definition,
    estimate_column,
    greyed,
    plain,
    wide_table,
    with_labels,
)
from tracejury.app.components.judges import (
    JUDGE_METRICS,
    PEOPLE,
    TABLE_COLUMNS,
    beside_people,
    every_metric,
    metric_rows,
    split_labels,
)
from tracejury.app.estimates import estimate
from tracejury.app.painting import paint
from tracejury.app.placeholders import watch, with_placeholder
from tracejury.app.views.agreement.cards import COVERED, card, ceiling_line, counts_of, plot, why_no_errors
from tracejury.app.views.agreement.drilldowns import drill_into_ceiling, drill_into_errors, drill_into_estimate
from tracejury.judging.agreement import ranking
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.metric import Best
from tracejury.judging.reports.estimates import SUITES
from tracejury.judging.reports.filters import Filters


def overview(filters: Filters, inputs: Inputs) -> None:
    del inputs  # each card asks for what it shows
    with st.container(key="answer"):
        first_sentence(filters)
        slices = st.container()
    paint("overview")
    with st.container(border=True):
        ranks_card(filters)
    left, right = st.columns([1, 1], gap="medium")
    with left, st.container(border=True, height="stretch"):
        forest_card(filters)
    with right, st.container(border=True, height="stretch"):
        impact_card(filters)
    with st.container(border=True):
        table_card(filters)
    with slices:  # last, so that no chart waits for it
        slices_sentence(filters)


@st.fragment(key="card-answer")
@with_placeholder(height=40)
def first_sentence(filters: Filters) -> None:
    """What judges catch beside people, before any chart; drawn again once people's part is there."""
    inputs = estimates.inputs(filters)
    suite = inputs.suite  # before the ceiling is asked for, which takes longer
    late = estimates.pending(filters, "error_ceiling")
    for sentence in answer(suite, None if late is not None else inputs.error_ceiling):
        st.markdown(plain(sentence), help=ANSWER)
    if late is not None:
        watch(late, name="late-answer")


@st.fragment(key="card-slices-answer")
@with_placeholder(height=20)
def slices_sentence(filters: Filters) -> None:
    """Whether the judges' recall differs between parts of the traces."""
    st.caption(plain(by_slice(estimate(filters, "recall_differences"))), help=SLICES)


SLICES = (
    "The lowest and the highest recall of caught errors among slices of five or more traces (agent, task source, "
    "length, tool, model of the agent, outcome, span kind of the error, guideline version), with the number of "
    "errors in brackets. Test: equal recall in all slices of a kind (wild cluster bootstrap by trace, Holm over "
    "all of these tests). Every slice with its interval: Errors, Errors by slice."
)
ANSWER = (
    COVERED + " Within reach of people: the judge's interval reaches the value of people. For that value, each of two "
    "people who labelled a trace blind takes the judge's place in turn. The line above says how many matches "
    "are confirmed."
)


@card(
    "ranks",
    "Judge models, by what they caught",
    "Recall: of the errors that all of these judge models answered, the share that any judge of the model caught. "
    "Rank: the ranks that cannot be ruled out, with 95 % confidence for all models at once (Mogstad, Romano, "
    "Shaikh and Wilhelm 2024). Findings that match: the share of a model's findings that match a reference error. "
    "This is the least that its precision can be, since unmatched findings may be valid new errors.",
    height=360,
)
def ranks_card(filters: Filters) -> None:
    table = estimate(filters, "table.judge_ranks")
    if table.empty:
        st.caption(why_no_errors(filters))
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.dataframe(
            rank_cells(table), hide_index=True, height=38 + 35 * len(table), key="judge-ranks",
            alt="Judge models by rank", column_config=RANK_COLUMNS,
        )  # fmt: skip
    ranked = table[table["rank_low"].notna()]
    with right:
        for split, part in ranked.groupby("split", sort=False):
            plot(charts.ranks(part), key=f"chart-ranks-{split}", alt=f"Ranks of judge models, {split}")
        if ranked.empty and len(table) > 1:
            st.caption(f"n/a: {ranking.why_undefined(table.to_dict('records')[0], 'rank')}.")
        elif ranked.empty:
            st.caption("Ranks need two or more judge models on the same errors.")


def rank_cells(table: pd.DataFrame) -> pd.DataFrame:
    """The table in words: each estimate with its interval and n, the ranks as one range."""
    rows = table.to_dict("records")
    cells = pd.DataFrame(
        {
            "judge model": table["judge_model"],
            "split": table["split"],
            "rank": [rank_words(row["rank"], row["rank_low"], row["rank_high"]) for row in rows],
            "recall": aligned([_cell(row, "recall", "n") for row in rows]),
            "findings that match": aligned([_cell(row, "matched_share", "findings") for row in rows]),
        }
    )
    return cells.drop(columns="split") if table["split"].nunique() < 2 else cells


def _cell(row: Mapping[Any, Any], name: str, n: str) -> str:
    """An estimate of a row of `ranking.rank_table` with its interval and n."""
    reason = ranking.why_undefined(row, name)
    ends = {end: row.get(f"{name}_{end}") for end in ("low", "high")}
    return cell_text({"value": row[name], "n": row[n], "reason": reason, **ends})


def rank_words(rank: float, low: float, high: float) -> str:
    """`2 (1 to 3)`: the rank, and those that cannot be ruled out."""
    if math.isnan(rank):
        return "n/a"
    return f"{rank:.0f}" if math.isnan(low) or low == high else f"{rank:.0f} ({low:.0f} to {high:.0f})"


RANK_COLUMNS: dict[str, ColumnConfig] = {
    "judge model": st.column_config.TextColumn("judge model", pinned=True),
    "rank": st.column_config.TextColumn("rank", help="And the ranks that cannot be ruled out"),
    "recall": st.column_config.TextColumn("recall", alignment="right"),
    "findings that match": st.column_config.TextColumn("findings that match", alignment="right"),
}


@card(
    "forest",
    "Judges at a glance",
    "Each judge's estimate with its 95 % interval by trace (Wilson's of shares, on Fisher's z of coefficients).",
    height=520,
)
def forest_card(filters: Filters) -> None:
    inputs = estimates.inputs(filters)
    counts = counts_of(filters)
    kinds = {"scores": counts["score_pairs"], "repeats": len(estimate(filters, "repeated"))}
    offered = [one for one in JUDGE_METRICS if kinds.get(one.kind, counts["error_pairs"])]
    if not offered:
        st.caption("These filters select no errors and no scores.")
        return
    by_title = {one.title: one for one in offered}
    start = JUDGE_METRICS[1].title if JUDGE_METRICS[1].title in by_title else offered[0].title
    chosen = st.selectbox(
        "Metric",
        list(by_title),
        index=list(by_title).index(start),
        key="metric",
        label_visibility="collapsed",
        bind="query-params",
        persist_state="session",
    )
    shown_metric = by_title[str(chosen)]
    metric = shown_metric.name.partition(".")[2]
    st.caption(definition(metric))
    late = estimates.pending(filters, "error_ceiling") if shown_metric.kind in {"caught", "localized"} else None
    rows = metric_rows(inputs, shown_metric, beside_people=late is None)
    rows = best_first(rows, shown_metric.metric.best)
    drawn = charts.forest(rows, title=shown_metric.title, metric=shown_metric.metric)
    event = plot(drawn, key="chart-forest", alt=shown_metric.title)
    point = kept_point(event, key="forest", of=(filters.unpinned(), shown_metric.name), drawn=late is None)
    if point is not None:
        drill_down = drill_into_ceiling if point[-1] == charts.CEILING else drill_into_estimate
        drill_down(filters, shown_metric.name, *map(str, point[:3]), key="rows-forest")
    ceiling_line(late, has_ceiling="ceiling" in rows.columns, name="late-ceiling")


def best_first(rows: pd.DataFrame, best: Best) -> pd.DataFrame:
    """Judges in the order of what is asked, undefined ones last."""
    by = rows["value"].abs() if best == "zero" else rows["value"]
    order = by.sort_values(ascending=best != "high", kind="stable", na_position="last").index
    return rows.loc[order].reset_index(drop=True)


@card(
    "impact",
    "Coverage by impact",
    "Share of the reference errors of the judge's dimension that it caught and localized, by impact; Wilson's "
    "interval by trace.",
    height=520,
)
def impact_card(filters: Filters) -> None:
    inputs, late = estimates.inputs(filters), estimates.pending(filters, "error_ceiling")
    coverage = split_labels(with_labels(inputs.coverage))
    suite = split_labels(inputs.suite.assign(label=inputs.suite["judge_model"], dimension=SUITES))
    panels = st.segmented_control(
        "Panels", ["whole suites", "each judge"], default="whole suites", required=True, key="panels",
        label_visibility="collapsed", bind="query-params",
    )  # fmt: skip
    shown = suite if panels == "whole suites" else coverage[coverage["label"].isin(_with_errors(coverage))]
    if shown.empty or not int(shown["n"].sum()):
        st.caption(why_no_errors(filters))
        return
    shown = beside_people(shown, None if late is not None else inputs.error_ceiling)
    event = plot(charts.impact_bars(shown), key="chart-impact", alt="Coverage by impact")
    point = kept_point(event, key="impact", of=(filters.unpinned(), panels), drawn=late is None)
    if point is not None:
        judge_model, dimension, split, impact, kind = map(str, point[:5])
        if point[-1] == charts.CEILING:
            drill_into_ceiling(
                filters, f"{kind}.recall", judge_model, dimension, split, impact=impact, key="rows-impact"
            )
        else:
            drill_into_errors(
                filters,
                judge_model=judge_model,
                dimension=dimension,
                split=split,
                impact=impact,
                kind=kind,
                key="rows-impact",
            )
    else:
        lines = ", a line to list people's comparisons" * bool(shown["ceiling"].notna().any())
        st.caption(f"Pale: n < 10. Click a bar to list its errors{lines}.")
    ceiling_line(late, has_ceiling=bool(shown["ceiling"].notna().any()), name="late-impact")


def _with_errors(coverage: pd.DataFrame) -> list[str]:
    totals = coverage[coverage["impact"] == "all"].groupby("label", sort=False)["n"].max()
    return [str(label) for label in totals[totals > 0].index]


@card("table", "Every judge", "Value [95 % interval] and its own n. " + FEW_NOTE, height=420)
def table_card(filters: Filters) -> None:
    inputs, late = estimates.inputs(filters), estimates.pending(filters, "error_ceiling")
    long = every_metric(inputs, beside_people=late is None)
    if long.empty:
        st.caption("These filters select no errors and no scores.")
        return
    counts = compared_counts(inputs.error_rates)
    shown, few = wide_table(
        long, [m for m in TABLE_COLUMNS if m in set(long["metric"])], ["judge_model", "dimension", "split"]
    )
    left_out = shown[["judge_model", "dimension", "split"]].merge(
        counts,
        on=["judge_model", "dimension", "split"],
        how="left",
    )
    shown.insert(3, "traces", left_out["traces"])
    shown.insert(4, "errors", left_out["n"])
    shown.insert(5, "failed", left_out["failed"])
    whose = shown[["judge_model", "dimension", "split"]].to_numpy().tolist()
    if shown["split"].nunique() < 2:
        shown = shown.drop(columns="split")
    event = st.dataframe(
        greyed(shown, few),
        hide_index=True,
        placeholder="–",
        column_config=_column_help(shown),
        height="auto",
        key="every-judge",
        on_select="rerun",
        selection_mode="single-cell",
        alt="Estimates of every judge",
    )
    drill_into_cell(filters, chosen_cell(event, len(whose)), whose)
    if late is not None:
        st.caption("The human ceiling of errors is being computed and is not in the rows yet.")
    with st.expander("Every estimate in long form, with its n and reason", on_change="rerun", key="long") as opened:
        if opened.open:
            data_table(long)


def compared_counts(error_rates: pd.DataFrame) -> pd.DataFrame:
    """The traces, errors and failed pairs of each judge; traces and errors missing where no match is proposed yet."""
    keys = ["judge_model", "dimension", "split"]
    counts = error_rates[error_rates["impact"] == "all"].drop_duplicates(keys)
    is_known = (counts["n"] > 0) | (counts["not_matched"] == 0)
    known = counts[["traces", "n"]].astype("Int64").where(is_known)
    return counts[[*keys, "failed"]].join(known)


def drill_into_cell(filters: Filters, cell: tuple[int, str] | None, whose: list[list[str]]) -> None:
    """What is behind the cell that was clicked."""
    if cell is None or cell[1] not in TABLE_COLUMNS:
        st.caption("Click an estimate to list its rows.")
        return
    row, name = cell
    judge_model, dimension, split = whose[row]
    drill_down = drill_into_ceiling if judge_model == PEOPLE else drill_into_estimate
    drill_down(filters, name, judge_model, dimension, split, key="rows-cell")


def _column_help(shown: pd.DataFrame) -> dict[str, ColumnConfig]:
    config: dict[str, ColumnConfig] = {
        "judge_model": st.column_config.TextColumn("judge model", pinned=True),
        "dimension": st.column_config.TextColumn("dimension", pinned=True),
        "traces": st.column_config.NumberColumn("traces", format="%d", help="Judged traces with reference errors"),
        "errors": st.column_config.NumberColumn("errors", format="%d", help="Reference errors of the comparison"),
        "failed": st.column_config.NumberColumn("failed", format="%d", help="Error pairs of failed cells"),
    }
    for one in JUDGE_METRICS:
        metric = one.name.partition(".")[2]
        if one.name in shown.columns:
            config[one.name] = estimate_column(shown[one.name], one.title, definition(metric))
    return config
