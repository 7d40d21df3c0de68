"""A corpus holds exactly what a workspace holds of the same files, whoever reads them and whatever dies meanwhile."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import orjson
import pytest
from tests.benchmarks.bench_corpus import SPANS, write
from tests.ingest.corpora import (
    SAMPLES,
    Cluster,
    build_or_die_once,
    held_by_corpus,
    held_by_workspace,
    otlp_file,
    slow_partition,
    workspace_traces,
)

from tracejury.ingest.corpus import build as building
from tracejury.ingest.corpus import engine, sources
from tracejury.ingest.corpus.build import build
from tracejury.ingest.corpus.engine import Workers
from tracejury.ingest.corpus.layout import open_corpus
from tracejury.ingest.corpus.partition import HELD_BYTES, Reading
from tracejury.ingest.corpus.reading import parts_of, read_trace, traces_of
from tracejury.ingest.trace import IngestError

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


@pytest.fixture
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "PARTITION_BYTES", 20_000)


def assert_equal_to_a_workspace(tmp_path: Path, *builds: list[str]) -> None:
    """Build and ingest the same sources, one after another, and compare every cell."""
    url = str(tmp_path / "corpus")
    for paths in builds:
        build(paths, url)
    held, reports = held_by_workspace(tmp_path / "home", builds)
    for table, rows in held_by_corpus(url).items():
        assert rows == held[table], table
    told = open_corpus(url).dataset("rejected").to_table().to_pylist()
    refused = {(one.file, one.place, one.reason) for report in reports for one in report.rejected}
    assert {(row["file"], row["place"], row["reason"]) for row in told} == refused


def test_every_sample_is_the_same_cell_by_cell(tmp_path: Path) -> None:
    assert_equal_to_a_workspace(tmp_path, [str(SAMPLES)])
    corpus = open_corpus(str(tmp_path / "corpus"))
    traces = {
        trace.trace_id: trace
        for record in corpus.records()
        for part in parts_of(record)
        for trace in traces_of(corpus, part)
    }
    assert len(traces) > 40
    assert traces == workspace_traces(tmp_path / "home")
    one = next(iter(traces))
    assert read_trace(corpus, one) == traces[one]


@pytest.mark.usefixtures("small_partitions")
def test_files_of_one_run_in_several_folders_are_joined_as_in_a_workspace(tmp_path: Path) -> None:
    assert_equal_to_a_workspace(tmp_path, [str(HERE / "gaia2" / "hf")], [str(HERE / "gaia2"), str(HERE / "dialects")])


@pytest.mark.usefixtures("small_partitions")
def test_late_spans_complete_a_trace_under_its_id_and_copies_count_once(tmp_path: Path) -> None:
    first = otlp_file(tmp_path / "a" / "first.jsonl", 1, 2, spans=slice(0, 4))
    late = otlp_file(tmp_path / "b" / "late.jsonl", 1, spans=slice(4, 10))
    copy = otlp_file(tmp_path / "c" / "copy.jsonl", 2, 3, spans=slice(0, 4))
    assert_equal_to_a_workspace(tmp_path, [str(first)], [str(late), str(copy)], [str(tmp_path / "a")])
    corpus = open_corpus(str(tmp_path / "corpus"))
    assert sorted(corpus.dataset("traces").to_table(columns=["spans"])["spans"].to_pylist()) == [4, 4, 10]


def test_a_file_that_grew_completes_what_was_read_of_it(tmp_path: Path) -> None:
    file = otlp_file(tmp_path / "grows.jsonl", 1, spans=slice(0, 4))
    build([str(file)], str(tmp_path / "corpus"))
    file.write_bytes(file.read_bytes() + otlp_file(tmp_path / "more.jsonl", 1, spans=slice(4, 10)).read_bytes())
    assert build([str(file)], str(tmp_path / "corpus")).partitions == 2  # what was read, and the trace joined
    assert open_corpus(str(tmp_path / "corpus")).dataset("spans").count_rows() == 10


def test_other_content_in_the_place_of_a_file_replaces_nothing_and_is_named(tmp_path: Path) -> None:
    file, url = otlp_file(tmp_path / "a.jsonl", 1), str(tmp_path / "corpus")
    build([str(file)], url)
    before = held_by_corpus(url)
    file.write_bytes(file.read_bytes().replace(b"agent 0", b"agent Z"))
    assert build([str(file)], url).rejected == 1
    assert held_by_corpus(url) == before
    (told,) = open_corpus(url).dataset("rejected").to_table(columns=["reason"])["reason"].to_pylist()
    assert "in the corpus already with other content" in told
    assert str(file) in told


def test_a_file_that_is_known_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, url = otlp_file(tmp_path / "a.jsonl", 1, 2), str(tmp_path / "corpus")
    build([str(file)], url)
    file.touch()  # another time, the same bytes: its digest tells
    monkeypatch.setattr(sources, "read_files", lambda *_, **__: pytest.fail("read again"))
    build([str(file)], url)
    assert build([str(file)], url).partitions == 0
    assert open_corpus(url).dataset("traces").count_rows() == 2


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_a_worker_killed_with_files_half_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    if engine == "dask":
        pytest.importorskip("distributed", reason="the extra `corpus` is not installed")
    folder = tmp_path / "files"
    for number in range(4):
        otlp_file(folder / f"{number}.jsonl", number, number + 10)
    build([str(folder)], str(tmp_path / "whole"))
    monkeypatch.setattr(building, "build_partition", build_or_die_once)
    url = tmp_path / "killed"
    build([str(folder)], str(url), workers=Workers(engine=engine, count=2))  # type: ignore[arg-type]
    assert Path(f"{url}.died").exists()
    assert len(open_corpus(str(url)).records()) == 4
    assert held_by_corpus(url) == held_by_corpus(tmp_path / "whole")
    named = {
        open_corpus(str(url)).path(f) for r in open_corpus(str(url)).records() for fs in r.files.values() for f in fs
    }
    assert {str(file) for file in url.rglob("*.parquet")} == named


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A Dask scheduler and two workers, each a process of its own, as a team runs them."""
    pytest.importorskip("distributed", reason="the extra `corpus` is not installed")
    running = Cluster(tmp_path / "cluster")
    yield running
    running.end()


@pytest.mark.slow
@pytest.mark.usefixtures("small_partitions")
def test_a_cluster_builds_the_same_and_whatever_ends_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Cluster
) -> None:
    folder = tmp_path / "files"
    for number in range(4):
        otlp_file(folder / f"{number}.jsonl", number, number + 10)
    build([str(folder)], str(tmp_path / "whole"))
    monkeypatch.setattr(engine, "ANSWER_SECONDS", 2)
    on_cluster = Workers(engine="dask", scheduler=cluster.address)
    with pytest.raises(IngestError, match=r"has no worker") as error:
        build([str(folder)], str(tmp_path / "killed"), workers=on_cluster)
    assert f"dask worker {cluster.address}" in error.value.remedy
    monkeypatch.setattr(engine, "ANSWER_SECONDS", 60)
    cluster.add_workers(2)
    monkeypatch.setattr(building, "build_partition", build_or_die_once)
    build([str(folder)], str(tmp_path / "killed"), workers=on_cluster)
    assert (tmp_path / "killed.died").exists()
    assert held_by_corpus(tmp_path / "killed") == held_by_corpus(tmp_path / "whole")
    monkeypatch.setattr(building, "build_partition", slow_partition)
    cluster.end_soon(seconds=1)
    with pytest.raises(IngestError, match=r"ended; what was finished is kept"):
        build([str(folder)], str(tmp_path / "ended"), workers=on_cluster)
    monkeypatch.setattr(engine, "ANSWER_SECONDS", 1)
    for address in (cluster.address, "nonsense"):
        with pytest.raises(IngestError, match=rf"no Dask scheduler answers at {address}") as error:
            build([str(folder)], str(tmp_path / "none"), workers=Workers(engine="dask", scheduler=address))
        assert "dask scheduler" in error.value.remedy


BUILD_CUT_OFF = """
import os, sys
from tracejury.ingest.corpus import build, layout
build.PARTITION_BYTES = 20_000
commit = layout.Corpus.commit
layout.Corpus.commit = lambda self, record: (commit(self, record), os._exit(9))
build.build([sys.argv[1]], sys.argv[2])
"""


@pytest.mark.usefixtures("small_partitions")
def test_a_build_that_was_cut_off_is_not_taken_for_whole_and_goes_on(tmp_path: Path) -> None:
    folder, url = tmp_path / "files", str(tmp_path / "corpus")
    for number in range(3):
        otlp_file(folder / f"{number}.jsonl", number)
    done = subprocess.run([sys.executable, "-c", BUILD_CUT_OFF, str(folder), url], check=False, cwd=ROOT)
    assert done.returncode == 9
    with pytest.raises(IngestError, match="under way or was interrupted"):
        open_corpus(url).require_whole()
    assert build([str(folder)], url).partitions == 2
    open_corpus(url).require_whole()
    build([str(folder)], str(tmp_path / "at once"))
    assert held_by_corpus(url) == held_by_corpus(tmp_path / "at once")


def test_sources_and_corpus_may_stand_in_a_file_store(tmp_path: Path) -> None:
    files = fsspec.filesystem("memory")
    body = otlp_file(tmp_path / "a.jsonl", 1, 2).read_bytes()
    files.pipe_file("/in/a.jsonl", body)
    files.pipe_file("/in/b.jsonl.gz", gzip.compress(otlp_file(tmp_path / "b.jsonl", 3).read_bytes()))
    build(["memory://in"], "memory://out")
    traces = open_corpus("memory://out").dataset("traces").to_table(columns=["file"])["file"].to_pylist()
    assert sorted(traces) == ["memory:///in/a.jsonl", "memory:///in/a.jsonl", "memory:///in/b.jsonl"]
    assert build(["memory://in"], "memory://out").partitions == 0


class StoreDownError(Exception):
    """What the library of a file store raises: of no kind that is known here."""


@pytest.mark.parametrize("what", ["source", "corpus"])
def test_a_file_store_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreDownError("no connection")

    for name in ("find", "exists"):
        monkeypatch.setattr(type(fsspec.filesystem("memory")), name, fail)
    places = [str(otlp_file(tmp_path / "a.jsonl", 1)), str(tmp_path / "out")]
    places[what == "corpus"] = "memory://somewhere"
    with pytest.raises(IngestError, match=r"memory://somewhere cannot be reached: no connection") as error:
        build([places[0]], places[1])
    assert "network" in error.value.remedy


MEASURED = """
import sys
from tracejury.ingest.corpus.build import build
from tracejury.judging.corpus.checking import check
check(sys.argv[1]) if len(sys.argv) == 2 else build([sys.argv[2]], sys.argv[1])
with open("/proc/self/status") as file:
    print(next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1000)
"""


TRACES = 700  # that make one document of almost HELD_BYTES


def peak_megabytes(*words: str | Path) -> int:
    """The peak memory of a process that checks a corpus or, where a source is given, builds it."""
    command = [sys.executable, "-c", MEASURED, *map(str, words)]
    return int(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)


@pytest.mark.soak
@pytest.mark.timeout(3_000)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak memory of a process is read from /proc")
def test_a_worker_stays_below_a_gigabyte_however_large_a_file_is(tmp_path: Path) -> None:
    """One document of almost HELD_BYTES is read; one of more, and one that unpacks to more, are rejected.

    Then it is checked, joined with late spans of every trace of it (read again beside its first file), and checked.
    """
    folder, url = tmp_path / "files", tmp_path / "corpus"
    write(folder, TRACES)
    lines = [line for file in sorted(folder.iterdir()) for line in file.read_bytes().splitlines()]
    requests = [orjson.loads(line)["resourceSpans"][0] for line in lines]
    held_back = [request["scopeSpans"][0]["spans"].pop() for request in requests]
    body = orjson.dumps({"resourceSpans": requests})
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "almost.json").write_bytes(body)
    assert 0.8 * HELD_BYTES < len(body) < HELD_BYTES
    (tmp_path / "in" / "packed.json.gz").write_bytes(gzip.compress(body + b" " * HELD_BYTES, 1))
    (tmp_path / "in" / "larger.json").write_bytes(body + b" " * HELD_BYTES)
    late = [{**request, "scopeSpans": [{"spans": [span]}]} for request, span in zip(requests, held_back, strict=True)]
    (tmp_path / "late.json").write_bytes(orjson.dumps({"resourceSpans": late}))
    peaks = {"build": peak_megabytes(url, tmp_path / "in"), "check": peak_megabytes(url)}
    corpus = open_corpus(str(url))
    assert corpus.dataset("traces").count_rows() == TRACES
    refused = corpus.dataset("rejected").to_table().to_pylist()
    assert sorted(Path(row["file"]).name for row in refused) == ["larger.json", "packed.json"]
    peaks |= {"join": peak_megabytes(url, tmp_path / "late.json"), "check what was joined": peak_megabytes(url)}
    assert corpus.dataset("spans").count_rows() == TRACES * SPANS
    assert max(peaks.values()) < 1_000, peaks


def test_one_corpus_is_built_with_one_set_of_options(tmp_path: Path) -> None:
    file = otlp_file(tmp_path / "a.jsonl", 1)
    build([str(file)], str(tmp_path / "corpus"))
    with pytest.raises(IngestError, match="was built with"):
        build([str(file)], str(tmp_path / "corpus"), reading=Reading(redact=True))


def test_secrets_are_masked_before_anything_is_written(tmp_path: Path) -> None:
    file = otlp_file(tmp_path / "a.jsonl", 1)
    secret = "sk-" + "proj-" + "Zq8" * 16
    file.write_bytes(file.read_bytes().replace(b"agent 0", f"key {secret}".encode()))
    build([str(file)], str(tmp_path / "plain"))
    build([str(file)], str(tmp_path / "masked"), reading=Reading(redact=True))
    assert secret in str(held_by_corpus(tmp_path / "plain"))
    assert secret not in str(held_by_corpus(tmp_path / "masked"))


@pytest.mark.parametrize("sign", [lambda url: f"{url}/nowhere", lambda url: f"no-such-store://{url}"])
def test_what_cannot_be_opened_is_named(tmp_path: Path, sign: Callable[[str], str]) -> None:
    with pytest.raises(IngestError) as error:
        build([sign(str(tmp_path))], str(tmp_path / "corpus"))
    assert error.value.remedy
