"""Every trace by facets and by full text; where errors start, which tools fail, which errors are alike."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd
import streamlit as st
from sqlalchemy import Connection

from tracejury.app import listings, options
from tracejury.app.components import charts, layout
from tracejury.app.components.data_table import chosen_cell, chosen_row, data_table
from tracejury.app.components.drilldown import chosen_point, clickable_chart, listing, open_in_compare, open_in_work
from tracejury.app.components.estimate_text import FEW_NOTE, counted, greyed, interval_text, is_dark, plain
from tracejury.app.components.glossary import meanings
from tracejury.app.datasets import open_to_me
from tracejury.app.painting import paint
from tracejury.app.session import link_params, must, user, workspace
from tracejury.app.views.admin_forms.queues import pick_by_hand
from tracejury.ingest.store import read_transaction
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.intervals import wilson_bounds
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.reports import exploring
from tracejury.judging.store.revisions import Revision, traces_revision

OFFERED = 500  # errors to choose from: a browser holds no list of thousands
PAGE = 1_000  # rows of the list in the browser at once
LISTED = [
    "trace_id", "name", "goal", "format", "status", "spans", "error_spans", "errors", "lowest_score", "labelled_by",
    "judge_states", "tools", "agents", "models", "total_tokens", "duration_s", "warning_count",
]  # fmt: skip
FACETS = {"format": "Source", "agents": "Agent", "tools": "Tool", "models": "Model", "status": "Status"}
OPINIONS = {"labelled_by": "Labelled by", "judge_states": "Judge state"}
NOBODY = "nobody"


def page() -> None:
    must("researcher")
    layout.heading("Explore", beside=lambda: options.saved_views_menu("explore"))
    traces = listings.traces()
    if traces.empty:
        st.info("This workspace holds no traces. Try: the Ingest page, or `tracejury ingest PATH`.")
        return
    own = listings.blind_to_me() & set(traces["trace_id"])
    known = exploring.without_opinions(known_now(), own)
    query = st.text_input(
        "Search", key="q", placeholder="Search spans: a span must contain all words", icon=":material/search:",
        label_visibility="collapsed", bind="query-params", persist_state="session",
    )  # fmt: skip
    rows = faceted(known)
    if query:
        rows = searched(rows, str(query))
    if own:
        st.info(
            f"Hidden here and excluded from the charts below: labels of other annotators and verdicts of judges on "
            f"{counted(len(own), 'trace')} that you are labelling blind. They appear after you submit."
        )
    listed(rows, len(known))
    paint("explore")
    insights(rows[~rows["trace_id"].isin(own)])


# What the page knows of all traces, each part kept until what it is made from changes; shared between sessions,
# never changed.


def known_now() -> pd.DataFrame:
    """The traces and what people and judges said of them."""
    return _known(listings.place(), listings.now_revision())


@st.cache_resource(show_spinner=False, max_entries=2)
def _known(place: str, now: Revision) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return exploring.with_opinions(listings.traces(), exploring.opinions(connection))


def errors_now() -> pd.DataFrame:
    return _errors(listings.place(), _revision(exploring.labels_revision))


@st.cache_resource(show_spinner=False, max_entries=2)
def _errors(place: str, now: Revision) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return exploring.complete_errors(connection)


def places_now() -> list[pd.DataFrame]:
    """Of findings, of errors."""
    return [
        _finding_places(listings.place(), _revision(exploring.findings_revision)),
        _error_places(listings.place(), _revision(exploring.labels_revision)),
    ]


@st.cache_resource(show_spinner=False, max_entries=2)
def _finding_places(place: str, now: Revision) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return exploring.finding_places(connection)


@st.cache_resource(show_spinner=False, max_entries=2)
def _error_places(place: str, now: Revision) -> pd.DataFrame:
    errors = errors_now()
    with read_transaction(workspace().engine) as connection:
        return exploring.error_places(connection, errors, _span_places(place, traces_revision(connection)))


@st.cache_resource(show_spinner=False, max_entries=2)
def _span_places(place: str, now: Revision) -> dict[str, exploring.SpanPlaces]:
    """Of the spans that errors name, as far as they were asked for."""
    return {}


def tools_now() -> pd.DataFrame:
    return _tools(listings.place(), _revision(traces_revision))


@st.cache_resource(show_spinner=False, max_entries=2)
def _tools(place: str, now: Revision) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return exploring.tools(connection)


def _revision(of: Callable[[Connection], Revision]) -> Revision:
    with read_transaction(workspace().engine) as connection:
        return of(connection)


def faceted(known: pd.DataFrame) -> pd.DataFrame:
    rows = known
    with st.container(horizontal=True, vertical_alignment="bottom", key="facets"):
        for column, label in (FACETS | OPINIONS).items():
            values = _values(known[column])
            if len(values) < 2:
                continue
            chosen = st.multiselect(
                label, values, key=f"facet_{column}", placeholder="all", width="stretch", bind="query-params",
                persist_state="session",
            )  # fmt: skip
            if chosen:
                options = set(map(str, chosen))
                rows = rows[[bool(options & (_split(value) or {NOBODY})) for value in rows[column]]]
        scores = st.multiselect(
            "Lowest judge score", ["0", "1", "2", "3"], key="facet_score", placeholder="all", width="stretch",
            bind="query-params", persist_state="session",
        )  # fmt: skip
        if scores:
            rows = rows[rows["lowest_score"].isin([int(score) for score in scores])]
    return rows


def searched(traces: pd.DataFrame, query: str) -> pd.DataFrame:
    """The traces with a hit; the hits themselves are listed with a way to each span."""
    with read_transaction(workspace().engine) as connection:
        hits = exploring.hits(connection, query)
    hits = hits[hits["trace_id"].isin(traces["trace_id"])].reset_index(drop=True)
    more = f", among the first {exploring.HITS:,} found" if len(hits) >= exploring.HITS else ""
    with st.container(border=True):
        layout.title(f"{counted(len(hits), 'span')} with all words{more}")
        if hits.empty:
            st.caption(
                "No span of these traces contains all words. Whole words match; the last word also matches by its "
                "beginning."
            )
        else:
            event = st.dataframe(
                hits, hide_index=True, height=min(38 + 35 * len(hits), 250), key="hits", on_select="rerun",
                selection_mode="single-row", column_config={"trace_id": "trace", "span_id": "span", "ordinal": "place"},
            )  # fmt: skip
            chosen = chosen_row(event, len(hits))
            if chosen is not None:
                row = hits.iloc[chosen]
                if st.button(
                    f"Open {row['ordinal']} in Work", key="hit-open", type="primary", icon=":material/edit_note:"
                ):
                    st.switch_page(
                        "views/work.py", query_params=link_params(trace=row["trace_id"], span=row["span_id"])
                    )
    return traces[traces["trace_id"].isin(hits["trace_id"])]


@st.fragment(key="listing")
def listed(traces: pd.DataFrame, total: int) -> None:
    with st.container(border=True):
        layout.title(f"{len(traces):,} of {counted(total, 'trace')}")
        if traces.empty:
            st.caption("No trace matches. Try: remove a filter.")
            return
        pages = -(-len(traces) // PAGE)
        place = int(st.pagination(pages, key="list_page") or 1) - 1 if pages > 1 else 0
        shown = traces[LISTED].iloc[place * PAGE : (place + 1) * PAGE].reset_index(drop=True)
        listings.note_rows(shown[shown["errors"].fillna(0).gt(0) | shown["lowest_score"].notna()], "Explore")
        digest = zlib.crc32("\n".join(shown["trace_id"]).encode())  # other rows: nothing of them is selected
        event: Any = st.container(key="traces").dataframe(
            shown,
            hide_index=True,
            placeholder="n/a",
            height=min(38 + 35 * len(shown), 420),
            key=f"traces-{digest}",
            on_select="rerun",
            selection_mode="multi-row",
            column_config={
                "trace_id": st.column_config.TextColumn("trace", pinned=True, width=150),
                "name": st.column_config.TextColumn("name", width=130),
                "goal": st.column_config.TextColumn("goal", width=200, help="Task that the user gave to the agent"),
                "status": st.column_config.TextColumn(
                    "status",
                    help="Status of the whole trace; UNSET: the source does not record whether the agent failed",
                ),
                "error_spans": st.column_config.NumberColumn("failed spans", help="Spans whose status is ERROR"),
                "errors": st.column_config.NumberColumn(
                    "labelled errors", help="Errors of all annotators, without drafts"
                ),
                "lowest_score": st.column_config.NumberColumn(
                    "lowest score", help="Lowest score of any judge in any dimension and repeat, 0 to 3"
                ),
                "labelled_by": st.column_config.TextColumn("labelled by", help="Annotators who submitted the trace"),
                "judge_states": st.column_config.TextColumn(
                    "judge states", help="States of the cells: scored, not applicable, pending, or the kind of failure"
                ),
                "total_tokens": st.column_config.NumberColumn("tokens", format="localized"),
                "duration_s": st.column_config.NumberColumn("seconds", format="%.1f"),
                "warning_count": st.column_config.NumberColumn(
                    "warnings", help="Problems noted when the trace was read"
                ),
            },
        )
        rows = [row for row in event.selection.rows if row < len(shown)]
        if not rows or (len(rows) > 1 and not user().may("admin")):
            st.caption(
                f"Select a row to open its trace{', or several for a new queue' if user().may('admin') else ''}."
            )
            return
        with st.container(horizontal=True):
            open_traces([str(shown["trace_id"].iloc[row]) for row in rows])


def open_traces(trace_ids: list[str]) -> None:
    """Ways to Work and Compare for one trace, and for administrators to a new queue of all of them."""
    if len(trace_ids) == 1:
        open_trace(trace_ids[0])
    if user().may("admin") and st.button(
        f"Put {counted(len(trace_ids), 'trace')} in a new queue", key="to-queue", icon=":material/playlist_add:",
        help="Opens Admin with these traces. Traces chosen by hand have no known chance to be drawn.",
    ):  # fmt: skip
        pick_by_hand(trace_ids)
        st.switch_page("views/admin.py", query_params=link_params())


def open_trace(trace_id: str) -> None:
    if st.button("Open in Work", key="to-work", type="primary", icon=":material/edit_note:"):
        st.switch_page("views/work.py", query_params=link_params(trace=trace_id))
    if st.button("Open in Compare", key="to-compare", icon=":material/compare_arrows:"):
        st.switch_page("views/compare.py", query_params=link_params(trace=trace_id))


def of_traces(rows: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["trace_id"].isin(traces["trace_id"])]


def insights(traces: pd.DataFrame) -> None:
    if traces.empty:
        return
    placed = [of_traces(side, traces) for side in places_now()]
    places = pd.concat([side for side in placed if not side.empty] or placed[:1], ignore_index=True)
    tools = exploring.worst_tools(of_traces(tools_now(), traces))
    errors = of_traces(errors_now(), traces)
    cards(places, tools, errors, traces)
    if not errors.empty:
        with st.container(border=True):
            similar(errors)


@st.fragment(key="cards")
def cards(places: pd.DataFrame, tools: pd.DataFrame, errors: pd.DataFrame, traces: pd.DataFrame) -> None:
    """Three in a row; what stands behind a mark of theirs is listed below, where it has the width of the page."""
    left, middle, right = st.columns([3, 4, 3], gap="small")
    with left, st.container(border=True, height="stretch"):
        bar = places_card(places)
    with middle, st.container(border=True, height="stretch"):
        cell = tools_card(tools)
    with right, st.container(border=True, height="stretch"):
        square = together_card(errors)
    if bar is not None:
        with st.container(border=True):
            drill_into_bar(str(bar[0]), int(bar[1]), str(bar[2]), errors, traces)
    if cell is not None:
        with st.container(border=True):
            drill_into_tool(str(tools["tool"].iloc[cell[0]]), traces, is_failed=cell[1] == "failed")
    if square is not None:
        with st.container(border=True):
            drill_into_square(str(square[0]), str(square[1]), errors)


def places_card(places: pd.DataFrame) -> list[Any] | None:
    """The bar that is chosen: side, part of the trace, the part in words."""
    layout.title("Where errors start", "Position of the first span of each error, as a share of the trace.")
    if places.empty:
        st.caption("No error or finding cites a span of these traces.")
        return None
    event = clickable_chart(
        charts.place_bars(places, places=exploring.PLACES), key="chart-positions", alt="Positions of errors"
    )
    st.caption("Click a bar to list its errors.")
    return chosen_point(event)


def tools_card(tools: pd.DataFrame) -> tuple[int, str] | None:
    """The cell that is chosen: row and column."""
    layout.title(
        "Failures by tool",
        "Tool calls by name; failed: the span's status is ERROR. Wilson's 95 % interval of the share. " + FEW_NOTE,
    )
    if tools.empty:
        st.caption("These traces have no tool calls.")
        return None
    low, high = (bound * 100 for bound in wilson_bounds(tools["failed"].to_numpy(), tools["calls"].to_numpy()))
    shown = tools.assign(
        share=tools["share"] * 100,
        interval=[interval_text(*bounds, digits=0) for bounds in zip(low, high, strict=True)],
    )[["tool", "share", "interval", "failed", "calls"]]
    few = pd.DataFrame(dict.fromkeys(shown.columns, shown["calls"] < TOO_FEW))
    event = st.dataframe(
        greyed(shown, few), hide_index=True, height=min(38 + 35 * len(shown), 318), key="tools", on_select="rerun",
        selection_mode="single-cell", column_config=TOOL_COLUMNS, alt="Failures by tool",
    )  # fmt: skip
    st.caption("Click a row to list its calls; click its failed calls to list only those.")
    return chosen_cell(event, len(tools))


TOOL_COLUMNS = {
    "tool": st.column_config.TextColumn("tool", width=150),
    "share": st.column_config.ProgressColumn("failed, %", min_value=0, max_value=100, format="%.0f", width=75),
    "interval": st.column_config.TextColumn("95 %", alignment="right", width=62, help="95 % interval of the share"),
    "failed": st.column_config.NumberColumn("failed", width=50, format="localized", help="Calls whose status is ERROR"),
    "calls": st.column_config.NumberColumn("calls", width=50, format="localized"),
}


def together_card(errors: pd.DataFrame) -> list[Any] | None:
    """The square that is chosen: both dimensions."""
    layout.title(
        "Dimensions that occur together",
        "Annotators' errors with both dimensions; the diagonal counts the errors of each dimension.  \n"
        + meanings(DIMENSIONS),
    )
    pairs = exploring.together(errors)
    if pairs.empty:
        st.caption("No annotator labelled an error on these traces.")
        return None
    order = [d for d in DIMENSIONS if d in set(pairs["a"])]
    drawn = charts.pair_grid(pairs, order=order, is_dark=is_dark())
    event = clickable_chart(drawn, key="chart-together", alt="Dimensions that occur together")
    st.caption("Click a square to list its errors.")
    return chosen_point(event)


# What stands behind a mark: a list, and from a row of it the way to Compare and to the span in Work.


def drill_into_bar(side: str, place: int, part: str, errors: pd.DataFrame, traces: pd.DataFrame) -> None:
    layout.title(
        f"{'Annotators’ errors' if side == 'annotator' else 'Findings of judges'} that start at {part} of the trace"
    )
    with read_transaction(workspace().engine) as connection:
        rows = (
            exploring.started(connection, errors)
            if side == "annotator"
            else exploring.placed_findings(connection, place)
        )
    if side == "annotator":
        drill_into_errors(rows[rows["place"] == place], key="rows-positions")
    else:
        drill_into_findings(of_traces(rows, traces))


def drill_into_tool(tool: str, traces: pd.DataFrame, *, is_failed: bool) -> None:
    layout.title(plain(f"{'Failed calls' if is_failed else 'Calls'} of {tool}"))
    with read_transaction(workspace().engine) as connection:
        calls = of_traces(exploring.tool_calls(connection, tool), traces)
    drill_into_calls(calls[calls["status"] == "ERROR"] if is_failed else calls)


def drill_into_square(one: str, other: str, errors: pd.DataFrame) -> None:
    layout.title(f"Errors of {one}" if one == other else f"Errors of both {one} and {other}")
    drill_into_errors(first_spans(exploring.carrying(errors, one, other)), key="rows-together")


def first_spans(errors: pd.DataFrame) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return exploring.started(connection, errors)


def with_ordinal(rows: pd.DataFrame) -> pd.DataFrame:
    """With `span` as people and judges cite it, S1 the first."""
    return rows.assign(span=["" if pd.isna(seq) else f"S{seq + 1}" for seq in rows["seq"]])


def drill_into_errors(errors: pd.DataFrame, *, key: str) -> None:
    """People's errors, each opened beside a judge and at its first span."""
    rows = with_ordinal(open_to_me(errors)).assign(dimensions=errors["dimensions"].map("+".join))
    columns = ["trace_id", "span", "annotator", "dimensions", "impact", "description", "label_id", "span_id"]
    row = listing(rows[columns], key=key)
    if row is not None:
        beside = link_params(trace=row["trace_id"], person=row["annotator"], pair=row["label_id"])
        open_there(row, beside, key=key)


def drill_into_findings(findings: pd.DataFrame) -> None:
    """Judges' findings, each opened beside people and at the first span that it cites."""
    rows = with_ordinal(open_to_me(findings))
    columns = [
        "trace_id", "span", "judge_model", "rubric", "repeat", "dimension", "impact", "description", "finding_key",
        "span_id",
    ]  # fmt: skip
    row = listing(rows[columns], key="rows-positions")
    if row is not None:
        repeat = str(row["repeat"]) if row["repeat"] else None
        beside = link_params(
            trace=row["trace_id"], judge_model=row["judge_model"], repeat_no=repeat, pair=f"|{row['finding_key']}"
        )
        open_there(row, beside, key="rows-positions")


def drill_into_calls(calls: pd.DataFrame) -> None:
    """Calls of a tool, each opened at its span."""
    row = listing(with_ordinal(calls)[["trace_id", "span", "status", "span_id"]], key="rows-tools")
    if row is not None:
        open_there(row, link_params(trace=row["trace_id"]), key="rows-tools")


def open_there(row: Mapping[str, Any], beside: Mapping[str, str], *, key: str) -> None:
    with st.container(horizontal=True):
        open_in_compare(beside, key=f"{key}-open")
        if isinstance(row["span_id"], str):
            open_in_work(link_params(trace=row["trace_id"], span=row["span_id"]), key=f"{key}-work")


@st.fragment(key="similar")
def similar(errors: pd.DataFrame) -> None:
    layout.title(
        "Similar errors",
        "Similarity of the descriptions (TF-IDF of character n-grams, cosine)"
        + (f", of the {exploring.COMPARED:,} that share most." if len(errors) > exploring.COMPARED else "."),
    )
    by_id: dict[str, Any] = {str(error.label_id): error for error in errors[:OFFERED].itertuples()}

    def name(label_id: str) -> str:
        error = by_id[label_id]
        aspect, text = f"{'+'.join(error.dimensions)} {error.impact}", error.description[:90] or "(no description)"
        return f"{aspect} · {text} · {label_id[:8]}"

    chosen = st.selectbox(
        "Error", list(by_id), index=None, format_func=name, key="similar_to", label_visibility="collapsed",
        placeholder="Select an error to list similar errors",
    )  # fmt: skip
    if len(errors) > OFFERED:
        st.caption(
            f"The first {OFFERED:,} of {len(errors):,} errors are listed. Try: filter the traces to reach other errors."
        )
    if chosen is None:
        return
    table = open_to_me(exploring.alike(errors, str(chosen)))
    if table.empty:
        st.caption("No other error shares words with this one.")
        return
    row = data_table(table, most=7, key="alike", is_chosen=True)
    if row is None:
        st.caption(f"The {len(table)} most similar; similarity is 0 to 1. Select a row to open it.")
        return
    one = table.iloc[row]
    link = link_params(trace=str(one["trace_id"]), person=str(one["annotator"]), pair=str(one["label_id"]))
    open_in_compare(link, key="alike-open")


def _split(value: str) -> set[str]:
    return {part for part in value.split(", ") if part}


def _values(column: Iterable[str]) -> list[str]:
    return sorted({part for value in column for part in (_split(value) or {NOBODY})})


page()
