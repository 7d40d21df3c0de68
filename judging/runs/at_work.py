"""A process at work on a run: the one thread that asks its store, and the reason why it goes no further."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tracejury.judging.judges.limits import OutOfBudgetError, StopRunError
from tracejury.judging.runs.run_spec import RunStatus

T = TypeVar("T")


class StoreThread:
    """Runs what asks the store, one after another, beside the calls under way."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="run-store")

    async def __call__(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def shutdown(self) -> None:
        self._thread.shutdown()


class Stopping:
    """Why no further cell is handed out: the first `reason` stands, as the status of the run and its message.

    `fault` is one of the store or of ours that ends the run; `is_by_person` says who stopped it.
    """

    def __init__(self) -> None:
        self.reason: tuple[RunStatus, str] | None = None
        self.fault: BaseException | None = None
        self.is_by_person = False

    def stop(self, status: RunStatus, message: str) -> None:
        self.reason = self.reason or (status, message)

    def stop_for(self, stop: StopRunError) -> None:
        self.stop("out of budget" if isinstance(stop, OutOfBudgetError) else "paused", str(stop))

    def fail(self, fault: BaseException) -> None:
        self.fault = self.fault or fault
        self.stop("paused", f"{type(fault).__name__}: {fault}")

    def heed(self, status: RunStatus) -> None:
        """Stop where a person has paused or cancelled the run."""
        if status in {"paused", "cancelled"} and self.reason is None:
            self.stop(status, f"{status} by a person")
            self.is_by_person = True
