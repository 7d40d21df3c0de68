"""Recall by period and its test of drift, and the calibration of scores."""

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement.calibration import calibration_table
from tracejury.judging.agreement.over_time import drift_test, recall_by_period


def pairs(caught: dict[str, list[bool]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "trace_id": trace, "error_id": f"{trace}-{n}", "impact": "low", "dimension": "LC", "judge_model": "m",
                "relevant": True, "caught": one, "localized": False, "state": "scored",
            }
            for trace, values in caught.items()
            for n, one in enumerate(values)
        ]
    )  # fmt: skip


def test_each_period_has_its_recall_and_one_period_no_drift() -> None:
    errors = pairs({"a": [True, True], "b": [True, False], "c": [False, False], "d": [False, True]})
    weeks = pd.DataFrame({"trace_id": ["a", "b", "c", "d"], "by": "week", "period": ["1", "1", "2", "2"]})
    versions = weeks.assign(by="guideline", period="v1")
    table = recall_by_period(errors, pd.concat([weeks, versions]), draws=200)
    by_week = table[table["by"] == "week"]
    assert by_week["recall"].tolist() == [0.75, 0.25]
    assert by_week[["traces", "n", "hits"]].to_numpy().tolist() == [[2, 4, 3], [2, 4, 1]]
    (one,) = table[table["by"] == "guideline"].to_dict("records")
    assert (one["recall"], one["n"]) == (0.5, 8)
    assert np.isnan(one["drift_p"])


def test_errors_that_nobody_matched_are_left_out_and_counted() -> None:
    errors = pairs({"a": [True, True], "b": [True, False]}).astype({"caught": object, "localized": object})
    errors.loc[errors["trace_id"] == "b", ["caught", "localized", "state"]] = [None, None, "not_matched"]
    weeks = pd.DataFrame({"trace_id": ["a", "b"], "by": "week", "period": ["1", "2"]})
    first, second = recall_by_period(errors, weeks, draws=50).to_dict("records")
    assert (first["n"], first["left_out"], first["recall"]) == (2, 0, 1.0)
    assert (second["n"], second["left_out"]) == (0, 2)
    assert np.isnan(second["recall"])


def test_the_drift_test_is_exact_on_a_case_worked_by_hand() -> None:
    """Two periods of two traces of one error each, caught 1 1 | 0 0: 2 of the 6 splits are as far apart, p = 1/3."""
    p = drift_test(np.ones(4), np.array([1.0, 1.0, 0.0, 0.0]), np.array([0, 0, 1, 1]), draws=4_000)
    assert p == pytest.approx(1 / 3, abs=0.03)


def test_the_drift_test_keeps_its_level_though_errors_of_a_trace_depend_on_each_other() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 12, 40).astype(float)
    rejected = []
    for trial in range(300):
        hits = rng.binomial(sizes.astype(int), rng.beta(0.5, 0.5, 40)).astype(float)
        rejected.append(drift_test(sizes, hits, np.repeat([0, 1], 20), draws=199, seed=trial) <= 0.05)
    assert np.mean(rejected) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_the_drift_test_sees_a_fall_of_forty_points() -> None:
    rng = np.random.default_rng(5)
    hits = np.concatenate([rng.binomial(5, 0.8, 20), rng.binomial(5, 0.4, 20)]).astype(float)
    assert drift_test(np.full(40, 5.0), hits, np.repeat([0, 1], 20), draws=999) <= 0.01


def test_a_judge_is_calibrated_where_the_reference_says_the_same_on_average() -> None:
    scores = pd.DataFrame(
        {
            "trace_id": list("abcdef"), "dimension": "LC", "judge_score": [2, 2, 2, 2, 0, 3],
            "reference_score": [1, 2, 3, 2, 1, 3],
        }
    )  # fmt: skip
    table = calibration_table(scores).set_index("judge_score")
    assert table["n"].tolist() == [1, 0, 4, 1]
    assert (table.loc[2, "reference"], table.loc[2, "gap"]) == (2.0, 0.0)
    # values 1 2 3 2: standard deviation .8165, t(3) = 3.182: 2 ± 1.299
    assert table.loc[2, ["reference_low", "reference_high"]].tolist() == pytest.approx([0.7008, 3.0], abs=1e-3)
    assert table.loc[0, "gap"] == -1.0
    assert np.isnan(table.loc[1, "reference"])
