"""What a workspace holds as data frames: traces, spans, messages, labels, scores, verdicts, findings, matches.

No filter but the traces asked for: estimates and their filters are in `estimates`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection, Select, select

from tracejury.ingest.store import load, schema, trace_ids
from tracejury.ingest.table import message_row, span_frame, span_table, trace_frame
from tracejury.ingest.trace import Trace
from tracejury.judging.labels.label_store import error_labels, reviews, score_labels
from tracejury.judging.matching.standing import decisions
from tracejury.judging.records import CELL_STATES
from tracejury.judging.runs.verdicts import findings_of
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import version_names

Types = Mapping[str, str]
LABELS: Final[Types] = {
    **dict.fromkeys(("label_id", "trace_id", "annotator"), "str"),
    **dict.fromkeys(("span_ids", "dimensions"), "object"),
    **dict.fromkeys(("impact", "category", "description"), "str"),
    "evidence": "object",
    "phase": "str",
    "attributes": "object",
}
"""Columns of `label_rows` and their pandas types: object holds tuples, dictionaries and lists."""
SCORES: Final[Types] = {
    **dict.fromkeys(("trace_id", "annotator", "dimension"), "str"),
    "value": "Float64",
    "not_applicable": "bool",
    "note": "str",
    "confidence": "Int64",
    "phase": "str",
}
REVIEWS: Final[Types] = {
    **dict.fromkeys(("trace_id", "annotator", "status"), "str"),
    "no_error": "bool",
    **dict.fromkeys(("reason", "guideline_version"), "str"),
}
VERDICTS: Final[Types] = {
    "verdict_id": "int64",
    **dict.fromkeys(("trace_id", "rubric", "judge_model", "judge_version"), "str"),
    "repeat": "int64",
    "state": "str",
    "score": "Int64",
    **dict.fromkeys(("criteria", "rationale", "reason"), "str"),
    **dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens"), "Int64"),
    **dict.fromkeys(("cost_usd", "latency_s"), "Float64"),
    "run": "int64",
}
"""Failures are among them: `state` says which, and their score is missing."""
FINDINGS: Final[Types] = {
    **dict.fromkeys(("finding_id", "verdict_id"), "int64"),
    **dict.fromkeys(("trace_id", "rubric", "judge_model"), "str"),
    "repeat": "int64",
    **dict.fromkeys(("dimension", "impact", "category", "check", "description", "evidence", "evidence_place"), "str"),
    **dict.fromkeys(("cites", "span_ids"), "object"),
}
"""`cites` as the judge wrote them, `span_ids` the spans that they resolve to (None: no span of the trace)."""
MATCHES: Final[Types] = {
    **dict.fromkeys(("trace_id", "label_id"), "str"),
    **dict.fromkeys(("finding_id", "verdict_id"), "int64"),
    "status": "str",
    "localized": "bool",
    "confidence": "Float64",
    "author": "str",
    "reasons": "object",
}
MESSAGES: Final[Types] = {
    "trace_id": "str",
    "message": "int64",
    **dict.fromkeys(("role", "content"), "str"),
    "tool_calls": "object",
    **dict.fromkeys(("name", "tool_call_id", "reasoning"), "str"),
}


def traces_of(connection: Connection, ids: Collection[str] | None = None) -> Iterator[Trace]:
    """Load the traces one by one, those of `ids` or all, by id."""
    for trace_id in trace_ids(connection) if ids is None else ids:
        yield load(connection, trace_id, with_logs=False)


def trace_rows(connection: Connection) -> pd.DataFrame:
    """Return one row per trace with its summary: spans, tokens, times, goal, final answer, warnings."""
    return trace_frame(connection)


def span_rows(connection: Connection, ids: Collection[str] | None = None) -> pd.DataFrame:
    """Give the span table (see data/README.md): nullable integers, UTC times, lists of dictionaries for messages."""
    return span_frame(traces_of(connection, ids))


def span_arrow(connection: Connection, ids: Collection[str] | None = None) -> pa.Table:
    """Give the span table as Arrow, which polars and DuckDB read without a copy."""
    return span_table(traces_of(connection, ids))


def message_rows(connection: Connection, ids: Collection[str] | None = None) -> pd.DataFrame:
    """Return one row per message: each is stored once in a trace, `message` is its position."""
    return messages_frame(traces_of(connection, ids))


def messages_frame(traces: Iterable[Trace]) -> pd.DataFrame:
    """Give the messages of these traces under `MESSAGES`."""
    rows = [
        {"trace_id": trace.trace_id, **message_row(position, one)}
        for trace in traces
        for position, one in enumerate(trace.messages)
    ]
    return _frame(rows, MESSAGES)


def label_rows(connection: Connection) -> pd.DataFrame:
    """Return one row per current error label, drafts too; hidden repeats are left out."""
    rows = error_labels(connection, tables.error_label.c.occasion == 0)
    return _frame([{name: getattr(row, name) for name in LABELS} for row in rows], LABELS)


def score_rows(connection: Connection) -> pd.DataFrame:
    """Return one row per current score of a dimension by a person; hidden repeats are left out."""
    rows = score_labels(connection, tables.score_label.c.occasion == 0)
    return _frame([{name: getattr(row, name) for name in SCORES} for row in rows], SCORES)


def review_rows(connection: Connection) -> pd.DataFrame:
    """Return one row per trace that a person opened; an absent label means "no error" only in status `submitted`."""
    return _frame([{name: getattr(row, name) for name in REVIEWS} for row in reviews(connection)], REVIEWS)


def verdict_rows(connection: Connection) -> pd.DataFrame:
    """Return one row per finished cell: verdicts, and failures, which have no score."""
    cell = tables.cell
    columns = ("trace_id", "rubric", "judge_version", "repeat", "state", "score", "criteria", "rationale", "reason",
             "prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "latency_s")  # fmt: skip
    names = version_names(connection)
    rows = connection.execute(_finished(select(cell.c.cell_key, cell.c.run_key, *(cell.c[name] for name in columns))))
    return _frame(
        [
            {
                **{name: getattr(row, name) for name in columns},
                "verdict_id": row.cell_key,
                "run": row.run_key,
                "judge_model": names[row.judge_version].judge_model,
            }
            for row in rows
        ],
        VERDICTS,
    )


def finding_rows(connection: Connection) -> pd.DataFrame:
    """Return one row per finding of a verdict, matched or not."""
    cell = tables.cell
    names = version_names(connection)
    columns = (cell.c.cell_key, cell.c.trace_id, cell.c.rubric, cell.c.repeat, cell.c.judge_version)
    rows = connection.execute(_finished(select(*columns))).all()
    by_key = {row.cell_key: row for row in rows}
    findings = findings_of(connection, list(by_key))
    return _frame(
        [
            {
                "finding_id": finding_id,
                "verdict_id": key,
                "trace_id": by_key[key].trace_id,
                "rubric": by_key[key].rubric,
                "judge_model": names[by_key[key].judge_version].judge_model,
                "repeat": by_key[key].repeat,
                **{name: getattr(one, name) for name in ("dimension", "impact", "category", "check", "description")},
                "evidence": one.evidence,
                "evidence_place": one.evidence_place,
                "cites": [citation.cite for citation in one.citations],
                "span_ids": [citation.span_id for citation in one.citations],
            }
            for key, of_cell in findings.items()
            for finding_id, one in of_cell
        ],
        FINDINGS,
    )


def match_rows(connection: Connection) -> pd.DataFrame:
    """Give one row an error and a finding that stand as proposed, confirmed or rejected."""
    cell = tables.cell
    trace_of = dict(connection.execute(select(cell.c.cell_key, cell.c.trace_id)).all())
    rows = [
        {
            "trace_id": trace_of[one.cell_key], "label_id": one.label_id,
            "finding_id": one.finding_key, "verdict_id": one.cell_key, "status": one.status,
            "localized": one.localized, "confidence": one.confidence, "author": one.author,
            "reasons": list(one.reasons),
        }
        for one in decisions(connection)
    ]  # fmt: skip
    return _frame(rows, MATCHES)


STORED: Final[Mapping[str, tuple[str, Callable[[Connection], pd.DataFrame]]]] = {
    "spans": ("A span of a trace: the span table.", span_rows),
    "messages": ("A message of a trace.", message_rows),
    "reviews": ("A trace that a person opened, submitted or skipped.", review_rows),
    "verdicts": ("A finished cell: a verdict, or a failure without a score.", verdict_rows),
    "matches": ("An error and a finding: proposed, confirmed or rejected.", match_rows),
}
"""Tables that hold everything of the workspace, whatever is filtered."""


def _finished(query: Select[Any]) -> Select[Any]:
    cell = tables.cell
    return (
        query.join(schema.trace, schema.trace.c.trace_id == cell.c.trace_id)
        .where(cell.c.state.in_(CELL_STATES))
        .order_by(cell.c.cell_key)
    )


def _frame(rows: list[dict[str, Any]], types: Types) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(types)).astype(dict(types))
