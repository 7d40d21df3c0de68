"""Processes that end with the one that started them, however that one ended: none works on unseen.

A child's standard input is a pipe that nobody writes to. Its other end closes with the parent, killed or not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO

LIFELINE = "TRACEJURY_LIFELINE"


def start_child(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, stderr: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process that ends with this one, if it calls `end_with_parent`. Its standard output is dropped."""
    known = os.environ if environment is None else environment
    return subprocess.Popen(
        command, env={**known, LIFELINE: "1"}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stderr
    )


def end_with_parent() -> None:
    """From now on end by SIGTERM once the parent has ended, where it was this app that started this process."""
    if os.environ.pop(LIFELINE, None) is not None:
        threading.Thread(target=_watch, name="lifeline", daemon=True).start()


def _watch() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
