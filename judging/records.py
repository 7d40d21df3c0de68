"""What a person or a judge says of a trace: verdicts, findings that cite spans, labels, matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from tracejury.ingest.trace import Json

Dimension = Literal["LC", "EE", "PQ", "PA", "GF", "TS", "TC"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
Impact = Literal["low", "medium", "high"]
IMPACTS: tuple[Impact, ...] = get_args(Impact)
VerdictState = Literal["scored", "not_applicable", "errors_only", "tied"]
"""`errors_only`: the judge reports errors and is asked for no score; `tied`: the members of a jury share the vote."""
FailureState = Literal["unparsable", "too_long", "refused", "error"]
ANSWERED_STATES: tuple[VerdictState, ...] = get_args(VerdictState)
FAILED_STATES: tuple[FailureState, ...] = get_args(FailureState)
CELL_STATES: tuple[VerdictState | FailureState, ...] = (*ANSWERED_STATES, *FAILED_STATES)
Phase = Literal["blind", "revealed"]
EvidencePlace = Literal["verbatim", "found elsewhere", "not found"]
MatchStatus = Literal["proposed", "confirmed", "rejected"]
FindingReview = Literal["valid new error", "false alarm", "duplicate"]
SCORES = (0, 1, 2, 3)
Tolerance = Literal["exact", "step", "span"]
TOLERANCES: tuple[Tolerance, ...] = get_args(Tolerance)
TOLERANCE_WORDS: Mapping[Tolerance, str] = {
    "exact": "a span of the error",
    "step": "a span of the error, its parent or child, or a span of the same step",
    "span": "a span of the error, or the one before or after it in reading order",
}
"""What a finding must cite to localize an error."""
SliceBy = Literal["agent", "source", "length", "tool", "model", "outcome", "kind", "guideline"]
SLICED_BY: tuple[SliceBy, ...] = get_args(SliceBy)
SLICE_WORDS: Mapping[SliceBy, str] = {
    "agent": "agent",
    "source": "task source",
    "length": "length of the trace",
    "tool": "tool",
    "model": "model of the agent",
    "outcome": "outcome",
    "kind": "span kind of the error",
    "guideline": "guideline version",
}
"""What agreement is told apart by."""


BLOCK = "█"
"""Stands for a letter of a name that a queue hides from those who label."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """A span as a judge wrote it (`cite`) and the span it resolves to; None is kept as unresolved."""

    cite: str
    span_id: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One error that a judge reports. `evidence_place` says whether its quote stands in the cited span."""

    description: str
    evidence: str
    citations: tuple[Citation, ...]
    dimension: Dimension | None = None
    impact: Impact | None = None
    category: str | None = None
    evidence_place: EvidencePlace | None = None
    evidence_span_id: str | None = None
    check: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """How an outcome came about: everything needed to repeat and to audit it. Costs are US dollars.

    `reasoning`: what came beside the answer, as the provider sent it or as it stood around the answer.
    """

    model: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    prompt_hash: str = ""
    raw_reply: str | None = None
    repair_reply: str | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    attempts: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A judge's answer. `score` is 0..3 when scored, else None (then `reason` says why)."""

    rubric: str
    trace_id: str
    state: VerdictState
    score: int | None
    criteria: str
    rationale: str
    findings: tuple[Finding, ...]
    call: Call
    reason: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.state == "scored" and (type(self.score) is not int or self.score not in SCORES):
            raise ValueError(f"a scored verdict needs a score of 0 to 3, not {self.score!r}")
        if self.state != "scored" and self.score is not None:
            raise ValueError(f"a verdict in state {self.state!r} has no score, not {self.score!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A judge that did not answer. Never a score; the raw reply is kept in `call`."""

    rubric: str
    trace_id: str
    state: FailureState
    reason: str
    call: Call


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A stretch of a span's text: code points `start` to `end` of `field`, with the quote and its context.

    `field` is `input`, `output`, `tool_arguments`, `status_message` or `message:<position>`; start and end
    are None when a quote came without a place (imported labels).
    """

    quote: str
    span_id: str | None = None
    field: str | None = None
    start: int | None = None
    end: int | None = None
    before: str = ""
    after: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorLabel:
    """One error that a person saw: on one or more spans, of one or more dimensions.

    A label that is still being written may lack spans, dimensions or impact; `is_complete` says so.
    """

    label_id: str
    trace_id: str
    annotator: str
    span_ids: tuple[str, ...]
    dimensions: tuple[Dimension, ...]
    impact: Impact | None
    description: str = ""
    category: str | None = None
    evidence: tuple[Evidence, ...] = ()
    phase: Phase = "blind"
    attributes: Mapping[str, Json] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return bool(self.span_ids and self.dimensions and self.impact is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreLabel:
    """A person's score of a dimension (or of another scale, e.g. `trail.reliability`, 1 to 5).

    `value` None with `not_applicable` False means the score was cleared.
    """

    trace_id: str
    annotator: str
    dimension: str
    value: float | None
    not_applicable: bool = False
    note: str = ""
    confidence: int | None = None
    phase: Phase = "blind"


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """A person said "done" with a trace: only then does an absent label mean "no error"."""

    trace_id: str
    annotator: str
    status: Literal["open", "submitted", "skipped"]
    no_error: bool = False
    reason: str = ""
    guideline_version: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A reference error and a judge's finding said to be the same; `reasons` and `confidence` (0..1) say why."""

    label_id: str
    finding_id: int
    status: MatchStatus
    author: str
    confidence: float
    reasons: tuple[str, ...]
    localized: bool
