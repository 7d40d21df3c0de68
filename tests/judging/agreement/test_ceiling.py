"""What people reach among each other on errors."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement import error_rates
from tracejury.judging.agreement.ceiling import ANY, beside, error_ceiling


def pair(
    trace: str, error: str, author: str, other: str, *, caught: bool, relevant: bool = True, localized: bool = False,
    dimension: str = "LC", impact: str = "low", reviewers: int = 2,
) -> dict[str, object]:  # fmt: skip
    return {
        "trace_id": trace, "error_id": error, "impact": impact, "author": author, "other": other,
        "reviewers": reviewers, "dimension": dimension, "relevant": relevant, "caught": caught, "localized": localized,
    }  # fmt: skip


def estimate(
    table: pd.DataFrame, metric: str, dimension: str = "LC", impact: str = "all", kind: str = "caught"
) -> pd.Series:
    keys = {"metric": metric, "dimension": dimension, "impact": impact, "kind": kind}
    kept = table[np.logical_and.reduce([table[name] == value for name, value in keys.items()])]
    assert len(kept) == 1
    return kept.iloc[0]


def test_two_people_in_both_directions() -> None:
    """Ann reported 3 errors, Bob 2; one is the same. Recall: 1 of 3 and 1 of 2, so 2 of 5 over both directions."""
    pairs = pd.DataFrame(
        [
            pair("t", "a1", "ann", "bob", caught=True, localized=True),
            pair("t", "a2", "ann", "bob", caught=False),
            pair("t", "a3", "ann", "bob", caught=False),
            pair("t", "b1", "bob", "ann", caught=True, localized=False),
            pair("t", "b2", "bob", "ann", caught=False),
        ]
    )
    table = error_ceiling(pairs, draws=0)
    recall = estimate(table, "recall")
    assert (recall["value"], recall["n"], recall["traces"], recall["people"]) == (pytest.approx(2 / 5), 5, 1, 2)
    assert estimate(table, "recall", kind="localized")["value"] == pytest.approx(1 / 5)


def test_an_error_of_another_dimension_that_is_caught_is_a_false_positive_as_for_a_judge() -> None:
    pairs = pd.DataFrame(
        [
            pair("t", "a1", "ann", "bob", caught=True),
            pair("t", "a2", "ann", "bob", caught=True, relevant=False),
            pair("t", "a3", "ann", "bob", caught=False, relevant=False),
        ]
    )
    table = error_ceiling(pairs, draws=0)
    assert [estimate(table, rate)["value"] for rate in error_rates.RATES] == [
        pytest.approx(float(value)) for value in (Fraction(1, 2), 1, Fraction(2, 3), Fraction(5, 6), Fraction(2, 3))
    ]


def test_a_trace_of_three_people_weighs_as_one_of_two() -> None:
    """Three people who all agree (6 ordered pairs) beside two who never do (2): 1 against 1, not 6 against 2."""
    people = ("ann", "bob", "cat")
    agreed = [
        pair("t", f"{author}1", author, other, caught=True, reviewers=3)
        for author in people for other in people if author != other
    ]  # fmt: skip
    apart = [pair("u", "a2", "ann", "bob", caught=False), pair("u", "b2", "bob", "ann", caught=False)]
    recall = estimate(error_ceiling(pd.DataFrame([*agreed, *apart]), draws=0), "recall")
    assert recall["value"] == pytest.approx(1 / 2)
    assert (recall["n"], recall["traces"], recall["people"]) == (8, 2, 3)


def test_the_ceiling_knows_no_order_of_people() -> None:
    rng = np.random.default_rng(3)
    rows = [
        pair(f"t{t}", f"{author}{e}", author, other, caught=bool(rng.random() < 0.5), relevant=bool(rng.random() < 0.7))
        for t in range(8) for author, other in (("ann", "bob"), ("bob", "ann")) for e in range(3)
    ]  # fmt: skip
    pairs = pd.DataFrame(rows)
    swapped = pairs.assign(author=pairs["author"].map({"ann": "zed", "bob": "amy"}),
                           other=pairs["other"].map({"ann": "zed", "bob": "amy"}))  # fmt: skip
    one, other = error_ceiling(pairs, draws=50), error_ceiling(swapped.iloc[::-1], draws=50)
    pd.testing.assert_frame_equal(one, other)


def test_any_asks_only_whether_the_other_saw_the_error() -> None:
    pairs = pd.DataFrame([pair("t", "a1", "ann", "bob", caught=True, dimension=ANY)])
    table = error_ceiling(pairs, draws=0)
    assert set(table["metric"]) == {"recall"}


def test_an_undefined_rate_has_its_reason_and_impacts_stand_apart() -> None:
    table = error_ceiling(pd.DataFrame([pair("t", "a1", "ann", "bob", caught=False, impact="high")]), draws=20)
    assert estimate(table, "precision")["reason"] == "no positive predicted"
    assert estimate(table, "recall", impact="high")["value"] == 0
    assert estimate(table, "recall", impact="low")["reason"] == "no positives"
    assert estimate(table, "recall")["high"] > 0  # Wilson: one miss does not prove that nothing is ever seen


def test_intervals_shrink_with_traces() -> None:
    rng = np.random.default_rng(5)

    def width(traces: int) -> float:
        rows = [
            pair(f"t{t}", f"{author}{e}", author, other, caught=bool(rng.random() < 0.5))
            for t in range(traces) for author, other in (("ann", "bob"), ("bob", "ann")) for e in range(2)
        ]  # fmt: skip
        recall = estimate(error_ceiling(pd.DataFrame(rows), draws=400), "recall")
        return float(recall["high"] - recall["low"])

    assert width(200) < 0.6 * width(20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"other": "ann"}, "with themself"),
        ({"reviewers": 1}, "below 2"),
        ({"caught": None}, "caught is missing"),
        ({"impact": "huge"}, "the impact 'huge'"),
    ],
)
def test_bad_rows_are_named(change: dict[str, object], message: str) -> None:
    pairs = pd.DataFrame([pair("t", "a1", "ann", "bob", caught=True) | change])
    with pytest.raises(ValueError, match=message):
        error_ceiling(pairs, draws=0)


def test_the_ceiling_stands_beside_every_judge_of_the_dimension() -> None:
    estimates = pd.DataFrame(
        {"judge_model": ["x", "y", "x"], "dimension": ["LC", "LC", "EE"], "value": [0.1, 0.2, 0.3]}
    )
    reached = pd.DataFrame({"dimension": ["LC"], "value": [0.7], "low": [0.5], "high": [0.9]})
    joined = beside(estimates, reached, ["dimension"])
    assert joined["ceiling"].tolist()[:2] == [0.7, 0.7]
    assert joined["ceiling"].isna().tolist() == [False, False, True]
    assert joined["value"].tolist() == [0.1, 0.2, 0.3]
