"""A batch of inputs into the store: each trace whole or not at all, what fails is named, the rest goes on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DataError, IntegrityError

from tracejury.ingest.readers import read_traces
from tracejury.ingest.ready import Ready, made_ready, read_ahead, unstorable
from tracejury.ingest.sniff import rejected
from tracejury.ingest.store import StoreError, write_all, writing
from tracejury.ingest.trace import IngestError, Rejected, Trace
from tracejury.ingest.workers import ready_from

_BATCH_S = 0.5  # seconds of reading between two commits, at most
_BATCH = 500  # traces between two commits, at most
_KNOWN_TEXTS = 200_000  # hashes remembered so that a text is not compressed twice
_REFUSALS = (DataError, IntegrityError, OverflowError, UnicodeError)
"""What a database or its driver raises for values it does not take, whatever the other traces hold."""


@dataclass(kw_only=True)
class Report:
    """What became of a batch. `warnings` counts by code; `trace_ids` are those new or there already.

    `replaced` are the ids of traces (new ones by their count) that took the place of other content.
    """

    traces: int = 0
    spans: int = 0
    duplicates: int = 0
    replaced: list[str] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)
    warning_texts: list[str] = field(default_factory=list)
    trace_ids: list[str] = field(default_factory=list)
    bytes: int = 0


Progress = Callable[[Report], None]


def ingest(
    engine: Engine,
    paths: Iterable[Path | str],
    *,
    format: str | None = None,
    redact: bool = False,
    merge: bool = False,
    replace: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Read every path into the store; with `redact`, secrets are masked before anything is kept.

    Traces that are there already count as duplicates; nothing of them is written again. A trace of the same id
    but other content is refused, unless a damaged file gave it or `replace` is set. `merge` joins the
    spans of one trace over several files of a path (all of which are then held in memory). With more than one
    of `workers`, most files are read and compressed in other processes, where there are enough of them to pay
    for the start (see `ingest.workers`), and written in this one; not with `merge`.
    """
    if workers > 1 and not merge:
        stored: set[str] = set()
        shared = ready_from(list(paths), format=format, redact=redact, workers=workers, stored=stored)
        return _write(engine, shared, progress, stored, replace=replace)
    items = (item for path in paths for item in _read(path, format, merge))
    return store(engine, items, redact=redact, replace=replace, progress=progress)


def store(
    engine: Engine,
    items: Iterable[Trace | Rejected],
    *,
    redact: bool = False,
    replace: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Store traces at hand; as `ingest`."""
    stored: set[str] = set()
    ready = made_ready(read_ahead(iter(items)), redact=redact, stored=stored)
    return _write(engine, ready, progress, stored, replace=replace)


def _write(
    engine: Engine,
    items: Iterable[Ready | Rejected],
    progress: Progress | None,
    stored: set[str],
    *,
    replace: bool = False,
) -> Report:
    """Write what comes in batches; `stored` learns the texts of each batch once it is committed."""
    report = Report()
    waiting: list[Ready] = []
    since = time.monotonic()
    for item in items:
        if isinstance(item, Rejected):
            report.rejected.append(item)
        else:
            waiting.append(item)
        if time.monotonic() - since > _BATCH_S or len(waiting) >= _BATCH:
            _commit(engine, waiting, report, stored, replace=replace)
            since = time.monotonic()
            if progress is not None:
                progress(report)
    _commit(engine, waiting, report, stored, replace=replace)
    if progress is not None:
        progress(report)
    return report


def _read(path: Path | str, format: str | None, merge: bool) -> Iterator[Trace | Rejected]:
    try:
        yield from read_traces(path, format=format, merge=merge)
    except IngestError as error:
        yield rejected(str(path), error)


def _commit(engine: Engine, waiting: list[Ready], report: Report, stored: set[str], *, replace: bool) -> None:
    """Write what waits in one transaction; when the database refuses a trace of it, each in its own.

    A long file that changed since it was read fails with all its traces that wait: its bytes cannot be kept.
    """
    try:
        _commit_together(engine, waiting, report, stored, replace=replace)
    except IngestError as error:
        files = list(dict.fromkeys(ready.packed.long for ready in waiting))
        if len(files) > 1:
            for file in files:
                some = [ready for ready in waiting if ready.packed.long == file]
                _commit(engine, some, report, stored, replace=replace)
        else:
            report.rejected += [
                Rejected(file=one.file, place=one.place, reason=error.reason, remedy=error.remedy) for one in waiting
            ]
    except _REFUSALS as error:
        if len(waiting) > 1:
            for ready in waiting:
                _commit(engine, [ready], report, stored, replace=replace)
        else:
            report.rejected += [unstorable(ready.file, ready.place, error) for ready in waiting]
    waiting.clear()


def _commit_together(
    engine: Engine, batch: Sequence[Ready], report: Report, stored: set[str], *, replace: bool
) -> None:
    if not batch:
        return
    with writing(engine) as connection:
        outcomes = write_all(connection, [ready.packed for ready in batch], replace=replace)
    if len(stored) > _KNOWN_TEXTS:
        stored.clear()
    for ready, outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, StoreError):
            remedy = "keep the one that is there, or `tracejury traces replace FILE`"
            report.rejected.append(Rejected(file=ready.file, place=ready.place, reason=str(outcome), remedy=remedy))
            continue
        _count(report, ready, is_new=outcome.state != "duplicate")
        report.replaced += [outcome.trace_id] if outcome.state == "replaced" else []
        if outcome.state == "new":
            stored.update(key for texts in ready.packed.texts for key, _, _ in texts.texts)


def _count(report: Report, ready: Ready, *, is_new: bool) -> None:
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
