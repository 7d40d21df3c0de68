"""Who judged: the name of a system, and which version of each of its judges stands for it."""

from __future__ import annotations

from sqlalchemy import Connection, Integer, func, select

from judging.ledger import tables
from judging.records import CELL_STATES

ANSWERED = ("scored", "not_applicable")
_SAYS_NOTHING = {"mode": ("trace", "checks", "imported", ""), "prompt_order": ("cache", "")}


def system_name(model: str, mode: str, prompt_order: str) -> str:
    """The model, and how it was asked where that is not the usual way: another mode is another system."""
    ways = [
        *([] if mode in _SAYS_NOTHING["mode"] else [mode]),
        *([] if prompt_order in _SAYS_NOTHING["prompt_order"] else [f"{prompt_order} order"]),
    ]
    return " · ".join([model, *ways])


def systems(connection: Connection) -> list[str]:
    """Every system that has finished a cell, by name."""
    return sorted({system for system, _ in current_versions(connection)})


def current_versions(connection: Connection) -> dict[tuple[str, str], str]:
    """By system and judge: the version that answered last, or failed last where none ever answered."""
    cell, version = tables.cell, tables.judge_version
    answers = func.sum(cell.c.state.in_(ANSWERED).cast(Integer))
    rows = connection.execute(
        select(
            version.c.judge_version, version.c.judge, version.c.model, version.c.mode, version.c.prompt_order, answers
        )
        .join(cell, cell.c.judge_version == version.c.judge_version)
        .where(cell.c.state.in_(CELL_STATES))
        .group_by(version.c.judge_version, version.c.judge, version.c.model, version.c.mode, version.c.prompt_order)
        .order_by(func.max(cell.c.finished_at), func.max(cell.c.cell_key))
    ).all()
    by_answer = sorted(rows, key=lambda row: row[-1] > 0)  # stable: of those that answered, the newest is last
    return {(system_name(row.model, row.mode, row.prompt_order), row.judge): row.judge_version for row in by_answer}


def systems_on(connection: Connection, trace_id: str) -> list[str]:
    """The systems that have finished a cell of this trace, by name."""
    cell = tables.cell
    judged = set(
        connection.scalars(
            select(cell.c.judge_version).where(cell.c.trace_id == trace_id, cell.c.state.in_(CELL_STATES)).distinct()
        )
    )
    return sorted({name for (name, _), version in current_versions(connection).items() if version in judged})
