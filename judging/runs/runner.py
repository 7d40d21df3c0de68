"""The grid judges x traces x repeats: claims cells, calls models at the right pace, keeps every paid reply.

A cell ends in exactly one state; a killed run goes on where it stopped, and what was answered before is replayed from
the store, never asked for again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from tracejury.judging.judges.limits import BatchedWriter, Budget, StopRunError
from tracejury.judging.judges.model import ModelReply, ModelRequest
from tracejury.judging.judges.rubric import AgentDescription, Rubric
from tracejury.judging.records import Call, Failure, Verdict
from tracejury.judging.runs.at_work import Stopping, StoreThread
from tracejury.judging.runs.batches import Batches
from tracejury.judging.runs.calls import Calls
from tracejury.judging.runs.groups import Group, Groups, Tokens
from tracejury.judging.runs.model_setup import ModelSetup, check_spec
from tracejury.judging.runs.run_owner import HEARTBEAT_S, RunTakenError
from tracejury.judging.runs.run_spec import STOPPED, RunSpec, RunStatus
from tracejury.judging.runs.run_store import Cell, Ended, RunStore, Unanswered

LOST_AFTER_S = 30.0  # on top of the time that a call may take: then an earlier owner's request has no answer
BATCH_CELLS = 400  # in one provider batch


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands. `rate` is cells a second since this start; costs are US dollars.

    `perhaps_usd` is what calls without an answer may have cost besides.
    """

    finished: int
    total: int
    states: Mapping[str, int]
    spent_usd: float
    elapsed_s: float
    perhaps_usd: float = 0.0

    @property
    def rate(self) -> float | None:
        return self.finished / self.elapsed_s if self.elapsed_s > 0 else None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """How a run, or this process's part of it, ended."""

    status: RunStatus
    message: str
    states: Mapping[str, int]
    spent_usd: float
    elapsed_s: float
    judged: int
    unanswered: Unanswered
    failures: tuple[tuple[Cell, str, str], ...] = ()
    """Cells that this process saw fail: (cell, state, reason)."""


class Runner:
    """Works on one run until no cell waits, or something stops it.

    `before_end` is called before the run is given back: what is to be made of its verdicts.
    """

    def __init__(
        self,
        spec: RunSpec,
        store: RunStore,
        *,
        rubrics: Mapping[str, Rubric],
        models: Mapping[str, ModelSetup],
        agents: Mapping[str, AgentDescription],
        progress: Callable[[Progress], None] | None = None,
        poll_s: float = 1.0,
        batch_poll_s: float = 30.0,
        batch_cells: int = BATCH_CELLS,
        resumes: bool = True,
        before_end: Callable[[], object] | None = None,
    ) -> None:
        check_spec(spec, rubrics=rubrics, models=models, agents=agents)
        self.spec, self.store = spec, store
        self.rubrics, self.models, self.agents = rubrics, models, agents
        self.progress, self.poll_s, self.batch_poll_s = progress, poll_s, batch_poll_s
        self.batch_cells, self.resumes, self.before_end = batch_cells, resumes, before_end
        self.stopping = Stopping()
        self._ready: deque[tuple[Group, Cell]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._none_until = 0.0
        self._failures: list[tuple[Cell, str, str]] = []
        self._errors_in_a_row = self._judged = 0

    def stop(self, message: str = "stopped") -> None:
        """Hand out no further cell; calls under way are finished and kept. Safe from a signal handler."""
        self.stopping.stop("paused", message)

    async def run(self) -> Summary:
        """Judge until no cell is left, the run is paused or cancelled, or a `StopRunError` ends it.

        Raises `RunHeldError` where another process owns the run, `RunTakenError` where one has taken it over.
        """
        self._started = time.monotonic()
        self._in_store = StoreThread()
        try:
            status = await self._in_store(partial(self.store.take, resumes=self.resumes))
            await self._begin()
            if status != "running":
                return await self._summary(status, "")
            await self._work()
            return await self._close()
        finally:
            self.store.leave()
            self._in_store.shutdown()

    async def _begin(self) -> None:
        unanswered = await self._in_store(self.store.unanswered)
        spent = await self._in_store(self.store.spent_usd)
        self._states = Counter(await self._in_store(self.store.states))
        budget = Budget(self.spec.budget_usd, spent, unanswered.most_usd or 0.0)
        store, in_store, stopping = self.store, self._in_store, self.stopping
        self._store_outcome = BatchedWriter[Ended, None](lambda ended: in_store(store.finish, ended))
        self._tokens = Tokens(self.spec)
        self._groups = Groups(self.spec, self._tokens, rubrics=self.rubrics, models=self.models, agents=self.agents)
        self._calls = Calls(self.spec, store, in_store=in_store, tokens=self._tokens, budget=budget, stopping=stopping)
        self._batches = Batches(
            store, models=self.models, in_store=in_store, groups=self._groups, calls=self._calls, stopping=stopping,
            poll_s=self.batch_poll_s,
        )  # fmt: skip

    async def _work(self) -> None:
        """Judge; whatever stops it, a fault too, stands in `stopping`."""
        heart = asyncio.create_task(self._heart())
        try:
            await (self._by_batches() if self.spec.batch else self._by_calls())
        except StopRunError as stop:
            self.stopping.stop_for(stop)
        except Exception as fault:
            self.stopping.fail(fault)
        finally:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _by_calls(self) -> None:
        while self.stopping.reason is None:
            if len(self._tasks) >= self.spec.concurrency:
                await self._any_task()
            elif self._ready:
                self._start(*self._ready.popleft())
            elif not await self._open_group() and not await self._wait_for_more():
                return

    async def _open_group(self) -> bool:
        """Claim the cells of a trace and send the first of them ahead; False when none waits.

        Where none waited a moment ago the store is not asked again: calls that end one by one bring no new cell.
        """
        if time.monotonic() < self._none_until:
            return False
        cells = await self._in_store(self.store.claim)
        if not cells:
            self._none_until = time.monotonic() + self.poll_s
            return False
        for some in self._groups.sharing(cells):
            group = await self._group(some)
            if group is not None:
                self._start(group, group.waiting.pop(0))
        return True

    async def _wait_for_more(self) -> bool:
        """Wait for a task, or for answers to an earlier owner's batch or requests; False when all is done."""
        if self._tasks:
            await self._any_task()
            return True
        if not await self._in_store(self.store.is_unfinished):
            return False
        if not await self._batches.collect_left():
            after_s = self.spec.timeout_s + LOST_AFTER_S
            await self._in_store(partial(self.store.lose_requests, after_s=after_s))
            await asyncio.sleep(self.poll_s)
        return True

    async def _any_task(self) -> None:
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED, timeout=self.poll_s)

    def _start(self, group: Group, cell: Cell) -> None:
        task = asyncio.create_task(self._judge(group, cell))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A task that raises could not reach the store, or no longer owns the run."""
        self._tasks.discard(task)
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            self.stopping.fail(fault)

    def _follow(self, group: Group) -> None:
        """The first reply of a group is there, so its prefix is cached: let the others go."""
        self._ready.extend((group, cell) for cell in group.waiting)
        group.waiting.clear()

    async def _group(self, cells: list[Cell]) -> Group | None:
        """The trace of some cells, read to fit their model; None (and the cells failed) where it cannot be read."""
        try:
            trace = await self._in_store(self.store.trace, cells[0].trace_id)
            return await self._in_store(self._groups.make, trace, cells)
        except Exception as error:
            for cell in cells:
                await self._finish(cell, _unexpected(cell, error))
            return None

    async def _judge(self, group: Group, cell: Cell) -> None:
        try:
            outcome = await self._outcome(group, cell)
        except StopRunError as stop:
            self.stopping.stop_for(stop)
            await self._in_store(self.store.release, [cell.key])
            return
        except RunTakenError:
            raise
        except Exception as error:  # the boundary: a fault in one cell never ends the run
            outcome = _unexpected(cell, error)
        finally:
            self._follow(group)
        await self._finish(cell, outcome)

    async def _outcome(self, group: Group, cell: Cell) -> Verdict | Failure:
        judge, limit, cached = self._groups.judge_of(cell), self._tokens.limit(group.setup), list[str]()

        async def call(request: ModelRequest) -> ModelReply:
            reply = await self._calls.reply(group, cell, request, cached)
            self._follow(group)
            return reply

        if self.spec.mode == "span":
            outcome = await group.judge_spans(judge, call, limit=limit)
        else:
            outcome = await group.judge_trace(judge, call, limit=limit, share_prefix=group.shares)
        if cached and isinstance(outcome, Verdict):
            outcome = replace(outcome, notes=(*outcome.notes, *dict.fromkeys(cached)))
        return outcome

    async def _by_batches(self) -> None:
        """Collect batches of earlier owners; hand in all cells that wait, and collect those."""
        while self.stopping.reason is None:
            if await self._batches.collect_left():
                continue
            cells = await self._claim_many()
            if not cells and not await self._wait_for_more():
                return
            try:
                await self._batch_of(cells)
            except StopRunError:
                await self._in_store(self.store.release, [cell.key for _, cell in cells])
                raise

    async def _claim_many(self) -> list[tuple[Group, Cell]]:
        cells: list[tuple[Group, Cell]] = []
        while len(cells) < self.batch_cells:
            claimed = await self._in_store(self.store.claim)
            if not claimed:
                break
            group = await self._group(list(claimed))
            if group is not None:
                cells += [(group, cell) for cell in group.waiting]
                group.waiting = []
        return cells

    async def _batch_of(self, cells: list[tuple[Group, Cell]]) -> None:
        """Ask for all replies at once; each cell is then judged from its stored reply like any other."""
        errors = await self._batches.replies(cells)
        for group, cell in cells:
            await self._finish(cell, await self._batches.judge(group, cell, errors))

    async def _finish(self, cell: Cell, outcome: Verdict | Failure) -> None:
        await asyncio.shield(self._store_outcome(Ended(cell, outcome)))
        self._judged += 1
        self._states[outcome.state] += 1
        self._states["pending"] -= 1
        if isinstance(outcome, Failure):
            self._failures.append((cell, outcome.state, outcome.reason))
        self._errors_in_a_row = self._errors_in_a_row + 1 if outcome.state == "error" else 0
        if self._errors_in_a_row >= self.spec.give_up_after:
            reason = outcome.reason if isinstance(outcome, Failure) else ""
            self.stopping.stop("paused", f"{self._errors_in_a_row} errors in a row, the last: {reason}")
        self._show()

    def _show(self) -> None:
        if self.progress is None:
            return
        self.progress(
            Progress(
                finished=self._judged,
                total=sum(self._states.values()) if self._states else 0,
                states=dict(self._states),
                spent_usd=self._calls.budget.spent_usd,
                perhaps_usd=self._calls.budget.perhaps_usd,
                elapsed_s=time.monotonic() - self._started,
            )
        )

    async def _heart(self) -> None:
        """Give signs of life, and stop when a person pauses or cancels the run, or another process has it."""
        try:
            while True:
                self.stopping.heed(await self._in_store(self.store.heartbeat))
                await asyncio.sleep(HEARTBEAT_S)
        except Exception as fault:
            self.stopping.fail(fault)

    async def _close(self) -> Summary:
        """Give back what was not judged, and say how it ended; raises the fault that ended it."""
        if isinstance(self.stopping.fault, RunTakenError):
            raise self.stopping.fault
        try:
            summary = await self._given_back()
        except Exception as error:
            raise self.stopping.fault or error from error
        if self.stopping.fault is not None:
            raise self.stopping.fault
        return summary

    async def _given_back(self) -> Summary:
        rest = [cell.key for _, cell in self._ready]
        if rest:
            await self._in_store(self.store.release, rest)
        is_whole = await self._before_end()
        next_status, message = self.stopping.reason or ("running", "")
        end = partial(self.store.end, next_status, message, is_by_person=self.stopping.is_by_person, is_whole=is_whole)
        status = await self._in_store(end)
        return await self._summary(status, message if status in STOPPED else "")

    async def _before_end(self) -> bool:
        """Whether that went well. What fails here pauses the run with its reason: started again, it is tried again."""
        try:
            if self.before_end is not None:
                await self._in_store(self.before_end)
        except Exception as error:
            status, message = self.stopping.reason or ("paused", "")
            after = f"its verdicts could not be put together: {type(error).__name__}: {error}"
            self.stopping.reason = (status, f"{message}; {after}" if message else after)
            self.stopping.fault = self.stopping.fault or error
            return False
        return True

    async def _summary(self, status: RunStatus, message: str) -> Summary:
        return Summary(
            status=status,
            message=message,
            states=await self._in_store(self.store.states),
            spent_usd=await self._in_store(self.store.spent_usd),
            elapsed_s=time.monotonic() - self._started,
            judged=self._judged,
            unanswered=await self._in_store(self.store.unanswered),
            failures=tuple(self._failures),
        )


def _unexpected(cell: Cell, error: Exception) -> Failure:
    return Failure(
        rubric=cell.rubric,
        trace_id=cell.trace_id,
        state="error",
        reason=f"unexpected {type(error).__name__}: {error}",
        call=Call(model=cell.model),
    )
