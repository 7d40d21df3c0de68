"""The Corpus page: counts, findings down to a trace, and the error rates of a sample."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import streamlit as st
from sqlalchemy import Connection
from tests.app.conftest import OpenPage
from tests.ingest.corpora import SAMPLES, otlp_file

from tracejury.ingest.corpus.build import build
from tracejury.ingest.corpus.layout import open_corpus
from tracejury.ingest.store import read_transaction, trace_ids, write_transaction
from tracejury.judging.corpus import checking, rates
from tracejury.judging.corpus.checking import check
from tracejury.judging.corpus.rates import CorpusRates, corpus_rates
from tracejury.judging.corpus.sampling import sample
from tracejury.judging.corpus.summary import facet_table, totals
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.records import Review
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import ensure_annotator


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checked corpus of the samples."""
    made = str(tmp_path_factory.mktemp("corpus") / "corpus")
    build([str(SAMPLES)], made)
    check(made)
    return made


def submit_one(space: Workspace) -> None:
    """A review of one trace by ada."""
    with read_transaction(space.engine) as connection:
        (trace_id, *_) = trace_ids(connection)
    with write_transaction(space.engine) as connection:
        ensure_annotator(connection, "ada")
        one = Review(trace_id=trace_id, annotator="ada", status="submitted")
        put_labels(connection, errors=(), scores=(), reviews=[one], author="ada")


def test_without_a_corpus_it_says_how_to_choose_one(empty: Workspace, open_page: OpenPage) -> None:
    assert "TRACEJURY_CORPUS" in open_page("corpus").info[0].value


def test_the_counts_are_those_of_the_corpus(
    empty: Workspace, open_page: OpenPage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJURY_CORPUS", url)
    at = open_page("corpus", corpus_by="model")
    assert not at.exception
    shown = {metric.label: metric.value for metric in at.metric}
    assert shown["Traces"] == f"{totals(url)['traces']:,}"
    assert shown["Findings"] == f"{totals(url)['findings']:,}"
    assert at.dataframe[0].value["findings"].tolist() == facet_table(url, "model")["findings"].tolist()
    assert any("No sample of this corpus" in one.value for one in at.info)


def test_a_sample_names_the_corpus_and_what_its_rates_lack(empty: Workspace, open_page: OpenPage, url: str) -> None:
    sample(empty.engine, url, n=10, method="random", author="ada")
    at = open_page("corpus")
    assert not at.exception
    assert any("0 of 10 sampled traces reviewed by nobody" in one.value for one in at.caption)
    assert any("error rates are unknown" in one.value for one in at.info)


def test_rates_are_estimated_once_until_labels_or_the_corpus_change(
    empty: Workspace, open_page: OpenPage, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = str(shutil.copytree(url, tmp_path / "corpus"))
    sample(empty.engine, own, n=10, method="random", author="ada")
    estimated = []

    def noted(connection: Connection, key: int) -> CorpusRates:
        estimated.append(key)
        return corpus_rates(connection, key)

    monkeypatch.setattr(rates, "corpus_rates", noted)
    for by in ("agent", "model", "agent"):
        assert not open_page("corpus", corpus_by=by).exception
    assert len(estimated) == 1
    submit_one(empty)
    at = open_page("corpus")
    assert any("1 of 10 sampled traces reviewed by ada" in one.value for one in at.caption)
    assert len(estimated) == 2
    monkeypatch.setattr(checking, "checks_version", lambda: "0" * 16)
    check(own)
    st.cache_data.clear()  # as a minute does
    open_page("corpus")
    assert len(estimated) == 3


def test_why_there_are_no_rates_is_told_beside_the_findings(
    empty: Workspace, open_page: OpenPage, url: str, tmp_path: Path
) -> None:
    own = str(shutil.copytree(url, tmp_path / "corpus"))
    sample(empty.engine, own, n=10, method="random", author="ada")
    submit_one(empty)
    build([str(otlp_file(tmp_path / "late.jsonl", 1))], own)
    check(own)
    at = open_page("corpus")
    assert "No error rates" in at.warning[0].value
    assert len(at.dataframe) == 1


def test_a_damaged_file_is_named_in_place_of_numbers(
    empty: Workspace, open_page: OpenPage, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(url, tmp_path / "corpus"))
    file = copy / "_counts.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    monkeypatch.setenv("TRACEJURY_CORPUS", str(copy))
    at = open_page("corpus")
    assert not at.exception
    assert "parquet is damaged" in at.error[0].value
    assert f"tracejury corpus check {copy}" in at.error[0].value.replace("\\", "")


def test_a_corpus_under_construction_is_not_counted(
    empty: Workspace, open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = str(tmp_path / "corpus")
    build([str(SAMPLES / "trail")], made)
    open_corpus(made)._take_lock("build")
    monkeypatch.setenv("TRACEJURY_CORPUS", made)
    at = open_page("corpus")
    assert "under way or was interrupted" in at.error[0].value
    assert not at.metric
