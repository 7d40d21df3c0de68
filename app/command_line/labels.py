"""Commands about labels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tracejury.app.command_line.root import HOME, JSON, main

SCORE_FORMS = (
    "langfuse", "phoenix", "label-studio", "argilla", "langsmith", "mlflow", "scout", "docent", "opik", "weave",
    "datadog", "braintrust", "humanloop", "labelbox", "prodigy", "doccano", "deepeval", "ragas", "promptfoo",
    "openai-evals", "arize", "langwatch",
)  # fmt: skip


@main.group()
def labels() -> None:
    """Import and export annotators' labels."""


@labels.command("import", epilog="Example: tracejury labels import labels/ --as trail")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@HOME
@click.option(
    "--as",
    "form",
    type=click.Choice(["auto", "tracejury", "trail", "csv", *SCORE_FORMS]),
    default="auto",
    show_default=True,
    help="auto recognises every form except trail by its keys; csv is any CSV or JSON lines with a trace_id.",
)
@click.option(
    "--columns",
    multiple=True,
    metavar="FIELD=COLUMN,...",
    help="Columns whose names tracejury does not recognise; OBJECT.KEY is a column within an object.",
)
@click.option(
    "--scale",
    "scales",
    multiple=True,
    metavar="[NAME:]FROM=TO",
    help="How scores become 0 to 3: 1..5=0..3 (to the nearest, halves up) or good=3,bad=0; of one NAME or of all.",
)
@click.option("--annotator", default=None, help="Annotator of these labels, in place of the name in the files.")
@click.option("--dimension", default=None, help="Dimension of the scores, where the files name none.")
@click.option(
    "--reviewed",
    "is_reviewed",
    is_flag=True,
    help="Count each annotator's traces in these files as submitted: spans without a label then count as no error.",
)
@JSON
def labels_import(files: tuple[Path, ...], home: Path | None, form: str, as_json: bool, **options: Any) -> None:
    """Import label files: our own, TRAIL's, and other tools' scores."""
    from tracejury.app.commands import opinions

    sys.exit(opinions.import_labels(files, home, form=form, as_json=as_json, **options))


@labels.command("export", epilog="Example: tracejury labels export --out labels.json --annotator ada")
@HOME
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File, or folder for trail.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["comments", "csv", "label-studio", "langfuse", "trail", "tracejury"]),
    default="tracejury",
    show_default=True,
)
@click.option("--annotator", "annotators", multiple=True, help="Only labels of this annotator (repeatable).")
def labels_export(home: Path | None, out: Path, form: str, annotators: tuple[str, ...]) -> None:
    """Export labels."""
    from tracejury.app.commands import opinions

    sys.exit(opinions.export_labels(home, out, form=form, annotators=annotators))
