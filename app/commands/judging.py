"""The command `judge`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tracejury.app.commands.output import (
    STOPPED_BY_LIMIT,
    counted,
    opened,
    print_json,
    progress_bar,
    progress_line,
    say,
)
from tracejury.app.commands.traces import full_id
from tracejury.ingest.gaps import NOTHING_TO_READ
from tracejury.ingest.store import load, marked_traces, read_transaction, trace_ids
from tracejury.judging.judges.jury import Rule
from tracejury.judging.judges.model import Prices, read_prices
from tracejury.judging.judges.rubric import (
    RubricError,
    agent_descriptions,
    agent_for,
    broken_files,
    choose_rubrics,
    rubrics,
)
from tracejury.judging.juries.jury_outcomes import JuryOutcome, jury_outcomes
from tracejury.judging.records import DIMENSIONS, FAILED_STATES, Dimension
from tracejury.judging.runs.model_setup import ModelSetup, check_spec
from tracejury.judging.runs.run_control import (
    RunProgress,
    ensure_free,
    last_run_of,
    pause,
    plan_run,
    renew_limits,
    run_spec,
    want_failed_again,
    watch,
)
from tracejury.judging.runs.run_owner import RunHeldError, RunTakenError
from tracejury.judging.runs.run_spec import RunSpec, model_names
from tracejury.judging.runs.run_store import Unanswered
from tracejury.judging.runs.runner import Progress, Summary
from tracejury.judging.store import Workspace

CHECKS = "checks"
PARAMETERS = ("temperature", "max_tokens", "reasoning_effort")


def judge(
    traces: Sequence[str],
    home: Path | None,
    *,
    model: str,
    dimensions: str,
    as_json: bool,
    dry_run: bool = False,
    resume: int | None = None,
    if_queued: bool = False,
    **options: Any,
) -> int:
    """Exit code 0; 1 when a cell failed or the run stopped before its end; 3 when its budget stopped it."""
    workspace, may_be_empty = opened(home), options.pop("even_if_empty", False)
    try:
        if resume is not None:
            return _resume(workspace, resume, only_if_queued=if_queued, as_json=as_json)
        with read_transaction(workspace.engine) as connection:
            chosen = [full_id(connection, trace_id) for trace_id in traces] or None
        refused: list[str] = [] if may_be_empty else _nothing_to_read(workspace, chosen)
        if refused:
            chosen = _without(workspace, chosen, refused)
        if model == CHECKS:
            dimensions_wanted = offline_dimensions(dimensions)
            return _offline(workspace, chosen, dimensions_wanted, is_dry=dry_run, as_json=as_json) or int(bool(refused))
        name_broken(workspace.home)
        spec = _spec(workspace, model, dimensions, options)
        return _by_model(workspace, spec, chosen, options, is_dry=dry_run, as_json=as_json) or int(bool(refused))
    except (RunHeldError, RunTakenError) as error:
        raise click.ClickException(str(error)) from error
    except (ValueError, RubricError) as error:
        raise click.UsageError(str(error)) from error


def _nothing_to_read(workspace: Workspace, chosen: Sequence[str] | None) -> list[str]:
    """Traces that hold names and times only: no judge could say anything about them. Each is named."""
    with read_transaction(workspace.engine) as connection:
        marked = marked_traces(connection, NOTHING_TO_READ)
    refused = [trace_id for trace_id in marked if chosen is None or trace_id in chosen]
    for trace_id in refused:
        say(
            f"refused {trace_id}: it holds only names and times, nothing to read. Try: ingest --map, or --even-if-empty"
        )
    return refused


def _without(workspace: Workspace, chosen: Sequence[str] | None, refused: Sequence[str]) -> list[str]:
    """The traces to judge without those refused. Ends the command when none is left."""
    with read_transaction(workspace.engine) as connection:
        left = [trace_id for trace_id in chosen or trace_ids(connection, with_steps=True) if trace_id not in refused]
    if not left:
        raise click.ClickException("no trace is left to judge: none holds anything to read. Try: --even-if-empty")
    return left


def name_broken(home: Path) -> None:
    """Say which rubrics and agent descriptions of the workspace are left out, and why."""
    for error in broken_files(home):
        say(f"left out: {error}")


def offline_dimensions(names_given: str) -> tuple[Dimension, ...]:
    """The dimensions named in `LC,EE` or `all`. Ends the command on a name that is none."""
    if names_given == "all":
        return DIMENSIONS
    names = [name.strip().upper() for name in names_given.split(",") if name.strip()]
    unknown = [name for name in names if name not in DIMENSIONS]
    if unknown or not names:
        named = ", ".join(unknown) or repr(names_given)
        raise click.UsageError(f"no dimension {named}. Try: {', '.join(DIMENSIONS)} or all, which the checks judge")
    return tuple(dimension for dimension in DIMENSIONS if dimension in names)


def _offline(
    workspace: Workspace,
    traces: Sequence[str] | None,
    dimensions: Sequence[Dimension],
    *,
    is_dry: bool,
    as_json: bool,
) -> int:
    from tracejury.judging.runs.offline import judge_all

    show, close = progress_bar("judging", " traces")
    done = judge_all(workspace.engine, traces=traces, dimensions=dimensions, progress=show, is_dry=is_dry)
    close()
    if as_json:
        print_json(asdict(done))
    elif is_dry:
        click.echo(
            f"{counted(done.to_judge, 'cell')} would be judged on {counted(done.traces, 'trace')}, "
            f"{done.skipped:,} were judged before; nothing is sent, nothing is written, the cost is $0"
        )
    else:
        states = ", ".join(f"{count} {_words(state)}" for state, count in done.states.items())
        click.echo(
            f"{counted(done.cells, 'cell')} judged ({states or 'nothing new'}), "
            f"{counted(done.findings, 'finding')}, {done.skipped} judged before"
        )
    return 1 if done.states.get("error") else 0


def _words(state: str) -> str:
    return state.replace("_", " ")


def _spec(workspace: Workspace, model: str, dimensions: str, options: dict[str, Any]) -> RunSpec:
    chosen = choose_rubrics(dimensions, rubrics(workspace.home))
    models = model_names(model)
    parameters = {name: options[name] for name in PARAMETERS if options[name] is not None}
    return RunSpec(
        rubrics=tuple(rubric.key for rubric in chosen),
        models=models,
        repeats=options["repeats"],
        mode=options["mode"],
        jury_rule=options["jury_rule"],
        order=options["order"],
        agent=options["agent"] or "auto",
        parameters=parameters,
        api_base=options["api_base"],
        concurrency=options["concurrency"],
        rpm=options["rpm"],
        tpm=options["tpm"],
        budget_usd=options["budget"],
        batch=options["batch"],
        use_cache=options["use_cache"],
        ask_again=options["ask_again"],
        reasoning=options["reasoning"],
        prices=_prices(options["prices"], models),
    )


def _prices(options: Sequence[str], models: Sequence[str]) -> dict[str, Prices]:
    """`IN,OUT[,CACHED]` for every model, or `MODEL=IN,OUT[,CACHED]` for one."""
    prices: dict[str, Prices] = {}
    for text in options:
        name, separator, price = text.rpartition("=")
        prices.update({each: read_prices(price) for each in ([name] if separator else models)})
    return prices


def _by_model(
    workspace: Workspace,
    spec: RunSpec,
    chosen: Sequence[str] | None,
    options: dict[str, Any],
    *,
    is_dry: bool,
    as_json: bool,
) -> int:
    from tracejury.judging.wiring import model_setups

    with read_transaction(workspace.engine) as connection:
        traces = list(chosen) if chosen is not None else trace_ids(connection, with_steps=True)
    if not traces:  # said before litellm is imported, which takes seconds
        raise ValueError("this workspace holds no traces to judge. Try: tracejury ingest PATH")
    known, agents = rubrics(workspace.home), agent_descriptions(workspace.home)
    setups = model_setups(spec)
    check_spec(spec, rubrics=known, models=setups, agents=agents)
    if is_dry:
        return _dry_run(workspace, spec, traces, setups, as_json=as_json)
    key = _resumed(workspace, spec, traces, failed_only=options["failed_only"])
    if key is None:
        key = plan_run(workspace.engine, spec, traces, rubrics=known, agents=agents)
    else:
        ensure_free(workspace.engine, key)
        renew_limits(workspace.engine, key, spec)
        if not as_json:
            say(f"resuming run {key}; its judged cells stay")
    return _work(workspace, key, spec, setups, resumes=True, as_json=as_json)


def _resume(workspace: Workspace, key: int, *, only_if_queued: bool, as_json: bool) -> int:
    """Work on a run as it was planned; one that cannot be worked on is paused with its reason."""
    from tracejury.judging.wiring import model_setups

    try:
        spec = run_spec(workspace.engine, key)
    except KeyError as error:
        raise ValueError(f"there is no run {key}. Try: its number on the page Runs") from error
    ensure_free(workspace.engine, key)
    name_broken(workspace.home)
    try:
        setups = model_setups(spec)
        known, agents = rubrics(workspace.home), agent_descriptions(workspace.home)
        check_spec(spec, rubrics=known, models=setups, agents=agents)
    except ValueError as error:
        pause(workspace.engine, key, str(error))
        raise
    return _work(workspace, key, spec, setups, resumes=not only_if_queued, as_json=as_json)


def _work(
    workspace: Workspace, key: int, spec: RunSpec, setups: Mapping[str, ModelSetup], *, resumes: bool, as_json: bool
) -> int:
    from tracejury.judging.wiring import work_on

    line = progress_line("judging", " cells")

    def show(progress: Progress) -> None:
        line.total = progress.total
        line.update(progress.finished - line.n)
        failed = sum(progress.states.get(state, 0) for state in FAILED_STATES)
        line.set_postfix(usd=f"{progress.spent_usd:.4f}", failed=failed, refresh=False)

    summary = work_on(workspace.engine, key, home=workspace.home, models=setups, progress=show, resumes=resumes)
    line.close()
    jury = _jury(workspace, key, spec.jury_rule) if spec.mode == "jury" else None
    return _report(workspace, key, summary, jury, as_json=as_json)


def _jury(workspace: Workspace, key: int, rule: Rule) -> list[JuryOutcome]:
    with read_transaction(workspace.engine) as connection:
        return jury_outcomes(connection, key, rule)


def _resumed(workspace: Workspace, spec: RunSpec, traces: Sequence[str], *, failed_only: bool) -> int | None:
    """The run to go on with: the last of this kind that is not done (or has failures, when those are wanted)."""
    key = last_run_of(workspace.engine, spec)
    if failed_only:
        if key is None:
            raise ValueError("the workspace holds no such run, so no cell failed. Try: leave out --failed-only")
        ensure_free(workspace.engine, key)
        again = want_failed_again(workspace.engine, key)
        say(f"{counted(again, 'failed cell')} of run {key} will be judged again")
        return key
    if key is None or watch(workspace.engine, key)["status"] in {"done", "cancelled"}:
        return None
    return key if _covers(workspace, key, traces) else None


def _covers(workspace: Workspace, key: int, traces: Sequence[str]) -> bool:
    from sqlalchemy import select

    from tracejury.judging.store import tables

    with read_transaction(workspace.engine) as connection:
        there = set(connection.scalars(select(tables.cell.c.trace_id).where(tables.cell.c.run_key == key).distinct()))
    return there == set(traces)


def _dry_run(
    workspace: Workspace, spec: RunSpec, traces: Sequence[str], setups: dict[str, Any], *, as_json: bool
) -> int:
    from tracejury.judging.judges.prompt import build_prompt
    from tracejury.judging.judges.trace_text import render_trace
    from tracejury.judging.runs.cost_estimate import estimate, trace_sizes

    known, agents = rubrics(workspace.home), agent_descriptions(workspace.home)
    first = setups[spec.models[0]]
    with read_transaction(workspace.engine) as connection:
        sizes = trace_sizes(connection, traces, first.count)
        trace = load(connection, traces[0], with_logs=False)
    sizing = estimate(spec, sizes, known, setups)
    agent = agent_for(trace, agents) if spec.agent == "auto" else agents.get(spec.agent)
    form = first.capabilities.forms[0]
    prompt = build_prompt(
        render_trace(trace, reasoning=spec.reasoning).text,
        known[spec.rubrics[0]],
        form=form,
        order=spec.order,
        agent=agent,
    )
    if as_json:
        print_json(
            {
                "estimate": sizing.table(),
                "too_long": list(sizing.too_long),
                "traces": len(traces),
                "prompt": {"system": prompt.system, "user": prompt.prefix + prompt.suffix, "hash": prompt.hash},
            }
        )
        return 0
    say(f"the prompt of {spec.rubrics[0]} on trace {traces[0]}:")
    sys.stdout.buffer.write(f"{prompt.system}\n{prompt.prefix}{prompt.suffix}\n".encode())
    for text in sizing.lines():
        click.echo(text)
    return 0


def _perhaps_paid(unanswered: Unanswered) -> str:
    most = "at a price unknown" if unanswered.most_usd is None else f"for ${unanswered.most_usd:.4f} at most"
    return (
        f"{counted(unanswered.requests, 'request')} sent without a known answer (the process or the connection "
        f"ended, or the request timed out); the provider may charge for them, {most}, in addition to the cost above"
    )


def _cost(stands: RunProgress) -> str:
    """What the run has cost: nothing, a sum, the sum of what is known, or unknown."""
    if stands["replies"] == 0:
        return "no cost"
    if stands["cost_usd"] is None:
        return "cost unknown"
    rest = f" and {counted(stands['unpriced'], 'answer')} of unknown cost" if stands["unpriced"] else ""
    return f"${stands['cost_usd']:.4f}{rest}"


def _verdict_of_jury(outcomes: Sequence[JuryOutcome]) -> str:
    """How many scores the jury has, and each tie and each absence of a vote by name."""
    without = [outcome for outcome in outcomes if outcome.joint.score is None]
    lines = [f"jury: {counted(len(outcomes) - len(without), 'joint score')} of {len(outcomes)}"]
    for outcome in without:
        tied = " and ".join(map(str, outcome.joint.tied))
        why = f"tie of {tied}" if tied else "no score"
        votes = ", ".join(f"{model} {score}" for model, score in outcome.members.items())
        lines.append(f"  {why}: {outcome.dimension} on {outcome.trace_id} (repeat {outcome.repeat}): {votes}")
    return "\n".join(lines)


def _report(
    workspace: Workspace, key: int, summary: Summary, jury: Sequence[JuryOutcome] | None, *, as_json: bool
) -> int:
    stands = watch(workspace.engine, key)
    failed = sum(summary.states.get(state, 0) for state in FAILED_STATES)
    if as_json:
        print_json(
            {
                "run": key,
                "status": summary.status,
                "message": summary.message,
                "states": dict(summary.states),
                "judged": summary.judged,
                "cost_usd": stands["cost_usd"],
                "unpriced": stands["unpriced"],
                "unanswered": summary.unanswered.requests,
                "unanswered_usd": summary.unanswered.most_usd,
                "elapsed_s": summary.elapsed_s,
                "failures": [
                    {
                        "trace_id": cell.trace_id,
                        "dimension": cell.rubric,
                        "repeat": cell.repeat,
                        "state": state,
                        "reason": why,
                    }
                    for cell, state, why in summary.failures
                ],
                "run_state": stands,
                **({} if jury is None else {"jury": [outcome.row() for outcome in jury]}),
            }
        )
    else:
        for cell, state, why in summary.failures:
            say(f"{state}: {cell.rubric} on {cell.trace_id} (repeat {cell.repeat}): {why}")
        states = ", ".join(f"{count} {_words(state)}" for state, count in summary.states.items() if count)
        click.echo(f"run {key} {summary.status}: {states}; {summary.elapsed_s:.1f} s, {_cost(stands)}")
        if jury is not None:
            click.echo(_verdict_of_jury(jury))
        if summary.unanswered.requests:
            say(_perhaps_paid(summary.unanswered))
        if summary.message:
            say(summary.message)
    if summary.status == "out of budget":
        return STOPPED_BY_LIMIT
    return 0 if summary.status == "done" and not failed else 1
