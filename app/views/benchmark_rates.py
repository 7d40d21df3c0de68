"""The view Benchmark of Agreement: success by capability and model, beside the judges' scores of the same traces."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import streamlit as st

from tracejury.app import listings
from tracejury.app.components import charts, layout
from tracejury.app.components.data_table import data_table
from tracejury.app.components.drilldown import chosen_point, clickable_chart, listing, open_in_work
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.datasets import open_to_me
from tracejury.app.painting import paint
from tracejury.app.session import link_params, workspace
from tracejury.ingest.gsr import Execution
from tracejury.ingest.store import load, read_transaction
from tracejury.judging.reports.benchmark_outcomes import executions_of, grouped, success_bounds
from tracejury.judging.reports.benchmark_scores import (
    beside_scores,
    disagreements,
    execution_frame,
    expected_and_done,
    mean_scores,
    score_summary,
)
from tracejury.judging.reports.columns import load_columns
from tracejury.judging.store.revisions import Revision

KINDS = ("As the harness counts it", "Judged executions only")


class _Known(NamedTuple):
    """The executions of a workspace, and each with the judges' mean scores."""

    executions: list[Execution]
    frame: pd.DataFrame
    beside: pd.DataFrame


def benchmark_view() -> None:
    known = _known(listings.place(), listings.now_revision())
    if known.frame.empty:
        st.info(
            "This workspace holds no benchmark executions. Try: ingest executions of GAIA2 (ARE or MASEval), or "
            "run some: `tracejury gaia2 setup`, then `tracejury gaia2 run samples --model MODEL --judge-model "
            "MODEL`."
        )
        return
    with st.container(border=True):
        _rates_card(known)
    with st.container(border=True):
        _scores_card(known)


@st.cache_resource(show_spinner=False, max_entries=2)
def _known(place: str, now: Revision) -> _Known:
    with read_transaction(workspace().engine) as connection:
        executions = executions_of(connection)
        cells = load_columns(connection)
    current = cells.cells[cells.cells["judge_version"].isin(list(cells.current))]
    frame = execution_frame(executions)
    return _Known(executions, frame, beside_scores(frame, mean_scores(current)))


def rate_rows(executions: list[Execution], *, is_judged: bool) -> pd.DataFrame:
    """One row per capability of executions that may be counted together: label, key, value, low, high, n, reason."""
    rows = []
    for key, group in grouped(one for one in executions if one.counts).items():
        names = [
            key[2] or "unknown model",
            *([f"judge {key[3]}"] if key[3] else []),
            key[0],
            *([key[4]] if key[4] else []),
        ]
        for capability in [*sorted({one.group for one in group}), "all"]:
            of_capability = [one.judged if is_judged else one for one in group if capability in {one.group, "all"}]
            scored = [one for one in of_capability if one.score is not None]
            low, high = success_bounds(scored) or (None, None)
            rows.append(
                {
                    "label": f"{capability} · {', '.join(names)}",
                    "judge_model": "/".join(key),
                    "dimension": capability,
                    "value": sum(one.score or 0.0 for one in scored) / len(scored) if scored else None,
                    "low": low,
                    "high": high,
                    "n": len(scored),
                    "reason": None if scored else "no execution scored",
                }
            )
    numbers = dict.fromkeys(("value", "low", "high"), "float64")
    return pd.DataFrame(rows).astype(numbers)


@st.fragment(key="card-benchmark-rates")
def _rates_card(known: _Known) -> None:
    layout.title(
        "Success by capability and model",
        "Share of executions that reached the goal, with its 95 % interval (Wilson's, for scenarios executed several "
        "times). Executions of different harnesses, models, judges and settings are never counted together.",
    )
    kind = st.segmented_control(
        "Rate", KINDS, default=KINDS[0], required=True, key="benchmark-kind", label_visibility="collapsed"
    )
    rows = rate_rows(known.executions, is_judged=kind == KINDS[1])
    paint("benchmark")
    event = clickable_chart(
        charts.forest(rows, title="success rate"), key="chart-benchmark", alt="Success by capability and model"
    )
    point = chosen_point(event)
    shown = known.frame if point is None else _rows_for(known, str(point[0]), str(point[1]))
    _executions(shown, key="benchmark-rate-executions")


def _rows_for(known: _Known, key: str, capability: str) -> pd.DataFrame:
    ids = {one.trace_id for one in known.executions if "/".join(one.key) == key and capability in {one.group, "all"}}
    return known.frame[known.frame["trace_id"].isin(ids)]


@st.fragment(key="card-benchmark-scores")
def _scores_card(known: _Known) -> None:
    layout.title(
        "Beside the judges' scores",
        "Mean score (0 to 3) over dimensions and repeats, for executions that passed the benchmark and for those "
        "that failed.",
    )
    if known.beside.empty:
        st.caption(
            "No judge has scored a benchmark execution yet. Try: `tracejury judge`, or `tracejury gaia2 run ... "
            "--then-judge checks`."
        )
        return
    data_table(score_summary(known.beside), key="benchmark-scores")
    apart = open_to_me(disagreements(known.beside))
    layout.title(
        counted(len(apart), "disagreement"), "Succeeded with a mean score of 1 or less, or failed with 2 or more."
    )
    _executions(apart, key="benchmark-apart")


def _executions(rows: pd.DataFrame, *, key: str) -> None:
    """The executions, the way from one to its trace, and what was expected of it."""
    row = listing(open_to_me(rows), key=key)
    if row is None:
        return
    trace_id = str(row["trace_id"])
    open_in_work(link_params(trace=trace_id), key=f"{key}-open")
    with read_transaction(workspace().engine) as connection:
        trace = load(connection, trace_id, with_logs=False)
    if trace.expected_events:
        st.caption(plain(f"Expected and actual actions of the agent in {trace_id}"))
        data_table(expected_and_done(trace), key=f"{key}-expected")
