"""The view Team: work by person, and agreement of people with themselves."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tracejury.app import listings
from tracejury.app.components import charts, layout
from tracejury.app.components.data_table import chosen_row, data_table, words
from tracejury.app.components.drilldown import chosen_point, open_in_work
from tracejury.app.components.estimate_text import FEW_NOTE, aligned, cell_text, greyed, plain
from tracejury.app.datasets import open_to_me
from tracejury.app.estimates import estimate
from tracejury.app.painting import paint
from tracejury.app.session import link_params
from tracejury.app.views.agreement.cards import card, plot
from tracejury.app.views.agreement.drilldowns import listed
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.workload import COUNTS


def team_view(filters: Filters, inputs: Inputs) -> None:
    del inputs
    with st.container(border=True):
        team_card(filters)
    with st.container(border=True):
        repeats_card(filters)
    if len(listings.skip_reasons()):
        with st.container(border=True):
            skipped_card()


@st.fragment(key="card-team")
def team_card(filters: Filters) -> None:
    layout.title(
        "Work by person",
        "Active minutes exclude pauses longer than a minute; imported reviews have none.",
    )
    table = listings.team()
    row = team_table(table)
    paint("team")
    counts = table.rename(columns={"annotator": "label", "submitted": "count"})[["label", "count"]]
    event = plot(charts.counted_bars(counts, x_title="submitted traces"), key="chart-team", alt="Throughput")
    point = chosen_point(event)
    person = str(point[0]) if point is not None else None if row is None else str(table["annotator"].iloc[row])
    if person is None:
        st.caption(
            "Click a bar, or select a row, to list the traces that the person submitted. In brackets: the 95 % "
            "interval (Hall's) of a mean per trace; there is none for a single trace or for equal values. " + FEW_NOTE
        )
        return
    st.caption(plain(f"Submitted by {person}"))
    listed(filters, listings.submitted_by(person), key="rows-team", person=person)


def team_table(table: pd.DataFrame) -> int | None:
    """One row per person, means with their interval and n; the position of the one that is chosen."""
    text, few = table[["annotator", *COUNTS]], pd.DataFrame(index=table.index)
    for name, unknown in TEAM_MEANS.items():
        rows = table[[name, f"{name}_low", f"{name}_high", f"{name}_n"]].set_axis(["value", "low", "high", "n"], axis=1)
        each = rows.assign(reason=unknown).to_dict("records")
        cells = [cell_text({str(k): v for k, v in one.items()}, digits=1) for one in each]
        text = text.assign(**{name: aligned(cells)})
        few[name] = rows["n"] < TOO_FEW
    event = st.dataframe(
        greyed(text, few), hide_index=True, width="content", height=38 + 35 * min(len(text), 12), key="team",
        on_select="rerun", selection_mode="single-row", alt="Work of each person",
        column_config={
            **{name: st.column_config.NumberColumn(name, format="localized") for name in COUNTS},
            **{name: st.column_config.TextColumn(f"{words(name)} [95 %]", alignment="right") for name in TEAM_MEANS},
        },
    )  # fmt: skip
    return chosen_row(event, len(text))


TEAM_MEANS = {"errors_per_trace": "nothing submitted", "minutes_per_trace": "no trace timed"}


@st.fragment(key="card-skipped")
def skipped_card() -> None:
    layout.title("Reasons for skipped traces", "")
    reasons = open_to_me(listings.skip_reasons())
    row = data_table(reasons, key="skipped", is_chosen=True)
    if row is not None:
        open_in_work(link_params(trace=str(reasons["trace_id"].iloc[row])), key="skipped-open")


@card(
    "repeats",
    "Agreement of people with themselves",
    "The same trace again, hidden among others: both scores of one person.",
    height=200,
)
def repeats_card(filters: Filters) -> None:
    table = estimate(filters, "table.self_consistency")
    if table.empty:
        st.caption("No hidden repeat is scored yet. Try: a queue with hidden repeats.")
        return
    row = data_table(table, digits=3, key="repeats", is_chosen=True)
    if row is None:
        st.caption("n traces each. Select a row to list them.")
        return
    person, dimension = str(table["rater"].iloc[row]), str(table["dimension"].iloc[row])
    twice = estimate(filters, "repeats")
    rows = twice[(twice["rater"] == person) & (twice["dimension"] == dimension)].dropna(subset=["first", "second"])
    both = rows[["unit", "first", "second"]].rename(columns={"unit": "trace_id"})
    listed(filters, both, key="rows-repeats", person=person)
