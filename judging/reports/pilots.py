"""A pilot from the workspace: errors caught by one judge model or two, people's reliability, and what a trace costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sqlalchemy import Connection, func, select

from tracejury.ingest.store import schema
from tracejury.ingest.table import query_frame
from tracejury.judging.labels.label_store import newest
from tracejury.judging.planning.pilot import Pilot, caught_values, differences, people_reliability, pilot_of
from tracejury.judging.planning.study import UnitCosts
from tracejury.judging.queues.queue_store import FIRST
from tracejury.judging.records import CELL_STATES
from tracejury.judging.reports.columns import Columns, load_columns
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import LazyFrames
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import version_names

MOST_REPEATS = 10
_MS = 60_000  # in a minute


@dataclass(frozen=True, kw_only=True)
class WorkspacePilot:
    """What a workspace says for planning: `pilot` of the judges, people's reliability (None where unknown), costs."""

    reference: str | None
    judge_models: tuple[str, ...]
    pilot: Pilot
    reliability: float | None
    costs: UnitCosts
    not_matched: int = 0
    """Error pairs of the first repeat that no matching has compared: left out."""


def load_pilot(connection: Connection, filters: Filters, judge_models: Sequence[str]) -> WorkspacePilot:
    """Read the pilot of one judge model (a rate) or of two (a difference, on the errors of both).

    Every repeat counts, up to `MOST_REPEATS`. Raises `ValueError` for no judge model or more than two.
    """
    if not 1 <= len(judge_models) <= 2:
        raise ValueError(f"{len(judge_models)} judge models. Try: one, or two to plan their difference")
    columns = load_columns(connection)
    first = LazyFrames(connection, columns, replace(filters, judge_models=tuple(judge_models)))
    not_matched = _not_matched(first.error_pairs)
    values = [_values(connection, columns, filters, name) for name in judge_models]
    people = first.ratings[first.ratings["rater_kind"] == "annotator"]
    if len(values) == 2:
        both, discordant = differences(values[0], values[1])
        pilot = pilot_of(both, discordant=discordant, draws=filters.draws, seed=filters.seed)
    else:
        pilot = pilot_of(values[0], draws=filters.draws, seed=filters.seed)
    return WorkspacePilot(
        reference=first.reference,
        judge_models=tuple(judge_models),
        pilot=pilot,
        reliability=people_reliability(people),
        costs=UnitCosts(minutes=minutes_a_trace(connection), dollars=dollars_a_trace(connection, judge_models)),
        not_matched=not_matched,
    )


def _not_matched(pairs: pd.DataFrame) -> int:
    """How many pairs were never compared. Raises `ValueError` where none was."""
    waiting = pairs["state"] == "not_matched"
    if len(pairs) and waiting.all():
        raise ValueError("no matches proposed yet. Try: `tracejury match`")
    return int(waiting.sum())


def minutes_a_trace(connection: Connection) -> float | None:
    """Return the mean active minutes of a submitted review, over all people; None where no review was timed."""
    review = tables.review
    return connection.scalar(
        select(func.avg(review.c.active_ms * 1.0 / _MS)).where(
            newest(review, ("annotator", "trace_id", "occasion")),
            review.c.occasion == FIRST,
            review.c.status == "submitted",
            review.c.active_ms > 0,
        )
    )


def dollars_a_trace(connection: Connection, judge_models: Sequence[str]) -> float | None:
    """Return the recorded dollars of one repeat on one trace by all these judge models together.

    The mean over (trace, repeat) of the sum over a model's cells; offline checks cost nothing. None where any cell of
    a model that was called has no known cost.
    """
    cell, version = tables.cell, tables.judge_version
    rows = query_frame(
        connection,
        select(cell.c.judge_version, cell.c.trace_id, cell.c.repeat, cell.c.cost_usd, version.c.mode)
        .join(version, version.c.judge_version == cell.c.judge_version)
        .join(schema.trace, schema.trace.c.trace_id == cell.c.trace_id)
        .where(cell.c.state.in_(CELL_STATES)),
    )
    names = {key: name.judge_model for key, name in version_names(connection).items()}
    rows["judge_model"] = rows["judge_version"].map(names)
    each = [_dollars(rows[rows["judge_model"] == name]) for name in judge_models]
    return sum(cost for cost in each if cost is not None) if None not in each else None


def _dollars(cells: pd.DataFrame) -> float | None:
    costs = cells["cost_usd"].astype("float64").where(cells["mode"] != "checks", 0.0)
    if costs.empty or costs.isna().any():
        return None
    return float(costs.groupby([cells["trace_id"], cells["repeat"]]).sum().mean())


def _values(connection: Connection, columns: Columns, filters: Filters, judge_model: str) -> pd.DataFrame:
    """`caught_values` of every repeat of a judge model."""
    repeats = columns.cells.loc[columns.cells["judge_model"] == judge_model, "repeat"]
    parts = [_repeat_values(connection, columns, filters, judge_model, repeat) for repeat in _first(repeats)]
    if not parts:
        raise ValueError(f"no judge model {judge_model!r} has answered in this workspace")
    return pd.concat(parts, ignore_index=True)


def _first(repeats: pd.Series) -> list[int]:
    return [int(repeat) for repeat in np.sort(repeats.unique())[:MOST_REPEATS]]


def _repeat_values(
    connection: Connection, columns: Columns, filters: Filters, judge_model: str, repeat: int
) -> pd.DataFrame:
    chosen = replace(filters, judge_models=(judge_model,), repeat=repeat)
    return caught_values(LazyFrames(connection, columns, chosen).error_pairs, repeat)
