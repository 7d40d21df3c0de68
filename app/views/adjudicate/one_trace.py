"""One trace that is decided: its scores, its errors, what was decided before, and the button that makes it gold."""

from __future__ import annotations

from functools import partial

import streamlit as st

from tracejury.app.components.data_table import data_table
from tracejury.app.components.drilldown import WORK
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.painting import paint
from tracejury.app.session import link_params, user, workspace
from tracejury.app.views.adjudicate.acting import act
from tracejury.app.views.adjudicate.errors import errors
from tracejury.app.views.adjudicate.scores import scores
from tracejury.ingest.store import read_transaction
from tracejury.judging.adjudication import adjudication_items
from tracejury.judging.adjudication import decisions as adjudication
from tracejury.judging.adjudication.adjudication_items import AdjudicationItem
from tracejury.judging.labels.label_store import reviews
from tracejury.judging.store import tables


def one_trace(one: AdjudicationItem, judge: str | None) -> None:
    trace_id, seed = one.dispute.trace_id, workspace().secret()
    if is_rater(trace_id):
        st.warning(
            "You labelled this trace: some of these labels are yours. Try: let another adjudicator decide it.",
            icon=":material/warning:",
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Accept unanimous answers", key="settle", shortcut="A"):
            act(
                partial(adjudication.settle_agreed, trace_id=trace_id, seed=seed, judge=judge),
                said=lambda accepted: f"{counted(accepted, 'point')} accepted.",
            )
        if st.button("Open trace", icon=":material/search:", key="to_work"):
            st.switch_page(WORK, query_params=link_params(trace=trace_id))
        if st.button(
            "Save as gold", type="primary", key="close", disabled=bool(one.open_points), shortcut="G",
            help="Available when every error and every score is decided",
        ):  # fmt: skip
            act(
                partial(adjudication.close, trace_id=trace_id, seed=seed, judge=judge),
                said=lambda version: f"Gold version {version} is saved.",
            )
    if one.open_points:
        st.caption(plain(f"Undecided: {'; '.join(one.open_points)}."))
    paint("adjudicate")
    left, right = st.columns([2, 3], gap="medium")
    with left:
        scores(one)
    with right:
        errors(one)
    history(trace_id)


def is_rater(trace_id: str) -> bool:
    """Whether the adjudicator decides on labels of their own."""
    review = tables.review
    with read_transaction(workspace().engine) as connection:
        own = reviews(connection, review.c.annotator == user().name, review.c.trace_id == trace_id)
    return any(one.status == "submitted" for one in own)


def history(trace_id: str) -> None:
    with read_transaction(workspace().engine) as connection:
        rows = adjudication_items.log_of(connection, trace_id)
    if rows.empty:
        return
    with st.expander(f"{counted(len(rows), 'decision')} on this trace"):
        data_table(rows)
