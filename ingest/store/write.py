"""Writing traces: once each, a batch in a transaction; what is there already stays untouched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Literal, NamedTuple

import orjson
from sqlalchemy import Connection, Dialect, Select, Table, bindparam, delete, func, insert, select, update

from tracejury.ingest.damage import is_damaged
from tracejury.ingest.pack import Packed, Row, compressed_parts, pack
from tracejury.ingest.store import schema
from tracejury.ingest.store.engine import chunks
from tracejury.ingest.store.load import load
from tracejury.ingest.store.one_of import is_in_list
from tracejury.ingest.store.search import forget_spans, index_spans
from tracejury.ingest.texts import TextPack, repacked
from tracejury.ingest.words import counted

StoredAs = Literal["new", "duplicate", "replaced"]
_KEYS_A_QUERY = 5000

_TRACES = select(
    schema.trace.c.trace_id, schema.trace.c.trace_key, schema.trace.c.digest, schema.trace.c.file,
    schema.trace.c.warnings,
).where(is_in_list(schema.trace.c.trace_id, "ids"))  # fmt: skip
_SOURCES = select(schema.source.c.digest, schema.source.c.source_key).where(
    is_in_list(schema.source.c.digest, "digests")
)
_LAST_TRACE = select(func.max(schema.trace.c.trace_key))
_LAST_SOURCE = select(func.max(schema.source.c.source_key))
_LAST_SPAN = select(func.max(schema.span.c.span_key))
_LAST_PACK = select(func.max(schema.text_pack.c.pack_key))
_LAST_TEXT = select(func.max(schema.text.c.text_key))
_TEXT_KEYS = select(schema.text.c.hash, schema.text.c.text_key).where(
    schema.text.c.hash.in_(bindparam("hashes", expanding=True))
)


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
    there = _there(connection, [packed]).get(packed.trace_id)
    if there is not None and replaces is not None and replaces.digest == there.digest != packed.digest:
        _replace(connection, packed, there.trace_key, replaces)
        return Stored(packed.trace_id, "replaced", len(packed.spans))
    (outcome,) = write_all(connection, [packed])
    if isinstance(outcome, StoreError):
        raise outcome
    return outcome


def write_all(connection: Connection, batch: Sequence[Packed], *, replace: bool = False) -> list[Stored | StoreError]:
    """Store those traces of a batch that are not there; one that cannot be stored has its error in its place.

    A whole trace takes the place of what a damaged file gave of it; with `replace`, any other content of its id.
    Run it inside `writing(engine)`. A table gets the rows of all traces in one statement.
    """
    there = _there(connection, batch)
    texts = _Texts(connection, batch)
    outcomes: list[Stored | StoreError] = []
    new: list[Packed] = []
    replacing: list[Packed] = []
    for packed in batch:
        known = there.get(packed.trace_id)
        if known is not None and known.digest == packed.digest:
            outcomes.append(Stored(packed.trace_id, "duplicate", len(packed.spans)))
        elif known is not None and not replace and not known.gives_way_to(packed):
            reason = f"trace {packed.trace_id} is in the workspace already (from {known.file}) with other content"
            outcomes.append(StoreError(reason))
        elif missing := texts.missing(packed):
            reason = (
                f"trace {packed.trace_id} lacks {counted(missing, 'text')} that it refers to: nothing of it is kept"
            )
            outcomes.append(StoreError(reason))
        elif known is not None:
            replacing.append(packed)
            outcomes.append(Stored(packed.trace_id, "replaced", len(packed.spans)))
        else:
            there[packed.trace_id] = _There(0, packed.digest, packed.source["file"], packed.trace["warnings"])
            texts.add(packed)
            new.append(packed)
            outcomes.append(Stored(packed.trace_id, "new", len(packed.spans)))
    texts.insert()
    if new:
        _insert_content(connection, _insert_traces(connection, new), texts.keys)
    for packed in replacing:
        trace_key = _there(connection, [packed])[packed.trace_id].trace_key
        _replace(connection, packed, trace_key, pack(load(connection, packed.trace_id)))
    return outcomes


def remove(connection: Connection, trace_id: str) -> bool:
    """Take a trace and what belongs to it alone out of the store; False where it is not there.

    Run it inside `writing(engine)`. Texts stay: other traces may hold them too.
    """
    of_trace = schema.trace.c.trace_id == trace_id
    row = connection.execute(select(schema.trace.c.trace_key, schema.trace.c.source_key).where(of_trace)).first()
    connection.execute(delete(schema.inbox).where(schema.inbox.c.trace_id == trace_id))
    if row is None:
        return False
    _remove_content(connection, row.trace_key, pack(load(connection, trace_id)))
    connection.execute(delete(schema.trace).where(of_trace))
    _remove_unused_source(connection, row.source_key)
    return True


class _There(NamedTuple):
    """What is stored under a trace id; `warnings` as JSON text."""

    trace_key: int
    digest: str
    file: str
    warnings: str

    def gives_way_to(self, packed: Packed) -> bool:
        """Whether this came of a damaged file and `packed` did not."""
        return is_damaged(orjson.loads(self.warnings)) and not is_damaged(orjson.loads(packed.trace["warnings"]))


def _there(connection: Connection, batch: Sequence[Packed]) -> dict[str, _There]:
    rows = connection.execute(_TRACES, {"ids": [packed.trace_id for packed in batch]})
    return {trace_id: _There(*others) for trace_id, *others in rows}


class _Texts:
    """The texts of a batch: the keys of those that are stored, and the rows of those that are new."""

    def __init__(self, connection: Connection, batch: Sequence[Packed]) -> None:
        self._connection = connection
        self.keys = known_text_keys(connection, {key for packed in batch for key in packed.references})
        self._next_text, self._next_pack = _after(connection, _LAST_TEXT), _after(connection, _LAST_PACK)
        self._packs: list[Row] = []
        self._texts: list[Row] = []

    def missing(self, packed: Packed) -> int:
        """How many texts this trace needs that are neither stored nor brought with it."""
        brought = {key for texts in packed.texts for key, _, _ in texts.texts}
        return sum(key not in self.keys and key not in brought for key in packed.references)

    def add(self, packed: Packed) -> None:
        """Note the texts that are new with this trace, in their packs."""
        for texts in packed.texts:
            new = [place for place in texts.texts if place[0] not in self.keys]
            if new:
                self._add_pack(repacked(texts, new))

    def _add_pack(self, texts: TextPack) -> None:
        pack_key = self._next_pack + len(self._packs)
        self._packs.append({"pack_key": pack_key, "body": texts.body})
        for key, start, size in texts.texts:
            text_key = self.keys[key] = self._next_text + len(self._texts)
            place = {"pack_key": pack_key, "start": start, "size": size}
            self._texts.append({"text_key": text_key, "hash": bytes.fromhex(key), **place})

    def insert(self) -> None:
        insert_rows(self._connection, schema.text_pack, self._packs)
        insert_rows(self._connection, schema.text, self._texts)


_WithKey = tuple[int, Packed]


def _insert_traces(connection: Connection, new: Sequence[Packed]) -> list[_WithKey]:
    """The rows of new traces and of their sources; each trace with its key."""
    now = time.time_ns() // 1000
    source_keys = _source_keys(connection, new, now)
    keyed = list(enumerate(new, _after(connection, _LAST_TRACE)))
    insert_rows(
        connection,
        schema.trace,
        [{"trace_key": key, **_trace_row(packed, source_keys[packed.source["digest"]], now)} for key, packed in keyed],
    )
    return keyed


def _trace_row(packed: Packed, source_key: int, now: int) -> Row:
    return {**packed.trace, "digest": packed.digest, "source_key": source_key, "ingested_at": now}


def _source_keys(connection: Connection, batch: Sequence[Packed], now: int) -> dict[str, int]:
    """Key of every source by its digest; those that are not stored yet are."""
    sources = {packed.source["digest"]: packed.source for packed in reversed(batch)}
    rows = connection.execute(_SOURCES, {"digests": list(sources)})
    keys = {row.digest: row.source_key for row in rows}
    new = [source for digest, source in sources.items() if digest not in keys]
    for key, source in enumerate(new, _after(connection, _LAST_SOURCE)):
        keys[source["digest"]] = key
    insert_rows(
        connection,
        schema.source,
        [{**source, "source_key": keys[source["digest"]], "ingested_at": now} for source in new],
    )
    long = {packed.source["digest"]: packed.long for packed in batch if packed.long is not None}
    for digest in [source["digest"] for source in new if source["digest"] in long]:
        _insert_parts(connection, keys[digest], compressed_parts(long[digest], digest))
    return keys


def _insert_parts(connection: Connection, source_key: int, parts: Iterable[bytes]) -> None:
    """The bytes of a long file, never more than a part of them in memory."""
    for part, body in enumerate(parts):
        insert_rows(connection, schema.source_part, [{"source_key": source_key, "part": part, "body": body}])


def _replace(connection: Connection, packed: Packed, trace_key: int, old: Packed) -> None:
    """Put a trace that grew in the place of what is stored of it."""
    texts = _Texts(connection, [packed])
    texts.add(packed)
    texts.insert()
    _remove_content(connection, trace_key, old)
    of_trace = schema.trace.c.trace_key == trace_key
    old_source = connection.scalar(select(schema.trace.c.source_key).where(of_trace))
    now = time.time_ns() // 1000
    (source_key,) = _source_keys(connection, [packed], now).values()
    connection.execute(update(schema.trace).where(of_trace).values(**_trace_row(packed, source_key, now)))
    _remove_unused_source(connection, old_source)
    _insert_content(connection, [(trace_key, packed)], texts.keys)


def _remove_unused_source(connection: Connection, source_key: int | None) -> None:
    """Take a source's bytes out of the store where no trace was read from them any more."""
    for table in (schema.source_part, schema.source):
        is_unused = table.c.source_key.not_in(select(schema.trace.c.source_key))
        connection.execute(delete(table).where(table.c.source_key == source_key, is_unused))


def _remove_content(connection: Connection, trace_key: int, old: Packed) -> None:
    """Everything of a trace but its own row, which labels and caches know; its texts stay, others may use them."""
    keys = select(schema.span.c.span_key).where(schema.span.c.trace_key == trace_key).order_by(schema.span.c.seq)
    forget_spans(connection, list(zip(connection.scalars(keys), old.documents, strict=True)))
    for table in (schema.span, schema.span_detail, schema.message, schema.log, schema.expected_event):
        connection.execute(delete(table).where(table.c.trace_key == trace_key))


def _insert_content(connection: Connection, keyed: Sequence[_WithKey], text_keys: Mapping[str, int]) -> None:
    """The rows of everything that belongs to these traces but their own rows."""
    first = _after(connection, _LAST_SPAN)
    spans = _of_traces(keyed, lambda packed: packed.spans)
    insert_rows(connection, schema.span, [{**row, "span_key": key} for key, row in enumerate(spans, first)])
    documents = [document for _, packed in keyed for document in packed.documents]
    index_spans(connection, list(enumerate(documents, first)))
    insert_rows(connection, schema.message, _of_traces(keyed, lambda packed: _message_rows(packed, text_keys)))
    insert_rows(connection, schema.span_detail, _of_traces(keyed, lambda packed: packed.details))
    insert_rows(connection, schema.log, _of_traces(keyed, lambda packed: packed.logs))
    insert_rows(connection, schema.expected_event, _of_traces(keyed, lambda packed: packed.expected_events))


def _of_traces(keyed: Sequence[_WithKey], rows_of: Callable[[Packed], Iterable[Row]]) -> list[Row]:
    return [{**row, "trace_key": key} for key, packed in keyed for row in rows_of(packed)]


def _message_rows(packed: Packed, text_keys: Mapping[str, int]) -> Iterator[Row]:
    for row in packed.messages:
        content_hash = row["content_hash"]
        plain = {key: value for key, value in row.items() if key != "content_hash"}
        yield {**plain, "content_key": text_keys[content_hash] if content_hash else None}


def _after(connection: Connection, last: Select[tuple[int]]) -> int:
    """The next free key: there is one writer of traces at a time."""
    return int(connection.scalar(last) or 0) + 1


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows of the same columns through the driver: what SQLAlchemy does a row takes longer than SQLite."""
    if rows:
        statement, order = _insert_statement(table, tuple(rows[0]), connection.dialect)
        connection.exec_driver_sql(statement, list(map(itemgetter(*order), rows)) if order else rows)


@lru_cache(maxsize=64)
def _insert_statement(table: Table, names: tuple[str, ...], dialect: Dialect) -> tuple[str, tuple[str, ...]]:
    """The SQL and, where the driver takes parameters by position, their order."""
    compiled = insert(table).compile(dialect=dialect, column_keys=names)
    return str(compiled), tuple(compiled.positiontup or ())


def known_text_keys(connection: Connection, hashes: Iterable[str]) -> dict[str, int]:
    """Text keys by hash (hex), of those that are stored."""
    keys: dict[str, int] = {}
    for some in chunks([bytes.fromhex(hash_) for hash_ in hashes], _KEYS_A_QUERY):
        rows = connection.execute(_TEXT_KEYS, {"hashes": some})
        keys.update((bytes(hash_).hex(), key) for hash_, key in rows)
    return keys
