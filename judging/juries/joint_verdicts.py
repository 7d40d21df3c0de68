"""A jury's joint verdicts in the store, beside those of its members: kept whenever a run ends.

A joint verdict is one more cell, of a judge version whose mode says that it is a jury's. It stands in a run of its
own, since the run of its members counts what is asked of models. Matches and reviews of its findings are those of
its members' findings, until somebody decides about the jury's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from sqlalchemy import Connection, Engine, insert, select

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.trace import Json
from tracejury.judging.judges.jury import Rule
from tracejury.judging.records import CELL_STATES, Finding
from tracejury.judging.runs.verdicts import (
    JudgeVersion,
    add_run,
    ensure_judge_version,
    findings_of,
    finish_cell,
    to_outcome,
)
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import joint_mode
from tracejury.judging.store.locks import JUDGES, cells_of
from tracejury.judging.store.spans import parents_by_trace

if TYPE_CHECKING:  # what compares texts is loaded when a jury has something to say
    from tracejury.judging.juries.joint import JointVerdict, Member
    from tracejury.judging.matching.rule import TextLikeness

_cell, _version, _member = tables.cell, tables.judge_version, tables.jury_member
_TRACES_AT_ONCE = 50
_ASKED = ("model", "rubric_version", "rubric_body", "prompt_order", "agent_text", "parameters")
_Place = tuple[str, str, int]
"""A judge or judge version, a trace, a repeat."""
_Findings = Mapping[int, Sequence[tuple[int, Finding]]]


def keep_joint_verdicts(engine: Engine, run_key: int, rule: Rule) -> int:
    """Keep the joint verdict wherever all members are done and it is not kept yet; returns how many are new.

    One that a member's later answer (failed cells judged again) makes another is kept beside the earlier one, as
    the newer of the two.
    """
    from tracejury.judging.matching.rule import TextLikeness

    with read_transaction(engine) as connection:
        judged = select(_cell.c.trace_id).where(_cell.c.run_key == run_key).distinct()
        trace_ids = list(connection.scalars(judged.order_by(_cell.c.trace_id)))
    likeness = TextLikeness()
    return sum(
        _keep(engine, run_key, rule, trace_ids[at : at + _TRACES_AT_ONCE], likeness)
        for at in range(0, len(trace_ids), _TRACES_AT_ONCE)
    )


def _keep(engine: Engine, run_key: int, rule: Rule, trace_ids: Sequence[str], likeness: TextLikeness) -> int:
    """Those of some traces. Texts are compared outside the transaction that writes: others wait for it."""
    from tracejury.judging.juries.joint import joint_verdict

    with read_transaction(engine) as connection:
        missing = _not_kept(connection, run_key, rule, trace_ids)
        parents = parents_by_trace(connection, [one.trace_id for one in missing])
    if not missing:
        return 0
    joint_by_cell = {
        one.key: joint_verdict(one.members, rule, parents=parents.get(one.trace_id, {}), likeness=likeness)
        for one in missing
    }
    with write_transaction(engine, JUDGES, cells_of(run_key)) as connection:
        # of two that end at once the second finds nothing to do
        new = [one for one in _not_kept(connection, run_key, rule, trace_ids) if one.key in joint_by_cell]
        if new:
            twice = {one.kept_in for one in new if one.kept_in is not None}
            joint_run = _joint_run(connection, run_key, rule, {one.version.rubric for one in new}, but_for=twice)
            for one in new:
                _store(connection, joint_run, one, joint_by_cell[one.key])
    return len(new)


class _Asked(NamedTuple):
    """A judge, trace and repeat on which all members are done and the jury has not spoken since."""

    version: JudgeVersion
    rows: Sequence[Any]
    members: Sequence[Member]
    kept_in: int | None
    """The run of the jury's word on what the members said before."""

    @property
    def trace_id(self) -> str:
        return str(self.rows[0].trace_id)

    @property
    def key(self) -> tuple[_Place, str]:
        from tracejury.judging.juries.joint import made_from

        return _place(self.version.version, self.rows), made_from(self.members)


def _not_kept(connection: Connection, run_key: int, rule: Rule, trace_ids: Sequence[str]) -> list[_Asked]:
    groups = _complete(_member_rows(connection, run_key, trace_ids))
    findings = findings_of(connection, [row.cell_key for rows in groups for row in rows])
    stored = _kept(connection, run_key, trace_ids)
    lost = []
    for rows in groups:
        version = _joint_version(rows, rule)
        before = stored.get(_place(version.version, rows))
        members = [_as_member(row, findings) for row in rows]
        one = _Asked(version, rows, members, None if before is None else int(before.run_key))
        if before is None or before.prompt_hash != one.key[1]:
            lost.append(one)
    return lost


def _complete(rows: Sequence[Any]) -> list[list[Any]]:
    """The members' rows of each judge, trace and repeat, without those where a member is not done."""
    groups: dict[_Place, list[Any]] = {}
    for row in rows:
        groups.setdefault((row.rubric, row.trace_id, row.repeat), []).append(row)
    return [members for members in groups.values() if all(row.state in CELL_STATES for row in members)]


def _member_rows(connection: Connection, run_key: int, trace_ids: Sequence[str]) -> Sequence[Any]:
    about = [_version.c[name].label(f"version_{name}") for name in _ASKED]
    return connection.execute(
        select(_cell, *about)
        .join(_version, _version.c.judge_version == _cell.c.judge_version)
        .where(_cell.c.run_key == run_key, _version.c.mode == "jury", is_one_of(_cell.c.trace_id, trace_ids))
        .order_by(_cell.c.cell_key)
    ).all()


def _kept(connection: Connection, run_key: int, trace_ids: Sequence[str]) -> dict[_Place, Any]:
    """The newest joint verdict of the run by judge version, trace and repeat: run_key, prompt_hash."""
    ours = _cell.alias()
    rows = connection.execute(
        select(_cell.c.judge_version, _cell.c.trace_id, _cell.c.repeat, _cell.c.run_key, _cell.c.prompt_hash)
        .join(_member, _member.c.cell_key == _cell.c.cell_key)
        .join(ours, ours.c.cell_key == _member.c.member_key)
        .where(ours.c.run_key == run_key, is_one_of(ours.c.trace_id, trace_ids))
        .order_by(_cell.c.cell_key)
    )
    return {(row.judge_version, row.trace_id, row.repeat): row for row in rows}


def _place(version: str, rows: Sequence[Any]) -> _Place:
    return version, rows[0].trace_id, rows[0].repeat


def _joint_version(rows: Sequence[Any], rule: Rule) -> JudgeVersion:
    from tracejury.judging.juries.joint import jury_name

    first = rows[0]
    members: list[Json] = [row.judge_version for row in rows]
    return JudgeVersion(
        rubric=first.rubric,
        model=jury_name([row.version_model for row in rows]),
        rubric_version=first.version_rubric_version,
        mode=joint_mode(rule),
        rubric_body=orjson.loads(first.version_rubric_body),
        prompt_order=first.version_prompt_order,
        agent_text=first.version_agent_text,
        parameters={**orjson.loads(first.version_parameters), "members": members},
    )


def _as_member(row: Any, findings: _Findings) -> Member:
    from tracejury.judging.juries.joint import Member

    own = tuple(findings.get(row.cell_key, ()))
    outcome = to_outcome(row, own)
    assert outcome is not None  # every member is done
    return Member(model=row.version_model, outcome=outcome, findings=own)


def _joint_run(
    connection: Connection, run_key: int, rule: Rule, judges: Collection[str], *, but_for: Collection[int]
) -> int:
    """The run that holds the jury's verdicts: the newest there is, or a new one where it would hold one twice."""
    newest = _newest_joint_run(connection, run_key, rule)
    if newest is not None and newest not in but_for:
        return newest
    run = connection.execute(select(tables.run).where(tables.run.c.run_key == run_key)).one()
    spec: dict[str, Json] = {"mode": joint_mode(rule), "jury_of": run_key, "judges": [*sorted(judges)]}
    name = f"joint verdicts of run {run_key}: {run.name}"
    return add_run(connection, name=name, spec=spec, author=run.author, status="done")


def _newest_joint_run(connection: Connection, run_key: int, rule: Rule) -> int | None:
    ours = _cell.alias()
    return connection.scalar(
        select(_cell.c.run_key)
        .join(_member, _member.c.cell_key == _cell.c.cell_key)
        .join(ours, ours.c.cell_key == _member.c.member_key)
        .join(_version, _version.c.judge_version == _cell.c.judge_version)
        .where(ours.c.run_key == run_key, _version.c.mode == joint_mode(rule))
        .order_by(_cell.c.run_key.desc())
        .limit(1)
    )


def _store(connection: Connection, joint_run: int, cell: _Asked, joint: JointVerdict) -> None:
    first = cell.rows[0]
    added = connection.execute(
        insert(_cell).values(
            run_key=joint_run,
            judge_version=ensure_judge_version(connection, cell.version),
            rubric=first.rubric,
            trace_id=first.trace_id,
            trace_digest=first.trace_digest,
            repeat=first.repeat,
            state="pending",
            attempts=0,
        )
    ).inserted_primary_key
    assert added is not None
    key = int(added[0])
    finish_cell(connection, key, joint.outcome)
    connection.execute(insert(_member), [{"cell_key": key, "member_key": row.cell_key} for row in cell.rows])
    _store_findings(connection, key, joint)


def _store_findings(connection: Connection, cell_key: int, joint: JointVerdict) -> None:
    finding = tables.finding
    ours = select(finding.c.finding_key).where(finding.c.cell_key == cell_key).order_by(finding.c.position)
    links = [
        {"finding_key": key, "member_key": member_key}
        for key, one in zip(connection.scalars(ours).all(), joint.findings, strict=True)
        for member_key in one.member_keys
    ]
    if links:
        connection.execute(insert(tables.joint_finding), links)
