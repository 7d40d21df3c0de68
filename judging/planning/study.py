"""A study as a table: the traces that each goal needs, by repeats and people, with hours and dollars; and curves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd

from tracejury.judging.planning import design
from tracejury.judging.planning.design import LEVEL, POWER, Spread

GoalKind = Literal["difference", "width", "agreement"]
COLUMNS: Final = ("goal", "size", "repeats", "people", "traces", "design_effect", "hours", "dollars", "reason")
CURVES: Final = ("traces", "repeats", "width", "detectable", "power")
FEW_TRACES: Final = 20
"""Below so many traces the normal approximation of this module is too narrow; a plan says so."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What a study shall reach: a difference seen, or an interval no wider than `size`; both as shares, 0.05 for 5.

    `difference` and `width` are of the judges' rate, `agreement` is the width of people's reliability.
    """

    kind: GoalKind
    size: float


@dataclass(frozen=True, kw_only=True)
class UnitCosts:
    """What one trace costs: a person's active minutes, and dollars for one repeat of all judges; None where unknown."""

    minutes: float | None = None
    dollars: float | None = None

    def hours_of(self, traces: float, people: int) -> float:
        """Return the hours of all people, NaN where the minutes are unknown."""
        return float("nan") if self.minutes is None else traces * people * self.minutes / 60

    def dollars_of(self, traces: float, repeats: int) -> float:
        """Return the dollars of all judges, NaN where they are unknown."""
        return float("nan") if self.dollars is None else traces * repeats * self.dollars


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """What a plan rests on, measured or assumed: the spread of the judges' mean, people's reliability, unit costs."""

    spread: Spread | None = None
    reliability: float | None = None
    costs: UnitCosts = UnitCosts()
    power: float = POWER
    level: float = LEVEL


def study_table(
    assumptions: Assumptions, goals: Sequence[Goal], *, repeats: Iterable[int] = (1,), people: Iterable[int] = (1,)
) -> pd.DataFrame:
    """Return one row per goal, number of repeats and number of people: `COLUMNS`.

    `traces` is missing, with a `reason`, where the goal cannot be planned from what is given; hours and dollars are NaN
    where a unit cost is unknown. Agreement of people does not depend on repeats: it has one row per number of people.
    """
    rows = [
        _row(assumptions, goal, several, persons)
        for goal in goals
        for several in (repeats if goal.kind != "agreement" else (1,))
        for persons in people
    ]
    whole = {"repeats": "int64", "people": "int64", "traces": "Int64"}
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(whole)


def study_curves(
    spread: Spread, *, difference: float, repeats: Iterable[int] = (1,), most: int = 1_000, power: float = POWER
) -> pd.DataFrame:
    """Return width, detectable difference and power over numbers of traces up to `most`, by repeats: `CURVES`."""
    grid = np.unique(np.round(np.geomspace(FEW_TRACES, max(most, FEW_TRACES + 1), 60)).astype(int))
    rows = [
        {
            "traces": int(traces),
            "repeats": several,
            "width": design.interval_width(spread, traces, several),
            "detectable": design.detectable(spread, traces, several, power=power),
            "power": design.power(spread, traces, difference, several),
        }
        for several in repeats
        for traces in grid
    ]
    return pd.DataFrame(rows, columns=list(CURVES))


def _row(assumptions: Assumptions, goal: Goal, repeats: int, people: int) -> dict[str, object]:
    try:
        traces = _traces(assumptions, goal, repeats, people)
    except ValueError as error:
        nothing = {"traces": None, "hours": np.nan, "dollars": np.nan, "design_effect": np.nan}
        return (
            {"goal": goal.kind, "size": goal.size, "repeats": repeats, "people": people}
            | nothing
            | {"reason": str(error)}
        )
    is_of_people = goal.kind == "agreement"
    return {
        "goal": goal.kind,
        "size": goal.size,
        "repeats": repeats,
        "people": people,
        "traces": traces,
        "design_effect": np.nan if is_of_people else design.design_effect(_spread(assumptions), repeats),
        "hours": assumptions.costs.hours_of(traces, people),
        "dollars": np.nan if is_of_people else assumptions.costs.dollars_of(traces, repeats),
        "reason": f"below {FEW_TRACES} traces intervals are too narrow: label {FEW_TRACES}"
        if traces < FEW_TRACES and not is_of_people
        else None,
    }


def _traces(assumptions: Assumptions, goal: Goal, repeats: int, people: int) -> int:
    match goal.kind:
        case "difference":
            return design.traces_for_difference(
                _spread(assumptions), goal.size, repeats, power=assumptions.power, level=assumptions.level
            )
        case "width":
            return design.traces_for_width(_spread(assumptions), goal.size, repeats, level=assumptions.level)
        case "agreement":
            if assumptions.reliability is None:
                raise ValueError("people's reliability is unknown: no two people scored the same traces")
            return design.traces_for_agreement(assumptions.reliability, people, goal.size, level=assumptions.level)


def _spread(assumptions: Assumptions) -> Spread:
    if assumptions.spread is None:
        raise ValueError("no pilot and no assumed rate")
    return assumptions.spread
