"""Nothing that the app started outlives it, however it ended; an address is announced only where ours answers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

PARENT = textwrap.dedent(
    """
    import sys, time
    from tracejury.app.lifeline import start_child
    child = start_child([sys.executable, "-c", sys.argv[1]], stderr=sys.stderr.buffer)
    print(child.pid, flush=True)
    time.sleep(600)
    """
)
CHILD = textwrap.dedent(
    """
    import os, signal, sys, time
    from tracejury.app.lifeline import end_with_parent
    signal.signal(signal.SIGTERM, lambda *_: (os.write(2, b"told to end"), os._exit(0)))
    end_with_parent()
    os.write(2, b"ready ")
    time.sleep(600)
    """
)


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    yield started
    started.kill()
    started.communicate()


def test_a_child_ends_in_order_when_its_parent_is_killed(parent: subprocess.Popen[bytes]) -> None:
    assert parent.stdout is not None
    assert parent.stderr is not None
    assert int(parent.stdout.readline()) > 0
    assert parent.stderr.read(6) == b"ready "
    parent.send_signal(signal.SIGKILL)
    assert parent.stderr.read() == b"told to end", "the pipe is closed by the child's end alone"


def test_a_command_started_by_hand_watches_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    from tracejury.app import lifeline

    monkeypatch.delenv(lifeline.LIFELINE, raising=False)
    monkeypatch.setattr(lifeline, "_watch", lambda: pytest.fail("it must not end when its input does"))
    lifeline.end_with_parent()


def served(home: Path, port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tracejury", "serve", "--home", str(home), "--port", str(port)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.slow
def test_the_app_ends_when_its_command_is_killed(tmp_path: Path) -> None:
    process = served(tmp_path / "home", 0)
    assert process.stdout is not None
    address = next(line for line in process.stdout if b"Tracejury is at" in line).split()[3].decode()
    port = int(address.rpartition(":")[2])
    os.kill(process.pid, signal.SIGKILL)
    process.stdout.read()  # closed when the app, which inherited it for its messages, has ended
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_port_in_use_is_named_and_not_announced_as_ours(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        process = served(tmp_path / "home", port)
        output = process.communicate()[0].decode()
    assert process.returncode == 1
    assert f"cannot listen on port {port} of 127.0.0.1" in output
    assert "Tracejury is at" not in output
