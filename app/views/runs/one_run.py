"""One run: how far it is, the buttons that pause, resume and cancel it, and the cards of what it found."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from sqlalchemy import Engine

from tracejury.app import listings
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.painting import paint
from tracejury.app.run_processes import RUNS
from tracejury.app.session import workspace
from tracejury.app.views.runs.cells import finished_of, last_finished
from tracejury.app.views.runs.costs import costs_card
from tracejury.app.views.runs.jury import jury_card
from tracejury.app.views.runs.outcomes import failures_card, outcomes_card
from tracejury.judging.records import FAILED_STATES
from tracejury.judging.runs.run_control import asks_models, request_status, want_failed_again, watch
from tracejury.judging.runs.run_spec import RunStatus
from tracejury.judging.runs.run_store import OPEN_STATES


def one_run(run_key: int) -> None:
    progress = watch(workspace().engine, run_key)
    states, spec = progress["states"], progress["spec"]
    total = max(sum(states.values()), 1)
    waiting = sum(states.get(state, 0) for state in OPEN_STATES)
    st.progress((total - waiting) / total, text=f"{total - waiting:,} of {total:,} cells · {progress['status']}")
    if progress["message"]:
        st.text(progress["message"])
    is_owned = has_owner(run_key, is_alive=progress["owner_alive"])
    perhaps_paid(progress["unanswered"], progress["unanswered_usd"])
    if asks_models(spec):
        steer(run_key, progress["status"], states, is_owned=is_owned)
    finished = finished_of(listings.place(), run_key, tuple(sorted(states.items())), last_finished(run_key))
    if finished.outcomes.empty:
        return
    paint("runs")
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, height="stretch"):
        outcomes_card(run_key, finished)
    with right, st.container(border=True, height="stretch"):
        costs_card(run_key, finished, unpriced=progress["unpriced"], is_called=spec.get("mode") != "checks")
    if spec.get("mode") == "jury":
        with st.container(border=True):
            jury_card(run_key, "mean" if spec.get("jury_rule") == "mean" else "majority")
    with st.container(border=True):
        failures_card(run_key, finished)


def has_owner(run_key: int, *, is_alive: bool) -> bool:
    """Whether a process works on the run or is about to; says how the one that was started here ended."""
    home = workspace().home
    ended = RUNS.end_of(home, run_key)
    if ended is not None and not is_alive:
        st.warning(plain(ended))
    return is_alive or bool(RUNS.is_at_work(home, run_key))


def perhaps_paid(requests: int, most_usd: float | None) -> None:
    """Requests whose answer is unknown, and what they may have cost beside the known cost."""
    if not requests:
        return
    most = "at a price unknown" if most_usd is None else f"US$ {most_usd:,.4f} at most"
    st.caption(
        f"{counted(requests, 'request')} sent without a known answer (the process or the connection ended, or the "
        f"request timed out); the provider may charge for them, {plain(most)}, in addition to the cost below."
    )


def steer(run_key: int, status: RunStatus, states: Mapping[str, int], *, is_owned: bool) -> None:
    """The buttons that fit where the run stands; one that wants to go on and has no process is resumed here too."""
    this_run = (workspace().engine, run_key)
    is_open, is_stopped = status in {"queued", "running"}, status in {"paused", "out of budget"}
    failed = sum(states.get(state, 0) for state in FAILED_STATES)
    waits = is_open and not is_owned
    if waits:
        st.caption("No process works on this run. Its judged cells stay stored. Try: Resume.")
    with st.container(horizontal=True):
        if is_open and is_owned:
            st.button(
                "Pause", key="pause", icon=":material/pause:", on_click=request_status, args=(*this_run, "paused")
            )
        if waits or is_stopped:
            st.button("Resume", key="resume", icon=":material/play_arrow:", on_click=go_on, args=this_run)
        if is_open or is_stopped:
            st.button(
                "Cancel", key="cancel", icon=":material/stop:", on_click=request_status, args=(*this_run, "cancelled")
            )
        if failed and not is_open:
            st.button(
                f"Retry {failed:,} failed", key="again", icon=":material/replay:", on_click=judge_again, args=this_run
            )


def go_on(engine: Engine, run_key: int) -> None:
    """Start run again, and have a process of its own work on it."""
    request_status(engine, run_key, "queued")
    RUNS.start(workspace().home, run_key)


def judge_again(engine: Engine, run_key: int) -> None:
    want_failed_again(engine, run_key)
    RUNS.start(workspace().home, run_key)
