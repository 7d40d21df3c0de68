"""A file of JSON lines too long to be held in memory: read line by line, and in blocks where its bytes are kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, NamedTuple

from tracejury.ingest.bounded import most_bytes
from tracejury.ingest.parse import first_line_is_cut_off, has_lines, is_utf8
from tracejury.ingest.trace import IngestError

LONG_BYTES = 64_000_000
"""Files from here on are not held whole where their format can be read line by line."""
BLOCK = 8 * 1024**2
_LONGEST_LINE = 256 * 1024**2
_HEAD_LINE = 32 * 1024**2


class Line(NamedTuple):
    """One line: its number from 1, where it stands, and its bytes."""

    number: int
    start: int
    data: bytes


@dataclass(frozen=True, slots=True)
class LongFile:
    """The first `size` bytes of a file: what a collector appends while it is read is left for the next time."""

    path: str
    size: int

    def lines(self) -> Iterator[Line]:
        """Every line that is not blank. Raises `IngestError` at one that is too long."""
        longest = min(_LONGEST_LINE, most_bytes())
        with self._opened() as file:
            start = number = 0
            while start < self.size:
                data = file.readline(min(longest, self.size - start))
                number += 1
                if len(data) >= longest:
                    raise _too_long(number, longest)
                if not data:
                    raise _shortened(start)
                if data.strip():
                    yield Line(number, start, data)
                start += len(data)

    def pieces(self, places: list[tuple[int, int]]) -> Iterator[bytes]:
        """The bytes at these places (start and size), in order."""
        with self._opened() as file:
            for start, size in places:
                file.seek(start)
                data = file.read(size)
                if len(data) != size:
                    raise _shortened(start)
                yield data

    def blocks(self) -> Iterator[bytes]:
        """All bytes, BLOCK at a time."""
        return self.pieces([(at, min(BLOCK, self.size - at)) for at in range(0, self.size, BLOCK)])

    def _opened(self) -> IO[bytes]:
        try:
            return open(self.path, "rb")
        except OSError as error:
            raise IngestError(f"cannot be opened: {error.strerror}", remedy="check the file and its rights") from error


def long_file(path: str) -> LongFile | None:
    """The file at `path` where it is long and holds JSON lines in UTF-8; None when it is to be read whole."""
    try:
        if not os.path.isfile(path) or (size := os.path.getsize(path)) < LONG_BYTES:
            return None
        with open(path, "rb") as file:
            first, second, third = _first_lines(file)
    except OSError:
        return None
    head = first + second
    is_cut_off = first_line_is_cut_off(head + third) and third.startswith(b"{")
    return LongFile(path, size) if is_utf8(head) and (has_lines(head) or is_cut_off) else None


def _first_lines(file: IO[bytes]) -> list[bytes]:
    """The first three lines that are not blank; of one that is too long its beginning."""
    lines: list[bytes] = []
    while len(lines) < 3 and (line := file.readline(_HEAD_LINE)):
        lines += [line] if line.strip() else []
    return [*lines, b"", b"", b""][:3]


def _too_long(number: int, longest: int) -> IngestError:
    reason = f"a line of more than {longest // 1024**2} MiB"
    return IngestError(reason, place=f"line {number}", remedy="write one request per line, as the collector does")


def _shortened(place: int) -> IngestError:
    remedy = "ingest it again when no program writes to it"
    return IngestError("the file became shorter while it was read", place=f"byte {place:,}", remedy=remedy)
