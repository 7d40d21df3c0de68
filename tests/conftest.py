"""Fixtures for all tests: where the real files are, and a home that is never the developer's own."""

import gc
import os
import shutil
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine
from xdist.remote import Producer

from tests.sharing import Units, in_order
from tracejury.ingest.store import open_engine
from tracejury.judging.agreement.frames import keep_texts_in_python
from tracejury.judging.store import open_workspace, workspace

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
keep_texts_in_python()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Tests and modules stay to the end: the collector would look through their 500,000 objects again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Units | None:
    return Units(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real files beside the repository; its tests skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the real files of ../shared are not on this machine")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def _migrated_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A new SQLite database of this process is a copy of one that the migrations made: to migrate each takes 40 times
    as long. Commands and servers in processes of their own migrate themselves."""
    kept = tmp_path_factory.mktemp("migrated") / "tracejury.db"

    def opened(url: str) -> Engine:
        if url.startswith("sqlite:///") and not (wanted := Path(url.removeprefix("sqlite:///"))).exists():
            with suppress(OSError):  # the real one says what is wrong with the place
                _appear(kept, wanted)
        return open_engine(url)

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRACEJURY_DATABASE", raising=False)
        open_workspace(kept.parent).engine.dispose()  # closing the last connection empties the write-ahead log
        patch.setattr(workspace, "open_engine", opened)
        yield


@pytest.fixture(autouse=True)
def _own_main_module() -> Iterator[None]:
    """A page that is run in this process takes the place of `__main__`, which processes started later would import."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture
def migrates_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the migrations: a new database is made by them and not copied."""
    monkeypatch.setattr(workspace, "open_engine", open_engine)


def _appear(kept: Path, wanted: Path) -> None:
    """The copy is there whole or not at all, and never over one that another thread made meanwhile."""
    part = wanted.with_name(f"{wanted.name}.{os.urandom(4).hex()}")
    shutil.copyfile(kept, part)
    try:
        os.link(part, wanted)
    finally:
        part.unlink()


@pytest.fixture(autouse=True)
def _no_real_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJURY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TRACEJURY_DATABASE", raising=False)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
