"""The commands `gaia2`: the environment of ARE, scenarios from the hub, executions, and where they stand."""

from __future__ import annotations

import json
import signal
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tracejury.app.commands.output import counted, opened, print_json, progress_line, say
from tracejury.ingest.formats.gaia2.values import name_part
from tracejury.judging.gaia2.environment import (
    SIZE,
    STEP,
    AreEnvironment,
    Gaia2Error,
    find,
    make,
    own_folder,
    remember,
    size_of,
)
from tracejury.judging.gaia2.scenarios import CAPABILITIES, check_capabilities, check_split, read_scenarios
from tracejury.judging.gaia2.settings import ExecutionSettings

DATA_SET = "meta-agents-research-environments/gaia2"
REVISION = "78ea3bdbdeec2bdcd6afa5420915d8a22f23ed99"  # the one that MASEval 0.5.1 pins


def setup(python: Path | None, *, check: bool, as_json: bool) -> int:
    """Make (or name, or check) the environment that runs ARE. Exit code 1 where a check finds none."""
    try:
        environment = find() if check else remember(python) if python is not None else _made()
    except Gaia2Error as error:
        if not check:
            raise click.ClickException(str(error)) from error
        say(str(error))
        return 1
    status = _environment_facts(environment)
    if as_json:
        print_json(status)
    else:
        maseval = f", MASEval {status['maseval']}" if status["maseval"] else ""
        size = f", {status['bytes'] / 1e6:,.0f} MB" if status["bytes"] else ""
        click.echo(f"ARE {status['are']}{maseval} on Python {status['python_version']}{size}: {status['python']}")
    return 0


def _made() -> AreEnvironment:
    if not (own_folder() / "ready.json").exists():
        say(f"Creating the environment of ARE in {own_folder()} ({SIZE})")
    with progress_line("fetching", " packages") as bar:

        def show(line: str) -> None:
            if line.startswith(STEP):
                say(line)
            elif line.lstrip().startswith(("Collecting ", "Downloaded ")):  # pip's word, uv's word
                bar.update(1)

        return make(show)


def _environment_facts(environment: AreEnvironment) -> dict[str, Any]:
    folder = environment.python.parent.parent
    return {
        "python": str(environment.python),
        "python_version": environment.python_version,
        "are": environment.are_version,
        "maseval": environment.maseval_version,
        "bytes": size_of(folder) if folder == own_folder() else None,
    }


def fetch(home: Path | None, *, capabilities: Sequence[str], split: str, limit: int | None) -> int:
    """Load scenarios from the hub into the workspace's folder, a JSON file each."""
    from tracejury.app.commands.fetching import download

    try:
        names = check_capabilities(capabilities) or CAPABILITIES
        check_split(split)
        folder = opened(home, create=True).home / "gaia2" / "scenarios"
        left = limit
        for name in names:
            with tempfile.TemporaryDirectory(prefix="tracejury-") as place:
                files = download(DATA_SET, Path(place), revision=REVISION, words=(name, split))
                scenarios = read_scenarios(files)[:left]
            for one in scenarios:
                target = folder / name / f"{name_part(one.scenario_id) or 'scenario'}.json"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(one.text, encoding="utf-8")
            say(f"{counted(len(scenarios), 'scenario')} of {name} in {folder / name}")
            left = None if left is None else left - len(scenarios)
            if left == 0:
                break
    except Gaia2Error as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"next: tracejury gaia2 run {folder} --model MODEL --judge-model MODEL")
    return 0


def run(scenarios: Sequence[str], home: Path | None, *, as_json: bool, **options: Any) -> int:
    """Run scenarios. Exit code 0, 1 where an execution did not end by itself, 2 where the call is wrong."""
    try:
        return _run(scenarios, home, as_json=as_json, **options)
    except (Gaia2Error, ValueError) as error:
        raise click.UsageError(str(error)) from error


def _run(scenarios: Sequence[str], home: Path | None, *, as_json: bool, **options: Any) -> int:
    from tracejury.judging.gaia2.answers import Spending
    from tracejury.judging.gaia2.benchmark import Benchmark, Done, plan
    from tracejury.judging.store.workspace import home_folder

    settings = _settings(options)
    chosen = read_scenarios(scenarios, capabilities=options["capability"], limit=options["limit"])
    again = tuple(name.strip() for name in options["again"].split(",") if name.strip())
    jobs = plan(home_folder(home), chosen, settings, repeats=options["repeats"], again=again)
    total = len(chosen) * options["repeats"]
    say(
        f"{counted(len(chosen), 'scenario')}, {counted(total, 'execution')}, {len(jobs)} to make; "
        f"settings {settings.hash}; "
        f"at most {settings.time_limit_s * len(jobs) / options['workers'] / 3600:,.1f} hours"
    )
    if options["dry_run"]:
        return _dry_run(jobs, as_json=as_json)
    if not jobs:
        click.echo(json.dumps({"executions": [], "left": 0}) if as_json else "nothing to do: all executions exist")
        return 0
    workspace, models = opened(home, create=True), _models(options, settings)
    shown: list[Done] = []

    def show(done: Done) -> None:
        shown.append(done)
        message = f": {done.message}" if done.message else ""
        say(f"{len(shown)}/{len(jobs)} {done.execution.status} {done.job.name}, {done.seconds:,.0f} s{message}")

    benchmark = Benchmark(
        home=workspace.home,
        engine=workspace.engine,
        environment=find(options["are_python"]),
        models=models,
        spending=Spending(limit_usd=options["budget"]),
        on_done=show,
        then=_checks(workspace.engine) if options["then_judge"] == "checks" else None,
    )
    done = _with_signals(benchmark, jobs, options["workers"])
    _report(done, settings, left=len(jobs) - len(done), as_json=as_json)
    ended_well = {"success", "failed", "max_iterations", "no_judge", "oracle", "agent_raised"}
    return 0 if len(done) == len(jobs) and all(one.execution.status in ended_well for one in done) else 1


def _settings(options: dict[str, Any]) -> ExecutionSettings:
    from tracejury.judging.gaia2.answers import script_digest

    oracle = options["oracle"]
    model, judge = options["model"], options["judge_model"]
    if not oracle and not model:
        raise ValueError("an execution needs a model. Try: --model NAME, or --oracle for the scenario's own events")
    if not oracle and bool(judge) == options["no_judge"]:
        raise ValueError(
            "an execution needs a judge model, or an explicit none. Try: --judge-model NAME, or --no-judge"
        )
    return ExecutionSettings(
        model="oracle" if oracle else model,
        judge_model=None if oracle or options["no_judge"] else judge,
        api_base=options["api_base"],
        judge_api_base=options["judge_api_base"],
        temperature=options["temperature"],
        max_tokens=options["max_tokens"],
        max_iterations=options["max_iterations"],
        time_limit_s=options["time_limit"],
        duration_s=options["duration"],
        seed=options["seed"],
        time=options["time"],
        oracle=oracle,
        noise=options["noise"],
        agent_to_agent=options["agent_to_agent"],
        script="" if oracle else script_digest(model, judge),
    )


def _models(options: dict[str, Any], settings: ExecutionSettings) -> Any:
    from tracejury.judging.gaia2.answers import is_script, make_chat
    from tracejury.judging.gaia2.benchmark import Models
    from tracejury.judging.judges.model import known_prices, read_prices

    def prices(name: str | None, text: str | None) -> Any:
        if text:
            return read_prices(text)
        return None if name is None or is_script(name) or settings.oracle else known_prices(name)

    agent_prices = prices(settings.model, options["price"])
    judge_prices = prices(settings.judge_model, options["judge_price"])
    if options["budget"] is not None:
        pairs = ((settings.model, agent_prices, "--price"), (settings.judge_model, judge_prices, "--judge-price"))
        unpriced = [(name, flag) for name, price, flag in pairs if name is not None and price is None]
        if unpriced and not settings.oracle:
            name, flag = unpriced[0]
            raise ValueError(f"a budget needs prices, and none are known for {name}. Try: {flag} INPUT,OUTPUT")
    timeout = settings.time_limit_s
    agent = "script:" if settings.oracle else settings.model
    judge = settings.judge_model
    return Models(
        agent=_no_chat if settings.oracle else make_chat(agent, api_base=settings.api_base, timeout_s=timeout),
        judge=None if judge is None else make_chat(judge, api_base=settings.judge_api_base, timeout_s=timeout),
        prices=agent_prices,
        judge_prices=judge_prices,
    )


def _no_chat() -> Any:
    """The model of an oracle execution, which asks none."""

    def refuse(messages: Any, parameters: Any) -> Any:
        raise RuntimeError("an oracle execution asks no model")

    return refuse


def _checks(engine: Any) -> Any:
    from tracejury.judging.runs.offline import judge_all

    return lambda trace_id: judge_all(engine, traces=[trace_id])


def _with_signals(benchmark: Any, jobs: Sequence[Any], workers: int) -> Any:
    """Make these executions; Ctrl-C and SIGTERM end those under way, each with its partial trace."""
    if threading.current_thread() is not threading.main_thread():
        return benchmark.run(jobs, workers=workers)
    known = {name: signal.signal(name, lambda *_: benchmark.stop()) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        return benchmark.run(jobs, workers=workers)
    finally:
        for name, handler in known.items():
            signal.signal(name, handler)


def _dry_run(jobs: Sequence[Any], *, as_json: bool) -> int:
    rows = [{"execution": one.name, "capability": one.scenario.capability, "repeat": one.repeat} for one in jobs]
    if as_json:
        print_json({"executions": rows, "left": len(rows)})
    else:
        for row in rows:
            click.echo(f"{row['capability']}  {row['execution']}")
    return 0


def _report(done: Sequence[Any], settings: ExecutionSettings, *, left: int, as_json: bool) -> None:
    from tracejury.ingest.gsr import gsr

    estimates, judged = gsr(one.execution for one in done), gsr(one.execution.judged for one in done)
    if as_json:
        rows = [
            {
                "execution": one.job.name,
                "scenario": one.job.scenario.scenario_id,
                "capability": one.execution.capability,
                "repeat": one.job.repeat,
                "status": one.execution.status,
                "fault": one.execution.fault,
                "score": one.execution.score,
                "tokens": one.tokens,
                "cost_usd": one.cost_usd,
                "seconds": one.seconds,
                "message": one.message,
            }
            for one in done
        ]
        rates = {"gsr": estimates.micro.rate, "judged_rate": judged.micro.rate}
        print_json({"settings": settings.hash, "executions": rows, "left": left, **rates})
        return
    for name, (as_counted, of_judged) in _rates(estimates, judged).items():
        click.echo(f"{name}: {_share(as_counted)} as ARE counts it, {_share(of_judged)} of judged executions")
    if left:
        click.echo(f"{counted(left, 'execution')} not made")


def _rates(estimates: Any, judged: Any) -> dict[str, tuple[Any, Any]]:
    return {
        **{name: (rate, judged.by_capability[name]) for name, rate in estimates.by_capability.items()},
        "all": (estimates.micro, judged.micro),
    }


def _share(rate: Any) -> str:
    return "none" if rate.rate is None else f"{rate.succeeded}/{rate.scored} ({rate.rate:.1%})"


def proof(are_python: Path | None, *, as_json: bool) -> int:
    """Judge one correct execution by ARE's engine and by ours. Exit code 1 where they do not differ as described."""
    from tracejury.judging.gaia2.proof import JUDGE_REPLY, prove

    try:
        proofs = prove(find(are_python))
    except Gaia2Error as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        print_json([{"engine": one.engine, "success": one.success, "rationale": one.rationale} for one in proofs])
    else:
        click.echo(f"The agent does what the oracle does; the judge's model always answers {JUDGE_REPLY}.")
        for one in proofs:
            last = (one.rationale or "").strip().rsplit("reason: ", 1)[-1] if not one.success else ""
            click.echo(f"{one.engine:6} judge engine: {'success' if one.success else 'failed'}  {last}")
    return 0 if [one.success for one in proofs] == [False, True] else 1


def show_executions(home: Path | None, *, as_json: bool) -> int:
    """Where every execution stands that was started here."""
    from tracejury.judging.gaia2.folders import execution_states

    states = execution_states(opened(home).home)
    if as_json:
        print_json([{name: _plain(getattr(one, name)) for name in one.__slots__} for one in states])
        return 0
    if not states:
        click.echo("no execution was started here: tracejury gaia2 run SCENARIOS --model MODEL")
    for one in states:
        place = f"turn {one.turn}, step {one.step}, {one.last_tool or 'no tool'}" if one.step is not None else ""
        click.echo(f"{one.status:15} {one.trace_id}  {place}  {one.tokens or 0:,} tokens")
    return 0


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def stop(names: Sequence[str], home: Path | None, *, everything: bool) -> int:
    """Ask the process that works on these executions to end them. Exit code 1 where one is not running."""
    from tracejury.judging.gaia2.folders import execution_states, request_stop

    running = {one.trace_id: one for one in execution_states(opened(home).home) if one.status == "running"}
    missing = [name for name in names if name not in running]
    for name in missing:
        say(f"{name} is not running")
    for name in running if everything else [name for name in names if name in running]:
        request_stop(running[name].folder)
        click.echo(f"{name}: asked to stop")
    return 1 if missing else 0
