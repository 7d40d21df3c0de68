"""The routes of the Compare page: the text behind a pair, and decisions on pairs and findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracejury.app.api.answers import NotServedError, Readings, answered, answered_body
from tracejury.app.api.rights import checked
from tracejury.app.components.comparison.payload import pairs_payload, texts_payload
from tracejury.app.grants import Grant
from tracejury.app.session import workspace
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.anchoring import may_see_judges
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.matching.comparison import compare_trace, decided_revision
from tracejury.judging.matching.deciding import decide, undo_decision
from tracejury.judging.matching.finding_reviews import review_finding
from tracejury.judging.matching.pairs import Comparison, Pair
from tracejury.judging.records import FindingReview, MatchStatus
from tracejury.judging.store import Workspace
from tracejury.judging.store.locks import MATCHES, labels_of

STATUSES: tuple[MatchStatus, ...] = ("confirmed", "rejected")
FINDING_REVIEWS: tuple[FindingReview, ...] = get_args(FindingReview)
UNDO = "undo"
RELOAD = "reload the page"
PURPOSE = "compare"
"""Of tokens for reading and deciding a trace's pairs; made only for those who may see judges' answers."""


def compare_routes(space: Callable[[], Workspace]) -> tuple[Route, ...]:
    """The routes over a workspace that is opened when the first request comes."""
    readings = Readings(space)

    async def texts(request: Request) -> Response:
        trace_id, query = request.path_params["trace_id"], request.query_params
        return await answered(lambda: _texts(space(), readings, trace_id, query))

    async def decision(request: Request) -> Response:
        return await answered_body(request, lambda body: _decide(space(), readings, body))

    return (
        Route("/api/compare/texts/{trace_id:path}", texts),
        Route("/api/compare/decide", decision, methods=["POST"]),
    )


def _texts(space: Workspace, readings: Readings, trace_id: str, query: Mapping[str, str]) -> dict[str, Any]:
    from tracejury.judging.labels.label_store import error_labels
    from tracejury.judging.store.tables import error_label

    grant = checked(space, query.get("token"), subject=trace_id, purpose=PURPOSE, role="adjudicator")
    with read_transaction(space.engine) as connection:
        _must_not_be_blind(connection, grant)
        known = error_labels(connection, error_label.c.trace_id == trace_id)
        error = next((e for e in known if e.label_id == query.get("label")), None)
        finding = _finding(connection, trace_id, query.get("finding") or "")
    note_seen(space.engine, annotator=grant.user, trace_ids=[trace_id], what="Compare")
    return {"spans": texts_payload(Pair(state="missed", error=error, finding=finding), readings.get(trace_id))}


def _finding(connection: Any, trace_id: str, key: str) -> Any:
    """The finding of that key, None when it is none of this trace's."""
    from sqlalchemy import select

    from tracejury.judging.runs.verdicts import findings_of
    from tracejury.judging.store.tables import cell, finding

    if not key.isdecimal():
        return None
    cell_key = connection.scalar(
        select(finding.c.cell_key)
        .join(cell, cell.c.cell_key == finding.c.cell_key)
        .where(finding.c.finding_key == int(key), cell.c.trace_id == trace_id)
    )
    return None if cell_key is None else dict(findings_of(connection, [cell_key])[cell_key])[int(key)]


def _decide(space: Workspace, readings: Readings, body: Mapping[str, Any]) -> dict[str, Any]:
    """Store one decision and give the pairs as they stand after it."""
    trace_id = str(body.get("trace_id"))
    grant = checked(space, body.get("token"), subject=trace_id, purpose=PURPOSE, role="adjudicator")
    reference, judge_model, repeat = str(body.get("reference")), str(body.get("judge_model")), body.get("repeat") or 0
    if not isinstance(repeat, int):
        raise NotServedError(422, f"repeat is {repeat!r}, expected the number of a repeat", RELOAD)
    with write_transaction(space.engine, MATCHES, labels_of(trace_id)) as connection:
        _must_not_be_blind(connection, grant)
        before = compare_trace(
            connection, trace_id=trace_id, reference=reference, judge_model=judge_model, repeat=repeat
        )
        _store(connection, before, body, grant.user)
        after = compare_trace(
            connection, trace_id=trace_id, reference=reference, judge_model=judge_model, repeat=repeat
        )
        now = decided_revision(connection)
    return {"pairs": pairs_payload(after, readings.get(trace_id)), "revision": now}


def _must_not_be_blind(connection: Connection, grant: Grant) -> None:
    if not may_see_judges(connection, annotator=grant.user, role="adjudicator", trace_id=grant.subject):
        raise NotServedError(403, "you are labelling this trace blind", "submit it first")


def _store(connection: Any, before: Comparison, body: Mapping[str, Any], author: str) -> None:
    findings = {pair.finding_key for pair in before.pairs if pair.finding_key is not None}
    errors = {pair.error.label_id for pair in before.pairs if pair.error is not None}
    finding_key, label_id = body.get("finding_key"), body.get("label_id")
    if finding_key not in findings:
        raise NotServedError(422, f"finding {finding_key!r} is not a finding of this judge on the trace", RELOAD)
    if label_id is not None:
        status = body.get("status")
        if label_id not in errors:
            raise NotServedError(422, f"error {label_id!r} is not an error of this annotator on the trace", RELOAD)
        if status == UNDO:
            _undo(connection, label_id=str(label_id), finding_key=int(finding_key), author=author)
            return
        if status not in STATUSES:
            raise NotServedError(422, f"{status!r} is not a decision: use {' or '.join(STATUSES)}", RELOAD)
        decide(connection, label_id=str(label_id), finding_key=int(finding_key), status=status, author=author)
        return
    review = body.get("review")
    if review is not None and review not in FINDING_REVIEWS:
        raise NotServedError(
            422, f"{review!r} is not a review of a finding: use one of {', '.join(FINDING_REVIEWS)}", RELOAD
        )
    if any(pair.error is not None for pair in before.pairs if pair.finding_key == finding_key):
        raise NotServedError(
            409, "this finding is matched with an error", "reject the match before you review the finding"
        )
    review_finding(connection, finding_key=int(finding_key), review=review, author=author)


def _undo(connection: Connection, *, label_id: str, finding_key: int, author: str) -> None:
    try:
        undo_decision(connection, label_id=label_id, finding_key=finding_key, author=author)
    except KeyError as error:
        raise NotServedError(409, "there is no decision of yours on this match to undo", RELOAD) from error


ROUTES = compare_routes(workspace)
