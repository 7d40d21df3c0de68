"""Overhead of a judgement beside bare litellm, on the same scripted server, 64 calls in flight.

Prints calls a second of both, their ratio (the aim: at most 1.3), and what a judgement does besides the call.
Run: python -m tests.benchmarks.bench_judge
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypedDict

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from tests.fake_provider import Answer, Provider, verdict
from tests.judging.grid import AGENTS, RUBRICS, planned
from tests.judging.run_owners import setup
from tests.judging.traces import small_reading, small_trace
from tracejury.judging.judges.evidence import Finder
from tracejury.judging.judges.judge import Judge, judge_trace
from tracejury.judging.judges.model import LitellmModel, ModelRequest, form_arguments, messages_of, warm
from tracejury.judging.judges.prompt import Prompts, build_prompt
from tracejury.judging.judges.reply import reply_schema
from tracejury.judging.runs.run_store import RunStore
from tracejury.judging.runs.runner import Runner

IN_FLIGHT, CALLS, ROUNDS = 64, 320, 3
ANSWER_AFTER_S = 0.5  # a fast model
FINDING = {"description": "d", "evidence": "the search showed", "citations": ["S4", "S3"], "impact": "low"}


class Shared(TypedDict):
    """What a run makes once for all judgements of a trace."""

    finder: Finder
    prompts: Prompts


async def at_once(call: Callable[[], Awaitable[object]], calls: int) -> float:
    """Seconds for so many calls, 64 in flight."""
    gate = asyncio.Semaphore(IN_FLIGHT)

    async def one() -> None:
        async with gate:
            await call()

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(calls)))
    return time.perf_counter() - started


def bare(base_url: str, request: ModelRequest) -> Callable[[], Awaitable[object]]:
    """litellm alone, with the very messages and schema that we send."""
    import litellm

    messages, form = messages_of(request), form_arguments(request)
    return lambda: litellm.acompletion(
        model="openai/fake", messages=messages, api_base=base_url, api_key="k", max_retries=0, num_retries=0, **form
    )


def grid_seconds(base_url: str, calls: int) -> float:
    """The whole of it: claims, replies and outcomes in SQLite, progress; cells in place of calls."""
    traces = [small_trace(trace_id=f"{n:032x}") for n in range(1, calls // 10 + 1)]
    with tempfile.TemporaryDirectory() as folder:
        grid = planned(Path(folder), traces, repeats=5, models=("openai/fake",), concurrency=IN_FLIGHT)
        store = RunStore(grid.engine, grid.run_key)
        models = {"openai/fake": setup(base_url)}
        runner = Runner(grid.spec, store, rubrics=RUBRICS, models=models, agents=AGENTS)
        started = time.perf_counter()
        summary = asyncio.run(runner.run())
        assert summary.states == {"scored": calls}
        return time.perf_counter() - started


def measure(answer_after_s: float) -> dict[str, float]:
    """Median seconds for CALLS calls: bare litellm, one judgement each, the whole run."""
    warm()
    reading = small_reading()
    shared: Shared = {"finder": Finder(reading), "prompts": Prompts(reading.text)}  # by all judgements of a trace
    judge = Judge(rubric=RUBRICS["LC"], model="openai/fake")
    request = ModelRequest(
        prompt=build_prompt(reading.text, judge.rubric), form="json", schema=reply_schema(judge.rubric)
    )
    with Provider(lambda _: Answer(text=verdict(1, findings=[FINDING]), after_s=answer_after_s)) as provider:
        model = LitellmModel(name="openai/fake", api_base=provider.base_url, api_key="k")
        ways: dict[str, Callable[[], float]] = {
            "bare litellm": lambda: asyncio.run(at_once(bare(provider.base_url, request), CALLS)),
            "judge_trace": lambda: asyncio.run(at_once(lambda: judge_trace(judge, reading, model, **shared), CALLS)),
            "whole run": lambda: grid_seconds(provider.base_url, CALLS),
        }
        ways["bare litellm"]()  # connections, lazy imports
        rounds = [{name: way() for name, way in ways.items()} for _ in range(ROUNDS)]
    return {name: statistics.median(each[name] for each in rounds) for name in ways}


def main() -> None:
    for after in (0.0, ANSWER_AFTER_S):
        seconds = measure(after)
        print(f"{CALLS} calls, {IN_FLIGHT} in flight, the model answers after {after:g} s")
        for name, taken in seconds.items():
            ratio = taken / seconds["bare litellm"]
            print(f"  {name:14} {CALLS / taken:8.1f} calls/s  {ratio:5.2f} x bare")


if __name__ == "__main__":
    main()
