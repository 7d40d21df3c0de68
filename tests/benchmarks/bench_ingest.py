"""Ingest beside plain orjson in one run: megabytes and spans a second, size at rest, memory."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import orjson
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.benchmarks import corpus, peers
from tracejury.ingest.batch import ingest
from tracejury.ingest.readers import read_traces
from tracejury.ingest.store import load, pack, read_transaction, trace_ids
from tracejury.ingest.table import write_parquet
from tracejury.ingest.trace import Trace
from tracejury.judging.store import open_workspace

FOLDER = Path(__file__).resolve().parent
SHARED = FOLDER.parents[2] / "shared" / "trail" / "traces"
ORDINARY_TRACES = 1_000
MEMORY_CORPUS_MB = 740
ONE_FILE_MB = 720
PROCESSES_CORPUS_MB = 200
TURNS = 3
PEAK = "1024 * int(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
"""The most memory that a process held, in bytes. `ru_maxrss` of a child counts what its parent held when it started."""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = SHARED
        if not folder.is_dir():
            folder = Path(scratch) / "corpus"
            print(f"no ../shared: {corpus.write(folder, 66)} synthetic traces instead")
        speed(folder, Path(scratch))
        processes(folder, Path(scratch))
        ordinary_spans(Path(scratch))
        if "--no-memory" not in sys.argv:
            memory(Path(scratch))
            memory_of_one_file(Path(scratch))


def speed(folder: Path, scratch: Path) -> None:
    files = sorted(folder.rglob("*.json"))
    size = sum(file.stat().st_size for file in files)
    plain = timed(lambda: [orjson.loads(file.read_bytes()) for file in files])
    traces: list[Trace] = []
    convert = timed(lambda: traces.extend(t for t in read_traces(folder) if isinstance(t, Trace)))
    spans = sum(len(trace.spans) for trace in traces)
    packing = timed(lambda: [pack(trace) for trace in traces])
    home = scratch / "one"
    open_workspace(home)
    spent = timed(lambda: ingest(open_workspace(home).engine, [folder]))
    open_workspace(scratch / "wall")
    whole = timed(lambda: ingest(open_workspace(scratch / "wall").engine, [folder]), wall=True)
    again = timed(lambda: ingest(open_workspace(home).engine, [folder]), wall=True)
    print(f"{len(files)} files, {size / 1e6:.1f} MB, {spans:,} spans")
    print(f"{'':34}{'seconds':>9}{'MB/s':>9}{'spans/s':>10}{'x orjson':>10}")
    for what, seconds in (
        ("orjson.loads alone (CPU)", plain),
        ("conversion to the span table (CPU)", convert),
        ("packing: hash and compress (CPU)", packing),
        ("ingest into SQLite (CPU)", spent),
        ("ingest into SQLite (wall)", whole),
        ("ingest again, all known (wall)", again),
    ):
        print(f"{what:34}{seconds:9.2f}{size / 1e6 / seconds:9.1f}{spans / seconds:10.0f}{seconds / plain:10.1f}")
    engine = open_workspace(home).engine
    with read_transaction(engine) as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        ids = trace_ids(connection)
        loading = timed(lambda: [load(connection, trace_id) for trace_id in ids], wall=True)
    database = (home / "tracejury.db").stat().st_size
    write_parquet(traces, scratch / "spans.parquet")
    parquet = (scratch / "spans.parquet").stat().st_size
    print(f"at rest: SQLite {database / 1e6:.2f} MB, source bytes included (1/{size / database:.1f} of the JSON)")
    print(f"         Parquet {parquet / 1e6:.2f} MB (1/{size / parquet:.1f})")
    print(f"loading a trace back: {1000 * loading / len(ids):.2f} ms on average")


def processes(folder: Path, scratch: Path) -> None:
    """`--workers 2` beside one process, by turns (they share the machine's other load), its start paid each time."""
    large = scratch / "processes"
    corpus.write(large, PROCESSES_CORPUS_MB)
    print(f"\n{'':34}{'1 process':>10}{'--workers 2':>13}{'ratio':>8}   (wall, median of {TURNS} turns)")
    for what, files in ((folder.name, folder), (f"{PROCESSES_CORPUS_MB} MB, synthetic", large)):
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for turn in range(TURNS):
            for count in (1, 2):
                home = scratch / f"{what} {count} {turn}"
                seconds[count].append(in_a_new_process(home, files, count, "time.perf_counter() - began"))
        one, two = median(seconds[1]), median(seconds[2])
        print(f"{what:34}{one:10.2f}{two:13.2f}{one / two:8.2f}")


def ordinary_spans(scratch: Path) -> None:
    """Spans without long histories, beside what peers need for the same spans."""
    requests = [corpus.otlp_request(number) for number in range(ORDINARY_TRACES)]
    file = scratch / "ordinary.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, requests)))
    spans = 10 * ORDINARY_TRACES
    rows = [
        ("orjson.loads alone", timed(lambda: [orjson.loads(line) for line in file.read_bytes().splitlines()])),
        ("Tracejury: conversion to the span table", timed(lambda: list(read_traces(file)))),
    ]
    engine = open_workspace(scratch / "ordinary").engine
    ours = timed(lambda: ingest(engine, [file]))
    rows.append(("Tracejury: ingest into SQLite, searchable", ours))
    rows += peer_rows(requests, scratch)
    print(f"\n{spans:,} spans of {ORDINARY_TRACES:,} traces, {file.stat().st_size / 1e6:.1f} MB of OTLP/JSON (CPU)")
    print(f"{'':52}{'seconds':>9}{'spans/s':>10}{'x our ingest':>14}")
    for what, seconds in rows:
        print(f"{what:52}{seconds:9.2f}{spans / seconds:10.0f}{seconds / ours:14.2f}")


def peer_rows(requests: Sequence[dict[str, object]], scratch: Path) -> list[tuple[str, float]]:
    """What the peers took for the same spans as protobuf, the form they receive; what cannot be had is said."""
    file = scratch / "ordinary.pb"
    file.write_bytes(b"".join(map(_framed, requests)))
    environment = scratch / "peers"
    uv = [str(Path(sys.executable).parent / "uv"), "--quiet"]
    python = environment / "bin" / "python"
    for command in (
        [*uv, "venv", "--python", sys.executable, str(environment)],
        [*uv, "pip", "install", "--python", str(python), *peers.PACKAGES],
        [str(python), str(FOLDER / "peers.py"), str(file), str(scratch)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"no peer beside it: {' '.join(command[:4])} failed: {done.stderr.strip()[-300:]}")
            return []
    rows = []
    for peer, told in json.loads(done.stdout.splitlines()[-1]).items():
        if "error" in told:
            print(f"no {peer} beside it: {told['error']}")
            continue
        number = told.pop("version")
        rows += [(f"{peer} {number}: {what}", seconds) for what, seconds in told.items()]
    return rows


def _framed(request: dict[str, object]) -> bytes:
    """The request as protobuf after its length, as `peers.py` reads it; protobuf's own JSON has ids in base64."""
    value = orjson.loads(orjson.dumps(request))
    for group in value["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    body: bytes = ParseDict(value, ExportTraceServiceRequest()).SerializeToString()
    return len(body).to_bytes(4, "big") + body


def memory(scratch: Path) -> None:
    """The most memory of a process that ingests a large corpus."""
    folder = scratch / "large"
    count = corpus.write(folder, MEMORY_CORPUS_MB)
    started = time.monotonic()
    most = in_a_new_process(scratch / "large_home", folder, 1, PEAK)
    seconds = time.monotonic() - started
    print(f"{count:,} synthetic traces, {MEMORY_CORPUS_MB} MB: {seconds:.1f} s, peak memory {most / 1e6:.0f} MB")


def memory_of_one_file(scratch: Path) -> None:
    """The most memory of a process that ingests one file of OTLP lines, as the collector's file exporter writes it."""
    file = scratch / "collector.jsonl"
    with file.open("wb") as opened:
        number = 0
        while opened.tell() < ONE_FILE_MB * 1e6:
            opened.write(orjson.dumps(corpus.otlp_request(number)) + b"\n")
            number += 1
    most = in_a_new_process(scratch / "one_file", file, 1, PEAK)
    print(f"one file of OTLP lines, {file.stat().st_size / 1e6:.0f} MB: peak memory {most / 1e6:.0f} MB")


def in_a_new_process(home: Path, folder: Path, workers: int, told: str) -> float:
    """Ingest as a command does, in a process that did nothing before; what it says of itself at the end."""
    code = (
        "import sys, time; from pathlib import Path; from tracejury.ingest.batch import ingest;"
        "from tracejury.judging.store import open_workspace;"
        "engine = open_workspace(sys.argv[1]).engine; began = time.perf_counter();"
        f"ingest(engine, [sys.argv[2]], workers=int(sys.argv[3])); print({told})"
    )
    command = [sys.executable, "-c", code, str(home), str(folder), str(workers)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def timed(work: Callable[[], object], *, wall: bool = False) -> float:
    clock = time.perf_counter if wall else time.process_time
    started = clock()
    work()
    return clock() - started


if __name__ == "__main__":
    main()
