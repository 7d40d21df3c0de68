"""Ranks of judge models: published form, known values, and how often the sets of ranks hold."""

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement.errors import NOT_MATCHED
from tracejury.judging.agreement.ranking import NO_RANK, rank_bounds, rank_table


def pairs_of(caught: dict[str, list[list[bool]]]) -> pd.DataFrame:
    """Of each judge model, by trace, whether it caught each error."""
    rows = [
        {"trace_id": f"t{t}", "error_id": f"e{e}", "impact": "high", "dimension": "TC", "judge_model": name,
         "relevant": True, "caught": hit, "localized": False}
        for name, traces in caught.items() for t, hits in enumerate(traces) for e, hit in enumerate(hits)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_judges_far_apart_have_one_rank_each_and_equal_ones_share_it() -> None:
    """Sixty traces of three errors: best catches about .9, worst .1, and two catch the same middling half."""
    rng = np.random.default_rng(5)
    best, middle, worst = ((rng.random((60, 3)) < rate).tolist() for rate in (0.9, 0.5, 0.1))
    table = rank_table(pairs_of({"worst": worst, "a": middle, "best": best, "b": middle}))
    assert table[["judge_model", "rank", "rank_low", "rank_high"]].to_numpy().tolist() == [
        ["best", 1.0, 1.0, 1.0],
        ["a", 2.0, 2.0, 3.0],
        ["b", 2.0, 2.0, 3.0],
        ["worst", 4.0, 4.0, 4.0],
    ]
    assert table["n"].tolist() == [180] * 4
    assert table["traces"].tolist() == [60] * 4


def test_few_traces_tell_no_ranks_apart() -> None:
    table = rank_table(pairs_of({"a": [[True], [False], [True]], "b": [[False], [False], [True]]}))
    assert table[["rank_low", "rank_high"]].to_numpy().tolist() == [[1.0, 2.0]] * 2


def test_an_error_that_one_did_not_answer_counts_for_nobody() -> None:
    """Of its own errors b catches 2 of 3; on the one that both answered it catches none, a one."""
    pairs = pairs_of({"a": [[True], [True], [True]], "b": [[False], [True], [True]]})
    pairs["state"] = ["failed" if m == "a" and t != "t0" else "scored" for m, t in zip(pairs["judge_model"],
                      pairs["trace_id"], strict=True)]  # fmt: skip
    table = rank_table(pairs)
    assert table[["judge_model", "recall", "n"]].to_numpy().tolist() == [["a", 1.0, 1], ["b", 0.0, 1]]


def test_one_judge_has_no_rank_and_the_reason_is_said() -> None:
    table = rank_table(pairs_of({"a": [[True], [False]]}))
    assert table["reason"].tolist() == [f"rank: {NO_RANK}; matched_share: no findings"]
    assert table[["rank", "rank_low", "rank_high"]].isna().all(axis=None)
    assert table[["recall", "n"]].to_numpy().tolist() == [[0.5, 2]]


def test_where_nothing_was_matched_nothing_is_a_number() -> None:
    """A finding on a trace without errors matches none; beside traces that wait, 0 of it would look like a share."""
    pairs = pairs_of({"a": [[True], [False]], "b": [[True], [False]]})
    pairs = pairs.assign(state="not_matched", caught=None, localized=None)
    rows = [("t0", False, "not_matched"), ("t9", False, "scored")]
    findings = pd.DataFrame(rows, columns=["trace_id", "matched", "state"]).assign(judge_model="a", split="all")
    table = rank_table(pairs, findings)
    assert set(table["reason"]) == {f"recall, rank, matched_share: {NOT_MATCHED}"}
    assert table["not_matched"].tolist() == [2, 2]
    answered = rank_table(pairs_of({"a": [[True]], "b": [[True]]}), findings.assign(state="scored"))
    assert answered.set_index("judge_model").loc["a", ["findings", "matched_share"]].tolist() == [2, 0.0]


def test_the_share_of_findings_that_match_leaves_out_those_that_nothing_was_compared_with() -> None:
    rows = [("t0", True, "scored"), ("t0", False, "scored"), ("t1", False, "scored"), ("t1", True, "scored"),
            ("t2", False, "not_matched")]  # fmt: skip
    findings = pd.DataFrame(rows, columns=["trace_id", "matched", "state"]).assign(judge_model="a", split="all")
    table = rank_table(pairs_of({"a": [[True], [False]], "b": [[True], [False]]}), findings)
    assert table.set_index("judge_model").loc["a", ["findings", "matched_share"]].tolist() == [4, 0.5]
    assert table.set_index("judge_model").loc["b", "reason"] == "matched_share: no findings"


def coverage(traces: int, *, simulations: int, draws: int, seed: int) -> float:
    """How often the sets of all five ranks hold the true ranks at once; errors of a trace depend on each other.

    Rates .3, .45, .45, .5 and .65: any rank of 3 and 4 is true of the two that are equal.
    """
    rng, rates = np.random.default_rng(seed), np.array([0.3, 0.45, 0.45, 0.5, 0.65])
    true_low = 1 + (rates[None, :] > rates[:, None]).sum(axis=1)
    held = 0
    for _ in range(simulations):
        sizes = rng.integers(1, 9, traces)
        ease = rng.normal(0, 0.8, (traces, 1)) + rng.normal(0, 0.5, (traces, 5))
        scale = np.sqrt(1 + 0.8**2 + 0.5**2)
        chance = _normal(ease + scale * _place(rates))
        hits = rng.binomial(sizes[:, None], chance)
        low, high = rank_bounds(hits, sizes, draws=draws, seed=int(rng.integers(2**31)))
        held += bool(np.all((low <= true_low) & (true_low <= high)))
    return held / simulations


def _normal(x: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


def _place(shares: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri

    return np.asarray(ndtri(shares))


@pytest.mark.soak
@pytest.mark.parametrize(("traces", "least"), [(20, 0.9), (60, 0.93)])
def test_the_sets_of_ranks_hold_as_often_as_they_say(traces: int, least: float) -> None:
    share = coverage(traces, simulations=600, draws=500, seed=traces)
    print(f"ranks of five judges at {traces} traces: all at once in {share:.3f}")
    assert share >= least
