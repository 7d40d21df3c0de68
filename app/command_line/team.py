"""Commands about the workspace and the people in it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tracejury.app.command_line.root import HOME, JSON, main


@main.command(epilog="Example: tracejury backup study.db")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@HOME
def backup(file: Path, home: Path | None) -> None:
    """Write the whole database to FILE while people work."""
    from tracejury.app.commands import removing

    removing.backup(file, home)


@main.command(epilog="Example: tracejury restore study.db --yes")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@HOME
@click.option("--yes", is_flag=True, help="Replace what the workspace holds now (it is backed up first).")
def restore(file: Path, home: Path | None, yes: bool) -> None:
    """Replace the database with the backup FILE. Stop the app first."""
    from tracejury.app.commands import removing

    removing.restore(file, home, is_agreed=yes)


@main.command(epilog="Example: tracejury move --to postgresql+psycopg://team@db.example/tracejury")
@click.option("--to", "url", metavar="URL", required=True, help="An empty database, as TRACEJURY_DATABASE names it.")
@HOME
@JSON
def move(url: str, home: Path | None, as_json: bool) -> None:
    """Copy everything into another database, SQLite or PostgreSQL. Stop the app first.

    Counts and content are compared table by table; the old database stays as it is.
    """
    from tracejury.app.commands import removing

    removing.move(url, home, as_json=as_json)


@main.command(epilog="Example: tracejury token --for otlp --days 30")
@HOME
@click.option("--person", default=None, help="Person that the token belongs to (default: TRACEJURY_USER).")
@click.option(
    "--for",
    "use",
    type=click.Choice(["export", "otlp"]),
    default="export",
    show_default=True,
    help="Read /api/export, or send traces to /v1/traces.",
)
@click.option("--days", type=click.IntRange(1, 90), default=7, show_default=True, help="Days until the token expires.")
@click.option("--revoke", is_flag=True, help="Revoke all tokens of this person.")
def token(home: Path | None, person: str | None, use: str, days: int, revoke: bool) -> None:
    """Print a token for scripts that call the running app."""
    from tracejury.app.commands import tokens

    if revoke:
        tokens.revoke(home, person)
    else:
        tokens.token(home, person, use=use, days=days)


@main.command(epilog="Example: tracejury verify --repair")
@HOME
@click.option("--repair", is_flag=True, help="Repair the search index and the summaries.")
@JSON
def verify(home: Path | None, repair: bool, as_json: bool) -> None:
    """Check what is stored: sources, spans, labels and verdicts."""
    from tracejury.app.commands import checking

    sys.exit(checking.verify(home, repair=repair, as_json=as_json))


@main.command(epilog="Example: tracejury doctor")
@HOME
@JSON
def doctor(home: Path | None, as_json: bool) -> None:
    """Check this machine and the workspace, and say what to do.

    Nothing is created or changed. The exit code is 1 if something prevents work.
    """
    from tracejury.app.commands import doctor as look

    sys.exit(look.doctor(home, as_json=as_json))
