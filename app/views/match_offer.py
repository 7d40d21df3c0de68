"""Matching by rule from a page of estimates: what was never compared is counted, and one button compares it."""

from __future__ import annotations

import streamlit as st

from tracejury.app.components import layout
from tracejury.app.components.estimate_text import counted
from tracejury.app.estimates import estimate
from tracejury.app.session import say, shown_message, workspace
from tracejury.judging.agreement.prevalence import sampling_note
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.reports.filters import Filters


def offer_matching(filters: Filters) -> None:
    """Say how many error pairs no matching has compared, with the button that does, and what the drawing forbids."""
    layout.done(shown_message())
    note = sampling_note(estimate(filters, "unit_labels"))
    if note is not None:
        st.caption(f"Note: {note}.")
    waiting = int(estimate(filters, "summary")["not_matched"].iloc[0])
    if not waiting:
        return
    st.warning(
        f"No matches are proposed yet for {counted(waiting, 'error pair')}, so estimates leave them out. The rule "
        "proposes matches in the whole workspace; people confirm or reject them on Compare.",
        icon=":material/join_inner:",
    )
    if st.button("Propose matches by rule", key="propose-matches", icon=":material/join_inner:"):
        with st.spinner("Matching errors and findings"):
            counts = propose_matches(workspace().engine)
        say(
            f"{counted(counts['matches'], 'match')} proposed by rule on {counted(counts['traces'], 'trace')}; nobody "
            f"has confirmed the {counts['new']:,} new ones."
        )
