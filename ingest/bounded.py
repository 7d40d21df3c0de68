"""Unpacking that cannot be abused: a stream is read in pieces and refused when it grows beyond all reason."""

from __future__ import annotations

from typing import IO

from ingest.trace import IngestError

MAX_BYTES = 2 * 1024**3
"""A single input larger than this, unpacked, is refused: no trace is, and a zip bomb is."""
MAX_RATIO = 400
"""Unpacked to packed size; traces reach about 30, and repetitive ones 100."""
RATIO_FREE_BYTES = 64 * 1024**2
"""Below this unpacked size the ratio does not matter."""


def read_bounded(stream: IO[bytes], packed: int) -> bytes:
    """All bytes of a stream, whatever size its archive declares. Raises `IngestError` beyond the limits."""
    parts, size = [], 0
    while chunk := stream.read(1024**2):
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            raise too_large(size)
        if size > RATIO_FREE_BYTES and size > MAX_RATIO * max(packed, 1):
            raise IngestError(
                f"unpacks to more than {MAX_RATIO} times its size: looks like a zip bomb",
                remedy="unpack it yourself if you trust it",
            )
    return b"".join(parts)


def too_large(size: int) -> IngestError:
    """The refusal of an input of `size` bytes or more."""
    return IngestError(
        f"larger than {MAX_BYTES / 1024**3:g} GiB unpacked ({size:,} bytes seen)", remedy="split it into smaller files"
    )
