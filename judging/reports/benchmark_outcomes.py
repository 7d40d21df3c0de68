"""What benchmarks themselves say of the runs: the goal success rate of GAIA2 and why a run is unscored."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import Connection, select

from tracejury.ingest.gsr import Gsr, Rate, Run, gsr, run_of_trace
from tracejury.ingest.store import load, schema
from tracejury.judging.agreement.intervals import wilson
from tracejury.judging.agreement.tables import Table

RATES = Table(
    name="gaia2_gsr",
    title="GAIA2: goal success rate by capability, as ARE counts it",
    needs=(),
    build=lambda _inputs: pd.DataFrame(),
    interval="Wilson's",
)
RUNS = Table(
    name="gaia2_runs",
    title="GAIA2: every run with its score, or the reason why it has none",
    needs=(),
    build=lambda _inputs: pd.DataFrame(),
)
OUTCOME_TABLES = (RATES, RUNS)
_RATE_COLUMNS = (
    "capability", "runs", "scored", "succeeded", "gsr", "gsr_low", "gsr_high", "scenarios", "pass_at_k", "pass_k",
    "reason",
)  # fmt: skip
_NONE = "gsr: no run scored"
_MEAN = "counts, interval: the mean over capabilities has none"


def outcome_tables(connection: Connection) -> dict[str, pd.DataFrame]:
    """The tables of `OUTCOME_TABLES` by name; none where no trace of the workspace has an outcome.

    `gsr` is succeeded / scored runs (empty where none is scored), with Wilson's 95 % interval; the row `all`
    is ARE's micro rate, `macro` the mean over capabilities. `reason` says why a cell is empty.
    """
    runs = _runs(connection)
    if not runs:
        return {}
    return {RATES.name: _rates(gsr(runs)), RUNS.name: _listed(runs)}


def _runs(connection: Connection) -> list[Run]:
    ids = connection.scalars(
        select(schema.trace.c.trace_id).where(schema.trace.c.outcome.is_not(None)).order_by(schema.trace.c.trace_key)
    )
    found = (run_of_trace(load(connection, trace_id, with_logs=False)) for trace_id in list(ids))
    return [run for run in found if run is not None]


def _rates(found: Gsr) -> pd.DataFrame:
    rows = [_row(name, rate) for name, rate in found.by_capability.items()]
    rows += [
        _row("all", found.micro),
        {
            "capability": "macro",
            "gsr": found.macro,
            "reason": _MEAN if found.macro is not None else f"{_MEAN}; {_NONE}",
        },
    ]
    return pd.DataFrame(rows, columns=list(_RATE_COLUMNS)).astype(
        dict.fromkeys(("runs", "scored", "succeeded", "scenarios", "pass_at_k", "pass_k"), "Int64")
        | dict.fromkeys(("gsr", "gsr_low", "gsr_high"), "float64")
    )


def _row(name: str, rate: Rate) -> dict[str, object]:
    low, high = wilson(rate.succeeded, rate.scored) or (None, None)
    return {
        "capability": name,
        "runs": rate.runs,
        "scored": rate.scored,
        "succeeded": rate.succeeded,
        "gsr": rate.rate,
        "gsr_low": low,
        "gsr_high": high,
        "scenarios": rate.scenarios,
        "pass_at_k": rate.pass_at_k,
        "pass_k": rate.pass_k,
        "reason": None if rate.scored else _NONE,
    }


def _listed(runs: list[Run]) -> pd.DataFrame:
    rows = [
        {
            "trace_id": run.trace_id,
            "scenario": run.scenario,
            "run_number": run.run_number,
            "capability": run.capability,
            "phase": run.phase,
            "score": run.score,
            "judge_score": run.verdict,
            "reason": run.reason,
        }
        for run in runs
    ]
    columns = ["trace_id", "scenario", "run_number", "capability", "phase", "score", "judge_score", "reason"]
    return pd.DataFrame(rows, columns=columns).astype(
        {"run_number": "Int64", "score": "float64", "judge_score": "float64"}
    )
