"""The pictures within a trace, found by the hash that stands in their place in the text; nothing is ever fetched."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import Json, Trace

_DATA_URI = re.compile(r"data:[^,]*;base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+=*\s*")
_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)  # fmt: skip
"""Kinds of pictures that hold no script, told by their first bytes and never by what the trace says."""


class Picture(NamedTuple):
    """The bytes of a picture, and their kind."""

    kind: str
    data: bytes


def find_picture(trace: Trace, digest: str) -> Picture | None:
    """The picture whose bytes have this SHA-256; None where no attribute holds it or it is no known kind."""
    for span in trace.spans:
        for value in (*span.attributes.values(), *span.events, span.input, span.output):
            for text in _texts(value):
                data = _decoded(text)
                if data is not None and sha256(data).hexdigest() == digest:
                    kind = _kind(data)
                    return None if kind is None else Picture(kind, data)
    return None


def _texts(value: Json) -> Iterator[str]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            inner = inner_json(node)
            if inner is None:
                yield node
            else:
                waiting.append(inner)
        elif isinstance(node, (dict, list)):
            waiting.extend(node.values() if isinstance(node, dict) else node)


def _decoded(text: str) -> bytes | None:
    start = _DATA_URI.match(text)
    body = text[start.end() :] if start is not None else text
    if len(body) < 12 or _BASE64.fullmatch(body) is None:
        return None
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        return None


def _kind(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _STARTS if data.startswith(start)), None)
