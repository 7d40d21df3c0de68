"""Tables as files: CSV, JSON, Markdown, LaTeX, Parquet, each report with a manifest of what it was made from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
from sqlalchemy import Connection

from tracejury.ingest import spreadsheet
from tracejury.ingest.trace import Json
from tracejury.judging.agreement.inputs import COLUMNS, Inputs
from tracejury.judging.agreement.intervals import LEVEL
from tracejury.judging.agreement.majority import vote_table
from tracejury.judging.agreement.tables import TABLES, Table, numeric_columns, printed, tables_from_frames
from tracejury.judging.matching.deciding import match_decisions
from tracejury.judging.matching.finding_reviews import finding_decisions
from tracejury.judging.reports.benchmark_outcomes import OUTCOME_TABLES
from tracejury.judging.reports.evidence_pairs import evidence_pairs
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import Frames, LazyFrames, chosen_traces
from tracejury.judging.reports.latex import latex_table
from tracejury.judging.reports.person_pairs import person_pairs
from tracejury.judging.reports.same_traces import compared
from tracejury.judging.reports.typeset import typeset

MadeFrom = Mapping[str, Json]
"""What a manifest tells: it goes into every file that can hold it."""

MISSING_RULES = {
    "drop": "failures are left out and counted beside the estimate",
    "disagree": "failed cells count as disagreement (a missed error, a wrong score)",
}


@dataclass(frozen=True, kw_only=True)
class Written:
    """One file of a report; `sha256` of its bytes tells whether it is still the one that was written."""

    file: str
    table: str
    rows: int
    sha256: str


def report_tables(inputs: Inputs, names: Sequence[str] = ()) -> dict[str, pd.DataFrame]:
    """The tables asked for (all that the inputs allow by default). Raises `ValueError` for an unknown name."""
    return tables_from_frames(inputs, list(names) or None)


def inputs_of(frames: Frames, filters: Filters, opinions: Mapping[str, pd.DataFrame]) -> Inputs:
    """The frames of the filters and `opinions_of` them as inputs of the tables."""
    frames_by_name: dict[str, Any] = {name: getattr(frames, name) for name in COLUMNS if hasattr(frames, name)}
    return Inputs(**frames_by_name | dict(opinions), missing=filters.missing, draws=filters.draws, seed=filters.seed)


def opinions_of(connection: Connection, filters: Filters, frames: Frames) -> dict[str, pd.DataFrame]:
    """The inputs that no judge enters: people against people, what people said of matches and of unmatched findings;
    and the evidence of the pairs of the frames, which is read in the texts of traces.
    """
    return {
        "person_pairs": person_pairs(connection, filters),
        "evidence_pairs": evidence_pairs(connection, frames.matched),
        **selected_decisions(connection, filters),
    }


def selected_decisions(connection: Connection, filters: Filters) -> dict[str, pd.DataFrame]:
    """What people said of matches and of unmatched findings, on the traces and of the judge models of the filters."""
    return decisions_of(connection, filters, all_decisions(connection))


def all_decisions(connection: Connection) -> dict[str, pd.DataFrame]:
    """`selected_decisions` of all traces and judge models."""
    return {"match_decisions": match_decisions(connection), "finding_decisions": finding_decisions(connection)}


def decisions_of(
    connection: Connection, filters: Filters, every: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """Keep of `all_decisions` those that the filters leave."""
    traces = chosen_traces(connection, filters)
    return {name: _within_filters(words, traces, filters) for name, words in every.items()}


def _within_filters(words: pd.DataFrame, traces: set[str], filters: Filters) -> pd.DataFrame:
    is_counted = words["trace_id"].isin(traces) & (
        words["judge_model"].isin(filters.judge_models) | (not filters.judge_models)
    )
    return words[is_counted].reset_index(drop=True)


def write_report(
    out: Path,
    tables: Mapping[str, pd.DataFrame],
    *,
    formats: Sequence[str],
    made_from: MadeFrom,
    more: Sequence[Table] = (),
) -> list[Written]:
    """Write every table in every format into `out`; `more` are tables of other layers.

    Raises `ValueError` for an unknown format.
    """
    unknown = [name for name in formats if name not in WRITERS]
    if unknown:
        raise ValueError(f"no such format: {', '.join(unknown)}; there are {', '.join(WRITERS)}")
    out.mkdir(parents=True, exist_ok=True)
    by_name = {table.name: table for table in (*TABLES, *OUTCOME_TABLES, *more)}
    written = []
    for name, frame in tables.items():
        for form in formats:
            data = WRITERS[form](frame, by_name[name], made_from)
            written.append(_write(out, f"{name}.{form}", data, table=name, rows=len(frame)))
    return written


def write_manifest(out: Path, manifest: Mapping[str, Json], written: Sequence[Written]) -> None:
    """Write `manifest.json` beside the files it tells of."""
    content = {**manifest, "files": [asdict(one) for one in written]}
    (out / "manifest.json").write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")


def write_inputs(out: Path, inputs: Inputs) -> list[Written]:
    """Write every input that is given as `<input>.csv`, as `judging.plain_csv` reads it: the report can be made again.

    Numbers are not rounded; text that a spreadsheet would run as a formula is quoted, and unquoted by the reader.
    """
    out.mkdir(parents=True, exist_ok=True)
    inputs_by_name = {name: inputs.frame_or_none(name) for name in COLUMNS}
    return [
        _write(out.parent, f"{out.name}/{name}.csv", input_csv(frame), table=name, rows=len(frame))
        for name, frame in inputs_by_name.items()
        if frame is not None
    ]


def _write(folder: Path, file: str, data: bytes, *, table: str, rows: int) -> Written:
    (folder / file).write_bytes(data)
    return Written(file=file, table=table, rows=rows, sha256=sha256(data).hexdigest())


def input_csv(frame: pd.DataFrame) -> bytes:
    """An input as CSV in UTF-8: true and false in words, empty where missing."""
    return spreadsheet.csv_text(frame).encode("utf-8", "backslashreplace")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a manifest tells of the frames: who is compared, how much of what, and the data they were read from."""

    reference: str | None
    judge_models: Sequence[str]
    traces: int
    reference_errors: int
    incomplete_errors: int
    """Without a span, a dimension or an impact: in no estimate."""
    votes: list[Json]
    same_traces: Mapping[str, Json]
    """`same_traces.Overlap`, whether it was applied, and what that means in words."""
    data_hash: str
    judge_versions: list[Json]
    matchers: list[Json]
    store_revision: list[Json]


def facts_of(frames: Frames | LazyFrames) -> Facts:
    """Counted from the frames."""
    judged = frames.ratings[frames.ratings["rater_kind"] == "judge"]  # people are no judge model
    pairs, overlap = compared(frames.error_pairs, frames.overlap), frames.overlap
    judge_models = sorted(set(frames.error_pairs["judge_model"]) | set(judged["judge_model"]))
    return Facts(
        reference=frames.reference,
        judge_models=[str(judge_model) for judge_model in judge_models],
        traces=len(set(pairs["trace_id"]) | set(compared(frames.score_pairs, overlap)["trace_id"])),
        reference_errors=int(pairs[["trace_id", "error_id"]].drop_duplicates().shape[0]),
        incomplete_errors=len(frames.incomplete),
        votes=_rows(vote_table(frames.votes)),
        same_traces={**asdict(overlap), "is_applied": overlap.is_applied, "words": overlap.words()},
        data_hash=frames.made_of.data_hash,
        judge_versions=[dict(version) for version in frames.made_of.judge_versions],
        matchers=list(frames.made_of.matchers),
        store_revision=list(frames.made_of.revision),
    )


def facts_frame(facts: Facts) -> pd.DataFrame:
    """One row: the facts, what holds several as JSON."""
    several = {name: orjson.dumps(getattr(facts, name)).decode() for name in _SEVERAL}
    return pd.DataFrame([{**asdict(facts), **several}])


def facts_in(frame: pd.DataFrame) -> Facts:
    """The facts that `facts_frame` put into a frame."""
    row = frame.to_dict("records")[0]
    return Facts(
        reference=None if row["reference"] is None else str(row["reference"]),
        traces=int(row["traces"]),
        reference_errors=int(row["reference_errors"]),
        incomplete_errors=int(row["incomplete_errors"]),
        data_hash=str(row["data_hash"]),
        **{name: orjson.loads(str(row[name])) for name in _SEVERAL},
    )


_SEVERAL = ("judge_models", "votes", "same_traces", "judge_versions", "matchers", "store_revision")


def manifest_of(facts: Facts, filters: Filters, inputs: Inputs) -> dict[str, Json]:
    """What a report was made from: versions, hashes of data and judges, filters, seed, draws, rules for missing."""
    split = () if filters.split is None else filters.split.parts
    return {
        **settings_of(inputs),
        "reference": facts.reference,
        "judge_models": list(facts.judge_models),
        "selection": {name: _plain(getattr(filters, name)) for name in FILTER_NAMES},
        "split": None if filters.split is None else filters.split.name,
        "splits": _counted(part for _, part in split),
        "splits_hash": _hash(sorted(split)) if split else None,
        "traces": facts.traces,
        "reference_errors": facts.reference_errors,
        "incomplete_errors": facts.incomplete_errors,
        "votes": facts.votes,
        "same_traces": dict(facts.same_traces),
        "data_hash": facts.data_hash,
        "store_revision": facts.store_revision,
        "judge_versions": facts.judge_versions,
        "matchers": facts.matchers,
    }


FILTER_NAMES = (
    "reference",
    "judge_models",
    "dimensions",
    "versions",
    "matches",
    "blind_only",
    "repeat",
    "trace_formats",
    "guideline",
    "tolerance",
    "slices",
    "same_traces",
)
"""The filters that a manifest tells as they are; `settings_of` tells of the others."""


def _plain(value: Any) -> Json:
    """A filter as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


INTERVALS: dict[str, Json] = {
    "level": LEVEL,
    "shares": "Wilson with the effective number of units and Student's t, clustered by trace (Korn and Graubard 1998)",
    "coefficients and means of scores": "Student's t on Fisher's z, infinitesimal jackknife (Fisher 1921, Efron 1982)",
    "means per trace": "Hall's transformation of Student's t, for skewed values (Hall 1992, Zhou and Dinh 2005)",
    "differences and TRAIL's official measures": "Student's t on the jackknife by trace (Efron and Stein 1981)",
}
"""How the bounds of the tables are made, for the manifest."""


def settings_of(inputs: Inputs) -> dict[str, Json]:
    """The part of a manifest that needs no workspace."""
    return {
        "made_with": f"tracejury {version('tracejury')}",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "libraries": {name: version(name) for name in ("numpy", "pandas", "scipy", "scikit-learn", "krippendorff")},
        "bootstrap_draws": inputs.draws,
        "seed": inputs.seed,
        "intervals": INTERVALS,
        "missing": inputs.missing,
        "missing_rule": MISSING_RULES[inputs.missing],
    }


def _rows(table: pd.DataFrame) -> list[Json]:
    """What a majority was found by, and what had none; empty where one person or the adjudicated gold counts."""
    counts = table.select_dtypes(exclude="float")
    return [{str(name): value for name, value in row.items()} for row in counts.to_dict("records")]


def _counted(values: Any) -> Json:
    counts = pd.Series(list(values), dtype="object").value_counts()
    return {str(name): int(count) for name, count in counts.items()}


def _hash(rows: Sequence[Any]) -> str:
    return blake2b(orjson.dumps([list(row) for row in rows]), digest_size=16).hexdigest()


def csv_text(frame: pd.DataFrame, table: Table) -> str:
    """`printed` as CSV; text that a spreadsheet would run as a formula is quoted, estimates are not."""
    return spreadsheet.csv_text(printed(frame, table), numbers=numeric_columns(frame))


def _csv(frame: pd.DataFrame, table: Table, made_from: MadeFrom) -> bytes:
    """No word of what it was made from: every reader of CSV would take that for a row. The manifest has it."""
    return csv_text(frame, table).encode()


def _json(frame: pd.DataFrame, table: Table, made_from: MadeFrom) -> bytes:
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    document = {"table": table.name, "title": table.title, "paper": table.paper, "made_from": made_from, "rows": rows}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY) + b"\n"


def _markdown(frame: pd.DataFrame, table: Table, made_from: MadeFrom) -> bytes:
    layout = typeset(frame, table, made_from)
    remark = f" ({in_markdown(layout.caption)})" if layout.caption else ""
    notes = f"\n{in_markdown(' '.join(layout.notes))}\n" if layout.notes else ""
    text = f"**{in_markdown(layout.title)}**{remark}\n\n{markdown_text(layout.cells, numeric=layout.numeric)}{notes}"
    return (text + markdown_origin(made_from)).encode()


def _latex(frame: pd.DataFrame, table: Table, made_from: MadeFrom) -> bytes:
    layout = typeset(frame, table, made_from)
    notes = [
        *([f"{layout.caption[0].upper()}{layout.caption[1:]}."] if layout.caption else []),
        *layout.notes,
    ]
    about = latex_origin(made_from)
    return latex_table(
        layout.cells,
        title=layout.title,
        name=table.name,
        numeric=layout.numeric,
        notes=notes,
        about=about,
    ).encode()


_GREATER = r"\u003e"  # in JSON within a comment, which it would end
_MARKUP = re.compile(r"[\\`*_\[\]<>|~&$]")


def in_markdown(text: str) -> str:
    """Text none of which is markup."""
    return _MARKUP.sub(r"\\\g<0>", text)


def markdown_text(cells: pd.DataFrame, *, numeric: Sequence[str] = ()) -> str:
    """Cells of text as a Markdown table: each on one line, empty where missing, and none of it markup."""

    def line(value: object) -> str:
        return in_markdown(" ".join(str(value).split()))  # any line ends a row

    text = cells.astype("object").where(cells.notna(), "").map(line).rename(columns=line)  # a judge may head a column
    sides = ["right" if name in numeric else "left" for name in cells.columns]
    return text.to_markdown(index=False, disable_numparse=True, colalign=sides if len(text) else None) + "\n"


def markdown_origin(made_from: MadeFrom) -> str:
    """What it was made from, as a comment that no reader sees and every editor does."""
    return f"\n<!-- Made from: {json.dumps(made_from).replace('>', _GREATER)} -->\n"


def latex_origin(made_from: MadeFrom) -> list[str]:
    """What it was made from, as lines for comments."""
    return [f"Made from: {json.dumps(made_from)}"]


def parquet_bytes(frame: pd.DataFrame, about: Mapping[str, Json]) -> bytes:
    """Parquet (zstd) that says what it is `about` under the key `tracejury` of its schema's metadata, as JSON.

    A column of text that holds none is text all the same: files of two reports can be joined.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    empty = [name for name in frame.columns if frame[name].dtype == object and frame[name].isna().all()]
    table = pa.Table.from_pandas(frame.astype(dict.fromkeys(empty, "str")), preserve_index=False)
    metadata = {**(table.schema.metadata or {}), ORIGIN: json.dumps(about).encode()}
    buffer = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(metadata), buffer, compression="zstd")
    return bytes(buffer.getvalue())


ORIGIN = b"tracejury"


def _parquet(frame: pd.DataFrame, table: Table, made_from: MadeFrom) -> bytes:
    return parquet_bytes(frame, {"table": table.name, "title": table.title, "paper": table.paper, **made_from})


WRITERS: dict[str, Callable[[pd.DataFrame, Table, MadeFrom], bytes]] = {
    "csv": _csv,
    "json": _json,
    "md": _markdown,
    "tex": _latex,
    "parquet": _parquet,
}
