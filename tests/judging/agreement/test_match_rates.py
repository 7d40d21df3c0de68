"""What a rule reaches on labelled pairs, and estimates without its mistakes."""

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement.errors import error_table, suite_coverage
from tracejury.judging.agreement.match_rates import (
    MEASURED,
    NO_CONFIDENCE,
    NONE_CONFIRMED,
    RULE_RATES,
    Measured,
    match_sensitivity,
    match_thresholds,
    measured_of,
    rule_rates,
    rule_row,
    why_no_recall,
    why_undefined,
)
from tracejury.judging.agreement.prevalence import Calibration
from tracejury.judging.matching.rule import RULE_VERSION

COLUMNS = ["trace_id", "cell_key", "label_id", "finding_id", "proposed", "same_error", "inclusion"]


def pairs(*rows: tuple[object, ...]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=COLUMNS)


def test_pairs_weigh_by_the_inverse_of_their_inclusion() -> None:
    table = pairs(
        ("t1", 1, "a", 1, True, "yes", 1.0),
        ("t1", 1, "b", 2, True, "no", 0.5),
        ("t2", 2, "c", 3, False, "yes", 0.25),
        ("t2", 2, "d", 4, True, "unclear", 1.0),
    )
    rates = rule_rates(table, {})
    assert rates.precision.value == pytest.approx(1 / (1 + 2))
    assert rates.recall.value == pytest.approx(1 / (1 + 4))
    assert (rates.precision.n, rates.recall.n, rates.unclear) == (2, 2, 1)
    assert rates.precision.low is None  # of one trace nobody knows how it varies


def test_a_pair_whose_error_a_right_proposal_has_is_no_miss_one_to_one() -> None:
    table = pairs(
        ("t1", 1, "a", 1, True, "yes", 1.0),
        ("t1", 1, "a", 2, False, "yes", 1.0),
        ("t2", 2, "a", 3, False, "yes", 1.0),
        ("t3", 3, "z", 4, True, "no", 1.0),
        ("t3", 3, "z", 5, False, "yes", 1.0),
    )
    rates = rule_rates(table, {})
    assert rates.recall.value == pytest.approx(1 / 4)
    assert rates.recall_one_to_one.value == pytest.approx(1 / 3)  # another cell, and a wrong proposal, excuse nothing


def test_errors_count_where_all_their_pairs_are_labelled() -> None:
    table = pairs(
        ("t1", 1, "a", 1, True, "no", 1.0), ("t1", 1, "a", 2, False, "yes", 1.0),
        ("t1", 1, "b", 1, False, "unclear", 1.0), ("t1", 1, "b", 2, False, "no", 1.0),
        ("t1", 1, "c", 1, False, "no", 1.0),
        ("t2", 2, "a", 3, False, "no", 1.0),
    )  # fmt: skip
    sizes = {(1, "a"): 2, (1, "b"): 2, (1, "c"): 2, (2, "a"): 1}
    assert rule_rates(table, sizes).of_errors == Calibration(tp=1, fp=0, fn=0, tn=1)


def test_without_proposals_or_same_errors_there_is_a_reason() -> None:
    rates = rule_rates(pairs(("t1", 1, "a", 1, False, "no", 1.0)), {})
    assert (rates.precision.reason, rates.recall.reason) == ("no positive predicted", "no positives")


def caught(*flags: tuple[bool, bool]) -> pd.DataFrame:
    """Rates of a judge by (relevant, caught) of each error."""
    rows = [
        {
            "trace_id": f"t{n // 4}", "error_id": f"e{n}", "impact": "high", "judge_model": "m", "dimension": "TC",
            "relevant": relevant, "caught": hit, "localized": False,
        }
        for n, (relevant, hit) in enumerate(flags)
    ]  # fmt: skip
    return error_table(pd.DataFrame(rows), draws=0)


RULE = Measured(rule="x", calibration=Calibration(tp=8, fn=2, fp=1, tn=9))
RATES = caught(*[(True, True)] * 5, *[(True, False)] * 5, *[(False, True)] * 2, *[(False, False)] * 8)


def all_impacts(table: pd.DataFrame) -> pd.Series:
    return table[table["impact"] == "all"].iloc[0]


def test_rates_are_corrected_as_rogan_and_gladen_do() -> None:
    row = all_impacts(match_sensitivity(RATES, set(), RULE, draws=1))
    recall, false = (0.5 - 0.1) / 0.7, (0.2 - 0.1) / 0.7
    assert row["recall"] == pytest.approx(0.5)
    assert row["recall_corrected"] == pytest.approx(recall)
    assert row["recall_lowest"] == pytest.approx((0.5 - 0.1) / 0.9)
    assert row["recall_highest"] == pytest.approx(0.5 / 0.8)
    assert row["precision_corrected"] == pytest.approx(recall / (recall + false))
    assert row["recall_corrected_low"] < recall < row["recall_corrected_high"]
    assert row["precision_lowest"] <= row["precision_corrected"] <= row["precision_highest"]
    assert row["reason"] is None


def test_a_workspace_s_own_pairs_replace_those_that_ship() -> None:
    """Thirty traces of one described and one other error each: 24 and 3 caught, all alike but for chance."""
    rows = [
        (f"t{n}", n, name, place, (n < 24) if name == "a" else (n < 3), "yes" if name == "a" else "no", 1.0)
        for n in range(30) for place, name in enumerate("ab")
    ]  # fmt: skip
    sizes = {(n, name): 1 for n in range(30) for name in "ab"}
    rates = rule_rates(pairs(*rows), sizes)
    own = measured_of(pd.DataFrame([rule_row("x", rates)]).astype(RULE_RATES))
    assert rates.of_errors == Calibration(tp=24, fn=6, fp=3, tn=27)
    assert own.calibration == rates.effective
    parts = [rates.effective.tp, rates.effective.fn, rates.effective.fp, rates.effective.tn]
    assert parts == pytest.approx([23.2, 5.8, 2.9, 26.1])  # of thirty traces, one is taken for what is estimated
    assert (own.measured_on, own.corrected_by) == ("own pairs", "own pairs")
    row = all_impacts(match_sensitivity(RATES, set(), own, draws=0))
    assert row["recall_corrected"] == pytest.approx((0.5 - 0.1) / 0.7)
    assert row[["rule_precision", "rule_precision_n"]].tolist() == [pytest.approx(24 / 27), 27]
    few = measured_of(pd.DataFrame([rule_row("x", rule_rates(pairs(*rows[:20]), sizes))]).astype(RULE_RATES))
    assert (few.calibration, few.measured_on, few.corrected_by) == (MEASURED.calibration, "own pairs", "shipped pairs")
    assert measured_of(pd.DataFrame(columns=list(RULE_RATES))) is MEASURED


def test_a_rule_without_mistakes_moves_nothing() -> None:
    exact = Measured(rule="x", calibration=Calibration(tp=10, fn=0, fp=0, tn=10))
    row = all_impacts(match_sensitivity(RATES, set(), exact, draws=0))
    for name in ("recall", "precision", "f1"):
        assert row[[f"{name}_corrected", f"{name}_lowest", f"{name}_highest"]].tolist() == pytest.approx(
            [row[name]] * 3
        )
    assert np.isnan(row["recall_corrected_low"])


def test_what_people_confirmed_and_what_is_empty_say_why() -> None:
    row = all_impacts(match_sensitivity(RATES, {"m"}, RULE, draws=1))
    assert np.isnan(row["recall_corrected"])
    assert "confirmed by people" in why_undefined(row, "recall_corrected")
    empty = all_impacts(match_sensitivity(caught((False, False)), set(), RULE, draws=1))
    assert why_undefined(empty, "recall_corrected") == "no positives"
    assert why_undefined(empty, "precision") == "no positive predicted"


def test_a_judge_of_every_error_has_a_recall_and_no_precision() -> None:
    rates = caught(*[(True, True)] * 5, *[(True, False)] * 5)
    general = all_impacts(match_sensitivity(rates.assign(precision=np.nan, f1=np.nan), set(), RULE, draws=1))
    assert general["recall_corrected"] == pytest.approx(0.4 / 0.7)
    assert np.isnan(general[["precision_corrected", "precision_lowest", "f1_highest"]].astype(float)).all()
    assert why_undefined(general, "precision_corrected") == "no negatives"


def test_the_measured_rule_is_the_one_that_ships() -> None:
    assert MEASURED.rule == RULE_VERSION  # another version is another rule: measure it on labelled pairs


def matched(*rows: tuple[bool, str | None, float | None]) -> pd.DataFrame:
    """Error pairs of judge model m by caught, match_status and match_confidence, two a trace."""
    return pd.DataFrame(
        [
            {
                "trace_id": f"t{n // 2}", "error_id": f"e{n}", "impact": "high", "judge_model": "m", "dimension": "TC",
                "relevant": True, "caught": hit, "localized": hit, "match_status": status, "match_confidence": sure,
            }
            for n, (hit, status, sure) in enumerate(rows)
        ]
    )  # fmt: skip


MATCHED = matched(
    (True, "proposed", 0.45), (True, "proposed", 0.7), (True, "confirmed", 1.0), (False, None, None),
    (True, "proposed", 0.95), (False, None, None), (False, None, None), (False, None, None),
)  # fmt: skip


def test_recall_falls_as_the_threshold_rises_and_confirmed_matches_stay() -> None:
    table = match_thresholds(MATCHED).set_index("threshold")
    assert table["recall"].to_dict() == {
        **dict.fromkeys((0.45,), 4 / 8), **dict.fromkeys((0.5, 0.55, 0.6, 0.65, 0.7), 3 / 8),
        **dict.fromkeys((0.75, 0.8, 0.85, 0.9, 0.95), 2 / 8),
    }  # fmt: skip
    assert set(table["confirmed_recall"]) == {1 / 8}
    whole = suite_coverage(MATCHED).query("kind == 'caught' and impact == 'all'").iloc[0]
    first = table.iloc[0]
    assert (first["n"], first["recall_low"], first["recall_high"]) == (
        whole["n"], whole["coverage_low"], whole["coverage_high"],
    )  # fmt: skip


def test_an_error_that_two_judges_caught_stays_while_one_match_reaches_the_threshold() -> None:
    twice = pd.concat([MATCHED, MATCHED.assign(dimension="EE", match_confidence=0.9)], ignore_index=True)
    assert set(match_thresholds(twice).set_index("threshold").loc[[0.5, 0.9], "recall"]) == {4 / 8}


def test_what_is_not_known_of_matches_is_no_number() -> None:
    proposed = MATCHED.assign(match_status="proposed")
    nobody = match_thresholds(proposed).iloc[0].to_dict()
    assert np.isnan(nobody["confirmed_recall"])
    assert (nobody["confirmed"], why_no_recall(nobody, "confirmed_recall")) == (0, NONE_CONFIRMED)
    unknown = match_thresholds(MATCHED.drop(columns="match_confidence")).iloc[0].to_dict()
    assert np.isnan(unknown["recall"])
    assert (unknown["confirmed_recall"], why_no_recall(unknown, "recall")) == (1 / 8, NO_CONFIDENCE)
    waiting = match_thresholds(MATCHED.assign(state="not_matched", caught=None, localized=None)).iloc[0].to_dict()
    assert (waiting["n"], why_no_recall(waiting, "recall")) == (0, "no matches proposed yet")
    assert match_thresholds(MATCHED.head(0)).empty
