"""Tables as files: the paper's and our own, with what they were made from; and the rows behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson
import pandas as pd
import streamlit as st

from tracejury.app import datasets, grants, loading
from tracejury.app.api.exports import PURPOSE
from tracejury.app.awaited import awaited, of_one_revision
from tracejury.app.components import filters, layout
from tracejury.app.components.behind import open_in_compare, open_in_work
from tracejury.app.components.figures import counted, definition, plain
from tracejury.app.components.judges import every_figure
from tracejury.app.components.sheet import chosen_row, row_of, sheet, words
from tracejury.app.components.snapshot import snapshot
from tracejury.app.computing import shown_revision
from tracejury.app.loading import Choice
from tracejury.app.painting import paint
from tracejury.app.session import link_params, token
from tracejury.ingest.trace import Json
from tracejury.judging.agreement.tables import Inputs, Table, numeric_columns, printed
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.reports.export import WRITERS

NAMES = {"csv": "CSV", "json": "JSON", "md": "Markdown", "tex": "LaTeX", "parquet": "Parquet"}
PREVIEWED = 200  # rows


def page() -> None:
    loading.must("researcher")
    layout.heading("Reports", beside=lambda: loading.saved_views_menu("reports"))
    choice = filters.choose(loading.options(), loading.keep_split)
    if not loading.has_traces():
        st.info("No trace is here yet. Bring some in on the Ingest page, or with `tracejury ingest PATH`.")
        return
    held = of_one_revision(choice)
    if held is not None:
        report(*held)


@awaited(height=760)
def report(choice: Choice, at: loading.Standing) -> None:
    found = loading.inputs(choice)
    st.caption(f"{plain(about_of(choice))} · {shown_revision(at.shown)}")
    whole_report(choice)
    paint("reports")
    with st.container(border=True):
        one_table(choice, found)
    with st.container(border=True):
        rows_behind(choice)
    with st.container(border=True):
        provenance(choice)


def whole_report(choice: Choice) -> None:
    def archive() -> bytes:
        held = loading.whole(choice)
        return datasets.report_zip(
            held, forms=("csv", "md", "tex"), long=every_figure(loading.inputs(held)), blind=loading.blind_to_me()
        )

    def web_page() -> bytes:
        held = loading.whole(choice, *(table.name for table in datasets.available(loading.inputs(choice))))
        inputs, blind = loading.inputs(held), loading.blind_to_me()
        made = [(table, datasets.table_frame(table, held, blind=blind)) for table in datasets.available(inputs)]
        return snapshot(inputs, made, about=about_of(held), manifest=datasets.manifest(held, blind=blind))

    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "All tables as ZIP",
            data=archive,
            file_name="tracejury-report.zip",
            mime=datasets.MIMES["zip"],
            icon=":material/folder_zip:",
            type="primary",
            on_click="ignore",
            key="zip",
            help="Every table as CSV, Markdown and LaTeX, the rows behind them as CSV, and manifest.json.",
        )
        st.download_button(
            "Web page with charts",
            data=web_page,
            file_name="tracejury-report.html",
            mime="text/html",
            icon=":material/web:",
            on_click="ignore",
            key="html",
            help="One self-contained file: needs no network and no Tracejury to be read.",
        )


@st.fragment(key="one-table")
@awaited(height=420)
def one_table(choice: Choice, found: Inputs) -> None:
    layout.title("Tables", "The paper's Tables 1 to 17 and our own, rounded half-up as the paper prints them.")
    known = {title_of(table): table for table in datasets.available(found)}
    name = st.selectbox(
        "Table", list(known), key="table", label_visibility="collapsed", bind="query-params", persist_state="session"
    )
    table = known[str(name)]
    blind = loading.blind_to_me()
    try:
        frame = datasets.table_frame(table, choice, blind=blind)
    except ValueError as error:
        st.warning(f"This table cannot be made from the current choice: {plain(str(error))}")
        return
    if frame.empty:
        st.info(why_empty(table, choice))
        return
    event = st.dataframe(
        printed(frame, table).head(PREVIEWED),
        hide_index=True,
        height=38 + 35 * min(len(frame), 11),
        column_config={
            column: st.column_config.TextColumn(
                words(column), alignment="right", help=definition(column.removesuffix("_pct")) or None
            )
            for column in _numeric(frame, table)
        },
        width="content",
        alt=table.title,
        key=f"printed-{table.name}",
        on_select="rerun" if is_of_traces(frame) else "ignore",
        selection_mode="single-row",
    )
    more = f" The first {PREVIEWED} are shown." if len(frame) > PREVIEWED else ""
    more += " Choose a row to open its trace." if is_of_traces(frame) else ""
    why = ": the column reason says why" if "reason" in frame else ""
    st.caption(
        f"{counted(len(frame), 'row')}, {len(frame.columns)} columns. Empty cells are undefined or absent{why}.{more}"
    )
    row = chosen_row(event, len(frame)) if is_of_traces(frame) else None
    if row is not None:
        open_row(row_of(frame, row), key="printed")
    export_buttons(
        choice, len(frame), table.name, lambda form: WRITERS[form](still_open(frame), table, manifest_now(choice))
    )


def is_of_traces(frame: pd.DataFrame) -> bool:
    """Whether a row of it belongs to a trace: an aggregate counts many, which the Agreement page opens."""
    return any(name in frame for name in datasets.TRACE_COLUMNS)


def open_row(row: Mapping[str, Any], *, key: str) -> None:
    """The way to the trace of a row, beside the judge, person, error or finding that it names."""
    trace = next(str(row[name]) for name in datasets.TRACE_COLUMNS if name in row)
    if not loading.has_trace(trace):
        st.caption("This trace is not in the workspace.")
        return
    said = {name: None if pd.isna(row.get(name)) else str(row[name]) for name in OPENED}
    error = said["error_id"] or said["label_id"]
    link = link_params(
        trace=trace, judge_model=said["judge_model"], person=said["annotator"],
        pair=error or (f"|{said['finding_id']}" if said["finding_id"] else None),
        dimension=said["dimension"] if said["dimension"] in DIMENSIONS else None,
    )  # fmt: skip
    with st.container(horizontal=True):
        open_in_compare(link, key=f"{key}-open")
        open_in_work(link_params(trace=trace, span=loading.first_span(error)), key=f"{key}-work")


OPENED = ("judge_model", "dimension", "annotator", "error_id", "label_id", "finding_id")
"""The columns of a row that say where it is shown."""


@st.fragment(key="rows-behind")
@awaited(height=380)
def rows_behind(choice: Choice) -> None:
    layout.title("Rows behind the tables", "The current filter holds for each as its description says.")
    titles = {dataset.title: dataset for dataset in datasets.DATASETS}
    chosen = st.segmented_control(
        "Rows", list(titles), default="Error pairs", required=True, key="rows", label_visibility="collapsed",
        bind="query-params",
    )  # fmt: skip
    dataset = titles[str(chosen)]
    blind = loading.blind_to_me()
    frame = datasets.open_rows(dataset.frame(choice), blind)
    st.caption(f"{dataset.about} Choose a row to open its trace.")
    if blind:
        st.info(f"{counted(len(blind), 'trace')} left out: you are at work on {'it' if len(blind) == 1 else 'them'} "
                "yourself, blind. Figures count them all the same.")  # fmt: skip
    if frame.empty:
        st.info("No row fits the current filter.")
        return
    loading.note_rows(frame.head(PREVIEWED), "Reports")
    row = sheet(frame.head(PREVIEWED), most=7, digits=4, key=f"preview-{dataset.name}", is_chosen=is_of_traces(frame))
    if row is not None:
        open_row(row_of(frame, row), key="preview")
    export_buttons(
        choice,
        len(frame),
        dataset.name,
        lambda form: datasets.rows_bytes(dataset, still_open(frame), form, manifest_now(choice)),
    )
    st.fragment(stable_address, key="address", run_every=grants.MAX_AGE_S / 2)(dataset.name)


def stable_address(name: str) -> None:
    """Drawn anew while the page is open, so that the token in it is never out of date."""
    st.caption(
        f"The same by a stable address, good for {grants.MAX_AGE_S // 60} minutes and renewed while this page is open. "
        "A script leaves the token out and sends its own as `Authorization: Bearer`: `tracejury token`, or the "
        "Account page, makes one."
    )
    st.code(address(name), language=None, wrap_lines=True)


def about_of(choice: Choice) -> str:
    return f"Human: {loading.frames(choice).reference} · {choice.label()}"


def still_open(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that the button counts, less what the person has taken up to label blind since."""
    kept = datasets.open_to_me(rows)
    loading.note_rows(kept, "Export")
    return kept


def manifest_now(choice: Choice) -> dict[str, Json]:
    return datasets.manifest(choice, blind=loading.blind_to_me())


def export_buttons(choice: Choice, rows: int, name: str, made: Callable[[str], bytes]) -> None:
    def manifest() -> bytes:
        files = [{"file": f"{name}.{form}", "rows": rows} for form in NAMES]
        about = {**manifest_now(choice), "files": files}
        return orjson.dumps(about, option=orjson.OPT_INDENT_2)

    with st.container(horizontal=True):
        for form, title in NAMES.items():
            label = f"Export {counted(rows, 'row')} (current filter)" if form == "csv" else title
            st.download_button(
                label,
                data=partial(made, form),
                file_name=f"{name}.{form}",
                mime=datasets.MIMES[form],
                icon=":material/download:" if form == "csv" else None,
                on_click="ignore",
                key=f"{name}-{form}",
                help=f"{name}.{form}",
            )
        st.download_button(
            "Manifest",
            data=manifest,
            file_name=f"{name}.manifest.json",
            mime="application/json",
            icon=":material/fingerprint:",
            on_click="ignore",
            key=f"{name}-manifest",
            help="What these rows were made from: versions, hashes, filters, seed, draws, rules for missing.",
        )


def provenance(choice: Choice) -> None:
    layout.title("Provenance", "Stands beside every report as manifest.json.")
    content = orjson.dumps(manifest_now(choice), option=orjson.OPT_INDENT_2).decode()
    st.download_button(
        "Manifest", data=content, file_name="manifest.json", mime="application/json", on_click="ignore", key="manifest",
        icon=":material/fingerprint:",
    )  # fmt: skip
    with st.expander("Show it", key="manifest-shown"):
        st.code(content, language="json", height=320)


def address(name: str) -> str:
    """The stable address of an export with the filters of this page."""
    from urllib.parse import urlencode

    base = st.get_option("server.baseUrlPath").strip("/")
    asked = {"format": "csv", **filters.shared(), "token": token(name, purpose=PURPOSE)}
    query = urlencode(asked, doseq=True)
    return f"/{base + '/' if base else ''}api/export/{name}?{query}"


def title_of(table: Table) -> str:
    return f"{table.paper}: {table.title}" if table.paper else table.title


def why_empty(table: Table, choice: Choice) -> str:
    needs = ", ".join(need.replace("_", " ") for need in table.needs)
    return (
        f"This table has no row: it is made from {needs}, and the current choice holds none. Choose another person or "
        "judge, or bring labels, scores or runs in."
    ) + ("" if choice.split is None else " The split may leave out the traces that have them.")


def _numeric(frame: pd.DataFrame, table: Table) -> list[str]:
    return [f"{name}_pct" if name in table.percents else name for name in numeric_columns(frame)]


page()
