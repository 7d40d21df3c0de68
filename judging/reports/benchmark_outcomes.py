"""What benchmarks themselves say of executions: the goal success rate of GAIA2 and why an execution is unscored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import orjson
import pandas as pd
from sqlalchemy import Connection, select

from tracejury.ingest.gsr import FAULTS, STATUSES, Execution, Gsr, Rate, execution_of, gsr, latest, rate
from tracejury.ingest.store import schema
from tracejury.ingest.trace import Outcome
from tracejury.judging.agreement.intervals import share_bounds
from tracejury.judging.agreement.tables import Table

RATES = Table(
    name="gaia2_gsr",
    title="GAIA2: goal success rate by agent, models and capability, as the harness counts, and of judged executions",
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
_EXECUTION_COLUMNS = (
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
    executions = executions_of(connection)
    if not executions:
        return {}
    groups = grouped(executions)
    return {
        RATES.name: _rates(groups),
        EXECUTIONS.name: _listed(executions),
        STATUS_COUNTS.name: _statuses(groups),
    }


def executions_of(connection: Connection, *, trace_id: str | None = None) -> list[Execution]:
    """Every benchmark execution of the workspace, in order of ingestion; with `trace_id` that one alone."""
    columns = (schema.trace.c[name] for name in ("trace_id", "outcome", "attributes", "duration_s"))
    query = select(*columns).where(schema.trace.c.outcome.is_not(None)).order_by(schema.trace.c.trace_key)
    rows = connection.execute(query if trace_id is None else query.where(schema.trace.c.trace_id == trace_id))
    return latest(
        [
            execution_of(
                row.trace_id,
                Outcome(**orjson.loads(row.outcome)),
                orjson.loads(row.attributes),
                duration_s=row.duration_s,
            )
            for row in rows
        ]
    )


def grouped(executions: Iterable[Execution]) -> dict[tuple[str, ...], list[Execution]]:
    """The executions that may be counted together: of one harness, agent, agent's model, judge's model and settings."""
    groups: dict[tuple[str, ...], list[Execution]] = {}
    for execution in executions:
        groups.setdefault(execution.key, []).append(execution)
    return dict(sorted(groups.items()))


def success_bounds(executions: Sequence[Execution]) -> tuple[float, float] | None:
    """Return bounds of the success rate of scored executions, repeats of a scenario being alike; None without any."""
    by_scenario: dict[tuple[str, str], list[float]] = {}
    for execution in executions:
        if execution.score is not None:
            by_scenario.setdefault((execution.scenario, execution.phase), []).append(execution.score)
    clusters = list(by_scenario.values())
    low, high = share_bounds(np.array([sum(one) for one in clusters]), np.array([len(one) for one in clusters]))
    return None if np.isnan(low) else (float(low), float(high))


def _rates(groups: dict[tuple[str, ...], list[Execution]]) -> pd.DataFrame:
    rows = [row for key, executions in groups.items() for row in _rows_of_group(key, executions)]
    return pd.DataFrame(rows, columns=list(_RATE_COLUMNS)).astype(
        dict.fromkeys(_COUNTS, "Int64") | dict.fromkeys(_ESTIMATES, "float64")
    )


def _rows_of_group(key: tuple[str, ...], executions: Sequence[Execution]) -> Iterator[dict[str, object]]:
    counted = [execution for execution in executions if execution.counts]
    if not counted:
        return
    estimates, judged = gsr(counted), gsr(execution.judged for execution in counted)
    named = dict(zip(_KEY, (part or None for part in key), strict=True))
    for capability in estimates.by_capability:
        yield {**named, **_row(capability, [execution for execution in counted if execution.group == capability])}
    yield {**named, **_row("all", counted)}
    yield {**named, **_macro(estimates, judged)}


def _row(capability: str, executions: Sequence[Execution]) -> dict[str, object]:
    one, judged = rate(executions), rate([execution.judged for execution in executions])
    low, high = success_bounds(executions) or (None, None)
    judged_low, judged_high = success_bounds([execution.judged for execution in executions]) or (None, None)
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


def _statuses(groups: dict[tuple[str, ...], list[Execution]]) -> pd.DataFrame:
    rows = [
        (*(part or None for part in key), capability, status, FAULTS.get(status), counts[capability, status])
        for key, executions in groups.items()
        for counts in [Counter((execution.group, execution.status) for execution in executions)]
        for capability in sorted({execution.group for execution in executions})
        for status in STATUSES
        if counts[capability, status]
    ]
    return pd.DataFrame(rows, columns=[*_KEY, "capability", "status", "fault", "executions"]).astype(
        {"executions": "Int64"}
    )


def _listed(executions: Sequence[Execution]) -> pd.DataFrame:
    rows = [
        (
            execution.trace_id,
            *(part or None for part in execution.key),
            execution.scenario,
            execution.repeat,
            execution.capability,
            execution.phase,
            execution.status,
            execution.fault,
            execution.score,
            execution.judge_score,
            execution.duration_s,
            execution.reason,
        )
        for execution in executions
    ]
    return pd.DataFrame(rows, columns=list(_EXECUTION_COLUMNS)).astype(
        {"repeat": "Int64", "score": "float64", "judge_score": "float64", "duration_s": "float64"}
    )
