"""Traces that stand in more than one place of a corpus: told apart, joined or refused exactly as a workspace does.

The files they were read from are ingested, in order, into a workspace that is thrown away; what it then holds of these
traces becomes a partition of its own, and their rows leave the partitions where they stood.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine

from tracejury.ingest.batch import store
from tracejury.ingest.conventions.mapped import using
from tracejury.ingest.corpus.layout import Corpus, Record, open_corpus
from tracejury.ingest.corpus.partition import HELD_BYTES, PartitionWriter, Reading
from tracejury.ingest.corpus.rows import SOURCES
from tracejury.ingest.corpus.sources import Input, Item, Unit, read_again
from tracejury.ingest.store import load, open_engine, read_transaction, schema, trace_ids, write_transaction
from tracejury.ingest.store.search import make_index
from tracejury.ingest.trace import IngestError, Rejected

OTHER_CONTENT_OF_CORPUS = "restore the earlier files and build again, or build another corpus"


@dataclass(frozen=True, kw_only=True)
class Occurrence:
    """One place of a trace: its partition, in the order of reading, and the units that it was read from there.

    `digest` is that of its content, empty where only log records of it stand there.
    """

    trace_id: str
    record: str
    digest: str
    numbers: tuple[int, ...]
    units: tuple[Unit, ...]


@dataclass(frozen=True, kw_only=True)
class JoinJob:
    """Traces to be joined, and the units they were read from, in order. `known` are rejections kept already."""

    url: str
    build: int
    number: int
    trace_ids: tuple[str, ...]
    units: tuple[Unit, ...]
    reading: Reading
    known: frozenset[tuple[str, str, str]]

    @property
    def id(self) -> str:
        """The partition's name: the same traces of the same bytes give the same one."""
        identity = [(one.address, one.digest) for unit in self.units for one in unit]
        return sha256(repr((sorted(self.trace_ids), identity)).encode()).hexdigest()[:16]


def repeated(corpus: Corpus, records: Sequence[Record]) -> dict[str, list[Occurrence]]:
    """Give the traces that stand in several places, each with its places in order; at least one holds spans."""
    trace_ids = _repeated_ids(corpus, records)
    if not trace_ids:
        return {}
    by_id: dict[str, list[Occurrence]] = defaultdict(list)
    for record in records:
        for occurrence in _occurrences(corpus, record, trace_ids):
            by_id[occurrence.trace_id].append(occurrence)
    return {
        trace_id: places
        for trace_id, places in by_id.items()
        if len(places) > 1 and any(place.digest for place in places)
    }


def _repeated_ids(corpus: Corpus, records: Sequence[Record]) -> set[str]:
    """Ids that stand in several places, and a few that do not: they are compared by a number of 8 bytes each."""
    hashes = [_hashes(record.waiting) for record in records]
    for some in corpus.tables("traces", records, columns=["trace_id"]):
        hashes.append(_hashes(some["trace_id"].to_pylist()))
    if not hashes:
        return set()
    values, counts = np.unique(np.concatenate(hashes), return_counts=True)
    often = values[counts > 1]
    if not len(often):
        return set()
    repeated: set[str] = set()
    named = chain(
        (record.waiting for record in records),
        (some["trace_id"].to_pylist() for some in corpus.tables("traces", records, columns=["trace_id"])),
    )
    for ids in named:
        repeated.update(np.array(ids, dtype=object)[np.isin(_hashes(ids), often)])
    return repeated


def _hashes(ids: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return pd.util.hash_array(np.array(ids, dtype=object)).astype(np.uint64)


def _occurrences(corpus: Corpus, record: Record, trace_ids: set[str]) -> Iterator[Occurrence]:
    is_wanted = pc.field("trace_id").isin(pa.array(sorted(trace_ids), pa.string()))
    table = pa.concat_tables(
        corpus.tables("traces", [record], columns=["trace_id", "digest", "units"], condition=is_wanted)
    )
    waiting = [trace_id for trace_id in record.waiting if trace_id in trace_ids]
    if not table.num_rows and not waiting:
        return
    units = units_by_number(corpus, record)
    places = [
        Occurrence(
            trace_id=row["trace_id"], record=record.id, digest=row["digest"], numbers=tuple(row["units"]),
            units=tuple(units[number] for number in row["units"]),
        )
        for row in table.to_pylist()
    ]  # fmt: skip
    places += [
        Occurrence(trace_id=trace_id, record=record.id, digest="", numbers=tuple(units), units=tuple(units.values()))
        for trace_id in waiting
    ]
    yield from sorted(places, key=lambda place: min(place.numbers))


def units_by_number(corpus: Corpus, record: Record) -> dict[int, Unit]:
    """Give the units of a partition as they were read, by their number in it."""
    units: dict[int, list[Input]] = defaultdict(list)
    for row in pa.concat_tables(corpus.tables("sources", [record], columns=SOURCES.names)).to_pylist():
        units[row.pop("unit")].append(Input(**row))
    return {number: tuple(units[number]) for number in sorted(units)}


def copies(repeats: Mapping[str, Sequence[Occurrence]]) -> dict[str, list[str]]:
    """Give, by partition, the traces that are there once more with the very content that an earlier one holds."""
    later: dict[str, list[str]] = defaultdict(list)
    for trace_id, places in repeats.items():
        if _is_copied(places):
            for place in places[1:]:
                later[place.record].append(trace_id)
    return dict(later)


def _is_copied(places: Sequence[Occurrence]) -> bool:
    return len({place.record for place in places}) == len(places) and len({place.digest for place in places}) == 1


def join_jobs(
    corpus: Corpus,
    repeats: Mapping[str, Sequence[Occurrence]],
    *,
    build: int,
    first: int,
    reading: Reading,
) -> list[JoinJob]:
    """Give the work for traces whose places differ: those of the same files together."""
    by_units: dict[tuple[Unit, ...], list[str]] = defaultdict(list)
    for trace_id, places in repeats.items():
        if not _is_copied(places):
            by_units[tuple(dict.fromkeys(unit for place in places for unit in place.units))].append(trace_id)
    known = _rejections(corpus) if by_units else []
    return [
        JoinJob(
            url=corpus.url, build=build, number=number, trace_ids=tuple(ids), units=units, reading=reading,
            known=frozenset(one for one in known if one[0].startswith(tuple(i.address for u in units for i in u))),
        )
        for number, (units, ids) in enumerate(by_units.items(), first)
    ]  # fmt: skip


def _rejections(corpus: Corpus) -> list[tuple[str, str, str]]:
    table = pa.concat_tables(corpus.tables("rejected", columns=["file", "place", "reason"]))
    return [(row["file"], row["place"], row["reason"]) for row in table.to_pylist()]


def join(job: JoinJob) -> Record:
    """Ingest the job's files in order and write what a workspace then holds of its traces. Done again, it is the same.

    Where the files cannot be read again, nothing is written but the rejection of what came later, named.
    """
    corpus = open_corpus(job.url)
    writer = PartitionWriter(corpus, job.id)
    numbers = tuple(range(len(job.units)))
    for number, unit in enumerate(job.units):
        writer.add_sources(number, list(unit))
    with tempfile.TemporaryDirectory(prefix="tracejury-corpus-") as folder, using(job.reading.maps):
        engine = _scratch(Path(folder))
        try:
            report = store(engine, _read_in_order(job), redact=job.reading.redact)
        except IngestError as error:
            report = None
            for trace_id in job.trace_ids:
                writer.add(_other_content(trace_id, job, error), units=numbers)
        if report is not None:
            _write(engine, job, report.rejected, writer, numbers)
        engine.dispose()
    return writer.commit(build=job.build, number=job.number)


def _scratch(folder: Path) -> Engine:
    engine = open_engine(f"sqlite:///{folder / 'scratch.db'}")
    with write_transaction(engine) as connection:
        for table in schema.TRACE_TABLES:
            table.create(connection)
        make_index(connection)
    return engine


def _read_in_order(job: JoinJob) -> Iterator[Item]:
    for unit in job.units:
        yield from read_again(unit, format=job.reading.format, most_bytes=HELD_BYTES)


def _write(
    engine: Engine, job: JoinJob, refused: Sequence[Rejected], writer: PartitionWriter, numbers: tuple[int, ...]
) -> None:
    with read_transaction(engine) as connection:
        there = set(trace_ids(connection))
        for trace_id in job.trace_ids:
            if trace_id in there:
                writer.add(load(connection, trace_id), units=numbers)
    for one in refused:
        if (one.file, one.place, one.reason) not in job.known:
            writer.add(one, units=numbers)


def _other_content(trace_id: str, job: JoinJob, error: IngestError) -> Rejected:
    reason = f"trace {trace_id} is in the corpus already with other content; {error.reason}"
    return Rejected(file=job.units[-1][0].address, place="", reason=reason, remedy=OTHER_CONTENT_OF_CORPUS)
