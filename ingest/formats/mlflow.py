"""MLflow: `trace.to_json()`, one trace, a list of them or one per line, the frame of `mlflow.search_traces()`, and
what its REST interface answers to `traces/get` (`trace_info` and spans as OTLP writes them).

Schema: `mlflow.entities.Trace.to_dict`, versions 2 (context), 3 (base64 ids) and 4 (hexadecimal ids). Assessments are
other people's opinions and may hold the right answer: they go to the logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import orjson

from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.formats.exports import as_text, opinion
from tracejury.ingest.formats.fields import Fields, plain_name
from tracejury.ingest.formats.otel import Intake, id_reader, one_trace, parent_or_none
from tracejury.ingest.formats.otlp import key_values
from tracejury.ingest.formats.rows import columns_of, opened, read_rows
from tracejury.ingest.formats.spans import kept, status_of
from tracejury.ingest.parse import clean, inner_json
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, Trace

NAME = "mlflow"

_FRAME = frozenset({
    "trace_id", "trace", "client_request_id", "state", "request_time", "execution_duration", "request", "response",
    "trace_metadata", "tags", "spans", "assessments", "request_id", "timestamp_ms", "status", "execution_time_ms",
    "request_metadata",
})  # fmt: skip
"""Columns of the frame, all of them parts of the trace that stands whole in one of them."""


def sniff(sample: FileSample) -> bool:
    """`info` and `data` of a trace, with MLflow's own names in them."""
    keys = sample.keys
    own = {"request_metadata", "trace_metadata", "execution_time_ms", "execution_duration", "execution_duration_ms"}
    if {"trace_info", "spans"} <= keys:
        return True
    if {"info", "data"} <= keys and (bool(own & keys) or any(key.startswith("mlflow.") for key in keys)):
        return True
    columns = keys | columns_of(sample)
    if {"spans", "request", "response", "mlflow.traceRequestId"} <= keys:
        return True
    return {"trace", "spans"} <= columns and bool({"trace_metadata", "request_metadata"} & columns)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the file."""
    rows = 0
    for row in read_rows(source.data, lists=("traces",)):
        rows += 1
        try:
            if row.error is not None:
                raise row.error
            yield _trace(_of_frame(row.values), row.place, source)
        except IngestError as error:
            yield rejected(source.file, error)
    if not rows:
        raise IngestError("holds no trace", remedy="use trace.to_json()")


def _of_frame(values: dict[str, Json]) -> dict[str, Json]:
    """A row of `search_traces()` as the trace it is: whole in its column `trace`, or else made of its other columns."""
    if "info" in values:
        return values
    answer = values.get("trace")
    answered = answer if isinstance(answer, dict) and "trace_info" in answer else values
    if isinstance(answered.get("trace_info"), dict):
        return {"info": answered["trace_info"], "data": {"spans": answered.get("spans")}}
    whole, spans = opened(values.get("trace")), opened(values.get("spans"))
    if isinstance(whole, dict) and "info" in whole:
        return {**whole, **{key: item for key, item in values.items() if key not in _FRAME}}
    if not isinstance(spans, list):
        return values
    info = {key: opened(item) for key, item in values.items() if key not in ("trace", "spans")}
    return {"info": info, "data": {"spans": [opened(item) for item in spans]}}


def _trace(values: dict[str, Json], place: str, source: Source) -> Trace:
    info, data = values.get("info"), values.get("data")
    data = inner_json(data) if isinstance(data, str) else data
    spans = data.get("spans") if isinstance(data, dict) else None
    if not isinstance(info, dict) or not isinstance(spans, list):
        raise IngestError("looks like mlflow but lacks info or data.spans", place=place, remedy="use trace.to_json()")
    intake = Intake()
    data_fields = Fields(data, "data", intake.warnings)
    for number, span in enumerate(data_fields.objects("spans", code="unreadable_span")):
        intake.spans.append(("", _span(span, number)))
    _name_in_hex([draft for _, draft in intake.spans])
    named = info.get("trace_id") or info.get("request_id") or _request_id(intake)
    trace_id = as_text(named) or "unnamed"
    attributes = {key: kept(item) for key, item in info.items() if key not in ("trace_id", "assessments")}
    if isinstance(data, dict):
        attributes.update({f"data.{key}": kept(item) for key, item in data.items() if key != "spans"})
    attributes.update({key: kept(item) for key, item in values.items() if key not in ("info", "data")})
    return one_trace(
        [draft for _, draft in intake.spans],
        _assessments(Fields(info, "info", intake.warnings).listed("assessments"), trace_id),
        trace_id=trace_id,
        format=NAME,
        source=source,
        warnings=intake.warnings,
        attributes=attributes,
    )


def _request_id(intake: Intake) -> Json:
    """The trace's id as its spans tell it: all that the artifact of a run, which has no `info`, says of it."""
    return next((own for _, draft in intake.spans if (own := draft.attributes.get("mlflow.traceRequestId"))), None)


def _span(fields: Fields, number: int) -> SpanDraft:
    context = fields.inner("context")
    span_id = fields.text("spanid") or context.text("spanid") or f"unnamed-{number + 1}"
    draft = SpanDraft(span_id=span_id, attributes=_attributes(fields.take("attributes")))
    fields.warnings = context.warnings = draft.warnings
    draft.parent_span_id = parent_or_none(fields.text("parentspanid", "parentid"))
    draft.name = fields.text("name") or ""
    for column in ("start_time", "end_time"):
        nanoseconds = fields.peek(plain_name(f"{column}_unix_nano"))
        setattr(draft, column, fields.time(plain_name(f"{column}_unix_nano"), plain_name(column)))
        if isinstance(nanoseconds, int) and nanoseconds > 10**17 and nanoseconds % 1000:
            draft.attributes[f"otel.{column}_unix_nano"] = nanoseconds
    status = fields.inner("status") if isinstance(fields.peek("status"), dict) else None
    code = status.take("code") if status is not None else fields.take("statuscode", "status")
    draft.status = status_of(draft, code, "status.code" if status is not None else "status_code")
    draft.status_message = (fields if status is None else status).text("statusmessage" if status is None else "message")
    draft.events = [_event(item) for item in fields.listed("events")]
    others = {**context.values, **fields.values}
    draft.attributes.update({f"otel.{key}": kept(item) for key, item in others.items() if item != ""})
    return draft


def _attributes(value: Json) -> dict[str, Json]:
    """MLflow's attributes, each read from its JSON text; one that is no JSON stays the text it is."""
    attributes: dict[str, Json] = {}
    for key, item in key_values(value).items():
        opened: Json = item
        if isinstance(item, str):
            try:
                opened = clean(cast("Json", orjson.loads(item)))[0]
            except orjson.JSONDecodeError:
                opened = item
        attributes[key] = kept(opened)
    return attributes


def _event(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        return {"name": None, "time": None, "attributes": {"value": kept(value)}}
    fields = Fields(value)
    event: dict[str, Json] = {"name": fields.take("name"), "time": fields.time("timeunixnano", "timestamp")}
    event["attributes"] = kept(cast("Json", key_values(fields.take("attributes"))))
    return {**event, **fields.rest()}


def _name_in_hex(drafts: list[SpanDraft]) -> None:
    read = id_reader([one for draft in drafts for one in (draft.span_id, draft.parent_span_id or "")], 8)
    for draft in drafts:
        if read(draft.span_id) != draft.span_id.lower().removeprefix("0x"):
            draft.attributes["otel.span_id"] = draft.span_id
        draft.span_id = read(draft.span_id)
        draft.parent_span_id = None if draft.parent_span_id is None else read(draft.parent_span_id)


def _assessments(items: Sequence[Json], trace_id: str) -> list[SpanLog]:
    return [
        opinion("assessment", trace_id, as_text(item.get("span_id")) if isinstance(item, dict) else None, item)
        for item in items
    ]
