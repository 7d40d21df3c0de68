"""Cells of text as a LaTeX table that compiles with pdfLaTeX, XeLaTeX and LuaLaTeX, whatever the text holds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

import pandas as pd

LONG: Final = 40
"""More rows than this do not fit a page: the table may break over pages."""
WIDE: Final = 60
"""More signs than this are broken into lines."""
_SHRUNK: Final = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
_TABLE_END: Final = "\\end{tabular}"
_NEEDS: Final = (
    "% Needs \\usepackage{booktabs,graphicx,longtable}. A character that the font or engine does not have is printed\n"
    "% as its code, such as U+4E2D: for text in other scripts use LuaLaTeX or XeLaTeX and a font that has them.\n"
)
_ANY_CHARACTER: Final = (
    '\\protected\\def\\anychar#1#2{\\ifdefined\\Uchar\\iffontchar\\font"#1 #2\\else\\texttt{U+#1}\\fi'
    "\\else\\texttt{U+#1}\\fi}\n"
)
"""Its code and itself: printed where the engine is one of Unicode and the font has it."""
_WRITTEN: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}", "<": r"\textless{}",
        ">": r"\textgreater{}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}", "−": r"\ensuremath{-}",
        "≤": r"\ensuremath{\le}", "≥": r"\ensuremath{\ge}", "≠": r"\ensuremath{\ne}", "≈": r"\ensuremath{\approx}",
        "±": r"\ensuremath{\pm}", "×": r"\ensuremath{\times}",
    }
)  # fmt: skip
_EVERYWHERE: Final = frozenset(
    "¡¢£¥§¨©ª®°±´¶·º¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõö÷øùúûüýÿĀāĂăĆćĈĉĊċČčĎďĒēĔĕĖėĚěĜĝĞğĠġĢģĤĥĨĩĪī"
    "ĬĭİıĴĵĶķĹĺĻļĽľŁłŃńŅņŇňŌōŎŏŐőŒœŔŕŖŗŘřŚśŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŴŵŶŷŸŹźŻżŽžȘșȚț–—‘’“”†‡•…€™"
)
"""What pdfLaTeX's own fonts have without a package, and those of LuaLaTeX and XeLaTeX too."""
_LIGATURES: Final = re.compile(r"-(?=-)|,(?=,)|\\text(less|greater)\{\}(?=\\text\1)")
"""Signs that TeX joins with the next to one of another kind."""
_ARGUMENT: Final = ("[", "*")  # after the end of a row they are an option of it


def latex_table(
    cells: pd.DataFrame,
    *,
    title: str,
    name: str = "",
    numeric: Iterable[str] = (),
    notes: Sequence[str] = (),
    about: Sequence[str] = (),
) -> str:
    """Cells of text as a table with a caption; `notes` follow the title in it, `about` stands above as comments.

    Its label is `tab:` and its `name`. A table wider than the page is made smaller.
    Columns that are `numeric` are aligned to the right; empty where missing.
    """
    right = set(numeric)
    text = cells.astype("object").where(cells.notna(), "").map(latex_cell)
    text.columns = pd.Index([latex_cell(name) for name in cells.columns])
    table = text.to_latex(
        index=False,
        escape=False,
        longtable=len(text) > LONG,
        column_format="".join("r" if str(head) in right else _left(text.iloc[:, n]) for n, head in enumerate(cells)),
        label=f"tab:{name}" if name else None,
        caption=" ".join([latex_text(title).removesuffix(".") + ".", *map(latex_text, notes)]),
    )
    comments = "".join(f"% {line}\n" for line in about)
    return _NEEDS + comments + _ANY_CHARACTER + _fitted(table)


def _fitted(table: str) -> str:
    """A table of one page in the middle of it, and no wider; one of several pages as it is."""
    start = table.replace("\\begin{table}\n", "\\begin{table}\n\\centering\n", 1)
    return start.replace("\\begin{tabular}", _SHRUNK + "\\begin{tabular}", 1).replace(_TABLE_END, _TABLE_END + "}", 1)


def _left(cells: pd.Series) -> str:
    """Long text is broken into lines."""
    return "l" if max(map(len, cells), default=0) <= WIDE else "p{0.4\\linewidth}"


def latex_cell(value: object) -> str:
    """A value as one cell: text on one line (a blank line would end the cell), never taken for an option of the row."""
    text = latex_text(" ".join(str(value).split()), is_cell=True)
    return "{}" + text if text.startswith(_ARGUMENT) else text


def latex_text(text: str, *, is_cell: bool = False) -> str:
    """Text as LaTeX prints it sign by sign; of a character that not every engine has, the code.

    In a cell the character stands beside its code, for engines and fonts that have it; a caption holds the code alone,
    since it is written to a file of its own.
    """
    signs = "".join(_sign(one, is_cell) for one in unicodedata.normalize("NFC", text))
    return _LIGATURES.sub(r"\g<0>\\kern0pt{}", signs)


def _sign(sign: str, is_cell: bool) -> str:
    code = f"{ord(sign):04X}"
    if (sign.isascii() and sign.isprintable()) or sign in _EVERYWHERE or ord(sign) in _WRITTEN:
        return sign.translate(_WRITTEN)
    if is_cell and sign.isprintable():  # neither control, format, surrogate, private use nor unassigned
        return f"\\anychar{{{code}}}{{{sign}}}"
    return f"\\texttt{{U+{code}}}"
