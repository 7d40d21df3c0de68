"""A pilot from the workspace: errors caught by one judge model or two, people's reliability, and what a trace costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import orjson
import pandas as pd
from sqlalchemy import Connection, func, select

from tracejury.judging.labels.label_store import newest
from tracejury.judging.planning.design import Spread
from tracejury.judging.planning.pilot import Pilot, caught_values, differences, people_reliability, pilot_of
from tracejury.judging.planning.study import UnitCosts
from tracejury.judging.queues.queue_store import FIRST
from tracejury.judging.reports.columns import Columns, load_columns
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import LazyFrames
from tracejury.judging.store import tables

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
    unpriced: int = 0
    """Traces of a judge model (each repeat counts) with an answer whose cost is not recorded: no part of the costs."""


def load_pilot(connection: Connection, filters: Filters, judge_models: Sequence[str]) -> WorkspacePilot:
    """Read the pilot of one judge model (a rate) or of two (a difference, on the errors of both).

    Every repeat counts, up to `MOST_REPEATS`. Raises `ValueError` for no judge model or more than two.
    """
    return pilot_in_columns(connection, load_columns(connection), filters, judge_models)


def pilot_in_columns(
    connection: Connection, columns: Columns, filters: Filters, judge_models: Sequence[str]
) -> WorkspacePilot:
    """As `load_pilot`, of columns that were read at the revision this connection sees."""
    if not 1 <= len(judge_models) <= 2:
        raise ValueError(f"{len(judge_models)} judge models. Try: one, or two to plan their difference")
    first = LazyFrames(connection, columns, replace(filters, judge_models=tuple(judge_models)))
    not_matched = _not_matched(first.error_pairs)
    values = [_values(connection, columns, filters, name) for name in judge_models]
    spent = first.costs_of_repeats
    people = first.ratings[first.ratings["rater_kind"] == "annotator"]
    if len(values) == 2:
        both, discordant = differences(values[0], values[1])
        pilot = pilot_of(both, discordant=discordant)
    else:
        pilot = pilot_of(values[0])
    return WorkspacePilot(
        reference=first.reference,
        judge_models=tuple(judge_models),
        pilot=pilot,
        reliability=people_reliability(people),
        costs=UnitCosts(minutes=minutes_per_trace(connection), dollars=dollars_a_trace(spent, judge_models)),
        not_matched=not_matched,
        unpriced=int(spent["cost_usd"].isna().sum()),
    )


def pilot_frame(measured: WorkspacePilot) -> pd.DataFrame:
    """Give a pilot as a frame of one row with its JSON, which can be kept as an estimate."""
    return pd.DataFrame({"pilot": [orjson.dumps(asdict(measured)).decode()]})


def pilot_in(frame: pd.DataFrame) -> WorkspacePilot:
    """Give the pilot that `pilot_frame` put into a frame."""
    stored = orjson.loads(frame["pilot"].iloc[0])
    pilot = stored["pilot"]
    spread = None if pilot["spread"] is None else Spread(**pilot["spread"])
    return WorkspacePilot(
        **{
            **stored,
            "judge_models": tuple(stored["judge_models"]),
            "pilot": Pilot(**{**pilot, "spread": spread}),
            "costs": UnitCosts(**stored["costs"]),
        }
    )


def _not_matched(pairs: pd.DataFrame) -> int:
    """How many pairs were never compared. Raises `ValueError` where none was."""
    waiting = pairs["state"] == "not_matched"
    if len(pairs) and waiting.all():
        raise ValueError("no matches proposed yet. Try: `tracejury match`")
    return int(waiting.sum())


def minutes_per_trace(connection: Connection) -> float | None:
    """Return the mean active minutes of a submitted review, over all people; None where no review was timed."""
    review = tables.review
    minutes = connection.scalar(
        select(func.avg(review.c.active_ms * 1.0 / _MS)).where(
            newest(review, ("annotator", "trace_id", "occasion")),
            review.c.occasion == FIRST,
            review.c.status == "submitted",
            review.c.active_ms > 0,
        )
    )
    return None if minutes is None else float(minutes)  # PostgreSQL gives a decimal


def dollars_a_trace(spent: pd.DataFrame, judge_models: Sequence[str]) -> float | None:
    """Return the recorded dollars of one repeat on one trace by all these judge models together.

    `spent`: `LazyFrames.costs_of_repeats`. The sum over judge models of the mean over (trace, repeat) whose cost is
    known; a reply from the cache counts with what it cost when it was paid. None where a judge model has none.
    """
    known = spent.dropna(subset=["cost_usd"])
    means = known.groupby("judge_model")["cost_usd"].mean().reindex(list(judge_models))
    return None if means.isna().any() else float(means.sum())


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
