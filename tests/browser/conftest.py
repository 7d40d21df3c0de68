"""The whole app over a workspace of samples, in a real browser: fixtures of the researcher's pages."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

import app
from judging.ledger import Workspace
from tests.app.workspaces import filled

ASGI = Path(app.__file__).parent / "asgi.py"
FLAGS = ("--no-sandbox", "--js-flags=--no-enable-lazy-source-positions")
"""Playwright has the engine work out the place of every error that a library makes and drops: known from the start it
costs little, found again each time a page with charts takes a second more."""
SLOW_MS = 60_000  # a machine that also builds and tests


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
            process.wait(10)


@pytest.fixture(scope="package")  # for the session it would stand in the way of `asyncio.run` in other tests
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=SLOW_MS)
        running = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def page(chromium: Browser, sample_server: str) -> Iterator[Page]:
    """A fresh page; fails when a script broke or anything was asked of another host."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1100}, accept_downloads=True)
    opened = context.new_page()
    opened.set_default_timeout(SLOW_MS)
    problems: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith((sample_server, "data:", "blob:")) and not _is_streamlits(request.url):
            problems.append(f"asked of another host: {request.url}")

    opened.on("request", note)
    opened.on("pageerror", lambda error: problems.append(f"script: {error}"))
    yield opened
    context.close()
    assert problems == []


def _is_streamlits(url: str) -> bool:
    """A Material icon as the page's favicon is fetched by Streamlit from its maker."""
    return url.startswith("https://fonts.gstatic.com/s/i/short-term/release/materialsymbols")


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
