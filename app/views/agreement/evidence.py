"""The card of evidence: how far judges quote the words that the reference quotes."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tracejury.app.components.data_table import chosen_row
from tracejury.app.components.estimate_text import FEW_NOTE, aligned, cell_text, definition, greyed, with_labels
from tracejury.app.components.judges import split_labels
from tracejury.app.estimates import estimate
from tracejury.app.views.agreement.cards import card, counts_of
from tracejury.app.views.agreement.drilldowns import listed
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.reports.filters import Filters

_COUNTS = {
    "pairs": "caught errors",
    "no_label_quote": "no quote in the label",
    "no_finding_quote": "no quote in the finding",
    "not_in_trace": "quote not in the trace",
}


@card("evidence", "Overlap of evidence", definition("evidence_iou") + " " + FEW_NOTE, height=320)
def evidence_card(filters: Filters) -> None:
    table = split_labels(with_labels(estimate(filters, "table.evidence_overlap")))
    if table.empty:
        waits = counts_of(filters)["not_matched"] > 0
        why = "No matches proposed yet" if waits else "No error is caught under these filters"
        st.caption(f"{why}, so there is no evidence to compare.")
        return
    values = table.rename(columns={"iou": "value", "iou_low": "low", "iou_high": "high"})
    cells = table[["label", *_COUNTS]].rename(columns={"label": "judge", **_COUNTS})
    cells["overlap"] = aligned([cell_text(dict(row)) for _, row in values.iterrows()])
    few = pd.DataFrame({"overlap": (table["n"] < TOO_FEW).to_numpy()}, index=cells.index)
    event = st.dataframe(
        greyed(cells, few), hide_index=True, width="content", height="auto", key="evidence", on_select="rerun",
        selection_mode="single-row", alt="Overlap of evidence",
        column_config={"overlap": st.column_config.TextColumn("mean overlap [95 %]", alignment="right")},
    )  # fmt: skip
    row = chosen_row(event, len(table))
    if row is None:
        compared, pairs = int(table["n"].sum()), int(table["pairs"].sum())
        st.caption(
            f"Based on {compared:,} of {pairs:,} caught errors: for the others, a quote is missing or is not in "
            "the trace word for word. Select a row to list its pairs."
        )
        return
    one, rows = table.iloc[row], estimate(filters, "evidence_pairs")
    for name in ("judge_model", "dimension", "split"):
        rows = rows[rows[name] == one[name]]
    columns = ["trace_id", "error_id", "judge_model", "dimension", "evidence", "iou"]
    listed(filters, rows[columns].sort_values("iou", ascending=False), key="rows-evidence")
