"""A workspace with small traces and a planned run, for the runner's tests: real SQLite, a function as the model."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import Engine, text
from tests.fake_provider import verdict
from tests.judging.traces import small_trace

from tracejury.ingest.store import pack, write, write_transaction
from tracejury.ingest.trace import Trace
from tracejury.judging.judges.judge import ModelCapabilities
from tracejury.judging.judges.model import ModelError, ModelReply, ModelRequest, Prices
from tracejury.judging.judges.rubric import agent_descriptions, rubrics
from tracejury.judging.runs.model_setup import ModelSetup
from tracejury.judging.runs.run_control import RunProgress, plan_run, run_spec, watch
from tracejury.judging.runs.run_spec import RunSpec
from tracejury.judging.runs.run_store import RunStore
from tracejury.judging.runs.runner import Runner, Summary
from tracejury.judging.store import open_workspace
from tracejury.judging.wiring import joint_verdicts_of

RUBRICS = rubrics()
AGENTS = agent_descriptions()
PRICES = Prices(prompt=1e-6, completion=2e-6)
Answer = str | ModelReply | ModelError


def answer(reply: Answer) -> ModelReply:
    """A paid reply of 100 and 10 tokens; errors are raised."""
    if isinstance(reply, ModelError):
        raise reply
    if isinstance(reply, ModelReply):
        return reply
    return ModelReply(text=reply, finish_reason="stop", prompt_tokens=100, completion_tokens=10, cached_tokens=0,
                      cost_usd=0.01, latency_s=0.0)  # fmt: skip


@dataclass(kw_only=True)
class Counting:
    """A model that counts calls; `script` decides each answer by call number and request."""

    script: Callable[[int, ModelRequest], Answer | Awaitable[Answer]] = lambda number, request: verdict(2)
    requests: list[ModelRequest] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    delay_s: float = 0.0
    all_there: asyncio.Event = field(default_factory=asyncio.Event)

    async def together(self, number: int) -> None:
        """Hold a call until so many have been under way at once."""
        if self.most_in_flight >= number:
            self.all_there.set()
        await self.all_there.wait()

    async def __call__(self, request: ModelRequest) -> ModelReply:
        number = len(self.requests)
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.delay_s)
            reply = self.script(number, request)
            return answer(reply if isinstance(reply, str | ModelReply | ModelError) else await reply)
        finally:
            self.in_flight -= 1


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A planned run in a workspace of its own."""

    engine: Engine
    home: Path
    run_key: int

    @property
    def spec(self) -> RunSpec:
        return run_spec(self.engine, self.run_key)

    def runner(self, *models: Counting, changes: Mapping[str, object] | None = None, **options: object) -> Runner:
        spec = replace(self.spec, **(changes or {}))  # type: ignore[arg-type]
        setups = {
            name: ModelSetup(call=model, prices=PRICES, count=len, capabilities=ModelCapabilities())
            for name, model in zip(spec.models, models, strict=True)
        }
        store, made = RunStore(self.engine, self.run_key), joint_verdicts_of(self.engine, self.run_key, spec)
        return Runner(
            spec, store, rubrics=RUBRICS, models=setups, agents=AGENTS, poll_s=0.05, before_end=made, **options
        )  # type: ignore[arg-type]

    def run(self, *models: Counting, changes: Mapping[str, object] | None = None, **options: object) -> Summary:
        return asyncio.run(self.runner(*models, changes=changes, **options).run())

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    def states(self) -> dict[str, int]:
        return {
            str(state): int(str(count)) for state, count in self.rows("select state, count(*) from cell group by 1")
        }

    def watch(self) -> RunProgress:
        return watch(self.engine, self.run_key)


def kill(store: RunStore) -> None:
    """Let go of the owner's lock and nothing else, as the system does where a process is killed."""
    assert store.owner is not None
    assert store.owner.file is not None
    os.close(store.owner.file[1])
    store.owner.file = None


def workspace(home: Path, traces: int | list[Trace] = 3) -> Engine:
    """A database with small traces in it."""
    engine = open_workspace(home).engine
    some = traces if isinstance(traces, list) else [small_trace(trace_id=f"{n:032x}") for n in range(1, traces + 1)]
    with write_transaction(engine) as connection:
        for trace in some:
            write(connection, pack(trace))
    return engine


def planned(home: Path, traces: int | list[Trace] = 3, **spec: object) -> Grid:
    """A workspace with traces and one run over all of them, by default of LC and EE by the model `m`."""
    engine = workspace(home, traces)
    return plan_more(engine, home, **spec)


def plan_more(engine: Engine, home: Path, **spec: object) -> Grid:
    """One more run over all traces of a workspace."""
    wanted = {"rubrics": ("LC", "EE"), "models": ("m",), "concurrency": 4, "backoff_s": 0.01, **spec}
    with engine.connect() as connection:
        ids = [str(row[0]) for row in connection.execute(text("select trace_id from trace order by trace_id"))]
    key = plan_run(engine, RunSpec(**wanted), ids, rubrics=RUBRICS, agents=AGENTS)  # type: ignore[arg-type]
    return Grid(engine=engine, home=home, run_key=key)
