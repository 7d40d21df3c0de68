"""Matches between human errors and judge findings: proposed by the machine, decided by people, all kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, insert, select

from ingest.store import reading, schema, writing
from judging.ledger import tables
from judging.ledger.labels import error_labels, newest
from judging.ledger.verdicts import findings_of, now
from judging.matching import AUTO, Candidate, TextLikeness, error_text, is_localized, propose
from judging.records import (
    DIMENSIONS,
    Dimension,
    ErrorLabel,
    Finding,
    FindingVerdict,
    Match,
    MatchStatus,
)
from judging.taxonomy import dimensions_of

_match, _finding, _cell = tables.match, tables.finding, tables.cell
Progress = Callable[[int, int], None]
_CORPUS = 20_000  # findings whose words are counted


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What stands for one pair now: the newest human word on it, else the machine's proposal."""

    label_id: str
    finding_key: int
    cell_key: int
    status: MatchStatus
    author: str
    confidence: float
    reasons: tuple[str, ...]
    localized: bool
    at: int


def propose_matches(engine: Engine, *, judge: str | None = None, progress: Progress | None = None) -> dict[str, int]:
    """Propose pairs for every person and every judged cell (of `judge` or of all), and store what changed.

    Proposals that are no longer made are withdrawn; human decisions stay untouched. Returns
    `{"pairs", "new", "withdrawn", "traces"}`.
    """
    totals: Counter[str] = Counter(pairs=0, new=0, withdrawn=0, traces=0)
    with reading(engine) as connection:
        by_trace = _complete_errors(connection)
        likeness = _likeness(connection, by_trace)
    for number, (trace_id, errors) in enumerate(by_trace.items()):
        with writing(engine) as connection:
            totals.update(_propose_trace(connection, trace_id, errors, judge, likeness))
        if progress is not None:
            progress(number + 1, len(by_trace))
    return dict(totals)


def finding_dimensions(finding: Finding, judge: str) -> frozenset[Dimension]:
    """The dimensions a finding speaks of: its own, its judge's, else those of its TRAIL category."""
    if finding.dimension is not None:
        return frozenset({finding.dimension})
    if judge in DIMENSIONS:
        return frozenset({judge})
    return frozenset(dimensions_of(finding.category)) if finding.category else frozenset()


def decide(connection: Connection, *, label_id: str, finding_key: int, status: MatchStatus, author: str) -> None:
    """A person's word on one pair, appended. Raises `KeyError` when label or finding is unknown."""
    error = next(iter(error_labels(connection, tables.error_label.c.label_id == label_id)), None)
    if error is None:
        raise KeyError(f"no error label {label_id}")
    cell_key = connection.scalar(select(_finding.c.cell_key).where(_finding.c.finding_key == finding_key))
    if cell_key is None:
        raise KeyError(f"no finding {finding_key}")
    found = dict(findings_of(connection, [cell_key])[cell_key])[finding_key]
    _append(
        connection,
        [
            Match(
                label_id=label_id,
                finding_id=finding_key,
                status=status,
                author=author,
                confidence=1.0,
                reasons=("decided by a person",),
                localized=is_localized(error, found),
            )
        ],
    )


def review_finding(
    connection: Connection,
    *,
    finding_key: int,
    verdict: FindingVerdict | None,
    author: str,
    label_id: str | None = None,
) -> None:
    """A person's verdict on a finding that matches no human error; None takes it back."""
    connection.execute(
        insert(tables.finding_review).values(
            finding_key=finding_key, verdict=verdict, author=author, label_id=label_id, created_at=now()
        )
    )


def decisions(connection: Connection, *, trace_id: str | None = None) -> list[Decision]:
    """What stands for every pair: human words first, proposals that contradict a confirmed match left out."""
    conditions = [] if trace_id is None else [_cell.c.trace_id == trace_id]
    rows = connection.execute(
        select(_match, _finding.c.cell_key)
        .join(_finding, _finding.c.finding_key == _match.c.finding_key)
        .join(_cell, _cell.c.cell_key == _finding.c.cell_key)
        .where(newest(_match, ("label_id", "finding_key", "author")), *conditions)
        .order_by(_match.c.row_key)
    ).all()
    by_pair: dict[tuple[str, int], Any] = {}
    for row in rows:
        key = (row.label_id, row.finding_key)
        if row.withdrawn or (row.author == AUTO and key in by_pair and by_pair[key].author != AUTO):
            continue
        by_pair[key] = row
    return _without_contradicted([_decision(row) for row in by_pair.values()])


def finding_reviews(connection: Connection) -> dict[int, FindingVerdict]:
    """The newest verdict on each reviewed finding; those taken back are left out."""
    rows = connection.execute(
        select(tables.finding_review.c.finding_key, tables.finding_review.c.verdict).where(
            newest(tables.finding_review, ("finding_key",)), tables.finding_review.c.verdict.is_not(None)
        )
    )
    return {row.finding_key: row.verdict for row in rows.all()}


def _without_contradicted(found: Sequence[Decision]) -> list[Decision]:
    """One to one: where a person confirmed a pair, other proposals of its label or finding in that cell fall."""
    confirmed = [d for d in found if d.status == "confirmed"]
    labels = {(d.cell_key, d.label_id) for d in confirmed}
    taken = {d.finding_key for d in confirmed}
    return [
        d
        for d in found
        if d.status != "proposed" or ((d.cell_key, d.label_id) not in labels and d.finding_key not in taken)
    ]


def _decision(row: Any) -> Decision:
    return Decision(
        label_id=row.label_id,
        finding_key=row.finding_key,
        cell_key=row.cell_key,
        status=row.status,
        author=row.author,
        confidence=row.confidence,
        reasons=tuple(orjson.loads(row.reasons)),
        localized=row.localized,
        at=row.created_at,
    )


def _complete_errors(connection: Connection) -> dict[str, list[ErrorLabel]]:
    by_trace: dict[str, list[ErrorLabel]] = defaultdict(list)
    present = set(connection.scalars(select(schema.trace.c.trace_id)))
    for label in error_labels(connection, tables.error_label.c.occasion == 0):
        if label.is_complete and label.trace_id in present:
            by_trace[label.trace_id].append(label)
    return by_trace


def _likeness(connection: Connection, by_trace: Mapping[str, Sequence[ErrorLabel]]) -> TextLikeness:
    """Text likeness with the words of every error and of the newest findings of the workspace."""
    errors = [error_text(error) for labels in by_trace.values() for error in labels]
    newest_first = select(_finding.c.description, _finding.c.evidence).order_by(_finding.c.finding_key.desc())
    findings = [
        f"{description} {evidence}" for description, evidence in connection.execute(newest_first.limit(_CORPUS)).all()
    ]
    return TextLikeness([*errors, *findings])


def _propose_trace(
    connection: Connection,
    trace_id: str,
    errors: Sequence[ErrorLabel],
    judge: str | None,
    likeness: TextLikeness,
) -> Counter[str]:
    cells = connection.execute(
        select(_cell.c.cell_key, _cell.c.judge, tables.judge_version.c.model)
        .join(tables.judge_version, tables.judge_version.c.judge_version == _cell.c.judge_version)
        .where(_cell.c.trace_id == trace_id, _cell.c.state.in_(("scored", "not_applicable")))
    ).all()
    chosen = [cell for cell in cells if judge is None or judge in (cell.judge, cell.model)]
    if not chosen:
        return Counter()
    by_cell = findings_of(connection, [cell.cell_key for cell in chosen])
    parents = _parents(connection, trace_id)
    proposals = []
    for cell in chosen:
        candidates = [
            Candidate(finding_id=key, finding=finding, dimensions=finding_dimensions(finding, cell.judge))
            for key, finding in by_cell.get(cell.cell_key, ())
        ]
        for annotator in dict.fromkeys(error.annotator for error in errors):
            own = [error for error in errors if error.annotator == annotator]
            proposals += propose(own, candidates, parents=parents, likeness=likeness)
    finding_keys = [key for found in by_cell.values() for key, _ in found]
    return _store(connection, proposals, finding_keys) + Counter(traces=1)


def _parents(connection: Connection, trace_id: str) -> Mapping[str, str | None]:
    rows = connection.execute(
        select(schema.span.c.span_id, schema.span.c.parent_span_id)
        .join(schema.trace, schema.trace.c.trace_key == schema.span.c.trace_key)
        .where(schema.trace.c.trace_id == trace_id)
    )
    return dict(rows.all())


def _store(connection: Connection, proposals: Sequence[Match], finding_keys: Sequence[int]) -> Counter[str]:
    rows = connection.execute(
        select(_match).where(
            _match.c.author == AUTO,
            _match.c.finding_key.in_(finding_keys),
            newest(
                _match, ("label_id", "finding_key"), _match.c.author == AUTO, _match.c.finding_key.in_(finding_keys)
            ),
        )
    ).all()
    known = {(row.label_id, row.finding_key): row for row in rows if not row.withdrawn}
    wanted = {(match.label_id, match.finding_id): match for match in proposals}
    new = [match for key, match in wanted.items() if key not in known or not _equal(known[key], match)]
    gone = [_as_match(row) for key, row in known.items() if key not in wanted]
    _append(connection, new)
    _append(connection, gone, withdrawn=True)
    return Counter(pairs=len(wanted), new=len(new), withdrawn=len(gone))


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
