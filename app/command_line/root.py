"""The command `tracejury` itself, and the options that many of its commands take."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tracejury.app.commands.faults import Commands
from tracejury.app.lifeline import end_with_parent

HOME = click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Workspace folder (default: TRACEJURY_HOME, else ./.tracejury).",
)
FORMAT = click.option("--format", "format_", default=None, help="Name of the format (default: recognised by content).")
API_BASE = click.option("--api-base", default=None, help="URL of an OpenAI-compatible server.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")
SECTIONS = {
    "Start": ("demo", "serve"),
    "Traces": ("ingest", "traces", "spans", "text", "map", "fetch"),
    "Corpora": ("corpus",),
    "Judging": ("judge", "rubric", "verdicts"),
    "Labels": ("labels",),
    "Results": ("match", "report", "plan"),
    "Team and workspace": ("token", "backup", "restore", "move", "verify", "doctor"),
    "GAIA2": ("gaia2",),
}
"""The commands as `tracejury --help` groups them."""
START = "Example: tracejury demo (more: tracejury COMMAND --help)"


@click.group(
    cls=Commands,
    sections=SECTIONS,
    epilog=START,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="tracejury")
@click.option("-v", "--verbose", is_flag=True, help="Log more, to standard error.")
def main(verbose: bool) -> None:
    """Compare people and LLM judges who read the same agent traces, span by span."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from tracejury.app import telemetry

    try:
        telemetry.configure_logging(is_verbose=verbose)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    telemetry.observe_command(click.get_current_context())
    end_with_parent()
