"""Pictures, sound and film within a trace, found by the hash that stands in their place in the text.

Nothing is ever fetched.
"""

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
    (b"GIF89a", "image/gif"), (b"ID3", "audio/mpeg"), (b"OggS", "audio/ogg"), (b"fLaC", "audio/flac"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    *((bytes([0xFF, second]), "audio/mpeg") for second in (0xF2, 0xF3, 0xFA, 0xFB)),
)  # fmt: skip
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
"""Kinds that hold no script, told by their first bytes and never by what the trace says."""


class Media(NamedTuple):
    """The bytes of a picture, of sound or of film, and their kind as a media type."""

    kind: str
    data: bytes


def find_media(trace: Trace, digest: str) -> Media | None:
    """Return what has this SHA-256; None where no attribute holds it or it is no known kind."""
    for span in trace.spans:
        for value in (*span.attributes.values(), *span.events, span.input, span.output):
            for text in _texts(value):
                data = _decoded(text)
                if data is not None and sha256(data).hexdigest() == digest:
                    kind = _kind(data)
                    return None if kind is None else Media(kind, data)
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
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    if data[4:8] == b"ftyp":
        return "audio/mp4" if data[8:11] == b"M4A" else "video/mp4"
    return next((kind for start, kind in _STARTS if data.startswith(start)), None)
