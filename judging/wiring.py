"""Works on a run of a workspace: puts its rubrics, its models (through litellm) and the database together."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from tracejury.judging.judges.judge import ModelCapabilities
from tracejury.judging.judges.model import LitellmModel, context_limit, count_tokens, first_forms, known_prices
from tracejury.judging.judges.rubric import agent_descriptions, rubrics
from tracejury.judging.juries.joint_verdicts import keep_joint_verdicts
from tracejury.judging.runs.model_setup import ModelSetup
from tracejury.judging.runs.run_control import run_spec
from tracejury.judging.runs.run_spec import RunSpec
from tracejury.judging.runs.run_store import RunStore
from tracejury.judging.runs.runner import BATCH_CELLS, Progress, Runner, Summary


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

    One that a person or a budget has stopped is taken up again only where this start `resumes` it.

    Raises KeyError without such a run, ValueError for a run that cannot be worked on, `RunHeldError` where another
    process works on it, `RunTakenError` where this process stopped for so long that another took it over.
    """
    spec = run_spec(engine, run_key)
    runner = Runner(
        spec,
        RunStore(engine, run_key),
        rubrics=rubrics(home),
        models=models if models is not None else model_setups(spec),
        agents=agent_descriptions(home),
        progress=progress,
        batch_poll_s=batch_poll_s,
        batch_cells=batch_cells,
        resumes=resumes,
        before_end=joint_verdicts_of(engine, run_key, spec),
    )
    return asyncio.run(_with_signals(runner))


def joint_verdicts_of(engine: Engine, run_key: int, spec: RunSpec) -> Callable[[], Any] | None:
    """What is to be made of a run's verdicts before it ends: a jury's joint ones; None of any other run."""
    return partial(keep_joint_verdicts, engine, run_key, spec.jury_rule) if spec.mode == "jury" else None


async def _with_signals(runner: Runner) -> Summary:
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(name, runner.stop, "stopped by a signal")
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
