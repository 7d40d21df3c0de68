"""The commands `demo` and `serve`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib import resources
from pathlib import Path
from types import FrameType

import click
from sqlalchemy import select

from tracejury.app.commands import doctor, opinions, traces
from tracejury.app.commands.output import opened, say
from tracejury.app.config import LISTENS, config, unknown_settings
from tracejury.app.guard import WILDCARDS, is_local
from tracejury.app.lifeline import start_child
from tracejury.ingest.store import read_transaction, schema
from tracejury.judging.store import Workspace
from tracejury.judging.store.workspace import has_workspace

PREDICTIONS = "predictions"  # answers of judges, not traces
START_S = 60  # seconds until the app must have answered


def refuse_open_door(host: str, *, is_agreed: bool) -> None:
    """End the command when others could reach an app in which everyone has every right."""
    if is_local(host) or is_agreed or config().sign_in != "off":
        return
    raise click.ClickException(
        f"--host {host} lets every machine that can reach this one read, label, judge at your cost and delete, "
        "because sign-in is off. Try: TRACEJURY_SIGN_IN=password (or oidc), or --i-know if the network is yours"
    )


def serve(home: Path | None, *, host: str, port: int) -> int:
    """Run the app until it is stopped; prints its address once it answers. Returns its exit code."""
    if unknown := unknown_settings():
        say(f"unknown settings: {', '.join(unknown)}. Try: tracejury doctor, which names the settings")
    is_new = not has_workspace(home)
    workspace = opened(home, create=True)
    _warn_of_no_traces(workspace, is_new=is_new)
    _warn_of_no_administrator(workspace)
    workspace.engine.dispose()
    port = _free_port(host, port)
    shown = "127.0.0.1" if host in WILDCARDS else host
    environment = os.environ | {
        "TRACEJURY_HOME": str(workspace.home.resolve()),
        LISTENS: host,
        "FORWARDED_ALLOW_IPS": ",".join(config().proxies),  # else any process here is believed on who sends
    }
    entry = str(resources.files("tracejury.app").joinpath("asgi.py"))
    # -P: a stray file in the folder one is in must not shadow ours
    command = [
        sys.executable, "-P", "-m", "tracejury.app.server", "run", entry,
        f"--server.address={host}", f"--browser.serverAddress={shown}",
        f"--server.port={port}", "--server.headless=true",
        "--browser.gatherUsageStats=false", "--client.toolbarMode=viewer", "--server.fileWatcherType=none",
        "--server.disconnectedSessionTTL=60", "--server.maxUploadSize=1000", "--client.showErrorDetails=none",
    ]  # fmt: skip
    process = start_child(command, environment=environment)

    def stop(_number: int, _frame: FrameType | None) -> None:
        process.terminate()

    signal.signal(signal.SIGTERM, stop)
    try:
        _announce(process, host, port)
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait(timeout=10)
        return 0


def _warn_of_no_traces(workspace: Workspace, *, is_new: bool) -> None:
    """Say that the app opens on nothing, which a mistyped folder does too, and how another workspace is opened."""
    with read_transaction(workspace.engine) as connection:
        if connection.execute(select(schema.trace.c.trace_key).limit(1)).first() is not None:
            return
    url, folder = workspace.engine.url, workspace.home.resolve()
    is_in_folder = url.get_backend_name() == "sqlite"
    place = str(folder) if is_in_folder else url.render_as_string(hide_password=True)
    state = "is new and empty" if is_new else "holds no traces"
    other = "--home FOLDER or TRACEJURY_HOME" if is_in_folder else "TRACEJURY_DATABASE"
    say(f"the workspace {place} {state}. Try: add traces on the page Ingest; {other} opens another workspace")


def _warn_of_no_administrator(workspace: Workspace) -> None:
    """Say how the first administrator is made, where people must sign in and none of them can be one."""
    check = doctor.sign_in(workspace.engine)
    if check.state == "stops":
        say(f"sign-in is {check.message}. Try: {check.remedy}")


def demo(home: Path | None, *, port: int, open_app: bool) -> None:
    """Samples in, labels in, judged offline, matched; then the app."""
    started = time.monotonic()
    with resources.as_file(resources.files("tracejury.data")) as data:
        say("reading the sample traces")
        samples = [str(folder) for folder in sorted((data / "samples").iterdir()) if folder.name != PREDICTIONS]
        traces.ingest(samples, home, as_json=False)
        say("loading the labels of two people")
        opinions.import_labels(
            [data / "labels" / "ada.json", data / "labels" / "ben.json"], home, form="tracejury", as_json=False
        )
        _offline_judge(home)
        for folder in sorted((data / "samples" / PREDICTIONS).iterdir()):
            say(f"loading the verdicts of {folder.name}")
            opinions.import_verdicts([folder], home, form="trail", judge_model=folder.name, as_json=False)
    opinions.match(home, judge_model=None, as_json=False)
    say(f"the workspace is ready after {time.monotonic() - started:.1f} s")
    if open_app:
        sys.exit(serve(home, host="127.0.0.1", port=port))


def _offline_judge(home: Path | None) -> None:
    from tracejury.app.commands import judging

    say("judging offline")
    judging.judge([], home, model=judging.CHECKS, dimensions="all", as_json=False)


def _announce(process: subprocess.Popen[bytes], host: str, port: int) -> None:
    """Print the address once the app answers there."""
    shown = "127.0.0.1" if host in WILDCARDS else host
    address = f"http://{shown}:{port}"
    give_up = time.monotonic() + START_S
    say("starting the app")
    while process.poll() is None and time.monotonic() < give_up:
        try:
            with urllib.request.urlopen(f"{address}/api/health", timeout=1):
                click.echo(f"Tracejury is at {address}  (Ctrl+C stops it)")
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    if process.poll() is None:
        say(f"The app did not answer at {address} within {START_S} s; it may still be starting.")
    else:
        say(f"The app stopped with code {process.returncode}. Try: another --port, if port {port} is in use.")


def _free_port(host: str, first: int) -> int:
    """The wanted port, any for 0. What answers at a port in use is another app, and must not be announced as ours."""
    import socket

    family = socket.getaddrinfo(host, first, type=socket.SOCK_STREAM)[0][0]
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, first))
        except OSError as error:
            raise click.ClickException(
                f"cannot listen on port {first} of {host} ({error.strerror}). Try: --port 0 for a free one"
            ) from error
        return int(probe.getsockname()[1])
