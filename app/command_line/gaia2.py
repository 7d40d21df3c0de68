"""Commands that run the GAIA2 benchmark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tracejury.app.command_line.root import HOME, JSON, main

ARE_PYTHON = click.option(
    "--are-python", type=click.Path(path_type=Path), default=None, help="Path of a Python that has ARE."
)


@main.group()
def gaia2() -> None:
    """Run GAIA2, the scenarios of Meta's ARE, with any model.

    Each execution of a scenario becomes a trace in the workspace.
    """


@gaia2.command("setup", epilog="Example: tracejury gaia2 setup")
@click.option(
    "--python", type=click.Path(path_type=Path), help="Path of a Python that has ARE; it is used from now on."
)
@click.option("--check", is_flag=True, help="Only check the environment; exit code 1 if there is none.")
@JSON
def gaia2_setup(python: Path | None, check: bool, as_json: bool) -> None:
    """Create the environment that runs ARE (750 MB, half a minute).

    It is kept in the cache folder, separate from Tracejury's own.
    """
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.setup(python, check=check, as_json=as_json))


@gaia2.command("fetch", epilog="Example: tracejury gaia2 fetch --capability search --limit 5")
@click.option("--capability", "capabilities", multiple=True, metavar="NAME", help="Only this capability (repeatable).")
@click.option("--split", default="validation", show_default=True)
@click.option("--limit", type=click.IntRange(1), default=None, help="Maximum number of scenarios.")
@HOME
def gaia2_fetch(capabilities: tuple[str, ...], split: str, limit: int | None, home: Path | None) -> None:
    """Download the scenarios of GAIA2 from Hugging Face (needs HF_TOKEN).

    It always takes the same revision of the data set.
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
@click.option("--judge-model", default=None, help="The benchmark's judge model, given in the same way.")
@click.option("--no-judge", is_flag=True, help="Ask no judge: executions get no score.")
@click.option("--capability", multiple=True, metavar="NAME", help="Only scenarios of this capability (repeatable).")
@click.option("--limit", type=click.IntRange(1), default=None, help="Maximum number of scenarios.")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Executions of each scenario.")
@click.option("--temperature", default="0.5", show_default=True, callback=_number_or_none, help="A number, or none.")
@click.option("--max-tokens", default="16384", show_default=True, callback=_number_or_none, help="A number, or none.")
@click.option("--max-iterations", type=click.IntRange(1), default=80, show_default=True, help="Steps of the agent.")
@click.option("--time-limit", type=float, default=1860.0, show_default=True, help="Seconds that an execution may take.")
@click.option(
    "--duration",
    type=click.IntRange(1),
    default=1800,
    show_default=True,
    help="Simulated seconds; at most 420 for the capability Time.",
)
@click.option(
    "--time",
    type=click.Choice(["measured", "fixed"]),
    default="measured",
    show_default=True,
    help="How the simulated clock advances while the model thinks.",
)
@click.option("--seed", type=int, default=None, help="Seed from which each execution derives the one that it sends.")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Executions at the same time.")
@click.option(
    "--budget", type=click.FloatRange(0), default=None, metavar="USD", help="No call starts once this cost is reached."
)
@click.option("--price", default=None, metavar="IN,OUT", help="US$ per million tokens of the agent's model.")
@click.option("--judge-price", default=None, metavar="IN,OUT", help="US$ per million tokens of the judge's model.")
@click.option("--api-base", default=None, help="URL of the server of the agent's model.")
@click.option("--judge-api-base", default=None, help="URL of the server of the judge's model.")
@click.option(
    "--again", default="", metavar="STATUS,...", help="Repeat executions that ended with this status, e.g. timeout."
)
@click.option("--oracle", is_flag=True, help="Play the scenario's own events, without an agent.")
@click.option("--noise", is_flag=True, help="Add failing tools and environment events (GAIA2's noise phase).")
@click.option("--agent-to-agent", is_flag=True, help="Apps are agents too (GAIA2's agent2agent phase).")
@click.option(
    "--then-judge", type=click.Choice(["checks"]), default=None, help="Judge each trace as its execution ends."
)
@ARE_PYTHON
@click.option("--dry-run", is_flag=True, help="Only list the executions that would be made.")
@HOME
@JSON
def gaia2_run(scenarios: tuple[str, ...], home: Path | None, as_json: bool, **options: Any) -> None:
    """Run scenarios, except those already executed with these settings.

    SCENARIOS are JSON or Parquet files, folders of them, or `samples` for the shipped stand-ins.
    """
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.run(scenarios, home, as_json=as_json, **options))


@gaia2.command("proof", epilog="Example: tracejury gaia2 proof")
@ARE_PYTHON
@JSON
def gaia2_proof(are_python: Path | None, as_json: bool) -> None:
    """Show, offline, that stock ARE's judge fails a correct execution.

    The judge that Tracejury uses passes it.
    """
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.proof(are_python, as_json=as_json))


@gaia2.command("executions", epilog="Example: tracejury gaia2 executions")
@HOME
@JSON
def gaia2_executions(home: Path | None, as_json: bool) -> None:
    """List the executions that were started here, with their status."""
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.show_executions(home, as_json=as_json))


@gaia2.command("stop", epilog="Example: tracejury gaia2 stop --all")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Stop all executions under way.")
@HOME
def gaia2_stop(names: tuple[str, ...], everything: bool, home: Path | None) -> None:
    """Stop executions under way; each keeps its partial trace."""
    from tracejury.app.commands import benchmark

    sys.exit(benchmark.stop(names, home, everything=everything))
