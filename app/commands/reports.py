"""The command `report`: the tables of agreement as files, from a workspace or from plain CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pandas as pd
from sqlalchemy import Connection

from tracejury.app.commands.opinions import match_by_rule, match_words
from tracejury.app.commands.output import counted, opened, print_json, say
from tracejury.ingest.store import read_transaction
from tracejury.ingest.trace import IngestError, Json
from tracejury.judging.agreement.compare import comparable_sides, why_incomparable
from tracejury.judging.agreement.frames import keep_texts_in_python
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.majority import MAJORITY
from tracejury.judging.agreement.prevalence import sampling_note
from tracejury.judging.agreement.tables import COMPARED, TABLES, can_build
from tracejury.judging.corpus.rates import RATES, corpus_rates, newest_sample
from tracejury.judging.reports.arms import arm_pairs, read_arm
from tracejury.judging.reports.benchmark_outcomes import OUTCOME_TABLES, outcome_tables
from tracejury.judging.reports.export import (
    facts_of,
    inputs_of,
    manifest_of,
    opinions_of,
    report_tables,
    settings_of,
    write_inputs,
    write_manifest,
    write_report,
)
from tracejury.judging.reports.filter_options import checked
from tracejury.judging.reports.filters import Filters, Split, read_split
from tracejury.judging.reports.frames import load_frames
from tracejury.judging.reports.plain_csv import read_folder


def report(
    home: Path | None,
    *,
    out: Path,
    names: Sequence[str],
    formats: str,
    from_csv: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Exit code 0; wrong names and malformed files end the command with code 2."""
    keep_texts_in_python()
    settings = {key: options[key] for key in ("missing", "draws", "seed") if options[key] is not None}
    try:
        matched = {} if from_csv or not options["is_matching"] else _matched(home, options, settings)
        outcomes = {} if from_csv else _outcomes(home)
        empty = [table.name for table in OUTCOME_TABLES if table.name in names and table.name not in outcomes]
        if empty:
            where = from_csv or "the workspace"
            raise ValueError(
                f"{empty[0]} has no data: no trace in {where} has an outcome. Try: ingest executions of GAIA2"
            )
        inputs, manifest = (
            _from_csv(from_csv, options, settings, names)
            if from_csv
            else _from_workspace(home, options, settings, names)
        )
        apart = set(outcomes) if from_csv else {*outcomes, *COMPARED, RATES.name}  # made from other inputs than these
        manifest |= matched
        agreement_names = [name for name in names if name not in apart]
        frames_by_name = report_tables(inputs, agreement_names) if agreement_names or not names else {}
        if options["sides"]:
            frames_by_name |= _compared(home, options, settings, names, inputs.frame("slices"))
            manifest |= {"compared": [*options["sides"]]}
        frames_by_name |= {name: frame for name, frame in outcomes.items() if not names or name in names}
        if not from_csv and (not names or RATES.name in names):
            frames_by_name |= _sampled(home, options, settings, manifest, is_wanted=RATES.name in names)
        written = write_report(out, frames_by_name, formats=_listed(formats), made_from=manifest, more=(RATES,))
        written += write_inputs(out / "inputs", inputs) if options["inputs"] else []
        write_manifest(out, manifest, written)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print_json({**manifest, "out": str(out), "files": [{"file": w.file, "rows": w.rows} for w in written]})
    else:
        for one in written:
            click.echo(f"{out / one.file}  {counted(one.rows, 'row')}")
        say(f"{counted(len(written), 'file')} and manifest.json")
    return 0


def _matched(home: Path | None, options: dict[str, Any], settings: dict[str, Any]) -> dict[str, Json]:
    """Propose matches by the rule; what a manifest tells of it. Raises `ValueError` for filters that name nothing."""
    engine = opened(home).engine
    with read_transaction(engine) as connection:
        _filters(connection, options, settings)  # before anything is written
    counts = match_by_rule(engine)
    say(f"matched by rule: {match_words(counts)}; nobody has confirmed the new ones")
    return {"matched_by_rule": dict(counts)}


def _filters(connection: Connection, options: dict[str, Any], settings: dict[str, Any]) -> Filters:
    """The filters of the flags. Raises `ValueError` for one that names nothing of the workspace."""
    filters = Filters(
        reference=options["reference"],
        judge_models=options["judge_models"],
        versions=options["versions"],
        matches=options["matches"],
        split=_split(options["split_file"]),
        repeat=options["repeat"],
        trace_formats=options["trace_formats"],
        guideline=options["guideline"],
        tolerance=options["tolerance"] or "exact",
        slices=options["slices"],
        blind_only=options["blind_only"] is not False,
        same_traces=options["same_traces"] is not False,
        **settings,
    )
    return checked(connection, filters)


def _split(file: Path | None) -> Split | None:
    return None if file is None else read_split(file.read_bytes(), str(file), file.stem)


def _compared(
    home: Path | None, options: dict[str, Any], settings: dict[str, Any], names: Sequence[str], slices: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """The tables of two sides; those asked for, all of them by default."""
    with read_transaction(opened(home).engine) as connection:
        filters = _filters(connection, options, settings)
        left, right = (arm_pairs(connection, filters, read_arm(text)) for text in options["sides"])
    compared_names = [name for name in COMPARED if name in names or not names]
    reason = why_incomparable(left.error_pairs, right.error_pairs)
    if reason is not None:
        say(f"{' and '.join(options['sides'])}: {reason}")
    error_pairs, other_error_pairs = comparable_sides(left.error_pairs, right.error_pairs)
    inputs = Inputs(
        error_pairs=error_pairs,
        score_pairs=left.score_pairs,
        other_error_pairs=other_error_pairs,
        other_score_pairs=right.score_pairs,
        slices=slices,
        **settings,
    )
    frames_by_name = report_tables(inputs, compared_names) if compared_names else {}
    tested = {name: int(frames_by_name[name]["p_holm"].notna().sum()) for name in HOLM if name in frames_by_name}
    if tested:
        over = ", ".join(
            f"{number:,} {'p-values ' * (not n)}in {name}" for n, (name, number) in enumerate(tested.items())
        )
        say(f"p_holm by Holm: over {over}")
    return frames_by_name


HOLM = ("compared_errors", "compared_mcnemar", "compared_scores")
"""Tables of two sides whose p-values are corrected for all of the table."""


def _from_workspace(
    home: Path | None, options: dict[str, Any], settings: dict[str, Any], names: Sequence[str]
) -> tuple[Inputs, dict[str, Json]]:
    sided = [name for name in names if name in COMPARED]
    if sided and not options["sides"]:
        raise ValueError(f"{sided[0]} needs two sides. Try: --compare A B")
    with read_transaction(opened(home).engine) as connection:
        filters = _filters(connection, options, settings)
        frames = load_frames(connection, filters)
        inputs = inputs_of(frames, filters, opinions_of(connection, filters, frames))
        if frames.reference is None:
            say("no annotator has submitted a trace in this workspace, so the agreement tables are empty")
        elif filters.reference == MAJORITY and frames.votes.empty:
            say("no trace was submitted by two annotators, so there is no majority and the agreement tables are empty")
        if (words := frames.overlap.words()) is not None:
            say(words)
        note = sampling_note(frames.unit_labels)
        if note is not None:
            say(note)
        return inputs, {**manifest_of(facts_of(frames), filters, inputs), "sampling_note": note}


def _outcomes(home: Path | None) -> dict[str, pd.DataFrame]:
    with read_transaction(opened(home).engine) as connection:
        return outcome_tables(connection)


def _sampled(
    home: Path | None, options: dict[str, Any], settings: dict[str, Any], manifest: dict[str, Json], *, is_wanted: bool
) -> dict[str, pd.DataFrame]:
    """The error rates of the corpus that the newest sample was drawn from; what they rest on goes into the manifest.

    Raises `ValueError` where they are wanted and cannot be had.
    """
    try:
        with read_transaction(opened(home).engine) as connection:
            if (key := newest_sample(connection)) is None:
                if is_wanted:
                    raise ValueError(f"{RATES.name} needs a sample of a corpus. Try: tracejury corpus sample URL")
                return {}
            rates = corpus_rates(connection, key, _filters(connection, options, settings))
    except IngestError as error:
        if is_wanted:
            raise ValueError(f"{error.reason}. Try: {error.remedy}") from error
        say(f"{RATES.name} is left out: {error.reason}")
        return {}
    manifest["corpus"] = rates.basis()
    say(f"{RATES.name}: {rates.basis()}")
    return {RATES.name: rates.table}


def _from_csv(
    folder: Path, options: dict[str, Any], settings: dict[str, Any], names: Sequence[str]
) -> tuple[Inputs, dict[str, Json]]:
    needless = [flag for flag, frames in _OF_A_WORKSPACE.items() if options.get(frames)]
    needless += [
        f"--{'' if options[name] else 'no-'}{name.replace('_', '-')}"
        for name in ("blind_only", "same_traces")
        if options[name] is not None
    ]
    if needless:
        raise ValueError(f"{needless[0]} is for a workspace and cannot be combined with --from-csv")
    read = read_folder(folder / "inputs" if (folder / "inputs").is_dir() else folder)
    for file in read.unused:
        say(f"{folder / file}: skipped, because no input has this name")
    frames: dict[str, Any] = {str(name): frame for name, frame in read.frames.items()}
    inputs = Inputs(**frames, **settings)
    for table in TABLES:
        if table.name in names and not can_build(table, inputs):
            absent = [f"{name}.csv" for name in table.needs if name not in read.frames]
            raise ValueError(f"{table.name} needs {', '.join(absent)}, which {folder} does not hold")
    return inputs, {**settings_of(inputs), "from_csv": [file.to_json() for file in read.files]}


_OF_A_WORKSPACE = {
    "--match": "is_matching",
    "--split": "split_file",
    "--reference": "reference",
    "--inputs": "inputs",
    "--judge-model": "judge_models",
    "--version": "versions",
    "--repeat": "repeat",
    "--compare": "sides",
    "--trace-format": "trace_formats",
    "--guideline": "guideline",
    "--tolerance": "tolerance",
    "--slice": "slices",
}


def _listed(formats: str) -> list[str]:
    return [name.strip() for name in formats.split(",") if name.strip()]
