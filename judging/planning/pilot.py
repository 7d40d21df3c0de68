"""A pilot read for planning: design effect, ICC and correlation of repeats, estimated from labelled traces."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import compare, frames
from tracejury.judging.agreement.estimate import Reason, present
from tracejury.judging.agreement.intervals import Floats, divide
from tracejury.judging.planning.design import Spread

NO_BOUNDS: Final = "no interval: none of those tried covers the true value often enough"
"""Of ICC and design effect."""

PARTS: Final = ("mean", "variance", "errors_per_trace", "size_cv", "icc", "design_effect")
"""What `clustered` finds from the sums of a trace, in this order."""


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """What a pilot says of a rate or a difference: exactly one of `spread` and `reason` is present.

    `mean` is the rate, or the left judge's rate less the right one's; `discordant` the share of errors that one of two
    judges alone caught. ICC and design effect have no interval: none that was tried held the true value often
    enough (`tests/judging/agreement/test_coverage.py`).
    """

    traces: int
    errors: int
    mean: float | None = None
    discordant: float | None = None
    spread: Spread | None = None
    reason: Reason | None = None
    effect: float | None = None


def clustered(sums: Floats) -> Floats:
    """Return `PARTS` (..., 6) from sums over traces of `trace_sums` (..., 8).

    The design effect is the variance of the mean clustered by trace, as the intervals of the tables have it, over that
    of independent errors (Rao and Scott 1992): T / (T - 1) sum of squared residual totals / (n variance). The ICC
    follows from it: Kish's rate of homogeneity (1965), (effect - 1) / (b - 1), where b = sum of squared sizes / errors;
    0 where no trace has two errors. NaN with fewer than two traces or where nothing varies.
    """
    traces, errors, squared_sizes, total, squares, _, products, squared_totals = np.moveaxis(sums, -1, 0)
    mean = divide(total, errors)
    variance = np.maximum(divide(squares, errors) - mean**2, 0.0)
    variance = np.where(variance > 1e-12, variance, 0.0)  # what rounding leaves of no spread is none
    residuals = np.maximum(squared_totals - 2 * mean * products + mean**2 * squared_sizes, 0.0)
    crowd, size = divide(squared_sizes, errors), divide(errors, traces)  # crowd: the size that an error meets
    effect = divide(traces, traces - 1) * divide(residuals, errors * variance)
    cv = np.sqrt(np.maximum(divide(crowd, size) - 1, 0.0))
    icc = np.where(crowd > 1, divide(effect - 1, crowd - 1), np.where(np.isnan(effect), np.nan, 0.0))
    return np.stack([mean, variance, size, cv, icc, effect], axis=-1)


def one_way_icc(values: Floats, groups: NDArray[np.integer]) -> float | None:
    """Return the ICC of one value a group, from values (N,) and the number of each one's group (N,).

    One-way analysis of variance, ICC(1,1) of Shrout and Fleiss 1979, for groups of unequal size as Donner and Koval
    1980 have it. None with fewer than two groups, where no group has two values, and where nothing varies.
    """
    groups_, n, squared_sizes, total, squares, between, *_ = trace_sums(values, groups).sum(axis=0)
    if groups_ < 2 or n == groups_:
        return None
    ms_between = (between - total**2 / n) / (groups_ - 1)
    ms_within = (squares - between) / (n - groups_)
    typical = (n - squared_sizes / n) / (groups_ - 1)
    whole = ms_between + (typical - 1) * ms_within
    return float((ms_between - ms_within) / whole) if whole > 1e-12 else None


def trace_sums(values: Floats, traces: NDArray[np.integer]) -> Floats:
    """Return the sums that `clustered` needs, one row per trace (T, 8); `traces` (N,) numbers the trace of each value.

    Of the n values x of a trace: 1, n, n², Σx, Σx², (Σx)² / n, n Σx, (Σx)².
    """
    n = np.bincount(traces).astype(np.float64)
    total, squares = np.bincount(traces, values), np.bincount(traces, values**2)
    return np.stack([np.ones_like(n), n, n**2, total, squares, divide(total**2, n), n * total, total**2], axis=-1)


def pilot_of(repeats: pd.DataFrame, *, discordant: float | None = None) -> Pilot:
    """Read a pilot from values of errors: trace_id, error_id, repeat, value. The ICC is of the first repeat.

    The correlation of repeats is `repeat_correlation`. Undefined (`reason`) without errors, with one trace, and where
    all are equal.
    """
    first = repeats[repeats["repeat"] == repeats["repeat"].min()] if len(repeats) else repeats
    codes, names = pd.factorize(first["trace_id"].astype(object))
    nothing = Pilot(traces=len(names), errors=len(first), reason="no units")
    if len(names) < 2:
        return replace(nothing, reason="fewer than two units" if len(names) else "no units")
    values = first["value"].to_numpy(dtype=np.float64)
    part = dict(zip(PARTS, map(float, clustered(trace_sums(values, codes).sum(axis=0))), strict=True))
    if part["variance"] <= 0 or np.isnan(part["icc"]):
        return replace(nothing, mean=present(part["mean"]), discordant=discordant, reason="no variation")
    icc = min(1.0, max(0.0, part["icc"]))  # a negative ICC of a pilot is noise: planned as none
    among = repeat_correlation(repeats)
    return Pilot(
        traces=len(names),
        errors=len(first),
        mean=part["mean"],
        discordant=discordant,
        spread=Spread(
            variance=part["variance"],
            errors_per_trace=part["errors_per_trace"],
            size_cv=part["size_cv"],
            icc=icc,
            repeat_icc=None if among is None else float(np.clip(among, icc, 1.0)),
        ),
        effect=part["design_effect"],
    )


def repeat_correlation(repeats: pd.DataFrame) -> float | None:
    """Return `one_way_icc` of the repeats of an error, over errors seen twice or more; None where there is none."""
    keys = ["trace_id", "error_id"]
    several = repeats[repeats.groupby(keys)["repeat"].transform("nunique") > 1]
    codes = several.groupby(keys, sort=False).ngroup().to_numpy()
    return one_way_icc(several["value"].to_numpy(dtype=np.float64), codes)


def caught_values(error_pairs: pd.DataFrame, repeat: int = 0) -> pd.DataFrame:
    """Return trace_id, error_id, repeat, value: whether any judge of one judge model caught each error (1.0 or 0.0).

    An error counts where all judges of the model answered and were matched; failures are left out. Raises `ValueError`
    where the pairs hold several judge models.
    """
    whole = compare.as_one_judge(frames.with_defaults(error_pairs, {"split": "all"}))
    if whole["judge_model"].nunique() > 1:
        raise ValueError(f"several judge models: {sorted(set(whole['judge_model']))!r}. Try: name one")
    values = whole[["trace_id", "error_id"]].assign(repeat=repeat, value=whole["caught"].astype("float64"))
    return values.reset_index(drop=True)


def differences(left: pd.DataFrame, right: pd.DataFrame) -> tuple[pd.DataFrame, float | None]:
    """Return the left values less the right ones on errors and repeats of both, and the share of discordant errors.

    Both are `caught_values`. The share is of the first repeat, None without a common error.
    """
    keys = ["trace_id", "error_id", "repeat"]
    both = left.merge(right, on=keys, suffixes=("", "_right"))
    values = both[keys].assign(value=both["value"] - both["value_right"])
    first = values.loc[values["repeat"] == values["repeat"].min(), "value"]
    return values, (float((first != 0).mean()) if len(first) else None)


def people_reliability(ratings: pd.DataFrame) -> float | None:
    """Return the median over dimensions of the ICC of one person's scores: unit, rater, dimension, value.

    One-way ICC (Shrout and Fleiss 1979, ICC(1,1)) over units that two people scored or more; None where no dimension
    has two such units or its scores do not vary.
    """
    known = ratings.dropna(subset=["value"])
    each = [_unit_icc(part) for _, part in known.groupby("dimension", sort=False)]
    defined = [icc for icc in each if icc is not None]
    return float(np.median(defined)) if defined else None


def _unit_icc(scores: pd.DataFrame) -> float | None:
    several = scores[scores.groupby("unit")["rater"].transform("nunique") > 1]
    codes = several.groupby("unit", sort=False).ngroup().to_numpy()
    return one_way_icc(several["value"].to_numpy(dtype=np.float64), codes)
