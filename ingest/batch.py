"""A batch of inputs into the store: each trace whole or not at all, what fails is named, the rest goes on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine

from ingest.readers import read_traces
from ingest.store import Packed, StoreError, pack, write, writing
from ingest.trace import IngestError, Rejected, Trace

_BATCH_S = 0.5  # seconds of reading between two commits
_KNOWN_TEXTS = 200_000  # hashes remembered so that a text is not compressed twice


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
Prepare = Callable[[Trace], Trace]


def ingest(
    engine: Engine,
    paths: Iterable[Path | str],
    *,
    format: str | None = None,
    prepare: Prepare | None = None,
    progress: Progress | None = None,
) -> Report:
    """Read every path into the store. `prepare` (redaction) may change a trace before anything is kept.

    Traces that are there already count as duplicates; nothing of them is written again.
    """
    items = (item for path in paths for item in _read(path, format))
    return store(engine, items, prepare=prepare, progress=progress)


def store(
    engine: Engine,
    items: Iterable[Trace | Rejected],
    *,
    prepare: Prepare | None = None,
    progress: Progress | None = None,
) -> Report:
    """Store traces at hand; as `ingest`."""
    report = Report()
    known: set[str] = set()
    waiting: list[tuple[Trace, Packed]] = []
    since = time.monotonic()
    for item in items:
        if isinstance(item, Rejected):
            report.rejected.append(item)
        else:
            trace = item if prepare is None else prepare(item)
            packed = pack(trace, known_texts=known)
            known.update(key for texts in packed.texts for key, _, _ in texts.texts)
            waiting.append((trace, packed))
        if time.monotonic() - since > _BATCH_S:
            _commit(engine, waiting, report)
            since = time.monotonic()
            if len(known) > _KNOWN_TEXTS:
                known.clear()
            if progress is not None:
                progress(report)
    _commit(engine, waiting, report)
    if progress is not None:
        progress(report)
    return report


def _read(path: Path | str, format: str | None) -> Iterator[Trace | Rejected]:
    try:
        yield from read_traces(path, format=format)
    except IngestError as error:
        yield Rejected(file=str(path), place=error.place, reason=error.reason, remedy=error.remedy)


def _commit(engine: Engine, waiting: list[tuple[Trace, Packed]], report: Report) -> None:
    if not waiting:
        return
    with writing(engine) as connection:
        for trace, packed in waiting:
            try:
                stored = write(connection, packed)
            except StoreError as error:
                report.rejected.append(
                    Rejected(
                        file=trace.source.file,
                        place=trace.source.place,
                        reason=str(error),
                        remedy="ingest it into another workspace, or keep the one that is there",
                    )
                )
                continue
            _count(report, trace, stored.state == "new", packed.source["size"])
    waiting.clear()


def _count(report: Report, trace: Trace, is_new: bool, size: int) -> None:
    report.trace_ids.append(trace.trace_id)
    report.bytes += size
    if not is_new:
        report.duplicates += 1
        return
    report.traces += 1
    report.spans += len(trace.spans)
    for warning in trace.all_warnings:
        report.warnings[warning.split(":", 1)[0]] += 1
        report.warning_texts.append(f"{trace.source.file}: {warning}")
