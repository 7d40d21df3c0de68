"""The one rule for cells that a spreadsheet would run as a formula, for every CSV that leaves the workspace."""

from __future__ import annotations

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What OWASP lists under CSV injection."""


def safe_cell(value: object) -> object:
    """Text that a spreadsheet would run as a formula gets an apostrophe before it; all else, numbers too, stays.

    Text that looks as if it had one already gets one more, so that `plain_cell` gives back what there was.
    """
    return f"'{value}" if isinstance(value, str) and value.lstrip("'").startswith(FORMULA_STARTS) else value


def plain_cell(text: str) -> str:
    """The text that `safe_cell` made `text` of."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(FORMULA_STARTS) else text
