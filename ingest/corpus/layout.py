"""Where everything of a corpus stands: Parquet files by table, day and partition, and one record for each partition.

`TABLE/date=YYYY-MM-DD/source=ID/part-G-N.parquet` holds rows (`date=none` where a trace has no time); the rows of a
trace stand in files of the same name below each table. `_records/ID.json` names the files of a partition. A record is
written last: files that no record names are not part of the corpus.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tracejury.ingest.corpus.rows import SCHEMAS
from tracejury.ingest.trace import IngestError, Json

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

VERSION = 1
"""Of tables and records: a corpus of another version is refused."""
NO_DATE = "none"
REBUILD = "delete the corpus, or choose another address, and build it again from its sources"
"""What to do where a file of a corpus is damaged."""
PARTITIONING = ds.partitioning(pa.schema([("date", pa.string()), ("source", pa.string())]), flavor="hive")
_CHECKED = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
"""A changed byte in a value is then damage, not another value."""
_REACH = "check the address, your rights and the network"
_NAME, _RECORDS, _LOCK = "tracejury corpus", "_records", "_writing.json"
COUNTS, ALL_COUNTS = "counts", "_counts.parquet"
"""A table of sums over the rows of a partition, which go when rows of it go; and the file of the sums of them all."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One partition that is whole. `build` and `number` give its place in the order of reading.

    `files` are paths below the corpus by table; `waiting` are ids of traces of which only log records are here.
    `generation` grows when rows of the partition moved to another one; `checked` is the version of the offline checks
    whose findings are among the files, `counted` that of the counts; 0 where there are none.
    """

    id: str
    build: int
    number: int
    files: Mapping[str, Sequence[str]]
    rows: Mapping[str, int]
    waiting: Sequence[str] = ()
    generation: int = 0
    checked: str = ""
    counted: int = 0


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus at an address of fsspec: `url` as it was given, the file system, and the folder in it."""

    url: str
    fs: AbstractFileSystem = field(repr=False)
    root: str

    def path(self, *parts: str) -> str:
        """Give the path of a file below the corpus, as its file system names it."""
        return "/".join((self.root, *parts))

    def records(self) -> list[Record]:
        """Read the record of every partition, in order of reading."""
        folder = self.path(_RECORDS)
        if not self.fs.isdir(folder):
            return []
        names = [name for name in self.fs.ls(folder, detail=False) if name.endswith(".json")]
        bodies = self.fs.cat(names) if names else {}
        records = [_record(name, body) for name, body in bodies.items()]
        return sorted(records, key=lambda record: (record.build, record.number))

    def dataset(
        self, table: str, records: Iterable[Record] | None = None, *, schema: pa.Schema | None = None
    ) -> ds.Dataset:
        """Open a table as a pyarrow data set, with the columns `date` and `source` added.

        `schema` is needed for tables that other layers write.
        """
        known = self.records() if records is None else records
        files = [self.path(file) for record in known for file in record.files.get(table, ())]
        columns = pa.schema([*(SCHEMAS[table] if schema is None else schema), *PARTITIONING.schema])
        if not files:
            return ds.dataset(columns.empty_table())
        return ds.dataset(files, schema=columns, filesystem=self.fs, format=_CHECKED, partitioning=PARTITIONING)

    def tables(
        self,
        table: str,
        records: Iterable[Record] | None = None,
        *,
        columns: Sequence[str],
        schema: pa.Schema | None = None,
        condition: pc.Expression | None = None,
    ) -> Iterator[pa.Table]:
        """Read columns of a table (see `dataset`) and the rows that meet `condition`, file by file; at least one table.

        Raises `IngestError` naming the file that is damaged, gone or may not be read.
        """
        with readable(self.url):
            data = self.dataset(table, records, schema=schema)
        if not isinstance(data, ds.FileSystemDataset):
            yield data.to_table(columns=list(columns))
            return
        for fragment in data.get_fragments():
            with readable(fragment.path):
                rows = fragment.to_table(schema=data.schema, columns=list(columns), filter=condition)
                rows.validate(full=True)
            yield rows

    def write_table(self, file: str, table: pa.Table) -> None:
        """Write one Parquet file (zstd), its folder made where needed."""
        path = self.path(file)
        self.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        with self.fs.open(path, "wb") as opened:
            pq.write_table(table, opened, compression="zstd", compression_level=3, write_page_checksum=True)

    def commit(self, record: Record) -> None:
        """Make a partition part of the corpus: its record is there whole or not at all."""
        document = asdict(record)
        self._write_json(f"{_RECORDS}/{record.id}.json", {**document, "digest": _digest(document)})

    def settings(self) -> dict[str, Json]:
        """What the corpus was built with. Raises `IngestError` where there is no corpus, or one of another version."""
        path = self.path("corpus.json")
        with reached(self.url):
            body = self.fs.cat_file(path) if self.fs.exists(path) else None
        if body is None:
            raise IngestError(f"there is no corpus at {self.url}", remedy="tracejury corpus build SOURCE --out URL")
        document = _document(path, body)
        if document.get("name") != _NAME or document.get("version") != VERSION:
            reason = f"{self.url} holds a corpus of version {document.get('version')!r}; this program reads {VERSION}"
            raise IngestError(reason, remedy="build it again: tracejury corpus build SOURCE --out ANOTHER_URL")
        settings = document.get("settings")
        if not isinstance(settings, dict):
            raise IngestError(f"{path} is damaged: it holds no settings", remedy=REBUILD)
        return settings

    def keep_settings(self, settings: Mapping[str, Json]) -> None:
        """Write what the corpus is built with, once. Raises `IngestError` where it was built otherwise."""
        with reached(self.url):
            if not self.fs.exists(self.path("corpus.json")):
                self._write_json("corpus.json", {"name": _NAME, "version": VERSION, "settings": dict(settings)})
        known = self.settings()
        if known != dict(settings):
            reason = f"{self.url} was built with {known!r}, not with {dict(settings)!r}"
            raise IngestError(reason, remedy="give the same options, or build at another address")

    def require_whole(self) -> None:
        """Raise `IngestError` where there is no corpus, or where a build is under way or was interrupted."""
        self.settings()
        if self._holder().get("work") == "build":
            raise IngestError(
                f"a build of {self.url} is under way or was interrupted",
                remedy="wait for it, or run `tracejury corpus build` again: it continues where the other stopped",
            )

    @contextmanager
    def held_for(self, work: Literal["build", "check"]) -> Iterator[None]:
        """Hold the corpus for one writer. What a killed build left is held until the next build ends.

        The counts of all partitions go first: a check that ends puts them back. Raises `IngestError` where another
        process writes the corpus.
        """
        self._take_lock(work)
        if self.fs.exists(self.path(ALL_COUNTS)):
            self.fs.rm_file(self.path(ALL_COUNTS))
        yield
        self.fs.rm_file(self.path(_LOCK))

    def _holder(self) -> dict[str, Any]:
        path = self.path(_LOCK)
        return _document(path, self.fs.cat_file(path)) if self.fs.exists(path) else {}

    def _take_lock(self, work: str) -> None:
        holder = self._holder()
        if holder and not _is_gone(holder):
            raise IngestError(
                f"process {holder['process']} on {holder['host']} writes {self.url}",
                remedy=f"wait for it; if it was killed, delete {_LOCK} there and run this again",
            )
        holder = {"host": socket.gethostname(), "process": os.getpid(), "since": time.time_ns() // 1000, "work": work}
        self._write_json(_LOCK, holder)

    def remove_unnamed(self, tables: Iterable[str]) -> None:
        """Delete the Parquet files that no record names: what killed workers left."""
        named = {self.path(file) for record in self.records() for files in record.files.values() for file in files}
        for table in tables:
            folder = self.path(table)
            there = self.fs.find(folder) if self.fs.isdir(folder) else []
            for file in there:
                if file not in named:
                    self.fs.rm_file(file)

    def _write_json(self, file: str, document: Any) -> None:
        path = self.path(file)
        self.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        self.fs.pipe_file(f"{path}.new", orjson.dumps(document, option=orjson.OPT_INDENT_2))
        self.fs.mv(f"{path}.new", path)


def _document(path: str, body: bytes) -> dict[str, Any]:
    """Read a JSON object of a corpus. Raises `IngestError` where the file is damaged."""
    try:
        return dict(orjson.loads(body))
    except (ValueError, TypeError) as error:
        raise IngestError(f"{path} is damaged: {error}", remedy=REBUILD) from error


def _record(path: str, body: bytes) -> Record:
    document = _document(path, body)
    if document.pop("digest", None) != _digest(document):
        raise IngestError(f"{path} is damaged: it is not a complete record of a partition", remedy=REBUILD)
    try:
        return Record(**document)
    except TypeError as error:
        raise IngestError(f"{path} is not a record of a partition: {error}", remedy=REBUILD) from error


def _digest(document: Mapping[str, Any]) -> str:
    return sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()


def open_corpus(url: str) -> Corpus:
    """Give the corpus at an address of fsspec (a folder, s3://, gs://); nothing is read yet.

    Raises `IngestError` where the address needs a package that is not installed.
    """
    fs, root = file_system(url)
    return Corpus(url=url, fs=fs, root=root.rstrip("/"))


def file_system(url: str) -> tuple[AbstractFileSystem, str]:
    """Give the file system of an address and the path in it. Raises `IngestError` naming the package it needs."""
    try:
        from fsspec.core import url_to_fs

        fs, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        remedy = "install tracejury[corpus], and for s3:// s3fs, for gs:// gcsfs"
        raise IngestError(f"{url} cannot be opened: {error}", remedy=remedy) from error
    return fs, str(path)


@contextmanager
def reached(url: str) -> Iterator[None]:
    """Raise as `IngestError` what the file store at an address raises: each kind of store has errors of its own."""
    if "://" not in url:
        yield
        return
    try:
        yield
    except Exception as error:
        reason = f"{url} cannot be reached: {str(error) or type(error).__name__}"
        raise IngestError(reason, remedy=_REACH) from error


@contextmanager
def readable(place: str) -> Iterator[None]:
    """Raise as `IngestError` what reading a file of a corpus raises: damaged, gone, not allowed, out of reach."""
    try:
        yield
    except IngestError:
        raise
    except PermissionError as error:
        raise IngestError(f"{place} may not be read", remedy="check who may read it") from error
    except FileNotFoundError as error:
        raise IngestError(f"a file of the corpus is gone: {error.filename or error}", remedy=REBUILD) from error
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise IngestError(f"{place} is damaged: {error}", remedy=REBUILD) from error
    except Exception as error:
        if "://" not in place:
            raise
        reason = f"{place} cannot be reached: {str(error) or type(error).__name__}"
        raise IngestError(reason, remedy=_REACH) from error


def without_traces(corpus: Corpus, record: Record, trace_ids: Sequence[str]) -> None:
    """Write a partition anew without these traces; the old files go once the new record is there."""
    files: dict[str, list[str]] = {}
    rows: dict[str, int] = {}
    generation = record.generation + 1
    gone = pa.array(trace_ids, pa.string())
    for table, paths in record.files.items():
        if table == COUNTS:
            continue
        files[table] = []
        for path in paths:
            with readable(corpus.path(path)):
                table_rows = _read(corpus, path)
            if "trace_id" in table_rows.column_names:
                table_rows = table_rows.filter(pa.compute.invert(pa.compute.is_in(table_rows["trace_id"], gone)))
            new = path.replace(f"/part-{record.generation}-", f"/part-{generation}-")
            if table_rows.num_rows:
                corpus.write_table(new, table_rows)
                files[table].append(new)
            rows[table] = rows.get(table, 0) + table_rows.num_rows
    waiting = [trace_id for trace_id in record.waiting if trace_id not in set(trace_ids)]
    corpus.commit(replace(record, files=files, rows=rows, waiting=waiting, generation=generation, counted=0))
    for paths in record.files.values():
        for path in paths:
            corpus.fs.rm_file(corpus.path(path))


def _read(corpus: Corpus, path: str) -> pa.Table:
    with corpus.fs.open(corpus.path(path), "rb") as opened:
        return pq.read_table(opened, partitioning=None, page_checksum_verification=True)


def _is_gone(holder: Mapping[str, Any]) -> bool:
    """Whether the process that held the corpus ended, or is this one: what it began is over."""
    if holder["host"] != socket.gethostname() or holder["process"] == os.getpid():
        return bool(holder["host"] == socket.gethostname())
    try:
        os.kill(holder["process"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
