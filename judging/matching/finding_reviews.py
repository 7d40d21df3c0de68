"""A person's review of a finding that matches no reference error; a valid new error becomes a candidate label."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from sqlalchemy import Connection, insert, select

from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.matching.candidates import finding_dimensions
from tracejury.judging.matching.match_store import newest_words
from tracejury.judging.records import DIMENSIONS, ErrorLabel, Evidence, FindingReview
from tracejury.judging.runs.verdicts import findings_of, now
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import version_names
from tracejury.judging.store.people import ensure_annotator

CANDIDATES = "candidates"
"""Whose labels the accepted findings of judges are, until somebody adjudicates them."""
_finding, _cell = tables.finding, tables.cell


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


def finding_reviews(connection: Connection) -> dict[int, FindingReview]:
    """The newest review of each finding that its author has not withdrawn.

    A jury's finding that nobody has reviewed has the review of its members' findings: the best of theirs.
    """
    table = tables.finding_review
    rows = connection.execute(
        select(table.c.finding_key, table.c.author, table.c.review).order_by(table.c.row_key)
    ).all()
    newest: dict[tuple[int, str], FindingReview | None] = {}
    for finding_key, author, review in rows:
        newest.pop((finding_key, author), None)  # so that they stand in the order in which they were last given
        newest[finding_key, author] = review
    reviewed = {finding_key: review for (finding_key, _), review in newest.items() if review is not None}
    return {**_reviews_of_members(connection, reviewed), **reviewed} if reviewed else {}


_BEST_LAST: tuple[FindingReview, ...] = ("false alarm", "duplicate", "valid new error")


def _reviews_of_members(connection: Connection, reviewed: Mapping[int, FindingReview]) -> dict[int, FindingReview]:
    joint = tables.joint_finding
    pairs = connection.execute(select(joint.c.finding_key, joint.c.member_key)).all()
    reviews = [(row.finding_key, reviewed[row.member_key]) for row in pairs if row.member_key in reviewed]
    return dict(sorted(reviews, key=lambda one: _BEST_LAST.index(one[1])))


def finding_decisions(connection: Connection) -> pd.DataFrame:
    """Every person's review that stands of every finding: trace_id, dimension, judge_model, finding_id, reviewer,
    review.

    The input of `judging.agreement.matchers`: a review that its author withdrew no longer counts.
    """
    names = version_names(connection)
    words = newest_words(connection, tables.finding_review, ("finding_key", "author"), ("review",))
    statements = [
        (
            row.trace_id, names[row.judge_version].dimension, names[row.judge_version].judge_model, row.finding_key,
            row.author, row.review,
        )
        for row in words
        if row.review is not None
    ]  # fmt: skip
    return pd.DataFrame(
        statements, columns=["trace_id", "dimension", "judge_model", "finding_id", "reviewer", "review"]
    )
