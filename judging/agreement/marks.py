"""What a chart draws of many rows: as many marks as a browser shows at once, and the counts of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np
import pandas as pd

MOST_MARKS: Final = 1_000  # of a chart: a browser draws each anew, and more lie too close to be told apart or clicked
MOST_ITEMS: Final = 60  # on which raters differ most
T = TypeVar("T")


def each_of(items: Sequence[T], most: int) -> Sequence[T]:
    """At most `most` items, evenly spread over the order."""
    step = -(-len(items) // max(most, 1)) or 1
    return items[::step]


def error_levels(error_pairs: pd.DataFrame, *, own: bool) -> pd.DataFrame:
    """The scored pairs with their `level` (0 missed, 1 caught, 2 localized); `own`: of the judge's dimension only."""
    shown = error_pairs[(error_pairs["state"] == "scored") & (error_pairs["relevant"].astype(bool) | (not own))]
    level = shown["caught"].astype(int) + shown["localized"].astype(int)
    # whose error it is decides under whom Compare shows it; estimates from files know no name
    return shown.reindex(columns=["judge_model", "dimension", "trace_id", "error_id", "impact", "annotator"]).assign(
        level=level
    )


def found_first(levels: pd.DataFrame) -> list[str]:
    """The errors of `error_levels`, those that most judges found first."""
    return list(levels.groupby("error_id")["level"].sum().sort_values(ascending=False, kind="stable").index)


def drawn_levels(levels: pd.DataFrame) -> pd.DataFrame:
    """The rows of all errors, or of evenly spread ones of many."""
    order = found_first(levels)
    marks = len(levels) / max(len(order), 1)
    return levels[levels["error_id"].isin(each_of(order, int(MOST_MARKS / max(marks, 1))))]


def level_counts(levels: pd.DataFrame) -> pd.DataFrame:
    """level, count of all pairs; `errors` and `drawn`: how many errors there are, and of how many marks are drawn."""
    counts = [int((levels["level"] == level).sum()) for level in range(3)]
    errors, drawn = levels["error_id"].nunique(), drawn_levels(levels)["error_id"].nunique()
    return pd.DataFrame({"level": range(3), "count": counts, "errors": errors, "drawn": drawn})


def both_scored(score_pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs with a score on both sides."""
    rows = score_pairs
    scored = rows[(rows["state"] == "scored") & rows["reference_score"].notna() & rows["judge_score"].notna()]
    return scored.astype({"reference_score": "float64", "judge_score": "float64"})


def spread_out(rows: pd.DataFrame) -> pd.DataFrame:
    """All rows, or evenly spread ones of many."""
    return rows.iloc[list(each_of(range(len(rows)), MOST_MARKS))]


def bias_lines(scored: pd.DataFrame) -> pd.DataFrame:
    """One row: n, mean, sd (NaN of fewer than two) of judge minus reference. Source: Bland and Altman 1986."""
    difference = (scored["judge_score"] - scored["reference_score"]).to_numpy(dtype=np.float64)
    mean = float(difference.mean()) if len(difference) else np.nan
    sd = float(difference.std(ddof=1)) if len(difference) > 1 else np.nan
    return pd.DataFrame({"n": [len(difference)], "mean": [mean], "sd": [sd]})


def widest_repeats(ratings: pd.DataFrame) -> pd.DataFrame:
    """unit, rater, value of the units whose repeats differ most, at most `MOST_MARKS` of them; `units`: of how many."""
    known = ratings.dropna(subset=["value"])
    groups = known.groupby("unit")["value"]
    spread = (groups.max() - groups.min()).astype("float64")
    order = list(spread.sort_values(ascending=False, kind="stable").index)
    shown = order[: max(MOST_MARKS // max(known["rater"].nunique(), 1), 1)]
    return known.loc[known["unit"].isin(shown), ["unit", "rater", "value"]].assign(units=len(order))


def disputed_items(ratings: pd.DataFrame) -> pd.DataFrame:
    """unit, rater, value of the units with two ratings or more on which raters differ most."""
    known = ratings.dropna(subset=["value"])
    groups = known.groupby("unit")["value"]
    spread = groups.var(ddof=0)[groups.count() >= 2].sort_values(ascending=False, kind="stable")
    return known.loc[known["unit"].isin(spread.index[:MOST_ITEMS]), ["unit", "rater", "value"]]
