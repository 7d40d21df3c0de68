"""Commands that match, report and plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tracejury.app.command_line.root import API_BASE, HOME, JSON, main

_SHARE = click.FloatRange(0, 1)


_POINTS = click.FloatRange(0, 100, min_open=True)


@main.group(invoke_without_command=True, epilog="Example: tracejury match --judge-model gpt-4.1")
@HOME
@click.option("--judge-model", default=None, help="Only the findings of this judge model.")
@click.option(
    "--model", default=None, help="Also ask a model (any litellm name); without it only the rule proposes matches."
)
@API_BASE
@click.option("--concurrency", type=click.IntRange(1, 512), default=8, show_default=True, help="Concurrent calls.")
@click.option("--budget", type=float, default=None, help="No call starts once this cost in US dollars is reached.")
@click.option(
    "--price",
    default=None,
    metavar="IN,OUT[,CACHED]",
    help="US dollars per million tokens of --model, in place of the public price.",
)
@click.option("--withdraw", is_flag=True, help="Withdraw all undecided proposals of --model.")
@JSON
@click.pass_context
def match(
    context: click.Context,
    /,
    home: Path | None,
    judge_model: str | None,
    model: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Propose matches of annotators' errors and judges' findings.

    People confirm or reject them.
    """
    if context.invoked_subcommand is not None:
        return
    from tracejury.app.commands import opinions

    if model is None:
        if options["withdraw"]:
            raise click.UsageError("--withdraw needs the model of the proposals. Try: --model NAME --withdraw")
        if options["price"] is not None:
            raise click.UsageError(
                "--price needs the model that it belongs to; the rule costs nothing. Try: --model NAME --price IN,OUT"
            )
        sys.exit(opinions.match(home, judge_model=judge_model, as_json=as_json))
    sys.exit(opinions.match_by_model(home, model=model, judge_model=judge_model, as_json=as_json, **options))


@match.command("sample", epilog="Example: tracejury match sample --out pairs.csv --n 50")
@click.argument("trace_ids", metavar="[TRACE]...", nargs=-1)
@HOME
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File to label: .csv or .jsonl."
)
@click.option("--n", type=click.IntRange(1), default=250, show_default=True, help="Pairs to draw.")
@click.option("--judge-model", default=None, help="Only the findings of this judge model.")
@click.option("--seed", type=int, default=1, show_default=True)
@JSON
def match_sample(home: Path | None, trace_ids: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Draw pairs of an error and a finding for people to label.

    Fill in same_error: yes, no or unclear.
    """
    from tracejury.app.commands import pairs

    sys.exit(pairs.sample(home, trace_ids=trace_ids, as_json=as_json, **options))


@match.command("score", epilog="Example: tracejury match score pairs.csv")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@HOME
@JSON
def match_score(file: Path, home: Path | None, as_json: bool) -> None:
    """Measure the matching rule on labelled pairs: precision and recall."""
    from tracejury.app.commands import pairs

    sys.exit(pairs.score(home, file, as_json=as_json))


@main.command(epilog="Example: tracejury report --out tables/ --reference ada --format csv,tex")
@HOME
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for the tables.")
@click.option("--table", "names", multiple=True, help="Only this table (repeatable).")
@click.option("--split", "split_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=None)
@click.option(
    "--match",
    "is_matching",
    is_flag=True,
    help="First propose matches by the rule, as `tracejury match` does, and store them.",
)
@click.option("--matches", type=click.Choice(["proposed", "confirmed"]), default="proposed", show_default=True)
@click.option(
    "--reference",
    default=None,
    metavar="NAME",
    help="Labels that judges are measured against: an annotator's name, majority, adjudicated, or single (the "
    "annotator with the most reviews). Default: adjudicated where there is any, else single.",
)
@click.option(
    "--judge-model", "judge_models", multiple=True, metavar="NAME", help="Only this judge model (repeatable)."
)
@click.option(
    "--version", "versions", multiple=True, metavar="HASH", help="Judge versions to use (default: the newest)."
)
@click.option("--repeat", type=click.IntRange(0), default=0, show_default=True, help="Repeat of the judges, from 0.")
@click.option(
    "--compare",
    "sides",
    nargs=2,
    default=None,
    metavar="A B",
    help="Compare two sides: each a judge model, or version=HASH, person=NAME, judge_model=NAME,repeat=N.",
)
@click.option(
    "--trace-format",
    "trace_formats",
    multiple=True,
    metavar="FORMAT",
    help="Only traces of this format: trail, gaia2 ...",
)
@click.option("--guideline", default=None, help="Only traces that were labelled under this guideline version.")
@click.option(
    "--blind-only/--no-blind-only",
    "blind_only",
    default=None,
    help="Count only labels stored before the reveal (default), or also those stored after it.",
)
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="NAME",
    help="Only slices by this property (repeatable; default: all): agent, source, length, tool, model, outcome, kind, "
    "guideline.",
)
@click.option(
    "--tolerance",
    type=click.Choice(["exact", "step", "span"]),
    default=None,
    help="What localizes an error: exact (a citation of one of its spans; the default), step (also of a parent, a "
    "child or a span of the same step), span (also of the span before or after).",
)
@click.option(
    "--same-traces/--no-same-traces",
    "same_traces",
    default=None,
    help="Compare judges on the traces that all of them answered (default), or each on its own.",
)
@click.option(
    "--inputs", is_flag=True, help="Also write the input rows of the tables, in the form that --from-csv reads."
)
@click.option("--format", "formats", default="csv", show_default=True, help="csv,json,md,tex,parquet")
@click.option("--missing", type=click.Choice(["drop", "disagree"]), default="drop", show_default=True)
@click.option("--draws", type=click.IntRange(0), default=2000, show_default=True, help="Bootstrap resamples.")
@click.option(
    "--seed", type=int, default=None, help="Seed of the resamples (default: the pages' seed, see manifest.json)."
)
@click.option(
    "--from-csv",
    "from_csv",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Read this folder instead of the workspace: what --out and --inputs wrote, or its folder inputs.",
)
@JSON
def report(home: Path | None, as_json: bool, **options: Any) -> None:
    """Write the agreement tables."""
    from tracejury.app.commands import reports

    sys.exit(reports.report(home, as_json=as_json, **options))


@main.command(epilog="Example: tracejury plan --judge-model checks --width 10 --people 2")
@HOME
@click.option(
    "--judge-model",
    "judge_models",
    multiple=True,
    metavar="NAME",
    help="Judge model of the pilot; give two to plan their difference on the same errors.",
)
@click.option("--reference", default=None, metavar="NAME", help="Labels that judges are measured against.")
@click.option("--difference", type=_POINTS, default=None, help="Detect a difference of this many points.")
@click.option("--width", type=_POINTS, default=None, help="Get a 95 % interval no wider than this many points.")
@click.option("--power", type=click.FloatRange(0.5, 1, max_open=True), default=0.8, show_default=True)
@click.option(
    "--repeats", type=click.IntRange(1), multiple=True, help="Repeats of each judge (repeatable; default: 1)."
)
@click.option(
    "--people", type=click.IntRange(1), multiple=True, help="People who label each trace (repeatable; default: 1)."
)
@click.option("--traces", type=click.IntRange(1), multiple=True, help="Also show what this many traces detect.")
@click.option("--rate", type=_SHARE, default=None, help="Assume this rate of caught errors, 0 to 1.")
@click.option("--discordant", type=_SHARE, default=None, help="Assume this share of errors caught by one judge alone.")
@click.option(
    "--errors-per-trace",
    type=click.FloatRange(0, min_open=True),
    default=None,
    help="Assume this many errors per trace.",
)
@click.option("--icc", type=_SHARE, default=None, help="Assume this correlation between errors of one trace.")
@click.option("--repeat-icc", type=_SHARE, default=None, help="Assume this correlation between repeats.")
@click.option("--agreement", type=_SHARE, default=None, help="Assume this reliability (ICC) of one person's scores.")
@click.option("--minutes", type=click.FloatRange(0), default=None, help="Assume this many active minutes per trace.")
@click.option(
    "--dollars", type=click.FloatRange(0), default=None, help="Assume this cost per trace and repeat, US dollars."
)
@JSON
def plan(home: Path | None, as_json: bool, **options: Any) -> None:
    """Plan a study: traces, people, repeats, hours and dollars."""
    from tracejury.app.commands import planning

    sys.exit(planning.plan(home, as_json=as_json, **options))
