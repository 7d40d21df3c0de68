"""Intervals for every estimate: on Fisher's z, Wilson's and the bootstrap, clusters being traces; vectorised.

Every statistic here is a function of sums over clusters (traces): true positives, score pairs by cell,
value counts. So a resample needs no rows, only how often each cluster was drawn: one matrix of draws times one
matrix of sums gives all resamples of all estimates. Clusters with the same sums are one pattern, drawn together.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Statistic = Callable[[Floats], Floats]
"""Sums of shape (..., C) to estimates of shape (..., K), NaN where undefined."""

DRAWS = 2_000
SEED = 20_261_127
LEVEL = 0.95
_CHUNK = 4_000_000  # cells of the draw matrix held at once; numbers and counts of drawn clusters: 100 MB
_REMEMBERED = 16_000_000  # cells of draws that are kept for the next estimate of the same clusters: 32 MB


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """Resampled estimates: `estimate` (K,), `samples` (K, draws) with NaN where a resample is undefined.

    `left_out` (P, K) are the estimates without one cluster of each pattern, `multiplicity` (P,) how many
    clusters show the pattern; both feed the jackknife.
    """

    estimate: Floats
    samples: Floats
    left_out: Floats
    multiplicity: Ints

    @property
    def undefined(self) -> Ints:
        """How many resamples of each estimate are undefined (K,)."""
        return np.asarray(np.isnan(self.samples).sum(axis=-1), dtype=np.int64)

    def share_below(self, threshold: float) -> Floats:
        """P(estimate < threshold) over the defined resamples (K,); NaN where none is defined."""
        defined = self.samples.shape[-1] - self.undefined
        return divide((self.samples < threshold).sum(axis=-1), defined)

    def holding(self, holds: NDArray[np.bool_] | None = None) -> Floats:
        """How many clusters hold units of each estimate (K,): all, or the patterns that `holds` (P, K) names."""
        every = np.ones(self.left_out.shape, dtype=bool) if holds is None else holds
        return np.asarray(self.multiplicity.astype(np.float64) @ every, dtype=np.float64)

    def standard_error(self, holds: NDArray[np.bool_] | None = None) -> Floats:
        """Jackknife standard error over the clusters that hold units (K,); NaN when a leave-out is undefined or of one.

        Source: Efron and Stein 1981: se² = (T-1)/T · Σ (θ₍ᵢ₎ - mean)².
        """
        every = np.ones(self.left_out.shape, dtype=bool) if holds is None else holds
        clusters = np.where(self.holding(every) > 1, self.holding(every), np.nan)
        weights = self.multiplicity[:, None] * every / clusters
        left_out = np.where(every, self.left_out, 0.0)
        mean = (weights * left_out).sum(axis=0)
        spread = (weights * (left_out - mean) ** 2).sum(axis=0)
        return np.asarray(np.sqrt((clusters - 1) * spread), dtype=np.float64)

    def jackknife_t(self, level: float = LEVEL, *, holds: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
        """Estimate plus and minus Student's t (T-1 degrees) times the jackknife standard error; (K,), (K,).

        T are the clusters that hold units of an estimate (`holding`): others say nothing of it. NaN where no cluster
        makes a difference (one cluster, or perfect agreement): bounds without width would say that it is certain.
        """
        error, degrees = self.standard_error(holds), self.holding(holds) - 1
        reach = student_t(np.where(degrees > 0, degrees, np.nan), level) * np.where(error > 1e-12, error, np.nan)
        return self.estimate - reach, self.estimate + reach


def cluster_bootstrap(
    sums: NDArray[np.generic],
    statistic: Statistic,
    *,
    multiplicity: Ints | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Bootstrap:
    """Resample clusters with replacement and compute every estimate of every resample at once.

    `sums` (P, C): the additive cells of each cluster, or of each distinct pattern of clusters when
    `multiplicity` (P,) says how many clusters show it. Resampling is by cluster, never by row or by rater.
    The result depends on the seed, not on how far the clusters were collapsed in distribution.
    """
    cells = np.ascontiguousarray(sums, dtype=np.float64)
    counts = np.ones(len(cells), dtype=np.int64) if multiplicity is None else multiplicity
    total = counts @ cells
    return Bootstrap(
        estimate=statistic(total),
        samples=_samples(cells, statistic, counts, draws, seed),
        left_out=statistic(total - cells),
        multiplicity=counts,
    )


def student_t(degrees: float | Floats, level: float = LEVEL) -> Floats:
    """How many standard errors an interval of Student's t reaches to either side."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(degrees, (1 + level) / 2), dtype=np.float64)


def student_p(estimate: Floats, error: Floats, degrees: Floats) -> Floats:
    """Two-sided p-values that estimates are 0 by their standard errors; NaN where there is none or it is 0."""
    from scipy.special import stdtr

    ratio = divide(np.abs(estimate), np.where(error > 1e-12, error, np.nan))
    return np.asarray(2 * stdtr(np.where(degrees > 0, degrees, np.nan), -ratio), dtype=np.float64)


def mean_bounds(
    n: NDArray[np.generic],
    total: NDArray[np.generic],
    squares: NDArray[np.generic],
    cubes: NDArray[np.generic],
    level: float = LEVEL,
) -> tuple[Floats, Floats]:
    """Bounds of means of one value a cluster, from n and the sums of the values, their squares and their cubes.

    Hall's transformation of Student's t: minutes and dollars are skewed, and Student's own bounds of a few such values
    end too low. Of values without skew they are Student's. The values themselves need not be read. NaN of fewer than
    two, and where all are equal: they say nothing of how far others would lie.
    Sources: Hall 1992 (removal of skewness); Zhou and Dinh 2005. Measured in
    tests/judging/agreement/test_coverage.py.
    """
    count, first, second, third = (np.asarray(sums, dtype=np.float64) for sums in (n, total, squares, cubes))
    mean = divide(first, count)
    spread = np.maximum(second - count * mean**2, 0.0)
    is_apart = spread > _ROUNDING * second
    several = np.where((count > 1) & is_apart, count, np.nan)
    deviation = np.sqrt(spread / (several - 1))
    lean = third - 3 * mean * second + 2 * count * mean**3
    skew = np.where(np.abs(lean) > _ROUNDING * np.abs(third), lean, 0.0) / (several * deviation**3)
    reach = student_t(several - 1, level) / np.sqrt(several)
    return mean - deviation * _unskewed(reach, skew, several), mean - deviation * _unskewed(-reach, skew, several)


_ROUNDING = 1e-12  # what rounding leaves of sums that cancel, as a share of them


def _unskewed(place: Floats, skew: Floats, n: Floats) -> Floats:
    """The standardised distance of the mean whose transformation by Hall is `place`."""
    bend = np.where(np.abs(skew) > 1e-6, skew, np.nan) / 3
    unskewed = (np.cbrt(1 + 3 * bend * (place - bend / (2 * n))) - 1) / bend
    return np.where(np.isnan(bend), place, unskewed)


def fisher_bounds(
    sums: NDArray[np.generic],
    statistic: Statistic,
    limits: NDArray[np.float64],
    *,
    prior: NDArray[np.generic] | None = None,
    multiplicity: Ints | None = None,
    level: float = LEVEL,
) -> tuple[Floats, Floats]:
    """Bounds of coefficients between `limits` (K, 2): Student's t on Fisher's z, clusters being traces; (K,), (K,).

    `sums` (P, C) and `multiplicity` (P,) as for `cluster_bootstrap`. `prior` (Q, C): observations that weigh one
    cluster together, added before the bounds are made (not to the estimate); they stand for the outcomes that a small
    sample has not shown yet. The standard error is the infinitesimal jackknife over clusters, T-1 degrees of freedom.
    Sources: Fisher 1921 (z); Efron 1982, chapter 6 (infinitesimal jackknife); Agresti and Coull 1998, and Perks 1947
    (1 / Q on each of Q outcomes). Measured in tests/judging/agreement/test_coverage.py.
    Edge: NaN where the estimate is undefined, with one cluster, and where no cluster makes a difference (perfect
    agreement): bounds would then come from the prior alone.
    """
    cells = np.asarray(sums, dtype=np.float64)
    counts = np.ones(len(cells)) if multiplicity is None else multiplicity.astype(np.float64)
    clusters = float(counts.sum())
    if clusters < 2:
        nothing = np.full(len(limits), np.nan)
        return nothing, nothing.copy()
    estimate, error = _linear(cells, counts, statistic)
    eased, eased_error = estimate, error
    if prior is not None:
        shares = np.full(len(prior), 1 / len(prior))
        eased, eased_error = _linear(np.concatenate([cells, prior]), np.concatenate([counts, shares]), statistic)
    middle, half = limits.mean(axis=1), (limits[:, 1] - limits[:, 0]) / 2
    place = np.clip((eased - middle) / half, -1 + 1e-9, 1 - 1e-9)
    reach = student_t(clusters - 1, level) * eased_error / half / (1 - place**2)
    low, high = (middle + half * np.tanh(np.arctanh(place) + side * reach) for side in (-1, 1))
    known = ~np.isnan(estimate) & (error > 1e-9)
    return np.where(known, np.fmin(low, estimate), np.nan), np.where(known, np.fmax(high, estimate), np.nan)


def _linear(cells: Floats, counts: Floats, statistic: Statistic) -> tuple[Floats, Floats]:
    """The statistic of all clusters (K,) and its infinitesimal-jackknife standard error (K,), by finite differences."""
    total, clusters = counts @ cells, counts.sum()
    step = 1e-6 * max(float(np.abs(total).sum()), 1.0)
    estimate = statistic(total)
    slopes = (statistic(total + step * np.eye(len(total))) - estimate) / step
    influence = cells @ slopes
    spread = counts @ (influence - counts @ influence / clusters) ** 2
    return estimate, np.sqrt(spread * clusters / (clusters - 1))


def share_bounds(
    hits: NDArray[np.generic],
    units: NDArray[np.generic],
    *,
    capped: bool = True,
    least_clusters: int = 1,
    level: float = LEVEL,
) -> tuple[Floats, Floats]:
    """Bounds of shares of units in clusters: Wilson's with the effective number of units; (...), (...).

    `hits` and `units` (clusters, ...): of each cluster the numerator and the denominator of sum(hits) / sum(units).
    The effective number is what gives a simple sample the linearised variance by cluster, at most the number of units
    where `capped`; Student's t has one degree less than the clusters that hold units. Where fewer than `least_clusters`
    hold the rarer outcome (1: of a share of exactly 0 or 1) each cluster counts as one unit, since nothing, or too
    little, shows how alike the units of a cluster are.
    Sources: Wilson 1927; Korn and Graubard 1998 (effective number, t); Franco, Little, Louis and Slud 2019.
    Edge: NaN without units, and of one cluster that holds both outcomes where `least_clusters` is 1.
    """
    top, bottom = np.asarray(hits, dtype=np.float64), np.asarray(units, dtype=np.float64)
    number, clusters = bottom.sum(axis=0), (bottom > 0).sum(axis=0).astype(np.float64)
    share = divide(top.sum(axis=0), number)
    several = np.where(clusters > 1, clusters, np.nan)
    effective = effective_units(top, bottom, capped=capped)
    low, high = _wilson(share, effective, student_t(several - 1, level))
    is_rare = np.minimum((top > 0).sum(axis=0), (top < bottom).sum(axis=0)) < least_clusters
    rare_low, rare_high = wilson_bounds(share * clusters, clusters, level)
    known = is_rare | np.isfinite(effective)
    low, high = (np.where(is_rare, a, b) for a, b in ((rare_low, low), (rare_high, high)))
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def effective_units(hits: Floats, units: Floats, *, capped: bool = True) -> Floats:
    """Return how many independent units say as much as these clusters (clusters, ...): (...); see `share_bounds`."""
    number, clusters = units.sum(axis=0), (units > 0).sum(axis=0).astype(np.float64)
    share = divide(hits.sum(axis=0), number)
    several = np.where(clusters > 1, clusters, np.nan)
    variance = ((hits - share * units) ** 2).sum(axis=0) * divide(several, (several - 1) * number**2)
    effective = np.where(variance > 0, divide(share * (1 - share), variance), np.where(clusters > 1, np.inf, np.nan))
    return np.minimum(effective, number) if capped else effective


def _wilson(share: Floats, n: Floats, z: Floats | float) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (share + z * z / (2 * n)) / (1 + z * z / n)
        reach = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n**2))
    return np.asarray(centre - reach), np.asarray(centre + reach)


def distinct_rows(rows: NDArray[np.integer]) -> tuple[NDArray[np.int64], Ints]:
    """Distinct rows of small counts and how often each occurs: the patterns that bootstrap draws from.

    Rows are packed into one integer each when that fits 62 bits: a thousand times faster than comparing rows.
    """
    if len(rows) == 0:
        return rows.astype(np.int64), np.zeros(0, dtype=np.int64)
    base = int(rows.max()) + 1
    if int(rows.min()) < 0 or base ** rows.shape[1] >= 2**62:
        unique, counts = np.unique(rows, axis=0, return_counts=True)
        return unique.astype(np.int64), counts.astype(np.int64)
    powers = base ** np.arange(rows.shape[1], dtype=np.int64)
    codes = rows.astype(np.int64) @ powers
    if base ** rows.shape[1] <= 4 * len(rows) + 4096:
        occurrences = np.bincount(codes)
        packed = np.flatnonzero(occurrences)
        counts = occurrences[packed]
    else:
        packed, counts = np.unique(codes, return_counts=True)
    return packed[:, None] // powers % base, counts.astype(np.int64)


def wilson(hits: float, n: float, level: float = LEVEL) -> tuple[float, float] | None:
    """Score interval of one proportion, None without units.

    Source: Wilson 1927. 267 of 281 gives [.918, .970], 129 of 129 [.971, 1], 0 of 2 [0, .66]: it never
    collapses at 0 or 1, as a bootstrap does.
    """
    if n <= 0:
        return None
    low, high = wilson_bounds(np.array([hits], dtype=np.float64), np.array([n], dtype=np.float64), level)
    return float(low[0]), float(high[0])


def wilson_bounds(hits: NDArray[np.generic], n: NDArray[np.generic], level: float = LEVEL) -> tuple[Floats, Floats]:
    """`wilson` for arrays of one shape; NaN where n is 0."""
    from statistics import NormalDist

    z = NormalDist().inv_cdf((1 + level) / 2)
    units = np.asarray(n, dtype=np.float64)
    share = divide(hits, units)
    low, high = _wilson(share, units, z)
    low, high = np.where(share == 0, 0.0, low), np.where(share == 1, 1.0, high)
    return np.where(units > 0, low, np.nan), np.where(units > 0, high, np.nan)


def divide(numerator: NDArray[np.generic] | float, denominator: NDArray[np.generic] | float) -> Floats:
    """Quotient with NaN, not a warning and not a zero, where the denominator is 0."""
    top, bottom = np.broadcast_arrays(
        np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    )
    out = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=out, where=bottom != 0)
    return out


def _samples(cells: Floats, statistic: Statistic, counts: Ints, draws: int, seed: int) -> Floats:
    if len(cells) == 0:
        nothing = statistic(np.zeros(cells.shape[1]))
        return np.full((len(nothing), draws), np.nan)
    if draws == 0:
        return np.zeros((statistic(cells[0]).shape[-1], 0))
    step = max(1, _CHUNK // max(len(cells), 1))
    parts = []
    for weights in _weights(counts, draws, step, seed):
        parts.append(np.ascontiguousarray(statistic(weights @ cells).T))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


def _weights(counts: Ints, draws: int, step: int, seed: int) -> Iterator[Floats]:
    """`_draws` in steps, each of which fits into memory."""
    if draws * len(counts) > _REMEMBERED or counts.sum() > np.iinfo(np.uint16).max:
        rng = np.random.default_rng(seed)
        yield from (_draws(counts, min(step, draws - start), rng) for start in range(0, draws, step))
    else:
        yield from (drawn.astype(np.float64) for drawn in _remembered(counts.tobytes(), draws, step, seed))


@lru_cache(maxsize=4)
def _remembered(counts: bytes, draws: int, step: int, seed: int) -> tuple[NDArray[np.uint16], ...]:
    """The draws of the last few clusterings: many estimates are of the same traces, and drawing costs most."""
    patterns, rng = np.frombuffer(counts, dtype=np.int64), np.random.default_rng(seed)
    steps = [min(step, draws - start) for start in range(0, draws, step)]
    return tuple(_draws(patterns, some, rng).astype(np.uint16) for some in steps)


def _draws(counts: Ints, draws: int, rng: np.random.Generator) -> Floats:
    """How often each pattern occurs in each resample (draws, P): one multinomial per resample.

    Few clusters per pattern: draw cluster numbers and count them. Many: draw the counts themselves.
    """
    clusters, patterns = int(counts.sum()), len(counts)
    if clusters > 8 * patterns:
        return rng.multinomial(clusters, counts / clusters, size=draws).astype(np.float64)
    pattern_of = np.repeat(np.arange(patterns, dtype=np.int32), counts)
    drawn = pattern_of[rng.integers(0, clusters, size=(draws, clusters), dtype=np.int32)]
    places = drawn + (np.arange(draws, dtype=np.int64) * patterns)[:, None]
    return np.bincount(places.ravel(), minlength=draws * patterns).reshape(draws, patterns).astype(np.float64)
