"""What the readers of OpenTelemetry-like spans share: values fit to be kept, and status."""

from __future__ import annotations

from collections.abc import Set
from typing import cast

from tracejury.ingest import times
from tracejury.ingest.parse import inner_json, is_deep, json_text
from tracejury.ingest.trace import Json, SpanDraft, Status
from tracejury.ingest.words import counted

_STATUS: dict[str, Status] = {
    "OK": "OK", "ERROR": "ERROR", "UNSET": "UNSET", "": "UNSET", "0": "UNSET", "1": "OK", "2": "ERROR",
}  # fmt: skip


def brief(value: object) -> str:
    """A value as a message shows it: short whatever its size, and of any depth."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, (dict, list)):
        return f"{type(value).__name__} of {len(value)}"
    return repr(value)[:60]


def kept(value: Json) -> Json:
    """A value as it is kept in attributes: as it stands, or as JSON text when nested too deeply to be written."""
    if not isinstance(value, (dict, list)):
        return value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, (dict, list)):
            return json_text(value) if is_deep(value) else value
    return value


def kept_dict(value: dict[str, Json]) -> dict[str, Json]:
    """As `kept`, for each value of an object."""
    return {key: item if isinstance(item, str) else kept(item) for key, item in value.items()}


def as_objects(value: Json) -> list[dict[str, Json]]:
    """The objects of a list of events or links; what is none, there or in its place, counts as `{"value": it}`."""
    if not isinstance(value, list):
        return [] if value is None else [{"value": value}]
    return [item if isinstance(item, dict) else {"value": item} for item in value]


def note_spans(value: Json, marks: Set[str], key: str, warnings: list[str]) -> None:
    """Warn where a value that is no place of spans holds objects with two of these keys: they are not read as spans."""
    count = _count(value, marks)
    if count:
        warnings.append(
            f"unread_spans: {key!r} holds {counted(count, 'span')} outside the list of spans; not read as spans"
        )


def _count(value: Json, marks: Set[str]) -> int:
    """The objects with two of these keys within a value, in JSON texts too."""
    count, stack = 0, [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str) and node[:1] in ("{", "["):
            node = inner_json(node)
        if isinstance(node, dict):
            count += len(marks & node.keys()) > 1
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return count


def time_of_field(draft: SpanDraft, values: dict[str, Json], key: str, *, prefix: str = "") -> int | None:
    """A field's time in UTC microseconds; one that cannot be read stays as attribute `prefix + key`, with a warning."""
    raw = values.get(key)
    moment = times.from_any(raw)
    if moment is None and raw is not None:
        draft.attributes[f"{prefix}{key}"] = kept(raw)
        draft.warnings.append(f"unreadable_time: {key} is {brief(raw)}; left empty, kept as an attribute")
    return moment


def status_of(draft: SpanDraft, value: Json, key: str) -> Status:
    """OK, ERROR or UNSET in every spelling (`Ok`, `STATUS_CODE_ERROR`, 2); others are kept as attribute `key`."""
    if value is None:
        return "UNSET"
    text = str(value).rsplit(".", 1)[-1].upper().removeprefix("STATUS_CODE_")
    if not isinstance(value, (dict, list, bool)) and text in _STATUS:
        return _STATUS[text]
    draft.attributes.setdefault(key, kept(cast("Json", value)))
    draft.warnings.append(f"unknown_status: {key} is {brief(value)}; taken as UNSET")
    return "UNSET"
