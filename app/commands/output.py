"""How commands speak: results on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
import orjson

from tracejury.ingest.trace import Rejected
from tracejury.ingest.words import counted as counted
from tracejury.judging.store import NoWorkspaceError, Workspace, WorkspaceError, open_workspace

STOPPED_BY_LIMIT = 3
"""Exit code of what stopped at a limit that the user set: start it again with another limit to continue."""


def opened(home: Path | None, *, create: bool = False) -> Workspace:
    """The workspace. Ends the command with a message when it cannot be opened, or, unless `create`, when there is
    none: a mistyped path makes no empty workspace.
    """
    try:
        return open_workspace(home, create=create)
    except NoWorkspaceError as error:
        raise click.ClickException(
            f"{error}. Try: another --home, or `tracejury ingest PATH`, which creates one"
        ) from error
    except WorkspaceError as error:
        raise click.ClickException(str(error)) from error


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    sys.stdout.buffer.write(orjson.dumps(document, option=options, default=_plain) + b"\n")
    sys.stdout.buffer.flush()


def _plain(value: Any) -> str:
    """Times of pandas as ISO 8601."""
    return str(value.isoformat())


def say(text: str) -> None:
    """A line for the person, on standard error."""
    click.echo(text, err=True)


def name_rejected(rejected: Iterable[Rejected]) -> None:
    for one in rejected:
        place = f" ({one.place})" if one.place else ""
        remedy = f"; {one.remedy}" if one.remedy else ""
        say(f"rejected {one.file}{place}: {one.reason}{remedy}")


def progress_bar(what: str, unit: str) -> tuple[Callable[[int, int], None], Callable[[], None]]:
    """A progress line on standard error, shown once something takes longer than a second."""
    bar = progress_line(what, unit)

    def show(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return show, bar.close


def progress_line(what: str, unit: str) -> Any:
    """A tqdm bar; where standard error is a file it speaks every ten seconds only."""
    from tqdm import tqdm

    interval = 0.2 if sys.stderr.isatty() else 10
    return tqdm(desc=what, unit=unit, delay=1, leave=False, file=sys.stderr, mininterval=interval, maxinterval=interval)
