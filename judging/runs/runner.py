"""The grid judges x traces x repeats: claims cells, calls models at the right pace, keeps every paid reply.

A reply is stored the moment it arrives, before it is read; a cell ends in exactly one state; a killed run goes on
where it stopped, and what was answered before is replayed from the store, never asked for again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import orjson

from tracejury.ingest.trace import Trace
from tracejury.judging.judges.evidence import Finder
from tracejury.judging.judges.judge import Judge, Limit, ModelCapabilities, judge_spans, judge_trace
from tracejury.judging.judges.limits import BatchedWriter, Budget, OutOfBudgetError, RateLimiter, StopRunError
from tracejury.judging.judges.model import FATAL, RETRIED, Model, ModelError, ModelReply, ModelRequest, Prices
from tracejury.judging.judges.prompt import Prompts, build_prompt
from tracejury.judging.judges.rubric import AgentDescription, Rubric, agent_for
from tracejury.judging.judges.trace_text import TraceText, render_trace
from tracejury.judging.records import Call, Failure, Verdict
from tracejury.judging.runs.run_owner import HEARTBEAT_S, RunTakenError
from tracejury.judging.runs.run_spec import STOPPED, RunSpec, RunStatus
from tracejury.judging.runs.run_store import Cell, Ended, Paid, RunStore, Sending, StoredReply, Unanswered

T = TypeVar("T")
ANSWER_TOKENS = 4_000  # kept for an answer where max_tokens is not set: for context, pace and (at least) budget
ASKED_BEFORE = "sent before without a known answer (it may have been charged); not sent again, as this run was set up"
LOST_AFTER_S = 30.0  # on top of the time that a call may take: then an earlier owner's request has no answer
BATCH_CELLS = 400  # in one provider batch


class BatchModel(Protocol):
    """A model that also takes many requests at once, answered within hours."""

    async def submit_batch(self, requests: Mapping[str, ModelRequest]) -> str: ...

    async def poll_batch(self, batch_id: str) -> Mapping[str, ModelReply | ModelError] | None: ...


@dataclass(frozen=True, kw_only=True)
class ModelSetup:
    """A model and what is known of it: None for what is not."""

    call: Model
    prices: Prices | None = None
    context: int | None = None
    count: Callable[[str], int] = len
    capabilities: ModelCapabilities = field(default_factory=ModelCapabilities)
    batch: BatchModel | None = None


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


def request_hash(model: str, request: ModelRequest) -> str:
    """What makes two requests the same: model, parameters, prefix, rubric, form, turns."""
    turns = [(turn.role, turn.text) for turn in request.turns]
    parts = [model, dict(request.parameters), request.prompt.hash, request.form, turns]
    content = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(content).hexdigest()


# the runner -----------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Group:
    """Cells of one trace and one model: they share a prefix. The first one goes ahead, the others follow."""

    setup: ModelSetup
    finder: Finder
    prompts: Prompts
    agent: AgentDescription | None
    shares: bool
    waiting: list[Cell]


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
        self._limiters = {name: self._limiter() for name in spec.models}
        self._send = BatchedWriter[Sending, None](lambda sendings: self._in_store(self.store.note_sent, sendings))
        self._keep = BatchedWriter[Paid, None](lambda paid: self._in_store(self.store.keep_replies, paid))
        self._store_outcome = BatchedWriter[Ended, None](lambda ended: self._in_store(self.store.finish, ended))
        self._judges: dict[tuple[str, str], Judge] = {}
        self._counts: dict[tuple[int, bytes], int] = {}
        self._ready: deque[tuple[_Group, Cell]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop: tuple[RunStatus, str] | None = None
        self._is_by_person = False  # who stopped it
        self._fault: BaseException | None = None
        self._none_until = 0.0
        self._failures: list[tuple[Cell, str, str]] = []
        self._errors_in_a_row = self._judged = self._longest_answer = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="run-store")

    def stop(self, message: str = "stopped") -> None:
        """Hand out no further cell; calls under way are finished and kept. Safe from a signal handler."""
        self._stop = self._stop or ("paused", message)

    async def run(self) -> Summary:
        """Judge until no cell is left, the run is paused or cancelled, or a `StopRunError` ends it.

        Raises `RunHeldError` where another process owns the run, `RunTakenError` where one has taken it over.
        """
        self._started = time.monotonic()
        try:
            status = await self._in_store(partial(self.store.take, resumes=self.resumes))
            await self._begin()
            if status != "running":
                return await self._summary(status, "")
            await self._work()
            return await self._close()
        finally:
            self.store.leave()
            self._thread.shutdown()

    async def _begin(self) -> None:
        unanswered = await self._in_store(self.store.unanswered)
        spent = await self._in_store(self.store.spent_usd)
        self._budget = Budget(self.spec.budget_usd, spent, unanswered.most_usd or 0.0)
        self._states = Counter(await self._in_store(self.store.states))

    async def _work(self) -> None:
        """Judge; whatever stops it stands in `_stop`, and a fault in `_fault`."""
        heart = asyncio.create_task(self._heart())
        try:
            await (self._by_batches() if self.spec.batch else self._by_calls())
        except StopRunError as stop:
            self._stop_for(stop)
        except Exception as fault:
            self._fail(fault)
        finally:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _stop_for(self, stop: StopRunError) -> None:
        self._stop = self._stop or ("out of budget" if isinstance(stop, OutOfBudgetError) else "paused", str(stop))

    def _fail(self, fault: BaseException) -> None:
        """A fault of the store or of ours ends the run: it is paused, and `run` raises the fault."""
        self._fault = self._fault or fault
        self._stop = self._stop or ("paused", f"{type(fault).__name__}: {fault}")

    def _limiter(self) -> RateLimiter:
        return RateLimiter(
            backoff_s=self.spec.backoff_s,
            rpm=self.spec.rpm,
            tpm=self.spec.tpm,
            stopping=lambda: self._stop is not None,
        )

    async def _by_calls(self) -> None:
        while self._stop is None:
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
        for some in self._sharing(cells):
            group = await self._group(some)
            if group is not None:
                self._start(group, group.waiting.pop(0))
        return True

    def _sharing(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        """Cells by prefix: all of them, or in the paper's order (rubric first) those of one judge."""
        if self.spec.order == "cache":
            return [list(cells)]
        by_rubric: dict[str, list[Cell]] = {}
        for cell in cells:
            by_rubric.setdefault(cell.rubric, []).append(cell)
        return list(by_rubric.values())

    async def _wait_for_more(self) -> bool:
        """Wait for a task, or for answers to an earlier owner's batch or requests; False when all is done."""
        if self._tasks:
            await self._any_task()
            return True
        if not await self._in_store(self.store.is_unfinished):
            return False
        if not await self._collect_left():
            after_s = self.spec.timeout_s + LOST_AFTER_S
            await self._in_store(partial(self.store.lose_requests, after_s=after_s))
            await asyncio.sleep(self.poll_s)
        return True

    async def _any_task(self) -> None:
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED, timeout=self.poll_s)

    def _start(self, group: _Group, cell: Cell) -> None:
        task = asyncio.create_task(self._judge(group, cell))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A task that raises could not reach the store, or no longer owns the run."""
        self._tasks.discard(task)
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            self._fail(fault)

    def _follow(self, group: _Group) -> None:
        """The first reply of a group is there, so its prefix is cached: let the others go."""
        self._ready.extend((group, cell) for cell in group.waiting)
        group.waiting.clear()

    async def _group(self, cells: list[Cell]) -> _Group | None:
        """The trace of some cells, read to fit their model; None (and the cells failed) where it cannot be read."""
        setup = self.models[cells[0].model]
        try:
            trace = await self._in_store(self.store.trace, cells[0].trace_id)
            finder = await self._in_store(self._read, trace, setup)
        except Exception as error:
            for cell in cells:
                await self._finish(cell, _unexpected(cell, error))
            return None
        agent = self._agent(trace)
        return _Group(
            setup=setup,
            finder=finder,
            prompts=Prompts(finder.reading.text),
            agent=agent,
            shares=len(cells) > 1,
            waiting=cells,
        )

    def _agent(self, trace: Trace) -> AgentDescription | None:
        if self.spec.agent == "auto":
            return agent_for(trace, self.agents)
        return None if self.spec.agent == "none" else self.agents[self.spec.agent]

    def _read(self, trace: Trace, setup: ModelSetup) -> Finder:
        finder = Finder(self._reading(trace, setup))
        _ = finder.notes  # computed here, on the store's thread, once for all judgements of the trace
        return finder

    def _reading(self, trace: Trace, setup: ModelSetup) -> TraceText:
        """The whole text where it fits the model beside the longest rubric, else one cut to fit."""
        reading = render_trace(trace, reasoning=self.spec.reasoning)
        if setup.context is None:
            return reading
        forms = setup.capabilities.forms
        prompts = [build_prompt("", self.rubrics[key], form=form) for key in self.spec.rubrics for form in forms]
        beside = max(self._count(setup, str(prompt)) for prompt in prompts)
        room = setup.context - self._answer_tokens() - beside - 2_000  # an agent description, a repair
        tokens = setup.count(reading.text)
        if tokens <= room:
            return reading
        budget = int(len(reading.text) * max(room, 0) / tokens * 0.97)
        return render_trace(trace, budget=budget, reasoning=self.spec.reasoning)

    async def _judge(self, group: _Group, cell: Cell) -> None:
        try:
            outcome = await self._outcome(group, cell)
        except StopRunError as stop:
            self._stop_for(stop)
            await self._in_store(self.store.release, [cell.key])
            return
        except RunTakenError:
            raise
        except Exception as error:  # the boundary: a fault in one cell never ends the run
            outcome = _unexpected(cell, error)
        finally:
            self._follow(group)
        await self._finish(cell, outcome)

    def _judge_of(self, cell: Cell) -> Judge:
        key = (cell.rubric, cell.model)
        if key not in self._judges:
            self._judges[key] = Judge(
                rubric=self.rubrics[cell.rubric],
                model=cell.model,
                parameters=self.spec.parameters,
                order=self.spec.order,
                repairs=self.spec.repairs and not self.spec.batch,
            )
        return self._judges[key]

    async def _outcome(self, group: _Group, cell: Cell) -> Verdict | Failure:
        judge, setup, cached = self._judge_of(cell), group.setup, list[str]()

        async def call(request: ModelRequest) -> ModelReply:
            reply = await self._reply(group, cell, request, cached)
            self._follow(group)
            return reply

        limit = None
        if setup.context is not None:
            limit = Limit(
                context=setup.context, count=lambda text: self._count(setup, text), answer=self._answer_tokens()
            )
        if self.spec.mode == "span":
            outcome = await judge_spans(
                judge,
                group.finder.reading,
                call,
                agent=group.agent,
                capabilities=setup.capabilities,
                limit=limit,
                finder=group.finder,
                prompts=group.prompts,
            )
        else:
            outcome = await judge_trace(
                judge,
                group.finder.reading,
                call,
                agent=group.agent,
                capabilities=setup.capabilities,
                limit=limit,
                share_prefix=group.shares,
                finder=group.finder,
                prompts=group.prompts,
            )
        if cached and isinstance(outcome, Verdict):
            outcome = replace(outcome, notes=(*outcome.notes, *dict.fromkeys(cached)))
        return outcome

    async def _reply(self, group: _Group, cell: Cell, request: ModelRequest, cached: list[str]) -> ModelReply:
        """The reply to a request: from the store where it was paid before, else from the model, stored at once."""
        key = request_hash(cell.model, request)
        stored = await self._stored(cell, key)
        if stored is not None:
            if stored.is_own:
                return stored.reply
            cached.append("response_cache: the reply of an earlier run to the same request, not charged again")
            return replace(stored.reply, cost_usd=0.0)
        if not self.spec.ask_again and self.store.is_unanswered(cell, key):
            raise ModelError("unanswered", ASKED_BEFORE)
        tokens = self._prompt_tokens(group.setup, request)
        async with self._budget.room_for(self._highest_cost(group, tokens) or 0.0):
            reply = await self._called(group, cell, request, key, tokens)
            await asyncio.shield(self._keep(Paid(cell, key, reply)))
            highest = self._highest_cost(group, tokens) or 0.0
            self._budget.spent_usd += reply.cost_usd if reply.cost_usd is not None else highest
            self._longest_answer = max(self._longest_answer, reply.completion_tokens or 0)
        return reply

    async def _stored(self, cell: Cell, key: str) -> StoredReply | None:
        if not self.store.may_have_reply(cell, key):
            return None
        return await self._in_store(lambda: self.store.reply(cell, key, from_others=self.spec.use_cache))

    async def _called(self, group: _Group, cell: Cell, request: ModelRequest, key: str, tokens: int) -> ModelReply:
        """The model's reply, with retries for what may pass; `StopRunError` for what no call would escape."""
        limiter, most = self._limiters[cell.model], self._highest_cost(group, tokens)
        for attempt in range(self.spec.attempts):
            await limiter.acquire(tokens + self._answer_tokens())
            await self._send(Sending(cell=cell, request_hash=key, most_usd=most))
            try:
                reply = await group.setup.call(request)
                return replace(reply, attempts=attempt + 1)
            except Exception as error:
                await self._no_reply(cell, key, error, most)
                if isinstance(error, ModelError) and error.kind in FATAL:
                    raise StopRunError(f"{cell.model}: {error.message}") from error
                if not isinstance(error, ModelError) or not self._is_tried_again(error, attempt):
                    raise
                await limiter.back_off(attempt, error)
        raise AssertionError("attempts are at least 1")

    async def _no_reply(self, cell: Cell, key: str, error: Exception, most_usd: float | None) -> None:
        """Record a call without a reply."""
        is_unknown = not isinstance(error, ModelError) or error.is_unknown
        await self._in_store(partial(self.store.note_failed, cell, key, is_unknown=is_unknown))
        if is_unknown:
            self._budget.perhaps_usd += most_usd or 0.0

    def _is_tried_again(self, error: ModelError, attempt: int) -> bool:
        if error.is_unknown and not self.spec.ask_again:
            return False
        return error.kind in RETRIED and attempt + 1 < self.spec.attempts

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
            self._stop = self._stop or ("paused", f"{self._errors_in_a_row} errors in a row, the last: {reason}")
        self._show()

    def _show(self) -> None:
        if self.progress is None:
            return
        self.progress(
            Progress(
                finished=self._judged,
                total=sum(self._states.values()) if self._states else 0,
                states=dict(self._states),
                spent_usd=self._budget.spent_usd,
                perhaps_usd=self._budget.perhaps_usd,
                elapsed_s=time.monotonic() - self._started,
            )
        )

    async def _heart(self) -> None:
        """Give signs of life, and stop when a person pauses or cancels the run, or another process has it."""
        try:
            while True:
                self._heed(await self._in_store(self.store.heartbeat))
                await asyncio.sleep(HEARTBEAT_S)
        except Exception as fault:
            self._fail(fault)

    def _heed(self, status: RunStatus) -> None:
        if status in {"paused", "cancelled"} and self._stop is None:
            self._stop, self._is_by_person = (status, f"{status} by a person"), True

    async def _close(self) -> Summary:
        """Give back what was not judged, and say how it ended; raises the fault that ended it."""
        if isinstance(self._fault, RunTakenError):
            raise self._fault
        try:
            summary = await self._given_back()
        except Exception as error:
            raise self._fault or error from error
        if self._fault is not None:
            raise self._fault
        return summary

    async def _given_back(self) -> Summary:
        rest = [cell.key for _, cell in self._ready]
        if rest:
            await self._in_store(self.store.release, rest)
        is_whole = await self._before_end()
        next_status, message = self._stop or ("running", "")
        end = partial(self.store.end, next_status, message, is_by_person=self._is_by_person, is_whole=is_whole)
        status = await self._in_store(end)
        return await self._summary(status, message if status in STOPPED else "")

    async def _before_end(self) -> bool:
        """Whether that went well. What fails here pauses the run with its reason: started again, it is tried again."""
        try:
            if self.before_end is not None:
                await self._in_store(self.before_end)
        except Exception as error:
            status, message = self._stop or ("paused", "")
            after = f"its verdicts could not be put together: {type(error).__name__}: {error}"
            self._stop = (status, f"{message}; {after}" if message else after)
            self._fault = self._fault or error
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

    async def _in_store(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    # tokens and costs -------------------------------------------------------------------------------------------

    def _answer_tokens(self) -> int:
        wished = self.spec.parameters.get("max_tokens") or self.spec.parameters.get("max_completion_tokens")
        return int(wished) if isinstance(wished, int) else ANSWER_TOKENS

    def _count(self, setup: ModelSetup, text: str) -> int:
        key = (id(setup), hashlib.sha1(text.encode("utf-8", "replace"), usedforsecurity=False).digest())
        if key not in self._counts:
            self._counts[key] = setup.count(text)
        return self._counts[key]

    def _prompt_tokens(self, setup: ModelSetup, request: ModelRequest) -> int:
        if self.spec.tpm is None and setup.prices is None:
            return 0  # nobody asks
        texts = [request.prompt.system, request.prompt.prefix, request.prompt.suffix]
        return sum(self._count(setup, text) for text in [*texts, *(turn.text for turn in request.turns)])

    def _highest_cost(self, group: _Group, tokens: int) -> float | None:
        """The most that a call can cost; None where no price is known."""
        prices = group.setup.prices
        if prices is None:
            return None
        each = max(prices.prompt, prices.cache_write or 0.0) if group.shares else prices.prompt
        return tokens * each + max(self._answer_tokens(), self._longest_answer) * prices.completion

    # batches ----------------------------------------------------------------------------------------------------

    async def _by_batches(self) -> None:
        """Collect batches of earlier owners; hand in all cells that wait, and collect those."""
        while self._stop is None:
            if await self._collect_left():
                continue
            cells = await self._claim_many()
            if not cells and not await self._wait_for_more():
                return
            try:
                await self._batch_of(cells)
            except StopRunError:
                await self._in_store(self.store.release, [cell.key for _, cell in cells])
                raise

    async def _collect_left(self) -> bool:
        """Collect the batches that an earlier owner handed in; whether there were any."""
        left = await self._in_store(self.store.open_batches)
        for model, batch_id in left:
            await self._collect(model, batch_id, {})
        return bool(left)

    async def _claim_many(self) -> list[tuple[_Group, Cell]]:
        cells: list[tuple[_Group, Cell]] = []
        while len(cells) < self.batch_cells:
            claimed = await self._in_store(self.store.claim)
            if not claimed:
                break
            group = await self._group(list(claimed))
            if group is not None:
                cells += [(group, cell) for cell in group.waiting]
                group.waiting = []
        return cells

    async def _batch_of(self, cells: list[tuple[_Group, Cell]]) -> None:
        """Ask for all replies at once; each cell is then judged from its stored reply like any other."""
        requests: dict[str, dict[str, ModelRequest]] = {}
        errors: dict[str, ModelError] = {}
        for group, cell in cells:
            await self._gather_request(group, cell, requests, errors)
        by_key = {cell.key: cell for _, cell in cells}
        for model, batch in requests.items():
            batch_id = await self._handed_in(model, batch, by_key)
            await self._collect(model, batch_id, errors)
        for group, cell in cells:
            await self._judge_from_batch(group, cell, errors)

    async def _gather_request(
        self, group: _Group, cell: Cell, requests: dict[str, dict[str, ModelRequest]], errors: dict[str, ModelError]
    ) -> None:
        """Let the judge write its request without sending it."""

        async def note(request: ModelRequest) -> ModelReply:
            key = request_hash(cell.model, request)
            stored = await self._stored(cell, key)
            if stored is None and not self.spec.ask_again and self.store.is_unanswered(cell, key):
                errors[f"{cell.key}-{key}"] = ModelError("unanswered", ASKED_BEFORE)
            elif stored is None:
                requests.setdefault(cell.model, {})[f"{cell.key}-{key}"] = request
            raise ModelError("bad_request", "noted for the batch")

        await judge_trace(
            self._judge_of(cell),
            group.finder.reading,
            note,
            agent=group.agent,
            capabilities=group.setup.capabilities,
            finder=group.finder,
            prompts=group.prompts,
        )

    async def _handed_in(self, model: str, requests: Mapping[str, ModelRequest], cells: Mapping[int, Cell]) -> str:
        batch = self.models[model].batch
        assert batch is not None
        sendings = [self._batch_sending(model, cells, name, request) for name, request in requests.items()]
        async with self._budget.room_for(sum(sending.most_usd or 0.0 for sending in sendings)):
            await self._in_store(self.store.note_sent, sendings)
            try:
                batch_id = await batch.submit_batch(requests)
            except ModelError as error:
                for sending in sendings:
                    await self._no_reply(sending.cell, sending.request_hash, error, sending.most_usd)
                raise StopRunError(f"{model}: {error.message}") from error
        await self._in_store(self.store.note_batch, model, batch_id, sendings)
        return batch_id

    def _batch_sending(self, model: str, cells: Mapping[int, Cell], name: str, request: ModelRequest) -> Sending:
        key, _, request_key = name.partition("-")
        return Sending(cell=cells[int(key)], request_hash=request_key, most_usd=self._batch_cost(model, request))

    async def _collect(self, model: str, batch_id: str, errors: dict[str, ModelError]) -> None:
        """Wait for a batch and store its replies; what became of each other request of it goes into `errors`."""
        batch = self.models[model].batch
        if batch is None:
            raise StopRunError(f"{model} has no batch interface, and the batch {batch_id} of this run is not collected")
        paid: list[Paid] = []
        for name, result in (await self._polled(batch, batch_id)).items():
            key, _, request_key = name.partition("-")
            if isinstance(result, ModelError):
                errors[name] = result
            else:
                paid.append(Paid(await self._in_store(self.store.cell, int(key)), request_key, result))
        await self._in_store(self.store.collect, batch_id, paid)
        self._budget.spent_usd += sum(one.reply.cost_usd or 0.0 for one in paid)

    async def _polled(self, batch: BatchModel, batch_id: str) -> Mapping[str, ModelReply | ModelError]:
        """The results of a batch once it has ended; none where it failed as a whole (its cells then fail).

        One that cannot be asked for may have been answered and paid: the run stops, and its next start asks again.
        """
        while True:
            try:
                results = await batch.poll_batch(batch_id)
            except ModelError as error:
                if error.kind in FATAL or (error.is_unknown and error.kind not in RETRIED):
                    raise StopRunError(f"the batch {batch_id} cannot be fetched: {error.message}") from error
                if error.kind not in RETRIED:
                    return {}
                results = None
            if results is not None:
                return results
            if self._stop is not None:
                raise StopRunError(self._stop[1])
            await asyncio.sleep(self.batch_poll_s)

    async def _judge_from_batch(self, group: _Group, cell: Cell, errors: Mapping[str, ModelError]) -> None:
        async def stored(request: ModelRequest) -> ModelReply:
            key = request_hash(cell.model, request)
            reply = await self._stored(cell, key)
            if reply is not None:
                return reply.reply if reply.is_own else replace(reply.reply, cost_usd=0.0)
            missing = ModelError("bad_request", "the batch holds no answer to this request")
            raise errors.get(f"{cell.key}-{key}", missing)

        outcome = await judge_trace(
            self._judge_of(cell),
            group.finder.reading,
            stored,
            agent=group.agent,
            capabilities=group.setup.capabilities,
            finder=group.finder,
            prompts=group.prompts,
        )
        await self._finish(cell, outcome)

    def _batch_cost(self, model: str, request: ModelRequest) -> float | None:
        setup = self.models[model]
        if setup.prices is None:
            return None
        tokens = self._prompt_tokens(setup, request)
        return setup.prices.cost(prompt=tokens, completion=self._answer_tokens(), batch=True)


def check_spec(
    spec: RunSpec,
    *,
    rubrics: Mapping[str, Rubric],
    models: Mapping[str, ModelSetup],
    agents: Mapping[str, AgentDescription],
) -> None:
    """Raise ValueError for a run that cannot be worked on: unknown names, or a budget without prices."""
    missing = [key for key in spec.rubrics if key not in rubrics]
    if missing:
        raise ValueError(f"no rubric for {', '.join(missing)}: it was removed, or its file renamed")
    if spec.agent not in {"auto", "none", *agents}:
        raise ValueError(f"no agent description {spec.agent!r}; there are auto, none, {', '.join(agents)}")
    unpriced = [name for name in spec.models if models[name].prices is None]
    if spec.budget_usd is not None and unpriced:
        raise ValueError(
            f"a budget needs prices, and none are known for {', '.join(unpriced)}: give the prices, or no budget"
        )
    if spec.batch and any(models[name].batch is None for name in spec.models):
        raise ValueError("this model has no batch interface")


def _unexpected(cell: Cell, error: Exception) -> Failure:
    return Failure(
        rubric=cell.rubric,
        trace_id=cell.trace_id,
        state="error",
        reason=f"unexpected {type(error).__name__}: {error}",
        call=Call(model=cell.model),
    )
