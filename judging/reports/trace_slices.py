"""Which slice each trace, and each error, belongs to: agent, task source, length, tool, model, outcome, span kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import Any, Final

import orjson
import pandas as pd
from sqlalchemy import Connection, select

from tracejury.ingest.gsr import execution_status
from tracejury.ingest.store import schema
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.trace import Outcome
from tracejury.judging.agreement.slices import SLICES
from tracejury.judging.queues.strategies import length_class
from tracejury.judging.records import SliceBy
from tracejury.judging.store.spans import AT_ONCE, named_spans

NO_TOOL: Final = "no tool call"
_TRACE_COLUMNS: Final = ("trace_id", "file", "place", "agents", "models", "tools", "spans", "outcome", "attributes")
_COLUMNS: Final = [*SLICES, "error_id"]
ERROR_SPANS: Final = ("trace_id", "span_id", "seq", "kind", "tool")


def trace_slices(connection: Connection, trace_ids: Collection[str]) -> pd.DataFrame:
    """`SLICES` of whole traces, all but their guideline version.

    `agent` and `model` are the names of all that the trace has; `source` is the folder of its file, or the file where
    that holds several traces; `length` is the class of its number of spans; `outcome` the benchmark's own word; of
    `tool` a trace has one row for each tool that it calls.
    """
    rows = [row for trace in _traces(connection, trace_ids) for row in _rows_of_trace(trace)]
    return pd.DataFrame(rows, columns=list(SLICES), dtype="object").assign(error_id="")


def _traces(connection: Connection, trace_ids: Collection[str]) -> Iterable[Any]:
    columns = [schema.trace.c[name] for name in _TRACE_COLUMNS]
    ids = sorted(trace_ids)
    for start in range(0, len(ids), AT_ONCE):
        query = select(*columns).where(is_one_of(schema.trace.c.trace_id, ids[start : start + AT_ONCE]))
        yield from connection.execute(query).all()


def _rows_of_trace(trace: Any) -> list[tuple[str, str, str | None]]:
    one: dict[SliceBy, str | None] = {
        "agent": ", ".join(orjson.loads(trace.agents)) or None,
        "source": task_source(trace.file, trace.place),
        "length": f"{length_class(trace.spans)} spans",
        "model": ", ".join(orjson.loads(trace.models)) or None,
        "outcome": _outcome(trace.outcome, trace.attributes),
    }
    tools = orjson.loads(trace.tools) or [NO_TOOL]
    return [
        *((trace.trace_id, by, name) for by, name in one.items()),
        *((trace.trace_id, "tool", tool) for tool in tools),
    ]


def task_source(file: str, place: str) -> str | None:
    """The folder of a file that holds one trace, else the file; None of a file that lies in no folder."""
    path = PurePosixPath(file.replace("\\", "/"))
    return (path.stem if place else path.parent.name) or None


def _outcome(outcome: str | None, attributes: str) -> str | None:
    """How the benchmark says that the execution ended, in one word for every harness; None where no benchmark says."""
    return (
        None if outcome is None else str(execution_status(Outcome(**orjson.loads(outcome)), orjson.loads(attributes)))
    )


def error_spans(
    connection: Connection, span_ids: Iterable[Collection[str]], known: pd.DataFrame | None = None
) -> pd.DataFrame:
    """`ERROR_SPANS` of every span that a label names; only those that are not `known` are looked for."""
    span = schema.span.c
    names = {name for own in span_ids for name in own} - set(() if known is None else known["span_id"])
    rows = named_spans(connection, names, span.seq, span.kind, span.tool_name, span.name)
    spans = pd.DataFrame(
        [
            (trace, one, seq, kind, (tool or name) if kind == "TOOL" else None)
            for trace, one, seq, kind, tool, name in rows
        ],
        columns=list(ERROR_SPANS),
    ).astype({**dict.fromkeys(ERROR_SPANS, "str"), "seq": "int64"})
    if known is None:
        return spans
    return known if spans.empty else pd.concat([known, spans], ignore_index=True)


def error_slices_of(errors: pd.DataFrame, spans: pd.DataFrame) -> pd.DataFrame:
    """`SLICES` of errors (trace_id, label_id, span_ids): the kind of their first span in reading order, and the tool of
    the first that is a call of one."""
    named = errors[["trace_id", "label_id", "span_ids"]].explode("span_ids").rename(columns={"span_ids": "span_id"})
    own = named.merge(spans, on=["trace_id", "span_id"], how="left").sort_values("seq", kind="stable")
    first = own.groupby(["trace_id", "label_id"], sort=False)[["kind", "tool"]].first().reset_index()
    has_span = first["kind"].notna()
    first["tool"] = first["tool"].where(first["tool"].notna() | ~has_span, NO_TOOL)
    parts = [first.assign(by=by, slice=first[by]) for by in ("kind", "tool")]
    return pd.concat(parts, ignore_index=True).rename(columns={"label_id": "error_id"})[_COLUMNS]


def guideline_slices(periods: pd.DataFrame) -> pd.DataFrame:
    """`SLICES` of whole traces by the guideline version of their newest review; `periods` as `over_time` takes it."""
    own = periods[periods["by"] == "guideline"]
    return own.assign(error_id="", slice=own["period"])[_COLUMNS]
