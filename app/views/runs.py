"""Judge runs: what was asked, how far they are, what they cost, which failed; started, paused and resumed here."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from sqlalchemy import Engine, func, select

from app import loading
from app.components import charts, layout
from app.components.figures import counted, plain
from app.components.sheet import sheet
from app.estimating import EstimateError, estimate
from app.session import user, workspace
from ingest.store import reading, trace_ids
from judging.ledger import tables
from judging.ledger.runs import FAILED_STATES, OPEN_STATES, plan_run, want_failed_again, watch, wish
from judging.records import DIMENSIONS
from judging.rubric import agent_descriptions, rubrics
from judging.run import RunSpec

CONFIG = {"displaylogo": False, "displayModeBar": False}
REFRESH_S = 2.0


def page() -> None:
    loading.must("researcher")
    layout.heading("Runs")
    with st.expander("Start a run", icon=":material/play_arrow:", key="start"):
        start()
    runs = listed()
    if runs.empty:
        st.info(
            "No judge has run yet. Start one above (then `tracejury worker` works on it), judge offline with "
            "`tracejury judge`, or bring answers in with `tracejury verdicts import`."
        )
        return
    run_key = choose(runs)
    is_open = bool(runs.loc[runs["run"] == run_key, "waiting"].iloc[0])
    st.fragment(one_run, key="one-run", run_every=REFRESH_S if is_open else None)(run_key)


def listed() -> pd.DataFrame:
    """Every run, newest first: run, name, status, cells, scored, not_applicable, failed, waiting, cost_usd, by, at."""
    run, cell = tables.run, tables.cell
    with reading(workspace().engine) as connection:
        rows = connection.execute(select(run).order_by(run.c.run_key.desc())).all()
        counts = connection.execute(
            select(cell.c.run_key, cell.c.state, func.count(), func.sum(cell.c.cost_usd)).group_by(
                cell.c.run_key, cell.c.state
            )
        ).all()
    by_run: dict[int, dict[str, int]] = {}
    cost: dict[int, float | None] = {}
    for key, state, count, paid in counts:
        by_run.setdefault(key, {})[state] = count
        if paid is not None:
            cost[key] = (cost.get(key) or 0.0) + float(paid)
    return pd.DataFrame(
        [
            {
                "run": row.run_key,
                "name": row.name,
                "status": row.status,
                "cells": sum(by_run.get(row.run_key, {}).values()),
                "scored": by_run.get(row.run_key, {}).get("scored", 0),
                "not_applicable": by_run.get(row.run_key, {}).get("not_applicable", 0),
                "failed": sum(by_run.get(row.run_key, {}).get(state, 0) for state in FAILED_STATES),
                "waiting": sum(by_run.get(row.run_key, {}).get(state, 0) for state in OPEN_STATES),
                "cost_usd": cost.get(row.run_key),
                "by": row.author,
                "at": pd.Timestamp(row.created_at, unit="us", tz="UTC"),
            }
            for row in rows
        ],
        columns=[
            "run",
            "name",
            "status",
            "cells",
            "scored",
            "not_applicable",
            "failed",
            "waiting",
            "cost_usd",
            "by",
            "at",
        ],
    )


def choose(runs: pd.DataFrame) -> int:
    with st.container(border=True):
        layout.title(counted(len(runs), "run"), "Newest first.")
        price = st.column_config.NumberColumn("cost, US$", format="%.4f", help="n/a: no price is known")
        sheet(runs, most=6, columns={"cost_usd": price})
    names = {f"{row.run} · {row.name}": int(row.run) for row in runs.itertuples()}  # type: ignore[arg-type]
    chosen = st.selectbox("Run", list(names), key="run", width=520, bind="query-params")
    return names[str(chosen)]


def one_run(run_key: int) -> None:
    engine = workspace().engine
    found = watch(engine, run_key)
    states: dict[str, int] = {str(k): int(v) for k, v in dict(found["states"]).items()}  # type: ignore[arg-type]
    total = max(sum(states.values()), 1)
    waiting = sum(states.get(state, 0) for state in OPEN_STATES)
    st.progress((total - waiting) / total, text=f"{total - waiting:,} of {total:,} judgements · {found['status']}")
    if found["message"]:
        st.text(str(found["message"]))
    if waiting and not found["worker_alive"]:
        st.caption("No worker is at it. Start one: `tracejury worker`")
    steer(run_key, str(found["status"]), states)
    cells = cells_of(run_key)
    if cells.empty:
        return
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True):
        layout.title("Outcomes by judge", "Scores 0 to 3; n/a: not applicable; failures by name.")
        drawn = charts.score_bars(outcome_counts(cells))
        st.plotly_chart(drawn, key="chart-outcomes", config=CONFIG, alt="Outcomes by judge")
    with right, st.container(border=True):
        cost_and_time(cells)
    with st.container(border=True):
        failures(cells)


def steer(run_key: int, status: str, states: dict[str, int]) -> None:
    engine = workspace().engine
    with st.container(horizontal=True):
        if status in {"queued", "running"}:
            st.button("Pause", key="pause", icon=":material/pause:", on_click=wish, args=(engine, run_key, "paused"))
        if status == "paused":
            st.button(
                "Resume", key="resume", icon=":material/play_arrow:", on_click=wish, args=(engine, run_key, "queued")
            )
        if status in {"queued", "running", "paused"}:
            st.button(
                "Cancel", key="cancel", icon=":material/stop:", on_click=wish, args=(engine, run_key, "cancelled")
            )
        failed = sum(states.get(state, 0) for state in FAILED_STATES)
        if failed and status in {"done", "paused", "cancelled"} and can_run_again(run_key):
            st.button(
                f"Judge {failed:,} failed again", key="again", icon=":material/replay:", on_click=judge_again,
                args=(engine, run_key),
            )  # fmt: skip


def judge_again(engine: Engine, run_key: int) -> None:
    want_failed_again(engine, run_key)


def can_run_again(run_key: int) -> bool:
    """Only runs that a worker can take: not offline checks, not imports."""
    spec = watch(workspace().engine, run_key)["spec"]
    return isinstance(spec, dict) and "models" in spec and spec.get("mode") != "checks"


def cells_of(run_key: int) -> pd.DataFrame:
    """Finished judgements of a run: judge, trace_id, repeat, state, score, reason, cost_usd, latency_s, tokens."""
    cell = tables.cell
    columns = [
        cell.c.judge, cell.c.trace_id, cell.c.repeat, cell.c.state, cell.c.score, cell.c.reason, cell.c.cost_usd,
        cell.c.latency_s, cell.c.prompt_tokens, cell.c.completion_tokens, cell.c.attempts,
    ]  # fmt: skip
    with reading(workspace().engine) as connection:
        rows = connection.execute(
            select(*columns).where(cell.c.run_key == run_key, cell.c.finished_at.is_not(None)).order_by(cell.c.cell_key)
        )
        return pd.DataFrame(rows.all(), columns=[column.name for column in columns])


def outcome_counts(cells: pd.DataFrame) -> pd.DataFrame:
    """judge, outcome, count."""
    named = cells["state"].where(cells["state"] != "not_applicable", "n/a")
    outcome = [
        str(int(score)) if state == "scored" else state for state, score in zip(named, cells["score"], strict=True)
    ]
    return cells.assign(outcome=outcome).groupby(["judge", "outcome"]).size().rename("count").reset_index()


def cost_and_time(cells: pd.DataFrame) -> None:
    layout.title("Cost and time", "Of each judgement; offline checks and imports have none.")
    paid = pd.to_numeric(cells["cost_usd"]).sum(min_count=1)
    tokens = pd.to_numeric(cells["prompt_tokens"]).sum(min_count=1)
    with st.container(horizontal=True):
        st.metric("Cost, US$", "unknown" if pd.isna(paid) else f"{paid:,.4f}", border=True)
        st.metric("Prompt tokens", "unknown" if pd.isna(tokens) else f"{int(tokens):,}", border=True)
    timed = cells.rename(columns={"judge": "label", "latency_s": "value"})[["label", "value"]].dropna()
    if timed.empty:
        st.caption("No judgement of this run was timed.")
        return
    drawn = charts.boxes(timed.astype({"value": "float64"}), y_title="seconds a judgement")
    st.plotly_chart(drawn, key="chart-latency", config=CONFIG, alt="Latency by judge")


def failures(cells: pd.DataFrame) -> None:
    failed = cells[cells["state"].isin(FAILED_STATES)]
    layout.title(
        f"{len(failed):,} failed of {counted(len(cells), 'judgement')}", "A failed judgement is never a score."
    )
    if failed.empty:
        st.caption("None failed.")
        return
    sheet(failed[["judge", "trace_id", "repeat", "state", "reason", "attempts"]], most=8)


def start() -> None:
    known, agents = rubrics(workspace().home), agent_descriptions(workspace().home)
    with st.form("new-run", border=False):
        left, right = st.columns(2)
        model = left.text_input(
            "Model", key="new_model", placeholder="gpt-4.1, anthropic/claude-…, ollama/…", help=_MODEL_HELP
        )
        judges = right.multiselect(
            "Judges", list(known), default=[d for d in DIMENSIONS if d in known], key="new_judges"
        )
        with st.container(horizontal=True):
            repeats = st.number_input("Repeats", 1, 100, 1, key="new_repeats", width=120)
            mode = st.selectbox("Mode", ["trace", "span"], key="new_mode", width=140)
            budget = st.number_input("Budget, US$ (0: none)", 0.0, None, 0.0, key="new_budget", width=180)
            agent = st.selectbox("Agent description", ["auto", "none", *agents], key="new_agent", width=220)
        base = st.text_input(
            "Address of an OpenAI-compatible server", key="new_base", placeholder="empty: the provider's own"
        )
        with st.container(horizontal=True):
            wanted = st.form_submit_button("Queue the run", type="primary", icon=":material/playlist_add:")
            asked = st.form_submit_button("Estimate the cost", icon=":material/calculate:")
    if not (wanted or asked):
        return
    try:
        spec = RunSpec(
            judges=tuple(judges),
            models=(model.strip(),) if model.strip() else (),
            repeats=int(repeats),
            mode="span" if mode == "span" else "trace",
            agent=str(agent),
            api_base=base.strip() or None,
            budget_usd=float(budget) or None,
        )
    except ValueError as error:
        st.error(plain(str(error)))
        return
    with reading(workspace().engine) as connection:
        traces = trace_ids(connection)
    if not traces:
        st.error("There is no trace to judge. Bring some in on the Ingest page.")
        return
    if asked:
        show_estimate(spec)
        return
    name = f"{', '.join(spec.judges)} by {', '.join(spec.models)}"
    key = plan_run(workspace().engine, spec, traces, rubrics=known, agents=agents, name=name, author=user().name)
    st.session_state["run"] = f"{key} · {name}"  # the new run is the one to look at
    calls = len(traces) * len(spec.judges) * spec.repeats
    st.success(f"Run {key} is queued: {counted(calls, 'judgement')}. `tracejury worker` works on it.")


def show_estimate(spec: RunSpec) -> None:
    """The cost of the run in four ways, at public prices."""
    try:
        with st.spinner("Counting tokens"):
            found = estimate(spec, workspace().home)
    except EstimateError as error:
        st.error(plain(str(error)))
        return
    price = {
        way: st.column_config.NumberColumn(f"{way}, US$", format="%.2f", help=about) for way, about in _WAYS.items()
    }
    sheet(found, most=10, columns=price)
    st.caption("n/a: no public price is known for this model. Nothing has been called.")


_WAYS = {
    "naive": "the raw trace file in every call",
    "deduplicated": "our text in every call, no cache",
    "cached": "our text first, read from the provider's cache by all but the first call of a trace",
    "batch": "our text through the provider's batch interface",
}
_MODEL_HELP = "Any model name that litellm knows; its key is read from the worker's environment, never kept here."

page()
