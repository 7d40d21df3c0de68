"""What are-benchmark writes beside its traces: a line a run (`output.jsonl`) and statistics of them all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tracejury.ingest.formats.gaia2.row import row_summary
from tracejury.ingest.formats.gaia2.values import mapping, text, whole, word
from tracejury.ingest.parse import parse_documents, parse_json
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source

OUTPUT = "output.jsonl"
STATISTICS = "benchmark_stats.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputRow:
    """One line of output.jsonl. `trace_file` is the base name of the run's trace, None when it left none."""

    place: str
    line: bytes
    fields: Mapping[str, Json]
    trace_file: str | None

    @property
    def name(self) -> str:
        number = whole(self.fields.get("run_number"))
        scenario = text(self.fields.get("scenario_id") or self.fields.get("task_id")) or "run"
        return scenario if number is None else f"{scenario} (run {number})"


def looks_like_output(value: Json) -> bool:
    return isinstance(value, dict) and {"task_id", "trace_id", "score", "metadata"} <= value.keys()


def looks_like_statistics(value: Json) -> bool:
    return isinstance(value, dict) and "statistics" in value and "per_capability" in mapping(value["statistics"])


@lru_cache(maxsize=2)
def output_rows(data: bytes) -> tuple[OutputRow, ...]:
    """The lines that can be read; the others are named by `read_output`."""
    lines = data.split(b"\n")
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            value = parse_json(line) if line.strip() else None
        except IngestError:
            continue
        if looks_like_output(value):
            rows.append(_row(mapping(value), f"line {number}", line))
    return tuple(rows)


def row_of(data: bytes, file: str) -> OutputRow | None:
    """The line that tells of the run whose trace file is `file`."""
    return next((row for row in output_rows(data) if row.trace_file == base_name(file)), None)


def read_output(source: Source, beside: Sequence[str]) -> Iterator[Rejected]:
    """Every run whose trace is not among the files `beside`: no trace, but no run is passed over in silence."""
    there = {base_name(name) for name in beside}
    for document in parse_documents(source.data):
        if document.error is not None:
            yield rejected(source.file, document.error)
    for row in output_rows(source.data):
        if row.trace_file is None:
            reason = f"{row.name} left no trace file: {row_summary(row.fields)}"
            yield Rejected(
                file=source.file, place=row.place, reason=reason, remedy="nothing is to be read; GSR counts the run"
            )
        elif row.trace_file not in there:
            reason = f"the trace of {row.name} is not here ({row.trace_file}): {row_summary(row.fields)}"
            yield Rejected(
                file=source.file, place=row.place, reason=reason, remedy="give the folder that holds the traces too"
            )


def read_statistics(source: Source, output: Source | None) -> Iterator[Rejected]:
    """Statistics hold no trace; beside output.jsonl they only say how many runs there should be."""
    total = whole(mapping(mapping(mapping(parse_json(source.data)).get("statistics")).get("global")).get("total_runs"))
    if output is None:
        yield Rejected(
            file=source.file,
            place="",
            reason=f"statistics of {total} benchmark runs, not a trace",
            remedy="give the folder that holds the traces and output.jsonl",
        )
    elif total is not None and total != (found := len(output_rows(output.data))):
        yield Rejected(
            file=source.file,
            place="statistics.global.total_runs",
            reason=f"the statistics tell of {total} runs, {base_name(output.file)} of {found}",
            remedy="look for the missing runs, or benchmark into an empty folder",
        )


def base_name(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]


def _row(value: dict[str, Json], place: str, line: bytes) -> OutputRow:
    trace = word(value.get("trace_id"))
    metadata = mapping(value.get("metadata"))
    rest = {key: item for key, item in value.items() if key != "metadata"}
    return OutputRow(
        place=place,
        line=line,
        fields={**rest, **metadata},
        trace_file=None if trace is None else base_name(trace),
    )
