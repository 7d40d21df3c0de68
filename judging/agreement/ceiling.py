"""What people reach among each other on errors: the judge's own rates with a second person in the judge's place."""

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import error_rates, frames
from tracejury.judging.agreement.frames import IMPACTS, KINDS, Kind
from tracejury.judging.agreement.intervals import DRAWS, Floats

ANY: Final = "any"
"""Stands for no dimension: every error of one person, and whether the other reported it at all."""
PERSON_PAIRS: Final = (
    "trace_id",
    "error_id",
    "impact",
    "author",
    "other",
    "reviewers",
    "dimension",
    "relevant",
    "caught",
    "localized",
)
KEYS: Final = {"dimension": "object", "impact": "object", "split": "object", "kind": "object", "metric": "object"}
_KEY: Final = ["split", "dimension", "trace_id", "error_id", "author", "other"]


def checked_person_pairs(person_pairs: pd.DataFrame) -> pd.DataFrame:
    """The frame with its optional columns filled in and its logic checked.

    One row per (error of `author`, `other`, dimension): trace_id, error_id, impact, author, other, reviewers (how many
    people submitted the trace), dimension (or `any`), relevant (the author mapped the error to the
    dimension; always true for `any`), caught and localized (by an error of the other of that dimension). Optional:
    split. Raises ValueError for absent columns, duplicate rows, a person beside themself, fewer than two reviewers.
    """
    frames.require(person_pairs, "person_pairs", PERSON_PAIRS)
    pairs = frames.with_defaults(person_pairs, {"split": frames.NO_SPLIT, "impact": "unknown"})
    pairs["impact"] = pairs["impact"].str.lower()
    for column in ("trace_id", "error_id", "author", "other", "dimension"):
        pairs[column] = pairs[column].astype(str)
    frames.require_unique(pairs, "person_pairs", _KEY)
    for column in ("relevant", "caught", "localized"):
        true, known = frames.flags(pairs[column], f"person_pairs.{column}")
        if not known.all():
            raise ValueError(f"person_pairs.{column} is missing in some rows; people who submitted have an answer")
        pairs[column] = true
    pairs["reviewers"] = frames.numbers(pairs["reviewers"], "person_pairs.reviewers")
    if (pairs["author"] == pairs["other"]).any():
        raise ValueError("person_pairs compares a person with themself; `author` and `other` are two people")
    if not (pairs["reviewers"] >= 2).all():
        raise ValueError("person_pairs.reviewers is below 2 or missing in some rows; a pair needs two people")
    return pairs


def error_ceiling(person_pairs: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """Precision to accuracy between people, defined as for a judge: the most that a judge can be asked to reach.

    Each person in turn is the reference and each other stands as the judge of every dimension, with the errors they
    mapped to it as findings, matched one to one by the rule that judges get, on blind labels only. Nobody confirms
    these matches: read the ceiling beside estimates that count proposals, and with care beside confirmed ones. All
    ordered pairs of a trace share its weight, so a trace of three people counts as one of two, and nobody is named
    first.

    One row per dimension, impact, split, kind and rate: metric, value, low, high (`error_rates.rate_bounds`, by
    trace), n (comparisons of an error with another person behind the rate), traces, people, reason.
    `any` asks only whether the other reported the error: its recall, pooled over both directions, is precision and F1
    too. Source: METRICS.md, human ceiling. Edge: no trace with two people gives no rows.
    """
    pairs = checked_person_pairs(person_pairs)
    columns = ceiling_columns()
    parts = [
        _split_rows(pairs[pairs["split"] == split], draws).assign(split=split)
        for split in frames.in_order(pairs["split"], ("dev", "test"))
    ]
    table = pd.concat(parts, ignore_index=True) if parts else frames.empty(columns)
    return table[list(columns)].astype(columns)


def beside(estimates: pd.DataFrame, reached: pd.DataFrame, on: list[str]) -> pd.DataFrame:
    """Estimates of judges with what people reach on the same: ceiling, ceiling_low, ceiling_high (NaN where unknown).

    `reached`: the columns of `on`, value, low, high; one row for each combination of `on`.
    """
    named = {"value": "ceiling", "low": "ceiling_low", "high": "ceiling_high"}
    known = reached[[*on, *named]].rename(columns=named)
    return estimates.merge(known, on=on, how="left", validate="many_to_one")


def ceiling_columns() -> dict[str, str]:
    """Columns and types of `error_ceiling`."""
    counts = dict.fromkeys(("n", "traces", "people"), "int64")
    return {**KEYS, **dict.fromkeys(("value", "low", "high"), "float64"), **counts, "reason": "object"}


def _split_rows(pairs: pd.DataFrame, draws: int) -> pd.DataFrame:
    dimensions = frames.in_order(pairs["dimension"], frames.DIMENSION_ORDER)
    traces = tuple(sorted(set(pairs["trace_id"])))
    share = 1 / (pairs["reviewers"] * (pairs["reviewers"] - 1)).to_numpy()
    weighted, counted = _counts(pairs, traces, dimensions, share, np.ones(len(pairs)))
    plain = counted.astype(np.int64)
    total = weighted.sum(axis=0)
    values = error_rates.rates(total)
    low, high = error_rates.rate_bounds(weighted) if draws > 0 else np.full((2, *values.shape), np.nan)
    seen = (plain.sum(axis=(3, 4)) > 0).sum(axis=0)
    people = pairs["author"].nunique()
    rows = [
        {
            "dimension": dimension,
            "impact": impact,
            "kind": kind,
            "metric": metric.name,
            "value": values[j, i, k, r],
            "low": low[j, i, k, r],
            "high": high[j, i, k, r],
            "n": metric.n(*cells),
            "traces": int(seen[j, i]),
            "people": people,
            "reason": metric.why(*cells) if np.isnan(values[j, i, k, r]) else None,
        }
        for j, dimension in enumerate(dimensions)
        for i, impact in enumerate(IMPACTS)
        for k, kind in enumerate(KINDS)
        for cells in [tuple(int(count) for count in plain[:, j, i, k].sum(axis=0))]
        for r, metric in enumerate(error_rates.ERROR_METRICS)
        if dimension != ANY or metric.name == "recall"
    ]
    return pd.DataFrame(rows)


def _counts(
    pairs: pd.DataFrame, traces: tuple[str, ...], dimensions: tuple[str, ...], *weights: NDArray[np.float64]
) -> list[Floats]:
    """Confusion counts (traces, judges, impacts, kinds, 4) by each of the weights."""
    known = (*IMPACTS[:3], "unknown")
    impact = frames.codes(pairs["impact"], known)
    if (impact < 0).any():
        raise ValueError(f"person_pairs has the impact {pairs['impact'][impact < 0].iloc[0]!r}; expected {known!r}")
    at = (frames.codes(pairs["trace_id"], traces), frames.codes(pairs["dimension"], dimensions), impact)
    shape = (len(traces), len(dimensions), len(known), 4)
    places = [np.ravel_multi_index((*at, _cells(pairs, kind)), shape) for kind in KINDS]
    return [np.stack([_kind_counts(place, shape, each) for place in places], axis=3) for each in weights]


def _cells(pairs: pd.DataFrame, kind: Kind) -> NDArray[np.int64]:
    """Which of tp, fp, fn and tn each pair is."""
    truth, predicted = pairs["relevant"].to_numpy(), pairs[kind].to_numpy()
    return np.where(truth, np.where(predicted, 0, 2), np.where(predicted, 1, 3))


def _kind_counts(place: NDArray[np.int64], shape: tuple[int, int, int, int], weights: NDArray[np.float64]) -> Floats:
    counted = np.bincount(place, weights=weights, minlength=int(np.prod(shape))).reshape(shape)
    return np.concatenate([counted[:, :, :3], counted.sum(axis=2, keepdims=True)], axis=2)
