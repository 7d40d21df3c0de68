"""Counts in words, for messages that people read."""

from __future__ import annotations

import re


def counted(number: int, noun: str) -> str:
    """`1 trace`, `1,204 traces`, `2 queries`, `3 matches`."""
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if re.search(r"(s|x|ch|sh)$", noun) else f"{noun}s"
