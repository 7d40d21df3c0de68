"""What the judges of a run answered, in bars, and the cells that failed with their reasons."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from sqlalchemy import select

from tracejury.app.components import charts, layout
from tracejury.app.components.data_table import data_table
from tracejury.app.components.drilldown import chosen_point, clickable_chart, open_in_compare
from tracejury.app.components.estimate_text import counted
from tracejury.app.components.glossary import meanings
from tracejury.app.datasets import open_to_me
from tracejury.app.session import workspace
from tracejury.app.views.runs.cells import Finished, compare_link, list_cells
from tracejury.ingest.store import read_transaction
from tracejury.ingest.table import query_frame
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.store.judge_models import judge_model_names
from tracejury.judging.store.tables import cell


@st.fragment(key="card-outcomes")
def outcomes_card(run_key: int, finished: Finished) -> None:
    layout.title(
        "Outcomes by judge",
        "Scores are 0 to 3; n/a means not applicable; other verdicts without a score, and failures, have "
        "their own names.  \n" + meanings((*DIMENSIONS, "verdict", "failure")),
    )
    event = clickable_chart(charts.score_bars(finished.outcomes), key="chart-outcomes", alt="Outcomes by judge")
    point = chosen_point(event)
    if point is None:
        st.caption("Click a part of a bar to list its cells.")
        return
    list_cells(open_to_me(cells_of_bar(run_key, str(point[0]), str(point[1]))), key="outcomes")


def cells_of_bar(run_key: int, judge: str, outcome: str) -> pd.DataFrame:
    """The cells that a part of a bar counts."""
    state = {"n/a": "not_applicable"}.get(outcome, "scored" if outcome.isdigit() else outcome)
    of = (cell.c.run_key == run_key, cell.c.rubric == judge, cell.c.state == state)
    score = (cell.c.score == int(outcome),) if outcome.isdigit() else ()
    columns = (
        cell.c.trace_id, cell.c.repeat, cell.c.rubric.label("dimension"), cell.c.reason,
        cell.c.latency_s.label("seconds"), cell.c.judge_version,
    )  # fmt: skip
    with read_transaction(workspace().engine) as connection:
        cells = query_frame(connection, select(*columns).where(*of, *score).order_by(cell.c.cell_key))
        names = judge_model_names(connection)
    return cells.assign(outcome=outcome.replace("_", " "), judge_model=cells["judge_version"].map(names))[
        ["trace_id", "repeat", "dimension", "outcome", "reason", "seconds", "judge_model"]
    ]


def failures_card(run_key: int, finished: Finished) -> None:
    layout.title(
        f"{finished.failures:,} failed of {counted(finished.cells, 'cell')}", "A failure never counts as a score."
    )
    if finished.failed.empty:
        st.caption("No cell failed.")
        return
    rows = open_to_me(finished.failed)
    chosen = data_table(
        rows.assign(state=rows["state"].str.replace("_", " ")), most=8, key=f"failed-{run_key}", is_chosen=True
    )
    if finished.failures > len(finished.failed):
        st.caption(f"The first {len(finished.failed):,} are listed.")
    if chosen is None:
        st.caption("Select a row to open it.")
    else:
        open_in_compare(compare_link(rows.to_dict("records")[chosen]), key="failed-open")
