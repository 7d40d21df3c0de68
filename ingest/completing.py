"""An execution that is stored in part and ingested again with more of its files: both become one trace."""

from __future__ import annotations

from sqlalchemy import Connection, func, inspect, select

from tracejury.ingest.pack import Packed, pack
from tracejury.ingest.readers import completed
from tracejury.ingest.store import StoreError, load, load_source, schema, write
from tracejury.ingest.texts import decompress
from tracejury.ingest.trace import Source, Trace

_OF_TRACES = frozenset({"trace", "inbox"})
_MASKED = ("redacted:", "source_not_kept:")


def complete_stored(connection: Connection, new: Packed) -> bool:
    """Put an execution's files together with those stored of it; False where they add nothing. Run it inside `writing`.

    Raises `StoreError` or `IngestError` where they cannot be joined: other content, masked texts, or spans that
    would change under labels and verdicts which name them.
    """
    stored = load(connection, new.trace_id)
    if any(warning.startswith(_MASKED) for warning in stored.warnings):
        raise StoreError("its texts were masked when it was ingested, so its files cannot be joined")
    if stored.format != new.trace["format"] or new.long is not None:
        raise StoreError("its format is another one")
    source = Source(file=new.source["file"], place=new.source["place"], data=decompress(new.source["body"]))
    trace = completed(stored.format, load_source(connection, new.trace_id), source)
    if trace is None:
        return False
    _refuse_to_move_labels(connection, stored, trace)
    write(connection, pack(trace), replaces=pack(stored))
    return True


def _refuse_to_move_labels(connection: Connection, stored: Trace, trace: Trace) -> None:
    """Raise `StoreError` where spans would go that something in the workspace may name."""
    gone = {span.span_id for span in stored.spans} - {span.span_id for span in trace.spans}
    users = _users(connection, trace.trace_id) if gone else []
    if users:
        reason = (
            f"{len(gone)} of its spans would change, although {', '.join(users)} of this workspace refer to the trace"
        )
        raise StoreError(f"{reason}; it stays unchanged")


def _users(connection: Connection, trace_id: str) -> list[str]:
    """The tables of the workspace, those of traces left out, that hold rows of this trace."""
    inspector = inspect(connection)
    names = set(inspector.get_table_names()) - _OF_TRACES
    tables = [table for name, table in sorted(schema.metadata.tables.items()) if name in names]
    return [
        table.name
        for table in tables
        if "trace_id" in table.c
        and connection.scalar(select(func.count()).select_from(table).where(table.c.trace_id == trace_id))
    ]
