"""Writing traces: once each, a batch in a transaction; what is there already stays untouched."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from sqlalchemy import Connection, delete, func, insert, select, update

from ingest.store import schema
from ingest.store.pack import Packed, Row
from ingest.store.search import forget_spans, index_spans

StoredAs = Literal["new", "duplicate", "replaced"]
_KEYS_A_QUERY = 5000
T = TypeVar("T")


class StoreError(Exception):
    """A trace that cannot be stored beside what is there; the message says why and what to do."""


class Stored(NamedTuple):
    """What became of one trace."""

    trace_id: str
    state: StoredAs
    spans: int


def write(connection: Connection, packed: Packed, *, replaces: Packed | None = None) -> Stored:
    """Store one trace unless it is there. Run it inside `writing(engine)`.

    Raises `StoreError` when another trace of the same id but other content is stored, unless that content is
    the one given as `replaces` (a trace that grew: late spans).
    """
    there = connection.execute(
        select(schema.trace.c.trace_key, schema.trace.c.digest, schema.trace.c.file).where(
            schema.trace.c.trace_id == packed.trace_id
        )
    ).one_or_none()
    if there is not None and there.digest == packed.digest:
        return Stored(packed.trace_id, "duplicate", len(packed.spans))
    if there is not None and (replaces is None or replaces.digest != there.digest):
        raise StoreError(f"trace {packed.trace_id} is in the workspace already (from {there.file}) with other content")
    with connection.begin_nested():
        _write_new(connection, packed, there, replaces)
    return Stored(packed.trace_id, "new" if there is None else "replaced", len(packed.spans))


def _write_new(connection: Connection, packed: Packed, there: Any, replaces: Packed | None) -> None:
    now = time.time_ns() // 1000
    source_key = _source_key(connection, packed.source, now)
    row = {**packed.trace, "digest": packed.digest, "source_key": source_key, "ingested_at": now}
    if there is None or replaces is None:
        trace_key = _insert_one(connection, schema.trace, row)
    else:
        trace_key = int(there.trace_key)
        _remove_content(connection, trace_key, replaces)
        of_trace = schema.trace.c.trace_key == trace_key
        old_source = connection.scalar(select(schema.trace.c.source_key).where(of_trace))
        connection.execute(update(schema.trace).where(of_trace).values(**row))
        is_unused = schema.source.c.source_key.not_in(select(schema.trace.c.source_key))
        connection.execute(delete(schema.source).where(schema.source.c.source_key == old_source, is_unused))
    _insert_spans(connection, packed, trace_key)
    _insert_messages(connection, packed, trace_key)
    for table, rows in (
        (schema.span_detail, packed.details),
        (schema.log, packed.logs),
        (schema.expected_event, packed.expected_events),
    ):
        if rows:
            connection.execute(insert(table), [{**row, "trace_key": trace_key} for row in rows])


def _remove_content(connection: Connection, trace_key: int, old: Packed) -> None:
    """Everything of a trace but its own row, which labels and caches know; its texts stay, others may use them."""
    keys = select(schema.span.c.span_key).where(schema.span.c.trace_key == trace_key).order_by(schema.span.c.seq)
    forget_spans(connection, list(zip(connection.scalars(keys), old.documents, strict=True)))
    for table in (schema.span, schema.span_detail, schema.message, schema.log, schema.expected_event):
        connection.execute(delete(table).where(table.c.trace_key == trace_key))


def _insert_one(connection: Connection, table: object, row: Row) -> int:
    result = connection.execute(insert(table), row)  # type: ignore[arg-type]
    key = result.inserted_primary_key
    assert key is not None
    return int(key[0])


def _source_key(connection: Connection, row: Row, now: int) -> int:
    known = connection.scalar(select(schema.source.c.source_key).where(schema.source.c.digest == row["digest"]))
    return int(known) if known is not None else _insert_one(connection, schema.source, {**row, "ingested_at": now})


def _insert_spans(connection: Connection, packed: Packed, trace_key: int) -> None:
    first = int(connection.scalar(select(func.coalesce(func.max(schema.span.c.span_key), 0))) or 0) + 1
    rows = [{**row, "trace_key": trace_key, "span_key": first + number} for number, row in enumerate(packed.spans)]
    connection.execute(insert(schema.span), rows)
    index_spans(connection, [(first + number, document) for number, document in enumerate(packed.documents)])


def _insert_messages(connection: Connection, packed: Packed, trace_key: int) -> None:
    keys = _text_keys(connection, packed)
    if not packed.messages:
        return
    rows = []
    for row in packed.messages:
        plain = {key: value for key, value in row.items() if key != "content_hash"}
        content_hash = row["content_hash"]
        rows.append({**plain, "trace_key": trace_key, "content_key": keys[content_hash] if content_hash else None})
    connection.execute(insert(schema.message), rows)


def _text_keys(connection: Connection, packed: Packed) -> dict[str, int]:
    """Key of every text that a message needs; new texts are inserted, in their packs."""
    brought = [key for pack in packed.texts for key, _, _ in pack.texts]
    known = known_text_keys(connection, brought)
    for pack in packed.texts:
        new = [place for place in pack.texts if place[0] not in known]
        if new:
            pack_key = _insert_one(connection, schema.text_pack, {"body": pack.body})
            rows = [
                {"hash": bytes.fromhex(key), "pack_key": pack_key, "start": start, "size": size}
                for key, start, size in new
            ]
            connection.execute(insert(schema.text), rows)
    stored = known_text_keys(connection, packed.references)
    missing = [key for key in packed.references if key not in stored]
    if missing:
        raise StoreError(
            f"trace {packed.trace_id} refers to {len(missing)} text(s) that are nowhere: nothing of it is kept"
        )
    return stored


def known_text_keys(connection: Connection, hashes: Iterable[str]) -> dict[str, int]:
    """Text keys by hash (hex), of those that are stored."""
    found: dict[str, int] = {}
    for some in chunks([bytes.fromhex(h) for h in hashes], _KEYS_A_QUERY):
        query = select(schema.text.c.hash, schema.text.c.text_key).where(schema.text.c.hash.in_(some))
        found.update({bytes(row.hash).hex(): row.text_key for row in connection.execute(query)})
    return found


def chunks(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[at : at + size] for at in range(0, len(items), size))
