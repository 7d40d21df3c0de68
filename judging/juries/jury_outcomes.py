"""What the models of a jury say together: one score from theirs for each judge, trace and repeat, ties said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
from sqlalchemy import Connection, select

from tracejury.judging.agreement.juries import JURY_VOTES
from tracejury.judging.judges.jury import JuryScore, Rule, jury_score, on_scale
from tracejury.judging.records import CELL_STATES
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import judge_model_names

_cell, _version = tables.cell, tables.judge_version


@dataclass(frozen=True, kw_only=True)
class JuryOutcome:
    """The jury on one judge, trace and repeat: its score and each member's (None: failed or not applicable)."""

    dimension: str
    trace_id: str
    repeat: int
    joint: JuryScore
    members: dict[str, int | None]

    def row(self) -> dict[str, object]:
        """For tables and JSON: dimension, trace_id, repeat, score, tied, missing and a score by model."""
        return {
            "dimension": self.dimension,
            "trace_id": self.trace_id,
            "repeat": self.repeat,
            "score": self.joint.score,
            "tied": ", ".join(map(str, self.joint.tied)),
            "missing": self.joint.missing,
            **self.members,
        }


def votes_of(outcomes: Iterable[JuryOutcome], jury: str) -> pd.DataFrame:
    """The votes behind the outcomes, as `agreement.juries.jury_table` takes them."""
    rows = [
        (
            *(one.dimension, jury, one.trace_id, len(one.members)),
            *(sum(one.joint.votes.values()), len(one.joint.votes), int(bool(on_scale(one.joint).tied))),
        )
        for one in outcomes
    ]
    return pd.DataFrame(rows, columns=list(JURY_VOTES))


def jury_name(connection: Connection, run_key: int) -> str | None:
    """What the joint verdicts of a run are called in estimates, None before there is one."""
    ours, member = tables.cell.alias(), tables.jury_member
    joint = (
        select(_cell.c.judge_version)
        .join(member, member.c.cell_key == _cell.c.cell_key)
        .join(ours, ours.c.cell_key == member.c.member_key)
        .where(ours.c.run_key == run_key)
        .limit(1)
    )
    return judge_model_names(connection).get(connection.scalar(joint) or "")


def jury_outcomes(connection: Connection, run_key: int, rule: Rule = "majority") -> list[JuryOutcome]:
    """The jury's outcomes of a run where all its members are done, in the order of the grid."""
    rows = connection.execute(
        select(_cell.c.rubric, _cell.c.trace_id, _cell.c.repeat, _cell.c.state, _cell.c.score, _version.c.model)
        .join(_version, _version.c.judge_version == _cell.c.judge_version)
        .where(_cell.c.run_key == run_key, _version.c.mode == "jury")
        .order_by(_cell.c.cell_key)
    )
    by_cell: dict[tuple[str, str, int], dict[str, int | None]] = {}
    waiting = set()
    for dimension, trace_id, repeat, state, score, model in rows:
        by_cell.setdefault((dimension, trace_id, repeat), {})[model] = score if state == "scored" else None
        if state not in CELL_STATES:
            waiting.add((dimension, trace_id, repeat))
    return [
        JuryOutcome(
            dimension=key[0],
            trace_id=key[1],
            repeat=key[2],
            joint=jury_score([*members.values()], rule),
            members=members,
        )
        for key, members in by_cell.items()
        if key not in waiting
    ]
