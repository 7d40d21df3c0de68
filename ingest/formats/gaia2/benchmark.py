"""What are-benchmark writes beside its traces: a line an execution (`output.jsonl`) and statistics of them all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.build import ExecutionFiles, execution_trace
from tracejury.ingest.formats.gaia2.parts import packed
from tracejury.ingest.formats.gaia2.row import row_attributes, row_evidence
from tracejury.ingest.formats.gaia2.values import text, whole, word
from tracejury.ingest.parse import json_text, parse_documents, parse_json
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, Trace

OUTPUT = "output.jsonl"
STATISTICS = "benchmark_stats.json"
AROUND = "around.json"
"""The member of a kept source that tells, from the benchmark's other executions, of one without a trace."""
AROUND_KEY = "gaia2_around"
_CONFIG_HASH = re.compile(r"_([0-9a-f]{8})\.json$")


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputRow:
    """One line of output.jsonl. `trace_file` is the base name of the execution's trace, None when it left none."""

    place: str
    line: bytes
    fields: Mapping[str, Json]
    trace_file: str | None

    @property
    def name(self) -> str:
        number = whole(self.fields.get("run_number"))
        scenario = text(self.fields.get("scenario_id") or self.fields.get("task_id")) or "scenario"
        return scenario if number is None else f"{scenario} (execution {number})"

    def trace_id(self, config_hash: str | None) -> str:
        """The trace id of the execution: that of its trace file, else the name that ARE would have given the file."""
        if named := word(self.fields.get("execution_id")):
            return named
        if self.trace_file is not None:
            return self.trace_file.removesuffix(".json")
        number = whole(self.fields.get("run_number"))
        scenario = text(self.fields.get("scenario_id") or self.fields.get("task_id")) or "scenario"
        return "_".join(
            [scenario, *([] if number is None else [f"run_{number}"]), *([config_hash] if config_hash else [])]
        )


def looks_like_output(value: Json) -> bool:
    return isinstance(value, dict) and {"task_id", "trace_id", "score", "metadata"} <= value.keys()


def looks_like_statistics(value: Json) -> bool:
    return isinstance(value, dict) and "statistics" in value and "per_capability" in object_in(value["statistics"])


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
            rows.append(_row(object_in(value), f"line {number}", line))
    return tuple(rows)


def row_of(data: bytes, file: str) -> OutputRow | None:
    """The line that tells of the execution whose trace file is `file`."""
    return next((row for row in output_rows(data) if row.trace_file == base_name(file)), None)


def read_output(source: Source, beside: Sequence[str], around: Mapping[str, Json]) -> Iterator[Trace | Rejected]:
    """Every execution whose trace is not among the files `beside`, as a trace of its root alone: none is passed over.

    `around` is what the other executions of the benchmark say that these share.
    """
    there = {base_name(name) for name in beside}
    for document in parse_documents(source.data):
        if document.error is not None:
            yield rejected(source.file, document.error)
    rows = output_rows(source.data)
    hashes = [named[1] for row in rows if row.trace_file and (named := _CONFIG_HASH.search(row.trace_file))]
    shared = {**around, **({"config_hash": hashes[0]} if hashes else {})}
    for row in rows:
        if row.trace_file is None or row.trace_file not in there:
            yield _execution_without_trace(row, source, shared)


def _execution_without_trace(row: OutputRow, source: Source, around: Mapping[str, Json]) -> Trace:
    execution = ExecutionFiles(
        trace_id=row.trace_id(word(around.get("config_hash"))),
        evidence=(row_evidence(row.fields, "output.jsonl"),),
        attributes=row_attributes(row.fields),
        around=dict(around),
    )
    parts = [(OUTPUT, row.line + b"\n"), *([(AROUND, around_bytes(around))] if around else [])]
    # Named as its trace file would be: a file called output.jsonl is read as the lines of a benchmark.
    home = source.file[: -len(base_name(source.file))]
    trace = execution_trace(
        execution, Source(file=f"{home}{execution.trace_id}.json", place=f"{OUTPUT} {row.place}", data=packed(parts))
    )
    if row.trace_file is None:
        return trace
    evidence = f"no_trace: its trace file {row.trace_file} was not given; add it (status and score count without it)"
    return replace(trace, warnings=(*(one for one in trace.warnings if not one.startswith("no_trace:")), evidence))


def around_bytes(around: Mapping[str, Json]) -> bytes:
    """What a kept source says of the benchmark around an execution, with the key by which it is recognised."""
    return json_text({**around, AROUND_KEY: 1}).encode()


def read_statistics(source: Source, outputs: Sequence[Source]) -> Iterator[Rejected]:
    """Statistics hold no trace; with the `output.jsonl` of the executions they only say how many there should be."""
    total = whole(
        object_in(object_in(object_in(parse_json(source.data)).get("statistics")).get("global")).get("total_runs")
    )
    rows = sum(len(output_rows(output.data)) for output in outputs)
    if not outputs:
        yield Rejected(
            file=source.file,
            place="",
            reason=f"statistics of {total} benchmark executions, not a trace",
            remedy="give the folder that holds the traces and output.jsonl",
        )
    elif total is not None and total != rows:
        yield Rejected(
            file=source.file,
            place="statistics.global.total_runs",
            reason=f"the statistics count {total} executions, but {' and '.join(_names(source, outputs))} {rows}",
            remedy="add the missing executions, or run the benchmark into an empty folder",
        )


def _names(statistics: Source, outputs: Sequence[Source]) -> list[str]:
    """The outputs as they lie below the statistics."""
    home = statistics.file[: -len(base_name(statistics.file))]
    return [output.file.removeprefix(home) for output in outputs]


def statistics_setting(data: bytes) -> dict[str, Json]:
    """The agent's model, which the statistics name for all executions of the benchmark."""
    model = word(object_in(object_in(parse_json(data)).get("metadata")).get("model"))
    return {} if model is None else {"agent_model": model}


def base_name(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]


def _row(value: dict[str, Json], place: str, line: bytes) -> OutputRow:
    trace = word(value.get("trace_id"))
    metadata = object_in(value.get("metadata"))
    rest = {key: item for key, item in value.items() if key != "metadata"}
    return OutputRow(
        place=place,
        line=line,
        fields={**rest, **metadata},
        trace_file=None if trace is None else base_name(trace),
    )
