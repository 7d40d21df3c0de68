"""The small values of an ARE export: seconds, token counts, argument texts; a value of the wrong type is None."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from typing import cast

from tracejury.ingest.parse import clean_text, inner_json, is_deep, json_text
from tracejury.ingest.trace import Json

_LONGEST_LITERAL = 1_000_000
_EMPTY: tuple[Json, ...] = (None, "", [], {})


def number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        real = float(value)
    except OverflowError:
        return None
    return real if math.isfinite(real) else None


def whole(value: Json) -> int | None:
    """An integer that a database column takes."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def text(value: Json) -> str | None:
    """Text as it stands; anything else but None as JSON text."""
    return value if value is None or isinstance(value, str) else json_text(value)


def word(value: Json) -> str | None:
    """A name or an id: text that is not empty."""
    return value if isinstance(value, str) and value else None


def name_part(name: str | None) -> str | None:
    """A name fit to stand in an id: letters, digits, points, dashes and underscores; anything else is a dash."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or None if name else None


def sequence(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def kept(value: Json) -> Json:
    """A value fit for an attribute: one nested very deeply becomes its JSON text."""
    return json_text(value) if isinstance(value, dict | list) and is_deep(value) else value


def is_empty(value: Json) -> bool:
    return value in _EMPTY and value is not False and not (isinstance(value, int | float))


def without_empty(values: dict[str, Json]) -> dict[str, Json]:
    return {key: kept(value) for key, value in values.items() if not is_empty(value)}


def tokens(counts: Sequence[Json]) -> list[int | None]:
    """Token counts of one call. All of them 0 is what ARE writes for an engine that cannot count: unknown."""
    numbers = [whole(count) for count in counts]
    return numbers if any(numbers) else [None for _ in numbers]


def argument(value: Json, value_type: Json) -> Json:
    """The value of one exported argument: JSON first, then a Python literal (scenarios written in Python)."""
    if not isinstance(value, str) or value_type == "str":
        return value
    if value_type == "NoneType":
        return None
    if value_type in ("list", "dict", "tuple", "set"):
        parsed = inner_json(value)
        return parsed if parsed is not None else _literal(value)
    return _literal(value) if value_type in ("int", "float", "bool") else value


def _literal(source: str) -> Json:
    if len(source) > _LONGEST_LITERAL:
        return source
    try:
        value = ast.literal_eval(source)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return source
    return _as_json(value, source)


def _as_json(items: object, source: str) -> Json:
    """What `literal_eval` gave, when JSON can hold it; else the text it was read from."""
    if isinstance(items, tuple | set):
        items = list(items)
    if isinstance(items, dict | list):
        try:
            again = inner_json(json_text(cast("Json", items)))
        except (TypeError, ValueError):
            return source
        return again if again is not None else source
    if isinstance(items, float) and not math.isfinite(items):
        return source
    if isinstance(items, bool | int | float):
        return items if not isinstance(items, int) or abs(items) < 2**63 else source
    return clean_text(items) if isinstance(items, str) else source
