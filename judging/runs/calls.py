"""The calls of a run: replayed from the store where they were paid before, else sent at the right pace, within budget.

A reply is stored the moment it arrives, before it is read.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from functools import partial

import orjson

from tracejury.judging.judges.limits import BatchedWriter, Budget, RateLimiter, StopRunError
from tracejury.judging.judges.model import FATAL, RETRIED, ModelError, ModelReply, ModelRequest
from tracejury.judging.runs.at_work import Stopping, StoreThread
from tracejury.judging.runs.groups import Group, Tokens
from tracejury.judging.runs.model_setup import ModelSetup
from tracejury.judging.runs.run_spec import RunSpec
from tracejury.judging.runs.run_store import Cell, Paid, RunStore, Sending, StoredReply

ASKED_BEFORE = "sent before without a known answer (it may have been charged); not sent again, as this run was set up"


def request_hash(model: str, request: ModelRequest) -> str:
    """What makes two requests the same: model, parameters, prefix, rubric, form, turns."""
    turns = [(turn.role, turn.text) for turn in request.turns]
    parts = [model, dict(request.parameters), request.prompt.hash, request.form, turns]
    content = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(content).hexdigest()


class Calls:
    def __init__(
        self,
        spec: RunSpec,
        store: RunStore,
        *,
        in_store: StoreThread,
        tokens: Tokens,
        budget: Budget,
        stopping: Stopping,
    ) -> None:
        self.budget = budget
        self._spec, self._store, self._in_store, self._tokens = spec, store, in_store, tokens
        self._limiters = {
            name: RateLimiter(
                backoff_s=spec.backoff_s,
                rpm=spec.rpm,
                tpm=spec.tpm,
                stopping=lambda: stopping.reason is not None,
            )
            for name in spec.models
        }
        self._send = BatchedWriter[Sending, None](lambda sendings: in_store(store.note_sent, sendings))
        self._keep = BatchedWriter[Paid, None](lambda paid: in_store(store.keep_replies, paid))
        self._longest_answer = 0

    async def reply(self, group: Group, cell: Cell, request: ModelRequest, cached: list[str]) -> ModelReply:
        """The reply to a request: from the store where it was paid before, else from the model, stored at once."""
        key = request_hash(cell.model, request)
        stored = await self.stored(cell, key)
        if stored is not None:
            if stored.is_own:
                return stored.reply
            cached.append("response_cache: the reply of an earlier run to the same request, not charged again")
            return replace(stored.reply, cost_usd=0.0)
        if self.is_left_alone(cell, key):
            raise ModelError("unanswered", ASKED_BEFORE)
        tokens = self._tokens.of_request(group.setup, request)
        async with self.budget.room_for(self._highest_cost(group, tokens) or 0.0):
            reply = await self._called(group, cell, request, key, tokens)
            await asyncio.shield(self._keep(Paid(cell, key, reply)))
            highest = self._highest_cost(group, tokens) or 0.0
            self.budget.spent_usd += reply.cost_usd if reply.cost_usd is not None else highest
            self._longest_answer = max(self._longest_answer, reply.completion_tokens or 0)
        return reply

    async def stored(self, cell: Cell, key: str) -> StoredReply | None:
        if not self._store.may_have_reply(cell, key):
            return None
        return await self._in_store(lambda: self._store.reply(cell, key, from_others=self._spec.use_cache))

    def is_left_alone(self, cell: Cell, key: str) -> bool:
        """Whether this request was sent before without a known answer, and is not to be sent again."""
        return not self._spec.ask_again and self._store.is_unanswered(cell, key)

    async def _called(self, group: Group, cell: Cell, request: ModelRequest, key: str, tokens: int) -> ModelReply:
        """The model's reply, with retries for what may pass; `StopRunError` for what no call would escape."""
        limiter, most = self._limiters[cell.model], self._highest_cost(group, tokens)
        for attempt in range(self._spec.attempts):
            await limiter.acquire(tokens + self._tokens.answer)
            await self._send(Sending(cell=cell, request_hash=key, most_usd=most))
            try:
                reply = await group.setup.call(request)
                return replace(reply, attempts=attempt + 1)
            except Exception as error:
                await self.no_reply(cell, key, error, most)
                if isinstance(error, ModelError) and error.kind in FATAL:
                    raise StopRunError(f"{cell.model}: {error.message}") from error
                if not isinstance(error, ModelError) or not self._is_tried_again(error, attempt):
                    raise
                await limiter.back_off(attempt, error)
        raise AssertionError("attempts are at least 1")

    def _is_tried_again(self, error: ModelError, attempt: int) -> bool:
        if error.is_unknown and not self._spec.ask_again:
            return False
        return error.kind in RETRIED and attempt + 1 < self._spec.attempts

    async def no_reply(self, cell: Cell, key: str, error: Exception, most_usd: float | None) -> None:
        """Record a call without a reply."""
        is_unknown = not isinstance(error, ModelError) or error.is_unknown
        await self._in_store(partial(self._store.note_failed, cell, key, is_unknown=is_unknown))
        if is_unknown:
            self.budget.perhaps_usd += most_usd or 0.0

    def _highest_cost(self, group: Group, tokens: int) -> float | None:
        """The most that a call can cost; None where no price is known."""
        prices = group.setup.prices
        if prices is None:
            return None
        each = max(prices.prompt, prices.cache_write or 0.0) if group.shares else prices.prompt
        return tokens * each + max(self._tokens.answer, self._longest_answer) * prices.completion

    def batch_cost(self, setup: ModelSetup, request: ModelRequest) -> float | None:
        """The most that a request in a batch can cost; None where no price is known."""
        if setup.prices is None:
            return None
        tokens = self._tokens.of_request(setup, request)
        return setup.prices.cost(prompt=tokens, completion=self._tokens.answer, batch=True)
