"""Commands about judges, rubrics and verdicts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tracejury.app.command_line.root import API_BASE, HOME, JSON, main

DIMENSIONS = "LC,EE,PQ,PA,GF,TS,TC"


@main.command(epilog="Example: tracejury judge --model gpt-4.1 --dimensions LC,TC --budget 5")
@click.argument("trace_ids", metavar="[TRACE]...", nargs=-1)
@HOME
@click.option("--dimensions", default="all", show_default=True, help=f"{DIMENSIONS}, all, trail, or your own rubrics.")
@click.option("--model", default="checks", show_default=True, help="checks (offline) or any litellm model name.")
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="How many times each judge is asked about each trace.",
)
@click.option("--mode", type=click.Choice(["trace", "span", "jury"]), default="trace", show_default=True)
@click.option(
    "--jury-rule",
    type=click.Choice(["majority", "mean"]),
    default="majority",
    show_default=True,
    help="How the models of a jury (--mode jury --model A,B,C) give one score. Ties are reported, not resolved.",
)
@click.option("--agent", default=None, help="Agent description to give the judges (default: chosen by the trace).")
@click.option("--concurrency", type=click.IntRange(1, 512), default=8, show_default=True)
@click.option("--rpm", type=click.IntRange(1), default=None, help="Maximum requests per minute.")
@click.option("--tpm", type=click.IntRange(1), default=None, help="Maximum tokens per minute.")
@click.option(
    "--budget",
    type=float,
    default=None,
    help="Maximum cost in US dollars: the run stops before it is exceeded (exit code 3) and can be resumed.",
)
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="[MODEL=]IN,OUT[,CACHED]",
    help="US dollars per million tokens, in place of the public price.",
)
@click.option(
    "--cache/--no-cache",
    "use_cache",
    default=True,
    show_default=True,
    help="Reuse the stored reply to an identical request (model, parameters, prefix, rubric, repeat).",
)
@click.option(
    "--ask-again/--no-ask-again",
    default=True,
    show_default=True,
    help="Resend requests that got no answer before a process or connection ended (they may be charged twice), or "
    "store them as failures.",
)
@API_BASE
@click.option("--order", type=click.Choice(["cache", "paper"]), default="cache", show_default=True)
@click.option("--temperature", type=float, default=None)
@click.option("--max-tokens", type=click.IntRange(1), default=None)
@click.option("--reasoning-effort", default=None)
@click.option("--dry-run", is_flag=True, help="Show the estimate and the exact prompt; call and write nothing.")
@click.option("--resume", type=int, default=None, metavar="RUN", help="Continue this run as it was planned.")
@click.option("--if-queued", is_flag=True, hidden=True, help="Unless somebody paused or cancelled it meanwhile.")
@click.option("--failed-only", is_flag=True, help="Judge again the failed cells of the last run with these settings.")
@click.option("--batch", is_flag=True, help="Use the provider's batch interface.")
@click.option("--even-if-empty", is_flag=True, help="Also judge traces that contain only names and times.")
@click.option(
    "--show-reasoning/--hide-reasoning",
    "reasoning",
    default=True,
    show_default=True,
    help="Show judges the model's reasoning where the trace records it separately.",
)
@JSON
def judge(trace_ids: tuple[str, ...], home: Path | None, as_json: bool, **options: Any) -> None:
    """Judge traces (default: all)."""
    from tracejury.app.commands import judging

    sys.exit(judging.judge(trace_ids, home, as_json=as_json, **options))


@main.group()
def rubric() -> None:
    """Write your own rubrics."""


@rubric.command("new", epilog="Example: tracejury rubric new brevity")
@click.argument("name")
@HOME
def rubric_new(name: str, home: Path | None) -> None:
    """Write a commented rubric NAME into the workspace, to be filled in."""
    from tracejury.app.commands import rubrics

    sys.exit(rubrics.new(home, name))


@rubric.command("check", epilog="Example: tracejury rubric check .tracejury/rubrics/brevity.toml")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@JSON
def rubric_check(file: Path, as_json: bool) -> None:
    """Name every fault of a rubric FILE, or show the prompt that it makes."""
    from tracejury.app.commands import rubrics

    sys.exit(rubrics.check(file, as_json=as_json))


@main.group()
def verdicts() -> None:
    """Import and export judges' verdicts."""


@verdicts.command("import", epilog="Example: tracejury verdicts import outputs/ --judge-model gpt-4.1")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@HOME
@click.option("--as", "form", type=click.Choice(["trail"]), default="trail", show_default=True)
@click.option("--judge-model", required=True, help="Name of the judge model that wrote these outputs.")
@click.option("--repeat", type=click.IntRange(0), default=None, help="Repeat of the judge, from 0.")
@JSON
def verdicts_import(
    files: tuple[Path, ...], home: Path | None, form: str, judge_model: str, repeat: int | None, as_json: bool
) -> None:
    """Import judge outputs of other tools.

    Each file becomes findings or a named failure.
    """
    from tracejury.app.commands import opinions

    sys.exit(opinions.import_verdicts(files, home, form=form, judge_model=judge_model, repeat=repeat, as_json=as_json))


@verdicts.command("export", epilog="Example: tracejury verdicts export --out verdicts.json")
@HOME
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="JSON file.")
def verdicts_export(home: Path | None, out: Path) -> None:
    """Export every verdict, failure, finding and citation."""
    from tracejury.app.commands import opinions

    sys.exit(opinions.export_verdicts(home, out))
