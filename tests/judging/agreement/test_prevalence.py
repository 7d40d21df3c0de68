"""Corpus rates from a judge alone, corrected for its mistakes."""

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement.prevalence import Calibration, corpus_table, corrected_rate, rogan_gladen

GOOD = Calibration(tp=45, fn=5, tn=90, fp=10)


def test_rogan_and_gladens_correction() -> None:
    # apparent .38, sensitivity .9, specificity .9: (.38 + .9 - 1) / .8 = .35
    assert corrected_rate(380, 1_000, GOOD).value == pytest.approx(0.35)


def test_a_perfect_judge_needs_no_correction() -> None:
    perfect = Calibration(tp=1_000, fn=0, tn=1_000, fp=0)
    figure = corrected_rate(30, 100, perfect)
    assert figure.value == pytest.approx(0.3)
    assert figure.low == pytest.approx(0.22, abs=0.02)
    assert figure.high == pytest.approx(0.395, abs=0.02)


def test_the_rate_is_cut_to_zero_and_one() -> None:
    assert corrected_rate(1, 100, GOOD).value == 0.0
    assert corrected_rate(99, 100, GOOD).value == 1.0


def test_the_interval_widens_when_either_set_is_small() -> None:
    def width(figure: object) -> float:
        return figure.high - figure.low  # type: ignore[attr-defined, no-any-return]

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
    figure = corrected_rate(0, judged, calibration)
    assert (figure.value, figure.reason) == (None, reason)


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
        figure = corrected_rate(int(rng.binomial(corpus, apparent)), corpus, calibration, seed=trial)
        if figure.low is not None and figure.high is not None:
            hits += int(figure.low <= rate <= figure.high)
    assert 0.92 <= hits / trials <= 0.985
