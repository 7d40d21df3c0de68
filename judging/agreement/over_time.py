"""Recall of a judge model by guideline version and by week of labelling, with a test of drift between them."""

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import compare, errors, frames
from tracejury.judging.agreement.intervals import DRAWS, SEED, Floats, Ints, divide, share_bounds

PERIODS: Final = ("trace_id", "by", "period")
"""Columns of the periods of a trace: `by` is guideline or week, `period` its version or ISO week."""


def recall_by_period(
    error_pairs: pd.DataFrame,
    periods: pd.DataFrame,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Share of reference errors that any judge of a judge model caught, by the period in which a trace was labelled.

    `periods`: `PERIODS`. One row per judge_model, by and period: traces, n (errors), left_out (errors that a judge
    failed on, or that no matching has compared), hits, recall with bounds (`share_bounds`, by trace), drift_p:
    `drift_test` of all periods of the judge model, NaN with fewer than two periods.
    """
    frames.require(periods, "periods", PERIODS)
    pairs, keys = errors.checked_pairs(error_pairs), ["judge_model", "trace_id", "error_id"]
    known = compare.as_one_judge(pairs)[[*keys, "caught"]].drop_duplicates(keys)
    whole = pairs[keys].drop_duplicates().merge(known, on=keys, how="left")
    rows = whole.merge(periods[list(PERIODS)].astype(str), on="trace_id")
    period_rows = [
        row
        for (judge_model, by), part in rows.groupby(["judge_model", "by"], sort=True)
        for row in _period_rows(str(judge_model), str(by), part, draws, seed)
    ]
    columns = period_columns()
    return pd.DataFrame(period_rows, columns=list(columns)).astype(columns) if period_rows else frames.empty(columns)


def period_columns() -> dict[str, str]:
    """Columns and types of `recall_by_period`."""
    counts = dict.fromkeys(("traces", "n", "left_out", "hits"), "int64")
    rates = dict.fromkeys(("recall", "recall_low", "recall_high", "drift_p"), "float64")
    return {**dict.fromkeys(("judge_model", "by", "period"), "object"), **counts, **rates}


def drift_test(sizes: Floats, hits: Floats, periods: Ints, *, draws: int = DRAWS, seed: int = SEED) -> float:
    """Return the p-value that rates differ between periods no more than by chance; NaN with fewer than two periods.

    Permutation test (Fisher 1935, Pitman 1937) of the sum over periods of errors x (rate - whole rate)², with whole
    traces exchanged between periods, so that errors of one trace may depend on each other. `sizes` and `hits` (T,) are
    the errors of each trace and those caught, `periods` (T,) numbers its period from 0.
    """
    groups = int(periods.max()) + 1 if len(periods) else 0
    if groups < 2 or draws == 0:
        return float("nan")
    rng = np.random.default_rng(seed)
    seen = _between(sizes, hits, periods, groups)
    drawn = [_between(sizes, hits, rng.permutation(periods), groups) for _ in range(draws)]
    return (1 + sum(one >= seen - 1e-9 for one in drawn)) / (draws + 1)


def _between(sizes: Floats, hits: Floats, periods: NDArray[np.integer], groups: int) -> float:
    n, k = (np.bincount(periods, values, minlength=groups) for values in (sizes, hits))
    whole = hits.sum() / sizes.sum()
    return float(np.nansum(n * (divide(k, n) - whole) ** 2))


def _period_rows(judge_model: str, by: str, part: pd.DataFrame, draws: int, seed: int) -> list[dict[str, object]]:
    known = part[part["caught"].notna()].astype({"caught": "float64"})
    by_trace = known.groupby(["period", "trace_id"], sort=True)["caught"].agg(["size", "sum"]).astype("float64")
    codes, _ = pd.factorize(by_trace.index.get_level_values("period"))
    sums = by_trace.to_numpy()
    drift = drift_test(sums[:, 0], sums[:, 1], codes, draws=draws, seed=seed)
    left_out = part["caught"].isna().groupby(part["period"]).sum()
    rows = []
    for name in sorted(part["period"].unique()):
        own = sums[by_trace.index.get_level_values("period") == name]
        size, hits = own.sum(axis=0) if len(own) else (0.0, 0.0)
        low, high = share_bounds(own[:, 1], own[:, 0]) if draws and size else (np.nan, np.nan)
        rows.append(
            {
                "judge_model": judge_model,
                "by": by,
                "period": str(name),
                "traces": len(own),
                "n": int(size),
                "left_out": int(left_out[name]),
                "hits": int(hits),
                "recall": hits / size if size else np.nan,
                "recall_low": float(low),
                "recall_high": float(high),
                "drift_p": drift,
            }
        )
    return rows
