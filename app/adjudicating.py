"""What people said of every trace and what was decided, in memory for the Adjudicate page: read when it changed."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import streamlit as st

from tracejury.app import estimates
from tracejury.app.listings import place
from tracejury.app.session import workspace
from tracejury.ingest.store import read_transaction
from tracejury.judging.adjudication.adjudication_items import (
    Opinions,
    TraceDecisions,
    all_opinions,
    decisions_by_trace,
    decisions_revision,
    opinions_revision,
)
from tracejury.judging.store.revisions import Revision

_reads = threading.Lock()


def opinions_now(seed: str) -> Opinions:
    """Of now, the same after every decision. Shared between sessions: never changed."""
    with read_transaction(workspace().engine) as connection:
        now = opinions_revision(connection)
    with _reads:  # who comes while it is being read waits for it, and does not read it too
        return _opinions(place(), now, seed)


def decisions_now() -> Mapping[str, TraceDecisions]:
    """What has been decided, by trace. Shared between sessions: never changed."""
    with read_transaction(workspace().engine) as connection:
        return _decisions(place(), decisions_revision(connection))


def warm() -> None:
    """Read it before the first person asks, where that takes long."""
    if not estimates.is_small_now():
        opinions_now(workspace().secret())


@st.cache_resource(show_spinner=False, max_entries=2)
def _opinions(place: str, now: Revision, seed: str) -> Opinions:
    last = _last_opinions(place, seed)
    with read_transaction(workspace().engine) as connection:
        last[:] = [all_opinions(connection, seed=seed, before=last[0] if last else None)]
    return last[0]


@st.cache_resource(show_spinner=False, max_entries=2)
def _last_opinions(place: str, seed: str) -> list[Opinions]:
    """What was read last: of it, only the traces that changed are read again."""
    return []


@st.cache_resource(show_spinner=False, max_entries=2)
def _decisions(place: str, now: Revision) -> dict[str, TraceDecisions]:
    with read_transaction(workspace().engine) as connection:
        return decisions_by_trace(connection)
