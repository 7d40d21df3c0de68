"""The desk's key table as the server knows it, read from the island's own `keys.mjs`: which keys may be given."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

_TABLE = Path(__file__).parent / "js" / "keys.mjs"
_ENTRY = re.compile(r'\{ id: "(\w+)", keys: (\[[^\]]*\](?:"\])?), title: "([^"]*)", group: "\w+"(, fixed: true)? \}')
_RESERVED = re.compile(r"TJ_RESERVED = new Set\(\[(.*), \.\.\.\"(\d+)\"\]\)")
LONGEST_KEY = 20  # characters


class Shortcut(NamedTuple):
    """One act of the desk with the keys it has by default; a fixed one keeps them."""

    keys: tuple[str, ...]
    title: str
    is_fixed: bool


@cache
def shortcuts() -> Mapping[str, Shortcut]:
    """Every act by its id, in the order of the cheat sheet."""
    entries = _ENTRY.findall(_TABLE.read_text(encoding="utf-8"))
    return {name: Shortcut(tuple(json.loads(keys)), title, bool(fixed)) for name, keys, title, fixed in entries}


@cache
def reserved() -> frozenset[str]:
    """Keys that belong to Streamlit, to the browser or to scores."""
    names, digits = _RESERVED.findall(_TABLE.read_text(encoding="utf-8"))[0]
    return frozenset([*json.loads(f"[{names}]"), *digits])


def key_conflict(overrides: Mapping[str, object]) -> str | None:
    """Why these keys cannot be kept (a sentence), None when they can. `overrides` give an act another key."""
    known = shortcuts()
    owners = {key: name for name, one in known.items() if name not in overrides for key in one.keys}
    for name, key in overrides.items():
        if name not in known:
            return f"There is no action {name[:40]!r} to give a key to."
        if known[name].is_fixed:
            return f"The key of “{known[name].title}” is fixed."
        if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY:
            return f"The key of “{known[name].title}” is none."
        if key in reserved():
            return f"{key} is reserved."
        if key in owners:
            return f"{key} is used by “{known[owners[key]].title}”."
        owners[key] = name
    return None
