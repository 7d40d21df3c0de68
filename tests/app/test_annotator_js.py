"""The island's own unit tests (node), and the joining of its modules into one script."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tracejury.app.components.annotator import MODULES, script

ROOT = Path(__file__).resolve().parents[2]
ISLAND = ROOT / "app" / "components" / "annotator"
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="node is not installed: the island's unit tests need it")
def test_island_unit_tests_pass() -> None:
    tests = sorted((ROOT / "tests" / "app" / "js").glob("*.test.mjs"))
    assert tests
    done = subprocess.run([str(NODE), "--test", *map(str, tests)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_every_module_is_joined_and_none_twice() -> None:
    assert sorted(MODULES) == sorted(path.stem for path in (ISLAND / "js").glob("*.mjs"))


def test_modules_come_after_what_they_import_at_load() -> None:
    """Classes may be used before they stand in the file only inside functions; the joined script runs top down."""
    assert MODULES[-1] == "desk"


def test_top_level_names_are_unique_in_the_joined_script() -> None:
    names = re.findall(r"(?m)^(?:const|let|class|function|async function) \*?(\w+)", script())
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


def test_joined_script_has_one_export_and_no_import() -> None:
    assert re.findall(r"(?m)^export.*", script()) == ["export default function (component) {"]
    assert not re.search(r"(?m)^import ", script())


def test_trace_text_never_becomes_markup() -> None:
    """`textContent` only: none of the ways in which a string becomes elements or code stands in the island."""
    forbidden = r"(?:inner|outer|insertAdjacent)HTML|document\.write|ContextualFragment|DOMParser|\beval\(|new Function"
    assert re.findall(forbidden, script()) == []


def test_island_names_no_address_of_another_host() -> None:
    css, html = ((ISLAND / name).read_text(encoding="utf-8") for name in ("annotator.css", "annotator.html"))
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"')]*", script() + css + html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a namespace, not a place
    assert re.findall(r"url\(|@import", css) == []


def test_every_style_is_prefixed_or_bound_to_the_desk() -> None:
    """The island lives in the page's own DOM: its style sheet may touch nothing else."""
    css = re.sub(r"/\*.*?\*/", "", (ISLAND / "annotator.css").read_text(encoding="utf-8"), flags=re.DOTALL)
    selectors = re.findall(r"(?m)^\s*([^{}@;]+?)\s*\{", css)
    stray = [s for selector in selectors for s in selector.split(",\n") if "tj-" not in s]
    assert stray == []
