"""Spans in the answers and documents of vendors, as rows under the names that the span table knows.

Datadog, New Relic, Honeycomb, Sentry, X-Ray, Cloud Trace, Application Insights, Elastic, OpenSearch, Splunk, Grafana,
SigNoz, OpenObserve, Braintrust, Laminar, AgentOps, Galileo, Keywords AI, Lightstep, Lunary. No vendor is asked for by
name: a span is an object with a trace id (its own, or that of what holds it), an id, a name and a time, whatever it is
wrapped in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from tracejury.ingest.conventions.flat_names import dotted
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import plain_name
from tracejury.ingest.formats.otlp import key_values
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.trace import Json

Row = dict[str, Json]

_TRACE = ("traceid", "contexttraceid", "tracetraceid", "operationid", "rootspanid", "traceuniqueid", "traceguid")
_SPAN = ("spanid", "contextspanid", "tracespanid", "spanuniqueid", "spanguid")
_PARENT = (
    "parentspanid", "parentid", "parentrunid", "parentspanguid",
    "referenceparentspanid", "traceparentid", "operationparentid", "spanparentid",
    "parentspan", "spanparents", "parent",
)  # fmt: skip
_NAME = ("spanname", "name", "operationname", "displayname", "transactionname", "description", "transaction", "op")
_START = (
    "starttimeunixnano", "startunixnano", "startnano", "startns", "starttimestamp", "starttime", "start", "timestampus",
    "starttimemicros", "startmicros",
    "startedat", "timestamp", "timegenerated", "time", "createdat", "created",
)  # fmt: skip
_END = (
    "endtimeunixnano",
    "endunixnano",
    "endnano",
    "endtimestamp",
    "endtime",
    "end",
    "endedat",
    "endtimemicros",
    "endmicros",
)
_LENGTHS = (
    (("durationnano", "durationnanos", "durationns", "durationinnanos", "spandurationns"), 0.001),
    (("durationus", "spandurationus", "transactiondurationus"), 1.0),
    (("durationms", "durationmillis"), 1000.0),
)
"""Names of a span's length, and the microseconds of its unit."""
_OF_SPANS = frozenset({*_PARENT, *_END, "starttimestamp", "duration", *(name for some, _ in _LENGTHS for name in some)})
"""What a span tells and a line of a program's log that names its span does not: a parent, an end, a length."""
CHILDREN = ("spans", "subsegments", "children", "childspans")
_ATTRIBUTES = (
    "attributes", "spanattributes", "attributesstring", "attributesnumber", "attributesbool", "data", "labels",
    "numericlabels", "customdimensions", "properties", "annotations", "metadata", "meta", "tags",
)  # fmt: skip
_FLATTENED = frozenset({"labels", "numericlabels", "annotations"})
"""Where Elastic and X-Ray keep attributes whose names lost their dots."""
_HOLDER = re.compile(r"(?:span\.)?(?:attributes|labels|numeric_labels|customDimensions|properties)\.")
"""How a column of a flattened record names what held the attribute."""
_QUOTED = frozenset({"Document", "_raw", "message", "@message"})
_INNER = ("_source", "attributes", "data", "result", "event", "body", "fields", "_raw", "Document", "message")
"""Where a span stands within the record of it."""
_NESTED_IDS = ("trace", "span", "parent", "transaction", "timestamp", "processor")
_HOISTED = (
    ("span_attributes", ("name", "type")), ("metrics", ("start", "end")),
    ("metrics", ("duration_ns",)),
    ("meta", ("input", "output", "span.kind", "kind", "model_name", "model_provider", "error")),
)  # fmt: skip
"""Where Braintrust keeps the name and the times of a span, and Datadog what went in and came out."""
_RESOURCE_NAME = re.compile(r"projects/[^/]+/traces/(?P<trace>[^/]+)/spans/(?P<span>[^/]+)")
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m)")
_UNITS = {"ns": 0.001, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6, "m": 6e7}
"""Microseconds of the units in which a length may be written (Axiom's `1.5s`)."""
_NO_PARENT = frozenset({"", "undefined", "null", "None"})
_MOST_LEVELS = 12


class _Above(NamedTuple):
    """What the objects around one tell of it: the trace, the span that holds it, the key that it stands under."""

    trace_id: str | None = None
    parent: str | None = None
    key: str = ""
    is_tied: bool = False
    """Whether an object beside it names a parent: then an id alone is that of a span."""


def vendor_rows(value: Json) -> Iterator[Row]:
    """Each span of a document as a row; none where it holds no span in these forms."""
    yield from _walk(value, _Above(), 0)


def _walk(value: Json, above: _Above, level: int) -> Iterator[Row]:
    if isinstance(value, str) and above.key in _QUOTED:
        value = opened(value)
    if level > _MOST_LEVELS:
        return
    if isinstance(value, list):
        yield from _walk_list(value, above, level)
    elif isinstance(value, dict):
        if (table := rows_of_table(value)) is not None:
            yield from _walk(cast("Json", table), above, level + 1)
            return
        row = _opened_row(value)
        span = _identity(row, above)
        if span is not None:
            yield from _span_and_children(row, span, above, level)
        else:
            inside = above._replace(trace_id=_trace_of(value, above))
            for key, item in value.items():
                yield from _walk(item, inside._replace(key=key), level + 1)


def _walk_list(value: list[Json], above: _Above, level: int) -> Iterator[Row]:
    """The rows of all items; beside spans an item that holds none is a row too, so that it is named."""
    tied = above._replace(is_tied=any(isinstance(item, dict) and _has(item, _PARENT) for item in value))
    are_spans = any(isinstance(item, dict) and _identity(_opened_row(item), tied) is not None for item in value)
    for item in value:
        is_empty = True
        for row in _walk(item, tied, level + 1):
            is_empty = False
            yield row
        if is_empty and are_spans:
            yield item if isinstance(item, dict) else {"value": item}


def rows_of_table(value: Mapping[str, Json]) -> list[Json] | None:
    """The rows of a table that names its columns and lists its cells (Azure, ClickHouse, Grafana, SigNoz), or None."""
    schema, data = value.get("schema"), value.get("data")
    holder = schema if isinstance(schema, dict) else value
    columns = next((items for key in ("columns", "meta", "fields") if isinstance(items := holder.get(key), list)), None)
    names = [as_text(one.get("name")) if isinstance(one, dict) else as_text(one) for one in columns or ()]
    if not names or any(name is None for name in names):
        return None
    if isinstance(data, dict) and isinstance(lists := data.get("values"), list):
        cells = [one for one in lists if isinstance(one, list)]
        rows: Sequence[Json] = [list(row) for row in zip(*cells, strict=False)] if len(cells) == len(names) else []
    else:
        listed = next((items for key in ("rows", "data", "events") if isinstance(items := value.get(key), list)), [])
        rows = listed if all(isinstance(row, list) and len(row) == len(names) for row in listed) else []
    table = [dict(zip(names, row, strict=True)) for row in rows if isinstance(row, list)]
    return cast("list[Json]", table) or None


def _opened_row(value: Row) -> Row:
    """A record with the fields of the span that stands within it, and nested ids as `trace.id`."""
    return _with_flat_ids(_hoisted(_with_inner(value)))


def _with_inner(value: Row) -> Row:
    """A record with the fields of the span that one of its objects, or the JSON in one of its texts, is."""
    for key in () if _has(value, _SPAN) else _INNER:
        inner = opened(value.get(key))
        if key == "fields" and isinstance(inner, dict):  # Elastic lists the values of each field
            inner = {name: item[0] if isinstance(item, list) and item else item for name, item in inner.items()}
        if isinstance(inner, dict) and (_has(inner, (*_SPAN, "transactionid")) or isinstance(inner.get("trace"), dict)):
            return {**{name: item for name, item in value.items() if name != key}, **inner}
    return value


def _hoisted(row: Row) -> Row:
    """A record with the fields of a span that its vendor keeps one level below the others."""
    for key, names in _HOISTED:
        if isinstance(inner := row.get(key), dict) and names[0] in inner and names[0] not in row:
            rest = {name: item for name, item in inner.items() if name not in names}
            row = {**row, **{name: inner[name] for name in names if name in inner}, key: rest}
    contexts = row.get("contexts")
    if isinstance(contexts, dict) and isinstance(own := contexts.get("trace"), dict):  # Sentry's transaction
        row = {**{name: item for name, item in row.items() if name != "contexts"}, **own}
    return row


def _with_flat_ids(row: Row) -> Row:
    """A record of Elastic with the ids that it nests under dotted names."""
    if not isinstance(row.get("trace"), dict) or not any(
        isinstance(row.get(one), dict) for one in ("span", "transaction")
    ):
        return row
    nested = {key: inner for key in _NESTED_IDS if isinstance(inner := row.get(key), dict)}
    leaves = {name: item for key, inner in nested.items() for name, item in flat(inner, f"{key}.").items()}
    return {**{name: item for name, item in row.items() if name not in nested}, **leaves}


def _identity(row: Row, above: _Above) -> tuple[str, str, str | None] | None:
    """The ids of the trace, the span and its parent; None where the object is no span."""
    names = {plain_name(name): name for name in reversed(list(row))}
    resource = _RESOURCE_NAME.fullmatch(str(row.get("name")))
    trace_id = resource["trace"] if resource else _text(row, names, _TRACE) or above.trace_id
    span_id = resource["span"] if resource else _text(row, names, _SPAN)
    if {"spanid", "transactionid"} & names.keys() and "traceid" in names and "processorevent" in names:  # Elastic
        span_id = span_id or _text(row, names, ("transactionid",))
    is_tied = above.is_tied or above.parent is not None or any(name in names for name in _PARENT) or "guid" in names
    if trace_id is None and span_id is None and "parentrunid" in names:
        trace_id = _text(row, names, ("id",))  # Lunary names no trace: `join_runs` does when all runs are read
    has_children = any(isinstance(_value(row, names, key), list) for key in CHILDREN)
    is_whole = bool(names.keys() & {*_TRACE} and names.keys() & {*_END})
    if span_id is None and (is_tied or has_children or is_whole) and trace_id is not None:
        span_id = _text(row, names, ("id", "guid"))
    tells = (names.keys() & {*_NAME}, names.keys() & {*_START}, names.keys() & _OF_SPANS or has_children)
    if trace_id is None or span_id is None or not all(tells):
        return None
    return trace_id, span_id, _parent(row, names, trace_id) or above.parent


def _parent(row: Row, names: Mapping[str, str], trace_id: str) -> str | None:
    for name in _PARENT:
        value = opened(_value(row, names, name))
        if isinstance(value, list):
            value = value[0] if value else None
        text = as_text(value)
        if text is not None and text not in _NO_PARENT:
            return None if text == trace_id else text  # Application Insights names the operation above a root
    tags = row.get("tags")
    if isinstance(tags, dict) and (guid := as_text(tags.get("parent_span_guid"))) is not None:
        return guid
    others = (name for name in names if "parent" in name and name.endswith("id"))
    other = next((text for name in others if (text := _text(row, names, (name,))) is not None), None)
    if other is not None and other not in (*_NO_PARENT, trace_id):
        return other
    references = opened(_value(row, names, "references"))
    match = re.search(r"SpanId=(\w+)", " ".join(map(str, references))) if isinstance(references, list) else None
    return None if match is None else match[1]


def _span_and_children(row: Row, ids: tuple[str, str, str | None], above: _Above, level: int) -> Iterator[Row]:
    trace_id, span_id, _ = ids
    names = {plain_name(name): name for name in reversed(list(row))}
    children = [row.pop(names[key]) for key in CHILDREN if isinstance(_value(row, names, key), list)]
    yield _canonical(row, names, ids)
    for child in children:
        yield from _walk(child, above._replace(trace_id=trace_id, parent=span_id), level + 1)


def _trace_of(value: Row, above: _Above) -> str | None:
    names = {plain_name(name): name for name in reversed(list(value))}
    own = _text(value, names, _TRACE)
    if own is None and (above.key in ("traces", "trace") or "Segments" in value):
        own = _text(value, names, ("id",))
    return own or above.trace_id


def _canonical(row: Row, names: Mapping[str, str], ids: tuple[str, str, str | None]) -> Row:
    """The row under the names of the span table; what it tells beyond them keeps its own."""
    left = dict(row)

    def take(own_names: Sequence[str]) -> Json:
        value = next((left.pop(names[name]) for name in own_names if _value(left, names, name) is not None), None)
        return value.get("value", value) if isinstance(value, dict) else value

    trace_id, span_id, parent = ids
    for some in (_TRACE, _SPAN, ("guid",), _PARENT, ("references",)):
        take(some)
    if _value(left, names, "id") == span_id:
        take(("id",))
    attributes = _attributes(left, names)
    if "attributes" in left:  # no object: the column is the tree's, so it moves into it
        attributes["attributes"] = left.pop("attributes")
    name = take(("displayname",)) or take(_NAME)
    span: Row = {"trace_id": trace_id, "span_id": span_id, "parent_span_id": parent, "name": name}
    start_name = next((one for one in _START if _value(left, names, one) is not None), "")
    span["start_time"] = take((start_name,))
    ends = ("timestamp",) if start_name == "starttimestamp" or "traceuniqueid" in names else _END
    span["end_time"] = take(ends)
    _length(span, take, start_name)
    is_flat = "referenceparentspanid" in names
    for key, own in [(key, _attribute_name(key, is_flat=is_flat)) for key in left]:
        if own is not None:
            attributes.setdefault(own, left.pop(key))
    return {**left, **span, "attributes": cast("Json", attributes)}


def _attribute_name(column: str, *, is_flat: bool) -> str | None:
    """The attribute that a column of its own holds; None where it holds none."""
    if "." in column and not column.startswith(("otel", "resource", "scope")):
        own = _HOLDER.sub("", column).replace("@", ".")
        return dotted(own) or own
    return dotted(column) if is_flat else None


def _length(span: Row, take: Callable[[Sequence[str]], Json], start_name: str) -> None:
    """The end of a span that tells its length: in the unit of its name, else in that of its start."""
    for names, unit in _LENGTHS:
        raw = take(names)
        if (length := _number(raw)) is not None:
            span["duration_us"] = length * unit
            return
        if raw is not None:
            span[f"unread.{names[0]}"] = raw
    raw = take(("duration",))
    if isinstance(raw, str) and (match := _WITH_UNIT.fullmatch(raw)) is not None:
        span["duration_us"] = float(match[1]) * _UNITS[match[2]]
        return
    length = _number(raw)
    if length is None and raw is not None:
        span["unread.duration"] = raw
    if length is not None and span["end_time"] is None:
        in_nanoseconds = start_name.endswith(("ns", "nano")) or length >= 1e7 or start_name == "start"
        span["duration_us"] = length / 1000 if in_nanoseconds else length * 1000


def _attributes(left: Row, names: Mapping[str, str]) -> Row:
    """The attributes in all objects that hold some; an object of objects is the tree of dotted names."""
    attributes: Row = {}
    for name in _ATTRIBUTES:
        value = opened(_value(left, names, name))
        if isinstance(value, dict) and isinstance(inner := value.get("attributeMap"), dict):
            value = inner
        is_listed = isinstance(value, list) and value and all(isinstance(one, dict) and "key" in one for one in value)
        if not value or not (isinstance(value, dict) or is_listed):
            continue
        del left[names[name]]
        if name == "metadata" and isinstance(value, dict):
            value = {**value, **(inner if isinstance(inner := value.pop("default", None), dict) else {})}
        leaves = flat({key: typed_value(item) for key, item in key_values(value).items()}, "")
        attributes.update({(dotted(key) or key) if name in _FLATTENED else key: item for key, item in leaves.items()})
    keys, values = (
        opened(left.pop(names[name], None)) if name in names else None for name in ("tagskeys", "tagsvalues")
    )
    if isinstance(keys, list) and isinstance(values, list):
        attributes.update(zip(map(str, keys), values, strict=False))
    return {key.replace("@", "."): item for key, item in attributes.items()}


def vendor_log(row: Mapping[str, Json]) -> Row | None:
    """A log record in a table of spans, as Application Insights keeps a message of a model; None of any other row."""
    names = {plain_name(name): name for name in reversed(list(row))}
    trace_id, span_id = (
        _text(dict(row), names, some) for some in (("operationid",), ("operationparentid", "parentid"))
    )
    body = _value(row, names, "message")
    if trace_id is None or span_id is None or body is None or _text(dict(row), names, (*_SPAN, "id")) is not None:
        return None
    attributes = _attributes(dict(row), names)
    moment = next((row[names[name]] for name in _START if name in names), None)
    return {"trace_id": trace_id, "span_id": span_id, "time": moment, "body": opened(body), "attributes": attributes}


def typed_value(value: Json) -> Json:
    """The value in `{"stringValue": {"value": ...}}` (Cloud Trace) or `{"type": "string", "value": ...}` (Sentry)."""
    if not isinstance(value, dict):
        return value
    ((key, inner),) = value.items() if len(value) == 1 else (("", None),)
    if key.endswith("Value"):
        return inner.get("value") if isinstance(inner, dict) else inner
    return value["value"] if value.keys() == {"type", "value"} else value


def flat(value: Mapping[str, Json], prefix: str) -> Row:
    """An object in objects as one with dotted names; the objects of lists stay."""
    leaves: Row = {}
    for key, item in value.items():
        if isinstance(item, dict) and item:
            leaves.update(flat(item, f"{prefix}{key}."))
        else:
            leaves[f"{prefix}{key}"] = item
    return leaves


def _has(value: Mapping[str, Json], names: Sequence[str]) -> bool:
    return not {plain_name(name) for name in value}.isdisjoint(names)


def _value(row: Mapping[str, Json], names: Mapping[str, str], name: str) -> Json:
    """The field of a plain name; None where the row has none."""
    return row.get(names[name]) if name in names else None


def _text(row: Row, names: Mapping[str, str], keys: Sequence[str]) -> str | None:
    for name in keys:
        value = _value(row, names, name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None
