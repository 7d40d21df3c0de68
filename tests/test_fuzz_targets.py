"""The targets of coverage-guided fuzzing: their seeds pass, and in the soak each is fuzzed for half a minute."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import fuzz

SECONDS = 30


@pytest.mark.soak
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed: `make soak` installs it")
@pytest.mark.parametrize("name", [*fuzz.readers(), *fuzz.routes()])
@pytest.mark.timeout(1800)
def test_no_input_that_reaches_new_code_breaks_a_target(name: str, tmp_path: Path) -> None:
    """However slow the machine, the fuzzer stops after its time and the runs of its seeds."""
    command = [sys.executable, "-m", "tests.fuzz", name, str(tmp_path), f"-max_total_time={SECONDS}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done" in done.stderr


@pytest.mark.parametrize("name", ["reader:any", "reader:zipkin"])
def test_the_seeds_of_a_reader_are_samples_that_it_reads(name: str, tmp_path: Path) -> None:
    fuzz.seeds(name, tmp_path)
    target = fuzz.reading(name.partition(":")[2])
    seeds = list(tmp_path.iterdir())
    assert seeds
    for seed in seeds:
        target(seed.read_bytes())
