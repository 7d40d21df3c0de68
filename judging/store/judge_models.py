"""Who judged: the name of a judge model, and which version of each of its judges stands for it."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Integer, func, select

from tracejury.judging.judges.jury import RULES, Rule
from tracejury.judging.records import ANSWERED_STATES, CELL_STATES
from tracejury.judging.store import tables

VERSION_SHOWN = 6  # characters of a version's hash that name it
VERSION_MARK = " @"
SCORES_ONLY: Final = "scores"
"""The mode of an evaluator that gives scores and reports no errors: it can catch and miss none."""
_SAYS_NOTHING = {"mode": ("trace", "checks", "imported", SCORES_ONLY, ""), "prompt_order": ("cache", "")}


def joint_mode(rule: Rule) -> str:
    """The mode of a jury's own verdicts; its members' is `jury`."""
    return f"jury {rule}"


def is_own_word() -> ColumnElement[bool]:
    """Whether a cell is a judge's own: a jury's joint verdict says again what its members say in theirs.

    Wherever judges are taken together, each of them is to be counted once.
    """
    version = tables.judge_version
    joint = select(version.c.judge_version).where(version.c.mode.in_([joint_mode(rule) for rule in RULES]))
    return tables.cell.c.judge_version.not_in(joint)


def is_joint(judge_model: str) -> bool:
    """Whether a judge model is a jury, by its name: what `is_own_word` leaves out, where only names are at hand."""
    return any(f" · {joint_mode(rule)}" in judge_model for rule in RULES)


def judge_model_name(model: str, mode: str, prompt_order: str) -> str:
    """The model, and how it was asked where that is not the usual way: another mode is another judge model."""
    ways = [
        *([] if mode in _SAYS_NOTHING["mode"] else [mode]),
        *([] if prompt_order in _SAYS_NOTHING["prompt_order"] else [f"{prompt_order} order"]),
    ]
    return " · ".join([model, *ways])


def judge_models(connection: Connection) -> list[str]:
    """Every judge model that has finished a cell, by name."""
    return sorted({judge_model for judge_model, _ in current_versions(connection)})


class JudgeVersion(NamedTuple):
    """A version of a judge that has finished a cell, and how many cells."""

    judge_version: str
    rubric: str
    judge_model: str
    cells: int

    @property
    def name(self) -> str:
        """In words, with the head of the hash that figures name it by."""
        return f"{self.rubric} · {self.versioned}"

    @property
    def versioned(self) -> str:
        """What the judge model is called where several of its versions stand beside each other."""
        return f"{self.judge_model}{VERSION_MARK}{self.judge_version[:VERSION_SHOWN]}"


def judge_versions(connection: Connection) -> list[JudgeVersion]:
    """Every version that has finished a cell, by judge and judge model, the oldest first."""
    cell, version = tables.cell, tables.judge_version
    asked = (version.c.judge_version, version.c.rubric, version.c.model, version.c.mode, version.c.prompt_order)
    rows = connection.execute(
        select(*asked, func.count().label("cells"))
        .join(cell, cell.c.judge_version == version.c.judge_version)
        .where(cell.c.state.in_(CELL_STATES))
        .group_by(*asked)
        .order_by(version.c.rubric, func.min(cell.c.finished_at), version.c.judge_version)
    )
    found = [
        JudgeVersion(row.judge_version, row.rubric, judge_model_name(row.model, row.mode, row.prompt_order), row.cells)
        for row in rows
    ]
    return sorted(found, key=lambda one: (one.rubric, one.judge_model))


def repeats(connection: Connection) -> list[int]:
    """The numbers of the runs that have finished a cell, from 0."""
    query = select(tables.cell.c.repeat).where(tables.cell.c.state.in_(CELL_STATES)).distinct()
    return sorted(int(repeat) for repeat in connection.scalars(query))


def later_runs(connection: Connection) -> list[tuple[str, int]]:
    """Each judge model with each of its runs after run 0 that has finished a cell."""
    cell, version = tables.cell, tables.judge_version
    rows = connection.execute(
        select(version.c.model, version.c.mode, version.c.prompt_order, cell.c.repeat)
        .join(version, version.c.judge_version == cell.c.judge_version)
        .where(cell.c.state.in_(CELL_STATES), cell.c.repeat > 0)
        .distinct()
    )
    return sorted((judge_model_name(row.model, row.mode, row.prompt_order), int(row.repeat)) for row in rows)


def current_versions(connection: Connection) -> dict[tuple[str, str], str]:
    """By judge model and judge: the version that answered last, or failed last where none ever answered."""
    cell, version = tables.cell, tables.judge_version
    answers = func.sum(cell.c.state.in_(ANSWERED_STATES).cast(Integer))
    rows = connection.execute(
        select(
            version.c.judge_version, version.c.rubric, version.c.model, version.c.mode, version.c.prompt_order, answers
        )
        .join(cell, cell.c.judge_version == version.c.judge_version)
        .where(cell.c.state.in_(CELL_STATES))
        .group_by(version.c.judge_version, version.c.rubric, version.c.model, version.c.mode, version.c.prompt_order)
        .order_by(func.max(cell.c.finished_at), func.max(cell.c.cell_key))
    ).all()
    by_answer = sorted(rows, key=lambda row: row[-1] > 0)  # stable: of those that answered, the newest is last
    return {
        (judge_model_name(row.model, row.mode, row.prompt_order), row.rubric): row.judge_version for row in by_answer
    }


def versions_of(connection: Connection, judge_model: str) -> dict[str, str]:
    """By judge: the version that stands for a judge model, or the one that a versioned name (`judge model @hash`) asks
    for.
    """
    current = {judge: version for (name, judge), version in current_versions(connection).items() if name == judge_model}
    if current or VERSION_MARK not in judge_model:
        return current
    return {one.rubric: one.judge_version for one in judge_versions(connection) if one.versioned == judge_model}


def judge_model_names(connection: Connection) -> dict[str, str]:
    """By version, what Compare knows it by: its judge model where it is the newest, else its name with the hash."""
    current = set(current_versions(connection).values())
    known = judge_versions(connection)
    return {one.judge_version: one.judge_model if one.judge_version in current else one.versioned for one in known}


def judge_models_on(connection: Connection, trace_id: str) -> list[str]:
    """The judge models that have finished a cell of this trace, by name."""
    cell = tables.cell
    judged = set(
        connection.scalars(
            select(cell.c.judge_version).where(cell.c.trace_id == trace_id, cell.c.state.in_(CELL_STATES)).distinct()
        )
    )
    return sorted({name for (name, _), version in current_versions(connection).items() if version in judged})
