"""Agreement by slice: errors and scores of judges and people within parts of the traces."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import pandas as pd

from tracejury.judging.agreement import ceiling, errors, frames, raters, reasons, reliability, scores
from tracejury.judging.agreement.error_rates import COUNTS
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.intervals import DRAWS

SLICES: Final = ("trace_id", "by", "slice")
"""Columns of the slices: `by` (agent, length ...) and the `slice` that a trace belongs to; with the optional column
`error_id`, where it is not empty, one of its errors."""
UNKNOWN: Final = "unknown"
ERROR_RATES: Final = ("precision", "recall", "f1")
SCORE_RATES: Final = ("bucketed", "pearson", "spearman", "pair_alpha")
AMONG_PEOPLE: Final = "people"
"""The judge model of people's estimates and tests, and the kind of their test: the share of a trace's pairs of people
in the same bucket."""
CONSISTENCY_RATES: Final = {"alpha_interval": "alpha", "mean_sd": "mean_sd", "identical": "identical"}
"""Metrics of repeats, and what their bounds are named by."""
PEOPLE_RATES: Final = ("exact", "bucketed", "quadratic_kappa", "ac2", "pair_alpha")


def checked_slices(slices: pd.DataFrame) -> pd.DataFrame:
    """The columns as text, `error_id` empty where the whole trace is meant, a missing slice `unknown`.

    Raises ValueError for absent columns, and for an error in two slices of one kind.
    """
    frames.require(slices, "slices", SLICES)
    table = frames.with_defaults(slices, {"error_id": "", "slice": UNKNOWN})[[*SLICES, "error_id"]]
    table = table.replace({"slice": {"": UNKNOWN}}).astype(str).drop_duplicates(ignore_index=True)
    frames.require_unique(table[table["error_id"] != ""], "slices", ["trace_id", "error_id", "by"])
    return table


def error_slices(
    error_pairs: pd.DataFrame, slices: pd.DataFrame, *, missing: Missing = "drop", draws: int = DRAWS
) -> pd.DataFrame:
    """Precision, recall and F1 of caught and localized errors by slice: `errors.error_estimates` of each slice.

    `slices`: `SLICES`. One row per by, slice, judge_model, dimension, split, kind and metric: value, low, high (as
    `errors.error_table` makes them), n, traces, tp, fp, fn, tn, failed, not_applicable, not_matched, reason. An error
    without a slice is of the slice `unknown`: the counts of a judge sum over the slices to those of all its errors.
    """
    parts = _sliced(error_pairs, slices, lambda pairs: _error_estimates(pairs, missing, draws), by_error=True)
    return stacked(parts, error_columns())


def _sliced(
    pairs: pd.DataFrame, slices: pd.DataFrame, make: Callable[[pd.DataFrame], pd.DataFrame], *, by_error: bool = False
) -> list[pd.DataFrame]:
    """The rows that `make` gives of each slice, with their `by` and `slice`.

    Small kinds of slices are made at once, which takes a fraction of the time.
    """
    kinds = placed_by(pairs, checked_slices(slices), by_error=by_error)
    return [rows for batch in _batches(placed.assign(by=by) for by, placed in kinds) for rows in _at_once(batch, make)]


def _batches(kinds: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The kinds one below another, as many as have at most `_TOGETHER` rows."""
    batch: list[pd.DataFrame] = []
    for placed in kinds:
        if batch and sum(map(len, batch)) + len(placed) > _TOGETHER:
            yield pd.concat(batch, ignore_index=True)
            batch = []
        batch.append(placed)
    if batch:
        yield pd.concat(batch, ignore_index=True)


def _at_once(kinds: pd.DataFrame, make: Callable[[pd.DataFrame], pd.DataFrame]) -> list[pd.DataFrame]:
    """The rows of each kind."""
    part = frames.joined(kinds["by"], kinds["slice"])
    rows = frames.made_in_parts(kinds.drop(columns=["by", "slice"]), part, make)
    names = rows["part"].str.split(frames.APART, n=1)
    rows = rows.drop(columns="part").assign(by=names.str[0], slice=names.str[1])
    return [_in_order(rows[rows["by"] == by]) for by in dict.fromkeys(kinds["by"])]


_TOGETHER: Final = 30_000


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    order = slice_order(list(rows["slice"]))
    return rows.sort_values("slice", key=lambda column: column.map(order.index), kind="stable")


def _error_estimates(pairs: pd.DataFrame, missing: Missing, draws: int) -> pd.DataFrame:
    rates = errors.error_table(pairs, missing=missing, draws=draws)
    rates = rates[rates["impact"] == "all"]
    estimates = errors.error_estimates(rates)
    estimates = estimates[estimates["metric"].isin(ERROR_RATES)]
    keys = list(errors.KEYS)
    return estimates.merge(rates[[*keys, "traces"]], on=keys, how="left")


def error_columns() -> dict[str, str]:
    """Columns and types of `error_slices`."""
    keys = ("by", "slice", "judge_model", "dimension", "split", "kind", "metric")
    counts = ("n", "traces", *COUNTS, *errors.LEFT_OUT)
    return {
        **dict.fromkeys(keys, "object"),
        **dict.fromkeys(("value", "low", "high"), "float64"),
        **dict.fromkeys(counts, "int64"),
        "reason": "object",
    }


def score_slices(
    score_pairs: pd.DataFrame, slices: pd.DataFrame, *, missing: Missing = "drop", draws: int = DRAWS
) -> pd.DataFrame:
    """Bucketed accuracy, correlations and alpha of scores by slice: `scores.score_estimates` of each slice's traces.

    One row per by, slice, judge_model, dimension, split and metric: value, low, high, n, traces, failed,
    not_applicable, missing, reason. Slices of errors alone (span kinds) have no scores. A trace with several tools
    counts in the slice of each; of every other kind it is in one slice, `unknown` where none is known.
    """
    parts = _sliced(
        score_pairs,
        slices,
        lambda pairs: scores.score_estimates(pairs, missing=missing, draws=draws, names=SCORE_RATES),
    )
    return stacked(parts, score_columns())


def score_columns() -> dict[str, str]:
    """Columns and types of `score_slices`."""
    return {
        **dict.fromkeys(("by", "slice", *scores.KEYS, "metric"), "object"),
        **dict.fromkeys(("value", "low", "high"), "float64"),
        **scores.LEFT_OUT,
        "reason": "object",
    }


def consistency_slices(ratings: pd.DataFrame, slices: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """Alpha, mean SD and identical traces of judges' repeats by slice: `reliability.reliability_table` of its traces.

    `ratings` of judges alone. One row per by, slice, judge_model, dimension, split and metric: value, low, high, n
    (units with two ratings), failed, not_applicable, reason. Slices are those of whole traces, as in `score_slices`.
    """
    parts = _sliced(with_traces(ratings), slices, lambda rows: _repeat_rows(rows, min(draws, 1)))
    return stacked(parts, consistency_columns())


def consistency_columns() -> dict[str, str]:
    """Columns and types of `consistency_slices`."""
    return {
        **dict.fromkeys(("by", "slice", *reliability.KEYS, "metric"), "object"),
        **dict.fromkeys(("value", "low", "high"), "float64"),
        **dict.fromkeys(("n", "failed", "not_applicable"), "int64"),
        "reason": "object",
    }


def _repeat_rows(ratings: pd.DataFrame, draws: int) -> pd.DataFrame:
    table = reliability.reliability_table(ratings, draws=draws)
    own = table[table["repeats"] > 1]
    columns = [*reliability.KEYS, "n", "failed", "not_applicable"]
    parts = []
    for metric, of in CONSISTENCY_RATES.items():
        part = own[columns].assign(metric=metric, value=own[metric], low=own[f"{of}_low"], high=own[f"{of}_high"])
        parts.append(part.assign(reason=reasons.each_of(own["reason"], metric)))
    return pd.concat(parts, ignore_index=True)


def with_traces(ratings: pd.DataFrame) -> pd.DataFrame:
    """The ratings with `trace_id`: of a unit that names none, the unit."""
    return ratings if "trace_id" in ratings.columns else ratings.assign(trace_id=ratings["unit"])


def people_slices(ratings: pd.DataFrame, slices: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """`raters.human_ceiling` by slice: people's scores against people's, on the slice's traces.

    `ratings` of people alone. One row per by, slice, dimension, split and metric: value, low, high, n (units that two
    people rated), reason. Slices are those of whole traces, as in `score_slices`.
    """
    parts = _sliced(with_traces(ratings), slices, lambda rows: _people_rows(rows, draws))
    return stacked(parts, people_columns())


def _people_rows(ratings: pd.DataFrame, draws: int) -> pd.DataFrame:
    return raters.people_estimates(ratings.assign(judge_model=AMONG_PEOPLE), draws=draws, names=PEOPLE_RATES)


def people_columns() -> dict[str, str]:
    """Columns and types of `people_slices`."""
    values = dict.fromkeys(("value", "low", "high"), "float64")
    keys = ("by", "slice", "dimension", "split", "metric")
    return {**dict.fromkeys(keys, "object"), **values, "n": "int64", "reason": "object"}


def people_error_slices(person_pairs: pd.DataFrame, slices: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """`ceiling.error_ceiling` by slice: people's errors against people's, on the slice's traces.

    One row per by, slice, dimension, split, kind and metric: value, low, high, n, traces, people, reason. Slices are
    those of whole traces: each person's errors are their own, and are in no slice of the reference's errors.
    """
    parts = _sliced(person_pairs, slices, lambda pairs: _people_errors(pairs, draws))
    return stacked(parts, people_error_columns())


def _people_errors(person_pairs: pd.DataFrame, draws: int) -> pd.DataFrame:
    table = ceiling.error_ceiling(person_pairs, draws=draws)
    return table[(table["impact"] == "all") & table["metric"].isin(ERROR_RATES)]


def people_error_columns() -> dict[str, str]:
    """Columns and types of `people_error_slices`."""
    columns = {name: kind for name, kind in ceiling.ceiling_columns().items() if name != "impact"}
    return {"by": "object", "slice": "object", **columns}


def in_slice(pairs: pd.DataFrame, slices: pd.DataFrame, by: str, name: str, *, by_error: bool) -> pd.DataFrame:
    """The pairs of errors, or of scores, that a slice counts."""
    known = checked_slices(slices)
    placed = dict(placed_by(pairs, known[known["by"] == by], by_error=by_error)).get(by)
    return pairs.head(0) if placed is None else placed[placed["slice"] == name].drop(columns="slice")


def slice_order(names: Sequence[str]) -> list[str]:
    """Slices as they are read: by the number that they begin with, then by name, `unknown` last."""

    def place(name: str) -> tuple[bool, bool, int, str]:
        number = re.match(r"\d+", name)
        return name == UNKNOWN, number is None, int(number[0]) if number else 0, name

    return sorted(set(names), key=place)


def placed_by(pairs: pd.DataFrame, slices: pd.DataFrame, *, by_error: bool) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each kind of checked slices and the pairs with their `slice`; of scores none of slices of errors alone."""
    for by in dict.fromkeys(slices["by"]):
        placed = _placed(pairs, slices[slices["by"] == by], by_error=by_error)
        if placed is not None:
            yield by, placed


def _placed(pairs: pd.DataFrame, own: pd.DataFrame, *, by_error: bool) -> pd.DataFrame | None:
    of_errors = own[own["error_id"] != ""]
    if by_error and len(of_errors):
        keys, known = ["trace_id", "error_id"], of_errors[["trace_id", "error_id", "slice"]]
    else:
        keys, known = ["trace_id"], own.loc[own["error_id"] == "", ["trace_id", "slice"]]
    if known.empty:
        return None
    named = pairs.assign(**{key: pairs[key].astype(str) for key in keys})
    placed = named.merge(known, on=keys, how="left")
    return placed.assign(slice=placed["slice"].astype(object).where(placed["slice"].notna(), UNKNOWN))


def stacked(parts: Sequence[pd.DataFrame], columns: dict[str, str]) -> pd.DataFrame:
    table = pd.concat(parts, ignore_index=True) if parts else frames.empty(columns)
    return table[list(columns)].astype(columns)
