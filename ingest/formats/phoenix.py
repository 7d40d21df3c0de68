"""Phoenix (Arize): its spans dataframe as parquet, CSV or JSON lines, and the spans of its REST interface.

Columns: `phoenix.client` `get_spans_dataframe` (`context.span_id`, `attributes.llm.input_messages`, ...); the REST
form nests `context` and flattens `attributes`. Names of attributes are OpenInference's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.otel import Intake, read_collected
from tracejury.ingest.formats.rows import Row, columns_of, opened, take_rows
from tracejury.ingest.formats.spans import kept, status_of
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
    fields = Fields(row.values)
    context = fields.inner("context")
    span_id = fields.text("contextspanid") or context.text("spanid")
    trace_id = fields.text("contexttraceid") or context.text("traceid")
    if span_id is None:
        raise IngestError("a span without context.span_id", place=row.place, remedy="export the whole dataframe")
    draft = SpanDraft(span_id=span_id, attributes=_attributes(row.values), warnings=fields.warnings)
    draft.parent_span_id = fields.text("parentid")
    draft.name = fields.text("name") or ""
    kind = fields.take("spankind")
    if isinstance(kind, str) and kind.upper() in SPAN_KINDS:
        draft.attributes.setdefault("openinference.span.kind", kind.upper())
    elif kind is not None:
        draft.attributes["span_kind"] = kept(kind)
    draft.start_time, draft.end_time = fields.time("starttime"), fields.time("endtime")
    draft.status = status_of(draft, fields.take("statuscode"), "status_code")
    draft.status_message = fields.text("statusmessage")
    draft.events = [_event(item) for item in fields.listed("events")]
    if fields.peek("id") == span_id:
        fields.drop("id")
    left = {key: item for key, item in fields.rest().items() if key in _COLUMNS and key != "attributes"}
    draft.attributes.update(left)
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


def _event(item: Json) -> dict[str, Json]:
    if not isinstance(item, dict):
        return {"name": None, "time": None, "attributes": {"value": kept(item)}}
    fields = Fields(item)
    event: dict[str, Json] = {"name": fields.take("name"), "time": fields.time("timestamp")}
    event["attributes"] = kept(fields.take("attributes") or {})
    return {**event, **{key: kept(one) for key, one in fields.values.items()}}
