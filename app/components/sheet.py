"""A table on screen: undefined numbers read n/a, absent words are blank, names are plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st


def sheet(
    frame: pd.DataFrame,
    *,
    digits: int = 3,
    columns: Mapping[str, Any] | None = None,
    most: int = 12,
    key: str | None = None,
    is_chosen: bool = False,
) -> int | None:
    """Show `frame`, about `most` rows high; with `is_chosen` one row can be chosen, and its position is returned."""
    words = frame.select_dtypes(exclude="number").columns
    shown = frame.assign(
        **{name: frame[name].astype(object).where(frame[name].notna(), "") for name in words if _is_text(frame[name])}
    )
    config = {str(name): _config(str(name), frame[name], digits) for name in frame.columns} | dict(columns or {})
    settings: dict[str, Any] = {
        "hide_index": True,
        "height": 38 + 35 * min(len(frame), most),
        "column_config": config,
        "placeholder": "n/a",
        "key": key,
    }
    if not is_chosen:
        st.dataframe(shown, **settings)
        return None
    event = st.dataframe(shown, **settings, on_select="rerun", selection_mode="single-row")
    chosen = event.selection.rows
    return int(chosen[0]) if chosen and chosen[0] < len(frame) else None


def _config(name: str, values: pd.Series, digits: int) -> Any:
    label = name.replace("_", " ")
    if pd.api.types.is_bool_dtype(values.dtype):
        return st.column_config.CheckboxColumn(label)
    if pd.api.types.is_float_dtype(values.dtype):
        return st.column_config.NumberColumn(label, format=f"%.{digits}f")
    if pd.api.types.is_integer_dtype(values.dtype):
        return st.column_config.NumberColumn(label, format="%d")
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return st.column_config.DatetimeColumn(f"{label}, UTC", format="YYYY-MM-DD HH:mm", timezone="UTC")
    return st.column_config.Column(label)


def _is_text(values: pd.Series) -> bool:
    return bool(pd.api.types.is_object_dtype(values.dtype) or pd.api.types.is_string_dtype(values.dtype))
