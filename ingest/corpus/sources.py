"""The inputs of a corpus: files at addresses of fsspec, in the units that must be read together."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

from tracejury.ingest.bounded import at_most
from tracejury.ingest.corpus.layout import file_system, reached
from tracejury.ingest.long_file import LONG_BYTES
from tracejury.ingest.readers import is_read_by_lines, read_files, unit_names, units
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Rejected, Trace

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_BLOCK = 8 * 1024**2
Item = Trace | Rejected


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """A file that traces are read from. `mark` is the file system's own sign of its state (time, ETag).

    `digest` is the SHA-256 of its first `size` bytes, 64 hex digits; empty until a worker read it.
    """

    address: str
    size: int
    mark: str
    digest: str = ""


Unit = tuple[Input, ...]
"""Files that must be read together."""


def units_of(source: str) -> Iterator[Unit]:
    """Give the units under a source: a file, a folder, a pattern, or an address of a file store.

    Raises `IngestError` where nothing is there.
    """
    if "://" not in source:
        yield from (tuple(map(_local, names)) for names in units(source))
        return
    fs, path = file_system(source)
    with reached(source):
        names = sorted(fs.glob(path)) if any(sign in path for sign in "*?[") else sorted(fs.find(path))
    if not names:
        raise IngestError(f"nothing is at {source!r}", remedy="check the address and your rights")
    known = {str(fs.unstrip_protocol(name)): name for name in names}
    for unit in unit_names(list(known)):
        yield tuple(Input(address=name, size=fs.size(known[name]), mark=_mark(fs, known[name])) for name in unit)


def _local(name: str) -> Input:
    try:
        state = os.stat(name)
    except OSError:
        return Input(address=name, size=0, mark="")
    return Input(address=name, size=state.st_size, mark=str(state.st_mtime_ns))


def _mark(fs: AbstractFileSystem, path: str) -> str:
    try:
        return str(fs.ukey(path))
    except (NotImplementedError, OSError):
        return ""


def digested(unit: Unit) -> Unit:
    """Give the unit with the digest of every file that can be read."""
    return tuple(replace(one, digest=_digest(one)) for one in unit)


def _digest(one: Input) -> str:
    state, left = sha256(), one.size
    try:
        with _opened(one.address) as file:
            while left and (block := file.read(min(_BLOCK, left))):
                state.update(block)
                left -= len(block)
    except OSError:
        return ""
    return state.hexdigest() if not left else ""


def _opened(address: str) -> BinaryIO:
    if "://" not in address:
        return open(address, "rb")
    fs, path = file_system(address)
    opened: BinaryIO = fs.open(path, "rb")
    return opened


def is_changed(unit: Unit) -> bool:
    """Whether a file of the unit is another now than when it was listed."""
    return any("://" not in one.address and _local(one.address).mark != one.mark for one in unit)


def read_unit(unit: Unit, *, format: str | None, most_bytes: int) -> Iterator[Item]:
    """Give every trace of a unit, as a workspace reads the same files.

    A file of more than `most_bytes` that its format cannot read line by line is rejected: it would be held whole. So
    is what unpacks to more.
    """
    with _at_hand(unit) as (names, named):
        large = [name for name in names if _is_too_large(name, most_bytes)]
        if large:
            yield from (named(rejected(name, _too_large(most_bytes))) for name in large)
            return
        with at_most(most_bytes):
            yield from map(named, read_files(names, format=format))


def read_again(unit: Unit, *, format: str | None, most_bytes: int) -> Iterator[Item]:
    """Give every trace of the very bytes that were read before: those of a file that grew are its first bytes.

    Raises `IngestError` where a file is gone, or holds other bytes now.
    """
    for one in unit:
        if not one.digest or _digest(one) != one.digest:
            raise IngestError(f"{one.address} changed since it was read, or was deleted")
    yield from read_unit(unit, format=format, most_bytes=most_bytes)


def _is_too_large(name: str, most_bytes: int) -> bool:
    try:
        size = os.path.getsize(name)
    except OSError:
        return False
    return size > most_bytes and not (size >= LONG_BYTES and is_read_by_lines(name))


def _too_large(most_bytes: int) -> IngestError:
    reason = f"a file of more than {most_bytes // 1_000_000} MB that cannot be read line by line"
    return IngestError(reason, remedy="split it, write it as JSON lines, or ingest it into a workspace")


@contextmanager
def _at_hand(unit: Unit) -> Iterator[tuple[list[str], Callable[[Item], Item]]]:
    """The unit's files as local paths, and what names their addresses in what was read of them."""
    if all("://" not in one.address and not (one.digest and _has_grown(one)) for one in unit):
        yield [one.address for one in unit], lambda item: item
        return
    with tempfile.TemporaryDirectory(prefix="tracejury-corpus-") as folder:
        addresses = {_fetched(one, folder): one.address for one in unit}

        def named(item: Item) -> Item:
            file = item.file if isinstance(item, Rejected) else item.source.file
            address = _address(file, addresses)
            if isinstance(item, Rejected):
                return replace(item, file=address)
            return replace(item, source=replace(item.source, file=address))

        yield list(addresses), named


def _has_grown(one: Input) -> bool:
    """Whether more was written to a local file since it was listed."""
    return os.path.isfile(one.address) and os.path.getsize(one.address) > one.size


def _fetched(one: Input, folder: str) -> str:
    """Load a file below `folder` under the same path: some formats read run and repeat from folders' names.

    Of a file that grew, only the bytes that it had when it was listed.
    """
    _, path = file_system(one.address)
    local = os.path.join(folder, *(part for part in path.split("/") if part not in ("", ".", "..")))
    os.makedirs(os.path.dirname(local), exist_ok=True)
    with _opened(one.address) as source, open(local, "wb") as copy:
        left = one.size
        while left and (block := source.read(min(_BLOCK, left))):
            left -= copy.write(block)
    return local


def _address(file: str, addresses: Mapping[str, str]) -> str:
    """The address in the place of the local name, members of archives included."""
    for local, address in addresses.items():
        if file == local or file.startswith(f"{local}/"):
            return address + file[len(local) :]
        inner = local.removesuffix(".gz").removesuffix(".zst")
        if file == inner:
            return address.removesuffix(".gz").removesuffix(".zst")
    return file


def grouped(every: Iterable[Unit], most_bytes: int) -> Iterator[tuple[Unit, ...]]:
    """Give the units in partitions, in their order: each of about `most_bytes`, or one unit that is larger."""
    some: list[Unit] = []
    size = 0
    for unit in every:
        weight = sum(one.size for one in unit)
        if some and size + weight > most_bytes:
            yield tuple(some)
            some, size = [], 0
        some.append(unit)
        size += weight
    if some:
        yield tuple(some)


def inputs_of(every: Sequence[Unit]) -> list[Input]:
    """Give every file of the units."""
    return list(chain.from_iterable(every))
