"""Calibration of a judge's score: what the reference says where the judge says 0, 1, 2 or 3."""

import numpy as np
import pandas as pd

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.intervals import divide, mean_bounds
from tracejury.judging.agreement.scores import KEYS, POINTS, confusion

_MOMENTS = ("n", "total", "squares", "cubes")


def calibration_table(score_pairs: pd.DataFrame) -> pd.DataFrame:
    """Mean reference score of the traces to which a judge gave each score: a reliability diagram as rows.

    One row per judge_model, dimension, split and judge_score: n, reference with bounds (`mean_bounds`: each trace is
    scored once), gap (judge_score less reference; 0 where calibrated). NaN where the judge never gave the score.
    Source: Murphy and Winkler 1977; Niculescu-Mizil and Caruana 2005. Takes `score_pairs`.
    """
    counts = confusion(score_pairs)
    keys = [*KEYS, "judge_score"]
    powers = {name: counts["count"] * counts["reference_score"] ** power for power, name in enumerate(_MOMENTS)}
    sums = counts[keys].assign(**powers).groupby(keys, sort=False).sum().reset_index()
    n, total, squares, cubes = sums[list(_MOMENTS)].to_numpy(dtype=np.float64).T
    low, high = mean_bounds(n, total, squares, cubes)
    mean = divide(total, n)
    columns = {**KEYS, "judge_score": "int64", "n": "int64"}
    rates = dict.fromkeys(("reference", "reference_low", "reference_high", "gap"), "float64")
    if sums.empty:
        return frames.empty({**columns, **rates})
    bounds = {"reference_low": np.maximum(low, 0), "reference_high": np.minimum(high, POINTS - 1)}
    return (
        sums[keys]
        .assign(n=sums["n"], reference=mean, **bounds, gap=sums["judge_score"].to_numpy() - mean)
        .astype({**columns, **rates})
    )
