"""The commands that take something away, and copies of all: traces remove, traces replace, backup, restore, move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tracejury.app.commands.output import counted, opened, print_json, say
from tracejury.app.commands.traces import full_id, ingest_into
from tracejury.app.config import config
from tracejury.ingest.store import read_transaction
from tracejury.judging import moving
from tracejury.judging.removal import count_labels, remove_traces
from tracejury.judging.store import WorkspaceError
from tracejury.judging.store.backup import back_up, back_up_first, count_rows, set_damaged_aside
from tracejury.judging.store.backup import restore as put_back


def remove(trace_ids: Sequence[str], home: Path | None, *, with_labels: bool, as_json: bool) -> int:
    workspace = opened(home)
    with read_transaction(workspace.engine) as connection:
        ids = list(dict.fromkeys(full_id(connection, trace_id) for trace_id in trace_ids))
        labels = count_labels(connection, ids)
    try:
        removal = remove_traces(workspace, ids, with_labels=with_labels, by=config().user)
    except WorkspaceError as error:
        raise click.ClickException(f"nothing was removed: {error}") from error
    if as_json:
        print_json(asdict(removal) | {"backup": str(removal.backup)})
        return 0
    rows = counted(labels, "row") + " of labels"
    outcome = f"{rows} deleted" if with_labels else f"{rows} kept: they count again once the trace is back"
    click.echo(f"{counted(len(removal.traces), 'trace')} removed, {outcome}; backup: {removal.backup}")
    return 0


def replace(paths: Sequence[str], home: Path | None, *, as_json: bool, **options: Any) -> int:
    """Exit code as of `ingest`."""
    workspace = opened(home)
    try:
        say(f"backup: {back_up_first(workspace, 'before-replacement')}")
    except WorkspaceError as error:
        raise click.ClickException(f"nothing was replaced: {error}") from error
    return ingest_into(workspace, paths, as_json=as_json, replace=True, **options)


def backup(file: Path, home: Path | None) -> None:
    try:
        back_up(opened(home).engine, file)
    except WorkspaceError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"backup written to {file} ({file.stat().st_size:,} bytes)")


def restore(file: Path, home: Path | None, *, is_agreed: bool) -> None:
    try:
        aside = set_damaged_aside(home, file) if is_agreed else None
    except WorkspaceError as error:
        raise click.ClickException(str(error)) from error
    if aside is not None:
        say(f"the damaged database is kept as {aside}")
    workspace = opened(home, create=True)
    with read_transaction(workspace.engine) as connection:
        traces, others = count_rows(connection)
    if traces + others and not is_agreed:
        content = f"{counted(traces, 'trace')} and {counted(others, 'row')} of labels, people and other data"
        raise click.ClickException(f"the workspace holds {content}. Try: --yes to replace all of it, or another --home")
    try:
        if traces + others:
            say(f"backup of what was there: {back_up_first(workspace, 'before-restore')}")
        put_back(workspace, file)
    except WorkspaceError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{workspace.home} is back as it was in {file}")


def move(url: str, home: Path | None, *, as_json: bool) -> None:
    try:
        moved = moving.move(opened(home).engine, url)
    except WorkspaceError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        print_json([asdict(one) for one in moved])
        return
    for one in moved:
        click.echo(f"{one.name:<16} {one.rows:>10,} {'row' if one.rows == 1 else 'rows':<4}  {one.content}")
    rows = counted(sum(one.rows for one in moved), "row")
    click.echo(f"{rows} copied and compared. Set TRACEJURY_DATABASE to the new database; the old one is as it was.")
