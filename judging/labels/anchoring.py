"""Who may see what, and what seeing changed: blind until submitted, then marked, then counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pandas as pd
from sqlalchemy import Connection, Select, func, select

from tracejury.ingest.table import query_frame
from tracejury.judging.labels.label_store import error_labels, newest, score_labels
from tracejury.judging.labels.sightings import is_blind_required, not_submitted
from tracejury.judging.queues.queue_store import FIRST
from tracejury.judging.records import ANSWERED_STATES, DIMENSIONS, ErrorLabel, Finding
from tracejury.judging.runs.verdicts import findings_of
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import is_own_word
from tracejury.judging.store.people import Role

_review, _lease, _item, _queue = tables.review, tables.lease, tables.queue_item, tables.queue
SCORE_COLUMNS = ("annotator", "trace_id", "dimension", "blind", "revealed", "judge_score", "nearer")
ERROR_COLUMNS = ("annotator", "trace_id", "label_id", "dimensions", "impact", "from_judge")
REPORT_COLUMNS = (
    "annotator", "submitted", "revealed", "errors_added", "errors_from_judge", "scores_changed", "scores_nearer",
    "mean_change", "mean_change_low", "mean_change_high",
)  # fmt: skip


def may_see_judges(connection: Connection, *, annotator: str, role: Role, trace_id: str) -> bool:
    """Whether judges' answers and other people's labels of this trace may reach this person.

    Never while they are at work on it in a blind queue, whatever their role, the hidden repeat included. Else
    an annotator must have submitted it (or met it in a queue that is not blind); other roles may, unless an
    administrator requires blind labels: then everyone must have submitted it.
    """
    if _is_at_work_blind(connection, annotator, trace_id):
        return False
    if is_blind_required(connection) and trace_id in not_submitted(connection, annotator):
        return False
    if role != "annotator":
        return True
    return _status(connection, annotator, trace_id) == "submitted" or _met_open(connection, annotator, trace_id)


def traces_seen(connection: Connection, *, annotator: str, role: Role, trace_ids: Iterable[str]) -> set[str]:
    """Those of the traces of which `may_see_judges` holds."""
    blind = at_work_blind(connection, annotator)
    left = [trace_id for trace_id in trace_ids if trace_id not in blind]
    if role != "annotator":
        return set(left)
    return {one for one in left if may_see_judges(connection, annotator=annotator, role=role, trace_id=one)}


def at_work_blind(connection: Connection, annotator: str) -> frozenset[str]:
    """The traces that this person labels now without having seen what others say of them.

    All that the person has not submitted, where an administrator requires blind labels.
    """
    required = not_submitted(connection, annotator) if is_blind_required(connection) else set()
    return frozenset(str(trace_id) for trace_id in connection.scalars(_at_work_blind(annotator))) | required


# ---- the report ------------------------------------------------------------------------------------------------


def anchoring(connection: Connection) -> pd.DataFrame:
    """What the reveal changed, one row per person who asked for it.

    annotator, submitted and revealed (traces), errors_added (labels made after the reveal), errors_from_judge
    (those of them that share a span and a dimension with a judge's finding), scores_changed and scores_nearer
    (to the judges' mean), mean_change (revealed less blind over changed scores; NaN without any) with its bounds
    (cluster bootstrap by trace; NaN of one trace).
    """
    from tracejury.judging.agreement.scores import pooled_bias

    scores, errors = changed_scores(connection), added_errors(connection)
    rows = []
    for annotator, (submitted, revealed) in sorted(_reveals(connection).items()):
        own_errors = errors[errors["annotator"] == annotator]
        changed = scores[scores["annotator"] == annotator]
        nearer = int((changed["nearer"] == True).sum())  # noqa: E712 - None means that no judge scored
        both = changed.dropna(subset=["blind", "revealed"])
        pairs = both[["trace_id", "blind", "revealed"]].set_axis(["trace_id", "reference_score", "judge_score"], axis=1)
        bounds = pooled_bias(pairs)
        change = ((both["revealed"] - both["blind"]).mean(), *bounds)
        rows.append(
            (
                annotator,
                submitted,
                revealed,
                len(own_errors),
                int(own_errors["from_judge"].sum()),
                len(changed),
                nearer,
                *change,
            )
        )
    frame = pd.DataFrame(rows, columns=list(REPORT_COLUMNS))
    return frame.astype(dict.fromkeys(("mean_change", "mean_change_low", "mean_change_high"), "float64"))


def changed_scores(connection: Connection) -> pd.DataFrame:
    """Scores that a person changed after the reveal: annotator, trace_id, dimension, blind, revealed, judge_score,
    nearer.

    `judge_score` is the mean of the judges' scores (NaN without any); `nearer`: the change went towards it.
    """
    scores: dict[tuple[str, str, str], dict[str, float | None]] = defaultdict(dict)
    table = tables.score_label
    shown = select(table.c.trace_id).where(table.c.phase == "revealed", table.c.occasion == FIRST)
    here = (table.c.occasion == FIRST, table.c.dimension.in_(DIMENSIONS), table.c.trace_id.in_(shown))
    for score in score_labels(connection, *here):
        value = None if score.not_applicable else score.value
        scores[score.annotator, score.trace_id, score.dimension][score.phase] = value
    judges = _judge_means(connection, shown)
    rows = []
    for (annotator, trace_id, dimension), phases in sorted(scores.items()):
        blind, revealed = phases.get("blind"), phases.get("revealed")
        if "revealed" not in phases or "blind" not in phases or blind == revealed:
            continue
        judge = judges.get((trace_id, dimension))
        nearer = None
        if judge is not None and blind is not None and revealed is not None:
            nearer = abs(revealed - judge) < abs(blind - judge)
        rows.append((annotator, trace_id, dimension, blind, revealed, judge, nearer))
    frame = pd.DataFrame(rows, columns=list(SCORE_COLUMNS))
    return frame.astype({"blind": "float64", "revealed": "float64", "judge_score": "float64", "nearer": "object"})


def added_errors(connection: Connection) -> pd.DataFrame:
    """Errors labelled after the reveal: annotator, trace_id, label_id, dimensions, impact, from_judge.

    `from_judge`: a finding of a judge cites one of its spans and is of one of its dimensions.
    """
    table = tables.error_label
    labels = error_labels(connection, table.c.phase == "revealed", table.c.occasion == FIRST)
    by_trace = {trace_id: list(_findings(connection, trace_id)) for trace_id in {label.trace_id for label in labels}}
    rows = [
        (
            label.annotator,
            label.trace_id,
            label.label_id,
            "+".join(label.dimensions),
            label.impact,
            any(_points_at(judge, finding, label) for judge, _, finding in by_trace[label.trace_id]),
        )
        for label in labels
    ]
    return pd.DataFrame(rows, columns=list(ERROR_COLUMNS)).astype({"from_judge": "bool"})


def counted_by(connection: Connection, annotator: str, column: str) -> pd.DataFrame:
    """What a number of `anchoring` counts of this person, with its trace_id; no row where nothing is counted."""
    match column:
        case "submitted" | "revealed":
            return _reviewed(connection, annotator, column)
        case "errors_added" | "errors_from_judge":
            rows = added_errors(connection)
            is_counted = rows["from_judge"] | (column == "errors_added")
        case "scores_changed" | "scores_nearer" | "mean_change" | "mean_change_low" | "mean_change_high":
            rows = changed_scores(connection)
            is_counted = (rows["nearer"] == True) | (column != "scores_nearer")  # noqa: E712 - None: no judge scored
        case _:
            return pd.DataFrame(columns=["trace_id"])
    return rows[is_counted & (rows["annotator"] == annotator)].reset_index(drop=True)


def _reviewed(connection: Connection, annotator: str, column: str) -> pd.DataFrame:
    newest_of = newest(_review, ("annotator", "trace_id", "occasion"), _review.c.annotator == annotator)
    is_counted = _review.c.status == "submitted" if column == "submitted" else _review.c.revealed.is_(True)
    query = select(_review.c.trace_id, _review.c.status, _review.c.revealed).where(
        newest_of, _review.c.annotator == annotator, _review.c.occasion == FIRST, is_counted
    )
    return query_frame(connection, query.order_by(_review.c.trace_id))


def _points_at(judge: str, finding: Finding, label: ErrorLabel) -> bool:
    dimension = finding.dimension or judge
    cited = {citation.span_id for citation in finding.citations}
    return dimension in label.dimensions and not cited.isdisjoint(label.span_ids)


# ---- rows ------------------------------------------------------------------------------------------------------


def _is_at_work_blind(connection: Connection, annotator: str, trace_id: str) -> bool:
    return connection.scalar(_at_work_blind(annotator).where(_item.c.trace_id == trace_id).limit(1)) is not None


def _at_work_blind(annotator: str) -> Select[Any]:
    """The traces that a person holds now from blind queues."""
    return (
        select(_item.c.trace_id)
        .join(_lease, _lease.c.item_key == _item.c.item_key)
        .join(_queue, _queue.c.queue_key == _item.c.queue_key)
        .where(_lease.c.annotator == annotator, _lease.c.outcome.is_(None), _queue.c.blind.is_(True))
    )


def _met_open(connection: Connection, annotator: str, trace_id: str) -> bool:
    """Whether a queue that is not blind handed this trace to the person, and none that is."""
    blind = connection.scalars(
        select(_queue.c.blind)
        .join(_item, _item.c.queue_key == _queue.c.queue_key)
        .join(_lease, _lease.c.item_key == _item.c.item_key)
        .where(_lease.c.annotator == annotator, _item.c.trace_id == trace_id)
    ).all()
    return bool(blind) and not any(blind)


def _status(connection: Connection, annotator: str, trace_id: str) -> str | None:
    conditions = (_review.c.annotator == annotator, _review.c.trace_id == trace_id, _review.c.occasion == FIRST)
    status = connection.scalar(select(_review.c.status).where(*conditions).order_by(_review.c.row_key.desc()).limit(1))
    return None if status is None else str(status)


def _findings(connection: Connection, trace_id: str) -> list[tuple[str, int, Finding]]:
    cell = tables.cell
    latest = (
        select(func.max(cell.c.cell_key))
        .where(
            cell.c.trace_id == trace_id,
            cell.c.state.in_(ANSWERED_STATES),
            cell.c.repeat == 0,
            is_own_word(),
        )
        .group_by(cell.c.judge_version)
    )
    judges = {
        row.cell_key: row.rubric
        for row in connection.execute(select(cell.c.cell_key, cell.c.rubric).where(cell.c.cell_key.in_(latest))).all()
    }
    findings = findings_of(connection, list(judges))
    return [(judges[cell_key], key, finding) for cell_key in sorted(findings) for key, finding in findings[cell_key]]


def _judge_means(connection: Connection, trace_ids: Select[Any]) -> dict[tuple[str, str], float]:
    cell = tables.cell
    rows = connection.execute(
        select(cell.c.trace_id, cell.c.rubric, func.avg(cell.c.score))
        .where(cell.c.state == "scored", cell.c.rubric.in_(DIMENSIONS), cell.c.trace_id.in_(trace_ids), is_own_word())
        .group_by(cell.c.trace_id, cell.c.rubric)
    )
    return {(trace_id, judge): float(mean) for trace_id, judge, mean in rows}


def _reveals(connection: Connection) -> dict[str, tuple[int, int]]:
    """Traces submitted and traces revealed, of everyone who revealed any."""
    rows = connection.execute(
        select(_review.c.annotator, _review.c.status, _review.c.revealed).where(
            newest(_review, ("annotator", "trace_id", "occasion")), _review.c.occasion == FIRST
        )
    ).all()
    counts: dict[str, tuple[int, int]] = {}
    for annotator, status, revealed in rows:
        submitted, seen = counts.get(annotator, (0, 0))
        counts[annotator] = (submitted + (status == "submitted"), seen + bool(revealed))
    return {annotator: pair for annotator, pair in counts.items() if pair[1]}
