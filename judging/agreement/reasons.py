"""Why cells of a wide table are empty, told in one column of it: `precision, f1: no positive predicted`.

An estimate without its bounds is told too: `recall interval: traces do not vary`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from tracejury.judging.agreement.estimate import Reason, joined_reasons, reason_of

Why = Callable[[Mapping[str, Any], str], str]
"""Of a row and the name of an undefined estimate: why it is undefined."""
FLAT: Final[Reason] = "traces do not vary"
INTERVAL: Final = "interval"


def explained(
    table: pd.DataFrame,
    why: Why,
    *,
    bounds: Mapping[str, str] | None = None,
    plain: Sequence[str] = (),
    withheld: Mapping[str, str] | None = None,
    draws: int = 1,
) -> pd.DataFrame:
    """The table with `reason` last: which of its estimates are undefined, or without an interval, and why.

    Estimates are the `plain` ones, and those with bounds: `<name>_low` and `<name>_high`, or as `bounds` names them.
    `withheld`: of an estimate, why it has no interval where that is not for want of variation. `draws=0`: no interval
    was asked for, and none is missed.
    """
    named = {of: name for name, of in (bounds or {}).items()}
    ends = [str(name).removesuffix("_low") for name in table.columns if str(name).endswith("_low")]
    bounded = {named.get(of, of): of for of in ends if of in named or of in table.columns}
    estimates = [*dict.fromkeys([*bounded, *plain])]
    empty = table[[*estimates, *(f"{of}_low" for of in bounded.values())]].isna()
    gapped = empty[empty.any(axis=1)]
    rows = zip(table.loc[gapped.index].to_dict("records"), gapped.to_dict("records"), strict=True)
    asked = {name: (of, (withheld or {}).get(name, FLAT)) for name, of in bounded.items()} if draws else {}
    reasons = [_reason_of_row(row, gaps, estimates, asked, why) for row, gaps in rows]
    plain_table = table.drop(columns="reason", errors="ignore")
    return plain_table.assign(reason=pd.Series(reasons, index=gapped.index, dtype="object").reindex(table.index))


def _reason_of_row(
    row: Mapping[Any, Any],
    gaps: Mapping[Any, bool],
    estimates: Sequence[str],
    bounds: Mapping[str, tuple[str, str]],
    why: Why,
) -> str | None:
    """`bounds`: of an estimate with an interval, the name of its bounds and why they are missing if they are."""
    reasons = {name: why(row, name) for name in estimates if gaps[name]}
    for name, (of, unbounded) in bounds.items():
        if not gaps[name] and gaps[f"{of}_low"]:
            reasons[f"{name} {INTERVAL}"] = unbounded
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


def of_score(row: Mapping[str, Any], name: str) -> str:
    """Of estimates of pairs of scores, n of them."""
    if row["n"] == 0:
        return "no units"
    return "fewer than two units" if row["n"] == 1 else "no variation"
