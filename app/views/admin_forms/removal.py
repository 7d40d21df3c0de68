"""The part of the Ingest page that takes traces out of the workspace: named, backed up, said what stays."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from tracejury.app.components.estimate_text import counted, plain
from tracejury.ingest.store import read_transaction
from tracejury.judging.removal import count_labels, remove_traces
from tracejury.judging.store import Workspace, WorkspaceError

MOST_OFFERED = 5_000  # a browser's list of choices; the command takes any


def remove_form(workspace: Workspace, trace_ids: Sequence[str], *, by: str, may_delete_labels: bool) -> str | None:
    """Let the person choose traces and remove them; what was done, once it is."""
    chosen = st.multiselect(
        "Traces to remove", trace_ids[:MOST_OFFERED], key="remove-traces",
        help="`tracejury traces remove` does the same on the command line.",
    )  # fmt: skip
    if not chosen:
        return None
    with read_transaction(workspace.engine) as connection:
        labels = count_labels(connection, chosen)
    with_labels = st.checkbox(
        f"Delete their labels too ({counted(labels, 'row')})", key="remove-labels",
        disabled=not labels or not may_delete_labels,
        help="Otherwise labels stay, and count again once the trace is ingested again. Needs the role admin.",
    )  # fmt: skip
    if not st.button(f"Remove {counted(len(chosen), 'trace')}", key="remove", icon=":material/delete:"):
        return None
    try:
        removal = remove_traces(workspace, chosen, with_labels=with_labels and may_delete_labels, by=by)
    except WorkspaceError as error:
        st.error(plain(f"Nothing was removed: {error}"))
        return None
    outcome = f"{counted(removal.labels, 'row')} of labels deleted" if with_labels else "their labels stay"
    return f"{counted(len(removal.traces), 'trace')} removed, {outcome}. Backup: {removal.backup.name}."
