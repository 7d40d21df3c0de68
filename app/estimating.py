"""What a run will cost, asked of the command `judge --dry-run` in a process of its own: counting tokens takes long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pandas as pd

from tracejury.judging.judges.model import Prices
from tracejury.judging.runs.run_spec import RunSpec

TIMEOUT_S = 300
COLUMNS = ["dimension", "model", "calls", "prompt_tokens", "answer_tokens", "naive", "deduplicated", "cached", "batch"]


class EstimateError(Exception):
    """The estimate could not be made; the message is the command's own."""


def _price(prices: Prices) -> str:
    """As `--price` takes it: US dollars per million tokens."""
    rates = (prices.prompt, prices.completion, prices.cache_read)
    return ",".join(repr(price * 1e6) for price in rates if price is not None)


def estimate(spec: RunSpec, home: Path) -> pd.DataFrame:
    """One row per judge and model, the total last: calls, tokens, and US dollars in four ways (NaN: no price known).

    Raises `EstimateError`.
    """
    command = [
        sys.executable, "-P", "-m", "tracejury.app.cli", "judge", "--home", str(home), "--dry-run", "--json",
        "--model", ",".join(spec.models), "--dimensions", ",".join(spec.rubrics), "--repeats", str(spec.repeats),
        "--mode", spec.mode, "--order", spec.order, "--agent", spec.agent,
        *(["--api-base", spec.api_base] if spec.api_base else []),
        *(word for name, prices in spec.prices.items() for word in ("--price", f"{name}={_price(prices)}")),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise EstimateError(f"counting tokens took longer than {TIMEOUT_S} s; use the command line") from error
    if done.returncode != 0:
        last_line = done.stderr.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
        raise EstimateError(last_line.removeprefix("Error: ") or f"the command ended with {done.returncode}")
    rows = pd.DataFrame(orjson.loads(done.stdout)["estimate"], columns=COLUMNS)
    return rows.astype(dict.fromkeys(COLUMNS[5:], "float64"))
