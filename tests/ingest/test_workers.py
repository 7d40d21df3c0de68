"""Several processes read what one would have read, in the same order, and only where they pay for their start."""

from __future__ import annotations

import io
import subprocess
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from tracejury.ingest import workers
from tracejury.ingest.batch import Report, ingest
from tracejury.ingest.ready import Ready
from tracejury.ingest.trace import Rejected
from tracejury.judging.store import open_workspace

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"


@pytest.fixture
def no_start_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "START_BYTES", 1)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many processes each pool was made for."""
    counts: list[int] = []
    real = workers.ProcessPoolExecutor

    def pool(processes: int, **options: object) -> object:
        counts.append(processes)
        return real(processes, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(workers, "ProcessPoolExecutor", pool)
    return counts


def ingested(home: Path, *paths: Path, processes: int) -> Report:
    return ingest(open_workspace(home).engine, list(paths), workers=processes)


def test_an_unknown_format_is_named_as_by_one_process(tmp_path: Path) -> None:
    told = [
        ingest(
            open_workspace(tmp_path).engine, [SAMPLES / "trail", SAMPLES / "otlp"], format="nope", workers=n
        ).rejected
        for n in (1, 2)
    ]
    assert told[0] == told[1]
    assert [one.reason for one in told[1]] == ["no trace format is called 'nope'"] * 2


@pytest.mark.usefixtures("no_start_cost")
def test_processes_give_what_one_gives_in_the_same_order(tmp_path: Path, started: list[int]) -> None:
    (tmp_path / "empty.json").write_bytes(b"")
    paths = [SAMPLES / "trail", tmp_path / "nowhere", tmp_path / "empty.json", SAMPLES / "otlp", SAMPLES / "langfuse"]
    alone = ingested(tmp_path / "a", *paths, processes=1)
    shared = ingested(tmp_path / "b", *paths, processes=2)
    assert started == [2]
    assert len(alone.rejected) == 2
    assert shared == alone


def test_a_small_corpus_starts_no_process(tmp_path: Path, started: list[int]) -> None:
    report = ingested(tmp_path, SAMPLES / "trail", processes=4)
    assert report.traces
    assert started == []


@pytest.mark.usefixtures("no_start_cost")
def test_no_more_processes_than_files_are_started(tmp_path: Path, started: list[int]) -> None:
    files = sorted((SAMPLES / "trail").glob("*.json"))[:3]
    ingested(tmp_path, *files, processes=8)
    assert started == [len(files) - 1]  # the first is read in this process


@pytest.mark.usefixtures("no_start_cost")
def test_large_files_are_read_trace_by_trace_in_this_process(
    tmp_path: Path, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "LARGE_BYTES", 2)
    assert ingested(tmp_path, SAMPLES / "trail", processes=2).traces
    assert started == []


@pytest.mark.usefixtures("no_start_cost")
def test_standard_input_is_read_in_this_process(
    tmp_path: Path, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = sorted((SAMPLES / "trail").glob("*.json"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(first.read_bytes()), encoding="utf-8"))
    report = ingested(tmp_path, *others, Path("-"), processes=2)
    assert (report.traces, report.rejected, started) == (len(others) + 1, [], [2])


def test_the_files_of_a_process_that_died_are_named() -> None:
    dead: Future[list[Ready | Rejected]] = Future()
    dead.set_exception(BrokenProcessPool())
    unit = workers._Unit(("a.json", "b.json"), 1)
    told = list(workers._result(workers._UnderWay(unit, dead), None, False))
    assert [one.file for one in told if isinstance(one, Rejected)] == ["a.json", "b.json"]
    assert all("--workers 1" in one.remedy for one in told if isinstance(one, Rejected))


def test_what_a_process_imports_is_light() -> None:
    heavy = ("sqlalchemy", "google.protobuf", "pyarrow", "pandas", "numpy", "asyncio")
    code = f"import sys, tracejury.ingest.workers; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
