"""From a mark of a chart to the rows behind it, and on to the page that shows one of them."""

from __future__ import annotations

from collections.abc import Mapping
from html import unescape
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from tracejury.app import listings
from tracejury.app.components.data_table import data_table, row_of, words
from tracejury.app.components.estimate_text import counted

MOST_ROWS = 2_000  # a longer list is not read, and selections need the whole frame in the browser
IDS = ("trace_id", "error_id", "label_id", "finding_id", "span_id")
ID_WIDTH = 110  # pixels: their beginning tells them apart, and what they are about stays in sight in half a page
WIDE = 6  # columns: a list of so many has room for whole ids
COMPARE = "views/compare.py"
WORK = "views/work.py"
EXPLORE = "views/explore.py"


def clickable_chart(figure: go.Figure, *, key: str, alt: str) -> Any:
    """Draw a chart whose marks can be clicked; returns the event for `chosen_point`."""
    return st.plotly_chart(
        figure, key=key, config={"displaylogo": False, "displayModeBar": False}, on_select="rerun",
        selection_mode="points", alt=alt,
    )  # fmt: skip


def chosen_point(event: Any) -> list[Any] | None:
    """The `customdata` of the mark that was clicked, None while none is."""
    points = event.selection.points if hasattr(event, "selection") else []
    for point in points:
        data = point.get("customdata")
        if isinstance(data, Mapping):
            data = [data[key] for key in sorted(data, key=int)]
        if isinstance(data, list):
            return [unescape(one) if isinstance(one, str) else one for one in data]
    return None


def kept_point(event: Any, *, key: str, of: object, drawn: object) -> list[Any] | None:
    """As `chosen_point`; a chart of the same (`of`) that is drawn otherwise keeps the mark that was clicked.

    Streamlit takes it for another chart then, of which nothing was clicked; `drawn` tells that it is.
    """
    name, point = f"clicked-{key}", chosen_point(event)
    held_of, held_drawn, held_point, is_carried = st.session_state.get(name, (None, None, None, False))
    if point is not None:
        st.session_state[name] = of, drawn, point, False
    elif held_of == of and (is_carried or held_drawn != drawn):
        point = held_point
        st.session_state[name] = of, drawn, point, True
    else:
        st.session_state.pop(name, None)
    return point


def listing(
    rows: pd.DataFrame, *, key: str, of: int | None = None, columns: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """Show the rows behind a mark and give the one that is chosen; `of`: how many there are, where not all are read."""
    if rows.empty:
        st.caption("No rows contribute to this point.")
        return None
    shown = rows.head(MOST_ROWS).reset_index(drop=True)
    listings.note_rows(shown, "Rows")
    every = len(rows) if of is None else of
    more = "" if every <= len(shown) else f", the first {len(shown):,} shown"
    st.caption(f"{counted(every, 'row')} for this point{more}. Select a row to open it.")
    narrow = [name for name in IDS if name in shown.columns and len(shown.columns) > WIDE]
    ids = {name: st.column_config.TextColumn(words(name), width=ID_WIDTH) for name in narrow}
    chosen = data_table(shown, most=8, key=key, is_chosen=True, columns=ids | dict(columns or {}))
    return None if chosen is None else row_of(shown, chosen)


def open_in_compare(parameters: Mapping[str, str], *, key: str) -> None:
    """A button that leads to the Compare page with these parameters."""
    if st.button("Open in Compare", key=key, icon=":material/compare_arrows:", type="primary"):
        st.switch_page(COMPARE, query_params=dict(parameters))


def open_in_work(parameters: Mapping[str, str], *, key: str) -> None:
    """A button that leads to the Work page with these parameters."""
    label = "Open the span in Work" if "span" in parameters else "Open in Work"
    if st.button(label, key=key, icon=":material/edit_note:"):
        st.switch_page(WORK, query_params=dict(parameters))


def open_in_explore(parameters: Mapping[str, str], *, key: str, label: str = "Open in Explore") -> None:
    """A button that leads to the Explore page with these parameters: the facets that its address names."""
    if st.button(label, key=key, icon=":material/search:"):
        st.switch_page(EXPLORE, query_params=dict(parameters))
