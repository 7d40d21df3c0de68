"""Benchmark executions on the Runs page: a row an execution, the span table of one growing while it runs, and Stop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from tracejury.app import listings
from tracejury.app.components import layout
from tracejury.app.components.data_table import data_table
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.session import workspace
from tracejury.ingest.table import span_frame
from tracejury.judging.gaia2.folders import ExecutionState, execution_states, request_stop
from tracejury.judging.gaia2.live import last_words, live_trace

REFRESH_S = 2.0
SPANS = ("seq", "kind", "name", "status", "turn", "step", "output")
MOST_TEXT = 200
DECIDED = frozenset({"success", "failed", "max_iterations"})
"""Statuses that tell what the benchmark's judge said."""


def benchmark_card() -> None:
    """The card of benchmark executions; nothing where none was started here."""
    states = execution_states(workspace().home)
    if states:
        is_open = any(one.status == "running" for one in states)
        st.fragment(_card, key="card-benchmark", run_every=REFRESH_S if is_open else None)()


def _card() -> None:
    every = execution_states(workspace().home)
    states = _open_to_me(every)
    running = [one for one in states if one.status == "running"]
    with st.container(border=True):
        layout.title(counted(len(every), "benchmark execution"), f"{len(running)} under way. Newest first.")
        if own := len(every) - len(states):
            st.info(f"{counted(own, 'execution')} left out because you are labelling the trace blind. Submit it first.")
        data_table(_table(states), most=6, key="benchmark-executions")
        if running:
            st.button("Stop all", key="stop-all", icon=":material/stop:", on_click=_stop, args=(running,))
        if (state := _chosen(states)) is not None:
            _one(state)


def _open_to_me(states: Sequence[ExecutionState]) -> list[ExecutionState]:
    """Those that the person at the screen does not label blind; that this person now knows how they ended is stored."""
    blind = listings.blind_to_me()
    shown = [one for one in states if one.trace_id not in blind]
    ended = [one.trace_id for one in shown if one.status in DECIDED]
    listings.note_rows(pd.DataFrame({"trace_id": ended}), "Runs")
    return shown


def _chosen(states: Sequence[ExecutionState]) -> ExecutionState | None:
    """The execution that is chosen by its name: rows move while executions start, and Stop must not meet another."""
    by_name = {one.trace_id: one for one in states}
    name = st.selectbox("Benchmark execution", list(by_name), index=None, key="benchmark-execution", width=760)
    return by_name.get(str(name))


def _table(states: Sequence[ExecutionState]) -> pd.DataFrame:
    """A row an execution: where it stands, on the simulated clock too."""
    return pd.DataFrame(
        [
            {
                "scenario": one.scenario,
                "capability": one.capability,
                "model": one.model,
                "repeat": one.repeat,
                "status": one.status.replace("_", " "),
                "turn": one.turn,
                "step": one.step,
                "simulated time": _clock(one.clock),
                "tokens": one.tokens,
                "cost_usd": one.cost_usd,
                "last tool": one.last_tool or "",
            }
            for one in states
        ]
    ).astype({"turn": "Int64", "step": "Int64", "tokens": "Int64", "cost_usd": "float64"})


def _clock(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def _one(state: ExecutionState) -> None:
    """One execution: its spans so far, its last words where its process is gone, and Stop while it runs."""
    layout.title(state.trace_id, state.message or "")
    if state.status == "running":
        st.button("Stop", key="stop-one", icon=":material/stop:", on_click=_stop, args=([state],))
    if state.status == "gone":
        st.warning(
            "The process of this execution is gone. Try: `tracejury gaia2 run` with the same settings, which "
            "stores what it left."
        )
        st.code(plain(last_words(state.folder)) or "no words", language=None)
    trace = live_trace(state.folder)
    if trace is None:
        st.caption("No step yet.")
        return
    frame = span_frame([trace])[list(SPANS)]
    frame["output"] = frame["output"].astype("string").str.slice(0, MOST_TEXT)
    data_table(frame, most=12, key="benchmark-spans")


def _stop(states: Sequence[ExecutionState]) -> None:
    for one in states:
        request_stop(one.folder)
