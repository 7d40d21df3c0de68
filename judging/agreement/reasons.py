"""Why cells of a wide table are empty, told in one column of it: `precision, f1: no positive predicted`.

An estimate without its bounds is told too: `recall interval: traces do not vary`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from tracejury.judging.agreement import errors, findings, matchers, prevalence, trail
from tracejury.judging.agreement.estimate import Reason, joined_reasons, reason_of

Why = Callable[[Mapping[str, Any], str], str]
"""Of a row and the name of an undefined estimate: why it is undefined."""
FLAT: Final[Reason] = "traces do not vary"
INTERVAL: Final = "interval"
_WITHHELD: Final = {"joint_accuracy": trail.WITHHELD}


def explained(
    table: pd.DataFrame, why: Why, *, bounds: Mapping[str, str] | None = None, plain: Sequence[str] = (), draws: int = 1
) -> pd.DataFrame:
    """The table with `reason` last: which of its estimates are undefined, or without an interval, and why.

    Estimates are the `plain` ones, and those with bounds: `<name>_low` and `<name>_high`, or as `bounds` names them.
    `draws=0`: no interval was asked for, and none is missed.
    """
    named = {of: name for name, of in (bounds or {}).items()}
    ends = [str(name).removesuffix("_low") for name in table.columns if str(name).endswith("_low")]
    bounded = {named.get(of, of): of for of in ends if of in named or of in table.columns}
    estimates = [*dict.fromkeys([*bounded, *plain])]
    empty = table[[*estimates, *(f"{of}_low" for of in bounded.values())]].isna()
    gapped = empty[empty.any(axis=1)]
    rows = zip(table.loc[gapped.index].to_dict("records"), gapped.to_dict("records"), strict=True)
    reasons = [_reason_of_row(row, gaps, estimates, bounded if draws else {}, why) for row, gaps in rows]
    plain_table = table.drop(columns="reason", errors="ignore")
    return plain_table.assign(reason=pd.Series(reasons, index=gapped.index, dtype="object").reindex(table.index))


def _reason_of_row(
    row: Mapping[Any, Any], gaps: Mapping[Any, bool], estimates: Sequence[str], bounds: Mapping[str, str], why: Why
) -> str | None:
    reasons = {name: why(row, name) for name in estimates if gaps[name]}
    for name, of in bounds.items():
        if not gaps[name] and gaps[f"{of}_low"]:
            reasons[f"{name} {INTERVAL}"] = _WITHHELD.get(name, FLAT)
    return joined_reasons(reasons)


def of_long(table: pd.DataFrame, *, draws: int) -> pd.DataFrame:
    """A table of one estimate per row (value, low, high; perhaps ceiling), its `reason` names all that is empty."""
    empty = table.isna()
    gaps = {f"{INTERVAL}: {FLAT}": ~empty["value"] & empty["low"] & bool(draws)}
    if "ceiling" in table.columns:
        gaps["ceiling: no two people to compare"] = empty["ceiling"]
        gaps[f"ceiling {INTERVAL}: {FLAT}"] = ~empty["ceiling"] & empty["ceiling_low"] & bool(draws)
    reason = table["reason"].astype(object).where(~empty["reason"], "")
    for text, holds in gaps.items():
        reason = reason.where(~holds, reason.where(reason == "", reason + "; ") + text)
    return table.assign(reason=reason.where(reason != "", None).astype(object))


def of_grid(grid: pd.DataFrame, error_pairs: pd.DataFrame) -> pd.DataFrame:
    """`errors.coverage_grid` of these pairs with `reason` last: which judges say nothing of an error, and why."""
    if grid.empty:
        return grid
    keys = ["judge_model", "split", "trace_id", "error_id", "impact"]
    pairs = errors.checked_pairs(error_pairs)
    states = (
        pairs.set_index([*keys, "dimension"])["state"]
        .unstack("dimension")
        .reindex(pd.MultiIndex.from_frame(grid[keys]))
    )
    unsaid = (
        states.astype(object)
        .where(states.notna(), "not asked")
        .replace({"not_applicable": "not applicable", "not_matched": errors.NOT_MATCHED})
    )
    rows = [
        joined_reasons({str(dimension): str(state) for dimension, state in row.items() if state != "scored"})
        for row in unsaid[[name for name in grid.columns if name not in keys]].to_dict("records")
    ]
    return grid.assign(reason=pd.Series(rows, index=grid.index, dtype="object"))


def of_compared(table: pd.DataFrame, *, draws: int) -> pd.DataFrame:
    """`compare.compare_errors` or `compare.compare_scores` with `reason` last."""
    unknown = table[["left", "right"]].isna()
    sides = unknown.sum(axis=1).map({0: None, 1: "undefined on one side", 2: "undefined on both sides"})
    reason = sides.astype(object).where(sides.notna(), None)
    flat = ~unknown.any(axis=1) & table["low"].isna() & bool(draws)
    return table.assign(reason=reason.where(~flat, f"{INTERVAL}: {FLAT}").astype(object))


def of_test(row: Mapping[str, Any], name: str) -> str:
    """Of `compare.mcnemar_table`."""
    return "no units" if row["n"] == 0 else "no discordant pairs"


def always(reason: Reason) -> Why:
    """One reason, whatever the row."""
    return lambda row, name: reason


def recorded(long: pd.DataFrame, on: Sequence[str]) -> Why:
    """The reasons of a long table (one metric per row: the columns `on`, metric, reason), for its wide form."""
    keys = long[[*on, "metric"]].itertuples(index=False, name=None)
    known = dict(zip(keys, long["reason"], strict=True))
    return lambda row, name: str(known[(*(row[column] for column in on), name)])


def already(row: Mapping[str, Any], name: str) -> str:
    """The reason that the row has, else that of its n."""
    return str(row["reason"]) if isinstance(row["reason"], str) else of_score(row, name)


def each_of(reasons: pd.Series, name: str) -> pd.Series:
    """Return `reason_of` each of the reasons of a column."""
    return pd.Series([reason_of(reason, name) for reason in reasons], index=reasons.index, dtype="object")


def carried(row: Mapping[str, Any], name: str) -> str:
    """The reason that the row, written by `joined_reasons`, has for this estimate."""
    return str(reason_of(row["reason"], name))


def of_coverage(reason: Reason) -> Why:
    """Of `errors.suite_coverage` and `errors.coverage_of`: this reason, unless no matches were proposed."""
    return lambda row, name: errors.NOT_MATCHED if row["not_matched"] else reason


def of_score(row: Mapping[str, Any], name: str) -> str:
    """Of estimates of pairs of scores, n of them."""
    if row["n"] == 0:
        return "no units"
    return "fewer than two units" if row["n"] == 1 else "no variation"


def of_reviewers(row: Mapping[str, Any], name: str) -> str:
    """Of `matchers.reviewer_agreement`: the last row, of all reviewers, has no kappa and no AC1."""
    if row["reviewer_a"] == matchers.ALL and name in {"kappa", "ac1"}:
        return "only between two people"
    return already(row, name)


def of_finding(row: Mapping[str, Any], name: str) -> str:
    """Of `findings.finding_table`."""
    if name == "unmatched_per_trace" and not row["not_matched"]:
        return "no units"
    return findings.WITHOUT.get(name, "no units")


def of_trail(row: Mapping[str, Any], name: str) -> str:
    """Of `trail.trail_table`."""
    if row["traces"] == 0:
        return "no units"
    if name == "pair_precision" or (name == "pair_f1" and pd.isna(row["pair_precision"])):
        return "no positive predicted"
    if name == "pair_f1" and row["pair_recall"] == 0:
        return "precision and recall are both 0"
    return "no positives"


def of_calibration(row: Mapping[str, Any], name: str) -> str:
    """Of `prevalence.corpus_table`."""
    if name == "ppi":
        return str(prevalence.why_not_powered(row))
    if row["sampling"] == "unknown" and name in {"sensitivity", "specificity"}:
        return prevalence.UNKNOWN_CHANCES
    known: dict[str, Reason] = {
        "apparent": "no units", "sensitivity": "no positives", "specificity": "no negatives",
    }  # fmt: skip
    return known.get(name) or str(row["reason"])


def of_repeats(row: Mapping[str, Any], name: str) -> str:
    """Of `reliability.unit_table`."""
    return "fewer than two repeats" if name in {"sd", "identical"} else "no score"
