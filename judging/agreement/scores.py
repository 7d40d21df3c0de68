"""How far a judge's scores agree with a person's: accuracies, correlations, chance-corrected agreement.

Every metric is a function of the table of scores, reference in rows and judge in columns over the full scale 0..3,
so that one table, or ten thousand resampled ones, cost one call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal, assert_never

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.estimate import Reason
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.intervals import (
    DRAWS,
    Floats,
    Ints,
    divide,
    fisher_bounds,
    share_bounds,
    wilson_bounds,
)
from tracejury.judging.agreement.metric import Metric

POINTS: Final = 4
"""Scores are 0, 1, 2, 3; every weighted statistic is given this whole scale, used or not."""

Weights = Literal["identity", "linear", "quadratic", "ordinal"]
Flag = Literal["constant", "lenient", "harsh", "two-peaked"]

CONSTANT_SHARE: Final = 0.95
BIAS_POINTS: Final = 0.5
PEAK_SHARE: Final = 0.2
PEAKS_SHARE: Final = 0.8

KEYS: Final = {"judge_model": "object", "dimension": "object", "split": "object"}
LEFT_OUT: Final = {"n": "int64", "traces": "int64", "failed": "int64", "not_applicable": "int64", "missing": "int64"}


def exact(table: NDArray[np.generic]) -> Floats:
    """Share of traces with the same score.

    Source: Agent GPA, appendix A (four-point accuracy). Shapes: table (..., 4, 4), reference by judge; returns
    (...). Edge: NaN without pairs.
    """
    return exact_share(table)


def off_by_one(table: NDArray[np.generic]) -> Floats:
    """Share of traces whose scores differ by at most one point.

    Source: Agent GPA Table 4 (Acc OB1). Shapes: table (..., 4, 4); returns (...). Edge: NaN without pairs.
    """
    return _share(table, _gap() <= 1)


def bucketed(table: NDArray[np.generic]) -> Floats:
    """Share of traces in the same of three buckets {0}, {1, 2}, {3}.

    Source: Agent GPA Table 4 (Acc 3pt). Shapes: table (..., 4, 4); returns (...). Edge: NaN without pairs.
    """
    return _share(table, _bucket_gap() == 0)


def two_point(table: NDArray[np.generic]) -> Floats:
    """Share of traces on the same side of 0 against the rest.

    Source: Agent GPA Table 17 (Acc 2pt). Shapes: table (..., 4, 4); returns (...). Edge: NaN without pairs.
    """
    side = np.arange(POINTS) > 0
    return _share(table, side[:, None] == side[None, :])


def pearson(table: NDArray[np.generic]) -> Floats:
    """Pearson correlation of the scores.

    Source: Pearson 1895; the paper's `correl` does not say which correlation it is, so both are named.
    Shapes: table (..., 4, 4); returns (...). Edge: NaN when either side is constant.
    """
    points = np.arange(POINTS, dtype=np.float64)
    rows = np.broadcast_to(points, (*np.shape(table)[:-2], POINTS))
    return _correlation(np.asarray(table, dtype=np.float64), rows, rows)


def spearman(table: NDArray[np.generic]) -> Floats:
    """Spearman correlation: Pearson of the mid-ranks, ties shared.

    Source: Spearman 1904. Shapes: table (..., 4, 4); returns (...). Edge: NaN when either side is constant.
    """
    counts = np.asarray(table, dtype=np.float64)
    return _correlation(counts, _mid_ranks(counts.sum(axis=-1)), _mid_ranks(counts.sum(axis=-2)))


def nmae(table: NDArray[np.generic]) -> Floats:
    """Mean absolute difference of the three buckets, divided by its largest value 2; 0 is best.

    Source: Agent GPA Tables 8 and 17 (checked: 4/34 = .118). Shapes: table (..., 4, 4); returns (...).
    Edge: NaN without pairs.
    """
    return divide(_weighted_sum(table, _bucket_gap()), 2 * _total(table))


def mae(table: NDArray[np.generic]) -> Floats:
    """Mean absolute difference of the two scores, in points from 0 to 3; 0 is best.

    Source: Willmott and Matsuura 2005. Shapes: table (..., 4, 4); returns (...). Edge: NaN without pairs.
    """
    return divide(_weighted_sum(table, _gap()), _total(table))


def bias(table: NDArray[np.generic]) -> Floats:
    """Mean of judge minus reference, in points: above 0 the judge is lenient.

    Source: Bland and Altman 1986. Shapes: table (..., 4, 4); returns (...). Edge: NaN without pairs.
    """
    points = np.arange(POINTS)
    return divide(_weighted_sum(table, points[None, :] - points[:, None]), _total(table))


def kappa(table: NDArray[np.generic], weights: Weights = "quadratic") -> Floats:
    """Cohen's weighted kappa over the full scale.

    Source: Cohen 1968. Shapes: table (..., K, K) of any K; returns (...). Edge: NaN when chance disagreement
    is 0 (both constant on one score). Trap: scikit-learn drops unused scores from the scale.
    """
    counts = np.asarray(table, dtype=np.float64)
    loss = 1 - agreement_weights(weights, counts.shape[-1])
    observed = (counts * loss).sum(axis=(-2, -1))
    chance = np.einsum("...i,ij,...j->...", counts.sum(axis=-1), loss, counts.sum(axis=-2))
    return 1 - divide(observed * _total(counts), chance)


def quadratic_kappa(table: NDArray[np.generic]) -> Floats:
    """Cohen's kappa with quadratic weights.

    Source: Cohen 1968. Shapes: table (..., 4, 4); returns (...). Edge: NaN when both sides are one constant;
    near 0 or below at high agreement when one score prevails, so AC1 and AC2 stand beside it.
    """
    return kappa(table, "quadratic")


def gwet(table: NDArray[np.generic], weights: Weights = "quadratic") -> Floats:
    """Gwet's agreement coefficient of two raters over the full scale: AC1 by identity weights, else AC2.

    Source: Gwet 2008, 2014. Shapes: table (..., K, K); returns (...). Edge: NaN without pairs; 1, not
    undefined, when both sides are one constant, since chance agreement goes to 0 there.
    """
    counts = np.asarray(table, dtype=np.float64)
    size = counts.shape[-1]
    w = agreement_weights(weights, size)
    total = _total(counts)
    observed = divide((counts * w).sum(axis=(-2, -1)), total)
    shares = divide(counts.sum(axis=-1) + counts.sum(axis=-2), 2 * total[..., None])
    chance = w.sum() / (size * (size - 1)) * (shares * (1 - shares)).sum(axis=-1)
    return divide(observed - chance, 1 - chance)


def ac1(table: NDArray[np.generic]) -> Floats:
    """Gwet's AC1: chance-corrected exact agreement that survives a prevailing score.

    Source: Gwet 2008. Shapes: table (..., 4, 4); returns (...). Edge: NaN without pairs; 1 when both sides
    are one constant.
    """
    return gwet(table, "identity")


def ac2(table: NDArray[np.generic]) -> Floats:
    """Gwet's AC2 with quadratic weights.

    Source: Gwet 2014. Shapes: table (..., 4, 4); returns (...). Edge: NaN without pairs; 1 when both sides
    are one constant.
    """
    return gwet(table, "quadratic")


def pair_alpha(table: NDArray[np.generic]) -> Floats:
    """Krippendorff's interval alpha of reference and judge as two raters.

    Source: Krippendorff 2011; equal to the `krippendorff` library on the same two rows.
    Shapes: table (..., 4, 4); returns (...). Edge: NaN without variation or with fewer than two pairs.
    """
    counts = np.asarray(table, dtype=np.float64)
    pairs = _total(counts)
    observed = 2 * _weighted_sum(counts, _gap() ** 2)
    values = counts.sum(axis=-1) + counts.sum(axis=-2)
    chance = np.einsum("...i,ij,...j->...", values, (_gap() ** 2).astype(np.float64), values)
    return np.where(pairs >= 2, 1 - (2 * pairs - 1) * divide(observed, chance), np.nan)


@dataclass(frozen=True, kw_only=True)
class ScoreMetric(Metric):
    """A metric of a judge's scores: a function of tables of scores (..., 4, 4)."""

    function: Callable[[NDArray[np.generic]], Floats]
    table: str = "score_estimates"
    column: str = "value"
    has_ceiling: bool = True
    hits: bool = False
    """A share of traces: a failed judgement can count as a miss, and Wilson gives its interval."""


_SIGNED: Final = (-1.0, 1.0)
SCORE_METRICS: Final = (
    ScoreMetric(name="exact", title="Exact accuracy", function=exact, best="high", hits=True),
    ScoreMetric(name="off_by_one", title="Off-by-one accuracy", function=off_by_one, best="high", hits=True),
    ScoreMetric(name="bucketed", title="Bucketed 3-point accuracy", function=bucketed, best="high", hits=True),
    ScoreMetric(name="two_point", title="2-point accuracy", function=two_point, best="high", hits=True),
    ScoreMetric(name="pearson", title="Pearson r", function=pearson, best="high", limits=_SIGNED),
    ScoreMetric(name="spearman", title="Spearman rho", function=spearman, best="high", limits=_SIGNED),
    ScoreMetric(name="nmae", title="NMAE of buckets", function=nmae, best="low"),
    ScoreMetric(name="mae", title="Mean absolute error, points", function=mae, best="low", limits=(0.0, 3.0)),
    ScoreMetric(
        name="bias",
        title="Mean bias, judge minus reference",
        function=bias,
        best="zero",
        limits=(-3.0, 3.0),
        has_ceiling=False,
    ),
    ScoreMetric(
        name="quadratic_kappa", title="Quadratic weighted kappa", function=quadratic_kappa, best="high", limits=_SIGNED
    ),
    ScoreMetric(name="ac1", title="Gwet's AC1", function=ac1, best="high", limits=_SIGNED),
    ScoreMetric(name="ac2", title="Gwet's AC2, quadratic", function=ac2, best="high", limits=_SIGNED),
    ScoreMetric(
        name="pair_alpha",
        title="Krippendorff's alpha of judge and reference, interval",
        short="Krippendorff's alpha with the reference",
        function=pair_alpha,
        best="high",
        limits=_SIGNED,
    ),
)
SCORE_NAMES: Final = tuple(metric.name for metric in SCORE_METRICS)
"""Every metric of scores. One more is a function and a record here: its columns, its chart with direction and limits,
its human ceiling, reason and help follow. People's bias is 0: each pair of them counts in both directions."""
BY_SCORE: Final = {metric.name: metric for metric in SCORE_METRICS}


def agreement_weights(name: Weights, size: int) -> Floats:
    """Weights of agreement between points of a scale of `size` points (size, size), 1 on the diagonal.

    Source: Cohen 1968 (linear, quadratic); Gwet 2014 (ordinal: 1 minus the share of pairs of ranks between).
    """
    gap = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)
    widest = max(size - 1, 1)
    match name:
        case "identity":
            return np.eye(size)
        case "linear":
            return np.asarray(1 - gap / widest, dtype=np.float64)
        case "quadratic":
            return np.asarray(1 - (gap / widest) ** 2, dtype=np.float64)
        case "ordinal":
            pairs = gap * (gap + 1) / 2
            return np.asarray(1 - pairs / max(pairs.max(), 1), dtype=np.float64)
        case _ as unreachable:
            assert_never(unreachable)


def checked_scores(score_pairs: pd.DataFrame) -> pd.DataFrame:
    """The frame with `judge_model`, `split`, `state` filled in; scores as floats, NaN where missing.

    One row per (trace, judge): trace_id, dimension, reference_score and judge_score 0..3. Optional: split, judge_model,
    state (scored, failed, not_applicable), `repeat` and `reference_rater` when a trace is judged or rated several
    times: intervals stay by trace. Raises ValueError for absent columns, duplicate rows, scores off the scale.
    """
    frames.require(score_pairs, "score_pairs", frames.SCORE_PAIRS)
    pairs = frames.with_defaults(
        score_pairs, {"judge_model": frames.NO_JUDGE_MODEL, "split": frames.NO_SPLIT, "state": "scored"}
    )
    frames.check_states(pairs, "score_pairs")
    repeats = [column for column in ("repeat", "reference_rater") if column in pairs.columns]
    frames.require_unique(pairs, "score_pairs", ["judge_model", "dimension", "trace_id", *repeats])
    for side in ("reference_score", "judge_score"):
        values = frames.numbers(pairs[side], f"score_pairs.{side}")
        bad = ~np.isnan(values) & ~np.isin(values, np.arange(POINTS))
        if bad.any():
            raise ValueError(
                f"score_pairs.{side} holds {float(values[bad][0])!r}: expected 0, 1, 2, 3 or missing; "
                "adjudicate or round a mean of several people first"
            )
        pairs[side] = values
    for column in ("trace_id", "dimension"):
        pairs[column] = pairs[column].astype(str)
    return pairs


def tabulate(reference: NDArray[np.float64], model: NDArray[np.float64]) -> NDArray[np.int64]:
    """Counts of score pairs (4, 4), reference in rows; both arrays (n,) without missing values."""
    place = reference.astype(np.int64) * POINTS + model.astype(np.int64)
    return np.bincount(place, minlength=POINTS * POINTS).reshape(POINTS, POINTS)


def scored_rows(pairs: pd.DataFrame) -> pd.DataFrame:
    """The checked pairs that have both scores."""
    return pairs[(pairs["state"] == "scored") & pairs["reference_score"].notna() & pairs["judge_score"].notna()]


def score_estimates(
    score_pairs: pd.DataFrame,
    *,
    missing: Missing = "drop",
    draws: int = DRAWS,
    names: Collection[str] = SCORE_NAMES,
) -> pd.DataFrame:
    """Every score metric of every judge (or those of `names`): one row per judge_model, dimension, split and metric.

    Columns: judge_model, dimension, split, metric, value, low, high, n, hits (of accuracies), agreement (exact, of the
    scored pairs: what is left to read when an estimate is undefined), reason, traces, failed, not_applicable, missing,
    undefined_draws, interval (how the bounds were made). `missing="disagree"`
    counts failed judgements as misses of the four accuracies; the other metrics have no such reading.
    Intervals: Wilson for accuracies with one pair per trace, else `table_bounds`; `draws=0`: none.
    """
    pairs = checked_scores(score_pairs)
    metrics = [metric for metric in SCORE_METRICS if metric.name in names]
    every, keys = _Scores.of(pairs, missing), list(KEYS)
    rows = [
        {**dict(zip(keys, key, strict=True)), **row}
        for key, places in _places(pairs)
        for row in _judge_estimates(every.at(places), metrics, draws)
    ]
    columns = estimate_columns()
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def estimate_columns() -> dict[str, str]:
    """Columns and types of `score_estimates`."""
    return {
        **KEYS,
        "metric": "object",
        **dict.fromkeys(("value", "low", "high"), "float64"),
        "hits": "Int64",
        "agreement": "float64",
        **LEFT_OUT,
        "undefined_draws": "int64",
        "reason": "object",
        "interval": "object",
    }


def pooled_bias(scored: pd.DataFrame, *, draws: int = DRAWS) -> tuple[float, float]:
    """Bounds of the mean of judge minus reference over pairs of several judges: trace_id, both scores, none missing.

    `fisher_bounds` by trace: the pairs of all judges of a trace depend on each other. NaN without draws, and as it
    says.
    """
    if draws == 0 or scored.empty:
        return float("nan"), float("nan")
    sums = scored.assign(n=1).groupby("trace_id", sort=False)[["reference_score", "judge_score", "n"]].sum().to_numpy()

    def statistic(cells: Floats) -> Floats:
        return divide(cells[..., 1] - cells[..., 0], cells[..., 2])[..., None]

    low, high = fisher_bounds(sums, statistic, np.array([[1.0 - POINTS, POINTS - 1.0]]))
    return float(low[0]), float(high[0])


def score_table(
    score_pairs: pd.DataFrame,
    *,
    missing: Missing = "drop",
    draws: int = DRAWS,
) -> pd.DataFrame:
    """`score_estimates` as one row per judge_model, dimension and split (Tables 4, 8 and 17).

    Columns: judge_model, dimension, split, n, traces, failed, not_applicable, missing, then each metric with its
    `_low` and `_high`. `n` counts the scored pairs. NaN where undefined.
    """
    return wide_scores(score_estimates(score_pairs, missing=missing, draws=draws))


def wide_scores(estimates: pd.DataFrame) -> pd.DataFrame:
    """`score_estimates` with one row per judge_model, dimension and split, as `score_table` describes it."""
    columns = {**KEYS, **LEFT_OUT}
    columns |= {f"{m.name}{end}": "float64" for m in SCORE_METRICS for end in ("", "_low", "_high")}
    if estimates.empty:
        return frames.empty(columns)
    plain = estimates[estimates["metric"] == "pearson"].set_index(list(KEYS))[list(LEFT_OUT)]
    parts = [plain]
    for metric in SCORE_METRICS:
        rows_of_metric = estimates[estimates["metric"] == metric.name].set_index(list(KEYS))[["value", "low", "high"]]
        parts.append(rows_of_metric.set_axis([metric.name, f"{metric.name}_low", f"{metric.name}_high"], axis=1))
    return pd.concat(parts, axis=1).reset_index()[list(columns)].astype(columns)


def confusion(score_pairs: pd.DataFrame) -> pd.DataFrame:
    """Score pairs counted: one row per judge_model, dimension, split and both scores, with count and share.

    `share` is of the row (the reference score); NaN where no trace has that score.
    """
    rows: list[dict[str, object]] = []
    for (judge_model, dimension, split), part in _groups(score_pairs):
        table = _scored_table(part)
        for reference in range(POINTS):
            for model in range(POINTS):
                rows.append(
                    {
                        "judge_model": judge_model,
                        "dimension": dimension,
                        "split": split,
                        "reference_score": reference,
                        "judge_score": model,
                        "count": int(table[reference, model]),
                        "of": int(table[reference].sum()),
                    }
                )
    columns = {**KEYS, **dict.fromkeys(("reference_score", "judge_score", "count", "of"), "int64")}
    frame = pd.DataFrame(rows, columns=list(columns)).astype(columns)
    return frame.assign(share=divide(frame["count"].to_numpy(), frame["of"].to_numpy()))


def score_prevalence(score_pairs: pd.DataFrame) -> pd.DataFrame:
    """Frequency of each score by the reference and by the judge, over the traces scored by both.

    One row per judge_model, dimension, split, side (reference, judge) and score: count, n, share with Wilson's bounds.
    Stands beside kappa: when one score prevails, kappa falls whatever the agreement.
    """
    rows: list[dict[str, object]] = []
    for (judge_model, dimension, split), part in _groups(score_pairs):
        table = _scored_table(part)
        for side, counts in (("reference", table.sum(axis=1)), ("judge", table.sum(axis=0))):
            for score in range(POINTS):
                rows.append(
                    {
                        "judge_model": judge_model,
                        "dimension": dimension,
                        "split": split,
                        "side": side,
                        "score": score,
                        "count": int(counts[score]),
                        "n": int(table.sum()),
                    }
                )
    columns = {**KEYS, "side": "object", **dict.fromkeys(("score", "count", "n"), "int64")}
    frame = pd.DataFrame(rows, columns=list(columns)).astype(columns)
    count, n = frame["count"].to_numpy(), frame["n"].to_numpy()
    low, high = wilson_bounds(count, n)
    return frame.assign(share=divide(count, n), share_low=low, share_high=high)


def distribution_flags(counts: NDArray[np.generic], mean_bias: float | None = None) -> tuple[Flag, ...]:
    """What is odd about how a judge spreads its scores (K,): warnings to look at, not verdicts.

    `constant`: one score holds at least 95 % of two or more scores. `two-peaked`: 0 and the top score hold
    80 % together and 20 % each. `lenient` and `harsh`: the mean bias is half a point or more.
    """
    total = float(np.sum(counts))
    flags: list[Flag] = []
    if total >= 2:
        shares = np.asarray(counts, dtype=np.float64) / total
        if shares.max() >= CONSTANT_SHARE:
            flags.append("constant")
        if min(shares[0], shares[-1]) >= PEAK_SHARE and shares[0] + shares[-1] >= PEAKS_SHARE:
            flags.append("two-peaked")
    if mean_bias is not None and abs(mean_bias) >= BIAS_POINTS:
        flags.append("lenient" if mean_bias > 0 else "harsh")
    return tuple(flags)


def score_flags(score_pairs: pd.DataFrame) -> pd.DataFrame:
    """`distribution_flags` of every judge: judge_model, dimension, split, n, bias, flags (joined by `, `)."""
    rows: list[dict[str, object]] = []
    for (judge_model, dimension, split), part in _groups(score_pairs):
        table = _scored_table(part)
        mean = float(bias(table))
        flags = distribution_flags(table.sum(axis=0), None if np.isnan(mean) else mean)
        rows.append(
            {
                "judge_model": judge_model,
                "dimension": dimension,
                "split": split,
                "n": int(table.sum()),
                "bias": mean,
                "flags": ", ".join(flags),
            }
        )
    columns = {**KEYS, "n": "int64", "bias": "float64", "flags": "object"}
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def _gap() -> NDArray[np.int64]:
    points = np.arange(POINTS, dtype=np.int64)
    return np.asarray(np.abs(points[:, None] - points[None, :]), dtype=np.int64)


def _bucket_gap() -> NDArray[np.int64]:
    bucket = np.array([0, 1, 1, 2])
    return np.asarray(np.abs(bucket[:, None] - bucket[None, :]), dtype=np.int64)


def _total(table: NDArray[np.generic]) -> Floats:
    return np.asarray(np.sum(np.asarray(table, dtype=np.float64), axis=(-2, -1)), dtype=np.float64)


def _weighted_sum(table: NDArray[np.generic], weights: NDArray[np.generic]) -> Floats:
    product = np.asarray(table, dtype=np.float64) * np.asarray(weights, dtype=np.float64)
    return np.asarray(product.sum(axis=(-2, -1)), dtype=np.float64)


def exact_share(table: NDArray[np.generic]) -> Floats:
    """Share of pairs on the diagonal of a table (..., K, K) of any K; NaN without pairs."""
    counts = np.asarray(table, dtype=np.float64)
    return divide(np.trace(counts, axis1=-2, axis2=-1), _total(counts))


def _share(table: NDArray[np.generic], hit: NDArray[np.bool_]) -> Floats:
    return divide(_weighted_sum(table, hit), _total(table))


def _mid_ranks(counts: Floats) -> Floats:
    """Mid-rank of each score given how often each occurs (..., K)."""
    return np.asarray(np.cumsum(counts, axis=-1) - counts / 2 + 0.5, dtype=np.float64)


def _correlation(counts: Floats, rows: Floats, columns: Floats) -> Floats:
    """Weighted Pearson of row values and column values (..., K) under counts (..., K, K).

    A table with all its weight in one row or column is constant on that side; testing the marginals instead
    of a variance keeps rounding from inventing a correlation.
    """
    total = _total(counts)
    row_counts, column_counts = counts.sum(axis=-1), counts.sum(axis=-2)
    row_mean = divide((row_counts * rows).sum(axis=-1), total)[..., None]
    column_mean = divide((column_counts * columns).sum(axis=-1), total)[..., None]
    x, y = rows - row_mean, columns - column_mean
    both = np.einsum("...i,...ij,...j->...", x, counts, y)
    spread = (row_counts * x**2).sum(axis=-1) * (column_counts * y**2).sum(axis=-1)
    varied = ((row_counts > 0).sum(axis=-1) > 1) & ((column_counts > 0).sum(axis=-1) > 1)
    return np.clip(divide(both, np.where(varied, np.sqrt(spread), 0.0)), -1.0, 1.0)


def _groups(score_pairs: pd.DataFrame) -> list[tuple[tuple[str, str, str], pd.DataFrame]]:
    pairs = checked_scores(score_pairs)
    return [(key, pairs.iloc[places]) for key, places in _places(pairs)]


def _places(pairs: pd.DataFrame) -> list[tuple[tuple[str, str, str], Ints]]:
    """The checked pairs of each judge in the order of the paper: the places of its rows."""
    places = pairs.groupby(["judge_model", "dimension", "split"], sort=False).indices
    order = [
        (judge_model, dimension, split)
        for judge_model in frames.in_order(pairs["judge_model"], ())
        for dimension in frames.in_order(pairs["dimension"], frames.DIMENSION_ORDER)
        for split in frames.in_order(pairs["split"], ("dev", "test"))
    ]
    return [(key, np.asarray(places[key])) for key in order if key in places]


@dataclass(frozen=True, kw_only=True)
class _Scores:
    """Checked pairs as arrays (n,): to take the rows of each judge from a frame takes ten times as long.

    `is_miss` are failed judgements that count as misses, `is_scored` those that have both scores.
    """

    trace: Ints
    reference: Floats
    judge: Floats
    state: NDArray[np.object_]
    is_miss: NDArray[np.bool_]
    is_scored: NDArray[np.bool_]

    @classmethod
    def of(cls, pairs: pd.DataFrame, missing: Missing) -> _Scores:
        state = pairs["state"].to_numpy(dtype=object)
        reference, judge = (pairs[name].to_numpy(dtype=np.float64) for name in ("reference_score", "judge_score"))
        return cls(
            trace=pd.factorize(pairs["trace_id"])[0],
            reference=reference,
            judge=judge,
            state=state,
            is_miss=(state == "failed") & ~np.isnan(reference) & (missing == "disagree"),
            is_scored=(state == "scored") & ~np.isnan(reference) & ~np.isnan(judge),
        )

    def at(self, places: Ints) -> _Scores:
        return _Scores(**{each.name: getattr(self, each.name)[places] for each in fields(self)})

    def table(self) -> NDArray[np.int64]:
        """The scored pairs counted (4, 4)."""
        return tabulate(self.reference[self.is_scored], self.judge[self.is_scored])

    def used_traces(self) -> Ints:
        """The trace of each scored pair, then of each miss."""
        return np.concatenate([self.trace[self.is_scored], self.trace[self.is_miss]])

    def by_trace(self) -> NDArray[np.int64]:
        """Score pairs by cell, and misses last, of each trace (traces, 17)."""
        place, known = pd.factorize(self.used_traces())
        cell = self.reference[self.is_scored] * POINTS + self.judge[self.is_scored]
        cells = np.concatenate([cell.astype(np.int64), np.full(int(self.is_miss.sum()), POINTS * POINTS)])
        width = POINTS * POINTS + 1
        return np.bincount(place * width + cells, minlength=len(known) * width).reshape(len(known), width)


def _scored_table(part: pd.DataFrame) -> NDArray[np.int64]:
    scored = scored_rows(part)
    return tabulate(scored["reference_score"].to_numpy(), scored["judge_score"].to_numpy())


def _judge_estimates(pairs: _Scores, metrics: Sequence[ScoreMetric], draws: int) -> Iterator[dict[str, object]]:
    """The metrics of one judge on one split."""
    table, failed, traces = pairs.table(), int(pairs.is_miss.sum()), pairs.used_traces()
    of_all = {
        "agreement": float(exact(table)),
        "traces": len(np.unique(traces)),
        "failed": int((pairs.state == "failed").sum()),
        "not_applicable": int((pairs.state == "not_applicable").sum()),
        "missing": int((pairs.state == "scored").sum() - pairs.is_scored.sum()),
        "undefined_draws": 0,
    }
    low, high = np.full((2, len(metrics)), np.nan)
    if draws > 0:
        low, high = table_bounds(pairs.by_trace(), metrics)
    for m, metric in enumerate(metrics):
        n = int(table.sum()) + (failed if metric.hits else 0)
        value = float(_with_failed(metric, table, float(failed)))
        row: dict[str, object] = {
            "metric": metric.name,
            "value": value,
            "low": low[m],
            "high": high[m],
            "hits": round(value * n) if metric.hits and n > 0 else None,
            "n": n,
            "reason": _score_reason(value, table),
            "interval": ("wilson by trace" if metric.hits else "fisher z by trace") if draws > 0 else None,
        }
        if metric.hits and of_all["traces"] == len(traces):
            share = 0.0 if np.isnan(value) else value * n
            bounds = wilson_bounds(np.array([share]), np.array([n]))
            row |= {"low": bounds[0][0], "high": bounds[1][0], "interval": "wilson"}
        yield row | of_all


def _with_failed(metric: ScoreMetric, table: NDArray[np.generic], failed: Floats | float) -> Floats:
    """The metric; of an accuracy, with `failed` (...) more misses in the denominator."""
    value = metric.function(table)
    if not metric.hits:
        return value
    total = _total(table)
    hits = np.where(total > 0, np.nan_to_num(value) * total, 0.0)
    return np.where(np.asarray(failed) > 0, divide(np.rint(hits), total + failed), value)


def table_bounds(
    sums: NDArray[np.generic], metrics: Sequence[ScoreMetric], *, multiplicity: Ints | None = None
) -> tuple[Floats, Floats]:
    """Bounds of metrics (K,), (K,) of score pairs by cluster (clusters, 16), or (clusters, 17) with failures last.

    Shares by `share_bounds`; the others by `fisher_bounds` between their limits, with a prior of one cluster,
    its pairs spread evenly over the 16 cells of the scale. A failure is a miss of a share.
    """
    cells = np.asarray(sums, dtype=np.float64)
    size = POINTS * POINTS
    limits = np.array([metric.limits for metric in metrics])
    every = cells if multiplicity is None else np.repeat(cells, multiplicity, axis=0)
    prior = np.eye(size) * every.sum() / max(len(every), 1)
    low, high = fisher_bounds(
        cells[:, :size], lambda some: _metrics_of(some, metrics), limits, prior=prior, multiplicity=multiplicity
    )
    tables, units = every[:, :size].reshape(-1, POINTS, POINTS), every.sum(axis=1)
    for m, metric in enumerate(metrics):
        if metric.hits:
            low[m], high[m] = share_bounds(np.nan_to_num(metric.function(tables)) * _total(tables), units)
    return low, high


def _metrics_of(cells: Floats, metrics: Sequence[ScoreMetric]) -> Floats:
    table = cells.reshape(*cells.shape[:-1], POINTS, POINTS)
    return np.stack([metric.function(table) for metric in metrics], axis=-1)


def _score_reason(value: float, table: NDArray[np.int64]) -> Reason | None:
    if not np.isnan(value):
        return None
    total = int(table.sum())
    if total == 0:
        return "no units"
    return "fewer than two units" if total < 2 else "no variation"
