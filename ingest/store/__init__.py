"""The one database: traces written once, text stored once, source bytes kept."""

from tracejury.ingest.pack import Packed, content_digest, pack
from tracejury.ingest.store.engine import open_engine, reading, writing
from tracejury.ingest.store.load import load, load_source, load_span, source_blocks, source_of, trace_ids
from tracejury.ingest.store.schema import metadata
from tracejury.ingest.store.search import Hit, search
from tracejury.ingest.store.write import Stored, StoreError, remove, write, write_all

__all__ = [
    "Hit",
    "Packed",
    "StoreError",
    "Stored",
    "content_digest",
    "load",
    "load_source",
    "load_span",
    "metadata",
    "open_engine",
    "pack",
    "reading",
    "remove",
    "search",
    "source_blocks",
    "source_of",
    "trace_ids",
    "write",
    "write_all",
    "writing",
]
