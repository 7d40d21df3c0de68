"""A person's errors beside a judge's findings on one trace: pairs, what is missed, what is unmatched, scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracejury.judging.matching.standing import Decision
from tracejury.judging.records import ErrorLabel, Failure, Finding, FindingReview, ScoreLabel, Verdict

PairState = Literal["localized", "caught", "missed", "unmatched", "not proposed yet"]
"""`not proposed yet`: an error or a finding alone, before any matching has compared the two."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedCell:
    """What one judge of the judge model said of the trace; `rubric` is its dimension where it has one."""

    cell_key: int
    rubric: str
    outcome: Verdict | Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """An error with a finding, or one of them alone; `decision` is None where nothing pairs them.

    `rejected`: the findings (of an error alone) or errors (of a finding alone) that a person said are not the same.
    """

    state: PairState
    error: ErrorLabel | None = None
    finding_key: int | None = None
    finding: Finding | None = None
    rubric: str | None = None
    decision: Decision | None = None
    review: FindingReview | None = None
    rejected: tuple[int | str, ...] = ()

    @property
    def key(self) -> str:
        """Names the pair within its trace."""
        label_id = "" if self.error is None else self.error.label_id
        return f"{label_id}|{'' if self.finding_key is None else self.finding_key}"

    @property
    def is_decided(self) -> bool:
        """A person confirmed the match, or said what the unmatched finding is; a missed error asks for nothing."""
        if self.finding is None:
            return True
        if self.decision is not None:
            return self.decision.status != "proposed"
        return self.review is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A person's errors beside a judge model's findings on one trace, in reading order; scores by dimension."""

    trace_id: str
    reference: str
    judge_model: str
    pairs: tuple[Pair, ...]
    cells: tuple[JudgedCell, ...]
    scores: tuple[ScoreLabel, ...]
