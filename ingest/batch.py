"""A batch of inputs into the store: each trace whole or not at all, what fails is named, the rest goes on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, IntegrityError

from tracejury.ingest.completing import complete_stored
from tracejury.ingest.gaps import Gaps
from tracejury.ingest.late import Completion, complete, complete_from_inbox, take_logs
from tracejury.ingest.readers import read_together, read_traces
from tracejury.ingest.ready import Ready, made_ready, read_ahead, unstorable
from tracejury.ingest.sniff import rejected
from tracejury.ingest.store import TRACES, Stored, StoreError, source_key_of, write_all, write_transaction
from tracejury.ingest.texts import decompress
from tracejury.ingest.trace import IngestError, LooseLogs, Rejected, Source, Trace
from tracejury.ingest.workers import ready_from

_BATCH_S = 0.5  # seconds of reading between two commits, at most
_BATCH = 500  # traces between two commits, at most
_KNOWN_TEXTS = 200_000  # hashes remembered so that a text is not compressed twice
_REFUSALS = (DataError, IntegrityError, OverflowError, UnicodeError)
"""What a database or its driver raises for values it does not take, whatever the other traces hold."""


@dataclass(kw_only=True)
class Report:
    """What became of a batch. `warnings` counts by code; `trace_ids` are those new, completed or there already,
    `evaluated` those among them that record what evaluators said.

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
    evaluated: list[str] = field(default_factory=list)
    completed: list[str] = field(default_factory=list)
    """What late files added to traces that were stored, one line per trace."""
    waiting: list[str] = field(default_factory=list)
    """Log records that are kept until the spans of their trace come, one line per file."""
    bytes: int = 0
    gaps: dict[str, Gaps] = field(default_factory=dict)
    """What could not be read of the new traces of each file."""

    def gap_lines(self) -> list[str]:
        """What could not be read, one line for each file and kind of gap."""
        return [f"{file}: {warning}" for file, gaps in self.gaps.items() for warning in gaps.warnings()]


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

    Traces that are there already count as duplicates; nothing of them is written again. A GAIA2 execution that is there
    in part (its hf file without the lite file) is completed, and so is a trace of which more comes. Other content of
    the same id is refused, unless a damaged file gave what is there or `replace` is set. `merge` joins the spans of one
    trace over several files of a path (all of which are then held in memory). With more than one of `workers`, most
    files are read and compressed in other processes, where there are enough of them to pay for the start (see
    `ingest.workers`), and written in this one; not with `merge`.
    """
    if workers > 1 and not merge:
        stored: set[str] = set()
        shared = ready_from(list(paths), format=format, redact=redact, workers=workers, stored=stored)
        return _write(engine, shared, progress, stored, replace=replace)
    items = _together(paths, format) if merge else (item for path in paths for item in _read(path, format))
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
        if isinstance(item, LooseLogs):
            _commit(engine, waiting, report, stored, replace=replace)
            _take_logs(engine, item, report)
        elif isinstance(item, Rejected):
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


def _together(paths: Iterable[Path | str], format: str | None) -> Iterator[Trace | Rejected]:
    try:
        yield from read_together(paths, format=format)
    except IngestError as error:
        yield rejected(" + ".join(map(str, paths)), error)


def _read(path: Path | str, format: str | None) -> Iterator[Trace | Rejected]:
    try:
        yield from read_traces(path, format=format)
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
    with write_transaction(engine, TRACES) as connection:
        outcomes = write_all(connection, [ready.packed for ready in batch], replace=replace)
        late = _completed(connection, batch, outcomes)
        new = [one.trace_id for one in outcomes if isinstance(one, Stored) and one.state == "new"]
        from_inbox = complete_from_inbox(connection, new)
    if len(stored) > _KNOWN_TEXTS:
        stored.clear()
    for ready, outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, StoreError):
            _count_late(engine, report, ready, late[ready.packed.trace_id, ready.packed.source["digest"]])
            continue
        _count(report, ready, is_new=outcome.state != "duplicate")
        report.replaced += [outcome.trace_id] if outcome.state == "replaced" else []
        if outcome.state == "new":
            stored.update(key for texts in ready.packed.texts for key, _, _ in texts.texts)
    report.completed += [one.summary() for one in from_inbox if isinstance(one, Completion) and one.changed]


OTHER_CONTENT = (
    "keep the stored trace, replace it with `tracejury traces replace` (labels stay), or ingest "
    "this one into another workspace"
)
"""What to do about a trace whose id is stored with other content that it does not complete."""

_ById = dict[tuple[str, str], Completion | StoreError]
"""What became of late traces, by id and the digest of the source that they came late from."""


def _completed(connection: Connection, batch: Sequence[Ready], outcomes: Sequence[Stored | StoreError]) -> _ById:
    """Join the traces that are stored with other content to what is stored, the files of several once."""
    pairs: dict[tuple[int, str], list[Ready]] = {}
    for ready, outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, StoreError):
            source_key = source_key_of(connection, ready.packed.trace_id)
            pairs.setdefault((source_key, ready.packed.source["digest"]), []).append(ready)
    late: _ById = {}
    for (_, digest), readies in pairs.items():
        first = readies[0].packed
        data = b"" if first.long is not None else decompress(first.source["body"])
        source = Source(file=first.source["file"], data=data)
        ids = list(dict.fromkeys(ready.packed.trace_id for ready in readies))
        outcome_of = complete(connection, ids, [source], format=first.trace["format"])
        late.update({(trace_id, digest): outcome for trace_id, outcome in outcome_of.items()})
    return late


def _count_late(engine: Engine, report: Report, ready: Ready, outcome: Completion | StoreError) -> None:
    if isinstance(outcome, StoreError):
        _complete(engine, ready, outcome, report)
        return
    report.trace_ids.append(ready.packed.trace_id)
    report.bytes += ready.packed.source["size"]
    if outcome.changed:
        report.completed.append(outcome.summary())
        report.spans += outcome.spans
    else:
        report.duplicates += 1


def _take_logs(engine: Engine, logs: LooseLogs, report: Report) -> None:
    """Complete stored traces by log records, and keep those of others until their spans come."""
    rest = []
    with write_transaction(engine, TRACES) as connection:
        for trace_id, body in logs.requests:
            outcome = take_logs(connection, trace_id, body, logs.file)
            if outcome is None:
                rest.append(trace_id)
            elif isinstance(outcome, StoreError):
                rejection = Rejected(file=logs.file, place=logs.place, reason=str(outcome), remedy=logs.remedy)
                report.rejected.append(rejection)
            elif outcome.changed:
                report.completed.append(outcome.summary())
                report.trace_ids.append(trace_id)
            else:
                report.duplicates += 1
    if rest:
        named = ", ".join(rest[:3]) + (f" and {len(rest) - 3} more" if len(rest) > 3 else "")
        report.waiting.append(f"{logs.file}: log records are kept until the spans of trace {named} arrive")


def _complete(engine: Engine, ready: Ready, conflict: StoreError, report: Report) -> None:
    """Join a trace with what is stored of the same execution; where that cannot be, name the conflict."""
    try:
        with write_transaction(engine, TRACES) as connection:
            joined = complete_stored(connection, ready.packed)
    except (StoreError, IngestError) as error:
        remedy = getattr(error, "remedy", "") or OTHER_CONTENT
        reason = f"{conflict}; {error}"
        report.rejected.append(Rejected(file=ready.file, place=ready.place, reason=reason, remedy=remedy))
        return
    report.trace_ids.append(ready.packed.trace_id)
    report.bytes += ready.packed.source["size"]
    if joined:
        report.completed.append(
            f"trace {ready.packed.trace_id} was stored earlier and is now completed by {ready.file}"
        )
    else:
        report.duplicates += 1


def _count(report: Report, ready: Ready, *, is_new: bool) -> None:
    report.trace_ids.append(ready.packed.trace_id)
    report.bytes += ready.packed.source["size"]
    if ready.is_evaluated:
        report.evaluated.append(ready.packed.trace_id)
    if not is_new:
        report.duplicates += 1
        return
    report.traces += 1
    report.spans += len(ready.packed.spans)
    report.gaps[ready.file] = report.gaps.get(ready.file, Gaps()) + ready.gaps
    report.warnings.update(warning.partition(":")[0] for warning in ready.gaps.warnings())
    for warning in ready.warnings:
        report.warnings[warning.split(":", 1)[0]] += 1
        report.warning_texts.append(f"{ready.file}: {warning}")
