"""The finished cells of a run: added up once for all its cards, listed behind a mark, opened on Compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st
from sqlalchemy import Connection, func, select

from tracejury.app.components import charts
from tracejury.app.components.drilldown import listing, open_in_compare
from tracejury.app.session import link_params, workspace
from tracejury.ingest.store import read_transaction
from tracejury.ingest.table import query_frame
from tracejury.judging.records import CELL_STATES, DIMENSIONS, FAILED_STATES
from tracejury.judging.store.judge_models import judge_model_names
from tracejury.judging.store.tables import cell

FAILED_SHOWN = 500  # failed cells in the browser at once
COST_USD = st.column_config.NumberColumn("cost, US$", format="%.4f", help="n/a: the price is not known")


class Finished(NamedTuple):
    """The finished cells of a run, added up.

    `outcomes`: judge, outcome, count; `seconds`: `charts.box_numbers` of what a cell took; `failed`: the first
    `FAILED_SHOWN` that failed, with the judge model of each. `paid` and `tokens` are None where nothing is known.
    """

    outcomes: pd.DataFrame
    seconds: pd.DataFrame
    failed: pd.DataFrame
    paid: float | None
    tokens: int | None

    @property
    def cells(self) -> int:
        return int(self.outcomes["count"].sum())

    @property
    def failures(self) -> int:
        return int(self.outcomes.loc[self.outcomes["outcome"].isin(FAILED_STATES), "count"].sum())


def last_finished(run_key: int) -> int:
    """When the last cell of the run was finished, 0 before the first."""
    with read_transaction(workspace().engine) as connection:
        return int(connection.scalar(select(func.max(cell.c.finished_at)).where(cell.c.run_key == run_key)) or 0)


@st.cache_resource(show_spinner=False, max_entries=16)
def finished_of(place: str, run_key: int, states: tuple[tuple[str, int], ...], last: int) -> Finished:
    """Made again once another cell is finished, or one is wanted again."""
    of_run = (cell.c.run_key == run_key, cell.c.finished_at.is_not(None))
    sums = select(func.sum(cell.c.cost_usd), func.sum(cell.c.prompt_tokens)).where(*of_run)
    seconds = select(cell.c.rubric.label("label"), cell.c.latency_s.label("value")).where(
        *of_run, cell.c.latency_s.is_not(None)
    )
    with read_transaction(workspace().engine) as connection:
        paid, tokens = connection.execute(sums).one()
        return Finished(
            outcomes=_outcomes(connection, run_key),
            seconds=charts.box_numbers(query_frame(connection, seconds.order_by(cell.c.cell_key))),
            failed=_failed(connection, run_key),
            paid=None if paid is None else float(paid),
            tokens=None if tokens is None else int(tokens),
        )


def _outcomes(connection: Connection, run_key: int) -> pd.DataFrame:
    rows = connection.execute(
        select(cell.c.rubric, cell.c.state, cell.c.score, func.count())
        .where(cell.c.run_key == run_key, cell.c.state.in_(CELL_STATES))
        .group_by(cell.c.rubric, cell.c.state, cell.c.score)
        .order_by(cell.c.rubric, cell.c.state, cell.c.score)
    ).all()
    counts = [
        (judge, str(score) if state == "scored" else "n/a" if state == "not_applicable" else state, count)
        for judge, state, score, count in rows
    ]
    return pd.DataFrame(counts, columns=["dimension", "outcome", "count"])


def _failed(connection: Connection, run_key: int) -> pd.DataFrame:
    columns = (
        cell.c.rubric.label("dimension"), cell.c.trace_id, cell.c.repeat, cell.c.state, cell.c.reason, cell.c.attempts,
        cell.c.judge_version.label("judge_model"),
    )  # fmt: skip
    failed = select(*columns).where(cell.c.run_key == run_key, cell.c.state.in_(FAILED_STATES))
    frame = query_frame(connection, failed.order_by(cell.c.cell_key).limit(FAILED_SHOWN))
    return frame.replace({"judge_model": judge_model_names(connection)})


def list_cells(cells: pd.DataFrame, *, key: str, of: int | None = None) -> None:
    """The cells behind a mark, each opened on Compare; `of`: how many there are, where not all are read."""
    row = listing(cells, key=f"rows-{key}", of=of, columns={"cost_usd": COST_USD})
    if row is not None:
        open_in_compare(compare_link(row), key=f"{key}-open")


def compare_link(row: Mapping[Any, Any]) -> dict[str, str]:
    """The address of a cell on the Compare page."""
    repeat = str(row["repeat"]) if row["repeat"] else None
    named = str(row["dimension"]) if row["dimension"] in DIMENSIONS else None
    judge_model = str(row["judge_model"])
    return link_params(trace=str(row["trace_id"]), judge_model=judge_model, repeat_no=repeat, dimension=named)
