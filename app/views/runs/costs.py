"""What the cells of a run cost and how long they took, and the cells behind each figure."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from sqlalchemy import func, select

from tracejury.app import listings
from tracejury.app.components import charts, layout
from tracejury.app.components.drilldown import MOST_ROWS, clickable_chart, kept_point
from tracejury.app.components.estimate_text import counted
from tracejury.app.session import workspace
from tracejury.app.views.runs.cells import Finished, list_cells
from tracejury.ingest.store import read_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.table import query_frame
from tracejury.judging.store.judge_models import judge_model_names
from tracejury.judging.store.tables import cell

COSTLY = {"dearest": "cost_usd", "longest prompts": "prompt_tokens"}
"""The lists behind the tiles, and what each is ordered by."""
MEASURES = {
    "cost_usd": cell.c.cost_usd,
    "prompt_tokens": cell.c.prompt_tokens,
    "completion_tokens": cell.c.completion_tokens,
    "seconds": cell.c.latency_s,
}


@st.fragment(key="card-cost")
def costs_card(run_key: int, finished: Finished, *, unpriced: int, is_called: bool) -> None:
    """`is_called`: models answered, here or elsewhere; of offline checks only what is known is shown."""
    layout.title("Cost and latency", "Cost and latency are per cell; offline checks and imported verdicts have none.")
    facts = {
        "Cost, US$": None if finished.paid is None else f"{finished.paid:,.4f}",
        "Prompt tokens": None if finished.tokens is None else f"{finished.tokens:,}",
    }
    with st.container(horizontal=True):
        for name, value in facts.items():
            if is_called or value is not None:
                st.metric(name, value or "unknown", border=True)
    if unpriced and finished.paid is not None:
        st.caption(f"Without {counted(unpriced, 'answer')} whose cost is unknown.")
    drill_into_tiles(run_key, finished)
    if finished.seconds.empty:
        st.caption("This run holds no timed cells.")
        return
    boxes = charts.boxes(finished.seconds, y_title="seconds per cell", noun="cells")
    event = clickable_chart(boxes, key="chart-latency", alt="Latency by judge")
    point = kept_point(event, key="latency", of=run_key, drawn=finished.cells)
    if point is None:
        st.caption("Click a box to list its cells, slowest first; click a dot to open one cell.")
        return
    drill_into_measure(run_key, "seconds", str(point[0]), float(point[1]) if len(point) == 2 else None)


def drill_into_tiles(run_key: int, finished: Finished) -> None:
    """The cells that cost most, or whose prompts were longest, where that is known."""
    known = {"dearest": finished.paid, "longest prompts": finished.tokens}
    offered = [words for words in COSTLY if known[words] is not None]
    if not offered:
        return
    about = "Only cells whose cost is known, like the sum above."
    chosen = st.segmented_control("Cells", offered, key="costly", help=about)
    if chosen is not None:
        drill_into_measure(run_key, COSTLY[chosen])


def drill_into_measure(run_key: int, measure: str, judge: str | None = None, value: float | None = None) -> None:
    cells, number = measured(run_key, measure, judge, value)
    list_cells(cells, key=measure, of=number)


def measured(run_key: int, measure: str, judge: str | None, value: float | None) -> tuple[pd.DataFrame, int]:
    """The first `MOST_ROWS` cells of which one of `MEASURES` is known, most first, and how many there are.

    `judge`: of this one alone; `value`: where it is exactly that.
    """
    by = MEASURES[measure]
    of = [cell.c.run_key == run_key, cell.c.finished_at.is_not(None), by.is_not(None)]
    of += [~is_one_of(cell.c.trace_id, listings.blind_to_me())]
    of += [] if judge is None else [cell.c.rubric == judge]
    of += [] if value is None else [by == value]
    order = [measure, *(name for name in MEASURES if name != measure)]
    stored = (cell.c.trace_id, cell.c.repeat, cell.c.state, cell.c.score, cell.c.judge_version)
    columns = (*stored, cell.c.rubric.label("dimension"), *(MEASURES[name].label(name) for name in order))
    with read_transaction(workspace().engine) as connection:
        query = select(*columns).where(*of).order_by(by.desc(), cell.c.cell_key).limit(MOST_ROWS)
        cells = query_frame(connection, query)
        is_all = len(cells) < MOST_ROWS
        number = len(cells) if is_all else connection.scalar(select(func.count()).where(*of)) or 0
        names = judge_model_names(connection)
    outcomes = [outcome_of(*row) for row in cells[["state", "score"]].itertuples(index=False, name=None)]
    rows = cells.assign(outcome=outcomes, judge_model=cells["judge_version"].map(names))
    return rows[["trace_id", "dimension", "repeat", "outcome", *order, "judge_model"]], int(number)


def outcome_of(state: str, score: float | None) -> str:
    """A score, or in words why there is none."""
    return f"{score:.0f}" if state == "scored" and score is not None else state.replace("_", " ")
