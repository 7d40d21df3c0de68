"""Caught and localized: counts, rates, blanks, coverage, failed judgements."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, multilabel_confusion_matrix, precision_recall_fscore_support

from tracejury.judging.agreement import error_rates, errors
from tracejury.judging.agreement.intervals import wilson


def pairs(rows: list[tuple[str, str, str, str, bool, bool, bool]], **more: object) -> pd.DataFrame:
    names = ["trace_id", "error_id", "impact", "dimension", "relevant", "caught", "localized"]
    return pd.DataFrame(rows, columns=names).assign(**more)


FIVE = pairs(
    [
        ("t1", "e1", "high", "LC", True, True, True),
        ("t1", "e2", "low", "LC", True, False, False),
        ("t2", "e1", "high", "LC", False, True, False),
        ("t2", "e2", "medium", "LC", False, False, False),
        ("t3", "e1", "high", "LC", True, True, False),
    ]
)


def row_of(table: pd.DataFrame, **where: str) -> pd.Series:
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


def test_the_core_table_counts_by_judge_impact_and_kind() -> None:
    table = errors.error_table(FIVE, draws=0)
    caught = row_of(table, kind="caught", impact="all")
    assert [caught[c] for c in ("n", "positives", "tp", "fp", "fn", "tn", "traces")] == [5, 3, 2, 1, 1, 1, 3]
    # P = 2/3, R = 2/3, F1 = 4/6, F2 = 10/15, Acc = 3/5
    assert [caught[r] for r in error_rates.RATES] == [2 / 3, 2 / 3, 4 / 6, 10 / 15, 3 / 5]
    localized = row_of(table, kind="localized", impact="high")
    assert [localized[c] for c in ("n", "tp", "fp", "fn", "tn")] == [3, 1, 0, 1, 1]
    assert len(table) == 2 * 4


def test_rates_are_blank_where_the_paper_is_blank_and_not_zero() -> None:
    # tp, fp, fn, tn: nothing predicted; nothing relevant; P = R = 0; nothing at all
    cells = np.array([[0, 0, 3, 4], [0, 2, 0, 4], [0, 2, 3, 4], [0, 0, 0, 0]])
    precision, recall, f1, f2, accuracy = error_rates.rates(cells).T
    assert list(np.isnan(precision)) == [True, False, False, True]
    assert list(np.isnan(recall)) == [False, True, False, True]
    assert np.isnan(f1).all()
    assert np.isnan(f2).all()
    assert list(np.isnan(accuracy)) == [False, False, False, True]
    assert recall[0] == precision[1] == precision[2] == 0


@pytest.mark.parametrize("counts", [(0, 0, 3, 4), (0, 2, 0, 4), (0, 2, 3, 4), (0, 0, 0, 0), (1, 0, 0, 0)])
@pytest.mark.parametrize("rate", error_rates.RATES)
def test_a_rate_has_a_reason_exactly_when_it_is_undefined(rate: str, counts: tuple[int, int, int, int]) -> None:
    metric = error_rates.BY_RATE[rate]
    undefined = bool(np.isnan(metric.function(np.array(counts))))
    assert (metric.reasons(np.array([counts]))[0] is not None) == undefined


@pytest.mark.parametrize("metric", error_rates.ERROR_METRICS, ids=error_rates.RATES)
def test_the_record_of_a_rate_has_the_sums_that_its_function_divides(metric: error_rates.ErrorMetric) -> None:
    counts = np.random.default_rng(3).integers(0, 4, (400, 4))
    value = metric.function(counts)
    known = ~np.isnan(value)
    np.testing.assert_allclose(value[known], ((counts @ metric.above) / (counts @ metric.below).clip(1e-9))[known])
    assert all(metric.n(*row) > 0 for row in counts[known].tolist())


def test_a_rate_counts_what_stands_below_its_line() -> None:
    # 1 tp, 10 fp, 100 fn, 1,000 tn: a digit says which is counted
    counted = {metric.name: metric.n(1, 10, 100, 1000) for metric in error_rates.ERROR_METRICS}
    assert counted == {"precision": 11, "recall": 101, "f1": 111, "f2": 111, "accuracy": 1111}
    assert [metric.name for metric in error_rates.ERROR_METRICS if not metric.needs_negatives] == ["recall"]


def test_rates_equal_scikit_learn_on_a_thousand_random_inputs() -> None:
    # Each column is an input of its own; scikit-learn scores all columns of a multilabel array in one call.
    rng = np.random.default_rng(5)
    for n in (2, 3, 7, 12):
        truth = rng.random((n, 250)) < rng.random(250)
        said = rng.random((n, 250)) < rng.random(250)
        (tn, fp), (fn, tp) = np.moveaxis(multilabel_confusion_matrix(truth, said), 0, -1)
        ours = dict(zip(error_rates.RATES, error_rates.rates(np.stack([tp, fp, fn, tn], axis=-1)).T, strict=True))
        for name, beta in (("f1", 1), ("f2", 2)):
            precision, recall, f, _ = precision_recall_fscore_support(
                truth, said, beta=beta, average=None, zero_division=np.nan
            )
            np.testing.assert_allclose(ours["precision"], precision)
            np.testing.assert_allclose(ours["recall"], recall)
            np.testing.assert_allclose(ours[name], np.where(tp > 0, f, np.nan))
        np.testing.assert_allclose(
            ours["accuracy"], [accuracy_score(t, s) for t, s in zip(truth.T, said.T, strict=True)]
        )


def test_failed_rows_are_left_out_and_counted() -> None:
    failed = FIVE.assign(state=["scored", "failed", "scored", "not_applicable", "unparsable"])
    row = row_of(errors.error_table(failed, draws=0), kind="caught", impact="all")
    assert [row[c] for c in ("n", "tp", "fp", "fn", "tn", "failed", "not_applicable")] == [2, 1, 1, 0, 0, 2, 1]


def test_failed_rows_can_count_as_nothing_caught() -> None:
    blank = FIVE.astype({"caught": object, "localized": object}).assign(state="scored")
    blank.loc[[1, 4], ["state", "caught", "localized"]] = ["failed", None, None]
    row = row_of(errors.error_table(blank, missing="disagree", draws=0), kind="caught", impact="all")
    # e2 of t1 and e1 of t3 are relevant and lost: they become misses
    assert [row[c] for c in ("n", "tp", "fp", "fn", "tn", "failed")] == [5, 1, 1, 2, 1, 2]


def test_a_failed_row_that_claims_a_catch_never_counts_as_caught() -> None:
    failed = FIVE.assign(state=["failed", "scored", "scored", "scored", "scored"])
    row = row_of(errors.error_table(failed, missing="disagree", draws=0), kind="caught", impact="all")
    assert [row[c] for c in ("tp", "fn")] == [1, 2]


def test_errors_without_impact_count_under_all_only() -> None:
    table = errors.error_table(FIVE.assign(impact=[None, "low", "high", "med", "high"]), draws=0)
    caught = table[table["kind"] == "caught"].set_index("impact")["n"]
    assert dict(caught) == {"low": 1, "medium": 1, "high": 2, "all": 5}


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("impact", "severe", "impacts"),
        ("caught", None, "missing for"),
        ("caught", "perhaps", "expected true or false"),
        ("relevant", None, "missing for"),
    ],
)
def test_a_bad_value_is_named(column: str, value: object, message: str) -> None:
    bad = FIVE.astype({column: object})
    bad.loc[1, column] = value
    with pytest.raises(ValueError, match=message):
        errors.error_table(bad, draws=0)


def test_localized_without_caught_is_refused() -> None:
    with pytest.raises(ValueError, match="localized but not caught"):
        errors.error_table(FIVE.assign(caught=False), draws=0)


def test_the_same_error_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="1 duplicate rows"):
        errors.error_table(pd.concat([FIVE, FIVE.iloc[:1]]), draws=0)


def test_absent_columns_are_named() -> None:
    with pytest.raises(ValueError, match=r"error_pairs lacks the columns \['impact', 'caught'\]"):
        errors.error_table(FIVE.drop(columns=["impact", "caught"]))


def test_a_frame_read_from_csv_gives_the_same_table(tmp_path: object) -> None:
    path = f"{tmp_path}/pairs.csv"
    FIVE.to_csv(path, index=False)
    again = errors.error_table(pd.read_csv(path), draws=20)
    pd.testing.assert_frame_equal(again, errors.error_table(FIVE, draws=20))


def test_the_suite_catches_what_any_judge_caught() -> None:
    two = pd.concat([FIVE, FIVE.assign(dimension="EE", caught=[False, True, False, False, False], localized=False)])
    suite = errors.suite_coverage(two)
    assert row_of(suite, impact="all", kind="caught")["printed"] == "4/5 (80.00%)"
    assert row_of(suite, impact="all", kind="localized")["hits"] == 1
    assert row_of(suite, impact="low", kind="caught")["hits"] == 1


def test_a_baseline_stands_beside_the_suite() -> None:
    two = pd.concat(
        [FIVE.assign(judge_model="judges"), FIVE.assign(judge_model="baseline", caught=False, localized=False)]
    )
    suite = errors.suite_coverage(two)
    assert row_of(suite, judge_model="baseline", impact="all", kind="caught")["coverage"] == 0.0
    assert row_of(suite, judge_model="judges", impact="all", kind="caught")["hits"] == 3


def test_an_error_that_no_judge_answered_is_not_missed() -> None:
    failed = FIVE.assign(state=["scored", "failed", "scored", "scored", "scored"])
    assert row_of(errors.suite_coverage(failed), impact="all", kind="caught")["n"] == 4
    counted = row_of(errors.suite_coverage(failed, missing="disagree"), impact="all", kind="caught")
    assert (counted["n"], counted["hits"], counted["failed"]) == (5, 3, 1)


def test_the_grid_has_0_missed_1_caught_2_localized_and_blank_for_failed() -> None:
    two = pd.concat([FIVE, FIVE.assign(dimension="EE", state="failed")])
    grid = errors.coverage_grid(two)
    assert list(grid.columns) == ["judge_model", "split", "trace_id", "error_id", "impact", "LC", "EE"]
    assert list(grid["LC"]) == [2, 0, 1, 0, 1]
    assert grid["EE"].isna().all()


def test_dimensions_by_judges_show_who_caught_whose_errors() -> None:
    other = FIVE.assign(dimension="EE", relevant=[False, True, True, False, False], caught=[True, *[False] * 4])
    grid = errors.dimension_grid(pd.concat([FIVE, other.assign(localized=False)]))
    crossed = row_of(grid, error_dimension="LC", dimension="EE")
    assert (crossed["errors"], crossed["caught"]) == (3, 1)  # of e1/t1, e2/t1, e1/t3 EE caught the first
    own = row_of(grid, error_dimension="LC", dimension="LC")
    assert own["share"] == 2 / 3


def test_the_map_counts_errors_by_dimension() -> None:
    row = row_of(errors.error_map(FIVE), impact="high")
    assert (row["mapped"], row["errors"]) == (2, 3)


def test_a_rate_of_one_has_wilsons_width() -> None:
    always = pairs([(f"t{i}", "e", "high", "LC", True, True, True) for i in range(129)])
    row = row_of(errors.error_table(always, draws=100), kind="caught", impact="all")
    assert row["recall"] == 1
    assert row["recall_low"] == pytest.approx(0.971, abs=5e-4)
    assert 0.9 < row["f1_low"] < 1
    assert 0.9 < row["f2_low"] < 1


def test_long_estimates_carry_their_own_n_and_reason() -> None:
    estimates = errors.error_estimates(errors.error_table(FIVE.assign(caught=False, localized=False), draws=0))
    row = row_of(estimates, metric="precision", impact="all", kind="caught")
    assert (row["n"], row["reason"]) == (0, "no positive predicted")
    assert np.isnan(row["value"])
    recall = row_of(estimates, metric="recall", impact="all", kind="caught")
    assert (recall["n"], recall["reason"], recall["value"]) == (3, None, 0.0)


def test_splits_are_bootstrapped_apart_and_ordered_dev_then_test() -> None:
    table = errors.error_table(FIVE.assign(split=["test", "test", "dev", "dev", "dev"]), draws=20)
    assert list(dict.fromkeys(table["split"])) == ["dev", "test"]
    assert row_of(table, split="dev", kind="caught", impact="all")["n"] == 3


def test_a_judge_of_every_error_has_recall_and_no_precision() -> None:
    # every error is its own, so no error can be a false alarm: precision would be 1 whatever it says
    pairs = pd.DataFrame(
        [("t1", "e1", True), ("t1", "e2", False), ("t2", "e3", True)], columns=["trace_id", "error_id", "caught"]
    ).assign(dimension="trail", impact="low", relevant=True, localized=False)
    estimates = errors.error_estimates(errors.error_table(pairs, draws=20))
    mine = estimates[(estimates["impact"] == "all") & (estimates["kind"] == "caught")].set_index("metric")
    assert mine.loc["recall", "value"] == pytest.approx(2 / 3)
    for metric in ("precision", "f1", "f2", "accuracy"):
        assert math.isnan(mine.loc[metric, "value"]), metric
        assert math.isnan(mine.loc[metric, "low"]), metric
        assert mine.loc[metric, "reason"] == "no negatives"


def test_a_rubric_of_ones_own_keeps_its_precision_where_some_errors_are_not_its_own() -> None:
    pairs = pd.DataFrame(
        [("t1", "e1", True, True), ("t1", "e2", False, True)], columns=["trace_id", "error_id", "relevant", "caught"]
    ).assign(dimension="safety", impact="low", localized=False)
    table = errors.error_table(pairs, draws=0)
    assert set(table.loc[(table["impact"] == "all") & (table["kind"] == "caught"), "precision"]) == {0.5}


def test_coverage_of_errors_that_go_by_trace_is_as_uncertain_as_its_traces() -> None:
    """Ten errors a trace, all caught or none: 20 traces tell as much as 20 errors, in every table."""
    rows = [
        {"trace_id": f"t{t:02}", "error_id": f"e{t}-{e}", "impact": "high", "dimension": "LC", "judge_model": "m",
         "relevant": True, "caught": t % 2 == 0, "localized": False}
        for t in range(20) for e in range(10)
    ]  # fmt: skip
    marked = pd.DataFrame(rows)
    low, high = wilson(100, 200) or (0.0, 0.0)
    for table in (errors.suite_coverage(marked), errors.coverage_of(errors.error_table(marked))):
        row = table[(table["kind"] == "caught") & (table["impact"] == "all")].iloc[0]
        assert row["coverage"] == 0.5
        assert row["coverage_high"] - row["coverage_low"] > 2 * (high - low)
    recall = errors.error_table(marked).query("kind == 'caught' and impact == 'all'").iloc[0]
    suite = errors.suite_coverage(marked).query("kind == 'caught' and impact == 'all'").iloc[0]
    assert (suite["coverage_low"], suite["coverage_high"]) == (recall["recall_low"], recall["recall_high"])
