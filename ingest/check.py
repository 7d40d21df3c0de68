"""Is the store whole: kept source bytes read again and compared, references followed, the file itself checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Connection, Engine, RowMapping, func, select, update
from sqlalchemy.exc import DatabaseError

from tracejury.ingest.conventions.mapped import Map, maps_of_trace, using
from tracejury.ingest.long_file import LONG_BYTES
from tracejury.ingest.messages import numbered_as
from tracejury.ingest.pack import summary
from tracejury.ingest.readers import read_bytes, read_files, reads_long
from tracejury.ingest.store import (
    TRACES,
    content_digest,
    load,
    pack,
    read_transaction,
    schema,
    source_blocks,
    source_of,
    trace_ids,
    write_transaction,
)
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.store.search import index_spans
from tracejury.ingest.trace import Rejected, Source, Trace

Progress = Callable[[int, int], None]
_REPAIR = "tracejury verify --repair"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something that is not as it should be: where, what, and what can be done."""

    subject: str
    problem: str
    remedy: str


def check_store(engine: Engine, *, repair: bool = False, progress: Progress | None = None) -> list[Problem]:
    """Every problem of the store; with `repair`, summaries and the search index are made again from the spans."""
    problems: list[Problem] = []
    with read_transaction(engine) as connection:
        problems += _check_file(connection)
    try:
        return [*problems, *_check_traces(engine, repair=repair, progress=progress)]
    except DatabaseError as error:  # pages that cannot be read: what stands in them is not known
        return [*problems, damaged(error)]


def damaged(error: DatabaseError) -> Problem:
    """What is said of a database whose pages cannot be read."""
    problem = f"cannot be read any further: {error.orig}"
    return Problem(subject="database", problem=problem, remedy="`tracejury restore` a backup")


def _check_traces(engine: Engine, *, repair: bool, progress: Progress | None) -> list[Problem]:
    problems: list[Problem] = []
    stale: dict[str, Problem] = {}
    with read_transaction(engine) as connection:
        sources = _trace_ids_by_source(connection)
    checked, total = 0, sum(map(len, sources))
    for ids in sources:
        with read_transaction(engine) as connection:
            problems += _check_source(connection, ids, stale)
        checked += len(ids)
        if progress is not None:
            progress(checked, total)
    with read_transaction(engine) as connection:
        index = list(_check_search(connection))
    summaries = list(stale.values())
    if repair:
        summaries = _repaired(summaries, "the summary", lambda: _renew_summaries(engine, list(stale)))
        index = _repaired(index, "the index", lambda: _renew_search(engine))
    return problems + summaries + index


def _repaired(problems: list[Problem], what: str, repair: Callable[[], None]) -> list[Problem]:
    if problems:
        repair()
    return [replace(one, remedy=f"repaired: {what} was rebuilt") for one in problems]


def _check_file(connection: Connection) -> Iterator[Problem]:
    if connection.dialect.name != "sqlite":
        return
    remedy = "`tracejury restore` a backup"
    try:
        for (problem,) in connection.exec_driver_sql("PRAGMA integrity_check"):
            if problem != "ok":
                yield Problem(subject="database", problem=str(problem), remedy=remedy)
        for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
            problem = f"row {row[1]} of {row[0]} refers to a row of {row[2]} that does not exist"
            yield Problem(subject="database", problem=problem, remedy=remedy)
    except DatabaseError as error:
        yield damaged(error)


def _trace_ids_by_source(connection: Connection) -> list[list[str]]:
    """Trace ids in order of ingestion, those that were read from the same bytes together."""
    by_source: dict[int, list[str]] = {}
    trace = schema.trace.c
    for source_key, trace_id in connection.execute(select(trace.source_key, trace.trace_id).order_by(trace.trace_key)):
        by_source.setdefault(source_key, []).append(trace_id)
    return list(by_source.values())


def _check_source(connection: Connection, trace_ids: Sequence[str], stale: dict[str, Problem]) -> Iterator[Problem]:
    """The traces of one source: each as it is stored, and all together as the kept bytes give them now.

    One that was removed meanwhile is no problem.
    """
    by_format: dict[str, dict[str, str]] = {}
    maps: list[Map] = []
    for trace_id in _present(connection, trace_ids):
        try:
            stored = load(connection, trace_id)
        except Exception as error:
            yield _unreadable(trace_id, error)
            continue
        row = _row(connection, trace_id)
        yield from _check_content(stored, row, stale)
        maps += maps_of_trace(stored)
        if not _is_redacted(stored):  # else the bytes were masked as text, the trace as values: they may read apart
            by_format.setdefault(stored.format, {})[trace_id] = row["digest"]
    for format, digests in by_format.items():
        with using(maps):
            problems = list(_check_bytes(connection, format, digests))
        yield from problems


def _check_content(stored: Trace, row: RowMapping, stale: dict[str, Problem]) -> Iterator[Problem]:
    """The spans against the digest of what was ingested; where that fits, `stale` notes a summary that does not."""
    if content_digest(stored) != row["digest"]:
        yield Problem(
            subject=f"trace {stored.trace_id}",
            problem="what is stored differs from what was ingested",
            remedy="ingest its file into a new workspace, or restore a backup",
        )
        return
    right = summary(stored)
    if wrong := [f"{key} is {row[key]!r}, but {right[key]!r} by its spans" for key in right if row[key] != right[key]]:
        problem = f"its summary is wrong: {'; '.join(wrong)}"
        stale[stored.trace_id] = Problem(subject=f"trace {stored.trace_id}", problem=problem, remedy=_REPAIR)


def _check_bytes(connection: Connection, format: str, digests: Mapping[str, str]) -> Iterator[Problem]:
    """The kept bytes of some traces, read again: do they still give each with its digest?"""
    try:
        again = _digests_of_bytes(connection, next(iter(digests)), format)
    except Exception as error:
        for trace_id in digests:
            yield _unreadable(trace_id, error)
        return
    if again is None:
        return
    for trace_id, digest in digests.items():
        if trace_id not in again:
            problem = "its stored source, read again, no longer holds this trace"
            yield Problem(subject=f"trace {trace_id}", problem=problem, remedy="report it with the file")
        elif again[trace_id] != digest:
            problem = "its stored source, read again, gives another trace (another version of the reader?)"
            remedy = "compare after ingesting into a new workspace"
            yield Problem(subject=f"trace {trace_id}", problem=problem, remedy=remedy)


def _digests_of_bytes(connection: Connection, trace_id: str, format: str) -> dict[str, str] | None:
    """The digest of each trace that the kept bytes of this one give; None where no bytes are kept."""
    source = source_of(connection, trace_id)
    if not source.size:
        return None
    again: dict[str, str] = {}
    for item in _read_again(connection, trace_id, source, format):
        if not isinstance(item, Rejected):
            again.setdefault(item.trace_id, content_digest(_as_stored(connection, item)))
    return again


def _as_stored(connection: Connection, trace: Trace) -> Trace:
    """The trace with its messages numbered as they are stored: one that grew keeps the positions that it had."""
    try:
        return numbered_as(trace, load(connection, trace.trace_id).messages)
    except KeyError:  # the bytes hold traces that are not stored, too
        return trace


def _read_again(connection: Connection, trace_id: str, source: Source, format: str) -> Iterator[Trace | Rejected]:
    if source.size < LONG_BYTES or not reads_long(format):
        data = b"".join(source_blocks(connection, trace_id))
        yield from read_bytes(data, file=source.file, format=format)
        return
    with TemporaryDirectory() as folder:  # as the file it was, so that it need not be held
        path = Path(folder) / "source"
        with path.open("wb") as file:
            file.writelines(source_blocks(connection, trace_id))
        yield from read_files([str(path)], format=format)


def _present(connection: Connection, trace_ids: Sequence[str]) -> list[str]:
    """Those of the traces that are stored."""
    column = schema.trace.c.trace_id
    stored = set(connection.scalars(select(column).where(is_one_of(column, trace_ids))))
    return [trace_id for trace_id in trace_ids if trace_id in stored]


def _row(connection: Connection, trace_id: str) -> RowMapping:
    return connection.execute(select(schema.trace).where(schema.trace.c.trace_id == trace_id)).mappings().one()


def _unreadable(trace_id: str, error: Exception) -> Problem:
    problem = f"cannot be read: {type(error).__name__}: {error}"
    return Problem(subject=f"trace {trace_id}", problem=problem, remedy="ingest its file into a new workspace")


def _is_redacted(trace: Trace) -> bool:
    return any(warning.startswith(("redacted:", "source_not_kept:")) for warning in trace.warnings)


def _check_search(connection: Connection) -> Iterator[Problem]:
    index = "span_fts_docsize" if connection.dialect.name == "sqlite" else "span_search"
    spans = connection.scalar(select(func.count()).select_from(schema.span)) or 0
    indexed = connection.exec_driver_sql(f"SELECT count(*) FROM {index}").scalar() or 0
    if spans != indexed:
        problem = f"the search index holds {indexed:,} of {spans:,} spans"
        yield Problem(subject="search", problem=problem, remedy=_REPAIR)


def _renew_summaries(engine: Engine, trace_ids: Sequence[str]) -> None:
    """Make the summaries of these traces anew from their spans as they are now: others may have written meanwhile."""
    with write_transaction(engine, TRACES) as connection:
        for trace_id in _present(connection, trace_ids):
            right = summary(load(connection, trace_id))
            connection.execute(update(schema.trace).where(schema.trace.c.trace_id == trace_id).values(**right))


def _renew_search(engine: Engine) -> None:
    with write_transaction(engine, TRACES) as connection:
        renew_search(connection)


def renew_search(connection: Connection) -> None:
    """Make the index of words anew from the stored traces."""
    is_sqlite = connection.dialect.name == "sqlite"
    connection.exec_driver_sql(
        "INSERT INTO span_fts(span_fts) VALUES ('delete-all')" if is_sqlite else "DELETE FROM span_search"
    )
    for trace_id in trace_ids(connection):
        key = connection.scalar(select(schema.trace.c.trace_key).where(schema.trace.c.trace_id == trace_id))
        query = select(schema.span.c.span_key).where(schema.span.c.trace_key == key).order_by(schema.span.c.seq)
        documents = pack(load(connection, trace_id)).documents
        index_spans(connection, list(zip(connection.scalars(query), documents, strict=True)))
