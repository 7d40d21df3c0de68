"""The commands `rubric new` and `rubric check`."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

import click

from tracejury.app.commands.output import counted, opened, print_json, say
from tracejury.judging.judges.prompt import Prompt, build_prompt
from tracejury.judging.judges.rubric import Rubric, RubricError, new_rubric, parse_rubric, rubrics

TRACE = "(the text of the trace)"


def new(home: Path | None, key: str) -> int:
    try:
        path = new_rubric(opened(home, create=True).home, key)
    except RubricError as error:
        raise click.ClickException(str(error)) from error
    click.echo(str(path))
    say(f"fill it in, then: tracejury rubric check {path}")
    return 0


def check(file: Path, *, as_json: bool) -> int:
    """Exit code 0, or 1 where the file has a fault; every one is named."""
    try:
        rubric = parse_rubric(file.read_bytes(), str(file))
        faults = key_faults(rubric, file)
    except RubricError as error:
        rubric, faults = None, [*error.faults]
    prompt = None if rubric is None else build_prompt(TRACE, rubric)
    if as_json:
        print_json(
            {
                "file": str(file),
                "key": None if rubric is None else rubric.key,
                "version": None if rubric is None else rubric.version,
                "faults": faults,
                "prompt": None if prompt is None else {"system": prompt.system, "user": prompt.prefix + prompt.suffix},
            }
        )
    else:
        show(file, faults, prompt)
    return 1 if faults else 0


def show(file: Path, faults: list[str], prompt: Prompt | None) -> None:
    for fault in faults:
        say(f"{file}: {fault}")
    if prompt is not None:
        sys.stdout.buffer.write(f"{prompt.system}\n{prompt.prefix}{prompt.suffix}\n".encode())
        sys.stdout.buffer.flush()
    say(
        f"{file}: {counted(len(faults), 'fault')}"
        if faults
        else f"{file}: no faults; the text above is what a judge is sent"
    )


def key_faults(rubric: Rubric, file: Path) -> list[str]:
    """A fault where another rubric, shipped or beside the file, has the same key."""
    beside = [path for path in sorted(file.parent.glob("*.toml")) if not path.samefile(file)]
    keys = {} if is_shipped(file) else dict.fromkeys(rubrics(), "a shipped rubric")
    for path in beside:
        try:
            keys.setdefault(parse_rubric(path.read_bytes(), str(path)).key, str(path))
        except RubricError:
            continue
    other = keys.get(rubric.key)
    return [] if other is None else [f"key: {rubric.key!r} is taken by {other}. Try: another key"]


def is_shipped(file: Path) -> bool:
    """Whether the file itself is one of the rubrics that come with Tracejury, not a copy."""
    with resources.as_file(resources.files("tracejury.judging.judges").joinpath("rubrics", file.name)) as shipped:
        return shipped.is_file() and file.samefile(shipped)
