"""What ARE said of an execution: success, failure, or no score and why; nothing is guessed that a file cannot tell."""

from __future__ import annotations

from dataclasses import dataclass

from tracejury.ingest.trace import Outcome, Status

NO_JUDGE = "no judge was configured"
JUDGE_RAISED = "the judge raised an exception, so there is no verdict (ARE itself scores 0)"
EXECUTION_RAISED = "the execution raised an exception; ARE scores 0"
EXECUTION_RAISED_UNSCORED = "the execution raised an exception and ARE gives no score"
NO_DECISION = "the file holds no validation decision"
TIME_LIMIT = "the execution was ended at its time limit, so there is no verdict (ARE itself scores 0)"
ORACLE_EXECUTION = "an oracle execution: no agent took part, so it counts in no rate"
REFUSED_OR_UNJUDGED = "Invalid without exception: either the judge said no or no judge was configured"
JUDGE_OR_EXECUTION_RAISED = (
    "Invalid with an exception: either the judge raised (no verdict) or the execution did (score 0)"
)
UNJUDGED_OR_EXECUTION_RAISED = "Invalid without rationale: either no judge was configured or the execution raised"
_SETTLE = "; the lite file, the leaderboard row or output.jsonl settles it"
_TIMEOUT_ERROR = "ScenarioTimeoutError"
_DOUBTS = {REFUSED_OR_UNJUDGED, JUDGE_OR_EXECUTION_RAISED, UNJUDGED_OR_EXECUTION_RAISED}


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What one source (hf, gui, lite, row, output.jsonl) says of an execution; None where it does not say."""

    source: str
    decision: str | None = None
    rationale: str | None = None
    says_rationale: bool = False
    row_status: str | None = None
    has_exception: bool | None = None
    exception_type: str | None = None
    exception_message: str | None = None
    never_began: bool = False
    is_oracle: bool = False

    def joined(self, other: Evidence) -> Evidence:
        """Both together; what this one says goes before, except that a raised exception is never unsaid.

        A gui file may say `has_exception: false` of an execution whose hf file, written later, says true.
        """
        raised = self.has_exception or other.has_exception
        return Evidence(
            source=f"{self.source}+{other.source}",
            decision=self.decision or other.decision,
            rationale=self.rationale if self.says_rationale else other.rationale,
            says_rationale=self.says_rationale or other.says_rationale,
            row_status=self.row_status or other.row_status,
            has_exception=True if raised else _first(self.has_exception, other.has_exception),
            exception_type=self.exception_type or other.exception_type,
            exception_message=self.exception_message or other.exception_message,
            never_began=self.never_began or other.never_began,
            is_oracle=self.is_oracle or other.is_oracle,
        )


def outcome(evidence: Evidence) -> Outcome:
    """Score 1, 0 or None with its reason (formats page of GAIA2, 2.5: the five cases behind "Invalid")."""
    score, reason = _score(evidence)
    rationale = None if evidence.rationale == "None" else evidence.rationale
    return Outcome(
        decision=evidence.decision,
        score=score,
        reason=f"{reason}{_SETTLE}" if reason in _DOUBTS else reason,
        rationale=rationale,
        source=evidence.source,
        row_status=evidence.row_status,
        has_exception=evidence.has_exception,
        exception_type=evidence.exception_type,
        exception_message=evidence.exception_message,
    )


def outcome_warnings(result: Outcome) -> list[str]:
    """Why the score should be doubted: an ambiguous file, a judge that raised."""
    if result.reason is None or result.score is not None:
        return []
    if result.reason == JUDGE_RAISED:
        return [f"judge_exception: {JUDGE_RAISED}"]
    doubt = result.reason.removesuffix(_SETTLE)
    return [f"outcome_unclear: {result.reason}"] if doubt in _DOUBTS else []


def status_of(result: Outcome) -> Status:
    """The status of the execution's row: OK for 1, ERROR for 0, UNSET where there is no score."""
    if result.score is None:
        return "UNSET"
    return "OK" if result.score == 1 else "ERROR"


def error_of_execution(result: Outcome) -> str | None:
    """The exception of an execution that raised, for its row. Never the rationale, which quotes the oracle."""
    return result.exception_message or result.exception_type if result.reason == EXECUTION_RAISED else None


def _score(evidence: Evidence) -> tuple[float | None, str | None]:
    if evidence.is_oracle:
        return None, ORACLE_EXECUTION
    if evidence.exception_type == _TIMEOUT_ERROR and evidence.row_status != "success":
        return None, TIME_LIMIT
    if evidence.row_status == "success" or (evidence.row_status is None and evidence.decision == "Valid"):
        return 1.0, None
    if evidence.row_status == "no_validation":
        return None, NO_JUDGE
    if evidence.row_status == "exception":
        return None, EXECUTION_RAISED_UNSCORED
    if evidence.rationale == "Exception":
        return None, JUDGE_RAISED
    if evidence.row_status == "failed":
        return 0.0, EXECUTION_RAISED if evidence.has_exception else None
    if evidence.decision != "Invalid":
        return None, NO_DECISION
    return _invalid(evidence)


def _invalid(evidence: Evidence) -> tuple[float | None, str | None]:
    if evidence.never_began and evidence.has_exception:
        return 0.0, EXECUTION_RAISED  # a judge is asked about what happened: where nothing did, it was not the judge
    if not evidence.says_rationale:
        return None, JUDGE_OR_EXECUTION_RAISED if evidence.has_exception else REFUSED_OR_UNJUDGED
    if evidence.rationale not in {None, "", "None"}:
        return 0.0, None
    if evidence.has_exception is None:
        return None, UNJUDGED_OR_EXECUTION_RAISED
    return (0.0, EXECUTION_RAISED) if evidence.has_exception else (None, NO_JUDGE)


def _first(one: bool | None, other: bool | None) -> bool | None:
    return other if one is None else one
