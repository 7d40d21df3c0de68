"""Runs as people plan, steer and watch them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

import orjson
from sqlalchemy import Connection, Engine, and_, func, select, update

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.trace import Json
from tracejury.judging.judges.prompt import prompts_version
from tracejury.judging.judges.rubric import AgentDescription, Rubric
from tracejury.judging.records import FAILED_STATES
from tracejury.judging.runs.run_owner import is_alive
from tracejury.judging.runs.run_spec import RunSpec, RunStatus
from tracejury.judging.runs.run_store import check_free, unanswered
from tracejury.judging.runs.verdicts import JudgeVersion, add_cells, add_run, ensure_judge_version
from tracejury.judging.store import tables
from tracejury.judging.store.locks import JUDGES, cells_of

_cell, _reply, _run, _request = tables.cell, tables.reply, tables.run, tables.request
_AT_ONCE = 500  # keys in one statement


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
    author: str = "command",
) -> int:
    """Put a run and all its cells into the database, queued; returns its key."""
    versions = {
        (key, model): judge_version(rubrics[key], model, spec, agents) for key in spec.rubrics for model in spec.models
    }
    with write_transaction(engine, JUDGES) as connection:
        run_key = add_run(connection, name=spec.title, spec=spec.to_json(), author=author, budget_usd=spec.budget_usd)
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
    """What a run is to do. Raises KeyError without such a run, ValueError for one that asks no model."""
    with read_transaction(engine) as connection:
        text = connection.scalar(select(_run.c.spec).where(_run.c.run_key == run_key))
    if text is None:
        raise KeyError(f"no run {run_key}")
    content = orjson.loads(text)
    if not asks_models(content):
        raise ValueError(f"run {run_key} asks no model: it holds offline checks, imports or joint verdicts")
    return RunSpec.from_json(content)


def asks_models(spec: object) -> bool:
    """Whether a process can work on a run with this spec (its JSON): not offline checks, not imports."""
    return isinstance(spec, dict) and "models" in spec and spec.get("mode") != "checks"


def last_run_of(engine: Engine, spec: RunSpec) -> int | None:
    """The newest run with the same judges, models, mode, order, agent and parameters; None without one."""
    with read_transaction(engine) as connection:
        rows = connection.execute(select(_run.c.run_key, _run.c.spec).order_by(_run.c.run_key.desc())).all()
    specs = ((int(key), orjson.loads(text)) for key, text in rows)
    return next((key for key, one in specs if asks_models(one) and RunSpec.from_json(one).kind == spec.kind), None)


def renew_limits(engine: Engine, run_key: int, spec: RunSpec) -> None:
    """Give a run that goes on the limits of today's `spec` (budget, pace, address ...); what it judges stays."""
    planned = run_spec(engine, run_key)
    renewed = replace(spec, rubrics=planned.rubrics, models=planned.models, repeats=planned.repeats, mode=planned.mode,
                      order=planned.order, agent=planned.agent, parameters=planned.parameters)  # fmt: skip
    with write_transaction(engine, cells_of(run_key)) as connection:
        connection.execute(
            update(_run)
            .where(_run.c.run_key == run_key)
            .values(spec=orjson.dumps(renewed.to_json()).decode(), budget_usd=renewed.budget_usd)
        )


def ensure_free(engine: Engine, run_key: int) -> None:
    """Raise `RunHeldError` where another process works on the run, before anything of it is changed."""
    with read_transaction(engine) as connection:
        check_free(connection, connection.execute(select(_run).where(_run.c.run_key == run_key)).one())


def want_failed_again(engine: Engine, run_key: int) -> int:
    """Make failed cells wait again, their replies never to be replayed; returns how many."""
    failed = and_(_cell.c.run_key == run_key, _cell.c.state.in_(FAILED_STATES))
    with write_transaction(engine, cells_of(run_key)) as connection:
        keys = list(connection.scalars(select(_cell.c.cell_key).where(failed)))
        for at in range(0, len(keys), _AT_ONCE):
            _want_again(connection, keys[at : at + _AT_ONCE])
        if keys:
            is_still = and_(_run.c.run_key == run_key, _run.c.status != "running")
            connection.execute(update(_run).where(is_still).values(status="queued", message="", ended_at=None))
    return len(keys)


def _want_again(connection: Connection, keys: Sequence[int]) -> None:
    connection.execute(update(_reply).where(is_one_of(_reply.c.cell_key, keys)).values(void=True))
    connection.execute(update(_request).where(is_one_of(_request.c.cell_key, keys)).values(void=True))
    connection.execute(update(_cell).where(is_one_of(_cell.c.cell_key, keys)).values(state="pending", finished_at=None))


def request_status(engine: Engine, run_key: int, status: RunStatus) -> None:
    """Note that a person pauses, cancels or queues a run again; its owner learns of it within seconds.

    A request that the run's status does not allow (to cancel what is done) changes nothing.
    """
    fits = and_(_run.c.run_key == run_key, is_one_of(_run.c.status, _MAY_FOLLOW[status]))
    with write_transaction(engine, cells_of(run_key)) as connection:
        connection.execute(update(_run).where(fits).values(status=status))


def pause(engine: Engine, run_key: int, message: str) -> None:
    """Pause a run that cannot be worked on, with its reason, unless a process owns it or it has ended."""
    fits = and_(_run.c.run_key == run_key, _run.c.owner.is_(None), _run.c.status.not_in(("done", "cancelled")))
    with write_transaction(engine, cells_of(run_key)) as connection:
        connection.execute(update(_run).where(fits).values(status="paused", message=message))


_MAY_FOLLOW: Mapping[RunStatus, tuple[RunStatus, ...]] = {
    "paused": ("queued", "running"),
    "cancelled": ("queued", "running", "paused", "out of budget"),
    "queued": ("paused", "out of budget", "cancelled", "running"),
    "running": (),
    "out of budget": (),
    "done": (),
}


class RunProgress(TypedDict):
    """How a run stands: counts of its cells by state, of scores by rubric, its cost, whether its owner lives.

    `cost_usd` sums the replies whose cost is known, `unpriced` counts the others (None and all: nothing is known).
    `unanswered` counts requests that were sent and whose answer is unknown; they may have cost `unanswered_usd`
    at most (None: no price is known).
    """

    run: int
    name: str
    status: RunStatus
    message: str
    spec: dict[str, Json]
    states: dict[str, int]
    scores: dict[str, dict[str, int]]
    replies: int
    unpriced: int
    cost_usd: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    unanswered: int
    unanswered_usd: float | None
    owner_alive: bool


def watch(engine: Engine, run_key: int) -> RunProgress:
    """How a run stands now. Raises KeyError without such a run."""
    with read_transaction(engine) as connection:
        row = connection.execute(select(_run).where(_run.c.run_key == run_key)).one_or_none()
        if row is None:
            raise KeyError(f"no run {run_key}")
        of_run = _cell.c.run_key == run_key
        states = connection.execute(select(_cell.c.state, func.count()).where(of_run).group_by(_cell.c.state))
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
        lost = unanswered(connection, run_key)
        return {
            "run": run_key,
            "name": row.name,
            "status": row.status,
            "message": row.message,
            "spec": orjson.loads(row.spec),
            "states": {str(state): int(count) for state, count in states},
            "scores": _scores(connection, run_key),
            "replies": paid[0],
            "unpriced": paid[0] - paid[1],
            "cost_usd": paid[2],
            "prompt_tokens": paid[3],
            "cached_tokens": paid[4],
            "completion_tokens": paid[5],
            "unanswered": lost.requests,
            "unanswered_usd": lost.most_usd,
            "owner_alive": is_alive(connection, row),
        }


def _scores(connection: Connection, run_key: int) -> dict[str, dict[str, int]]:
    rows = connection.execute(
        select(_cell.c.rubric, _cell.c.score, func.count())
        .where(_cell.c.run_key == run_key, _cell.c.state == "scored")
        .group_by(_cell.c.rubric, _cell.c.score)
    )
    by_rubric: dict[str, dict[str, int]] = {}
    for rubric, score, count in rows:
        by_rubric.setdefault(rubric, {})[str(score)] = count
    return by_rubric


def _agent_text(spec: RunSpec, agents: Mapping[str, AgentDescription]) -> str:
    if spec.agent == "none":
        return ""
    if spec.agent != "auto":
        return agents[spec.agent].text
    return "chosen by the trace: " + ", ".join(f"{name} {agent.version}" for name, agent in sorted(agents.items()))
