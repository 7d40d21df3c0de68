"""`make bench` calls each benchmark by its name and with nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parent / "benchmarks").glob("bench_*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_benchmark_needs_no_argument(file: Path) -> None:
    functions = [node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]
    arguments = next(each.args for each in functions if each.name == "main")
    assert len(arguments.args) == len(arguments.defaults)
    assert not arguments.kwonlyargs
