"""The command `plan`: how many traces, people and repeats a study needs, from a pilot or from assumed rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import pandas as pd

from tracejury.app.commands.output import counted, opened, print_json, say
from tracejury.ingest.store import read_transaction
from tracejury.judging.planning import design
from tracejury.judging.planning.design import Spread
from tracejury.judging.planning.pilot import NO_BOUNDS
from tracejury.judging.planning.study import Assumptions, Goal, UnitCosts, study_table
from tracejury.judging.reports.filter_options import checked
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.pilots import WorkspacePilot, load_pilot


def plan(
    home: Path | None,
    *,
    judge_models: Sequence[str],
    reference: str | None,
    people: Sequence[int],
    repeats: Sequence[int],
    traces: Sequence[int],
    as_json: bool,
    **options: Any,
) -> int:
    """Exit code 0; what cannot be planned at all ends the command with code 2."""
    try:
        measured = _pilot(home, judge_models, reference) if judge_models else None
        assumptions = _assumptions(measured, options)
        if assumptions.spread is None and assumptions.reliability is None:
            raise ValueError(why_nothing(measured))
        goals = _goals(options, is_of_people=assumptions.reliability is not None)
        table = study_table(assumptions, goals, repeats=repeats or (1,), people=people or (1,))
        reached = _reached(assumptions, traces, repeats or (1,))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print_json(
            {
                "pilot": None if measured is None else asdict(measured),
                "assumed": asdict(assumptions),
                "plan": _plain(table),
                "with_traces": reached,
            }
        )
        return 0
    for line in (*pilot_lines(measured), *assumption_lines(assumptions)):
        say(line)
    click.echo(table_text(table))
    for one in reached:
        click.echo(
            f"{counted(one['traces'], 'trace')}, {counted(one['repeats'], 'repeat')}: an interval "
            f"{100 * one['width']:.1f} points wide; differences from {100 * one['detectable']:.1f} points"
        )
    return 0


def why_nothing(measured: WorkspacePilot | None) -> str:
    """Why there is nothing to plan from, and what to try."""
    if measured is None:
        return "nothing to plan from. Try: --judge-model NAME, or --rate and --errors-per-trace"
    return f"{pilot_lines(measured)[0]}. Try: label more traces, or assume --rate or --discordant"


def pilot_lines(measured: WorkspacePilot | None) -> list[str]:
    """What the pilot says, one line per fact."""
    if measured is None:
        return []
    pilot, who = measured.pilot, " less ".join(measured.judge_models)
    on = f"{counted(pilot.traces, 'trace')} with {counted(pilot.errors, 'error')}"
    if pilot.spread is None:
        return [f"pilot: {who} on {on}: nothing to plan from ({pilot.reason})"]
    left = f"; {counted(measured.not_matched, 'error pair')} without matches left out" * bool(measured.not_matched)
    alone = "" if pilot.discordant is None else f", {100 * pilot.discordant:.1f} % caught by one alone"
    among = pilot.spread.repeat_icc
    unpriced = f"; the dollars leave out {counted(measured.unpriced, 'trace')} without a recorded cost"
    return [
        f"pilot: {who} against {measured.reference} on {on}: {100 * (pilot.mean or 0.0):.1f} "
        + ("%" if pilot.discordant is None else "points")
        + alone
        + left
        + unpriced * bool(measured.unpriced),
        f"design effect {pilot.effect:.2f}, ICC {pilot.spread.icc:.3f} ({NO_BOUNDS}), "
        f"correlation of repeats {'unknown' if among is None else f'{among:.2f}'}",
    ]


def assumption_lines(assumptions: Assumptions) -> list[str]:
    """The unit costs and people's reliability that the plan uses, unknown where they are."""
    minutes, dollars = assumptions.costs.minutes, assumptions.costs.dollars
    return [
        f"per trace: {'unknown' if minutes is None else f'{minutes:.1f}'} active minutes of a person, "
        f"{'unknown dollars' if dollars is None else f'${dollars:.4f}'} for one repeat of all judges; people's "
        f"reliability {'unknown' if assumptions.reliability is None else f'{assumptions.reliability:.2f}'}"
    ]


def table_text(table: pd.DataFrame) -> str:
    """The plan as aligned text, sizes in points, `unknown` for a cost that is not known."""
    head = ("goal", "points", "repeats", "people", "traces", "hours", "dollars", "reason")
    body = [
        (
            str(row["goal"]),
            f"{100 * row['size']:g}",
            str(row["repeats"]),
            str(row["people"]),
            "n/a" if pd.isna(row["traces"]) else f"{row['traces']:,}",
            _known(row["hours"], "{:,.1f}"),
            _known(row["dollars"], "{:,.2f}"),
            "" if pd.isna(row["reason"]) else str(row["reason"]),
        )
        for row in table.to_dict("records")
    ]
    widths = [max(len(line[place]) for line in (head, *body)) for place in range(len(head) - 1)]
    return "\n".join(
        "  ".join([*(cell.rjust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]).rstrip()
        for line in (head, *body)
    )


def _pilot(home: Path | None, judge_models: Sequence[str], reference: str | None) -> WorkspacePilot:
    with read_transaction(opened(home).engine) as connection:
        filters = checked(connection, Filters(reference=reference, judge_models=tuple(judge_models)))
        return load_pilot(connection, filters, judge_models)


def _assumptions(measured: WorkspacePilot | None, options: dict[str, Any]) -> Assumptions:
    """The pilot's values, each replaced by the option that assumes another."""
    costs = UnitCosts() if measured is None else measured.costs
    minutes = costs.minutes if options["minutes"] is None else options["minutes"]
    dollars = costs.dollars if options["dollars"] is None else options["dollars"]
    known = None if measured is None else measured.reliability
    return Assumptions(
        spread=_spread(None if measured is None else measured.pilot.spread, options),
        reliability=known if options["agreement"] is None else options["agreement"],
        costs=UnitCosts(minutes=minutes, dollars=dollars),
        power=options["power"],
    )


def _spread(measured: Spread | None, options: dict[str, Any]) -> Spread | None:
    spread = {name: options[name] for name in ("errors_per_trace", "icc", "repeat_icc") if options[name] is not None}
    if options["rate"] is not None:
        spread["variance"] = design.rate_variance(options["rate"])
    elif options["discordant"] is not None:
        spread["variance"] = design.difference_variance(options["discordant"], (options["difference"] or 0) / 100)
    if measured is not None:
        return replace(measured, **spread)
    return Spread(**spread) if "variance" in spread else None


def _goals(options: dict[str, Any], *, is_of_people: bool) -> list[Goal]:
    sizes = {"difference": options["difference"], "width": options["width"]}
    goals = [Goal(kind=kind, size=size / 100) for kind, size in sizes.items() if size is not None]  # type: ignore[arg-type]
    if is_of_people and options["width"] is not None:
        goals.append(Goal(kind="agreement", size=options["width"] / 100))
    if not goals:
        raise ValueError("nothing to plan. Try: --difference 5, or --width 10 (points)")
    return goals


def _reached(assumptions: Assumptions, traces: Sequence[int], repeats: Sequence[int]) -> list[dict[str, Any]]:
    """What so many traces would see."""
    if not traces:
        return []
    if assumptions.spread is None:
        raise ValueError("the spread of the judges' rate is unknown. Try: --judge-model NAME, or --rate")
    spread = assumptions.spread
    return [
        {
            "traces": number,
            "repeats": several,
            "width": design.interval_width(spread, number, several),
            "detectable": design.detectable(spread, number, several, power=assumptions.power),
        }
        for number in traces
        for several in repeats
    ]


def _plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _known(value: float, form: str) -> str:
    return "unknown" if math.isnan(value) else form.format(value)
