"""The Overview's first sentences and counts are true in every state of the data."""

from __future__ import annotations

import pandas as pd
import pytest

from tracejury.app.components.answer import NO_PEOPLE, answer, by_slice
from tracejury.app.views.agreement.overview import compared_counts
from tracejury.judging.agreement.slice_tests import recall_difference_columns

NAN = float("nan")
Judge = tuple[str, float, float, float, int, int, int]
CHECKS: Judge = ("checks", 0.36, 0.314, 0.41, 381, 0, 0)
STRONG: Judge = ("o3", 0.62, 0.55, 0.69, 381, 0, 0)
UNMATCHED: Judge = ("later", NAN, NAN, NAN, 0, 40, 0)


def suite(*judges: Judge, split: str = "all") -> pd.DataFrame:
    columns = ["judge_model", "coverage", "coverage_low", "coverage_high", "n", "not_matched", "failed"]
    return pd.DataFrame(judges, columns=columns).assign(impact="all", kind="caught", split=split)


def people(value: float = 0.68, n: int = 60, split: str = "all") -> pd.DataFrame:
    row = {"dimension": "any", "impact": "all", "metric": "recall", "kind": "caught", "split": split, "value": value}
    return pd.DataFrame([{**row, "low": value - 0.08, "high": value + 0.08, "n": n}])


NOBODY = people().head(0)
ONE = "checks catches 36 % of the reference errors [31, 41]"


@pytest.mark.parametrize(
    ("table", "reached", "sentence"),
    [
        (suite(CHECKS), people(), f"{ONE}; people among themselves 68 % [60, 76]; no judge is within reach of people."),
        (suite(CHECKS), NOBODY, f"{ONE}; {NO_PEOPLE}."),
        (suite(CHECKS), people(n=0), f"{ONE}; {NO_PEOPLE}."),
        (suite(CHECKS), None, f"{ONE}; how many of each other's errors people find is being computed."),
        (suite(UNMATCHED), people(), "What judges caught is unknown: no matches are proposed yet."),
        (suite(("m", NAN, NAN, NAN, 0, 0, 9)), NOBODY,
         "What judges would catch is unknown: they failed on every trace with a reference error."),
        (suite(("m", NAN, NAN, NAN, 0, 0, 0)), NOBODY,
         "There is nothing to catch: the reference has no errors on the traces that judges answered."),
        (suite().head(0), NOBODY, "No judge that reports errors has answered a trace that the reference reviewed."),
        (suite(CHECKS, STRONG), people(),
         "o3 catches 62 % of the reference errors [55, 69] and checks 36 % [31, 41]; people among themselves 68 % "
         "[60, 76]; o3 is within reach of people."),
        (suite(CHECKS, UNMATCHED), NOBODY,
         f"{ONE}; no matches are proposed for 1 judge model; {NO_PEOPLE}."),
        (suite(("checks", 1.0, NAN, NAN, 1, 0, 0)), people(n=2),
         "checks catches 100 % of the reference errors (only 1 error); people among themselves 68 % [60, 76] (only 2 "
         "comparisons); too few traces to say which judges are within reach of people."),
    ],
)  # fmt: skip
def test_the_sentence(table: pd.DataFrame, reached: pd.DataFrame | None, sentence: str) -> None:
    assert answer(table, reached) == [sentence]


def test_four_judges_are_all_named_and_of_eighteen_the_best_and_the_last() -> None:
    judges = [(f"m{place}", 0.9 - place / 25, 0.8 - place / 25, 0.95 - place / 25, 300, 0, 0) for place in range(18)]
    (four,) = answer(suite(*judges[:4]), NOBODY)
    assert [four.index(f"m{place} ") for place in range(4)] == sorted(four.index(f"m{place} ") for place in range(4))
    (many,) = answer(suite(*judges[::-1]), people(0.75))
    assert many == (
        "Of 18 judge models, m0 catches most of the reference errors, 90 % [80, 95], and m17 22 % [12, 27] the least; "
        "people among themselves 75 % [67, 83]; 6 of 18 are within reach of people."
    )


def test_each_part_of_a_split_has_its_own_sentence() -> None:
    table = pd.concat([suite(CHECKS, split="dev"), suite(STRONG, split="test")])
    dev, test = answer(table, people(split="test"))
    assert dev == f"dev: {ONE}; {NO_PEOPLE}."
    assert test.endswith("people among themselves 68 % [60, 76]; o3 is within reach of people.")


DIFFERENCE = {
    "by": "length", "judge_model": "m", "dimension": "LC", "split": "all", "low_slice": "60 spans or more",
    "low": 0.125, "low_n": 8, "high_slice": "1 to 19 spans", "high": 0.876, "high_n": 9, "p": 0.002, "p_holm": 0.004,
}  # fmt: skip
APART = "catches 13 % in '60 spans or more' (8) and 88 % in '1 to 19 spans' (9), by"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [],
            "no test, because no judge is known to have caught some errors and missed others in two slices of 5 or "
            "more traces.",
        ),
        (
            [{"p_holm": 0.06}],
            "no judge's recall differs between slices by more than chance would explain (1 test, Holm).",
        ),
        (
            [{"judge_model": "later", "p": 0.003}, {}, {"p_holm": 1.0}],
            f"m LC {APART} length of the trace (p = 0.004, Holm over 3 tests); 1 other test too.",
        ),
        (
            [{"split": "dev", "by": "agent"}, {"split": "test", "p_holm": 0.5}],
            f"m LC dev {APART} agent (p = 0.004, Holm over 2 tests).",
        ),
    ],
)
def test_the_greatest_difference_between_slices_is_named_or_that_there_is_none(
    rows: list[dict[str, object]], words: str
) -> None:
    columns = list(recall_difference_columns())
    assert by_slice(pd.DataFrame([DIFFERENCE | row for row in rows], columns=columns)) == f"By slice: {words}"


def test_errors_that_no_match_is_proposed_for_are_not_counted_as_none() -> None:
    judges = [("m", 0, 0, 9, 2), ("asked later", 0, 0, 0, 3), ("matched", 4, 6, 1, 0)]
    columns = ["judge_model", "traces", "n", "not_matched", "failed"]
    rates = pd.DataFrame(judges, columns=columns).assign(dimension="LC", split="all", impact="all")
    counts = compared_counts(pd.concat([rates, rates.assign(impact="low")])).set_index("judge_model")
    assert counts[["traces", "n"]].isna().all(axis=1).to_dict() == {"m": True, "asked later": False, "matched": False}
    assert counts.loc["matched", ["traces", "n", "failed"]].tolist() == [4, 6, 0]
