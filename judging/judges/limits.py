"""What holds a run back: requests and tokens a minute, and its budget; and writes made together."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from tracejury.judging.judges.model import ModelError

T = TypeVar("T")
R = TypeVar("R")
LONGEST_WAIT_S = 600.0  # a provider that asks for more stops the run
STOPPED = "stopped before the call was sent"


class StopRunError(Exception):
    """No further call makes sense (authentication, budget); cells not yet judged wait for the next start."""


class OutOfBudgetError(StopRunError):
    """The limit in dollars that the run was given is reached."""


class RateLimiter:
    """Lets each call wait for its moment, and pauses all of them while a provider asks to wait.

    Calls are spaced evenly: `rpm` requests and `tpm` tokens a minute at most.
    """

    def __init__(
        self,
        *,
        backoff_s: float,
        rpm: int | None = None,
        tpm: int | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._rpm, self._tpm = rpm, tpm
        self._backoff_s, self._stopping = backoff_s, stopping
        self._next_at = self._paused_until = 0.0

    async def acquire(self, tokens: int) -> None:
        """Wait until a call of so many tokens may be sent. Raises `StopRunError` where the run stops before that."""
        loop = asyncio.get_running_loop()
        while True:
            await self._sleep_until(self._paused_until)
            await self._sleep_until(self._reserve(tokens))
            if self._stopping():
                raise StopRunError(STOPPED)
            if self._paused_until <= loop.time():  # else paused meanwhile: the reserved moment has passed
                return

    def _reserve(self, tokens: int) -> float:
        """The next free moment; the one after it comes when this call has had its share of the minute."""
        moment = max(self._next_at, asyncio.get_running_loop().time())
        gaps = (0.0 if self._rpm is None else 60.0 / self._rpm, 0.0 if self._tpm is None else tokens * 60.0 / self._tpm)
        self._next_at = moment + max(gaps)
        return moment

    async def back_off(self, attempt: int, error: ModelError) -> None:
        """Wait after a failed attempt (from 0): as long as the provider says, else exponentially with jitter."""
        now = asyncio.get_running_loop().time()
        if error.retry_after_s is None:
            longest = min(60.0, self._backoff_s * 2**attempt)
            await self._sleep_until(now + longest * random.uniform(0.5, 1.0))
            return
        if error.retry_after_s > LONGEST_WAIT_S:
            raise StopRunError(f"the provider asks for a pause of {error.retry_after_s:,.0f} s: {error.message}")
        self._paused_until = max(self._paused_until, now + error.retry_after_s)  # for all calls

    async def _sleep_until(self, moment: float) -> None:
        loop = asyncio.get_running_loop()
        while not self._stopping() and (left := moment - loop.time()) > 0:
            await asyncio.sleep(min(left, 0.5))


class Budget:
    """Lets a call go only if, at its highest price, the budget holds; waits while calls under way may cost less.

    `perhaps_usd` is what calls without an answer may have cost: it counts against the limit.
    """

    def __init__(self, limit_usd: float | None, spent_usd: float, perhaps_usd: float = 0.0) -> None:
        self.limit_usd, self.spent_usd, self.perhaps_usd = limit_usd, spent_usd, perhaps_usd
        self._reserved: list[float] = []
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def room_for(self, cost_usd: float) -> AsyncIterator[None]:
        """Hold `cost_usd` while the call runs. Raises `OutOfBudgetError` when there is no room and none will come."""
        if self.limit_usd is None:
            yield
            return
        async with self._changed:
            while not self._fits(cost_usd):
                if not self._reserved:
                    raise OutOfBudgetError(self._reached(cost_usd))
                await self._changed.wait()
            self._reserved.append(cost_usd)
        try:
            yield
        finally:
            async with self._changed:
                self._reserved.remove(cost_usd)
                self._changed.notify_all()

    def _fits(self, cost_usd: float) -> bool:
        in_use = self.spent_usd + self.perhaps_usd + sum(self._reserved)
        return self.limit_usd is None or in_use + cost_usd <= self.limit_usd

    def _reached(self, cost_usd: float) -> str:
        perhaps = f", ${self.perhaps_usd:.4f} perhaps (calls without an answer)" if self.perhaps_usd else ""
        return (
            f"the budget of ${self.limit_usd:.4f} is reached: ${self.spent_usd:.4f} spent{perhaps}, "
            f"the next call may cost ${cost_usd:.4f}"
        )


class BatchedWriter(Generic[T, R]):
    """Writes in one transaction what is handed in while an earlier write is under way.

    `write` gives a result for each item; who handed it in gets it, once it is written.
    """

    def __init__(self, write: Callable[[Sequence[T]], Awaitable[Sequence[R]]]) -> None:
        self._write = write
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def __call__(self, item: T) -> R:
        written: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, written))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_all())
        return await written

    async def _write_all(self) -> None:
        """Write until nothing waits: a task of its own, so that nobody's end stops the writing of others."""
        while self._waiting:
            group, self._waiting = self._waiting, []
            try:
                results: Sequence[R | BaseException] = await self._write([item for item, _ in group])
            except Exception as error:
                results = [error] * len(group)
            for (_, written), result in zip(group, results, strict=True):
                if written.cancelled():
                    continue
                if isinstance(result, BaseException):
                    written.set_exception(result)
                else:
                    written.set_result(result)
        self._writer = None
