"""Reading traces back: whole, a span at a time, or the bytes they came from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import orjson
from sqlalchemy import BindParameter, Connection, Row, Select, and_, bindparam, exists, not_, or_, select

from tracejury.ingest.pack import DETAILS
from tracejury.ingest.store import schema
from tracejury.ingest.store.engine import chunks
from tracejury.ingest.store.one_of import is_in_list
from tracejury.ingest.texts import decompress, reference, restore
from tracejury.ingest.trace import ExpectedEvent, Json, LogRecord, Message, Outcome, Source, Span, ToolCall, Trace

_KEYS_A_QUERY = 5000
_KEY: BindParameter[int] = bindparam(
    "key"
)  # statements are made once: to make them anew takes a quarter of the time of a look-up
_TRACE = select(
    schema.trace,
    exists().where(schema.log.c.trace_key == schema.trace.c.trace_key).label("has_logs"),
    exists().where(schema.expected_event.c.trace_key == schema.trace.c.trace_key).label("has_expected_events"),
).where(schema.trace.c.trace_id == bindparam("trace_id"))
_SPAN_COLUMNS = tuple(column.name for column in schema.span.c if column.name not in {"span_key", "trace_key"})
_LONG_COLUMNS = ("status_message", "input", "output", "tool_arguments", "tool_call_id")
_SPANS = (
    select(*(schema.span.c[name] for name in _SPAN_COLUMNS))
    .where(schema.span.c.trace_key == _KEY)
    .order_by(schema.span.c.seq)
)
_DETAILS = (
    select(schema.span_detail.c.body)
    .where(schema.span_detail.c.trace_key == _KEY)
    .order_by(schema.span_detail.c.first_seq)
)
_MESSAGES: Select[Any] = (
    select(
        *(schema.message.c[name] for name in ("role", "content", "tool_calls", "name", "tool_call_id", "reasoning")),
        schema.text.c.hash,
    )
    .outerjoin(schema.text, schema.message.c.content_key == schema.text.c.text_key)
    .where(schema.message.c.trace_key == _KEY)
    .order_by(schema.message.c.message)
)
_TEXTS = select(schema.text.c.hash, schema.text.c.pack_key, schema.text.c.start, schema.text.c.size).where(
    schema.text.c.hash.in_(bindparam("hashes", expanding=True))
)
_PACKS = select(schema.text_pack.c.pack_key, schema.text_pack.c.body).where(
    is_in_list(schema.text_pack.c.pack_key, "keys")
)
_LOGS = select(schema.log).where(schema.log.c.trace_key == _KEY).order_by(schema.log.c.log_key)
_EXPECTED = (
    select(schema.expected_event)
    .where(schema.expected_event.c.trace_key == _KEY)
    .order_by(schema.expected_event.c.position)
)


def trace_ids(connection: Connection, *, with_steps: bool = False) -> list[str]:
    """Every trace id, in order of ingestion; `with_steps` leaves out executions that left no trace to look at."""
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
    messages = [_stored_message(*columns) for columns in connection.execute(_MESSAGES, {"key": key})]
    details = _details(connection, key)
    texts = _texts(connection, {*_references(details), *_message_references(messages)})
    return Trace(
        trace_id=row.trace_id,
        format=row.format,
        source=Source(file=row.file, place=row.place),
        spans=tuple(_span(trace_id, s, d, texts) for s, d in zip(span_rows, details, strict=True)),
        messages=tuple(_message(message, texts) for message in messages),
        goal=row.goal,
        final_answer=row.final_answer,
        attributes=orjson.loads(row.attributes),
        logs=_logs(connection, key) if with_logs and row.has_logs else (),
        expected_events=_expected(connection, key) if row.has_expected_events else (),
        outcome=Outcome(**orjson.loads(row.outcome)) if row.outcome else None,
        warnings=tuple(orjson.loads(row.warnings)),
    )


def load_span(connection: Connection, trace_id: str, seq: int) -> Span:
    """One span. Raises `KeyError` when there is no such trace or span."""
    key = _trace_row(connection, trace_id).trace_key
    row = connection.execute(_SPANS.where(schema.span.c.seq == seq), {"key": key}).one_or_none()
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
    return {key for value in _stored_values(details) if (key := reference(value)) is not None}


def _stored_values(details: Iterable[Mapping[str, Json]]) -> Iterator[Json]:
    """Every value of these details that `pack` may have stored by reference."""
    for detail in details:
        yield from map(detail.get, _LONG_COLUMNS)
        attributes = detail.get("attributes")
        if isinstance(attributes, dict):
            yield from attributes.values()
        yield from _list(detail, "events")
        yield from _list(detail, "links")


def _details(connection: Connection, trace_key: int, *, first_seq: int | None = None) -> list[dict[str, Json]]:
    """What the spans' own rows do not hold, by seq; of one row of DETAILS spans with `first_seq`."""
    query = _DETAILS if first_seq is None else _DETAILS.where(schema.span_detail.c.first_seq == first_seq)
    bodies = connection.scalars(query, {"key": trace_key})
    return [detail for body in bodies for detail in orjson.loads(decompress(body))]


def _texts(connection: Connection, hashes: Iterable[str]) -> dict[str, str]:
    places: dict[int, list[tuple[bytes, int, int]]] = defaultdict(list)
    for some in chunks([bytes.fromhex(h) for h in hashes], _KEYS_A_QUERY):
        for hash_, pack_key, start, size in connection.execute(_TEXTS, {"hashes": some}):
            places[pack_key].append((hash_, start, size))
    texts: dict[str, str] = {}
    for some_keys in chunks(list(places), _KEYS_A_QUERY):
        for pack_key, body in connection.execute(_PACKS, {"keys": some_keys}):
            data = decompress(body)
            for hash_, start, size in places[pack_key]:
                texts[bytes(hash_).hex()] = data[start : start + size].decode()
    return texts


def _span(trace_id: str, row: Sequence[Any], detail: Mapping[str, Json], texts: Mapping[str, str]) -> Span:
    columns: dict[str, Any] = dict(zip(_SPAN_COLUMNS, row, strict=True))
    long = {name: _whole(detail.get(name), texts) for name in _LONG_COLUMNS}
    start, end = columns["start_time"], columns["end_time"]
    attributes = detail.get("attributes")
    return Span(
        trace_id=trace_id,
        duration_s=None if start is None or end is None else (end - start) / 1e6,
        input_messages=_list(detail, "in"),
        output_messages=_list(detail, "out"),
        events=tuple(_whole(event, texts) for event in _list(detail, "events")),
        links=tuple(_whole(link, texts) for link in _list(detail, "links")),
        attributes={name: _whole(value, texts) for name, value in attributes.items()}
        if isinstance(attributes, dict)
        else {},
        warnings=_list(detail, "warnings"),
        **columns,
        **long,
    )


def _whole(value: Json, texts: Mapping[str, str]) -> Any:
    return restore(value, texts.__getitem__) if isinstance(value, dict) else value


def _list(detail: Mapping[str, Json], name: str) -> tuple[Any, ...]:
    """A list of a span's details, as `pack` wrote it; it leaves out the empty ones."""
    value = detail.get(name)
    return tuple(value) if isinstance(value, list) else ()


class _StoredMessage(NamedTuple):
    """A message, its long texts by reference: `content_hash` (hex) in the place of a long `content`."""

    role: str | None
    content: str | None
    calls: Sequence[Sequence[Json]]
    name: str | None
    tool_call_id: str | None
    reasoning: Json
    content_hash: str | None


def _stored_message(
    role: str | None, content: str | None, calls: str | None, name: str | None, tool_call_id: str | None,
    reasoning: str | None, hash_: bytes | None,
) -> _StoredMessage:  # fmt: skip
    return _StoredMessage(
        role,
        content,
        orjson.loads(calls) if calls else (),
        name,
        tool_call_id,
        None if reasoning is None else orjson.loads(reasoning),
        None if hash_ is None else bytes(hash_).hex(),
    )


def _message_references(messages: Iterable[_StoredMessage]) -> Iterator[str]:
    for message in messages:
        if message.content_hash is not None:
            yield message.content_hash
        for value in (message.reasoning, *chain.from_iterable(message.calls)):
            if (key := reference(value)) is not None:
                yield key


def _message(message: _StoredMessage, texts: Mapping[str, str]) -> Message:
    content = message.content if message.content_hash is None else texts[message.content_hash]
    calls = tuple(ToolCall(*(_whole(value, texts) for value in call)) for call in message.calls)
    return Message(message.role, content, calls, message.name, message.tool_call_id, _whole(message.reasoning, texts))


def _logs(connection: Connection, trace_key: int) -> tuple[LogRecord, ...]:
    rows = connection.execute(_LOGS, {"key": trace_key})
    return tuple(
        LogRecord(span_id=row.span_id, body=orjson.loads(decompress(row.body)), holds_answer=bool(row.holds_answer))
        for row in rows
    )


def _expected(connection: Connection, trace_key: int) -> tuple[ExpectedEvent, ...]:
    rows = connection.execute(_EXPECTED, {"key": trace_key})
    bodies = [orjson.loads(row.body) for row in rows]
    return tuple(ExpectedEvent(**{**body, "depends_on": tuple(body["depends_on"])}) for body in bodies)
