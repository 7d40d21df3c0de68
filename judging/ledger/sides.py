"""Two sides to compare on the same traces: systems, versions of judges, single runs, or people in a judge's place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from sqlalchemy import Connection

from tracejury.judging.agreement.ceiling import ANY
from tracejury.judging.ledger.frames import PEOPLE, Frames, LateFrames, Selection, humans, load_frames, with_person
from tracejury.judging.ledger.person_pairs import person_pairs
from tracejury.judging.ledger.systems import VERSION_SHOWN, judge_versions, systems

_PART = re.compile(r"(?:^|,)(system|version|repeat|person)=")


@dataclass(frozen=True, kw_only=True)
class Side:
    """Who stands on one side: a system (all its judges), judge versions by their hash, or a person.

    `repeat` is the run of a system or version, from 0. A person stands as the judge of every dimension.
    """

    system: str | None = None
    versions: tuple[str, ...] = ()
    repeat: int = 0
    person: str | None = None

    def __post_init__(self) -> None:
        if (self.person is None) == (self.system is None and not self.versions):
            raise ValueError("a side is a person, or a system or versions of judges")

    @property
    def name(self) -> str:
        """How the side is called in tables."""
        if self.person is not None:
            return f"person {self.person}"
        named = [*([] if self.system is None else [self.system]), *(f"@{v[:VERSION_SHOWN]}" for v in self.versions)]
        return " ".join([*named, *([f"repeat {self.repeat}"] if self.repeat else [])])


@dataclass(frozen=True, kw_only=True)
class SidePairs:
    """The inputs of `judging.agreement.compare` for one side; one system, named by the side."""

    error_pairs: pd.DataFrame
    score_pairs: pd.DataFrame


def read_side(text: str) -> Side:
    """A side as the command line takes it: a system's name, or `system=`, `version=`, `repeat=`, `person=` by commas.

    `version=` may stand several times, one version for each judge. Raises `ValueError`.
    """
    marks = list(_PART.finditer(text))
    if not marks or marks[0].start() > 0:
        return Side(system=text)
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    parts = [(mark[1], text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    given = {key: [value for name, value in parts if name == key] for key in ("system", "version", "repeat", "person")}
    for key in ("system", "repeat", "person"):
        if len(given[key]) > 1:
            raise ValueError(f"{text!r}: {key} stands twice; a side is one of each")
    repeat = given["repeat"][0] if given["repeat"] else "0"
    if not repeat.isdecimal():
        raise ValueError(f"{text!r}: repeat is {repeat!r}, expected a number from 0")
    try:
        return Side(
            system=next(iter(given["system"]), None),
            versions=tuple(given["version"]),
            repeat=int(repeat),
            person=next(iter(given["person"]), None),
        )
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the pairs of a side are made from, for callers that have read it already."""

    frames: Callable[[Selection], Frames | LateFrames]
    person_pairs: Callable[[], pd.DataFrame]
    """Those of the selection."""


def side_pairs(connection: Connection, selection: Selection, side: Side, known: Known | None = None) -> SidePairs:
    """The pairs of one side against the selection's human, on the selection's traces.

    Raises `ValueError` naming what is not there and what is.
    """
    chosen = with_person(connection, selection)
    known = known or Known(
        frames=lambda wanted: load_frames(connection, wanted), person_pairs=lambda: person_pairs(connection, chosen)
    )
    if side.person is not None:
        return _person_pairs(connection, chosen, side, known)
    versions = whole_versions(connection, side.versions)
    if side.system is not None and side.system not in systems(connection):
        raise ValueError(f"no judge is called {side.system!r}; there are {', '.join(systems(connection)) or 'none'}")
    wanted = replace(chosen, systems=(), versions=versions, repeat=side.repeat)
    if side.system is not None and not versions:
        wanted = replace(wanted, systems=(side.system,))
    found = known.frames(wanted)
    if found.judged.empty and found.error_pairs.empty and found.score_pairs.empty:
        raise ValueError(f"{side.name} has no answer on a trace that {found.human} reviewed (repeat {side.repeat})")
    return SidePairs(
        error_pairs=found.error_pairs.assign(system=side.name), score_pairs=found.score_pairs.assign(system=side.name)
    )


def whole_versions(connection: Connection, given: Sequence[str]) -> tuple[str, ...]:
    """Versions by their hash or its beginning (a leading @ is left aside). Raises `ValueError` naming what there is."""
    held = judge_versions(connection)
    known = "; ".join(f"{one.judge_version[:12]} ({one.judge} by {one.system})" for one in held)
    found = []
    for text in given:
        start = text.removeprefix("@").strip()
        fits = [one.judge_version for one in held if start and one.judge_version.startswith(start)]
        if len(fits) != 1:
            what = "no judge version begins with" if not fits else "several judge versions begin with"
            raise ValueError(f"{what} {start!r}; there are {known or 'none'}")
        found.append(fits[0])
    return tuple(found)


def _person_pairs(connection: Connection, selection: Selection, side: Side, known: Known) -> SidePairs:
    people = [str(name) for name in humans(connection)["annotator"]]
    if side.person not in people:
        raise ValueError(f"{side.person!r} submitted no review; there are {', '.join(people) or 'none'}")
    if selection.human is None:
        raise ValueError(f"{side.person!r} is one of the majority that is compared with; choose a person with --human")
    if side.person == selection.human:
        raise ValueError(f"{side.person!r} is the person compared with; choose another with --human")
    pairs = known.person_pairs()
    mine = pairs[(pairs["author"] == selection.human) & (pairs["other"] == side.person) & (pairs["judge"] != ANY)].drop(
        columns=["author", "other", "reviewers"]
    )
    return SidePairs(
        error_pairs=mine.assign(system=side.name, state="scored").reset_index(drop=True),
        score_pairs=_scores_of(known.frames(selection).ratings, side, str(selection.human)),
    )


def _scores_of(ratings: pd.DataFrame, side: Side, human: str) -> pd.DataFrame:
    """The reference's scores with the other person's in the judge's place."""
    people = ratings[ratings["system"] == PEOPLE]
    keys = ["trace_id", "judge", "split"]
    ours = people.loc[people["rater"] == human, [*keys, "value"]].rename(columns={"value": "human"})
    theirs = people.loc[people["rater"] == side.person, [*keys, "value", "state"]].rename(columns={"value": "model"})
    joined = ours.merge(theirs, on=keys).assign(system=side.name)
    joined["state"] = joined["state"].where(joined["human"].notna(), "not_applicable")
    return joined[["trace_id", "judge", "system", "split", "human", "model", "state"]]
