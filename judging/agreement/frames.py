"""The input frames: their columns, orders and checks, shared by every module of agreement."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Impact = Literal["low", "medium", "high", "all"]
Kind = Literal["caught", "localized"]
State = Literal["scored", "failed", "not_applicable", "not_matched"]
Missing = Literal["drop", "disagree"]
"""What a failed judgement counts as: left out and counted beside the estimate, or a disagreement."""

DIMENSION_ORDER: Final = ("LC", "EE", "PA", "PQ", "GF", "TS", "TC")
"""Order of rows: the paper's tables, GF where it stands in the paper's text; other judges follow by name."""
IMPACTS: Final[tuple[Impact, ...]] = ("low", "medium", "high", "all")
KINDS: Final[tuple[Kind, ...]] = ("caught", "localized")
STATES: Final[tuple[State, ...]] = ("scored", "failed", "not_applicable", "not_matched")
FAILURES: Final = ("unparsable", "too_long", "refused", "error")
"""The store's names for a judge that did not answer; all count as `failed`."""
NO_SPLIT: Final = "all"
NO_JUDGE_MODEL: Final = ""

ERROR_PAIRS: Final = ("trace_id", "error_id", "impact", "dimension", "relevant", "caught", "localized")
SCORE_PAIRS: Final = ("trace_id", "dimension", "reference_score", "judge_score")
RATINGS: Final = ("unit", "rater", "value")
FINDINGS: Final = ("trace_id", "dimension", "finding_id", "matched", "review", "citations", "invalid_citations")
RATIONALES: Final = ("dimension", "trace_id", "repeat", "text")


def keep_texts_in_python() -> None:
    """Have pandas keep new text columns as Python's strings, in this whole process.

    Estimates are made of hundreds of small frames, for each of which Arrow's strings cost more than they save: a
    report takes two thirds of the time. For processes of our own alone; in a notebook pandas is its owner's.
    """
    pd.set_option("mode.string_storage", "python")


def require(frame: pd.DataFrame, name: str, columns: Iterable[str]) -> None:
    """Raise ValueError naming the frame and the columns that it lacks."""
    absent = [column for column in columns if column not in frame.columns]
    if absent:
        raise ValueError(f"{name} lacks the columns {absent!r}; it has {list(map(str, frame.columns))!r}")


def require_unique(frame: pd.DataFrame, name: str, key: Sequence[str]) -> None:
    """Raise ValueError naming the first row that occurs twice under `key`."""
    doubled = frame.duplicated(list(key))
    if doubled.any():
        first = frame.loc[doubled, list(key)].iloc[0].to_dict()
        raise ValueError(f"{name} holds {int(doubled.sum())} duplicate rows; the first is {first!r}")


def with_defaults(frame: pd.DataFrame, defaults: Mapping[str, str]) -> pd.DataFrame:
    """A copy in which every optional column exists and its missing values are the default."""
    filled = {
        column: _filled(frame[column], value)
        if column in frame.columns
        else pd.Series(value, index=frame.index, dtype="object")
        for column, value in defaults.items()
    }
    return frame.assign(**filled)


def _filled(values: pd.Series, default: str) -> pd.Series:
    if isinstance(values.dtype, pd.StringDtype) and not values.hasnans:
        return values
    return values.astype(object).where(values.notna(), default).astype(str)


def check_states(frame: pd.DataFrame, name: str) -> None:
    """Read the ways a judge can fail as `failed`, in place; raise ValueError for a state that is none of ours."""
    frame["state"] = frame["state"].replace(dict.fromkeys(FAILURES, "failed"))
    unknown = sorted(set(frame["state"].unique()) - set(STATES))
    if unknown:
        raise ValueError(f"{name} has the states {unknown!r}; expected one of {[*STATES, *FAILURES]!r}")


def in_order(values: Iterable[object], known: Sequence[str]) -> tuple[str, ...]:
    """Distinct values as text: those of `known` in its order, then the others by name."""
    distinct = values.unique() if isinstance(values, pd.Series) else values  # a column is long, its values are few
    present = {str(value) for value in distinct}
    return tuple(k for k in known if k in present) + tuple(sorted(present - set(known)))


APART: Final = "\x1f"
"""What stands between two texts in one."""


def made_in_parts(frame: pd.DataFrame, part: pd.Series, make: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """Make the rows of each part of the frame, all at once, and give them their `part` and `split`.

    While they are made, a part has splits and traces of its own: a trace in two parts is two traces.
    """
    whole = with_defaults(frame, {"split": NO_SPLIT})
    rows = make(whole.assign(**{name: joined(part, whole[name]) for name in ("split", "trace_id")}))
    names = rows["split"].astype(object).str.rsplit(APART, n=1)
    return rows.assign(part=names.str[0], split=names.str[1])


def joined(first: pd.Series, second: pd.Series) -> pd.Series:
    """Join both texts of each row in one: alike rows share it, since there are many and few differ."""
    (one, ones), (other, others) = pd.factorize(first), pd.factorize(second)
    pairs, at = np.unique(one * len(others) + other, return_inverse=True)
    texts = [f"{ones[pair // len(others)]}{APART}{others[pair % len(others)]}" for pair in pairs]
    return pd.Series(np.array(texts, dtype=object)[at], first.index)


def codes(values: pd.Series, order: Sequence[str]) -> NDArray[np.int64]:
    """Position of each value in `order`, -1 for a value that is not in it."""
    return pd.Index(order).get_indexer(pd.Index(values.astype(object).astype(str))).astype(np.int64)


def empty(columns: Mapping[str, str]) -> pd.DataFrame:
    """A frame without rows that has the given columns and types."""
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in columns.items()})


def numbers(values: pd.Series, name: str) -> NDArray[np.float64]:
    """Values as floats, None and NA as NaN; raises ValueError for text that is no number and for infinities."""
    try:
        parsed = pd.to_numeric(values, errors="raise").to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as err:
        raise ValueError(f"{name}: expected numbers or missing values: {err}") from err
    if np.isinf(parsed).any():
        raise ValueError(f"{name}: infinite ratings are not ratings; leave the value missing instead")
    return parsed


def flags(values: pd.Series, name: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(true, known): booleans of the column and where it holds one; raises ValueError for other values."""
    known = values.notna().to_numpy()
    true = np.zeros(len(values), dtype=bool)
    present = values[known]
    if values.dtype == bool:
        return values.to_numpy(copy=True), known
    words = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
    meant = {value: words.get(str(value).strip().lower()) for value in present.unique()}
    read = present.astype(object).map(meant)
    if read.isna().any():
        raise ValueError(f"{name}: expected true or false, found {present[read.isna()].iloc[0]!r}")
    true[known] = read.astype(bool).to_numpy()
    return true, known


def among(values: pd.Series, known: Collection[Any]) -> pd.Series:
    """`isin` for many known texts, which Arrow's own looks at one by one."""
    return values.astype("object").isin(known)
