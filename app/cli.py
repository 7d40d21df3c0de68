"""The command `tracejury`: what it takes and prints; the work is in `app.commands`, imported where used."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from tracejury.app.commands.faults import Commands
from tracejury.app.lifeline import end_with_parent

HOME = click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Workspace folder (default: TRACEJURY_HOME, else ./.tracejury).",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")
SCORE_FORMS = (
    "langfuse", "phoenix", "label-studio", "argilla", "langsmith", "mlflow", "scout", "docent", "opik", "weave",
    "datadog", "braintrust", "humanloop", "labelbox", "prodigy", "doccano", "deepeval", "ragas", "promptfoo",
    "openai-evals",
)  # fmt: skip
DIMENSIONS = "LC,EE,PQ,PA,GF,TS,TC"
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


def WORKERS(command: Any) -> Any:  # noqa: N802
    """Options of who does the work of a corpus."""
    for option in (
        click.option(
            "--scheduler", metavar="ADDRESS", default=None, help="Dask scheduler (default: one started here)."
        ),
        click.option("--workers", type=click.IntRange(1), default=None, help="Processes (default: one a core)."),
        click.option("--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True),
    ):
        command = option(command)
    return command


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


@main.command(epilog="Example: tracejury demo --port 8600")
@HOME
@click.option("--port", type=click.IntRange(0, 65535), default=8501, show_default=True)
@click.option("--no-serve", is_flag=True, help="Only fill the workspace.")
def demo(home: Path | None, port: int, no_serve: bool) -> None:
    """Open the app on the shipped samples, judged and labelled."""
    from tracejury.app.commands import serving

    serving.demo(home, port=port, open_app=not no_serve)


@main.command(epilog="Example: tracejury serve --port 8600")
@HOME
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8501, show_default=True)
@click.option("--i-know", "is_agreed", is_flag=True, help="Listen beyond this machine though nobody signs in.")
def serve(home: Path | None, host: str, port: int, is_agreed: bool) -> None:
    """Open the app on this workspace."""
    from tracejury.app.commands import serving

    serving.refuse_open_door(host, is_agreed=is_agreed)
    sys.exit(serving.serve(home, host=host, port=port))


@main.command(epilog="Example: tracejury ingest traces/ --redact")
@click.argument("paths", nargs=-1, required=True)
@HOME
@click.option("--format", "format_", default=None, help="Name of the format (default: recognised by content).")
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Max. processes that read files; few or small files start fewer.",
)
@click.option("--merge", is_flag=True, help="Join the parts of one trace over all files given.")
@click.option("--redact", is_flag=True, help="Mask secrets before anything is stored.")
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
    """Map the attribute names of a tracer that is not known."""


@map_group.command("suggest", epilog="Example: tracejury map suggest traces/ > acme.toml")
@click.argument("path")
def map_suggest(path: str) -> None:
    """Print a map (TOML) for the text in PATH that is not understood.

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


@main.group()
def gaia2() -> None:
    """Run GAIA2, the scenarios of Meta's ARE, with any model.

    Each execution of a scenario becomes a trace of the workspace.
    """


@gaia2.command("setup", epilog="Example: tracejury gaia2 setup")
@click.option(
    "--python", type=click.Path(path_type=Path), help="Path of a Python with ARE installed; used from now on."
)
@click.option("--check", is_flag=True, help="Only check the environment; exit code 1 if there is none.")
@JSON
def gaia2_setup(python: Path | None, check: bool, as_json: bool) -> None:
    """Make the environment that runs ARE (750 MB, half a minute).

    It is kept in the cache folder, apart from this one.
    """
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.setup(python, check=check, as_json=as_json))


@gaia2.command("fetch", epilog="Example: tracejury gaia2 fetch --capability search --limit 5")
@click.option("--capability", "capabilities", multiple=True, metavar="NAME", help="Only this capability (repeatable).")
@click.option("--split", default="validation", show_default=True)
@click.option("--limit", type=click.IntRange(1), default=None, help="Maximum number of scenarios.")
@HOME
def gaia2_fetch(capabilities: tuple[str, ...], split: str, limit: int | None, home: Path | None) -> None:
    """Load the scenarios of GAIA2 from the hub (needs HF_TOKEN).

    The revision is pinned.
    """
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.fetch(home, capabilities=capabilities, split=split, limit=limit))


def _number_or_none(_context: object, parameter: click.Parameter, value: str) -> float | int | None:
    """A number, or nothing for `none`: then the model is not told."""
    if value.lower() == "none":
        return None
    try:
        return int(value) if parameter.name == "max_tokens" else float(value)
    except ValueError as error:
        raise click.BadParameter(f"a number or none, not {value!r}") from error


@gaia2.command("run", epilog="Example: tracejury gaia2 run samples --model gpt-4.1 --no-judge --dry-run")
@click.argument("scenarios", nargs=-1, required=True)
@click.option("--model", default=None, help="The agent's model: a litellm name, or script:FILE (a list of replies).")
@click.option("--judge-model", default=None, help="The model of the benchmark's judge: likewise.")
@click.option("--no-judge", is_flag=True, help="Ask no judge: executions get no score.")
@click.option("--capability", multiple=True, metavar="NAME", help="Only scenarios of this capability (repeatable).")
@click.option("--limit", type=click.IntRange(1), default=None, help="Maximum number of scenarios.")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Executions of each scenario.")
@click.option("--temperature", default="0.5", show_default=True, callback=_number_or_none, help="A number, or none.")
@click.option("--max-tokens", default="16384", show_default=True, callback=_number_or_none, help="A number, or none.")
@click.option("--max-iterations", type=click.IntRange(1), default=80, show_default=True, help="Steps of the agent.")
@click.option("--time-limit", type=float, default=1860.0, show_default=True, help="Seconds that an execution may take.")
@click.option(
    "--duration", type=click.IntRange(1), default=1800, show_default=True, help="Simulated seconds (Time: 420)."
)
@click.option(
    "--time",
    type=click.Choice(["measured", "fixed"]),
    default="measured",
    show_default=True,
    help="How the simulated clock goes on while the model thinks.",
)
@click.option("--seed", type=int, default=None, help="Sent to the model, another for each execution.")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Executions at a time.")
@click.option(
    "--budget", type=click.FloatRange(0), default=None, metavar="USD", help="Cost after which no call starts."
)
@click.option("--price", default=None, metavar="IN,OUT", help="US$ per million tokens of the agent's model.")
@click.option("--judge-price", default=None, metavar="IN,OUT", help="US$ per million tokens of the judge's model.")
@click.option("--api-base", default=None, help="Address of the server of the agent's model.")
@click.option("--judge-api-base", default=None, help="Address of the server of the judge's model.")
@click.option("--again", default="", metavar="STATUS,...", help="Repeat executions that ended so, e.g. timeout.")
@click.option("--oracle", is_flag=True, help="Play the scenario's own events, without an agent.")
@click.option("--noise", is_flag=True, help="Add failing tools and environment events (GAIA2's noise phase).")
@click.option("--agent-to-agent", is_flag=True, help="Apps are agents too (GAIA2's agent2agent phase).")
@click.option(
    "--then-judge", type=click.Choice(["checks"]), default=None, help="Judge each trace as its execution ends."
)
@click.option("--are-python", type=click.Path(path_type=Path), default=None, help="Path of the Python with ARE.")
@click.option("--dry-run", is_flag=True, help="Only list the executions that would be made.")
@HOME
@JSON
def gaia2_run(scenarios: tuple[str, ...], home: Path | None, as_json: bool, **options: Any) -> None:
    """Run scenarios; an execution that is there is not made again.

    SCENARIOS are JSON or Parquet files, folders of them, or `samples` for the shipped stand-ins.
    """
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.run(scenarios, home, as_json=as_json, **options))


@gaia2.command("proof", epilog="Example: tracejury gaia2 proof")
@click.option("--are-python", type=click.Path(path_type=Path), default=None, help="Path of the Python with ARE.")
@JSON
def gaia2_proof(are_python: Path | None, as_json: bool) -> None:
    """Show, offline, that stock ARE's judge fails a correct execution.

    The judge that is used here does not.
    """
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.proof(are_python, as_json=as_json))


@gaia2.command("executions", epilog="Example: tracejury gaia2 executions")
@HOME
@JSON
def gaia2_executions(home: Path | None, as_json: bool) -> None:
    """List the scenario executions that were started here, with their status."""
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.show_executions(home, as_json=as_json))


@gaia2.command("stop", epilog="Example: tracejury gaia2 stop --all")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every execution under way.")
@HOME
def gaia2_stop(names: tuple[str, ...], everything: bool, home: Path | None) -> None:
    """End executions under way; each keeps its partial trace."""
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.stop(names, home, everything=everything))


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
@click.option("--with-labels", is_flag=True, help="Also delete what people stored about them.")
@JSON
def traces_remove(trace_ids: tuple[str, ...], home: Path | None, with_labels: bool, as_json: bool) -> None:
    """Take traces out of the workspace, after a backup.

    Labels stay and count again with the trace.
    """
    from tracejury.app.commands import removing

    sys.exit(removing.remove(trace_ids, home, with_labels=with_labels, as_json=as_json))


@traces_group.command("replace", epilog="Example: tracejury traces replace traces/")
@click.argument("paths", nargs=-1, required=True)
@HOME
@click.option("--format", "format_", default=None, help="Name of the format (default: recognised by content).")
@click.option("--redact", is_flag=True, help="Mask secrets before anything is stored.")
@JSON
def traces_replace(paths: tuple[str, ...], home: Path | None, format_: str | None, redact: bool, as_json: bool) -> None:
    """Ingest PATHS in the place of traces of the same id.

    A backup is made before. Labels stay.
    """
    from tracejury.app.commands import removing

    sys.exit(removing.replace(paths, home, as_json=as_json, format=format_, redact=redact))


@main.group()
def corpus() -> None:
    """Traces by the million: Parquet outside the workspace."""


@corpus.command("build", epilog="Example: tracejury corpus build traces/ --out agents")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--out", "url", metavar="URL", required=True, help="Address of the corpus: a folder, s3://, gs:// ...")
@click.option("--format", "format_", default=None, help="Name of the format (default: recognised by content).")
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
    """Read SOURCES into the corpus; files that it knows are not read again.

    SOURCES are files, folders, patterns and addresses. Start it again when it was cut off: it goes on. Late files
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

    What these checks judged before is not judged again.
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
              help="The maps that the corpus was built with.")  # fmt: skip
@JSON
def corpus_sample(url: str, home: Path | None, as_json: bool, **options: Any) -> None:
    """Draw traces for people into a workspace, with a queue of them.

    The chance with which each was drawn is stored: `tracejury report` then estimates the corpus' error rates.
    """
    from tracejury.app.commands import corpora

    sys.exit(corpora.sample(url, home, as_json=as_json, **options))


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
    """Put the backup FILE in the place of the database. Stop the app first."""
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


@main.command(epilog="Example: tracejury spans 0a1b2c3d --csv spans.csv")
@click.argument("trace")
@HOME
@click.option("--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a CSV file.")
@click.option("--parquet", "parquet_file", type=click.Path(dir_okay=False, path_type=Path), help="Write Parquet.")
@JSON
def spans(trace: str, home: Path | None, csv_file: Path | None, parquet_file: Path | None, as_json: bool) -> None:
    """Print or write the span table of a trace.

    TRACE is its id or the beginning of it.
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
    help="Times that each judge is asked about each trace.",
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
    help="Maximum cost in US dollars: the run stops before it (exit code 3) and can be resumed.",
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
@click.option("--api-base", default=None, help="URL of an OpenAI-compatible server.")
@click.option("--order", type=click.Choice(["cache", "paper"]), default="cache", show_default=True)
@click.option("--temperature", type=float, default=None)
@click.option("--max-tokens", type=click.IntRange(1), default=None)
@click.option("--reasoning-effort", default=None)
@click.option("--dry-run", is_flag=True, help="Show the estimate and the exact prompt; call and write nothing.")
@click.option("--resume", type=int, default=None, metavar="RUN", help="Continue this run as it was planned.")
@click.option("--if-queued", is_flag=True, hidden=True, help="Unless somebody paused or cancelled it meanwhile.")
@click.option("--failed-only", is_flag=True, help="Judge the failed cells of the last such run again.")
@click.option("--batch", is_flag=True, help="Use the provider's batch interface.")
@click.option("--even-if-empty", is_flag=True, help="Also judge traces that hold only names and times.")
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
    """Write rubrics of your own."""


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
def labels() -> None:
    """Import and export annotators' labels."""


@labels.command("import", epilog="Example: tracejury labels import labels/ --as trail")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@HOME
@click.option(
    "--as",
    "form",
    type=click.Choice(["auto", "tracejury", "trail", "csv", *SCORE_FORMS]),
    default="auto",
    show_default=True,
    help="auto recognises every form except trail by its keys; csv is any CSV or JSON lines with a trace_id.",
)
@click.option(
    "--columns",
    multiple=True,
    metavar="FIELD=COLUMN,...",
    help="Columns whose names tracejury does not recognise; OBJECT.KEY is a column within an object.",
)
@click.option(
    "--scale",
    "scales",
    multiple=True,
    metavar="[NAME:]FROM=TO",
    help="How scores become 0 to 3: 1..5=0..3 (to the nearest, halves up) or good=3,bad=0; of one NAME or of all.",
)
@click.option("--annotator", default=None, help="Annotator of these labels, in place of the name in the files.")
@click.option("--dimension", default=None, help="Dimension of the scores for which the files name none.")
@click.option(
    "--reviewed",
    "is_reviewed",
    is_flag=True,
    help="Count each annotator's traces in these files as submitted: spans without a label then count as no error.",
)
@JSON
def labels_import(files: tuple[Path, ...], home: Path | None, form: str, as_json: bool, **options: Any) -> None:
    """Import label files: our own, TRAIL's, and other tools' scores."""
    from tracejury.app.commands import opinions

    sys.exit(opinions.import_labels(files, home, form=form, as_json=as_json, **options))


@labels.command("export", epilog="Example: tracejury labels export --out labels.json --annotator ada")
@HOME
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File, or folder for trail.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["comments", "csv", "label-studio", "langfuse", "trail", "tracejury"]),
    default="tracejury",
    show_default=True,
)
@click.option("--annotator", "annotators", multiple=True, help="Only labels of this annotator (repeatable).")
def labels_export(home: Path | None, out: Path, form: str, annotators: tuple[str, ...]) -> None:
    """Export labels."""
    from tracejury.app.commands import opinions

    sys.exit(opinions.export_labels(home, out, form=form, annotators=annotators))


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


@main.group(invoke_without_command=True, epilog="Example: tracejury match --judge-model gpt-4.1")
@HOME
@click.option("--judge-model", default=None, help="Only the findings of this judge model.")
@click.option(
    "--model", default=None, help="Also ask a model (any litellm name); without it only the rule proposes matches."
)
@click.option("--api-base", default=None, help="URL of an OpenAI-compatible server.")
@click.option("--concurrency", type=click.IntRange(1, 512), default=8, show_default=True, help="Concurrent calls.")
@click.option("--budget", type=float, default=None, help="Cost in US dollars after which no call starts.")
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
    help="Two sides: a judge model, or version=HASH, person=NAME, judge_model=NAME,repeat=N.",
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
    help="Count only labels that were stored before the reveal (default), or those after it too.",
)
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="NAME",
    help="Tables of slices by this alone (repeatable; default all): agent, source, length, tool, model, outcome, kind, "
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
    help="What --out and --inputs wrote, or its folder inputs; replaces the workspace.",
)
@JSON
def report(home: Path | None, as_json: bool, **options: Any) -> None:
    """Write the tables of agreement."""
    from tracejury.app.commands import reports

    sys.exit(reports.report(home, as_json=as_json, **options))


_POINTS = click.FloatRange(0, 100, min_open=True)
_SHARE = click.FloatRange(0, 1)


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
@click.option("--repeats", type=click.IntRange(1), multiple=True, help="Repeats of each judge (repeatable; 1).")
@click.option("--people", type=click.IntRange(1), multiple=True, help="People who label each trace (repeatable; 1).")
@click.option("--traces", type=click.IntRange(1), multiple=True, help="Also show what this many traces detect.")
@click.option("--rate", type=_SHARE, default=None, help="Assume this rate of caught errors, 0 to 1.")
@click.option("--discordant", type=_SHARE, default=None, help="Assume this share of errors caught by one judge alone.")
@click.option(
    "--errors-a-trace", type=click.FloatRange(0, min_open=True), default=None, help="Assume this many errors per trace."
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

    Nothing is made or changed. The exit code is 1 where something stops work.
    """
    from tracejury.app.commands import doctor as look

    sys.exit(look.doctor(home, as_json=as_json))


if __name__ == "__main__":
    main()
