"""What a judge model costs beside what it catches: which models no other beats in both (Pareto)."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from tracejury.judging.agreement import errors, frames, reasons
from tracejury.judging.agreement.error_rates import BY_RATE
from tracejury.judging.agreement.estimate import joined_reasons
from tracejury.judging.agreement.frames import IMPACTS, KINDS, Missing
from tracejury.judging.agreement.intervals import DRAWS, divide, mean_bounds

COSTS: Final = ("trace_id", "judge_model", "cost_usd")
"""Columns of the costs: US dollars of all judges of a judge model on a trace as they were paid, missing where not
recorded; optional `tokens` likewise."""
VALUES: Final = ("recall", "f1")
SPENT: Final = ("cost_usd", "tokens")
NOT_RECORDED: Final = {"cost_usd": "no cost recorded", "tokens": "no tokens recorded"}


def cost_agreement(
    error_pairs: pd.DataFrame, costs: pd.DataFrame, *, missing: Missing = "drop", draws: int = DRAWS
) -> pd.DataFrame:
    """Return what each judge model catches beside what it took a trace, and whether another beats it in both.

    One row per judge_model, split and metric: value, low, high and n, of `recall` (all reference errors, caught by any
    of its judges: `errors.suite_coverage`) and of `f1` (pairs of an error and a judge, all its judges together);
    not_matched; traces (that it answered); cost_usd and tokens: means over the traces on which every answer has one
    recorded (`_n` of them), with bounds (`mean_bounds`). on_front: no other judge model of the split costs as little
    and reaches as high a value, or better, by the estimates alone; None where its cost or its value is unknown.
    `costs`: `COSTS`, optional tokens and split. Raises ValueError for absent columns and duplicate rows.
    """
    values = pd.concat([_recalls(error_pairs, missing, draws), _f1s(error_pairs, missing, draws)], ignore_index=True)
    columns = cost_columns()
    if values.empty:
        return frames.empty(columns)
    table = values.merge(_spent(costs), on=["judge_model", "split"], how="left")
    counts = [name for name, kind in columns.items() if kind == "int64"]
    table[counts] = table[counts].fillna(0)
    table["metric"] = pd.Categorical(table["metric"], VALUES)
    table = table.sort_values(["metric", "split", "cost_usd", "judge_model"], kind="stable", ignore_index=True)
    front = [_is_on_front(row, table) for row in table.to_dict("records")]
    table = table.assign(on_front=pd.Series(front, dtype="object"), reason=None)
    why = [_reason(row, draws) for row in table.to_dict("records")]
    return table.assign(reason=pd.Series(why, dtype="object"))[list(columns)].astype(columns)


def cost_columns() -> dict[str, str]:
    """Columns and types of `cost_agreement`."""
    keys = dict.fromkeys(("judge_model", "split", "metric"), "object")
    values = dict.fromkeys(("value", "low", "high"), "float64")
    counts = dict.fromkeys(("n", "not_matched", "traces"), "int64")
    spent = {
        f"{name}{end}": kind
        for name in SPENT
        for end, kind in (("", "float64"), ("_low", "float64"), ("_high", "float64"), ("_n", "int64"))
    }
    return {**keys, **values, **counts, **spent, "on_front": "object", "reason": "object"}


def _recalls(error_pairs: pd.DataFrame, missing: Missing, draws: int) -> pd.DataFrame:
    suites = errors.suite_coverage(error_pairs, missing=missing, draws=draws)
    suites = suites[(suites["kind"] == "caught") & (suites["impact"] == "all")]
    names = {"coverage": "value", "coverage_low": "low", "coverage_high": "high"}
    columns = ["judge_model", "split", "n", "not_matched", *names.values()]
    return suites.rename(columns=names)[columns].assign(metric="recall", why="no units")


def _f1s(error_pairs: pd.DataFrame, missing: Missing, draws: int) -> pd.DataFrame:
    parts = errors.checked_pairs(error_pairs).groupby(["judge_model", "split"], sort=False)
    rows = [{"judge_model": model, "split": split, **_f1(part, missing, draws)} for (model, split), part in parts]
    return pd.DataFrame(rows)


def _f1(pairs: pd.DataFrame, missing: Missing, draws: int) -> dict[str, Any]:
    """F1 of caught errors, pooled over the judges of one judge model and split."""
    cells = errors.trace_cells(pairs, missing)
    counts = cells.counts[:, :, IMPACTS.index("all"), KINDS.index("caught")]
    pooled, f1 = counts.sum(axis=1), BY_RATE["f1"]
    tp, fp, fn, tn = (int(count) for count in pooled.sum(axis=0))
    is_general = any(dimension not in frames.DIMENSION_ORDER for dimension in cells.dimensions)
    value = np.nan if is_general else float(f1.function(pooled.sum(axis=0)))
    low, high = f1.bounds(pooled) if draws and len(pooled) else (np.nan, np.nan)
    why = f1.reasons(np.array([(tp, fp, fn, tn)]))[0] or "no negatives"
    return {
        "metric": "f1", "value": value, "low": np.nan if is_general else low, "high": np.nan if is_general else high,
        "n": f1.n(tp, fp, fn, tn), "not_matched": int(cells.not_matched[:, -1].sum()), "why": why,
    }  # fmt: skip


def _spent(costs: pd.DataFrame) -> pd.DataFrame:
    """judge_model, split, traces, and for `SPENT` the mean with its bounds and n."""
    frames.require(costs, "costs", COSTS)
    rows = frames.with_defaults(costs, {"split": frames.NO_SPLIT})
    frames.require_unique(rows, "costs", ["trace_id", "judge_model"])
    keys = ["judge_model", "split"]
    table = rows.groupby(keys)["trace_id"].size().rename("traces").reset_index()
    for name in SPENT:
        each = frames.numbers(rows.get(name, pd.Series(np.nan, rows.index)), f"costs.{name}")
        powers = pd.DataFrame({power: np.where(np.isnan(each), np.nan, each**power) for power in range(4)})
        n, total, squares, cubes = powers.groupby([rows[key].to_numpy() for key in keys]).sum().to_numpy().T
        low, high = mean_bounds(n, total, squares, cubes)
        of_name = {name: divide(total, n), f"{name}_low": np.maximum(low, 0.0), f"{name}_high": high}
        table = table.assign(**of_name, **{f"{name}_n": n})
    return table


def _is_on_front(row: Mapping[Any, Any], table: pd.DataFrame) -> bool | None:
    if pd.isna(row["cost_usd"]) or pd.isna(row["value"]):
        return None
    rivals = table[(table["split"] == row["split"]) & (table["metric"] == row["metric"])]
    no_worse = (rivals["cost_usd"] <= row["cost_usd"]) & (rivals["value"] >= row["value"])
    better = (rivals["cost_usd"] < row["cost_usd"]) | (rivals["value"] > row["value"])
    return not bool((no_worse & better).any())


def _reason(row: Mapping[Any, Any], draws: int) -> str | None:
    gaps = {name: NOT_RECORDED[name] for name in SPENT if pd.isna(row[name])}
    if pd.isna(row["value"]):
        gaps = {"value": errors.NOT_MATCHED if not row["n"] and row["not_matched"] else str(row["why"]), **gaps}
    elif draws and pd.isna(row["low"]):
        gaps = {f"value {reasons.INTERVAL}": reasons.FLAT, **gaps}
    flat = [name for name in SPENT if not pd.isna(row[name]) and pd.isna(row[f"{name}_low"])]
    why = {name: reasons.FLAT if row[f"{name}_n"] > 1 else "fewer than two units" for name in flat}
    return joined_reasons(gaps | {f"{name} {reasons.INTERVAL}": reason for name, reason in why.items()})
