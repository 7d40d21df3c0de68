"""An owner of a run in a process of its own, for tests that kill it: forked from one that has imported everything."""

import multiprocessing
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tracejury.judging.judges.judge import ModelCapabilities
from tracejury.judging.judges.model import LitellmModel, Prices, warm
from tracejury.judging.runs.model_setup import ModelSetup
from tracejury.judging.store import open_workspace
from tracejury.judging.wiring import work_on

PRICES = Prices(prompt=1e-6, completion=2e-6)
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.judging.warmed"])


def start_owner(home: Path, run_key: int, base_url: str, *, batch: bool = False) -> ForkServerProcess:
    """Start an owner of a run of the workspace at `home`; its model is at `base_url`."""
    process = _context.Process(target=work, args=(home, run_key, base_url, batch), daemon=True)
    process.start()
    return process


def work(home: Path, run_key: int, base_url: str, batch: bool) -> None:
    """What the owner does: the real thing, through litellm."""
    warm()
    models = {"openai/fake": setup(base_url, batch=batch)}
    work_on(open_workspace(home).engine, run_key, models=models, batch_poll_s=0.05, batch_cells=6)


def setup(base_url: str, *, timeout_s: float = 30.0, batch: bool = False) -> ModelSetup:
    """The scripted provider as a model of the runner."""
    model = LitellmModel(name="openai/fake", api_base=base_url, api_key="k", timeout_s=timeout_s, prices=PRICES)
    return ModelSetup(
        call=model, prices=PRICES, count=len, capabilities=ModelCapabilities(), batch=model if batch else None
    )
