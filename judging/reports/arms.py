"""Two sides to compare on the same traces: judge models, versions of judges, single repeats, or people in a judge's
place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pandas as pd
from sqlalchemy import Connection

from tracejury.judging.agreement.ceiling import ANY
from tracejury.judging.agreement.majority import MAJORITY
from tracejury.judging.reports.filter_options import reference_annotators, whole_versions
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import PEOPLE, Frames, LazyFrames, load_frames, with_person
from tracejury.judging.reports.person_pairs import person_pairs
from tracejury.judging.store.judge_models import VERSION_SHOWN, judge_models

_PART = re.compile(r"(?:^|,)(judge_model|version|repeat|person)=")


@dataclass(frozen=True, kw_only=True)
class Arm:
    """Who stands on one side: a judge model (all its judges), judge versions by their hash, or a person.

    `repeat` is that of a judge model or version, from 0. A person stands as the judge of every dimension.
    """

    judge_model: str | None = None
    versions: tuple[str, ...] = ()
    repeat: int = 0
    person: str | None = None

    def __post_init__(self) -> None:
        if (self.person is None) == (self.judge_model is None and not self.versions):
            raise ValueError("a side is a person, or a judge model or versions of judges")

    @property
    def name(self) -> str:
        """How the side is called in tables."""
        if self.person is not None:
            return f"person {self.person}"
        named = [
            *([] if self.judge_model is None else [self.judge_model]),
            *(f"@{v[:VERSION_SHOWN]}" for v in self.versions),
        ]
        return " ".join([*named, *([f"repeat {self.repeat}"] if self.repeat else [])])


@dataclass(frozen=True, kw_only=True)
class SidePairs:
    """The inputs of `judging.agreement.compare` for one side; one judge model, named by the side."""

    error_pairs: pd.DataFrame
    score_pairs: pd.DataFrame


def read_arm(text: str) -> Arm:
    """A side as the command line takes it: a judge model's name, or `judge_model=`, `version=`, `repeat=`, `person=`
    by commas.

    `version=` may stand several times, one version for each judge. Raises `ValueError`.
    """
    marks = list(_PART.finditer(text))
    if not marks or marks[0].start() > 0:
        return Arm(judge_model=text)
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    parts = [(mark[1], text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    values_by_key = {
        key: [value for name, value in parts if name == key] for key in ("judge_model", "version", "repeat", "person")
    }
    for key in ("judge_model", "repeat", "person"):
        if len(values_by_key[key]) > 1:
            raise ValueError(f"{text!r}: {key} appears twice; a side names each once")
    repeat = values_by_key["repeat"][0] if values_by_key["repeat"] else "0"
    if not repeat.isdecimal():
        raise ValueError(f"{text!r}: repeat is {repeat!r}, expected a number from 0")
    try:
        return Arm(
            judge_model=next(iter(values_by_key["judge_model"]), None),
            versions=tuple(values_by_key["version"]),
            repeat=int(repeat),
            person=next(iter(values_by_key["person"]), None),
        )
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the pairs of a side are made from, for callers that have read it already."""

    frames: Callable[[Filters], Frames | LazyFrames]
    person_pairs: Callable[[], pd.DataFrame]
    """Those of the filters."""


def arm_pairs(connection: Connection, filters: Filters, side: Arm, known: Known | None = None) -> SidePairs:
    """The pairs of one side against the reference of the filters, on their traces.

    Raises `ValueError` naming what is not there and what is.
    """
    chosen = with_person(connection, filters)
    known = known or Known(
        frames=lambda arm_filters: load_frames(connection, arm_filters),
        person_pairs=lambda: person_pairs(connection, chosen),
    )
    if side.person is not None:
        return _person_pairs(connection, chosen, side, known)
    versions = whole_versions(connection, side.versions)
    if side.judge_model is not None and side.judge_model not in judge_models(connection):
        raise ValueError(
            f"no judge is called {side.judge_model!r}; there are {', '.join(judge_models(connection)) or 'none'}"
        )
    arm_filters = replace(chosen, judge_models=(), versions=versions, repeat=side.repeat)
    if side.judge_model is not None and not versions:
        arm_filters = replace(arm_filters, judge_models=(side.judge_model,))
    arm_frames = known.frames(arm_filters)
    if arm_frames.judged.empty and arm_frames.error_pairs.empty and arm_frames.score_pairs.empty:
        raise ValueError(
            f"{side.name} has no answer on a trace that {arm_frames.reference} reviewed (repeat {side.repeat})"
        )
    return SidePairs(
        error_pairs=arm_frames.error_pairs.assign(judge_model=side.name),
        score_pairs=arm_frames.score_pairs.assign(judge_model=side.name),
    )


def _person_pairs(connection: Connection, filters: Filters, side: Arm, known: Known) -> SidePairs:
    people = [str(name) for name in reference_annotators(connection)["annotator"]]
    if side.person not in people:
        raise ValueError(f"{side.person!r} submitted no review; there are {', '.join(people) or 'none'}")
    if filters.reference == MAJORITY:
        raise ValueError(
            f"{side.person!r} is part of the majority that is the reference; choose a person with --reference"
        )
    if side.person == filters.reference:
        raise ValueError(f"{side.person!r} is the reference; choose another person with --reference")
    pairs = known.person_pairs()
    rows = pairs[
        (pairs["author"] == filters.reference) & (pairs["other"] == side.person) & (pairs["dimension"] != ANY)
    ].drop(columns=["author", "other", "reviewers"])
    return SidePairs(
        error_pairs=rows.assign(judge_model=side.name, state="scored").reset_index(drop=True),
        score_pairs=_scores_of(known.frames(filters).ratings, side, str(filters.reference)),
    )


def _scores_of(ratings: pd.DataFrame, side: Arm, reference: str) -> pd.DataFrame:
    """The reference's scores with the other person's in the judge's place."""
    people = ratings[ratings["judge_model"] == PEOPLE]
    keys = ["trace_id", "dimension", "split"]
    ours = people.loc[people["rater"] == reference, [*keys, "value"]].rename(columns={"value": "reference_score"})
    theirs = people.loc[people["rater"] == side.person, [*keys, "value", "state"]].rename(
        columns={"value": "judge_score"}
    )
    joined = ours.merge(theirs, on=keys).assign(judge_model=side.name)
    joined["state"] = joined["state"].where(joined["reference_score"].notna(), "not_applicable")
    return joined[["trace_id", "dimension", "judge_model", "split", "reference_score", "judge_score", "state"]]
