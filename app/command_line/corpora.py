"""Commands about corpora."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tracejury.app.command_line.root import FORMAT, JSON, main


def WORKERS(command: Any) -> Any:  # noqa: N802
    """Options of who does the work of a corpus."""
    for option in (
        click.option("--scheduler", metavar="ADDRESS", default=None, help="Dask scheduler (default: start one here)."),
        click.option("--workers", type=click.IntRange(1), default=None, help="Processes (default: one per core)."),
        click.option("--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True),
    ):
        command = option(command)
    return command


@main.group()
def corpus() -> None:
    """Handle traces by the million, as Parquet outside the workspace."""


@corpus.command("build", epilog="Example: tracejury corpus build traces/ --out agents")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--out", "url", metavar="URL", required=True, help="Address of the corpus: a folder, s3://, gs:// ...")
@FORMAT
@click.option("--redact", is_flag=True, help="Mask secrets before anything is written.")
@click.option(
    "--map",
    "maps",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file that maps attributes to span fields.",
)
@WORKERS
@JSON
def corpus_build(sources: tuple[str, ...], url: str, format_: str | None, as_json: bool, **options: Any) -> None:
    """Read SOURCES into the corpus, except files that it already holds.

    SOURCES are files, folders, patterns and addresses. After an interruption, run it again to continue. Late files
    become partitions of their own.
    """
    from tracejury.app.commands import corpora

    sys.exit(corpora.build(sources, url, format=format_, as_json=as_json, **options))


@corpus.command("check", epilog="Example: tracejury corpus check agents")
@click.argument("url")
@WORKERS
@JSON
def corpus_check(url: str, as_json: bool, **options: Any) -> None:
    """Judge every trace of the corpus with the offline checks.

    Traces that these checks have already judged are skipped.
    """
    from tracejury.app.commands import corpora

    sys.exit(corpora.check(url, as_json=as_json, **options))


@corpus.command("summary", epilog="Example: tracejury corpus summary agents --by tool")
@click.argument("url")
@click.option("--by", type=click.Choice(["agent", "model", "tool", "day"]), default=None, help="Only this table.")
@JSON
def corpus_summary(url: str, by: str | None, as_json: bool) -> None:
    """Show what the checks found, by agent, model, tool and day."""
    from tracejury.app.commands import corpora

    sys.exit(corpora.summary(url, by=by, as_json=as_json))


@corpus.command("sample", epilog="Example: tracejury corpus sample agents --n 200 --into study")
@click.argument("url")
@click.option("--n", type=click.IntRange(1), default=200, show_default=True, help="Traces to draw.")
@click.option(
    "--by",
    "method",
    type=click.Choice(["random", "stratum", "disagreement"]),
    default="random",
    show_default=True,
    help="stratum: each agent with and without findings; disagreement: half where checks and status disagree.",
)
@click.option(
    "--into", "--home", "home", type=click.Path(file_okay=False, path_type=Path), default=None, help="Workspace folder."
)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--map", "maps", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="The map file with which the corpus was built.")  # fmt: skip
@JSON
def corpus_sample(url: str, home: Path | None, as_json: bool, **options: Any) -> None:
    """Draw traces into a workspace for people to label, as a queue.

    The probability with which each trace was drawn is stored, so that `tracejury report` can estimate the
    error rates of the corpus.
    """
    from tracejury.app.commands import corpora

    sys.exit(corpora.sample(url, home, as_json=as_json, **options))
