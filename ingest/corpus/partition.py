"""One partition: units of files read and written as Parquet by one worker, its memory bounded whatever they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256

import pyarrow as pa

from tracejury.ingest.conventions.mapped import Map, using
from tracejury.ingest.corpus.layout import NO_DATE, VERSION, Corpus, Record, open_corpus
from tracejury.ingest.corpus.rows import SCHEMAS, batch, batches, rejected_row
from tracejury.ingest.corpus.sources import Input, Item, Unit, digested, is_changed, read_unit
from tracejury.ingest.ready import redaction, unstorable
from tracejury.ingest.trace import LooseLogs, Rejected

PARTITION_BYTES = 64_000_000
"""Files of about so many bytes together make a partition."""
HELD_BYTES = 80_000_000
"""A larger file is read only where its format is read line by line: parsed whole it takes nine times its size, and some
more where late spans are joined to it. So is nothing that unpacks to more."""
_FLUSH_BYTES = 64_000_000  # Arrow rows held before they are written


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read: the options of `tracejury ingest`, and the maps of attributes in use."""

    format: str | None = None
    redact: bool = False
    maps: tuple[Map, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PartitionJob:
    """What a worker needs to make one partition. `known` holds the digests of files that were read before."""

    url: str
    build: int
    number: int
    units: tuple[Unit, ...]
    reading: Reading
    known: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The partition's name: the same files give the same one."""
        identity = [(one.address, one.size, one.mark) for unit in self.units for one in unit]
        return sha256(repr((VERSION, identity)).encode()).hexdigest()[:16]


def build_partition(job: PartitionJob) -> Record:
    """Read the units of a job into files of the corpus and commit them. Done again, it writes the same files."""
    writer = PartitionWriter(open_corpus(job.url), job.id)
    mask = redaction() if job.reading.redact else None
    with using(job.reading.maps):
        for number, listed in enumerate(job.units):
            unit = digested(listed)
            if not _is_known(unit, job.known):
                _read_unit(writer, number, unit, job.reading, mask)
            changed = is_changed(listed)
            writer.add_sources(number, [_unread(one) if changed else one for one in unit])
    return writer.commit(build=job.build, number=job.number)


def _read_unit(
    writer: PartitionWriter, number: int, unit: Unit, reading: Reading, mask: Callable[[Item], Item] | None
) -> None:
    for item in read_unit(unit, format=reading.format, most_bytes=HELD_BYTES):
        writer.add(item if mask is None else mask(item), units=(number,))


def _is_known(unit: Unit, known: Mapping[str, frozenset[str]]) -> bool:
    return all(one.digest and one.digest in known.get(one.address, ()) for one in unit)


def _unread(one: Input) -> Input:
    """A file that changed while it was read counts as not read: the next build reads it."""
    return Input(address=one.address, size=one.size, mark="")


class PartitionWriter:
    """Collects rows by table and day, and writes them whenever they are many."""

    def __init__(self, corpus: Corpus, id_: str) -> None:
        self._corpus, self._id = corpus, id_
        self._held: dict[tuple[str, str], list[pa.RecordBatch]] = {}
        self._bytes = self._flushes = 0
        self._files: dict[str, list[str]] = {table: [] for table in SCHEMAS}
        self._rows: Counter[str] = Counter(dict.fromkeys(SCHEMAS, 0))
        self._waiting: dict[str, None] = {}

    def add(self, item: Item, *, units: tuple[int, ...]) -> None:
        """Add a trace, or an input that was rejected; a trace that no column holds is rejected too."""
        if isinstance(item, LooseLogs):
            self._waiting.update(dict.fromkeys(trace_id for trace_id, _ in item.requests))
            return
        new_rows = _rows_of(item, units)
        if isinstance(new_rows, Rejected):
            self._hold("rejected", NO_DATE, batch([rejected_row(new_rows)], SCHEMAS["rejected"]))
            return
        date = _date(new_rows["traces"]["start_time"][0].value)
        for table, rows in new_rows.items():
            self._hold(table, date, rows)
        if self._bytes >= _FLUSH_BYTES:  # between two traces: the rows of one stand in files of the same name
            self._flush()

    def add_sources(self, number: int, inputs: list[Input]) -> None:
        """Note the files of a unit."""
        rows = [
            {"unit": number, "address": one.address, "size": one.size, "mark": one.mark, "digest": one.digest}
            for one in inputs
        ]
        self._hold("sources", NO_DATE, batch(rows, SCHEMAS["sources"]))

    def commit(self, *, build: int, number: int) -> Record:
        """Write what is held, and the record that makes the partition part of the corpus."""
        self._flush()
        record = Record(
            id=self._id, build=build, number=number, files=self._files, rows=dict(self._rows), waiting=[*self._waiting]
        )
        self._corpus.commit(record)
        return record

    def _hold(self, table: str, date: str, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self._held.setdefault((table, date), []).append(rows)
            self._rows[table] += rows.num_rows
            self._bytes += rows.nbytes

    def _flush(self) -> None:
        for (table, date), rows in self._held.items():
            file = f"{table}/date={date}/source={self._id}/part-0-{self._flushes}.parquet"
            self._corpus.write_table(file, pa.Table.from_batches(rows, schema=SCHEMAS[table]))
            self._files[table].append(file)
        self._held, self._bytes, self._flushes = {}, 0, self._flushes + 1


def _rows_of(item: Item, units: tuple[int, ...]) -> dict[str, pa.RecordBatch] | Rejected:
    if isinstance(item, Rejected):
        return item
    try:
        return batches(item, units)
    except Exception as error:
        return unstorable(item.source.file, item.source.place, error)


def _date(start: int | None) -> str:
    """The day of microseconds since 1970, UTC."""
    if start is None:
        return NO_DATE
    try:
        return datetime.fromtimestamp(start / 1e6, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return NO_DATE
