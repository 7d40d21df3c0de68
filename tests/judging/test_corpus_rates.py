"""A sample of a corpus in a workspace: known chances, the same traces, and rates that people's labels correct."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sqlalchemy import select
from tests.ingest.corpora import otlp_file, workspace_traces

from tracejury.app.cli import main
from tracejury.ingest.corpus.build import build
from tracejury.ingest.corpus.layout import open_corpus
from tracejury.ingest.corpus.partition import Reading
from tracejury.ingest.corpus.reading import read_trace
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.ingest.trace import IngestError, Trace
from tracejury.judging.agreement.prevalence import prediction_powered
from tracejury.judging.corpus import checking
from tracejury.judging.corpus.checking import check
from tracejury.judging.corpus.rates import corpus_rates, newest_sample
from tracejury.judging.corpus.sampling import METHODS, Method, draw_sample, population, sample
from tracejury.judging.labels.label_store import put_labels
from tracejury.judging.records import DIMENSIONS, Call, Citation, ErrorLabel, Finding, Review, Verdict
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.people import ensure_annotator

SIZE = 300


def has_error(trace_id: str) -> bool:
    """The truth: about a third of the traces."""
    return random.Random(trace_id).random() < 0.35


def is_flagged(trace_id: str) -> bool:
    """What the checks say: wrong on one trace of six."""
    return has_error(trace_id) != (random.Random(f"flag {trace_id}").random() < 1 / 6)


def verdicts(trace: Trace, _wanted: object) -> list[Verdict]:
    root = trace.spans[0].span_id
    finding = Finding(
        description="d", evidence="e", citations=(Citation(cite=root, span_id=root),), impact="high", check="made_up"
    )
    return [
        Verdict(
            rubric=name, trace_id=trace.trace_id, state="scored", score=3, criteria="", rationale="",
            findings=(finding,) if name == "LC" and is_flagged(trace.trace_id) else (), call=Call(model="checks"),
        )
        for name in DIMENSIONS
    ]  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checked corpus of SIZE traces of two spans each."""
    folder = tmp_path_factory.mktemp("corpus")
    otlp_file(folder / "files" / "a.jsonl", *range(SIZE), spans=slice(0, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "verdicts_of", verdicts)
        build([str(folder / "files")], str(folder / "corpus"))
        check(str(folder / "corpus"))
    return str(folder / "corpus")


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return open_workspace(tmp_path / "home")


def review(space: Workspace, trace_ids: Iterable[str]) -> None:
    """What ada stores of these traces: the truth."""
    ids = list(trace_ids)
    roots = {trace_id: trace.spans[0].span_id for trace_id, trace in workspace_traces(space.home).items()}
    errors = [
        ErrorLabel(
            label_id=f"e-{trace_id}", trace_id=trace_id, annotator="ada", span_ids=(roots[trace_id],),
            dimensions=("LC",), impact="high", description="wrong",
        )
        for trace_id in ids
        if has_error(trace_id)
    ]  # fmt: skip
    reviews = [
        Review(trace_id=trace_id, annotator="ada", status="submitted", no_error=not has_error(trace_id))
        for trace_id in ids
    ]
    with write_transaction(space.engine) as connection:
        ensure_annotator(connection, "ada")
        put_labels(connection, errors=errors, scores=(), reviews=reviews, author="ada")


def drawn(space: Workspace) -> pd.DataFrame:
    row = tables.corpus_sample_trace
    with read_transaction(space.engine) as connection:
        found = connection.execute(select(row.c.trace_id, row.c.stratum, row.c.inclusion, row.c.digest)).all()
    return pd.DataFrame(found, columns=["trace_id", "stratum", "inclusion", "digest"])


@pytest.mark.parametrize("method", METHODS)
def test_the_chances_of_a_sample_give_back_the_size_of_the_corpus(url: str, method: Method) -> None:
    traces = population(open_corpus(url))
    some = draw_sample(traces, 100, method, seed=3)
    assert len(some) == some["trace_id"].nunique() == 100
    assert (1 / some["inclusion"]).sum() == pytest.approx(len(traces))
    assert some["stratum"].value_counts().min() >= 2
    assert draw_sample(traces.sample(frac=1, random_state=1), 100, method, seed=3)["trace_id"].is_unique
    again = draw_sample(traces.sample(frac=1, random_state=1), 100, method, seed=3)
    assert set(again["trace_id"]) == set(some["trace_id"])
    assert set(draw_sample(traces, 100, method, seed=4)["trace_id"]) != set(some["trace_id"])


def test_disagreement_takes_half_from_where_checks_and_status_disagree(url: str) -> None:
    some = draw_sample(population(open_corpus(url)), 100, "disagreement", seed=1)
    assert some["stratum"].value_counts().tolist() == [50, 50]
    assert some["inclusion"].nunique() == 2


def test_more_than_there_are_takes_all_with_certainty_and_too_few_is_refused(url: str) -> None:
    traces = population(open_corpus(url))
    assert set(draw_sample(traces, SIZE + 5, "random", seed=1)["inclusion"]) == {1.0}
    with pytest.raises(ValueError, match="too few for 2 strata"):
        draw_sample(traces, 3, "stratum", seed=1)


@pytest.mark.parametrize("method", ["random", "disagreement"])
def test_weighted_samples_estimate_the_rate_without_bias(url: str, method: Method) -> None:
    """Over 100 samples the mean of the estimates lies within three of its standard errors of the truth."""
    traces = population(open_corpus(url))
    truth, flagged = (traces["trace_id"].map(of).to_numpy(float) for of in (has_error, is_flagged))
    made = []
    for seed in range(100):
        rows = draw_sample(traces, 80, method, seed=seed)
        y, f = (rows["trace_id"].map(of).to_numpy(float) for of in (has_error, is_flagged))
        made.append(prediction_powered(y, f, flagged, weights=1 / rows["inclusion"].to_numpy()).value)
    assert np.mean(made) == pytest.approx(truth.mean(), abs=3 * np.std(made) / np.sqrt(len(made)) + 0.002)


@pytest.mark.parametrize("method", METHODS)
def test_a_reviewed_sample_gives_the_corpus_rate_with_its_interval(url: str, space: Workspace, method: Method) -> None:
    told = sample(space.engine, url, n=120, method=method, author="ada")
    assert (told.traces, told.population, sum(told.strata.values())) == (120, SIZE, 120)
    rows = drawn(space)
    review(space, rows["trace_id"])
    with read_transaction(space.engine) as connection:
        rates = corpus_rates(connection, newest_sample(connection) or 0)
    row = rates.table.set_index("dimension").loc["LC"]
    traces = population(open_corpus(url))["trace_id"]
    y, f = (rows["trace_id"].map(of).to_numpy(float) for of in (has_error, is_flagged))
    is_weighted = rows["inclusion"].nunique() > 1
    others = traces if is_weighted else traces[~traces.isin(rows["trace_id"])]
    expected = prediction_powered(
        y,
        f,
        others.map(is_flagged).to_numpy(float),
        weights=1 / rows["inclusion"].to_numpy() if is_weighted else None,
        tuning=1.0 if is_weighted else None,
    )
    assert row["rate"] == pytest.approx(expected.value)
    assert (row["rate_low"], row["rate_high"]) == pytest.approx(expected.bounds())
    assert row["rate_low"] < traces.map(has_error).mean() < row["rate_high"]
    assert row["apparent"] == pytest.approx(traces.map(is_flagged).mean())
    assert (row["traces"], row["labelled"], row["with_error"]) == (SIZE, 120, int(y.sum()))
    assert f"120 of 120 sampled traces reviewed by ada; drawn by {method} from the 300" in rates.basis()
    assert rates.table.set_index("dimension").loc["TC", "why_not"].startswith("intervals are unreliable")


def test_the_workspace_holds_the_very_traces_and_a_queue_of_them(url: str, space: Workspace) -> None:
    told = sample(space.engine, url, n=10, method="random", author="ada")
    traces = workspace_traces(space.home)
    assert set(traces) == set(drawn(space)["trace_id"])
    corpus = open_corpus(url)
    assert all(read_trace(corpus, trace_id) == trace for trace_id, trace in traces.items())
    with read_transaction(space.engine) as connection:
        items = select(tables.queue_item.c.trace_id).join(tables.queue).where(tables.queue.c.name == told.queue)
        assert set(connection.scalars(items)) == set(traces)


def test_nobody_s_review_leaves_the_rates_empty_and_an_unreviewed_stratum_is_named(url: str, space: Workspace) -> None:
    sample(space.engine, url, n=40, method="disagreement", author="ada")
    with read_transaction(space.engine) as connection:
        none = corpus_rates(connection, 1)
    assert none.table.empty
    assert none.basis().startswith("0 of 40 sampled traces reviewed by nobody")
    rows = drawn(space)
    review(space, rows.loc[rows["stratum"].str.contains("disagree"), "trace_id"])
    with read_transaction(space.engine) as connection, pytest.raises(IngestError, match="'checks and status agree'"):
        corpus_rates(connection, 1)


def test_no_sample_is_stored_of_files_that_changed(tmp_path: Path, space: Workspace) -> None:
    file, url = otlp_file(tmp_path / "a.jsonl", 1, 2), str(tmp_path / "corpus")
    build([str(file)], url)
    with pytest.raises(IngestError, match="no trace that was checked"):
        sample(space.engine, url, n=2, method="random", author="ada")
    check(url)
    file.write_bytes(file.read_bytes().replace(b"agent 0", b"agent Z"))
    with pytest.raises(IngestError, match="changed since it was read"):
        sample(space.engine, url, n=2, method="random", author="ada")
    with read_transaction(space.engine) as connection:
        assert newest_sample(connection) is None


def test_secrets_stay_masked_in_the_sample(tmp_path: Path, space: Workspace) -> None:
    secret = "sk-" + "proj-" + "Zq8" * 16
    file, url = otlp_file(tmp_path / "a.jsonl", 1), str(tmp_path / "corpus")
    file.write_bytes(file.read_bytes().replace(b"agent 0", f"key {secret}".encode()))
    build([str(file)], url, reading=Reading(redact=True))
    check(url)
    sample(space.engine, url, n=1, method="random", author="ada")
    assert secret not in str(workspace_traces(space.home))


def test_the_commands_sample_and_report_write_the_rates_and_what_they_rest_on(url: str, tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "tables"
    run = CliRunner().invoke
    done = run(main, ["corpus", "sample", url, "--n", "120", "--into", str(home), "--json"])
    assert json.loads(done.stdout)["traces"] == 120, done.output
    space = open_workspace(home)
    review(space, drawn(space)["trace_id"])
    words = ["report", "--home", str(home), "--out", str(out), "--table", "sampled_corpus_rates"]
    done = run(main, words)
    assert done.exit_code == 0, done.output
    frame = pd.read_csv(out / "sampled_corpus_rates.csv", comment="#")
    assert frame.set_index("dimension").loc["LC", "rate"] == pytest.approx(0.35, abs=0.12)
    assert "120 of 120 sampled traces" in json.loads((out / "manifest.json").read_text("utf-8"))["corpus"]
    open_workspace(tmp_path / "other")
    assert "needs a sample of a corpus" in run(main, [*words[:2], str(tmp_path / "other"), *words[3:]]).output
    assert "too few" in run(main, ["corpus", "sample", url, "--n", "1", "--by", "stratum", "--into", str(home)]).output
