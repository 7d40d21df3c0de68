"""The card of slices: each judge's estimate within parts of the traces, and the tests whether the parts differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from tracejury.app.components.data_table import chosen_cell
from tracejury.app.components.figures import FEW_NOTE, definition, greyed, plain, title_of, wide_table, with_labels
from tracejury.app.components.judges import split_labels
from tracejury.app.estimates import estimate
from tracejury.app.views.agreement.cards import card
from tracejury.app.views.agreement.drilldowns import listed
from tracejury.judging.agreement.interaction import LEAST_TRACES
from tracejury.judging.agreement.slices import ERROR_RATES, SCORE_RATES, SCORED, UNKNOWN, slice_order
from tracejury.judging.records import SLICE_WORDS, SliceBy
from tracejury.judging.reports.filters import Filters

_KEYS = ["judge_model", "dimension", "split"]
_TESTS = {"p_holm": "same in all slices, p", "p_interaction_holm": "judge × slice, p"}
_TEST_HELP = {
    "p_holm": "Test of one value in all slices (wild cluster bootstrap by trace), Holm over the judges.",
    "p_interaction_holm": "Test of one difference in all slices between this judge and the mean of the other judge "
    "models on the same errors or traces (wild cluster bootstrap by trace), Holm over the judges. Empty where no other "
    "judge model answered.",
}
_ABOUT = (
    "Each judge within parts of the traces: value [95 % interval] and its own n. What belongs to no known slice is in "
    f"the slice {UNKNOWN}. Tests take slices of {LEAST_TRACES} traces or more, of recall for errors and of bucketed "
    "accuracy for scores. "
) + FEW_NOTE


@card("slices-errors", "Errors by slice", _ABOUT, height=420)
def error_slices_card(filters: Filters) -> None:
    with st.container(horizontal=True):
        by = _chosen_by()
        kind = st.selectbox("Errors", ["caught", "localized"], key="slice_kind", width=160)
        rate = _chosen_rate(ERROR_RATES, "recall", key="slice_rate")
    table = estimate(filters, "errors_by_slice", by)
    cell = _matrix(filters, table[(table["kind"] == kind) & (table["metric"] == rate)], by, str(kind))
    if cell is not None:
        name, judge_model, dimension, split = cell
        rows = estimate(filters, "errors_in_slice", by, name, judge_model, dimension, split, str(kind), rate)
        columns = [
            "trace_id", "error_id", "impact", "dimensions", "label", "judge_model", "dimension", "caught", "localized",
            "match_status", "annotator",
        ]  # fmt: skip
        listed(filters, with_labels(rows)[columns], key="behind-slices")


@card("slices-scores", "Scores by slice", _ABOUT, height=420)
def score_slices_card(filters: Filters) -> None:
    with st.container(horizontal=True):
        by = _chosen_by()
        rate = _chosen_rate(SCORE_RATES, SCORED, key="slice_score")
    table = estimate(filters, "scores_by_slice", by)
    cell = _matrix(filters, table[table["metric"] == rate], by, SCORED)
    if by == "tool":
        st.caption("A trace that calls several tools counts in the slice of each.")
    if cell is not None:
        name, judge_model, dimension, split = cell
        rows = estimate(filters, "scores_in_slice", by, name, judge_model, dimension, split, rate)
        columns = ["trace_id", "label", "judge_model", "reference_score", "judge_score"]
        listed(filters, with_labels(rows)[columns], key="behind-score-slices")


def _chosen_by() -> SliceBy:
    """The kind of slice, one choice for errors and scores, kept in the address."""
    words = {word: by for by, word in SLICE_WORDS.items()}
    chosen = st.selectbox(
        "Slices by", list(words), key="slice", width=220, bind="query-params", persist_state="session"
    )
    return words[str(chosen)]


def _chosen_rate(rates: tuple[str, ...], start: str, *, key: str) -> str:
    titles = {title_of(rate): rate for rate in rates}
    chosen = st.selectbox("Metric", list(titles), index=rates.index(start), key=key, width=280)
    return titles[str(chosen)]


def _matrix(filters: Filters, figures: pd.DataFrame, by: SliceBy, kind: str) -> tuple[str, str, str, str] | None:
    """A row a judge, a column a slice, and the tests; the slice, judge model, dimension and split of a chosen cell."""
    if figures.empty:
        st.caption(_why_none(by))
        return None
    names = slice_order(list(figures["slice"]))
    shown, few = wide_table(figures.assign(metric=figures["slice"]), names, _KEYS)
    judges = shown[_KEYS].to_numpy().tolist()
    labels = split_labels(with_labels(shown))["label"]
    shown = shown.drop(columns=_KEYS).join(_test_cells(filters, by, kind, judges))
    shown.insert(0, "judge", labels)
    event = st.dataframe(
        greyed(shown, few), hide_index=True, placeholder="–", height="auto", width="content", key=f"slices-{kind}",
        on_select="rerun", selection_mode="single-cell", alt=f"Estimates by {SLICE_WORDS[by]}",
        column_config=_columns(names),
    )  # fmt: skip
    cell = chosen_cell(event, len(judges))
    if cell is None or cell[1] not in names:
        st.caption(f"{definition(str(figures['metric'].iloc[0]))} Click an estimate to list its rows.")
        return None
    judge_model, dimension, split = judges[cell[0]]
    st.caption(plain(f"{labels.iloc[cell[0]]}, {SLICE_WORDS[by]}: {cell[1]}"))
    return cell[1], judge_model, dimension, split


def _why_none(by: SliceBy) -> str:
    if by == "kind":
        return "Span kinds are of errors; scores are of whole traces. Choose another kind of slice."
    return "These filters select nothing to tell apart by slice."


def _test_cells(filters: Filters, by: SliceBy, kind: str, judges: list[list[str]]) -> pd.DataFrame:
    """The p-values of each judge as text, its reason where there is none."""
    tests = estimate(filters, "tests_by_slice", by)
    rows = tests[tests["kind"] == kind].set_index(_KEYS)
    index = pd.MultiIndex.from_tuples([tuple(judge) for judge in judges], names=_KEYS)
    own = rows.reindex(index)
    return pd.DataFrame(
        {title: [_p_text(row, name) for row in own.to_dict("records")] for name, title in _TESTS.items()}
    )


def _p_text(row: Mapping[Any, Any], name: str) -> str:
    value = row[name]
    if isinstance(value, float) and not pd.isna(value):
        return f"{value:.4f}"
    test = name.removesuffix("_holm")
    parts = [part.partition(": ") for part in str(row["reason"]).split("; ")]
    return f"n/a: {next((why for names, _, why in parts if test in names.split(', ')), 'no units')}"


def _columns(names: list[str]) -> dict[str, ColumnConfig]:
    return {
        "judge": st.column_config.TextColumn("judge", pinned=True),
        **{name: st.column_config.TextColumn(name, alignment="right", width="medium") for name in names},
        **{
            title: st.column_config.TextColumn(title, help=_TEST_HELP[name], width=240)
            for name, title in _TESTS.items()
        },
    }
