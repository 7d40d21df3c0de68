"""A dialect of one's own: a TOML file that says which attribute holds what, tried before all dialects known here.

    [fields]
    input_messages = [{ attribute = "acme.system", role = "system" }, "acme.request $.messages"]
    output_messages = "acme.reply"
    tool_name = "acme.tool"

    [kind]
    attribute = "acme.type"        # or "name": the name of the span
    values = { "llm_*" = "LLM", tool = "TOOL" }

    [when]                         # optional: only spans of this tracer
    scope = "acme.*"

After an attribute's name a path (`$.a.b[0]`, `$.items[*].text`) leads into its JSON; `event NAME: ATTRIBUTE` names an
attribute of an event. The text of a map is kept with a span that it filled, so that the trace can be read again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, cast

from tracejury.ingest.conventions.context import Context, put_count
from tracejury.ingest.conventions.conversation import open_value, read_conversation
from tracejury.ingest.conventions.message_json import rest_of
from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import SPAN_KINDS, IngestError, Json, Message, SpanDraft, SpanKind, Trace

NAME = "mapped"
MAP_ATTRIBUTE = "tracejury.map"
FOLDER = "maps"
"""The folder of a workspace whose maps are always in use."""

_MESSAGES = {"input_messages": "user", "output_messages": "assistant"}
_TEXTS = {
    "input": "input", "output": "output", "tool_name": "tool_name", "tool_arguments": "tool_arguments",
    "tool_result": "output", "tool_call_id": "tool_call_id", "agent": "agent", "model": "model",
    "status_message": "status_message",
}  # fmt: skip
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens")
FIELDS = (*_MESSAGES, *_TEXTS, *_COUNTS, "session")
_STEP = re.compile(r"\.([\w-]+)|\[(\d+|\*)\]|\[(?:'([^']*)'|\"([^\"]*)\")\]")
_EVENT = "event "


class Place(NamedTuple):
    """An attribute (or `event NAME: ATTRIBUTE`), the way into its JSON, and who says what is there."""

    attribute: str
    path: tuple[str | int, ...] = ()
    role: str | None = None


@dataclass(frozen=True, kw_only=True)
class Map:
    """One map; `text` is the file that it was read from."""

    file: str
    text: str
    fields: Mapping[str, tuple[Place, ...]]
    kind_attribute: str | None = None
    kinds: Mapping[str, SpanKind]
    scope: str = "*"


_in_use: tuple[Map, ...] = ()


@contextmanager
def using(maps: Sequence[Map]) -> Iterator[None]:
    """Read with these maps, beside those in use, until the end of the block; for all threads of this process."""
    global _in_use
    before = _in_use
    _in_use = _together(before, maps)
    try:
        yield
    finally:
        _in_use = before


def maps_in_use() -> tuple[Map, ...]:
    """The maps with which this process reads."""
    return _in_use


def _together(before: Sequence[Map], maps: Sequence[Map]) -> tuple[Map, ...]:
    """Each map once, by its text."""
    return tuple({one.text: one for one in (*before, *maps)}.values())


def maps_of(home: Path) -> tuple[Map, ...]:
    """The maps of a workspace. Raises `IngestError` for one that cannot be read."""
    return tuple(load_map(file) for file in sorted((home / FOLDER).glob("*.toml")))


def maps_of_trace(trace: Trace) -> list[Map]:
    """The maps by which a stored trace was read."""
    texts = (text for span in trace.spans for text in _texts_of(span.attributes.get(MAP_ATTRIBUTE)))
    return [read_map(text, "of the trace") for text in texts]


def _texts_of(value: Json) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def load_map(file: Path) -> Map:
    """The map in a file. Raises `IngestError` that names line and field."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise IngestError(f"the map {file} cannot be read: {error}", remedy="check the path") from error
    return read_map(text, str(file))


def read_map(text: str, file: str) -> Map:
    """The map that a TOML text writes. Raises `IngestError` that names line and field."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise IngestError(f"the map {file} is not TOML: {error}", remedy="correct the file at this place") from error
    for key in document:
        if key not in ("fields", "kind", "when"):
            raise _wrong(text, file, key, "is not part of a map", "[fields], [kind] and [when]")
    fields = {name: _places(text, file, name, value) for name, value in _table(text, file, document, "fields").items()}
    kind, when = _table(text, file, document, "kind"), _table(text, file, document, "when")
    values = _table(text, file, kind, "values")
    for value, name in values.items():
        if name not in SPAN_KINDS:
            raise _wrong(text, file, value, f"names the kind {name!r}", f"one of {', '.join(SPAN_KINDS)}")
    attribute, scope = kind.get("attribute"), when.get("scope", "*")
    if values and not isinstance(attribute, str):
        raise _wrong(text, file, "kind", "lacks `attribute`", 'attribute = "NAME"')
    if not isinstance(scope, str):
        raise _wrong(text, file, "scope", "is not text", 'scope = "acme.*"')
    if not fields and not values:
        raise IngestError(f"the map {file} maps nothing", remedy="add [fields]; `tracejury map suggest` proposes them")
    return Map(
        file=file, text=text, fields=fields, kinds=cast("Mapping[str, SpanKind]", values), scope=scope,
        kind_attribute=attribute if isinstance(attribute, str) else None,
    )  # fmt: skip


def apply(draft: SpanDraft, context: Context) -> None:
    """Fill the columns of a span from the maps in use."""
    for one in _in_use:
        if _fits(one, draft) and _fill(one, draft, context):
            _note(one, draft, context)


def _fits(one: Map, draft: SpanDraft) -> bool:
    scope = draft.attributes.get("otel.scope")
    name = scope.get("name") if isinstance(scope, dict) else ""
    return one.scope == "*" or fnmatchcase(str(name or ""), one.scope)


def _fill(one: Map, draft: SpanDraft, context: Context) -> bool:
    """Whether the map is_filled anything on this span."""
    is_filled = _kind(one, draft)
    for field, places in one.fields.items():
        for place in places:
            value, holder, key = _value(draft, place)
            if value is not None and _put(draft, field, place, value, context):
                if not place.path:  # what a path leads into keeps its rest
                    holder.pop(key, None)
                is_filled = True
    return is_filled


def _note(one: Map, draft: SpanDraft, context: Context) -> None:
    """Keep the map's text with the first span of the trace that it filled."""
    if one.text not in context.maps:
        context.maps.add(one.text)
        texts = draft.attributes.get(MAP_ATTRIBUTE)
        draft.attributes[MAP_ATTRIBUTE] = [*(texts if isinstance(texts, list) else []), one.text]


def _kind(one: Map, draft: SpanDraft) -> bool:
    if one.kind_attribute is None or draft.kind != "UNKNOWN":
        return False
    value = draft.attributes.get(one.kind_attribute, draft.name if one.kind_attribute == "name" else None)
    kind = next((kind for pattern, kind in one.kinds.items() if fnmatchcase(str(value), pattern)), None)
    if value is None or kind is None:
        return False
    draft.kind = kind
    return True


def _value(draft: SpanDraft, place: Place) -> tuple[Json, dict[str, Json], str]:
    """The value at a place, and the object and key where the whole of it stands."""
    holder, key = draft.attributes, place.attribute
    if key.startswith(_EVENT) and ": " in key:
        name, _, inner = key.removeprefix(_EVENT).partition(": ")
        for event in draft.events:
            attributes = event.get("attributes")
            if event.get("name") == name and isinstance(attributes, dict) and inner in attributes:
                holder, key = attributes, inner
                break
    value = holder.get(key)
    if place.path and value is not None:
        value = _at(open_value(draft, key, value), place.path)
    return value, holder, key


def _at(value: Json, path: Sequence[str | int]) -> Json:
    for number, step in enumerate(path):
        if step == "*":
            items = value if isinstance(value, list) else []
            return [item for one in items if (item := _at(one, path[number + 1 :])) is not None] or None
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _put(draft: SpanDraft, field: str, place: Place, value: Json, context: Context) -> bool:
    """Whether the value went into the column of the field."""
    if field in _MESSAGES:
        return _say(draft, field, place, value, context)
    if field in _COUNTS:
        before = getattr(draft, field)
        draft.attributes["tracejury.count"] = value
        put_count(draft, field, "tracejury.count")
        draft.attributes.pop("tracejury.count", None)
        return bool(getattr(draft, field) != before)
    text = value if isinstance(value, str) else json_text(value)
    if field == "session":
        draft.attributes["session.id"] = text
        return place.attribute != "session.id"
    if getattr(draft, _TEXTS[field]) is not None:
        return False
    setattr(draft, _TEXTS[field], text)
    return True


def _say(draft: SpanDraft, field: str, place: Place, value: Json, context: Context) -> bool:
    role = place.role or _MESSAGES[field]
    conversation = read_conversation(open_value(draft, place.attribute, value), role)
    if conversation is None:
        text = value if isinstance(value, str) else json_text(value)
        messages = [Message(role, text)]
    else:
        messages = [item.message for item in conversation.messages]
        rest = rest_of(conversation.messages)
        if rest is not None or conversation.others:
            draft.attributes[f"tracejury.map.{field}"] = {**conversation.others, **({"messages": rest} if rest else {})}
    setattr(draft, field, [*getattr(draft, field), *(context.add(message) for message in messages)])
    return True


def _places(text: str, file: str, name: str, value: object) -> tuple[Place, ...]:
    if name not in FIELDS:
        raise _wrong(text, file, name, "is not a field", f"one of {', '.join(FIELDS)}")
    items = value if isinstance(value, list) else [value]
    return tuple(_place(text, file, name, item) for item in items)


def _place(text: str, file: str, name: str, item: object) -> Place:
    table = item if isinstance(item, dict) else {"attribute": item}
    written, role = table.get("attribute"), table.get("role")
    is_right = isinstance(written, str) and written.strip() and (role is None or isinstance(role, str))
    if not is_right or not table.keys() <= {"attribute", "role"}:
        raise _wrong(text, file, name, f"is {item!r}", '"ATTRIBUTE", "ATTRIBUTE $.path", { attribute, role } or a list')
    attribute, _, path = str(written).partition("$")
    return Place(attribute.strip(), _path(text, file, name, path.strip()), None if role is None else str(role))


def _path(text: str, file: str, name: str, path: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise _wrong(text, file, name, f"has the path ${path!r}", "$.name, $['name'], $[0] and $[*]")
        dotted, number, *quoted = match.groups()
        step = dotted or next((one for one in quoted if one is not None), number)
        steps.append(int(step) if number is not None and number != "*" else step)
        at = match.end()
    return tuple(steps)


def _table(text: str, file: str, holder: Mapping[str, object], name: str) -> dict[str, object]:
    value = holder.get(name, {})
    if not isinstance(value, dict):
        raise _wrong(text, file, name, "is not a table", f"[{name}]")
    return value


def _wrong(text: str, file: str, name: str, what: str, expected: str) -> IngestError:
    """The error of one field: file, line, field, what is wrong, and what would be right."""
    pattern = re.compile(rf"^\s*(?:\[\s*)?[\"']?{re.escape(name)}[\"']?\s*(?:=|\]|\.)")
    lines = (number for number, line in enumerate(text.splitlines(), 1) if pattern.search(line))
    line = next(lines, None)
    where = f", line {line}" if line is not None else ""
    return IngestError(f"the map {file}{where}: `{name}` {what}", place=f"line {line}", remedy=f"write {expected}")
