"""TRAIL's annotations as labels, and judges' answers in its form as verdicts or failures."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import NAMESPACE_URL, uuid5

from tracejury.ingest.labels import AnnotatedError, Annotation, FailedReply, JudgeReply
from tracejury.ingest.trace import Json
from tracejury.judging.judges.citations import resolve_citations
from tracejury.judging.judges.evidence import place_evidence
from tracejury.judging.judges.judge import ERRORS_ONLY
from tracejury.judging.judges.trace_text import TraceText
from tracejury.judging.labels.exchange import Labels
from tracejury.judging.records import (
    Call,
    Citation,
    ErrorLabel,
    Evidence,
    Failure,
    Finding,
    Review,
    ScoreLabel,
    Verdict,
)
from tracejury.judging.taxonomy import dimensions_of

ANNOTATOR = "trail"
JUDGE = "trail"


def to_labels(annotations: Sequence[Annotation], annotator: str = ANNOTATOR) -> Labels:
    """Error labels (dimensions pre-filled from the taxonomy), the five scores as `trail.<name>`, reviews."""
    labels = Labels()
    for annotation in annotations:
        labels.errors += [_error(error, annotator) for error in annotation.errors]
        labels.scores += [
            ScoreLabel(
                trace_id=score.trace_id,
                annotator=annotator,
                dimension=f"trail.{score.name}",
                value=score.score,
                note=score.reasoning or "",
            )
            for score in annotation.scores
        ]
        labels.reviews.append(
            Review(
                trace_id=annotation.trace_id,
                annotator=annotator,
                status="submitted",
                no_error=not annotation.errors,
            )
        )
        labels.warnings += [f"{annotation.file}: {warning}" for warning in annotation.all_warnings]
    return labels


def _error(error: AnnotatedError, annotator: str) -> ErrorLabel:
    attributes: dict[str, Json] = {"index": error.index, "category_raw": error.category_raw}
    if error.location is not None and error.location not in error.span_ids:
        attributes["location_raw"] = error.location
    if error.warnings:
        attributes["warnings"] = list(error.warnings)
    span_id = error.span_ids[0] if error.span_ids else None
    return ErrorLabel(
        label_id=str(uuid5(NAMESPACE_URL, f"tracejury:{annotator}:{error.trace_id}:{error.index}")),
        trace_id=error.trace_id,
        annotator=annotator,
        span_ids=error.span_ids,
        dimensions=dimensions_of(error.category or error.category_raw),
        impact=error.impact,
        description=error.description,
        category=error.category,
        evidence=(Evidence(quote=error.evidence, span_id=span_id),) if error.evidence else (),
        attributes=attributes,
    )


def to_outcome(reply: JudgeReply | FailedReply, *, model: str, reading: TraceText | None) -> Verdict | Failure:
    """A judge's answer as a verdict; citations are resolved in `reading` (None: the trace is not there yet)."""
    call = Call(model=model, raw_reply=reply.raw)
    if isinstance(reply, FailedReply):
        return Failure(rubric=JUDGE, trace_id=reply.trace_id, state=reply.state, reason=reply.reason, call=call)
    scores = "; ".join(
        f"{s.name} {'not given' if s.score is None else f'{s.score:g}'}: {s.reasoning or ''}".strip(": ")
        for s in reply.scores
    )
    return Verdict(
        rubric=JUDGE,
        trace_id=reply.trace_id,
        state="errors_only",
        score=None,
        criteria="",
        rationale=scores,
        findings=tuple(_finding(error, reading) for error in reply.errors),
        call=call,
        reason=ERRORS_ONLY,
        notes=reply.warnings,
    )


def _finding(error: AnnotatedError, reading: TraceText | None) -> Finding:
    cites = error.span_ids or ((error.location,) if error.location else ())
    unresolved = tuple(Citation(cite=cite, span_id=None) for cite in cites)
    citations = unresolved if reading is None else resolve_citations(cites, reading)
    cited = [citation.span_id for citation in citations if citation.span_id is not None]
    place = None if reading is None else place_evidence(reading, error.evidence, cited)
    return Finding(
        description=error.description,
        evidence=error.evidence,
        citations=citations,
        impact=error.impact,
        category=error.category or error.category_raw or None,
        evidence_place=None if place is None else place.place,
        evidence_span_id=None if place is None else place.span_id,
    )
