"""How a number is shown: fixed decimals, interval, n; undefined is `n/a` with its reason, few units are grey."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from tracejury.ingest.words import counted as counted
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.metric import Metric
from tracejury.judging.agreement.metrics import METRICS
from tracejury.judging.agreement.reasons import FLAT
from tracejury.judging.agreement.rounding import half_up
from tracejury.judging.records import DIMENSIONS

_FOR_PROGRAMMERS = re.compile(r"Shapes: .*?(?:returns \(.*?\)|to \(.*?\))[.;,]? ?|Shapes: [^.]*\(\.\.\.[^.]*\. ?")
_WORDS = (
    (re.compile(r"Edge: NaN"), "n/a"),
    (re.compile(r"Edge: (\w)"), r"\1"),
    (re.compile(r"NaN"), "n/a"),
    (re.compile(r"Source: METRICS\.md[^.]*\. ?"), ""),
    (re.compile(r"finding_table does"), "the table of findings does"),
    (re.compile(r"share_unscored counts it"), "it counts as unscored"),
)
QUIET = {"light": "color: #6B7078", "dark": "color: #A3A8B0"}
"""Grey of the scheme in which the page is shown: no one grey has a contrast of 4.5 to 1 in both."""
NO_INTERVAL = f"[{FLAT}]"
FEW_NOTE = f"Grey: fewer than {TOO_FEW} units, too few to conclude from. n/a: undefined, with its reason."


def estimate_text(
    value: float | None, low: float | None = None, high: float | None = None, *, digits: int = 3, without: str = ""
) -> str:
    """`0.624 [0.410, 0.802]`; what stands `without` bounds, else only the value. The value is present."""
    return f"{half_up(value, digits)} {interval_text(low, high, digits=digits) or without}".rstrip()


def interval_text(low: float | None, high: float | None, *, digits: int = 3) -> str:
    """`[0.410, 0.802]`; empty without both bounds."""
    return f"[{half_up(low, digits)}, {half_up(high, digits)}]" if _is_known(low) and _is_known(high) else ""


def cell_text(row: Mapping[Any, Any], *, digits: int = 3, without: str = "") -> str:
    """An estimate of a long table as one cell: value, interval, n; or `n/a: reason`."""
    n = int(row["n"])
    if not _is_known(row["value"]):
        reason = row.get("reason")
        return f"n/a: {reason if isinstance(reason, str) and reason else 'undefined'}"
    return f"{estimate_text(row['value'], row.get('low'), row.get('high'), digits=digits, without=without)}  n {n:,}"


def wide_cell_text(row: Mapping[Any, Any], name: str, *, reason: str, digits: int = 3) -> str:
    """`cell_text` of one estimate of a wide table, whose bounds and n are `<name>_low`, `<name>_high`, `<name>_n`."""
    n = 0 if pd.isna(row[f"{name}_n"]) else row[f"{name}_n"]
    own = {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"], "n": n}
    return cell_text({**own, "reason": reason}, digits=digits)


_BLANK = str.maketrans("0123456789,", "\u2007" * 10 + "\u2008")
_ENDS_IN_N = re.compile(r"  n ([\d,]+)$")


def aligned(cells: Sequence[str]) -> list[str]:
    """Cells of one column, their n widened to the widest by spaces as wide as a digit: the estimates stand in line."""
    ends = [_ENDS_IN_N.search(cell) for cell in cells]
    widest = max((end[1] for end in ends if end), key=len, default="")
    return [
        cell if end is None else f"{cell[: end.start(1)]}{widest[: -len(end[1])].translate(_BLANK)}{end[1]}"
        for cell, end in zip(cells, ends, strict=True)
    ]


def wide_table(
    estimates: pd.DataFrame, metrics: Sequence[str], keys: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Long estimates as one row per `keys` and one text column a metric; beside it which cells are grey.

    `estimates`: the keys, metric, value, low, high, n, reason.
    """
    of_metrics = estimates[estimates["metric"].isin(metrics)]
    rows = [
        dict(zip(map(str, of_metrics.columns), row, strict=True))
        for row in of_metrics.itertuples(index=False, name=None)
    ]
    text = pd.Series([cell_text(row) for row in rows], index=of_metrics.index, dtype="object")
    few = (of_metrics["n"].astype(int) < TOO_FEW) | of_metrics["value"].isna()
    order = list(dict.fromkeys(map(tuple, of_metrics[list(keys)].to_numpy().tolist())))
    index = pd.MultiIndex.from_tuples(order, names=list(keys)) if order else pd.MultiIndex.from_arrays([[]] * len(keys))

    def spread(values: pd.Series) -> pd.DataFrame:
        frame = of_metrics[list(keys)].assign(metric=of_metrics["metric"], shown=values)
        wide = frame.pivot_table(index=list(keys), columns="metric", values="shown", aggfunc="first")
        return wide.reindex(index=index, columns=list(metrics))

    shown = spread(text).astype(object).fillna("–").apply(lambda column: aligned(list(column)))
    return shown.reset_index(), spread(few).eq(True).reset_index(drop=True)


def estimate_column(cells: pd.Series, title: str, about: str = "") -> ColumnConfig:
    """Return the column of `cell_text`s: at the right, and wide enough that none is cut at its left."""
    longest = max((len(cell) for cell in cells.astype(str)), default=0)
    width = max(CHARACTER * longest, CHARACTER * len(title)) + 24
    return st.column_config.TextColumn(title, help=about or None, alignment="right", width=width)


CHARACTER = 7
"""Pixels of a character in a table, about."""


def greyed(table: pd.DataFrame, few: pd.DataFrame) -> Any:
    """The table with cells of too few units in grey, for `st.dataframe`."""
    quiet = QUIET["dark" if is_dark() else "light"]
    style = pd.DataFrame("", index=table.index, columns=table.columns)
    for column in few.columns:
        if column in style.columns:
            style[column] = [quiet if is_few else "" for is_few in few[column]]
    return table.style.apply(lambda _: style, axis=None)


def is_dark() -> bool:
    """Whether the page is read in the dark scheme."""
    return st.context.theme.get("type") == "dark"


_BY_NAME = {metric.name: metric for metric in METRICS}


def metric_of(name: str) -> Metric:
    """The record of a metric. Raises KeyError for a name that is none."""
    return _BY_NAME[name]


def definition(name: str) -> str:
    """The metric's definition in its own words, else with its source as its docstring has it; empty for no metric."""
    metric = _BY_NAME.get(name)
    if metric is None or metric.words is not None:
        return "" if metric is None else str(metric.words)
    lines = (metric.function.__doc__ or "").split("\n\n")
    text = re.sub(r"\s+", " ", " ".join(lines[:2])).strip().replace("`", "")
    return _in_plain_words(_FOR_PROGRAMMERS.sub("", text))


def _in_plain_words(text: str) -> str:
    """A docstring's words for who reads the page: no name of code, no NaN."""
    for programmers, plain_words in _WORDS:
        text = programmers.sub(plain_words, text)
    return text.strip()


def title_of(metric: str) -> str:
    """The metric's title on a page; the name itself when it is none."""
    record = _BY_NAME.get(metric)
    return metric if record is None else record.short or record.title


def with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with `label`, the judge as people call it: judge model and dimension, or the judge model alone."""
    is_dimension = frame["dimension"].isin(DIMENSIONS)
    both = frame["judge_model"].where(frame["judge_model"] == "", frame["judge_model"] + " ") + frame["dimension"]
    return frame.assign(label=both.where(is_dimension | (frame["judge_model"] == ""), frame["judge_model"]))


def plain(text: str) -> str:
    """Text from outside (a name) for a place that reads Markdown: no link, image or formatting comes of it.

    What looks like an address becomes a link however it is escaped: an invisible character (a word joiner) breaks it.
    """
    broken = re.sub(r"(://|www(?=\.)|@)", "\\1\u2060", text, flags=re.IGNORECASE)
    return re.sub(r"([\\`*_{}\[\]()#+\-!|<>$~:])", r"\\\1", broken)


def _is_known(value: object) -> bool:
    return value is not None and not pd.isna(value)  # type: ignore[call-overload]
