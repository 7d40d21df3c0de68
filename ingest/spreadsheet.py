"""The one rule for cells that a spreadsheet would run as a formula, for every CSV that leaves the workspace."""

from __future__ import annotations

import pandas as pd

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What OWASP lists under CSV injection."""


def safe_cell(value: object) -> object:
    """Text that a spreadsheet would run as a formula gets an apostrophe before it; all else, numbers too, stays.

    Text that looks as if it had one already gets one more, so that `plain_cell` gives back what there was.
    """
    return f"'{value}" if isinstance(value, str) and value.lstrip("'").startswith(FORMULA_STARTS) else value


def safe_texts(column: pd.Series) -> pd.Series:
    """A column with `safe_cell` of each, asked once of each text: ids and names stand in many rows."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.map(safe_cell)
    texts = column.unique() if column.dtype != object else {value for value in column if isinstance(value, str)}
    changed = {text: safe for text in texts if (safe := safe_cell(text)) is not text}
    return (
        column.map(lambda value: changed.get(value, value) if isinstance(value, str) else value) if changed else column
    )


def plain_cell(text: str) -> str:
    """The text that `safe_cell` made `text` of."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(FORMULA_STARTS) else text
