"""The parts of the help pages that are made from the code: `python -m tests.reference` renews them, a test compares."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
from pydantic.fields import FieldInfo

from tracejury.app.cli import main
from tracejury.app.command_line import root
from tracejury.app.components.glossary import TERMS
from tracejury.app.datasets import BY_NAME
from tracejury.ingest.readers import READERS
from tracejury.judging.agreement.metrics import METRICS
from tracejury.judging.agreement.tables import TABLES
from tracejury.judging.checks import CHECKS
from tracejury.judging.judges.rubric import FIELD_MEANINGS, Rubric, rubrics
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.reports.benchmark_outcomes import OUTCOME_TABLES

ROOT = Path(__file__).resolve().parent.parent
HELP = ROOT / "data" / "help"
KEYS = ROOT / "app" / "components" / "annotator" / "js" / "keys.mjs"


def first_sentence(text: str, ends: str = ".:") -> str:
    flat = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    sentence = re.match(rf".*?[{ends}](?=\s|$)", flat)
    return (sentence[0] if sentence else flat).rstrip(ends).replace("|", "\\|")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def metrics() -> str:
    rows = [(f"`{m.name}`", m.title, first_sentence(m.words or m.function.__doc__ or "", ".")) for m in METRICS]
    return table(("name", "metric", "definition"), rows)


def tables() -> str:
    return table(
        ("file", "what it holds", "paper"),
        [(f"`{t.name}`", t.title, t.paper or "") for t in (*TABLES, *OUTCOME_TABLES)],
    )


def checks() -> str:
    rows = [(f"`{c.name}`", c.dimension, c.category, c.impact, first_sentence(c.rule)) for c in CHECKS]
    return table(("check", "dimension", "TRAIL category", "impact", "rule"), rows)


def dimensions() -> str:
    """What each dimension asks, for annotators, with one worked example: from the shipped rubrics."""
    return "\n\n".join(_dimension(rubric) for rubric in (rubrics()[key] for key in DIMENSIONS))


def _dimension(rubric: Rubric) -> str:
    parts = [f"### {rubric.key} {rubric.title}", rubric.judges.strip(), rubric.annotator.strip()]
    if rubric.anchors is not None:
        parts.append(f"- **3**: {rubric.anchors.full.strip()}\n- **2, 1**: {rubric.anchors.middle.strip()}\n"
                     f"- **0**: {rubric.anchors.none.strip()}")  # fmt: skip
    if rubric.not_applicable:
        parts.append(f"Not applicable: {rubric.not_applicable.strip()}")
    if rubric.examples:
        example = rubric.examples[0]
        parts += ["A worked example:", f"```text\n{example.trace.strip()}\n```"]
        parts += [f"- {f.description.strip()} (impact {f.impact})" for f in example.reply.findings]
        parts.append(f"Score {example.reply.score}. {example.reply.rationale.strip()}")
    return "\n\n".join(parts)


def keys() -> str:
    """The key table of the desk, as the browser has it."""
    code = f"import({json.dumps(KEYS.as_uri())}).then(m => console.log(JSON.stringify(m.TJ_KEYS)))"
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    return table(
        ("key", "what it does", "group"),
        [(" or ".join(f"`{key}`" for key in k["keys"]), k["title"], k["group"]) for k in json.loads(done.stdout)],
    )


def rubric_fields() -> str:
    fields: dict[str, FieldInfo] = dict(Rubric.model_fields)
    return table(
        ("field", "needed", "meaning"),
        [(f"`{name}`", "yes" if field.is_required() else "no", FIELD_MEANINGS[name]) for name, field in fields.items()],
    )


def formats() -> str:
    rows = []
    for reader in READERS:
        module = importlib.import_module(reader.__name__)  # type: ignore[attr-defined]
        rows.append((f"`{reader.NAME}`", first_sentence(module.__doc__ or "", ".")))
    return table(("name", "what it reads"), rows)


def commands() -> str:
    return table(("command", "what it does", "example"), list(_commands(main, "tracejury")))


def _commands(group: click.Group, prefix: str) -> Iterator[tuple[str, str, str]]:
    order = [name for names in root.SECTIONS.values() for name in names]
    for name, command in sorted(group.commands.items(), key=lambda item: order.index(item[0]) if group is main else 0):
        if command.epilog:
            example = command.epilog.removeprefix("Example: ")
            yield f"`{prefix} {name}`", first_sentence(command.help or "", "."), f"`{example}`"
        if isinstance(command, click.Group):
            yield from _commands(command, f"{prefix} {name}")


def exports() -> str:
    return table(("name", "one row per"), [(f"`{d.name}`", first_sentence(d.about, ".")) for d in BY_NAME.values()])


def terms() -> str:
    return table(("term", "meaning"), [(f"**{term}**", sentence) for term, sentence in TERMS.items()])


SECTIONS: dict[str, Callable[[], str]] = {
    "metrics": metrics, "tables": tables, "checks": checks, "dimensions": dimensions, "keys": keys,
    "rubric-fields": rubric_fields, "formats": formats, "commands": commands, "exports": exports, "terms": terms,
}  # fmt: skip


def renewed(text: str) -> str:
    for name, make in SECTIONS.items():
        pattern = rf"(?s)(<!-- {name} -->\n).*?(<!-- end {name} -->)"
        if re.search(pattern, text):
            body = make()
            text = re.sub(pattern, lambda match, body=body: f"{match[1]}{body}\n{match[2]}", text)  # type: ignore[misc]
    return text


if __name__ == "__main__":
    for page in sorted(HELP.glob("*.md")):
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
