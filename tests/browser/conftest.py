"""The whole app over a workspace of samples, in a real browser: fixtures of the researcher's pages."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.app.workspaces import filled
from tests.browser.profile import SLOW_MS, alone, forget, watched
from tracejury import app
from tracejury.judging.store import Workspace

ASGI = Path(app.__file__).parent / "asgi.py"
FLAGS = ("--no-sandbox", "--js-flags=--no-enable-lazy-source-positions")
"""Playwright has the engine work out the place of every error that a library makes and drops: known from the start it
costs little, found again each time a page with charts takes a second more."""
THRIFT = (
    "--disable-features=BackgroundResourceFetch,SpareRendererForSitePerProcess",
    f"{FLAGS[1]},--no-turbofan,--no-maglev,--max-lazy,--min-semi-space-size=32",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4,"
    "v8CacheOptions=3",
    "--renderer-process-limit=1",
)  # fmt: skip
"""A page with charts takes 3.2 instead of 4.6 s of CPU time: fetched in the background, scripts are compiled anew
though the profile keeps them compiled; a process for the next page is started though none may come; and no page of a
test is open for so long that the last two of the compilers pay, nor the functions that are compiled before they are
called. What is compiled is kept at the first visit of a page, not at its third; the other settings beside it are
Playwright's, which a second list of settings replaces. Young objects get more room, and are looked through less
often. Pages of one profile share a process, and nothing is animated: each frame is drawn by the processor."""
CHROMIUM = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
"""The same engine without the windows and menus of a desktop, where it is installed: a page takes a quarter less."""


@pytest.fixture(scope="session")
def sample_space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return filled(tmp_path_factory.mktemp("researcher") / "home")


@pytest.fixture(scope="session")
def sample_server(sample_space: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app on a free port, for all tests of the session: `tests.sharing` keeps its files in one process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {
        "TRACEJURY_HOME": str(sample_space.home),
        "OMP_NUM_THREADS": "1",
        "TRACEJURY_USER": "ruth",
    }
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(ASGI), f"--server.port={port}"]
    command += ["--server.address=127.0.0.1", "--server.fileWatcherType=none"]
    log = tmp_path_factory.mktemp("log") / "server.txt"
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(command, env=os.environ | own, stdout=out, stderr=out, cwd=ASGI.parent)
        try:
            _wait(f"http://127.0.0.1:{port}/api/health", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture(scope="package")  # for the session it would stand in the way of `asyncio.run` in other tests
def kept_profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=SLOW_MS)
        running = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=CHROMIUM, args=[*FLAGS, *THRIFT],
            accept_downloads=True, viewport={"width": 1280, "height": 800}, reduced_motion="reduce",
        )  # fmt: skip
        yield running
        running.close()


@pytest.fixture
def profile(kept_profile: BrowserContext) -> Iterator[BrowserContext]:
    """The browser's own profile, in which this test is the first as far as sites can tell."""
    yield kept_profile
    forget(kept_profile)


@pytest.fixture(scope="package")
def chromium(kept_profile: BrowserContext) -> Browser:
    """The same browser, for those who need a context of their own."""
    assert kept_profile.browser is not None
    return kept_profile.browser


@pytest.fixture
def page(profile: BrowserContext, sample_server: str) -> Iterator[Page]:
    with watched(profile, sample_server) as opened:
        yield opened


@pytest.fixture
def first_page(chromium: Browser, sample_server: str) -> Iterator[Page]:
    """The page of a browser that was never here: nothing is fetched or compiled, and its clock may be moved."""
    with alone(chromium) as context, watched(context, sample_server) as opened:
        yield opened


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=1)
        except OSError:
            time.sleep(0.25)
        else:
            return
    pytest.fail(f"the server did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")
