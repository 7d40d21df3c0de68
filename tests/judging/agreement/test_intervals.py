"""Intervals: Wilson, cluster bootstrap, jackknife; and that they cover what they say."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from tracejury.judging.agreement import error_rates
from tracejury.judging.agreement.intervals import (
    Bootstrap,
    cluster_bootstrap,
    distinct_rows,
    divide,
    fisher_bounds,
    mean_bounds,
    share_bounds,
    wilson,
    wilson_bounds,
)
from tracejury.judging.agreement.reliability import alpha_bootstrap

Floats = NDArray[np.float64]


def mean(sums: Floats) -> Floats:
    """Mean from the sums of ones and values."""
    return divide(sums[..., 1:2], sums[..., 0:1])


def of_mean(values: Floats, draws: int = 4_000, seed: int = 1) -> Bootstrap:
    return cluster_bootstrap(np.stack([np.ones(len(values)), values], axis=1), mean, draws=draws, seed=seed)


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"), [(267, 281, 0.918, 0.970), (129, 129, 0.971, 1.0), (0, 2, 0.0, 0.66)]
)
def test_wilsons_reference_values(hits: int, n: int, low: float, high: float) -> None:
    found = wilson(hits, n)
    assert found is not None
    assert found == (pytest.approx(low, abs=5e-4), pytest.approx(high, abs=3e-3))


def test_wilson_equals_statsmodels_on_a_thousand_random_inputs() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(1, 400, 1_000)
    hits = rng.binomial(n, rng.random(1_000))
    low, high = wilson_bounds(hits, n)
    theirs = proportion_confint(hits, n, method="wilson")
    np.testing.assert_allclose(low, theirs[0], atol=1e-12)
    np.testing.assert_allclose(high, theirs[1], atol=1e-12)


def test_no_units_have_no_interval() -> None:
    assert wilson(0, 0) is None
    low, high = wilson_bounds(np.array([0, 1]), np.array([0, 2]))
    assert np.isnan([low[0], high[0]]).all()
    assert np.isfinite([low[1], high[1]]).all()


def test_bootstrap_of_a_mean_is_its_classical_interval() -> None:
    values = np.random.default_rng(2).normal(5, 2, 200)
    boot = of_mean(values)
    reach = 1.96 * values.std() / 200**0.5
    assert boot.estimate[0] == pytest.approx(values.mean())
    expected = [values.mean() - reach, values.mean() + reach]
    assert np.percentile(boot.samples, [2.5, 97.5]) == pytest.approx(expected, abs=0.03)
    assert boot.standard_error()[0] == pytest.approx(values.std(ddof=1) / 200**0.5)


def test_jackknife_t_of_a_mean_is_students_interval() -> None:
    values = np.random.default_rng(3).normal(0, 1, 30)
    low, high = of_mean(values, draws=2).jackknife_t()
    expected = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert (low[0], high[0]) == (pytest.approx(expected[0]), pytest.approx(expected[1]))


def test_one_cluster_has_no_interval_and_two_that_differ_have_one() -> None:
    for alike in ([3.0], [3.0, 3.0]):
        assert np.isnan(of_mean(np.array(alike), draws=0).jackknife_t()).all()
    low, high = (bound[0] for bound in of_mean(np.array([3.0, 4.0]), draws=0).jackknife_t())
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 1, 3.5, 0.5))


def test_the_same_seed_gives_the_same_resamples_and_another_seed_others() -> None:
    values = np.random.default_rng(6).normal(0, 1, 50)
    first, again, other = (of_mean(values, seed=seed).samples for seed in (7, 7, 8))
    assert (first == again).all()
    assert (first != other).any()


def test_collapsed_patterns_give_the_same_distribution() -> None:
    values = np.random.default_rng(8).integers(0, 3, 300).astype(float)
    rows = np.stack([np.ones(300), values], axis=1).astype(np.int64)
    patterns, multiplicity = distinct_rows(rows)
    assert len(patterns) == 3
    collapsed = cluster_bootstrap(patterns, mean, multiplicity=multiplicity, draws=8_000)
    plain = of_mean(values, draws=8_000)
    assert collapsed.estimate[0] == plain.estimate[0]
    np.testing.assert_allclose(collapsed.samples.std(), plain.samples.std(), rtol=0.04)
    ends = (np.percentile(boot.samples, [2.5, 97.5]) for boot in (collapsed, plain))
    np.testing.assert_allclose(*ends, atol=0.01)
    np.testing.assert_allclose(collapsed.jackknife_t(), plain.jackknife_t())
    assert collapsed.standard_error()[0] == pytest.approx(plain.standard_error()[0])


def test_drawing_clusters_and_drawing_counts_agree() -> None:
    # few clusters a pattern draws cluster numbers, many draw a multinomial: both have mean and variance of np(1-p)
    for copies in (2, 40):
        multiplicity = np.array([1, 3, 6], dtype=np.int64) * copies
        boot = cluster_bootstrap(np.eye(3), lambda s: s, multiplicity=multiplicity, draws=20_000)
        n = multiplicity.sum()
        share = multiplicity / n
        np.testing.assert_allclose(boot.samples.mean(axis=1), multiplicity, rtol=0.02)
        np.testing.assert_allclose(boot.samples.var(axis=1), n * share * (1 - share), rtol=0.06)
        assert (boot.samples.sum(axis=0) == n).all()


@pytest.mark.parametrize("width", [2, 30])
def test_distinct_rows_are_numpys_unique_rows(width: int) -> None:
    rng = np.random.default_rng(9)
    for high in (2, 6, 10**6):
        rows = rng.integers(0, high, (200, width))
        rows[100:] = rows[:100]
        ours, counts = distinct_rows(rows)
        theirs, expected = np.unique(rows, axis=0, return_counts=True)
        order, same = np.lexsort(ours.T), np.lexsort(theirs.T)
        np.testing.assert_array_equal(ours[order], theirs[same])
        np.testing.assert_array_equal(counts[order], expected[same])


def test_no_clusters_give_no_interval_and_no_error() -> None:
    boot = cluster_bootstrap(np.zeros((0, 2)), mean, draws=50)
    low, high = boot.jackknife_t()
    assert np.isnan([low[0], high[0], boot.estimate[0]]).all()
    assert boot.undefined[0] == 50
    assert np.isnan(boot.standard_error()[0])


def test_many_clusters_are_drawn_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(10).normal(0, 1, 500)
    monkeypatch.setattr("tracejury.judging.agreement.intervals._CHUNK", 5_000)
    boot = of_mean(values, draws=1_003)
    assert boot.samples.shape == (1, 1_003)
    assert boot.samples.std() == pytest.approx(values.std() / 500**0.5, rel=0.1)


def test_rates_are_as_sure_as_their_traces() -> None:
    # every trace holds ten equal errors: the interval must be that of 30 traces, not of 300 errors
    hit = np.random.default_rng(11).random(30) < 0.6
    counts = np.stack([10 * hit, 0 * hit, 10 * ~hit, 0 * hit], axis=-1)
    low, high = error_rates.rate_bounds(counts)
    by_trace = wilson(int(hit.sum()), 30) or (0, 0)
    assert (low[1], high[1]) == pytest.approx(by_trace, abs=0.015)


def test_bounds_of_rates_reach_as_far_as_resampled_traces() -> None:
    rng = np.random.default_rng(12)
    counts = rng.integers(0, 4, (200, 4)).astype(np.float64)
    low, high = error_rates.rate_bounds(counts)
    by_hand = np.array([error_rates.rates(counts[rng.integers(0, 200, 200)].sum(axis=0)) for _ in range(4_000)])
    width = (high - low) / (2 * 1.96 * by_hand.std(axis=0))
    assert (width > 0.95).all()
    assert width[2:4] == pytest.approx(1, abs=0.06)  # the others never claim more units than there are


def test_one_unit_a_trace_has_wilsons_interval_but_for_students_t() -> None:
    low, high = share_bounds(np.array([1.0] * 80 + [0.0] * 20), np.ones(100))
    assert (float(low), float(high)) == pytest.approx(wilson(80, 100) or (0, 0), abs=2e-3)


def test_a_share_of_one_trace_has_bounds_at_the_ends_alone() -> None:
    none, whole = share_bounds(np.array([[1.0, 3.0]]), np.array([[3.0, 3.0]]))[0].tolist()
    assert np.isnan(none)
    assert whole == pytest.approx((wilson(1, 1) or (0, 0))[0])


def test_fishers_interval_of_a_correlation_is_the_textbooks_without_a_prior() -> None:
    """Of normal pairs the infinitesimal jackknife on z reaches 1.96 / sqrt(n - 3) (Fisher 1921)."""
    x, y = np.random.default_rng(3).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=4_000).T
    sums = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)

    def correlation(cells: Floats) -> Floats:
        n, a, b, aa, bb, ab = np.moveaxis(cells / cells[..., :1], -1, 0)
        return np.asarray((ab - a * b) / np.sqrt((aa - a * a) * (bb - b * b)) * n)[..., None]

    low, high = fisher_bounds(sums, correlation, np.array([[-1.0, 1.0]]))
    reach = (np.arctanh(high[0]) - np.arctanh(low[0])) / 2
    assert reach == pytest.approx(1.96 / (4_000 - 3) ** 0.5, rel=0.05)


def judge_runs(units: int, rng: np.random.Generator) -> Floats:
    """Five runs whose scores follow one truth a unit, from a population whose alpha is known by size."""
    truth = rng.integers(0, 4, units)
    return np.clip(truth + rng.choice([-1, 0, 0, 1], size=(5, units)), 0, 3).astype(float)


def test_without_draws_there_is_a_value_and_no_interval() -> None:
    boot = cluster_bootstrap(np.arange(6.0).reshape(3, 2), lambda cells: cells, draws=0)
    assert boot.estimate.tolist() == [6, 9]
    assert boot.samples.shape == (2, 0)


def bounds_of_mean(values: Floats) -> tuple[float, float]:
    low, high = mean_bounds(*(np.array([(values**power).sum()]) for power in range(4)))
    return float(low[0]), float(high[0])


@pytest.mark.parametrize("values", [np.arange(25.0), np.array([0.1, 0.2]), 1e6 + np.arange(-5.0, 6.0)])
def test_a_mean_of_values_without_skew_has_student_s_bounds(values: Floats) -> None:
    expected = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    assert bounds_of_mean(values) == pytest.approx(expected)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_skewed_mean_s_bounds_are_where_hall_s_transformation_is_student_s_quantile(sign: int) -> None:
    """Hall 1992: T + g (T² / 3 + 1 / 6) / √n + g² T³ / (27 n) of T = √n (mean - bound) / s, g the skewness."""
    values = sign * np.random.default_rng(5).gamma(2.0, 3.0, size=25)
    n, deviation = len(values), values.std(ddof=1)
    skew = ((values - values.mean()) ** 3).mean() / deviation**3
    away = n**0.5 * (values.mean() - np.array(bounds_of_mean(values))) / deviation
    transformed = away + skew * (away**2 / 3 + 1 / 6) / n**0.5 + skew**2 * away**3 / (27 * n)
    assert transformed == pytest.approx(stats.t.ppf([0.975, 0.025], n - 1))


@pytest.mark.parametrize("values", [[2.0], [], [0.1] * 3, [0.0] * 2])
def test_one_value_and_equal_values_bound_no_mean(values: list[float]) -> None:
    assert np.isnan(bounds_of_mean(np.array(values))).all()


@pytest.mark.slow
def test_nominal_95_intervals_of_alpha_cover_92_to_97_percent() -> None:
    rng = np.random.default_rng(13)
    true = float(alpha_bootstrap(judge_runs(400_000, rng), draws=2).estimate[0])
    trials, hits = 1_500, 0
    for _ in range(trials):
        low, high = alpha_bootstrap(judge_runs(59, rng), draws=0).jackknife_t()
        hits += int(low[0] <= true <= high[0])
    assert 0.92 <= hits / trials <= 0.97


def one_judges_cells(traces: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Confusion counts by trace: three to seven errors a trace, judge and errors depending on the trace."""
    skill = np.clip(rng.normal(0.75, 0.15, traces), 0.05, 0.95)
    size = rng.integers(3, 8, traces)
    relevant = rng.binomial(size, 0.45)
    tp = rng.binomial(relevant, skill)
    fp = rng.binomial(size - relevant, 1 - skill)
    return np.stack([tp, fp, relevant - tp, size - relevant - fp], axis=1)


@pytest.mark.slow
def test_nominal_95_intervals_of_the_rates_cover_92_to_97_percent() -> None:
    rng = np.random.default_rng(14)
    true = error_rates.rates(one_judges_cells(400_000, rng).sum(axis=0))
    trials, hits = 1_500, np.zeros(5)
    for _ in range(trials):
        low, high = error_rates.rate_bounds(one_judges_cells(59, rng).astype(np.float64))
        hits += (low <= true) & (true <= high)
    assert ((hits / trials >= 0.92) & (hits / trials <= 0.97)).all(), dict(zip(error_rates.RATES, hits, strict=True))
