"""One record of any tool's export: its fields taken by whichever of their usual names stands in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TypeVar

from tracejury.ingest import times
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.spans import brief, kept
from tracejury.ingest.trace import Json

_SEPARATORS = re.compile(r"[^a-z0-9]")
_EMPTY: tuple[Json, ...] = ("", [], {})
_T = TypeVar("_T")


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """A name without case and separators: `traceId`, `TraceID` and `trace_id` are one."""
    return _SEPARATORS.sub("", name.lower())


@lru_cache(maxsize=4096)
def _own_names(names: tuple[str, ...]) -> Mapping[str, str]:
    """The first of these names that has each plain name; records of one tool mostly share their names."""
    return {plain_name(name): name for name in reversed(names)}


class Fields:
    """A tolerant cursor over the fields of an object, which are taken by name and by type.

    A field that is null counts as absent. What nobody takes stays in `rest`, and so does a value of another type than
    was asked for: a warning names its path. Objects within share the warnings. What is no object counts as the object
    `{"value": it}`.
    """

    def __init__(self, values: Json, path: str = "", warnings: list[str] | None = None) -> None:
        self.path, self.warnings = path, [] if warnings is None else warnings
        self.raw: dict[str, Json] = values if isinstance(values, dict) else {"value": values}
        has_null = None in self.raw.values()
        self._values = {n: item for n, item in self.raw.items() if item is not None} if has_null else dict(self.raw)
        self._by_name = _own_names(tuple(self._values))

    @property
    def values(self) -> dict[str, Json]:
        """What nobody took, as it stands, empty texts too."""
        return dict(self._values)

    def take(self, *names: str) -> Json:
        """The value of the first of these names (written as `plain_name`) that is there."""
        for name in names:
            own = self._by_name.get(name)
            if own is not None and own in self._values:
                return self._values.pop(own)
        return None

    def peek(self, name: str) -> Json:
        """The value of this name, which stays; None where nobody wrote it or it was taken."""
        return self._values.get(self._by_name.get(name, ""))

    def drop(self, *names: str) -> None:
        """Leave out of `rest` what is told elsewhere."""
        for name in names:
            self.take(name)

    def text(self, *names: str) -> str | None:
        """As `take`: text as it is, anything else as JSON text; None for an empty text too."""
        return as_text(self.take(*names)) or None

    def word(self, *names: str) -> str | None:
        """A text of which a reader asks whether it is one that it knows: no other type will do."""
        return self._typed(lambda value: value if isinstance(value, str) else None, "a text", names)[1]

    def count(self, *names: str) -> int | None:
        """A whole number, also one written as text."""
        return self._typed(_whole, "a whole number", names)[1]

    def number(self, *names: str) -> int | float | None:
        """A number, also one written as text; a whole one stays whole."""
        return self._typed(_number, "a number", names)[1]

    def flag(self, *names: str) -> bool:
        """Whether the field is true; False where it is absent."""
        return self._typed(_truth, "true or false", names)[1] is True

    def time(self, *names: str) -> int | None:
        """UTC microseconds of any writing of a time."""
        return self._typed(time_of_any, "a time", names, "unreadable_time")[1]

    def nested(self, *names: str) -> dict[str, Json]:
        """The object of the first of these names that holds one, as JSON text too; empty where none does."""
        return self._typed(_object, "an object", names)[1] or {}

    def inner(self, *names: str) -> Fields:
        """As `nested`, as a cursor."""
        place, value = self._typed(_object, "an object", names)
        return Fields(value or {}, place, self.warnings)

    def listed(self, *names: str) -> Sequence[Json]:
        """As `nested`, for a list."""
        return self._typed(_list, "a list", names)[1] or []

    def objects(self, *names: str, code: str = "wrong_type") -> Iterator[Fields]:
        """A cursor for each object of such a list; a warning of this code names each item that is none."""
        place, items = self._typed(_list, "a list", names, code)
        for number, item in enumerate(items or []):
            if isinstance(value := item if isinstance(item, dict) else opened(item), dict):
                yield Fields(value, f"{place}[{number}]", self.warnings)
            else:
                self.warnings.append(f"{code}: {place}[{number}] is {brief(item)}, not an object")

    def named(self, *names: str) -> Iterator[tuple[str, Fields]]:
        """The name and a cursor of each field of such an object."""
        place, value = self._typed(_object, "an object", names)
        for name, item in (value or {}).items():
            yield name, Fields(item, f"{place}.{name}", self.warnings)

    def below(self, *prefixes: str) -> dict[str, Json]:
        """The fields whose names begin with one of these prefixes, without it."""
        values: dict[str, Json] = {}
        for prefix in prefixes:
            for name in [name for name in self._values if name.startswith(prefix) and name != prefix]:
                values[name.removeprefix(prefix)] = self._values.pop(name)
        return values

    def rest(self, prefix: str = "") -> dict[str, Json]:
        """What nobody took, by its own names behind `prefix`; empty texts, lists and objects are left out."""
        return {f"{prefix}{name}": kept(item) for name, item in self._values.items() if item not in _EMPTY}

    def _typed(
        self, read: Callable[[Json], _T | None], type_name: str, names: tuple[str, ...], code: str = "wrong_type"
    ) -> tuple[str, _T | None]:
        """The path and the value of the first field that `read` can read, taken; those before it stay, each named."""
        for name in names:
            own = self._by_name.get(name)
            raw = self._values.get(own) if own is not None else None
            if own is None or raw is None:
                continue
            place = f"{self.path}.{own}" if self.path else own
            if (value := read(raw)) is not None:
                del self._values[own]
                return place, value
            if raw not in _EMPTY:
                self.warnings.append(f"{code}: {place} is {brief(raw)}, not {type_name}")
        return f"{self.path}.{names[0]}" if self.path else names[0], None


def _whole(value: Json) -> int | None:
    number = times.integer(value)
    return number if number is not None and abs(number) < 2**63 else None


def _number(value: Json) -> int | float | None:
    if (number := _whole(value)) is not None and not isinstance(value, float):
        return number
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    return value if isinstance(value, float) and abs(value) < 2**63 else None


def _truth(value: Json) -> bool | None:
    return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value).lower())


def _object(value: Json) -> dict[str, Json] | None:
    if isinstance(value, dict):
        return value
    item = pairs(opened(value))
    return item if isinstance(item, dict) else None


def _list(value: Json) -> list[Json] | None:
    if isinstance(value, list):
        return value
    item = opened(value)
    return item if isinstance(item, list) else None


def time_of_any(value: Json) -> int | None:
    """Microseconds of any writing of a time, JavaScript's `[seconds, nanoseconds]` too."""
    if isinstance(value, list) and len(value) == 2:
        seconds, nanoseconds = times.integer(value[0]), times.integer(value[1])
        return None if seconds is None or nanoseconds is None else seconds * 1_000_000 + nanoseconds // 1000
    return times.from_any(value)


def pairs(value: Json) -> Json:
    """A list of `[key, value]` pairs (as Arrow's maps come) as an object; anything else as it is."""
    if not isinstance(value, list) or not value:
        return value
    if all(isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in value):
        return {str(item[0]): item[1] for item in value if isinstance(item, list)}
    return value


def object_in(value: Json) -> dict[str, Json]:
    """The object that a value is; an empty one of any other value."""
    return value if isinstance(value, dict) else {}


def objects_in(value: Json) -> list[dict[str, Json]]:
    """The objects of a list; none of any other value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
