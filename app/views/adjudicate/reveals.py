"""What annotators changed after the judges' findings were revealed to them."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tracejury.app.components import layout
from tracejury.app.components.data_table import cell_table, data_table
from tracejury.app.components.drilldown import listing, open_in_compare
from tracejury.app.datasets import open_to_me
from tracejury.app.session import link_params, must, workspace
from tracejury.ingest.store import read_transaction
from tracejury.judging.labels.anchoring import anchoring, changed_scores, counted_by


def reveals() -> None:
    must("researcher")
    with read_transaction(workspace().engine) as connection:
        report, scores_after = anchoring(connection), open_to_me(changed_scores(connection))
    if report.empty:
        st.info("No annotator has revealed the judges' findings yet, so no label was changed after a reveal.")
        return
    layout.title(
        "Changes after reveal",
        "Labels made after the reveal count in no estimate unless the filter Labels includes them. “From judge”: a "
        "finding cites one of the label's spans in one of its dimensions. “Nearer”: the new score is closer to the "
        "judges' mean.",
    )
    anchored(report)
    if not scores_after.empty:
        row = data_table(scores_after, key="changed", is_chosen=True)
        if row is not None:
            one = scores_after.iloc[row]
            link = link_params(trace=str(one["trace_id"]), person=str(one["annotator"]))
            open_in_compare(link, key="changed-open")


@st.fragment(key="card-anchoring")
def anchored(report: pd.DataFrame) -> None:
    cell = cell_table(report, key="anchoring")
    if cell is None:
        st.caption(
            "Click a number to see its traces. The interval of the mean change is 95 %, from resampled traces; n/a "
            "where fewer than two traces changed, or all changed equally."
        )
    else:
        drill_into_anchoring(str(report["annotator"].iloc[cell[0]]), cell[1])


def drill_into_anchoring(person: str, column: str) -> None:
    """What a number of the summary counts of this person, each opened on Compare."""
    with read_transaction(workspace().engine) as connection:
        rows = counted_by(connection, person, column)
    row = listing(open_to_me(rows), key="rows-anchoring")
    if row is not None:
        pair = str(row["label_id"]) if "label_id" in row else None
        open_in_compare(link_params(trace=str(row["trace_id"]), person=person, pair=pair), key="anchoring-open")
