"""The command `report`: the tables of agreement as files, from a workspace or from plain CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pandas as pd
from sqlalchemy import Connection

from app.commands.output import counted, opened, print_json, say
from ingest.store import reading
from ingest.trace import Json
from judging.agreement.tables import COLUMNS, Inputs
from judging.export import inputs_of, manifest_of, report_tables, settings_of, write_report
from judging.ledger.frames import Selection, load_frames, read_splits
from judging.ledger.systems import judge_versions
from judging.outcomes import outcome_tables


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
    settings = {key: options[key] for key in ("missing", "draws", "seed")}
    try:
        outcomes = {} if from_csv else _outcomes(home)
        inputs, manifest = _from_csv(from_csv, settings) if from_csv else _from_ledger(home, options, settings)
        asked = [name for name in names if name not in outcomes]
        made = report_tables(inputs, asked) if asked or not names else {}
        made |= {name: frame for name, frame in outcomes.items() if not names or name in names}
        written = write_report(out, made, formats=_listed(formats), manifest=manifest)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print_json({**manifest, "out": str(out), "files": [{"file": w.file, "rows": w.rows} for w in written]})
    else:
        for one in written:
            click.echo(f"{out / one.file}  {counted(one.rows, 'row')}")
        say(f"{counted(len(written), 'file')} and manifest.json")
    return 0


def _from_ledger(
    home: Path | None, options: dict[str, Any], settings: dict[str, Any]
) -> tuple[Inputs, dict[str, Json]]:
    split_file: Path | None = options["split_file"]
    splits = read_splits(split_file.read_bytes(), str(split_file)) if split_file else {}
    with reading(opened(home).engine) as connection:
        selection = Selection(
            human=options["human"],
            systems=options["systems"],
            versions=_versions(connection, options["versions"]),
            matches=options["matches"],
            splits=splits,
            only_split=split_file is not None,
            repeat=options["repeat"],
            formats=options["data"],
            guideline=options["guideline"],
            blind_only=not options["revealed"],
        )
        frames = load_frames(connection, selection)
        inputs = inputs_of(frames, **settings)
        if frames.human is None:
            say("no submitted review is in this workspace: the tables of agreement are empty")
        return inputs, manifest_of(connection, frames, selection, inputs)


def _versions(connection: Connection, wanted: Sequence[str]) -> tuple[str, ...]:
    """Judge versions by the head of their hash. Raises `ValueError` naming one that is not there or not clear."""
    held = judge_versions(connection)
    found = []
    for head in wanted:
        fitting = [one for one in held if one.judge_version.startswith(head)]
        if len(fitting) != 1:
            known = ", ".join(f"{one.judge_version[:12]} ({one.judge}, {one.system})" for one in fitting or held)
            said = "is the head of several versions" if fitting else "is no judge version"
            raise ValueError(f"{head!r} {said} of this workspace: use one of {known or 'none yet'}")
        found.append(fitting[0].judge_version)
    return tuple(found)


def _outcomes(home: Path | None) -> dict[str, pd.DataFrame]:
    with reading(opened(home).engine) as connection:
        return outcome_tables(connection)


def _from_csv(folder: Path, settings: dict[str, Any]) -> tuple[Inputs, dict[str, Json]]:
    frames: dict[str, Any] = {}
    for name in COLUMNS:
        file = folder / f"{name}.csv"
        if file.exists():
            try:
                frames[name] = pd.read_csv(
                    file, keep_default_na=True, dtype={"trace_id": str, "error_id": str, "unit": str}
                )
            except (pd.errors.ParserError, UnicodeDecodeError) as error:
                raise ValueError(f"{file}: {error}") from error
    if not frames:
        raise ValueError(f"{folder} holds none of {', '.join(f'{name}.csv' for name in COLUMNS)}")
    inputs = Inputs(**frames, **settings)
    return inputs, {**settings_of(inputs), "from_csv": [*sorted(frames)]}


def _listed(formats: str) -> list[str]:
    return [name.strip() for name in formats.split(",") if name.strip()]
