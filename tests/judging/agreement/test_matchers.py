"""Two people who decide the same matches."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from judging.agreement.matchers import matcher_agreement


def words(**said: list[tuple[str, str, str]]) -> pd.DataFrame:
    """Rows (trace, pair, status) by matcher."""
    return pd.DataFrame(
        [
            {"trace_id": trace, "label_id": name, "finding_id": 1, "matcher": matcher, "status": status}
            for matcher, rows in said.items()
            for trace, name, status in rows
        ]
    )


def test_counts_and_kappa_of_two_matchers_by_hand() -> None:
    """Both confirm 2, both reject 1, ann alone confirms 1: observed 3/4; chance 3/4 x 2/4 + 1/4 x 2/4 = 1/2."""
    ann = [("t", "1", "confirmed"), ("t", "2", "confirmed"), ("u", "3", "confirmed"), ("u", "4", "rejected")]
    bob = [("t", "1", "confirmed"), ("t", "2", "confirmed"), ("u", "3", "rejected"), ("u", "4", "rejected")]
    row = matcher_agreement(words(bob=bob, ann=ann), draws=200).iloc[0]
    assert (row["matcher_a"], row["matcher_b"]) == ("ann", "bob")
    assert (row["n"], row["traces"], row["both_confirmed"], row["both_rejected"]) == (4, 2, 2, 1)
    assert (row["only_a"], row["only_b"]) == (1, 0)
    assert row["agreement"] == 0.75
    assert row["kappa"] == pytest.approx((0.75 - 0.5) / 0.5)
    assert row["kappa_low"] <= row["kappa"] <= row["kappa_high"]


def test_kappa_equals_scikit_learn_on_random_words() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        n = int(rng.integers(2, 40))
        said = {
            name: [(f"t{i % 5}", f"{i}", str(rng.choice(["confirmed", "rejected"], p=[0.7, 0.3]))) for i in range(n)]
            for name in ("ann", "bob")
        }
        row = matcher_agreement(words(**said), draws=0).iloc[0]
        ours, theirs = ([status for _, _, status in said[name]] for name in ("ann", "bob"))
        assert row["agreement"] == pytest.approx(np.mean([a == b for a, b in zip(ours, theirs, strict=True)]))
        if len({*ours, *theirs}) > 1:
            assert row["kappa"] == pytest.approx(cohen_kappa_score(ours, theirs))


def test_only_pairs_that_both_decided_count_and_no_common_pair_says_so() -> None:
    table = matcher_agreement(
        words(
            ann=[("t", "1", "confirmed"), ("t", "2", "rejected")],
            bob=[("t", "1", "confirmed")],
            cat=[("t", "9", "rejected")],
        ),
        draws=50,
    )
    by_pair = table.set_index(["matcher_a", "matcher_b"])
    assert by_pair["n"].to_dict() == {("ann", "bob"): 1, ("ann", "cat"): 0, ("bob", "cat"): 0}
    assert by_pair["reason"].to_dict() == {
        ("ann", "bob"): "no variation", ("ann", "cat"): "no pairs", ("bob", "cat"): "no pairs",
    }  # fmt: skip
    assert by_pair.loc[("ann", "bob"), "agreement"] == 1
    assert by_pair.loc[("ann", "bob"), "agreement_low"] < 1  # Wilson: one pair proves little
    assert np.isnan(by_pair.loc[("ann", "cat"), "agreement"])


def test_one_person_alone_gives_no_row() -> None:
    assert matcher_agreement(words(ann=[("t", "1", "confirmed")])).empty


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("t", "1", "proposed")], "status holds"),
        ([("t", "1", "confirmed"), ("t", "1", "rejected")], "doubled"),
    ],
)
def test_bad_words_are_named(rows: list[tuple[str, str, str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        matcher_agreement(words(ann=rows))
