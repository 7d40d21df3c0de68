"""What comes late of a trace that is stored: spans and log records in another file complete it, under its own id.

People's labels and judges' verdicts name spans by id and messages by position. No span that is stored goes away, and
messages keep their positions: labels stay where they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, insert, select

from tracejury.ingest.formats import joined
from tracejury.ingest.formats.otel import together
from tracejury.ingest.messages import numbered_as
from tracejury.ingest.pack import PackedBytes, content_digest, pack, pack_bytes
from tracejury.ingest.readers import read_bytes, reader_named
from tracejury.ingest.store import StoreError, load, load_source, schema, write
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.texts import compress, decompress
from tracejury.ingest.trace import Source, Trace
from tracejury.ingest.words import counted

MOST_BYTES = 256 * 1024**2
"""Files that are larger together are not read again to be joined."""


def http_file(trace_id: str) -> str:
    """How the file of a trace is called all of which came over OTLP/HTTP."""
    return f"otlp-http/{trace_id}.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What a late file did to a stored trace: nothing (it holds no more), or spans and messages that it added."""

    trace_id: str
    file: str
    spans: int = 0
    messages: int = 0
    changed: bool = False

    def summary(self) -> str:
        """One line for the report."""
        parts = [counted(self.spans, "span")] if self.spans else []
        parts += [counted(self.messages, "message")] if self.messages else []
        return (
            f"trace {self.trace_id} was stored earlier and is now completed by {self.file}: "
            f"{' and '.join(parts) or 'more'} added"
        )


def complete(
    connection: Connection, trace_ids: Sequence[str], late: Sequence[Source], *, format: str
) -> dict[str, Completion | StoreError]:
    """Join what the late sources hold of these traces, all of which were stored from one source.

    Run it inside `writing(engine)`. An error stands in the place of a trace that cannot be joined: where the parts
    contradict each other, or the bytes it came from cannot be read again with the late ones.
    """
    try:
        again = _read_again(connection, trace_ids, late, format)
    except StoreError as error:
        return dict.fromkeys(trace_ids, error)
    packed: dict[int, PackedBytes] = {}
    return {
        trace_id: _replaced(connection, trace_id, again.get(trace_id), late[-1].file, packed) for trace_id in trace_ids
    }


def complete_from_inbox(connection: Connection, trace_ids: Iterable[str]) -> list[Completion | StoreError]:
    """Join to stored traces what came of them before they did: log records that were kept until now."""
    outcomes: list[Completion | StoreError] = []
    for trace_id, (file, _) in _stored(connection, trace_ids).items():
        if file != http_file(trace_id) and (waiting := inbox_bodies(connection, trace_id)):
            outcomes.append(complete_by_request(connection, trace_id, waiting, file=f"log records of {trace_id}"))
    return outcomes


def complete_by_request(
    connection: Connection, trace_id: str, bodies: Sequence[bytes], *, file: str
) -> Completion | StoreError:
    """Join requests of OTLP/JSON to a stored trace; those that it holds already are left out."""
    stored = load_source(connection, trace_id).data
    new = b"\n".join(body for body in bodies if body not in stored)
    if not new:
        return Completion(trace_id=trace_id, file=file)
    return complete(connection, [trace_id], [Source(file=file, data=new)], format=joined.NAME)[trace_id]


def keep(connection: Connection, trace_id: str, body: bytes, *, has_root: bool) -> None:
    """Keep a request of one trace until the trace is there; what is kept already is kept once."""
    inbox, packed = schema.inbox, compress(body)
    same = select(inbox.c.inbox_key).where(inbox.c.trace_id == trace_id, inbox.c.body == packed)
    if connection.scalar(same.limit(1)) is None:
        row = {"trace_id": trace_id, "body": packed, "has_root": int(has_root), "received_at": time.time_ns() // 1000}
        connection.execute(insert(inbox).values(**row))


def inbox_bodies(connection: Connection, trace_id: str) -> list[bytes]:
    """The requests that were kept of a trace, in the order in which they came."""
    query = select(schema.inbox.c.body).where(schema.inbox.c.trace_id == trace_id).order_by(schema.inbox.c.inbox_key)
    return [decompress(body) for body in connection.scalars(query)]


def take_logs(connection: Connection, trace_id: str, body: bytes, file: str) -> Completion | StoreError | None:
    """Join log records to their stored trace; None where it is not stored: they are kept for it."""
    if trace_id not in _stored(connection, [trace_id]):
        keep(connection, trace_id, body, has_root=False)
        return None
    return complete_by_request(connection, trace_id, [body], file=file)


def _stored(connection: Connection, trace_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """File and format of those of the traces that are stored."""
    trace = schema.trace.c
    query = select(trace.trace_id, trace.file, trace.format).where(is_one_of(trace.trace_id, trace_ids))
    return {row.trace_id: (row.file, row.format) for row in connection.execute(query)}


def _read_again(
    connection: Connection, trace_ids: Sequence[str], late: Sequence[Source], format: str
) -> Mapping[str, Trace]:
    """These traces of the stored source and the late ones together, by id."""
    trace_id, wanted = trace_ids[0], set(trace_ids)
    stored, own = load_source(connection, trace_id), _stored(connection, [trace_id])[trace_id][1]
    shared = _shared_format(own, format)
    whole = together((stored, *late))
    known = f"trace {trace_id} is in the workspace already (from {stored.file}) with other content"
    if shared is None:
        raise StoreError(f"{known}, in the format {own}, which {format} cannot complete")
    if not stored.data or not whole.data or len(whole.data) > MOST_BYTES:
        raise StoreError(f"{known}; its source cannot be read together with this one")
    del stored  # its bytes stand in the whole again
    read = read_bytes(whole.data, file=whole.file, format=shared)
    return {item.trace_id: item for item in read if isinstance(item, Trace) and item.trace_id in wanted}


def may_complete(own: str, late: str) -> bool:
    """Whether a trace of format `late` can complete one that is stored in the format `own`."""
    return _shared_format(own, late) is not None or (own == late and hasattr(reader_named(own), "complete"))


def _shared_format(own: str, late: str) -> str | None:
    """The format that reads both."""
    if own == late and own != joined.NAME:
        return own if getattr(reader_named(own), "MERGES", False) else None
    return joined.NAME if {own, late} <= joined.FORMATS else None


def _replaced(
    connection: Connection, trace_id: str, whole: Trace | None, file: str, packed: dict[int, PackedBytes]
) -> Completion | StoreError:
    """Put the whole trace in the place of the stored one, unless that says all or something else.

    `packed` holds what was compressed: the traces of a source share its bytes, known by their identity.
    """
    old = load(connection, trace_id)
    known = f"trace {trace_id} is in the workspace already (from {old.source.file}) with other content"
    if whole is None:
        return StoreError(known)
    whole = numbered_as(whole, old.messages)
    before, after = ({span.span_id for span in trace.spans} for trace in (old, whole))
    renamed = {span.span_id for span in whole.spans if "tracejury.span_id" in span.attributes} - before
    if renamed or not before <= after:
        span_id = next(iter(sorted(renamed or before - after)))
        return StoreError(f"{known}: span {span_id.partition('#')[0]} differs")
    if content_digest(whole) == content_digest(old):
        return Completion(trace_id=trace_id, file=file)
    added = Completion(
        trace_id=trace_id, file=file, spans=len(after - before), changed=True,
        messages=max(0, len(whole.messages) - len(old.messages)),
    )  # fmt: skip
    whole = replace(whole, warnings=(*whole.warnings, f"completed_later: {added.summary()}"))
    data = whole.source.data
    if id(data) not in packed:
        packed[id(data)] = pack_bytes(data)
    write(connection, pack(whole, source=packed[id(data)]), replaces=pack(old))
    return added
