"""A table on screen: undefined numbers read n/a, absent words are blank, names are plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pandas as pd
import streamlit as st

from tracejury.app.components.estimate_text import definition
from tracejury.app.components.glossary import TERMS, meaning, meanings
from tracejury.judging.records import DIMENSIONS

WORDS = {
    "judge_model": "judge model", "label": "judge", "trace_id": "trace", "error_id": "error", "label_id": "error",
    "f1": "F1", "f2": "F2",
    "ac1": "AC1", "alpha_interval": "alpha", "p_below_667": "P(alpha < .667)", "p_below_800": "P(alpha < .8)",
    "timed": "traces timed", "mean_sd": "mean SD", "mean_sd_ci95": "± (95 %)", "latency_s": "seconds",
    "cost_usd": "cost, US$",
}  # fmt: skip
"""Columns whose name in the data is not the word for it."""
ABOUT = {
    "match_status": meanings(("proposed", "confirmed")),
    "dimension": meanings(("dimension", *DIMENSIONS)),
    "split": "Named part of the traces",
    "judge_model": "The model, offline checks or import that judged",
    "ratings": "Repeats with a score on the trace",
    "sd": "Standard deviation over the repeats, scores scaled to 0..1",
    "repeat": "Repeat of the judge, from 0",
    "lacks": "The missing field; because of it, no estimate includes the error",
    "likeness": "Similarity of the descriptions (cosine), 0 to 1",
}
"""What a column holds whose word does not say it; of estimates their `definition` does."""
OF_FLAGS = {
    "relevant": "The error has the judge's dimension, so the judge should catch it",
    "caught": TERMS["caught"],
    "localized": TERMS["localized"],
}
FREE_TEXT = 48  # characters: a column of longer texts is read, and takes what room there is
SEEN = 100  # rows that decide how wide a table is


def data_table(
    frame: pd.DataFrame,
    *,
    digits: int = 3,
    columns: Mapping[str, Any] | None = None,
    most: int = 12,
    key: str | None = None,
    is_chosen: bool = False,
    width: Literal["stretch", "content"] | None = None,
) -> int | None:
    """Show `frame`, about `most` rows high; with `is_chosen` one row can be chosen, and its position is returned.

    Without a `width` a table of estimates and short words is as wide as they are: stretched, its numbers would stand
    far from their names.
    """
    shown, settings = _as_text(frame), _settings(frame, digits, columns, most) | {"key": key}
    settings["width"] = width or settings["width"]
    if not is_chosen:
        st.dataframe(shown, **settings)
        return None
    event = st.dataframe(shown, **settings, on_select="rerun", selection_mode="single-row")
    return chosen_row(event, len(frame))


def cell_table(frame: pd.DataFrame, *, key: str) -> tuple[int, str] | None:
    """As `data_table`; one cell can be chosen, and its row and column are returned."""
    event = st.dataframe(_as_text(frame), **_settings(frame), key=key, on_select="rerun", selection_mode="single-cell")
    return chosen_cell(event, len(frame))


def _as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """With absent words left blank."""
    text = frame.select_dtypes(exclude="number").columns
    return frame.assign(
        **{name: frame[name].astype(object).where(frame[name].notna(), "") for name in text if _is_text(frame[name])}
    )


def _settings(
    frame: pd.DataFrame, digits: int = 3, columns: Mapping[str, Any] | None = None, most: int = 12
) -> dict[str, Any]:
    config = {str(name): _config(str(name), frame[name], digits) for name in frame.columns} | dict(columns or {})
    return {
        "hide_index": True,
        "height": 38 + 35 * min(len(frame), most),
        "column_config": config,
        "placeholder": "n/a",
        "width": "stretch" if _is_read(frame) else "content",
    }


def row_of(frame: pd.DataFrame, place: int) -> dict[str, Any]:
    """A row by the names of its columns."""
    return {str(name): value for name, value in frame.iloc[place].items()}


def chosen_row(event: Any, rows: int) -> int | None:
    """The position of the row of a table that is chosen; None while none of its `rows` is."""
    chosen = event.selection.rows
    return int(chosen[0]) if chosen and chosen[0] < rows else None


def chosen_cell(event: Any, rows: int) -> tuple[int, str] | None:
    """Row and column of the cell of a table that is chosen; None while none of its `rows` has one."""
    chosen = event.selection.cells
    return (int(chosen[0][0]), str(chosen[0][1])) if chosen and chosen[0][0] < rows else None


def _config(name: str, values: pd.Series, digits: int) -> Any:
    label, about = words(name), definition(name) or ABOUT.get(name) or meaning(name)
    if pd.api.types.is_bool_dtype(values.dtype) or _is_flag(values):
        return st.column_config.CheckboxColumn(label, help=OF_FLAGS.get(name))
    if pd.api.types.is_float_dtype(values.dtype):
        return st.column_config.NumberColumn(label, format=f"%.{digits}f", help=about)
    if pd.api.types.is_integer_dtype(values.dtype):
        return st.column_config.NumberColumn(label, format="localized", help=about)
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return st.column_config.DatetimeColumn(f"{label}, UTC", format="YYYY-MM-DD HH:mm", timezone="UTC")
    return st.column_config.Column(label, help=about)


def words(name: str) -> str:
    """`alpha_low` as `alpha, low`."""
    for end in ("_low", "_high"):
        if name.endswith(end):
            return f"{words(name.removesuffix(end))}, {end[1:]}"
    if name.endswith("_pct"):
        return f"{words(name.removesuffix('_pct'))}, %"
    return WORDS.get(name, name.replace("_", " "))


def _is_read(frame: pd.DataFrame) -> bool:
    """Whether a column holds texts, not names."""
    columns = (frame[name].head(SEEN) for name in frame.select_dtypes(exclude=["number", "bool", "datetimetz"]).columns)
    return any(len(str(value)) > FREE_TEXT for column in columns for value in column)


def _is_text(values: pd.Series) -> bool:
    is_object = pd.api.types.is_object_dtype(values.dtype) or pd.api.types.is_string_dtype(values.dtype)
    return bool(is_object) and not _is_flag(values)


def _is_flag(values: pd.Series) -> bool:
    """True and False with gaps: pandas keeps them as objects."""
    known = values.dropna()
    return values.dtype == object and len(known) > 0 and all(isinstance(value, bool) for value in known)
