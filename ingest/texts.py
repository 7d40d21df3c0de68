"""Long text by reference: every string of 256 characters or more is kept once, by the hash of its content."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import orjson
import zstandard

from tracejury.ingest.trace import Json

LONG = 256  # characters
TEXT_REF, JSON_REF, ESCAPE = "$text", "$json", "$plain"
PACK = 256 * 1024  # bytes of text in a pack, about
_LEVEL, _TEXT_LEVEL = 3, 6
_local = threading.local()


def compress(data: bytes, *, level: int = _LEVEL) -> bytes:
    """zstd with a window over the whole of a trace file (its history repeats megabytes apart)."""
    compressors = _local.__dict__.setdefault("compressors", {})
    if level not in compressors:
        parameters = zstandard.ZstdCompressionParameters.from_level(level, window_log=23)
        compressors[level] = zstandard.ZstdCompressor(compression_params=parameters)
    compressor: zstandard.ZstdCompressor = compressors[level]
    return compressor.compress(data)


def decompress(body: bytes) -> bytes:
    decompressor = _local.__dict__.get("decompressor")
    if decompressor is None:
        decompressor = _local.decompressor = zstandard.ZstdDecompressor()
    return bytes(decompressor.decompress(body))


def text_hash(encoded: bytes) -> bytes:
    return blake2b(encoded, digest_size=16).digest()


class TextRefs:
    """Collects the long texts of one trace and hands out references by hash (32 hex digits)."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._hashes: dict[str, str] = {}

    def key(self, value: str) -> str:
        known = self._hashes.get(value)
        if known is None:
            known = text_hash(value.encode()).hex()
            self._hashes[value] = known
            self.texts[known] = value
        return known

    def text(self, value: str | None) -> Json:
        """The text itself when short, else a reference."""
        if value is None or len(value) < LONG:
            return value
        return {TEXT_REF: self.key(value)}

    def json(self, value: Json) -> Json:
        """JSON with its long parts by reference; `restore` gives back exactly the same."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (list, dict)):
            serialised = orjson.dumps(value).decode()
            if len(serialised) >= LONG:
                return {JSON_REF: self.key(serialised)}
            if isinstance(value, dict) and _looks_like_reference(value):
                return {ESCAPE: value}
        return value


def restore(value: Json, text_of: Callable[[str], str]) -> Json:
    """The inverse of `TextRefs.text` and `TextRefs.json`."""
    if isinstance(value, dict) and len(value) == 1:
        ((key, inner),) = value.items()
        if key == TEXT_REF and isinstance(inner, str):
            return text_of(inner)
        if key == JSON_REF and isinstance(inner, str):
            parsed: Json = orjson.loads(text_of(inner))
            return parsed
        if key == ESCAPE:
            return inner
    return value


def reference(value: Json) -> str | None:
    """The hash that a stored value refers to, if it refers to one."""
    if isinstance(value, dict) and len(value) == 1:
        ((key, inner),) = value.items()
        if key in {TEXT_REF, JSON_REF} and isinstance(inner, str):
            return inner
    return None


class TextPack(NamedTuple):
    """Texts compressed together: the body, and `(hash, start, size)` of each in bytes of what it unpacks to."""

    body: bytes
    texts: tuple[tuple[str, int, int], ...]


def packs(texts: Mapping[str, str], known: Container[str]) -> Iterator[TextPack]:
    """The texts that are not `known` in packs: neighbours in a trace repeat each other, and compress well together."""
    parts: list[bytes] = []
    places: list[tuple[str, int, int]] = []
    at = 0
    for key, value in texts.items():
        if key in known:
            continue
        encoded = value.encode()
        parts.append(encoded)
        places.append((key, at, len(encoded)))
        at += len(encoded)
        if at >= PACK:
            yield TextPack(compress(b"".join(parts), level=_TEXT_LEVEL), tuple(places))
            parts, places, at = [], [], 0
    if parts:
        yield TextPack(compress(b"".join(parts), level=_TEXT_LEVEL), tuple(places))


def repacked(pack: TextPack, new: Sequence[tuple[str, int, int]]) -> TextPack:
    """The pack with only its `new` texts where most of it is known; else as it is, for packing costs more than room."""
    if 2 * sum(size for _, _, size in new) > sum(size for _, _, size in pack.texts):
        return TextPack(pack.body, tuple(new))
    data = decompress(pack.body)
    places: list[tuple[str, int, int]] = []
    at = 0
    for key, _, size in new:
        places.append((key, at, size))
        at += size
    packed = b"".join(data[start : start + size] for _, start, size in new)
    return TextPack(compress(packed, level=_TEXT_LEVEL), tuple(places))


def _looks_like_reference(value: Mapping[str, Json]) -> bool:
    return len(value) == 1 and next(iter(value)) in {TEXT_REF, JSON_REF, ESCAPE}
