"""GAIA2 executions by Meta's ARE: gui, hf and lite files, those of one together, rows, outputs of benchmarks."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import PurePath

from tracejury.ingest.formats.gaia2.benchmark import (
    AROUND_KEY,
    looks_like_output,
    looks_like_statistics,
    read_output,
    read_statistics,
)
from tracejury.ingest.formats.gaia2.build import FORMAT, ExecutionFiles, execution_trace
from tracejury.ingest.formats.gaia2.bundle import bundles, complete, read_bundle
from tracejury.ingest.formats.gaia2.cli_folder import folder_name, is_cli, read_cli
from tracejury.ingest.formats.gaia2.export import looks_like_export, read_export
from tracejury.ingest.formats.gaia2.lite import HISTORIES, looks_like_lite, read_lite
from tracejury.ingest.formats.gaia2.parts import is_packed, unpacked
from tracejury.ingest.formats.gaia2.row import looks_like_row, read_rows
from tracejury.ingest.formats.gaia2.values import word
from tracejury.ingest.formats.rows import columns_of
from tracejury.ingest.parse import parse_documents
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, Trace

__all__ = ["NAME", "bundles", "complete", "read", "read_bundle", "sniff"]

NAME = FORMAT
_MARKS: tuple[frozenset[str], ...] = tuple(
    frozenset(keys)
    for keys in (
        {"world_logs"},
        {"completed_events"},
        {HISTORIES},
        {"definition", "time_increment_in_seconds"},
        {"scenario_id", "data", "split"},
        {"scenario_id", "data", "status"},
        {"scenario_id", "data", "run_number"},
        {"task_id", "trace_id", "score", "metadata"},
        {"per_capability", "statistics"},
        {"scenario_id", "num_agent_events", "num_oracle_events"},
        {"t", "app", "fn", "args", "ret"},
        {"seq", "type", "request", "timestamp", "latency_ms"},
        {"agent_events", "oracle_events", "turn"},
        {AROUND_KEY},
    )
)


def sniff(sample: FileSample) -> bool:
    """By the keys at the start; a table by its columns."""
    keys = sample.keys or columns_of(sample)
    return any(marks <= keys for marks in _MARKS)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of a file: one of a gui, hf or lite file, as many as there are rows."""
    try:
        if is_packed(source.data):
            yield from read_bundle(unpacked(source))
        elif source.data.lstrip()[:1] in {b"{", b"["} or not _is_table(source):
            yield from _read_json(source)
        else:
            yield from read_rows(source)
    except (IngestError, tarfile.TarError) as error:
        known = error if isinstance(error, IngestError) else IngestError(f"damaged archive: {error}")
        yield rejected(source.file, known)


def _is_table(source: Source) -> bool:
    return "scenario_id" in columns_of(FileSample(source.file, source.data, True))


def _read_json(source: Source) -> Iterator[Trace | Rejected]:
    first = next(iter(parse_documents(source.data)))
    value = first.value
    rows = value if isinstance(value, list) else [value]
    if is_cli(value):
        yield from read_cli((source,), source, folder_name(source.file))
    elif looks_like_output(value):
        yield from read_output(source, (), {})
    elif (rows and all(looks_like_row(row) for row in rows)) or (first.error is not None and first.place):
        yield from read_rows(source)
    elif first.error is not None:
        raise first.error
    elif looks_like_statistics(value):
        yield from read_statistics(source, ())
    else:
        yield execution_trace(_execution_files(value, source), source)


def _execution_files(value: Json, source: Source) -> ExecutionFiles:
    if looks_like_lite(value):
        lite = read_lite(value)
        return ExecutionFiles(trace_id=_trace_id(source, lite.raw.get("scenario_id")), lite=lite)
    if not looks_like_export(value):
        raise IngestError(
            "not a GAIA2 trace: it lacks metadata and completed_events",
            remedy="export the execution with ARE (trace_dump_format hf, lite or both)",
        )
    export = read_export(value)
    trace_id = _trace_id(source, export.definition.get("scenario_id"))
    return (
        ExecutionFiles(trace_id=trace_id, gui=export) if export.is_gui else ExecutionFiles(trace_id=trace_id, hf=export)
    )


def _trace_id(source: Source, scenario: Json) -> str:
    """The file's base name, which the hf, lite and gui files of an execution share; without a file the scenario."""
    stem = PurePath(source.file).stem
    return (word(scenario) or "scenario") if stem in {"", "-"} else stem
