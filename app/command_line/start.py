"""The commands that show the app."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tracejury.app.command_line.root import HOME, main


@main.command(epilog="Example: tracejury demo --port 8600")
@HOME
@click.option("--port", type=click.IntRange(0, 65535), default=8501, show_default=True)
@click.option("--no-serve", is_flag=True, help="Fill the workspace without opening the app.")
def demo(home: Path | None, port: int, no_serve: bool) -> None:
    """Open the app on the shipped samples, judged and labelled."""
    from tracejury.app.commands import serving

    serving.demo(home, port=port, open_app=not no_serve)


@main.command(epilog="Example: tracejury serve --port 8600")
@HOME
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8501, show_default=True)
@click.option("--i-know", "is_agreed", is_flag=True, help="Listen beyond this machine even though sign-in is off.")
def serve(home: Path | None, host: str, port: int, is_agreed: bool) -> None:
    """Open the app on this workspace."""
    from tracejury.app.commands import serving

    serving.refuse_open_door(host, is_agreed=is_agreed)
    sys.exit(serving.serve(home, host=host, port=port))
