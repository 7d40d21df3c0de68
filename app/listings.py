"""What pages list of the workspace: traces, people's work, single rows; read anew when the data changed."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import streamlit as st
from sqlalchemy import select

from tracejury.app.session import user, workspace
from tracejury.ingest.store import read_transaction, schema
from tracejury.ingest.table import query_frame, trace_frame
from tracejury.judging.labels.anchoring import at_work_blind
from tracejury.judging.labels.label_store import error_labels, reviews
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.labels.submissions import submitted
from tracejury.judging.reports.workload import workload
from tracejury.judging.store import tables
from tracejury.judging.store.revisions import Revision, revision, traces_revision

MANY = 1_000  # traces up to which a choice lists all: the browser draws the list anew each time


def place() -> str:
    """Which database: in the key of every cache beside the revision."""
    return str(workspace().engine.url)


def now_revision() -> Revision:
    """The revision of the data: in the key of every cache below."""
    with read_transaction(workspace().engine) as connection:
        return revision(connection)


def traces() -> pd.DataFrame:
    """The list of traces with their summaries, in order of ingestion. Shared between sessions: never change it."""
    with read_transaction(workspace().engine) as connection:
        now = traces_revision(connection)
    return _traces(place(), now)


@st.cache_resource(show_spinner=False, max_entries=2)
def _traces(place: str, now: Revision) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return trace_frame(connection)


def has_traces() -> bool:
    """Whether there is any trace here."""
    with read_transaction(workspace().engine) as connection:
        return connection.scalar(select(schema.trace.c.trace_id).limit(1)) is not None


def has_trace(trace_id: str) -> bool:
    """Whether this trace is here: labels of one that is not wait for it."""
    with read_transaction(workspace().engine) as connection:
        return connection.scalar(select(schema.trace.c.trace_id).where(schema.trace.c.trace_id == trace_id)) is not None


def blind_to_me() -> frozenset[str]:
    """The traces that the person at the screen labels blind now: nothing that is said of them may be shown."""
    with read_transaction(workspace().engine) as connection:
        return at_work_blind(connection, user().name)


def note_rows(rows: pd.DataFrame, what: str) -> None:
    """Store that the person at the screen has seen these rows of labels and verdicts: see `sightings`."""
    ids = {str(one) for name in ("trace_id", "unit") if name in rows for one in rows[name].dropna()}
    note_seen(workspace().engine, annotator=user().name, trace_ids=ids, what=what)


def team() -> pd.DataFrame:
    """`workload` of everyone."""
    return _team(place(), now_revision())


@st.cache_resource(show_spinner=False, max_entries=2)
def _team(place: str, now: Revision) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return workload(connection)


def submitted_by(person: str) -> pd.DataFrame:
    """trace_id, errors, minutes (missing: unknown), submitted_at of every trace that a person has submitted."""
    review, error = tables.review.c, tables.error_label
    query = submitted(review.trace_id, review.active_ms, review.created_at, of=(review.annotator == person,))
    with read_transaction(workspace().engine) as connection:
        rows = query_frame(connection, query.order_by(review.created_at, review.trace_id))
        counts = Counter(
            e.trace_id for e in error_labels(connection, error.c.occasion == 0, error.c.annotator == person)
        )
    return pd.DataFrame(
        {
            "trace_id": rows["trace_id"],
            "errors": [counts[trace_id] for trace_id in rows["trace_id"]],
            "minutes": pd.to_numeric(rows["active_ms"]) / 60_000,
            "submitted_at": pd.to_datetime(rows["created_at"], unit="us", utc=True),
        }
    )


def first_span(label_id: str | None) -> str | None:
    """The span that an error names first, None where there is no such error."""
    with read_transaction(workspace().engine) as connection:
        known = error_labels(connection, tables.error_label.c.label_id == (label_id or ""))
    return next((span for error in known for span in error.span_ids), None)


def skip_reasons() -> pd.DataFrame:
    """annotator, trace_id, reason of every trace that was skipped."""
    return _skip_reasons(place(), now_revision())


@st.cache_resource(show_spinner=False, max_entries=2)
def _skip_reasons(place: str, now: Revision) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        skipped = [r for r in reviews(connection) if r.status == "skipped"]
    return pd.DataFrame(
        [(r.annotator, r.trace_id, r.reason) for r in skipped], columns=["annotator", "trace_id", "reason"]
    )
