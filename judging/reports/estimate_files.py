"""Estimates on disk: one Arrow file each below `estimates/` of the workspace's home. A file that is there is whole."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow as pa

from tracejury.judging.reports.estimates import ESTIMATES
from tracejury.judging.reports.filters import Filters
from tracejury.judging.store.revisions import Revision

MOST_BYTES = 200_000_000  # of all files together: those read longest ago go first
MARK = "reference"
"""The estimate that is made first for a page, and last of a newer revision: where it is, so is what was asked."""
_DTYPES = b"tracejury.dtypes"
_REVISION = b"tracejury.revision"
_SMALL = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass(frozen=True, kw_only=True)
class EstimateKey:
    """An estimate of one revision of the data. `arguments` are its own (a dimension, two judges).

    Raises `KeyError` for an estimate that does not exist.
    """

    name: str
    filters: Filters
    revision: Revision
    arguments: tuple[str, ...] = ()

    def file(self) -> str:
        """Its place below `estimates/`, the same for filters that make the same estimate."""
        hashed = _hash([_filters_hash(self.filters.unpinned(), ESTIMATES[self.name].ignores), list(self.arguments)])
        return f"{revision_name(self.revision)}/{self.name}-{hashed}.arrow"

    def is_slow(self) -> bool:
        """Whether nothing shorter waits for it."""
        return ESTIMATES[self.name].is_slow or any(argument.startswith("person=") for argument in self.arguments)

    def title(self) -> str:
        """What is computed, in words."""
        return " ".join([self.name.removeprefix("table.").replace("_", " "), *self.arguments])


@lru_cache(maxsize=512)
def _filters_hash(filters: Filters, ignored: tuple[str, ...]) -> str:
    filters_used = filters.without(ignored)
    content = {each.name: getattr(filters_used, each.name) for each in fields(Filters)}
    return _hash(
        [_code(), content | {"split": None if filters_used.split is None else [*map(list, filters_used.split.parts)]}]
    )


def _hash(content: object) -> str:
    return blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


@cache
def _code() -> str:
    """A hash of our code: another version of it makes other estimates."""
    state = blake2b(digest_size=8)
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        state.update(file.read_bytes())
    return state.hexdigest()


@lru_cache(maxsize=512)
def revision_name(revision: Revision) -> str:
    """A short name of a revision, as it stands beside estimates."""
    return blake2b(orjson.dumps(revision), digest_size=5).hexdigest()


@dataclass(frozen=True, kw_only=True)
class EstimateFiles:
    """The estimates that are kept below `folder`."""

    folder: Path

    def has(self, key: EstimateKey) -> bool:
        return (self.folder / key.file()).exists()

    def put(self, key: EstimateKey, frame: pd.DataFrame) -> None:
        """Keep an estimate; another process sees all of it or nothing."""
        file = self.folder / key.file()
        file.parent.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(f".{os.getpid()}.tmp")
        write_frame(half, frame, key.revision)
        half.replace(file)

    def get(self, key: EstimateKey) -> pd.DataFrame | None:
        """The estimate, None where there is none: another process may take away a file that was there."""
        file = self.folder / key.file()
        try:
            frame, revision = read_frame(file)
            os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))
        except FileNotFoundError:
            return None
        assert revision == key.revision, "an estimate stands under another revision than its own"
        return frame

    def newest(self, filters: Filters, *, but: Revision) -> Revision | None:
        """The revision that was made last for these filters, other than `but`."""
        marks = [folder / Path(_mark(filters, but).file()).name for folder in _entries(self.folder)]
        others = [mark for mark in marks if mark.parent.name != revision_name(but)]
        for mark in _newest_first(others):
            with suppress(FileNotFoundError):
                return read_frame(mark)[1]
        return None

    def names(self, filters: Filters, revision: Revision) -> tuple[str, ...]:
        """The estimates without arguments that were made of a revision, but the slow ones; the mark last."""
        keys = [EstimateKey(name=name, filters=filters, revision=revision) for name in ESTIMATES if name != MARK]
        return (*(key.name for key in keys if not key.is_slow() and self.has(key)), MARK)

    def prune(self, most_bytes: int = MOST_BYTES) -> None:
        """Let go of the files read longest ago, until all are no more than so many bytes."""
        room = most_bytes
        for file, size in _last_read_first(file for folder in _entries(self.folder) for file in _entries(folder)):
            room -= size
            if room < 0:
                file.unlink(missing_ok=True)
        for folder in _entries(self.folder):
            with suppress(OSError):  # not empty
                folder.rmdir()


def _mark(filters: Filters, revision: Revision) -> EstimateKey:
    return EstimateKey(name=MARK, filters=filters, revision=revision)


def _entries(folder: Path) -> list[Path]:
    """What is in a folder; another process may take it away at any time."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return list(folder.iterdir())
    return []


def _newest_first(files: Sequence[Path]) -> list[Path]:
    return [file for _, file in sorted(((stat.st_mtime_ns, file) for file, stat in _stats(files)), reverse=True)]


def _last_read_first(files: Iterator[Path]) -> list[tuple[Path, int]]:
    by_use = sorted(((stat.st_atime_ns, file, stat.st_size) for file, stat in _stats(files)), reverse=True)
    return [(file, size) for _, file, size in by_use]


def _stats(files: Iterator[Path] | Sequence[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    for file in files:
        with suppress(FileNotFoundError):
            yield file, file.stat()


def write_frame(file: Path, frame: pd.DataFrame, revision: Revision) -> None:
    """Write a frame as an Arrow file that says which revision it is of."""
    table = pa.Table.from_pandas(frame)
    dtypes = {str(name): _dtype(frame[name]) for name in frame.columns}
    about = {_DTYPES: orjson.dumps(dtypes), _REVISION: orjson.dumps(revision)}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **about})
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema, options=_SMALL) as writer:
        writer.write_table(table)


def read_frame(file: Path) -> tuple[pd.DataFrame, Revision]:
    """The frame as it was made, and the revision it is of."""
    with pa.memory_map(str(file)) as source:
        table = pa.ipc.open_file(source).read_all()
        frame = table.to_pandas()
    about = table.schema.metadata
    for name, dtype in orjson.loads(about[_DTYPES]).items():
        frame[name] = _restored(frame[name], *dtype)
    return frame, tuple(orjson.loads(about[_REVISION]))


def _dtype(values: pd.Series) -> list[Any]:
    """The type, and for objects where None stands: Arrow knows one kind of nothing, frames have None and NaN."""
    if values.dtype != object:
        return [str(values.dtype)]
    return ["object", [place for place, value in enumerate(values) if value is None]]


def _restored(values: pd.Series, dtype: str, absent: Sequence[int] = ()) -> pd.Series:
    if dtype != "object":
        return values if str(values.dtype) == dtype else values.astype(pd.api.types.pandas_dtype(dtype))
    objects = values.astype("object").where(values.notna(), float("nan"))
    objects.iloc[list(absent)] = None
    return objects
