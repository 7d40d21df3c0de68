"""One record of any tool's export: its fields taken by whichever of their usual names stands in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from tracejury.ingest import times
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.spans import brief, kept, status_of
from tracejury.ingest.trace import Json, SpanDraft

_SEPARATORS = re.compile(r"[^a-z0-9]")


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """A name without case and separators: `traceId`, `TraceID` and `trace_id` are one."""
    return _SEPARATORS.sub("", name.lower())


class Fields:
    """The fields of a record. What nobody takes stays in `rest`; a field that is null counts as absent."""

    def __init__(self, values: Mapping[str, Json]) -> None:
        self._values = {name: item for name, item in values.items() if item is not None}
        self._by_name: dict[str, str] = {}
        for name in self._values:
            self._by_name.setdefault(plain_name(name), name)

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

    def text(self, *names: str) -> str | None:
        """As `take`: text as it is, anything else as JSON text; None for an empty text too."""
        return as_text(self.take(*names)) or None

    def nested(self, *names: str) -> dict[str, Json]:
        """The object of the first of these names that holds one, as JSON text too."""
        for name in names:
            own = self._by_name.get(name)
            value = pairs(opened(self._values.get(own))) if own is not None else None
            if own is not None and isinstance(value, dict):
                del self._values[own]
                return value
        return {}

    def listed(self, *names: str) -> Sequence[Json]:
        """As `dict`, for a list."""
        for name in names:
            own = self._by_name.get(name)
            value = opened(self._values.get(own)) if own is not None else None
            if own is not None and isinstance(value, list):
                del self._values[own]
                return value
        return []

    def below(self, *prefixes: str) -> dict[str, Json]:
        """The fields whose names begin with one of these prefixes, without it."""
        values: dict[str, Json] = {}
        for prefix in prefixes:
            for name in [name for name in self._values if name.startswith(prefix) and name != prefix]:
                values[name.removeprefix(prefix)] = self._values.pop(name)
        return values

    def rest(self, prefix: str = "") -> dict[str, Json]:
        """What nobody took, by its own names behind `prefix`; empty texts, lists and objects are left out."""
        return {f"{prefix}{name}": kept(item) for name, item in self._values.items() if item not in ("", [], {})}

    def moment(self, draft: SpanDraft, *names: str) -> int | None:
        """The time of the first of these names; one that cannot be read is kept in the attributes, with a warning."""
        raw = self.take(*names)
        if raw is None or raw == "":
            return None
        time = time_of_any(raw)
        if time is None:
            draft.attributes[names[0]] = kept(raw)
            draft.warnings.append(f"unreadable_time: {names[0]} is {brief(raw)}; left empty, kept as an attribute")
        return time

    def status(self, draft: SpanDraft) -> None:
        """Fill `status` and `status_message` from an object, or from a code and a message beside it."""
        value = opened(self.take("otelstatuscode", "statuscode", "status"))
        held = Fields(value) if isinstance(value, dict) else None
        code = held.take("code", "statuscode") if held is not None else value
        draft.status = status_of(draft, code, "status_code")
        message = held.text("message", "description") if held is not None else None
        draft.status_message = message or self.text("otelstatusmessage", "statusmessage", "statusdescription")


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
