"""What most people said: strict majorities by hand, ties and lone voices said and never guessed."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracejury.judging.agreement.majority import ERRORS, majority_scores, outcome_of, vote_table


def said(**by_dimension: list[float | None]) -> pd.DataFrame:
    """The answers of people a, b, c ... on one trace; None is "not applicable"."""
    return pd.DataFrame(
        [
            {"trace_id": "t", "dimension": dimension, "annotator": "abcdef"[n], "value": value,
             "not_applicable": value is None}
            for dimension, answers in by_dimension.items()
            for n, value in enumerate(answers)
        ]
    )  # fmt: skip


def test_more_than_half_is_a_majority_and_half_is_a_tie() -> None:
    assert [outcome_of(votes, 4) for votes in (1, 2, 3, 4)] == ["minority", "tied", "majority", "majority"]
    assert [outcome_of(votes, 3) for votes in (1, 2, 3)] == ["minority", "majority", "majority"]
    assert outcome_of(1, 1) == "one person"


def test_majorities_of_scores_by_hand() -> None:
    found = majority_scores(
        said(LC=[0, 0, 3], EE=[0, 1, 2], PA=[1, 2], PQ=[None, None, 2], TS=[None, 3], TC=[2], GF=[1, 1, 2, 2])
    ).set_index("dimension")
    assert found["outcome"].to_dict() == {
        "LC": "majority", "EE": "minority", "PA": "tied", "PQ": "majority", "TS": "tied", "TC": "one person",
        "GF": "tied",
    }  # fmt: skip
    assert found.loc["LC", ["value", "votes", "people"]].tolist() == [0, 2, 3]  # zero is a score
    assert found.loc["PQ", "not_applicable"]
    assert found["not_applicable"].sum() == 1
    assert found["value"].drop("LC").isna().all()


def test_a_score_that_was_not_given_is_no_answer() -> None:
    rows = said(LC=[1, 1, 2])
    rows.loc[2, "value"] = np.nan
    found = majority_scores(rows)
    assert found[["people", "votes", "value"]].to_numpy().tolist() == [[2, 2, 1]]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, None]), min_size=1, max_size=6))
def test_the_majority_is_that_of_a_plain_count_whoever_speaks_first(answers: list[float | None]) -> None:
    top = [answer for answer in set(answers) if 2 * answers.count(answer) > len(answers) and len(answers) > 1]
    for order in (answers, answers[::-1]):
        found = majority_scores(said(LC=order)).iloc[0]
        assert (found["outcome"] == "majority") == bool(top)
        assert bool(found["not_applicable"]) == (top == [None])
        assert np.isnan(found["value"]) if top in ([], [None]) else found["value"] == top[0]


def test_one_voice_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="duplicate"):
        majority_scores(pd.concat([said(LC=[1, 2]), said(LC=[1])]))


def test_votes_are_counted_by_dimension_and_for_errors() -> None:
    rows = [
        ("t", "TC", 3, 3, "majority"), ("u", "TC", 3, 2, "majority"), ("v", "TC", 2, 1, "tied"),
        ("w", "TC", 1, 1, "one person"), ("t", ERRORS, 3, 1, "minority"), ("t", ERRORS, 3, 2, "majority"),
        ("x", "LC", 1, 1, "one person"),
    ]  # fmt: skip
    table = vote_table(pd.DataFrame(rows, columns=["trace_id", "about", "people", "votes", "outcome"]))
    assert table["about"].tolist() == ["LC", "TC", ERRORS]
    by = table.set_index("about")
    assert by.loc["TC", ["n", "unanimous", "majority", "tied", "minority", "one_person"]].tolist() == [3, 1, 2, 1, 0, 1]
    assert by.loc["TC", "decided"] == pytest.approx(2 / 3)
    assert by.loc[ERRORS, ["n", "majority", "minority", "decided"]].tolist() == [2, 1, 1, 0.5]
    assert by.loc["LC", "n"] == 0
    assert np.isnan(by.loc["LC", "decided"])  # nothing was voted on: not 0


@pytest.mark.parametrize(
    ("row", "message"),
    [(("t", "TC", 2, 3, "majority"), "no more votes"), (("t", "TC", 2, 1, "drawn"), "drawn")],
)
def test_impossible_votes_are_named(row: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vote_table(pd.DataFrame([row], columns=["trace_id", "about", "people", "votes", "outcome"]))


def test_without_votes_the_table_keeps_its_columns() -> None:
    empty = vote_table(pd.DataFrame(columns=["trace_id", "about", "people", "votes", "outcome"]))
    assert empty.empty
    assert "decided_low" in empty.columns
