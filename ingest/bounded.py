"""Unpacking that cannot be abused: a stream is read in pieces and refused when it grows beyond all reason."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import IO, cast

import zstandard

from tracejury.ingest.trace import IngestError

MAX_BYTES = 2 * 1024**3
"""A single input larger than this, unpacked, is refused: no trace is, and a zip bomb is."""
SPAN_BYTES = 1000
"""A span counts for so much of an input at least: read, it takes some 6 kB however little it says."""
MAX_RATIO = 400
"""Unpacked to packed size; traces reach about 30, and repetitive ones 100."""
RATIO_FREE_BYTES = 64 * 1024**2
"""Below this unpacked size the ratio does not matter."""
MAX_MEMBERS = 200_000
"""Files in one archive; beyond them it is refused."""
DAMAGE = (
    OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, zstandard.ZstdError, lzma.LZMAError,
    struct.error,
)  # fmt: skip
"""What unpacking damaged bytes raises."""

_ZIP_ZSTD = 93
_own_limit: ContextVar[int | None] = ContextVar("own_limit", default=None)


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Within, an input of more than `size` bytes, unpacked, is refused: where memory is scarcer than MAX_BYTES."""
    token = _own_limit.set(size)
    try:
        yield
    finally:
        _own_limit.reset(token)


def most_bytes() -> int:
    """The most bytes that one input may have here, unpacked."""
    limit = _own_limit.get()
    return MAX_BYTES if limit is None else min(limit, MAX_BYTES)


def most_spans() -> int:
    """The most spans that may be held at once here."""
    return most_bytes() // SPAN_BYTES


def too_much_at_once(whose: str, *, spans: int, size: int) -> IngestError | None:
    """The refusal of an input or trace whose spans and bytes cannot be held at once; None where they can."""
    if spans <= most_spans() and size <= most_bytes():
        return None
    return IngestError(
        f"{whose} has {spans:,} spans in {size / 1e6:,.0f} MB, which must be in memory at once; "
        f"at most {most_spans():,} spans in {most_bytes() / 1e6:,.0f} MB fit",
        remedy="write each task of the agent as its own trace, in JSON lines, or ingest the file into a workspace",
    )


def read_bounded(opened: Callable[[], AbstractContextManager[IO[bytes]]], packed: int) -> bytes:
    """All bytes of a stream, whatever size its archive declares. Raises `IngestError` beyond the limits.

    A large one is measured before it is held: what is refused then takes no memory.
    """
    parts: list[bytes] = []
    size = 0
    with opened() as stream:
        while chunk := stream.read(1024**2):
            size += len(chunk)
            if size <= RATIO_FREE_BYTES:
                parts.append(chunk)
            else:
                parts.clear()
                _check(size, packed)
    if size <= RATIO_FREE_BYTES:
        _check(size, packed)
        return b"".join(parts)
    with opened() as stream:
        return stream.read(size)


def _check(size: int, packed: int) -> None:
    if size > most_bytes():
        raise too_large(size)
    if size > RATIO_FREE_BYTES and size > MAX_RATIO * max(packed, 1):
        raise _bomb()


def read_member(data: bytes, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The bytes of one member of a zip, zstd (method 93, which Inspect writes and Python 3.11 lacks) included.

    `archive` is open on `data`: to open it again for each member would read the list of all members each time.
    """
    try:
        if member.compress_type == _ZIP_ZSTD:
            return _read_zstd_member(data, member)
        return read_bounded(lambda: archive.open(member), member.compress_size)
    except RuntimeError as error:
        raise IngestError(f"cannot be unpacked: {error}", remedy="pack it without a password") from error
    except (*DAMAGE, ValueError) as error:
        raise IngestError(f"damaged: {error}", remedy="pack or download it again") from error


@dataclass(slots=True)
class Allowance:
    """How much an archive may unpack to, with the archives in it: its bytes may stand for several of its members, and
    a small one for many that each stay below the limits.
    """

    packed: int
    sizes: dict[object, int] = field(default_factory=dict)
    total: int = 0

    def counted(self, place: object, data: bytes) -> bytes:
        """The bytes of the member at `place`, counted once. Raises `IngestError` beyond what is allowed."""
        self.total += len(data) - self.sizes.get(place, 0)
        self.sizes[place] = len(data)
        if self.total > max(RATIO_FREE_BYTES, MAX_RATIO * self.packed):
            raise _bomb()
        return data


def count_member(number: int) -> None:
    """Raise `IngestError` when an archive has more members than is reasonable."""
    if number > MAX_MEMBERS:
        raise IngestError(f"an archive of more than {MAX_MEMBERS:,} files", remedy="split it, or unpack it yourself")


def _bomb() -> IngestError:
    return IngestError(
        f"unpacks to more than {MAX_RATIO} times its size: it may be a zip bomb",
        remedy="unpack it yourself if you trust it",
    )


def read_zstd(data: bytes) -> bytes:
    """All frames of zstd data, within the limits."""

    def opened() -> AbstractContextManager[IO[bytes]]:
        decompressor = zstandard.ZstdDecompressor(max_window_size=2**31)
        stream = decompressor.stream_reader(io.BytesIO(data), read_across_frames=True)
        return cast("AbstractContextManager[IO[bytes]]", stream)

    return read_bounded(opened, len(data))


def read_gzip(data: bytes) -> bytes:
    """All members of gzip data, within the limits."""
    return read_bounded(lambda: cast("IO[bytes]", gzip.GzipFile(fileobj=io.BytesIO(data))), len(data))


def read_bzip2(data: bytes) -> bytes:
    """All streams of bzip2 data, within the limits."""
    return read_bounded(lambda: cast("IO[bytes]", bz2.BZ2File(io.BytesIO(data))), len(data))


def read_xz(data: bytes) -> bytes:
    """All streams of xz data, within the limits; what a stream says of its size is not believed."""
    return read_bounded(lambda: cast("IO[bytes]", lzma.LZMAFile(io.BytesIO(data))), len(data))


def _read_zstd_member(data: bytes, member: zipfile.ZipInfo) -> bytes:
    """As `zipfile` does for other methods: the packed bytes stand after a local header of 30 bytes, name and extra."""
    start = member.header_offset
    if data[start : start + 4] != b"PK\x03\x04" or member.flag_bits & 0x1:
        raise zipfile.BadZipFile("no plain local header")
    name, extra = struct.unpack("<HH", data[start + 26 : start + 30])
    begin = start + 30 + name + extra
    unpacked = read_zstd(data[begin : begin + member.compress_size])
    if zlib.crc32(unpacked) != member.CRC:
        raise zipfile.BadZipFile(f"bad checksum of {member.filename!r}")
    return unpacked


def too_large(size: int) -> IngestError:
    """The refusal of an input of `size` bytes or more."""
    return IngestError(
        f"larger than {most_bytes() // 1024**2:,} MiB unpacked ({size:,} bytes seen)",
        remedy="split it into smaller files",
    )
