"""Two judges, prompts or repeats on the same traces: differences, McNemar, Holm, and what flipped.

Each side is a frame of its own, so any two authors, groups or repeats can stand left and right.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import error_rates, errors, frames, scores
from tracejury.judging.agreement.frames import IMPACTS, KINDS, Kind
from tracejury.judging.agreement.intervals import DRAWS, Bootstrap, Floats, cluster_bootstrap, student_p
from tracejury.judging.agreement.reasons import FLAT, INTERVAL
from tracejury.judging.agreement.scores import POINTS, SCORE_METRICS

ENOUGH_TRACES: Final = 6
"""From so many on, traces that all say the same are no accident: 2 / 2**6 = .03 by the sign test."""
SUITES: Final = "any"
"""The judge that a suite of dimensions is taken for."""
_ERROR: Final = ["dimension", "trace_id", "error_id"]


@dataclass(frozen=True, kw_only=True)
class McNemar:
    """Units where one side alone was right, and whether that differs from chance; None where undefined."""

    only_left: int
    only_right: int
    p_exact: float
    statistic: float | None
    p_corrected: float | None


def mcnemar(only_left: int, only_right: int) -> McNemar:
    """McNemar's test of two discordant counts: exact binomial, and chi-square with continuity correction.

    Source: McNemar 1947; Edwards 1948. Edge: without discordant pairs the exact p is 1 and the chi-square does not
    exist. Assumes independent pairs: errors of one trace are not, so read the clustered interval beside it.
    """
    from scipy.special import bdtr, chdtrc

    discordant = only_left + only_right
    if discordant == 0:
        return McNemar(only_left=0, only_right=0, p_exact=1.0, statistic=None, p_corrected=None)
    exact = min(1.0, 2 * float(bdtr(min(only_left, only_right), discordant, 0.5)))
    statistic = max(0, abs(only_left - only_right) - 1) ** 2 / discordant
    return McNemar(
        only_left=only_left,
        only_right=only_right,
        p_exact=exact,
        statistic=statistic,
        p_corrected=float(chdtrc(1, statistic)),
    )


def clustered_mcnemar(differences: NDArray[np.generic]) -> float | None:
    """P of McNemar's test over traces: of each (traces,) the errors that the left side alone found minus the right's.

    Source: Obuchowski 1998, as Yang, Sun and Hardin 2010 write it: (T-1)/T times (sum d)² / sum d², chi-square with one
    degree of freedom. Errors of one trace may depend on each other in any way. Edge: None without a trace; 1 where the
    traces balance, as where none differs.
    """
    from scipy.special import chdtrc

    d = np.asarray(differences, dtype=np.float64)
    squares = float((d**2).sum())
    if len(d) == 0:
        return None
    statistic = (len(d) - 1) / len(d) * float(d.sum()) ** 2 / squares if squares else 0.0
    return float(chdtrc(1, statistic))


def holm(p_values: NDArray[np.float64]) -> Floats:
    """P-values adjusted for their number so that any false rejection stays rare; NaN stays NaN and is not counted.

    Source: Holm 1979. Shapes: (k,) to (k,).
    """
    adjusted = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return adjusted


def comparable_sides(left: pd.DataFrame, right: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The error pairs of two sides by the dimensions they share; where they share none, each as one judge `SUITES`."""
    common = set(left["dimension"]) & set(right["dimension"])
    if common:
        return left[left["dimension"].isin(common)], right[right["dimension"].isin(common)]
    return as_one_judge(left), as_one_judge(right)


def why_incomparable(left: pd.DataFrame, right: pd.DataFrame) -> str | None:
    """Why two sides of error pairs are not compared dimension by dimension, or not at all; None where they are."""
    if left.empty or right.empty:
        return "one side has no error to catch: no error is compared"
    if not set(left["dimension"]) & set(right["dimension"]):
        return (
            "the two sides share no dimension: each counts as one judge that caught an error if any of its judges "
            "did, and no scores are compared"
        )
    both = paired_errors(*comparable_sides(left, right))
    return "there is no error that both sides answered and were matched with" if both.empty else None


def as_one_judge(pairs: pd.DataFrame) -> pd.DataFrame:
    """A suite of dimensions as one judge `any`, to be compared error by error; failed cells, and errors that one of
    its judges was not matched with, are left out.
    """
    keys = ["judge_model", "trace_id", "error_id"]
    unknown = pairs.loc[pairs["state"] == "not_matched", keys].drop_duplicates()
    known = pairs.merge(unknown, on=keys, how="left", indicator="of")
    known = known[(known["state"] == "scored") & (known["of"] == "left_only")]  # perhaps caught by the other judge
    flags = known.drop(columns="of").astype({"caught": bool, "localized": bool})
    by_error = flags.groupby(keys, sort=False)[["caught", "localized"]].any().reset_index()
    about = flags.drop_duplicates(keys)[[*keys, "impact", "split"]]
    return by_error.merge(about, on=keys).assign(dimension=SUITES, relevant=True, state="scored")


def compare_errors(left: pd.DataFrame, right: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """Differences of precision to accuracy of two sets of error pairs, paired by judge and error.

    Both sides are `error_pairs`; only errors scored on both count. One row per dimension, impact, kind and rate:
    left, right, difference (left minus right), low, high, n (errors on both sides), unpaired (errors of the judge
    that one side lacks or failed on), traces, p, p_holm (over all rows), significant (the interval excludes 0). Bounds
    and p: Student's t on the jackknife of the difference, each trace left out on both sides (Efron and Stein 1981);
    `draws=0`: none. Where no trace makes a difference there are no bounds: one trace proves nothing, six that differ
    alike do (sign test). Of a judge that looks for every kind of error only recall means something; its other rates are
    NaN.
    """
    both = paired_errors(left, right)
    columns = {
        **dict.fromkeys(("dimension", "impact", "kind", "metric"), "object"),
        **dict.fromkeys(("left", "right", "difference", "low", "high", "p", "p_holm"), "float64"),
        **dict.fromkeys(("n", "unpaired", "traces"), "int64"),
        "significant": "bool",
    }
    if both.empty:
        return frames.empty(columns)
    sides = [_side_cells(both, side) for side in ("left", "right")]
    dimensions = sides[0].dimensions
    joined = np.stack([cells.counts for cells in sides], axis=1).reshape(len(sides[0].traces), -1)

    totals = [cells.counts.sum(axis=0) for cells in sides]
    blank = errors.says_nothing(dimensions, totals[0]).reshape(-1)

    def statistic(sums: Floats) -> Floats:
        values = error_rates.rates(sums.reshape(*sums.shape[:-1], 2, -1, 4))
        difference = (values[..., 0, :, :] - values[..., 1, :, :]).reshape(*sums.shape[:-1], -1)
        return np.where(blank, np.nan, difference)

    boot = cluster_bootstrap(joined, statistic, draws=0)
    alone = statistic(joined.astype(np.float64))  # NaN of a trace without an error that the rate counts
    differing = (np.nan_to_num(alone) != 0).sum(axis=0)
    same = np.repeat(_same(both), len(error_rates.RATES))
    apart = _apart(boot, same, differing, np.ones(len(differing)), draws, holds=_holding(joined))
    values = [np.where(blank, np.nan, error_rates.rates(total).reshape(-1)) for total in totals]
    counted = np.repeat(totals[0].sum(axis=-1).reshape(-1), len(error_rates.RATES))
    index = pd.MultiIndex.from_product(
        [dimensions, IMPACTS, KINDS, error_rates.RATES], names=["dimension", "impact", "kind", "metric"]
    )
    table = pd.DataFrame({"left": values[0], "right": values[1], "difference": values[0] - values[1]}, index=index)
    table = table.assign(**apart, n=counted)
    table["traces"] = np.repeat((sides[0].counts.sum(axis=-1) > 0).sum(axis=0).reshape(-1), len(error_rates.RATES))
    table = table.reset_index()
    table["unpaired"] = table["dimension"].map(_unpaired(left, right, both, _ERROR))
    return table.assign(p_holm=holm(table["p"].to_numpy()))[list(columns)].astype(columns)


def reasoned(table: pd.DataFrame, *, draws: int) -> pd.DataFrame:
    """`compare_errors` or `compare_scores` with `reason` last."""
    unknown = table[["left", "right"]].isna()
    sides = unknown.sum(axis=1).map({0: None, 1: "undefined on one side", 2: "undefined on both sides"})
    reason = sides.astype(object).where(sides.notna(), None)
    flat = ~unknown.any(axis=1) & table["low"].isna() & bool(draws)
    return table.assign(reason=reason.where(~flat, f"{INTERVAL}: {FLAT}").astype(object))


def mcnemar_table(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """McNemar on the relevant errors of each judge: caught, or localized, by one side alone.

    One row per judge and kind: n (relevant errors on both sides), both, only_left, only_right, neither, p_clustered (by
    trace: `clustered_mcnemar`), p_holm (of it, over all rows), and as the paper prints them statistic and p_corrected
    (chi-square with continuity correction) and p_exact, which take errors of one trace for independent. p is NaN
    where n is 0.
    """
    both = paired_errors(left, right)
    relevant = both[both["relevant"]]
    rows = [
        _mcnemar_row(relevant[relevant["dimension"] == dimension], dimension, kind)
        for kind in KINDS
        for dimension in frames.in_order(both["dimension"], frames.DIMENSION_ORDER)
    ]
    columns = {
        "dimension": "object",
        "kind": "object",
        **dict.fromkeys(("n", "both", "only_left", "only_right", "neither"), "int64"),
        **dict.fromkeys(("p_clustered", "p_holm", "statistic", "p_corrected", "p_exact"), "float64"),
    }
    table = pd.DataFrame(rows, columns=list(columns)).astype(columns)
    return table.assign(p_holm=holm(table["p_clustered"].to_numpy()))


def why_no_test(row: Mapping[str, Any], name: str) -> str:
    """Why a test of `mcnemar_table` is undefined."""
    return "no units" if row["n"] == 0 else "no discordant pairs"


def _mcnemar_row(relevant: pd.DataFrame, dimension: str, kind: Kind) -> dict[str, object]:
    a, b = relevant[f"{kind}_left"].to_numpy(), relevant[f"{kind}_right"].to_numpy()
    test = mcnemar(int((a & ~b).sum()), int((b & ~a).sum()))
    by_trace = pd.Series(a.astype(int) - b.astype(int)).groupby(relevant["trace_id"].to_numpy()).sum()
    return {
        "dimension": dimension,
        "kind": kind,
        "n": len(relevant),
        "both": int((a & b).sum()),
        "only_left": test.only_left,
        "only_right": test.only_right,
        "neither": int((~a & ~b).sum()),
        "p_clustered": clustered_mcnemar(by_trace.to_numpy()),
        "statistic": test.statistic,
        "p_corrected": test.p_corrected,
        "p_exact": test.p_exact if len(relevant) else None,
    }


def error_flips(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """Errors that the two sides treat differently: dimension, trace_id, error_id, impact, relevant, left, right.

    `left` and `right` are `missed`, `caught` or `localized`.
    """
    both = paired_errors(left, right)
    words = np.array(["missed", "caught", "localized"], dtype=object)
    level = {
        side: both[f"caught_{side}"].astype(int) + both[f"localized_{side}"].astype(int) for side in ("left", "right")
    }
    table = both[[*_ERROR, "impact", "relevant"]].assign(
        left=words[level["left"].to_numpy()], right=words[level["right"].to_numpy()]
    )
    columns = dict.fromkeys((*_ERROR, "impact"), "object")
    columns |= {"relevant": "bool", "left": "object", "right": "object"}
    return table[(level["left"] != level["right"]).to_numpy()].reset_index(drop=True).astype(columns)


def compare_scores(left: pd.DataFrame, right: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """Differences of every score metric of two sets of score pairs, paired by dimension and trace.

    Both sides are `score_pairs`, each with its own reference scores; only traces scored on both count. One row per
    dimension and metric: left, right, difference, low, high, p, p_holm, n, unpaired (traces that one side lacks or
    failed on), significant; bounds and p as in `compare_errors`.
    """
    both = _paired_scores(left, right)
    columns = {
        **dict.fromkeys(("dimension", "metric"), "object"),
        **dict.fromkeys(("left", "right", "difference", "low", "high", "p", "p_holm"), "float64"),
        **dict.fromkeys(("n", "unpaired"), "int64"),
        "significant": "bool",
    }
    parts = [
        _score_differences(both[both["dimension"] == dimension], draws).assign(dimension=dimension)
        for dimension in frames.in_order(both["dimension"], frames.DIMENSION_ORDER)
    ]
    if not parts:
        return frames.empty(columns)
    table = pd.concat(parts, ignore_index=True)
    table["unpaired"] = table["dimension"].map(_unpaired(left, right, both, ["dimension", "trace_id"]))
    return table.assign(p_holm=holm(table["p"].to_numpy(dtype=np.float64)))[list(columns)].astype(columns)


def score_flips(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """Traces that the two sides score differently.

    One row each: dimension, trace_id, reference_score (left's), left, right, change.
    """
    both = _paired_scores(left, right)
    table = both.rename(
        columns={"reference_score_left": "reference_score", "judge_score_left": "left", "judge_score_right": "right"}
    )
    table = table[table["left"] != table["right"]]
    columns = {
        "dimension": "object",
        "trace_id": "object",
        **dict.fromkeys(("reference_score", "left", "right"), "int64"),
    }
    table = table[list(columns)].astype(columns)
    return table.assign(change=table["right"] - table["left"]).reset_index(drop=True)


def _holding(joined: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which traces hold units of each rate of a side (traces, cells x rates), of counts (traces, 2 x cells x 4)."""
    tp, fp, fn, tn = np.moveaxis(joined.reshape(len(joined), 2, -1, 4).sum(axis=1), -1, 0)
    units = [tp + fp, tp + fn, tp + fp + fn, tp + fp + fn, tp + fp + fn + tn]
    return np.asarray(np.stack(units, axis=-1).reshape(len(joined), -1) > 0)


def _apart(
    boot: Bootstrap,
    same: NDArray[np.bool_],
    differing: NDArray[np.int64],
    spans: Floats,
    draws: int,
    *,
    holds: NDArray[np.bool_] | None = None,
) -> dict[str, NDArray[np.generic]]:
    """low, high, p and significant of differences (K,) that lie within `spans` of 0; nothing is known without `draws`.

    [0, 0] and p = 1 where the two sides are the `same`; where traces differ all alike no bounds, p of the sign test.
    """
    low, high = (np.clip(bound, -spans, spans) for bound in boot.jackknife_t(holds=holds))
    error, degrees = boot.standard_error(holds), boot.holding(holds) - 1
    alike = (error <= 1e-12) & (np.nan_to_num(boot.estimate) != 0)
    p = np.where(alike, np.minimum(2.0 ** (1 - differing), 1.0), student_p(boot.estimate, error, degrees))
    same = same & (boot.estimate == 0)
    low, high, p = np.where(same, 0.0, low), np.where(same, 0.0, high), np.where(same, 1.0, p)
    low, high, p = (bound if draws else np.full(len(bound), np.nan) for bound in (low, high, p))
    is_apart = (low > 0) | (high < 0) | (alike & (differing >= ENOUGH_TRACES) & bool(draws))
    return {"low": low, "high": high, "p": p, "significant": is_apart}


def paired_errors(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """Pair the errors scored on both sides, one row each: caught_left, caught_right and so on.

    Raises ValueError when the sides differ in what is relevant.
    """
    sides = [_one_judge_model(errors.checked_pairs(side), name) for side, name in ((left, "left"), (right, "right"))]
    scored = [side[side["state"] == "scored"] for side in sides]
    for side, name in zip(scored, ("left", "right"), strict=True):
        frames.require_unique(side, f"the {name} error pairs", _ERROR)
    both = scored[0].merge(
        scored[1][[*_ERROR, "relevant", "caught", "localized"]], on=_ERROR, suffixes=("_left", "_right")
    )
    differs = both["relevant_left"] != both["relevant_right"]
    if differs.any():
        row = both.loc[differs, _ERROR].iloc[0].to_dict()
        raise ValueError(f"the two sides map {row!r} differently; compare them under one mapping of errors")
    return both.rename(columns={"relevant_left": "relevant"})


def _unpaired(left: pd.DataFrame, right: pd.DataFrame, both: pd.DataFrame, key: list[str]) -> pd.Series:
    """Per judge, how many units of either side have no scored partner."""
    every = pd.concat([side[key].astype(str) for side in (left, right)]).drop_duplicates()
    return every.groupby("dimension").size() - both.groupby("dimension").size()


def _one_judge_model(pairs: pd.DataFrame, name: str) -> pd.DataFrame:
    if pairs["judge_model"].nunique() > 1:
        raise ValueError(
            f"the {name} side holds several judge models; choose one: {sorted(set(pairs['judge_model']))!r}"
        )
    return pairs


def _side_cells(both: pd.DataFrame, side: str) -> errors.Cells:
    named = both.rename(columns={f"caught_{side}": "caught", f"localized_{side}": "localized"})
    return errors.trace_cells(named)


def _same(both: pd.DataFrame) -> NDArray[np.bool_]:
    """Of which judges, impacts and kinds (flat) the two sides treat every error alike."""
    flipped = both.assign(**{kind: both[f"{kind}_left"] != both[f"{kind}_right"] for kind in KINDS})
    return np.asarray(errors.trace_cells(flipped).counts[..., :2].sum(axis=(0, -1)) == 0, dtype=bool).reshape(-1)


def _paired_scores(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    key = ["dimension", "trace_id"]
    sides = []
    for side, name in ((left, "left"), (right, "right")):
        scored = scores.scored_rows(_one_judge_model(scores.checked_scores(side), name))
        frames.require_unique(scored, f"the {name} score pairs", key)
        sides.append(scored[[*key, "reference_score", "judge_score"]])
    return sides[0].merge(sides[1], on=key, suffixes=("_left", "_right"))


def _score_differences(pairs: pd.DataFrame, draws: int) -> pd.DataFrame:
    size = POINTS * POINTS
    cells = np.zeros((len(pairs), 2 * size))
    for s, side in enumerate(("left", "right")):
        place = (pairs[f"reference_score_{side}"] * POINTS + pairs[f"judge_score_{side}"]).to_numpy().astype(np.int64)
        cells[np.arange(len(pairs)), s * size + place] = 1

    def both_sides(sums: Floats) -> Floats:
        table = sums.reshape(*sums.shape[:-1], 2, POINTS, POINTS)
        return np.stack([metric.function(table) for metric in SCORE_METRICS], axis=-1)

    def statistic(sums: Floats) -> Floats:
        values = both_sides(sums)
        return np.asarray(values[..., 0, :] - values[..., 1, :], dtype=np.float64)

    values = both_sides(cells.sum(axis=0))
    boot = cluster_bootstrap(cells, statistic, draws=0)
    metrics = len(SCORE_METRICS)
    same = np.full(metrics, (cells[:, :size] == cells[:, size:]).all())
    traces = np.full(metrics, pairs["trace_id"].nunique())
    spans = np.array([metric.limits[1] - metric.limits[0] for metric in SCORE_METRICS])
    return pd.DataFrame(
        {
            "metric": [metric.name for metric in SCORE_METRICS],
            "left": values[0],
            "right": values[1],
            "difference": values[0] - values[1],
            **_apart(boot, same, traces, spans, draws),
            "n": len(pairs),
        }
    )
