"""TRAIL (Patronus): spans nested in one JSON document per trace, and the hub's parquet form of the same.

The format as measured on the real files is described in the README's map of formats; every attribute value is
text, durations are ISO 8601, event keys are capitalised, and `logs` hold the right answers.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, cast

from tracejury.ingest import times
from tracejury.ingest.conventions import translate
from tracejury.ingest.formats.spans import brief, kept, kept_dict, note_spans, status_of
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.parse import Document, parse_document, parse_documents
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Json, LogRecord, Rejected, Source, SpanDraft, Trace
from tracejury.ingest.tree import assemble

NAME = "trail"

_SPAN_KEYS = frozenset({
    "timestamp", "trace_id", "span_id", "parent_span_id", "trace_state", "span_name", "span_kind", "service_name",
    "resource_attributes", "scope_name", "scope_version", "span_attributes", "duration", "status_code",
    "status_message", "events", "links", "logs", "child_spans",
})  # fmt: skip
_MARKS = frozenset({"span_attributes", "child_spans", "span_name"})
_SPAN_MARKS = _MARKS | {"span_id"}


class _Node(NamedTuple):
    """A span of the document with the id of the span it is nested in."""

    place: str
    value: Json
    parent: str | None
    nested: bool


def sniff(sample: FileSample) -> bool:
    """A `spans` list of objects with TRAIL's own names, or a parquet file with a `trace` column."""
    if sample.start.startswith(b"PAR1"):
        return sample.whole and b"trace" in sample.data and b"labels" in sample.data and _has_columns(sample.data)
    keys = sample.keys
    if "spans" not in keys:
        return bool(keys >= _MARKS and "span_id" in keys)
    if {"start_time", "end_time"} <= keys and "child_spans" not in keys:
        return False  # AgentOps
    return bool(_MARKS & keys) or (sample.whole and keys <= {"trace_id", "spans"})


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of a file: one document, a list of them, one a line, or one a row of parquet."""
    documents = _parquet(source.data) if source.data.startswith(b"PAR1") else parse_documents(source.data)
    is_damaged = False
    for document in documents:
        if document.error is not None:
            is_damaged = True
            yield rejected(source.file, document.error)
        elif is_damaged and not _is_whole(document.value):
            yield rejected(source.file, _part_of_damaged(document.place))
        else:
            yield from _read_document(document, source)


def _is_whole(value: Json) -> bool:
    """Whether a document holds traces: beside a damaged one, spans by themselves may be a part of that."""
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, dict) and "spans" in item for item in items)


def _part_of_damaged(place: str) -> IngestError:
    return IngestError("spans that may belong to a damaged trace of this file", place=place, remedy="export it again")


def _read_document(document: Document, source: Source) -> Iterator[Trace | Rejected]:
    value = document.value
    several = value if isinstance(value, list) and not _is_span_list(value) else [value]
    for number, item in enumerate(several):
        place = document.place if len(several) == 1 else f"{document.place}[{number}]"
        try:
            yield from _traces(item, replace(source, place=place), document.warnings)
        except IngestError as error:
            yield Rejected(file=source.file, place=error.place or place, reason=error.reason, remedy=error.remedy)


def _is_span_list(value: list[Json]) -> bool:
    return bool(value) and _is_span(value[0])


def _is_span(value: Json) -> bool:
    """Whether this is a span by itself; a log record names a span too, and has none of a span's own keys."""
    return isinstance(value, dict) and "span_id" in value and "spans" not in value and bool(_MARKS & value.keys())


def _traces(document: Json, source: Source, warnings: tuple[str, ...]) -> Iterator[Trace]:
    spans, trace_id, others = _opened(document, source.place)
    drafts, logs, found_warnings = _drafts(spans)
    found_warnings += _differing_ids(drafts, trace_id)
    groups = _by_trace(drafts, trace_id)
    for own_id, group in groups.items():
        table = MessageTable()
        translate(group, table)
        ids = {draft.span_id for draft in group}
        yield assemble(
            group,
            trace_id=own_id,
            format=NAME,
            source=source,
            messages=table,
            attributes=others,
            logs=[log for log in logs if log.span_id in ids or len(groups) == 1],
            warnings=[*warnings, *found_warnings],
        )


def _opened(document: Json, place: str) -> tuple[list[Json], str | None, dict[str, Json]]:
    """The span list, the trace id and every other key of a document."""
    if isinstance(document, list):
        return document, None, {}
    if not isinstance(document, dict):
        raise IngestError(
            f"looks like {NAME} but the document is {type(document).__name__}, not an object",
            place=place,
            remedy="a TRAIL file is one object with trace_id and spans",
        )
    if _is_span(document):
        return [document], None, {}
    spans = document.get("spans")
    if not isinstance(spans, list):
        raise IngestError(
            f"looks like {NAME} but 'spans' is {type(spans).__name__}, not a list",
            place=place,
            remedy="export the trace again",
        )
    others = {key: kept(value) for key, value in document.items() if key not in ("spans", "trace_id")}
    trace_id = document.get("trace_id")
    if trace_id is not None and not isinstance(trace_id, str):
        others["trace_id"] = kept(trace_id)
    return spans, trace_id if isinstance(trace_id, str) and trace_id else None, others


_Drafts = tuple[list[tuple[SpanDraft, str | None]], list[LogRecord], list[str]]


def _drafts(spans: list[Json]) -> _Drafts:
    """Each span in the order of the document, with the trace id it names; nesting is walked without recursion."""
    drafts: list[tuple[SpanDraft, str | None]] = []
    logs: list[LogRecord] = []
    warnings: list[str] = []
    shared: dict[tuple[str, ...], dict[str, Json]] = {}
    stack = [_Node(f"spans[{number}]", value, None, False) for number, value in reversed(list(enumerate(spans)))]
    unread = 0
    while stack:
        node = stack.pop()
        if not isinstance(node.value, dict):
            unread += 1
            warnings.append(f"unreadable_span: {node.place} is {brief(node.value)}, not an object")
            continue
        draft, trace_id = _draft(node, node.value, len(drafts), shared)
        drafts.append((draft, trace_id))
        _take_logs(draft, node.value, logs)
        below = node.value.get("child_spans")
        if isinstance(below, list):
            stack.extend(
                _Node(f"child_spans[{number}] of {draft.span_id}", child, draft.span_id, True)
                for number, child in reversed(list(enumerate(below)))
            )
        elif below is not None:
            draft.attributes["child_spans"] = kept(below)
            draft.warnings.append(f"retyped: child_spans is {type(below).__name__}, not a list; kept as an attribute")
            note_spans(below, _SPAN_MARKS, "child_spans", draft.warnings)
    return drafts, logs, warnings


def _draft(
    node: _Node, value: dict[str, Json], number: int, shared: dict[tuple[str, ...], dict[str, Json]]
) -> tuple[SpanDraft, str | None]:
    raw = value.get("span_attributes")
    attributes: dict[str, Json] = {}
    if isinstance(raw, dict):
        attributes = kept_dict(raw)
    draft = SpanDraft(span_id="", attributes=attributes)
    if raw is not None and not isinstance(raw, dict):
        _retyped(draft, "span_attributes", raw)
    draft.span_id = _text(draft, value, "span_id") or f"unnamed-{number + 1}"
    if draft.span_id.startswith("unnamed-") and not value.get("span_id"):
        draft.warnings.append(f"no_span_id: the source gives {node.place} none; called {draft.span_id}")
    draft.parent_span_id = _text(draft, value, "parent_span_id") or None
    _check_nesting(draft, node)
    draft.name = _text(draft, value, "span_name") or ""
    _times(draft, value)
    draft.status = status_of(draft, value.get("status_code"), "status_code")
    draft.status_message = _text(draft, value, "status_message") or None
    _otel(draft, value, shared)
    draft.events = _events(draft, value.get("events"))
    links = value.get("links")
    if isinstance(links, list):
        draft.links = [kept(link) if isinstance(link, dict) else {"value": kept(link)} for link in links]  # type: ignore[misc]
    elif links is not None:
        _retyped(draft, "links", links)
    if len(value) > len(_SPAN_KEYS) or value.keys() - _SPAN_KEYS:
        for key in value.keys() - _SPAN_KEYS:
            draft.attributes.setdefault(key if key not in draft.attributes else f"span.{key}", kept(value[key]))
            note_spans(value[key], _SPAN_MARKS, key, draft.warnings)
    return draft, _text(draft, value, "trace_id") or None


def _retyped(draft: SpanDraft, key: str, value: Json) -> None:
    draft.attributes.setdefault(key, kept(value))
    draft.warnings.append(f"retyped: {key} is {type(value).__name__}; kept as an attribute")


def _text(draft: SpanDraft, value: dict[str, Json], key: str) -> str | None:
    """A text field; a number becomes its text, anything else is kept as an attribute with a warning."""
    item = value.get(key)
    if item is None or isinstance(item, str):
        return item
    if isinstance(item, (int, float)) and not isinstance(item, bool):
        draft.warnings.append(f"retyped: {key} is a number, read as text")
        return str(item)
    _retyped(draft, key, item)
    return None


def _check_nesting(draft: SpanDraft, node: _Node) -> None:
    if not node.nested or draft.parent_span_id == node.parent:
        return
    if draft.parent_span_id is None:
        draft.parent_span_id = node.parent
        draft.warnings.append(f"parent_by_nesting: no parent_span_id, but nested in {node.parent}")
    else:
        draft.warnings.append(f"parent_differs: nested in {node.parent}, but names {draft.parent_span_id}")


def _times(draft: SpanDraft, value: dict[str, Json]) -> None:
    stamp, length = value.get("timestamp"), value.get("duration")
    draft.start_time = times.from_iso(stamp)
    if draft.start_time is None and stamp is not None:
        draft.attributes.setdefault("timestamp", kept(stamp))
        draft.warnings.append(f"unreadable_time: timestamp is {brief(stamp)}; the start is left empty")
    took = times.iso_duration(length)
    if took is None and length is not None:
        draft.attributes.setdefault("duration", kept(length))
        draft.warnings.append(f"unreadable_time: duration is {brief(length)}; the end is left empty")
    elif took is not None and draft.start_time is not None:
        draft.end_time = draft.start_time + took
    elif took is not None:
        draft.attributes.setdefault("duration", cast("str", length))


def _otel(draft: SpanDraft, value: dict[str, Json], shared: dict[tuple[str, ...], dict[str, Json]]) -> None:
    """OpenTelemetry's own fields, under the names that every OpenTelemetry format gets; equal ones shared."""
    attributes = draft.attributes
    for key, name in (("span_kind", "otel.kind"), ("trace_state", "otel.trace_state")):
        item = value.get(key)
        if item is not None and item != "":
            attributes[name] = item if isinstance(item, str) else kept(item)
    scope = {key: value.get(f"scope_{key}") for key in ("name", "version")}
    if scope["name"] or scope["version"]:
        text = (str(scope["name"]), str(scope["version"]))
        attributes["otel.scope"] = shared.setdefault(
            text, {key: item if isinstance(item, str) else kept(item) for key, item in scope.items() if item}
        )
    resource = value.get("resource_attributes")
    if resource:
        attributes["otel.resource"] = kept(resource)
    service = value.get("service_name")
    if service and not (isinstance(resource, dict) and resource.get("service.name") == service):
        attributes["service_name"] = kept(service)


def _events(draft: SpanDraft, value: Json) -> list[dict[str, Json]]:
    """Events with lower-case names and times in microseconds; their keys are capitalised in TRAIL and only there."""
    if value is None:
        return []
    if not isinstance(value, list):
        _retyped(draft, "events", value)
        return []
    return [_event(item) for item in value]


def _event(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        return {"name": None, "time": None, "attributes": {"value": kept(value)}}
    event: dict[str, Json] = {"name": None, "time": None, "attributes": {}}
    for key, item in value.items():
        low = key.lower()
        if low == "timestamp" and (moment := times.from_iso(item)) is not None:
            event["time"] = moment
        elif low in ("name", "attributes"):
            event[low] = kept(item)
        else:
            event[key] = kept(item)
    return event


def _take_logs(draft: SpanDraft, value: dict[str, Json], logs: list[LogRecord]) -> None:
    records = value.get("logs")
    if not isinstance(records, list):
        if records is not None:
            _retyped(draft, "logs", records)
        return
    logs.extend(LogRecord(span_id=draft.span_id, body=kept(record), holds_answer=True) for record in records)


def _differing_ids(drafts: list[tuple[SpanDraft, str | None]], trace_id: str | None) -> list[str]:
    others = sorted({own for _, own in drafts if own is not None and own != trace_id})
    if trace_id is None or not others:
        return []
    return [f"trace_id_differs: the file says {trace_id}, its spans say {', '.join(others[:3])}"]


def _by_trace(drafts: list[tuple[SpanDraft, str | None]], trace_id: str | None) -> dict[str, list[SpanDraft]]:
    """The spans by the trace they name; those that name none belong to the file's trace."""
    named = {own for _, own in drafts if own is not None}
    default = trace_id or (min(named) if len(named) == 1 else "unnamed")
    if len(named) <= 1:
        return {default: [draft for draft, _ in drafts]}
    groups: dict[str, list[SpanDraft]] = {}
    for draft, own in drafts:
        groups.setdefault(own or default, []).append(draft)
    return groups


def _has_columns(data: bytes) -> bool:
    import pyarrow.parquet as pq  # pyarrow takes a second to import and few files are parquet

    try:
        return {"trace", "labels"} <= set(pq.read_schema(io.BytesIO(data)).names)
    except (OSError, ValueError):
        return False


def _parquet(data: bytes) -> Iterator[Document]:
    import pyarrow.parquet as pq

    try:
        column = pq.ParquetFile(io.BytesIO(data)).iter_batches(batch_size=1, columns=["trace"])
        for number, batch in enumerate(column):
            text = batch.column(0)[0].as_py()
            place = f"row {number}"
            try:
                yield parse_document(text.encode() if isinstance(text, str) else text or b"", place)
            except IngestError as error:
                yield Document(place=place, error=error)
    except (OSError, ValueError) as error:
        raise IngestError(f"damaged parquet file: {error}", remedy="download it again") from error
