"""Matches between reference errors and judge findings: proposed by the machine, decided by people, all kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import orjson
import pandas as pd
from sqlalchemy import Connection, Engine, Select, delete, func, insert, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.store import read_transaction, schema, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.labels.label_store import LabelPlace, error_labels, label_places, newest, put_labels
from tracejury.judging.matching.rule import (
    AUTO,
    BY_MODEL,
    RULE,
    Candidate,
    TextLikeness,
    assign,
    is_localized,
    propose,
)
from tracejury.judging.records import (
    ANSWERED_STATES,
    DIMENSIONS,
    Dimension,
    ErrorLabel,
    Evidence,
    Finding,
    FindingReview,
    Match,
    MatchStatus,
)
from tracejury.judging.runs.verdict_imports import resolve_waiting
from tracejury.judging.runs.verdicts import findings_of, now
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import is_own_word, version_names
from tracejury.judging.store.locks import LABELS, MATCHES
from tracejury.judging.store.people import ensure_annotator
from tracejury.judging.store.revisions import largest
from tracejury.judging.store.spans import parents_of
from tracejury.judging.taxonomy import dimensions_of

TOGETHER_US = 10_000  # rows of one decision are made within so many microseconds, two decisions never
BY_PERSON, RESTORED = "decided by a person", "restored by undo"
_match, _finding, _cell = tables.match, tables.finding, tables.cell
Progress = Callable[[int, int], None]
CANDIDATES = "candidates"
"""Whose labels the accepted findings of judges are, until somebody adjudicates them."""


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


def propose_matches(
    engine: Engine, *, judge_model: str | None = None, progress: Progress | None = None
) -> dict[str, int]:
    """Propose matches for every person and every judged cell (of `judge` or of all), and store what changed.

    Proposals that are no longer made are withdrawn; people's decisions stay untouched. Returns
    `{"matches", "new", "withdrawn", "traces"}`.
    """
    resolve_waiting(engine)
    totals: Counter[str] = Counter(matches=0, new=0, withdrawn=0, traces=0)
    last_label = newest_label(engine)
    with read_transaction(engine) as connection:
        by_trace = complete_errors(connection)
    likeness = TextLikeness()
    for number, (trace_id, errors) in enumerate(by_trace.items()):
        with write_transaction(engine, MATCHES) as connection:
            totals.update(_propose_trace(connection, trace_id, errors, judge_model, likeness))
            cells = [cell.cell_key for cell in judged_cells(connection, trace_id, judge_model)]
            record_matching(connection, cells, {error.annotator for error in errors}, last_label, matcher=RULE)
        if progress is not None:
            progress(number + 1, len(by_trace))
    return dict(totals)


def finding_dimensions(finding: Finding, dimension: str) -> frozenset[Dimension]:
    """The dimensions a finding speaks of: its own, its judge's, else those of its TRAIL category."""
    if finding.dimension is not None:
        return frozenset({finding.dimension})
    if dimension in DIMENSIONS:
        return frozenset({dimension})
    return frozenset(dimensions_of(finding.category)) if finding.category else frozenset()


def decide(connection: Connection, *, label_id: str, finding_key: int, status: MatchStatus, author: str) -> None:
    """A person's word on one pair, appended.

    Confirming rejects the pairs that stood confirmed before it for this label or this finding (of the same
    person's labels, in the same cell): pairs are one to one. Raises `KeyError` when label or finding is
    unknown, `ValueError` for the author of proposals.
    """
    if author == AUTO or author.startswith(BY_MODEL):
        raise ValueError(f"{author!r} is an author of proposals, not a person")
    error = next(iter(error_labels(connection, tables.error_label.c.label_id == label_id)), None)
    if error is None:
        raise KeyError(f"no error label {label_id}")
    cell = connection.execute(
        select(_finding.c.cell_key, _cell.c.trace_id)
        .join(_cell, _cell.c.cell_key == _finding.c.cell_key)
        .where(_finding.c.finding_key == finding_key)
    ).one_or_none()
    if cell is None:
        raise KeyError(f"no finding {finding_key}")
    findings = dict(findings_of(connection, [cell.cell_key])[cell.cell_key])
    rivals = _rivals(connection, error, finding_key, cell) if status == "confirmed" else []
    statements = [(label_id, finding_key, status), *((label, finding, "rejected") for label, finding in rivals)]
    _append(
        connection,
        [
            Match(
                label_id=label,
                finding_id=finding,
                status=word,
                author=author,
                confidence=1.0,
                reasons=(BY_PERSON,),
                localized=label == label_id and is_localized(error, findings[finding]),
            )
            for label, finding, word in statements
        ],
    )


def undo_decision(connection: Connection, *, label_id: str, finding_key: int, author: str) -> None:
    """Take back a person's newest word on a pair, and the rejections that came with it: what stood before stands again.

    Appended like every word. Raises `KeyError` where this person has said nothing of the pair that stands.
    """
    own = select(_match).where(_match.c.author == author).order_by(_match.c.row_key)
    rows = list(connection.execute(own).all())
    words = _words(rows, label_id, finding_key)
    if not words:
        raise KeyError(f"{author} has not decided on error {label_id} and finding {finding_key}")
    for row in _stored_together(rows, words[-1]):
        *before, last = _words(rows, row.label_id, row.finding_key) or [None]
        if last is row:
            match = _as_match(before[-1] if before else row)
            _append(connection, [replace(match, reasons=(BY_PERSON, RESTORED))], withdrawn=not before)


def _words(rows: Sequence[Any], label_id: str, finding_key: int) -> list[Any]:
    """A person's words on a pair that have not been taken back, oldest first; `rows` are all of that person."""
    words: list[Any] = []
    for row in rows:
        if (row.label_id, row.finding_key) != (label_id, finding_key):
            continue
        if row.withdrawn or RESTORED in orjson.loads(row.reasons):
            words.pop()
        else:
            words.append(row)
    return words


def _stored_together(rows: Sequence[Any], word: Any) -> list[Any]:
    """The word and, of a confirmation, the rejections of its rivals, which `decide` appended right behind it."""
    together = [word]
    for row in (row for row in rows if row.row_key > word.row_key and word.status == "confirmed"):
        is_rival = (row.label_id == word.label_id) != (row.finding_key == word.finding_key)
        if row.created_at - word.created_at > TOGETHER_US or row.status != "rejected" or not is_rival:
            break
        together.append(row)
    return together


def _rivals(connection: Connection, error: ErrorLabel, finding_key: int, cell: Any) -> list[tuple[str, int]]:
    """Confirmed pairs of the same person and cell that share the label or the finding of a new one."""
    own = {
        label.label_id for label in error_labels(connection, tables.error_label.c.trace_id == error.trace_id)
        if label.annotator == error.annotator
    }  # fmt: skip
    return [
        (d.label_id, d.finding_key)
        for d in decisions(connection, trace_id=cell.trace_id)
        if d.status == "confirmed"
        and d.cell_key == cell.cell_key
        and d.label_id in own
        and (d.label_id == error.label_id) != (d.finding_key == finding_key)
    ]


def review_finding(
    connection: Connection, *, finding_key: int, review: FindingReview | None, author: str
) -> str | None:
    """Store a person's review of a finding that matches no reference error; None withdraws it.

    A valid new error becomes a candidate label of `CANDIDATES`, credited to the judge: its id is returned. It
    counts in no table before somebody adjudicates it. Raises `KeyError` for an unknown finding.
    """
    label_id = None
    if review == "valid new error":
        label_id = _add_candidate(connection, finding_key, author)
    connection.execute(
        insert(tables.finding_review).values(
            finding_key=finding_key, review=review, author=author, label_id=label_id, created_at=now()
        )
    )
    return label_id


def _add_candidate(connection: Connection, finding_key: int, author: str) -> str:
    cell = connection.execute(
        select(_cell.c.cell_key, _cell.c.trace_id, _cell.c.rubric, _cell.c.judge_version, tables.judge_version.c.model)
        .join(_finding, _finding.c.cell_key == _cell.c.cell_key)
        .join(tables.judge_version, tables.judge_version.c.judge_version == _cell.c.judge_version)
        .where(_finding.c.finding_key == finding_key)
    ).one_or_none()
    if cell is None:
        raise KeyError(f"no finding {finding_key}")
    finding = dict(findings_of(connection, [cell.cell_key])[cell.cell_key])[finding_key]
    dimension = version_names(connection)[cell.judge_version].dimension
    label = ErrorLabel(
        label_id=f"candidate-{finding_key}",
        trace_id=cell.trace_id,
        annotator=CANDIDATES,
        span_ids=tuple(dict.fromkeys(c.span_id for c in finding.citations if c.span_id is not None)),
        dimensions=tuple(sorted(finding_dimensions(finding, dimension), key=DIMENSIONS.index)),
        impact=finding.impact,
        description=finding.description,
        category=finding.category,
        evidence=(Evidence(quote=finding.evidence, span_id=finding.evidence_span_id),) if finding.evidence else (),
        phase="revealed",
        attributes={"finding": finding_key, "dimension": cell.rubric, "judge_model": cell.model, "accepted_by": author},
    )
    ensure_annotator(connection, CANDIDATES, kind="imported")
    put_labels(connection, errors=[label], scores=(), reviews=(), author=author)
    return label.label_id


def decisions(
    connection: Connection,
    *,
    trace_id: str | None = None,
    annotator: str | None = None,
    versions: Collection[str] | None = None,
) -> list[Decision]:
    """What stands for every pair of a label that is there: people's decisions first (the newest), else the proposal.

    Proposals that contradict a confirmed match are left out, and of proposals that contradict each other the weaker.
    `localized` is that of the label as it is now.
    `trace_id`, `annotator` (whose labels) and `versions` (of judges) narrow it.
    """
    of_cell = [] if trace_id is None else [_cell.c.trace_id == trace_id]
    if versions is not None:
        of_cell.append(is_one_of(_cell.c.judge_version, versions))
    of_label = [] if trace_id is None else [tables.error_label.c.trace_id == trace_id]
    if annotator is not None:
        of_label.append(tables.error_label.c.annotator == annotator)
    labels = _labels_in_pairs(connection, *of_label)
    standing = _standing(connection, labels, *of_cell)
    cited = cited_spans(connection, [statement.finding_key for statement in standing])
    return [
        _decision(statement, labels[statement.label_id], cited.get(statement.finding_key, frozenset()))
        for statement in standing
    ]


def _labels_in_pairs(connection: Connection, *conditions: ColumnElement[bool]) -> dict[str, LabelPlace]:
    """`label_places` of labels that any match names: most are in none."""
    return label_places(connection, tables.error_label.c.label_id.in_(select(_match.c.label_id)), *conditions)


def finding_statuses(
    connection: Connection, *, annotator: str, versions: Collection[str], repeat: int
) -> dict[int, MatchStatus]:
    """Of `decisions` on one run of judges, the status alone by finding; rejected pairs are left out."""
    labels = _labels_in_pairs(connection, tables.error_label.c.annotator == annotator)
    standing = _standing(connection, labels, is_one_of(_cell.c.judge_version, versions), _cell.c.repeat == repeat)
    return {statement.finding_key: statement.status for statement in standing if statement.status != "rejected"}


class _Statement(NamedTuple):
    """What stands for a pair: the row of a person's newest word, else the first of the proposals; and all of these."""

    label_id: str
    finding_key: int
    cell_key: int
    status: MatchStatus
    confidence: float
    row: Any
    proposals: tuple[Any, ...]


def _statement(rows: Sequence[Any]) -> _Statement:
    """Of all rows of a pair (oldest first): the newest word of a person, else the proposals together."""
    words = [row for row in rows if row.status != "proposed"]
    proposals = sorted((row for row in rows if row.status == "proposed"), key=lambda row: row.author != AUTO)
    row = words[-1] if words else proposals[0]
    confidence = row.confidence if words else max(one.confidence for one in proposals)
    return _Statement(row.label_id, row.joint_key, row.cell_key, row.status, confidence, row, tuple(proposals))


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


_SAYS_MORE: Mapping[MatchStatus, int] = {"rejected": 0, "proposed": 1, "confirmed": 2}


def _statements_of_juries(members: Sequence[_Statement], decided: Set[tuple[str, int]]) -> list[_Statement]:
    """What members' findings say of each pair of a jury's: the error is described as soon as one describes it."""
    best: dict[tuple[str, int], _Statement] = {}
    for statement in sorted(members, key=lambda statement: (_SAYS_MORE[statement.status], statement.confidence)):
        best[statement.label_id, statement.finding_key] = statement
    return [statement for pair, statement in best.items() if pair not in decided]


def cited_spans(connection: Connection, finding_keys: Sequence[int]) -> dict[int, frozenset[str]]:
    """The spans that each finding cites."""
    citation = tables.citation
    spans: dict[int, set[str]] = defaultdict(set)
    query = select(citation.c.finding_key, citation.c.span_id).where(
        is_one_of(citation.c.finding_key, finding_keys), citation.c.span_id.is_not(None)
    )
    for finding_key, span_id in connection.execute(query).all():
        spans[finding_key].add(span_id)
    return {key: frozenset(span_ids) for key, span_ids in spans.items()}


def finding_reviews(connection: Connection) -> dict[int, FindingReview]:
    """The newest review of each finding that its author has not withdrawn.

    A jury's finding that nobody has reviewed has the review of its members' findings: the best of theirs.
    """
    table = tables.finding_review
    rows = connection.execute(
        select(table.c.finding_key, table.c.author, table.c.review).order_by(table.c.row_key)
    ).all()
    by_author = {(row.finding_key, row.author): row.review for row in rows}
    order = {(row.finding_key, row.author): number for number, row in enumerate(rows)}
    standing = sorted((key for key, review in by_author.items() if review is not None), key=order.__getitem__)
    reviewed = {finding_key: by_author[finding_key, author] for finding_key, author in standing}
    return {**_reviews_of_members(connection, reviewed), **reviewed} if reviewed else {}


_BEST_LAST: tuple[FindingReview, ...] = ("false alarm", "duplicate", "valid new error")


def _reviews_of_members(connection: Connection, reviewed: Mapping[int, FindingReview]) -> dict[int, FindingReview]:
    joint = tables.joint_finding
    pairs = connection.execute(select(joint.c.finding_key, joint.c.member_key)).all()
    reviews = [(row.finding_key, reviewed[row.member_key]) for row in pairs if row.member_key in reviewed]
    return dict(sorted(reviews, key=lambda one: _BEST_LAST.index(one[1])))


def match_decisions(connection: Connection) -> pd.DataFrame:
    """Every person's newest word on every pair: trace_id, dimension, judge_model, label_id, finding_id, matcher,
    status.

    The input of `judging.agreement.matchers`: proposals are nobody's word, and words that were taken back, or are on
    labels that are gone, count no more.
    """
    names = version_names(connection)
    rows = connection.execute(
        select(
            _cell.c.trace_id, _cell.c.judge_version,
            _match.c.label_id, _match.c.finding_key, _match.c.author, _match.c.status, _match.c.withdrawn,
        )
        .join(_finding, _finding.c.finding_key == _match.c.finding_key)
        .join(_cell, _cell.c.cell_key == _finding.c.cell_key)
        .where(_match.c.status != "proposed")
        .order_by(_match.c.row_key)
    ).all()  # fmt: skip
    newest_word = {(row.label_id, row.finding_key, row.author): row for row in rows}
    there = set(_labels_in_pairs(connection)) if newest_word else set()
    statements = [
        (
            row.trace_id, names[row.judge_version].dimension, names[row.judge_version].judge_model, row.label_id,
            row.finding_key, row.author, row.status,
        )
        for row in newest_word.values()
        if row.label_id in there and not row.withdrawn
    ]  # fmt: skip
    columns = ["trace_id", "dimension", "judge_model", "label_id", "finding_id", "matcher", "status"]
    return pd.DataFrame(statements, columns=columns)


def finding_decisions(connection: Connection) -> pd.DataFrame:
    """Every person's review that stands of every finding: trace_id, dimension, judge_model, finding_id, reviewer,
    review.

    The input of `judging.agreement.matchers`: a review that its author withdrew no longer counts.
    """
    names, review = version_names(connection), tables.finding_review
    rows = connection.execute(
        select(
            _cell.c.trace_id, _cell.c.judge_version,
            review.c.finding_key, review.c.author, review.c.review,
        )
        .join(_finding, _finding.c.finding_key == review.c.finding_key)
        .join(_cell, _cell.c.cell_key == _finding.c.cell_key)
        .order_by(review.c.row_key)
    ).all()  # fmt: skip
    newest_word = {(row.finding_key, row.author): row for row in rows}
    statements = [
        (
            row.trace_id, names[row.judge_version].dimension, names[row.judge_version].judge_model, row.finding_key,
            row.author, row.review,
        )
        for row in newest_word.values()
        if row.review is not None
    ]  # fmt: skip
    return pd.DataFrame(
        statements, columns=["trace_id", "dimension", "judge_model", "finding_id", "reviewer", "review"]
    )


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


def complete_errors(connection: Connection) -> dict[str, list[ErrorLabel]]:
    """Everybody's complete errors of the first occasion, by trace (those in the workspace)."""
    by_trace: dict[str, list[ErrorLabel]] = defaultdict(list)
    present = set(connection.scalars(select(schema.trace.c.trace_id)))
    for label in error_labels(connection, tables.error_label.c.occasion == 0):
        if label.is_complete and label.trace_id in present:
            by_trace[label.trace_id].append(label)
    return by_trace


def newest_label(engine: Engine) -> int:
    """The newest row of `error_label`, 0 where there is none, while nobody writes one: all before it can be read."""
    with write_transaction(engine, LABELS) as connection:
        return int(connection.scalar(select(largest(tables.error_label.c.row_key))) or 0)


def record_matching(
    connection: Connection, cell_keys: Collection[int], annotators: Collection[str], last_label: int, *, matcher: str
) -> None:
    """Store that `matcher` compared these people's errors, up to the row `last_label`, with these cells' findings.

    `matcher` is the author of a model's proposals, or `RULE`, which stands in the place of its older versions.
    """
    table = tables.matching
    rows = [
        {"cell_key": key, "annotator": name, "matcher": matcher, "last_label": last_label, "created_at": now()}
        for key in cell_keys
        for name in annotators
    ]
    if rows:
        own = table.c.matcher.startswith(_OF_RULE) if matcher == RULE else table.c.matcher == matcher
        known = is_one_of(table.c.cell_key, cell_keys) & is_one_of(table.c.annotator, annotators) & own
        connection.execute(delete(table).where(known))
        connection.execute(insert(table), rows)


_OF_RULE = f"{AUTO}@"


def is_of_today() -> ColumnElement[bool]:
    """Of a row of `matching`: whether this version of the rule compared, or a model."""
    matcher = tables.matching.c.matcher
    return (matcher == RULE) | ~matcher.startswith(_OF_RULE)


def matched_until(connection: Connection, trace_id: str | None = None) -> pd.DataFrame:
    """cell_key, annotator, last_label: up to which label each person's errors were compared with a cell's findings.

    A jury's cell was compared as far as each of its members that answered. What only an older version of the rule
    compared is not compared. Of all traces, or of one.
    """
    table, member = tables.matching, tables.jury_member
    columns = [table.c.cell_key, table.c.annotator, func.max(table.c.last_label).label("last_label")]
    of_trace = [] if trace_id is None else [_cell.c.trace_id == trace_id]
    compared = (
        select(*columns)
        .join(_cell, _cell.c.cell_key == table.c.cell_key)
        .where(is_of_today(), *of_trace)
        .group_by(table.c.cell_key, table.c.annotator)
    )
    own = pd.read_sql_query(compared, connection, coerce_float=False)
    answered = connection.execute(
        select(member.c.cell_key, member.c.member_key)
        .join(_cell, _cell.c.cell_key == member.c.member_key)
        .where(_cell.c.state.in_(("scored", "not_applicable")), *of_trace)
    ).all()
    members = pd.DataFrame(answered, columns=["joint_key", "cell_key"])
    by_jury = members.merge(own, on="cell_key").groupby(["joint_key", "annotator"])["last_label"].agg(["size", "min"])
    whole = by_jury["size"] == by_jury.index.get_level_values(0).map(members.groupby("joint_key").size().to_dict())
    joint = by_jury.loc[whole, "min"].rename("last_label").rename_axis(["cell_key", "annotator"]).reset_index()
    return pd.concat([own, joint], ignore_index=True).astype({"cell_key": "int64", "last_label": "int64"})


def matchers_of(connection: Connection) -> tuple[str, ...]:
    """Who compared errors and findings: versions of the rule, and models with that of their prompt."""
    matcher = tables.matching.c.matcher
    return tuple(connection.scalars(select(matcher).distinct().order_by(matcher)))


def unmatched_labels(connection: Connection, *, trace_id: str, annotator: str) -> dict[int, Set[str]]:
    """By answered cell of a trace: the person's labels that no matching has compared with its findings."""
    table = tables.error_label
    rows = connection.execute(
        select(table.c.label_id, func.max(table.c.row_key).label("last"))
        .where(table.c.trace_id == trace_id, table.c.annotator == annotator, table.c.occasion == 0)
        .group_by(table.c.label_id)
    ).all()
    seen = matched_until(connection, trace_id)
    until = seen[seen["annotator"] == annotator].set_index("cell_key")["last_label"].to_dict()
    cells = connection.scalars(select(_cell.c.cell_key).where(_cell.c.trace_id == trace_id))
    return {int(key): {row.label_id for row in rows if row.last > until.get(key, 0)} for key in cells}


def _propose_trace(
    connection: Connection,
    trace_id: str,
    errors: Sequence[ErrorLabel],
    judge_model: str | None,
    likeness: TextLikeness,
) -> Counter[str]:
    chosen = judged_cells(connection, trace_id, judge_model)
    if not chosen:
        return Counter()
    by_cell = candidates_of(connection, chosen)
    parents = parents_of(connection, trace_id)
    proposals, people = [], by_person(errors)
    for cell in chosen:
        for own in people:
            proposals += propose(own, by_cell.get(cell.cell_key, ()), parents=parents, likeness=likeness)
    finding_keys = [candidate.finding_id for candidates in by_cell.values() for candidate in candidates]
    return store_proposals(connection, proposals, author=AUTO, finding_keys=finding_keys) + Counter(traces=1)


def by_person(errors: Sequence[ErrorLabel]) -> list[tuple[ErrorLabel, ...]]:
    """Each person's errors, people in the order in which they come."""
    people = dict.fromkeys(error.annotator for error in errors)
    return [tuple(error for error in errors if error.annotator == person) for person in people]


def judged_cells(connection: Connection, trace_id: str, judge_model: str | None = None) -> Sequence[Any]:
    """The answered cells of a trace (of a judge or a model, or all): cell_key, judge, model.

    A jury's are left out: what is proposed for its members' findings is proposed for its own.
    """
    cells = connection.execute(
        select(_cell.c.cell_key, _cell.c.rubric, _cell.c.judge_version, tables.judge_version.c.model)
        .join(tables.judge_version, tables.judge_version.c.judge_version == _cell.c.judge_version)
        .where(_cell.c.trace_id == trace_id, _cell.c.state.in_(ANSWERED_STATES), is_own_word())
    ).all()
    return [cell for cell in cells if judge_model in (None, cell.model)]


def candidates_of(connection: Connection, cells: Sequence[Any]) -> dict[int, list[Candidate]]:
    """The findings of cells as matching sees them, by cell; cells without any are left out."""
    findings = findings_of(connection, [cell.cell_key for cell in cells])
    names = version_names(connection)
    return {
        cell.cell_key: [
            Candidate(
                finding_id=key,
                finding=finding,
                dimensions=finding_dimensions(finding, names[cell.judge_version].dimension),
            )
            for key, finding in findings[cell.cell_key]
        ]
        for cell in cells
        if findings.get(cell.cell_key)
    }


def store_proposals(
    connection: Connection,
    proposals: Sequence[Match],
    *,
    author: str,
    is_prefix: bool = False,
    finding_keys: Sequence[int] | None = None,
    label_ids: Sequence[str] | None = None,
) -> Counter[str]:
    """Append what an author proposes now and withdraw what they proposed before and no longer do.

    `author` is a name, or (`is_prefix`) its beginning: a newer prompt of a model stands in the place of the older.
    Only pairs of these findings and labels (default: all) are looked at.
    """
    by_author = _match.c.author.startswith(author, autoescape=True) if is_prefix else _match.c.author == author
    chosen = [by_author]
    if finding_keys is not None:
        chosen.append(is_one_of(_match.c.finding_key, finding_keys))
    if label_ids is not None:
        chosen.append(is_one_of(_match.c.label_id, label_ids))
    rows = connection.execute(
        select(_match).where(*chosen, newest(_match, ("label_id", "finding_key", "author"), *chosen))
    ).all()
    known = {(row.label_id, row.finding_key, row.author): row for row in rows if not row.withdrawn}
    by_pair = {(match.label_id, match.finding_id, match.author): match for match in proposals}
    new = [match for key, match in by_pair.items() if key not in known or not _equal(known[key], match)]
    gone = [_as_match(row) for key, row in known.items() if key not in by_pair]
    _append(connection, new)
    _append(connection, gone, withdrawn=True)
    return Counter(matches=len(by_pair), new=len(new), withdrawn=len(gone))


def _equal(row: Any, match: Match) -> bool:
    return bool(
        row.confidence == match.confidence
        and row.localized == match.localized
        and tuple(orjson.loads(row.reasons)) == match.reasons
    )


def _as_match(row: Any) -> Match:
    return Match(
        label_id=row.label_id,
        finding_id=row.finding_key,
        status=row.status,
        author=row.author,
        confidence=row.confidence,
        reasons=tuple(orjson.loads(row.reasons)),
        localized=row.localized,
    )


def _append(connection: Connection, matches: Iterable[Match], *, withdrawn: bool = False) -> None:
    rows = [
        {
            "label_id": match.label_id,
            "finding_key": match.finding_id,
            "status": match.status,
            "author": match.author,
            "confidence": match.confidence,
            "reasons": orjson.dumps(match.reasons).decode(),
            "localized": match.localized,
            "withdrawn": withdrawn,
            "created_at": now(),
        }
        for match in matches
    ]
    if rows:
        connection.execute(insert(_match), rows)
