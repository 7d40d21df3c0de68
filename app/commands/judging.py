"""The commands `judge` and `worker`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from app.commands.output import counted, opened, print_json, progress_bar
from app.commands.traces import full_id
from ingest.store import reading
from judging.records import DIMENSIONS, Dimension

CHECKS = "checks"


def judge(
    trace_ids: Sequence[str], home: Path | None, *, model: str, judges: str, as_json: bool, **options: Any
) -> int:
    """Exit code 0, or 1 when a cell failed."""
    workspace = opened(home)
    with reading(workspace.engine) as connection:
        chosen = [full_id(connection, trace_id) for trace_id in trace_ids] or None
    if model == CHECKS:
        return _offline(workspace.engine, chosen, dimensions(judges), as_json=as_json)
    raise click.ClickException("not yet")


def dimensions(judges: str) -> tuple[Dimension, ...]:
    """The dimensions named in `LC,EE` or `all`. Ends the command on a name that is none."""
    if judges == "all":
        return DIMENSIONS
    names = [name.strip().upper() for name in judges.split(",") if name.strip()]
    unknown = [name for name in names if name not in DIMENSIONS]
    if unknown or not names:
        raise click.UsageError(
            f"no judge {', '.join(unknown) or judges!r}; the offline judge has {', '.join(DIMENSIONS)}"
        )
    return tuple(dimension for dimension in DIMENSIONS if dimension in names)


def _offline(engine: Any, traces: Sequence[str] | None, wanted: Sequence[Dimension], *, as_json: bool) -> int:
    from judging.offline import judge_all

    show, close = progress_bar("judging", " traces")
    summary = judge_all(engine, traces=traces, dimensions=wanted, progress=show)
    close()
    if as_json:
        print_json(summary)
    else:
        states = ", ".join(f"{count} {state}" for state, count in summary["states"].items())  # type: ignore[attr-defined]
        click.echo(
            f"{counted(int(str(summary['cells'])), 'cell')} judged ({states or 'nothing new'}), "
            f"{counted(int(str(summary['findings'])), 'finding')}, {summary['skipped']} judged before"
        )
    return 0


def worker(home: Path | None, *, once: bool) -> int:
    raise click.ClickException("not yet")
