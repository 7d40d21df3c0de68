"""The commands about traces: ingest, traces, spans, text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from sqlalchemy import Connection, select

from tracejury.app.commands.output import counted, name_rejected, opened, print_json, progress_line, say
from tracejury.ingest.store import load, read_transaction, schema
from tracejury.ingest.trace import IngestError, Trace
from tracejury.judging.store import Workspace

if TYPE_CHECKING:
    from tracejury.ingest.conventions.mapped import Map


def ingest(paths: Sequence[str], home: Path | None, *, as_json: bool, maps: Sequence[Path] = (), **options: Any) -> int:
    """Exit code 0, or 1 when something was rejected. `options` as `ingest.batch.ingest` takes them."""
    return ingest_into(opened(home, create=True), paths, as_json=as_json, maps=maps, **options)


def ingest_into(
    workspace: Workspace, paths: Sequence[str], *, as_json: bool, maps: Sequence[Path] = (), **options: Any
) -> int:
    """As `ingest`; labels that a replaced trace leaves without their span are named."""
    from tracejury.ingest.batch import Report
    from tracejury.ingest.batch import ingest as run
    from tracejury.ingest.conventions.mapped import using
    from tracejury.judging.labels.recorded_evaluations import keep_recorded_evaluations
    from tracejury.judging.removal import unanchored_now

    with progress_line("reading", " traces") as bar:

        def progress(report: Report) -> None:
            bar.update(report.traces + report.duplicates + len(report.completed) - bar.n)
            bar.set_postfix(spans=report.spans, rejected=len(report.rejected), refresh=False)

        with using(_maps(workspace.home, maps)):
            report = run(workspace.engine, paths, progress=progress, **options)
    evaluations = keep_recorded_evaluations(workspace.engine, report.evaluated) if report.evaluated else 0
    name_rejected(report.rejected)
    unanchored = unanchored_now(workspace, report.replaced)
    for label in unanchored:
        say(
            f"label {label.label_id} of {label.annotator} on {label.trace_id} names spans that no longer exist: "
            f"{', '.join(label.span_ids)}. Try: open the trace in Work and move the label"
        )
    if as_json:
        print_json(
            {
                "traces": report.traces,
                "spans": report.spans,
                "duplicates": report.duplicates,
                "completed": report.completed,
                "waiting": report.waiting,
                "rejected": [asdict(one) for one in report.rejected],
                "warnings": dict(report.warnings),
                "evaluations": evaluations,
            }
            | ({"replaced": report.replaced, "unanchored": list(map(asdict, unanchored))} if report.replaced else {})
        )
    else:
        for warning in (*report.gap_lines(), *report.warning_texts[:50]):
            say(f"warning {warning}")
        if len(report.warning_texts) > 50:
            say(f"… and {len(report.warning_texts) - 50:,} more warnings")
        for line in (*report.completed, *report.waiting):
            say(line)
        click.echo(
            f"{counted(report.traces, 'new trace')} with {counted(report.spans, 'span')}, "
            f"{counted(report.duplicates, 'duplicate')}, {len(report.completed):,} completed, "
            f"{len(report.rejected):,} rejected"
            + (f", {len(report.replaced)} of them replacing other content" if report.replaced else "")
        )
        if evaluations:
            click.echo(f"{counted(evaluations, 'verdict')} of evaluators, as these traces record them")
    return 1 if report.rejected else 0


def _maps(home: Path, files: Sequence[Path]) -> list[Map]:
    """The maps of the workspace and those given. Ends the command on one that cannot be read."""
    from tracejury.ingest.conventions.mapped import load_map, maps_of

    try:
        return [*maps_of(home), *map(load_map, files)]
    except IngestError as error:
        raise click.UsageError(f"{error.reason}. Try: {error.remedy}") from error


def suggest_map(path: str) -> int:
    """Print a map for the files under `path`; exit code 1 when one of them was rejected."""
    from tracejury.ingest.map_suggestion import suggest

    try:
        suggestion = suggest(path)
    except IngestError as error:
        raise click.UsageError(f"{error.reason}. Try: {error.remedy}") from error
    name_rejected(suggestion.rejected)
    if suggestion.spans:
        click.echo(suggestion.toml(), nl=False)
    return 1 if suggestion.rejected else 0


def list_traces(home: Path | None, *, as_json: bool, csv_file: Path | None) -> None:
    from tracejury.ingest.table import trace_frame, write_csv

    with read_transaction(opened(home).engine) as connection:
        frame = trace_frame(connection)
    if csv_file is not None:
        write_csv(frame, csv_file)
        say(f"{counted(len(frame), 'trace')} written to {csv_file}")
    elif as_json:
        print_json(frame.astype(object).where(frame.notna(), None).to_dict("records"))
    else:
        columns = ["trace_id", "format", "name", "spans", "llm_spans", "tool_spans", "error_spans", "total_tokens"]
        click.echo(
            frame[columns].to_string(index=False)
            if len(frame)
            else "this workspace holds no traces. Try: tracejury ingest PATH"
        )


def spans(trace_id: str, home: Path | None, *, csv_file: Path | None, parquet_file: Path | None, as_json: bool) -> None:
    from tracejury.ingest.table import span_frame, span_rows, write_csv, write_parquet

    trace = find_trace(home, trace_id)
    if csv_file is not None:
        write_csv(span_frame([trace]), csv_file)
    if parquet_file is not None:
        write_parquet([trace], parquet_file)
    if as_json:
        print_json(span_rows(trace))
    elif csv_file is None and parquet_file is None:
        columns = ["seq", "span_id", "kind", "name", "agent", "status", "duration_s", "total_tokens"]
        frame = span_frame([trace])
        frame["name"] = ["  " * depth + name for depth, name in zip(frame["depth"], frame["name"], strict=True)]
        click.echo(frame[columns].to_string(index=False, justify="left"))


def text(trace_id: str, home: Path | None) -> None:
    from tracejury.judging.judges.trace_text import render_trace

    sys.stdout.buffer.write(render_trace(find_trace(home, trace_id)).text.encode())


def find_trace(home: Path | None, trace_id: str) -> Trace:
    """The trace whose id is or begins with `trace_id`. Ends the command when there is none or more than one."""
    with read_transaction(opened(home).engine) as connection:
        return load(connection, full_id(connection, trace_id))


def full_id(connection: Connection, trace_id: str) -> str:
    column = schema.trace.c.trace_id
    candidates = list(
        connection.scalars(select(column).where(column.startswith(trace_id, autoescape=True)).order_by(column).limit(6))
    )
    if trace_id in candidates or len(candidates) == 1:
        return trace_id if trace_id in candidates else candidates[0]
    if not candidates:
        raise click.ClickException(f"no trace {trace_id!r} in this workspace. Try: `tracejury traces` to list them")
    raise click.ClickException(f"{trace_id!r} fits {len(candidates)} traces or more: {', '.join(candidates[:5])}")
