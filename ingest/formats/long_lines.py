"""OpenTelemetry's JSON lines from a file too long to be held: indexed by trace, then read some traces at a time."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field

from tracejury.ingest.bounded import too_much_at_once
from tracejury.ingest.formats.otel import UNNAMED_LOGS, IdReader, IdWriting, Intake, no_span, split
from tracejury.ingest.long_file import LongFile
from tracejury.ingest.parse import parse_document
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, Trace

Take = Callable[[Json, Intake, str], None]
AT_ONCE = 24_000_000
"""Bytes of the file whose spans are held together: its traces one by one would read a collector's batches for each."""


@dataclass(slots=True)
class _Index(Intake):
    """Where the spans of each trace stand, and how the file writes its ids; it holds no span."""

    trace_ids: IdWriting = field(default_factory=lambda: IdWriting(16))
    span_ids: IdWriting = field(default_factory=lambda: IdWriting(8))
    lines: array[int] = field(default_factory=lambda: array("q"))  # of each: start, size, spans before it
    places: dict[str, array[int]] = field(default_factory=dict)  # of a trace as written: its lines
    bytes: Counter[str] = field(default_factory=Counter)  # of a trace as written: its share of the file, about
    with_spans: Counter[str] = field(default_factory=Counter)  # spans of a trace as written, in the order of the first
    _line: Counter[str] = field(default_factory=Counter)

    def wants_span(self, trace_id: str, span_id: str, parent_span_id: str | None) -> bool:
        self.number += 1
        self.trace_ids.add(trace_id)
        self.span_ids.add(span_id, parent_span_id or "")
        self.with_spans[trace_id] += 1
        self._line[trace_id] += 1
        return False

    def wants_log(self, trace_id: str, span_id: str) -> bool:
        self.trace_ids.add(trace_id)
        self.span_ids.add(span_id)
        self._line[trace_id] += 1
        return False

    def add_line(self, start: int, size: int, spans_before: int) -> None:
        """Note where the line that was taken last stands."""
        items = self._line.total()
        for trace_id, count in self._line.items():
            self.places.setdefault(trace_id, array("q")).append(len(self.lines))
            self.bytes[trace_id] += size * count // items
        self.lines.extend((start, size, spans_before))
        self._line.clear()


@dataclass(slots=True)
class _Some(Intake):
    """The spans and log records of some traces, by their ids as the file writes them."""

    wanted: Set[str] = frozenset()

    def wants_span(self, trace_id: str, span_id: str, parent_span_id: str | None) -> bool:
        self.number += 1
        return trace_id in self.wanted

    def wants_log(self, trace_id: str, span_id: str) -> bool:
        return trace_id in self.wanted


def long_traces(source: Source, take: Take, *, format: str) -> Iterator[Trace | Rejected]:
    """The traces of a file of JSON lines, the same that reading it whole gives; the file is read twice.

    `take` gives the spans and log records of a document to what it is handed. Memory holds the index, and AT_ONCE
    bytes of the file (or one trace, if that is more) as spans.
    """
    file = LongFile(source.path, source.size)
    index = _Index()
    bad = yield from _indexed(file, source.file, take, index)
    if not index.with_spans and not any(index.places):
        if index.places or not bad:
            raise no_span(index.warnings, holds_logs=bool(index.places))
        return
    trace_of, span_of = index.trace_ids.reader(), index.span_ids.reader()
    writings, loose = _writings(index, trace_of)
    if "" in index.places and len(writings) > 1:
        index.warnings.append(UNNAMED_LOGS)
    for trace_id, error in _refused(index, writings).items():
        del writings[trace_id]
        yield rejected(source.file, error)
    for group in (*_some_at_once(index, writings), *([loose] if loose else [])):
        some = _taken(file, take, index, group)
        some.warnings = index.warnings
        yield from split(some, trace_of, span_of, format=format, source=source)


def _indexed(file: LongFile, name: str, take: Take, index: _Index) -> Generator[Rejected, None, int]:
    """Fill the index; yields and counts the lines that cannot be read."""
    bad = 0
    for line in file.lines():
        before = index.number
        try:
            document = parse_document(line.data.removesuffix(b"\n"), f"line {line.number}")
            index.warnings.extend(document.warnings)
            take(document.value, index, document.place)
        except IngestError as error:
            bad += 1
            yield rejected(name, error)
        index.add_line(line.start, len(line.data), before)
    return bad


def _writings(index: _Index, trace_of: IdReader) -> tuple[dict[str, list[str]], set[str]]:
    """The ids of traces with spans, in the order of the first, each in every writing; those with log records alone."""
    writings: dict[str, list[str]] = {trace_of(written): [] for written in index.with_spans}
    loose: set[str] = set()
    for written in index.places:
        of = trace_of(written) if written or len(writings) != 1 else next(iter(writings))
        if of in writings:
            writings[of].append(written)
        elif written:
            loose.add(written)
    return writings, loose


def _refused(index: _Index, writings: Mapping[str, Sequence[str]]) -> dict[str, IngestError]:
    """The traces that cannot be held whole here, each with why."""
    refused: dict[str, IngestError] = {}
    for trace_id, written in writings.items():
        size, spans = (sum(counts[one] for one in written) for counts in (index.bytes, index.with_spans))
        if (error := too_much_at_once(f"trace {trace_id}", spans=spans, size=size)) is not None:
            refused[trace_id] = error
    return refused


def _some_at_once(index: _Index, writings: Mapping[str, Sequence[str]]) -> Iterator[set[str]]:
    """Traces in their order, as many at once as fit."""
    some: set[str] = set()
    size = 0
    for written_ids in writings.values():
        size += sum(index.bytes[one] for one in written_ids)
        if some and size > AT_ONCE:
            yield some
            some, size = set(), sum(index.bytes[one] for one in written_ids)
        some.update(written_ids)
    if some:
        yield some


def _taken(file: LongFile, take: Take, index: _Index, ids: Set[str]) -> Intake:
    """The spans and log records of these traces, read from the lines that hold some of them."""
    some = _Some(wanted=ids)
    at = sorted({at for one in ids for at in index.places[one]})
    places = [(index.lines[n], index.lines[n + 1]) for n in at]
    for n, data in zip(at, file.pieces(places), strict=True):
        some.number = index.lines[n + 2]
        with suppress(IngestError):  # told when the line was indexed; what it held before that place is taken
            take(parse_document(data.removesuffix(b"\n")).value, some, "")
    return some
