"""The rows that leave the workspace by name: labels, scores, pairs, findings, traces; and every report table."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Collection
from dataclasses import asdict
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson
import pandas as pd
from sqlalchemy import Connection, select
from sqlalchemy import Table as SqlTable
from sqlalchemy.sql.elements import ColumnElement

from tracejury.app import estimates, listings
from tracejury.app.estimates import estimate
from tracejury.app.session import workspace
from tracejury.ingest.spreadsheet import csv_text
from tracejury.ingest.store import read_transaction
from tracejury.ingest.trace import Json
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.tables import TABLES, Table, can_build, numeric_columns
from tracejury.judging.labels.label_store import error_labels, score_labels
from tracejury.judging.reports import rows
from tracejury.judging.reports.estimates import DERIVED
from tracejury.judging.reports.export import (
    WRITERS,
    MadeFrom,
    latex_origin,
    manifest_of,
    markdown_origin,
    markdown_text,
    parquet_bytes,
)
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import submitted
from tracejury.judging.reports.latex import latex_table
from tracejury.judging.runs.verdicts import findings_of
from tracejury.judging.store import tables

FORMATS: Final = ("csv", "json", "parquet", "md", "tex")
MIMES: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "md": "text/markdown; charset=utf-8",
    "tex": "application/x-tex; charset=utf-8",
    "zip": "application/zip",
    "html": "text/html; charset=utf-8",
}


class Dataset(NamedTuple):
    """Rows by name: `frame` makes them for the filters, `about` says what one row is and which filters hold."""

    name: str
    title: str
    about: str
    frame: Callable[[Filters], pd.DataFrame]


def labels(filters: Filters) -> pd.DataFrame:
    """Every current error label, one row each; spans, dimensions and evidence as JSON."""
    table = tables.error_label
    with read_transaction(workspace().engine) as connection:
        errors = error_labels(connection, *_of_people(filters, table))
    rows = _kept([asdict(label) for label in errors], filters)
    columns = [
        "label_id", "trace_id", "annotator", "span_ids", "dimensions", "impact", "category", "description", "evidence",
        "phase", "attributes",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns, dtype=object)


def score_rows(filters: Filters) -> pd.DataFrame:
    """Every current score of a person, one row each."""
    table = tables.score_label
    with read_transaction(workspace().engine) as connection:
        scores = score_labels(connection, *_of_people(filters, table))
    rows = _kept([asdict(score) for score in scores], filters)
    columns = ["trace_id", "annotator", "dimension", "value", "not_applicable", "note", "confidence", "phase"]
    types = {"value": "float64", "not_applicable": "bool", "confidence": "Int64"}
    return pd.DataFrame(rows, columns=columns, dtype=object).astype(types)


def findings(filters: Filters) -> pd.DataFrame:
    """Every finding of the chosen judges, with what it says and cites, and what became of it."""
    return with_finding_texts(estimate(filters, "findings"))


def with_finding_texts(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with a `finding_id`, with what each finding says and cites."""
    with read_transaction(workspace().engine) as connection:
        findings = _finding_texts(connection, [int(key) for key in rows["finding_id"]])
    return rows.merge(findings, on="finding_id", how="left")


def stored_rows(name: str, filters: Filters) -> pd.DataFrame:
    """Give a table of `rows.STORED`, of the traces of the split and of the chosen formats."""
    with read_transaction(workspace().engine) as connection:
        frame = rows.STORED[name][1](connection)
    return frame[frame["trace_id"].isin(_trace_ids(filters))].reset_index(drop=True)


DATASETS: Final[tuple[Dataset, ...]] = (
    Dataset(
        "labels",
        "Error labels",
        "An annotator's error, drafts included; of the chosen annotator, otherwise of everyone. Filters of judges "
        "and matches do not apply.",
        labels,
    ),
    Dataset(
        "scores",
        "Scores",
        "An annotator's score of a dimension, drafts included; of the chosen annotator, otherwise of everyone. "
        "Filters of judges and matches do not apply.",
        score_rows,
    ),
    Dataset(
        "pairs",
        "Error pairs",
        "A reference error and a judge: relevant, caught, localized. The input of Tables 1 to 16.",
        lambda filters: estimate(filters, "error_pairs"),
    ),
    Dataset(
        "score_pairs",
        "Score pairs",
        "A trace with a reference score and a judge's score.",
        lambda filters: estimate(filters, "score_pairs"),
    ),
    Dataset(
        "ratings",
        "Ratings",
        "A score of a trace by a rater: an annotator, or a repeat of a judge.",
        lambda filters: estimate(filters, "ratings"),
    ),
    Dataset("findings", "Findings", "A finding of a judge, matched or unmatched, with its citations.", findings),
    Dataset(
        "traces",
        "Traces",
        "A trace with its summary; only the filters Split and Trace formats apply.",
        lambda filters: _traces(filters),
    ),
)
STORED: Final[tuple[Dataset, ...]] = tuple(
    Dataset(
        name, name.capitalize(), f"{about} Only the filters Split and Trace formats apply.", partial(stored_rows, name)
    )
    for name, (about, _) in rows.STORED.items()
)
"""Whole tables of the workspace: for scripts, not part of a report."""
BY_NAME: Final = {dataset.name: dataset for dataset in (*DATASETS, *STORED)}


TRACE_COLUMNS: Final = ("trace_id", "unit")
"""What tables call the trace that a row stands for."""


def open_rows(frame: pd.DataFrame, blind: Collection[str]) -> pd.DataFrame:
    """The rows that may reach somebody who labels the traces `blind` without knowing what others say."""
    for name in TRACE_COLUMNS if blind else ():
        frame = frame[~frame[name].isin(blind)] if name in frame else frame
    return frame


def open_to_me(rows: pd.DataFrame) -> pd.DataFrame:
    """Without those of traces that the person at the screen labels blind: Compare would refuse them."""
    return open_rows(rows, listings.blind_to_me())


def rows_bytes(dataset: Dataset, frame: pd.DataFrame, form: str, made_from: MadeFrom) -> bytes:
    """These rows of a data set, with what they were `made_from` where the format can hold it: in all but CSV."""
    about: dict[str, Json] = {"table": dataset.name, "title": dataset.title, "about": dataset.about}
    match form:
        case "csv":
            return csv_bytes(frame)
        case "parquet":
            return parquet_bytes(_plain(frame), {**about, **made_from})
        case "md":
            return (markdown_text(_plain(frame), numeric=numeric_columns(frame)) + markdown_origin(made_from)).encode()
        case "tex":
            cells, origin = _plain(frame), latex_origin(made_from)
            return latex_table(
                cells, title=dataset.title, name=dataset.name, numeric=numeric_columns(frame), about=origin
            ).encode()
        case _:
            rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
            return _json({**about, "made_from": made_from, "rows": rows})


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """CSV in UTF-8: lists as JSON, and no cell that a spreadsheet would run as a formula."""
    return csv_text(_plain(frame)).encode("utf-8", "backslashreplace")


def table_frame(table: Table, filters: Filters, *, blind: Collection[str] = ()) -> pd.DataFrame:
    """A report table of the filters. Raises as `estimate`, and `ValueError` for one that cannot be made."""
    return open_rows(estimate(filters, f"table.{table.name}"), blind)


def table_bytes(table: Table, filters: Filters, form: str, *, blind: Collection[str] = ()) -> bytes:
    """A report table in one of `FORMATS`."""
    return WRITERS[form](table_frame(table, filters, blind=blind), table, manifest(filters, blind=blind))


def available(inputs: Inputs) -> list[Table]:
    """The report tables that these inputs allow."""
    return [table for table in TABLES if can_build(table, inputs)]


def with_tables(filters: Filters) -> Filters:
    """`estimates.with_all` that report tables, and charts of the same, are made from."""
    tables = available(estimates.inputs(filters))
    return estimates.with_all(filters, *DERIVED, *(f"table.{table.name}" for table in tables))


def manifest(filters: Filters, *, blind: Collection[str] = ()) -> dict[str, Json]:
    """What an export was made from: versions, hashes, filters, seed, draws, rules for missing, rows left out."""
    record = manifest_of(estimates.facts(filters), filters, estimates.inputs(filters))
    return {**record, "filters": filters.label(), "rows_left_out_of_traces": list[Json](sorted(blind))}


def report_zip(
    filters: Filters,
    *,
    forms: tuple[str, ...] = ("csv",),
    long: pd.DataFrame | None = None,
    blind: Collection[str] = (),
) -> bytes:
    """Every report table in the given formats, the data sets as CSV, and `manifest.json`, in one archive.

    `filters` are held by `with_tables`: all of it is of one revision.
    """
    tables, made_from = available(estimates.inputs(filters)), manifest(filters, blind=blind)
    buffer = io.BytesIO()
    files: list[Json] = []

    def add(archive: zipfile.ZipFile, name: str, data: bytes, rows: int) -> None:
        archive.writestr(name, data)
        files.append({"file": name, "rows": rows, "sha256": sha256(data).hexdigest()})

    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for table in tables:
            frame = table_frame(table, filters, blind=blind)
            for form in forms:
                add(archive, f"tables/{table.name}.{form}", WRITERS[form](frame, table, made_from), len(frame))
        for dataset in DATASETS:
            frame = open_rows(dataset.frame(filters), blind)
            add(archive, f"data/{dataset.name}.csv", csv_bytes(frame), len(frame))
        if long is not None:
            add(archive, "tables/every_metric_long.csv", csv_bytes(long), len(long))
        archive.writestr("manifest.json", orjson.dumps({**made_from, "files": files}, option=orjson.OPT_INDENT_2))
    return buffer.getvalue()


def _traces(filters: Filters) -> pd.DataFrame:
    frame = listings.traces()
    return frame[frame["trace_id"].isin(_trace_ids(filters))].reset_index(drop=True)


def _trace_ids(filters: Filters) -> set[str]:
    """The traces of the split and of the chosen formats."""
    traces = listings.traces()
    ids = set(
        traces["trace_id"]
        if not filters.trace_formats
        else traces.loc[traces["format"].isin(filters.trace_formats), "trace_id"]
    )
    return ids if filters.split is None else ids & set(filters.split.by_trace)


def _of_people(filters: Filters, table: SqlTable) -> list[ColumnElement[bool]]:
    """What the filters leave of labels or scores: of the person, blind ones unless revealed ones count too."""
    conditions = [table.c.occasion == 0]
    if filters.reference is not None:
        conditions.append(table.c.annotator == filters.reference)
    return [*conditions, *([table.c.phase == "blind"] if filters.blind_only else [])]


def _kept(rows: list[dict[str, object]], filters: Filters) -> list[dict[str, object]]:
    """The rows of the traces that the filters keep; with a guideline those of reviews made under it."""
    if filters.split is not None or filters.trace_formats:
        ids = _trace_ids(filters)
        rows = [row for row in rows if row["trace_id"] in ids]
    if filters.guideline is None:
        return rows
    with read_transaction(workspace().engine) as connection:
        done = submitted(connection, filters.guideline)
    return [row for row in rows if (row["annotator"], row["trace_id"]) in done]


def _finding_texts(connection: Connection, keys: list[int]) -> pd.DataFrame:
    """finding_id, dimension, impact, category, check, description, evidence, evidence_place, cites, span_ids."""
    key_set = set(keys)
    query = select(tables.finding.c.finding_key, tables.finding.c.cell_key)
    cells = {cell for key, cell in connection.execute(query) if key in key_set}
    findings = findings_of(connection, sorted(cells))
    rows = [
        {
            "finding_id": key,
            "dimension": finding.dimension,
            "impact": finding.impact,
            "category": finding.category,
            "check": finding.check,
            "description": finding.description,
            "evidence": finding.evidence,
            "evidence_place": finding.evidence_place,
            "cites": [citation.cite for citation in finding.citations],
            "span_ids": [citation.span_id for citation in finding.citations],
        }
        for of_cell in findings.values()
        for key, finding in of_cell
        if key in key_set
    ]
    columns = [
        "finding_id", "dimension", "impact", "category", "check", "description", "evidence", "evidence_place", "cites",
        "span_ids",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns, dtype=object).astype({"finding_id": "int64"})


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Lists and objects as JSON text and lone surrogates escaped, so that every format can hold them."""
    plain = frame.copy()
    for name in frame.columns:
        if frame[name].dtype == object:
            plain[name] = [_held(value) for value in frame[name]]
    return plain


def _json(document: object) -> bytes:
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY, default=_worded) + b"\n"
    except orjson.JSONEncodeError:  # a lone surrogate: escaped, every reader takes it
        return (json.dumps(document, indent=2, default=_worded) + "\n").encode("ascii")


def _worded(value: object) -> str:
    """Times as ISO 8601, all to the microsecond."""
    return value.isoformat(timespec="microseconds") if isinstance(value, datetime) else str(value)


def _held(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace").decode()
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value
