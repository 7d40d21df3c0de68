"""A run through a provider's batch interface: many requests handed in at once, collected when all are answered.

What is handed in is stored with its batch: whoever owns the run next collects it, and it is not paid twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tracejury.judging.judges.limits import StopRunError
from tracejury.judging.judges.model import FATAL, RETRIED, ModelError, ModelReply, ModelRequest
from tracejury.judging.records import Failure, Verdict
from tracejury.judging.runs.at_work import Stopping, StoreThread
from tracejury.judging.runs.calls import ASKED_BEFORE, Calls, request_hash
from tracejury.judging.runs.groups import Group, Groups
from tracejury.judging.runs.model_setup import BatchModel, ModelSetup
from tracejury.judging.runs.run_store import Cell, Paid, RunStore, Sending


class Batches:
    def __init__(
        self,
        store: RunStore,
        *,
        models: Mapping[str, ModelSetup],
        in_store: StoreThread,
        groups: Groups,
        calls: Calls,
        stopping: Stopping,
        poll_s: float,
    ) -> None:
        self._store, self._models, self._in_store = store, models, in_store
        self._groups, self._calls, self._stopping, self._poll_s = groups, calls, stopping, poll_s

    async def collect_left(self) -> bool:
        """Collect the batches that an earlier owner handed in; whether there were any."""
        left = await self._in_store(self._store.open_batches)
        for model, batch_id in left:
            await self._collect(model, batch_id, {})
        return bool(left)

    async def replies(self, cells: Sequence[tuple[Group, Cell]]) -> dict[str, ModelError]:
        """Ask for all replies at once and store them; what became of requests without one."""
        requests: dict[str, dict[str, ModelRequest]] = {}
        errors: dict[str, ModelError] = {}
        for group, cell in cells:
            await self._gather_request(group, cell, requests, errors)
        by_key = {cell.key: cell for _, cell in cells}
        for model, batch in requests.items():
            batch_id = await self._handed_in(model, batch, by_key)
            await self._collect(model, batch_id, errors)
        return errors

    async def judge(self, group: Group, cell: Cell, errors: Mapping[str, ModelError]) -> Verdict | Failure:
        """Judge a cell from its stored reply like any other."""

        async def stored(request: ModelRequest) -> ModelReply:
            key = request_hash(cell.model, request)
            reply = await self._calls.stored(cell, key)
            if reply is not None:
                return reply.reply if reply.is_own else replace(reply.reply, cost_usd=0.0)
            missing = ModelError("bad_request", "the batch holds no answer to this request")
            raise errors.get(f"{cell.key}-{key}", missing)

        return await group.judge_trace(self._groups.judge_of(cell), stored)

    async def _gather_request(
        self, group: Group, cell: Cell, requests: dict[str, dict[str, ModelRequest]], errors: dict[str, ModelError]
    ) -> None:
        """Let the judge write its request without sending it."""

        async def note(request: ModelRequest) -> ModelReply:
            key = request_hash(cell.model, request)
            stored = await self._calls.stored(cell, key)
            if stored is None and self._calls.is_left_alone(cell, key):
                errors[f"{cell.key}-{key}"] = ModelError("unanswered", ASKED_BEFORE)
            elif stored is None:
                requests.setdefault(cell.model, {})[f"{cell.key}-{key}"] = request
            raise ModelError("bad_request", "noted for the batch")

        await group.judge_trace(self._groups.judge_of(cell), note)

    async def _handed_in(self, model: str, requests: Mapping[str, ModelRequest], cells: Mapping[int, Cell]) -> str:
        setup = self._models[model]
        assert setup.batch is not None
        sendings = [self._sending(setup, cells, name, request) for name, request in requests.items()]
        async with self._calls.budget.room_for(sum(sending.most_usd or 0.0 for sending in sendings)):
            await self._in_store(self._store.note_sent, sendings)
            try:
                batch_id = await setup.batch.submit_batch(requests)
            except ModelError as error:
                for sending in sendings:
                    await self._calls.no_reply(sending.cell, sending.request_hash, error, sending.most_usd)
                raise StopRunError(f"{model}: {error.message}") from error
        await self._in_store(self._store.note_batch, model, batch_id, sendings)
        return batch_id

    def _sending(self, setup: ModelSetup, cells: Mapping[int, Cell], name: str, request: ModelRequest) -> Sending:
        key, _, request_key = name.partition("-")
        most_usd = self._calls.batch_cost(setup, request)
        return Sending(cell=cells[int(key)], request_hash=request_key, most_usd=most_usd)

    async def _collect(self, model: str, batch_id: str, errors: dict[str, ModelError]) -> None:
        """Wait for a batch and store its replies; what became of each other request of it goes into `errors`."""
        batch = self._models[model].batch
        if batch is None:
            raise StopRunError(f"{model} has no batch interface, and the batch {batch_id} of this run is not collected")
        paid: list[Paid] = []
        for name, result in (await self._polled(batch, batch_id)).items():
            key, _, request_key = name.partition("-")
            if isinstance(result, ModelError):
                errors[name] = result
            else:
                paid.append(Paid(await self._in_store(self._store.cell, int(key)), request_key, result))
        await self._in_store(self._store.collect, batch_id, paid)
        self._calls.budget.spent_usd += sum(one.reply.cost_usd or 0.0 for one in paid)

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
            if self._stopping.reason is not None:
                raise StopRunError(self._stopping.reason[1])
            await asyncio.sleep(self._poll_s)
