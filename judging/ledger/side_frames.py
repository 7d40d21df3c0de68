"""The frames beside the main ones: hidden repeats, units for corpus rates, TRAIL's own measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from sqlalchemy import Connection, select

from ingest.labels import JudgeReply, read_reply
from ingest.store.texts import decompress
from judging.ledger import tables
from judging.ledger.labels import newest
from judging.ledger.verdicts import findings_of
from judging.records import DIMENSIONS, ErrorLabel

TRAIL_JUDGE = "trail"


def repeats(connection: Connection) -> pd.DataFrame:
    """Scores that people gave twice, on a trace and on its hidden repeat: rater, unit, judge, first, second."""
    table = tables.score_label
    keys = ("annotator", "trace_id", "occasion", "dimension", "phase")
    rows = connection.execute(
        select(table.c.annotator, table.c.trace_id, table.c.dimension, table.c.occasion, table.c.value).where(
            newest(table, keys), table.c.phase == "blind", table.c.dimension.in_(DIMENSIONS)
        )
    ).all()
    found = pd.DataFrame(rows, columns=["rater", "unit", "judge", "occasion", "value"])
    wide = found.pivot_table(index=["rater", "unit", "judge"], columns="occasion", values="value", aggfunc="last")
    if not {0, 1} <= set(wide.columns):
        return pd.DataFrame(columns=["rater", "unit", "judge", "first", "second"])
    both = wide.rename(columns={0: "first", 1: "second"})[["first", "second"]].dropna()
    return both.reset_index()


def unit_labels(
    connection: Connection, cells: pd.DataFrame, errors: Sequence[ErrorLabel], reviewed: set[str]
) -> pd.DataFrame:
    """Does a trace hold an error of the judge's kind: `model` as the judge says, `human` where a person looked."""
    findings = findings_of(connection, [int(key) for key in cells["cell_key"]])
    by_trace: dict[str, set[str]] = {}
    for error in errors:
        by_trace.setdefault(error.trace_id, set()).update(error.dimensions or ("",))
    rows = []
    for cell in rows_of(cells):
        seen = by_trace.get(cell.trace_id, set())
        human = (cell.judge in seen if cell.judge in DIMENSIONS else bool(seen)) if cell.trace_id in reviewed else None
        answered = cell.state in {"scored", "not_applicable"}
        rows.append(
            {
                "judge": cell.judge,
                "system": cell.system,
                "unit": cell.trace_id,
                "model": bool(findings.get(cell.cell_key)) if answered else None,
                "human": human,
            }
        )
    return pd.DataFrame(rows, columns=["judge", "system", "unit", "model", "human"])


def trail_gold(errors: Sequence[ErrorLabel]) -> pd.DataFrame:
    """The human's errors as TRAIL's scorer reads them: one row a span, the category as it is known."""
    rows = [
        {"trace_id": error.trace_id, "category": _category(error), "location": span_id}
        for error in errors
        for span_id in error.span_ids or ("",)
    ]
    return pd.DataFrame(rows, columns=["trace_id", "category", "location"])


def trail_predictions(connection: Connection, cells: pd.DataFrame) -> pd.DataFrame:
    """What systems say in TRAIL's categories: trace_id, system, category, location (unresolved ones as written)."""
    by_cell = {int(cell.cell_key): cell for cell in rows_of(cells)}
    rows = []
    for key, found in findings_of(connection, list(by_cell)).items():
        for _, finding in found:
            if finding.category is None:
                continue
            for location in [citation.span_id or citation.cite for citation in finding.citations] or [""]:
                cell = by_cell[key]
                rows.append(
                    {
                        "trace_id": cell.trace_id,
                        "system": cell.system,
                        "category": finding.category,
                        "location": location,
                    }
                )
    return pd.DataFrame(rows, columns=["trace_id", "system", "category", "location"])


def trail_traces(cells: pd.DataFrame) -> pd.DataFrame:
    """Every trace a system was asked about: failed when none of its judges answered there."""
    answered = cells["state"].isin(("scored", "not_applicable"))
    by_trace = answered.groupby([cells["system"], cells["trace_id"]]).any().rename("answered").reset_index()
    state = by_trace["answered"].map({True: "scored", False: "failed"})
    return pd.DataFrame({"trace_id": by_trace["trace_id"], "system": by_trace["system"], "state": state})


def trail_scores(connection: Connection, cells: pd.DataFrame, human: str) -> pd.DataFrame:
    """TRAIL's scales (1 to 5) as the human and imported judges gave them: trace_id, system, scale, human, model."""
    asked = cells[cells["judge"] == TRAIL_JUDGE]
    table = tables.score_label
    rows = connection.execute(
        select(table.c.trace_id, table.c.dimension, table.c.value).where(
            newest(table, ("annotator", "trace_id", "occasion", "dimension", "phase")),
            table.c.annotator == human,
            table.c.dimension.startswith("trail."),
        )
    ).all()
    gold = {(row.trace_id, row.dimension.removeprefix("trail.")): row.value for row in rows}
    replies = dict(
        connection.execute(
            select(tables.cell.c.cell_key, tables.cell.c.raw_reply).where(
                tables.cell.c.cell_key.in_([int(key) for key in asked["cell_key"]])
            )
        ).all()
    )
    found = [
        {"trace_id": cell.trace_id, "system": cell.system, "scale": name, "human": value, "model": scores.get(name)}
        for cell in rows_of(asked)
        for scores in [_scores(replies.get(cell.cell_key), cell.trace_id)]
        for (trace_id, name), value in gold.items()
        if trace_id == cell.trace_id
    ]
    return pd.DataFrame(found, columns=["trace_id", "system", "scale", "human", "model"])


def _scores(body: bytes | None, trace_id: str) -> dict[str, float | None]:
    if body is None:
        return {}
    reply = read_reply(decompress(body).decode("utf-8", "surrogatepass"), file=trace_id, trace_id=trace_id)
    return {score.name: score.score for score in reply.scores} if isinstance(reply, JudgeReply) else {}


def _category(error: ErrorLabel) -> str:
    raw = error.attributes.get("category_raw")
    return error.category or (raw if isinstance(raw, str) else "")


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """The rows as named tuples; typed as anything, since pandas does not know its columns."""
    yield from frame.itertuples(index=False)
