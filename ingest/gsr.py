"""GSR, the goal success rate of GAIA2: as ARE counts it, as MASEval counts it, and why a run has no score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tracejury.ingest.formats.gaia2.benchmark import OutputRow, output_rows
from tracejury.ingest.formats.gaia2.row import row_evidence
from tracejury.ingest.formats.gaia2.values import mapping, number, sequence, text, whole, word
from tracejury.ingest.formats.gaia2.verdict import JUDGE_RAISED, outcome
from tracejury.ingest.formats.maseval import SCORED_STATUSES, report_id, report_outcome
from tracejury.ingest.trace import Json, Outcome, Trace


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run of a scenario. `score` is what ARE counts (1, 0 or None), `verdict` what is known: None without one.

    They differ where the judge raised: ARE counts 0, and nobody judged. `reason` says why there is no verdict.
    """

    trace_id: str
    scenario: str
    run_number: int | None = None
    capability: str = "unknown"
    phase: str = "standard"
    score: float | None
    verdict: float | None
    reason: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """A share of successes among scored runs, None when none was scored; pass@k and pass^k count scenarios."""

    runs: int
    scored: int
    succeeded: int
    rate: float | None
    scenarios: int
    pass_at_k: int
    pass_k: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Gsr:
    """GSR over all runs (micro), the mean over capabilities (macro), each capability alone, and the runs in doubt.

    `unscored` are left out of every rate; `unjudged` are those that ARE counts as 0 although no judge decided.
    """

    micro: Rate
    macro: float | None
    by_capability: Mapping[str, Rate] = field(default_factory=dict)
    unscored: tuple[Run, ...] = ()
    unjudged: tuple[Run, ...] = ()


def gsr(runs: Iterable[Run]) -> Gsr:
    """The goal success rate as ARE 1.2 counts it (`benchmark/report_stats.py`), as shares of 1 instead of percent.

    Only runs with a score count; a run that raised counts 0; one that no judge saw is left out. The macro rate is
    the unweighted mean over capabilities (and phases); ARE counts a capability without any scored run as 0 in it,
    here it is left out. Where nothing was scored ARE prints 0, here the rate is None.
    """
    all_runs = tuple(runs)
    groups: dict[str, list[Run]] = {}
    for run in all_runs:
        key = run.capability if run.phase == "standard" else f"{run.capability}_{run.phase}"
        groups.setdefault(key, []).append(run)
    by_capability = {key: rate(group) for key, group in sorted(groups.items())}
    rates = [found.rate for found in by_capability.values() if found.rate is not None]
    return Gsr(
        micro=rate(all_runs),
        macro=sum(rates) / len(rates) if rates else None,
        by_capability=by_capability,
        unscored=tuple(run for run in all_runs if run.score is None),
        unjudged=tuple(run for run in all_runs if run.score is not None and run.verdict is None),
    )


def rate(runs: Sequence[Run]) -> Rate:
    """Successes among scored runs; a scenario is passed at k when one of its scored runs succeeded, pass^k when all."""
    scored = [run for run in runs if run.score is not None]
    by_scenario: dict[tuple[str, str], list[float]] = {}
    for run in scored:
        by_scenario.setdefault((run.scenario, run.phase), []).append(run.score or 0.0)
    succeeded = sum(run.score == 1 for run in scored)
    return Rate(
        runs=len(runs),
        scored=len(scored),
        succeeded=succeeded,
        rate=sum(run.score or 0.0 for run in scored) / len(scored) if scored else None,
        scenarios=len({(run.scenario, run.phase) for run in runs}),
        pass_at_k=sum(max(scores) > 0 for scores in by_scenario.values()),
        pass_k=sum(min(scores) == 1 for scores in by_scenario.values()),
    )


def run_of_trace(trace: Trace) -> Run | None:
    """The run a trace tells of; None for a trace of another benchmark."""
    result = trace.outcome
    if result is None:
        return None
    row = mapping(trace.attributes.get("row"))
    definition = mapping(mapping(trace.attributes.get("metadata")).get("definition"))
    lite = mapping(trace.attributes.get("lite"))
    task = mapping(mapping(trace.attributes.get("task")).get("metadata"))
    scenario = next(
        (word(part.get("scenario_id")) for part in (row, definition, lite, task) if word(part.get("scenario_id"))), None
    )
    numbers = (whole(part.get("run_number")) for part in (row, definition))
    return Run(
        trace_id=trace.trace_id,
        scenario=scenario or trace.trace_id,
        run_number=next((found for found in numbers if found is not None), None),
        capability=word(trace.attributes.get("capability")) or "unknown",
        phase=word(row.get("phase_name")) or "standard",
        score=are_score(result),
        verdict=result.score,
        reason=result.reason,
    )


def runs_of_output(data: bytes, *, capability: str = "unknown") -> list[Run]:
    """The runs that an `output.jsonl` lists, those without a trace file too."""
    return [_run_of_row(row, capability) for row in output_rows(data)]


def are_score(result: Outcome) -> float | None:
    """What ARE counts for a run: its own status where a row says it, else what the verdict comes to there."""
    if result.row_status is not None and result.source != "maseval":
        return {"success": 1.0, "failed": 0.0}.get(result.row_status)
    return 0.0 if result.reason == JUDGE_RAISED and result.source != "maseval" else result.score


def maseval_metrics(reports: Iterable[Mapping[str, Json]]) -> dict[str, Json]:
    """The summary of MASEval reports, number for number that of `compute_gaia2_metrics` (MASEval 0.5.1).

    Reports whose status is no agent's doing and verdicts without `gsr` are not scored; without any scored task the
    rates are 0, as there.
    """
    all_reports = list(reports)
    statuses: dict[str, int] = {}
    entries: list[Mapping[str, Json]] = []
    for report in all_reports:
        status = text(report.get("status", "unknown")) or "unknown"
        statuses[status] = statuses.get(status, 0) + 1
        if status in SCORED_STATUSES:
            entries.extend(item for raw in sequence(report.get("eval")) if _gsr(item := mapping(raw)) is not None)
    capabilities: dict[str, list[Mapping[str, Json]]] = {}
    for entry in entries:
        capabilities.setdefault(text(entry.get("capability", "unknown")) or "unknown", []).append(entry)
    return {
        "total_tasks": len(all_reports),
        "scored_tasks": len(entries),
        "gsr": _mean(entries, _gsr),
        "partial_gsr": _mean(entries, _partial),
        "by_capability": {name: _capability(group) for name, group in capabilities.items()},
        "status_counts": dict(statuses),
    }


def maseval_unscored(reports: Iterable[Mapping[str, Json]]) -> list[tuple[str, str]]:
    """Each report that the rates leave out, with the reason."""
    return [(report_id(report), found.reason or "") for report in reports if (found := _unscored(report)) is not None]


def _unscored(report: Mapping[str, Json]) -> Outcome | None:
    scored = text(report.get("status")) in SCORED_STATUSES and any(
        _gsr(mapping(item)) is not None for item in sequence(report.get("eval"))
    )
    return None if scored else report_outcome(report)


def _capability(entries: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    passed = sum(bool(entry.get("passed", False)) for entry in entries)
    return {
        "count": len(entries),
        "passed": passed,
        "gsr": _mean(entries, _gsr),
        "partial_gsr": _mean(entries, _partial),
        "pass_rate": passed / len(entries),
    }


def _gsr(entry: Mapping[str, Json]) -> float | None:
    return number(entry.get("gsr"))


def _partial(entry: Mapping[str, Json]) -> float | None:
    partial = number(entry.get("partial_gsr"))
    return _gsr(entry) if partial is None else partial


def _mean(entries: Sequence[Mapping[str, Json]], value: Callable[[Mapping[str, Json]], float | None]) -> float:
    values = [value(entry) or 0.0 for entry in entries]
    return sum(values) / len(values) if values else 0.0


def _run_of_row(row: OutputRow, capability: str) -> Run:
    result = outcome(row_evidence(row.fields, "output.jsonl"))
    return Run(
        trace_id=(row.trace_file or row.name).removesuffix(".json"),
        scenario=text(row.fields.get("scenario_id") or row.fields.get("task_id")) or row.name,
        run_number=whole(row.fields.get("run_number")),
        capability=(word(row.fields.get("config")) or capability).lower(),
        phase=word(row.fields.get("phase_name")) or "standard",
        score=are_score(result),
        verdict=result.score,
        reason=result.reason,
    )
