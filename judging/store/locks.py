"""Which lock a write takes: the subjects that writers give to `write_transaction`.

On PostgreSQL writers of one subject wait for each other, those of different ones do not. A subject "labels: ..." is
part of LABELS: a writer of the whole waits for those of its parts and they for it. A writer that names none waits for
all and all wait for it: migrations, and moves into another database, of which nothing written meanwhile may be lost.
SQLite has one writer at a time. What a write reads before it decides must be written under the same subject.

| a write of | takes |
|---|---|
| traces, their summaries and the index of words | `ingest.store.TRACES` |
| removed traces | TRACES, QUEUES, MATCHES and `labels_of_all(traces)`; with their labels COMMENTS |
| labels, decisions and gold on a trace | `labels_of(trace)`; a label's own id where it may belong to another trace |
| what numbers by the newest label | LABELS |
| reviews, places, queues | QUEUES |
| people, their settings, invitations and tokens | PEOPLE |
| matches and reviews of findings | MATCHES |
| judge versions | JUDGES |
| cells, requests and state of a run | `cells_of(run)` |
| joint verdicts of a run | JUDGES and `cells_of(run)` |
| citations of verdicts that came before their trace | TRACES and `cells_of(run)` |
| comments, messages, returns | COMMENTS |
| the guideline and who acknowledged it | GUIDELINE |
| settings of the workspace, its secret, rates of the rule and saved views | SETTINGS |
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

MOST = 1000
"""Locks that one write takes; the server has room for some thousands in all."""
LABELS: Final = "labels"
QUEUES: Final = "queues"
PEOPLE: Final = "people"
MATCHES: Final = "matches"
JUDGES: Final = "judge versions"
COMMENTS: Final = "comments"
GUIDELINE: Final = "guideline"
SETTINGS: Final = "settings"


def labels_of(trace_id: str) -> str:
    """Give the subject of labels on a trace: its rows are numbered and timed one after another."""
    return f"{LABELS}: of {trace_id}"


def labels_of_all(trace_ids: Collection[str], label_ids: Collection[str] = ()) -> set[str]:
    """Give the subjects of labels on these traces with these ids, or LABELS where they would be more than MOST."""
    if len(trace_ids) + len(label_ids) > MOST:
        return {LABELS}
    return {*map(labels_of, trace_ids), *map(label, label_ids)}


def label(label_id: str) -> str:
    """Give the subject of a label id, which two writers may use on different traces."""
    return f"{LABELS}: {label_id}"


def cells_of(run_key: int) -> str:
    """Give the subject of a run's cells, requests and state."""
    return f"run {run_key}"
