"""JSON nested deeper than any parser follows: read part by part, written without recursion."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from uuid import uuid4

from tracejury.ingest.trace import Json
from tracejury.ingest.words import counted

LEVELS = 250
"""Levels of nesting that are read at once: well below what orjson (1,024) and Python's json (about 1,000) follow."""

_encoded = json.JSONEncoder(ensure_ascii=False).encode
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]', re.DOTALL)


class _Written(str):
    """A piece of JSON text, to be written as it stands."""


def read_deep(text: bytes, loads: Callable[[bytes], Json]) -> Json:
    """The value of JSON of any depth; each `LEVELS` levels of it are read by `loads`.

    Raises `ValueError` where brackets do not match, and what `loads` raises.
    """
    mark = uuid4().hex  # stands for a part that was read before: nobody's text holds it
    parts: list[Json] = []
    for own in _cut(text, lambda: b'{"%s":%d}' % (mark.encode(), len(parts))):
        parts.append(_put_back(loads(own), parts, mark))
    return parts[-1]


def _cut(text: bytes, stand_in: Callable[[], bytes]) -> Iterator[bytes]:
    """The text in parts of `LEVELS` levels, the innermost first, each inner part replaced by its stand-in."""
    outer: list[list[bytes]] = [[]]
    depth = start = 0
    for token in _TOKEN.finditer(text):
        bracket = text[token.start()]
        if bracket in b"{[":
            depth += 1
            if depth % LEVELS == 0:
                outer[-1].append(text[start : token.start()])
                outer.append([])
                start = token.start()
        elif bracket in b"}]":
            if depth <= 0:
                raise ValueError(f"a closing bracket without an opening one at byte {token.start()}")
            if depth % LEVELS == 0:
                inner = b"".join((*outer.pop(), text[start : token.end()]))
                start = token.end()
                outer[-1].append(stand_in())
                yield inner
            depth -= 1
    if depth:
        raise ValueError(f"the JSON ends too early: {counted(depth, 'open bracket')}")
    yield b"".join((*outer.pop(), text[start:]))


def _put_back(value: Json, parts: list[Json], mark: str) -> Json:
    """The value with the parts in the places of their stand-ins; what was put in is not looked through again."""
    stack: list[Json] = [value]
    while stack:
        node = stack.pop()
        if not isinstance(node, (dict, list)):
            continue
        for key, item in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
            if isinstance(item, dict) and mark in item:
                node[key] = parts[item[mark]]  # type: ignore[index]
            else:
                stack.append(item)
    return value


def write_deep(value: Json) -> str:
    """Compact JSON text of a value of any depth."""
    pieces: list[str] = []
    stack: list[Json] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, (dict, list)):
            stack.extend(reversed(list(_opened(node))))
        else:
            pieces.append(node if isinstance(node, _Written) else _encoded(node))
    return "".join(pieces)


def _opened(node: dict[str, Json] | list[Json]) -> Iterator[Json]:
    """What is written of a list or object, one level of it: its punctuation and keys, and its items."""
    start, end = ("{", "}") if isinstance(node, dict) else ("[", "]")
    yield _Written(start)
    for number, item in enumerate(node):
        if number:
            yield _Written(",")
        if isinstance(node, dict):
            yield _Written(f"{_encoded(item)}:")
            yield node[item]  # type: ignore[index]
        else:
            yield item
    yield _Written(end)
