"""Scores of judge and person: accuracies, correlations, chance-corrected agreement."""

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from tracejury.judging.agreement import scores

THREE = np.array([[13, 0, 0], [0, 20, 7], [0, 4, 56]])  # METRICS.md, reference values


def score_pairs(reference: list[int], model: list[int], **more: object) -> pd.DataFrame:
    frame = pd.DataFrame(
        {"trace_id": [f"t{i}" for i in range(len(reference))], "reference_score": reference, "judge_score": model}
    )
    return frame.assign(dimension="LC").assign(**more)


def value(table: pd.DataFrame, metric: str, column: str = "value") -> float:
    return table.set_index("metric").loc[metric, column]


def random_tables(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Score tables (count, 4, 4), from empty corners to full, some with a constant side."""
    tables = rng.poisson(rng.choice([0.3, 1.0, 5.0], size=(count, 1, 1)), size=(count, 4, 4))
    tables[::10, 1:] = 0  # the human gave only 0
    tables[5::10, :, :3] = 0  # the judge gave only 3
    return tables


def as_lists(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    reference, model = np.indices((4, 4))
    return np.repeat(reference.ravel(), table.ravel()), np.repeat(model.ravel(), table.ravel())


@pytest.mark.parametrize(
    ("weights", "kappa", "gwet"),
    [
        ("identity", 0.7964094, 0.84933),
        ("linear", 0.842902, 0.90002),
        ("quadratic", 0.8921569, 0.94024),
    ],
)
def test_reference_values_of_the_three_by_three_table(weights: scores.Weights, kappa: float, gwet: float) -> None:
    assert float(scores.kappa(THREE, weights)) == pytest.approx(kappa, abs=5e-7)
    assert float(scores.gwet(THREE, weights)) == pytest.approx(gwet, abs=5e-6)


def test_the_prevalence_paradox_shows_in_kappa_and_not_in_ac1() -> None:
    # h = 1x118, 0x5, 1x2 against a = 1x123, 0x2: 118 agree on 1, none on 0
    table = np.array([[0, 5], [2, 118]])
    assert np.trace(table) / table.sum() == pytest.approx(0.944)
    assert float(scores.kappa(table, "identity")) == pytest.approx(-0.023, abs=5e-4)
    assert float(scores.gwet(table, "identity")) == pytest.approx(0.941, abs=5e-4)


def test_the_whole_scale_enters_quadratic_kappa_though_scores_are_unused() -> None:
    # METRICS.md's trap: scikit-learn without labels treats the scores 0, 1, 3 as neighbours
    reference, model = np.array([0, 0, 1, 1, 3, 3]), np.array([0, 1, 1, 1, 3, 1])
    ours = float(scores.quadratic_kappa(scores.tabulate(reference.astype(float), model.astype(float))))
    full = cohen_kappa_score(reference, model, weights="quadratic", labels=[0, 1, 2, 3])
    short = cohen_kappa_score(reference, model, weights="quadratic")
    assert ours == pytest.approx(full)
    assert abs(short - full) > 0.01


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_kappas_equal_scikit_learn_and_statsmodels_on_a_thousand_random_inputs() -> None:
    rng = np.random.default_rng(3)
    tables = random_tables(1_000, rng)
    with np.errstate(all="ignore"):
        ours = {w: scores.kappa(tables, w) for w in ("identity", "linear", "quadratic")}
        theirs = {"identity": None, "linear": "linear", "quadratic": "quadratic"}
        for i, table in enumerate(tables):
            if table.sum() == 0:
                assert np.isnan(ours["identity"][i])
                continue
            name = ("identity", "linear", "quadratic")[i % 3]
            reference, model = as_lists(table)
            found = cohen_kappa_score(reference, model, labels=range(4), weights=theirs[name])
            assert ours[name][i] == pytest.approx(found, nan_ok=True, abs=1e-12)
        for table in tables[tables.sum(axis=(1, 2)) > 30][:100]:
            reference = cohens_kappa(table)
            if np.isfinite(reference.kappa):
                assert float(scores.kappa(table, "identity")) == pytest.approx(reference.kappa)


def test_correlations_equal_scipy_on_a_thousand_random_inputs() -> None:
    tables = random_tables(1_000, np.random.default_rng(4))
    pearson, spearman = scores.pearson(tables), scores.spearman(tables)
    defined = 0
    for i, table in enumerate(tables):
        reference, model = as_lists(table)
        if len(set(reference)) < 2 or len(set(model)) < 2:
            assert np.isnan(pearson[i])
            assert np.isnan(spearman[i])
            continue
        defined += 1
        assert pearson[i] == pytest.approx(np.corrcoef(reference, model)[0, 1], abs=1e-12)
        ranks = np.corrcoef(stats.rankdata(reference), stats.rankdata(model))[0, 1]
        assert spearman[i] == pytest.approx(ranks, abs=1e-12)
    assert defined > 500


def test_accuracies_nmae_and_bias_equal_their_definitions_on_random_inputs() -> None:
    tables = random_tables(300, np.random.default_rng(6))
    bucket = np.array([0, 1, 1, 2])
    for table in tables[tables.sum(axis=(1, 2)) > 0]:
        reference, model = as_lists(table)
        expected = {
            scores.exact: np.mean(reference == model),
            scores.off_by_one: np.mean(abs(reference - model) <= 1),
            scores.bucketed: np.mean(bucket[reference] == bucket[model]),
            scores.two_point: np.mean((reference > 0) == (model > 0)),
            scores.nmae: np.mean(abs(bucket[reference] - bucket[model])) / 2,
            scores.mae: np.mean(abs(reference - model)),
            scores.bias: np.mean(model - reference),
        }
        for metric, number in expected.items():
            assert float(metric(table)) == pytest.approx(number)


def test_bucketed_and_off_by_one_are_never_below_exact() -> None:
    tables = random_tables(1_000, np.random.default_rng(8))
    exact = scores.exact(tables)
    known = ~np.isnan(exact)
    assert (scores.bucketed(tables)[known] >= exact[known]).all()
    assert (scores.off_by_one(tables)[known] >= exact[known]).all()
    assert (scores.two_point(tables)[known] >= exact[known]).all()
    # neither of bucketed and two-point is below the other's misses: buckets refine the two sides
    assert (scores.two_point(tables)[known] >= scores.bucketed(tables)[known]).all()


@pytest.mark.parametrize("metric", scores.SCORE_METRICS, ids=lambda m: m.name)
def test_a_judge_against_itself_is_perfect(metric: scores.ScoreMetric) -> None:
    table = np.diag([4, 7, 2, 9])
    assert float(metric.function(table)) == pytest.approx(metric.aim)


@pytest.mark.parametrize("metric", scores.SCORE_METRICS, ids=lambda m: m.name)
def test_human_and_judge_may_change_places(metric: scores.ScoreMetric) -> None:
    tables = random_tables(200, np.random.default_rng(9))
    sign = -1 if metric.name == "bias" else 1
    np.testing.assert_allclose(metric.function(tables), sign * metric.function(tables.swapaxes(1, 2)), atol=1e-12)


def test_reversing_the_scale_changes_nothing_where_it_must_not() -> None:
    tables = random_tables(200, np.random.default_rng(10))
    turned = tables[:, ::-1, ::-1]
    for metric in (
        scores.exact,
        scores.off_by_one,
        scores.bucketed,
        scores.pearson,
        scores.spearman,
        scores.nmae,
        scores.quadratic_kappa,
        scores.ac1,
        scores.ac2,
        scores.pair_alpha,
    ):
        np.testing.assert_allclose(metric(tables), metric(turned), atol=1e-12)


def test_renaming_scores_changes_only_weighted_estimates() -> None:
    tables = random_tables(200, np.random.default_rng(11))
    order = [2, 0, 3, 1]
    renamed = tables[:, order][:, :, order]
    for metric in (scores.exact, scores.ac1):
        np.testing.assert_allclose(metric(tables), metric(renamed), atol=1e-12)
    assert not np.allclose(scores.ac2(tables), scores.ac2(renamed), equal_nan=True)


@pytest.mark.parametrize("metric", ["pearson", "spearman", "quadratic_kappa", "ac1", "ac2", "pair_alpha"])
def test_shuffled_labels_are_about_zero(metric: str) -> None:
    rng = np.random.default_rng(12)
    reference = rng.integers(0, 4, 4_000).astype(float)
    table = scores.tabulate(reference, rng.permutation(reference))
    function = {m.name: m.function for m in scores.SCORE_METRICS}[metric]
    assert abs(float(function(table))) < 0.05


def test_constant_sides_are_undefined_with_a_reason_not_zero() -> None:
    estimates = scores.score_estimates(score_pairs([2, 2, 2], [2, 2, 2]), draws=50)
    for metric in ("pearson", "spearman", "quadratic_kappa", "pair_alpha"):
        assert np.isnan(value(estimates, metric))
        assert value(estimates, metric, "reason") == "no variation"
        assert (value(estimates, metric, "n"), value(estimates, metric, "agreement")) == (3, 1.0)
    assert value(estimates, "exact") == 1.0
    assert value(estimates, "ac1") == 1.0


def test_without_pairs_every_metric_says_no_units() -> None:
    estimates = scores.score_estimates(score_pairs([1], [2], state="failed"), draws=50)
    assert estimates["value"].isna().all()
    assert set(estimates["reason"]) == {"no units"}
    assert set(estimates["failed"]) == {1}


def test_missing_failed_and_not_applicable_are_three_things() -> None:
    pairs = score_pairs([0, 1, 2, 3, 3], [0, 1, 2, 3, 3])
    pairs["judge_score"] = [0, 1, None, None, None]
    pairs["state"] = ["scored", "scored", "scored", "failed", "not_applicable"]
    row = scores.score_table(pairs, draws=20).iloc[0]
    assert [row[c] for c in ("n", "failed", "not_applicable", "missing")] == [2, 1, 1, 1]
    assert row["exact"] == 1.0


def test_failed_scores_can_count_as_disagreement() -> None:
    pairs = score_pairs([0, 1, 2, 3], [0, 1, 2, 3])
    pairs["state"] = ["scored", "scored", "scored", "failed"]
    pairs.loc[3, "judge_score"] = None
    estimates = scores.score_estimates(pairs, missing="disagree", draws=50)
    assert value(estimates, "exact") == 0.75
    assert value(estimates, "exact", "n") == 4
    assert value(estimates, "pearson") == pytest.approx(1.0)
    assert value(estimates, "pearson", "n") == 3


def test_accuracy_has_wilsons_interval_and_kappa_fishers() -> None:
    pairs = score_pairs([0, 1, 2, 3] * 5, [0, 1, 2, 3] * 5)
    estimates = scores.score_estimates(pairs, draws=200)
    assert value(estimates, "exact", "interval") == "wilson"
    assert value(estimates, "exact", "low") == pytest.approx(0.8389, abs=1e-4)  # 20 of 20
    assert value(estimates, "quadratic_kappa", "interval") == "fisher z by trace"
    assert np.isnan(value(estimates, "quadratic_kappa", "low"))  # perfect: no trace makes a difference


def test_repeated_runs_of_a_trace_are_one_cluster() -> None:
    reference, model = [0, 1, 2, 3] * 3, [1, 1, 3, 3, 0, 2, 2, 3, 0, 1, 2, 2]
    once = score_pairs(reference, model)
    thrice = pd.concat([once.assign(repeat=run) for run in range(3)])
    a, b = (scores.score_estimates(frame, draws=2_000) for frame in (once, thrice))
    for metric in ("bias", "pearson"):
        assert value(a, metric) == pytest.approx(value(b, metric))
        width = [value(f, metric, "high") - value(f, metric, "low") for f in (a, b)]
        # three copies of a trace carry no new information: the interval must not shrink by a root of three
        assert width[1] == pytest.approx(width[0], rel=0.15)
    assert value(b, "exact", "interval") == "wilson by trace"


def test_scores_off_the_scale_are_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"reference_score holds 1.5: expected 0, 1, 2, 3"):
        scores.score_table(score_pairs([1, 2], [1, 2]).assign(reference_score=[1.5, 2]))


def test_a_trace_twice_is_refused() -> None:
    pairs = score_pairs([1, 2], [1, 2]).assign(trace_id="t")
    with pytest.raises(ValueError, match="1 duplicate rows"):
        scores.score_table(pairs)


def test_infinite_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="infinite ratings"):
        scores.score_table(score_pairs([1, 2], [1, 2]).assign(judge_score=[np.inf, 1]))


def test_confusion_and_prevalence_count_every_score() -> None:
    pairs = score_pairs([0, 0, 3], [0, 1, 3])
    confusion = scores.confusion(pairs).set_index(["reference_score", "judge_score"])
    assert len(confusion) == 16
    assert confusion.loc[(0, 1), "count"] == 1
    assert confusion.loc[(0, 1), "share"] == 0.5
    assert np.isnan(confusion.loc[(2, 2), "share"])
    prevalence = scores.score_prevalence(pairs).set_index(["side", "score"])
    assert prevalence.loc[("reference", 0), "share"] == pytest.approx(2 / 3)
    assert prevalence.loc[("judge", 2), "count"] == 0


@pytest.mark.parametrize(
    ("counts", "mean_bias", "flags"),
    [
        ([0, 0, 20, 0], 0.1, ("constant",)),
        ([10, 1, 1, 10], 0.0, ("two-peaked",)),
        ([5, 5, 5, 5], 0.5, ("lenient",)),
        ([5, 5, 5, 5], -0.7, ("harsh",)),
        ([5, 5, 5, 5], 0.4, ()),
        ([0, 0, 0, 0], None, ()),
        ([0, 0, 0, 1], None, ()),
    ],
)
def test_flags_of_a_score_distribution(counts: list[int], mean_bias: float | None, flags: tuple[str, ...]) -> None:
    assert scores.distribution_flags(np.array(counts), mean_bias) == flags


def test_flags_of_judges_stand_in_one_table() -> None:
    flags = scores.score_flags(score_pairs([0, 1, 2, 1], [3, 3, 3, 3]))
    assert flags.iloc[0]["flags"] == "constant, lenient"
    assert flags.iloc[0]["bias"] == 2.0


def test_the_bias_of_all_judges_is_bounded_by_resampling_traces_with_all_their_judges() -> None:
    rng = np.random.default_rng(8)
    given = rng.integers(0, 4, size=(40, 3))  # a human score, then those of two judges that tend to agree
    given[:, 2] = np.where(rng.random(40) < 0.8, given[:, 1], given[:, 2])
    traces = [f"t{number}" for number in range(40)]
    scored = pd.concat(
        [pd.DataFrame({"trace_id": traces, "reference_score": given[:, 0], "judge_score": given[:, j]}) for j in (1, 2)]
    ).astype({"reference_score": "float64", "judge_score": "float64"})
    low, high = scores.pooled_bias(scored, draws=20_000)
    gaps = (given[:, 1:] - given[:, :1]).sum(axis=1)
    by_hand = gaps[rng.integers(0, 40, size=(20_000, 40))].sum(axis=1) / 80
    assert (low, high) == pytest.approx(tuple(np.percentile(by_hand, [2.5, 97.5])), abs=0.03)
    of_pairs = (scored["judge_score"] - scored["reference_score"]).std() / 80**0.5
    assert high - low > 2.2 * 1.96 * of_pairs  # wider than if the judges of a trace did not depend on each other
    assert np.isnan(scores.pooled_bias(scored, draws=0)).all()
    assert np.isnan(scores.pooled_bias(scored.head(0), draws=100)).all()
    assert np.isnan(scores.pooled_bias(scored[scored["trace_id"] == "t1"], draws=100)).all()  # one trace
