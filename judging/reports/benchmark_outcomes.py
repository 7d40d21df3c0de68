"""What benchmarks themselves say of executions: the goal success rate of GAIA2 and why an execution is unscored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import orjson
import pandas as pd
from sqlalchemy import Connection, select

from tracejury.ingest.gsr import FAULTS, STATUSES, Gsr, Rate, Run, gsr, latest, rate, run_of
from tracejury.ingest.store import schema
from tracejury.ingest.trace import Outcome
from tracejury.judging.agreement.intervals import share_bounds
from tracejury.judging.agreement.tables import Table

RATES = Table(
    name="gaia2_gsr",
    title="GAIA2: goal success rate by agent, models and capability, as the harness counts and of judged ones only",
    needs=(),
    build=lambda _inputs: pd.DataFrame(),
    interval="Wilson's with the effective number of units by scenario and Student's t",
)
EXECUTIONS = Table(
    name="gaia2_executions",
    title="GAIA2: every execution with its status and score, or the reason why it has none",
    needs=(),
    build=lambda _inputs: pd.DataFrame(),
)
STATUS_COUNTS = Table(
    name="gaia2_statuses",
    title="GAIA2: how the executions ended, counted by agent, models and capability, with who is at fault",
    needs=(),
    build=lambda _inputs: pd.DataFrame(),
)
OUTCOME_TABLES = (RATES, EXECUTIONS, STATUS_COUNTS)
_KEY = ("harness", "agent", "agent_model", "judge_model", "settings")
_COUNTS = (
    "executions",
    "scored",
    "succeeded",
    "judged",
    "judged_succeeded",
    "repeats",
    "scenarios",
    "pass_at_k",
    "pass_k",
)
_ESTIMATES = (
    "gsr", "gsr_low", "gsr_high", "judged_rate", "judged_low", "judged_high", "gsr_sd", "gsr_sem", "pass_at_k_rate",
    "pass_k_rate", "partial_gsr", "duration_s", "duration_sd",
)  # fmt: skip
_RATE_COLUMNS = (
    *_KEY, "capability", "executions", "scored", "succeeded", "gsr", "gsr_low", "gsr_high", "judged",
    "judged_succeeded", "judged_rate", "judged_low", "judged_high", "repeats", "gsr_sd", "gsr_sem", "scenarios",
    "pass_at_k", "pass_at_k_rate", "pass_k", "pass_k_rate", "partial_gsr", "duration_s", "duration_sd", "reason",
)  # fmt: skip
_RUN_COLUMNS = (
    "trace_id", *_KEY, "scenario", "repeat", "capability", "phase", "status", "fault", "score", "judge_score",
    "duration_s", "reason",
)  # fmt: skip
_NONE = "gsr: no execution scored"
_MEAN = "counts, intervals: the mean over capabilities has none"


def outcome_tables(connection: Connection) -> dict[str, pd.DataFrame]:
    """The tables of `OUTCOME_TABLES` by name; none where no trace of the workspace has an outcome.

    Executions of different harnesses, agents, agent's models or judge's models are never counted together. `gsr` is
    succeeded / scored executions as the harness counts them, `judged_rate` that of executions that a judge decided
    (empty where there are none). The row `all` is the micro rate over capabilities, `macro` the mean over them.
    `reason` says why a cell is empty.
    """
    runs = runs_of(connection)
    if not runs:
        return {}
    groups = grouped(runs)
    return {
        RATES.name: _rates(groups),
        EXECUTIONS.name: _listed(runs),
        STATUS_COUNTS.name: _statuses(groups),
    }


def runs_of(connection: Connection, *, trace_id: str | None = None) -> list[Run]:
    """Every benchmark execution of the workspace, in order of ingestion; with `trace_id` that one alone."""
    columns = (schema.trace.c[name] for name in ("trace_id", "outcome", "attributes", "duration_s"))
    query = select(*columns).where(schema.trace.c.outcome.is_not(None)).order_by(schema.trace.c.trace_key)
    rows = connection.execute(query if trace_id is None else query.where(schema.trace.c.trace_id == trace_id))
    return latest(
        [
            run_of(
                row.trace_id,
                Outcome(**orjson.loads(row.outcome)),
                orjson.loads(row.attributes),
                duration_s=row.duration_s,
            )
            for row in rows
        ]
    )


def grouped(runs: Iterable[Run]) -> dict[tuple[str, ...], list[Run]]:
    """The executions that may be counted together: of one harness, agent, agent's model, judge's model and settings."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(run.key, []).append(run)
    return dict(sorted(groups.items()))


def success_bounds(runs: Sequence[Run]) -> tuple[float, float] | None:
    """Return bounds of the success rate of scored executions, repeats of a scenario being alike; None without any."""
    by_scenario: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        if run.score is not None:
            by_scenario.setdefault((run.scenario, run.phase), []).append(run.score)
    clusters = list(by_scenario.values())
    low, high = share_bounds(np.array([sum(one) for one in clusters]), np.array([len(one) for one in clusters]))
    return None if np.isnan(low) else (float(low), float(high))


def _rates(groups: dict[tuple[str, ...], list[Run]]) -> pd.DataFrame:
    rows = [row for key, runs in groups.items() for row in _rows_of_group(key, runs)]
    return pd.DataFrame(rows, columns=list(_RATE_COLUMNS)).astype(
        dict.fromkeys(_COUNTS, "Int64") | dict.fromkeys(_ESTIMATES, "float64")
    )


def _rows_of_group(key: tuple[str, ...], runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    counted = [run for run in runs if run.counts]
    if not counted:
        return
    estimates, judged = gsr(counted), gsr(run.judged for run in counted)
    named = dict(zip(_KEY, (part or None for part in key), strict=True))
    for capability in estimates.by_capability:
        yield {**named, **_row(capability, [run for run in counted if run.group == capability])}
    yield {**named, **_row("all", counted)}
    yield {**named, **_macro(estimates, judged)}


def _row(capability: str, runs: Sequence[Run]) -> dict[str, object]:
    one, judged = rate(runs), rate([run.judged for run in runs])
    low, high = success_bounds(runs) or (None, None)
    judged_low, judged_high = success_bounds([run.judged for run in runs]) or (None, None)
    return {
        "capability": capability,
        "executions": one.executions,
        "scored": one.scored,
        "succeeded": one.succeeded,
        "gsr": one.rate,
        "gsr_low": low,
        "gsr_high": high,
        "judged": judged.scored,
        "judged_succeeded": judged.succeeded,
        "judged_rate": judged.rate,
        "judged_low": judged_low,
        "judged_high": judged_high,
        **_spread(one),
        "reason": _why(one, judged),
    }


def _spread(one: Rate) -> dict[str, object]:
    return {
        "repeats": one.repeats,
        "gsr_sd": one.sd,
        "gsr_sem": one.sem,
        "scenarios": one.scenarios,
        "pass_at_k": one.pass_at_k,
        "pass_at_k_rate": one.pass_at_k / one.scenarios if one.scored else None,
        "pass_k": one.pass_k,
        "pass_k_rate": one.pass_k / one.scenarios if one.scored else None,
        "partial_gsr": one.partial,
        "duration_s": one.duration_s,
        "duration_sd": one.duration_sd,
    }


def _why(one: Rate, judged: Rate) -> str | None:
    """Why estimates of a row are empty."""
    reasons = [] if one.scored else [_NONE]
    if one.scored and not judged.scored:
        reasons.append("judged_rate: no judge decided any execution")
    if one.scored and one.sd is None:
        reasons.append("gsr_sd: fewer than two repeats")
    return "; ".join(reasons) or None


def _macro(estimates: Gsr, judged: Gsr) -> dict[str, object]:
    return {
        "capability": "macro",
        "gsr": estimates.macro,
        "judged_rate": judged.macro,
        "gsr_sd": estimates.macro_sd,
        "gsr_sem": estimates.macro_sem,
        "reason": _MEAN if estimates.macro is not None else f"{_MEAN}; {_NONE}",
    }


def _statuses(groups: dict[tuple[str, ...], list[Run]]) -> pd.DataFrame:
    rows = [
        (*(part or None for part in key), capability, status, FAULTS.get(status), counts[capability, status])
        for key, runs in groups.items()
        for counts in [Counter((run.group, run.status) for run in runs)]
        for capability in sorted({run.group for run in runs})
        for status in STATUSES
        if counts[capability, status]
    ]
    return pd.DataFrame(rows, columns=[*_KEY, "capability", "status", "fault", "runs"]).astype({"runs": "Int64"})


def _listed(runs: Sequence[Run]) -> pd.DataFrame:
    rows = [
        (
            run.trace_id,
            *(part or None for part in run.key),
            run.scenario,
            run.repeat,
            run.capability,
            run.phase,
            run.status,
            run.fault,
            run.score,
            run.verdict,
            run.duration_s,
            run.reason,
        )
        for run in runs
    ]
    return pd.DataFrame(rows, columns=list(_RUN_COLUMNS)).astype(
        {"repeat": "Int64", "score": "float64", "judge_score": "float64", "duration_s": "float64"}
    )
