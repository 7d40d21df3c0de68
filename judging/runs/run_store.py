"""Judge runs in the store: planning a grid, claiming its cells by lease, keeping replies, finishing, watching."""

from __future__ import annotations

import hashlib
import os
import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Engine,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    update,
)

from tracejury.ingest.store import load, read_transaction, write_transaction
from tracejury.ingest.texts import compress, decompress
from tracejury.ingest.trace import Json, Trace
from tracejury.judging.judges.model import ModelReply
from tracejury.judging.judges.prompt import prompts_version
from tracejury.judging.judges.rubric import AgentDescription, Rubric
from tracejury.judging.records import CELL_STATES
from tracejury.judging.runs.runner import (
    HEARTBEAT_S,
    LEASE_S,
    Cell,
    Ended,
    Paid,
    RunSpec,
    RunStatus,
    Sending,
    StoredReply,
    Unanswered,
)
from tracejury.judging.runs.verdicts import JudgeVersion, add_cells, add_run, ensure_judge_version, finish_cells, now
from tracejury.judging.store import tables

_cell, _reply, _run, _batch = tables.cell, tables.reply, tables.run, tables.batch
_request, _pace, _version = tables.request, tables.pace, tables.judge_version
# statements of every call, built once: building them costs more than running them
_OURS = and_(_cell.c.cell_key == bindparam("of_cell"), _cell.c.worker == bindparam("by_worker"))
_ADD_REPLY = insert(_reply)
_MARK_REPLIED = update(_cell).where(_OURS, _cell.c.state == "running").values(state="replied")
_ADD_REQUEST = insert(_request)
_END_REQUEST = (
    update(_request)
    .where(
        _request.c.cell_key == bindparam("of_cell"),
        _request.c.request_hash == bindparam("hash"),
        _request.c.outcome.is_(None),
    )
    .values(outcome=bindparam("ends"))
)
_PUT_IN_BATCH = (
    update(_request)
    .where(
        _request.c.cell_key == bindparam("of_cell"),
        _request.c.request_hash == bindparam("hash"),
        _request.c.worker == bindparam("by_worker"),
        _request.c.outcome.is_(None),
    )
    .values(batch_id=bindparam("in"))
)
_OPEN_BATCHES = select(_batch.c.model, _batch.c.batch_id).where(
    _batch.c.run_key == bindparam("of_run"), _batch.c.collected_at.is_(None)
)
_HELD = select(_cell.c.cell_key).where(
    _cell.c.cell_key.in_(bindparam("of_cells", expanding=True)),
    _cell.c.worker == bindparam("by_worker"),
    _cell.c.state.in_(("running", "replied")),
)
_WORKERS = (
    select(_cell.c.worker)
    .where(_cell.c.run_key == bindparam("of_run"), _cell.c.state.in_(("running", "replied")))
    .distinct()
)
_CELLS = select(_cell.c.cell_key, _cell.c.rubric, _version.c.model, _cell.c.trace_id, _cell.c.repeat).join(
    _version, _version.c.judge_version == _cell.c.judge_version
)
_PENDING = and_(_cell.c.run_key == bindparam("of_run"), _cell.c.state == "pending")
_UNDER_WAY = and_(_cell.c.run_key == bindparam("of_run"), _cell.c.state.in_(("running", "replied")))
# in the order of the index of run and state: any other sorts all cells that wait, for every claim
_IN_ORDER = (_cell.c.state, _cell.c.rubric, _cell.c.score, _cell.c.cost_usd, _cell.c.cell_key)
_FIRST_PENDING = _CELLS.where(_PENDING).order_by(*_IN_ORDER[1:]).limit(1)
_FIRST_HELD = _CELLS.where(_UNDER_WAY).order_by(*_IN_ORDER).limit(1)
_BESIDE = and_(_cell.c.trace_id == bindparam("of_trace"), _version.c.model == bindparam("of_model"))
_PENDING_BESIDE, _HELD_BESIDE = _CELLS.where(_PENDING, _BESIDE), _CELLS.where(_UNDER_WAY, _BESIDE)
_OF_CELLS: BindParameter[int] = bindparam("of_cells", expanding=True)
_CLAIM = (
    update(_cell)
    .where(_cell.c.cell_key.in_(_OF_CELLS))
    .values(state="running", worker=bindparam("by_worker"), claimed_at=bindparam("at"))
)
_LOSE_REQUESTS = (  # who sent them is gone
    update(_request).where(_request.c.cell_key.in_(_OF_CELLS), _request.c.outcome.is_(None)).values(outcome="unknown")
)
_ANSWERED_REQUESTS = (
    select(_reply.c.request_hash)
    .join(_cell, _cell.c.cell_key == _reply.c.cell_key)
    .where(_cell.c.trace_id == bindparam("of_trace"), _reply.c.void.is_(False))
)
_LOST_REQUESTS = select(_request.c.cell_key, _request.c.request_hash).where(
    _request.c.cell_key.in_(_OF_CELLS), _request.c.outcome == "unknown", _request.c.void.is_(False)
)
_SAME_REQUEST = (
    select(_reply)
    .join(_cell, _cell.c.cell_key == _reply.c.cell_key)
    .where(_reply.c.request_hash == bindparam("hash"), _reply.c.void.is_(False))
)
_OWN_REPLY = _SAME_REQUEST.where(_reply.c.cell_key == bindparam("of_cell")).order_by(_reply.c.reply_key).limit(1)
_OTHER_REPLY = (
    _SAME_REQUEST.where(_reply.c.repeat == bindparam("of_repeat"), _cell.c.state.in_(("scored", "not_applicable")))
    .order_by(_reply.c.reply_key)
    .limit(1)
)
OPEN_STATES = ("pending", "running", "replied")
FAILED_STATES = ("unparsable", "too_long", "refused", "error")
_MICRO = 1_000_000


def judge_version(rubric: Rubric, model: str, spec: RunSpec, agents: Mapping[str, AgentDescription]) -> JudgeVersion:
    """The version of a judge in a run: everything that could change what it says."""
    return JudgeVersion(
        rubric=rubric.key,
        model=model,
        rubric_version=f"{rubric.version}-{prompts_version()[:8]}",
        mode=spec.mode,
        rubric_body=rubric.model_dump(mode="json", by_alias=True),
        prompt_order=spec.order,
        agent_text=_agent_text(spec, agents),
        parameters={**spec.parameters, **({} if spec.reasoning else {"trace_reasoning": "hidden"})},
    )


def plan_run(
    engine: Engine,
    spec: RunSpec,
    traces: Sequence[str],
    *,
    rubrics: Mapping[str, Rubric],
    agents: Mapping[str, AgentDescription],
    name: str = "",
    author: str = "command",
) -> int:
    """Put a run and all its cells into the store, queued; returns its key."""
    versions = {
        (key, model): judge_version(rubrics[key], model, spec, agents) for key in spec.rubrics for model in spec.models
    }
    title = name or f"{', '.join(spec.rubrics)} by {', '.join(spec.models)}"
    with write_transaction(engine) as connection:
        run_key = add_run(connection, name=title, spec=spec.to_json(), author=author, budget_usd=spec.budget_usd)
        for version in versions.values():
            ensure_judge_version(connection, version)
        add_cells(
            connection,
            run_key,
            [
                (versions[key, model].version, key, trace_id, repeat)
                for trace_id in traces
                for model in spec.models
                for repeat in range(spec.repeats)
                for key in spec.rubrics
            ],
        )
    return run_key


def run_spec(engine: Engine, run_key: int) -> RunSpec:
    """What a run is to do. Raises KeyError without such a run."""
    with read_transaction(engine) as connection:
        text = connection.scalar(select(_run.c.spec).where(_run.c.run_key == run_key))
    if text is None:
        raise KeyError(f"no run {run_key}")
    return RunSpec.from_json(orjson.loads(text))


def last_run_of(engine: Engine, spec: RunSpec) -> int | None:
    """The newest run with the same judges, models, mode, order, agent and parameters; None without one."""
    wanted = _kind(spec)
    with read_transaction(engine) as connection:
        rows = connection.execute(select(_run.c.run_key, _run.c.spec).order_by(_run.c.run_key.desc())).all()
    for key, text in rows:
        content = orjson.loads(text)
        if content.get("mode") == "checks" or "models" not in content:
            continue
        if _kind(RunSpec.from_json(content)) == wanted:
            return int(key)
    return None


def renew_limits(engine: Engine, run_key: int, spec: RunSpec) -> None:
    """Give a run that goes on the limits of today's `spec` (budget, pace, address ...); what it judges stays."""
    kept = run_spec(engine, run_key)
    renewed = replace(spec, rubrics=kept.rubrics, models=kept.models, repeats=kept.repeats, mode=kept.mode,
                      order=kept.order, agent=kept.agent, parameters=kept.parameters)  # fmt: skip
    with write_transaction(engine) as connection:
        connection.execute(
            update(_run)
            .where(_run.c.run_key == run_key)
            .values(spec=orjson.dumps(renewed.to_json()).decode(), budget_usd=renewed.budget_usd)
        )


def want_failed_again(engine: Engine, run_key: int, states: Sequence[str] = FAILED_STATES) -> int:
    """Make failed cells wait again, their replies never to be replayed; returns how many."""
    failed = and_(_cell.c.run_key == run_key, _cell.c.state.in_(states))
    with write_transaction(engine) as connection:
        keys = list(connection.scalars(select(_cell.c.cell_key).where(failed)))
        for some in _chunks(keys):
            connection.execute(update(_reply).where(_reply.c.cell_key.in_(some)).values(void=True))
            connection.execute(update(_request).where(_request.c.cell_key.in_(some)).values(void=True))
            connection.execute(
                update(_cell)
                .where(_cell.c.cell_key.in_(some))
                .values(state="pending", worker=None, claimed_at=None, finished_at=None)
            )
        if keys:
            connection.execute(
                update(_run).where(_run.c.run_key == run_key).values(status="queued", message="", ended_at=None)
            )
    return len(keys)


def wish(engine: Engine, run_key: int, status: RunStatus) -> None:
    """A person pauses, cancels or queues a run again; the worker learns of it within seconds.

    A wish that does not fit where the run stands by now (to cancel what is done) changes nothing.
    """
    fits = and_(_run.c.run_key == run_key, _run.c.status.in_(_WISHES[status]))
    with write_transaction(engine) as connection:
        connection.execute(update(_run).where(fits).values(status=status))


_WISHES: Mapping[RunStatus, tuple[str, ...]] = {
    "paused": ("queued", "running"),
    "cancelled": ("queued", "running", "paused"),
    "queued": ("paused", "cancelled", "running"),
    "running": (),
    "done": (),
}


def next_run(engine: Engine) -> int | None:
    """The oldest run that waits for a worker; None when none does.

    One that is queued or running waits with cells that a worker could take (those that this very process holds from
    an earlier start too: who asks is not at work), or when all its cells are judged and nobody is there to say so:
    its worker was killed before it did.
    """
    with read_transaction(engine) as connection:
        rows = connection.execute(
            select(_run).where(_run.c.status.in_(("queued", "running"))).order_by(_run.c.run_key)
        ).all()
        return next((int(row.run_key) for row in rows if _waits(connection, row)), None)


def _waits(connection: Connection, run: Any) -> bool:
    free = or_(_claimable(connection, run.run_key), _held_by(run.run_key, worker_name()))
    if connection.scalar(select(_cell.c.cell_key).where(free).limit(1)) is not None:
        return True
    is_open = and_(_cell.c.run_key == run.run_key, _cell.c.state.in_(OPEN_STATES))
    if connection.scalar(select(_cell.c.cell_key).where(is_open).limit(1)) is not None:
        return False
    return run.status == "queued" or not _has_worker(run)


def _has_worker(run: Any) -> bool:
    """Whether a worker has shown itself at a run within a lease, and is not known to be gone."""
    is_fresh = run.heartbeat_at is not None and now() - run.heartbeat_at < LEASE_S * _MICRO
    return is_fresh and not worker_is_dead(run.worker or "")


def watch(engine: Engine, run_key: int) -> dict[str, Json]:
    """How a run stands: status, message, counts by state, scores by judge, cost, tokens, whether a worker lives.

    `cost_usd` sums the replies whose cost is known, `unpriced` counts the others (None and all: nothing is known).
    `unanswered` counts requests that were sent and whose answer is unknown; they may have cost `unanswered_usd`
    at most (None: no price is known).
    """
    with read_transaction(engine) as connection:
        row = connection.execute(select(_run).where(_run.c.run_key == run_key)).one_or_none()
        if row is None:
            raise KeyError(f"no run {run_key}")
        of_run = _cell.c.run_key == run_key
        states = connection.execute(select(_cell.c.state, func.count()).where(of_run).group_by(_cell.c.state))
        scores = connection.execute(
            select(_cell.c.rubric, _cell.c.score, func.count())
            .where(of_run, _cell.c.state == "scored")
            .group_by(_cell.c.rubric, _cell.c.score)
        )
        paid = connection.execute(
            select(
                func.count(),
                func.count(_reply.c.cost_usd),
                func.sum(_reply.c.cost_usd),
                func.sum(_reply.c.prompt_tokens),
                func.sum(_reply.c.cached_tokens),
                func.sum(_reply.c.completion_tokens),
            )
            .select_from(_reply)
            .join(_cell, _cell.c.cell_key == _reply.c.cell_key)
            .where(of_run)
        ).one()
        by_rubric: dict[str, Json] = {}
        for rubric, score, count in scores:
            per_score = by_rubric.setdefault(rubric, {})
            assert isinstance(per_score, dict)
            per_score[str(score)] = count
        unanswered = _unanswered(connection, run_key)
        return {
            "run": run_key,
            "name": row.name,
            "status": row.status,
            "message": row.message,
            "spec": orjson.loads(row.spec),
            "states": {str(state): int(count) for state, count in states},
            "scores": by_rubric,
            "replies": paid[0],
            "unpriced": paid[0] - paid[1],
            "cost_usd": paid[2],
            "prompt_tokens": paid[3],
            "cached_tokens": paid[4],
            "completion_tokens": paid[5],
            "unanswered": unanswered.requests,
            "unanswered_usd": unanswered.most_usd,
            "worker_alive": row.status == "running" and _has_worker(row),
        }


class SqlRunStore:
    """The `judging.run.RunStore` of one run for one worker. Cells are held by lease: a dead worker's come back."""

    def __init__(self, engine: Engine, run_key: int, *, worker: str | None = None, lease_s: float = LEASE_S) -> None:
        self.engine, self.run_key = engine, run_key
        self.worker = worker or worker_name()
        self.lease_s = max(lease_s, 3 * HEARTBEAT_S)
        self._known: dict[int, frozenset[str]] = {}
        self._lost: set[tuple[int, str]] = set()

    def reclaim_own_cells(self) -> None:
        """Give back what an earlier start of this very process still holds: it ended where it could not release it."""
        with write_transaction(self.engine) as connection:
            connection.execute(
                update(_cell)
                .where(_held_by(self.run_key, self.worker))
                .values(state="pending", worker=None, claimed_at=None)
            )

    def begin(self, *, resumes: bool) -> RunStatus:
        with write_transaction(self.engine) as connection:
            status = self._status(connection)
            is_stopped = status in {"paused", "cancelled"} and not resumes
            if is_stopped or not self._is_open(connection):
                return status
            self._set_status(connection, "running")
        return "running"

    def claim(self) -> Sequence[Cell]:
        """All waiting cells of one trace and model: beside the next that waits."""
        with write_transaction(self.engine) as connection:
            cells = self._free_cells(connection)
            if not cells:
                return []
            for some in _chunks([cell.key for cell in cells]):
                connection.execute(_CLAIM, {"of_cells": some, "by_worker": self.worker, "at": now()})
                connection.execute(_LOSE_REQUESTS, {"of_cells": some})
            self._learn(connection, cells)
        return cells

    def _free_cells(self, connection: Connection) -> list[Cell]:
        """The cells to claim: never claimed or given back, and of the same trace and model what a lost worker held."""
        lost = self._lost_cells(connection)
        free, batches = {"of_run": self.run_key}, connection.execute(_OPEN_BATCHES, {"of_run": self.run_key}).all()
        unawaited = _unawaited([row.batch_id for row in batches])
        first = connection.execute(_FIRST_PENDING.where(*unawaited), free).one_or_none()
        if first is None and lost is not None:
            first = connection.execute(_FIRST_HELD.where(*unawaited, lost), free).one_or_none()
        if first is None:
            return []
        beside = {**free, "of_trace": first.trace_id, "of_model": first.model}
        found = list(connection.execute(_PENDING_BESIDE.where(*unawaited), beside))
        if lost is not None:
            found += list(connection.execute(_HELD_BESIDE.where(*unawaited, lost), beside))
        return sorted(Cell(*row) for row in found)

    def _lost_cells(self, connection: Connection) -> ColumnElement[bool] | None:
        """Which cells a worker held that is gone; None where none but this one holds any (it lost none)."""
        if set(connection.scalars(_WORKERS, {"of_run": self.run_key})) <= {self.worker}:
            return None
        return _lost(connection, self.run_key, self.lease_s)

    def _learn(self, connection: Connection, cells: Sequence[Cell]) -> None:
        """Which requests have a reply (of this trace), or were sent in vain (of these cells): most need no look."""
        hashes = frozenset(connection.scalars(_ANSWERED_REQUESTS, {"of_trace": cells[0].trace_id}))
        self._known.update((cell.key, hashes) for cell in cells)
        for some in _chunks([cell.key for cell in cells]):
            lost = connection.execute(_LOST_REQUESTS, {"of_cells": some})
            self._lost.update((int(key), str(request)) for key, request in lost)

    def cell(self, key: int) -> Cell:
        with read_transaction(self.engine) as connection:
            return Cell(*connection.execute(_CELLS.where(_cell.c.cell_key == key)).one())

    def unfinished(self) -> int:
        with read_transaction(self.engine) as connection:
            count = connection.scalar(
                select(func.count()).where(_cell.c.run_key == self.run_key, _cell.c.state.in_(OPEN_STATES))
            )
        return int(count or 0)

    def release(self, keys: Sequence[int]) -> None:
        with write_transaction(self.engine) as connection:
            for some in _chunks(keys):
                connection.execute(
                    update(_cell)
                    .where(
                        _cell.c.cell_key.in_(some),
                        _cell.c.worker == self.worker,
                        _cell.c.state.in_(("running", "replied")),
                    )
                    .values(state="pending", worker=None, claimed_at=None)
                )

    def may_have_reply(self, cell: Cell, request_hash: str) -> bool:
        return request_hash in self._known.get(cell.key, frozenset())

    def reply(self, cell: Cell, request_hash: str, *, from_others: bool) -> StoredReply | None:
        with read_transaction(self.engine) as connection:
            row = connection.execute(_OWN_REPLY, {"hash": request_hash, "of_cell": cell.key}).one_or_none()
            if row is None and from_others:
                row = connection.execute(_OTHER_REPLY, {"hash": request_hash, "of_repeat": cell.repeat}).one_or_none()
        return None if row is None else StoredReply(_to_reply(row), row.cell_key == cell.key)

    def note_sent(self, sendings: Sequence[Sending]) -> Sequence[None]:
        at = now()
        rows = [
            {
                "cell_key": sending.cell.key,
                "request_hash": sending.request_hash,
                "worker": self.worker,
                "most_usd": sending.most_usd,
                "sent_at": at,
                "void": False,
            }
            for sending in sendings
        ]
        with write_transaction(self.engine) as connection:
            connection.execute(_ADD_REQUEST, rows)
        return [None] * len(rows)

    def note_failed(self, cell: Cell, request_hash: str, *, is_unknown: bool) -> None:
        ends = "unknown" if is_unknown else "failed"
        with write_transaction(self.engine) as connection:
            connection.execute(_END_REQUEST, {"of_cell": cell.key, "hash": request_hash, "ends": ends})

    def is_unanswered(self, cell: Cell, request_hash: str) -> bool:
        return (cell.key, request_hash) in self._lost

    def unanswered(self) -> Unanswered:
        with read_transaction(self.engine) as connection:
            return _unanswered(connection, self.run_key)

    def book(self, model: str, *, gap_s: float) -> float:
        at, gap = now(), round(gap_s * _MICRO)
        with write_transaction(self.engine) as connection:
            moment = max(at, self._next_moment(connection, model) or at)
            self._set_moment(connection, model, moment + gap)
        return (moment - at) / _MICRO

    def hold(self, model: str, seconds: float) -> None:
        until = now() + round(seconds * _MICRO)
        with write_transaction(self.engine) as connection:
            self._set_moment(connection, model, max(until, self._next_moment(connection, model) or until))

    def _next_moment(self, connection: Connection, model: str) -> int | None:
        found = select(_pace.c.next_at).where(_pace.c.run_key == self.run_key, _pace.c.model == model)
        return connection.scalar(found)

    def _set_moment(self, connection: Connection, model: str, moment: int) -> None:
        ours = and_(_pace.c.run_key == self.run_key, _pace.c.model == model)
        moved = connection.execute(update(_pace).where(ours).values(next_at=moment))
        if moved.rowcount == 0:
            connection.execute(insert(_pace).values(run_key=self.run_key, model=model, next_at=moment))

    def keep_replies(self, paid: Sequence[Paid]) -> Sequence[None]:
        with write_transaction(self.engine) as connection:
            self._keep(connection, paid)
        self._know(paid)
        return [None] * len(paid)

    def _keep(self, connection: Connection, paid: Sequence[Paid]) -> None:
        at = now()
        ends = [{"of_cell": p.cell.key, "hash": p.request_hash, "ends": "answered"} for p in paid]
        connection.execute(_ADD_REPLY, [_reply_row(p, at) for p in paid])
        connection.execute(_END_REQUEST, ends)
        connection.execute(_MARK_REPLIED, [{"of_cell": p.cell.key, "by_worker": self.worker} for p in paid])

    def _know(self, paid: Sequence[Paid]) -> None:
        for cell, request_hash, _ in paid:
            self._known[cell.key] = self._known.get(cell.key, frozenset()) | {request_hash}

    def finish(self, ended: Sequence[Ended]) -> Sequence[bool]:
        keys = [cell.key for cell, _ in ended]
        with write_transaction(self.engine) as connection:
            held = set(connection.scalars(_HELD, {"of_cells": keys, "by_worker": self.worker}))
            finish_cells(connection, [(cell.key, outcome) for cell, outcome in ended if cell.key in held])
        for key in held:
            self._known.pop(key, None)
        return [key in held for key in keys]

    def spent_usd(self) -> float:
        with read_transaction(self.engine) as connection:
            spent = connection.scalar(
                select(func.sum(_reply.c.cost_usd))
                .join(_cell, _cell.c.cell_key == _reply.c.cell_key)
                .where(_cell.c.run_key == self.run_key)
            )
        return float(spent or 0.0)

    def states(self) -> Mapping[str, int]:
        with read_transaction(self.engine) as connection:
            rows = connection.execute(
                select(_cell.c.state, func.count()).where(_cell.c.run_key == self.run_key).group_by(_cell.c.state)
            ).all()
        counts: Counter[str] = Counter()
        for state, count in rows:
            counts[state if state in CELL_STATES else "pending"] += count
        return counts

    def heartbeat(self) -> RunStatus:
        with write_transaction(self.engine) as connection:
            at = now()
            connection.execute(update(_cell).where(_held_by(self.run_key, self.worker)).values(claimed_at=at))
            connection.execute(
                update(_run).where(_run.c.run_key == self.run_key).values(worker=self.worker, heartbeat_at=at)
            )
            status: RunStatus = connection.execute(
                select(_run.c.status).where(_run.c.run_key == self.run_key)
            ).scalar_one()
        return status

    def end(self, status: RunStatus, message: str = "", *, is_wish: bool = False) -> RunStatus:
        message += self._joint_verdicts_kept(status)
        with write_transaction(self.engine) as connection:
            stands, is_open = self._status(connection), self._is_open(connection)
            if is_wish and stands not in {"paused", "cancelled"}:
                return stands
            if status == "cancelled" or (status == "paused" and stands == "cancelled"):
                self._set_status(connection, "cancelled", message)
                return "cancelled"
            if is_open and status != "running":
                self._set_status(connection, status, message)
            if is_open:
                return status
        return self._end_done()

    def pause(self, message: str) -> None:
        """Pause a run that cannot be worked on, unless another worker has ended it."""
        message += self._joint_verdicts_kept("paused")
        with write_transaction(self.engine) as connection:
            if self._status(connection) not in {"done", "cancelled"}:
                self._set_status(connection, "paused", message)

    def _end_done(self) -> RunStatus:
        """No cell is left, so none can be judged while the jury speaks; but failed ones may be wanted again."""
        self._keep_joint_verdicts()
        with write_transaction(self.engine) as connection:
            if self._is_open(connection):
                return self._status(connection)
            self._set_status(connection, "done")
        return "done"

    def _status(self, connection: Connection) -> RunStatus:
        status: RunStatus = connection.scalars(select(_run.c.status).where(_run.c.run_key == self.run_key)).one()
        return status

    def _is_open(self, connection: Connection) -> bool:
        is_open = and_(_cell.c.run_key == self.run_key, _cell.c.state.in_(OPEN_STATES))
        return connection.scalar(select(_cell.c.cell_key).where(is_open).limit(1)) is not None

    def _set_status(self, connection: Connection, status: RunStatus, message: str = "") -> None:
        ended = now() if status in {"done", "cancelled"} else None
        connection.execute(
            update(_run)
            .where(_run.c.run_key == self.run_key)
            .values(status=status, message=message, ended_at=ended, worker=self.worker, heartbeat_at=now())
        )

    def _joint_verdicts_kept(self, status: RunStatus) -> str:
        """Keep them before a run stops; a pause goes on without, or no run could ever be paused for this very fault."""
        try:
            if status != "running":
                self._keep_joint_verdicts()
        except Exception as error:
            if status != "paused":
                raise
            return f"; the jury's verdicts are not kept: {type(error).__name__}: {error}"
        return ""

    def _keep_joint_verdicts(self) -> None:
        """Of a jury, before the run ends: a worker killed in between leaves a run that goes on, not one without."""
        try:
            spec = run_spec(self.engine, self.run_key)
        except (KeyError, TypeError, ValueError):  # a run that cannot be worked on is still to be paused
            return
        if spec.mode == "jury":
            from tracejury.judging.juries.joint_verdicts import keep_joint_verdicts

            keep_joint_verdicts(self.engine, self.run_key, spec.jury_rule)

    def trace(self, trace_id: str) -> Trace:
        with read_transaction(self.engine) as connection:
            return load(connection, trace_id, with_logs=False)

    def open_batches(self) -> Sequence[tuple[str, str]]:
        with read_transaction(self.engine) as connection:
            rows = connection.execute(_OPEN_BATCHES, {"of_run": self.run_key}).all()
            if not rows:
                return []
            held = and_(_held(self.run_key), ~_lost(connection, self.run_key, self.lease_s))
            waited_for = set(
                connection.scalars(
                    select(_request.c.batch_id)
                    .join(_cell, _cell.c.cell_key == _request.c.cell_key)
                    .where(_request.c.batch_id.in_([row.batch_id for row in rows]), held)
                )
            )
            return [(row.model, row.batch_id) for row in rows if row.batch_id not in waited_for]

    def note_batch(self, model: str, batch_id: str, sendings: Sequence[Sending]) -> None:
        with write_transaction(self.engine) as connection:
            connection.execute(
                insert(_batch).values(batch_id=batch_id, run_key=self.run_key, model=model, created_at=now())
            )
            connection.execute(
                _PUT_IN_BATCH,
                [
                    {
                        "of_cell": sending.cell.key,
                        "hash": sending.request_hash,
                        "by_worker": self.worker,
                        "in": batch_id,
                    }
                    for sending in sendings
                ],
            )

    def collect(self, batch_id: str, paid: Sequence[Paid]) -> bool:
        with write_transaction(self.engine) as connection:
            is_open = and_(_batch.c.batch_id == batch_id, _batch.c.collected_at.is_(None))
            if connection.execute(update(_batch).where(is_open).values(collected_at=now())).rowcount == 0:
                return False
            if paid:
                self._keep(connection, paid)
            left = and_(_request.c.batch_id == batch_id, _request.c.outcome.is_(None))
            connection.execute(update(_request).where(left).values(outcome="failed"))
        self._know(paid)
        return True


def worker_name() -> str:
    """This process, told from all others: a digest of the host's name, the process id, the process's start."""
    pid = os.getpid()
    return f"{_host()}:{pid}:{_started(pid)}"


def worker_is_dead(worker: str) -> bool:
    """Whether a worker of this very host is known to be gone; of other hosts only the lease tells."""
    host, _, rest = worker.partition(":")
    pid, _, started = rest.partition(":")
    if host != _host() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return started != _started(int(pid))


def worker_is_here(worker: str) -> bool:
    """Whether a worker of this very host is known to be alive: no lease of its ends, wherever the clock jumps to."""
    host, _, rest = worker.partition(":")
    pid, _, started = rest.partition(":")
    return host == _host() and pid.isdigit() and started not in ("", "0") and started == _started(int(pid))


def _held(run_key: int) -> ColumnElement[bool]:
    """Which cells of a run some worker holds."""
    return and_(_cell.c.run_key == run_key, _cell.c.state.in_(("running", "replied")))


def _held_by(run_key: int, worker: str) -> ColumnElement[bool]:
    """Which cells of a run this worker holds."""
    return and_(_held(run_key), _cell.c.worker == worker)


def _lost(connection: Connection, run_key: int, lease_s: float = LEASE_S) -> ColumnElement[bool]:
    """Of the cells that are held: those whose worker is dead, or whose lease is over."""
    workers = connection.scalars(select(_cell.c.worker).where(_held(run_key)).distinct()).all()
    dead = [worker for worker in workers if worker is not None and worker_is_dead(worker)]
    here = [worker for worker in workers if worker is not None and worker_is_here(worker)]
    is_over = and_(_cell.c.claimed_at < now() - int(lease_s * _MICRO), _cell.c.worker.not_in(here))
    return or_(is_over, _cell.c.worker.is_(None), _cell.c.worker.in_(dead))


def _claimable(connection: Connection, run_key: int) -> ColumnElement[bool]:
    """Which cells wait: never claimed, or held by a worker whose lease is over or that is dead."""
    is_free = or_(_cell.c.state == "pending", _lost(connection, run_key))
    return and_(_cell.c.run_key == run_key, _cell.c.state.in_(OPEN_STATES), is_free)


def _unawaited(batches: Sequence[str]) -> list[ColumnElement[bool]]:
    """Which cells no provider's batch is still to answer: asked again, they would be paid twice."""
    if not batches:
        return []
    asked = select(_request.c.cell_key).where(_request.c.batch_id.in_(batches), _request.c.outcome.is_(None))
    return [_cell.c.cell_key.not_in(asked)]


def _unanswered(connection: Connection, run_key: int) -> Unanswered:
    """Requests known to be lost, and those under way in cells that nobody holds; what an open batch holds is not."""
    is_open = select(_batch.c.batch_id).where(_batch.c.run_key == run_key, _batch.c.collected_at.is_(None))
    in_batch = func.coalesce(_request.c.batch_id, "").in_(is_open)
    gone = and_(_request.c.outcome.is_(None), ~in_batch, _claimable(connection, run_key))
    row = connection.execute(
        select(func.count(), func.count(_request.c.most_usd), func.sum(_request.c.most_usd))
        .join(_cell, _cell.c.cell_key == _request.c.cell_key)
        .where(_cell.c.run_key == run_key, or_(_request.c.outcome == "unknown", gone))
    ).one()
    requests, priced, most = row
    return Unanswered(requests=requests, most_usd=(most or 0.0) if requests == priced else None)


def _agent_text(spec: RunSpec, agents: Mapping[str, AgentDescription]) -> str:
    if spec.agent == "none":
        return ""
    if spec.agent != "auto":
        return agents[spec.agent].text
    return "chosen by the trace: " + ", ".join(f"{name} {agent.version}" for name, agent in sorted(agents.items()))


def _kind(spec: RunSpec) -> list[object]:
    return [
        sorted(spec.rubrics),
        sorted(spec.models),
        spec.mode,
        spec.order,
        spec.agent,
        dict(spec.parameters),
        spec.repeats,
    ]


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


def _chunks(keys: Sequence[int], size: int = 500) -> Iterable[Sequence[int]]:
    return (keys[at : at + size] for at in range(0, len(keys), size))


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]


def _started(pid: int) -> str:
    """When a process started, as the system counts it; empty where it does not tell (then only the id counts)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
