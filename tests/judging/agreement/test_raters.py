"""Raters side by side: pairs, the ceiling, the alternative annotator test, self-consistency."""

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.multitest import multipletests

from tracejury.judging.agreement import raters, scores
from tracejury.judging.agreement.estimate import reason_of
from tracejury.judging.agreement.raters import (
    Alignment,
    alternative_annotator_test,
    human_ceiling,
    pair_estimates,
    pairwise_table,
    people_estimates,
)

Floats = NDArray[np.float64]
NAN = np.nan


def long(matrix: Floats, names: list[str], **more: object) -> pd.DataFrame:
    rater, unit = np.indices(matrix.shape)
    frame = pd.DataFrame(
        {
            "unit": [f"t{u}" for u in unit.ravel()],
            "rater": [names[r] for r in rater.ravel()],
            "value": matrix.ravel(),
        }
    )
    return frame.assign(**more)


def people(units: int, noise: float, seed: int = 1, count: int = 3) -> Floats:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, units)
    wrong = rng.random((count, units)) < noise
    return np.where(wrong, rng.integers(0, 4, (count, units)), truth).astype(float)


def test_pairs_of_raters_stand_once_with_their_overlap() -> None:
    matrix = np.array([[0, 1, 2, 3, NAN], [0, 1, 1, NAN, 2], [NAN, 1, 3, 3, 2]])
    table = pairwise_table(long(matrix, ["ann", "bob", "judge"], dimension="LC"))
    assert list(zip(table["rater_a"], table["rater_b"], table["n"], strict=True)) == [
        ("ann", "bob", 3),
        ("ann", "judge", 3),
        ("bob", "judge", 3),
    ]
    first = table.iloc[0]
    assert first["exact"] == 2 / 3
    expected = cohen_kappa_score([0, 1, 2], [0, 1, 1], labels=range(4), weights="quadratic")
    assert first["quadratic_kappa"] == pytest.approx(expected)


def test_raters_without_overlap_say_so() -> None:
    table = pair_estimates(long(np.array([[0, NAN], [NAN, 1]]), ["ann", "bob"]))
    assert table["metric"].tolist() == list(raters.PAIR_METRICS)
    assert set(zip(table["n"], table["reason"], table["value"].isna(), strict=True)) == {(0, "no units", True)}


def test_scores_that_never_vary_say_why_kappa_is_undefined() -> None:
    table = pair_estimates(long(np.array([[2.0, 2], [2, 2]]), ["ann", "bob"])).set_index("metric")
    assert (table.loc["quadratic_kappa", "reason"], table.loc["exact", "reason"]) == ("no variation", None)


def test_the_ceiling_of_two_people_is_their_pair() -> None:
    matrix = people(40, 0.3, count=2)
    ceiling = human_ceiling(long(matrix, ["ann", "bob"], dimension="LC"), draws=100).iloc[0]
    table = scores.tabulate(matrix[0], matrix[1])
    assert ceiling["exact"] == pytest.approx(float(scores.exact(table)))
    assert ceiling["bucketed"] == pytest.approx(float(scores.bucketed(table)))
    assert ceiling["quadratic_kappa"] == pytest.approx(float(scores.quadratic_kappa(table + table.T)))
    assert ceiling["pair_alpha"] == pytest.approx(float(scores.pair_alpha(table)))
    assert (ceiling["n"], ceiling["raters"]) == (40, 2)
    assert ceiling["exact_low"] < ceiling["exact"] < ceiling["exact_high"]


def test_the_ceiling_weighs_units_alike_and_knows_no_order_of_raters() -> None:
    matrix = np.array([[0, 2, NAN], [0, 1, 3], [1, 1, NAN]])
    ceiling = human_ceiling(long(matrix, ["a", "b", "c"]), draws=0).iloc[0]
    # unit 1: one of three pairs agrees; unit 2: one of three; unit 3 has one rating
    assert ceiling["exact"] == pytest.approx(1 / 3)
    assert ceiling["n"] == 2
    turned = human_ceiling(long(matrix[::-1], ["a", "b", "c"]), draws=0).iloc[0]
    for metric in raters.CEILING_METRICS:
        assert turned[metric] == pytest.approx(ceiling[metric], nan_ok=True)


def test_spans_of_one_trace_are_drawn_together_in_the_ceiling() -> None:
    """Every span rated as its neighbours: 20 traces of 10 spans tell as much as 20 units, not as 200."""
    matrix = np.repeat(people(20, 0.4, count=2), 10, axis=1)
    frame = long(matrix, ["ann", "bob"])
    trace = frame.assign(trace_id="trace" + (frame["unit"].str[1:].astype(int) // 10).astype(str))
    alone, together = human_ceiling(frame, draws=500).iloc[0], human_ceiling(trace, draws=500).iloc[0]
    for metric in ("exact", "pair_alpha"):
        assert together[metric] == pytest.approx(alone[metric])
        wide = together[f"{metric}_high"] - together[f"{metric}_low"]
        assert wide > 2 * (alone[f"{metric}_high"] - alone[f"{metric}_low"])


def test_pairs_of_raters_have_intervals_that_shrink_with_units() -> None:
    few, many = (
        pairwise_table(long(people(units, 0.3, count=2), ["ann", "bob"]), draws=500).iloc[0] for units in (25, 400)
    )
    for metric in raters.PAIR_METRICS:
        assert few[f"{metric}_low"] <= few[metric] <= few[f"{metric}_high"]
        narrow = many[f"{metric}_high"] - many[f"{metric}_low"]
        assert narrow < 0.5 * (few[f"{metric}_high"] - few[f"{metric}_low"])


def test_a_lone_annotator_has_no_ceiling() -> None:
    table = people_estimates(long(np.array([[0.0, 1, 2]]), ["ann"]), draws=50).set_index("metric")
    assert set(table["n"]) == {0}
    assert (table.loc["exact", "reason"], table.loc["pair_alpha", "reason"]) == (
        "no units", "fewer than two pairable units",
    )  # fmt: skip
    assert table["value"].isna().all()


def test_ratings_off_the_scale_are_refused() -> None:
    with pytest.raises(ValueError, match=r"hold 4\.0"):
        pairwise_table(long(np.array([[4.0], [1.0]]), ["a", "b"]))


def by_definition(ratings: Floats, judge: Floats, epsilon: float) -> tuple[float, list[float]]:
    """The alternative annotator test written out unit by unit, as the paper states it."""
    wins, p_values = [], []
    for j in range(len(ratings)):
        differences, judge_wins = [], []
        for i in range(ratings.shape[1]):
            others = [ratings[k, i] for k in range(len(ratings)) if k != j and not np.isnan(ratings[k, i])]
            if np.isnan(ratings[j, i]) or np.isnan(judge[i]) or not others:
                continue
            of_judge = np.mean([judge[i] == other for other in others])
            of_person = np.mean([ratings[j, i] == other for other in others])
            judge_wins.append(of_judge >= of_person)
            differences.append(int(of_person >= of_judge) - int(of_judge >= of_person))
        wins.append(np.mean(judge_wins))
        p_values.append(stats.ttest_1samp(differences, epsilon, alternative="less").pvalue)
    return float(np.mean(wins)), p_values


def test_the_alternative_annotator_test_follows_its_definition() -> None:
    for seed in range(20):
        ratings = people(60, 0.4, seed=seed)
        ratings[np.random.default_rng(seed).random(ratings.shape) < 0.1] = NAN
        judge = people(60, 0.4, seed=seed, count=4)[3]
        judge[:3] = NAN
        test = alternative_annotator_test(ratings, judge, ("a", "b", "c"), epsilon=0.15)
        advantage, p_values = by_definition(ratings, judge, 0.15)
        assert test.average_advantage == pytest.approx(advantage)
        np.testing.assert_allclose(test.people["p"], p_values)


def test_a_judge_as_good_as_people_passes_and_a_random_one_fails() -> None:
    together = people(200, 0.3, count=4)
    good = alternative_annotator_test(together[:3], together[3], ("a", "b", "c"))
    assert good.passed
    assert good.winning_rate == 1.0
    careful = people(200, 0.05)
    random = np.random.default_rng(9).integers(0, 4, 200).astype(float)
    poor = alternative_annotator_test(careful, random, ("a", "b", "c"))
    assert poor.passed is False
    assert (poor.winning_rate, poor.reason) == (0.0, None)


def test_two_people_are_too_few_for_the_test() -> None:
    together = people(100, 0.3)
    test = alternative_annotator_test(together[:2], together[2], ("a", "b"))
    assert (test.winning_rate, test.reason, test.passed) == (None, "fewer than three raters", None)


def test_rmse_alignment_prefers_the_nearer_rating() -> None:
    others = np.array([[2.0, 2.0], [2.0, 2.0]])
    ratings = np.vstack([[0.0, 0.0], others])
    by_distance = alternative_annotator_test(ratings, np.array([1.0, 1.0]), ("a", "b", "c"), alignment="rmse")
    by_equality = alternative_annotator_test(ratings, np.array([1.0, 1.0]), ("a", "b", "c"))
    # neither 0 nor 1 equals 2 (a tie: both win), but 1 is nearer
    assert by_distance.people.loc[0, "person_wins"] == 0.0
    assert by_equality.people.loc[0, "person_wins"] == 1.0


def test_benjamini_and_yekutieli_reject_as_statsmodels() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        p = rng.random(6) ** 4
        ours = raters.benjamini_yekutieli(p)
        np.testing.assert_array_equal(ours, multipletests(p, alpha=0.05, method="fdr_by")[0])


def test_the_test_runs_from_frames_by_judge_and_system() -> None:
    together = people(80, 0.3, count=4)
    ratings = long(together[:3], ["ann", "bob", "cat"], dimension="LC")
    said = pd.DataFrame({"trace_id": [f"t{i}" for i in range(80)], "dimension": "LC", "judge_score": together[3]})
    table = raters.annotator_test_table(
        ratings, pd.concat([said.assign(judge_model="m1"), said.assign(judge_model="m2")])
    )
    assert list(table["judge_model"]) == ["m1", "m2"]
    direct = alternative_annotator_test(together[:3], together[3], ("ann", "bob", "cat"))
    assert table.iloc[0]["average_advantage"] == direct.average_advantage
    assert (table.iloc[0]["people"], table.iloc[0]["units"]) == (3, 80)
    assert table.iloc[0]["people_below_30"] == 0


def test_units_that_one_person_alone_rated_are_no_units_of_the_test() -> None:
    together = people(40, 0.3, count=4)
    together[1:3, 20:] = NAN  # from here only ann has rated
    said = pd.DataFrame({"trace_id": [f"t{i}" for i in range(40)], "dimension": "LC", "judge_score": together[3]})
    row = raters.annotator_test_table(long(together[:3], ["ann", "bob", "cat"], dimension="LC"), said).iloc[0]
    assert (row["people"], row["units"], row["people_below_30"]) == (3, 20, 3)


def test_self_consistency_compares_a_person_with_herself() -> None:
    repeats = pd.DataFrame(
        {
            "rater": ["ann"] * 3 + ["bob"] * 2,
            "unit": ["t1", "t2", "t3", "t1", "t2"],
            "first": [0, 1, 3, 2, None],
            "second": [0, 2, 3, 2, 1],
        }
    )
    table = raters.self_consistency(repeats).set_index("rater")
    assert (table.loc["ann", "n"], table.loc["ann", "exact"]) == (3, 2 / 3)
    assert table.loc["ann", "off_by_one"] == 1.0
    assert (table.loc["bob", "n"], table.loc["bob", "exact"]) == (1, 1.0)
    assert reason_of(table.loc["bob", "reason"], "quadratic_kappa") == "fewer than two units"
    assert pd.isna(table.loc["ann", "reason"])


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three to five people around a truth on 0..3 and a judge, each with their own noise; 15 % of ratings missing."""
    rng = np.random.default_rng(seed)
    people, units = int(rng.integers(3, 6)), int(rng.integers(60, 121))
    truth = rng.integers(0, 4, units)
    noise = rng.uniform(0.1, 0.6, people + 1)
    wrong = rng.random((people + 1, units)) < noise[:, None]
    said = np.where(wrong, rng.integers(0, 4, (people + 1, units)), truth).astype(float)
    said[rng.random(said.shape) < 0.15] = np.nan
    return said[:-1], said[-1]


AUTHORS: dict[tuple[int, Alignment], tuple[float, float, list[float]]] = {
    (0, "accuracy"): (1.0, 0.93467, [6.18062e-05, 0.00131968, 6.43606e-08, 0.0120275, 0.00238809]),
    (1, "accuracy"): (0.25, 0.787885, [0.0315594, 0.853521, 0.00448035, 0.169667]),
    (2, "accuracy"): (0.8, 0.856626, [0.0870594, 0.00410678, 0.00472768, 0.00385195, 0.00303893]),
    (4, "accuracy"): (0.0, 0.734036, [0.878185, 0.211878, 0.0407617, 0.684541, 0.619025]),
    (6, "accuracy"): (0.25, 0.800082, [0.849785, 0.000943302, 0.081676, 0.600075]),
    (7, "accuracy"): (0.6, 0.883646, [0.00606083, 7.86431e-05, 0.536875, 0.00472768, 0.035106]),
    (1, "rmse"): (0.25, 0.744615, [0.0197218, 0.662135, 0.000121569, 0.0147531]),
    (6, "rmse"): (0.5, 0.777191, [0.369817, 0.000280077, 0.00735181, 0.060443]),
    (8, "rmse"): (0.6, 0.801144, [0.00374879, 0.000113308, 0.0554826, 0.00247749, 0.0416852]),
    (9, "rmse"): (0.75, 0.782882, [0.111286, 0.014328, 0.00239046, 0.000321265]),
}
"""By seed and alignment: winning rate, average advantage and p of each person, as the authors' own function gave them.

Calderon, Reichart and Dror 2025 (ACL 2025, 16051-16081; arXiv 2501.10970): `alt_test` of `alt_test_example.ipynb` in
nitaytech/AltTest at 13eada270fed73be2dfba64392a14b905df65e27, run on `drawn(seed)`; epsilon .1 (accuracy), .2 (rmse).
"""


@pytest.mark.parametrize(("seed", "alignment"), list(AUTHORS))
def test_the_alternative_annotator_test_gives_what_its_authors_program_gives(seed: int, alignment: Alignment) -> None:
    ratings, judge = drawn(seed)
    rate, advantage, p = AUTHORS[seed, alignment]
    names = tuple("abcde"[: len(ratings)])
    epsilon = 0.1 if alignment == "accuracy" else 0.2
    test = alternative_annotator_test(ratings, judge, names, epsilon=epsilon, alignment=alignment)
    assert test.winning_rate == pytest.approx(rate)
    assert test.average_advantage == pytest.approx(advantage, abs=1e-6)
    assert test.people["p"].to_numpy() == pytest.approx(np.array(p), rel=1e-5)
    assert test.people["enough"].all()
