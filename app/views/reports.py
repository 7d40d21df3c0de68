"""Tables as files: the paper's and our own, with what they were made from; and the rows behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson
import pandas as pd
import streamlit as st

from tracejury.app import datasets, estimates, grants, listings, options
from tracejury.app.api.exports import PURPOSE
from tracejury.app.components import layout
from tracejury.app.components.data_table import chosen_row, data_table, row_of, words
from tracejury.app.components.drilldown import open_in_compare, open_in_work
from tracejury.app.components.estimate_text import counted, definition, plain
from tracejury.app.components.filters import choose_filters, shared_filters
from tracejury.app.components.judges import every_metric
from tracejury.app.components.snapshot import snapshot
from tracejury.app.estimates import NoEstimateError, Revisions, shown_revision
from tracejury.app.painting import paint
from tracejury.app.placeholders import of_one_revision, with_placeholder
from tracejury.app.session import deferred, link_params, must, token
from tracejury.app.views.match_offer import offer_matching
from tracejury.ingest.trace import Json
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.tables import Table, numeric_columns, printed
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.reports.export import WRITERS
from tracejury.judging.reports.filters import Filters

NAMES = {"csv": "CSV", "json": "JSON", "md": "Markdown", "tex": "LaTeX", "parquet": "Parquet"}
PREVIEWED = 200  # rows


def page() -> None:
    must("researcher")
    layout.heading("Reports", beside=lambda: options.saved_views_menu("reports"))
    filters = choose_filters(options.options(), options.keep_split)
    if not listings.has_traces():
        st.info("This workspace holds no traces. Try: the Ingest page, or `tracejury ingest PATH`.")
        return
    report(*of_one_revision(filters))


@with_placeholder(height=760)
def report(filters: Filters, at: Revisions) -> None:
    inputs = estimates.inputs(filters)
    st.caption(f"{plain(about_of(filters))} · {shown_revision(at.shown)}")
    offer_matching(filters)
    whole_report(filters)
    paint("reports")
    with st.container(border=True):
        one_table(filters, inputs)
    with st.container(border=True):
        table_rows(filters)
    with st.container(border=True):
        provenance(filters)


def whole_report(filters: Filters) -> None:
    def archive() -> bytes:
        pinned = datasets.with_tables(filters)
        return datasets.report_zip(
            pinned,
            forms=("csv", "md", "tex"),
            long=every_metric(estimates.inputs(pinned)),
            blind=listings.blind_to_me(),
        )

    def web_page() -> bytes:
        pinned = datasets.with_tables(filters)
        inputs, blind = estimates.inputs(pinned), listings.blind_to_me()
        frames = [(table, datasets.table_frame(table, pinned, blind=blind)) for table in datasets.available(inputs)]
        return snapshot(inputs, frames, about=about_of(pinned), manifest=datasets.manifest(pinned, blind=blind))

    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "All tables as ZIP",
            data=deferred(archive, role="researcher"),
            file_name="tracejury-report.zip",
            mime=datasets.MIMES["zip"],
            icon=":material/folder_zip:",
            type="primary",
            on_click="ignore",
            key="zip",
            help="Every table as CSV, Markdown and LaTeX, the input rows as CSV, and manifest.json.",
        )
        st.download_button(
            "Web page with charts",
            data=deferred(web_page, role="researcher"),
            file_name="tracejury-report.html",
            mime="text/html",
            icon=":material/web:",
            on_click="ignore",
            key="html",
            help="One self-contained file that opens without a network and without Tracejury.",
        )


@st.fragment(key="one-table")
@with_placeholder(height=420)
def one_table(filters: Filters, inputs: Inputs) -> None:
    layout.title("Tables", "The paper's Tables 1 to 17 and Tracejury's own tables, rounded half-up like the paper's.")
    known = {title_of(table): table for table in datasets.available(inputs)}
    name = st.selectbox(
        "Table", list(known), key="table", label_visibility="collapsed", bind="query-params", persist_state="session"
    )
    table = known[str(name)]
    blind = listings.blind_to_me()
    try:
        frame = datasets.table_frame(table, filters, blind=blind)
    except NoEstimateError as error:
        st.warning(f"This table cannot be computed with these filters: {plain(str(error))}")
        return
    if frame.empty:
        st.info(why_empty(table, filters))
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
    more += " Select a row to open its trace." if is_of_traces(frame) else ""
    why = "; the column reason explains them" if "reason" in frame else ""
    st.caption(
        f"{counted(len(frame), 'row')}, {len(frame.columns)} columns. Empty cells are undefined or absent{why}.{more}"
    )
    row = chosen_row(event, len(frame)) if is_of_traces(frame) else None
    if row is not None:
        open_row(row_of(frame, row), key="printed")
    export_buttons(
        filters, len(frame), table.name, lambda form: WRITERS[form](still_open(frame), table, manifest_now(filters))
    )


def is_of_traces(frame: pd.DataFrame) -> bool:
    """Whether a row of it belongs to a trace: an aggregate counts many, which the Agreement page opens."""
    return any(name in frame for name in datasets.TRACE_COLUMNS)


def open_row(row: Mapping[str, Any], *, key: str) -> None:
    """The way to the trace of a row, beside the judge, person, error or finding that it names."""
    trace = next(str(row[name]) for name in datasets.TRACE_COLUMNS if name in row)
    if not listings.has_trace(trace):
        st.caption("The workspace does not hold this trace.")
        return
    values = {name: None if pd.isna(row.get(name)) else str(row[name]) for name in OPENED}
    error = values["error_id"] or values["label_id"]
    link = link_params(
        trace=trace, judge_model=values["judge_model"], person=values["annotator"],
        pair=error or (f"|{values['finding_id']}" if values["finding_id"] else None),
        dimension=values["dimension"] if values["dimension"] in DIMENSIONS else None,
    )  # fmt: skip
    with st.container(horizontal=True):
        open_in_compare(link, key=f"{key}-open")
        open_in_work(link_params(trace=trace, span=listings.first_span(error)), key=f"{key}-work")


OPENED = ("judge_model", "dimension", "annotator", "error_id", "label_id", "finding_id")
"""The columns of a row that say where it is shown."""


@st.fragment(key="rows-behind")
@with_placeholder(height=380)
def table_rows(filters: Filters) -> None:
    layout.title("Input rows of the tables", "Each description names the filters that apply.")
    titles = {dataset.title: dataset for dataset in datasets.DATASETS}
    chosen = st.segmented_control(
        "Rows", list(titles), default="Error pairs", required=True, key="rows", label_visibility="collapsed",
        bind="query-params",
    )  # fmt: skip
    dataset = titles[str(chosen)]
    blind = listings.blind_to_me()
    frame = datasets.open_rows(dataset.frame(filters), blind)
    st.caption(f"{dataset.about} Select a row to open its trace.")
    if blind:
        st.info(f"{counted(len(blind), 'trace')} left out because you are labelling "
            f"{'it' if len(blind) == 1 else 'them'} "
                "blind. Estimates include them.")  # fmt: skip
    if frame.empty:
        st.info("No row matches the filters.")
        return
    listings.note_rows(frame.head(PREVIEWED), "Reports")
    row = data_table(
        frame.head(PREVIEWED), most=7, digits=4, key=f"preview-{dataset.name}", is_chosen=is_of_traces(frame)
    )
    if row is not None:
        open_row(row_of(frame, row), key="preview")
    export_buttons(
        filters,
        len(frame),
        dataset.name,
        lambda form: datasets.rows_bytes(dataset, still_open(frame), form, manifest_now(filters)),
    )
    st.fragment(stable_address, key="address", run_every=grants.MAX_AGE_S / 2)(dataset.name)


def stable_address(name: str) -> None:
    """Drawn anew while the page is open, so that the token in it is never out of date."""
    st.caption(
        f"Stable URL of these rows; its token expires after {grants.MAX_AGE_S // 60} minutes and is renewed while "
        f"this page is open. A script omits this token and sends its own as `Authorization: Bearer`. Try: `tracejury "
        f"token`, or the Account page."
    )
    st.code(address(name), language=None, wrap_lines=True)


def about_of(filters: Filters) -> str:
    return f"Reference: {estimates.reference(filters)} · {filters.label()}"


def still_open(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that the button counts, less what the person has taken up to label blind since."""
    rows_open = datasets.open_to_me(rows)
    listings.note_rows(rows_open, "Export")
    return rows_open


def manifest_now(filters: Filters) -> dict[str, Json]:
    return datasets.manifest(filters, blind=listings.blind_to_me())


def export_buttons(filters: Filters, rows: int, name: str, make: Callable[[str], bytes]) -> None:
    def manifest() -> bytes:
        files = [{"file": f"{name}.{form}", "rows": rows} for form in NAMES]
        about = {**manifest_now(filters), "files": files}
        return orjson.dumps(about, option=orjson.OPT_INDENT_2)

    with st.container(horizontal=True):
        for form, title in NAMES.items():
            label = f"Export {counted(rows, 'row')} (current filter)" if form == "csv" else title
            st.download_button(
                label,
                data=deferred(partial(make, form), role="researcher"),
                file_name=f"{name}.{form}",
                mime=datasets.MIMES[form],
                icon=":material/download:" if form == "csv" else None,
                on_click="ignore",
                key=f"{name}-{form}",
                help=f"{name}.{form}",
            )
        st.download_button(
            "Manifest",
            data=deferred(manifest, role="researcher"),
            file_name=f"{name}.manifest.json",
            mime="application/json",
            icon=":material/fingerprint:",
            on_click="ignore",
            key=f"{name}-manifest",
            help="Inputs of these rows: versions, hashes, filters, seed, resamples, and rules for missing values.",
        )


def provenance(filters: Filters) -> None:
    layout.title("Provenance", "Every report contains this record as manifest.json.")
    content = orjson.dumps(manifest_now(filters), option=orjson.OPT_INDENT_2).decode()
    st.download_button(
        "Manifest", data=content, file_name="manifest.json", mime="application/json", on_click="ignore", key="manifest",
        icon=":material/fingerprint:",
    )  # fmt: skip
    with st.expander("Show manifest", key="manifest-shown"):
        st.code(content, language="json", height=320)


def address(name: str) -> str:
    """The stable address of an export with the filters of this page."""
    from urllib.parse import urlencode

    base = st.get_option("server.baseUrlPath").strip("/")
    parameters = {"format": "csv", **shared_filters(), "token": token(name, purpose=PURPOSE)}
    query = urlencode(parameters, doseq=True)
    return f"/{base + '/' if base else ''}api/export/{name}?{query}"


def title_of(table: Table) -> str:
    return f"{table.paper}: {table.title}" if table.paper else table.title


def why_empty(table: Table, filters: Filters) -> str:
    needs = ", ".join(need.replace("_", " ") for need in table.needs)
    return (
        f"This table has no rows: it is made from {needs}, and the current filters leave none. Try: another person "
        "or judge, or add labels, scores or verdicts."
    ) + ("" if filters.split is None else " The filter Split may exclude the traces that have them.")


def _numeric(frame: pd.DataFrame, table: Table) -> list[str]:
    return [f"{name}_pct" if name in table.percents else name for name in numeric_columns(frame)]


page()
