"""Leaderboard rows and data-set rows: an hf file as JSON text inside a record, as JSON, JSON lines or Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.build import ExecutionFiles, execution_trace
from tracejury.ingest.formats.gaia2.execution_outcome import Evidence
from tracejury.ingest.formats.gaia2.export import read_export
from tracejury.ingest.formats.gaia2.values import name_part, text, whole, without_empty, word
from tracejury.ingest.formats.rows import read_rows as table_rows
from tracejury.ingest.parse import inner_json, parse_json
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, Trace

_OUTCOME_KEYS = frozenset({"status", "score", "rationale", "has_exception", "exception_type", "exception_message"})


def looks_like_row(value: Json) -> bool:
    return isinstance(value, dict) and "scenario_id" in value and ("data" in value or "status" in value)


def read_rows(source: Source) -> Iterator[Trace | Rejected]:
    """The trace of every row; one that cannot be read is rejected by its number."""
    for place, row, error in table_rows(source.data, lists=()):
        try:
            if error is not None:
                raise error
            if not looks_like_row(row):
                raise IngestError("not a GAIA2 row: it lacks scenario_id or data", remedy="leave it out")
            yield row_trace(row, source, place)
        except IngestError as failed:
            yield rejected(source.file, _placed(failed, place))


def row_trace(row: Mapping[str, Json], source: Source, place: str) -> Trace:
    """The trace of one row, its root alone for a row without data. Raises `IngestError` for one that never ran."""
    data = row.get("data")
    export = None if data is None else read_export(_json_of(data))
    trace_id = row_id(row, None if export is None else export.model)
    if export is None and row.get("status") is None:
        raise IngestError(f"row {trace_id} holds neither data nor a status", place="data", remedy="leave it out")
    execution = ExecutionFiles(
        trace_id=trace_id, hf=export, evidence=(row_evidence(row, "row"),), attributes=row_attributes(row)
    )
    return execution_trace(execution, replace(source, place=place))


def _json_of(data: Json) -> Json:
    return parse_json(data.encode("utf-8", "surrogatepass")) if isinstance(data, str) else data


def row_id(row: Mapping[str, Json], model: str | None = None) -> str:
    """A row's trace id: scenario, config, phase, model and execution number, as far as it names them."""
    run_number = whole(row.get("run_number"))
    parts = [row.get("scenario_id"), row.get("config"), row.get("phase_name"), _model_part(row, model)]
    named = [part for part in parts if isinstance(part, str) and part and part != "standard"]
    return "_".join([*(named or ["scenario"]), *([] if run_number is None else [f"run_{run_number}"])])


def _model_part(row: Mapping[str, Json], model: str | None) -> str | None:
    config = object_in(inner_json(text(row.get("run_config")) or ""))
    return name_part(word(config.get("model")) or model)


def row_evidence(row: Mapping[str, Json], source: str) -> Evidence:
    """What a row or an `output.jsonl` line says of an execution's outcome; keys that are None are left out there."""
    raised = row.get("has_exception")
    return Evidence(
        source=source,
        rationale=text(row.get("rationale")),
        says_rationale=True,
        row_status=word(row.get("status")),
        has_exception=raised if isinstance(raised, bool) else None,
        exception_type=text(row.get("exception_type")),
        exception_message=text(row.get("exception_message")),
    )


def row_attributes(row: Mapping[str, Json]) -> dict[str, Json]:
    """What of a row is neither trace nor outcome; `score` is ARE's own, which is 0 also where its judge raised."""
    rest: dict[str, Json] = {key: value for key, value in row.items() if key not in _OUTCOME_KEYS | {"data"}}
    config = inner_json(text(row.get("run_config")) or "")
    if config is not None:
        rest["run_config"] = config
    attributes = without_empty({"row": without_empty(rest), "are_score": row.get("score")})
    capability = word(row.get("config"))
    return attributes | ({"capability": capability.lower()} if capability else {})


def _placed(error: IngestError, place: str) -> IngestError:
    where = ", ".join(part for part in (place, error.place if error.place != place else "") if part)
    return IngestError(error.reason, place=where, remedy=error.remedy)
