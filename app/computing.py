"""Heavy figures, made by the process of `judging.bench` beside this one: asked for here, found here once kept.

Whatever is shown comes from one revision of the data and says which. Nothing is computed twice: what one session
asked for, another and a reload find on disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Literal

import orjson
import pandas as pd

from tracejury.judging.reports.estimate_worker import Shelf, read_if_kept, revision_name
from tracejury.judging.reports.estimates import DERIVED, FRAMES, LATE, Chosen, Question, Revision

WHOLE = ("reference", "summary", *DERIVED, *FRAMES)
"""The figures that make a choice whole: an older revision is shown until the newer one has all of these."""

WANTED_S = 8.0  # a question that no page has asked for this long is let go
LOOK_S = 0.1  # a figure that another desk's process makes is looked for this often
ENDED = "the process that computes figures ended"
State = Literal["kept", "waiting", "failed", "moved on"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A figure of one revision."""

    question: Question
    now: Revision


class Waiting(Exception):  # noqa: N818
    """The figure is being made: nothing went wrong."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(f"computing {asked.question.title()}")
        self.asked = asked


class NotComputedError(Exception):
    """The figure could not be made; the message says why."""

    def __init__(self, asked: Asked, reason: str) -> None:
        super().__init__(f"{asked.question.title()} could not be computed: {reason}")
        self.asked, self.reason = asked, reason


class NoFigureError(NotComputedError, ValueError):
    """The choice has no such figure, and the message is the reason: nothing failed, and asking again changes nothing.

    A `ValueError` as the one that is raised where the figure is made in this process.
    """

    def __str__(self) -> str:
        return self.reason


class MovedOnError(NotComputedError):
    """The data changed before the figure was made: its revision cannot be read any more, a newer one can."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked, "the data changed meanwhile")


class Rank(IntEnum):
    """Which figures come first: those that a page waits for, those that it will draw, those nobody may ask for."""

    AWAITED = 0
    NEXT = 1
    AHEAD = 2


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """A figure that is wanted until a time."""

    asked: Asked
    until: float
    rank: Rank


@dataclass(frozen=True, kw_only=True)
class _Refusal:
    """Why a figure was not made; `is_reason`: the choice has none, else the making failed."""

    why: str
    is_reason: bool

    def error(self, asked: Asked) -> NotComputedError:
        return (NoFigureError if self.is_reason else NotComputedError)(asked, self.why)


@dataclass(kw_only=True)
class _Process:
    """The process and its two pipes."""

    running: subprocess.Popen[bytes]
    at: Revision | None = None
    """The revision that it holds; None until it has read the data."""

    def greet(self) -> None:
        """Wait until it has read the data. Raises as `ask`."""
        self._line()

    def ask(self, question: Question, now: Revision) -> dict[str, object]:
        """One question, one answer. Raises `OSError` or `ValueError` when the process has ended."""
        assert self.running.stdin is not None
        line = orjson.dumps({"question": orjson.loads(question.to_json()), "now": now})
        self.running.stdin.write(line + b"\n")
        self.running.stdin.flush()
        return self._line()

    def _line(self) -> dict[str, object]:
        assert self.running.stdout is not None
        answer = self.running.stdout.readline()
        if not answer:
            raise ValueError("no answer")
        held = orjson.loads(answer)
        assert isinstance(held, dict)
        if isinstance(made_of := held.get("revision"), list):
            self.at = tuple(made_of)
        return held

    def end(self) -> str:
        """Wait for its end, and how it ended."""
        self.running.kill()
        code = self.running.wait()
        return f"{ENDED} (signal {-code})" if code < 0 else f"{ENDED} (code {code})"


@dataclass(kw_only=True)
class Desk:
    """Takes questions and has them answered by rank, of one rank in the order they were first asked.

    One process answers most of them one by one; what takes long (`Question.is_late`) has another, so that nothing waits
    for it. Where that one has nothing of its own to do, it takes of what pages draw.
    """

    shelf: Shelf
    is_light: Callable[[Revision], bool] = lambda _now: False
    """Whether so little is held that nothing takes long: then one process answers all."""
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    _wanted: dict[tuple[str, Revision], _Wish] = field(default_factory=dict)
    _failed: dict[tuple[str, Revision], _Refusal] = field(default_factory=dict)
    _moved: set[tuple[str, Revision]] = field(default_factory=set)
    _taken: set[tuple[str, Revision]] = field(default_factory=set)
    _targets: dict[str, Revision] = field(default_factory=dict)
    _lock: threading.Condition = field(default_factory=threading.Condition)
    _threads: dict[bool, threading.Thread] = field(default_factory=dict)
    _processes: dict[bool, _Process] = field(default_factory=dict)

    def find(self, asked: Asked, *, patience_s: float = 0.0) -> pd.DataFrame:
        """The figure, waited for a moment. Raises `Waiting` (it is asked for then) or `NotComputedError`."""
        file = self.shelf.file(asked.question, asked.now)
        if not file.exists():
            self.be_patient(asked, patience_s)
        kept = read_if_kept(file)
        if kept is not None:
            assert kept[1] == asked.now, "a figure stands under another revision than its own"
            return kept[0]
        refused = self._failed.get(_key(asked))
        if refused is not None:
            raise refused.error(asked)
        self.ask(asked)
        raise Waiting(asked)

    def be_patient(self, asked: Asked, patience_s: float) -> None:
        """Ask, and wait until it is there or cannot be, at most so long."""
        if patience_s > 0 and self.state(asked) == "waiting":
            self.ask(asked)
        self._look_until(lambda: self.state(asked) != "waiting", patience_s)

    def wait(self, asked: Asked, *, at_most_s: float = 600) -> pd.DataFrame:
        """The figure, waited for: for files that leave. Raises `NotComputedError`, also when it takes too long.

        `MovedOnError` where its revision is gone: waited for, it would never come.
        """
        give_up = time.monotonic() + at_most_s
        while time.monotonic() < give_up:
            try:
                return self.find(asked)
            except Waiting:
                if self.state(asked) == "moved on":
                    raise MovedOnError(asked) from None
                with self._lock:
                    self._lock.wait(timeout=WANTED_S / 4)
        raise NotComputedError(asked, f"it took more than {at_most_s:g} s")

    def ask(self, asked: Asked, *, wanted_s: float = WANTED_S, rank: Rank = Rank.AWAITED) -> None:
        """Have it made within `wanted_s`; asked again, it stays wanted."""
        with self._lock:
            wish = _Wish(asked=asked, until=time.monotonic() + wanted_s, rank=rank)
            held = self._wanted.get(_key(asked), wish)
            until, first = max(wish.until, held.until), min(wish.rank, held.rank)
            self._wanted[_key(asked)] = replace(wish, until=until, rank=first)
            self._begin(self._is_late(asked))
            self._lock.notify_all()

    def start(self) -> None:
        """Have the process started that answers most questions: the first of them then waits for none."""
        with self._lock:
            self._begin(late=False, at_once=True)

    @property
    def is_ready(self) -> bool:
        """Whether that process has read the data."""
        process = self._processes.get(False)
        return process is not None and process.at is not None

    def _begin(self, late: bool, *, at_once: bool = False) -> None:
        if late not in self._threads:
            asking = threading.Thread(target=self._work, args=(late, at_once), daemon=True, name="figures")
            self._threads[late] = asking
            asking.start()

    def ask_ahead(self, every: Iterable[Asked], *, wanted_s: float = WANTED_S) -> None:
        """Have what is not there made when nothing else is wanted."""
        for asked in every:
            if self.state(asked) == "waiting":
                self.ask(asked, wanted_s=wanted_s, rank=Rank.AHEAD)

    def ask_again(self, asked: Asked) -> None:
        """After a failure."""
        with self._lock:
            self._failed.pop(_key(asked), None)
        self.ask(asked)

    def state(self, asked: Asked) -> State:
        """Whether it is there; `moved on`: the data changed before it could be made, ask of the newer revision."""
        if self.shelf.file(asked.question, asked.now).exists():
            return "kept"
        with self._lock:
            if _key(asked) in self._failed:
                return "failed"
            return "moved on" if _key(asked) in self._moved else "waiting"

    def standing(self, chosen: Chosen, now: Revision) -> tuple[Revision, Revision]:
        """The revision to show of a choice, and the one that is being made: equal where nothing is.

        A revision under way is finished before a newer one is begun: people who label all the time must not
        keep figures from ever being made.
        """
        for name in (*WHOLE, *LATE):
            self.shelf.use(Question(figure=name, chosen=chosen))
        if self.is_whole(chosen, now):
            return now, now
        key = chosen.key()
        with self._lock:
            target = self._targets.get(key, now)
            gone = any(k[1] == target and k[0].startswith(key) for k in (*self._moved, *self._failed))
        if target != now and (gone or self.is_whole(chosen, target)):
            target = now
        self._targets[key] = target
        older = self._newest_whole(chosen, now)
        return (target if older is None else older), target

    def ask_whole(self, chosen: Chosen, now: Revision, *, wanted_s: float = WANTED_S) -> Asked:
        """Ask for all that makes a choice whole; gives the first that is missing, or the last."""
        every = [Asked(question=Question(figure=name, chosen=chosen), now=now) for name in WHOLE]
        missing = [asked for asked in every if self.state(asked) == "waiting"]
        for asked in missing:
            self.ask(asked, wanted_s=wanted_s, rank=Rank.NEXT)
        return missing[-1] if missing else every[-1]

    def wait_whole(self, chosen: Chosen, now: Revision, *, at_most_s: float) -> None:
        """Wait until all that makes a choice whole is there or cannot be."""
        self._look_until(lambda: self.state(self.ask_whole(chosen, now)) != "waiting", at_most_s)

    def _look_until(self, is_done: Callable[[], bool], at_most_s: float) -> None:
        give_up = time.monotonic() + at_most_s
        while not is_done() and (left := give_up - time.monotonic()) > 0:
            with self._lock:
                self._lock.wait(timeout=min(left, LOOK_S))

    def failure(self, chosen: Chosen, now: Revision) -> NotComputedError | None:
        """The first of all that makes a choice whole that could not be made."""
        for name in WHOLE:
            asked = Asked(question=Question(figure=name, chosen=chosen), now=now)
            if self.state(asked) == "failed":
                return self._failed[_key(asked)].error(asked)
        return None

    def is_whole(self, chosen: Chosen, now: Revision) -> bool:
        return all(self.shelf.file(Question(figure=name, chosen=chosen), now).exists() for name in WHOLE)

    def close(self) -> None:
        """End the processes; the next question starts another."""
        with self._lock:
            running, self._processes = list(self._processes.values()), {}
        for process in running:
            process.end()

    def _newest_whole(self, chosen: Chosen, now: Revision) -> Revision | None:
        """The newest revision of which all is there."""
        mark = Question(figure="reference", chosen=chosen)
        for folder in self.shelf.revisions(mark.place()):
            kept = read_if_kept(folder / mark.file())
            if kept is not None and self.is_whole(chosen, kept[1]):
                return kept[1]
        return None

    def _work(self, late: bool, at_once: bool) -> None:
        if at_once:
            with suppress(OSError, ValueError):  # where it cannot start, the first question is told why
                self._process(late)
        while True:
            asked = self._next(late)
            answer = self._answer(asked, late)
            with self._lock:
                self._wanted.pop(_key(asked), None)
                self._taken.discard(_key(asked))
                if "error" in answer or "reason" in answer:
                    why, is_reason = answer.get("error", answer.get("reason")), "error" not in answer
                    self._failed[_key(asked)] = _Refusal(why=str(why), is_reason=is_reason)
                elif answer.get("revision") != list(asked.now):
                    self._moved.add(_key(asked))
                self._lock.notify_all()

    def _next(self, late: bool) -> Asked:
        """The first that is still wanted."""
        with self._lock:
            while True:
                now = time.monotonic()
                self._wanted = {key: wish for key, wish in self._wanted.items() if wish.until > now}
                found = [wish for key, wish in self._wanted.items() if key not in self._taken and self._may(wish, late)]
                if found:
                    # each its own first
                    first = min(found, key=lambda wish: (self._is_late(wish.asked) is not late, wish.rank)).asked
                    self._taken.add(_key(first))
                    return first
                self._lock.wait()

    def _is_late(self, asked: Asked) -> bool:
        return asked.question.is_slow() and not self.is_light(asked.now)

    def _may(self, wish: _Wish, late: bool) -> bool:
        """Whether a process may take it: the one for what takes long also what it can make of what it holds."""
        if self._is_late(wish.asked):
            return late
        helper = self._processes.get(True)
        holds = helper is not None and helper.at == wish.asked.now
        return not late or (holds and wish.rank < Rank.AHEAD and wish.asked.question.is_aside())

    def _answer(self, asked: Asked, late: bool) -> dict[str, object]:
        try:
            return self._process(late).ask(asked.question, asked.now)
        except (OSError, ValueError):
            process = self._processes.pop(late, None)
            return {"error": ENDED if process is None else process.end()}

    def _process(self, late: bool) -> _Process:
        """The process, which stays with what it has read; started where there is none. Raises as `_Process.ask`."""
        if late not in self._processes:
            self._processes[late] = _Process(running=self._started())
        process = self._processes[late]
        if process.at is None:
            process.greet()
        return process

    def _started(self) -> subprocess.Popen[bytes]:
        # -P: a stray file in the folder one is in must not shadow ours
        command = [sys.executable, "-P", "-m", "tracejury.judging.reports.estimate_worker", str(self.shelf.home)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment)


@dataclass(kw_only=True)
class _Patience(threading.local):
    """How long this script run may still wait for figures before it shows what is there."""

    left: float = 0.0
    depth: int = 0


_RUN = _Patience()


@contextmanager
def patient(most_s: float) -> Iterator[None]:
    """A page, or a card drawn again by itself, waits so long in all: a figure of a moment needs no second drawing."""
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


def _key(asked: Asked) -> tuple[str, Revision]:
    return f"{asked.question.chosen.key()}/{asked.question.file()}", asked.now


def shown_revision(now: Revision) -> str:
    """A revision in words."""
    return f"data revision {revision_name(now)}"
