"""Any raters side by side: pairs of them, the human ceiling, the alternative annotator test, self-consistency."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.estimate import Reason, joined_reasons, present
from tracejury.judging.agreement.intervals import DRAWS, Floats, distinct_rows
from tracejury.judging.agreement.reliability import (
    alpha_with_interval,
    clusters_of,
    pairable_units,
    rating_matrices,
)
from tracejury.judging.agreement.scores import (
    BY_SCORE,
    POINTS,
    SCORE_METRICS,
    ScoreMetric,
    bucketed,
    table_bounds,
)

KEYS: Final = {"judge_model": "object", "dimension": "object", "split": "object"}
PAIR_METRICS: Final[dict[str, ScoreMetric]] = {
    **{name: BY_SCORE[name] for name in ("exact", "off_by_one", "bucketed", "quadratic_kappa", "ac1", "ac2")},
    "alpha": replace(BY_SCORE["pair_alpha"], name="alpha", title="Krippendorff's alpha", short=None),
}
"""Those of any two raters, neither of whom is the reference."""
CEILING_METRICS: Final[dict[str, ScoreMetric]] = {
    metric.name: metric for metric in SCORE_METRICS if metric.has_ceiling and metric.name != "pair_alpha"
}
"""Those of pairs of people; Krippendorff's alpha is over all raters of a unit."""
PEOPLE_METRICS: Final = (*CEILING_METRICS, "pair_alpha")

Alignment = Literal["accuracy", "rmse"]
EPSILON: Final = 0.2
"""The advantage granted to the judge for its price: 0.2 against experts, 0.15 skilled people, 0.1 crowds."""
FALSE_DISCOVERY: Final = 0.05
ENOUGH_UNITS: Final = 30


def pair_estimates(ratings: pd.DataFrame, *, draws: int = 0) -> pd.DataFrame:
    """Every pair of raters (people, repeats, judges as raters) on the units that both rated, one row per metric.

    `ratings`: unit, rater, value on 0..3; optional dimension, judge_model, split, state. One row per judge_model,
    dimension, split, rater_a, rater_b (by name) and metric of `PAIR_METRICS`: value, low, high (`scores.table_bounds`,
    by trace; `draws=0`: none), n (overlap), reason where undefined. Symmetric: each pair stands once.
    """
    rows = []
    for (judge_model, dimension, split), matrix in rating_matrices(ratings):
        _check_scale(matrix.values)
        for a, b in combinations(range(len(matrix.raters)), 2):
            both = ~np.isnan(matrix.values[[a, b]]).any(axis=0)
            sums = _unit_pairs(matrix.values[a, both], matrix.values[b, both])
            whose = (judge_model, dimension, split, matrix.raters[a], matrix.raters[b])
            named = dict(zip(PAIR_KEYS, whose, strict=True))
            rows += [
                {**named, **row}
                for row in _estimates(by_cluster(sums, matrix.clusters[both]), PAIR_METRICS, int(both.sum()), draws)
            ]
    return _long(rows, PAIR_KEYS)


def pairwise_table(ratings: pd.DataFrame, *, draws: int = 0) -> pd.DataFrame:
    """`pair_estimates` with one row per pair: n, and each metric with its bounds; NaN where undefined."""
    return wide_pairs(pair_estimates(ratings, draws=draws))


def wide_pairs(estimates: pd.DataFrame) -> pd.DataFrame:
    """`pair_estimates` as `pairwise_table` has them."""
    return _wide(estimates, PAIR_KEYS, list(PAIR_METRICS))


def _wide(estimates: pd.DataFrame, keys: Sequence[str], metrics: Sequence[str]) -> pd.DataFrame:
    """Long estimates (`keys`, metric, value, low, high, n and more) as one row per `keys`."""
    rows = estimates.drop_duplicates(list(keys)).drop(columns=["metric", *_VALUES, "reason"]).reset_index(drop=True)
    for metric in metrics:
        own = estimates[estimates["metric"] == metric].reset_index(drop=True)
        ends = zip(_VALUES, ("", "_low", "_high"), strict=True)
        rows = rows.assign(**{f"{metric}{end}": own[name] for name, end in ends})
    return rows


_VALUES: Final = ("value", "low", "high")
PAIR_KEYS: Final = (*KEYS, "rater_a", "rater_b")


def _estimates(
    sums: Floats, metrics: Mapping[str, ScoreMetric], n: int, draws: int
) -> list[dict[str, float | int | str | None]]:
    """One row per metric of score pairs by cluster (clusters, 16), each with the reason where it is undefined."""
    values = _bounded(sums, metrics, draws)
    why: Reason = "no variation" if n else "no units"
    return [
        {
            "metric": name,
            "value": values[name],
            "low": values[f"{name}_low"],
            "high": values[f"{name}_high"],
            "n": n,
            "reason": why if values[name] is None else None,
        }
        for name in metrics
    ]


def _long(rows: Sequence[Mapping[str, object]], keys: Sequence[str], more: Sequence[str] = ()) -> pd.DataFrame:
    columns = {
        **dict.fromkeys((*keys, "metric"), "object"),
        **dict.fromkeys(_VALUES, "float64"),
        **dict.fromkeys((*more, "n"), "int64"),
        "reason": "object",
    }
    table = pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)
    return table.assign(reason=table["reason"].where(table["reason"].notna(), None))


def people_estimates(
    ratings: pd.DataFrame, *, draws: int = DRAWS, names: Collection[str] = PEOPLE_METRICS
) -> pd.DataFrame:
    """The judge's estimates between people, on the units that two people or more rated: what a judge can reach.

    `ratings` of people only, on 0..3: unit, rater, value; optional dimension, judge_model, split, state.
    Each unit counts once however many people rated it: all ordered pairs of its raters share its weight, so the
    estimates are symmetric and independent of who is named first. Alpha (`pair_alpha`, its name among judges) is
    Krippendorff's over all raters. One row per judge_model, dimension, split and metric of `names`: value, low, high
    (`scores.table_bounds`: spans of one trace are one cluster), raters, n (units), reason where undefined.
    """
    rows: list[dict[str, object]] = []
    metrics = {name: metric for name, metric in CEILING_METRICS.items() if name in names}
    for (judge_model, dimension, split), matrix in rating_matrices(ratings):
        _check_scale(matrix.values)
        n = pairable_units(matrix.values).shape[1]
        common = alpha_with_interval(matrix.values, "interval", clusters=clusters_of(matrix), draws=draws)
        alpha = {"metric": "pair_alpha", "n": n, **{name: getattr(common, name) for name in (*_VALUES, "reason")}}
        named = dict(zip(KEYS, (judge_model, dimension, split), strict=True)) | {"raters": len(matrix.raters)}
        sums = symmetric_tables(matrix.values)
        rated = (~np.isnan(matrix.values)).sum(axis=0) >= 2
        by_trace = by_cluster(sums, matrix.clusters[rated])
        rows += [
            {**named, **row} for row in (*_estimates(by_trace, metrics, n, draws), alpha) if row["metric"] in names
        ]
    return _long(rows, list(KEYS), ["raters"])


def human_ceiling(ratings: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """`people_estimates` with one row per judge_model, dimension and split: raters, n, each metric with its bounds."""
    return wide_people(people_estimates(ratings, draws=draws))


def wide_people(estimates: pd.DataFrame) -> pd.DataFrame:
    """`people_estimates` as `human_ceiling` has them."""
    return _wide(estimates, list(KEYS), PEOPLE_METRICS)


def symmetric_tables(matrix: Floats) -> Floats:
    """Score pairs of each unit with two ratings or more (units, 16): all ordered pairs of raters, summing to 1."""
    pairable = pairable_units(matrix)
    counts = np.stack([(pairable == point).sum(axis=0) for point in range(POINTS)], axis=1).astype(np.float64)
    ordered = counts[:, :, None] * counts[:, None, :]
    points = np.arange(POINTS)
    ordered[:, points, points] -= counts
    rated = counts.sum(axis=1)
    return np.asarray((ordered / (rated * (rated - 1))[:, None, None]).reshape(len(rated), POINTS * POINTS))


def same_bucket(matrix: Floats) -> Floats:
    """Return of each unit (units,) the share of its ordered pairs of raters whose scores fall into the same bucket.

    Shapes: matrix (raters, units) of scores 0 to 3. NaN of units with fewer than two ratings.
    """
    shares = np.full(matrix.shape[1], np.nan)
    tables = symmetric_tables(matrix).reshape(-1, POINTS, POINTS)
    shares[(~np.isnan(matrix)).sum(axis=0) >= 2] = bucketed(tables) if len(tables) else []
    return shares


def self_consistency(repeats: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """How far people agree with themselves on hidden repeats of the same unit.

    `repeats`: rater, unit, first, second on 0..3 (missing: skipped); optional dimension. One row per
    rater and dimension: n, exact, off_by_one, bucketed, quadratic_kappa, ac1, ac2, alpha, each with bounds (by unit);
    reason says of each undefined one why (`estimate.joined_reasons`).
    """
    frames.require(repeats, "repeats", ("rater", "unit", "first", "second"))
    long = frames.with_defaults(repeats, {"dimension": ""})
    long["rater"] = long["rater"].astype(str)
    frames.require_unique(long, "repeats", ["rater", "dimension", "unit"])
    first, second = (frames.numbers(long[column], f"repeats.{column}") for column in ("first", "second"))
    _check_scale(np.stack([first, second]))
    both = ~np.isnan(first) & ~np.isnan(second)
    rows = []
    for rater in frames.in_order(long["rater"], ()):
        for dimension in frames.in_order(long.loc[long["rater"] == rater, "dimension"], frames.DIMENSION_ORDER):
            selected = both & ((long["rater"] == rater) & (long["dimension"] == dimension)).to_numpy()
            sums = _unit_pairs(first[selected], second[selected])
            values, why = _bounded(sums, PAIR_METRICS, draws), _why_undefined(int(selected.sum()))
            rows.append(
                {
                    "rater": rater,
                    "dimension": dimension,
                    "n": int(selected.sum()),
                    **values,
                    "reason": joined_reasons({name: why for name in PAIR_METRICS if values[name] is None}),
                }
            )
    columns = {
        **dict.fromkeys(("rater", "dimension"), "object"),
        "n": "int64",
        **dict.fromkeys(_with_bounds(PAIR_METRICS), "float64"),
        "reason": "object",
    }
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


@dataclass(frozen=True, kw_only=True)
class AnnotatorTest:
    """Result of the alternative annotator test; `winning_rate` None with a reason when it cannot be run.

    `people` has one row per annotator: rater, n, judge_wins, person_wins (shares, ties in both), p, rejected,
    enough (n >= 30, below which the t test is shaky). `passed`: the winning rate is at least one half.
    """

    winning_rate: float | None
    average_advantage: float | None
    people: pd.DataFrame
    epsilon: float
    reason: Reason | None = None

    @property
    def passed(self) -> bool | None:
        """Whether the judge may stand in for a person; None when the test could not be run."""
        return None if self.winning_rate is None else self.winning_rate >= 0.5


def alternative_annotator_test(
    people: Floats,
    judge: Floats,
    raters: tuple[str, ...],
    *,
    epsilon: float = EPSILON,
    alignment: Alignment = "accuracy",
    false_discovery: float = FALSE_DISCOVERY,
) -> AnnotatorTest:
    """Whether a judge represents a group of people as well as its members do.

    Source: Calderon, Reichart and Dror 2025. Scores: `people` (people, units), `judge` (units,); NaN where missing.
    Each person is left out in turn: on each of their units with another person's rating, the judge wins when it
    aligns with the others at least as well as the person does, and the person likewise; ties win both.
    H0 of a person: judge's wins <= person's wins - epsilon, by a one-sided t test of the differences, corrected
    over people by Benjamini and Yekutieli. Winning rate: share of people for whom H0 is rejected. Average
    advantage: mean share of the judge's wins. `accuracy`: share of equal ratings; `rmse`: minus the root mean
    squared difference, for scales. Edge: fewer than three people who rated are a reason, not an estimate.
    """
    rows = [
        {"rater": rater, **_left_out(people, judge, person, epsilon, alignment)} for person, rater in enumerate(raters)
    ]
    columns = {
        "rater": "object",
        "n": "int64",
        **dict.fromkeys(("judge_wins", "person_wins", "p"), "float64"),
    }
    tests = pd.DataFrame(rows, columns=list(columns)).astype(columns)
    tested = tests["p"].notna().to_numpy()
    tests["rejected"] = benjamini_yekutieli(tests["p"].to_numpy(), false_discovery)
    tests["enough"] = tests["n"] >= ENOUGH_UNITS
    if int(tested.sum()) < 3:
        return AnnotatorTest(
            winning_rate=None, average_advantage=None, people=tests, epsilon=epsilon, reason="fewer than three raters"
        )
    return AnnotatorTest(
        winning_rate=float(tests.loc[tested, "rejected"].mean()),
        average_advantage=float(tests.loc[tested, "judge_wins"].mean()),
        people=tests,
        epsilon=epsilon,
    )


def annotator_test_table(
    ratings: pd.DataFrame,
    score_pairs: pd.DataFrame,
    *,
    epsilon: float = EPSILON,
    alignment: Alignment = "accuracy",
) -> pd.DataFrame:
    """The alternative annotator test of every judge.

    `ratings` of people: unit (the trace), rater, value, dimension. `score_pairs`: trace_id, dimension,
    judge_score (optional judge_model, state). One row per judge_model and dimension: people, units (rated by two
    people or more and by the judge), people_below_30 (tested on fewer than 30 units, where the t test is
    shaky and the authors' own program leaves the person out), winning_rate, average_advantage, passed, epsilon, reason.
    """
    frames.require(score_pairs, "score_pairs", ("trace_id", "dimension", "judge_score"))
    judged = frames.with_defaults(score_pairs, {"judge_model": frames.NO_JUDGE_MODEL, "state": "scored"})
    frames.check_states(judged, "score_pairs")
    judged = judged[judged["state"] == "scored"]
    rows: list[dict[str, object]] = []
    for (_, dimension, _), matrix in rating_matrices(ratings.drop(columns=["judge_model", "split"], errors="ignore")):
        for judge_model in frames.in_order(judged["judge_model"], ()):
            rows_of_judge = judged[
                (judged["judge_model"] == judge_model) & (judged["dimension"].astype(str) == dimension)
            ]
            if rows_of_judge.empty:
                continue
            frames.require_unique(rows_of_judge, "score_pairs", ["judge_model", "dimension", "trace_id"])
            scored = pd.Series(
                frames.numbers(rows_of_judge["judge_score"], "judge_score"), index=rows_of_judge["trace_id"].astype(str)
            )
            by_unit = np.asarray(scored.reindex(list(matrix.units)), dtype=np.float64)
            test = alternative_annotator_test(
                matrix.values, by_unit, matrix.raters, epsilon=epsilon, alignment=alignment
            )
            rows.append(
                {
                    "judge_model": judge_model,
                    "dimension": dimension,
                    "people": int(test.people["p"].notna().sum()),
                    "units": int((~np.isnan(by_unit) & ((~np.isnan(matrix.values)).sum(axis=0) >= 2)).sum()),
                    "people_below_30": int((test.people["p"].notna() & ~test.people["enough"]).sum()),
                    "winning_rate": test.winning_rate,
                    "average_advantage": test.average_advantage,
                    "passed": test.passed,
                    "epsilon": epsilon,
                    "reason": test.reason,
                }
            )
    columns = {
        **dict.fromkeys(("judge_model", "dimension"), "object"),
        **dict.fromkeys(("people", "units", "people_below_30"), "int64"),
        **dict.fromkeys(("winning_rate", "average_advantage"), "float64"),
        "passed": "boolean",
        "epsilon": "float64",
        "reason": "object",
    }
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def benjamini_yekutieli(p_values: Floats, level: float = FALSE_DISCOVERY) -> NDArray[np.bool_]:
    """Which hypotheses fall at a false discovery rate of `level` under any dependence; NaN never does.

    Source: Benjamini and Yekutieli 2001. Shapes: (k,) to (k,).
    """
    rejected = np.zeros(len(p_values), dtype=bool)
    known = np.flatnonzero(~np.isnan(p_values))
    if len(known) == 0:
        return rejected
    order = known[np.argsort(p_values[known], kind="stable")]
    ranks = np.arange(1, len(order) + 1)
    limit = ranks / len(order) * level / (1 / ranks).sum()
    passed = np.flatnonzero(p_values[order] <= limit)
    if len(passed):
        rejected[order[: passed[-1] + 1]] = True
    return rejected


def by_cluster(sums: Floats, clusters: NDArray[np.int64]) -> Floats:
    """Rows (units, C) summed over the units of each cluster (clusters, C)."""
    _, place = np.unique(clusters, return_inverse=True)
    together = np.zeros((int(place.max()) + 1 if len(place) else 0, sums.shape[1]))
    np.add.at(together, place, sums)
    return together


def _bounded(sums: Floats, metrics: Mapping[str, ScoreMetric], draws: int) -> dict[str, float | None]:
    """Each metric of score pairs by cluster (clusters, 16), with its bounds; None where undefined."""

    def statistic(cells: Floats) -> Floats:
        table = cells.reshape(*cells.shape[:-1], POINTS, POINTS)
        return np.stack([metric.function(table) for metric in metrics.values()], axis=-1)

    value = statistic(sums.sum(axis=0))
    low, high = np.full((2, len(value)), np.nan)
    if draws > 0 and len(sums):
        patterns, multiplicity = _patterns(sums)
        low, high = table_bounds(patterns, list(metrics.values()), multiplicity=multiplicity)
    estimates: dict[str, float | None] = {}
    for m, name in enumerate(metrics):
        estimates[name] = present(float(value[m]))
        estimates[f"{name}_low"] = present(float(low[m]))
        estimates[f"{name}_high"] = present(float(high[m]))
    return estimates


def _patterns(sums: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Whole counts as their distinct rows, which makes a thousand units at most a few dozen patterns."""
    whole = sums.astype(np.int64)
    if not np.array_equal(whole, sums):
        return sums, np.ones(len(sums), dtype=np.int64)
    patterns, multiplicity = distinct_rows(whole)
    return patterns.astype(np.float64), multiplicity


def _with_bounds(names: Iterable[str]) -> list[str]:
    return [f"{name}{end}" for name in names for end in ("", "_low", "_high")]


def _unit_pairs(a: Floats, b: Floats) -> Floats:
    """Score pairs of units (units, 16), one in each row."""
    cells = np.zeros((len(a), POINTS * POINTS))
    cells[np.arange(len(a)), (a * POINTS + b).astype(np.int64)] = 1
    return cells


def _left_out(
    people: Floats, judge: Floats, person: int, epsilon: float, alignment: Alignment
) -> dict[str, float | int | None]:
    """Wins of the judge and of one person against the others, and the p-value of the person's hypothesis."""
    others = np.delete(people, person, axis=0)
    use = ~np.isnan(people[person]) & ~np.isnan(judge) & (~np.isnan(others)).any(axis=0)
    n = int(use.sum())
    if n < 2:
        return {"n": n, "judge_wins": None, "person_wins": None, "p": None}
    by_judge = _align(judge[use], others[:, use], alignment)
    by_person = _align(people[person, use], others[:, use], alignment)
    judge_wins, person_wins = by_judge >= by_person, by_person >= by_judge
    difference = person_wins.astype(np.float64) - judge_wins.astype(np.float64)
    return {
        "n": n,
        "judge_wins": float(judge_wins.mean()),
        "person_wins": float(person_wins.mean()),
        "p": _one_sided_p(difference, epsilon),
    }


def _align(ratings: Floats, others: Floats, alignment: Alignment) -> Floats:
    """How well each rating (units,) represents the others' (people, units)."""
    if alignment == "accuracy":
        equal = np.where(np.isnan(others), 0.0, others == ratings)
        return np.asarray(equal.sum(axis=0) / (~np.isnan(others)).sum(axis=0), dtype=np.float64)
    return np.asarray(-np.sqrt(np.nanmean((others - ratings) ** 2, axis=0)), dtype=np.float64)


def _one_sided_p(difference: Floats, epsilon: float) -> float:
    """P of a mean difference this far below epsilon; 0 or 1 when the differences do not vary."""
    from scipy.special import stdtr

    n, mean = len(difference), float(difference.mean())
    spread = float(difference.std(ddof=1))
    if spread == 0:
        return 0.0 if mean < epsilon else 1.0
    return float(stdtr(n - 1, (mean - epsilon) / (spread / n**0.5)))


def _check_scale(values: Floats) -> None:
    off = ~np.isnan(values) & ~np.isin(values, np.arange(POINTS))
    if off.any():
        raise ValueError(
            f"ratings hold {float(values[off][0])!r}: metrics of rater pairs need scores 0, 1, 2, 3 or missing"
        )


def _why_undefined(n: int) -> Reason:
    return "no units" if n == 0 else "fewer than two units" if n == 1 else "no variation"
