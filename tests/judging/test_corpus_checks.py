"""What the offline checks say of a corpus is what they say of the same traces in a workspace."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.ingest.corpora import SAMPLES, check_or_die_once, otlp_file

from tracejury.ingest.batch import ingest
from tracejury.ingest.corpus import build as building
from tracejury.ingest.corpus.build import build
from tracejury.ingest.corpus.engine import Workers
from tracejury.ingest.corpus.layout import open_corpus
from tracejury.ingest.store import read_transaction
from tracejury.ingest.trace import IngestError
from tracejury.judging.corpus import checking
from tracejury.judging.corpus.checking import check
from tracejury.judging.corpus.counting import FACETS, NONE, all_counts
from tracejury.judging.corpus.schemas import FINDINGS, SCHEMAS, SCORES
from tracejury.judging.corpus.summary import facet_table, findings_of, totals, version
from tracejury.judging.records import Verdict
from tracejury.judging.runs import offline
from tracejury.judging.runs.offline import judge_all
from tracejury.judging.runs.verdicts import outcome
from tracejury.judging.store import open_workspace, tables

ROWS = FINDINGS.names[:11]
"""What a workspace stores of a finding; the others are looked up in its trace."""


def in_corpus(url: str) -> dict[str, list[dict[str, Any]]]:
    corpus = open_corpus(url)
    rows = {name: corpus.dataset(name, schema=schema).to_table() for name, schema in SCHEMAS.items()}
    return {
        "findings": sorted(rows["findings"].select(ROWS).to_pylist(), key=str),
        "scores": sorted(rows["scores"].select(SCORES.names).to_pylist(), key=str),
    }


def in_workspace(home: Path) -> dict[str, list[dict[str, Any]]]:
    findings, scores = [], []
    with read_transaction(open_workspace(home).engine) as connection:
        for key in connection.scalars(select(tables.cell.c.cell_key)).all():
            one = outcome(connection, key)
            assert isinstance(one, Verdict)
            scores.append({**{n: getattr(one, n, None) for n in SCORES.names}, "dimension": one.rubric})
            for position, finding in enumerate(one.findings):
                row = {**asdict(finding), "citations": [asdict(c) for c in finding.citations]}
                place = {"trace_id": one.trace_id, "dimension": one.rubric, "position": position}
                findings.append({name: {**row, **place, "check_name": finding.check}[name] for name in ROWS})
    return {"findings": sorted(findings, key=str), "scores": sorted(scores, key=str)}


def test_every_sample_is_judged_as_in_a_workspace(tmp_path: Path) -> None:
    url = str(tmp_path / "corpus")
    build([str(SAMPLES)], url)
    checked = check(url)
    engine = open_workspace(tmp_path / "home").engine
    ingest(engine, [SAMPLES])
    summary = judge_all(engine)
    assert checked.findings == summary.findings > 20
    assert checked.traces == summary.traces
    assert in_corpus(url) == in_workspace(tmp_path / "home")
    assert check(url).partitions == 0


def test_only_new_partitions_are_judged_and_late_spans_anew(tmp_path: Path) -> None:
    url = str(tmp_path / "corpus")
    build([str(otlp_file(tmp_path / "a.jsonl", 1, 2, spans=slice(0, 4)))], url)
    check(url, workers=Workers(count=2))
    build([str(otlp_file(tmp_path / "b.jsonl", 1, spans=slice(4, 10)))], url)
    traces = {row["trace_id"] for row in in_corpus(url)["scores"]}
    assert len(traces) == 1  # that of the trace which grew went with its old rows
    assert check(url).traces == 1
    both = str(tmp_path / "at once")
    build([str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")], both)
    check(both)
    assert in_corpus(url) == in_corpus(both)


def test_a_check_that_breaks_is_a_failure_and_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> tuple[Verdict, ...]:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(offline, "judge_offline", broken)
    url = str(tmp_path / "corpus")
    build([str(otlp_file(tmp_path / "a.jsonl", 1))], url)
    assert check(url).failed == 7
    rows = in_corpus(url)["scores"]
    assert {(row["state"], row["score"]) for row in rows} == {("error", None)}
    assert "ZeroDivisionError" in rows[0]["reason"]


def test_another_version_of_the_checks_judges_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(tmp_path / "corpus")
    build([str(otlp_file(tmp_path / "a.jsonl", 1))], url)
    check(url)
    monkeypatch.setattr(checking, "checks_version", lambda: "0" * 16)
    assert check(url).partitions == 1
    assert len(in_corpus(url)["scores"]) == 7


def test_a_folder_that_holds_no_corpus_is_named(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match="there is no corpus at"):
        check(str(tmp_path))


def assert_counts_are_those_of_the_rows(url: str) -> None:
    """Count the rows of the corpus anew, without what checks counted, and compare every number."""
    corpus = open_corpus(url)
    spans = corpus.dataset("spans").to_table(columns=["trace_id", "agent", "model", "tool_name", "date"]).to_pandas()
    names = ["trace_id", "agent", "model", "tool", "date"]
    findings = corpus.dataset("findings", schema=FINDINGS).to_table(columns=names).to_pandas()
    scores = corpus.dataset("scores", schema=SCORES).to_table(columns=["trace_id"])["trace_id"]
    whole = totals(url)
    assert whole == {
        "traces": corpus.dataset("traces").count_rows(),
        "spans": len(spans),
        "findings": len(findings),
        "rejected": corpus.dataset("rejected").count_rows(),
        "judged": len(scores.unique()),
        "with_findings": findings["trace_id"].nunique(),
    }
    spans.columns = findings.columns = [*names[:4], "day"]
    for by in FACETS:
        table = facet_table(url, by).set_index(by)
        assert set(table.index) == {*spans[by].fillna(NONE), *findings[by].fillna(NONE)}
        for value, row in table.iterrows():
            some = spans[spans[by].fillna(NONE) == value]
            cited = findings[findings[by].fillna(NONE) == value]
            expected = [len(some), some["trace_id"].nunique(), len(cited), cited["trace_id"].nunique()]
            assert row.tolist() == expected, (by, value)


def test_the_summary_counts_what_the_traces_and_their_findings_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "PARTITION_BYTES", 50_000)
    url = str(tmp_path / "corpus")
    build([str(SAMPLES)], url)
    check(url)
    assert len(open_corpus(url).records()) > 5
    assert totals(url)["findings"] > 20
    assert_counts_are_those_of_the_rows(url)
    value = str(facet_table(url, "agent")["agent"].iloc[0])
    assert set(findings_of(url, "agent", value)["agent"]) == {value}


def test_counts_follow_late_spans_copies_and_new_partitions(tmp_path: Path) -> None:
    url = str(tmp_path / "corpus")
    build([str(otlp_file(tmp_path / "a.jsonl", 1, 2, spans=slice(0, 4)))], url)
    check(url)
    before = version(url)
    build([str(otlp_file(tmp_path / f"{name}.jsonl", *n, spans=s)) for name, n, s in LATE], url)
    with pytest.raises(IngestError, match="no check has counted it since its last build"):
        totals(url)
    check(url)
    assert_counts_are_those_of_the_rows(url)
    assert totals(url)["spans"] == 10 + 4 + 4
    assert version(url) != before
    now = version(url)
    build([str(tmp_path / "a.jsonl")], url)
    assert check(url).partitions == 0
    assert version(url) == now


LATE = (("b", (1,), slice(4, 10)), ("c", (2, 3), slice(0, 4)))


def test_a_corpus_of_another_version_of_the_counts_is_counted_and_not_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(tmp_path / "corpus")
    build([str(otlp_file(tmp_path / "a.jsonl", 1, 2))], url)
    check(url)
    expected = [totals(url), facet_table(url, "tool").to_dict()]
    corpus = open_corpus(url)
    (record,) = corpus.records()
    files = {table: paths for table, paths in record.files.items() if table != "counts"}
    corpus.commit(replace(record, files=files, counted=0))  # as a check left it that counted nothing
    corpus.fs.rm_file(corpus.path("_counts.parquet"))
    with pytest.raises(IngestError) as error:
        totals(url)
    assert error.value.remedy == f"tracejury corpus check {url}"
    monkeypatch.setattr(checking, "verdicts_of", lambda *_: pytest.fail("judged again"))
    checked = check(url)
    assert (checked.partitions, checked.known_partitions, checked.traces) == (0, 1, 0)
    assert [totals(url), facet_table(url, "tool").to_dict()] == expected


@pytest.mark.parametrize("content", [None, b"", b"no parquet"])
def test_counts_of_a_partition_that_are_damaged_or_gone_are_counted_again(
    tmp_path: Path, content: bytes | None
) -> None:
    url = tmp_path / "corpus"
    build([str(otlp_file(tmp_path / "a.jsonl", 1, 2))], str(url))
    check(str(url))
    (counts,) = url.glob("counts/*/*/*.parquet")
    if content is None:
        counts.unlink()
    else:
        counts.write_bytes(content)
    check(str(url))
    assert_counts_are_those_of_the_rows(str(url))


def test_damaged_sums_are_named_and_the_next_check_writes_them_anew(tmp_path: Path) -> None:
    url = tmp_path / "corpus"
    build([str(otlp_file(tmp_path / "a.jsonl", 1, 2))], str(url))
    check(str(url))
    expected = totals(str(url))
    sums = url / "_counts.parquet"
    sums.write_bytes(sums.read_bytes()[:-50])
    with pytest.raises(IngestError, match=r"_counts\.parquet is damaged") as error:
        totals(str(url))
    assert error.value.remedy == f"tracejury corpus check {url}"
    check(str(url))
    assert totals(str(url)) == expected


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_a_worker_killed_with_findings_half_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    if engine == "dask":
        pytest.importorskip("distributed", reason="the extra `corpus` is not installed")
    monkeypatch.setattr(building, "PARTITION_BYTES", 20_000)
    for number in range(4):
        otlp_file(tmp_path / "files" / f"{number}.jsonl", number, number + 10)
    whole, killed = str(tmp_path / "whole"), str(tmp_path / "killed")
    for url in (whole, killed):
        build([str(tmp_path / "files")], url)
    check(whole)
    monkeypatch.setattr(checking, "check_partition", check_or_die_once)
    check(killed, workers=Workers(engine=engine, count=2))  # type: ignore[arg-type]
    assert Path(f"{killed}.died").exists()
    assert in_corpus(killed) == in_corpus(whole)
    assert_counts_are_those_of_the_rows(killed)
    assert all_counts(open_corpus(killed)).schema.metadata == all_counts(open_corpus(whole)).schema.metadata
    named = {file for record in open_corpus(killed).records() for files in record.files.values() for file in files}
    there = {str(file.relative_to(killed)) for file in Path(killed).rglob("*.parquet")}
    assert there == named | {"_counts.parquet"}


def test_an_unchecked_corpus_names_the_command_and_an_empty_one_counts_nothing(tmp_path: Path) -> None:
    url = str(tmp_path / "corpus")
    build([str(otlp_file(tmp_path / "a.jsonl", 1))], url)
    with pytest.raises(IngestError) as error:
        totals(url)
    assert error.value.remedy == f"tracejury corpus check {url}"
    empty = str(tmp_path / "empty")
    (tmp_path / "nothing").mkdir()
    build([str(tmp_path / "nothing")], empty)
    check(empty)
    assert set(totals(empty).values()) == {0}
    assert facet_table(empty, "tool").empty
