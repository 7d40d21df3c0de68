"""The one rule for cells that a spreadsheet would run as a formula, for every CSV that leaves the workspace."""

from __future__ import annotations

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What OWASP lists under CSV injection."""


def safe_cell(value: object) -> object:
    """Text that a spreadsheet would run as a formula gets an apostrophe before it; all else, numbers too, stays."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
