"""A corpus built from sources: what is new is read by workers, and traces of several files become one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from tracejury.ingest.corpus.engine import Workers
from tracejury.ingest.corpus.joining import Occurrence, copies, join, join_jobs, repeated
from tracejury.ingest.corpus.layout import Corpus, Record, open_corpus, without_traces
from tracejury.ingest.corpus.partition import PARTITION_BYTES, PartitionJob, Reading, build_partition
from tracejury.ingest.corpus.rows import SCHEMAS
from tracejury.ingest.corpus.sources import Input, Unit, grouped, units_of
from tracejury.ingest.readers import reader_named
from tracejury.ingest.trace import IngestError, Json

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Built:
    """What a build did: partitions made, input files known before, traces joined or dropped as copies, rows now."""

    partitions: int
    known_files: int
    joined: int
    copies: int
    rows: dict[str, int] = field(default_factory=dict)
    rejected: int = 0
    """Inputs and traces that were rejected by this build."""


def build(
    sources: Sequence[str],
    url: str,
    *,
    workers: Workers | None = None,
    reading: Reading | None = None,
    progress: Progress | None = None,
) -> Built:
    """Read every source into the corpus at `url`; files that it knows are not read again.

    Cut off at any point and started again, it ends with the same rows. `progress` gets partitions done and in all.
    Raises `IngestError` where a source or the address cannot be opened, or the corpus was built with other options.
    """
    workers, reading = workers or Workers(), reading or Reading()
    if reading.format is not None:
        reader_named(reading.format)
    corpus = open_corpus(url)
    listed = list(_units(sources))
    corpus.keep_settings(reading_settings(reading))
    with corpus.held_for("build"):
        records = corpus.records()
        number = max((record.build for record in records), default=0) + 1
        known = _known(corpus, records)
        jobs = _jobs(listed, corpus, number, known, reading)
        partitions = _all(workers, jobs, progress)
        joined, dropped, more = _one_of_each(corpus, workers, number, len(jobs), reading)
        corpus.remove_unnamed(SCHEMAS)
    return Built(
        partitions=len(partitions) + len(more),
        known_files=sum(map(len, known.values())),
        joined=joined,
        copies=dropped,
        rows=dict(sum((Counter(record.rows) for record in corpus.records()), Counter())),
        rejected=sum(record.rows.get("rejected", 0) for record in (*partitions, *more)),
    )


def reading_settings(reading: Reading) -> dict[str, Json]:
    return {
        "format": reading.format,
        "redact": reading.redact,
        "maps": [repr(asdict(one)) for one in reading.maps],
    }


def _known(corpus: Corpus, records: Sequence[Record]) -> dict[str, set[Input]]:
    """The files that were read, by address."""
    known: dict[str, set[Input]] = defaultdict(set)
    for some in corpus.tables("sources", records, columns=["address", "size", "mark", "digest"]):
        for row in some.to_pylist():
            known[row["address"]].add(Input(**row))
    return known


def _jobs(
    listed: Sequence[Unit], corpus: Corpus, build: int, known: dict[str, set[Input]], reading: Reading
) -> list[PartitionJob]:
    states = {(one.address, one.size, one.mark) for some in known.values() for one in some if one.mark}
    new = (unit for unit in listed if any((i.address, i.size, i.mark) not in states for i in unit))
    return [
        PartitionJob(
            url=corpus.url, build=build, number=number, units=units, reading=reading,
            known=_digests(units, known),
        )
        for number, units in enumerate(grouped(new, PARTITION_BYTES))
    ]  # fmt: skip


def _digests(units: Sequence[Unit], known: Mapping[str, set[Input]]) -> dict[str, frozenset[str]]:
    there = [one.address for unit in units for one in unit if one.address in known]
    return {address: frozenset(one.digest for one in known[address]) for address in there}


def _units(sources: Iterable[str]) -> Iterator[Unit]:
    """The units of all sources, a file that two of them name once."""
    seen: set[str] = set()
    for source in sources:
        for unit in units_of(source):
            if not all(one.address in seen for one in unit):
                seen.update(one.address for one in unit)
                yield unit


def _all(workers: Workers, jobs: Sequence[PartitionJob], progress: Progress | None) -> list[Record]:
    results = []
    for record in workers.each(build_partition, jobs):
        results.append(record)
        if progress is not None:
            progress(len(results), len(jobs))
    return results


def _one_of_each(
    corpus: Corpus, workers: Workers, build: int, first: int, reading: Reading
) -> tuple[int, int, list[Record]]:
    """Leave one of every trace: how many were joined, how many were copies, and the partitions of those joined."""
    records = corpus.records()
    repeats = repeated(corpus, records)
    later = copies(repeats)
    jobs = join_jobs(corpus, repeats, build=build, first=first, reading=reading)
    results = list(workers.each(join, jobs))
    gone = defaultdict(set, {record: set(ids) for record, ids in later.items()})
    written = {record.id: record for record in results}
    for job in jobs:
        for trace_id in job.trace_ids:
            for record_id in _left(repeats[trace_id], written[job.id]):
                gone[record_id].add(trace_id)
    for record in records:
        if gone[record.id]:
            without_traces(corpus, record, sorted(gone[record.id]))
    return sum(len(job.trace_ids) for job in jobs), sum(map(len, later.values())), results


def _left(places: Sequence[Occurrence], written: Record) -> set[str]:
    """The partitions that a trace leaves: all but the one written for it, or but the first where it was refused.

    Raises `IngestError` where that first partition holds it twice: its files changed under this very build.
    """
    if written.rows["traces"]:
        return {place.record for place in places} - {written.id}
    first = next(place for place in places if place.digest)
    others = [place for place in places if place is not first]
    if first.record in {place.record for place in others if place.digest}:
        reason = f"trace {first.trace_id}: {first.units[0][0].address} changed while it was read"
        raise IngestError(reason, remedy="build again when nothing writes to it")
    return {place.record for place in others} - {first.record}
