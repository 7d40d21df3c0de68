"""The whole app where people sign in with passwords: a server of its own, and a page for each person."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.app.desk_traces import desk_trace
from tests.browser.profile import sized_page
from tracejury import app
from tracejury.ingest.store import pack, write, write_transaction
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.store import Workspace, open_workspace
from tracejury.judging.store.people import Role, add_person

ASGI = Path(app.__file__).parent / "asgi.py"
SECRET = "a long enough secret"
PEOPLE: dict[str, Role] = {"ada": "annotator", "ben": "annotator", "judy": "adjudicator", "root": "admin"}


def team_space(home: Path, count: int) -> Workspace:
    """A workspace with four people and `count` traces, t0 and on."""
    space = open_workspace(home)
    with write_transaction(space.engine) as connection:
        for name, role in PEOPLE.items():
            add_person(connection, name, role=role, by="test", password=SECRET)
        for number in range(count):
            write(connection, pack(desk_trace(f"t{number}")))
    return space


def team_queue(space: Workspace, count: int, **more: object) -> int:
    spec = QueueSpec(**({"name": "pilot", "author": "root", "k": 2} | more))  # type: ignore[arg-type]
    with write_transaction(space.engine) as connection:
        return make_queue(connection, spec, [f"t{number}" for number in range(count)], now=time.time_ns() // 1000)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def team_server(
    space: Workspace, log: Path, *, port: int | None = None, folder: Path = ASGI.parent, **more: str
) -> Iterator[str]:
    """The app on a free port, in the password mode unless `more` says otherwise; started in `folder`."""
    port = port or free_port()
    own = {"TRACEJURY_HOME": str(space.home), "OMP_NUM_THREADS": "1", "TRACEJURY_SIGN_IN": "password"} | more
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(ASGI), f"--server.port={port}"]
    command += ["--server.address=127.0.0.1", "--server.fileWatcherType=none"]
    address = f"http://127.0.0.1:{port}"
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(command, env=os.environ | own, stdout=out, stderr=out, cwd=folder)
        try:
            for _ in range(240):
                if process.poll() is not None:
                    pytest.fail(f"the server did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")
                try:
                    urllib.request.urlopen(f"{address}/api/health", timeout=1)
                    break
                except OSError:
                    time.sleep(0.25)
            yield address
        finally:
            process.terminate()
            process.wait(60)


def person_page(profile: BrowserContext, address: str, name: str, path: str = "/") -> Page:
    """A page of this person, signed in, at `path`; whoever sat here before is to be forgotten first."""
    page = sized_page(profile, 900)
    page.goto(f"{address}{path}")
    fill_in(page, name)
    return page


def fill_in(page: Page, name: str, password: str = SECRET) -> None:
    """The sign-in form, as one fills it in by keyboard."""
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")
