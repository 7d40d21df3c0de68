"""What to label next: how much more often each strategy draws a trace. Chances are known, so rates stay unbiased."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import orjson
from sqlalchemy import Connection, Row, func, select

from tracejury.judging.checks import MODEL
from tracejury.judging.queues import queueing
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import is_own_word

Stratum = Literal["format", "agent", "model", "length"]
STRATA: tuple[Stratum, ...] = ("format", "agent", "model", "length")
LENGTHS = (0, 10, 30, 100)  # spans at which a stratum of lengths begins
PRIOR_TRACES = 1.0  # traces of errors that the mean over all labelled traces weighs in a bucket of the checks


def strata(rows: Sequence[Row[Any]], by: Stratum) -> dict[str, str]:
    """The stratum of each trace: its format, its agents, its models, or its number of spans in four classes."""
    match by:
        case "format":
            return {row.trace_id: str(row.format) for row in rows}
        case "agent":
            return {row.trace_id: str(row.agents) for row in rows}
        case "model":
            return {row.trace_id: str(row.models) for row in rows}
        case "length":
            return {row.trace_id: length_class(row.spans) for row in rows}


def length_class(spans: int) -> str:
    """The class of a number of spans: 0-9, 10-29, 30-99 or 100+."""
    for low, high in pairwise(LENGTHS):
        if spans < high:
            return f"{low}-{high - 1}"
    return f"{LENGTHS[-1]}+"


def judge_spread(connection: Connection) -> dict[str, float]:
    """How far the judges' scores of a trace are apart (`queueing.spread`); traces judged once are left out."""
    cell = tables.cell
    rows = connection.execute(
        select(cell.c.trace_id, cell.c.rubric, cell.c.score).where(
            cell.c.state == "scored", cell.c.score.is_not(None), cell.c.rubric.in_(DIMENSIONS), is_own_word()
        )
    )
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trace_id, judge, score in rows:
        scores[trace_id][judge].append(score)
    spreads = {trace_id: queueing.spread(by_judge.values()) for trace_id, by_judge in scores.items()}
    return {trace_id: value for trace_id, value in spreads.items() if value is not None}


def predicted_errors(connection: Connection, trace_ids: Collection[str]) -> dict[str, float]:
    """How many errors people are expected to mark in each trace, from the checks and from people's labels so far.

    The mean number of errors of submitted traces with as many findings of the offline checks (3 stands for more),
    drawn to the mean of all by `PRIOR_TRACES` trace; the number of findings itself while nobody has labelled.
    """
    findings = _findings_of_checks(connection)
    buckets = {trace_id: min(findings.get(trace_id, 0), 3) for trace_id in trace_ids}
    labelled = _errors_of_people(connection)
    if not labelled:
        return {trace_id: float(bucket) for trace_id, bucket in buckets.items()}
    everywhere = sum(labelled.values()) / len(labelled)
    known: dict[int, list[float]] = defaultdict(list)
    for trace_id, errors in labelled.items():
        known[min(findings.get(trace_id, 0), 3)].append(errors)
    expected = {
        bucket: (sum(known[bucket]) + PRIOR_TRACES * everywhere) / (len(known[bucket]) + PRIOR_TRACES)
        for bucket in range(4)
    }
    return {trace_id: expected[bucket] for trace_id, bucket in buckets.items()}


def rarity(rows: Sequence[Row[Any]]) -> dict[str, float]:
    """How rare the rarest tool or agent of each trace is: traces in all over traces that have it; 0 without any."""
    names = {row.trace_id: {*orjson.loads(row.tools), *orjson.loads(row.agents)} for row in rows}
    common = Counter(name for own in names.values() for name in own)
    return {trace_id: max((len(names) / common[name] for name in own), default=0.0) for trace_id, own in names.items()}


def recorded_chances(connection: Connection) -> dict[str, float | None] | None:
    """The chance with which a queue drew each of its traces, practice left out; None where no queue holds any.

    A trace's chance is None where one of its queues recorded none, as for a trace chosen by hand: it may have been
    labelled for that. Where several queues drew by chances below 1, nobody knows the chance of a trace to be in any of
    them: all are None.
    """
    item = tables.queue_item
    rows = connection.execute(
        select(item.c.queue_key, item.c.trace_id, item.c.inclusion).where(item.c.is_practice.is_(False))
    ).all()
    if not rows:
        return None
    drawn = {row.queue_key for row in rows if row.inclusion is not None and row.inclusion < 1}
    is_one = len(drawn) == 0 or len({row.queue_key for row in rows}) == 1
    chances: dict[str, float | None] = {}
    for row in rows:
        is_known = is_one and chances.get(row.trace_id, 1.0) is not None
        chances[row.trace_id] = row.inclusion if is_known else None
    return chances


def is_equal(chances: Mapping[str, float | None]) -> bool:
    """Whether all traces had the same chance, which is known."""
    return None not in chances.values() and len({round(one or 0.0, 9) for one in chances.values()}) < 2


def _findings_of_checks(connection: Connection) -> dict[str, int]:
    """How many findings the newest cells of the offline checks have on each trace."""
    cell, finding, version = tables.cell, tables.finding, tables.judge_version
    newest = (
        select(func.max(cell.c.cell_key))
        .join(version, version.c.judge_version == cell.c.judge_version)
        .where(version.c.model == MODEL, cell.c.state == "scored")
        .group_by(cell.c.trace_id, cell.c.rubric)
    )
    rows = connection.execute(
        select(cell.c.trace_id, func.count())
        .join(finding, finding.c.cell_key == cell.c.cell_key)
        .where(cell.c.cell_key.in_(newest))
        .group_by(cell.c.trace_id)
    )
    return {trace_id: int(count) for trace_id, count in rows}


def _errors_of_people(connection: Connection) -> dict[str, float]:
    """Errors that a person marked on each trace that somebody submitted, the mean over those who did."""
    review, error = tables.review, tables.error_label
    people = connection.execute(
        select(review.c.trace_id, func.count(review.c.annotator.distinct()))
        .where(review.c.status == "submitted", review.c.occasion == 0)
        .group_by(review.c.trace_id)
    ).all()
    standing = select(func.max(error.c.row_key)).where(error.c.occasion == 0).group_by(error.c.label_id)
    rows = connection.execute(
        select(error.c.trace_id, func.count())
        .where(error.c.row_key.in_(standing), error.c.deleted.is_(False))
        .group_by(error.c.trace_id)
    )
    counts = {trace_id: int(count) for trace_id, count in rows}
    return {trace_id: counts.get(trace_id, 0) / count for trace_id, count in people}
