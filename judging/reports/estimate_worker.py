"""The process that makes estimates beside the app: `python -m tracejury.judging.reports.estimate_worker HOME`.

What it makes is kept as Arrow files under `figures/CHOICE/REVISION/` of the workspace's home, each of the
revision that the database had in the very transaction that was read. A file that is there is whole.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, TextIO

import orjson
import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection, Engine

from tracejury.ingest.store import read_transaction
from tracejury.judging.agreement.tables import InputName, Inputs
from tracejury.judging.reports.arms import Known, arm_pairs, read_arm
from tracejury.judging.reports.columns import Columns, load_columns
from tracejury.judging.reports.estimates import FRAMES, Bench, Chosen, Question, Revision, make
from tracejury.judging.reports.export import all_decisions, decisions_of
from tracejury.judging.reports.frames import LazyFrames, revision
from tracejury.judging.reports.person_pairs import person_pairs, person_revision

KEPT_REVISIONS = 2  # of a choice: the newest and what is shown until it is there
KEPT_CHOICES = 48  # several of them hold the figures of one choice on the page, see `Question.place`
HELD = 4  # choices whose frames stay in memory
_DTYPES = b"tracejury.dtypes"
_REVISION = b"tracejury.revision"
_SMALL = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Where the figures of a workspace are kept."""

    home: Path

    def folder(self, chosen: Chosen, now: Revision) -> Path:
        return self.home / "figures" / chosen.key() / revision_name(now)

    def file(self, question: Question, now: Revision) -> Path:
        return self.folder(question.place(), now) / question.file()

    def revisions(self, chosen: Chosen) -> list[Path]:
        """The folders of a choice, the newest first."""
        return _newest_first(self.home / "figures" / chosen.key())

    def put(self, question: Question, now: Revision, frame: pd.DataFrame) -> None:
        """Keep a figure; another process sees all of it or nothing."""
        file = self.file(question, now)
        is_first = not file.parent.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(f".{os.getpid()}.tmp")
        write_frame(half, frame, now)
        half.replace(file)
        if is_first:
            self.prune(question.place(), now)

    def use(self, question: Question) -> None:
        """Say that a figure's choice is asked for: `prune` lets go of others first."""
        with suppress(FileNotFoundError):
            os.utime(self.home / "figures" / question.place().key())

    def prune(self, chosen: Chosen, now: Revision) -> None:
        """Let go of what is old: other revisions of the choice, choices long not asked for."""
        for path in [path for path in self.revisions(chosen) if path.name != revision_name(now)][KEPT_REVISIONS - 1 :]:
            shutil.rmtree(path, ignore_errors=True)
        for path in _newest_first(self.home / "figures")[KEPT_CHOICES:]:
            shutil.rmtree(path, ignore_errors=True)


def _newest_first(folder: Path) -> list[Path]:
    """What is in a folder; another process may take away any of it at any time."""
    found = []
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            with suppress(FileNotFoundError):
                found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found, reverse=True)]


def revision_name(now: Revision) -> str:
    """A short name of a revision, as it stands beside figures."""
    return blake2b(orjson.dumps(now), digest_size=5).hexdigest()


def write_frame(file: Path, frame: pd.DataFrame, now: Revision) -> None:
    """A frame as an Arrow file that says which revision it is of."""
    table = pa.Table.from_pandas(frame)
    dtypes = {str(name): _dtype(frame[name]) for name in frame.columns}
    about = {_DTYPES: orjson.dumps(dtypes), _REVISION: orjson.dumps(now)}
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


def read_if_kept(file: Path) -> tuple[pd.DataFrame, Revision] | None:
    """`read_frame`, None where there is none: `prune` of another process may take away a file that was there."""
    try:
        return read_frame(file)
    except FileNotFoundError:
        return None


def _dtype(values: pd.Series) -> list[Any]:
    """The type, and for objects where None stands: Arrow knows one kind of nothing, frames have None and NaN."""
    if values.dtype != object:
        return [str(values.dtype)]
    return ["object", [place for place, value in enumerate(values) if value is None]]


def _restored(values: pd.Series, dtype: str, absent: Sequence[int] = ()) -> pd.Series:
    if dtype != "object":
        return values if str(values.dtype) == dtype else values.astype(pd.api.types.pandas_dtype(dtype))
    held = values.astype("object").where(values.notna(), float("nan"))
    held.iloc[list(absent)] = None
    return held


@dataclass(frozen=True, kw_only=True)
class LazyInputs(Inputs):
    """Inputs of which each frame is made when a figure first asks for it."""

    late: Callable[[InputName], pd.DataFrame | None]
    kept: Callable[[str, Callable[[], pd.DataFrame]], pd.DataFrame]
    """A figure by its name as it is kept, else made by the function and kept."""

    def given(self, name: InputName) -> pd.DataFrame | None:
        return self.late(name)

    @cached_property
    def score_figures(self) -> pd.DataFrame:
        return self.kept("score_figures", lambda: super(LazyInputs, self).score_figures)

    @cached_property
    def consistency(self) -> pd.DataFrame:
        return self.kept("consistency", lambda: super(LazyInputs, self).consistency)

    @cached_property
    def human_ceiling(self) -> pd.DataFrame:
        return self.kept("human_ceiling", lambda: super(LazyInputs, self).human_ceiling)

    @cached_property
    def error_ceiling(self) -> pd.DataFrame:
        return self.kept("error_ceiling", lambda: super(LazyInputs, self).error_ceiling)


class MovedOnError(Exception):
    """The data changed since the rest was read."""


class Maker:
    """Makes figures; keeps in memory what the next question is likely to need."""

    def __init__(self, engine: Engine, home: Path) -> None:
        self.engine, self.shelf = engine, Shelf(home=home)
        self.at: Revision | None = None
        self.columns: Columns | None = None
        self.held: dict[str, Bench] = {}
        self.people_at: Revision | None = None
        self.people: dict[str, pd.DataFrame] = {}
        self.words: dict[str, pd.DataFrame] | None = None

    def make(self, question: Question, asked: Revision | None = None) -> Revision:
        """Make a figure unless it is kept, and say of which revision it is.

        That is the revision `asked` for where it is the one in memory, else the database's own, whichever it
        is now: an older one cannot be read any more.
        """
        if asked is not None and self.shelf.file(question, asked).exists():
            return asked
        if self.at is None or self.at != asked or question.chosen.key() not in self.held:
            self._read(question.chosen)
        try:
            return self._kept(question)
        except MovedOnError:
            self.at = None
            self._read(question.chosen)
            return self._kept(question)

    def _kept(self, question: Question) -> Revision:
        assert self.at is not None
        if not self.shelf.file(question, self.at).exists():
            made = make(self.held[question.chosen.key()], question)
            self.shelf.put(question, self.at, made)
        return self.at

    def read(self) -> None:
        """Read the data before the first question."""
        with read_transaction(self.engine) as connection:
            self._columns(connection)

    def _columns(self, connection: Connection) -> Columns:
        """The data as it is now."""
        now = revision(connection)
        if now != self.at or self.columns is None:
            self.columns, self.held, self.at, self.words = load_columns(connection), {}, now, None
            self._forget_people(person_revision(connection))
        return self.columns

    def _read(self, chosen: Chosen) -> None:
        """A choice of the data as it is now."""
        key = chosen.key()
        with read_transaction(self.engine) as connection:
            columns = self._columns(connection)
            if key in self.held:
                return
            frames = LazyFrames(connection, columns, chosen.selection())
        self.held = {**dict(list(self.held.items())[1 - HELD :]), key: self._bench(chosen, frames)}

    def _bench(self, chosen: Chosen, frames: LazyFrames) -> Bench:
        def late(name: InputName) -> pd.DataFrame | None:
            match name:
                case "person_pairs":
                    return self._pairs(chosen)
                case "match_decisions" | "finding_decisions":
                    return self._words(chosen)[name]
                case _:
                    return getattr(frames, name) if name in FRAMES else None

        def kept(name: str, build: Callable[[], pd.DataFrame]) -> pd.DataFrame:
            return self._known(Question(figure=name, chosen=chosen), build)

        inputs = LazyInputs(missing=chosen.missing, draws=chosen.draws, late=late, kept=kept)
        return Bench(frames=frames, inputs=inputs, side=lambda text: self._side(chosen, text))

    def _known(self, question: Question, build: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """A figure that others are made of: as it is kept, else made now and kept."""
        assert self.at is not None
        kept = read_if_kept(self.shelf.file(question, self.at))
        if kept is not None:
            return kept[0]
        made = build()
        self.shelf.put(question, self.at, made)
        return made

    def _forget_people(self, now: Revision) -> None:
        if now != self.people_at:
            self.people_at, self.people = now, {}

    def _pairs(self, chosen: Chosen) -> pd.DataFrame:
        """People against people; the same for many choices. Raises `MovedOnError`."""
        asked = Question(figure="person_pairs", chosen=chosen)
        people = asked.place()
        if people.key() not in self.people:
            self.people[people.key()] = self._known(asked, lambda: self._matched_people(people))
        return self.people[people.key()]

    def _matched_people(self, people: Chosen) -> pd.DataFrame:
        with read_transaction(self.engine) as connection:
            if person_revision(connection) != self.people_at:
                raise MovedOnError
            return person_pairs(connection, people.selection())

    def _words(self, chosen: Chosen) -> dict[str, pd.DataFrame]:
        """What people said of matches and findings. Raises `MovedOnError`."""
        with read_transaction(self.engine) as connection:
            self._must_stand(connection)
            if self.words is None:
                self.words = all_decisions(connection)
            return decisions_of(connection, chosen.selection(), self.words)

    def _side(self, chosen: Chosen, text: str) -> pd.DataFrame:
        """The error pairs of a version, a run or a person. Raises `MovedOnError`, and `ValueError` for none."""
        assert self.columns is not None
        columns = self.columns
        with read_transaction(self.engine) as connection:
            self._must_stand(connection)
            known = Known(
                frames=lambda wanted: LazyFrames(connection, columns, wanted), person_pairs=lambda: self._pairs(chosen)
            )
            return arm_pairs(connection, chosen.selection(), read_arm(text), known).error_pairs

    def _must_stand(self, connection: Connection) -> None:
        if revision(connection) != self.at:
            raise MovedOnError


def serve(maker: Maker, questions: TextIO, answers: TextIO) -> None:
    """Answer until the questions end. What cannot be made is told by its error, and the next question is taken.

    The first line says which revision was read, and that questions are taken.
    """
    maker.read()
    gc.freeze()  # hundreds of thousands of rows: the collector need not look through them again and again
    answers.write(orjson.dumps({"revision": maker.at}).decode() + "\n")
    answers.flush()
    for line in questions:
        started = time.perf_counter()
        answer: dict[str, object] = {}
        try:
            held = orjson.loads(line)
            question = Question.from_json(orjson.dumps(held["question"]))
            answer = {"revision": maker.make(question, tuple(held["now"]))}
        except ValueError as error:  # the choice has no such figure: the reason is for whoever chose
            answer = {"reason": str(error)[:500]}
        except Exception as error:  # the boundary: one figure's failure is named, the process goes on
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        answer["seconds"] = round(time.perf_counter() - started, 3)
        answers.write(orjson.dumps(answer).decode() + "\n")
        answers.flush()


def main(home: str) -> None:
    from tracejury.judging.store import open_workspace

    workspace = open_workspace(Path(home))
    serve(Maker(workspace.engine, workspace.home), sys.stdin, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
