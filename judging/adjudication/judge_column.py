"""The judge as one more rater on the adjudicator's desk, unnamed like the others: only where a researcher asks for it.

A gold that was decided beside a judge's answers is not independent of them, so every gold label says which judge
was shown.
"""

from __future__ import annotations

import time

from sqlalchemy import Connection, delete, insert, select

from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.adjudication.disputes import Opinion
from tracejury.judging.matching.comparison import compare_trace
from tracejury.judging.records import DIMENSIONS, Dimension, ErrorLabel, Evidence, Finding, Verdict
from tracejury.judging.store import tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.judge_models import judge_models

SETTING = "adjudicate_with_judge"
JUDGE = "\x00judge"
"""Stands for the judge among raters; no person can have this name."""
PREFIX = "finding-"


class JudgeColumnError(ValueError):
    """A judge that cannot be shown; the message says why."""


def judge_shown(connection: Connection) -> str | None:
    """The judge model that is shown to adjudicators; None, the default: people only."""
    value = connection.scalar(select(tables.setting.c.value).where(tables.setting.c.name == SETTING))
    return None if value is None else str(value)


def show_judge(connection: Connection, judge_model: str | None, *, by: str) -> None:
    """Show this judge model to adjudicators, or none. Raises `JudgeColumnError` for one that has judged nothing."""
    before = judge_shown(connection)
    if judge_model is not None and judge_model not in judge_models(connection):
        raise JudgeColumnError(f"{judge_model!r} has judged no trace in this workspace")
    if judge_model == before:
        return
    connection.execute(delete(tables.setting).where(tables.setting.c.name == SETTING))
    if judge_model is not None:
        now = time.time_ns() // 1000
        connection.execute(insert(tables.setting).values(name=SETTING, value=judge_model, created_at=now))
    detail = {"from": before, "to": judge_model}
    record(connection, who=by, what="judge shown to adjudicators", subject=judge_model or "none", detail=detail)


def judge_opinion(connection: Connection, trace_id: str, judge_model: str) -> Opinion | None:
    """What the judge model said of the trace in its first repeat, in a rater's words; None where it said nothing."""
    comparison = compare_trace(connection, trace_id=trace_id, reference=JUDGE, judge_model=judge_model)
    answers = [cell for cell in comparison.cells if isinstance(cell.outcome, Verdict)]
    if not answers:
        return None
    scores: dict[str, float | None] = {
        cell.rubric: None if cell.outcome.score is None else float(cell.outcome.score)
        for cell in answers
        if isinstance(cell.outcome, Verdict) and cell.rubric in DIMENSIONS
    }
    errors = [
        _label(trace_id, pair.finding_key, pair.finding, pair.rubric)
        for pair in comparison.pairs
        if pair.finding is not None and pair.finding_key is not None
    ]
    return Opinion(errors=errors, scores=scores)


def finding_labels(connection: Connection, label_ids: list[str]) -> list[ErrorLabel]:
    """The findings behind these label ids, as labels; ids that are none are left out."""
    keys = [int(one[len(PREFIX) :]) for one in label_ids if one.startswith(PREFIX) and one[len(PREFIX) :].isdecimal()]
    judge_model = judge_shown(connection)
    if not keys or judge_model is None:
        return []
    rows = connection.scalars(
        select(tables.cell.c.trace_id)
        .join(tables.finding, tables.finding.c.cell_key == tables.cell.c.cell_key)
        .where(is_one_of(tables.finding.c.finding_key, keys))
        .distinct()
    )
    opinions = [judge_opinion(connection, trace_id, judge_model) for trace_id in rows.all()]
    labels = {label.label_id: label for one in opinions if one is not None for label in one.errors}
    return [labels[one] for one in label_ids if one in labels]


def _label(trace_id: str, key: int, finding: Finding, judge: str | None) -> ErrorLabel:
    spans = dict.fromkeys(citation.span_id for citation in finding.citations if citation.span_id is not None)
    dimensions: tuple[Dimension, ...] = tuple(
        one for one in DIMENSIONS if one == (finding.dimension if finding.dimension is not None else judge)
    )
    quote = Evidence(quote=finding.evidence, span_id=finding.evidence_span_id)
    return ErrorLabel(
        label_id=f"{PREFIX}{key}",
        trace_id=trace_id,
        annotator=JUDGE,
        span_ids=tuple(spans),
        dimensions=dimensions,
        impact=finding.impact,
        category=finding.category,
        description=finding.description,
        evidence=(quote,) if finding.evidence else (),
    )
