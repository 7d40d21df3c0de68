"""A corpus built and judged: spans a second and core, with 1 and 2 workers, first and last partitions, memory, bytes.

Last, what ten million traces take by these numbers, on paper.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import orjson

from tests.benchmarks.bench_ingest import PEAK
from tests.benchmarks.corpus import text

TRACES = int(os.environ.get("TRACEJURY_BENCH_TRACES", "2000"))
SPANS = 100
LINES = 25  # traces in a file
PARTITION = 10_000_000  # bytes of a partition: small ones, so that first and last ones can be compared
TURNS = 3
PAPER_TRACES = 10_000_000
CORE_HOUR_USD = 0.05
GB_MONTH_USD = 0.023
"""List prices of a virtual core and of object storage, in the order of the large providers'."""
WORK = """
import json, resource, sys, time
from pathlib import Path
from tracejury.ingest.corpus import build, partition
from tracejury.ingest.corpus.engine import Workers
from tracejury.judging.corpus.checking import check
from tracejury.judging.corpus.counting import FACETS
from tracejury.judging.corpus.summary import facet_table, totals
source, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
build.PARTITION_BYTES = int(sys.argv[4])
if __name__ == "__main__":
    told = {}
    for name, work in (("build", lambda p: build.build([source], url, workers=Workers(count=count), progress=p)),
                       ("check", lambda p: check(url, workers=Workers(count=count), progress=p))):
        cpu = lambda: sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
                          for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        began, before, marks = time.perf_counter(), cpu(), []
        work(lambda done, total: marks.append(time.process_time()))
        told[name] = {"wall": time.perf_counter() - began, "cpu": cpu() - before, "marks": marks}
    began = time.process_time()
    totals(url), [facet_table(url, by) for by in FACETS]
    print(json.dumps({**told, "summary": time.process_time() - began, "peak": PEAK}))
""".replace("PEAK", PEAK)


class Done(NamedTuple):
    """Wall and CPU seconds, and the CPU seconds of the first and the last quarter of the partitions."""

    wall: float
    cpu: float
    first: float
    last: float


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch) / "files"
        write(files, TRACES)
        taken = {count: [_measured(files, Path(scratch) / f"{count}-{turn}", count) for turn in range(TURNS)]
                 for count in (1, 2)}  # fmt: skip
        _print(files, Path(scratch) / "1-0", taken)


def write(folder: Path, traces: int, *, spans: int = SPANS) -> None:
    """OTLP lines of agents' runs, about 1.3 kB a span; every text is another piece of the same words."""
    folder.mkdir(parents=True)
    words = text(random.Random(1), 20_000)
    for first in range(0, traces, LINES):
        lines = (orjson.dumps(_request(number, spans, words)) for number in range(first, min(first + LINES, traces)))
        (folder / f"{first:08}.jsonl").write_bytes(b"\n".join(lines) + b"\n")


def _request(number: int, spans: int, words: str) -> dict[str, object]:
    rng = random.Random(number)
    trace_id, root = f"{rng.getrandbits(128):032x}", f"{rng.getrandbits(64):016x}"
    held = [_span(rng, trace_id, root, place, number, words) for place in range(spans)]
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": held}]}]}


def _span(rng: random.Random, trace_id: str, root: str, place: int, number: int, words: str) -> dict[str, object]:
    kind = "AGENT" if place == 0 else ("TOOL", "LLM")[place % 2]
    held = {
        "openinference.span.kind": kind,
        "agent.name": f"agent-{number % 5}",
        "output.value": _piece(rng, words),
        **_of_kind(rng, kind, words),
    }
    start = 1_767_323_045_000_000_000 + number * 10**9 + place * 10**7
    return {
        "traceId": trace_id,
        "spanId": f"{rng.getrandbits(64):016x}" if place else root,
        "parentSpanId": root if place else "",
        "name": f"{kind.lower()} {place}",
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 5 * 10**6),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in held.items()],
        "status": {"code": 2 if rng.random() < 0.02 else 1},
    }


def _of_kind(rng: random.Random, kind: str, words: str) -> dict[str, str]:
    if kind == "TOOL":
        return {"tool.name": rng.choice(("search", "mail", "files", "python")), "input.value": _piece(rng, words)[:60]}
    if kind == "LLM":
        role = "llm.input_messages.0.message"
        return {"llm.model_name": "made-up", f"{role}.role": "user", f"{role}.content": _piece(rng, words)}
    return {"input.value": _piece(rng, words)}


def _piece(rng: random.Random, words: str) -> str:
    start = rng.randrange(len(words) - 400)
    return words[start : start + rng.randrange(100, 400)]


def _measured(files: Path, url: Path, count: int) -> dict[str, Any]:
    """Build and check in a process that did nothing before."""
    command = [sys.executable, "-c", WORK, str(files), str(url), str(count), str(PARTITION)]
    if count > 1:  # workers import the program that started them: it must be a file
        program = url.with_suffix(".py")
        program.write_text(WORK, encoding="utf-8")
        command = [sys.executable, str(program), *command[3:]]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path.cwd())
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**{name: _done(told[name]) for name in ("build", "check")}, **{n: told[n] for n in ("summary", "peak")}}


def _done(told: dict[str, Any]) -> Done:
    marks = told["marks"]
    some = max(1, len(marks) // 4)
    first = (marks[some] - marks[0]) / some if len(marks) > some else float("nan")
    last = (marks[-1] - marks[-1 - some]) / some if len(marks) > some else float("nan")
    return Done(told["wall"], told["cpu"], first, last)


def _print(files: Path, corpus: Path, taken: dict[int, list[dict[str, Any]]]) -> None:
    spans, size = TRACES * SPANS, _bytes(files)
    print(
        f"{TRACES:,} traces, {spans:,} spans, {size / 1e6:.0f} MB of OTLP lines in {len(list(files.iterdir()))} files"
    )
    print(f"{'':8}{'workers':>8}{'wall s':>9}{'CPU s':>9}{'spans/s core':>14}{'last/first':>12}")
    seconds: dict[tuple[str, int], float] = {}
    for name in ("build", "check"):
        for count, turns in taken.items():
            one = sorted((turn[name] for turn in turns), key=lambda done: done.wall)[len(turns) // 2]
            seconds[name, count] = one.wall
            ratio = f"{one.last / one.first:12.2f}" if count == 1 else f"{'':12}"
            core = f"{one.cpu:9.2f}{spans / one.cpu:14,.0f}" if count == 1 else f"{'':23}"  # others' is not ours to see
            print(f"{name:8}{count:8}{one.wall:9.2f}{core}{ratio}")
        print(f"{name:8}1 worker / 2 workers, wall: {seconds[name, 1] / seconds[name, 2]:.2f}")
    summary = median(turn["summary"] for turn in taken[1])
    print(f"summary: totals and the four tables in {summary * 1000:.0f} ms of CPU")
    peak = max(turn["peak"] for turn in taken[1]) / 1e6
    print(f"peak memory of one worker that does both: {peak:.0f} MB")
    cpu = {name: median(turn[name].cpu for turn in taken[1]) for name in ("build", "check")}
    on_paper(cpu, _bytes(corpus), size)


def on_paper(cpu: dict[str, float], corpus: int, source: int) -> None:
    """Print what ten million traces of SPANS spans take: hours = traces x CPU seconds a trace / 3,600."""
    print(f"at rest: {corpus / 1e6:.1f} MB of Parquet, {corpus / (TRACES * SPANS):.0f} bytes a span, "
          f"1/{source / corpus:.1f} of the JSON")  # fmt: skip
    hours = {name: PAPER_TRACES * seconds / TRACES / 3600 for name, seconds in cpu.items()}
    total, held = sum(hours.values()), PAPER_TRACES * corpus / TRACES / 1e9
    print(f"{PAPER_TRACES:,} traces: build {hours['build']:,.0f} + check {hours['check']:,.0f} core hours x "
          f"{CORE_HOUR_USD} $ = {total * CORE_HOUR_USD:,.2f} $; {held:,.0f} GB x {GB_MONTH_USD} $ = "
          f"{held * GB_MONTH_USD:,.2f} $ a month")  # fmt: skip


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    main()
