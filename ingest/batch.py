"""A batch of inputs into the store: each trace whole or not at all, what fails is named, the rest goes on."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DataError, IntegrityError

from ingest.head import rejected
from ingest.readers import read_files, read_traces, units
from ingest.store import Packed, StoreError, pack, write_all, writing
from ingest.store.pack import PackedBytes, pack_bytes
from ingest.trace import IngestError, Rejected, Trace

_BATCH_S = 0.5  # seconds of reading between two commits, at most
_BATCH = 500  # traces between two commits, at most
_UNDER_WAY = 3  # files a worker has before it: enough to never wait, few enough for memory
_KNOWN_TEXTS = 200_000  # hashes remembered so that a text is not compressed twice
_REFUSALS = (DataError, IntegrityError, OverflowError, UnicodeError)
"""What a database or its driver raises for values it does not take, whatever the other traces hold."""


@dataclass(kw_only=True)
class Report:
    """What became of a batch. `warnings` counts by code; `trace_ids` are those new or there already."""

    traces: int = 0
    spans: int = 0
    duplicates: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)
    warning_texts: list[str] = field(default_factory=list)
    trace_ids: list[str] = field(default_factory=list)
    bytes: int = 0


Progress = Callable[[Report], None]
T = TypeVar("T")


def ingest(
    engine: Engine,
    paths: Iterable[Path | str],
    *,
    format: str | None = None,
    redact: bool = False,
    merge: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Read every path into the store; with `redact`, secrets are masked before anything is kept.

    Traces that are there already count as duplicates; nothing of them is written again. `merge` joins the
    spans of one trace over several files of a path (all of which are then held in memory). With more than one
    of `workers`, files are read and compressed in other processes and written in this one; not with `merge`.
    """
    if workers > 1 and not merge:
        return _write(engine, _from_workers(list(paths), format, redact, workers), progress, set())
    items = (item for path in paths for item in _read(path, format, merge))
    return store(engine, items, redact=redact, progress=progress)


def store(
    engine: Engine,
    items: Iterable[Trace | Rejected],
    *,
    redact: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Store traces at hand; as `ingest`."""
    stored: set[str] = set()
    return _write(engine, _ready(_read_ahead(iter(items)), redact, stored), progress, stored)


def _read_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, the next one made by another thread meanwhile: compressing, hashing and SQLite leave it time."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, items, None)
            yield item


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ready:
    """A trace as rows, and what the report says of it."""

    packed: Packed
    file: str
    place: str
    warnings: tuple[str, ...]


def _ready(
    items: Iterable[Trace | Rejected], redact: bool, stored: Container[str] = frozenset()
) -> Iterator[_Ready | Rejected]:
    """Traces as rows; texts that are `stored` (committed, not only read) are not packed again."""
    mask = _redaction() if redact else None
    data, source = b"", pack_bytes(b"")
    for found in items:
        item = found if mask is None else mask(found)
        if isinstance(item, Rejected):
            yield item
            continue
        if item.source.data is not data:  # the traces of a file share its bytes
            data, source = item.source.data, pack_bytes(item.source.data)
        yield _pack(item, stored, source)


def _pack(trace: Trace, stored: Container[str], source: PackedBytes) -> _Ready | Rejected:
    """The trace as rows; one that cannot be written as rows is named, and the rest goes on."""
    file, place = trace.source.file, trace.source.place
    try:
        packed = pack(trace, known_texts=stored, source=source)
    except Exception as error:
        return _unstorable(file, place, error)
    return _Ready(packed=packed, file=file, place=place, warnings=trace.all_warnings)


def _unstorable(file: str, place: str, error: Exception) -> Rejected:
    reason = f"a trace cannot be stored: {type(error).__name__}: {error}"
    return Rejected(file=file, place=place, reason=reason, remedy="report it with this file; the trace is left out")


def _redaction() -> Callable[[Trace | Rejected], Trace | Rejected]:
    from ingest.redact import Redactor  # its detectors take a second to load

    return Redactor().apply


def _write(engine: Engine, items: Iterable[_Ready | Rejected], progress: Progress | None, stored: set[str]) -> Report:
    """Write what comes in batches; `stored` learns the texts of each batch once it is committed."""
    report = Report()
    waiting: list[_Ready] = []
    since = time.monotonic()
    for item in items:
        if isinstance(item, Rejected):
            report.rejected.append(item)
        else:
            waiting.append(item)
        if time.monotonic() - since > _BATCH_S or len(waiting) >= _BATCH:
            _commit(engine, waiting, report, stored)
            since = time.monotonic()
            if progress is not None:
                progress(report)
    _commit(engine, waiting, report, stored)
    if progress is not None:
        progress(report)
    return report


def _from_workers(
    paths: Sequence[Path | str], format: str | None, redact: bool, workers: int
) -> Iterator[_Ready | Rejected]:
    """What other processes read, in the order of the files; a few files a worker are under way at once."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        under_way: deque[tuple[tuple[str, ...], Future[list[_Ready | Rejected]]]] = deque()
        for names in _units(paths):
            if isinstance(names, Rejected):
                yield names
                continue
            try:
                under_way.append((names, pool.submit(_read_unit, names, format, redact)))
            except BrokenProcessPool:
                yield from _died(names)
            while len(under_way) > _UNDER_WAY * workers:
                yield from _result(*under_way.popleft())
        while under_way:
            yield from _result(*under_way.popleft())


def _result(names: tuple[str, ...], future: Future[list[_Ready | Rejected]]) -> Iterator[_Ready | Rejected]:
    try:
        yield from future.result()
    except BrokenProcessPool:
        yield from _died(names)


def _died(names: tuple[str, ...]) -> Iterator[Rejected]:
    for name in names:
        reason = "a process that read files died (out of memory?), and this file with it"
        yield Rejected(file=name, place="", reason=reason, remedy="ingest it again with --workers 1")


def _units(paths: Sequence[Path | str]) -> Iterator[tuple[str, ...] | Rejected]:
    for path in paths:
        try:
            yield from units(path)
        except IngestError as error:
            yield rejected(str(path), error)


def _read_unit(names: Sequence[str], format: str | None, redact: bool) -> list[_Ready | Rejected]:
    return list(_ready(read_files(names, format=format), redact))


def _read(path: Path | str, format: str | None, merge: bool) -> Iterator[Trace | Rejected]:
    try:
        yield from read_traces(path, format=format, merge=merge)
    except IngestError as error:
        yield rejected(str(path), error)


def _commit(engine: Engine, waiting: list[_Ready], report: Report, stored: set[str]) -> None:
    """Write what waits in one transaction; when the database refuses a trace of it, each in its own."""
    try:
        _commit_together(engine, waiting, report, stored)
    except _REFUSALS:
        for ready in waiting:
            try:
                _commit_together(engine, [ready], report, stored)
            except _REFUSALS as error:
                report.rejected.append(_unstorable(ready.file, ready.place, error))
    waiting.clear()


def _commit_together(engine: Engine, batch: Sequence[_Ready], report: Report, stored: set[str]) -> None:
    if not batch:
        return
    with writing(engine) as connection:
        outcomes = write_all(connection, [ready.packed for ready in batch])
    if len(stored) > _KNOWN_TEXTS:
        stored.clear()
    for ready, outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, StoreError):
            remedy = "ingest it into another workspace, or keep the one that is there"
            report.rejected.append(Rejected(file=ready.file, place=ready.place, reason=str(outcome), remedy=remedy))
            continue
        _count(report, ready, is_new=outcome.state == "new")
        if outcome.state == "new":
            stored.update(key for texts in ready.packed.texts for key, _, _ in texts.texts)


def _count(report: Report, ready: _Ready, *, is_new: bool) -> None:
    report.trace_ids.append(ready.packed.trace_id)
    report.bytes += ready.packed.source["size"]
    if not is_new:
        report.duplicates += 1
        return
    report.traces += 1
    report.spans += len(ready.packed.spans)
    for warning in ready.warnings:
        report.warnings[warning.split(":", 1)[0]] += 1
        report.warning_texts.append(f"{ready.file}: {warning}")
