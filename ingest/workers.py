"""Files read and packed by several processes, in the order of the files; started only where they pay for themselves."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import accumulate
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import NamedTuple

from tracejury.ingest.conventions.mapped import Map, maps_in_use, using
from tracejury.ingest.readers import STANDARD_INPUT, read_files, reader_named, units
from tracejury.ingest.ready import Ready, made_ready, read_ahead
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Rejected, Trace

START_BYTES = 16_000_000
"""What one process reads and packs while another starts (0.4 s of imports): less than this is not shared out."""
LARGE_BYTES = 64_000_000
"""Files from here on are read in this process, trace by trace: another would hand over all of them at once."""
_BYTES_AHEAD = 32_000_000  # handed to a worker before it is written: enough for the time that a commit takes
_UNITS_AHEAD = 1_000  # the same for very small files
_UNPACKED = 8  # bytes of JSON in a byte of an archive, about
_ARCHIVES = (".gz", ".zst", ".zip", ".tgz")


class _Unit(NamedTuple):
    """Files that must be read together."""

    names: tuple[str, ...]
    size: int


def ready_from(
    paths: Sequence[Path | str], *, format: str | None, redact: bool, workers: int, stored: Container[str]
) -> Iterator[Ready | Rejected]:
    """Every trace under `paths` as rows. The first files are read here, while the other processes start."""
    here, there = _shared_out(list(_units(paths, format)))
    own = made_ready(read_ahead(_read(here, format)), redact=redact, stored=stored)
    if not there:
        yield from own
        return
    others = _from_processes(there, format, redact, min(workers, _worth(there)))
    with ThreadPoolExecutor(1) as starter:
        first = starter.submit(next, others, None)
        yield from own
        if (item := first.result()) is not None:
            yield item
    yield from others


def _units(paths: Sequence[Path | str], format: str | None) -> Iterator[_Unit | Rejected]:
    for path in paths:
        try:
            if format is not None:
                reader_named(format)
            yield from (_Unit(names, sum(map(_size, names))) for names in units(path))
        except IngestError as error:
            yield rejected(str(path), error)


def _size(name: str) -> int:
    """The bytes that a file holds, about; 0 where it has no size. Standard input is read here, whatever it holds."""
    if name == STANDARD_INPUT:
        return LARGE_BYTES
    try:
        size = os.path.getsize(name)
    except OSError:
        return 0
    return size * _UNPACKED if name.endswith(_ARCHIVES) else size


def _shared_out(work: list[_Unit | Rejected]) -> tuple[list[_Unit | Rejected], list[_Unit | Rejected]]:
    """The first START_BYTES, and the rest where it is worth a process."""
    sizes = [0 if isinstance(unit, Rejected) else unit.size for unit in work]
    first = sum(before <= START_BYTES for before in accumulate(sizes[:-1], initial=0))
    return (work[:first], work[first:]) if _worth(work[first:]) else (work, [])


def _worth(work: Sequence[_Unit | Rejected]) -> int:
    """How many processes are worth their start for this work."""
    shared = [unit.size for unit in work if isinstance(unit, _Unit) and unit.size < LARGE_BYTES]
    return min(len(shared), sum(shared) // max(START_BYTES, 1))


def _read(work: Sequence[_Unit | Rejected], format: str | None) -> Iterator[Trace | Rejected]:
    for unit in work:
        if isinstance(unit, Rejected):
            yield unit
        else:
            yield from read_files(unit.names, format=format)


def _from_processes(
    work: Sequence[_Unit | Rejected], format: str | None, redact: bool, processes: int
) -> Iterator[Ready | Rejected]:
    """What `work` holds, in its order: large files read here, the others by as many processes, a little ahead."""
    with ProcessPoolExecutor(processes, mp_context=process_context()) as pool:
        under_way: deque[_UnderWay] = deque()
        for unit in work:
            under_way.append(_handed_over(pool, unit, format, redact))
            while _is_far_ahead(under_way, processes):
                yield from _result(under_way.popleft(), format, redact)
        while under_way:
            yield from _result(under_way.popleft(), format, redact)


class _UnderWay(NamedTuple):
    """Work handed to a worker; without `future` it is done here, when its turn comes."""

    unit: _Unit | Rejected
    future: Future[list[Ready | Rejected]] | None

    @property
    def size(self) -> int:
        return self.unit.size if isinstance(self.unit, _Unit) and self.future is not None else 0


def _handed_over(pool: ProcessPoolExecutor, unit: _Unit | Rejected, format: str | None, redact: bool) -> _UnderWay:
    if isinstance(unit, Rejected) or unit.size >= LARGE_BYTES:
        return _UnderWay(unit, None)
    try:
        return _UnderWay(unit, pool.submit(read_unit, unit.names, format, redact, maps_in_use()))
    except BrokenProcessPool as error:
        dead: Future[list[Ready | Rejected]] = Future()
        dead.set_exception(error)
        return _UnderWay(unit, dead)


def _is_far_ahead(under_way: Sequence[_UnderWay], processes: int) -> bool:
    """Every worker has work for a while: in bytes, and two files each, however large."""
    handed = [one.size for one in under_way if one.future is not None]
    return len(under_way) > _UNITS_AHEAD or (len(handed) > 2 * processes and sum(handed) > _BYTES_AHEAD * processes)


def _result(done: _UnderWay, format: str | None, redact: bool) -> Iterator[Ready | Rejected]:
    if done.future is None:
        yield from made_ready(read_ahead(_read([done.unit], format)), redact=redact)
        return
    try:
        yield from done.future.result()
    except BrokenProcessPool:
        yield from _died(done.unit)


def _died(unit: _Unit | Rejected) -> Iterator[Rejected]:
    for name in unit.names if isinstance(unit, _Unit) else ():
        reason = "a process that read files died (out of memory?), and this file with it"
        yield Rejected(file=name, place="", reason=reason, remedy="ingest it again with --workers 1")


def read_unit(
    names: Sequence[str], format: str | None, redact: bool, maps: tuple[Map, ...] = ()
) -> list[Ready | Rejected]:
    """What a worker does: all traces of files that belong together, as rows."""
    with using(maps):
        return list(made_ready(read_files(names, format=format), redact=redact))


def process_context() -> BaseContext:
    """Give how processes start: forked from one that imported this module only; without fork each is new."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context
