"""The rows of one run as its owner reads and writes them: cells, requests, replies, outcomes, batches.

Every write asks in its own transaction whether this process still owns the run. A reply is stored the moment it
arrives, before it is read; a request is recorded before it goes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, and_, bindparam, func, insert, or_, select, update

from tracejury.ingest.store import load, read_transaction, write_transaction
from tracejury.ingest.store.one_of import is_in_list
from tracejury.ingest.texts import compress, decompress
from tracejury.ingest.trace import Trace
from tracejury.judging.judges.model import ModelReply
from tracejury.judging.records import ANSWERED_STATES, CELL_STATES, Failure, Verdict
from tracejury.judging.runs.run_owner import (
    GONE_S,
    Owner,
    Presence,
    RunHeldError,
    RunTakenError,
    database_now,
    forget,
    is_alive,
    presence,
    process_of,
    silent_s,
)
from tracejury.judging.runs.run_spec import STOPPED, RunStatus
from tracejury.judging.runs.verdicts import finish_cells, now
from tracejury.judging.store import tables
from tracejury.judging.store.locks import cells_of

OPEN_STATES = ("pending", "running")
_cell, _reply, _run, _batch = tables.cell, tables.reply, tables.run, tables.batch
_request, _version = tables.request, tables.judge_version
# statements of every call, built once: building them costs more than running them
_EPOCH = select(_run.c.epoch).where(_run.c.run_key == bindparam("of_run"))
_ADD_REPLY, _ADD_REQUEST = insert(_reply), insert(_request)
_THIS_REQUEST = and_(
    _request.c.cell_key == bindparam("of_cell"),
    _request.c.request_hash == bindparam("hash"),
    _request.c.outcome.is_(None),
)
_END_REQUEST = update(_request).where(_THIS_REQUEST).values(outcome=bindparam("ends"))
_PUT_IN_BATCH = update(_request).where(_THIS_REQUEST).values(batch_id=bindparam("in"))
_IS_UNDER_WAY = select(_request.c.request_key).where(_THIS_REQUEST).limit(1)
_OPEN_BATCHES = select(_batch.c.model, _batch.c.batch_id).where(
    _batch.c.run_key == bindparam("of_run"), _batch.c.collected_at.is_(None)
)
_IN_OPEN_BATCH = func.coalesce(_request.c.batch_id, "").in_(
    select(_batch.c.batch_id).where(_batch.c.run_key == bindparam("of_run"), _batch.c.collected_at.is_(None))
)
_CELLS = select(_cell.c.cell_key, _cell.c.rubric, _version.c.model, _cell.c.trace_id, _cell.c.repeat).join(
    _version, _version.c.judge_version == _cell.c.judge_version
)
_OF_RUN = _cell.c.run_key == bindparam("of_run")
_AWAITED = select(_request.c.request_key).where(_request.c.cell_key == _cell.c.cell_key, _request.c.outcome.is_(None))
# asked again, what a batch or an earlier owner is still to be answered would be paid twice
_WAITING = and_(_OF_RUN, _cell.c.state == "pending", ~_AWAITED.exists())
# in the order of the index of run and state: any other sorts all cells that wait, for every claim
_FIRST_WAITING = (
    _CELLS.where(_WAITING).order_by(_cell.c.rubric, _cell.c.score, _cell.c.cost_usd, _cell.c.cell_key).limit(1)
)
_WAITING_BESIDE = _CELLS.where(
    _WAITING, _cell.c.trace_id == bindparam("of_trace"), _version.c.model == bindparam("of_model")
)
_OF_CELLS, _OF_REQUESTS = (is_in_list(table.c.cell_key, "of_cells") for table in (_cell, _request))
_CLAIM = update(_cell).where(_OF_CELLS).values(state="running")
_RELEASE = update(_cell).where(_OF_CELLS, _cell.c.state == "running").values(state="pending")
_OPEN_CELL = select(_cell.c.cell_key).where(_OF_RUN, _cell.c.state.in_(OPEN_STATES)).limit(1)
_ANSWERED_REQUESTS = (
    select(_reply.c.request_hash)
    .join(_cell, _cell.c.cell_key == _reply.c.cell_key)
    .where(_cell.c.trace_id == bindparam("of_trace"), _reply.c.void.is_(False))
)
_LOST_REQUESTS = select(_request.c.cell_key, _request.c.request_hash).where(
    _OF_REQUESTS, _request.c.outcome == "unknown", _request.c.void.is_(False)
)
_SAME_REQUEST = (
    select(_reply)
    .join(_cell, _cell.c.cell_key == _reply.c.cell_key)
    .where(_reply.c.request_hash == bindparam("hash"), _reply.c.void.is_(False))
)
_OWN_REPLY = _SAME_REQUEST.where(_reply.c.cell_key == bindparam("of_cell")).order_by(_reply.c.reply_key).limit(1)
_OTHER_REPLY = (
    _SAME_REQUEST.where(_reply.c.repeat == bindparam("of_repeat"), _cell.c.state.in_(ANSWERED_STATES))
    .order_by(_reply.c.reply_key)
    .limit(1)
)


class Cell(NamedTuple):
    """One judgement to make. `key` is the store's."""

    key: int
    rubric: str
    model: str
    trace_id: str
    repeat: int


class Paid(NamedTuple):
    """A reply as it came, and to which request."""

    cell: Cell
    request_hash: str
    reply: ModelReply


class Ended(NamedTuple):
    """A cell with its outcome."""

    cell: Cell
    outcome: Verdict | Failure


class StoredReply(NamedTuple):
    """A reply from the store; `is_own` says that this very cell paid for it."""

    reply: ModelReply
    is_own: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Sending:
    """A request about to be sent. `most_usd` is the most it can cost, None where no price is known."""

    cell: Cell
    request_hash: str
    most_usd: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Unanswered:
    """Requests sent whose answer is unknown: the owner or the connection ended, or the time ran out.

    `most_usd` is the most that they can have cost, None where a price is unknown.
    """

    requests: int
    most_usd: float | None


class RunStore:
    """One run of the database for the process that owns it. Each method is one transaction.

    They are called from one thread, one at a time; those that answer from memory on any thread.
    """

    def __init__(self, engine: Engine, run_key: int) -> None:
        self.engine, self.run_key = engine, run_key
        self.owner: Owner | None = None
        self.epoch = -1  # no owner's
        self._known: dict[int, frozenset[str]] = {}
        self._lost: set[tuple[int, str]] = set()

    # owning the run ---------------------------------------------------------------------------------------------

    def take(self, *, resumes: bool) -> RunStatus:
        """Become the owner of the run, unless nothing is to be done; returns where the run stands ("running": taken).

        What a person or a budget has stopped stays so, unless this start `resumes` it. Cells that the last owner had
        in hand wait again. Raises `RunHeldError` where another process owns the run.
        """
        with write_transaction(self.engine, cells_of(self.run_key)) as connection:
            run = connection.execute(select(_run).where(_run.c.run_key == self.run_key)).one()
            status: RunStatus = run.status
            if status in STOPPED and not resumes:
                return status
            if status in {"done", "cancelled"} and not self._is_open(connection):
                return status
            check_free(connection, run)
            self._own(connection, run)
        return "running"

    def _own(self, connection: Connection, run: Any) -> None:
        before: Presence = "gone" if run.owner is None else presence(self.engine, run.owner)
        self.owner = Owner(self.engine)
        self.epoch = run.epoch + 1
        connection.execute(
            update(_run)
            .where(_run.c.run_key == self.run_key)
            .values(
                owner=self.owner.name, epoch=self.epoch, heartbeat_at=database_now(connection), status="running",
                message="", ended_at=None,
            )
        )  # fmt: skip
        of_run = and_(_cell.c.run_key == self.run_key, _cell.c.state == "running")
        connection.execute(update(_cell).where(of_run).values(state="pending"))
        if before == "gone":
            self._lose(connection, sent_before=None)
        if before == "gone" and run.owner is not None:
            forget(self.engine, run.owner)

    def leave(self) -> None:
        """Let go of the owner's name; safe to call again."""
        if self.owner is not None:
            self.owner.leave()

    def heartbeat(self) -> RunStatus:
        """Give a sign of life, and learn what the run is wanted to do."""
        with self._writing() as connection:
            connection.execute(
                update(_run).where(_run.c.run_key == self.run_key).values(heartbeat_at=database_now(connection))
            )
            return self._status(connection)

    def end(
        self, status: RunStatus, message: str = "", *, is_by_person: bool = False, is_whole: bool = True
    ) -> RunStatus:
        """Give the run back, and say how this process's part ended; returns how the run now stands.

        Done where no cell is left (and what is made of the verdicts is made: `is_whole`). Where a person stopped it
        (`is_by_person`) and has resumed it since, it waits for its next owner, as with failed cells that were wanted
        again meanwhile.
        """
        with self._writing() as connection:
            stands, is_open = self._status(connection), self._is_open(connection)
            if is_by_person and stands not in STOPPED:
                ended: RunStatus = "queued"
            elif status == "cancelled" or (stands == "cancelled" and (is_open or status != "running")):
                ended = "cancelled"
            elif not is_open and is_whole:
                ended = "done"
            else:
                ended = "queued" if status == "running" else status
            self._give_back(connection, ended, message if ended in STOPPED else "")
        return ended

    def _give_back(self, connection: Connection, status: RunStatus, message: str) -> None:
        ended_at = now() if status in {"done", "cancelled"} else None
        connection.execute(
            update(_run)
            .where(_run.c.run_key == self.run_key)
            .values(status=status, message=message, ended_at=ended_at, owner=None)
        )

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A write transaction of the run's owner. Raises `RunTakenError` where this process is it no longer."""
        with write_transaction(self.engine, cells_of(self.run_key)) as connection:
            if not self._owns(connection):
                raise RunTakenError(
                    f"run {self.run_key} has another owner: this process paused for so long that another took the run "
                    "over. This process sends nothing more; what it stored is kept"
                )
            yield connection

    def _owns(self, connection: Connection) -> bool:
        return connection.scalar(_EPOCH, {"of_run": self.run_key}) == self.epoch

    def _status(self, connection: Connection) -> RunStatus:
        status: RunStatus = connection.scalars(select(_run.c.status).where(_run.c.run_key == self.run_key)).one()
        return status

    def _is_open(self, connection: Connection) -> bool:
        return connection.scalar(_OPEN_CELL, {"of_run": self.run_key}) is not None

    # cells ------------------------------------------------------------------------------------------------------

    def claim(self) -> Sequence[Cell]:
        """Take in hand all waiting cells of one trace and one model; empty when none waits now.

        Cells that a provider's batch, or an earlier owner's request under way, is still to answer are left alone.
        """
        with self._writing() as connection:
            waiting = {"of_run": self.run_key}
            first = connection.execute(_FIRST_WAITING, waiting).one_or_none()
            if first is None:
                return []
            beside = {**waiting, "of_trace": first.trace_id, "of_model": first.model}
            cells = sorted(Cell(*row) for row in connection.execute(_WAITING_BESIDE, beside))
            connection.execute(_CLAIM, {"of_cells": [cell.key for cell in cells]})
            self._learn(connection, cells)
        return cells

    def _learn(self, connection: Connection, cells: Sequence[Cell]) -> None:
        """Which requests have a reply (of this trace), or were sent in vain (of these cells): most need no look."""
        hashes = frozenset(connection.scalars(_ANSWERED_REQUESTS, {"of_trace": cells[0].trace_id}))
        self._known.update((cell.key, hashes) for cell in cells)
        lost = connection.execute(_LOST_REQUESTS, {"of_cells": [cell.key for cell in cells]})
        self._lost.update((int(key), str(request)) for key, request in lost)

    def cell(self, key: int) -> Cell:
        with read_transaction(self.engine) as connection:
            return Cell(*connection.execute(_CELLS.where(_cell.c.cell_key == key)).one())

    def is_unfinished(self) -> bool:
        """Whether a cell has no outcome yet."""
        with read_transaction(self.engine) as connection:
            return self._is_open(connection)

    def release(self, keys: Sequence[int]) -> None:
        """Give cells back unjudged."""
        with self._writing() as connection:
            connection.execute(_RELEASE, {"of_cells": keys})

    def finish(self, ended: Sequence[Ended]) -> Sequence[None]:
        """Store outcomes."""
        with self._writing() as connection:
            finish_cells(connection, [(cell.key, outcome) for cell, outcome in ended])
        for cell, _ in ended:
            self._known.pop(cell.key, None)
        return [None] * len(ended)

    def states(self) -> Mapping[str, int]:
        """Cells by state, those in hand among the pending."""
        with read_transaction(self.engine) as connection:
            rows = connection.execute(
                select(_cell.c.state, func.count()).where(_cell.c.run_key == self.run_key).group_by(_cell.c.state)
            ).all()
        counts: Counter[str] = Counter()
        for state, count in rows:
            counts[state if state in CELL_STATES else "pending"] += count
        return counts

    def trace(self, trace_id: str) -> Trace:
        with read_transaction(self.engine) as connection:
            return load(connection, trace_id, with_logs=False)

    # requests and replies ---------------------------------------------------------------------------------------

    def may_have_reply(self, cell: Cell, request_hash: str) -> bool:
        """Whether to look for a reply at all; from memory."""
        return request_hash in self._known.get(cell.key, frozenset())

    def reply(self, cell: Cell, request_hash: str, *, from_others: bool) -> StoredReply | None:
        """A stored reply to this very request: of this cell, else (`from_others`) of a judged cell of this repeat."""
        with read_transaction(self.engine) as connection:
            row = connection.execute(_OWN_REPLY, {"hash": request_hash, "of_cell": cell.key}).one_or_none()
            if row is None and from_others:
                row = connection.execute(_OTHER_REPLY, {"hash": request_hash, "of_repeat": cell.repeat}).one_or_none()
        return None if row is None else StoredReply(_to_reply(row), row.cell_key == cell.key)

    def note_sent(self, sendings: Sequence[Sending]) -> Sequence[None]:
        """Record requests before they go out: what is sent and never answered stays visible."""
        with self._writing() as connection:
            at = database_now(connection)
            rows = [
                {
                    "cell_key": sending.cell.key,
                    "request_hash": sending.request_hash,
                    "epoch": self.epoch,
                    "most_usd": sending.most_usd,
                    "sent_at": at,
                    "void": False,
                }
                for sending in sendings
            ]
            connection.execute(_ADD_REQUEST, rows)
        return [None] * len(rows)

    def note_failed(self, cell: Cell, request_hash: str, *, is_unknown: bool) -> None:
        """Record that no reply came: refused by the provider, or (`is_unknown`) perhaps answered and paid."""
        ends = "unknown" if is_unknown else "failed"
        with self._writing() as connection:
            connection.execute(_END_REQUEST, {"of_cell": cell.key, "hash": request_hash, "ends": ends})

    def keep_replies(self, paid: Sequence[Paid]) -> Sequence[None]:
        """Store paid replies, durably, before anything is done with them.

        A former owner may still store the answer to a request of its own that its successor waits for: so it is not
        sent again.
        """
        with write_transaction(self.engine, cells_of(self.run_key)) as connection:
            own = paid if self._owns(connection) else [one for one in paid if _is_under_way(connection, one)]
            self._keep(connection, own)
        self._know(paid)
        return [None] * len(paid)

    def _keep(self, connection: Connection, paid: Sequence[Paid]) -> None:
        if not paid:
            return
        at = now()
        ends = [{"of_cell": p.cell.key, "hash": p.request_hash, "ends": "answered"} for p in paid]
        connection.execute(_ADD_REPLY, [_reply_row(p, at) for p in paid])
        connection.execute(_END_REQUEST, ends)

    def _know(self, paid: Sequence[Paid]) -> None:
        for cell, request_hash, _ in paid:
            self._known[cell.key] = self._known.get(cell.key, frozenset()) | {request_hash}

    def is_unanswered(self, cell: Cell, request_hash: str) -> bool:
        """Whether this very request was sent before and its answer is unknown; from memory."""
        return (cell.key, request_hash) in self._lost

    def unanswered(self) -> Unanswered:
        """All requests of this run whose answer is unknown."""
        with read_transaction(self.engine) as connection:
            return unanswered(connection, self.run_key)

    def lose_requests(self, *, after_s: float) -> None:
        """Give up requests of an earlier owner that nobody heard of for so long: their time has run out."""
        with self._writing() as connection:
            self._lose(connection, sent_before=database_now(connection) - round(after_s * 1_000_000))

    def _lose(self, connection: Connection, *, sent_before: int | None) -> None:
        of_run = select(_cell.c.cell_key).where(_cell.c.run_key == self.run_key)
        under_way = [_request.c.cell_key.in_(of_run), _request.c.epoch != self.epoch, _request.c.outcome.is_(None)]
        old = [] if sent_before is None else [_request.c.sent_at < sent_before]
        lose = update(_request).where(*under_way, *old, ~_IN_OPEN_BATCH).values(outcome="unknown")
        connection.execute(lose, {"of_run": self.run_key})

    def spent_usd(self) -> float:
        """What all replies of this run have cost, as far as known."""
        with read_transaction(self.engine) as connection:
            spent = connection.scalar(
                select(func.sum(_reply.c.cost_usd))
                .join(_cell, _cell.c.cell_key == _reply.c.cell_key)
                .where(_cell.c.run_key == self.run_key)
            )
        return float(spent or 0.0)

    # batches ----------------------------------------------------------------------------------------------------

    def open_batches(self) -> Sequence[tuple[str, str]]:
        """Provider batches handed in and not collected: (model, batch id)."""
        with read_transaction(self.engine) as connection:
            rows = connection.execute(_OPEN_BATCHES, {"of_run": self.run_key})
            return [(row.model, row.batch_id) for row in rows]

    def note_batch(self, model: str, batch_id: str, sendings: Sequence[Sending]) -> None:
        """Record a batch and which requests went in it."""
        with self._writing() as connection:
            connection.execute(
                insert(_batch).values(batch_id=batch_id, run_key=self.run_key, model=model, created_at=now())
            )
            connection.execute(
                _PUT_IN_BATCH, [{"of_cell": one.cell.key, "hash": one.request_hash, "in": batch_id} for one in sendings]
            )

    def collect(self, batch_id: str, paid: Sequence[Paid]) -> None:
        """Store all replies of a batch, durably. What the batch was to answer and did not was not paid."""
        with self._writing() as connection:
            connection.execute(update(_batch).where(_batch.c.batch_id == batch_id).values(collected_at=now()))
            self._keep(connection, paid)
            left = and_(_request.c.batch_id == batch_id, _request.c.outcome.is_(None))
            connection.execute(update(_request).where(left).values(outcome="failed"))
        self._know(paid)


def check_free(connection: Connection, run: Any) -> None:
    """Raise `RunHeldError` where a process owns the run (its row) that is not known to be gone."""
    if run.owner is None:
        return
    place, silent = presence(connection.engine, run.owner), silent_s(connection, run)
    if place == "gone" or (place == "unknown" and silent >= GONE_S):
        return
    process = process_of(connection.engine, run.owner)
    who = "another machine or database client" if process is None else f"process {process} of this machine"
    seen = f"its last heartbeat was {max(silent, 0):.0f} s ago"
    if place == "unknown":
        remedy = f"wait until it is done, pause it on the page Runs, or start again {GONE_S:.0f} s after it ended"
    elif silent < GONE_S:
        remedy = "wait until it is done, or pause it on the page Runs"
    else:
        remedy = f"it is suspended or hangs: resume it, or end it (kill {process}) and start again"
    raise RunHeldError(f"run {run.run_key} is at work in {who}; {seen}. Try: {remedy}")


def unanswered(connection: Connection, run_key: int) -> Unanswered:
    """Requests known to be lost, and those under way that no living owner waits for; an open batch's are neither."""
    run = connection.execute(select(_run).where(_run.c.run_key == run_key)).one()
    waits = [_request.c.epoch != run.epoch] if is_alive(connection, run) else []
    gone = and_(_request.c.outcome.is_(None), ~_IN_OPEN_BATCH, *waits)
    row = connection.execute(
        select(func.count(), func.count(_request.c.most_usd), func.sum(_request.c.most_usd))
        .join(_cell, _cell.c.cell_key == _request.c.cell_key)
        .where(_OF_RUN, or_(_request.c.outcome == "unknown", gone)),
        {"of_run": run_key},
    ).one()
    requests, priced, most = row
    return Unanswered(requests=requests, most_usd=(most or 0.0) if requests == priced else None)


def _is_under_way(connection: Connection, paid: Paid) -> bool:
    this = {"of_cell": paid.cell.key, "hash": paid.request_hash}
    return connection.scalar(_IS_UNDER_WAY, this) is not None


def _reply_row(paid: Paid, at: int) -> dict[str, object]:
    cell, request_hash, reply = paid
    return {
        "cell_key": cell.key,
        "request_hash": request_hash,
        "repeat": cell.repeat,
        "body": _compressed(reply.text),
        "refusal": reply.refusal,
        "reasoning": None if reply.reasoning is None else _compressed(reply.reasoning),
        "finish_reason": reply.finish_reason,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "cached_tokens": reply.cached_tokens,
        "cache_write_tokens": reply.cache_write_tokens,
        "cost_usd": reply.cost_usd,
        "latency_s": reply.latency_s,
        "attempts": reply.attempts,
        "void": False,
        "created_at": at,
    }


def _compressed(text: str) -> bytes:
    return compress(text.encode("utf-8", "surrogatepass"), level=3)


def _to_reply(row: Any) -> ModelReply:
    return ModelReply(
        text=decompress(row.body).decode("utf-8", "surrogatepass"),
        finish_reason=row.finish_reason,
        refusal=row.refusal,
        reasoning=None if row.reasoning is None else decompress(row.reasoning).decode("utf-8", "surrogatepass"),
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        cached_tokens=row.cached_tokens,
        cache_write_tokens=row.cache_write_tokens,
        cost_usd=row.cost_usd,
        latency_s=row.latency_s,
        attempts=row.attempts,
    )
