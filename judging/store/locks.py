"""Which lock a write takes: the subjects that writers give to `write_transaction`.

On PostgreSQL writers of one subject wait for each other, those of different ones do not; a writer that names none waits
for all and all wait for it (removals, migrations, moves, whatever numbers by what everybody wrote). SQLite has one
writer at a time. What a write reads before it decides must be written under the same subject.

| a write of | takes |
|---|---|
| traces | `ingest.store.TRACES` |
| labels, decisions and gold on a trace | `labels_of(trace)`; a label's own id where it may belong to another trace |
| reviews, places, queues | QUEUES |
| people, their settings, invitations and tokens | PEOPLE |
| matches and reviews of findings | MATCHES |
| judge versions, juries | JUDGES |
| cells, requests and state of a run | `cells_of(run)` |
| comments, messages, returns | COMMENTS |
| the guideline and who acknowledged it | GUIDELINE |
| settings of the workspace and saved views | SETTINGS |
"""

from __future__ import annotations

from typing import Final

QUEUES: Final = "queues"
PEOPLE: Final = "people"
MATCHES: Final = "matches"
JUDGES: Final = "judge versions"
COMMENTS: Final = "comments"
GUIDELINE: Final = "guideline"
SETTINGS: Final = "settings"


def labels_of(trace_id: str) -> str:
    """Give the subject of labels on a trace: its rows are numbered and timed one after another."""
    return f"labels of {trace_id}"


def label(label_id: str) -> str:
    """Give the subject of a label id, which two writers may use on different traces."""
    return f"label {label_id}"


def cells_of(run_key: int) -> str:
    """Give the subject of a run's cells, requests and state."""
    return f"run {run_key}"
