"""Tables as LaTeX compile whatever their text holds, and print it sign by sign."""

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracejury.judging.reports.latex import LONG, latex_cell, latex_table, latex_text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\u202eb", r"a\texttt{U+202E}b"),  # right-to-left override: invisible, and unknown to pdfLaTeX
        ("\u200bx\ufeff", r"\texttt{U+200B}x\texttt{U+FEFF}"),
        ("e\u0301", "é"),  # a mark on its letter is one sign
        ("x\u0335", r"x\anychar{0335}{" + "\u0335}"),
        ("中", r"\anychar{4E2D}{中}"),
        ("😀", r"\anychar{1F600}{😀}"),
        ("\x00\x1b[0m", r"\texttt{U+0000}\texttt{U+001B}[0m"),
        ("\ud800", r"\texttt{U+D800}"),
        ("--flag", r"-\kern0pt{}-flag"),
        ("<<a>>", r"\textless{}\kern0pt{}\textless{}a\textgreater{}\kern0pt{}\textgreater{}"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("50 % of $x_1 & #2 ~ ^", r"50 \% of \$x\_1 \& \#2 \textasciitilde{} \textasciicircum{}"),
        ("'q' `b`", r"\textquotesingle{}q\textquotesingle{} \textasciigrave{}b\textasciigrave{}"),
        ("[0.1, 0.2]", "{}[0.1, 0.2]"),  # after a row's end it would be taken for its option
        ("*", "{}*"),
        ("one\n\ntwo\u2028three", "one two three"),
        ("zoë – “ß”", "zoë – “ß”"),
        ("≤ 3 ± 1", r"\ensuremath{\le} 3 \ensuremath{\pm} 1"),
    ],
)
def test_what_is_written(text: str, written: str) -> None:
    assert latex_cell(text) == written


def test_a_caption_holds_codes_alone_since_it_is_written_to_a_file_of_its_own() -> None:
    assert latex_text("中 x") == r"\texttt{U+4E2D} x"


ANY = st.text(st.characters(codec=None), max_size=40)


@given(ANY)
def test_no_sign_reaches_tex_that_it_would_not_print(text: str) -> None:
    """What is left without the commands we wrote are plain signs; one line; braces in pairs."""
    cell = latex_cell(text)
    assert "\n" not in cell
    known = re.sub(r"\\anychar\{[0-9A-F]{4,6}\}\{.\}|\\texttt\{U\+[0-9A-F]{4,6}\}", "", cell)
    known = re.sub(r"\\(text[a-z]+|kern0pt)\{\}|\\ensuremath\{(\\[a-z]+|-)\}|\\[{}$&#%_]", "", known.removeprefix("{}"))
    assert not re.search(r"[\\{}$&#%_~^|<>`']", known)
    assert known.isprintable()
    assert latex_cell(text.split()[0]) != "" if text.split() else cell == ""


def test_a_table_has_caption_label_and_numbers_to_the_right() -> None:
    cells = pd.DataFrame({"dimension": ["LC"], "n": ["3"]})
    text = latex_table(cells, title="Odd", name="odd", numeric=["n"], notes=["Why."], about=["made"])
    assert r"\begin{tabular}{lr}" in text
    assert r"\caption{Odd. Why.}" in text
    assert r"\label{tab:odd}" in text
    assert "\n% made\n" in text
    assert text.count("{") == text.count("}")


def test_a_long_table_breaks_over_pages_and_long_text_over_lines() -> None:
    cells = pd.DataFrame({"text": ["word " * 20] * (LONG + 1)})
    text = latex_table(cells, title="Odd")
    assert r"\begin{longtable}{p{0.4\linewidth}}" in text
    assert r"\resizebox" not in text.split(r"\begin{longtable}")[1]
