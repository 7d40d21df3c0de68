"""The cards of slices: estimates of judges and people within parts of the traces, and tests whether parts differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from tracejury.app.components.data_table import chosen_cell
from tracejury.app.components.estimate_text import (
    FEW_NOTE,
    definition,
    estimate_column,
    greyed,
    plain,
    title_of,
    wide_table,
    with_labels,
)
from tracejury.app.components.judges import split_labels
from tracejury.app.estimates import estimate
from tracejury.app.views.agreement.cards import card
from tracejury.app.views.agreement.drilldowns import drill_into_repeats, listed
from tracejury.judging.agreement.estimate import reason_of
from tracejury.judging.agreement.frames import KINDS
from tracejury.judging.agreement.interaction import LEAST_TRACES
from tracejury.judging.agreement.slice_tests import REPEATED, SCORED
from tracejury.judging.agreement.slices import (
    AMONG_PEOPLE,
    CONSISTENCY_RATES,
    ERROR_RATES,
    PEOPLE_RATES,
    SCORE_RATES,
    UNKNOWN,
    slice_order,
)
from tracejury.judging.records import SLICE_WORDS, SliceBy
from tracejury.judging.reports.filters import Filters

_KEYS = ["judge_model", "dimension", "split"]
_TESTS = {"p_holm": "equal in all slices, p", "p_interaction_holm": "judge × slice, p"}
_TEST_HELP = {
    "p_holm": "Test: equal value in all slices (wild cluster bootstrap by trace, Holm over the judges).",
    "p_interaction_holm": "Test: equal difference in all slices between this judge and the mean of the other judge "
    "models on the same errors or traces (wild cluster bootstrap by trace, Holm over the judges). Empty where no other "
    "judge model answered.",
}
_ABOUT = (
    f"Each judge within parts of the traces: value [95 % interval] and its own n. The slice {UNKNOWN} holds what "
    f"belongs to no known slice. Tests use slices of {LEAST_TRACES} or more traces; they compare recall for errors "
    "and bucketed accuracy for scores. "
) + FEW_NOTE


@card("slices-errors", "Errors by slice", _ABOUT, height=420)
def error_slices_card(filters: Filters) -> None:
    with st.container(horizontal=True):
        by = _chosen_by()
        kind = st.selectbox("Errors", ["caught", "localized"], key="slice_kind", width=160)
        rate = _chosen_rate(ERROR_RATES, "recall", key="slice_rate")
    table = estimate(filters, "errors_by_slice", by)
    tests = _tests(filters, by, str(kind))
    cell = _matrix(table[(table["kind"] == kind) & (table["metric"] == rate)], tests, by, key=str(kind))
    if cell is not None:
        name, judge_model, dimension, split = cell
        rows = estimate(filters, "errors_in_slice", by, name, judge_model, dimension, split, str(kind), rate)
        columns = [
            "trace_id", "error_id", "impact", "dimensions", "label", "judge_model", "dimension", "caught", "localized",
            "match_status", "annotator",
        ]  # fmt: skip
        listed(filters, with_labels(rows)[columns], key="rows-slices")


@card("slices-scores", "Scores by slice", _ABOUT, height=420)
def score_slices_card(filters: Filters) -> None:
    with st.container(horizontal=True):
        by = _chosen_by()
        rate = _chosen_rate(SCORE_RATES, SCORED, key="slice_score")
    table = estimate(filters, "scores_by_slice", by)
    cell = _matrix(table[table["metric"] == rate], _tests(filters, by, SCORED), by, key=SCORED)
    _several_tools(by)
    if cell is not None:
        name, judge_model, dimension, split = cell
        rows = estimate(filters, "scores_in_slice", by, name, judge_model, dimension, split, rate)
        columns = ["trace_id", "label", "judge_model", "reference_score", "judge_score"]
        listed(filters, with_labels(rows)[columns], key="rows-score-slices")


def _several_tools(by: SliceBy) -> None:
    if by == "tool":
        st.caption("A trace that calls several tools counts in the slice of each tool.")


@card(
    "slices-consistency",
    "Consistency by slice",
    "Each judge's repeats within parts of the traces: value [95 % interval] and its own n. Tests compare the "
    f"spread over repeats (mean SD) between slices of {LEAST_TRACES} or more traces. " + FEW_NOTE,
    height=420,
)
def consistency_slices_card(filters: Filters) -> None:
    with st.container(horizontal=True):
        by = _chosen_by()
        rate = _chosen_rate(tuple(CONSISTENCY_RATES), "alpha_interval", key="slice_repeats")
    table = estimate(filters, "consistency_by_slice", by)
    cell = _matrix(table[table["metric"] == rate], _tests(filters, by, REPEATED), by, key=REPEATED)
    _several_tools(by)
    if cell is not None:
        name, judge_model, dimension, split = cell
        of = estimate(filters, "traces_in_slice", by, name)["trace_id"]
        drill_into_repeats(filters, judge_model, dimension, split, of=of, key="rows-consistency-slices")


@card(
    "slices-people",
    "Human ceiling by slice",
    "People against people within parts of the traces: value [95 % interval] and its own n (for scores: traces "
    "that two people scored; for errors: comparisons of an error with another person). The test compares the "
    f"bucketed accuracy of scores between slices of {LEAST_TRACES} or more traces. " + FEW_NOTE,
    height=320,
)
def people_slices_card(filters: Filters) -> None:
    with st.container(horizontal=True):
        by = _chosen_by()
        of = str(st.selectbox("Of", ["scores", *KINDS], key="slice_of", width=160))
        rates, start = (PEOPLE_RATES, SCORED) if of == "scores" else (ERROR_RATES, "recall")
        rate = _chosen_rate(rates, start, key=f"slice_people_{of}")
    if of == "scores":
        table, tests = (
            estimate(filters, "people_by_slice", by),
            _tests(filters, by, AMONG_PEOPLE)[[*_KEYS, "p_holm", "reason"]],
        )
    else:
        table, tests = estimate(filters, "people_errors_by_slice", by), None
        table = table[table["kind"] == of]
    own = table[(table["metric"] == rate) & (table["n"] > 0)].assign(judge_model=AMONG_PEOPLE)
    if own.empty and by != "kind":
        st.caption(f"No trace {'was scored' if of == 'scores' else 'with an error was submitted'} by two people.")
        return
    cell = _matrix(own, tests, by, key=AMONG_PEOPLE)
    _several_tools(by)
    if cell is not None:
        rows = _rows_of_people(filters, of, rate, *cell[2:])
        traces = estimate(filters, "traces_in_slice", by, cell[0])["trace_id"]
        listed(filters, rows[rows["trace_id"].isin(traces)], key="rows-people-slices")


def _rows_of_people(filters: Filters, of: str, rate: str, dimension: str, split: str) -> pd.DataFrame:
    if of == "scores":
        return estimate(filters, "rows_for_people", dimension, split)
    return estimate(filters, "rows_for_people_errors", dimension, split, of, rate)


@card(
    "slices-versus",
    "Differences by slice",
    "Recall of A minus that of B within parts of the traces: difference [95 % interval] and the errors that both "
    f"answered. Test: equal difference in all slices of {LEAST_TRACES} or more traces, Holm over the dimensions. "
    + FEW_NOTE,
    height=320,
)
def versus_slices_card(filters: Filters, left: str, right: str, kind: str) -> None:
    by = _chosen_by()
    table = estimate(filters, "differences_by_slice", by, left, right)
    own = table[(table["kind"] == kind) & (table["n"] > 0)]
    named = own.assign(judge_model="", split="", metric="recall", value=own["difference"])
    tests = named.drop_duplicates("dimension").drop(columns="reason")
    cell = _matrix(named, tests.assign(reason=_why_no_test(named))[[*_KEYS, "p_holm", "reason"]], by, key="versus")
    if cell is not None:
        flips = estimate(filters, "flips_in_slice", by, cell[0], left, right)
        rows = flips[(flips["dimension"] == cell[2]) & flips["relevant"]]
        listed(filters, rows.rename(columns={"left": "A", "right": "B"}), key="rows-versus-slices")


def _why_no_test(rows: pd.DataFrame) -> str:
    """The reason of the test in the rows of `slice_tests.compared_slices`, the same for all that have none."""
    reasons = [part for reason in rows["reason"].dropna() for part in str(reason).split("; ") if part.startswith("p, ")]
    return reasons[0] if reasons else ""


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


def _matrix(
    estimates: pd.DataFrame, tests: pd.DataFrame | None, by: SliceBy, *, key: str
) -> tuple[str, str, str, str] | None:
    """One row per judge, one column per slice, and tests; slice, judge model, dimension, split of a chosen cell."""
    if estimates.empty:
        st.caption(_why_none(by))
        return None
    names = slice_order(list(estimates["slice"]))
    shown, few = wide_table(estimates.assign(metric=estimates["slice"]), names, _KEYS)
    judges = shown[_KEYS].to_numpy().tolist()
    labels = split_labels(with_labels(shown))["label"]
    shown = shown.drop(columns=_KEYS) if tests is None else shown.drop(columns=_KEYS).join(_test_cells(tests, judges))
    shown.insert(0, "judge", labels)
    event = st.dataframe(
        greyed(shown, few), hide_index=True, placeholder="–", height="auto", width="content", key=f"slices-{key}",
        on_select="rerun", selection_mode="single-cell", alt=f"Estimates by {SLICE_WORDS[by]}",
        column_config=_columns(shown, names),
    )  # fmt: skip
    cell = chosen_cell(event, len(judges))
    if cell is None or cell[1] not in names:
        st.caption(f"{definition(str(estimates['metric'].iloc[0]))} Click an estimate to list its rows.")
        return None
    judge_model, dimension, split = judges[cell[0]]
    st.caption(plain(f"{labels.iloc[cell[0]]}, {SLICE_WORDS[by]}: {cell[1]}"))
    return cell[1], judge_model, dimension, split


def _why_none(by: SliceBy) -> str:
    if by == "kind":
        return (
            "Span kinds belong to the reference's errors, but this card compares whole traces. Choose another "
            "kind of slice."
        )
    return "Under these filters there is nothing to compare by slice."


def _tests(filters: Filters, by: SliceBy, kind: str) -> pd.DataFrame:
    tests = estimate(filters, "tests_by_slice", by)
    return tests.loc[tests["kind"] == kind, [*_KEYS, *_TESTS, "reason"]]


def _test_cells(tests: pd.DataFrame, judges: list[list[str]]) -> pd.DataFrame:
    """The p-values of each judge as text, its reason where there is none."""
    index = pd.MultiIndex.from_tuples([tuple(judge) for judge in judges], names=_KEYS)
    own = tests.set_index(_KEYS).reindex(index).to_dict("records")
    named = {name: title for name, title in _TESTS.items() if name in tests.columns}
    return pd.DataFrame({title: [_p_text(row, name) for row in own] for name, title in named.items()})


def _p_text(row: Mapping[Any, Any], name: str) -> str:
    value = row[name]
    if isinstance(value, float) and not pd.isna(value):
        return f"{value:.4f}"
    return f"n/a: {reason_of(row['reason'], name.removesuffix('_holm')) or 'no units'}"


def _columns(shown: pd.DataFrame, names: list[str]) -> dict[str, ColumnConfig]:
    return {
        "judge": st.column_config.TextColumn("judge", pinned=True),
        **{name: estimate_column(shown[name], name) for name in names},
        **{
            title: st.column_config.TextColumn(title, help=_TEST_HELP[name], width=240)
            for name, title in _TESTS.items()
        },
    }
