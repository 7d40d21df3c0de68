"""Practice: a person's labels on a practice trace beside the right ones, shown as soon as they have submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources

import pandas as pd
from sqlalchemy import Connection, Engine, select

from tracejury.ingest.batch import ingest
from tracejury.ingest.store import write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.adjudication.adjudication_items import ADJUDICATED
from tracejury.judging.adjudication.disputes import pair_errors, scores_of
from tracejury.judging.labels.apply_ops import apply_ops
from tracejury.judging.labels.exchange import read_tracejury
from tracejury.judging.labels.label_store import error_labels, newest, score_labels
from tracejury.judging.labels.ops import Op
from tracejury.judging.queues.places import traces_of
from tracejury.judging.queues.queue_store import (
    FIRST,
    PRACTICE,
    QueueError,
    QueueSpec,
    make_queue,
)
from tracejury.judging.records import DIMENSIONS, ErrorLabel
from tracejury.judging.store import tables
from tracejury.judging.store.locks import QUEUES
from tracejury.judging.store.spans import parents_of

_review = tables.review
SHIPPED = "shipped answers"
"""Under whose name the right answers of the shipped trace stand: labels of practice, in no estimate."""
SHIPPED_TRACE = "e4043bbcbac772732118f0a8679c9546"
_SHIPPED_BY = "ada"


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """`caught` pairs one's own error with the right one; scores by dimension, None for not applicable."""

    trace_id: str
    answers_by: str
    own_scores: Mapping[str, float | None]
    correct_scores: Mapping[str, float | None]
    caught: tuple[tuple[ErrorLabel, ErrorLabel], ...]
    missed: tuple[ErrorLabel, ...]
    unmatched: tuple[ErrorLabel, ...]


def feedback(connection: Connection, annotator: str, trace_id: str) -> Feedback | None:
    """How a person's practice compares with the correct answers; None before they submit it, and without answers."""
    answers_by = answers_of(connection, trace_id)
    if answers_by is None or not _has_submitted(connection, annotator, trace_id, PRACTICE):
        return None
    occasion = _occasion_of(answers_by)
    own, right = _errors(connection, annotator, trace_id, PRACTICE), _errors(connection, answers_by, trace_id, occasion)
    pairs = [(a, b) for _, a, b in pair_errors(own, right, parents=parents_of(connection, trace_id))]
    met = {label.label_id for pair in pairs for label in pair}
    return Feedback(
        trace_id=trace_id,
        answers_by=answers_by,
        own_scores=_scores(connection, annotator, trace_id, PRACTICE),
        correct_scores=_scores(connection, answers_by, trace_id, occasion),
        caught=tuple(pairs),
        missed=tuple(label for label in right if label.label_id not in met),
        unmatched=tuple(label for label in own if label.label_id not in met),
    )


def answers_of(connection: Connection, trace_id: str) -> str | None:
    """Whose labels are the right answers of a practice trace: whom its queue names, else the adjudicated ones, else
    the queue author's.
    """
    adjudicated = select(tables.annotator.c.annotator).where(tables.annotator.c.kind == ADJUDICATED)
    queues = connection.execute(
        select(tables.queue.c.author, tables.queue.c.answers_by)
        .join(tables.queue_item, tables.queue_item.c.queue_key == tables.queue.c.queue_key)
        .where(tables.queue_item.c.trace_id == trace_id, tables.queue_item.c.is_practice.is_(True))
        .order_by(tables.queue.c.queue_key)
    ).all()
    named = [row.answers_by for row in queues if row.answers_by is not None]
    names = [*named, *connection.scalars(adjudicated), *(row.author for row in queues)]
    return next((str(name) for name in names if _has_answers(connection, name, trace_id)), None)


def with_answers(connection: Connection, trace_ids: Sequence[str], *, answers_by: str | None, author: str) -> list[str]:
    """The traces that can be practised: `answers_by` submitted them; None: they are adjudicated or the author's."""
    adjudicated = select(tables.annotator.c.annotator).where(tables.annotator.c.kind == ADJUDICATED)
    names = [*connection.scalars(adjudicated), author] if answers_by is None else [answers_by]
    return [one for one in trace_ids if any(_has_answers(connection, name, one) for name in names)]


def make_practice(connection: Connection, spec: QueueSpec, trace_ids: Sequence[str], *, now: int) -> int:
    """Make a practice queue; its key. Raises `QueueError`, also for a trace without right answers."""
    known = set(with_answers(connection, trace_ids, answers_by=spec.answers_by, author=spec.author))
    unknown = [one for one in trace_ids if one not in known]
    if unknown:
        whose = spec.answers_by or f"the gold or {spec.author}"
        raise QueueError(
            f"trace {unknown[0]} has no correct answers from {whose}: label and submit it first, or name whose labels "
            "are correct"
        )
    return make_queue(connection, spec, trace_ids, now=now)


def make_shipped(engine: Engine, *, author: str, now: int) -> int:
    """Take in the shipped trace with its known errors and make a practice queue of it; the queue's key.

    Raises `QueueError` where a queue of that name is there, or an open blind queue holds the trace.
    """
    data = resources.files("tracejury.data")
    with resources.as_file(data / "samples" / "trail" / f"{SHIPPED_TRACE}.json") as file:
        ingest(engine, [file])
    apply_ops(
        engine, annotator=SHIPPED, trace_id=SHIPPED_TRACE, base_revision=0, ops=_shipped_answers(), occasion=PRACTICE
    )
    spec = QueueSpec(name="First practice", author=author, practice=True, answers_by=SHIPPED)
    with write_transaction(engine, QUEUES) as connection:
        return make_queue(connection, spec, [SHIPPED_TRACE], now=now)


def _shipped_answers() -> list[Op]:
    """The known errors and scores as one person's work; the same ids each time, so that twice changes nothing."""
    content = (resources.files("tracejury.data") / "labels" / f"{_SHIPPED_BY}.json").read_bytes()
    answers = read_tracejury(content, SHIPPED)
    errors = [
        {
            "label_id": f"shipped-{error.label_id}",
            **{name: getattr(error, name) for name in ("dimensions", "impact", "category", "description", "span_ids")},
            "evidence": [asdict(piece) for piece in error.evidence],
        }
        for error in answers.errors
        if error.trace_id == SHIPPED_TRACE
    ]
    scores = [
        {
            "dimension": one.dimension,
            "value": None if one.value is None else int(one.value),
            "not_applicable": one.not_applicable,
        }
        for one in answers.scores
        if one.trace_id == SHIPPED_TRACE
    ]
    return [
        *(Op(op_id=f"{error['label_id']}", kind="error.put", payload=error) for error in errors),
        *(Op(op_id=f"shipped-{score['dimension']}", kind="score.put", payload=score) for score in scores),
        Op(op_id="shipped-submitted", kind="review.put", payload={"status": "submitted"}),
    ]


def practised(connection: Connection, annotator: str) -> list[Feedback]:
    """Feedback on every practice trace that this person submitted and that has correct answers."""
    traces = connection.scalars(
        select(_review.c.trace_id)
        .where(_review.c.annotator == annotator, _review.c.occasion == PRACTICE, _review.c.status == "submitted")
        .distinct()
    ).all()
    feedbacks = [feedback(connection, annotator, trace_id) for trace_id in sorted(traces)]
    return [one for one in feedbacks if one is not None]


@dataclass(frozen=True, kw_only=True)
class PracticeScore:
    """`points` reached of `of`: one for each error caught and each score equal to the right one.

    `of` counts the errors of either side (a pair once) and the right scores.
    """

    points: int
    of: int

    @property
    def percent(self) -> float | None:
        """Of the points, None where there are none to reach."""
        return 100 * self.points / self.of if self.of else None


def practice_score(feedbacks: Sequence[Feedback]) -> PracticeScore:
    """How near a person's practice is to the right answers."""
    equal = [(one.own_scores.get(key, -1), right) for one in feedbacks for key, right in one.correct_scores.items()]
    caught = sum(len(one.caught) for one in feedbacks)
    apart = sum(len(one.missed) + len(one.unmatched) for one in feedbacks)
    return PracticeScore(points=caught + sum(own == right for own, right in equal), of=caught + apart + len(equal))


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a person stands before a queue that opens after practice: traces `done` of `total`, and the score."""

    practice: str
    practice_key: int
    done: int
    total: int
    score: PracticeScore
    pass_mark: int

    @property
    def has_passed(self) -> bool:
        """Whether all traces are practised and the pass mark is reached."""
        percent = self.score.percent
        return self.done == self.total and percent is not None and percent >= self.pass_mark


def standing(connection: Connection, queue_key: int, annotator: str) -> Standing | None:
    """Where this person stands before the queue; None for a queue that asks for no practice."""
    queue = tables.queue
    row = connection.execute(select(queue).where(queue.c.queue_key == queue_key)).one_or_none()
    if row is None or row.after_key is None:
        return None
    name = connection.scalar(select(queue.c.name).where(queue.c.queue_key == row.after_key))
    traces = traces_of(connection, row.after_key)
    feedbacks = [one for one in (feedback(connection, annotator, trace_id) for trace_id in traces) if one is not None]
    return Standing(
        practice=str(name), practice_key=row.after_key, done=len(feedbacks), total=len(traces),
        score=practice_score(feedbacks), pass_mark=row.pass_mark or 0,
    )  # fmt: skip


RESULT_COLUMNS = ("annotator", "traces", "caught", "missed", "unmatched", "points", "of", "percent")


def results(connection: Connection, queue_key: int) -> pd.DataFrame:
    """`RESULT_COLUMNS` of everyone who submitted a trace of a practice queue; percent NaN where nothing is to reach."""
    traces = traces_of(connection, queue_key)
    names = connection.scalars(
        select(_review.c.annotator)
        .where(is_one_of(_review.c.trace_id, traces), _review.c.occasion == PRACTICE, _review.c.annotator != SHIPPED)
        .distinct()
        .order_by(_review.c.annotator)
    ).all()
    rows = []
    for name in names:
        feedbacks = [one for one in (feedback(connection, name, trace_id) for trace_id in traces) if one is not None]
        counts = [sum(len(getattr(one, part)) for one in feedbacks) for part in ("caught", "missed", "unmatched")]
        score = practice_score(feedbacks)
        rows.append((name, len(feedbacks), *counts, score.points, score.of, score.percent))
    return pd.DataFrame(rows, columns=list(RESULT_COLUMNS)).astype({"percent": "float64"})


def calibration(feedbacks: list[Feedback]) -> pd.DataFrame:
    """dimension, n (traces that both scored), own, correct (means), exact (share alike); dimensions with n > 0."""
    rows = []
    for dimension in DIMENSIONS:
        pairs = [(one.own_scores.get(dimension), one.correct_scores.get(dimension)) for one in feedbacks]
        both = [(own, correct) for own, correct in pairs if own is not None and correct is not None]
        if both:
            n = len(both)
            own, correct = (sum(pair[side] for pair in both) / n for side in (0, 1))
            rows.append((dimension, n, own, correct, sum(a == b for a, b in both) / n))
    return pd.DataFrame(rows, columns=["dimension", "n", "own", "correct", "exact"])


def _occasion_of(answers_by: str) -> int:
    return PRACTICE if answers_by == SHIPPED else FIRST


def _has_answers(connection: Connection, answers_by: str, trace_id: str) -> bool:
    return _has_submitted(connection, answers_by, trace_id, _occasion_of(answers_by))


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
