"""Practice: a person's labels on a practice trace beside the right ones, shown as soon as they have submitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from sqlalchemy import Connection, select

from tracejury.judging.adjudication.decisions import ADJUDICATED
from tracejury.judging.adjudication.disputes import pair_errors, scores_of
from tracejury.judging.labels.label_store import error_labels, newest, score_labels
from tracejury.judging.queues.queue_store import FIRST, PRACTICE
from tracejury.judging.records import DIMENSIONS, ErrorLabel
from tracejury.judging.store import tables
from tracejury.judging.store.spans import parents_of

_review = tables.review


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """`caught` pairs one's own error with the right one; scores by dimension, None for not applicable."""

    trace_id: str
    gold: str
    own_scores: Mapping[str, float | None]
    gold_scores: Mapping[str, float | None]
    caught: tuple[tuple[ErrorLabel, ErrorLabel], ...]
    missed: tuple[ErrorLabel, ...]
    unmatched: tuple[ErrorLabel, ...]


def feedback(connection: Connection, annotator: str, trace_id: str) -> Feedback | None:
    """How a person's practice compares with the gold; None before they submit it and where there is no gold."""
    gold = gold_of(connection, trace_id)
    if gold is None or not _has_submitted(connection, annotator, trace_id, PRACTICE):
        return None
    own, right = _errors(connection, annotator, trace_id, PRACTICE), _errors(connection, gold, trace_id, FIRST)
    pairs = [(a, b) for _, a, b in pair_errors(own, right, parents=parents_of(connection, trace_id))]
    met = {label.label_id for pair in pairs for label in pair}
    return Feedback(
        trace_id=trace_id,
        gold=gold,
        own_scores=_scores(connection, annotator, trace_id, PRACTICE),
        gold_scores=_scores(connection, gold, trace_id, FIRST),
        caught=tuple(pairs),
        missed=tuple(label for label in right if label.label_id not in met),
        unmatched=tuple(label for label in own if label.label_id not in met),
    )


def gold_of(connection: Connection, trace_id: str) -> str | None:
    """Whose labels are the right answers of a practice trace: the adjudicated ones, else the queue author's."""
    adjudicated = select(tables.annotator.c.annotator).where(tables.annotator.c.kind == ADJUDICATED)
    authors = (
        select(tables.queue.c.author)
        .join(tables.queue_item, tables.queue_item.c.queue_key == tables.queue.c.queue_key)
        .where(tables.queue_item.c.trace_id == trace_id, tables.queue_item.c.is_practice.is_(True))
        .order_by(tables.queue.c.queue_key)
    )
    for name in [*connection.scalars(adjudicated), *connection.scalars(authors)]:
        if _has_submitted(connection, name, trace_id, FIRST):
            return str(name)
    return None


def practised(connection: Connection, annotator: str) -> list[Feedback]:
    """Feedback on every practice trace that this person submitted and that has a gold."""
    traces = connection.scalars(
        select(_review.c.trace_id)
        .where(_review.c.annotator == annotator, _review.c.occasion == PRACTICE, _review.c.status == "submitted")
        .distinct()
    ).all()
    feedbacks = [feedback(connection, annotator, trace_id) for trace_id in sorted(traces)]
    return [one for one in feedbacks if one is not None]


def calibration(found: list[Feedback]) -> pd.DataFrame:
    """dimension, n (traces that both scored), own, gold (means), exact (share alike); dimensions with n > 0."""
    rows = []
    for dimension in DIMENSIONS:
        pairs = [(one.own_scores.get(dimension), one.gold_scores.get(dimension)) for one in found]
        both = [(own, gold) for own, gold in pairs if own is not None and gold is not None]
        if both:
            n = len(both)
            own, gold = (sum(pair[side] for pair in both) / n for side in (0, 1))
            rows.append((dimension, n, own, gold, sum(a == b for a, b in both) / n))
    return pd.DataFrame(rows, columns=["dimension", "n", "own", "gold", "exact"])


def _has_submitted(connection: Connection, annotator: str, trace_id: str, occasion: int) -> bool:
    own = (_review.c.annotator == annotator, _review.c.trace_id == trace_id, _review.c.occasion == occasion)
    status = connection.scalar(select(_review.c.status).where(newest(_review, ("annotator",), *own), *own))
    return status == "submitted"


def _errors(connection: Connection, annotator: str, trace_id: str, occasion: int) -> list[ErrorLabel]:
    table = tables.error_label
    own = (table.c.annotator == annotator, table.c.trace_id == trace_id, table.c.occasion == occasion)
    return [label for label in error_labels(connection, *own, table.c.phase == "blind") if label.is_complete]


def _scores(connection: Connection, annotator: str, trace_id: str, occasion: int) -> dict[str, float | None]:
    table = tables.score_label
    own = (table.c.annotator == annotator, table.c.trace_id == trace_id, table.c.occasion == occasion)
    return scores_of(score_labels(connection, *own, table.c.phase == "blind"))
