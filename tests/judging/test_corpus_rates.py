"""A sample of a corpus in a workspace: known chances, the same traces, and rates that people's labels correct."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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
from tracejury.judging.agreement.prevalence import corpus_table, prediction_powered
from tracejury.judging.corpus import checking
from tracejury.judging.corpus.checking import check
from tracejury.judging.corpus.rates import CorpusRates, corpus_rates, newest_sample
from tracejury.judging.corpus.sampling import METHODS, Method, draw_sample, population, sample
from tracejury.judging.corpus.schemas import FINDINGS, SCORES
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.records import DIMENSIONS, Call, Citation, ErrorLabel, Failure, Finding, Review, Verdict
from tracejury.judging.reports.filters import Filters, Split
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.people import ensure_annotator

SIZE = 300


def has_error(trace_id: str) -> bool:
    """The truth: about a third of the traces."""
    return random.Random(trace_id).random() < 0.35


def is_flagged(trace_id: str) -> bool:
    """What the checks say: wrong on one trace of six."""
    return has_error(trace_id) != (random.Random(f"flag {trace_id}").random() < 1 / 6)


def is_broken(trace_id: str) -> bool:
    """Whether the checks of the dimension PQ failed."""
    return random.Random(f"broken {trace_id}").random() < 0.1


def verdicts(trace: Trace, _wanted: object) -> list[Verdict | Failure]:
    root = trace.spans[0].span_id
    finding = Finding(
        description="d", evidence="e", citations=(Citation(cite=root, span_id=root),), impact="high", check="made_up"
    )
    outcomes: list[Verdict | Failure] = [
        Verdict(
            rubric=name, trace_id=trace.trace_id, state="scored", score=3, criteria="", rationale="",
            findings=(finding,) if name in {"LC", "PQ"} and is_flagged(trace.trace_id) else (),
            call=Call(model="checks"),
        )
        for name in DIMENSIONS
    ]  # fmt: skip
    if is_broken(trace.trace_id):
        place = DIMENSIONS.index("PQ")
        outcomes[place] = Failure(
            rubric="PQ", trace_id=trace.trace_id, state="error", reason="broke", call=Call(model="checks")
        )
    return outcomes


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


def review(space: Workspace, trace_ids: Iterable[str], *, by: str = "ada", guideline: str | None = None) -> None:
    """What a person stores of these traces: the truth."""
    ids = list(trace_ids)
    roots = {trace_id: trace.spans[0].span_id for trace_id, trace in workspace_traces(space.home).items()}
    errors = [
        ErrorLabel(
            label_id=f"{by}-{trace_id}", trace_id=trace_id, annotator=by, span_ids=(roots[trace_id],),
            dimensions=("LC", "PQ"), impact="high", description="wrong",
        )
        for trace_id in ids
        if has_error(trace_id)
    ]  # fmt: skip
    reviews = [
        Review(
            trace_id=trace_id, annotator=by, status="submitted", no_error=not has_error(trace_id),
            guideline_version=guideline,
        )
        for trace_id in ids
    ]  # fmt: skip
    with write_transaction(space.engine) as connection:
        ensure_annotator(connection, by)
        put_labels(connection, errors=errors, scores=(), reviews=reviews, author=by)


def rates_of(space: Workspace, **filters: Any) -> CorpusRates:
    """The rates of the newest sample under these filters."""
    with read_transaction(space.engine) as connection:
        return corpus_rates(connection, newest_sample(connection) or 0, Filters(**filters))


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


@pytest.mark.parametrize("method", ["random", "disagreement"])
def test_rates_from_counts_are_those_of_every_row_of_the_corpus(url: str, space: Workspace, method: Method) -> None:
    sample(space.engine, url, n=150, method=method, author="ada")
    rows = drawn(space)
    review(space, rows["trace_id"])
    corpus = open_corpus(url)
    scores = corpus.dataset("scores", schema=SCORES).to_table().to_pandas()
    findings = corpus.dataset("findings", schema=FINDINGS).to_table(columns=["trace_id", "dimension"]).to_pandas()
    assert (scores["state"] == "error").sum() > 20
    for dimension, row in rates_of(space).table.set_index("dimension").iterrows():
        units = scores[scores["dimension"] == dimension].merge(rows, on="trace_id", how="left")
        flagged = units["trace_id"].isin(findings.loc[findings["dimension"] == dimension, "trace_id"])
        truth = units["trace_id"].map(has_error) & (dimension in {"LC", "PQ"})
        units["judge_label"] = flagged.astype(object).mask(units["state"] == "error", None)
        units["reference_label"] = truth.astype(object).where(units["inclusion"].notna(), None)
        slow = corpus_table(units.rename(columns={"trace_id": "unit"})).iloc[0]
        expected = [slow["ppi"], slow["ppi_low"], slow["ppi_high"]]
        assert [row["rate"], row["rate_low"], row["rate_high"]] == pytest.approx(expected, nan_ok=True)
        known = units["judge_label"].notna()
        assert row["traces"] == known.sum()
        assert row["apparent"] == pytest.approx(flagged[known].mean())
        assert row["labelled"] == (known & units["inclusion"].notna()).sum()
        assert pd.notna(row["rate"]) == (dimension in {"LC", "PQ"})


@pytest.mark.parametrize("reference", ["majority", "single"])
@pytest.mark.parametrize("cut", ["split", "trace_formats"])
def test_a_split_or_format_thins_neither_the_sample_nor_its_errors(
    url: str, space: Workspace, reference: str, cut: str
) -> None:
    sample(space.engine, url, n=160, method="random", author="ada")
    ids = list(drawn(space)["trace_id"])
    for person in ("ada", "ben"):
        review(space, ids, by=person)
    with_error = [trace_id for trace_id in ids if has_error(trace_id)]
    split = Split(name="half", parts=tuple((trace_id, "dev") for trace_id in ids[::2]))
    filters = {"split": {"split": split}, "trace_formats": {"trace_formats": ("trail",)}}[cut]
    whole, of_cut = rates_of(space, reference=reference), rates_of(space, reference=reference, **filters)
    pd.testing.assert_frame_equal(of_cut.table, whole.table)
    assert whole.table.set_index("dimension").loc["LC", "with_error"] == len(with_error)
    assert of_cut.basis().startswith("160 of 160 sampled traces")
    assert f"not applied: {'the split half' if cut == 'split' else 'trace formats trail'}" in of_cut.basis()


@pytest.mark.parametrize("reference", ["majority", "single"])
@pytest.mark.parametrize("counts", ["guideline", "blind_only"])
def test_reviews_that_do_not_count_are_told_and_bounded(
    url: str, space: Workspace, reference: str, counts: str
) -> None:
    """Those that do not count are here of traces without an error: the worst case that the bounds must hold."""
    sample(space.engine, url, n=160, method="random", author="ada")
    ids = sorted(drawn(space)["trace_id"], key=has_error)
    late = ids[:40]
    if counts == "blind_only":
        for person in ("ada", "ben"):
            note_seen(space.engine, annotator=person, trace_ids=late, what="a page", at=1)
    for person in ("ada", "ben"):
        review(space, ids[40:], by=person, guideline="1" if counts == "guideline" else None)
        review(space, late, by=person)
    told = rates_of(space, reference=reference, **({"guideline": "1"} if counts == "guideline" else {}))
    row = told.table.set_index("dimension").loc["LC"]
    truth = np.mean([has_error(trace_id) for trace_id in population(open_corpus(url))["trace_id"]])
    assert (row["labelled"], told.reviewed, told.not_counted) == (120, 120, 40)
    assert row["lowest"] < truth < row["highest"]
    assert row["highest"] - row["lowest"] > 40 / 160
    assert "120 of 160 sampled traces" in told.basis()
    assert f"40 more are reviewed but do not count: not {'blind' if counts == 'blind_only' else ''}" in told.basis()
    assert "rate takes the 40 others to be like the reviewed traces" in told.basis()


def test_unreviewed_traces_with_and_without_errors_give_the_ends_of_the_bounds(url: str, space: Workspace) -> None:
    sample(space.engine, url, n=120, method="disagreement", author="ada")
    rows = drawn(space).sort_values(["stratum", "trace_id"]).iloc[::-1]
    is_reviewed = np.arange(len(rows)) % 6 != 0
    review(space, rows.loc[is_reviewed, "trace_id"])
    row = rates_of(space).table.set_index("dimension").loc["LC"]
    traces = population(open_corpus(url))["trace_id"]
    y, f = (rows["trace_id"].map(of).to_numpy(bool) for of in (has_error, is_flagged))
    ends = [
        prediction_powered(
            labels.astype(float), f.astype(float), traces.map(is_flagged).to_numpy(float),
            weights=1 / rows["inclusion"].to_numpy(), tuning=1.0,
        ).bounds()
        for labels in (y & is_reviewed, y | ~is_reviewed)
    ]  # fmt: skip
    assert (row["lowest"], row["highest"]) == pytest.approx((ends[0][0], ends[1][1]))
    assert row["lowest"] < row["rate_low"] < row["rate_high"] < row["highest"]


def test_an_error_without_impact_is_an_error_and_one_without_dimension_leaves_its_trace_unreviewed(
    url: str, space: Workspace
) -> None:
    sample(space.engine, url, n=120, method="random", author="ada")
    ids = list(drawn(space)["trace_id"])
    review(space, ids)
    clean = [trace_id for trace_id in ids if not has_error(trace_id)]
    unfinished = [
        ErrorLabel(
            label_id=f"more-{trace_id}", trace_id=trace_id, annotator="ada", span_ids=(), dimensions=dimensions,
            impact=None,
        )
        for trace_id, dimensions in ((clean[0], ("LC",)), (clean[1], ()))
    ]  # fmt: skip
    with write_transaction(space.engine) as connection:
        put_labels(connection, errors=unfinished, scores=(), reviews=(), author="ada")
    told = rates_of(space)
    row = told.table.set_index("dimension").loc["LC"]
    assert (row["labelled"], row["with_error"]) == (119, len(ids) - len(clean) + 1)
    assert "1 more are reviewed but do not count" in told.basis()


def test_a_corpus_with_other_traces_than_at_the_draw_gives_no_rate(tmp_path: Path, space: Workspace) -> None:
    url = str(tmp_path / "corpus")
    build([str(otlp_file(tmp_path / "a.jsonl", *range(9), spans=slice(0, 2)))], url)
    check(url)
    sample(space.engine, url, n=4, method="random", author="ada")
    review(space, drawn(space)["trace_id"])
    build([str(otlp_file(tmp_path / "b.jsonl", 20, spans=slice(0, 2)))], url)
    check(url)
    with pytest.raises(IngestError, match="has 10 checked traces, the sample was drawn from 9"):
        rates_of(space)


def test_a_trace_that_grew_in_the_corpus_since_the_draw_is_not_reviewed(tmp_path: Path, space: Workspace) -> None:
    url = str(tmp_path / "corpus")
    build([str(otlp_file(tmp_path / "a.jsonl", *range(9), spans=slice(0, 2)))], url)
    check(url)
    sample(space.engine, url, n=9, method="random", author="ada")
    review(space, drawn(space)["trace_id"])
    build([str(otlp_file(tmp_path / "b.jsonl", 3, spans=slice(2, 4)))], url)
    with pytest.raises(IngestError) as error:
        rates_of(space)
    assert error.value.remedy == f"tracejury corpus check {url}"
    check(url)
    told = rates_of(space)
    assert (told.reviewed, told.not_counted) == (8, 1)
    assert "changed in the corpus since" in told.basis()


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
    assert "120 of 120 sampled traces reviewed by ada" in done.stderr
    frame = pd.read_csv(out / "sampled_corpus_rates.csv", comment="#")
    assert frame.set_index("dimension").loc["LC", "rate"] == pytest.approx(0.35, abs=0.12)
    assert "120 of 120 sampled traces" in json.loads((out / "manifest.json").read_text("utf-8"))["corpus"]
    open_workspace(tmp_path / "other")
    assert "needs a sample of a corpus" in run(main, [*words[:2], str(tmp_path / "other"), *words[3:]]).output
    assert "too few" in run(main, ["corpus", "sample", url, "--n", "1", "--by", "stratum", "--into", str(home)]).output
