"""Corpus rates from a judge alone, corrected for its mistakes."""

from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement.intervals import Floats
from tracejury.judging.agreement.prevalence import (
    UNEQUAL_CHANCES,
    UNKNOWN_CHANCES,
    Calibration,
    corpus_table,
    corrected_rate,
    prediction_powered,
    rogan_gladen,
    why_not_powered,
)

GOOD = Calibration(tp=45, fn=5, tn=90, fp=10)


def test_rogan_and_gladens_correction() -> None:
    # apparent .38, sensitivity .9, specificity .9: (.38 + .9 - 1) / .8 = .35
    assert corrected_rate(380, 1_000, GOOD).value == pytest.approx(0.35)


def test_a_perfect_judge_needs_no_correction() -> None:
    perfect = Calibration(tp=1_000, fn=0, tn=1_000, fp=0)
    estimate = corrected_rate(30, 100, perfect)
    assert estimate.value == pytest.approx(0.3)
    assert estimate.low == pytest.approx(0.22, abs=0.02)
    assert estimate.high == pytest.approx(0.395, abs=0.02)


def test_the_rate_is_cut_to_zero_and_one() -> None:
    assert corrected_rate(1, 100, GOOD).value == 0.0
    assert corrected_rate(99, 100, GOOD).value == 1.0


def test_the_interval_widens_when_either_set_is_small() -> None:
    def width(estimate: object) -> float:
        return estimate.high - estimate.low  # type: ignore[attr-defined, no-any-return]

    small = Calibration(tp=9, fn=1, tn=18, fp=2)
    both_large = width(corrected_rate(3_800, 10_000, Calibration(tp=450, fn=50, tn=900, fp=100)))
    assert width(corrected_rate(3_800, 10_000, small)) > 2 * both_large
    assert width(corrected_rate(38, 100, Calibration(tp=450, fn=50, tn=900, fp=100))) > 2 * both_large


@pytest.mark.parametrize(
    ("calibration", "judged", "reason"),
    [
        (Calibration(tp=0, fn=0, tn=5, fp=1), 10, "no positives"),
        (Calibration(tp=5, fn=1, tn=0, fp=0), 10, "no negatives"),
        (Calibration(tp=5, fn=5, tn=5, fp=5), 10, "no informative judge"),
        (GOOD, 0, "no units"),
    ],
)
def test_what_cannot_be_corrected_says_why(calibration: Calibration, judged: int, reason: str) -> None:
    estimate = corrected_rate(0, judged, calibration)
    assert (estimate.value, estimate.reason) == (None, reason)


def test_arrays_are_corrected_elementwise() -> None:
    found = rogan_gladen(np.array([0.38, 0.5]), np.array([0.9, 0.5]), np.array([0.9, 0.5]))
    assert found[0] == pytest.approx(0.35)
    assert np.isnan(found[1])


def test_labelled_units_calibrate_and_the_others_are_the_corpus() -> None:
    reference = [True] * 10 + [False] * 10 + [None] * 20
    model = [True] * 9 + [False] + [True] + [False] * 9 + [True] * 8 + [False] * 10 + [None] * 2
    labels = pd.DataFrame({"dimension": "LC", "unit": range(40), "judge_label": model, "reference_label": reference})
    row = corpus_table(labels).iloc[0]
    assert [row[c] for c in ("tp", "fn", "fp", "tn", "judged", "positive", "failed")] == [9, 1, 1, 9, 18, 8, 2]
    # (8/18 + .9 - 1) / .8
    assert row["rate"] == pytest.approx((8 / 18 - 0.1) / 0.8)
    assert row["rate_low"] < row["rate"] < row["rate_high"]


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "labelled"), [(0.3, 150), (0.1, 150), (0.5, 60)])
def test_nominal_95_intervals_cover(rate: float, labelled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracejury.judging.agreement.prevalence.POSTERIOR_DRAWS", 3_000)
    rng = np.random.default_rng(15)
    sensitivity, specificity, corpus, trials, hits = 0.85, 0.9, 600, 600, 0
    for trial in range(trials):
        positives = int(rng.binomial(labelled, rate))
        tp = int(rng.binomial(positives, sensitivity))
        tn = int(rng.binomial(labelled - positives, specificity))
        calibration = Calibration(tp=tp, fn=positives - tp, tn=tn, fp=labelled - positives - tn)
        apparent = rate * sensitivity + (1 - rate) * (1 - specificity)
        estimate = corrected_rate(int(rng.binomial(corpus, apparent)), corpus, calibration, seed=trial)
        if estimate.low is not None and estimate.high is not None:
            hits += int(estimate.low <= rate <= estimate.high)
    assert 0.92 <= hits / trials <= 0.985


def arrays(tp: int, fp: int, fn: int, tn: int, positive: int, negative: int) -> tuple[Floats, Floats, Floats]:
    truth = np.array([1.0] * tp + [0.0] * fp + [1.0] * fn + [0.0] * tn)
    judge = np.array([1.0] * (tp + fp) + [0.0] * (fn + tn))
    return truth, judge, np.array([1.0] * positive + [0.0] * negative)


WEIGHTS = np.where(np.arange(60) % 3 == 0, 3.0, 1.0)


@pytest.mark.parametrize(
    ("counts", "tuning", "weights", "expected"),
    [
        ((18, 6, 9, 27, 130, 270), None, None, (0.4149350649, 0.3032154389, 0.526654691)),
        ((18, 6, 9, 27, 130, 270), 1.0, None, (0.375, 0.2410118748, 0.5089881252)),
        ((10, 4, 20, 66, 300, 700), None, None, (0.3413231552, 0.2560089709, 0.4266373396)),
        ((10, 4, 20, 66, 300, 700), 1.0, None, (0.46, 0.3649063931, 0.5550936069)),
        ((3, 15, 12, 30, 40, 60), None, None, (0.25, 0.1404346824, 0.3595653176)),
        ((3, 15, 12, 30, 40, 60), 1.0, None, (0.35, 0.1553968614, 0.5446031386)),
        ((18, 6, 9, 27, 130, 270), None, WEIGHTS, (0.4055438464, 0.2725424699, 0.5385452229)),
        ((18, 6, 9, 27, 130, 270), 1.0, WEIGHTS, (0.375, 0.2230962054, 0.5269037946)),
    ],
)
def test_the_prediction_powered_mean_is_that_of_its_authors_library(
    counts: tuple[int, ...], tuning: float | None, weights: Floats | None, expected: tuple[float, float, float]
) -> None:
    """Values of `ppi_mean_pointestimate` and `ppi_mean_ci` of ppi-python 0.2.3, whose interval is the normal one."""
    made = prediction_powered(*arrays(*counts), tuning=tuning, weights=weights)
    reach = NormalDist().inv_cdf(0.975) * made.standard_error
    assert (made.value, made.value - reach, made.value + reach) == pytest.approx(expected, abs=1e-9)


def corpus(labelled: int, *, chance: object = None) -> pd.DataFrame:
    """A judge right on 9 of 10 units, half of which have the error; the first `labelled` are known."""
    rng = np.random.default_rng(1)
    truth = rng.random(400) < 0.5
    labels = {
        "dimension": "LC", "unit": range(400), "judge_label": truth ^ (rng.random(400) < 0.1),
        "reference_label": [bool(one) if place < labelled else None for place, one in enumerate(truth)],
    }  # fmt: skip
    return pd.DataFrame(labels if chance is None else {**labels, "inclusion": chance})


def test_both_rates_stand_beside_each_other_and_the_powered_one_is_withheld_where_it_does_not_cover() -> None:
    row = corpus_table(corpus(80)).iloc[0]
    assert row["ppi_low"] < row["ppi"] < row["ppi_high"]
    assert row["ppi"] == pytest.approx(row["rate"], abs=0.08)
    assert row["sampling"] == "assumed random"
    assert corpus_table(corpus(80, chance=0.2)).iloc[0]["sampling"] == "random"
    (few,) = corpus_table(corpus(59)).to_dict("records")
    assert np.isnan(few["ppi"])
    assert "intervals are unreliable below 60 labelled units" in str(why_not_powered(few))
    assert few["rate"] > 0  # Rogan-Gladen's interval covers there


def test_unequal_chances_are_weighted_and_unknown_ones_withhold_every_rate() -> None:
    chances = [0.1 if place % 2 else 0.5 for place in range(400)]
    weighted = corpus_table(corpus(160, chance=chances)).iloc[0]
    assert (weighted["sampling"], weighted["reason"]) == ("weighted", UNEQUAL_CHANCES)
    assert np.isnan(weighted["rate"])
    assert weighted["ppi_low"] < weighted["ppi"] < weighted["ppi_high"]
    unknown = corpus_table(corpus(160, chance=[None if place == 3 else 0.5 for place in range(400)])).iloc[0]
    assert (unknown["sampling"], unknown["reason"]) == ("unknown", UNKNOWN_CHANCES)
    assert np.isnan(unknown[["rate", "ppi", "sensitivity"]].astype(float)).all()
    with pytest.raises(ValueError, match="inclusion holds 2"):
        corpus_table(corpus(80, chance=2.0))


def powered_coverage(rng: np.random.Generator, trials: int, rate: float, *, stratified: bool) -> tuple[float, float]:
    """Coverage of the truth of a corpus of 1,000, and the width beside that of the labels alone, at 60 labelled.

    Stratified: units that the judge calls wrong are drawn four times as often as the others.
    """
    hits, widths, plain, defined = 0, 0.0, 0.0, 0
    for _ in range(trials):
        truth = rng.random(1_000) < rate
        judge = np.where(truth, rng.random(1_000) < 0.85, rng.random(1_000) < 0.1)
        chance = np.where(judge, 4.0, 1.0) if stratified else np.ones(1_000)
        chance *= (90 if stratified else 60) / chance.sum()
        drawn = rng.random(1_000) < chance
        labels = pd.DataFrame(
            {
                "dimension": "LC", "unit": range(1_000), "judge_label": judge,
                "reference_label": pd.Series(truth.astype(object)).where(drawn, None), "inclusion": chance,
            }
        )  # fmt: skip
        row = corpus_table(labels).iloc[0]
        if np.isnan(row["ppi"]):
            continue
        defined += 1
        hits += int(row["ppi_low"] <= rate <= row["ppi_high"])
        widths += row["ppi_high"] - row["ppi_low"]
        plain += 2 * 1.96 * np.sqrt(rate * (1 - rate) / drawn.sum())
    return hits / defined, widths / plain


@pytest.mark.parametrize("trials", [60, pytest.param(1_500, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("rate", "stratified"), [(0.3, False), (0.5, False), (0.3, True), (0.5, True)])
def test_powered_intervals_cover(
    trials: int, rate: float, stratified: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracejury.judging.agreement.prevalence.POSTERIOR_DRAWS", 10)
    covered, width = powered_coverage(np.random.default_rng(18), trials, rate, stratified=stratified)
    with capsys.disabled():
        how = "stratified" if stratified else "random"
        print(f"\nprediction-powered, {how}, rate {rate}: covers {covered:.3f}, width {width:.2f} of labels alone")
    widest = 1.0 if stratified else 0.985 + np.sqrt(0.05 / trials)  # weighted ones are wider than they need be
    assert 0.92 - 3 * np.sqrt(0.05 / trials) <= covered <= widest


@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_row_with_a_count_stands_for_as_many_units(is_weighted: bool) -> None:
    rng = np.random.default_rng(1)
    truth = rng.random(900) < 0.4
    judge = pd.Series(truth ^ (rng.random(900) < 0.2), dtype=object).mask(rng.random(900) < 0.05, None)
    labelled = np.arange(900) < 120
    each = pd.DataFrame(
        {
            "unit": np.arange(900), "dimension": "LC", "judge_label": judge,
            "reference_label": pd.Series(truth, dtype=object).where(labelled, None),
            "inclusion": np.where(np.arange(900) % 2, 0.1, 0.2) if is_weighted else 0.1,
        }
    )  # fmt: skip
    others = each[~labelled].groupby("judge_label", dropna=False, sort=False).size()
    one_row_each = pd.DataFrame(
        {"unit": [f"others {label}" for label in others.index], "judge_label": list(others.index), "dimension": "LC"}
    ).assign(count=others.to_numpy(), reference_label=None, judge_label=lambda rows: rows["judge_label"].astype(object))
    together = pd.concat([each[labelled].assign(count=1), one_row_each], ignore_index=True)
    pd.testing.assert_frame_equal(corpus_table(together), corpus_table(each))
    assert corpus_table(each)["ppi"].notna().all()
