"""Small traces after public reports, each with the right answer, where they are on this machine."""

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from tracejury.app.cli import main

Faults = Callable[[dict[str, Any]], Iterator[str]]


@pytest.fixture
def traces(shared: Path) -> Path:
    folder = shared / "cases" / "traces"
    if not folder.is_dir():
        pytest.skip("the trace cases of ../shared are not on this machine")
    return folder


def run(*args: str, home: str) -> SimpleNamespace:
    """A command, in this process."""
    result = CliRunner().invoke(main, [*args, "--home", home])
    return SimpleNamespace(stdout=result.stdout, stderr=result.stderr)


def faults_of(folder: Path) -> Faults:
    """The function of the check beside the cases that tells what is wrong with one, asking the command here."""
    source = ast.parse((folder.parent / "check_traces.py").read_text(encoding="utf-8"))
    kept = [node for node in source.body if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)]
    names: dict[str, Any] = {"folder": folder, "command": ""}
    exec(compile(ast.Module(kept, []), "check_traces.py", "exec"), names)
    names["run"] = run
    return cast("Faults", names["faults"])


def test_every_trace_case_is_read_rightly(traces: Path) -> None:
    faults = faults_of(traces)
    cases = json.loads((traces / "expect.json").read_text(encoding="utf-8"))
    faults_by_case = {case["case"]: list(faults(case)) for case in cases}
    assert {name: wrong for name, wrong in faults_by_case.items() if wrong} == {}
