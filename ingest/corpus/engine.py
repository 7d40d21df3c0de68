"""Who does the work of a corpus: this process, several of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from tracejury.ingest.trace import IngestError
from tracejury.ingest.workers import process_context

Job = TypeVar("Job")
Result = TypeVar("Result")
WORKER_MEMORY = "1GB"
ANSWER_SECONDS = 30
"""How long a cluster may take to answer, and to have a worker."""
TRIES = 3
"""Times that work is given out again when the workers that had it died, and nothing was finished meanwhile."""


@dataclass(frozen=True, kw_only=True)
class Workers:
    """`engine` local: `count` processes (1: this one); dask: a cluster at `scheduler`, else `count` workers here."""

    engine: Literal["local", "dask"] = "local"
    count: int = 1
    scheduler: str | None = None

    def each(self, work: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Give the result of every job as it is done. What a worker had that died is given to another.

        Raises `IngestError` where the workers keep dying on the same work, or a package is missing.
        """
        if self.engine == "dask":
            yield from self._on_dask(work, jobs)
        elif self.count == 1 or len(jobs) < 2:
            yield from map(work, jobs)
        else:
            yield from in_processes(work, jobs, lambda: ProcessPoolExecutor(self.count, process_context()))

    def _on_dask(self, work: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        from distributed.scheduler import KilledWorker

        with self._dask_executor() as executor:
            try:
                for future in as_completed([executor.submit(work, job) for job in jobs]):
                    yield future.result()
            except KilledWorker as error:
                raise _died() from error
            except CancelledError as error:
                reason = f"the Dask scheduler {self.scheduler or 'of this machine'} ended; what was finished is kept"
                raise IngestError(reason, remedy="start it and run the same command again") from error

    @contextmanager
    def _dask_executor(self) -> Iterator[Executor]:
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            reason = f"--engine dask needs the package {error.name}"
            raise IngestError(reason, remedy="install tracejury[corpus]") from error
        logging.getLogger("distributed").setLevel(logging.WARNING)  # its import sets INFO: each socket, among our words
        if self.scheduler is not None:
            with _client_of(self.scheduler) as client:
                yield client.get_executor(pure=False)
            return
        options: dict[str, Any] = {"threads_per_worker": 1, "memory_limit": WORKER_MEMORY, "dashboard_address": None}
        with (
            LocalCluster(n_workers=self.count, **options) as cluster,  # type: ignore[no-untyped-call]
            Client(cluster) as client,  # type: ignore[no-untyped-call]
        ):
            yield client.get_executor(pure=False)


@contextmanager
def _client_of(scheduler: str) -> Iterator[Any]:
    """A client of a cluster that has a worker. Raises `IngestError` where none answers within `ANSWER_SECONDS`."""
    from distributed import Client

    try:
        client = Client(scheduler, timeout=ANSWER_SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        reason = f"no Dask scheduler answers at {scheduler}: {error}"
        raise IngestError(reason, remedy="start `dask scheduler`; its address looks like tcp://HOST:8786") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=ANSWER_SECONDS)
        except TimeoutError as error:
            reason = f"the Dask scheduler at {scheduler} has no worker"
            raise IngestError(
                reason, remedy=f"start one where Tracejury is installed: dask worker {scheduler}"
            ) from error
        yield client


def in_processes(
    work: Callable[[Job], Result], jobs: Sequence[Job], pool_of: Callable[[], ProcessPoolExecutor]
) -> Iterator[Result]:
    """As `Workers.each`, over the processes of a pool; a new pool goes on where one broke."""
    left = dict(enumerate(jobs))
    tries = 0
    while left:
        before = len(left)
        with pool_of() as pool:
            futures = {pool.submit(work, job): number for number, job in left.items()}
            for future in as_completed(futures):
                try:
                    result = future.result()
                except BrokenProcessPool:
                    continue
                del left[futures[future]]
                yield result
        tries = tries + 1 if len(left) == before else 0
        if tries == TRIES:
            raise _died()


def _died() -> IngestError:
    return IngestError(
        f"workers died {TRIES} times on the same files (out of memory?); what was finished is kept",
        remedy="split the largest files, then run the same command again",
    )
