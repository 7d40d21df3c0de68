"""Traces into the workspace: dropped, looked at before anything is stored, then stored whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from tracejury.app import listings
from tracejury.app.components import charts, layout
from tracejury.app.components.data_table import data_table
from tracejury.app.components.drilldown import chosen_point, clickable_chart, listing, open_in_explore, open_in_work
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.preflight import Preflight, inspect, storable
from tracejury.app.session import link_params, must, user, workspace
from tracejury.app.views.admin_forms.removal import remove_form
from tracejury.ingest.batch import Report, store
from tracejury.ingest.conventions.mapped import maps_of, using
from tracejury.ingest.readers import READERS
from tracejury.ingest.store import load, read_transaction
from tracejury.ingest.trace import Rejected
from tracejury.judging.labels.recorded_evaluations import keep_recorded_evaluations
from tracejury.judging.removal import unanchored_now
from tracejury.judging.store import WorkspaceError
from tracejury.judging.store.backup import back_up_first
from tracejury.judging.store.revisions import Revision

SHOWN = 50  # warnings


def page() -> None:
    must("researcher")
    layout.heading("Ingest")
    known = ", ".join(reader.NAME for reader in READERS)
    st.caption(
        f"Formats are recognised by content: {known}. Archives and compressed files (.gz, .zst, .xz, .bz2) are "
        f"unpacked; you can drop several files at once."
    )
    files = st.file_uploader(
        "Trace files", accept_multiple_files=True, key="uploads", label_visibility="collapsed",
        help="Nothing is stored until you choose Store.",
    )  # fmt: skip
    show_last_result()
    if not files:
        here()
        return
    inputs = named([(file.name, file.getvalue()) for file in files])
    with st.spinner("Reading files; nothing is stored yet", show_time=True):
        preflight = looked_at(tuple(file.file_id for file in files), inputs)
    report(preflight)
    commit(preflight, inputs)
    details(preflight)


def named(files: list[tuple[str, bytes]]) -> dict[str, bytes]:
    """The uploads by name; a name that comes twice gets a number."""
    inputs: dict[str, bytes] = {}
    for name, data in files:
        free, number = name, 2
        while free in inputs:
            free, number = f"{number}/{name}", number + 1
        inputs[free] = data
    return inputs


def looked_at(ids: tuple[str, ...], inputs: Mapping[str, bytes]) -> Preflight:
    """The report on these uploads, made again only when the uploads or the workspace change."""
    key = (ids, listings.now_revision())
    preflight = st.session_state.get("preflight")
    if preflight is None or preflight[0] != key:
        with using(maps_of(workspace().home)), read_transaction(workspace().engine) as connection:
            preflight = (key, inspect(connection, inputs))
        st.session_state["preflight"] = preflight
    return preflight[1]


def report(preflight: Preflight) -> None:
    states = preflight.traces["state"].value_counts()
    new = preflight.traces[preflight.traces["state"] == "new"]
    with st.container(horizontal=True, key="preflight-estimates"):
        st.metric("New traces", f"{preflight.new:,}", border=True, help="Traces that will be stored.")
        st.metric("Spans in new traces", f"{int(new['spans'].sum()):,}", border=True)
        st.metric(
            "Already stored",
            f"{int(states.get('already stored', 0)):,}",
            border=True,
            help="Traces with the same id and the same content.",
        )
        st.metric(
            "Changed", f"{int(states.get('changed', 0)):,}", border=True,
            help="Same id, other content: joined if it adds to the stored trace; otherwise refused unless you "
                "choose to replace it.",
        )  # fmt: skip
        st.metric(
            "Not fully readable", f"{preflight.unread:,}", border=True,
            help="Traces with model calls without messages or tool calls without text: their warnings say where "
                "the text is. Your own map (ingest --map) can say which attribute holds what.",
        )  # fmt: skip
        st.metric(
            "Warnings", f"{sum(preflight.warnings.values()):,}", border=True, help="Traces with warnings are stored."
        )
        st.metric(
            "Rejected",
            f"{len(preflight.rejected):,}",
            border=True,
            help="Files and traces that cannot be stored; each is listed below with its place and remedy.",
        )


def commit(preflight: Preflight, inputs: Mapping[str, bytes]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        replaces = preflight.changed > 0 and st.toggle(
            f"Replace {counted(preflight.changed, 'changed trace')}", key="replace",
            help="Backed up first. Labels stay; those on spans that are gone are listed.",
        )  # fmt: skip
        count = preflight.new + (preflight.changed if replaces else 0)
        more = "Join traces that complete stored ones" if preflight.late else "No new traces to store"
        label = f"Store {counted(count, 'trace')}" if count else more
        is_idle = not count and not preflight.late
        is_pressed = st.button(label, type="primary", disabled=is_idle, key="store", icon=":material/save:")
        redact = st.toggle(
            "Mask secrets first", key="redact", help="Masks API keys and tokens before anything is stored."
        )
    if not is_pressed:
        return
    bar = st.progress(0.0, text="Storing")
    total = max(len(preflight.traces), 1)

    def show(so_far: Report) -> None:
        done = so_far.traces + so_far.duplicates + len(so_far.completed)
        bar.progress(min(done / total, 1.0), text=f"{counted(done, 'trace')} of {total:,}")

    try:
        if replaces:
            back_up_first(workspace(), "before-replacement")
        with using(maps_of(workspace().home)):
            report = store(workspace().engine, storable(inputs), redact=redact, replace=replaces, progress=show)
    except WorkspaceError as error:
        st.error(plain(f"Nothing was stored: {error}"))
        return
    if report.evaluated:
        keep_recorded_evaluations(workspace().engine, report.evaluated)
    st.session_state["stored"] = (
        f"{counted(report.traces, 'trace')} stored with {counted(report.spans, 'span')}; "
        f"{counted(report.duplicates, 'duplicate')} skipped, {len(report.rejected):,} rejected."
        + "".join(f"\n\n{line}" for line in (*report.completed, *report.waiting))
        + after_replacement(report)
    )
    st.rerun()


def after_replacement(report: Report) -> str:
    """What is to be said of traces that took the place of others, and of labels that lost their span."""
    if not report.replaced:
        return ""
    replaced_words = f" {counted(len(report.replaced), 'trace')} replaced other content."
    lost = unanchored_now(workspace(), report.replaced)
    named = ", ".join(f"{one.label_id} of {one.annotator} on {one.trace_id}" for one in lost[:SHOWN])
    return f"{replaced_words} Labels on spans that no longer exist ({len(lost)}): {named}." if lost else replaced_words


def show_last_result() -> None:
    message = st.session_state.pop("stored", None)
    if message is not None:
        st.success(plain(message), icon=":material/check:")


def details(preflight: Preflight) -> None:
    if preflight.rejected:
        with st.container(border=True):
            layout.title(
                f"{len(preflight.rejected):,} rejected",
                "Each row names the place and the remedy; all other traces are stored.",
            )
            data_table(rejected_table(preflight.rejected), most=8)
    if preflight.traces.empty:
        return
    with st.container(border=True):
        layout.title("Traces in this upload")
        st.dataframe(
            preflight.traces.drop(columns=["text", "judge_text"]),
            hide_index=True,
            height=min(38 + 35 * len(preflight.traces), 360),
            column_config={
                "trace_id": st.column_config.TextColumn("trace"),
                "llm_spans": st.column_config.NumberColumn("LLM spans"),
                "tool_spans": st.column_config.NumberColumn("tool spans"),
                "unknown_spans": st.column_config.NumberColumn(
                    "unknown kind", help="Spans whose kind no dialect recognises"
                ),
                "no_times": st.column_config.NumberColumn("without times"),
                "orphans": st.column_config.NumberColumn("orphans", help="Spans whose parent is not in the trace"),
            },
        )
    if preflight.warnings:
        with st.container(border=True):
            layout.title("Warnings by kind")
            counts = pd.DataFrame(preflight.warnings.most_common(), columns=["warning", "count"])
            data_table(counts, most=8)
            with st.expander(f"The first {min(SHOWN, len(preflight.warning_texts))} in full", key="warnings-full"):
                st.code("\n".join(preflight.warning_texts[:SHOWN]), language=None, wrap_lines=True, height=240)
    sizes(preflight.traces)


@st.fragment(key="sizes")
def sizes(traces: pd.DataFrame) -> None:
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, height="stretch"):
        layout.title("Judge's view", "Characters of a trace before and after repeated text is removed.")
        measured = traces.dropna(subset=["judge_text"])
        before, after = int(measured["text"].sum()), int(measured["judge_text"].sum())
        largest = measured.sort_values("text", ascending=False).head(12)
        shown = pd.DataFrame(
            {
                "trace_id": largest["trace_id"],
                "label": [trace_id[:12] for trace_id in largest["trace_id"]],
                "before": largest["text"].astype("int64"),
                "after": largest["judge_text"].astype("int64"),
            }
        )
        event = clickable_chart(charts.size_bars(shown), key="chart-sizes", alt="Text before and after")
        less = f", {1 - after / before:.0%} less" if before > after > 0 else ""
        shown_part = "" if len(largest) == len(measured) else f" The largest {len(largest)} are shown."
        of = "" if len(measured) == len(traces) else f" (the first {len(measured):,} traces)"
        st.caption(f"{before:,} characters become {after:,}{less}{of}.{shown_part} Click a bar to open its trace.")
        point = chosen_point(event)
        if point is not None:
            drill_into_upload(traces[traces["trace_id"] == point[0]], key="rows-sizes")
    with right, st.container(border=True, height="stretch"):
        layout.title("Spans per trace")
        drawn = charts.histogram(list(traces["spans"]), x_title="spans", y_title="traces")
        event = clickable_chart(drawn, key="chart-spans", alt="Spans per trace")
        point = chosen_point(event)
        if point is None:
            st.caption("Click a bar to list its traces.")
        else:
            drill_into_upload(traces[traces["spans"].between(int(point[0]), int(point[1]))], key="rows-spans")


def drill_into_upload(rows: pd.DataFrame, *, key: str) -> None:
    """Traces of the upload; one that is stored already leads to it."""
    row = listing(rows[["trace_id", "state", "spans", "text", "judge_text", "warnings", "file"]], key=key)
    if row is None:
        return
    if listings.has_trace(str(row["trace_id"])):
        open_in_work(link_params(trace=str(row["trace_id"])), key=f"{key}-open")
    else:
        st.caption("You can open the trace after it is stored.")


def rejected_table(rejected: list[Rejected]) -> pd.DataFrame:
    rows = [(one.file, one.place, one.reason, one.remedy) for one in rejected]
    return pd.DataFrame(rows, columns=["file", "place", "reason", "remedy"])


def here() -> None:
    """What is in the workspace already."""
    traces = listings.traces()
    if traces.empty:
        st.info("This workspace holds no traces. Try: drop trace files above, for example those in data/samples.")
        return
    last = traces["ingested_at"].max()
    total = f"{counted(len(traces), 'trace')}, {counted(int(traces['spans'].sum()), 'span')}"
    with st.container(border=True):
        layout.title("In this workspace")
        table = traces.groupby("format").agg(
            traces=("trace_id", "size"), spans=("spans", "sum"), warnings=("warning_count", "sum")
        )
        table = table.reset_index()
        names = {"format": st.column_config.TextColumn("format", width=140)}  # openai_agents is cut without
        row = data_table(table, width="content", key="formats", is_chosen=True, columns=names)
        st.caption(f"{total}; last stored {last:%Y-%m-%d %H:%M} UTC. Select a row to list its traces.")
        if row is not None:
            open_in_explore(link_params(facet_format=str(table["format"].iloc[row])), key="formats-open")
        removal_of([str(trace_id) for trace_id in traces["trace_id"]])
        doubted = traces[traces["warning_count"] > 0]
        if len(doubted):
            warnings = counted(int(doubted["warning_count"].sum()), "warning")
            with st.expander(
                f"{warnings} on {counted(len(doubted), 'trace')}", on_change="rerun", key="noted"
            ) as opened:
                if opened.open:
                    noted([str(trace_id) for trace_id in doubted["trace_id"]])


def removal_of(trace_ids: Sequence[str]) -> None:
    """The way to take traces out, folded away."""
    with st.expander("Remove traces", key="removal", on_change="rerun") as opened:
        if not opened.open:
            return
        me = user()
        done = remove_form(workspace(), trace_ids, by=me.name, may_delete_labels=me.may("admin"))
        if done is not None:
            st.session_state["stored"] = done
            st.rerun()


@st.cache_data(show_spinner=False, max_entries=2)
def _warnings(place: str, now: Revision, trace_ids: tuple[str, ...]) -> list[tuple[str, str]]:
    """Trace and warning: what readers noted of these traces."""
    with read_transaction(workspace().engine) as connection:
        traces = [load(connection, trace_id, with_logs=False) for trace_id in trace_ids]
    return [(trace.trace_id, warning) for trace in traces for warning in trace.all_warnings]


def noted(trace_ids: Sequence[str]) -> None:
    """What readers noted of stored traces, and the way to each of these."""
    rows = _warnings(listings.place(), listings.now_revision(), tuple(trace_ids[:SHOWN]))
    if len(trace_ids) > SHOWN:
        st.caption(
            f"The table shows the first {SHOWN} traces. Explore lists all of them with their number of warnings."
        )
    chosen = data_table(pd.DataFrame(rows, columns=["trace_id", "warning"]), is_chosen=True, key="noted-rows")
    if chosen is not None and st.button("Open in Work", key="to-work", icon=":material/edit_note:"):
        st.switch_page("views/work.py", query_params=link_params(trace=rows[chosen][0]))


page()
