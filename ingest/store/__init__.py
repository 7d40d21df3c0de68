"""The one database: traces written once, text stored once, source bytes kept."""

from tracejury.ingest.pack import Packed, content_digest, pack
from tracejury.ingest.store.engine import TRACES, open_engine, read_transaction, write_transaction
from tracejury.ingest.store.load import (
    load,
    load_source,
    load_span,
    marked_traces,
    source_blocks,
    source_key_of,
    source_of,
    trace_ids,
)
from tracejury.ingest.store.schema import metadata
from tracejury.ingest.store.search import Hit, search
from tracejury.ingest.store.write import Stored, StoreError, remove, write, write_all

__all__ = [
    "TRACES",
    "Hit",
    "Packed",
    "StoreError",
    "Stored",
    "content_digest",
    "load",
    "load_source",
    "load_span",
    "marked_traces",
    "metadata",
    "open_engine",
    "pack",
    "read_transaction",
    "remove",
    "search",
    "source_blocks",
    "source_key_of",
    "source_of",
    "trace_ids",
    "write",
    "write_all",
    "write_transaction",
]
