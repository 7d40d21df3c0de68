"""Works on the runs of a workspace: puts its rubrics, its models (through litellm) and the store together."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from sqlalchemy import Engine

from tracejury.judging.judges.judge import ModelCapabilities
from tracejury.judging.judges.model import LitellmModel, context_limit, count_tokens, first_forms, known_prices
from tracejury.judging.judges.rubric import agent_descriptions, rubrics
from tracejury.judging.runs.run_store import SqlRunStore, next_run, run_spec
from tracejury.judging.runs.runner import BATCH_CELLS, ModelSetup, Progress, Runner, RunSpec, Summary

LOOK_AGAIN_S = 2.0


def model_setups(spec: RunSpec) -> dict[str, ModelSetup]:
    """The run's models through litellm, with what its tables know of them; the run's own prices come first."""
    return {name: _setup(spec, name) for name in spec.models}


def work_on(
    engine: Engine,
    run_key: int,
    *,
    home: Path | None = None,
    models: Mapping[str, ModelSetup] | None = None,
    progress: Callable[[Progress], None] | None = None,
    batch_poll_s: float = 30.0,
    batch_cells: int = BATCH_CELLS,
    resumes: bool = True,
) -> Summary:
    """Work on a run until it is done or something stops it. Ctrl-C and SIGTERM let calls under way finish.

    One that a person has paused or cancelled is taken up again only where this start `resumes` it.

    Raises KeyError without such a run, ValueError for a run that cannot be worked on, RubricError for a
    broken rubric of the workspace.
    """
    spec = run_spec(engine, run_key)
    runner = Runner(
        spec,
        SqlRunStore(engine, run_key),
        rubrics=rubrics(home),
        models=models if models is not None else model_setups(spec),
        agents=agent_descriptions(home),
        progress=progress,
        batch_poll_s=batch_poll_s,
        batch_cells=batch_cells,
        resumes=resumes,
    )
    return asyncio.run(_with_signals(runner))


def worker_loop(
    engine: Engine,
    *,
    home: Path | None = None,
    once: bool = False,
    on_run: Callable[[int, Summary], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Take runs from the workspace and work on them, for ever or (`once`) until none waits; returns how many.

    A run that cannot be worked on is paused with its reason; a person can mend it and queue it again.
    """
    worked = 0
    while True:
        key = next_run(engine)
        if key is None:
            if once:
                return worked
            sleep(LOOK_AGAIN_S)
            continue
        worked += 1
        try:
            summary = work_on(engine, key, home=home, progress=progress, resumes=False)
        except Exception as error:
            SqlRunStore(engine, key).pause(f"{type(error).__name__}: {error}")
            if once:
                raise
            continue
        if on_run is not None:
            on_run(key, summary)
        if summary.message == _SIGNAL:
            return worked


_SIGNAL = "stopped by a signal"


async def _with_signals(runner: Runner) -> Summary:
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(name, runner.stop, _SIGNAL)
        except (NotImplementedError, RuntimeError, ValueError):  # not the main thread, or a system without signals
            break
    return await runner.run()


def _setup(spec: RunSpec, name: str) -> ModelSetup:
    prices = spec.prices.get(name)
    known = prices if prices is not None else known_prices(name)
    model = LitellmModel(name=name, api_base=spec.api_base, timeout_s=spec.timeout_s, prices=prices)
    return ModelSetup(
        call=model,
        prices=known,
        context=context_limit(name),
        count=partial(count_tokens, name),
        capabilities=ModelCapabilities(forms=list(first_forms(name))),
        batch=model,
    )
