"""GSR, the goal success rate of GAIA2: as ARE counts it, as MASEval counts it, and why an execution has no score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import stdev
from typing import Literal, get_args

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.execution_outcome import (
    EXECUTION_RAISED,
    EXECUTION_RAISED_UNSCORED,
    JUDGE_OR_EXECUTION_RAISED,
    JUDGE_RAISED,
    NO_JUDGE,
    ORACLE_EXECUTION,
    TIME_LIMIT,
)
from tracejury.ingest.formats.gaia2.setting import SETTING
from tracejury.ingest.formats.gaia2.values import number, sequence, whole, word
from tracejury.ingest.formats.maseval import SCORED_STATUSES
from tracejury.ingest.trace import Json, Outcome

ExecutionStatus = Literal[
    "success", "failed", "max_iterations", "agent_raised", "environment_error", "user_error", "timeout",
    "judge_failed", "no_judge", "setup_failed", "stopped", "raised", "unclear", "oracle",
    "superseded",
]  # fmt: skip
STATUSES: tuple[ExecutionStatus, ...] = get_args(ExecutionStatus)
FAULTS: Mapping[str, str] = {
    "failed": "agent",
    "max_iterations": "agent",
    "agent_raised": "agent",
    "environment_error": "environment",
    "user_error": "environment",
    "timeout": "time limit",
    "judge_failed": "judge",
    "setup_failed": "set-up",
    "stopped": "person",
}
"""Who is at fault where an execution did not succeed; no entry where nobody is, or nobody knows."""
_OF_MASEVAL: Mapping[str, ExecutionStatus] = {
    "agent_error": "agent_raised",
    "environment_error": "environment_error",
    "user_error": "user_error",
    "task_timeout": "timeout",
    "evaluation_failed": "judge_failed",
    "setup_failed": "setup_failed",
    "unknown_execution_error": "raised",
}
_OF_REASON: Mapping[str, ExecutionStatus] = {
    ORACLE_EXECUTION: "oracle",
    TIME_LIMIT: "timeout",
    JUDGE_RAISED: "judge_failed",
    NO_JUDGE: "no_judge",
    EXECUTION_RAISED: "agent_raised",
    EXECUTION_RAISED_UNSCORED: "raised",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """One execution of a scenario. `score`: what its harness counts (1, 0 or None); `judge_score`: what its judge says.

    They differ where the judge raised or time ran out: ARE counts 0, and nobody judged. `reason` says why there is
    no verdict. `partial` is MASEval's partial score.
    """

    trace_id: str
    harness: str = "ARE"
    agent: str | None = None
    agent_model: str | None = None
    judge_model: str | None = None
    scenario: str
    repeat: int | None = None
    capability: str = "unknown"
    phase: str = "standard"
    status: ExecutionStatus = "unclear"
    score: float | None
    judge_score: float | None
    partial: float | None = None
    reason: str | None
    duration_s: float | None = None
    settings: str | None = None
    attempt: int | None = None

    @property
    def counts(self) -> bool:
        """Whether the execution is one of those that rates are made of."""
        return self.status not in {"oracle", "superseded"}

    @property
    def fault(self) -> str | None:
        return FAULTS.get(self.status)

    @property
    def judged(self) -> Execution:
        """The execution with the judge's decision for its score."""
        return replace(self, score=self.judge_score)

    @property
    def group(self) -> str:
        """The capability, apart by phase, as ARE names it in its statistics."""
        return self.capability if self.phase == "standard" else f"{self.capability}_{self.phase}"

    @property
    def key(self) -> tuple[str, ...]:
        """What executions must share to be counted together: harness, agent, its model, the judge's model, settings."""
        return (self.harness, *(part or "" for part in (self.agent, self.agent_model, self.judge_model, self.settings)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """A share of successes among scored executions, None when none was scored; pass@k and pass^k count scenarios.

    `sd` is the standard deviation over repeats of each repeat's own rate, `sem` its standard error; None below two.
    """

    executions: int
    scored: int
    succeeded: int
    rate: float | None
    repeats: int
    sd: float | None
    sem: float | None
    scenarios: int
    pass_at_k: int
    pass_k: int
    duration_s: float | None
    duration_sd: float | None
    partial: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Gsr:
    """GSR over all executions (micro), the mean over capabilities (macro), each capability alone.

    `macro_sd` is over repeats, as that of a rate.
    """

    micro: Rate
    macro: float | None
    macro_sd: float | None
    macro_sem: float | None
    by_capability: Mapping[str, Rate] = field(default_factory=dict)


def gsr(executions: Iterable[Execution]) -> Gsr:
    """The goal success rate as ARE 1.2 counts it (`benchmark/report_stats.py`), as shares of 1 instead of percent.

    Only executions with a score count; one that raised counts 0; one that no judge saw is left out, and so is an
    oracle execution, which no agent made. The macro rate is the unweighted mean over capabilities (and phases); ARE
    counts a capability without any scored execution as 0 in it, here it is left out. Where nothing was scored ARE
    prints 0, here the rate is None; where there is one repeat ARE prints a deviation of 0, here it is None.
    """
    counted = tuple(execution for execution in executions if execution.counts)
    groups = _grouped(counted)
    by_capability = {key: rate(group) for key, group in sorted(groups.items())}
    macro_sd, macro_sem = _spread([score for one in _repeats(counted) if (score := _macro(one)) is not None])
    return Gsr(
        micro=rate(counted),
        macro=_macro(counted),
        macro_sd=macro_sd,
        macro_sem=macro_sem,
        by_capability=by_capability,
    )


def rate(executions: Sequence[Execution]) -> Rate:
    """Successes among scored executions; a scenario is passed at k when one succeeded, pass^k when all did."""
    scored = [execution for execution in executions if execution.score is not None]
    by_scenario: dict[tuple[str, str], list[float]] = {}
    for execution in scored:
        by_scenario.setdefault((execution.scenario, execution.phase), []).append(execution.score or 0.0)
    repeats = _repeats(scored)
    sd, sem = _spread([share for one in repeats if (share := _share(one)) is not None])
    durations = [execution.duration_s for execution in executions if execution.duration_s is not None]
    return Rate(
        executions=len(executions),
        scored=len(scored),
        succeeded=sum(execution.score == 1 for execution in scored),
        rate=_share(scored),
        repeats=len(repeats),
        sd=sd,
        sem=sem,
        scenarios=len({(execution.scenario, execution.phase) for execution in executions}),
        pass_at_k=sum(max(scores) > 0 for scores in by_scenario.values()),
        pass_k=sum(min(scores) == 1 for scores in by_scenario.values()),
        duration_s=sum(durations) / len(durations) if durations else None,
        duration_sd=stdev(durations) if len(durations) > 1 else None,
        partial=_share(
            [replace(execution, score=execution.partial) for execution in scored if execution.partial is not None]
        ),
    )


def _share(executions: Sequence[Execution]) -> float | None:
    scores = [execution.score for execution in executions if execution.score is not None]
    return sum(scores) / len(scores) if scores else None


def _macro(executions: Sequence[Execution]) -> float | None:
    shares = [share for group in _grouped(executions).values() if (share := _share(group)) is not None]
    return sum(shares) / len(shares) if shares else None


def _grouped(executions: Sequence[Execution]) -> dict[str, list[Execution]]:
    groups: dict[str, list[Execution]] = {}
    for execution in executions:
        groups.setdefault(execution.group, []).append(execution)
    return groups


def _repeats(executions: Sequence[Execution]) -> list[list[Execution]]:
    """The scored executions of each repeat that a file numbers."""
    repeats: dict[int, list[Execution]] = {}
    for execution in executions:
        if execution.score is not None and execution.repeat is not None:
            repeats.setdefault(execution.repeat, []).append(execution)
    return [repeats[number_] for number_ in sorted(repeats)]


def _spread(rates: Sequence[float]) -> tuple[float | None, float | None]:
    """Standard deviation and standard error over repeats; None where there are not two."""
    if len(rates) < 2:
        return None, None
    return stdev(rates), stdev(rates) / len(rates) ** 0.5


def execution_of(
    trace_id: str, result: Outcome, attributes: Mapping[str, Json], *, duration_s: float | None
) -> Execution:
    """The execution of a trace by its outcome and its attributes."""
    setting = object_in(attributes.get(SETTING))
    harness = word(setting.get("harness")) or "unknown"
    entry = _verdict_of_maseval(attributes) if harness == "MASEval" else {}
    return Execution(
        trace_id=trace_id,
        harness=harness,
        agent=word(setting.get("agent")),
        agent_model=word(setting.get("agent_model")),
        judge_model=word(setting.get("judge_model")),
        scenario=word(setting.get("scenario")) or trace_id,
        repeat=whole(setting.get("repeat")),
        capability=word(setting.get("capability")) or word(attributes.get("capability")) or "unknown",
        phase=word(setting.get("phase")) or "standard",
        status=execution_status(result, attributes),
        score=maseval_score(result, entry) if harness == "MASEval" else are_score(result),
        judge_score=None if result.reason == EXECUTION_RAISED else result.score,
        partial=_partial(entry) if entry else None,
        reason=_reason(result),
        duration_s=duration_s,
        settings=word(setting.get("settings")),
        attempt=whole(setting.get("attempt")),
    )


def _reason(result: Outcome) -> str | None:
    """Why there is no verdict: of an execution that raised and is unscored what was raised, where the file says it."""
    return (result.exception_message or result.reason) if result.reason == EXECUTION_RAISED_UNSCORED else result.reason


def latest(executions: Sequence[Execution]) -> list[Execution]:
    """The executions, each that was made again marked as superseded: it keeps its trace and leaves the rates."""
    newest: dict[tuple[object, ...], Execution] = {}
    for execution in executions:
        if execution.attempt is not None:
            known = newest.setdefault(_place(execution), execution)
            newest[_place(execution)] = execution if execution.attempt > (known.attempt or 0) else known
    return [_superseded(execution, newest.get(_place(execution), execution)) for execution in executions]


def _place(execution: Execution) -> tuple[object, ...]:
    return (*execution.key, execution.group, execution.scenario, execution.repeat)


def _superseded(execution: Execution, newest: Execution) -> Execution:
    if execution.attempt is None or newest.attempt == execution.attempt:
        return execution
    return replace(
        execution, status="superseded", score=None, judge_score=None, reason=f"executed again as {newest.trace_id}"
    )


def execution_status(result: Outcome, attributes: Mapping[str, Json]) -> ExecutionStatus:
    """How the execution ended, in one word for every harness: its own where it was made here, else by the file."""
    own = word(object_in(attributes.get("row")).get("execution_status"))
    if own in STATUSES:
        return own
    of_maseval = _OF_MASEVAL.get(result.row_status or "") if result.source == "maseval" else None
    known = of_maseval or _OF_REASON.get(result.reason or "")
    if known is not None:
        return known
    if result.score is None:
        return "judge_failed" if result.source == "maseval" and result.decision == "exception" else "unclear"
    if result.score == 1:
        return "success"
    return "max_iterations" if attributes.get("stopped_at_max_iterations") else "failed"


def are_score(result: Outcome) -> float | None:
    """What ARE counts for an execution: its own status where a row says it, else what the verdict comes to there."""
    if result.reason == ORACLE_EXECUTION:
        return None
    if result.row_status is not None:
        return {"success": 1.0, "failed": 0.0}.get(result.row_status)
    doubt = (result.reason or "").partition(";")[0]
    return 0.0 if doubt in {JUDGE_RAISED, JUDGE_OR_EXECUTION_RAISED.partition(";")[0], TIME_LIMIT} else result.score


def maseval_score(result: Outcome, entry: Mapping[str, Json]) -> float | None:
    """What MASEval counts for a report: the `gsr` of its verdict where the report's status is scored."""
    return _gsr(entry) if result.row_status in SCORED_STATUSES else None


def _verdict_of_maseval(attributes: Mapping[str, Json]) -> dict[str, Json]:
    entries = (object_in(item) for item in sequence(attributes.get("eval")))
    return next((entry for entry in entries if "gsr" in entry), {})


def _gsr(entry: Mapping[str, Json]) -> float | None:
    return number(entry.get("gsr"))


def _partial(entry: Mapping[str, Json]) -> float | None:
    partial = number(entry.get("partial_gsr"))
    return _gsr(entry) if partial is None else partial
