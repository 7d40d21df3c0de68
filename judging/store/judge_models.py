"""Who judged: the name of a judge model, and which version of each of its judges stands for it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Connection, Integer, func, select

from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.judges.jury import RULES, Rule
from tracejury.judging.records import ANSWERED_STATES, CELL_STATES, DIMENSIONS
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
    joint = select(version.c.judge_version).where(is_one_of(version.c.mode, map(joint_mode, RULES)))
    return tables.cell.c.judge_version.not_in(joint)


def is_joint(judge_model: str) -> bool:
    """Whether a judge model is a jury, by its name: what `is_own_word` leaves out, where only names are at hand."""
    return any(f" · {joint_mode(rule)}" in judge_model for rule in RULES)


def judge_model_name(model: str, mode: str, prompt_order: str, own_rubric: str = "") -> str:
    """The model, and how it was asked where that is not the usual way: another mode is another judge model.

    So is a user's own rubric for a dimension that has a rubric already: `gpt-4.1 · rubric brevity`.
    """
    ways = [
        *([] if mode in _SAYS_NOTHING["mode"] else [mode]),
        *([] if prompt_order in _SAYS_NOTHING["prompt_order"] else [f"{prompt_order} order"]),
        *([f"rubric {own_rubric}"] if own_rubric else []),
    ]
    return " · ".join([model, *ways])


class VersionName(NamedTuple):
    """What a judge version is called: its judge model, and the dimension that it judges (else its rubric's key)."""

    judge_model: str
    dimension: str


def version_names(connection: Connection) -> dict[str, VersionName]:
    """Every judge version by its hash."""
    version = tables.judge_version.c
    columns = (version.judge_version, version.rubric, version.model, version.mode, version.prompt_order)
    rows = connection.execute(select(*columns, version.rubric_body)).all()
    return {row.judge_version: _version_name(row) for row in rows}


def _version_name(row: Any) -> VersionName:
    body = orjson.loads(row.rubric_body)
    named = body.get("dimension") if isinstance(body, dict) else None
    dimension = named if named in DIMENSIONS else row.rubric
    own = row.rubric if dimension != row.rubric else ""
    return VersionName(judge_model_name(row.model, row.mode, row.prompt_order, own), dimension)


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
        """In words, with the head of the hash that estimates name it by."""
        return f"{self.rubric} · {self.versioned}"

    @property
    def versioned(self) -> str:
        """What the judge model is called where several of its versions stand beside each other."""
        return f"{self.judge_model}{VERSION_MARK}{self.judge_version[:VERSION_SHOWN]}"


def judge_versions(connection: Connection) -> list[JudgeVersion]:
    """Every version that has finished a cell, by judge and judge model, the oldest first."""
    cell, version = tables.cell, tables.judge_version
    columns = (version.c.judge_version, version.c.rubric)
    names = version_names(connection)
    rows = connection.execute(
        select(*columns, func.count().label("cells"))
        .join(cell, cell.c.judge_version == version.c.judge_version)
        .where(cell.c.state.in_(CELL_STATES))
        .group_by(*columns)
        .order_by(version.c.rubric, func.min(cell.c.finished_at), version.c.judge_version)
    )
    versions = [
        JudgeVersion(row.judge_version, row.rubric, names[row.judge_version].judge_model, row.cells) for row in rows
    ]
    return sorted(versions, key=lambda one: (one.rubric, one.judge_model))


def repeats(connection: Connection) -> list[int]:
    """The numbers of the repeats that have finished a cell, from 0."""
    query = select(tables.cell.c.repeat).where(tables.cell.c.state.in_(CELL_STATES)).distinct()
    return sorted(int(repeat) for repeat in connection.scalars(query))


def later_repeats(connection: Connection) -> list[tuple[str, int]]:
    """Each judge model with each of its repeats after repeat 0 that has finished a cell."""
    cell, names = tables.cell, version_names(connection)
    rows = connection.execute(
        select(cell.c.judge_version, cell.c.repeat).where(cell.c.state.in_(CELL_STATES), cell.c.repeat > 0).distinct()
    )
    return sorted({(names[row.judge_version].judge_model, int(row.repeat)) for row in rows})


def current_versions(connection: Connection) -> dict[tuple[str, str], str]:
    """By judge model and judge: the version that answered last, or failed last where none ever answered."""
    cell, version = tables.cell, tables.judge_version
    answers = func.sum(cell.c.state.in_(ANSWERED_STATES).cast(Integer))
    rows = connection.execute(
        select(version.c.judge_version, version.c.rubric, answers)
        .join(cell, cell.c.judge_version == version.c.judge_version)
        .where(cell.c.state.in_(CELL_STATES))
        .group_by(version.c.judge_version, version.c.rubric)
        .order_by(func.max(cell.c.finished_at), func.max(cell.c.cell_key))
    ).all()
    by_answer = sorted(rows, key=lambda row: row[-1] > 0)  # stable: of those that answered, the newest is last
    names = version_names(connection)
    return {(names[row.judge_version].judge_model, row.rubric): row.judge_version for row in by_answer}


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
