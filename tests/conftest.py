"""Fixtures for all tests: where the real files are, and a home that is never the developer's own."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real files beside the repository; its tests skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the real files of ../shared are not on this machine")
    return SHARED


@pytest.fixture(autouse=True)
def _no_real_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJURY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TRACEJURY_DATABASE", raising=False)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
