"""Reading traces back: whole, a span at a time, or the bytes they came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from sqlalchemy import BindParameter, Connection, Row, Select, and_, bindparam, not_, or_, select

from tracejury.ingest.pack import DETAILS
from tracejury.ingest.store import schema
from tracejury.ingest.store.engine import chunks
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.texts import decompress, reference, restore
from tracejury.ingest.trace import ExpectedEvent, Json, LogRecord, Message, Outcome, Source, Span, ToolCall, Trace

_KEYS_A_QUERY = 5000
_KEY: BindParameter[int] = bindparam(
    "key"
)  # statements are made once: to make them anew takes a quarter of the time of a look-up
_TRACE = select(schema.trace).where(schema.trace.c.trace_id == bindparam("trace_id"))
_SPANS = select(schema.span).where(schema.span.c.trace_key == _KEY).order_by(schema.span.c.seq)
_DETAILS = (
    select(schema.span_detail.c.body)
    .where(schema.span_detail.c.trace_key == _KEY)
    .order_by(schema.span_detail.c.first_seq)
)
_MESSAGES = (
    select(schema.message, schema.text.c.hash)
    .outerjoin(schema.text, schema.message.c.content_key == schema.text.c.text_key)
    .where(schema.message.c.trace_key == _KEY)
    .order_by(schema.message.c.message)
)
_LOGS = select(schema.log).where(schema.log.c.trace_key == _KEY).order_by(schema.log.c.log_key)
_EXPECTED = (
    select(schema.expected_event)
    .where(schema.expected_event.c.trace_key == _KEY)
    .order_by(schema.expected_event.c.position)
)


def trace_ids(connection: Connection, *, with_steps: bool = False) -> list[str]:
    """Every trace id, in order of ingestion; `with_steps` leaves out benchmark runs that left no trace to look at."""
    trace = schema.trace.c
    query = select(trace.trace_id).order_by(trace.trace_key)
    is_bare = and_(trace.spans == 1, trace.warnings.like('%"no_trace: %'))
    return list(connection.scalars(query.where(not_(is_bare)) if with_steps else query))


def marked_traces(connection: Connection, *codes: str) -> list[str]:
    """The traces with a warning of one of these codes, in order of ingestion: by what ingest noted, none is read."""
    trace = schema.trace.c
    marks = [trace.warnings.contains(f'"{code}:', autoescape=True) for code in codes]
    return list(connection.scalars(select(trace.trace_id).where(or_(*marks)).order_by(trace.trace_key)))


def load(connection: Connection, trace_id: str, *, with_logs: bool = True) -> Trace:
    """The trace as it was ingested (`source.data` is left empty: `load_source` gives it).

    Raises `KeyError` when there is no such trace.
    """
    row = _trace_row(connection, trace_id)
    key = row.trace_key
    span_rows = connection.execute(_SPANS, {"key": key}).all()
    message_rows = connection.execute(_MESSAGES, {"key": key}).all()
    details = _details(connection, key)
    calls = [orjson.loads(message.tool_calls) if message.tool_calls else [] for message in message_rows]
    contents = {bytes(m.hash).hex() for m in message_rows if m.hash is not None}
    thoughts = {hash_ for message in message_rows if (hash_ := reference(_reasoning(message))) is not None}
    texts = _texts(connection, {*_references(details), *_call_references(calls), *contents, *thoughts})
    return Trace(
        trace_id=row.trace_id,
        format=row.format,
        source=Source(file=row.file, place=row.place),
        spans=tuple(_span(trace_id, s, d, texts) for s, d in zip(span_rows, details, strict=True)),
        messages=tuple(_message(m, c, texts) for m, c in zip(message_rows, calls, strict=True)),
        goal=row.goal,
        final_answer=row.final_answer,
        attributes=orjson.loads(row.attributes),
        logs=_logs(connection, key) if with_logs else (),
        expected_events=_expected(connection, key),
        outcome=Outcome(**orjson.loads(row.outcome)) if row.outcome else None,
        warnings=tuple(orjson.loads(row.warnings)),
    )


def load_span(connection: Connection, trace_id: str, seq: int) -> Span:
    """One span. Raises `KeyError` when there is no such trace or span."""
    key = _trace_row(connection, trace_id).trace_key
    row = connection.execute(
        select(schema.span).where(schema.span.c.trace_key == key, schema.span.c.seq == seq)
    ).one_or_none()
    if row is None:
        raise KeyError(f"trace {trace_id} has no span {seq}")
    first = seq - seq % DETAILS
    detail = _details(connection, key, first_seq=first)[seq - first]
    return _span(trace_id, row, detail, _texts(connection, _references([detail])))


def load_source(connection: Connection, trace_id: str) -> Source:
    """The very bytes that a trace was read from. Raises `KeyError` when there is no such trace."""
    source = source_of(connection, trace_id)
    return replace(source, data=b"".join(source_blocks(connection, trace_id)), size=0)


def source_key_of(connection: Connection, trace_id: str) -> int:
    """The key of the source that a trace was read from: those of one source share it."""
    return int(_trace_row(connection, trace_id).source_key)


def source_of(connection: Connection, trace_id: str) -> Source:
    """Where a trace was read and how many bytes that were, without them. Raises `KeyError` as `load_source`."""
    row = connection.execute(
        _of_trace(select(*(schema.source.c[name] for name in ("file", "place", "size"))), trace_id)
    )
    source = row.one_or_none()
    if source is None:
        raise KeyError(f"no trace {trace_id} in this workspace")
    return Source(file=source.file, place=source.place, size=source.size)


def source_blocks(connection: Connection, trace_id: str) -> Iterator[bytes]:
    """The bytes that a trace was read from, those of a long file in parts."""
    key, body = connection.execute(_of_trace(select(schema.source.c.source_key, schema.source.c.body), trace_id)).one()
    yield decompress(body)
    part = schema.source_part.c
    numbers = connection.scalars(select(part.part).where(part.source_key == key).order_by(part.part)).all()
    for number in numbers:
        one = select(part.body).where(part.source_key == key, part.part == number)
        yield decompress(connection.scalars(one).one())


def _of_trace(query: Select[Any], trace_id: str) -> Select[Any]:
    joined = query.join(schema.trace, schema.trace.c.source_key == schema.source.c.source_key)
    return joined.where(schema.trace.c.trace_id == trace_id)


def _trace_row(connection: Connection, trace_id: str) -> Row[Any]:
    row = connection.execute(_TRACE, {"trace_id": trace_id}).one_or_none()
    if row is None:
        raise KeyError(f"no trace {trace_id} in this workspace")
    return row


def _references(details: Iterable[Mapping[str, Json]]) -> set[str]:
    references = set()
    for detail in details:
        attributes = detail.get("attributes")
        nested = attributes.values() if isinstance(attributes, dict) else ()
        lists = [v for name in ("events", "links") if isinstance(v := detail.get(name), list)]
        for value in (*detail.values(), *nested, *(item for items in lists for item in items)):
            key = reference(value)
            if key is not None:
                references.add(key)
    return references


def _call_references(calls: Iterable[Sequence[Sequence[Json]]]) -> set[str]:
    keys = (reference(value) for message in calls for call in message for value in call)
    return {key for key in keys if key is not None}


def _details(connection: Connection, trace_key: int, *, first_seq: int | None = None) -> list[dict[str, Json]]:
    """What the spans' own rows do not hold, by seq; of one row of DETAILS spans with `first_seq`."""
    query = _DETAILS if first_seq is None else _DETAILS.where(schema.span_detail.c.first_seq == first_seq)
    bodies = connection.scalars(query, {"key": trace_key})
    return [detail for body in bodies for detail in orjson.loads(decompress(body))]


def _texts(connection: Connection, hashes: Iterable[str]) -> dict[str, str]:
    places: dict[int, list[Row[Any]]] = {}
    for some in chunks([bytes.fromhex(h) for h in hashes], _KEYS_A_QUERY):
        for row in connection.execute(select(schema.text).where(schema.text.c.hash.in_(some))):
            places.setdefault(row.pack_key, []).append(row)
    texts: dict[str, str] = {}
    for some_keys in chunks(list(places), _KEYS_A_QUERY):
        packs = select(schema.text_pack).where(is_one_of(schema.text_pack.c.pack_key, some_keys))
        for pack in connection.execute(packs):
            data = decompress(pack.body)
            for row in places[pack.pack_key]:
                texts[bytes(row.hash).hex()] = data[row.start : row.start + row.size].decode()
    return texts


def _span(trace_id: str, row: Row[Any], detail: dict[str, Json], texts: Mapping[str, str]) -> Span:
    def whole(value: Json) -> Any:
        return restore(value, texts.__getitem__) if isinstance(value, dict) else value

    attributes = detail.get("attributes")
    start, end = row.start_time, row.end_time
    return Span(
        trace_id=trace_id,
        seq=row.seq,
        span_id=row.span_id,
        parent_span_id=row.parent_span_id,
        depth=row.depth,
        name=row.name,
        kind=row.kind,
        agent=row.agent,
        start_time=start,
        end_time=end,
        duration_s=None if start is None or end is None else (end - start) / 1e6,
        clock=row.clock,
        status=row.status,
        status_message=whole(detail.get("status_message")),
        input=whole(detail.get("input")),
        output=whole(detail.get("output")),
        input_messages=tuple(_positions(detail.get("in"))),
        output_messages=tuple(_positions(detail.get("out"))),
        tool_name=row.tool_name,
        tool_arguments=whole(detail.get("tool_arguments")),
        tool_call_id=whole(detail.get("tool_call_id")),
        model=row.model,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        total_tokens=row.total_tokens,
        reasoning_tokens=row.reasoning_tokens,
        turn=row.turn,
        step=row.step,
        events=tuple(whole(event) for event in _items(detail.get("events"))),
        links=tuple(whole(link) for link in _items(detail.get("links"))),
        attributes={key: whole(v) for key, v in attributes.items()} if isinstance(attributes, dict) else {},
        warnings=tuple(str(warning) for warning in _items(detail.get("warnings"))),
    )


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _positions(value: Json) -> list[int]:
    return [position for position in _items(value) if isinstance(position, int)]


def _message(row: Row[Any], calls: Sequence[Sequence[Json]], texts: Mapping[str, str]) -> Message:
    def whole(value: Json) -> Any:
        return restore(value, texts.__getitem__)

    content = row.content if row.hash is None else texts[bytes(row.hash).hex()]
    tool_calls = tuple(ToolCall(whole(name), whole(arguments), whole(id_)) for name, arguments, id_ in calls)
    return Message(row.role, content, tool_calls, row.name, row.tool_call_id, whole(_reasoning(row)))


def _reasoning(row: Row[Any]) -> Json:
    value: Json = None if row.reasoning is None else orjson.loads(row.reasoning)
    return value


def _logs(connection: Connection, trace_key: int) -> tuple[LogRecord, ...]:
    rows = connection.execute(_LOGS, {"key": trace_key})
    return tuple(
        LogRecord(span_id=row.span_id, body=orjson.loads(decompress(row.body)), holds_gold=bool(row.holds_gold))
        for row in rows
    )


def _expected(connection: Connection, trace_key: int) -> tuple[ExpectedEvent, ...]:
    rows = connection.execute(_EXPECTED, {"key": trace_key})
    bodies = [orjson.loads(row.body) for row in rows]
    return tuple(ExpectedEvent(**{**body, "depends_on": tuple(body["depends_on"])}) for body in bodies)
