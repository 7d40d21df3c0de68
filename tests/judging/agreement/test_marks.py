"""What is drawn of many rows, and that the counts are of all."""

from __future__ import annotations

import pandas as pd

from tracejury.judging.agreement import marks


def pairs(errors: int) -> pd.DataFrame:
    """Two judges on each error; the first finds all of odd number, the second none."""
    rows = [
        (
            "m",
            dimension,
            f"t{n}",
            f"e{n:05}",
            "low",
            dimension == "LC" or n % 2 == 0,
            "scored",
            dimension == "LC" and n % 2 == 1,
        )
        for n in range(errors)
        for dimension in ("LC", "EE")
    ]
    columns = ["judge_model", "dimension", "trace_id", "error_id", "impact", "relevant", "state", "caught"]
    return pd.DataFrame(rows, columns=columns).assign(localized=False)


def test_few_errors_are_all_drawn_and_those_found_stand_first() -> None:
    levels = marks.error_levels(pairs(4), own=False)
    assert len(marks.drawn_levels(levels)) == 8
    assert marks.found_first(levels)[:2] == ["e00001", "e00003"]


def test_own_errors_are_those_of_the_judges_dimension() -> None:
    assert len(marks.error_levels(pairs(4), own=True)) == 6


def test_of_many_errors_every_mark_of_some_is_drawn_and_all_are_counted() -> None:
    levels = marks.error_levels(pairs(9_000), own=False)
    drawn, counts = marks.drawn_levels(levels), marks.level_counts(levels)
    assert 0 < len(drawn) <= marks.MOST_MARKS
    assert set(drawn.groupby("error_id").size()) == {2}
    assert list(counts["count"]) == [13_500, 4_500, 0]
    assert counts["errors"].iloc[0] == 9_000
    assert counts["drawn"].iloc[0] == drawn["error_id"].nunique()


def test_bias_lines_of_one_pair_have_no_deviation_and_of_none_no_mean() -> None:
    scored = pd.DataFrame({"reference_score": [1.0], "judge_score": [3.0]})
    one, none = marks.bias_lines(scored), marks.bias_lines(scored.head(0))
    assert (one["n"].iloc[0], one["mean"].iloc[0]) == (1, 2.0)
    assert pd.isna(one["sd"].iloc[0])
    assert none["n"].iloc[0] == 0
    assert pd.isna(none["mean"].iloc[0])
