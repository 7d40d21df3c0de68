"""Judge runs: what was asked, how far they are, what they cost, which failed; started, paused and resumed here."""

from __future__ import annotations

from collections import Counter, defaultdict

import pandas as pd
import streamlit as st
from sqlalchemy import func, select

from tracejury.app.components import layout
from tracejury.app.components.data_table import data_table
from tracejury.app.components.estimate_text import counted
from tracejury.app.session import must, workspace
from tracejury.app.views.benchmark_executions import benchmark_card
from tracejury.app.views.runs.cells import COST_USD
from tracejury.app.views.runs.one_run import one_run
from tracejury.app.views.runs.start import start
from tracejury.ingest.store import read_transaction
from tracejury.judging.records import FAILED_STATES
from tracejury.judging.runs.run_store import OPEN_STATES
from tracejury.judging.store import tables

REFRESH_S = 2.0
LISTED = {
    "name": st.column_config.TextColumn("name", width=300),
    "cells": st.column_config.NumberColumn(
        "cells", format="localized", help="Dimensions × judge models × traces × repeats"
    ),
    "scored": st.column_config.NumberColumn("scored", format="localized", help="Verdicts with a score of 0 to 3"),
    "not_applicable": st.column_config.NumberColumn(
        "not applicable", format="localized", help="Verdicts that the dimension does not apply to the trace"
    ),
    "errors_only": st.column_config.NumberColumn(
        "errors only", format="localized", help="Answered by a judge that reports errors and gives no score"
    ),
    "tied": st.column_config.NumberColumn("tied", format="localized", help="The models of a jury share the vote"),
    "failed": st.column_config.NumberColumn(
        "failed", format="localized", help="Failures: the judge did not answer, or its answer could not be read"
    ),
    "waiting": st.column_config.NumberColumn("waiting", format="localized", help="Not judged yet"),
    "cost_usd": COST_USD,
}


def page() -> None:
    must("researcher")
    layout.heading("Runs")
    with st.expander("Start a run", icon=":material/play_arrow:", key="start"):
        start()
    benchmark_card()
    runs = listed()
    if runs.empty:
        st.info(
            "This workspace holds no runs. Try: start a run above, or `tracejury judge` (offline), or `tracejury "
            "verdicts import`."
        )
        return
    run_key = choose(runs)
    is_open = bool(runs.loc[runs["run"] == run_key, "waiting"].iloc[0])
    st.fragment(one_run, key="one-run", run_every=REFRESH_S if is_open else None)(run_key)


def listed() -> pd.DataFrame:
    """Every run, newest first, with its cells by what became of them."""
    run, cell = tables.run, tables.cell
    with read_transaction(workspace().engine) as connection:
        rows = connection.execute(select(run).order_by(run.c.run_key.desc())).all()
        counts = connection.execute(
            select(cell.c.run_key, cell.c.state, func.count(), func.sum(cell.c.cost_usd)).group_by(
                cell.c.run_key, cell.c.state
            )
        ).all()
    states: defaultdict[int, Counter[str]] = defaultdict(Counter)
    costs: defaultdict[int, list[float]] = defaultdict(list)
    for key, state, count, cost in counts:
        states[key][state] = count
        costs[key] += [] if cost is None else [float(cost)]
    return pd.DataFrame(
        [
            {
                "run": row.run_key,
                "name": row.name,
                "status": row.status,
                "cells": of_run.total(),
                **{state: of_run[state] for state in ("scored", "not_applicable", "errors_only", "tied")},
                "failed": sum(of_run[state] for state in FAILED_STATES),
                "waiting": sum(of_run[state] for state in OPEN_STATES),
                "cost_usd": sum(costs[row.run_key]) if costs[row.run_key] else None,
                "by": row.author,
                "at": pd.Timestamp(row.created_at, unit="us", tz="UTC"),
            }
            for row in rows
            for of_run in [states[row.run_key]]
        ]
    )


def choose(runs: pd.DataFrame) -> int:
    with st.container(border=True):
        layout.title(counted(len(runs), "run"), "Newest first.")
        data_table(runs, most=6, columns=LISTED)
    names = {f"{row.run} · {row.name}": int(row.run) for row in runs.itertuples()}  # type: ignore[arg-type]
    chosen = st.selectbox("Run", list(names), key="run", width=760, bind="query-params")
    return names[str(chosen)]


page()
