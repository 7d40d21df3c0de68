"""The command `verify`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from tracejury.app.commands.output import counted, opened, print_json, progress_bar
from tracejury.ingest.check import check_store
from tracejury.judging.integrity import check_opinions


def verify(home: Path | None, *, repair: bool, as_json: bool) -> int:
    """Exit code 0, or 1 when there are problems (mended ones count too)."""
    engine = opened(home).engine
    show, close = progress_bar("verifying", " traces")
    problems = [*check_store(engine, repair=repair, progress=show), *check_opinions(engine)]
    close()
    if as_json:
        print_json({"problems": [asdict(problem) for problem in problems]})
    else:
        for problem in problems:
            click.echo(f"{problem.subject}: {problem.problem}; {problem.remedy}")
        click.echo("no problems found" if not problems else counted(len(problems), "problem"))
    return 1 if problems else 0
