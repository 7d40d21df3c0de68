"""Commands about traces."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tracejury.app.command_line.root import FORMAT, HOME, JSON, main

REDACT = click.option("--redact", is_flag=True, help="Mask secrets before anything is stored.")


@main.command(epilog="Example: tracejury ingest traces/ --redact")
@click.argument("paths", nargs=-1, required=True)
@HOME
@FORMAT
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Maximum number of processes that read files; few or small files need fewer.",
)
@click.option("--merge", is_flag=True, help="Join parts of one trace that are in several of the files.")
@REDACT
@click.option(
    "--map",
    "maps",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file that maps attributes to span fields (in addition to those in HOME/maps).",
)
@JSON
def ingest(
    paths: tuple[str, ...],
    home: Path | None,
    format_: str | None,
    workers: int,
    merge: bool,
    redact: bool,
    maps: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Read traces from files, folders, globs, archives or - (stdin)."""
    from tracejury.app.commands import traces

    options: dict[str, Any] = {"format": format_, "workers": workers, "merge": merge, "redact": redact}
    sys.exit(traces.ingest(paths, home, as_json=as_json, maps=maps, **options))


@main.group("map")
def map_group() -> None:
    """Map the attribute names of an unknown tracer."""


@map_group.command("suggest", epilog="Example: tracejury map suggest traces/ > acme.toml")
@click.argument("path")
def map_suggest(path: str) -> None:
    """Print a map (TOML) for the attributes in PATH that no reader knows.

    Nothing is stored.
    """
    from tracejury.app.commands import traces

    sys.exit(traces.suggest_map(path))


@main.command(epilog="Example: tracejury fetch trail")
@click.argument("name", type=click.Choice(["trail"]))
@HOME
def fetch(name: str, home: Path | None) -> None:
    """Load a public data set, traces and labels (needs HF_TOKEN)."""
    from tracejury.app.commands import fetching

    sys.exit(fetching.fetch(name, home))


@main.group("traces", invoke_without_command=True, epilog="Example: tracejury traces --csv traces.csv")
@HOME
@JSON
@click.option("--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a CSV file.")
@click.pass_context
def traces_group(context: click.Context, home: Path | None, as_json: bool, csv_file: Path | None) -> None:
    """List the traces of the workspace, or remove or replace some."""
    from tracejury.app.commands import traces

    if context.invoked_subcommand is None:
        traces.list_traces(home, as_json=as_json, csv_file=csv_file)


@traces_group.command("remove", epilog="Example: tracejury traces remove 0a1b2c3d")
@click.argument("trace_ids", metavar="TRACE...", nargs=-1, required=True)
@HOME
@click.option("--with-labels", is_flag=True, help="Also delete everything that people stored about them.")
@JSON
def traces_remove(trace_ids: tuple[str, ...], home: Path | None, with_labels: bool, as_json: bool) -> None:
    """Remove traces from the workspace, after a backup.

    Labels stay, and count again once the trace is back.
    """
    from tracejury.app.commands import removing

    sys.exit(removing.remove(trace_ids, home, with_labels=with_labels, as_json=as_json))


@traces_group.command("replace", epilog="Example: tracejury traces replace traces/")
@click.argument("paths", nargs=-1, required=True)
@HOME
@FORMAT
@REDACT
@JSON
def traces_replace(paths: tuple[str, ...], home: Path | None, format_: str | None, redact: bool, as_json: bool) -> None:
    """Replace traces with those of the same ID in PATHS.

    A backup is made first. Labels stay.
    """
    from tracejury.app.commands import removing

    sys.exit(removing.replace(paths, home, as_json=as_json, format=format_, redact=redact))


@main.command(epilog="Example: tracejury spans 0a1b2c3d --csv spans.csv")
@click.argument("trace")
@HOME
@click.option("--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a CSV file.")
@click.option("--parquet", "parquet_file", type=click.Path(dir_okay=False, path_type=Path), help="Write Parquet.")
@JSON
def spans(trace: str, home: Path | None, csv_file: Path | None, parquet_file: Path | None, as_json: bool) -> None:
    """Print or write the span table of a trace.

    TRACE is a trace ID or the beginning of one.
    """
    from tracejury.app.commands import traces

    traces.spans(trace, home, csv_file=csv_file, parquet_file=parquet_file, as_json=as_json)


@main.command(epilog="Example: tracejury text 0a1b2c3d")
@click.argument("trace")
@HOME
def text(trace: str, home: Path | None) -> None:
    """Print the exact text that a judge reads of a trace."""
    from tracejury.app.commands import traces

    traces.text(trace, home)
