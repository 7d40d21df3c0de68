"""Processes of runs that a page started: one a run, and how each ended."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tracejury.app import run_processes
from tracejury.app.run_processes import RunProcesses, command

WAITS = "import sys; print('waiting', flush=True); sys.stdin.read() or __import__('signal').pause()"


def runs(monkeypatch: pytest.MonkeyPatch, code: str) -> RunProcesses:
    monkeypatch.setattr(run_processes, "command", lambda _home, _run: [sys.executable, "-c", code])
    return RunProcesses()


def ended(processes: RunProcesses, home: Path, run_key: int = 1) -> str | None:
    processes._by_run[home, run_key].process.wait(30)
    return processes.end_of(home, run_key)


def test_a_run_s_process_is_the_judge_command_that_heeds_a_wish_made_meanwhile(tmp_path: Path) -> None:
    words = command(tmp_path, 7)
    assert words[-6:] == ["judge", "--resume", "7", "--if-queued", "--home", str(tmp_path)]


def test_a_process_that_is_killed_is_seen_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = runs(monkeypatch, WAITS)
    assert processes.is_at_work(tmp_path, 1) is None
    processes.start(tmp_path, 1)
    first = processes._by_run[tmp_path, 1].process
    processes.start(tmp_path, 1)  # one a run
    assert processes._by_run[tmp_path, 1].process is first
    assert (processes.is_at_work(tmp_path, 1), processes.end_of(tmp_path, 1)) == (True, None)
    os.kill(first.pid, signal.SIGKILL)
    assert ended(processes, tmp_path) == "The process of this run was ended by signal 9."
    assert processes.is_at_work(tmp_path, 1) is False


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise SystemExit(0)", None),
        ("raise SystemExit(1)", None),  # some judgements failed: the run says which
        ("raise SystemExit(3)", None),  # out of budget: the run says so
        ("raise SystemExit('Error: no key')", None),
        ("import sys; sys.stderr.write('a\\nError: no such model\\n'); sys.exit(2)",
         "The process of this run ended with code 2. no such model"),
    ],
)  # fmt: skip
def test_how_a_process_ended_is_told_where_its_run_cannot_tell(
    code: str, told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = runs(monkeypatch, code)
    processes.start(tmp_path, 1)
    assert ended(processes, tmp_path) == told


def test_the_app_ends_its_processes_as_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = runs(monkeypatch, WAITS)
    processes.start(tmp_path, 1)
    processes.close()
    assert ended(processes, tmp_path) == "The process of this run was ended by signal 15."
