"""One trace, one person beside one judge: which error was found by which finding, what is missed, what is unmatched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set

from sqlalchemy import Connection, func, select

from tracejury.ingest.store import schema
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.labels.label_store import error_labels, score_labels
from tracejury.judging.labels.submissions import submitted_by
from tracejury.judging.matching.compared import unmatched_labels
from tracejury.judging.matching.finding_reviews import finding_reviews
from tracejury.judging.matching.pairs import Comparison, JudgedCell, Pair
from tracejury.judging.matching.standing import Decision, decisions, finding_statuses
from tracejury.judging.records import ANSWERED_STATES, CELL_STATES, ErrorLabel, Finding, FindingReview
from tracejury.judging.runs.verdicts import findings_of, to_outcome
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import version_names, versions_of


def compare_trace(
    connection: Connection, *, trace_id: str, reference: str, judge_model: str, repeat: int = 0
) -> Comparison:
    """Put one person and each judge of a judge model (newest or named version) side by side on one trace."""
    cells = _cells(connection, trace_id, judge_model, repeat)
    findings = findings_of(connection, [cell.cell_key for cell in cells if cell.outcome.state in ANSWERED_STATES])
    errors = _errors(connection, trace_id, reference)
    unmatched = unmatched_labels(connection, trace_id=trace_id, annotator=reference)
    decided, reviews = decisions(connection, trace_id=trace_id), _reviews(connection, findings)
    pairs = _pairs(errors, cells, findings, decided, reviews, unmatched)
    spans = connection.execute(
        select(schema.span.c.span_id, schema.span.c.seq)
        .join(schema.trace, schema.trace.c.trace_key == schema.span.c.trace_key)
        .where(schema.trace.c.trace_id == trace_id)
    )
    place = {row.span_id: row.seq for row in spans}
    scores = score_labels(
        connection,
        tables.score_label.c.annotator == reference,
        tables.score_label.c.trace_id == trace_id,
        tables.score_label.c.occasion == 0,
    )
    return Comparison(
        trace_id=trace_id,
        reference=reference,
        judge_model=judge_model,
        pairs=tuple(sorted(pairs, key=lambda pair: _first_seq(pair, place))),
        cells=tuple(cells),
        scores=tuple(scores),
    )


def decided_revision(connection: Connection) -> int:
    """Grows with every word on a match or a finding: tells which of two comparisons is the newer."""
    newest = (
        select(func.coalesce(func.max(table.c.row_key), 0)).scalar_subquery()
        for table in (tables.match, tables.finding_review)
    )
    return sum(int(key) for key in connection.execute(select(*newest)).one())


def repeats_of(connection: Connection, *, trace_id: str, judge_model: str) -> list[int]:
    """The repeats in which the judge model answered or failed on the trace."""
    cell = tables.cell
    rows = connection.scalars(
        select(cell.c.repeat)
        .where(
            is_one_of(cell.c.judge_version, versions_of(connection, judge_model).values()),
            cell.c.trace_id == trace_id,
            cell.c.state.in_(CELL_STATES),
        )
        .distinct()
    )
    return sorted(rows)


def judged_and_labelled(connection: Connection, *, reference: str, judge_model: str) -> set[str]:
    """The traces that the person submitted and that the judge answered or failed on."""
    cell = tables.cell
    judged = select(cell.c.trace_id).where(
        is_one_of(cell.c.judge_version, versions_of(connection, judge_model).values()), cell.c.state.in_(CELL_STATES)
    )
    return {*connection.scalars(judged.distinct())} & submitted_by(connection, reference)


def undecided(connection: Connection, *, reference: str, judge_model: str, repeat: int = 0) -> dict[str, int]:
    """How many pairs and unmatched findings of each trace nobody has decided, in order of ingestion; none left out."""
    versions = versions_of(connection, judge_model)
    cell, finding = tables.cell, tables.finding
    rows = connection.execute(
        select(finding.c.finding_key, cell.c.trace_id)
        .join(cell, cell.c.cell_key == finding.c.cell_key)
        .join(schema.trace, schema.trace.c.trace_id == cell.c.trace_id)
        .where(
            is_one_of(cell.c.judge_version, versions.values()),
            cell.c.repeat == repeat,
            cell.c.state.in_(ANSWERED_STATES),
        )
        .order_by(schema.trace.c.trace_key)
    ).all()
    labelled = submitted_by(connection, reference)
    paired = finding_statuses(connection, annotator=reference, versions=versions.values(), repeat=repeat)
    reviewed = finding_reviews(connection)
    counts: dict[str, int] = {}
    for row in rows:
        if row.trace_id not in labelled:
            continue
        status = paired.get(row.finding_key)
        is_open = status == "proposed" or (status is None and row.finding_key not in reviewed)
        counts[row.trace_id] = counts.get(row.trace_id, 0) + int(is_open)
    return counts


def _cells(connection: Connection, trace_id: str, judge_model: str, repeat: int) -> list[JudgedCell]:
    versions = versions_of(connection, judge_model)
    cell = tables.cell
    rows = connection.execute(
        select(cell)
        .where(
            cell.c.trace_id == trace_id,
            cell.c.repeat == repeat,
            is_one_of(cell.c.judge_version, versions.values()),
            cell.c.state.in_(CELL_STATES),
        )
        .order_by(cell.c.finished_at, cell.c.cell_key)
    ).all()
    last = {row.rubric: row for row in rows}
    findings = findings_of(connection, [row.cell_key for row in last.values()])
    names = version_names(connection)
    cells = []
    for row in last.values():
        outcome = to_outcome(row, findings.get(row.cell_key, ()))
        if outcome is not None:
            dimension = names[row.judge_version].dimension
            cells.append(JudgedCell(cell_key=row.cell_key, rubric=dimension, outcome=outcome))
    return cells


def _errors(connection: Connection, trace_id: str, reference: str) -> list[ErrorLabel]:
    table = tables.error_label
    labels = error_labels(
        connection, table.c.annotator == reference, table.c.trace_id == trace_id, table.c.occasion == 0
    )
    return [error for error in labels if error.is_complete]


def _reviews(
    connection: Connection, findings: Mapping[int, Sequence[tuple[int, Finding | None]]]
) -> dict[int, FindingReview]:
    keys = {key for pieces in findings.values() for key, _ in pieces}
    return {key: review for key, review in finding_reviews(connection).items() if key in keys}


def _pairs(
    errors: Iterable[ErrorLabel],
    cells: Iterable[JudgedCell],
    findings: Mapping[int, Sequence[tuple[int, Finding]]],
    decided: Iterable[Decision],
    reviews: Mapping[int, FindingReview],
    unmatched: Mapping[int, Set[str]],
) -> list[Pair]:
    by_label = {error.label_id: error for error in errors}
    by_key = {key: (finding, cell.rubric) for cell in cells for key, finding in findings.get(cell.cell_key, ())}
    ours = [d for d in decided if d.label_id in by_label and d.finding_key in by_key]
    refused: dict[int | str, list[int | str]] = defaultdict(list)
    for d in ours:
        if d.status == "rejected":
            refused[d.label_id].append(d.finding_key)
            refused[d.finding_key].append(d.label_id)
    standing = [d for d in ours if d.status != "rejected"]
    pairs = [
        Pair(
            state="localized" if d.localized else "caught",
            error=by_label[d.label_id],
            finding_key=d.finding_key,
            finding=by_key[d.finding_key][0],
            rubric=by_key[d.finding_key][1],
            decision=d,
        )
        for d in standing
    ]
    matched_labels, used = {d.label_id for d in standing}, {d.finding_key for d in standing}
    answered = [cell for cell in cells if cell.outcome.state in ANSWERED_STATES]
    unseen = frozenset[str]().union(*(unmatched.get(cell.cell_key, ()) for cell in answered))
    open_findings = {
        key
        for cell in answered
        if unmatched.get(cell.cell_key, frozenset()) & by_label.keys() - matched_labels
        for key, _ in findings.get(cell.cell_key, ())
    }
    pairs += [
        Pair(
            state="not proposed yet" if label_id in unseen else "missed",
            error=error,
            rejected=tuple(refused[label_id]),
        )
        for label_id, error in by_label.items()
        if label_id not in matched_labels
    ]
    pairs += [
        Pair(
            state="not proposed yet" if key in open_findings and key not in reviews else "unmatched",
            finding_key=key,
            finding=finding,
            rubric=rubric,
            review=reviews.get(key),
            rejected=tuple(refused[key]),
        )
        for key, (finding, rubric) in by_key.items()
        if key not in used
    ]
    return pairs


def _first_seq(pair: Pair, place: Mapping[str, int]) -> tuple[int, str]:
    named = list(pair.error.span_ids) if pair.error is not None else []
    if not named and pair.finding is not None:
        named = [citation.span_id for citation in pair.finding.citations if citation.span_id is not None]
    last = len(place)
    return min((place.get(span_id, last) for span_id in named), default=last), pair.key
