"""Servers of the app as forks of one process that has imported what each needs: none imports it again.

The server of the samples (`conftest`) is started by a command, as people start theirs.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import time
import urllib.request
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

IMPORTED = (
    "streamlit.web.cli", "streamlit.web.bootstrap", "streamlit.elements.plotly_chart",
    "sklearn.feature_extraction.text", "tracejury.app.adjudicating", "tracejury.app.api",
    "tracejury.app.components.annotator", "tracejury.app.components.charts", "tracejury.app.estimates",
    "tracejury.app.guard", "tracejury.app.look", "tracejury.app.run_processes", "tracejury.app.signin",
    "tracejury.app.telemetry",
)  # fmt: skip


def start_server(app: Path, port: int, log: Path, *, folder: Path, more: Mapping[str, str]) -> BaseProcess:
    """The app, at work on this port: started in `folder`, with `more` in its environment, its words added to `log`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED))
    process = context.Process(target=_serve, args=(app, port, log, folder, {**os.environ, **more}))
    process.start()
    try:
        _wait(f"http://127.0.0.1:{port}/_stcore/health", process, log)
    except BaseException:
        process.kill()
        raise
    return process


def ended(process: BaseProcess) -> None:
    """Wait until the server, which was told to end, has ended."""
    process.join(60)
    assert process.exitcode is not None, "the server does not end"


def _serve(app: Path, port: int, log: Path, folder: Path, environment: Mapping[str, str]) -> None:
    """What the command `streamlit run` does in a process of its own."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    with log.open("ab") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    options = ("--server.address=127.0.0.1", "--server.fileWatcherType=none")
    sys.argv = ["streamlit", "run", str(app), f"--server.port={port}", *options]
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)


def _wait(url: str, process: BaseProcess, log: Path) -> None:
    for _ in range(2400):
        if process.exitcode is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=1)
        except OSError:
            time.sleep(0.1)
        else:
            return
    told = log.read_text(encoding="utf-8")[-2000:] if log.exists() else ""
    pytest.fail(f"the server did not start:\n{told}")
