"""From a path to traces: opens files, folders, archives and standard input, and finds the reader by content."""

from __future__ import annotations

import glob
import io
import logging
import os
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, cast

from tracejury.ingest.bounded import (
    DAMAGE,
    Allowance,
    count_member,
    most_bytes,
    read_bzip2,
    read_gzip,
    read_member,
    read_xz,
    read_zstd,
    too_large,
)
from tracejury.ingest.damage import mark_damaged
from tracejury.ingest.formats import (
    aider,
    atif,
    claude_code,
    codex,
    conversation,
    crewai_log,
    gaia2,
    inspect_log,
    jaeger,
    joined,
    langfuse,
    langsmith,
    maseval,
    mlflow,
    openai_agents,
    openhands,
    opik,
    otel_js,
    otel_sdk,
    otlp,
    phoenix,
    span_table,
    swe_agent,
    trail,
    trulens,
    weave,
    workflow,
    zipkin,
)
from tracejury.ingest.formats.otel import Intake, together
from tracejury.ingest.formats.otel import traces as span_traces
from tracejury.ingest.formats.rows import frame_error, is_frame
from tracejury.ingest.long_file import long_file
from tracejury.ingest.no_traces import known_file
from tracejury.ingest.parse import decoded_again, parse_json, to_utf8
from tracejury.ingest.printed import printed
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Rejected, Source, Trace

STANDARD_INPUT = "-"
HEAD_BYTES = (4_096, 65_536)
MAX_NESTING = 3
"""Archives in archives: so many levels are opened."""

_FRAME = re.compile(rb'\s*\{\s*"[^"]{1,200}"\s*:\s*[\[{]')
"""How a frame that is no list of rows begins."""
_SYSTEM_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
_log = logging.getLogger(__name__)


class Format(Protocol):
    """What a module of `ingest/formats` offers.

    It may add `bundles(names) -> Sequence[tuple[str, ...]]` (which files of a folder or archive are one input;
    a file may serve several) with `read_bundle(sources, beside) -> Iterator[Trace | Rejected]`, which gets
    those of them that `sniff` knows (the first among them) and the names of all files of the input,
    and `READS_ARCHIVES = True` where a zip or
    the like is itself one input of this format; `read_long(source)` reads a long file of JSON lines from its path,
    without holding it; `MERGES = True` says that parts of a trace may stand in several of its files, which
    `collect(source, found)` or `read_bundle` then reads together; `complete(stored, new)` joins the files of a trace
    that is stored already with more files of it.
    """

    NAME: str

    def sniff(self, sample: FileSample) -> bool: ...

    def read(self, source: Source) -> Iterator[Trace | Rejected]: ...


class SpanFormat(Format, Protocol):
    """A format of spans that need not be a trace's only file: `collect` adds what a file holds."""

    def collect(self, source: Source, intake: Intake) -> Generator[Rejected, None, int]: ...


class BundleFormat(Format, Protocol):
    """A format whose traces may stand in several files."""

    def bundles(self, names: Sequence[str]) -> Sequence[tuple[str, ...]]: ...

    def read_bundle(self, sources: tuple[Source, ...], beside: Sequence[str]) -> Iterator[Trace | Rejected]: ...


READERS: tuple[Format, ...] = cast(
    "tuple[Format, ...]",
    (
        trail, maseval, gaia2, inspect_log, langfuse, langsmith, mlflow, weave, trulens, phoenix, openai_agents,
        otlp, otel_sdk, jaeger, zipkin, otel_js, opik, claude_code, codex, atif,
        openhands, swe_agent, aider, crewai_log, workflow, span_table, conversation,
    ),
)  # fmt: skip
"""Every format, the more particular first."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One input not yet read: its name as a person would write it, how to get its bytes, where it stands as a file."""

    name: str
    load: Callable[[], bytes]
    depth: int = field(default=0, compare=False)
    path: str = field(default="", compare=False)
    allowance: Allowance | None = field(default=None, compare=False)
    """How much the archive that it stands in may unpack to, with all archives in it."""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """What was left out of its bytes when they were unpacked."""

    def source(self, data: bytes) -> Source:
        """Its bytes as a format reads them."""
        return Source(file=self.name, data=data, warnings=self.warnings)


def read_traces(path: Path | str, *, format: str | None = None, merge: bool = False) -> Iterator[Trace | Rejected]:
    """Every trace under `path`: a file, a folder, a glob pattern, an archive, or `-` for standard input.

    Files are recognised by content unless `format` names a reader. What cannot be read is yielded as
    `Rejected` and the rest goes on. Memory holds one input file at a time; with `merge`, spans of one trace
    id that stand in several files of an OpenTelemetry format become one trace, and all those files are held.
    Raises `IngestError` for an unknown `format` and for a path where nothing is.
    """
    if merge:
        yield from read_together([path], format=format)
        return
    readers = READERS if format is None else (reader_named(format),)
    yield from _read_entries(_entries(path), readers, forced=format is not None)


def read_together(paths: Iterable[Path | str], *, format: str | None = None) -> Iterator[Trace | Rejected]:
    """As `read_traces` with `merge`, over all files of several paths; a path where nothing is is rejected."""
    readers = READERS if format is None else (reader_named(format),)
    entries: list[Entry] = []
    for path in paths:
        try:
            entries.extend(_entries(path))
        except IngestError as error:
            yield rejected(str(path), error)
    left = yield from _read_merged(entries, readers)
    yield from _read_entries(left, readers, forced=format is not None)


def read_bytes(data: bytes, *, file: str, format: str | None = None) -> Iterator[Trace | Rejected]:
    """Every trace of bytes at hand (an upload, a request), named `file` in messages; archives are opened too."""
    readers = READERS if format is None else (reader_named(format),)
    yield from _read_entries(iter([Entry(file, lambda: data)]), readers, forced=format is not None)


def read_inputs(inputs: Mapping[str, bytes]) -> Iterator[Trace | Rejected]:
    """Every trace of several named inputs at hand (uploads), files that belong together read together."""
    yield from _read_entries((Entry(name, lambda d=data: d) for name, data in inputs.items()), READERS, forced=False)  # type: ignore[misc]


def units(path: Path | str) -> Iterator[tuple[str, ...]]:
    """The files under `path` in groups that must be read together (most alone): what workers can share out.

    Raises `IngestError` for a path where nothing is.
    """
    return unit_names([entry.name for entry in _entries(path)])


def unit_names(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Give the files of these names in groups that must be read together, as `units` does; none is opened."""
    unit_of: dict[str, list[str]] = {}
    for reader in READERS:
        if hasattr(reader, "bundles"):
            for group in cast("BundleFormat", reader).bundles([name for name in names if name not in unit_of]):
                _join(group, unit_of)
    seen: set[str] = set()
    for name in names:
        if name not in seen:
            unit = unit_of.get(name, [name])
            seen.update(unit)
            yield tuple(unit)


def _join(group: Sequence[str], unit_of: dict[str, list[str]]) -> None:
    """Put the files of a group into one unit, with all units that share a file with it."""
    unit = list(dict.fromkeys(name for first in group for name in unit_of.get(first, [first])))
    for name in unit:
        unit_of[name] = unit


def read_files(names: Sequence[str], *, format: str | None = None) -> Iterator[Trace | Rejected]:
    """Every trace of one of the groups of `units`; as `read_traces`."""
    readers = READERS if format is None else (reader_named(format),)
    yield from _read_entries(map(_file, names), readers, forced=format is not None)


def is_read_by_lines(name: str) -> bool:
    """Whether the file at `name` is long and its format reads it line by line, so that it is not held."""
    return _long_source(_file(name), READERS) is not None


def open_inputs(path: Path | str) -> Iterator[tuple[str, bytes | IngestError]]:
    """Every file under `path` as `read_traces` finds it, opened but not read as a trace: its name, and its bytes.

    An error stands in the place of bytes that cannot be had. Raises `IngestError` for a path where nothing is.
    """
    stack = list(_entries(path))[::-1]
    while stack:
        entry = stack.pop()
        try:
            data = entry.load()
            opener = _opener(data)
            if opener is None:
                yield entry.name, data
            else:
                stack.extend(list(_unpack(entry, data, opener))[::-1])
        except IngestError as error:
            yield entry.name, error


def reader_named(name: str) -> Format:
    """The reader called `name`. Raises `IngestError` naming those there are."""
    for reader in (*READERS, cast("Format", joined)):
        if name == reader.NAME:
            return reader
    known = ", ".join(reader.NAME for reader in READERS)
    raise IngestError(f"no trace format is called {name!r}", remedy=f"choose one of: {known}")


def reads_long(name: str) -> bool:
    """Whether the format called `name` can read a file that is not held. It then takes nothing from the file's name."""
    return hasattr(reader_named(name), "read_long")


def completed(format: str, stored: Source, new: Source) -> Trace | None:
    """The trace that two sources of one execution give together; None where the new one adds nothing.

    Raises `IngestError` where the format joins no files of an execution, or these are not of one.
    """
    complete = getattr(reader_named(format), "complete", None)
    if complete is None:
        raise IngestError("files of this format cannot be joined")
    return cast("Callable[[Source, Source], Trace | None]", complete)(stored, new)


def recognise(data: bytes, file: str = "", readers: Sequence[Format] | None = None) -> Format | None:
    """The first reader that knows these bytes: by the first 4 KiB, 64 KiB, or all of them."""
    candidates = READERS if readers is None else readers
    for size in (*HEAD_BYTES, len(data)):
        text, _ = to_utf8(data[:size])
        sample = FileSample(file, text, size >= len(data))
        for reader in candidates:
            if _knows(reader, sample):
                return reader
        if sample.whole:
            return None
    return None


def _knows(reader: Format, sample: FileSample) -> bool:
    """Whether a reader knows a file; one that fails at looking does not, and the batch goes on."""
    try:
        return reader.sniff(sample)
    except Exception:
        _log.debug("%s failed at recognising %s", reader.NAME, sample.file, exc_info=True)
        return False


def _read_merged(
    entries: Iterable[Entry], readers: Sequence[Format]
) -> Generator[Trace | Rejected, None, Iterator[Entry]]:
    """The traces of all files that a merging reader knows, read together; gives back the entries that are left."""
    left: list[Entry] = []
    sources: dict[str, list[Source]] = {}
    for entry in entries:
        try:
            data = entry.load()
            opener = _opener(data)
            if opener is not None:
                left.extend((yield from _read_merged(_unpack(entry, data, opener), readers)))
                continue
        except IngestError:
            left.append(entry)
            continue
        reader = recognise(data, entry.name, readers)
        if reader is not None and getattr(reader, "MERGES", False):
            sources.setdefault(reader.NAME, []).append(entry.source(data))
        else:
            left.append(entry)
    spans = {name: sources.pop(name) for name in list(sources) if name in joined.FORMATS}
    if spans:
        every = tuple(source for some in spans.values() for source in some)
        yield from _guarded(every[0].file, partial(_read_joined, spans, every))
    for name, some in sources.items():
        yield from _guarded(some[0].file, partial(_read_together, reader_named(name), tuple(some)))
    return iter(left)


def _read_joined(spans: Mapping[str, Sequence[Source]], every: tuple[Source, ...]) -> Iterator[Trace | Rejected]:
    """The traces of files in OpenTelemetry's forms, whatever the form of each."""
    intake, bad = Intake(), 0
    for name, sources in spans.items():
        for source in sources:
            try:
                bad += yield from cast("SpanFormat", reader_named(name)).collect(source, intake)
            except IngestError as error:
                bad += 1
                yield rejected(source.file, error)
    if intake.spans or intake.logs or not bad:
        format = next(iter(spans)) if len(spans) == 1 else joined.NAME
        yield from span_traces(intake, format=format, source=together(every))


def _read_together(reader: Format, sources: tuple[Source, ...]) -> Iterator[Trace | Rejected]:
    """The traces of several files of one format."""
    if hasattr(reader, "read_bundle"):
        yield from cast("BundleFormat", reader).read_bundle(sources, ())
        return
    yield from _read_joined({reader.NAME: sources}, sources)


def _read_entries(entries: Iterator[Entry], readers: Sequence[Format], *, forced: bool) -> Iterator[Trace | Rejected]:
    listed = list(entries)
    names: set[str] = set()
    by_name = {entry.name: entry for entry in listed}
    for reader in readers:
        if hasattr(reader, "bundles"):
            yield from _read_bundles(cast("BundleFormat", reader), by_name, names)
    for entry in listed:
        if entry.name not in names:
            yield from _read_entry(entry, readers, forced=forced)


def _read_bundles(reader: BundleFormat, by_name: dict[str, Entry], read_names: set[str]) -> Iterator[Trace | Rejected]:
    """Bundles whose first file this reader knows; the files of the others are left to be read one by one."""
    beside = tuple(by_name)
    for names in reader.bundles([name for name in by_name if name not in read_names]):
        sources = []
        for name in names:
            try:
                data = by_name[name].load()
            except IngestError as error:
                if name not in read_names:
                    yield rejected(name, error)
                read_names.add(name)
                continue
            if recognise(data, name, (reader,)) is not None:
                sources.append(by_name[name].source(data))
            elif name == names[0]:
                break
        if sources and sources[0].file == names[0]:
            read_names.update(source.file for source in sources)
            yield from _guarded(names[0], lambda members=tuple(sources): reader.read_bundle(members, beside))  # type: ignore[misc]


def _read_entry(entry: Entry, all_readers: Sequence[Format], *, forced: bool) -> Iterator[Trace | Rejected]:
    readers = all_readers
    try:
        long = _long_source(entry, all_readers)
        data = entry.load() if long is None else b""
    except IngestError as error:
        yield rejected(entry.name, error)
        return
    if long is not None:
        yield from _guarded(entry.name, long, must_answer=forced)
        return
    packed = _opener(data)
    if packed is not None:
        readers = [reader for reader in readers if getattr(reader, "READS_ARCHIVES", False)]
    reader = readers[0] if forced and readers else recognise(data, entry.name, readers)
    if packed is not None and reader is None:
        inner = _unpack(entry, data, packed)
        yield from _guarded(entry.name, lambda: _read_entries(inner, all_readers, forced=forced))
        return
    if reader is None:
        yield rejected(entry.name, _unrecognised(data))
        return
    yield from _guarded(entry.name, lambda: reader.read(entry.source(data)), must_answer=forced)


def _long_source(entry: Entry, readers: Sequence[Format]) -> Callable[[], Iterator[Trace | Rejected]] | None:
    """How to read a long file of lines that need not be held in memory; None for every other input."""
    file = long_file(entry.path) if entry.path else None
    if file is None:
        return None
    start = next(file.blocks())
    samples = [FileSample(entry.name, start[:size], False) for size in HEAD_BYTES]
    known = readers if len(readers) == 1 else [one for sample in samples for one in readers if _knows(one, sample)]
    read_long = getattr(known[0], "read_long", None) if known else None
    return partial(read_long, Source(file=entry.name, path=file.path, size=file.size)) if read_long else None


def _guarded(
    file: str, read: Callable[[], Iterator[Trace | Rejected]], *, must_answer: bool = False
) -> Iterator[Trace | Rejected]:
    """The traces of a reader; what it raises becomes a `Rejected`, so that a batch never stops at one file.

    With `must_answer` a reader that neither gives a trace nor says why is answered for. (Some files of a
    recognised format only settle what others say, and give nothing by themselves.)
    """
    answered = False
    damage: list[Rejected] = []
    try:
        for item in read():
            answered = True
            if isinstance(item, Rejected):
                damage += [item] if item.lost else []
                yield item
            else:
                yield mark_damaged(item, damage)
        if must_answer and not answered:
            raise IngestError("no trace was found in it", remedy="check that it is the file with the spans")
    except IngestError as error:
        yield rejected(file, error)
    except RecursionError:
        reason = "a value is nested deeper than the reader of this format follows (about 1,000 levels)"
        yield Rejected(file=file, place="", reason=reason, remedy="flatten it, or put each trace in a file of its own")
    except Exception as error:
        _log.debug("reading %s failed", file, exc_info=True)
        reason = f"the reader failed: {type(error).__name__}: {error}"
        yield Rejected(file=file, place="", reason=reason, remedy="report it with this file; the file is left out")


def _unrecognised(data: bytes) -> IngestError:
    if not data.strip():
        return IngestError("the file is empty", remedy="export it again or leave it out")
    if _FRAME.match(data):
        with suppress(IngestError):
            if is_frame(parse_json(data)):
                return frame_error("the whole file")
    if (other := known_file(data)) is not None:
        return other
    known = ", ".join(reader.NAME for reader in READERS)
    return IngestError(
        "no known trace format",
        place="the whole file",
        remedy="write a row for each span with trace_id, span_id, parent_span_id, name, start_time and its attributes, "
        "and say which attribute holds what (`tracejury map suggest FILE`, then `--map acme.toml`); or name its "
        f"format (--format) if it is one of: {known}",
    )


def _entries(path: Path | str) -> Iterator[Entry]:
    text = str(path)
    if text == STANDARD_INPUT:
        yield _file(text)
    elif os.path.isdir(text):
        yield from _folder(text)
    elif os.path.exists(text):
        yield _file(text)
    elif glob.has_magic(text):
        files = sorted(glob.glob(text, recursive=True))
        if not files:
            raise IngestError(f"nothing matches {text!r}", remedy="check the pattern and the folder you are in")
        for name in files:
            if os.path.isdir(name):
                yield from _folder(name)
            else:
                yield _file(name)
    else:
        raise IngestError(f"there is no file or folder {text!r}", remedy="check the path and the folder you are in")


def _folder(folder: str) -> Iterator[Entry]:
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__MACOSX")
        for name in sorted(files):
            if not _is_system_file(name):
                yield _file(os.path.join(where, name))


def _is_system_file(name: str) -> bool:
    return name in _SYSTEM_FILES or name.startswith("._")


def _file(name: str) -> Entry:
    if name == STANDARD_INPUT:
        return Entry(name, sys.stdin.buffer.read)

    def load() -> bytes:
        try:
            if not os.path.isfile(name):
                raise IngestError("not a regular file", remedy="leave it out")
            size = os.path.getsize(name)
            if size > most_bytes():
                raise too_large(size)
            with open(name, "rb") as file:
                return file.read()
        except OSError as error:
            raise IngestError(f"cannot be opened: {error.strerror}", remedy="check the file and its rights") from error

    return Entry(name, load, path=name)


def _opener(data: bytes) -> Callable[[Entry, bytes], Iterator[Entry]] | None:
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _zip
    for start, suffix, unpacked in _PACKINGS:
        if data.startswith(start):
            return partial(_packed_file, suffix=suffix, unpacked=unpacked)
    if data[257:262] == b"ustar":
        return _tar
    if (inner := decoded_again(data)) is not None:
        return partial(_packed_file, suffix="", unpacked=lambda _: inner)
    if (text := printed(data)) is not None:
        return lambda entry, _: iter([replace(_inner(entry, entry.name, lambda: text.text), warnings=text.warnings)])
    return None


def _unpack(entry: Entry, data: bytes, opener: Callable[[Entry, bytes], Iterator[Entry]]) -> Iterator[Entry]:
    if entry.depth >= MAX_NESTING:
        raise IngestError(f"archives in archives more than {MAX_NESTING} deep", remedy="unpack it yourself")
    is_empty = True
    outermost = entry if entry.allowance is not None else replace(entry, allowance=Allowance(len(data)))
    try:
        for inner in opener(outermost, data):
            is_empty = False
            yield inner
    except (*DAMAGE, tarfile.TarError, ValueError) as error:
        raise IngestError(f"damaged archive: {error}", remedy="pack or download it again") from error
    if is_empty:  # some damage leaves a directory without a file, and no error
        raise IngestError("an archive with no file in it", remedy="pack or download it again")


def _zip(entry: Entry, data: bytes) -> Iterator[Entry]:
    archive = zipfile.ZipFile(io.BytesIO(data))  # stays open: its members are read after they are all listed
    members = archive.infolist()
    count_member(len(members))
    if any(member.filename == "xl/workbook.xml" for member in members):
        raise IngestError("an Excel workbook", remedy="save its sheet as CSV, in UTF-8")
    for member in members:
        if not member.filename:
            raise zipfile.BadZipFile("an entry without a name")
        if not member.is_dir():
            yield from _member(entry, member.filename, partial(read_member, data, archive, member))


def _tar(entry: Entry, data: bytes) -> Iterator[Entry]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for number, member in enumerate(archive):
            count_member(number)
            if member.isfile():
                load = lambda m=member: data[m.offset_data : m.offset_data + m.size]  # noqa: E731
                yield from _member(entry, member.name, load)


def _member(entry: Entry, name: str, load: Callable[[], bytes]) -> Iterator[Entry]:
    parts = name.replace("\\", "/").split("/")
    if _is_system_file(parts[-1]) or "__MACOSX" in parts:
        return
    full = f"{entry.name}/{name}"
    if ".." in parts or name.startswith(("/", "\\")) or ":" in parts[0]:
        yield Entry(full, _raises(IngestError("its name leads out of the archive", remedy="pack it again")))
        return
    yield _inner(entry, full, load)


def _inner(entry: Entry, name: str, load: Callable[[], bytes]) -> Entry:
    """What stands in an archive or compressed file, counted against what the outermost one may unpack to."""
    place, allowance = object(), entry.allowance
    counted = load if allowance is None else lambda: allowance.counted(place, load())
    return Entry(name, _guarded_load(counted), entry.depth + 1, allowance=allowance)


def _raises(error: IngestError) -> Callable[[], bytes]:
    def load() -> bytes:
        raise error

    return load


def _guarded_load(load: Callable[[], bytes]) -> Callable[[], bytes]:
    def guarded() -> bytes:
        try:
            return load()
        except DAMAGE as error:
            raise IngestError(f"damaged: {error}", remedy="pack or download it again") from error

    return guarded


def _packed_file(entry: Entry, data: bytes, *, suffix: str, unpacked: Callable[[bytes], bytes]) -> Iterator[Entry]:
    """The one file that a compressed file holds."""
    yield _inner(entry, entry.name.removesuffix(suffix), lambda: unpacked(data))


_PACKINGS: tuple[tuple[bytes, str, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", ".gz", read_gzip),
    (b"\x28\xb5\x2f\xfd", ".zst", read_zstd),
    (b"\xfd7zXZ\x00", ".xz", read_xz),
    (b"BZh", ".bz2", read_bzip2),
)
"""How a compressed file begins, the end of its name, and what unpacks it."""
