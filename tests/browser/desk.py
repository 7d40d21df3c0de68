"""The desk on the screen, for the tests that drive it: a server of its own, a page, the store behind both."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.app.desk_traces import desk_trace
from tracejury.ingest.store import pack, write, write_transaction
from tracejury.ingest.trace import Trace
from tracejury.judging.labels import item_state
from tracejury.judging.store import Workspace, open_workspace

APP = Path(__file__).parent / "desk_app" / "asgi.py"
SELECT = """([seq, field, from, to]) => {
  const host = document.querySelector(`[data-block="${seq}"] .tj-text[data-field="${field}"]`);
  const walk = document.createTreeWalker(host, NodeFilter.SHOW_TEXT);
  const find = (words, atEnd) => {
    walk.currentNode = host;
    for (let node; (node = walk.nextNode()); ) {
      const at = node.data.indexOf(words);
      if (at >= 0) return [node, at + (atEnd ? words.length : 0)];
    }
    throw new Error('no ' + words);
  };
  const [a, i] = find(from, false), [b, j] = find(to, true);
  getSelection().setBaseAndExtent(a, i, b, j);
}"""


class Server:
    """The app on a free port; it can be killed and started again there."""

    def __init__(self, home: Path, log: Path, **more: str) -> None:
        self.home, self.log, self.more = home, log, more
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        environment = os.environ | {"TRACEJURY_HOME": str(self.home), "OMP_NUM_THREADS": "1"} | self.more
        command = [sys.executable, "-P", "-m", "streamlit", "run", str(APP), f"--server.port={self.port}"]
        with self.log.open("a", encoding="utf-8") as out:
            self.process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=APP.parent)
        try:
            self._wait()
        except BaseException:
            self.kill()
            raise

    def _wait(self) -> None:
        for _ in range(600):
            if self.process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1)
            except OSError:
                time.sleep(0.1)
            else:
                return
        pytest.fail(f"the server did not start:\n{self.log.read_text(encoding='utf-8')[-2000:]}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        """As a power cut would: nothing is finished, nobody is told."""
        self.process.kill()
        self.process.wait(60)


def store(space: Workspace, trace: Trace) -> None:
    with write_transaction(space.engine) as connection:
        write(connection, pack(trace))


class Desk:
    """One trace on the screen of one page, with the store behind it."""

    def __init__(self, page: Page, server: str, space: Workspace, trace_id: str, user: str = "me") -> None:
        self.page, self.server, self.space, self.trace_id, self.user = page, server, space, trace_id, user
        self.outside: list[str] = []
        page.on("request", self._note)
        page.on("pageerror", lambda error: self.outside.append(f"error: {error}"))
        self.open()

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.server, "blob:", "data:")):
            self.outside.append(request.url)

    def open(self, span: str | None = None) -> None:
        tail = f"&span={span}" if span else ""
        tail += f"&as={self.user}" if self.user != "me" else ""
        self.page.goto(f"{self.server}/?trace={self.trace_id}{tail}", wait_until="commit")
        self.ready()

    def ready(self, trace_id: str | None = None) -> None:
        self.page.wait_for_selector(f'.tj-desk[data-ready="{trace_id or self.trace_id}"]', timeout=60_000)

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def select(self, seq: int, field: str, start: str, end: str | None = None) -> None:
        self.page.evaluate(SELECT, [seq, field, start, end or start])

    def saved(self, timeout: float = 40_000) -> dict[str, Any]:
        """The stored state, once the page says that everything is saved."""
        self.page.wait_for_selector('[data-tj="saved"][data-kind="saved"]', timeout=timeout)
        return self.stored()

    def stored(self) -> dict[str, Any]:
        return item_state.state(self.space.engine, annotator=self.user, trace_id=self.trace_id)

    def submit(self) -> None:
        """Score everything, say "no error" where none is labelled, submit, and open the same trace again."""
        if not self.stored()["errors"]:
            self.keys("z")
        self.keys("w", *"0123210")
        self.saved()
        self.keys("Control+Enter")
        self.page.wait_for_function(
            "name => document.querySelector('.tj-desk').dataset.ready !== name || "
            "document.querySelector('[data-tj=status]').textContent === 'submitted'",
            arg=self.trace_id,
        )
        self.open()

    def reveal(self) -> None:
        self.page.click('[data-tj="reveal"]')
        self.page.click("dialog[open] .tj-primary")
        self.page.wait_for_selector('[data-tj="judges"]:not([hidden])')

    def current(self) -> str:
        return str(self.page.get_attribute(".tj-desk", "data-current"))

    def toast(self) -> str:
        return str(self.page.text_content('[data-tj="toast"]'))


OpenDesk = Callable[..., Desk]


# ---- fixtures, taken up by each module of desk tests -----------------------------------------------------------


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return open_workspace(tmp_path_factory.mktemp("desk") / "home")


@pytest.fixture(scope="module")
def server(space: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the app on a free port; ends with the module."""
    store(space, desk_trace("first"))
    running = Server(space.home, tmp_path_factory.mktemp("log") / "server.txt")
    yield running.url
    running.stop()


@pytest.fixture
def open_desk(profile: BrowserContext, server: str, space: Workspace, request: pytest.FixtureRequest) -> OpenDesk:
    """Opens a fresh trace of this test (or the one given) in a page of the profile."""

    def opened(trace: Trace | None = None, trace_id: str | None = None, user: str = "me") -> Desk:
        name = trace_id or (trace.trace_id if trace else request.node.name.split("[")[0])
        if trace_id is None:
            store(space, trace or desk_trace(name))
        return Desk(profile.new_page(), server, space, name, user)

    return opened
