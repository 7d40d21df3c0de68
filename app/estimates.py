"""Estimates for pages and exports: `estimate(filters, name)`, whole frames that are shared and never changed.

A small workspace has them made in this process. Otherwise a worker process makes them, one after another, and a second
one those that take minutes: this one stays free for labels that are being saved.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar, get_args

import pandas as pd
import streamlit as st

from tracejury.app.listings import now_revision
from tracejury.app.session import workspace
from tracejury.judging.reports import estimate_worker
from tracejury.judging.reports.estimate_files import EstimateFiles, EstimateKey, revision_name
from tracejury.judging.reports.estimate_worker import Estimator, StaleRevisionError, files_of
from tracejury.judging.reports.estimates import FRAMES, LazyInputs
from tracejury.judging.reports.export import Facts, facts_in
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import weight
from tracejury.judging.reports.same_traces import Overlap
from tracejury.judging.store.revisions import Revision

P = ParamSpec("P")
T = TypeVar("T")
SMALL = 1_000  # labels, scores and cells together, up to which estimates take a moment in this process
WANTED_S = 8.0  # what no page has asked for so long is not made
FRESH_S = 1.5  # a page that waits asks every half second: what was asked for longer ago is of a page that was left
LOOK_S = 0.1  # an estimate that another app's worker makes is looked for this often
SETTLE_S = 0.3  # a slow estimate waits until no quick one has been asked for so long: a page asks for them one by one
RENEWED_AFTER_S = 1.0  # a page asks for its estimates of the older data first: once newer are read, none can be made
KEPT = 200  # estimates that stay in memory
LATELY, LATELY_S = 20, 600.0  # so many estimates with arguments, shown within so long, are made of newer data too
ENDED = "the process that computes estimates ended"
ROWS = (*FRAMES, "facts", "reference")
"""The estimates that every file is made from, or tells of."""


class PendingEstimateError(Exception):
    """The estimate is being made: nothing went wrong."""

    def __init__(self, key: EstimateKey) -> None:
        super().__init__(f"computing {key.title()}")
        self.key = key


class FailedEstimateError(Exception):
    """The estimate could not be made; the message says why."""

    def __init__(self, task: Task, reason: str) -> None:
        super().__init__(f"{task.title()} could not be computed: {reason}")
        self.task = task


class NoEstimateError(ValueError):
    """The filters have no such estimate, and the message is the reason: asking again changes nothing."""


@dataclass(frozen=True, kw_only=True)
class Renewal:
    """Estimates of the data as it is now, asked for while it was of a revision; all made of one.

    `more`: names with their arguments, made after the others.
    """

    filters: Filters
    names: tuple[str, ...]
    revision: Revision
    more: tuple[tuple[str, ...], ...] = field(default=(), compare=False)

    def title(self) -> str:
        """What is computed, in words."""
        return f"data revision {revision_name(self.revision)}"


Task = EstimateKey | Renewal
Lane = Literal["quick", "slow"]
NICENESS: Mapping[Lane, int] = {"quick": 0, "slow": 10}  # what takes minutes leaves the machine to people


@dataclass(frozen=True, kw_only=True)
class Revisions:
    """The revision of the data that is shown, and what is being computed of a newer one; None where nothing is."""

    shown: Revision
    pending: Renewal | None = None


@dataclass(kw_only=True)
class EstimateQueue:
    """Has a worker process make estimates, quick ones in the order they were asked for, then renewals.

    Slow ones begin when no other is asked for, in a process of their own: what is asked for meanwhile need not wait.
    """

    home: Path
    files: EstimateFiles
    _asked: dict[Task, float] = field(default_factory=dict)
    """When each was last asked for."""
    _results: dict[Task, Revision | Exception] = field(default_factory=dict)
    """What became of what has no file: the revision of a renewal, or why there is nothing."""
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _settled_at: float = 0.0
    """When what takes long may begin: pages are still asking for what does not."""
    _lately: dict[tuple[Filters, tuple[str, ...]], float] = field(default_factory=dict)
    """When an estimate with arguments was last shown, the newest last."""
    _threads: dict[Lane, threading.Thread] = field(default_factory=dict)
    _pools: dict[Lane, ProcessPoolExecutor] = field(default_factory=dict)

    def start(self, lane: Lane = "quick") -> None:
        """Start a worker, so that the first page need not wait for it."""
        with self._changed:
            if lane not in self._threads:
                self._threads[lane] = threading.Thread(
                    target=self._work, args=(lane,), daemon=True, name=f"{lane} estimates"
                )
                self._threads[lane].start()

    def ask(self, task: Task) -> None:
        """Have it made; asked again, it stays wanted."""
        self.start(_lane(task))
        with self._changed:
            now = time.monotonic()
            if _rank(task) == 0:
                self._settled_at = max(self._settled_at, now + SETTLE_S)
            elif isinstance(task, Renewal) and not any(isinstance(one, Renewal) for one in self._asked):
                self._settled_at = max(self._settled_at, now + RENEWED_AFTER_S)
            self._asked[task] = now
            self._changed.notify_all()

    def ask_again(self, task: Task) -> None:
        """Forget that it failed."""
        with self._changed:
            self._results.pop(task, None)
        self.ask(task)

    def note_shown(self, key: EstimateKey) -> None:
        """Note that a page shows it: what has arguments of its own is part of no view by its name."""
        if key.arguments and not key.is_slow():
            shown = key.filters.unpinned(), (key.name, *key.arguments)
            with self._changed:
                self._lately.pop(shown, None)
                self._lately = {**dict(list(self._lately.items())[1 - LATELY :]), shown: time.monotonic()}

    def shown_lately(self, filters: Filters) -> tuple[tuple[str, ...], ...]:
        """Names and arguments of the estimates with arguments that pages showed of these filters."""
        since = time.monotonic() - LATELY_S
        with self._changed:
            return tuple(name for (of, name), at in self._lately.items() if of == filters.unpinned() and at > since)

    def is_pending(self, task: Task) -> bool:
        """Whether there is no result yet, and one may come."""
        return task not in self._results and not (isinstance(task, EstimateKey) and self.files.has(task))

    def is_stale(self, task: Task) -> bool:
        """Whether its revision of the data is gone before it was made."""
        return isinstance(self._results.get(task), StaleRevisionError)

    def is_renewing(self) -> bool:
        """Whether a newer revision is being made of what a page shows."""
        with self._changed:
            return any(isinstance(task, Renewal) for task in self._asked)

    def failure(self, task: Task) -> Exception | None:
        """Why it could not be made, None where it was or may yet be."""
        result = self._results.get(task)
        return result if isinstance(result, Exception) else None

    def get(self, key: EstimateKey, *, patience_s: float) -> pd.DataFrame:
        """The estimate, waited for a moment. Raises `PendingEstimateError`, or as `result` why there is none."""
        if self.files.has(key) or self._wait(key, patience_s):
            stored = self.files.get(key)
            if stored is not None:
                return stored
            error = self.failure(key)
            if error is not None and not self.is_stale(key):
                raise error
        raise PendingEstimateError(key)

    def renewed(self, renewal: Renewal, *, at_most_s: float = 600) -> Revision:
        """The revision of which all of it was made, waited for. Raises `FailedEstimateError`, `NoEstimateError`."""
        if not self._wait(renewal, at_most_s):
            raise FailedEstimateError(renewal, f"it took more than {at_most_s:g} s")
        result = self._results[renewal]
        if isinstance(result, Exception):
            raise result
        return result

    def close(self) -> None:
        """End the workers; the next question starts another."""
        for lane in get_args(Lane):
            self._end(lane)

    def _end(self, lane: Lane) -> None:
        with self._changed:
            pool = self._pools.pop(lane, None)
        if pool is not None:
            estimate_worker.end(pool)

    def _wait(self, task: Task, at_most_s: float) -> bool:
        """Wait until it is made or cannot be; False where it takes longer."""
        give_up = time.monotonic() + at_most_s
        while self.is_pending(task):
            self.ask(task)
            left = give_up - time.monotonic()
            if left <= 0:
                return False
            with self._changed:
                self._changed.wait(timeout=min(left, LOOK_S))
        return True

    def _work(self, lane: Lane) -> None:
        with suppress(OSError):  # where it cannot start, the first question is told why
            self._running_pool(lane)
        while True:
            task = self._next(lane)
            result = self._result(task)
            with self._changed:
                self._asked.pop(task, None)
                if result is not None:
                    self._results = {**dict(list(self._results.items())[1 - KEPT :]), task: result}
                self._changed.notify_all()

    def _next(self, lane: Lane) -> Task:
        """Wait for a task that is still wanted, of the least rank; one that takes long once no quicker is asked for.

        What a page waits for now comes before what a page asked for that was left, and then who asked first.
        """
        with self._changed:
            while True:
                now = time.monotonic()
                self._asked = {task: at for task, at in self._asked.items() if now - at < WANTED_S}
                left = {task for task, at in self._asked.items() if now - at > FRESH_S}
                ranked = sorted(self._asked, key=lambda task: (_rank(task), task in left))  # stable
                is_next = bool(ranked) and _lane(ranked[0]) == lane
                if is_next and (_rank(ranked[0]) == 0 or now > self._settled_at):
                    return ranked[0]
                self._changed.wait(timeout=SETTLE_S / 3 if ranked else None)

    def _result(self, task: Task) -> Revision | Exception | None:
        """Have the worker do it: the revision of a renewal, None for an estimate that is kept now, or what failed."""
        try:
            if isinstance(task, Renewal):
                return self._submit("quick", estimate_worker.make_all, task.filters, task.names, task.more).result()
            self._submit(_lane(task), estimate_worker.make, task).result()
        except StaleRevisionError as error:
            return error if isinstance(task, EstimateKey) else FailedEstimateError(task, "the data changed meanwhile")
        except ValueError as error:  # the filters have no such estimate: the reason is for whoever chose them
            return NoEstimateError(str(error)[:500])
        except (BrokenProcessPool, CancelledError):
            self._end(_lane(task))
            return FailedEstimateError(task, ENDED)
        except Exception as error:  # the boundary: one estimate's failure is named, the others are made
            return FailedEstimateError(task, f"{type(error).__name__}: {error}"[:500])
        return None

    def _submit(self, lane: Lane, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Give a worker something to do, another where it ended while it had nothing to do."""
        try:
            return self._running_pool(lane).submit(work, *args, **kwargs)
        except BrokenProcessPool:
            self._end(lane)
            return self._running_pool(lane).submit(work, *args, **kwargs)

    def _running_pool(self, lane: Lane) -> ProcessPoolExecutor:
        """The pool with its worker, started where there is none: it reads the data at once."""
        with self._changed:
            if lane not in self._pools:
                self._pools[lane] = ProcessPoolExecutor(
                    max_workers=1,
                    mp_context=multiprocessing.get_context("spawn"),
                    initializer=estimate_worker.start,
                    initargs=(str(self.home), NICENESS[lane]),
                )
                self._pools[lane].submit(int)  # a pool starts its worker with the first task
            return self._pools[lane]


_SLOW = 2


def _lane(task: Task) -> Lane:
    return "slow" if _rank(task) == _SLOW else "quick"


def _rank(task: Task) -> int:
    """Quick estimates first, then a newer revision of them, then what takes long."""
    if isinstance(task, Renewal):
        return 1
    return _SLOW if task.is_slow() else 0


@st.cache_resource(show_spinner=False)
def queue() -> EstimateQueue:
    """Where estimates are asked of the worker; one a process."""
    home = workspace().home.resolve()
    return EstimateQueue(home=home, files=files_of(home))


@st.cache_resource(show_spinner=False)
def _local() -> tuple[threading.Lock, Estimator]:
    """What makes the estimates of a small workspace, for one session at a time."""
    return threading.Lock(), Estimator(workspace().engine)


@st.cache_resource(show_spinner=False)
def _read() -> dict[str, pd.DataFrame]:
    """The estimates read last from the worker's files, the oldest first. A revision's estimate never changes."""
    return {}


def is_small(revision: Revision) -> bool:
    """Whether this process makes the estimates itself."""
    return weight(revision) <= SMALL


def is_small_now() -> bool:
    """`is_small` of the data as it is now."""
    return is_small(now_revision())


def estimate(filters: Filters, name: str, *arguments: str) -> pd.DataFrame:
    """An estimate of the filters' revision, else of the data as it is now. Shared between sessions: never change it.

    Raises `NoEstimateError` where the filters have none; where the worker makes it also `PendingEstimateError` and
    `FailedEstimateError`.
    """
    at = now_revision() if filters.revision is None else filters.revision
    if filters.revision is None and is_small(at):
        return _here(filters, name, *arguments)
    key = EstimateKey(name=name, filters=filters, revision=at, arguments=arguments)
    memory = _read()
    if key.file() not in memory:
        with patience() as left:
            memory[key.file()] = queue().get(key, patience_s=left)
        for old in list(memory)[:-KEPT]:
            memory.pop(old, None)
    queue().note_shown(key)
    return memory[key.file()]


def _here(filters: Filters, name: str, *arguments: str) -> pd.DataFrame:
    lock, estimator = _local()
    with lock:
        try:
            return estimator.estimate(filters, name, *arguments)
        except ValueError as error:
            raise NoEstimateError(str(error)) from error


def inputs(filters: Filters) -> LazyInputs:
    """The inputs of every table, each an `estimate` when it is first asked for."""
    find = partial(estimate, filters)
    return LazyInputs(missing=filters.missing, draws=filters.draws, seed=filters.seed, find=find)


def reference(filters: Filters) -> str | None:
    """Who judges are compared with. Raises as `estimate`."""
    name = estimate(filters, "reference")["reference"].iloc[0]
    return None if name is None else str(name)


def overlap(filters: Filters) -> Overlap:
    """How far judges answered the same traces. Raises as `estimate`."""
    row = {str(name): value for name, value in estimate(filters, "overlap").astype(object).iloc[0].items()}
    return Overlap(**{**row, "fewest": row["fewest"] if isinstance(row["fewest"], str) else None})


def facts(filters: Filters) -> Facts:
    """What a manifest tells of the data that the filters leave. Raises as `estimate`."""
    return facts_in(estimate(filters, "facts"))


def pending(filters: Filters, name: str) -> EstimateKey | None:
    """An estimate that the worker is still to make, and is asked for by that; None where it is there."""
    at = now_revision() if filters.revision is None else filters.revision
    if filters.revision is None and is_small(at):
        return None
    key = EstimateKey(name=name, filters=filters, revision=at)
    if queue().is_pending(key):
        queue().ask(key)
        return key
    return key if queue().is_stale(key) else None


def revisions(filters: Filters) -> Revisions:
    """Which revision to show: an older one while all that was shown of it is made of the data as it is now."""
    now = now_revision()
    if is_small(now):
        return Revisions(shown=now)
    files = queue().files
    older = files.newest(filters, but=now)
    if older is None:
        return Revisions(shown=now)
    newer = Renewal(
        filters=filters.unpinned(),
        names=files.names(filters, older),
        revision=now,
        more=queue().shown_lately(filters),
    )
    if all(files.has(EstimateKey(name=name, filters=filters, revision=now)) for name in newer.names):
        return Revisions(shown=now)
    if queue().is_pending(newer):
        queue().ask(newer)
    return Revisions(shown=older, pending=newer)


def pinned(filters: Filters) -> tuple[Filters, Revisions]:
    """The filters held to the revision to show: all that a page shows is of one.

    What is made here is always of now.
    """
    current = revisions(filters)
    return (filters if is_small(current.shown) else replace(filters, revision=current.shown)), current


def with_all(filters: Filters, *names: str) -> Filters:
    """Wait until `ROWS` and these estimates are made, all of one revision, to which the filters given back are held.

    Raises `FailedEstimateError`, `NoEstimateError`.
    """
    now = now_revision()
    if is_small(now):
        return filters.unpinned()
    renewal = Renewal(filters=filters.unpinned(), names=(*ROWS, *names), revision=now)
    return replace(filters, revision=queue().renewed(renewal))


def start() -> None:
    """Have the worker ready before the first person asks, where it will be needed."""
    if not is_small_now():
        queue().start()


def shown_revision(revision: Revision) -> str:
    """A revision in words."""
    return f"data revision {revision_name(revision)}"


@dataclass(kw_only=True)
class _Patience(threading.local):
    """How long this script run may still wait for estimates before it shows what is there."""

    left: float = 0.0
    depth: int = 0


_RUN = _Patience()


@contextmanager
def patient(most_s: float) -> Iterator[None]:
    """A page, or a card drawn again by itself, waits so long in all: a short wait needs no second drawing."""
    if _RUN.depth == 0:
        _RUN.left = most_s
    _RUN.depth += 1
    try:
        yield
    finally:
        _RUN.depth -= 1


@contextmanager
def patience() -> Iterator[float]:
    """What is left of it, less what the block takes."""
    left, started = (_RUN.left if _RUN.depth else 0.0), time.monotonic()
    try:
        yield left
    finally:
        _RUN.left = max(0.0, left - (time.monotonic() - started))
