"""The rows of a mark of each kind, and the way from a row to Compare or Work."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from tracejury.app import listings, options
from tracejury.app.components import charts
from tracejury.app.components.drilldown import listing, open_in_compare, open_in_work
from tracejury.app.components.estimate_text import cell_text, plain, with_labels
from tracejury.app.datasets import open_to_me
from tracejury.app.estimates import estimate
from tracejury.app.session import link_params
from tracejury.judging.agreement import ceiling, majority
from tracejury.judging.agreement.raters import PAIR_METRICS
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.reports.filters import Filters


def drill_into_estimate(filters: Filters, name: str, judge_model: str, dimension: str, split: str, *, key: str) -> None:
    """What an estimate of `JUDGE_METRICS` counts: errors, traces with two scores, traces with several repeats."""
    kind, _, metric = name.partition(".")
    if kind == "repeats":
        drill_into_repeats(filters, judge_model, dimension, split, key=key)
    elif kind == "scores":
        drill_into_scores(filters, judge_model=judge_model, dimension=dimension, split=split, metric=metric, key=key)
    else:
        drill_into_errors(
            filters, judge_model=judge_model, dimension=dimension, split=split, kind=kind, rate=metric, key=key
        )


def drill_into_ceiling(
    filters: Filters, name: str, judge_model: str, dimension: str, split: str, *, key: str, impact: str = "all"
) -> None:
    """What people were compared on where they reach the ceiling of an estimate of this judge."""
    del judge_model
    kind, _, metric = name.partition(".")
    if kind == "scores":
        listed(filters, estimate(filters, "rows_for_people", dimension, split), key=key)
        return
    among = dimension if dimension in DIMENSIONS else ceiling.ANY
    pairs = estimate(filters, "rows_for_people_errors", among, split, kind, metric, impact)
    row = listing(open_to_me(pairs), key=key)
    if row is not None:
        author = str(row["author"])
        open_trace(link_params(trace=str(row["trace_id"]), person=author, pair=str(row["error_id"])), key=f"{key}-open")


def drill_into_scores(
    filters: Filters,
    *,
    key: str,
    judge_model: str = "",
    dimension: str = "",
    split: str = "",
    reference_score: str = "",
    judge_score: str = "",
    metric: str = "",
    of: pd.Series | None = None,
) -> None:
    """The traces scored by both behind a mark; `of`: of these judges, by label."""
    pairs = with_labels(
        estimate(filters, "rows_for_scores", judge_model, dimension, split, reference_score, judge_score, metric)
    )
    pairs = pairs if of is None else pairs[pairs["label"].isin(of)]
    listed(filters, pairs[["trace_id", "label", "judge_model", "reference_score", "judge_score"]], key=key)


def drill_into_repeats(
    filters: Filters,
    judge_model: str,
    dimension: str,
    split: str,
    *,
    key: str,
    between: tuple[float, float] | None = None,
    of: pd.Series | None = None,
) -> None:
    """The traces of a judge's repeats; `between`: those whose spread lies there; `of`: these traces alone."""
    table = estimate(filters, "table.trace_spread")
    rows = table[
        (table["judge_model"] == judge_model)
        & (table["dimension"] == dimension)
        & ((table["split"] == split) | (not split))
    ]
    rows = rows[rows["ratings"] > 1].sort_values("sd", ascending=False, kind="stable")
    if between is not None:
        rows = rows[charts.in_bar(rows["sd"], between)]
    rows = rows if of is None else rows[rows["unit"].isin(of)]
    columns = ["unit", "judge_model", "ratings", "failed", "not_applicable", "mean", "low", "high", "sd"]
    listed(filters, rows[columns].rename(columns={"unit": "trace_id"}), key=key)


def drill_into_raters(filters: Filters, dimension: str, metric: str, first: str, second: str) -> None:
    """The estimate of two raters with its interval, and the traces that both scored."""
    pair = estimate(filters, "rater_pair", dimension, first, second)
    for _, one in pair[pair["metric"] == metric].iterrows():
        text = cell_text(dict(one))
        st.caption(plain(f"{first} and {second}, {PAIR_METRICS[metric].title}: {text}"))
    both = estimate(filters, "rows_for_raters", dimension, first, second)
    named = {"first": f"{first} gave", "second": f"{second} gave"}
    row = listing(
        open_to_me(both).drop(columns=["annotator", "judge_model", "repeat"]).rename(columns=named), key="rows-raters"
    )
    if row is not None:
        one = both[both["trace_id"] == row["trace_id"]].iloc[0]
        person, judge_model = (None if pd.isna(one[name]) else str(one[name]) for name in ("annotator", "judge_model"))
        link = compare_link(
            filters,
            trace=str(row["trace_id"]),
            judge_model=judge_model,
            person=person,
            repeat=repeat_of(one["repeat"]),
        )
        open_trace({**link, **({} if person is None else {"person": person})}, key="raters-open")


def drill_into_errors(
    filters: Filters,
    *,
    key: str,
    judge_model: str = "",
    dimension: str = "",
    split: str = "",
    impact: str = "all",
    error_dimension: str = "",
    kind: str = "",
    rate: str = "",
) -> None:
    """The errors behind a mark."""
    cell = judge_model, dimension, split, impact, error_dimension, kind, rate
    pairs = with_labels(estimate(filters, "rows_for_errors", *cell))
    columns = [
        "trace_id", "error_id", "impact", "dimensions", "label", "judge_model", "dimension", "caught", "localized",
        "match_status", "annotator",
    ]  # fmt: skip
    listed(filters, pairs[columns], key=key)


def listed(
    filters: Filters, rows: pd.DataFrame, *, key: str, repeat: int | None = None, person: str | None = None
) -> None:
    """The rows, and the way from one to Compare; `person`: whose labels it shows, whatever the filters."""
    row = listing(open_to_me(rows), key=key)
    if row is None:
        return
    values = {name: None if row.get(name) is None else str(row[name]) for name in LINKED}
    link = compare_link(
        filters,
        trace=str(row["trace_id"]),
        judge_model=values["judge_model"],
        person=values["annotator"],
        pair=values["error_id"],
        dimension=values["dimension"],
        repeat=repeat,
    )
    open_trace(link if person is None else {**link, "person": person}, key=f"{key}-open")


def open_trace(link: Mapping[str, str], *, key: str) -> None:
    """A button that leads to Compare; to the first span of the error in Work while there is no judge to compare."""
    if not listings.has_trace(link["trace"]):
        st.caption("The workspace does not hold this trace.")
    elif is_judged():
        open_in_compare(link, key=key)
    else:
        open_in_work(link_params(trace=link["trace"], span=listings.first_span(link.get("pair"))), key=key)


def is_judged() -> bool:
    """Whether any judge has answered; without one people can be compared with each other alone."""
    return bool(options.judge_models())


LINKED = ("judge_model", "annotator", "error_id", "dimension")
"""The columns of a list that say where Compare shows a row."""


def repeat_of(rater: object) -> int | None:
    """The repeat in a rater's name: `checks repeat 2` is repeat 2."""
    number = str(rater).rpartition("repeat ")[2]
    return int(number) if number.isdigit() else None


def compare_link(
    filters: Filters,
    *,
    trace: str,
    judge_model: str | None = None,
    person: str | None = None,
    pair: str | None = None,
    dimension: str | None = None,
    repeat: int | None = None,
) -> dict[str, str]:
    """The address of a trace on the Compare page, under the judge, repeat and person that the estimate was made of.

    An error of a majority opens under `person`, whose label it goes by.
    """
    repeat = filters.repeat if repeat is None else repeat
    shown = person if filters.reference in majority.REFERENCE_KINDS else filters.reference
    named = dimension if dimension in DIMENSIONS else None
    return link_params(
        trace=trace,
        judge_model=judge_model,
        person=shown,
        pair=pair,
        dimension=named,
        repeat_no=str(repeat) if repeat else None,
    )
