"""Whether a mean differs between slices: Wald's statistic by trace against the wild cluster bootstrap."""

from typing import Final

import numpy as np

from tracejury.judging.agreement.intervals import DRAWS, SEED, Floats, divide

LEAST_TRACES: Final = 5
"""A slice of fewer traces is in no test: below it the variance between its traces says too little."""


def equal_means(sums: Floats, counts: Floats, *, draws: int = DRAWS, seed: int = SEED) -> float:
    """Return the p-value that the slices' means differ no more than by chance; NaN where no test can be made.

    Shapes: `sums` and `counts` (traces, slices): of each trace the sum and the number of its units in each slice; a
    slice's mean is the ratio of its totals. Wald's statistic of the differences between means, its covariance by trace,
    is compared with that of data made anew under one common mean: each trace keeps its residuals, all with one sign
    drawn at random, so that units of one trace may depend on each other and slices may vary differently.
    Source: Cameron, Gelbach and Miller 2008 (wild cluster bootstrap-t, null imposed, Rademacher signs).
    Edge: NaN with fewer than two slices or without draws, and where all units equal the common mean. Level and power:
    tests/judging/agreement/test_interaction.py.
    """
    total = counts.sum(axis=0)
    if len(total) < 2 or draws == 0 or not total.all():
        return float("nan")
    residuals = sums - counts * (sums.sum() / total.sum())
    if np.abs(residuals).max() < 1e-9:
        return float("nan")
    rng = np.random.default_rng(seed)
    signs = rng.choice(np.array([-1.0, 1.0]), size=(draws, len(sums)))
    observed = _wald(np.ones((1, len(sums))), residuals, counts)[0]
    drawn = _wald(signs, residuals, counts)
    return float((1 + (drawn >= observed * (1 - 1e-9)).sum()) / (draws + 1))


def _wald(signs: Floats, residuals: Floats, counts: Floats) -> Floats:
    """Wald's statistic of each row of `signs` (draws, traces): of the slices' means against each other."""
    total, slices = counts.sum(axis=0), counts.shape[1]
    apart = divide(signs @ residuals, np.broadcast_to(total, (len(signs), slices)))
    crossed = (residuals[:, :, None] * counts[:, None, :]).reshape(len(counts), slices * slices)
    mixed = (signs @ crossed).reshape(-1, slices, slices)
    covariance = (
        residuals.T @ residuals
        - mixed * apart[:, None, :]
        - mixed.transpose(0, 2, 1) * apart[:, :, None]
        + apart[:, :, None] * apart[:, None, :] * (counts.T @ counts)
    ) / (total[:, None] * total[None, :])
    contrast = np.hstack([np.eye(slices - 1), -np.ones((slices - 1, 1))])
    inverse = np.linalg.pinv(contrast @ covariance @ contrast.T, hermitian=True)
    away = apart @ contrast.T
    return np.asarray(np.einsum("di,dij,dj->d", away, inverse, away), dtype=np.float64)
