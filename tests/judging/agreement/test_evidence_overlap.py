"""Overlap of evidence: by hand, on how many pairs it rests, and whether its interval covers."""

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement.evidence_overlap import EVIDENCE, character_iou, evidence_table


@pytest.mark.parametrize(
    ("ours", "theirs", "iou"),
    [
        ([(0, 0, 10)], [(0, 0, 10)], 1.0),
        ([(0, 0, 10)], [(0, 5, 15)], 5 / 15),
        ([(0, 0, 10)], [(1, 0, 10)], 0.0),  # the same offsets of another span
        ([(0, 0, 4), (0, 6, 10)], [(0, 0, 10)], 0.8),
        ([(0, 0, 6), (0, 4, 10)], [(0, 0, 10)], 1.0),  # stretches that overlap count once
        ([], [(0, 0, 3)], 0.0),
    ],
)
def test_overlap_by_hand(ours: list[tuple[int, int, int]], theirs: list[tuple[int, int, int]], iou: float) -> None:
    assert character_iou(ours, theirs) == character_iou(theirs, ours) == pytest.approx(iou)


def test_of_nothing_there_is_no_overlap() -> None:
    assert np.isnan(character_iou([], []))


def test_the_mean_says_on_how_many_pairs_it_rests() -> None:
    pairs = pd.DataFrame(
        {
            "trace_id": ["a", "a", "b", "b", "c", "d"], "error_id": list("123456"), "dimension": "LC",
            "evidence": [*EVIDENCE[:1] * 3, *EVIDENCE[1:]], "iou": [1.0, 0.5, 0.0, None, None, None],
        }
    )  # fmt: skip
    (row,) = evidence_table(pairs).to_dict("records")
    assert row["iou"] == 0.5
    assert (row["pairs"], row["n"], row["traces"]) == (6, 3, 2)
    assert (row["no_label_quote"], row["no_finding_quote"], row["not_in_trace"]) == (1, 1, 1)
    assert row["pairs"] == row["n"] + row["no_label_quote"] + row["no_finding_quote"] + row["not_in_trace"]
    assert row["iou_low"] < 0.5 < row["iou_high"]
    (bare,) = evidence_table(pairs.iloc[3:]).to_dict("records")
    assert np.isnan(bare["iou"])


def test_another_word_of_evidence_is_refused() -> None:
    pairs = pd.DataFrame({"trace_id": ["a"], "error_id": "1", "dimension": "LC", "evidence": "perhaps", "iou": 1.0})
    with pytest.raises(ValueError, match=r"evidence holds \['perhaps'\]"):
        evidence_table(pairs)


@pytest.mark.parametrize("traces", [20, 60])
@pytest.mark.parametrize("studies", [200, pytest.param(2_000, marks=pytest.mark.soak)])
def test_the_interval_of_the_overlap_covers(studies: int, traces: int) -> None:
    """Overlaps are 0 in half of the pairs, else anything to 1; those of a trace are alike."""
    rng = np.random.default_rng(8)

    def study(number: int) -> pd.DataFrame:
        of = np.repeat(np.arange(number), 1 + rng.poisson(2, number))
        own, none = rng.beta(2, 2, number)[of], rng.beta(2, 2, number)[of]
        values = np.where(rng.random(len(of)) < none, 0.0, np.clip(own + rng.normal(0, 0.2, len(of)), 0, 1))
        return pd.DataFrame(
            {"trace_id": of, "error_id": range(len(of)), "dimension": "LC", "evidence": "compared", "iou": values}
        )

    truth = study(100_000)["iou"].mean()
    rows = [evidence_table(study(traces)).iloc[0] for _ in range(studies)]
    held = np.mean([row["iou_low"] <= truth <= row["iou_high"] for row in rows])
    noise = 3 * (0.05 * 0.95 / studies) ** 0.5
    print(f"\n{traces} traces: {held:.3f}")
    assert held >= (0.93 if traces >= 60 else 0.90) - noise
