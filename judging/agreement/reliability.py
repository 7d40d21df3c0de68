"""How far raters, or the repeats of one judge, agree with themselves: Krippendorff's alpha and spread.

The only module that imports `krippendorff` (GPL-3.0-or-later). Matrices are raters x units, NaN where missing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, assert_never

import krippendorff
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.estimate import Estimate, Reason, joined_reasons, present
from tracejury.judging.agreement.intervals import (
    DRAWS,
    SEED,
    Bootstrap,
    Floats,
    Ints,
    cluster_bootstrap,
    distinct_rows,
    divide,
    fisher_bounds,
    share_bounds,
    student_t,
    wilson,
)
from tracejury.judging.agreement.scores import POINTS, Weights, agreement_weights

Level = Literal["nominal", "ordinal", "interval", "ratio"]
LEVELS: Final[tuple[Level, ...]] = ("nominal", "ordinal", "interval", "ratio")
TENTATIVE: Final = 0.667
RELIABLE: Final = 0.8
"""Krippendorff's customary limits: below the first nothing is concluded, from the second on it is relied upon."""

_LIBRARY_CELLS = 8_000_000  # the library holds units x values x values floats; beyond this our own sums are used
_MOST_VALUES = 200  # distinct values of a discrete scale; interval alpha has no such limit


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Ratings as raters x units: `values` (R, N) with NaN where missing, names of both, clusters of units.

    `failed` and `not_applicable` count the judgements that gave no rating; `failures` and `replies` (N,) count those of
    each unit that failed, and all that could have given one.
    """

    values: Floats
    raters: tuple[str, ...]
    units: tuple[str, ...]
    clusters: NDArray[np.int64]
    failed: int
    not_applicable: int
    failures: NDArray[np.int64]
    replies: NDArray[np.int64]


def rating_matrix(ratings: pd.DataFrame) -> Matrix:
    """Long ratings of one judge (or one dimension) as a matrix.

    One row per (unit, rater): unit, rater, value (None and NaN are missing). Optional: state (scored, failed,
    not_applicable), trace_id (the cluster of the unit; default: the unit itself). Raises ValueError for absent
    columns, a (unit, rater) twice, infinite values, a failed row that has a value.
    """
    frames.require(ratings, "ratings", frames.RATINGS)
    long = frames.with_defaults(ratings, {"state": "scored"})
    return _matrix(_checked(long, []), np.arange(len(long)))


@dataclass(frozen=True, kw_only=True)
class _Ratings:
    """Checked ratings (n,): places of units, raters and traces (-1: unnamed) among their sorted names."""

    values: Floats
    unit: Ints
    units: NDArray[np.object_]
    rater: Ints
    raters: NDArray[np.object_]
    trace: Ints | None
    is_failed: NDArray[np.bool_]
    is_inapplicable: NDArray[np.bool_]


def _checked(long: pd.DataFrame, keys: list[str]) -> _Ratings:
    """The ratings of all groups of `keys` at once: to check and factorize each group by itself takes ten times as long.

    Raises ValueError as `rating_matrix` does.
    """
    frames.check_states(long, "ratings")
    long["unit"], long["rater"] = long["unit"].astype(str), long["rater"].astype(str)
    frames.require_unique(long, "ratings", [*keys, "unit", "rater"])
    values = frames.numbers(long["value"], "ratings.value")
    unscored = (long["state"] != "scored").to_numpy()
    if (unscored & ~np.isnan(values)).any():
        row = long.loc[unscored & ~np.isnan(values), ["unit", "rater", "state", "value"]].iloc[0].to_dict()
        raise ValueError(f"ratings: {row!r} did not score and yet has a value; leave the value missing")
    unit, units = pd.factorize(long["unit"], sort=True)
    rater, raters = pd.factorize(long["rater"], sort=True)
    return _Ratings(
        values=values,
        unit=unit,
        units=np.asarray(units, dtype=object),
        rater=rater,
        raters=np.asarray(raters, dtype=object),
        trace=_trace_places(long),
        is_failed=(long["state"] == "failed").to_numpy(),
        is_inapplicable=(long["state"] == "not_applicable").to_numpy(),
    )


def _trace_places(long: pd.DataFrame) -> Ints | None:
    if "trace_id" not in long.columns:
        return None
    return np.where(long["trace_id"].notna(), pd.factorize(long["trace_id"].astype(str))[0], -1)


def _matrix(ratings: _Ratings, rows: Ints) -> Matrix:
    """The ratings that stand at `rows`, those of one judge, as a matrix."""
    units, unit = np.unique(ratings.unit[rows], return_inverse=True)
    raters, rater = np.unique(ratings.rater[rows], return_inverse=True)
    matrix = np.full((len(raters), len(units)), np.nan)
    matrix[rater, unit] = ratings.values[rows]
    is_failed, is_inapplicable = ratings.is_failed[rows], ratings.is_inapplicable[rows]
    return Matrix(
        values=matrix,
        raters=tuple(map(str, ratings.raters[raters])),
        units=tuple(map(str, ratings.units[units])),
        clusters=_clusters(None if ratings.trace is None else ratings.trace[rows], unit, len(units)),
        failed=int(is_failed.sum()),
        not_applicable=int(is_inapplicable.sum()),
        failures=np.bincount(unit[is_failed], minlength=len(units)),
        replies=np.bincount(unit[~is_inapplicable], minlength=len(units)),
    )


def value_counts(matrix: Floats) -> tuple[Ints, Floats]:
    """How often each value occurs in each unit (units, V), and the distinct values in ascending order (V,)."""
    known = ~np.isnan(matrix)
    values = np.unique(matrix[known])
    if len(values) > _MOST_VALUES:
        raise ValueError(
            f"{len(values)} distinct ratings: a nominal, ordinal or ratio alpha takes at most {_MOST_VALUES}; "
            "use the interval level, which has no limit, or bin the ratings"
        )
    counts = [(matrix == value).sum(axis=0) for value in values]
    return np.stack(counts, axis=1).astype(np.int64) if counts else _no_counts(matrix), values


def alpha(matrix: Floats, level: Level = "interval") -> Estimate:
    """Krippendorff's alpha of ratings (raters, units) by the `krippendorff` library.

    Source: Krippendorff 2011, 2018: 1 - D_observed / D_expected over all pairable values. Units with one rating
    do not count. Edge: constant ratings give `no variation`, fewer than two units with two ratings their own
    reason; both with n and percent agreement. Raises ValueError for infinite ratings. Continuous interval
    scores are computed from sums of squares, since the library's array of units x values x values explodes.
    """
    pairable = pairable_units(matrix)
    _check_level(pairable, level)
    n = pairable.shape[1]
    agreement = present(pair_agreement(pairable))
    reason = alpha_reason(pairable)
    if reason is not None:
        return Estimate(value=None, n=n, reason=reason, agreement=agreement)
    distinct = len(np.unique(pairable[~np.isnan(pairable)]))
    if n * distinct * distinct <= _LIBRARY_CELLS:
        alpha_value = float(krippendorff.alpha(reliability_data=pairable, level_of_measurement=level))
    else:
        sums, multiplicity = _alpha_sums(pairable, level)
        alpha_value = float(_alpha_of(level, pairable)(multiplicity @ sums))
    value = present(alpha_value)
    if value is None:
        return Estimate(value=None, n=n, reason="no variation", agreement=agreement)
    return Estimate(value=value, n=n, agreement=agreement)


def alpha_bootstrap(
    matrix: Floats,
    level: Level = "interval",
    *,
    clusters: NDArray[np.int64] | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Bootstrap:
    """Resample units (or their clusters, one number per unit) and compute alpha of every resample at once.

    Units with the same counts of values are one pattern, so 1e5 units of five repeats cost 126 rows. The ordinal
    metric is recomputed in each resample from its own marginals. Undefined resamples are NaN. Raters are never
    resampled. Source: METRICS.md, measured there.
    """
    pairable = pairable_units(matrix)
    _check_level(pairable, level)
    sums, multiplicity = _alpha_clusters(matrix, level, clusters)
    statistic = _alpha_of(level, pairable)
    return cluster_bootstrap(
        sums, lambda cells: statistic(cells)[..., None], multiplicity=multiplicity, draws=draws, seed=seed
    )


def _alpha_clusters(matrix: Floats, level: Level, clusters: NDArray[np.int64] | None) -> tuple[Floats, Ints]:
    """The additive cells of alpha of each cluster, or of each pattern of units (P, C), with multiplicities."""
    sums, multiplicity = _alpha_sums(pairable_units(matrix), level, collapse=clusters is None)
    if clusters is None:
        return sums, multiplicity
    keep = (~np.isnan(matrix)).sum(axis=0) >= 2
    _, cluster = np.unique(clusters[keep], return_inverse=True)
    together = np.zeros((int(cluster.max()) + 1 if len(cluster) else 0, sums.shape[1]))
    np.add.at(together, cluster, sums)
    return together, np.ones(len(together), dtype=np.int64)


def alpha_with_interval(
    matrix: Floats,
    level: Level = "interval",
    *,
    clusters: NDArray[np.int64] | None = None,
    draws: int = DRAWS,
) -> Estimate:
    """`alpha` with its 95 % interval, by `alpha_bounds`; without one where `draws=0`."""
    point = alpha(matrix, level)
    if point.value is None or draws == 0:
        return point
    low, high = alpha_bounds(matrix, level, clusters=clusters)
    return Estimate(value=point.value, n=point.n, agreement=point.agreement, low=present(low), high=present(high))


def alpha_bounds(
    matrix: Floats, level: Level = "interval", *, clusters: NDArray[np.int64] | None = None
) -> tuple[float, float]:
    """Bounds of alpha of ratings (raters, units) by `fisher_bounds`, units or their clusters being the clusters.

    Interval alpha of ratings on the scale 0 to 3 has a prior of one cluster, the two ratings of its units spread evenly
    over the 16 pairs of scores. NaN as `fisher_bounds`.
    """
    pairable = pairable_units(matrix)
    sums, multiplicity = _alpha_clusters(matrix, level, clusters)
    statistic = _alpha_of(level, pairable)
    prior = _even_pairs(pairable, level)
    prior = None if prior is None else prior * pairable.shape[1] / max(int(multiplicity.sum()), 1)
    low, high = fisher_bounds(
        sums, lambda cells: statistic(cells)[..., None], np.array([[-1.0, 1.0]]), prior=prior, multiplicity=multiplicity
    )
    return float(low[0]), float(high[0])


def _even_pairs(pairable: Floats, level: Level) -> Floats | None:
    """The cells (16, 4) of every pair of scores, for interval alpha; None of ratings that are no scores."""
    known = pairable[~np.isnan(pairable)]
    if level != "interval" or not np.isin(known, np.arange(POINTS)).all():
        return None
    pairs = np.array([(a, b) for a in range(POINTS) for b in range(POINTS)], dtype=np.float64) - _middle(pairable)
    apart = (pairs[:, 0] - pairs[:, 1]) ** 2
    return np.stack([np.full(len(pairs), 2.0), pairs.sum(axis=1), (pairs**2).sum(axis=1), 2 * apart], axis=1)


def continuous_alpha(matrix: Floats) -> float:
    """Interval alpha of ratings (raters, units) from sums of squares; NaN when undefined.

    Σ over pairs of (x - y)² is 2(nΣx² - (Σx)²): no table of values is needed, so 5 x 200 distinct scores take
    half a millisecond where the general form takes six seconds and 4.6 GB. Source: Krippendorff 2018.
    """
    pairable = pairable_units(matrix)
    if alpha_reason(pairable) is not None:
        return float("nan")
    sums, multiplicity = _alpha_sums(pairable, "interval")
    return float(_alpha_of("interval", pairable)(multiplicity @ sums))


def alpha_reason(pairable: Floats) -> Reason | None:
    """Why alpha of pairable units (raters, units) is undefined, None when it is defined."""
    if pairable.shape[1] < 2:
        return "fewer than two pairable units"
    known = pairable[~np.isnan(pairable)]
    return "no variation" if known.min() == known.max() else None


def pairable_units(matrix: Floats) -> Floats:
    """The units (columns) that have two ratings or more; raises ValueError for infinite ratings."""
    if np.isinf(matrix).any():
        raise ValueError("infinite ratings are not ratings; leave the value missing (NaN) instead")
    return matrix[:, (~np.isnan(matrix)).sum(axis=0) >= 2]


def pair_agreement(matrix: Floats) -> float:
    """Mean over units of the share of rating pairs that are equal; NaN without a unit of two ratings.

    Source: Fleiss 1971 (his P), Gwet 2014 for missing ratings. Shapes: (raters, units).
    """
    pairable = pairable_units(matrix)
    if pairable.shape[1] == 0:
        return float("nan")
    ordered = np.sort(pairable, axis=0)
    same = np.zeros(pairable.shape[1])
    for gap in range(1, len(ordered)):
        same += (ordered[gap:] == ordered[:-gap]).sum(axis=0)
    rated = (~np.isnan(pairable)).sum(axis=0)
    return float((same / (rated * (rated - 1) / 2)).mean())


def gwet_raters(counts: NDArray[np.generic], weights: Weights = "identity") -> Estimate:
    """Gwet's AC of any number of raters with missing ratings: AC1 by identity weights, else AC2.

    `counts` (units, K): ratings of each point of the full scale per unit. Source: Gwet 2014 (chapters 4, 5).
    Observed agreement uses units with two ratings, prevalence all rated units. Edge: no pairable unit.
    """
    table = np.asarray(counts, dtype=np.float64)
    rated = table.sum(axis=1)
    table, rated = table[rated > 0], rated[rated > 0]
    paired = rated >= 2
    if not paired.any():
        return Estimate(value=None, n=0, reason="fewer than two pairable units")
    w = agreement_weights(weights, table.shape[1])
    near = (table * (table @ w - 1)).sum(axis=1)[paired]
    observed = float((near / (rated * (rated - 1))[paired]).mean())
    shares = (table / rated[:, None]).mean(axis=0)
    size = table.shape[1]
    chance = float(w.sum() / (size * (size - 1)) * (shares * (1 - shares)).sum())
    same = float(((table * (table - 1)).sum(axis=1)[paired] / (rated * (rated - 1))[paired]).mean())
    return Estimate(value=(observed - chance) / (1 - chance), n=int(paired.sum()), agreement=same)


def repeat_spread(matrix: Floats, top: float = POINTS - 1) -> Floats:
    """Sample standard deviation over repeats of the scores scaled to [0, 1], per unit; NaN with one score or none.

    Source: Agent GPA Table 7. Shapes: (repeats, units) to (units,); `top` is the best score of the scale.
    """
    known = ~np.isnan(matrix)
    rated = known.sum(axis=0)
    scaled = np.where(known, matrix, 0.0) / top
    mean = divide(scaled.sum(axis=0), rated)
    squares = (np.where(known, scaled - mean, 0.0) ** 2).sum(axis=0)
    return np.sqrt(divide(squares, np.where(rated >= 2, rated - 1, 0)))


def mean_spread(matrix: Floats, top: float = POINTS - 1) -> Estimate:
    """Mean over units of `repeat_spread` with Student's t interval of the mean; n counts units with two scores.

    Source: Agent GPA Table 7 (`avg std` and the half-width of its 95 % interval, here high - value). No spread is below
    0, so the lower bound is not either. Edge: equal spreads (a judge that always says the same) give no interval, as
    resamples of them would not vary: a width of 0 would say that the estimate is certain.
    """
    spread = repeat_spread(matrix, top)
    spread = spread[~np.isnan(spread)]
    if len(spread) == 0:
        return Estimate(value=None, n=0, reason="fewer than two repeats")
    mean = float(spread.mean())
    if spread.max() - spread.min() <= 1e-12:
        return Estimate(value=mean, n=len(spread))
    reach = float(student_t(len(spread) - 1)) * float(spread.std(ddof=1)) / len(spread) ** 0.5
    return Estimate(value=mean, n=len(spread), low=max(0.0, mean - reach), high=mean + reach)


def share_identical(matrix: Floats) -> Estimate:
    """Share of units whose repeats all gave the same score, over units with two scores or more; Wilson's interval.

    Source: METRICS.md, reliability. A failed repeat neither agrees nor disagrees here; `share_unscored` counts it.
    """
    pairable = pairable_units(matrix)
    n = pairable.shape[1]
    if n == 0:
        return Estimate(value=None, n=0, reason="fewer than two repeats")
    same = int((np.nanmin(pairable, axis=0) == np.nanmax(pairable, axis=0)).sum())
    low, high = wilson(same, n) or (0.0, 1.0)
    return Estimate(value=same / n, n=n, low=low, high=high)


def share_unscored(matrix: Matrix) -> Estimate:
    """Share of replies without a score because the judge failed, over the replies that could have one.

    Source: METRICS.md, reliability. Not-applicable replies are neither. Wilson's interval by trace, since the repeats
    of a trace fail together (`intervals.share_bounds`): with fewer than 20 traces that fail, as if all repeats of a
    trace did.
    """
    n = int(matrix.replies.sum())
    if n == 0:
        return Estimate(value=None, n=0, reason="no units", not_applicable=matrix.not_applicable)
    failures, replies = (np.bincount(matrix.clusters, counts) for counts in (matrix.failures, matrix.replies))
    low, high = map(float, share_bounds(failures, replies, least_clusters=20))
    return Estimate(
        value=matrix.failed / n, n=n, low=present(low), high=present(high), failed=matrix.failed,
        not_applicable=matrix.not_applicable,
    )  # fmt: skip


KEYS: Final = {"judge_model": "object", "dimension": "object", "split": "object"}


def reliability_columns() -> dict[str, str]:
    """Columns and types of `reliability_table`."""
    counts = dict.fromkeys(("repeats", "units", "n", "failed", "not_applicable", "undefined_draws"), "int64")
    floats = [
        *("alpha_interval", "alpha_low", "alpha_high", "alpha_jackknife_low", "alpha_jackknife_high"),
        *("p_below_667", "p_below_800", "alpha_ordinal", "alpha_nominal", "ac2", "agreement"),
        *("mean_sd", "mean_sd_low", "mean_sd_high", "mean_sd_ci95"),
        *("identical", "identical_low", "identical_high", "unscored", "unscored_low", "unscored_high"),
    ]
    return {**KEYS, **counts, **dict.fromkeys(floats, "float64"), "reason": "object"}


def reliability_table(ratings: pd.DataFrame, *, draws: int = DRAWS, seed: int = SEED) -> pd.DataFrame:
    """Consistency of each judge over its repeats (Table 7), or of people over a dimension.

    `ratings`: unit, rater, value, and optionally dimension, judge_model, split, state, trace_id. One row per
    judge_model, dimension and split: repeats, units, n (units with two ratings), failed, not_applicable, interval
    alpha with its bounds (`alpha_bounds`) and jackknife-t bounds, P(alpha < .667), P(alpha < .8) and undefined
    resamples, ordinal and nominal alpha, AC2, percent agreement, mean standard deviation with its interval, share of
    identical units, share of unscored replies. `reason` says why an estimate is undefined (`estimate.joined_reasons`).
    """
    rows = [
        {"judge_model": judge_model, "dimension": dimension, "split": split, **_judge_row(matrix, draws, seed)}
        for (judge_model, dimension, split), matrix in rating_matrices(ratings)
    ]
    columns = reliability_columns()
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def unit_table(ratings: pd.DataFrame) -> pd.DataFrame:
    """Each unit of each judge with the scores of its repeats: the traces behind the estimates of Table 7.

    One row per judge_model, dimension, split and unit: ratings (scored), failed, not_applicable, mean, low, high
    (least and greatest score), sd (of scores scaled to [0, 1], NaN with fewer than two), identical (missing likewise).
    """
    parts = []
    for (judge_model, dimension, split), part in rating_groups(ratings):
        matrix = rating_matrix(part)
        values, known = matrix.values, ~np.isnan(matrix.values)
        rated = known.sum(axis=0)
        spread = repeat_spread(values)
        units = part["unit"].astype(str)
        frame = pd.DataFrame(
            {
                "unit": matrix.units,
                "ratings": rated,
                "mean": divide(np.where(known, values, 0.0).sum(axis=0), rated),
                "low": np.where(rated > 0, np.where(known, values, np.inf).min(axis=0), np.nan),
                "high": np.where(rated > 0, np.where(known, values, -np.inf).max(axis=0), np.nan),
                "sd": spread,
                "identical": pd.array(np.where(rated >= 2, spread == 0, False), dtype="boolean"),
            }
        )
        frame.loc[frame["ratings"] < 2, "identical"] = pd.NA
        for state in ("failed", "not_applicable"):
            frame[state] = np.bincount(frames.codes(units[part["state"] == state], matrix.units), minlength=len(frame))
        parts.append(frame.assign(judge_model=judge_model, dimension=dimension, split=split))
    columns = {
        **KEYS,
        "unit": "object",
        **dict.fromkeys(("ratings", "failed", "not_applicable"), "int64"),
        **dict.fromkeys(("mean", "low", "high", "sd"), "float64"),
        "identical": "boolean",
    }
    return pd.concat(parts, ignore_index=True)[list(columns)].astype(columns) if parts else frames.empty(columns)


def why_no_spread(row: Mapping[str, Any], name: str) -> str:
    """Why an estimate of `unit_table` is undefined."""
    return "fewer than two repeats" if name in {"sd", "identical"} else "no score"


def alpha_draws(ratings: pd.DataFrame, *, draws: int = DRAWS, seed: int = SEED) -> pd.DataFrame:
    """The bootstrap distribution of interval alpha of each judge, to draw with the lines .667 and .8.

    One row per judge_model, dimension, split and defined resample: alpha. Judges whose alpha is undefined have none.
    """
    parts = []
    for (judge_model, dimension, split), matrix in rating_matrices(ratings):
        if alpha(matrix.values).value is None:
            continue
        samples = alpha_bootstrap(matrix.values, clusters=clusters_of(matrix), draws=draws, seed=seed).samples[0]
        known = samples[~np.isnan(samples)]
        parts.append(pd.DataFrame({"judge_model": judge_model, "dimension": dimension, "split": split, "alpha": known}))
    columns = {**KEYS, "alpha": "float64"}
    return pd.concat(parts, ignore_index=True).astype(columns) if parts else frames.empty(columns)


def rating_groups(ratings: pd.DataFrame) -> list[tuple[tuple[str, str, str], pd.DataFrame]]:
    """Ratings by (judge_model, dimension, split) in the order of the paper; absent columns count as one group."""
    long = _with_groups(ratings)
    return [(key, long.iloc[rows]) for key, rows in _groups(long)]


def rating_matrices(ratings: pd.DataFrame) -> list[tuple[tuple[str, str, str], Matrix]]:
    """Return `rating_matrix` of each of `rating_groups`; raises ValueError as it does."""
    long = _with_groups(ratings)
    checked = _checked(long, list(KEYS))
    return [(key, _matrix(checked, rows)) for key, rows in _groups(long)]


def _with_groups(ratings: pd.DataFrame) -> pd.DataFrame:
    frames.require(ratings, "ratings", frames.RATINGS)
    long = frames.with_defaults(
        ratings, {"judge_model": frames.NO_JUDGE_MODEL, "dimension": "", "split": frames.NO_SPLIT, "state": "scored"}
    )
    frames.check_states(long, "ratings")
    return long


def _groups(long: pd.DataFrame) -> list[tuple[tuple[str, str, str], Ints]]:
    """The groups in order, each with the places of its rows."""
    places = long.groupby(list(KEYS), sort=False).indices
    order = [
        (judge_model, dimension, split)
        for judge_model in frames.in_order(long["judge_model"], ())
        for dimension in frames.in_order(long["dimension"], frames.DIMENSION_ORDER)
        for split in frames.in_order(long["split"], ("dev", "test"))
    ]
    return [(key, np.asarray(places[key])) for key in order if key in places]


def _judge_row(matrix: Matrix, draws: int, seed: int) -> dict[str, object]:
    values = matrix.values
    point = alpha(values, "interval")
    spread, same, unscored = mean_spread(values), share_identical(values), share_unscored(matrix)
    ordinal, nominal, ac2 = _discrete(values, "ordinal"), _discrete(values, "nominal"), _scale_ac2(values)
    estimates = {
        "alpha_interval": point, "alpha_ordinal": ordinal, "alpha_nominal": nominal, "ac2": ac2, "mean_sd": spread,
        "identical": same, "unscored": unscored,
    }  # fmt: skip
    gaps: dict[str, str] = {name: one.reason for name, one in estimates.items() if one.reason is not None}
    row: dict[str, object] = {
        "repeats": len(matrix.raters),
        "units": len(matrix.units),
        "n": point.n,
        "failed": matrix.failed,
        "not_applicable": matrix.not_applicable,
        "undefined_draws": 0,
        "alpha_interval": point.value,
        "alpha_ordinal": ordinal.value,
        "alpha_nominal": nominal.value,
        "ac2": ac2.value,
        "agreement": point.agreement,
        "mean_sd": spread.value,
        "mean_sd_low": spread.low,
        "mean_sd_high": spread.high,
        "mean_sd_ci95": None if spread.value is None or spread.high is None else spread.high - spread.value,
        "identical": same.value,
        "identical_low": same.low,
        "identical_high": same.high,
        "unscored": unscored.value,
        "unscored_low": unscored.low,
        "unscored_high": unscored.high,
    }
    if point.agreement is None:
        gaps["agreement"] = str(point.reason)
    if point.value is None or draws == 0:
        gaps |= dict.fromkeys(_RESAMPLED, str(point.reason or "no resamples"))
    else:
        boot = alpha_bootstrap(values, "interval", clusters=clusters_of(matrix), draws=draws, seed=seed)
        low, high = alpha_bounds(values, "interval", clusters=clusters_of(matrix))
        jack_low, jack_high = _jackknife(boot)
        row |= {
            "alpha_low": low,
            "alpha_high": high,
            "alpha_jackknife_low": jack_low[0],
            "alpha_jackknife_high": jack_high[0],
            "p_below_667": boot.share_below(TENTATIVE)[0],
            "p_below_800": boot.share_below(RELIABLE)[0],
            "undefined_draws": int(boot.undefined[0]),
        }
        gaps |= {"p_below_667": "no resamples", "p_below_800": "no resamples"} if boot.undefined[0] == draws else {}
        gaps |= {"alpha_jackknife_low": "traces do not vary" if np.isnan(low) else "undefined without one trace"}
    return row | {"reason": joined_reasons({name: why for name, why in gaps.items() if _is_empty(row.get(name))})}


_RESAMPLED: Final = ("p_below_667", "p_below_800", "alpha_jackknife_low")


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _check_level(pairable: Floats, level: Level) -> None:
    if level == "ratio" and bool((pairable < 0).any()):
        raise ValueError("ratio alpha needs ratings of 0 or more; use the interval level for negative ones")


def clusters_of(matrix: Matrix) -> NDArray[np.int64] | None:
    """The clusters of the units, None where each unit is its own: then equal units collapse to patterns."""
    return matrix.clusters if len(np.unique(matrix.clusters)) < len(matrix.clusters) else None


def _jackknife(boot: Bootstrap) -> tuple[Floats, Floats]:
    """Jackknife-t bounds, the upper one cut at alpha's largest value."""
    low, high = boot.jackknife_t()
    return low, np.minimum(high, 1.0)


def _discrete(values: Floats, level: Level) -> Estimate:
    """Alpha at a level that needs a table of values; undefined for continuous ratings with too many of them."""
    if len(np.unique(values[~np.isnan(values)])) > _MOST_VALUES:
        return Estimate(value=None, n=values.shape[1], reason="too many distinct ratings")
    return alpha(values, level)


def _scale_ac2(values: Floats) -> Estimate:
    """AC2 over the full scale 0..3, undefined when a rating is not on it."""
    known = values[~np.isnan(values)]
    if not np.isin(known, np.arange(POINTS)).all():
        return Estimate(value=None, n=values.shape[1], reason="ratings are not on the scale 0 to 3")
    counts = np.stack([(values == point).sum(axis=0) for point in range(POINTS)], axis=1)
    return gwet_raters(counts, "quadratic")


def _clusters(trace: Ints | None, unit: Ints, units: int) -> NDArray[np.int64]:
    """The cluster of each unit, in the order of units; `trace` (-1: unnamed) and `unit` are of the same ratings."""
    if trace is None:
        return np.arange(units, dtype=np.int64)
    of_unit = np.full(units, -1)
    named = trace >= 0
    of_unit[unit[named]] = trace[named]
    if (of_unit < 0).any() or (of_unit[unit[named]] != trace[named]).any():
        raise ValueError("ratings: each unit belongs to one trace; a unit has no trace_id or several")
    return pd.factorize(of_unit)[0].astype(np.int64)


def _no_counts(matrix: Floats) -> Ints:
    return np.zeros((matrix.shape[1], 0), dtype=np.int64)


def _alpha_sums(pairable: Floats, level: Level, collapse: bool = True) -> tuple[Floats, Ints]:
    """Additive cells of alpha per unit, or per distinct pattern of value counts (P, C), with multiplicities."""
    distinct = len(np.unique(pairable[~np.isnan(pairable)])) if collapse else _MOST_VALUES + 1
    if level == "interval" and (not collapse or distinct > _MOST_VALUES):
        return _square_sums(pairable), np.ones(pairable.shape[1], dtype=np.int64)
    counts, values = value_counts(pairable)
    multiplicity = np.ones(len(counts), dtype=np.int64)
    if collapse:
        counts, multiplicity = distinct_rows(counts)
    return _count_sums(counts.astype(np.float64), values, level), multiplicity


def _square_sums(pairable: Floats) -> Floats:
    """Per unit: ratings, Σx, Σx² and its sum of squared differences over pairs, per rating less one (units, 4)."""
    known = ~np.isnan(pairable)
    centred = np.where(known, pairable - _middle(pairable), 0.0)
    rated = known.sum(axis=0).astype(np.float64)
    first, second = centred.sum(axis=0), (centred**2).sum(axis=0)
    own_mean = first / np.maximum(rated, 1)
    within = (np.where(known, centred - own_mean, 0.0) ** 2).sum(axis=0)
    return np.stack([rated, first, second, 2 * rated * within / np.maximum(rated - 1, 1)], axis=1)


def _count_sums(counts: Floats, values: Floats, level: Level) -> Floats:
    """The additive cells of units with these value counts (P, V), by level.

    Interval: ratings, Σx, Σx², disagreement. Nominal and ratio: the counts and the disagreement. Ordinal: the
    counts and the coincidences of each pair of values, since its distances are known per resample only.
    """
    rated = counts.sum(axis=1)
    scale = np.maximum(rated - 1, 1)
    match level:
        case "interval":
            x = values - (values.min() + values.max()) / 2 if len(values) else values
            first, second = counts @ x, counts @ x**2
            return np.stack([rated, first, second, 2 * (rated * second - first**2) / scale], axis=1)
        case "nominal" | "ratio":
            loss = _distances(values, level)
            observed = ((counts @ loss) * counts).sum(axis=1) / scale
            return np.concatenate([counts, observed[:, None]], axis=1)
        case "ordinal":
            a, b = np.triu_indices(len(values), 1)
            return np.concatenate([counts, counts[:, a] * counts[:, b] / scale[:, None]], axis=1)
        case _ as unreachable:
            assert_never(unreachable)


def _alpha_of(level: Level, pairable: Floats) -> Callable[[Floats], Floats]:
    """The function from summed cells (..., C) to alpha (...), NaN where chance disagreement is 0."""
    match level:
        case "interval":
            return _interval_alpha
        case "nominal" | "ratio":
            loss = _distances(np.unique(pairable[~np.isnan(pairable)]), level)
            return lambda cells: _fixed_alpha(cells, loss)
        case "ordinal":
            return _ordinal_alpha
        case _ as unreachable:
            assert_never(unreachable)


def _interval_alpha(cells: Floats) -> Floats:
    n, first, second, observed = (cells[..., i] for i in range(4))
    chance = 2 * (n * second - first**2)
    chance = np.where(chance > 1e-12 * n * second, chance, 0.0)  # rounding of a constant resample
    return np.asarray(1 - (n - 1) * divide(observed, chance), dtype=np.float64)


def _fixed_alpha(cells: Floats, loss: Floats) -> Floats:
    values, observed = cells[..., :-1], cells[..., -1]
    chance = ((values @ loss) * values).sum(axis=-1)
    return np.asarray(1 - (values.sum(axis=-1) - 1) * divide(observed, chance), dtype=np.float64)


def _ordinal_alpha(cells: Floats) -> Floats:
    """The distance of two values is that of their mid-ranks in this resample's own marginals."""
    size = int(((8 * cells.shape[-1] + 1) ** 0.5 - 1) / 2)  # V + V(V-1)/2 cells
    values, pairs = cells[..., :size], cells[..., size:]
    rank = np.cumsum(values, axis=-1) - values / 2
    a, b = np.triu_indices(size, 1)
    observed = 2 * (pairs * (rank[..., a] - rank[..., b]) ** 2).sum(axis=-1)
    n = values.sum(axis=-1)
    chance = 2 * (n * (values * rank**2).sum(axis=-1) - (values * rank).sum(axis=-1) ** 2)
    varied = (values > 0).sum(axis=-1) > 1
    return np.asarray(1 - (n - 1) * divide(observed, np.where(varied, chance, 0.0)), dtype=np.float64)


def _distances(values: Floats, level: Literal["nominal", "ratio"]) -> Floats:
    difference = values[:, None] - values[None, :]
    if level == "nominal":
        return np.asarray(difference != 0, dtype=np.float64)
    return np.square(np.nan_to_num(divide(difference, values[:, None] + values[None, :])))


def _middle(pairable: Floats) -> float:
    known = pairable[~np.isnan(pairable)]
    return float((known.min() + known.max()) / 2) if len(known) else 0.0
