"""Two people who decide the same matches."""

import krippendorff
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from tracejury.judging.agreement.intervals import wilson
from tracejury.judging.agreement.matchers import decided_by_both, matcher_agreement, reviewer_agreement


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
    assert by_pair.loc[("ann", "bob"), "agreement_low"] == pytest.approx((wilson(1, 1) or (0, 0))[0])
    assert np.isnan(by_pair.loc[("ann", "cat"), "agreement"])


def test_one_person_alone_gives_no_row() -> None:
    assert matcher_agreement(words(ann=[("t", "1", "confirmed")])).empty


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("t", "1", "proposed")], "status holds"),
        ([("t", "1", "confirmed"), ("t", "1", "rejected")], "duplicate"),
    ],
)
def test_bad_words_are_named(rows: list[tuple[str, str, str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        matcher_agreement(words(ann=rows))


def reviews(**said: str) -> pd.DataFrame:
    """Rows by reviewer, a letter a finding (V valid new error, F false alarm, D duplicate, . none), two a trace."""
    names = {"V": "valid new error", "F": "false alarm", "D": "duplicate"}
    return pd.DataFrame(
        [
            {"trace_id": f"t{n // 2}", "finding_id": n, "reviewer": who, "review": names[letter]}
            for who, letters in said.items()
            for n, letter in enumerate(letters)
            if letter != "."
        ]
    )


def test_two_peoples_reviews_by_hand() -> None:
    """Alike on 5 of 6. Shares of ann 3, 2, 1 sixths, of bob 2, 3, 1: chance (6 + 6 + 1) / 36 = 13/36.

    AC1: shares of both 5/12, 5/12, 2/12; chance (2 x 35/144 + 20/144) / 2 = 5/16. Alpha: values 5, 5, 2 of 12;
    observed 2 of 12, chance (144 - 54) / (12 x 11).
    """
    row = reviewer_agreement(reviews(ann="VVVFFD.", bob="VVFFFD."), draws=300).iloc[0]
    assert (row["n"], row["traces"]) == (6, 3)
    assert row[["both_valid_new_error", "both_false_alarm", "both_duplicate"]].tolist() == [2, 2, 1]
    assert row["agreement"] == pytest.approx(5 / 6)
    assert row["kappa"] == pytest.approx((5 / 6 - 13 / 36) / (1 - 13 / 36))
    assert row["ac1"] == pytest.approx((5 / 6 - 5 / 16) / (1 - 5 / 16))
    assert row["alpha"] == pytest.approx(1 - (2 / 12) / (90 / 132))
    for name in ("agreement", "kappa", "ac1", "alpha"):
        assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]


def test_reviews_agree_as_krippendorff_and_scikit_learn_say() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        said = {
            who: "".join(rng.choice(list("VFD."), p=[0.4, 0.3, 0.1, 0.2], size=30)) for who in ("ann", "bob", "cat")
        }
        table = reviewer_agreement(reviews(**said), draws=0).set_index(["reviewer_a", "reviewer_b"])
        coded = np.array([["VFD".find(letter) for letter in letters] for letters in said.values()], dtype=float)
        coded[coded < 0] = np.nan
        known = krippendorff.alpha(coded, level_of_measurement="nominal")
        assert table.loc[("all", "all"), "alpha"] == pytest.approx(known)
        both = ~np.isnan(coded[:2]).any(axis=0)
        row = table.loc[("ann", "bob")]
        assert row["n"] == both.sum()
        assert row["alpha"] == pytest.approx(krippendorff.alpha(coded[:2], level_of_measurement="nominal"))
        assert row["kappa"] == pytest.approx(cohen_kappa_score(coded[0, both], coded[1, both]))


def test_reviews_without_variation_or_a_second_person_say_so() -> None:
    table = reviewer_agreement(reviews(ann="FF", bob="FF"), draws=50)
    assert table["reason"].tolist() == ["no variation"]
    assert table["agreement"].tolist() == [1]
    assert table["agreement_low"].item() == pytest.approx((wilson(1, 1) or (0, 0))[0])  # all of one trace
    assert table["ac1"].tolist() == [1]
    assert reviewer_agreement(reviews(ann="FF")).empty
    assert reviewer_agreement(reviews(ann="F.", bob=".F"), draws=50)["reason"].tolist() == ["no pairs"]
    assert reviewer_agreement(reviews(ann="F", bob="V"), draws=50)["reason"].tolist() == [
        "fewer than two pairable units"
    ]
    with pytest.raises(ValueError, match="maybe"):
        reviewer_agreement(reviews(ann="F").assign(review="maybe"))


def test_everybody_together_stands_first_where_three_judged() -> None:
    table = reviewer_agreement(reviews(ann="VVF", bob="VFF", cat="V.."), draws=200)
    first = table.iloc[0]
    assert (first["reviewer_a"], first["n"], first["traces"], first["both_valid_new_error"]) == ("all", 3, 2, 1)
    assert first["agreement"] == pytest.approx((1 + 0 + 1) / 3)  # by finding, whoever judged it
    assert 0 <= first["agreement_low"] <= first["agreement"] <= first["agreement_high"] <= 1
    assert np.isnan(first["kappa"])  # of two people only
    assert table["reviewer_b"].tolist() == ["all", "bob", "cat", "cat"]


def test_behind_each_row_stands_what_both_decided_with_what_each_said() -> None:
    given = reviews(ann="VVF", bob="VFF", cat="V..")
    for row in reviewer_agreement(given, draws=0).itertuples():
        assert len(decided_by_both(given, row.reviewer_a, row.reviewer_b)) == row.n
    both = decided_by_both(given, "ann", "bob").set_index("finding_id")
    assert both.loc["1", ["ann", "bob"]].tolist() == ["valid new error", "false alarm"]
    matched = words(ann=[("t", "1", "confirmed"), ("t", "2", "rejected")], bob=[("t", "2", "confirmed")])
    (one,) = decided_by_both(matched, "ann", "bob").to_dict("records")
    assert (one["label_id"], one["finding_id"], one["ann"], one["bob"]) == ("2", "1", "rejected", "confirmed")
