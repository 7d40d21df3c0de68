"""What most of a trace's people said: the majority's score, and how often there is none, said and never guessed."""

from typing import Final, Literal

import numpy as np
import pandas as pd

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.intervals import divide, wilson_bounds

ReferenceKind = Literal["single", "majority", "adjudicated"]
"""A reference that is chosen by how it came about: the annotator with the most reviews, the majority, the gold."""
REFERENCE_KINDS: Final[tuple[ReferenceKind, ...]] = ("single", "majority", "adjudicated")
MAJORITY: Final = "majority"
"""Stands where an annotator's name does."""
Outcome = Literal["majority", "tied", "minority", "one person"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("majority", "tied", "minority", "one person")
ERRORS: Final = "errors"
"""Stands for the errors of a trace where a dimension stands for its scores."""
PERSON_SCORES: Final = ("trace_id", "dimension", "annotator", "value", "not_applicable")
VOTES: Final = ("trace_id", "about", "people", "votes", "outcome")
_KEY: Final = ["trace_id", "dimension"]


def outcome_of(votes: int, people: int) -> Outcome:
    """What becomes of that which `votes` of `people` said: more than half is the majority, exactly half a tie."""
    if people < 2:
        return "one person"
    if 2 * votes > people:
        return "majority"
    return "tied" if 2 * votes == people else "minority"


def majority_scores(person_scores: pd.DataFrame) -> pd.DataFrame:
    """The score that more than half of those who scored a dimension of a trace gave.

    `person_scores`, one row per (trace_id, dimension, annotator): value, not_applicable (an answer like any score). One
    row per trace and dimension: people (who answered), votes (for the answer most gave), outcome, value and
    not_applicable. Without a majority (`tied`: half of them said it; `minority`: fewer did; `one person`: nobody else
    answered) the value is NaN: neither a mean nor a random choice stands in for what people did not agree on.
    Source: absolute majority, so an ordinal scale needs no rule for ties; compare Artstein and Poesio 2008.
    Edge: the person who alone answered is no majority. Raises ValueError for absent columns and duplicate rows.
    """
    frames.require(person_scores, "scores of people", PERSON_SCORES)
    frames.require_unique(person_scores, "scores of people", [*_KEY, "annotator"])
    out = person_scores["not_applicable"].astype(bool)
    answers = person_scores[_KEY].assign(answer=person_scores["value"].astype("float64").where(~out, -1.0))
    answers = answers[answers["answer"].notna()]
    votes = answers.groupby([*_KEY, "answer"], sort=False).size().rename("votes").reset_index()
    people = answers.groupby(_KEY, sort=False).size().rename("people").reset_index()
    first = votes.sort_values("votes", ascending=False, kind="stable").drop_duplicates(_KEY)
    joined = people.merge(first, on=_KEY, how="left")
    decided = [outcome_of(*pair) for pair in zip(joined["votes"], joined["people"], strict=True)]
    is_majority = np.array([one == "majority" for one in decided], dtype=bool)
    return pd.DataFrame(
        {
            **{name: joined[name] for name in (*_KEY, "people", "votes")},
            "outcome": pd.Series(decided, index=joined.index, dtype="object"),
            "value": joined["answer"].where(is_majority & (joined["answer"] >= 0)),
            "not_applicable": is_majority & (joined["answer"] < 0).to_numpy(),
        }
    )


def vote_columns() -> dict[str, str]:
    """Columns and types of `vote_table`."""
    counts = ("n", "unanimous", *(name.replace(" ", "_") for name in OUTCOMES))
    return {
        "about": "object",
        **dict.fromkeys(counts, "int64"),
        **dict.fromkeys(("decided", "decided_low", "decided_high"), "float64"),
    }


def vote_table(votes: pd.DataFrame) -> pd.DataFrame:
    """How often people had a majority: one row per dimension, and one for errors.

    `votes`, one row per score (trace and dimension) or error that somebody saw: trace_id, about (the dimension, or
    `errors`), people (who could vote), votes (who said the same, or saw the error), outcome. Columns: n (votes taken
    by two people or more), unanimous, majority (unanimous ones too), tied, minority, one_person (not in n), decided =
    majority / n with Wilson's bounds. Source: METRICS.md, human ceiling. Edge: NaN where no vote was taken by two.
    Raises ValueError for absent columns, another outcome, more votes than people.
    """
    frames.require(votes, "votes", VOTES)
    outcome = votes["outcome"].astype(str)
    unknown = sorted(set(outcome) - set(OUTCOMES))
    if unknown:
        raise ValueError(f"votes.outcome holds {unknown!r}; expected one of {list(OUTCOMES)!r}")
    votes_given, people = (frames.numbers(votes[name], f"votes.{name}") for name in ("votes", "people"))
    if not ((votes_given >= 1) & (votes_given <= people)).all():
        raise ValueError("votes: each row needs at least one vote and no more votes than people")
    marks = pd.DataFrame({name.replace(" ", "_"): outcome == name for name in OUTCOMES})
    marks["unanimous"] = (votes_given == people) & (people > 1)
    marks["n"] = ~marks["one_person"]
    sums = marks.astype("int64").groupby(votes["about"].astype(str)).sum()
    table = sums.reindex(frames.in_order(votes["about"], frames.DIMENSION_ORDER)).rename_axis("about").reset_index()
    decided, n = table["majority"].to_numpy(), table["n"].to_numpy()
    low, high = wilson_bounds(decided, n)
    table = table.assign(decided=divide(decided, n), decided_low=low, decided_high=high)
    columns = vote_columns()
    return table[list(columns)].astype(columns)
