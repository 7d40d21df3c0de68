"""The first numbers of a view in a row, before its charts: value, 95 % interval, n, and what people reach."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from tracejury.app.components.estimate_text import estimate_text, interval_text, plain
from tracejury.app.components.judges import split_labels
from tracejury.judging.agreement import ceiling

MOST = 8  # tiles: two rows at a width of 1280


def headline(rows: pd.DataFrame, *, title: str, about: str) -> None:
    """One tile per row of label, value, low, high, n, reason and (if known) ceiling; `about` defines the estimate."""
    known = rows[rows["n"] > 0]
    if known.empty:
        return
    more = f" The first {MOST} of {len(known)}; the Overview has a table of all." if len(known) > MOST else ""
    st.caption(f"{title}.{more}", help=about)
    with st.container(horizontal=True, gap="small", key="headline"):
        for row in known.head(MOST).to_dict("records"):
            is_defined = pd.notna(row["value"])
            st.metric(
                plain(str(row["label"])), estimate_text(row["value"]) if is_defined else "n/a", delta=beside(row),
                delta_color="off", delta_arrow="off", border=True, width="content",
            )  # fmt: skip


def beside(row: dict[Any, Any]) -> str:
    """The interval, n and the human ceiling; the reason of an undefined estimate."""
    if pd.isna(row["value"]):
        return str(row.get("reason") or "undefined")
    reached = row.get("ceiling")
    people = [] if reached is None or pd.isna(reached) else [f"people {estimate_text(reached)}"]
    return " · ".join(part for part in (interval_text(row["low"], row["high"]), f"n {row['n']:,}", *people) if part)


def coverage(suite: pd.DataFrame, reached: pd.DataFrame | None) -> pd.DataFrame:
    """What each judge model caught and localized of all errors, as `headline` takes it; from `Inputs.suite`.

    `reached`: `Inputs.error_ceiling`, None while it is not known; of it, errors that the other reported as any.
    """
    named = {"coverage": "value", "coverage_low": "low", "coverage_high": "high"}
    rows = suite[suite["impact"] == "all"].rename(columns=named)
    if reached is not None:
        is_any = (reached["dimension"] == "any") & (reached["impact"] == "all") & (reached["metric"] == "recall")
        rows = ceiling.beside(rows, reached[is_any], ["split", "kind"])
    rows = split_labels(rows.assign(label=rows["judge_model"]))
    caught = rows[rows["kind"] == "caught"].set_index("label")["value"]
    order = rows["label"].map(caught).sort_values(ascending=False, kind="stable", na_position="last").index
    rows = rows.loc[order]
    return rows.assign(label=rows["label"] + " " + rows["kind"])
