"""What stands for every pair of an error and a finding: a person's newest decision, else what is proposed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import orjson
from sqlalchemy import Connection, Select, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.labels.label_store import LabelPlace, label_places
from tracejury.judging.matching.rule import AUTO, assign
from tracejury.judging.records import MatchStatus
from tracejury.judging.runs.verdicts import cited_spans
from tracejury.judging.store import tables

_match, _finding, _cell = tables.match, tables.finding, tables.cell


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What stands for one pair now: the newest decision of a person on it, else what is proposed.

    `proposers` are all who propose the pair (`auto`, models), whatever a person says; `author` joins them with ` + `
    while nobody has decided.
    """

    label_id: str
    finding_key: int
    cell_key: int
    status: MatchStatus
    author: str
    confidence: float
    reasons: tuple[str, ...]
    localized: bool
    at: int
    proposers: tuple[str, ...] = ()


def decisions(connection: Connection, *, trace_id: str | None = None) -> list[Decision]:
    """What stands for every pair of a label that is there: people's decisions first (the newest), else the proposal.

    Proposals that contradict a confirmed match are left out, and of proposals that contradict each other the weaker.
    `localized` is that of the label as it is now. Of all traces, or of one.
    """
    of_cell = [] if trace_id is None else [_cell.c.trace_id == trace_id]
    of_label = [] if trace_id is None else [tables.error_label.c.trace_id == trace_id]
    labels = labels_in_pairs(connection, *of_label)
    standing = _standing(connection, labels, *of_cell)
    cited = cited_spans(connection, [statement.finding_key for statement in standing])
    return [
        _decision(statement, labels[statement.label_id], cited.get(statement.finding_key, frozenset()))
        for statement in standing
    ]


def finding_statuses(
    connection: Connection, *, annotator: str, versions: Collection[str], repeat: int
) -> dict[int, MatchStatus]:
    """Of `decisions` on one run of judges, the status alone by finding; rejected pairs are left out."""
    labels = labels_in_pairs(connection, tables.error_label.c.annotator == annotator)
    standing = _standing(connection, labels, is_one_of(_cell.c.judge_version, versions), _cell.c.repeat == repeat)
    return {statement.finding_key: statement.status for statement in standing if statement.status != "rejected"}


def labels_in_pairs(connection: Connection, *conditions: ColumnElement[bool]) -> dict[str, LabelPlace]:
    """`label_places` of labels that any match names: most are in none."""
    return label_places(connection, tables.error_label.c.label_id.in_(select(_match.c.label_id)), *conditions)


class _Statement(NamedTuple):
    """What stands for a pair: the row of a person's newest word, else the first of the proposals; and all of these."""

    label_id: str
    finding_key: int
    cell_key: int
    status: MatchStatus
    confidence: float
    row: Any
    proposals: tuple[Any, ...]


def _standing(
    connection: Connection, labels: Mapping[str, LabelPlace], *of_cell: ColumnElement[bool]
) -> list[_Statement]:
    """What stands for each pair of these labels: of a jury's finding what is said of it, else of its members'."""
    own = _statements(connection, labels, _pairs_of_findings().where(*of_cell))
    members = _statements(connection, labels, _pairs_of_members().where(*of_cell))
    statements = [
        *own,
        *_statements_of_juries(members, {(statement.label_id, statement.finding_key) for statement in own}),
    ]
    return _one_to_one(_without_contradicted(statements, labels), labels)


def _pairs_of_findings() -> Select[Any]:
    """The pairs; `joint_key` is the finding that a pair speaks of."""
    return (
        select(_match, _match.c.finding_key.label("joint_key"), _finding.c.cell_key)
        .join(_finding, _finding.c.finding_key == _match.c.finding_key)
        .join(_cell, _cell.c.cell_key == _finding.c.cell_key)
        .order_by(_match.c.row_key)
    )


def _pairs_of_members() -> Select[Any]:
    """The pairs of members' findings, each once for every jury's finding that it is part of."""
    joint = tables.joint_finding
    return (
        select(_match, joint.c.finding_key.label("joint_key"), _finding.c.cell_key)
        .join(joint, joint.c.member_key == _match.c.finding_key)
        .join(_finding, _finding.c.finding_key == joint.c.finding_key)
        .join(_cell, _cell.c.cell_key == _finding.c.cell_key)
        .order_by(_match.c.row_key)
    )


def _statements(connection: Connection, labels: Mapping[str, LabelPlace], pairs: Select[Any]) -> list[_Statement]:
    rows = [row for row in connection.execute(pairs) if row.label_id in labels]
    newest_rows = {(_pair_key(row), row.author): row for row in rows}
    by_pair: dict[tuple[str, int, int], list[Any]] = defaultdict(list)
    for row in sorted(newest_rows.values(), key=lambda row: row.row_key):
        if not row.withdrawn:
            by_pair[_pair_key(row)].append(row)
    return [_statement(rows) for rows in by_pair.values()]


def _pair_key(row: Any) -> tuple[str, int, int]:
    """Label, finding, and the finding that is spoken of: of a jury one of its members'."""
    return row.label_id, row.joint_key, row.finding_key


def _statement(rows: Sequence[Any]) -> _Statement:
    """Of all rows of a pair (oldest first): the newest word of a person, else the proposals together."""
    words = [row for row in rows if row.status != "proposed"]
    proposals = sorted((row for row in rows if row.status == "proposed"), key=lambda row: row.author != AUTO)
    row = words[-1] if words else proposals[0]
    confidence = row.confidence if words else max(one.confidence for one in proposals)
    return _Statement(row.label_id, row.joint_key, row.cell_key, row.status, confidence, row, tuple(proposals))


_SAYS_MORE: Mapping[MatchStatus, int] = {"rejected": 0, "proposed": 1, "confirmed": 2}


def _statements_of_juries(members: Sequence[_Statement], decided: Set[tuple[str, int]]) -> list[_Statement]:
    """What members' findings say of each pair of a jury's: the error is described as soon as one describes it."""
    best: dict[tuple[str, int], _Statement] = {}
    for statement in sorted(members, key=lambda statement: (_SAYS_MORE[statement.status], statement.confidence)):
        best[statement.label_id, statement.finding_key] = statement
    return [statement for pair, statement in best.items() if pair not in decided]


def _without_contradicted(statements: Sequence[_Statement], labels: Mapping[str, LabelPlace]) -> list[_Statement]:
    """One to one: where a pair is confirmed, other proposals of its label or finding fall, per person and cell."""
    confirmed = [d for d in statements if d.status == "confirmed"]
    decided_pairs = {(d.cell_key, d.label_id) for d in confirmed}
    findings = {(labels[d.label_id].annotator, d.finding_key) for d in confirmed}
    return [
        d
        for d in statements
        if d.status != "proposed"
        or (
            (d.cell_key, d.label_id) not in decided_pairs
            and (labels[d.label_id].annotator, d.finding_key) not in findings
        )
    ]


def _one_to_one(statements: Sequence[_Statement], labels: Mapping[str, LabelPlace]) -> list[_Statement]:
    """Of proposals that contradict each other (the rule's and a model's), per person and cell the best assignment.

    A pair that two propose outweighs any that one proposes.
    """
    groups: dict[tuple[int, str], list[_Statement]] = defaultdict(list)
    for d in statements:
        if d.status == "proposed":
            groups[d.cell_key, labels[d.label_id].annotator].append(d)
    fallen = {(d.label_id, d.finding_key) for group in groups.values() for d in _outweighed(group)}
    return [d for d in statements if d.status != "proposed" or (d.label_id, d.finding_key) not in fallen]


def _outweighed(group: Sequence[_Statement]) -> list[_Statement]:
    ours = {key: n for n, key in enumerate(dict.fromkeys(statement.label_id for statement in group))}
    theirs = {key: n for n, key in enumerate(dict.fromkeys(statement.finding_key for statement in group))}
    if len(ours) == len(theirs) == len(group):
        return []
    weights = np.zeros((len(ours), len(theirs)))
    for d in group:
        weights[ours[d.label_id], theirs[d.finding_key]] = d.confidence + len(d.proposals) - 1
    chosen = set(assign(weights, least=0.0))
    return [d for d in group if (ours[d.label_id], theirs[d.finding_key]) not in chosen]


def _decision(statement: _Statement, label: LabelPlace, cited: frozenset[str]) -> Decision:
    row, is_decided = statement.row, statement.status != "proposed"
    return Decision(
        label_id=statement.label_id,
        finding_key=statement.finding_key,
        cell_key=statement.cell_key,
        status=statement.status,
        author=row.author if is_decided else " + ".join(one.author for one in statement.proposals),
        confidence=statement.confidence,
        reasons=tuple(orjson.loads(row.reasons)) if is_decided else _reasons(statement.proposals),
        localized=bool(cited.intersection(label.span_ids)),
        at=row.created_at,
        proposers=tuple(one.author for one in statement.proposals),
    )


def _reasons(proposals: Sequence[Any]) -> tuple[str, ...]:
    """The rule's reasons as they are, a model's with its name."""
    return tuple(
        reason if row.author == AUTO else f"{row.author}: {reason}"
        for row in proposals
        for reason in orjson.loads(row.reasons)
    )
