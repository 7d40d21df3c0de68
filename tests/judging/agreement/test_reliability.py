"""Krippendorff's alpha, its references and edges, and the spread over repeats."""

from dataclasses import replace

import krippendorff
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

from tracejury.judging.agreement import reliability
from tracejury.judging.agreement.estimate import reason_of
from tracejury.judging.agreement.reliability import LEVELS, Level, alpha, alpha_bootstrap

NAN = np.nan
# Krippendorff 2011, example D: four raters, twelve units, missing ratings.
EXAMPLE_D = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)
# Example A: two raters, ten units, binary; B: two raters, twelve units, nominal.
EXAMPLE_A = np.array([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]], dtype=float)
EXAMPLE_B = np.array([[1, 1, 2, 2, 4, 3, 3, 3, 5, 4, 4, 1], [2, 1, 2, 2, 2, 3, 3, 3, 5, 4, 4, 4]], dtype=float)


def random_matrices(count: int, seed: int) -> list[NDArray[np.float64]]:
    """Small rating matrices with missing ratings, all with variation and two pairable units."""
    rng = np.random.default_rng(seed)
    made: list[NDArray[np.float64]] = []
    while len(made) < count:
        shape = (int(rng.integers(2, 6)), int(rng.integers(3, 15)))
        matrix = rng.integers(0, 4, shape).astype(float)
        matrix[rng.random(shape) < rng.choice([0, 0.2, 0.5])] = NAN
        if reliability.alpha_reason(reliability.pairable_units(matrix)) is None:
            made.append(matrix)
    return made


def long(matrix: NDArray[np.float64], **more: object) -> pd.DataFrame:
    raters, units = np.indices(matrix.shape)
    frame = pd.DataFrame(
        {
            "unit": [f"u{u}" for u in units.ravel()],
            "rater": [f"r{r}" for r in raters.ravel()],
            "value": matrix.ravel(),
        }
    )
    return frame.assign(**more)


@pytest.mark.parametrize(
    ("level", "expected"), [("nominal", 0.7434), ("ordinal", 0.8154), ("interval", 0.8491), ("ratio", 0.7974)]
)
def test_krippendorffs_standard_example(level: Level, expected: float) -> None:
    estimate = alpha(EXAMPLE_D, level)
    assert estimate.value == pytest.approx(expected, abs=5e-5)
    assert estimate.n == 11  # the last unit has one rating
    assert float(alpha_bootstrap(EXAMPLE_D, level, draws=2).estimate[0]) == pytest.approx(expected, abs=5e-5)


def test_krippendorffs_examples_a_and_b() -> None:
    assert alpha(EXAMPLE_A, "nominal").value == pytest.approx(0.095, abs=5e-4)
    assert alpha(EXAMPLE_B, "nominal").value == pytest.approx(0.692, abs=5e-4)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [("identity", 0.77544), ("linear", 0.85874), ("quadratic", 0.91400), ("ordinal", 0.89894)],
)
def test_gwets_coefficients_on_the_standard_example(weights: reliability.Weights, expected: float) -> None:
    counts = np.stack([(point == EXAMPLE_D).sum(axis=0) for point in range(1, 6)], axis=1)
    assert reliability.gwet_raters(counts, weights).value == pytest.approx(expected, abs=5e-6)


@pytest.mark.parametrize("level", LEVELS)
def test_alpha_and_its_vectorised_form_equal_the_library_on_a_thousand_random_inputs(level: Level) -> None:
    for matrix in random_matrices(1_000, seed=LEVELS.index(level)):
        theirs = krippendorff.alpha(reliability_data=matrix, level_of_measurement=level)
        assert alpha(matrix, level).value == pytest.approx(theirs, abs=1e-10)
        sums, multiplicity = reliability._alpha_sums(reliability.pairable_units(matrix), level)
        ours = reliability._alpha_of(level, reliability.pairable_units(matrix))(multiplicity @ sums)
        assert float(ours) == pytest.approx(theirs, abs=1e-10)


@pytest.mark.parametrize("level", LEVELS)
def test_every_resample_equals_the_library_on_the_drawn_units(level: Level) -> None:
    matrix = random_matrices(1, seed=30)[0]
    pairable = reliability.pairable_units(matrix)
    sums, multiplicity = reliability._alpha_sums(pairable, level)
    counts, _ = reliability.value_counts(pairable)
    patterns = np.unique(counts, axis=0)
    rng = np.random.default_rng(1)
    for _ in range(50):
        drawn = rng.integers(0, pairable.shape[1], pairable.shape[1])
        sample = pairable[:, drawn]
        if reliability.alpha_reason(sample) is not None:
            continue
        weights = np.array([(counts[drawn] == pattern).all(axis=1).sum() for pattern in patterns])
        again = reliability._count_sums(patterns.astype(float), np.unique(pairable[~np.isnan(pairable)]), level)
        ours = float(reliability._alpha_of(level, pairable)(weights @ again))
        theirs = krippendorff.alpha(reliability_data=sample, level_of_measurement=level)
        assert ours == pytest.approx(theirs, abs=1e-10)
    assert int(multiplicity.sum()) == pairable.shape[1]
    assert len(sums) == len(patterns)


def test_continuous_interval_alpha_equals_the_library() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        matrix = rng.normal(1e3, 1, (4, 12)) + rng.normal(0, 2, 12)
        matrix[rng.random(matrix.shape) < 0.2] = NAN
        theirs = krippendorff.alpha(reliability_data=matrix, level_of_measurement="interval")
        assert reliability.continuous_alpha(matrix) == pytest.approx(theirs, abs=1e-9)


def test_continuous_scores_do_not_need_the_librarys_table_of_values() -> None:
    matrix = np.random.default_rng(3).random((5, 200))  # 1,000 distinct values: 1.6 GB in the library
    estimate = alpha(matrix, "interval")
    assert estimate.value == pytest.approx(reliability.continuous_alpha(matrix))
    low, high = reliability.alpha_bounds(matrix)
    assert low < alpha_bootstrap(matrix, "interval", draws=0).estimate[0] < high


def test_a_discrete_level_refuses_continuous_scores_with_a_remedy() -> None:
    with pytest.raises(ValueError, match="use the interval level"):
        alpha_bootstrap(np.random.default_rng(3).random((5, 200)), "ordinal")


def test_constant_ratings_are_no_variation_with_full_agreement() -> None:
    estimate = alpha(np.full((3, 6), 2.0))
    assert (estimate.value, estimate.reason, estimate.n, estimate.agreement) == (None, "no variation", 6, 1.0)


@pytest.mark.parametrize("units", [0, 1])
def test_too_few_pairable_units_are_named(units: int) -> None:
    matrix = np.full((2, 5), NAN)
    matrix[0] = [0, 1, 2, 3, 0]
    matrix[1, :units] = 1
    estimate = alpha(matrix)
    assert (estimate.value, estimate.reason, estimate.n) == (None, "fewer than two pairable units", units)


def test_infinity_is_refused() -> None:
    with pytest.raises(ValueError, match="infinite"):
        alpha(np.array([[0, 1, np.inf], [0, 1, 2]]))
    with pytest.raises(ValueError, match="infinite"):
        reliability.rating_matrix(pd.DataFrame({"unit": [1], "rater": ["a"], "value": [np.inf]}))


def test_ratio_alpha_refuses_negative_ratings() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        alpha(np.array([[-1.0, 1, 2], [0, 1, 2]]), "ratio")


@pytest.mark.parametrize("level", LEVELS)
def test_order_of_raters_and_units_does_not_matter(level: Level) -> None:
    rng = np.random.default_rng(5)
    for matrix in random_matrices(50, seed=40):
        turned = rng.permuted(matrix, axis=0)[:, rng.permutation(matrix.shape[1])]
        moved = matrix[rng.permutation(matrix.shape[0])][:, rng.permutation(matrix.shape[1])]
        assert alpha(moved, level).value == pytest.approx(alpha(matrix, level).value)
        # alpha knows no raters: exchanging ratings within units changes nothing either
        assert alpha(turned, level).value == pytest.approx(alpha(matrix, level).value)


def test_nominal_alpha_ignores_names_interval_alpha_shift_and_scale() -> None:
    names = np.array([2.0, 0, 3, 1])
    for matrix in random_matrices(50, seed=41):
        known = ~np.isnan(matrix)
        renamed = np.where(known, names[np.where(known, matrix, 0).astype(int)], NAN)
        assert alpha(renamed, "nominal").value == pytest.approx(alpha(matrix, "nominal").value)
        assert alpha(5 - 2 * matrix, "interval").value == pytest.approx(alpha(matrix, "interval").value)
        assert alpha(matrix**3, "ordinal").value == pytest.approx(alpha(matrix, "ordinal").value)


@pytest.mark.parametrize("level", LEVELS)
def test_a_judge_that_repeats_itself_has_alpha_1_and_shuffled_ratings_about_0(level: Level) -> None:
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 4, 2_000).astype(float)
    assert alpha(np.stack([truth, truth]), level).value == pytest.approx(1.0)
    shuffled = np.stack([rng.permutation(truth) for _ in range(3)])
    assert abs(alpha(shuffled, level).value or 9) < 0.05


def test_the_interval_shrinks_with_units_not_with_raters_drawn() -> None:
    rng = np.random.default_rng(7)
    widths = []
    for units in (50, 200, 800):
        truth = rng.integers(0, 4, units)
        matrix = np.clip(truth + rng.integers(-1, 2, (3, units)), 0, 3).astype(float)
        estimate = reliability.alpha_with_interval(matrix, draws=1_000)
        assert estimate.low is not None
        assert estimate.high is not None
        widths.append(estimate.high - estimate.low)
    # four times the units: about half the width
    assert widths[1] == pytest.approx(widths[0] / 2, rel=0.35)
    assert widths[2] == pytest.approx(widths[1] / 2, rel=0.35)


def test_undefined_resamples_are_counted_and_left_out() -> None:
    matrix = np.array([[0, 0, 0, 3.0], [0, 0, 0, 2]])  # a quarter to the fourth: a third of resamples lack the last
    boot = alpha_bootstrap(matrix, draws=4_000)
    # (3/4)^4 = .316 of the resamples hold only the constant units
    assert boot.undefined[0] / 4_000 == pytest.approx(0.316, abs=0.03)
    assert boot.share_below(1.0)[0] == 1  # of the others


def test_probabilities_of_customary_limits_are_shares_of_resamples() -> None:
    boot = alpha_bootstrap(EXAMPLE_D, draws=3_000)
    below = boot.share_below(0.667)[0], boot.share_below(0.8)[0]
    assert 0 < below[0] < below[1] < 1
    assert below[0] == np.mean(boot.samples[0] < 0.667)


def test_spans_of_one_trace_are_drawn_together() -> None:
    rng = np.random.default_rng(9)
    trace_level = rng.integers(0, 4, 20)
    matrix = np.repeat(np.clip(trace_level + rng.integers(-1, 2, (2, 20)), 0, 3), 10, axis=1).astype(float)
    clusters = np.repeat(np.arange(20), 10)
    naive = reliability.alpha_with_interval(matrix, draws=1_000)
    clustered = reliability.alpha_with_interval(matrix, clusters=clusters, draws=1_000)
    assert naive.value == clustered.value
    assert naive.low is not None
    assert naive.high is not None
    assert clustered.low is not None
    assert clustered.high is not None
    # ten equal copies of a unit carry the information of one
    assert clustered.high - clustered.low > 2 * (naive.high - naive.low)


def test_collapsing_units_changes_no_jackknife() -> None:
    matrix = random_matrices(1, seed=50)[0]
    collapsed = alpha_bootstrap(matrix, draws=2)
    apart = alpha_bootstrap(matrix, clusters=np.arange(matrix.shape[1]), draws=2)
    np.testing.assert_allclose(collapsed.standard_error(), apart.standard_error())
    # leave each unit out by hand, with the library
    pairable = reliability.pairable_units(matrix)
    left = [krippendorff.alpha(np.delete(pairable, u, axis=1)) for u in range(pairable.shape[1])]
    n = len(left)
    by_hand = np.sqrt((n - 1) / n * ((left - np.mean(left)) ** 2).sum())
    assert collapsed.standard_error()[0] == pytest.approx(by_hand)


def test_spread_is_the_sample_deviation_of_scaled_scores() -> None:
    matrix = np.array([[0, 3, 1], [3, 3, NAN], [NAN, 3, NAN]])
    spread = reliability.repeat_spread(matrix)
    # scores 0 and 1: deviation 1/sqrt(2); three equal: 0; one score: undefined
    assert spread[0] == pytest.approx(2**-0.5)
    assert spread[1] == 0
    assert np.isnan(spread[2])
    estimate = reliability.mean_spread(matrix)
    assert (estimate.n, estimate.value) == (2, pytest.approx(2**-0.5 / 2))
    assert reliability.mean_spread(matrix[:1]).reason == "fewer than two repeats"


def test_the_interval_of_a_mean_spread_does_not_reach_below_zero() -> None:
    matrix = np.zeros((2, 6))
    matrix[0, 0] = 3
    estimate = reliability.mean_spread(matrix)
    assert estimate.low == 0
    assert estimate.value is not None
    assert estimate.high is not None
    assert estimate.high > 2 * estimate.value  # further away than 0: the bounds were symmetric


def test_equal_spreads_have_a_mean_and_no_interval() -> None:
    """A judge that always says the same, or always differs alike: a width of 0 would say that it is certain."""
    for matrix in (np.full((3, 6), 2.0), np.array([[0.0] * 6, [3.0] * 6]), np.array([[0.0], [3.0]])):
        estimate = reliability.mean_spread(matrix)
        assert estimate.value is not None
        assert (estimate.low, estimate.high) == (None, None)


def test_equal_units_count_each_where_there_are_too_many_for_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.array([[0.0, 0, 0, 0, 1, 2, 3, 3], [0.0, 0, 0, 1, 1, 3, 3, 2]])
    by_library = {level: alpha(matrix, level).value for level in ("nominal", "ordinal", "interval")}
    monkeypatch.setattr(reliability, "_LIBRARY_CELLS", 0)
    assert {level: alpha(matrix, level).value for level in by_library} == pytest.approx(by_library)
    assert reliability.continuous_alpha(matrix) == pytest.approx(by_library["interval"])


def test_perfect_agreement_has_no_interval() -> None:
    estimate = reliability.alpha_with_interval(np.array([[0.0, 1, 2, 3, 1]] * 3))
    assert (estimate.value, estimate.low, estimate.high) == (1, None, None)


def test_identical_runs_are_a_share_of_traces_scored_twice() -> None:
    estimate = reliability.share_identical(np.array([[0, 3, 1, 2], [0, 3, NAN, 1]]))
    assert (estimate.value, estimate.n) == (pytest.approx(2 / 3), 3)


def test_unscored_replies_are_failures_not_missing_or_not_applicable() -> None:
    frame = long(np.array([[0, 1, NAN, NAN], [0, 2, NAN, NAN]]))
    frame["state"] = ["scored", "scored", "failed", "not_applicable", "scored", "scored", "refused", "scored"]
    matrix = reliability.rating_matrix(frame)
    estimate = reliability.share_unscored(matrix)
    # eight asked for, one not applicable, two failed; the last is missing without a failure
    assert (estimate.value, estimate.n, estimate.failed, estimate.not_applicable) == (2 / 7, 7, 2, 1)


def test_repeats_that_fail_together_say_no_more_than_their_traces() -> None:
    """Five repeats of forty traces, all of which fail on eight: as far from sure as one repeat of each."""
    intervals = []
    for repeats in (1, 5):
        frame = long(np.where(np.arange(40) < 8, NAN, 2.0) * np.ones((repeats, 1)))
        frame["state"] = np.where(frame["value"].isna(), "failed", "scored")
        estimate = reliability.share_unscored(reliability.rating_matrix(frame))
        assert (estimate.value, estimate.n) == (0.2, 40 * repeats)
        intervals.append((estimate.low, estimate.high))
    assert intervals[1] == pytest.approx(intervals[0], abs=0.005)


def test_few_failing_traces_say_how_many_fail_as_if_each_were_asked_once() -> None:
    """3 of 80 replies on 2 of 40 traces: Wilson's bounds of 1.5 of 40."""
    matrix = reliability.rating_matrix(long(np.full((2, 40), 1.0)))
    failures = np.where(np.arange(40) < 2, [2, 1] * 20, 0)
    estimate = reliability.share_unscored(replace(matrix, failed=3, failures=failures))
    assert (estimate.low, estimate.high) == pytest.approx(proportion_confint(1.5, 40, method="wilson"))


def test_a_failed_row_with_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="did not score and yet has a value"):
        reliability.rating_matrix(long(np.array([[0.0, 1]]), state="failed"))


def test_a_rating_twice_is_refused() -> None:
    frame = long(np.array([[0.0, 1]]))
    with pytest.raises(ValueError, match="1 duplicate rows"):
        reliability.rating_matrix(pd.concat([frame, frame.iloc[:1]]))


def test_the_table_of_consistency_has_one_row_a_judge() -> None:
    rng = np.random.default_rng(11)
    frames = [
        long(np.clip(rng.integers(0, 4, 30) + rng.integers(-1, 2, (5, 30)), 0, 3).astype(float), dimension=dimension)
        for dimension in ("TC", "LC")
    ]
    constant = long(np.full((5, 30), 3.0), dimension="PQ")
    table = reliability.reliability_table(pd.concat([*frames, constant]), draws=300)
    assert list(table["dimension"]) == ["LC", "PQ", "TC"]
    row = table.set_index("dimension").loc["LC"]
    assert row["alpha_low"] < row["alpha_interval"] < row["alpha_high"]
    assert row["alpha_jackknife_low"] < row["alpha_interval"] < row["alpha_jackknife_high"]
    assert row["mean_sd_ci95"] == pytest.approx(row["mean_sd_high"] - row["mean_sd"])
    assert (row["repeats"], row["units"], row["n"]) == (5, 30, 30)
    blank = table.set_index("dimension").loc["PQ"]
    assert np.isnan(blank["alpha_interval"])
    assert (blank["agreement"], blank["identical"], blank["ac2"]) == (1, 1, 1)
    resampled = "p_below_667, p_below_800, alpha_jackknife_low"
    assert blank["reason"] == f"alpha_interval, alpha_ordinal, alpha_nominal, {resampled}: no variation"
    assert pd.isna(row["reason"])


@pytest.mark.parametrize(
    ("values", "draws", "reasons"),
    [
        ([[0.0, 3.0], [1.0, 2.0]], 0, {"p_below_667": "no resamples", "ac2": None}),
        ([[0.5, 3.0], [1.0, 2.0]], 9, {"ac2": "ratings are not on the scale 0 to 3", "alpha_interval": None}),
        ([np.arange(201.0), np.arange(201.0)], 9, {"alpha_ordinal": "too many distinct ratings", "mean_sd": None}),
        ([[0.0, 3.0]], 9, {"identical": "fewer than two repeats", "ac2": "fewer than two pairable units",
                           "agreement": "fewer than two pairable units", "unscored": None}),
    ],
)  # fmt: skip
def test_each_empty_cell_of_a_judge_has_the_reason_of_its_own_estimate(
    values: list[list[float]], draws: int, reasons: dict[str, str | None]
) -> None:
    row = reliability.reliability_table(long(np.array(values)), draws=draws).iloc[0]
    assert {name: reason_of(row["reason"], name) for name in reasons} == reasons


def test_table_7_half_width_is_students_t_of_the_mean() -> None:
    rng = np.random.default_rng(12)
    matrix = rng.integers(0, 4, (5, 46)).astype(float)
    spread = np.std(matrix / 3, axis=0, ddof=1)
    estimate = reliability.mean_spread(matrix)
    half = 2.0141 * spread.std(ddof=1) / 46**0.5  # t of 45 degrees at .975
    assert estimate.value == pytest.approx(spread.mean())
    assert estimate.high == pytest.approx(spread.mean() + half, abs=1e-5)


def test_each_unit_shows_its_runs() -> None:
    frame = long(np.array([[0, 3, 1, NAN], [3, 3, NAN, NAN]]), dimension="LC")
    frame["state"] = ["scored"] * 6 + ["failed", "not_applicable"]
    table = reliability.unit_table(frame).set_index("unit")
    assert list(table["ratings"]) == [2, 2, 1, 0]
    assert (table.loc["u0", "mean"], table.loc["u0", "low"], table.loc["u0", "high"]) == (1.5, 0, 3)
    assert table.loc["u0", "sd"] == pytest.approx(2**-0.5)
    assert table.loc["u1", "identical"]
    assert pd.isna(table.loc["u2", "identical"])
    assert np.isnan(table.loc["u3", ["mean", "low", "high", "sd"]].astype(float)).all()
    assert (table.loc["u2", "failed"], table.loc["u3", "not_applicable"]) == (1, 1)


def test_the_distribution_of_alpha_is_that_of_its_bootstrap() -> None:
    frame = pd.concat([long(EXAMPLE_D, dimension="LC"), long(np.full((3, 6), 2.0), dimension="PQ")])
    table = reliability.alpha_draws(frame, draws=300)
    boot = alpha_bootstrap(EXAMPLE_D, draws=300)
    assert set(table["dimension"]) == {"LC"}
    assert len(table) == 300 - boot.undefined[0]
    assert np.mean(table["alpha"] < 0.8) == boot.share_below(0.8)[0]
