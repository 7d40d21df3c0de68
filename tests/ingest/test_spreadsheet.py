"""The rule for cells that a spreadsheet would run, and that it stands in one place."""

import ast
import csv
import io
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracejury.ingest.spreadsheet import FORMULA_STARTS, csv_of_rows, csv_text, plain_cell, safe_cell

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", '=HYPERLINK("http://x")']
)
def test_text_that_a_spreadsheet_would_run_is_quoted(text: str) -> None:
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["", "a=1", " =1", "'a", -1, -1.5, 0, None, True])
def test_other_text_and_numbers_stay(value: object) -> None:
    assert safe_cell(value) is value


@pytest.mark.parametrize("text", ["=1", "'=1", "''-x", "- point one", "'quoted'", "plain", "", "'", "\n\n=1"])
def test_quoted_text_can_be_had_back(text: str) -> None:
    assert plain_cell(str(safe_cell(text))) == text


def test_the_rule_is_written_once() -> None:
    """A second list of these characters would drift from the first."""
    found = [
        str(path.relative_to(ROOT))
        for package in ("app", "judging", "ingest")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Tuple)
        and [getattr(e, "value", None) for e in node.elts[:4]] == list(FORMULA_STARTS[:4])
    ]
    assert found == ["ingest/spreadsheet.py"]


TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # all of Unicode; lone surrogates are escaped when read


@settings(deadline=None)
@given(texts=st.lists(TEXT, min_size=1, max_size=5))
def test_any_text_is_one_cell_of_one_row(texts: list[str]) -> None:
    written = csv_text(pd.DataFrame({"a": texts, "b": texts[::-1]}))
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert [[plain_cell(cell) for cell in row] for row in rows[1:]] == [
        list(row) for row in zip(texts, texts[::-1], strict=True)
    ]
    assert csv_of_rows(["a", "b"], [{"a": a, "b": b} for a, b in zip(texts, texts[::-1], strict=True)]) == written


@pytest.mark.parametrize("line_end", ["\r", "\n", "\r\n"])
def test_a_line_end_in_a_text_is_quoted_whichever_it_is(line_end: str) -> None:
    assert csv_text(pd.DataFrame({"a": [f"x{line_end}=1"]})) == f'a\n"x{line_end}=1"\n'
