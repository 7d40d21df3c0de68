"""What judges and other people said of a trace, for those who have submitted it and asked to see it; nobody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, select
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracejury.app.api.answers import NotServedError, answered
from tracejury.app.api.rights import checked
from tracejury.app.grants import Grant
from tracejury.ingest.store import read_transaction
from tracejury.judging.adjudication.adjudication_items import ADJUDICATED
from tracejury.judging.labels import label_store as labels
from tracejury.judging.labels.anchoring import may_see_judges
from tracejury.judging.matching.comparison import compare_trace
from tracejury.judging.matching.pairs import Comparison
from tracejury.judging.records import ErrorLabel, Finding, ScoreLabel, Verdict
from tracejury.judging.store import Workspace, tables
from tracejury.judging.store.judge_models import judge_models_on

_error, _score = tables.error_label, tables.score_label


def reveal_routes(space: Callable[[], Workspace]) -> tuple[Route, ...]:
    """The route over a workspace that is opened when the first request comes."""

    async def reveal(request: Request) -> Response:
        trace_id, token = request.path_params["trace_id"], request.query_params.get("token")
        return await answered(lambda: _revealed(space(), trace_id, token))

    return (Route("/api/reveal/{trace_id:path}", reveal),)


def _revealed(space: Workspace, trace_id: str, token: object) -> dict[str, Any]:
    grant = checked(space, token, subject=trace_id)
    with read_transaction(space.engine) as connection:
        _must_be_revealed(connection, grant)
        return {
            "judge_models": [_judge_model(connection, grant, name) for name in judge_models_on(connection, trace_id)],
            "people": _people(connection, grant),
            "own_scores": _own_scores(connection, grant),
        }


def _must_be_revealed(connection: Connection, grant: Grant) -> None:
    if not may_see_judges(connection, annotator=grant.user, role="annotator", trace_id=grant.subject):
        raise NotServedError(
            403,
            "judges' findings and other annotators' labels are hidden until you submit this trace",
            "submit this trace first",
        )
    review = tables.review
    row = connection.execute(
        select(review.c.status, review.c.revealed)
        .where(
            review.c.annotator == grant.user,
            review.c.trace_id == grant.subject,
            review.c.occasion == grant.occasion,
        )
        .order_by(review.c.row_key.desc())
        .limit(1)
    ).one_or_none()
    if row is None or row.status != "submitted":
        raise NotServedError(
            403,
            "judges' findings and other annotators' labels are hidden until you submit this trace",
            "submit this trace first",
        )
    if not row.revealed:
        raise NotServedError(403, "judges' findings are not revealed on this trace", "choose Reveal first")


def _judge_model(connection: Connection, grant: Grant, name: str) -> dict[str, Any]:
    """One judge model's answers, the newest of each judge; `labels` are one's own errors that a finding is matched
    with.
    """
    comparison = compare_trace(connection, trace_id=grant.subject, reference=grant.user, judge_model=name)
    return {
        "name": name,
        "judges": [_answer(cell.rubric, cell.outcome) for cell in comparison.cells],
        "findings": [
            _finding(cell.rubric, finding, _matched(comparison, finding) if grant.occasion == 0 else [])
            for cell in comparison.cells
            if isinstance(cell.outcome, Verdict)
            for finding in cell.outcome.findings
        ],
    }


def _answer(rubric: str, outcome: Any) -> dict[str, Any]:
    is_verdict = isinstance(outcome, Verdict)
    return {
        "rubric": rubric,
        "state": outcome.state,
        "score": outcome.score if is_verdict else None,
        "reason": outcome.reason,
        "rationale": outcome.rationale if is_verdict else "",
    }


def _finding(rubric: str, finding: Finding, matched: list[str]) -> dict[str, Any]:
    return {
        "rubric": rubric,
        "dimension": finding.dimension,
        "impact": finding.impact,
        "category": finding.category,
        "description": finding.description,
        "evidence": finding.evidence,
        "evidence_place": finding.evidence_place,
        "evidence_span_id": finding.evidence_span_id,
        "citations": [[citation.cite, citation.span_id] for citation in finding.citations],
        "labels": matched,
    }


def _matched(comparison: Comparison, finding: Finding) -> list[str]:
    return [pair.error.label_id for pair in comparison.pairs if pair.error is not None and pair.finding == finding]


def _people(connection: Connection, grant: Grant) -> list[dict[str, Any]]:
    """Other people who have submitted this trace too, without their names; the gold is nobody."""
    trace_id = grant.subject
    gold = set(connection.scalars(select(tables.annotator.c.annotator).where(tables.annotator.c.kind == ADJUDICATED)))
    done = labels.reviews(connection, tables.review.c.trace_id == trace_id)
    others = [r for r in done if r.status == "submitted" and r.annotator not in gold | {grant.user}]
    here = (_error.c.trace_id == trace_id, _error.c.occasion == 0)
    scored = (_score.c.trace_id == trace_id, _score.c.occasion == 0)
    return [
        {
            "name": f"Person {number}",
            "no_error": review.no_error,
            "errors": [
                _label(one)
                for one in labels.error_labels(connection, _error.c.annotator == review.annotator, *here)
                if one.is_complete
            ],
            "scores": [
                _given(one) for one in labels.score_labels(connection, _score.c.annotator == review.annotator, *scored)
            ],
        }
        for number, review in enumerate(others, 1)
    ]


def _label(label: ErrorLabel) -> dict[str, Any]:
    return {
        "dimensions": list(label.dimensions),
        "impact": label.impact,
        "category": label.category,
        "description": label.description,
        "span_ids": list(label.span_ids),
        "evidence": [asdict(piece) for piece in label.evidence],
        "phase": label.phase,
    }


def _own_scores(connection: Connection, grant: Grant) -> dict[str, Any]:
    """One's own blind scores by dimension: a score given after the reveal stands beside them."""
    own = (_score.c.annotator == grant.user, _score.c.trace_id == grant.subject, _score.c.occasion == grant.occasion)
    blind = labels.score_labels(connection, *own, _score.c.phase == "blind")
    return {score.dimension: _given(score) for score in blind}


def _given(score: ScoreLabel) -> dict[str, Any]:
    return {
        "dimension": score.dimension,
        "value": None if score.value is None else int(score.value),
        "not_applicable": score.not_applicable,
        "phase": score.phase,
    }
