"""Phoenix (Arize): its spans dataframe as parquet, CSV or JSON lines, and the spans of its REST interface.

Columns: `phoenix.client` `get_spans_dataframe` (`context.span_id`, `attributes.llm.input_messages`, ...); the REST
form nests `context` and flattens `attributes`. Names of attributes are OpenInference's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.otel import Intake, read_collected
from tracejury.ingest.formats.rows import Row, columns_of, opened, take_rows, time_of
from tracejury.ingest.formats.spans import kept, status_of, time_of_field
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import SPAN_KINDS, IngestError, Json, Rejected, Source, SpanDraft, Trace

NAME = "phoenix"

_COLUMNS = frozenset({
    "name", "span_kind", "parent_id", "start_time", "end_time", "status_code", "status_message", "events", "id",
    "context.span_id", "context.trace_id", "context", "attributes",
})  # fmt: skip


def sniff(sample: FileSample) -> bool:
    """`context.span_id` among the columns, or spans with `span_kind` and `parent_id`."""
    if sample.start[:1] in (b"{", b"["):
        keys = sample.keys
        own_id = "context.span_id" in keys or ("context" in keys and "span_id" in keys)
        return own_id and "span_kind" in keys and "parent_id" in keys
    return {"context.span_id", "context.trace_id"} <= columns_of(sample)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the table."""
    yield from read_collected(source, _collect, format=NAME)


def _collect(source: Source, intake: Intake) -> Generator[Rejected, None, int]:
    return (yield from take_rows(source, lambda row: intake.spans.append(_span(row))))


def _span(row: Row) -> tuple[str, SpanDraft]:
    values = row.values
    context = opened(values.get("context"))
    context = context if isinstance(context, dict) else {}
    span_id = as_text(values.get("context.span_id", context.get("span_id")))
    trace_id = as_text(values.get("context.trace_id", context.get("trace_id")))
    if span_id is None:
        raise IngestError("a span without context.span_id", place=row.place, remedy="export the whole dataframe")
    draft = SpanDraft(span_id=span_id, attributes=_attributes(values))
    draft.parent_span_id = as_text(values.get("parent_id"))
    draft.name = as_text(values.get("name")) or ""
    kind = values.get("span_kind")
    if isinstance(kind, str) and kind.upper() in SPAN_KINDS:
        draft.attributes.setdefault("openinference.span.kind", kind.upper())
    elif kind is not None:
        draft.attributes["span_kind"] = kept(kind)
    draft.start_time = time_of_field(draft, values, "start_time")
    draft.end_time = time_of_field(draft, values, "end_time")
    draft.status = status_of(draft, values.get("status_code"), "status_code")
    draft.status_message = as_text(values.get("status_message")) or None
    draft.events = _events(opened(values.get("events")))
    if "id" in values and values["id"] != span_id:
        draft.attributes["id"] = kept(values["id"])
    return trace_id or "unnamed", draft


def _attributes(values: dict[str, Json]) -> dict[str, Json]:
    attributes: dict[str, Json] = {}
    nested = opened(values.get("attributes"))
    for key, value in (nested if isinstance(nested, dict) else {}).items():
        _put(attributes, key, value)
    if nested is not None and not isinstance(nested, dict):
        attributes["attributes"] = kept(nested)
    for key, value in values.items():
        if key.startswith("attributes."):
            _put(attributes, key.removeprefix("attributes."), _opened_if_known(key, value))
        elif key not in _COLUMNS:
            attributes[key] = kept(value)
    return attributes


def _opened_if_known(key: str, value: Json) -> Json:
    """Lists that Phoenix unflattens are opened where a CSV made text of them; texts that look like JSON stay text."""
    return opened(value) if key.endswith(("_messages", ".tools", ".documents", ".embeddings")) else value


_NESTED = frozenset({
    "llm", "input", "output", "openinference", "tool", "tool_call", "retrieval", "embedding", "reranker", "session",
    "user", "tag", "document", "span", "token_count", "prompt_details", "completion_details", "prompt_template",
    "agent", "cost", "llm.token_count", "openinference.span",
})  # fmt: skip


def _put(attributes: dict[str, Json], key: str, value: Json) -> None:
    """An attribute under its dotted name; Phoenix nests the families of OpenInference, other objects stay objects."""
    stack: list[tuple[str, Json]] = [(key, value)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, dict) and node and (path.rsplit(".", 1)[-1] in _NESTED or path in _NESTED):
            stack.extend((f"{path}.{name}", item) for name, item in node.items())
        elif node is not None:
            attributes[path] = kept(node)


def _events(value: Json) -> list[dict[str, Json]]:
    events: list[dict[str, Json]] = []
    for item in value if isinstance(value, list) else [] if value is None else [value]:
        if not isinstance(item, dict):
            events.append({"name": None, "time": None, "attributes": {"value": kept(item)}})
            continue
        moment = time_of(item.get("timestamp"))
        event: dict[str, Json] = {"name": item.get("name"), "time": moment}
        event["attributes"] = kept(item.get("attributes") or {})
        for key, one in item.items():
            if key not in ("name", "attributes") and not (key == "timestamp" and moment is not None):
                event[key] = kept(one)
        events.append(event)
    return events
