"""Fields of a conversation whose type is not what every tool writes under their name.

The forms of conversations are many and read what they know; here a field that none of them can read is named, whatever
the form.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracejury.ingest.formats.fields import plain_name
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.spans import brief
from tracejury.ingest.trace import Json

_OBJECTS = frozenset({
    "toolcalls", "toolrequests", "toolcallrounds", "versions", "activities", "candidates", "choices",
    "toolinvocations", "agentthoughts", "llminteractions", "agentsteps", "inputmessages", "evalcases", "chatmessages",
    "runsteps", "toolcallstates", "tooluses", "tooluseresults", "conversations",
})  # fmt: skip
"""Lists of objects."""
_LISTS = frozenset({
    "children", "childrenids", "contextitems", "attachments", "parentids", "files", "swipes", "folders", "annotations",
})  # fmt: skip
_OPEN_LISTS = frozenset({"messages", "contents", "parts"})
"""Lists that may stand as JSON text, or as an object of objects."""
_OBJECT = frozenset({
    "stepdetails", "mapping", "responsemetadata", "additionalkwargs", "tooluse", "parsedata", "metadata",
    "actiongroupinvocationinput", "actiongroupinvocationoutput", "modelinvocationinput", "modelinvocationoutput",
    "invocationinput", "finalresponse", "orchestrationtrace", "rawresponse", "inputbodyjson",
    "outputbodyjson", "modelinput", "chunk", "toolcallresults", "trace",
})  # fmt: skip
_OBJECT_OR_TEXT = frozenset({"request", "message", "run", "modeloutput"})
_TEXTS = frozenset({"tooluseid", "toolcallid"})
_NOT_NUMBERS = frozenset({
    "content", "text", "system", "systeminstruction", "instructions", "conversation", "data", "toolresults", "prompt",
    "response",
})  # fmt: skip
"""What is a text, a list or an object, by the form."""
_MESSAGES = frozenset({"messages", "contents", "history", "prompts", "thoughts", "events", "activities", "parts"})
"""Lists that hold objects alone where they hold one."""
_FREE = frozenset({
    "arguments", "args", "input", "inputs", "parameters", "toolinput", "output", "outputs", "result", "results", "json",
    "observation", "properties", "schema", "tools", "slots", "value", "values", "rest", "extra",
})  # fmt: skip
"""What a model or a tool wrote: fields in it are its own."""
_BODIES = frozenset({"messages", "contents", "inputBodyJson", "outputBodyJson"})
"""What a request holds, whatever it is called."""
_DEEPEST = 24


def wrong_types(value: Json, path: str = "", depth: int = 0) -> Iterator[str]:
    """A warning for each field within a value whose type no form has, by its path."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for number, item in enumerate(value):
            if isinstance(item, (dict, list)):
                yield from wrong_types(item, f"{path}[{number}]", depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _of_field(key, item, f"{path}.{key}" if path else key, depth)


def _of_field(key: str, item: Json, path: str, depth: int) -> Iterator[str]:
    name = plain_name(key)
    if item is None or item in ("", [], {}):
        return
    if (expected := _expected(name, item)) is not None:
        yield f"wrong_type: {path} is {brief(item)}, not {expected}"
    elif (name in _OBJECTS or name in _MESSAGES) and isinstance(item, list):
        yield from no_objects(item, path, is_sure=name in _OBJECTS)
    elif name == "mapping" and isinstance(item, dict):
        yield from (
            f"wrong_type: {path}.{own} is {brief(one)}, not an object"
            for own, one in item.items()
            if one is not None and not isinstance(one, dict)
        )
    if isinstance(item, (dict, list)) and (
        name not in _FREE or (isinstance(item, dict) and not _BODIES.isdisjoint(item))
    ):
        yield from wrong_types(item, path, depth + 1)


def no_objects(items: list[Json], path: str, *, is_sure: bool = False) -> Iterator[str]:
    """A warning for each item of a list that is no object, where others are (or, with `is_sure`, all have to be)."""
    if not is_sure and not any(isinstance(one, dict) for one in items):
        return
    for number, one in enumerate(items):
        if one is not None and not isinstance(one, dict) and not isinstance(opened(one), dict):
            yield f"wrong_type: {path}[{number}] is {brief(one)}, not an object"


def _expected(name: str, item: Json) -> str | None:
    """What a field of this name holds, where this is something else."""
    is_open = isinstance(item, str) and isinstance(opened(item), (dict, list))
    if name in _OBJECTS and not isinstance(item, list) and not is_open and name != "tooluseresults":
        return "a list"
    if name in _OPEN_LISTS and not isinstance(item, list) and not is_open and not _holds_objects(item):
        return "a list"
    if name in _LISTS and not isinstance(item, list):
        return "a list"
    if name in _OBJECT and not isinstance(item, dict) and not is_open:
        return "an object"
    if name in _OBJECT_OR_TEXT and not isinstance(item, (dict, str)):
        return "an object"
    if name in _TEXTS and not isinstance(item, str):
        return "a text"
    if name in _NOT_NUMBERS and isinstance(item, (bool, int, float)):
        return "a text, a list or an object"
    return None


def _holds_objects(item: Json) -> bool:
    return isinstance(item, dict) and all(isinstance(one, dict) for one in item.values())
