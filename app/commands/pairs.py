"""The commands about labelled pairs of errors and findings: draw them, and measure the matching rule on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from tracejury.app.commands.output import counted, name_rejected, opened, print_json, say
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.agreement.estimate import Estimate
from tracejury.judging.agreement.rounding import half_up
from tracejury.judging.matching.labelled_pairs import draw_pairs, population, score_pairs, write_pairs
from tracejury.judging.matching.own_rates import keep_rates
from tracejury.judging.matching.rule import RULE
from tracejury.judging.store.locks import SETTINGS

MEASURES = {
    "precision": "proposed pairs that are the same error",
    "recall": "same errors that are proposed",
    "recall_one_to_one": "the same, without pairs whose error or finding is in another correct proposal",
}


def sample(
    home: Path | None, *, trace_ids: Sequence[str], out: Path, n: int, judge_model: str | None, seed: int, as_json: bool
) -> int:
    """Exit code 0, or 1 where there is no pair."""
    with read_transaction(opened(home).engine) as connection:
        pairs = population(connection, judge_model=judge_model, trace_ids=trace_ids)
    if pairs.empty:
        raise click.ClickException("no trace here has both an error and a finding. Try: tracejury judge")
    drawn = draw_pairs(pairs, n, seed=seed)
    try:
        key = write_pairs(drawn, out)
    except FileExistsError as error:
        raise click.ClickException(str(error)) from error
    strata = drawn["stratum"].value_counts().to_dict()
    if as_json:
        print_json({"pairs": len(drawn), "population": len(pairs), "strata": strata, "key": str(key), "rule": RULE})
    else:
        click.echo(f"{counted(len(drawn), 'pair')} of {len(pairs):,} written to {out}")
        say(f"{key} says how they were drawn. Label the pairs without reading it, and keep it beside them")
    return 0


def score(home: Path | None, file: Path, *, as_json: bool) -> int:
    """Exit code 0, or 1 when a row was rejected or none is labelled."""
    try:
        engine = opened(home).engine
        with read_transaction(engine) as connection:
            result = score_pairs(connection, file)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    name_rejected(result.rejected)
    rates = result.rates
    if result.labelled:
        with write_transaction(engine, SETTINGS) as connection:
            keep_rates(connection, rates)
    estimates = {name: getattr(rates, name) for name in MEASURES}
    if as_json:
        document = {
            "rule": RULE,
            "labelled": result.labelled,
            "unlabelled": result.unlabelled,
            "unclear": rates.unclear,
            **{name: asdict(estimate) for name, estimate in estimates.items()},
            "errors": asdict(rates.of_errors),
            "rejected": [asdict(one) for one in result.rejected],
        }
        print_json(document)
    else:
        waiting = f"{result.unlabelled:,} without a label, {rates.unclear:,} unclear"
        click.echo(f"{RULE} on {counted(result.labelled, 'labelled pair')} ({waiting})")
        for name, estimate in estimates.items():
            click.echo(f"{name.replace('_', ' ')}: {_in_words(estimate)}: {MEASURES[name]}")
        if result.labelled:
            say("stored: the table match_sensitivity uses these rates from now on")
    return 1 if result.rejected or not result.labelled else 0


def _in_words(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"n/a ({estimate.reason})"
    bounds = "no interval" if estimate.low is None else f"{half_up(estimate.low, 3)} to {half_up(estimate.high, 3)}"
    return f"{half_up(estimate.value, 3)} ({bounds}, n = {estimate.n})"
