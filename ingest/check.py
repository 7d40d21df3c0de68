"""Is the store whole: kept source bytes read again and compared, references followed, the file itself checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sqlalchemy import Connection, Engine, func, select

from ingest.readers import read_bytes
from ingest.store import load, load_source, pack, reading, schema, trace_ids, writing
from ingest.store.search import index_spans
from ingest.trace import Rejected, Source, Trace

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something that is not as it should be: where, what, and what can be done."""

    subject: str
    problem: str
    remedy: str


def check_store(engine: Engine, *, repair: bool = False, progress: Progress | None = None) -> list[Problem]:
    """Every problem of the store; with `repair` the search index is made again from the spans."""
    problems = []
    with reading(engine) as connection:
        problems += list(_check_file(connection))
        ids = trace_ids(connection)
    for number, trace_id in enumerate(ids):
        with reading(engine) as connection:
            problems += list(_check_trace(connection, trace_id))
        if progress is not None:
            progress(number + 1, len(ids))
    with reading(engine) as connection:
        index = list(_check_search(connection))
    if index and repair:
        _renew_search(engine)
        index = [replace(one, remedy="mended: the index was made again") for one in index]
    return problems + index


def _check_file(connection: Connection) -> Iterator[Problem]:
    if connection.dialect.name != "sqlite":
        return
    for (told,) in connection.exec_driver_sql("PRAGMA integrity_check"):
        if told != "ok":
            yield Problem(subject="database", problem=str(told), remedy="restore the file from a backup")
    for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        told = f"row {row[1]} of {row[0]} points at a row of {row[2]} that is not there"
        yield Problem(subject="database", problem=told, remedy="restore the file from a backup")


def _check_trace(connection: Connection, trace_id: str) -> Iterator[Problem]:
    try:
        stored = load(connection, trace_id)
        source = load_source(connection, trace_id)
    except Exception as error:
        told = f"cannot be read: {type(error).__name__}: {error}"
        yield Problem(subject=f"trace {trace_id}", problem=told, remedy="ingest its file into a new workspace")
        return
    digest = connection.scalar(select(schema.trace.c.digest).where(schema.trace.c.trace_id == trace_id))
    if pack(stored).digest != digest:
        yield Problem(
            subject=f"trace {trace_id}",
            problem="what is stored differs from what was ingested",
            remedy="ingest its file into a new workspace, or restore a backup",
        )
    if _is_redacted(stored) or not source.data:
        return  # the bytes were masked as text, the trace as values: they need not read alike
    again = _again(source, stored)
    if again is None:
        told = "its kept source bytes no longer give this trace"
        yield Problem(subject=f"trace {trace_id}", problem=told, remedy="report it with the file")
    elif pack(again).digest != digest:
        told = "its kept source bytes now read differently (another version of the reader?)"
        yield Problem(subject=f"trace {trace_id}", problem=told, remedy="compare after ingesting into a new workspace")


def _again(source: Source, stored: Trace) -> Trace | None:
    for item in read_bytes(source.data, file=source.file, format=stored.format):
        if not isinstance(item, Rejected) and item.trace_id == stored.trace_id:
            return item
    return None


def _is_redacted(trace: Trace) -> bool:
    return any(warning.startswith(("redacted:", "source_not_kept:")) for warning in trace.warnings)


def _check_search(connection: Connection) -> Iterator[Problem]:
    index = "span_fts_docsize" if connection.dialect.name == "sqlite" else "span_search"
    spans = connection.scalar(select(func.count()).select_from(schema.span)) or 0
    indexed = connection.exec_driver_sql(f"SELECT count(*) FROM {index}").scalar() or 0
    if spans != indexed:
        told = f"the search index holds {indexed:,} of {spans:,} spans"
        yield Problem(subject="search", problem=told, remedy="tracejury verify --repair")


def _renew_search(engine: Engine) -> None:
    with writing(engine) as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        connection.exec_driver_sql(
            "INSERT INTO span_fts(span_fts) VALUES ('delete-all')" if is_sqlite else "DELETE FROM span_search"
        )
        for trace_id in trace_ids(connection):
            key = connection.scalar(select(schema.trace.c.trace_key).where(schema.trace.c.trace_id == trace_id))
            query = select(schema.span.c.span_key).where(schema.span.c.trace_key == key).order_by(schema.span.c.seq)
            documents = pack(load(connection, trace_id)).documents
            index_spans(connection, list(zip(connection.scalars(query), documents, strict=True)))
