"""A workspace of 10,000 traces, 1e6 spans and 1e5 labels: what single look-ups take in the store. Target: 5 ms each."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

from sqlalchemy import Connection, func, select

from tests.benchmarks.large import MILLION, build
from tracejury.ingest.store import load, load_span, read_transaction, schema, search
from tracejury.judging.labels.label_store import error_labels, score_labels
from tracejury.judging.store import Workspace, open_workspace, tables

TARGET_MS = 5.0
TIMES = 200
PAGE = 100  # rows of a list that a person sees at once


def main() -> None:
    kept = os.environ.get("TRACEJURY_BENCH_MILLION")
    with tempfile.TemporaryDirectory() as scratch:
        space = _opened(Path(kept) if kept else Path(scratch) / "million")
        with read_transaction(space.engine) as connection:
            _print(space, connection)


def _opened(home: Path) -> Workspace:
    if (home / "tracejury.db").exists():
        return open_workspace(home)
    started = time.process_time()
    space = build(home, MILLION)
    print(f"built in {time.process_time() - started:.0f} s of CPU", flush=True)
    return space


def _print(space: Workspace, connection: Connection) -> None:
    trace = schema.trace
    ids = list(connection.scalars(select(trace.c.trace_id).order_by(trace.c.trace_key)))
    spans = connection.scalar(select(func.count()).select_from(schema.span))
    size = (space.home / "tracejury.db").stat().st_size
    print(f"{len(ids):,} traces, {spans:,} spans, {size / 1e6:.0f} MB")
    rng = random.Random(1)
    columns = [column for column in trace.c if column.name not in {"attributes", "outcome", "warnings"}]

    def listed() -> object:
        first = rng.randrange(len(ids) - PAGE)
        query = select(*columns).where(trace.c.trace_key > first).order_by(trace.c.trace_key).limit(PAGE)
        return connection.execute(query).all()

    looks: dict[str, Callable[[], object]] = {
        "open: a trace of 100 spans, whole": lambda: load(connection, rng.choice(ids)),
        "open: one span of it": lambda: load_span(connection, rng.choice(ids), 50),
        f"list: {PAGE} traces with their counts": listed,
        "search: two words that most spans hold": lambda: search(connection, "harbour lamp"),
        "search: a span id": lambda: search(connection, rng.choice(ids)[:12]),
        "labels of a trace: errors": lambda: error_labels(connection, tables.error_label.c.trace_id == rng.choice(ids)),
        "labels of a trace: scores": lambda: score_labels(connection, tables.score_label.c.trace_id == rng.choice(ids)),
    }
    print(f"{'':40}{'median ms':>10}{'95 % ms':>10}   ! above {TARGET_MS:g} ms")
    for name, look in looks.items():
        taken = [_milliseconds(look) for _ in range(TIMES)]
        mark = "!" if median(taken) > TARGET_MS else ""
        print(f"{name:40}{median(taken):10.2f}{quantiles(taken, n=20)[-1]:10.2f} {mark}")


def _milliseconds(look: Callable[[], object]) -> float:
    """CPU time: other work of the machine does not count."""
    started = time.process_time()
    look()
    return 1000 * (time.process_time() - started)


if __name__ == "__main__":
    main()
