"""Traces made ready to be written: as rows, or named when they cannot be. Imports no database: workers do this too."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from tracejury.ingest.evaluations import has_evaluations
from tracejury.ingest.gaps import GAPS, Gaps, find_gaps
from tracejury.ingest.long_file import LongFile
from tracejury.ingest.pack import Packed, PackedBytes, pack, pack_bytes, pack_long
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Rejected, Source, Trace

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """A trace as rows, and what the report says of it."""

    packed: Packed
    file: str
    place: str
    warnings: tuple[str, ...]
    gaps: Gaps
    is_evaluated: bool = False
    """Whether the trace records what evaluators said of it."""


def made_ready(
    items: Iterable[Trace | Rejected], *, redact: bool = False, stored: Container[str] = frozenset()
) -> Iterator[Ready | Rejected]:
    """Traces as rows; texts that are `stored` (committed, not only read) are not packed again."""
    mask = redaction() if redact else None
    last, packed_source = Source(file=""), _kept(Source(file=""))
    for unmasked in items:
        item = unmasked if mask is None else mask(unmasked)
        if isinstance(item, Rejected):
            yield item
            continue
        source = item.source
        # the traces of a file share its bytes
        if source.data is not last.data or (source.path, source.size) != (last.path, last.size):
            last, packed_source = source, _kept(source)
        yield (
            rejected(source.file, packed_source)
            if isinstance(packed_source, IngestError)
            else _packed(item, stored, packed_source)
        )


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, the next one made by another thread meanwhile: compressing, hashing and SQLite leave it time."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, items, None)
            yield item


def unstorable(file: str, place: str, error: Exception) -> Rejected:
    """What the report says of a trace that cannot be written as rows, or that the database refuses."""
    reason = f"a trace cannot be stored: {type(error).__name__}: {error}"
    return Rejected(file=file, place=place, reason=reason, remedy="report it with this file; the trace is left out")


def _kept(source: Source) -> PackedBytes | IngestError:
    """The source's bytes as they are kept; of a long file that is gone by now, the error that says so."""
    try:
        return pack_long(LongFile(source.path, source.size)) if source.path else pack_bytes(source.data)
    except IngestError as error:
        return error


def _packed(trace: Trace, stored: Container[str], source: PackedBytes) -> Ready | Rejected:
    """The trace as rows; one that cannot be written as rows is named, and the rest goes on."""
    file, place = trace.source.file, trace.source.place
    try:
        packed = pack(trace, known_texts=stored, source=source)
    except Exception as error:
        return unstorable(file, place, error)
    warnings = tuple(warning for warning in trace.all_warnings if warning.partition(":")[0] not in GAPS)
    gaps = find_gaps(trace.spans, trace.messages, format=trace.format)
    is_evaluated = has_evaluations(trace)
    return Ready(packed=packed, file=file, place=place, warnings=warnings, gaps=gaps, is_evaluated=is_evaluated)


def redaction() -> Callable[[Trace | Rejected], Trace | Rejected]:
    """Give what masks the secrets of a trace."""
    from tracejury.ingest.redact import Redactor  # its detectors take a second to load

    return Redactor().apply
