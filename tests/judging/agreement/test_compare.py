"""Two sides on the same traces: differences, McNemar, Holm, flips."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests

from tracejury.judging.agreement import compare, errors


def error_pairs(seed: int, skill: float, traces: int = 60, dimensions: tuple[str, ...] = ("LC", "EE")) -> pd.DataFrame:
    """Errors whose mapping depends on the trace alone, caught with the given skill."""
    truth, judge_rng = np.random.default_rng(0), np.random.default_rng(seed)
    rows = []
    for trace in range(traces):
        for error in range(4):
            for dimension in dimensions:
                relevant = bool(truth.random() < 0.5)
                caught = bool(judge_rng.random() < (skill if relevant else 1 - skill))
                rows.append((f"t{trace}", f"e{error}", "high", dimension, relevant, caught, False))
    names = ["trace_id", "error_id", "impact", "dimension", "relevant", "caught", "localized"]
    return pd.DataFrame(rows, columns=names)


def score_pairs(reference: list[int], model: list[int]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "trace_id": [f"t{i}" for i in range(len(reference))],
            "dimension": "LC",
            "reference_score": reference,
            "judge_score": model,
        }
    )


def test_mcnemar_equals_statsmodels_on_a_thousand_random_inputs() -> None:
    rng = np.random.default_rng(1)
    for b, c in rng.integers(0, 40, (1_000, 2)):
        ours = compare.mcnemar(int(b), int(c))
        table = [[5, b], [c, 5]]
        if b + c == 0:
            assert (ours.p_exact, ours.statistic) == (1.0, None)
            continue
        assert ours.p_exact == pytest.approx(reference_mcnemar(table, exact=True).pvalue)
        theirs = reference_mcnemar(table, exact=False, correction=True)
        if b != c:  # statsmodels lets the correction overshoot zero
            assert ours.statistic == pytest.approx(theirs.statistic)
            assert ours.p_corrected == pytest.approx(theirs.pvalue)
        else:
            assert ours.statistic == 0


def test_holm_equals_statsmodels_on_a_thousand_random_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gc.collect", lambda *_: 0)  # statsmodels collects garbage at every call: 0.1 s each
    rng = np.random.default_rng(2)
    for _ in range(1_000):
        p = np.round(rng.random(7) ** 3, 3)
        np.testing.assert_allclose(compare.holm(p), multipletests(p, method="holm")[1])


def test_holm_does_not_count_what_was_not_tested() -> None:
    adjusted = compare.holm(np.array([0.01, np.nan, 0.03]))
    np.testing.assert_allclose(adjusted, [0.02, np.nan, 0.03])
    assert len(compare.holm(np.array([]))) == 0


def test_a_side_against_itself_differs_in_nothing() -> None:
    side = error_pairs(1, 0.7)
    table = compare.compare_errors(side, side, draws=200)
    defined = table[table["difference"].notna()]
    assert (defined[["difference", "low", "high"]] == 0).all().all()
    assert not table["significant"].any()
    assert compare.error_flips(side, side).empty
    assert (compare.mcnemar_table(side, side)["p_exact"] == 1).all()


def test_a_better_judge_is_found_significant_and_swapping_sides_turns_the_sign() -> None:
    good, poor = error_pairs(1, 0.9), error_pairs(2, 0.6)
    table = compare.compare_errors(good, poor, draws=1_000).set_index(["dimension", "impact", "kind", "metric"])
    turned = compare.compare_errors(poor, good, draws=1_000).set_index(["dimension", "impact", "kind", "metric"])
    at = ("LC", "all", "caught", "recall")
    assert table.loc[at, "significant"]
    assert table.loc[at, "difference"] == -turned.loc[at, "difference"]
    assert table.loc[at, "low"] == pytest.approx(-turned.loc[at, "high"])
    own = errors.error_table(good, draws=0).set_index(["dimension", "impact", "kind"])
    assert table.loc[at, "left"] == own.loc[at[:3], "recall"]
    assert table.loc[at, "n"] == own.loc[at[:3], "n"]


def test_pairing_makes_the_interval_narrower_than_two_separate_ones() -> None:
    base = error_pairs(3, 0.7)
    nearly = base.copy()
    changed = nearly.index[nearly["relevant"] & ~nearly["caught"]][:5]
    nearly.loc[changed, "caught"] = True
    table = compare.compare_errors(nearly, base, draws=1_000).set_index(["dimension", "impact", "kind", "metric"])
    at = ("LC", "all", "caught", "recall")
    alone = errors.error_table(base, draws=1_000).set_index(["dimension", "impact", "kind"]).loc[at[:3]]
    paired = table.loc[at, "high"] - table.loc[at, "low"]
    assert paired < (alone["recall_high"] - alone["recall_low"]) / 2


def test_a_judge_of_every_error_is_compared_by_recall_alone() -> None:
    sides = [error_pairs(seed, 0.8, dimensions=("trail",)).assign(relevant=True) for seed in (1, 2)]
    table = compare.compare_errors(*sides, draws=50)
    defined = table[table["left"].notna()]
    assert set(defined["metric"]) == {"recall"}
    assert table.loc[table["metric"] == "precision", ["right", "difference", "low"]].isna().all().all()
    assert not table.loc[table["metric"] != "recall", "significant"].any()


def test_only_errors_scored_on_both_sides_count() -> None:
    left, right = error_pairs(1, 0.9), error_pairs(2, 0.6)
    right = right.assign(state=np.where(right["trace_id"] == "t0", "failed", "scored"))
    right = right[right["trace_id"] != "t1"]
    table = compare.compare_errors(left, right, draws=50).set_index(["dimension", "impact", "kind", "metric"])
    row = table.loc[("LC", "all", "caught", "accuracy")]
    assert (row["n"], row["traces"], row["unpaired"]) == (58 * 4, 58, 2 * 4)


def test_clustered_mcnemar_is_obuchowskis() -> None:
    # sum 5, squares 11, six traces: 5/6 * 25/11 = 1.8939, whose upper tail of chi-square(1) is .1688
    assert compare.clustered_mcnemar(np.array([2, 0, 1, -1, 1, 2])) == pytest.approx(0.1688, abs=1e-4)
    assert compare.clustered_mcnemar(np.zeros(4)) == 1
    assert compare.clustered_mcnemar(np.array([])) is None


def test_clustered_mcnemar_holds_its_level_where_the_plain_one_does_not() -> None:
    """Errors of a trace fall to one side or the other together: under no difference 5 % of studies may reject."""
    rng = np.random.default_rng(7)
    plain, clustered = [], []
    for _ in range(600):
        side, size = rng.choice([-1, 0, 1], size=60), rng.integers(1, 7, 60)
        d = side * size
        plain.append(compare.mcnemar(int(d[d > 0].sum()), int(-d[d < 0].sum())).p_exact < 0.05)
        p = compare.clustered_mcnemar(d)
        clustered.append(p is not None and p < 0.05)
    assert np.mean(plain) > 0.2
    assert 0.03 <= np.mean(clustered) <= 0.07


def test_mcnemar_counts_relevant_errors_caught_by_one_side_alone() -> None:
    left, right = error_pairs(1, 0.9, dimensions=("LC",)), error_pairs(2, 0.6, dimensions=("LC",))
    table = compare.mcnemar_table(left, right)
    row = table.iloc[0]
    a, b = left["caught"] & left["relevant"], right["caught"] & right["relevant"]
    assert row["n"] == left["relevant"].sum() == row["both"] + row["only_left"] + row["only_right"] + row["neither"]
    assert (row["only_left"], row["only_right"]) == ((a & ~b).sum(), (b & ~a).sum())
    assert table["kind"].tolist() == ["caught", "localized"]
    assert table["p_holm"].tolist() == compare.holm(table["p_clustered"].to_numpy()).tolist()  # over both
    assert row["p_exact"] < 0.01


def test_flips_name_the_errors() -> None:
    left = error_pairs(1, 0.9, traces=1, dimensions=("LC",)).assign(caught=True, localized=[True, False, False, True])
    right = left.assign(caught=[True, False, True, True], localized=[True, False, False, False])
    flips = compare.error_flips(left, right)
    assert list(zip(flips["error_id"], flips["left"], flips["right"], strict=True)) == [
        ("e1", "caught", "missed"),
        ("e3", "localized", "caught"),
    ]


def test_sides_under_different_mappings_are_refused() -> None:
    left = error_pairs(1, 0.9)
    with pytest.raises(ValueError, match="under one mapping"):
        compare.compare_errors(left, left.assign(relevant=~left["relevant"]))


def test_a_side_of_several_systems_is_refused() -> None:
    left = error_pairs(1, 0.9)
    two = pd.concat([left.assign(judge_model="a"), left.assign(judge_model="b")])
    with pytest.raises(ValueError, match="holds several judge models"):
        compare.compare_errors(left, two)


def test_bounds_of_a_difference_are_student_s_and_p_values_go_by_holm() -> None:
    """One error a trace: the difference of recall is a mean over traces, whose interval and test are Student's."""
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"trace_id": [f"t{n}" for n in range(30)], "error_id": "e", "impact": "low", "dimension": "LC",
                         "relevant": True, "localized": False})  # fmt: skip
    left, right = (rng.random(30) < rate for rate in (0.8, 0.4))
    table = compare.compare_errors(rows.assign(caught=left), rows.assign(caught=right))
    row = table.set_index(["impact", "kind", "metric"]).loc[("all", "caught", "recall")]
    test = stats.ttest_rel(left.astype(float), right.astype(float))
    low, high = test.confidence_interval()
    assert row[["low", "high", "p"]].astype(float).tolist() == pytest.approx([low, high, test.pvalue])
    assert table["p_holm"].tolist() == pytest.approx(compare.holm(table["p"].to_numpy()).tolist(), nan_ok=True)
    assert row["p_holm"] > row["p"]


def test_traces_without_an_error_of_the_judge_add_nothing_to_what_is_known() -> None:
    """Thirty traces, of which six hold an error of the judge: as many degrees of freedom as those alone give."""
    rows = pd.DataFrame({"trace_id": [f"t{n}" for n in range(30)], "error_id": "e", "impact": "low", "dimension": "LC",
                         "relevant": [n < 6 for n in range(30)], "localized": False})  # fmt: skip
    left, right = (rows.assign(caught=[n in hits for n in range(30)]) for hits in ({0, 1, 2, 3, 4}, {0, 5}))
    every, own = (
        compare.compare_errors(*(side.head(number) for side in (left, right))).set_index(["impact", "kind", "metric"])
        for number in (30, 6)
    )
    at = ("all", "caught", "recall")
    names = ["difference", "low", "high", "p"]
    assert every.loc[at, names].tolist() == pytest.approx(own.loc[at, names].tolist())


def test_score_differences_are_paired_by_trace() -> None:
    reference = [0, 1, 2, 3] * 10
    exact, off = score_pairs(reference, reference), score_pairs(reference, [min(h + 1, 3) for h in reference])
    table = compare.compare_scores(exact, off, draws=500).set_index("metric")
    assert table.loc["exact", "difference"] == 0.75
    assert table.loc["exact", "significant"]
    assert table.loc["off_by_one", "difference"] == 0
    assert table.loc["bias", "difference"] == -0.75
    assert table.loc["exact", "n"] == 40


def test_score_flips_name_traces_and_change() -> None:
    flips = compare.score_flips(score_pairs([0, 1, 2], [0, 1, 2]), score_pairs([0, 1, 2], [0, 3, 0]))
    assert list(zip(flips["trace_id"], flips["left"], flips["right"], flips["change"], strict=True)) == [
        ("t1", 1, 3, 2),
        ("t2", 2, 0, -2),
    ]


@pytest.mark.parametrize(("traces", "significant"), [(1, False), (5, False), (6, True)])
def test_traces_that_all_differ_alike_have_no_bounds_and_few_of_them_prove_nothing(
    traces: int, significant: bool
) -> None:
    rows = pd.DataFrame(
        [
            {"trace_id": f"t{n}", "error_id": f"e{n}", "impact": "low", "dimension": "LC", "relevant": True,
             "caught": True, "localized": False}
            for n in range(traces)
        ]
    )  # fmt: skip
    table = compare.compare_errors(rows, rows.assign(caught=False), draws=100)
    row = table.set_index(["impact", "kind", "metric"]).loc[("all", "caught", "recall")]
    assert (row["difference"], row["traces"]) == (1, traces)
    assert np.isnan(row["low"])
    assert row["significant"] == significant


def test_traces_that_the_rate_does_not_count_prove_nothing() -> None:
    """Six traces, of which one alone holds an error of the judge: the other five say nothing of its recall."""
    left = pd.DataFrame(
        [
            {"trace_id": f"t{n}", "error_id": f"e{n}", "impact": "high", "dimension": "LC", "relevant": n == 0,
             "caught": n == 0, "localized": False, "judge_model": "a"}
            for n in range(6)
        ]
    )  # fmt: skip
    table = compare.compare_errors(left, left.assign(judge_model="b", caught=False), draws=100)
    row = table.set_index(["impact", "kind", "metric"]).loc[("all", "caught", "recall")]
    assert (row["difference"], row["traces"], bool(row["significant"])) == (1, 6, False)


def test_sides_that_differ_have_no_bounds_where_nothing_varies() -> None:
    """One trace of two errors, each side catches another one: equal recall, and no word on how far it may differ."""
    rows = pd.DataFrame(
        [
            {
                "trace_id": "t",
                "error_id": name,
                "impact": "high",
                "dimension": "LC",
                "relevant": True,
                "localized": False,
            }
            for name in "ab"
        ]
    )
    table = compare.compare_errors(rows.assign(caught=[True, False]), rows.assign(caught=[False, True]), draws=100)
    row = table.set_index(["impact", "kind", "metric"]).loc[("all", "caught", "recall")]
    assert (row["left"], row["right"], row["difference"]) == (0.5, 0.5, 0)
    assert row[["low", "high"]].isna().all()
