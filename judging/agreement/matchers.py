"""How far people agree who decide matches (confirmed or rejected) or say what an unmatched finding is."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.estimate import Reason, present
from tracejury.judging.agreement.findings import FINDING_REVIEWS
from tracejury.judging.agreement.intervals import DRAWS, Floats, divide, fisher_bounds, share_bounds
from tracejury.judging.agreement.raters import by_cluster
from tracejury.judging.agreement.reasons import already
from tracejury.judging.agreement.reliability import alpha_with_interval, pair_agreement, pairable_units
from tracejury.judging.agreement.scores import exact_share, gwet, kappa

MATCH_DECISIONS: Final = ("trace_id", "label_id", "finding_id", "matcher", "status")
MATCH_STATUSES: Final = ("rejected", "confirmed")
FINDING_DECISIONS: Final = ("trace_id", "finding_id", "reviewer", "review")
ALL: Final = "all"
"""Stands for both names where three people or more are taken together."""
_ESTIMATES: Final = ("agreement", "kappa", "ac1", "alpha")


def matcher_agreement(match_decisions: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """Every two people who decided the same pairs: how often, and beyond chance.

    `match_decisions`, one row per (label_id, finding_id, matcher): trace_id, status (`confirmed` or `rejected`). One
    row per matcher_a and matcher_b (by name): n (pairs that both decided), traces, both_confirmed, both_rejected,
    only_a and only_b (confirmed by one alone), agreement (raw), Cohen's kappa, Gwet's AC1 and Krippendorff's nominal
    alpha on the two statuses, each with bounds (by trace, as `scores.table_bounds`), reason (of an
    undefined kappa). Source: Cohen 1960; Gwet 2008; Krippendorff 2011; METRICS.md, matching. Edge: two people without a
    common pair stand there with n 0; one person alone gives no row. Raises ValueError for absent columns, duplicate
    rows and another status.
    """
    words = _checked(match_decisions)
    columns = matcher_columns()
    rows = []
    for a, b, tables in _pairs(words, "matcher", len(MATCH_STATUSES)):
        total = tables.sum(axis=0)
        counts = dict(zip(("both_rejected", "only_b", "only_a", "both_confirmed"), map(int, total), strict=True))
        rows.append({"matcher_a": a, "matcher_b": b, **counts, **_row(tables, draws)})
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def matcher_columns() -> dict[str, str]:
    """Columns and types of `matcher_agreement`."""
    return _columns("matcher", ("both_confirmed", "only_a", "only_b", "both_rejected"))


def reviewer_agreement(finding_decisions: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """Every two people who reviewed the same unmatched findings: how often they say the same, and beyond chance.

    `finding_decisions`, one row per (finding_id, reviewer): trace_id, review (`valid new error`, `false alarm` or
    `duplicate`). One row per reviewer_a and reviewer_b (by name): n (findings that both reviewed), traces,
    both_valid_new_error, both_false_alarm, both_duplicate, agreement (raw), Cohen's kappa, Gwet's AC1 and
    Krippendorff's nominal alpha over the three reviews, each with bounds (by trace, as
    `scores.table_bounds`), reason (of an undefined alpha). Where three people or more reviewed, a first row `all`:
    alpha and the share of equal pairs over all of them, n the findings that two or more reviewed; kappa and AC1 are of
    two people. Source: Cohen 1960; Gwet 2008; Krippendorff 2011; METRICS.md, findings beyond the paper. Edge: as for
    `matcher_agreement`; alpha needs two findings. Raises ValueError for absent columns, duplicate rows,
    another review.
    """
    words = _checked_reviews(finding_decisions)
    columns = reviewer_columns()
    together = [_everyone(words, draws)] if words["reviewer"].nunique() > 2 else []
    rows: list[dict[str, float | int | str | None]] = [*together]
    for a, b, tables in _pairs(words, "reviewer", len(FINDING_REVIEWS)):
        alike = np.diagonal(tables.sum(axis=0).reshape(len(FINDING_REVIEWS), len(FINDING_REVIEWS)))
        row = _row(tables, draws)
        alpha, n = float(row["alpha"] or 0), int(row["n"] or 0)
        few: Reason | None = "fewer than two pairable units" if n == 1 else _reason(alpha, n)
        rows.append({"reviewer_a": a, "reviewer_b": b, **_alike(alike), **row, "reason": few})
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def why_undefined(row: Mapping[str, Any], name: str) -> str:
    """Why an estimate of `reviewer_agreement` is: the last row, of all reviewers, has no kappa and no AC1."""
    if row["reviewer_a"] == ALL and name in {"kappa", "ac1"}:
        return "only between two people"
    return already(row, name)


def decided_by_both(words: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """What stands behind a row of the two tables: as many rows as its n, with what each person said.

    `words`: `MATCH_DECISIONS` or `FINDING_DECISIONS`. Of `ALL`, what two people or more decided.
    """
    who, word = ("matcher", "status") if "matcher" in words else ("reviewer", "review")
    units = [name for name in ("trace_id", "label_id", "finding_id") if name in words]
    decisions = words.astype(str).pivot(index=units, columns=who, values=word)
    shared = decisions[decisions.notna().sum(axis=1) > 1] if first == ALL else decisions[[first, second]].dropna()
    return shared.rename_axis(columns=None).reset_index()


def reviewer_columns() -> dict[str, str]:
    """Columns and types of `reviewer_agreement`."""
    return _columns("reviewer", tuple(_alike(np.zeros(len(FINDING_REVIEWS)))))


def _columns(who: str, counts: tuple[str, ...]) -> dict[str, str]:
    estimates = [f"{name}{end}" for name in _ESTIMATES for end in ("", "_low", "_high")]
    return {
        **dict.fromkeys((f"{who}_a", f"{who}_b"), "object"),
        **dict.fromkeys(("n", "traces", *counts), "int64"),
        **dict.fromkeys(estimates, "float64"),
        "reason": "object",
    }


def _checked(match_decisions: pd.DataFrame) -> pd.DataFrame:
    """trace_id, unit (the pair), matcher, word (0 rejected, 1 confirmed)."""
    frames.require(match_decisions, "match_decisions", MATCH_DECISIONS)
    words = match_decisions[list(MATCH_DECISIONS)].astype(str)
    frames.require_unique(words, "match_decisions", ["label_id", "finding_id", "matcher"])
    unit = pd.MultiIndex.from_frame(words[["label_id", "finding_id"]]).factorize()[0]
    return words.assign(unit=unit, word=_coded(words["status"], "match_decisions.status", MATCH_STATUSES))


def _checked_reviews(finding_decisions: pd.DataFrame) -> pd.DataFrame:
    """trace_id, unit (the finding), reviewer, word (the place of the review in `FINDING_REVIEWS`)."""
    frames.require(finding_decisions, "finding_decisions", FINDING_DECISIONS)
    words = finding_decisions[list(FINDING_DECISIONS)].astype(str)
    frames.require_unique(words, "finding_decisions", ["finding_id", "reviewer"])
    unit = pd.factorize(words["finding_id"])[0]
    return words.assign(unit=unit, word=_coded(words["review"], "finding_decisions.review", FINDING_REVIEWS))


def _coded(values: pd.Series, name: str, known: tuple[str, ...]) -> np.ndarray:
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"{name} holds {unknown!r}; expected one of {list(known)!r}")
    return frames.codes(values, known)


def _pairs(words: pd.DataFrame, who: str, size: int) -> Iterator[tuple[str, str, np.ndarray]]:
    """Every two people by name, with a's decisions by b's counted by trace (traces, size * size)."""
    decisions = words.pivot(index="unit", columns=who, values="word")
    trace = words.drop_duplicates("unit").set_index("unit")["trace_id"]
    for a, b in combinations(sorted(map(str, decisions.columns)), 2):
        both = decisions[[a, b]].dropna().astype(int)
        clusters = pd.factorize(trace.reindex(both.index))[0]
        yield a, b, _tables(both[a].to_numpy(), both[b].to_numpy(), clusters, size)


def _tables(a: np.ndarray, b: np.ndarray, clusters: np.ndarray, size: int) -> np.ndarray:
    traces = int(clusters.max()) + 1 if len(clusters) else 0
    cells = size * size
    return np.bincount(clusters * cells + a * size + b, minlength=traces * cells).reshape(traces, cells)


def _statistic(sums: Floats) -> Floats:
    size = int(sums.shape[-1] ** 0.5)
    table = sums.reshape(*sums.shape[:-1], size, size)
    estimates = [exact_share(table), kappa(table, "identity"), gwet(table, "identity"), nominal_alpha(table)]
    return np.stack(estimates, axis=-1)


def nominal_alpha(table: Floats) -> Floats:
    """Krippendorff's nominal alpha of two raters from their table (..., K, K); NaN as `reliability.alpha`.

    Source: Krippendorff 2011. Shapes: table (..., K, K); returns (...).
    """
    pairs = table.sum(axis=(-2, -1))
    values = table.sum(axis=-1) + table.sum(axis=-2)
    differing = 2 * (pairs - np.trace(table, axis1=-2, axis2=-1))
    chance = (2 * pairs) ** 2 - (values**2).sum(axis=-1)
    return np.where(pairs >= 2, 1 - (2 * pairs - 1) * divide(differing, chance), np.nan)


def _row(tables: np.ndarray, draws: int) -> dict[str, float | int | str | None]:
    total = tables.sum(axis=0)
    n = int(total.sum())
    value = _statistic(total.astype(np.float64))
    low = high = np.full(len(value), np.nan)
    if draws > 0 and len(tables):
        limits = np.array([[-1.0, 1.0]] * len(value))
        low, high = fisher_bounds(tables, _statistic, limits, prior=np.eye(tables.shape[1]) * n / len(tables))
        size = int(tables.shape[1] ** 0.5)
        low[0], high[0] = share_bounds(tables[:, :: size + 1].sum(axis=1), tables.sum(axis=1))
    row: dict[str, float | int | str | None] = {"n": n, "traces": len(tables), "reason": _reason(float(value[1]), n)}
    for f, name in enumerate(_ESTIMATES):
        row |= {name: value[f], f"{name}_low": low[f], f"{name}_high": high[f]}
    return row


def _everyone(words: pd.DataFrame, draws: int) -> dict[str, float | int | str | None]:
    """All reviewers at once: alpha, and the share of equal pairs of reviews of a finding."""
    reviews = words.pivot(index="reviewer", columns="unit", values="word").astype("float64")
    trace = words.drop_duplicates("unit").set_index("unit")["trace_id"].reindex(reviews.columns)
    matrix, clusters = reviews.to_numpy(), pd.factorize(trace)[0]
    alpha = alpha_with_interval(matrix, "nominal", clusters=clusters, draws=draws)
    several = (~np.isnan(matrix)).sum(axis=0) >= 2
    units = pairable_units(matrix)
    unanimous = [int(((units == word) | np.isnan(units)).all(axis=0).sum()) for word in range(len(FINDING_REVIEWS))]
    low, high = _equal_bounds(units, clusters[several], draws)
    return {
        "reviewer_a": ALL,
        "reviewer_b": ALL,
        "n": alpha.n,
        "traces": len(set(clusters[several].tolist())),
        **_alike(np.array(unanimous)),
        "agreement": pair_agreement(matrix),
        "agreement_low": low,
        "agreement_high": high,
        "alpha": alpha.value,
        "alpha_low": alpha.low,
        "alpha_high": alpha.high,
        "reason": alpha.reason,
    }


def _equal_bounds(units: Floats, clusters: np.ndarray, draws: int) -> tuple[float | None, float | None]:
    """Bounds of the mean share of equal pairs, by trace."""
    if draws == 0 or not units.shape[1]:
        return None, None
    counts = np.stack([(units == word).sum(axis=0) for word in range(len(FINDING_REVIEWS))], axis=1)
    rated = counts.sum(axis=1)
    equal = divide((counts * (counts - 1)).sum(axis=1), rated * (rated - 1))
    sums = by_cluster(np.stack([equal, np.ones(len(equal))], axis=1), clusters)
    low, high = share_bounds(sums[:, 0], sums[:, 1], capped=False)
    return present(float(low)), present(float(high))


def _alike(counts: np.ndarray) -> dict[str, int]:
    names = (f"both_{review.replace(' ', '_')}" for review in FINDING_REVIEWS)
    return {name: int(count) for name, count in zip(names, counts, strict=True)}


def _reason(value: float, n: int) -> Reason | None:
    if not np.isnan(value):
        return None
    return "no pairs" if n == 0 else "no variation"
