"""The processes of runs that were started on a page: one `tracejury judge` a run, whose end is seen."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tracejury.app.lifeline import start_child

LAST_WORDS = 400  # characters of a process's last words that are shown


@dataclass(frozen=True, kw_only=True)
class _Started:
    process: subprocess.Popen[bytes]
    words: IO[bytes]


class RunProcesses:
    """Starts an owner process for a run, and tells how it ended. Used by many sessions at once."""

    def __init__(self) -> None:
        self._by_run: dict[tuple[Path, int], _Started] = {}
        self._lock = threading.Lock()

    def start(self, home: Path, run_key: int) -> None:
        """Have a process of its own work on the run, unless one of ours does. Who else owns it, that process finds."""
        with self._lock:
            before = self._by_run.get((home, run_key))
            if before is not None and before.process.poll() is None:
                return
            words = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the process is asked about)
            process = start_child(command(home, run_key), stderr=words)
            self._by_run[home, run_key] = _Started(process=process, words=words)

    def is_at_work(self, home: Path, run_key: int) -> bool | None:
        """Whether the process of a run is there; None where none was started here."""
        started = self._by_run.get((home, run_key))
        return None if started is None else started.process.poll() is None

    def end_of(self, home: Path, run_key: int) -> str | None:
        """How the process of a run ended, where it was not as it should; None otherwise."""
        started = self._by_run.get((home, run_key))
        code = None if started is None else started.process.poll()
        if started is None or code in (None, 0, 1, 3):
            return None
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"The process of this run {how}. {_last_line(started.words)}".strip()

    def close(self) -> None:
        """End the processes as the app ends: calls under way are finished and kept, the runs can go on later."""
        for started in self._by_run.values():
            if started.process.poll() is None:
                started.process.send_signal(signal.SIGTERM)


RUNS = RunProcesses()


def command(home: Path, run_key: int) -> list[str]:
    """`-P`: a stray file in the folder one is in must not shadow ours."""
    words = ["judge", "--resume", str(run_key), "--if-queued", "--home", str(home)]
    return [sys.executable, "-P", "-m", "tracejury.app.cli", *words]


def _last_line(words: IO[bytes]) -> str:
    words.seek(0)
    lines = words.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("Error: ")[:LAST_WORDS] if lines else ""
