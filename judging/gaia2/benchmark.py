"""Runs scenarios of GAIA2: which are still to do, each in its process, each in the workspace as soon as it ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from sqlalchemy import Engine, select

from tracejury.ingest.batch import ingest
from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.values import number, text
from tracejury.ingest.gsr import STATUSES, Execution, ExecutionStatus
from tracejury.ingest.parse import parse_json
from tracejury.ingest.store import read_transaction, schema
from tracejury.ingest.trace import Json
from tracejury.judging.gaia2.answers import Answerer, Chat, Spending, model_label
from tracejury.judging.gaia2.environment import AreEnvironment, Gaia2Error
from tracejury.judging.gaia2.folders import (
    OUTPUT,
    STOP,
    TRACE,
    execution_folder,
    execution_name,
    hold_folder,
    is_done,
    read_state,
    write_state,
)
from tracejury.judging.gaia2.live import last_words, partial_export
from tracejury.judging.gaia2.process import Ended, WorkerProcess
from tracejury.judging.gaia2.scenarios import Scenario
from tracejury.judging.gaia2.settings import ExecutionSettings
from tracejury.judging.judges.model import Prices
from tracejury.judging.reports.benchmark_outcomes import executions_of

TO_DO_AGAIN = frozenset({"stopped"})
"""Statuses of executions that a next start takes up by itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One execution to make: a scenario, a repeat from 1, and the attempt from 1."""

    scenario: Scenario
    repeat: int
    attempt: int
    settings: ExecutionSettings

    @property
    def name(self) -> str:
        return execution_name(self.settings.hash, self.scenario.scenario_id, self.repeat, self.attempt)

    def folder(self, home: Path) -> Path:
        one = self.scenario
        return execution_folder(home, self.settings.hash, one.capability, one.scenario_id, self.repeat, self.attempt)


@dataclass(frozen=True, kw_only=True)
class Models:
    """The models of a benchmark: each gives a chat for one execution. Prices are for the budget."""

    agent: Callable[[], Chat]
    judge: Callable[[], Chat] | None
    prices: Prices | None = None
    judge_prices: Prices | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What came of one execution, as the workspace has it."""

    job: Job
    execution: Execution
    tokens: int
    cost_usd: float | None
    seconds: float
    message: str | None


def plan(
    home: Path, scenarios: Sequence[Scenario], settings: ExecutionSettings, *, repeats: int, again: Sequence[str] = ()
) -> list[Job]:
    """The executions still to make, repeat by repeat: never made, stopped, or with a status in `again`.

    Raises ValueError for a status that no execution has.
    """
    unknown = [name for name in again if name not in STATUSES]
    if unknown:
        raise ValueError(f"no execution ends as {unknown[0]!r}. Try: {', '.join(STATUSES)}")
    statuses = TO_DO_AGAIN | set(again)
    jobs = (
        _next_attempt(home, Job(scenario=one, repeat=repeat, attempt=1, settings=settings), statuses)
        for repeat in range(1, repeats + 1)
        for one in scenarios
    )
    return [job for job in jobs if job is not None]


def _next_attempt(home: Path, job: Job, statuses: frozenset[str]) -> Job | None:
    while is_done(job.folder(home)):
        state = read_state(job.folder(home))
        later = replace(job, attempt=job.attempt + 1)
        if not is_done(later.folder(home)) and (state is None or state.status not in statuses):
            return None
        job = later
    return job


@dataclass(kw_only=True)
class Benchmark:
    """Makes executions, `workers` at a time. `stop` ends those under way, with their partial traces."""

    home: Path
    engine: Engine
    environment: AreEnvironment
    models: Models
    spending: Spending = field(default_factory=Spending)
    on_done: Callable[[Done], None] = lambda done: None
    then: Callable[[str], object] | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _storing: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        self._stopping.set()

    def run(self, jobs: Sequence[Job], *, workers: int) -> list[Done]:
        """Make these executions. One that another process works on is left to it."""
        with ThreadPoolExecutor(workers, thread_name_prefix="gaia2") as pool:
            outcomes = pool.map(self._make, jobs)
            return [done for done in outcomes if done is not None]

    def _make(self, job: Job) -> Done | None:
        if self._stopping.is_set():
            return None
        folder = job.folder(self.home)
        with hold_folder(folder) as is_mine:
            if not is_mine or is_done(folder):
                return None
            leftover = _leftover(folder)
            (folder / STOP).unlink(missing_ok=True)
            answerer = self._answerer(job)
            ended = leftover or self._work(job, folder, answerer)
            done = self._store(job, folder, ended, answerer)
        self.on_done(done)
        if leftover is not None and done.execution.status in TO_DO_AGAIN:  # a killed start left it: now make it
            return self._make(replace(job, attempt=job.attempt + 1))
        return done

    def _answerer(self, job: Job) -> Answerer:
        models, settings = self.models, job.settings
        return Answerer(
            agent=models.agent(),
            judge=None if models.judge is None else models.judge(),
            parameters=settings.parameters(job.scenario.scenario_id, job.repeat),
            prices=models.prices,
            judge_prices=models.judge_prices,
            spending=self.spending,
        )

    def _work(self, job: Job, folder: Path, answerer: Answerer) -> Ended:
        worker = WorkerProcess(self.environment.python, _job_document(job, folder), answerer)

        def look() -> None:
            facts: dict[str, Json] = {"tokens": answerer.tokens, "cost_usd": answerer.cost_usd, "pid": worker.pid}
            state = {**_state_of(job), "status": "running", **worker.state, **facts}
            if state != latest_state:
                latest_state.clear()
                latest_state.update(state)
                write_state(folder, state)

        latest_state: dict[str, Json] = {}
        stopping = lambda: self._stopping.is_set() or (folder / STOP).exists()  # noqa: E731
        return worker.wait(job.settings.time_limit_s, stopping, look)

    def _store(self, job: Job, folder: Path, ended: Ended, answerer: Answerer) -> Done:
        """Write what came of the execution and take it into the workspace; `state.json` and `output.jsonl` last."""
        _save_partial_trace(job, folder, ended)
        trace = folder / TRACE
        trace.mkdir(exist_ok=True)
        if not (trace / OUTPUT).exists():  # else a start that was killed wrote it, and may have stored it
            line = _output_line(job, folder, ended, answerer)
            (folder / f"{OUTPUT}.part").write_text(json.dumps(line) + "\n", encoding="utf-8")
            (folder / f"{OUTPUT}.part").replace(trace / OUTPUT)
        with self._storing:
            report = ingest(self.engine, [trace])
            if report.rejected:
                first = report.rejected[0]
                raise Gaia2Error(f"the execution {job.name} cannot be stored: {first.file}: {first.reason}")
            execution = self._execution_of(job.name)
            if self.then is not None and self._has_steps(job.name):
                self.then(job.name)
        message = _message(ended, answerer)
        facts: dict[str, Json] = {
            "status": execution.status,
            "tokens": answerer.tokens,
            "cost_usd": answerer.cost_usd,
            "seconds": ended.seconds,
            "message": message,
        }
        write_state(folder, {**_state_of(job), **_stands(folder, ended), **facts})
        cost = answerer.cost_usd if answerer.prices is not None or answerer.cost_usd else None
        return Done(
            job=job, execution=execution, tokens=answerer.tokens, cost_usd=cost, seconds=ended.seconds, message=message
        )

    def _execution_of(self, trace_id: str) -> Execution:
        with read_transaction(self.engine) as connection:
            return next(execution for execution in executions_of(connection, trace_id=trace_id))

    def _has_steps(self, trace_id: str) -> bool:
        with read_transaction(self.engine) as connection:
            spans = connection.scalar(select(schema.trace.c.spans).where(schema.trace.c.trace_id == trace_id))
        return (spans or 0) > 1


def _leftover(folder: Path) -> Ended | None:
    """The end of an execution whose process and ours were both gone before it was stored; None where it never began."""
    if not (folder / "job.json").exists():
        return None
    result = folder / "result.json"
    exported = object_in(parse_json(result.read_bytes())) if result.exists() else None
    return Ended(
        how="ended" if exported else "stopped",
        result=exported,
        seconds=number((exported or {}).get("seconds")) or 0.0,
        log=last_words(folder),
    )


def _job_document(job: Job, folder: Path) -> dict[str, Json]:
    settings, scenario = job.settings, folder / "scenario.json"
    scenario.write_text(job.scenario.text, encoding="utf-8")
    return {
        "folder": str(folder.resolve()),
        "scenario": str(scenario.resolve()),
        "name": job.name,
        "repeat": job.repeat,
        "capability": job.scenario.capability,
        "model": model_label(settings.model),
        "judge_model": None if settings.judge_model is None else model_label(settings.judge_model),
        "max_iterations": settings.max_iterations,
        "duration": settings.duration_s,
        "time": settings.time,
        "oracle": settings.oracle,
        "noise": settings.noise,
        "agent_to_agent": settings.agent_to_agent,
    }


def _stands(folder: Path, ended: Ended) -> dict[str, Json]:
    """Where the execution stood last: by its result, else, where it was killed, by its last question."""
    known = ended.result if ended.result is not None else asdict(before) if (before := read_state(folder)) else {}
    return {name: known.get(name) for name in ("turn", "step", "clock", "last_tool")}


def _state_of(job: Job) -> dict[str, Json]:
    return {
        "trace_id": job.name,
        "scenario": job.scenario.scenario_id,
        "capability": job.scenario.capability,
        "model": model_label(job.settings.model),
        "repeat": job.repeat,
        "attempt": job.attempt,
    }


# What came of an execution -----------------------------------------------------------------------------------------


def _own_status(ended: Ended, settings: ExecutionSettings, *, began: bool) -> ExecutionStatus | None:
    """The status where it is ours to say; None where ARE's own result says it. `began`: the log holds an entry."""
    result = ended.result or {}
    if ended.how == "time_limit":
        return "timeout"
    if ended.how == "stopped":
        return "stopped"
    if ended.how == "died" or ended.result is None:
        return "stopped" if began else "setup_failed"
    own = result.get("execution_status")
    if own in STATUSES:
        return own
    if settings.oracle:
        return "oracle"
    if result.get("rationale") == "Exception":
        return "judge_failed"
    if result.get("exception_type") is not None:
        return "agent_raised"
    return "no_judge" if result.get("success") is None else None


def _output_line(job: Job, folder: Path, ended: Ended, answerer: Answerer) -> dict[str, Json]:
    """The execution in the form of ARE's `output.jsonl`, with what is ours beside it."""
    live = folder / "live.jsonl"
    status = _own_status(ended, job.settings, began=live.exists() and live.stat().st_size > 0)
    result = ended.result or {}
    score, are_status = _as_are(status, result)
    has_trace = any((folder / TRACE / form / f"{job.name}.json").exists() for form in ("hf", "gui"))
    judge = job.settings.judge_model
    config: dict[str, Json] = {
        "model": model_label(job.settings.model),
        "agent": None if job.settings.oracle else "default",
        "judge_engine_config": None if judge is None else {"model_name": model_label(judge)},
    }
    metadata: dict[str, Json] = {
        "scenario_id": job.scenario.scenario_id,
        "run_number": job.repeat,
        "status": are_status,
        "has_exception": status in {"timeout", "agent_raised", "setup_failed", "stopped", "judge_failed"},
        "exception_type": "ScenarioTimeoutError" if status == "timeout" else result.get("exception_type"),
        "exception_message": _message(ended, answerer),
        "rationale": "Exception" if status == "judge_failed" else result.get("rationale"),
        "config": job.scenario.capability,
        "phase_name": job.settings.phase,
        "execution_id": job.name,
        "execution_status": status,
        "settings": job.settings.hash,
        "attempt": job.attempt,
        "run_config": json.dumps(config),
        "temperature": job.settings.temperature,
        "max_tokens": job.settings.max_tokens,
        "seed": job.settings.parameters(job.scenario.scenario_id, job.repeat).get("seed"),
        "tokens": answerer.tokens or None,
        "judge_tokens": answerer.judge_tokens or None,
        "cost_usd": answerer.cost_usd or None,
        "wall_s": round(ended.seconds, 3),
        "model_errors": [*answerer.errors[-3:]],
        "parameters_refused": [*sorted(answerer.dropped)],
        "judge_parameters_refused": [*sorted(answerer.judge_dropped)],
    }
    return {
        "task_id": job.scenario.scenario_id,
        "trace_id": f"hf/{job.name}.json" if has_trace else None,
        "score": score,
        "metadata": {name: value for name, value in metadata.items() if value not in (None, [])},
    }


def _as_are(status: ExecutionStatus | None, result: dict[str, Json]) -> tuple[float | None, str]:
    """The score and the status that ARE's own benchmark writes for such an execution."""
    if status in {"timeout", "judge_failed", "agent_raised"}:
        return 0.0, "failed"
    if status in {"stopped", "setup_failed", "environment_error"}:
        return None, "exception"
    if status == "no_judge":
        return None, "no_validation"
    return (1.0, "success") if result.get("success") is True else (0.0, "failed")


def _message(ended: Ended, answerer: Answerer) -> str | None:
    """The cause in a line: our limit, the exception, or the errors of the model."""
    if ended.how == "time_limit":
        return f"ended at its time limit after {ended.seconds:,.0f} s"
    exception = text((ended.result or {}).get("exception_message"))
    if ended.how == "died":
        last = ended.log.splitlines()[-1] if ended.log else "no words"
        return f"the process of the execution stopped without a result: {last}"
    if exception is None and ended.result is not None and answerer.errors:
        return f"{len(answerer.errors)} of {answerer.calls} calls of the model failed: {answerer.errors[-1]}"
    return exception


def _save_partial_trace(job: Job, folder: Path, ended: Ended) -> None:
    """Where the worker could not write its trace, make one of the live log: the scenario with that log."""
    live, gui = folder / "live.jsonl", folder / TRACE / "gui" / f"{job.name}.json"
    if gui.exists() or not live.exists() or not (lines := live.read_bytes().splitlines()):
        return
    export = partial_export(object_in(parse_json(job.scenario.text.encode())), _job_document(job, folder), lines)
    gui.parent.mkdir(parents=True, exist_ok=True)
    gui.write_text(json.dumps(export), encoding="utf-8")


__all__ = ["Benchmark", "Done", "Job", "Models", "plan"]
