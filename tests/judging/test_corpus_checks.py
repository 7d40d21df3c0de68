"""What the offline checks say of a corpus is what they say of the same traces in a workspace."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.ingest.corpora import SAMPLES, otlp_file

from tracejury.ingest.batch import ingest
from tracejury.ingest.corpus.build import build
from tracejury.ingest.corpus.engine import Workers
from tracejury.ingest.corpus.layout import open_corpus
from tracejury.ingest.store import read_transaction
from tracejury.ingest.trace import IngestError
from tracejury.judging.corpus import checking
from tracejury.judging.corpus.checking import FINDINGS, SCHEMAS, SCORES, check
from tracejury.judging.corpus.summary import FACETS, NONE, facet_table, findings_of, totals
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
    assert checked.findings == summary["findings"] > 20
    assert checked.traces == summary["traces"]
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


def test_the_summary_counts_what_the_traces_and_their_findings_hold(tmp_path: Path) -> None:
    url = str(tmp_path / "corpus")
    build([str(SAMPLES)], url)
    check(url)
    corpus = open_corpus(url)
    spans = corpus.dataset("spans").to_table(columns=["trace_id", "agent", "model", "tool_name", "date"]).to_pandas()
    names = ["trace_id", "agent", "model", "tool", "date"]
    findings = corpus.dataset("findings", schema=FINDINGS).to_table(columns=names).to_pandas()
    whole = totals(url)
    assert (whole["spans"], whole["findings"]) == (len(spans), len(findings))
    assert whole["with_findings"] == findings["trace_id"].nunique()
    spans.columns = findings.columns = [*names[:4], "day"]
    for by in FACETS:
        table = facet_table(url, by).set_index(by)
        for value, row in table.iterrows():
            some = spans[spans[by].fillna(NONE) == value]
            cited = findings[findings[by].fillna(NONE) == value]
            expected = [len(some), some["trace_id"].nunique(), len(cited), cited["trace_id"].nunique()]
            assert row.tolist() == expected, (by, value)
        assert table["spans"].sum() == len(spans)
        assert table["findings"].sum() == len(findings) > 20
    value = str(facet_table(url, "agent")["agent"].iloc[0])
    assert set(findings_of(url, "agent", value)["agent"]) == {value}


def test_the_summary_of_an_unchecked_or_empty_corpus_is_zero_findings(tmp_path: Path) -> None:
    url = str(tmp_path / "corpus")
    build([str(otlp_file(tmp_path / "a.jsonl", 1))], url)
    assert totals(url) == {"traces": 1, "spans": 10, "findings": 0, "rejected": 0, "judged": 0, "with_findings": 0}
    assert facet_table(url, "tool")["findings"].sum() == 0
