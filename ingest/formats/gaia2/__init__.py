"""GAIA2 runs of Meta's ARE: gui and hf files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from ingest.formats.gaia2.build import FORMAT, export_trace
from ingest.formats.gaia2.export import read_export
from ingest.head import Head, rejected
from ingest.parse import parse_json
from ingest.trace import IngestError, Rejected, Source, Trace

NAME = FORMAT


def sniff(head: Head) -> bool:
    """An hf or gui file, a data-set scenario: their first keys."""
    keys = head.keys
    return "world_logs" in keys or "completed_events" in keys or {"definition", "time_increment_in_seconds"} <= keys


def read(source: Source) -> Iterator[Trace | Rejected]:
    try:
        export = read_export(parse_json(source.data))
        yield export_trace(export, trace_id=PurePath(source.file).stem, source=source)
    except IngestError as error:
        yield rejected(source.file, error)
