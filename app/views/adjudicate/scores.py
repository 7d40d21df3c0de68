"""The scores of the raters of a trace, in dots, and the form that decides each dimension."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from tracejury.app.components import layout
from tracejury.app.components.charts import FINAL, rater_dots
from tracejury.app.components.data_table import data_table
from tracejury.app.components.drilldown import chosen_point, clickable_chart, open_in_work
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.components.glossary import meaning
from tracejury.app.session import link_params, say
from tracejury.app.views.adjudicate.acting import act
from tracejury.app.views.adjudicate.error_forms import span_titles
from tracejury.judging.adjudication import decisions as adjudication
from tracejury.judging.adjudication.adjudication_items import AdjudicationItem
from tracejury.judging.records import DIMENSIONS

GRADES = ("0", "1", "2", "3", "n/a")


def scores(one: AdjudicationItem) -> None:
    layout.title(
        "Scores",
        "Each dot is a rater's score; a ring is the final score. Not applicable is left of 0. Click a dot to see "
        "that rater's errors.",
    )
    scores_by_rater = {**one.dispute.scores, **{dimension: {} for dimension in one.scores_apart}}
    if not scores_by_rater:
        st.caption("No rater scored a dimension of this trace.")
        return
    dots(one, scores_by_rater)
    with st.form(f"scores-{one.dispute.trace_id}", border=False):
        chosen: dict[str, tuple[str | None, str]] = {
            key: score_fields(one, key, scores_by_rater[key]) for key in DIMENSIONS if key in scores_by_rater
        }
        pressed = st.form_submit_button("Save all scores", type="primary", shortcut="Ctrl+Enter")
    if pressed:
        save_scores(one, chosen)


@st.fragment(key="card-dots")
def dots(one: AdjudicationItem, scores: Mapping[str, Mapping[str, float | None]]) -> None:
    event = clickable_chart(
        rater_dots(scores, one.decided.scores), key="rater-dots", alt="Scores of the raters by dimension"
    )
    point = chosen_point(event)
    if point is not None:
        drill_into_dot(one, str(point[0]), str(point[1]))


def drill_into_dot(one: AdjudicationItem, rater: str, dimension: str) -> None:
    """The errors of a dimension that go with a rater's score (or with the final one), each opened at its first span."""
    labels = (
        [gold.label for gold in one.decided.errors.values()]
        if rater == FINAL
        else [label for group in one.dispute.groups for who, label in group.labels if who == rater]
    )
    of_dimension = [label for label in labels if dimension in label.dimensions]
    who = "Gold" if rater == FINAL else rater
    st.caption(f"{who}, {dimension}: {counted(len(of_dimension), 'error')}")
    if not of_dimension:
        return
    titles = span_titles(one.dispute.trace_id)
    spans = [next(iter(label.span_ids), "") for label in of_dimension]
    rows = pd.DataFrame(
        {
            "span": [titles.get(span, span) for span in spans],
            "impact": [label.impact for label in of_dimension],
            "description": [label.description for label in of_dimension],
        }
    )
    row = data_table(rows, most=4, key="rows-dot", is_chosen=True)
    if row is not None:
        open_in_work(link_params(trace=one.dispute.trace_id, span=spans[row]), key="dot-open")


def score_fields(one: AdjudicationItem, dimension: str, by_rater: Mapping[str, float | None]) -> tuple[str | None, str]:
    """The final score as chosen (None: not yet) and the reason for it; what all raters gave is filled in."""
    words = " · ".join(f"{rater} {grade(value)}" for rater, value in by_rater.items()) or "no rater shown"
    values = set(by_rater.values())
    decided = one.decided.scores
    default = grade(decided[dimension]) if dimension in decided else (grade(values.pop()) if len(values) == 1 else None)
    key = f"{one.dispute.trace_id}-{dimension}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        final = st.segmented_control(
            plain(f"{dimension}: {words}"), GRADES, default=default, key=f"grade-{key}", help=meaning(dimension)
        )
        reason = st.text_input(
            f"Reason for {dimension}", key=f"reason-{key}", placeholder="reason, if the raters differ", width=190,
            label_visibility="collapsed",
        )  # fmt: skip
    return None if final is None else str(final), reason


def save_scores(one: AdjudicationItem, chosen: Mapping[str, tuple[str | None, str]]) -> None:
    """Decide every score that is chosen and not decided so yet; those refused are named, the others stay decided."""
    decided = {key: grade(value) for key, value in one.decided.scores.items()}
    new = {key: pair for key, pair in chosen.items() if pair[0] is not None and pair[0] != decided.get(key)}
    if not new:
        st.error("Choose a score first.")
        return
    decide = partial(adjudication.set_score, trace_id=one.dispute.trace_id)
    done = [
        key
        for key, (final, reason) in new.items()
        if act(partial(decide, dimension=key, value=None if final == "n/a" else float(str(final)), reason=reason))
        is not False
    ]
    if len(done) == len(new):
        say(f"{', '.join(f'{key} is {new[key][0]}' for key in done)}.")


def grade(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.0f}"
