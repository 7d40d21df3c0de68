"""The environment of ARE for the tests that need it: made once by the product's own set-up, then kept."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracejury.judging.gaia2.environment import AreEnvironment, make

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def are() -> Iterator[AreEnvironment]:
    """An environment that cannot be made is a failure, never a skip: nothing else tests the executions."""
    named = os.environ.get("TRACEJURY_CACHE")
    os.environ["TRACEJURY_CACHE"] = named or str(ROOT / ".venv" / "cache")
    try:
        yield make()
    finally:
        os.environ.pop("TRACEJURY_CACHE")
        if named is not None:
            os.environ["TRACEJURY_CACHE"] = named
