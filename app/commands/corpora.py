"""The commands about corpora: build, check, summary, sample."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from tracejury.app.commands.output import counted, opened, print_json, progress_bar
from tracejury.ingest.conventions.mapped import load_map
from tracejury.ingest.corpus.engine import Workers
from tracejury.ingest.trace import IngestError

Engine = Literal["local", "dask"]
Method = Literal["random", "stratum", "disagreement"]


def build(
    sources: Sequence[str],
    url: str,
    *,
    format: str | None,
    redact: bool,
    maps: Sequence[Path],
    engine: Engine,
    workers: int | None,
    scheduler: str | None,
    as_json: bool,
) -> int:
    """Build the corpus at `url`. Exit code 0, or 1 when something was rejected."""
    from tracejury.ingest.corpus import build as building
    from tracejury.ingest.corpus.partition import Reading

    show, close = progress_bar("reading", " partitions")
    with _named_errors():
        reading = Reading(format=format, redact=redact, maps=tuple(map(load_map, maps)))
        built = building.build(
            sources, url, workers=_workers(engine, workers, scheduler), reading=reading, progress=show
        )
    close()
    if as_json:
        print_json(asdict(built))
    else:
        rows = built.rows
        click.echo(
            f"{counted(built.partitions, 'new partition')}; {built.joined:,} traces joined, {built.copies:,} copies, "
            f"{built.rejected:,} rejected; {url} now holds {counted(rows.get('traces', 0), 'trace')} with "
            f"{counted(rows.get('spans', 0), 'span')} and {counted(rows.get('rejected', 0), 'rejected input')}"
        )
    return 1 if built.rejected else 0


def check(url: str, *, engine: Engine, workers: int | None, scheduler: str | None, as_json: bool) -> int:
    """Judge the corpus at `url` offline. Exit code 0, or 1 when a check broke on a trace."""
    from tracejury.judging.corpus import checking

    show, close = progress_bar("judging", " partitions")
    with _named_errors():
        checked = checking.check(url, workers=_workers(engine, workers, scheduler), progress=show)
    close()
    if as_json:
        print_json(asdict(checked))
    else:
        click.echo(
            f"{counted(checked.traces, 'trace')} of {counted(checked.partitions, 'partition')} judged, "
            f"{counted(checked.known_partitions, 'partition')} judged before; {counted(checked.findings, 'finding')}, "
            f"{counted(checked.failed, 'failed cell')}"
        )
    return 1 if checked.failed else 0


def summary(url: str, *, by: str | None, as_json: bool) -> int:
    """Print the findings of the corpus by agent, model, tool and day, or by one of them."""
    from tracejury.judging.corpus.counting import FACETS
    from tracejury.judging.corpus.summary import facet_table, totals

    with _named_errors():
        whole = totals(url)
        frames = {name: facet_table(url, name) for name in FACETS if by in (None, name)}
    if as_json:
        print_json({"totals": whole, **{name: frame.to_dict("records") for name, frame in frames.items()}})
        return 0
    click.echo(
        f"{counted(whole['traces'], 'trace')}, {whole['judged']:,} judged, {whole['with_findings']:,} with findings; "
        f"{counted(whole['spans'], 'span')}, {counted(whole['findings'], 'finding')}, "
        f"{counted(whole['rejected'], 'rejected input')}"
    )
    for frame in frames.values():
        click.echo("\n" + (frame.head(20).to_string(index=False) if len(frame) else "no rows"))
        if len(frame) > 20:
            click.echo(f"... and {len(frame) - 20:,} more rows: --json prints all")
    return 0


def sample(
    url: str, home: Path | None, *, n: int, method: Method, seed: int, maps: Sequence[Path], as_json: bool
) -> int:
    """Draw a sample of the corpus at `url` into the workspace at `home`. Exit code 0."""
    from tracejury.ingest.corpus.partition import Reading
    from tracejury.judging.corpus import sampling

    workspace = opened(home, create=True)
    with _named_errors():
        reading = Reading(maps=tuple(map(load_map, maps)))
        try:
            drawn = sampling.sample(
                workspace.engine, url, n=n, method=method, author="command", seed=seed, reading=reading
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    if as_json:
        print_json(asdict(drawn))
    else:
        click.echo(
            f"{drawn.traces:,} of {counted(drawn.population, 'trace')} drawn into the queue {drawn.queue!r}: "
            + "; ".join(f"{name}: {count:,}" for name, count in drawn.strata.items())
        )
    return 0


def _workers(engine: Engine, count: int | None, scheduler: str | None) -> Workers:
    if scheduler is not None and engine != "dask":
        raise click.UsageError("--scheduler works only with the engine dask. Try: --engine dask")
    return Workers(engine=engine, count=count or os.cpu_count() or 1, scheduler=scheduler)


@contextmanager
def _named_errors() -> Iterator[None]:
    """End the command with what went wrong and the remedy."""
    try:
        yield
    except IngestError as error:
        raise click.ClickException(f"{error.reason}. Try: {error.remedy}" if error.remedy else error.reason) from error
