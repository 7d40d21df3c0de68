"""Every term of the vocabulary on a page has its meaning one hover away."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tracejury.app.components import annotator, glossary
from tracejury.app.components.glossary import TERMS, meaning, meanings
from tracejury.judging.judges.rubric import rubrics
from tracejury.judging.matching.pairs import PairState
from tracejury.judging.records import DIMENSIONS

APP = Path(__file__).resolve().parents[2] / "app"
VOCABULARY = (
    *DIMENSIONS, *get_args(PairState), "proposed", "confirmed", "rejected", "reference", "blind", "revealed", "finding",
    "citation", "verdict", "failure", "dimension", "judge model", "run", "repeat", "cell", "match", "error",
    "valid new error", "false alarm", "duplicate",
)  # fmt: skip


@pytest.mark.parametrize("term", VOCABULARY)
def test_every_term_of_the_vocabulary_has_one_sentence(term: str) -> None:
    assert re.fullmatch(r"[A-Z“].*[.?]", TERMS[term])


@pytest.mark.parametrize("key", DIMENSIONS)
def test_a_code_is_explained_by_the_name_that_its_rubric_has(key: str) -> None:
    assert TERMS[key].startswith(f"{rubrics()[key].title}: ")


@pytest.mark.parametrize("term", TERMS)
def test_every_term_of_the_glossary_is_on_a_page(term: str) -> None:
    pages = (path.read_text(encoding="utf-8") for path in APP.rglob("*") if path.suffix in {".py", ".mjs"})
    texts = " ".join(text for text in pages if "TERMS: Final" not in text)
    assert term in DIMENSIONS or re.search(rf"\b{term}", texts.replace("_", " "), re.IGNORECASE)


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


@pytest.mark.parametrize("path", sorted(APP.rglob("*.py")), ids=lambda path: path.name)
def test_pages_ask_the_glossary_only_for_terms_that_it_has(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    asked = [call for call in calls(tree) if getattr(call.func, "id", "") in {"meaning", "meanings"}]
    words = [
        node.value
        for call in asked
        for argument in call.args
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant)
    ]
    assert [word for word in words if word not in TERMS] == []


def test_an_island_asks_the_glossary_only_for_terms_that_it_has() -> None:
    for path in APP.rglob("*.mjs"):
        asked = re.findall(r'TJ_TERMS\.(\w+)|meaningOf\("([^"]+)"\)', path.read_text(encoding="utf-8"))
        assert [one or other for one, other in asked if (one or other) not in TERMS] == []


def test_the_desk_begins_with_the_glossary() -> None:
    assert annotator.script().startswith(glossary.script())
    assert TERMS["blind"] in glossary.script()


def test_the_name_of_a_column_finds_its_term_and_another_word_finds_none() -> None:
    assert meaning("judge_model") == TERMS["judge model"]
    assert meaning("seconds") is None
    assert meanings(("LC", "LC", "nothing")) == f"**LC**: {TERMS['LC']}"
