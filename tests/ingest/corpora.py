"""Corpora and workspaces of the same files, and what each holds of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
from tests.benchmarks.corpus import otlp_request

from tracejury.ingest.batch import Report, ingest
from tracejury.ingest.corpus.layout import Corpus, Record, open_corpus
from tracejury.ingest.corpus.partition import PartitionJob, PartitionWriter, build_partition
from tracejury.ingest.corpus.rows import SCHEMAS, batches
from tracejury.ingest.store import load, read_transaction, trace_ids
from tracejury.ingest.trace import Trace
from tracejury.judging.corpus.checking import CheckJob, check_partition
from tracejury.judging.store import open_workspace

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "data" / "samples"
Rows = dict[str, list[dict[str, Any]]]


def held_by_corpus(url: str | Path) -> Rows:
    """Every row of a corpus that says something of traces, in a fixed order, without the names of its partitions."""
    corpus = open_corpus(str(url))
    tables = {table: corpus.dataset(table).to_table() for table in ("traces", "spans", "messages", "warnings")}
    return {table: _sorted(rows.select(SCHEMAS[table].names)) for table, rows in tables.items()}


def held_by_workspace(home: Path, batches_of_paths: Iterable[Sequence[str]]) -> tuple[Rows, list[Report]]:
    """The same rows made of what a workspace holds after these ingests, one after another."""
    engine = open_workspace(home).engine
    reports = [ingest(engine, paths) for paths in batches_of_paths]
    with read_transaction(engine) as connection:
        traces = [load(connection, trace_id) for trace_id in trace_ids(connection)]
    made = [batches(trace, ()) for trace in traces]
    tables = {
        table: pa.Table.from_batches([one[table] for one in made], schema=SCHEMAS[table])
        for table in ("traces", "spans", "messages", "warnings")
    }
    return {table: _sorted(rows) for table, rows in tables.items()}, reports


def workspace_traces(home: Path) -> dict[str, Trace]:
    """The traces of a workspace by id, without log records, which a corpus does not hold."""
    with read_transaction(open_workspace(home).engine) as connection:
        return {t: replace(load(connection, t), logs=()) for t in trace_ids(connection)}


def _sorted(table: pa.Table) -> list[dict[str, Any]]:
    rows = table.drop_columns(["units"] if "units" in table.column_names else []).to_pylist()
    return sorted(rows, key=lambda row: (row["trace_id"], *(row.get(k) or 0 for k in ("seq", "message")), str(row)))


def build_or_die_once(job: PartitionJob) -> Record:
    """As `build_partition`; the first worker of a corpus is killed when it has written files and no record."""
    try:
        Path(f"{job.url}.died").touch(exist_ok=False)
    except FileExistsError:
        return build_partition(job)
    PartitionWriter.commit = _flushed_and_killed  # type: ignore[method-assign, assignment]
    return build_partition(job)


def _flushed_and_killed(writer: PartitionWriter, **_: int) -> None:
    writer._flush()
    os.kill(os.getpid(), signal.SIGKILL)


def check_or_die_once(job: CheckJob) -> tuple[int, int, int]:
    """As `check_partition`; the first worker of a corpus is killed when it has written files and no record."""
    try:
        Path(f"{job.url}.died").touch(exist_ok=False)
    except FileExistsError:
        return check_partition(job)
    Corpus.commit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign, assignment]
    return check_partition(job)


def slow_partition(job: PartitionJob) -> Record:
    """As `build_partition`, after a minute."""
    time.sleep(60)
    return build_partition(job)


class Cluster:
    """A Dask scheduler on this machine, and workers that its nannies start again when they are killed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        file = folder / "scheduler.json"
        self._scheduler = self._started("scheduler", "--port", "0", "--scheduler-file", str(file))
        self._workers: list[subprocess.Popen[bytes]] = []
        until = time.monotonic() + 300
        while not (file.exists() and file.read_bytes().endswith(b"}")):
            assert time.monotonic() < until, (folder / "scheduler.log").read_text(encoding="utf-8")
            time.sleep(0.1)
        self.address: str = orjson.loads(file.read_bytes())["address"]

    def _started(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *options]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / ".package"), str(ROOT)])}
        with (self._folder / f"{program}.log").open("ab") as log:
            command += ["--host", "127.0.0.1", "--no-dashboard"]
            return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)

    def add_workers(self, count: int) -> None:
        """Start workers of one thread each."""
        for _ in range(count):
            self._workers.append(self._started("worker", self.address, "--nthreads", "1"))

    def end_soon(self, *, seconds: float) -> None:
        """Kill the scheduler after a while."""
        threading.Timer(seconds, self._scheduler.kill).start()

    def end(self) -> None:
        """Kill every process, the workers that nannies started too."""
        for process in (*self._workers, self._scheduler):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def otlp_file(file: Path, *numbers: int, spans: slice = slice(None)) -> Path:
    """OTLP lines: some spans of the traces with these numbers, ten spans each."""
    requests = []
    for number in numbers:
        request: Any = otlp_request(number)
        scope = request["resourceSpans"][0]["scopeSpans"][0]
        scope["spans"] = scope["spans"][spans]
        requests.append(orjson.dumps(request) + b"\n")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(requests))
    return file
