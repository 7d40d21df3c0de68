"""The process that makes figures beside the app: `python -m judging.bench HOME`, a question a line, an answer a line.

What it makes is kept as Arrow files under `figures/CHOICE/REVISION/` of the workspace's home, each of the
revision that the database had in the very transaction that was read. A file that is there is whole.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TextIO

import orjson
import pandas as pd
import pyarrow as pa
from sqlalchemy import Engine

from ingest.store import reading
from judging.agreement.tables import InputName, Inputs
from judging.export import selected_words
from judging.figures import FRAMES, Bench, Chosen, Question, Revision, make
from judging.ledger.columns import Columns, load_columns
from judging.ledger.frames import frames_of, revision
from judging.ledger.person_pairs import person_pairs, person_revision
from judging.ledger.sides import read_side, side_pairs

KEPT_REVISIONS = 2  # of a choice: the newest and what is shown until it is there
KEPT_CHOICES = 16
HELD = 3  # choices whose frames stay in memory
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
        return self.folder(question.chosen, now) / question.file()

    def revisions(self, chosen: Chosen) -> list[Path]:
        """The folders of a choice, the newest first."""
        folder = self.home / "figures" / chosen.key()
        found = [(path.stat().st_mtime_ns, path) for path in folder.iterdir()] if folder.is_dir() else []
        return [path for _, path in sorted(found, reverse=True)]

    def put(self, question: Question, now: Revision, frame: pd.DataFrame) -> None:
        """Keep a figure; another process sees all of it or nothing."""
        file = self.file(question, now)
        file.parent.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(f".{os.getpid()}.tmp")
        write_frame(half, frame, now)
        half.replace(file)

    def prune(self, chosen: Chosen, now: Revision) -> None:
        """Let go of what is old: other revisions of the choice, choices long not asked for."""
        for path in [path for path in self.revisions(chosen) if path.name != revision_name(now)][KEPT_REVISIONS - 1 :]:
            shutil.rmtree(path, ignore_errors=True)
        root = self.home / "figures"
        for path in sorted(root.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)[KEPT_CHOICES:]:
            shutil.rmtree(path, ignore_errors=True)


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
class LateInputs(Inputs):
    """Inputs whose person pairs are made when a figure first asks for them: they take long."""

    pairs: Callable[[], pd.DataFrame]

    def frame(self, name: InputName) -> pd.DataFrame:
        return self.pairs() if name == "person_pairs" else super().frame(name)


class MovedOnError(Exception):
    """The data changed since the rest was read."""


class Maker:
    """Makes figures; keeps in memory what the next question is likely to need."""

    def __init__(self, engine: Engine, home: Path) -> None:
        self.engine, self.shelf = engine, Shelf(home=home)
        self.people_at: Revision | None = None
        self.people: dict[str, pd.DataFrame] = {}
        self.at: Revision | None = None
        self.columns: Columns | None = None
        self.held: dict[str, Bench] = {}

    def make(self, question: Question, asked: Revision | None = None) -> Revision:
        """Make a figure unless it is kept, and say of which revision it is.

        That is the revision `asked` for where it is the one in memory, else the database's own, whichever it
        is now: an older one cannot be read any more.
        """
        key = question.chosen.key()
        if self.at is None or self.at != asked or key not in self.held:
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
            self._keep(question, self.held[question.chosen.key()], self.at)
        return self.at

    def _read(self, chosen: Chosen) -> None:
        """The data as it is now."""
        key = chosen.key()
        with reading(self.engine) as connection:
            now = revision(connection)
            if now != self.at or self.columns is None:
                self.columns, self.held, self.at = load_columns(connection), {}, now
                self._forget_people(person_revision(connection))
            if key in self.held:
                return
            frames = frames_of(connection, self.columns, chosen.selection())
            words = selected_words(connection, chosen.selection())
        given: dict[str, Any] = {**{name: getattr(frames, name) for name in FRAMES}, **words}
        inputs = LateInputs(**given, missing=chosen.missing, draws=chosen.draws, pairs=lambda: self._pairs(chosen))
        bench = Bench(frames=frames, inputs=inputs, side=lambda text: self._side(chosen, text))
        self.held = {**dict(list(self.held.items())[1 - HELD :]), key: bench}

    def _forget_people(self, now: Revision) -> None:
        if now != self.people_at:
            self.people_at, self.people = now, {}

    def _pairs(self, chosen: Chosen) -> pd.DataFrame:
        """People against people; the same for many choices. Raises `MovedOnError`."""
        people = Chosen(
            splits=chosen.splits, only_split=chosen.only_split, formats=chosen.formats, guideline=chosen.guideline
        )
        if people.key() not in self.people:
            with reading(self.engine) as connection:
                if person_revision(connection) != self.people_at:
                    raise MovedOnError
                self.people[people.key()] = person_pairs(connection, people.selection())
        return self.people[people.key()]

    def _side(self, chosen: Chosen, text: str) -> pd.DataFrame:
        """The error pairs of a version, a run or a person. Raises `MovedOnError`, and `ValueError` for none."""
        with reading(self.engine) as connection:
            if revision(connection) != self.at:
                raise MovedOnError
            return side_pairs(connection, chosen.selection(), read_side(text)).error_pairs

    def _keep(self, question: Question, bench: Bench, now: Revision) -> None:
        if question.figure in (*FRAMES, "human"):
            self._keep_frames(question.chosen, bench, now)
        else:
            self.shelf.put(question, now, make(bench, question))

    def _keep_frames(self, chosen: Chosen, bench: Bench, now: Revision) -> None:
        """All frames at once: a page that needs one needs others."""
        person = pd.DataFrame({"human": [bench.frames.human]}, dtype="object")
        self.shelf.put(Question(figure="human", chosen=chosen), now, person)
        for name in FRAMES:
            question = Question(figure=name, chosen=chosen)
            self.shelf.put(question, now, make(bench, question))
        self.shelf.prune(chosen, now)


def serve(maker: Maker, questions: TextIO, answers: TextIO) -> None:
    """Answer until the questions end. What cannot be made is told by its error, and the next question is taken."""
    for line in questions:
        started = time.perf_counter()
        answer: dict[str, object] = {}
        try:
            held = orjson.loads(line)
            question = Question.from_json(orjson.dumps(held["question"]))
            answer = {"revision": maker.make(question, tuple(held["now"]))}
        except Exception as error:  # the boundary: one figure's failure is named, the process goes on
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        answer["seconds"] = round(time.perf_counter() - started, 3)
        answers.write(orjson.dumps(answer).decode() + "\n")
        answers.flush()


def main(home: str) -> None:
    from judging.ledger import open_workspace

    workspace = open_workspace(Path(home))
    serve(Maker(workspace.engine, workspace.home), sys.stdin, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
