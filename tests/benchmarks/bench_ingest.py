"""Ingest beside plain orjson in one run: megabytes and spans a second, size at rest, memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from ingest.batch import ingest
from ingest.readers import read_traces
from ingest.store import load, pack, reading, trace_ids
from ingest.table import write_parquet
from ingest.trace import Trace
from judging.ledger import open_workspace
from tests.benchmarks import corpus

SHARED = Path(__file__).resolve().parents[3] / "shared" / "trail" / "traces"
MEMORY_CORPUS_MB = 740


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = SHARED
        if not folder.is_dir():
            folder = Path(scratch) / "corpus"
            print(f"no ../shared: {corpus.write(folder, 66)} synthetic traces instead")
        speed(folder, Path(scratch))
        if "--no-memory" not in sys.argv:
            memory(Path(scratch))


def speed(folder: Path, scratch: Path) -> None:
    files = sorted(folder.rglob("*.json"))
    size = sum(file.stat().st_size for file in files)
    plain = timed(lambda: [orjson.loads(file.read_bytes()) for file in files])
    traces: list[Trace] = []
    convert = timed(lambda: traces.extend(t for t in read_traces(folder) if isinstance(t, Trace)))
    spans = sum(len(trace.spans) for trace in traces)
    packing = timed(lambda: [pack(trace) for trace in traces])
    home = scratch / "one"
    whole = timed(lambda: ingest(open_workspace(home).engine, [folder]), wall=True)
    two = timed(lambda: ingest(open_workspace(scratch / "two").engine, [folder], workers=2), wall=True)
    again = timed(lambda: ingest(open_workspace(home).engine, [folder]), wall=True)
    print(f"{len(files)} files, {size / 1e6:.1f} MB, {spans:,} spans")
    print(f"{'':34}{'seconds':>9}{'MB/s':>9}{'spans/s':>10}{'x orjson':>10}")
    for what, seconds in (
        ("orjson.loads alone (CPU)", plain),
        ("conversion to the span table (CPU)", convert),
        ("packing: hash and compress (CPU)", packing),
        ("ingest into SQLite (wall)", whole),
        ("ingest with --workers 2 (wall)", two),
        ("ingest again, all known (wall)", again),
    ):
        print(f"{what:34}{seconds:9.2f}{size / 1e6 / seconds:9.1f}{spans / seconds:10.0f}{seconds / plain:10.1f}")
    engine = open_workspace(home).engine
    with reading(engine) as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        ids = trace_ids(connection)
        loading = timed(lambda: [load(connection, trace_id) for trace_id in ids], wall=True)
    database = (home / "tracejury.db").stat().st_size
    write_parquet(traces, scratch / "spans.parquet")
    parquet = (scratch / "spans.parquet").stat().st_size
    print(f"at rest: SQLite {database / 1e6:.2f} MB, source bytes included (1/{size / database:.1f} of the JSON)")
    print(f"         Parquet {parquet / 1e6:.2f} MB (1/{size / parquet:.1f})")
    print(f"loading a trace back: {1000 * loading / len(ids):.2f} ms on average")


def memory(scratch: Path) -> None:
    """The most memory of a process that ingests a large corpus."""
    folder = scratch / "large"
    count = corpus.write(folder, MEMORY_CORPUS_MB)
    code = (
        "import resource, sys; from ingest.batch import ingest; from judging.ledger import open_workspace;"
        "ingest(open_workspace(sys.argv[1]).engine, [sys.argv[2]]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, str(scratch / "large_home"), str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.monotonic() - started
    peak = int(done.stdout) * 1024 / 1e6
    print(f"{count:,} synthetic traces, {MEMORY_CORPUS_MB} MB: {seconds:.1f} s, peak memory {peak:.0f} MB")
    print(f"(this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6:.0f} MB)")


def timed(work: Callable[[], object], *, wall: bool = False) -> float:
    clock = time.perf_counter if wall else time.process_time
    started = clock()
    work()
    return clock() - started


if __name__ == "__main__":
    main()
