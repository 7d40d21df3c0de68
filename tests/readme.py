"""The parts of README.md that are made from the code: `python -m tests.readme` renews them, a test compares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from tracejury.judging.agreement.tables import METRICS, TABLES
from tracejury.judging.checks import CHECKS
from tracejury.judging.reports.benchmark_outcomes import OUTCOME_TABLES

README = Path(__file__).resolve().parent.parent / "README.md"


def first_sentence(text: str, ends: str = ".:") -> str:
    flat = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    found = re.match(rf".*?[{ends}](?=\s|$)", flat)
    return (found[0] if found else flat).rstrip(ends).replace("|", "\\|")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def metrics() -> str:
    rows = [(f"`{m.name}`", m.title, first_sentence(m.words or m.function.__doc__ or "", ".")) for m in METRICS]
    return table(("name", "figure", "definition"), rows)


def tables() -> str:
    return table(
        ("file", "what it holds", "paper"),
        [(f"`{t.name}`", t.title, t.paper or "") for t in (*TABLES, *OUTCOME_TABLES)],
    )


def checks() -> str:
    rows = [(f"`{c.name}`", c.dimension, c.category, c.impact, first_sentence(c.rule)) for c in CHECKS]
    return table(("check", "dimension", "TRAIL category", "impact", "rule"), rows)


SECTIONS: dict[str, Callable[[], str]] = {"metrics": metrics, "tables": tables, "checks": checks}


def renewed(text: str) -> str:
    for name, make in SECTIONS.items():
        pattern = rf"(?s)(<!-- {name} -->\n).*?(<!-- end {name} -->)"
        body = make()
        text = re.sub(pattern, lambda match, body=body: f"{match[1]}{body}\n{match[2]}", text)  # type: ignore[misc]
    return text


if __name__ == "__main__":
    README.write_text(renewed(README.read_text(encoding="utf-8")), encoding="utf-8")
