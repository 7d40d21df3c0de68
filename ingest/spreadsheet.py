"""The one writer of every CSV that leaves the workspace: formulas guarded, line ends in texts quoted."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

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


def csv_text(frame: pd.DataFrame, *, numbers: Iterable[str] = ()) -> str:
    """A frame as CSV, lines ending in a line feed, text guarded by `safe_cell`.

    Columns of `numbers` hold numbers, perhaps as text already: a minus sign begins no formula there.
    """
    safe = frame.copy()
    for name in safe.columns.difference(list(numbers), sort=False):
        if not _is_plain(safe[name]):
            safe[name] = safe_texts(safe[name])
    out = _Lines(newline="")
    safe.rename(columns=safe_cell).to_csv(out, index=False, lineterminator="\r\n")
    return out.getvalue()


def _is_plain(column: pd.Series) -> bool:
    types = pd.api.types
    return types.is_numeric_dtype(column.dtype) or types.is_datetime64_any_dtype(column.dtype)


def csv_of_rows(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """As `csv_text`, of rows by column; a column that a row has not is empty."""
    out = _Lines(newline="")
    writer = csv.DictWriter(out, columns, lineterminator="\r\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: safe_cell(value) for key, value in row.items()})
    return out.getvalue()


class _Lines(io.StringIO):
    """Takes rows that end in CR LF and ends them in LF.

    Python's writer quotes a cell for the characters of its own line end alone; with LF as that, a lone CR in a text
    would end the row for every reader. A row is written at once, so its end is the end of what is written.
    """

    def write(self, text: str) -> int:
        return super().write(text[:-2] + "\n" if text.endswith("\r\n") else text)


def plain_cell(text: str) -> str:
    """The text that `safe_cell` made `text` of."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(FORMULA_STARTS) else text
