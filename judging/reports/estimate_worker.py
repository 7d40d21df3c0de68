"""Makes estimates from the database: in this process, or in a worker process beside the app.

`Estimator` is what a script or notebook asks; `start`, `make` and `make_all` are what the worker process runs.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import parent_process
from pathlib import Path

import pandas as pd
from sqlalchemy import Connection, Engine

from tracejury.ingest.store import read_transaction
from tracejury.judging.agreement.frames import keep_texts_in_python
from tracejury.judging.reports.arms import Known, arm_pairs, read_arm
from tracejury.judging.reports.columns import Columns, load_columns
from tracejury.judging.reports.estimate_files import EstimateFiles, EstimateKey
from tracejury.judging.reports.estimates import DERIVED, ESTIMATES, FRAMES, LazyInputs, Sources, build
from tracejury.judging.reports.evidence_pairs import evidence_pairs
from tracejury.judging.reports.export import all_decisions, decisions_of
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import LazyFrames
from tracejury.judging.reports.person_pairs import person_pairs, person_revision
from tracejury.judging.reports.pilots import pilot_frame, pilot_in_columns
from tracejury.judging.store.revisions import Revision, revision

HELD = 4  # filters whose frames stay in memory
KEPT = 200  # estimates that stay in memory
ATTEMPTS = 5  # at estimates of one revision, while people change the data


class StaleRevisionError(Exception):
    """The data changed: this revision of it can no longer be read, a newer one can."""


class Estimator:
    """Makes estimates, and keeps in memory what the next one is likely to need; with `files`, on disk as well."""

    def __init__(self, engine: Engine, files: EstimateFiles | None = None) -> None:
        self.engine, self.files = engine, files
        self.columns: Columns | None = None
        self.words: dict[str, pd.DataFrame] = {}
        self.people: Revision | None = None
        self.sources: dict[Filters, Sources] = {}
        self.memory: dict[str, pd.DataFrame] = {}

    def estimate(self, filters: Filters, name: str, *arguments: str) -> pd.DataFrame:
        """An estimate of the filters' revision, else of the data as it is now. Shared: never change it.

        Raises `StaleRevisionError`, `KeyError` for a name that is none, `ValueError` where the filters have none.
        """
        for _ in range(ATTEMPTS - 1):
            at = self._now() if filters.revision is None else filters.revision
            try:
                return self.make(EstimateKey(name=name, filters=filters, revision=at, arguments=arguments))
            except StaleRevisionError:
                if filters.revision is not None:
                    raise
        return self.make(EstimateKey(name=name, filters=filters, revision=self._now(), arguments=arguments))

    def make(self, key: EstimateKey) -> pd.DataFrame:
        """An estimate as it is kept, else made now and kept. Raises as `estimate`."""
        table = self.memory.get(key.file())
        if table is None and self.files is not None:
            table = self.files.get(key)
        if table is None:
            table = build(self._sources(key.filters.unpinned(), key.revision), key.name, *key.arguments)
            if self.files is not None:
                self.files.put(key, table)
        self.memory = {**dict(list(self.memory.items())[1 - KEPT :]), key.file(): table}
        return table

    def make_all(self, filters: Filters, names: Sequence[str], more: Sequence[Sequence[str]] = ()) -> Revision:
        """Make estimates of the data as it is now, all of one revision, which is given back.

        Then `more`, each a name with its arguments; the data may no longer have one of them.
        """
        for attempt in range(ATTEMPTS):
            at = self.read(filters)
            try:
                for name in names:
                    self.make(EstimateKey(name=name, filters=filters, revision=at))
            except StaleRevisionError:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                for name, *arguments in more:
                    with suppress(ValueError, StaleRevisionError):
                        self.make(EstimateKey(name=name, filters=filters, revision=at, arguments=tuple(arguments)))
                return at
        raise AssertionError("the last attempt returns or raises")

    def read(self, filters: Filters) -> Revision:
        """Read the data as it is now, of which the revision is given back."""
        with read_transaction(self.engine) as connection:
            at = revision(connection)
            self._read(connection, filters.unpinned(), at)
        return at

    def _now(self) -> Revision:
        with read_transaction(self.engine) as connection:
            return revision(connection)

    def _sources(self, filters: Filters, at: Revision) -> Sources:
        """What the estimates of these filters are made from. Raises `StaleRevisionError`."""
        if self._is_at(at) and filters in self.sources:
            return self.sources[filters]
        with read_transaction(self.engine) as connection:
            if revision(connection) != at:
                raise StaleRevisionError
            return self._read(connection, filters, at)

    def _is_at(self, at: Revision) -> bool:
        return self.columns is not None and self.columns.made_of.revision == at

    def _read(self, connection: Connection, filters: Filters, at: Revision) -> Sources:
        if not self._is_at(at):
            self.columns, self.sources, self.memory = load_columns(connection, self.columns), {}, {}
            self.words, self.people = all_decisions(connection), person_revision(connection)
        if filters not in self.sources:
            if self.files is not None:
                self.files.prune()  # other filters, or another revision, make other files
            sources = self._sources_of(connection, filters, at)
            self.sources = {**dict(list(self.sources.items())[1 - HELD :]), filters: sources}
        return self.sources[filters]

    def _sources_of(self, connection: Connection, filters: Filters, at: Revision) -> Sources:
        assert self.columns is not None
        frames = LazyFrames(connection, self.columns, filters)
        words = decisions_of(connection, filters, self.words)

        def find(name: str) -> pd.DataFrame:
            if name in words:
                return words[name]
            if name in FRAMES:
                return getattr(frames, name)  # type: ignore[no-any-return]
            if name in DERIVED:
                return self.make(EstimateKey(name=name, filters=filters, revision=at))
            if name == "evidence_pairs":
                return self._evidence(frames, at)
            assert name == "person_pairs"
            return self._pairs(filters)

        inputs = LazyInputs(missing=filters.missing, draws=filters.draws, seed=filters.seed, find=find)
        return Sources(
            frames=frames,
            inputs=inputs,
            arm=lambda text: self._arm(filters, at, text),
            pilot=lambda *judge_models: self._pilot(filters, at, judge_models),
        )

    def _evidence(self, frames: LazyFrames, at: Revision) -> pd.DataFrame:
        """The evidence of the pairs of these frames. Raises `StaleRevisionError`."""
        with read_transaction(self.engine) as connection:
            if revision(connection) != at:
                raise StaleRevisionError
            return evidence_pairs(connection, frames.matched)

    def _pairs(self, filters: Filters) -> pd.DataFrame:
        """People against people: the same for many filters and revisions. Raises `StaleRevisionError`."""
        assert self.people is not None
        same = filters.without(ESTIMATES["person_pairs"].ignores)
        key = EstimateKey(name="person_pairs", filters=same, revision=self.people)
        if key.file() not in self.memory:
            pairs = None if self.files is None else self.files.get(key)
            self.memory[key.file()] = self._matched_people(key) if pairs is None else pairs
        return self.memory[key.file()]

    def _matched_people(self, key: EstimateKey) -> pd.DataFrame:
        with read_transaction(self.engine) as connection:
            if person_revision(connection) != key.revision:
                raise StaleRevisionError
            pairs = person_pairs(connection, key.filters)
        if self.files is not None:
            self.files.put(key, pairs)
        return pairs

    def _arm(self, filters: Filters, at: Revision, text: str) -> pd.DataFrame:
        """The error pairs of a version, a repeat or a person. Raises `StaleRevisionError`, `ValueError` for none."""
        assert self.columns is not None
        columns = self.columns
        with read_transaction(self.engine) as connection:
            if revision(connection) != at:
                raise StaleRevisionError
            known = Known(
                frames=lambda arm_filters: LazyFrames(connection, columns, arm_filters),
                person_pairs=lambda: self._pairs(filters),
            )
            return arm_pairs(connection, filters, read_arm(text), known).error_pairs

    def _pilot(self, filters: Filters, at: Revision, judge_models: Sequence[str]) -> pd.DataFrame:
        """`pilot_frame` of these judge models. Raises `StaleRevisionError`, `ValueError` where they say nothing."""
        assert self.columns is not None
        with read_transaction(self.engine) as connection:
            if revision(connection) != at:
                raise StaleRevisionError
            return pilot_frame(pilot_in_columns(connection, self.columns, filters, judge_models))


_estimator: Estimator | None = None
"""Of the worker process."""


def start(home: str, niceness: int = 0) -> None:
    """Begin a worker process: it reads the data before the first question, and ends when the app does.

    `niceness` is by how much it gives way to other processes.
    """
    global _estimator
    from tracejury.judging.store import open_workspace

    os.nice(niceness)
    keep_texts_in_python()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the app's, which ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    workspace = open_workspace(Path(home))
    _estimator = Estimator(workspace.engine, files_of(workspace.home))
    _estimator.read(Filters())
    gc.collect()
    gc.freeze()  # hundreds of thousands of rows: the collector need not look through them again and again


def files_of(home: Path) -> EstimateFiles:
    """Where the estimates of a workspace are kept."""
    return EstimateFiles(folder=home.resolve() / "estimates")


def make(key: EstimateKey) -> None:
    """In the worker process: make an estimate and keep it on disk. Raises as `Estimator.estimate`."""
    assert _estimator is not None
    _estimator.make(key)


def make_all(filters: Filters, names: Sequence[str], more: Sequence[Sequence[str]]) -> Revision:
    """In the worker process: `Estimator.make_all`."""
    assert _estimator is not None
    return _estimator.make_all(filters, names, more)


def end(pool: ProcessPoolExecutor) -> None:
    """In the app: end a pool of worker processes and what they are at."""
    workers = list(pool._processes.values())  # no public way before Python 3.14's kill_workers
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.kill()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)
