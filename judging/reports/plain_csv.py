"""Inputs of the report tables from plain CSV files: no workspace, any delimiter, every fault with its file and line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

import pandas as pd

from tracejury.ingest.spreadsheet import plain_cell
from tracejury.ingest.trace import Json
from tracejury.judging.agreement.inputs import COLUMNS, InputName
from tracejury.judging.agreement.match_rates import RULE_RATES

DELIMITERS: Final = (",", ";", "\t", "|")
MISSING: Final = frozenset({"", "na", "n/a", "nan", "none", "null", "<na>"})
"""What stands for a missing number or flag, in any case. Of an id or a text only the empty cell is missing."""
_NUMBERS: Final[dict[InputName, tuple[str, ...]]] = {
    "score_pairs": ("reference_score", "judge_score"),
    "ratings": ("value",),
    "findings": ("citations", "invalid_citations"),
    "repeats": ("first", "second"),
    "person_pairs": ("reviewers",),
    "votes": ("people", "votes"),
    "jury_votes": ("members", "voted", "scores", "tied"),
    "other_score_pairs": ("reference_score", "judge_score"),
    "trail_scores": ("reference_score", "judge_score"),
    "unit_labels": ("inclusion",),
    "evidence_pairs": ("iou",),
    "costs": ("cost_usd",),
    "rule_rates": tuple(name for name in RULE_RATES if name != "rule"),
}
_FLAGS: Final[dict[InputName, tuple[str, ...]]] = {
    "error_pairs": ("relevant", "caught", "localized"),
    "other_error_pairs": ("relevant", "caught", "localized"),
    "person_pairs": ("relevant", "caught", "localized"),
    "findings": ("matched",),
    "unit_labels": ("judge_label", "reference_label"),
}
_MAY_BE_EMPTY: Final = frozenset({"impact", "review", "text", "category", "location", "description", "slice"})
_WORDS: Final = dict.fromkeys(("true", "yes", "1", "1.0"), True) | dict.fromkeys(("false", "no", "0", "0.0"), False)


class CsvError(ValueError):
    """A file that cannot be used: which one, where in it, what is wrong, what to do."""


@dataclass(frozen=True, kw_only=True)
class CsvFile:
    """A file that was read: what stands in the manifest of a report."""

    file: str
    rows: int
    blake2b: str

    def to_json(self) -> dict[str, Json]:
        return {"file": self.file, "rows": self.rows, "blake2b": self.blake2b}


@dataclass(frozen=True, kw_only=True)
class PlainInputs:
    """The frames of a folder by the name of their input, the files they came from, and CSV files that are none."""

    frames: dict[InputName, pd.DataFrame]
    files: tuple[CsvFile, ...]
    unused: tuple[str, ...]


def read_folder(folder: Path) -> PlainInputs:
    """Read every `<input>.csv` of the folder. Raises `CsvError`, also where there is none."""
    frames: dict[InputName, pd.DataFrame] = {}
    files: list[CsvFile] = []
    for name in COLUMNS:
        path = folder / f"{name}.csv"
        if path.is_file():
            data = path.read_bytes()
            frames[name] = read_input(data, name, str(path))
            digest = blake2b(data, digest_size=16).hexdigest()
            files.append(CsvFile(file=path.name, rows=len(frames[name]), blake2b=digest))
    unused = sorted(path.name for path in folder.glob("*.csv") if path.stem not in frames)
    if not frames:
        there = f"it holds {', '.join(unused)}" if unused else "it holds no CSV file"
        raise CsvError(f"{folder}: none of its files is an input ({there}); name them {_names()}")
    return PlainInputs(frames=frames, files=tuple(files), unused=tuple(unused))


def read_input(data: bytes, name: InputName, file: str) -> pd.DataFrame:
    """One input from the bytes of a CSV file: ids and names as text, numbers, flags; NaN or None where missing.

    UTF-8 with or without a byte order mark; delimited by comma, semicolon, tab or bar, as its first line is; with
    semicolons a number may have a decimal comma. Raises `CsvError` naming the file, the line and the remedy.
    """
    text = _decoded(data, file)
    header, delimiter = _header(text, name, file)
    cells, lines = _cells(text, delimiter, len(header), file)
    at = _Place(file=file, lines=lines)
    needed = COLUMNS[name]
    columns: dict[str, pd.Series] = {}
    for title, column in zip(header, cells, strict=True):
        values = pd.Series(column, dtype=object)
        columns[title] = _typed(values, name, title, at, delimiter == ";") if title in needed else _text(values)
    return pd.DataFrame(columns, columns=header)


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Says where row n (from 0) of the data stands: a cell may hold line breaks, so rows are not lines."""

    file: str
    lines: list[int]

    def __call__(self, row: int) -> str:
        return f"{self.file}, line {self.lines[row]}"


def _cells(text: str, delimiter: str, width: int, file: str) -> tuple[list[tuple[str, ...]], list[int]]:
    """The cells by column, and the line of each row; pandas would shift a row that is too long and fill a short one."""
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for cells in reader:
            if cells:  # not a blank line
                if len(cells) != width and lines:
                    much = "fewer" if len(cells) < width else "more"
                    raise CsvError(
                        f"{file}, line {reader.line_num}: {much} cells than the first line, which has {width:,}; "
                        f"quote a cell that holds {delimiter!r}, leave a missing one empty"
                    )
                rows.append(cells)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise CsvError(f"{file}, line {reader.line_num}: {error}; write the file as CSV again") from error
    return list(zip(*rows[1:], strict=True)) or [()] * width, lines[1:]


def _decoded(data: bytes, file: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CsvError(f"{file}: is UTF-16, not UTF-8; save it as 'CSV UTF-8'")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CsvError(
            f"{file}, line {line}: byte {data[error.start]:#04x} is not UTF-8; save the file as 'CSV UTF-8'"
        ) from error
    if not text.strip():
        raise CsvError(f"{file}: is empty; its first line must name the columns")
    return text


def _header(text: str, name: InputName, file: str) -> tuple[list[str], str]:
    """Column names of the first line, and what delimits them: the delimiter that finds the most needed columns."""
    first = next(line for line in re.split(r"\r\n|\r|\n", text) if line.strip())
    read = {sign: [cell.strip() for cell in next(csv.reader([first], delimiter=sign))] for sign in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda sign: len(set(read[sign]) & set(COLUMNS[name])))
    header = read[delimiter]
    absent = [column for column in COLUMNS[name] if column not in header]
    if absent:
        raise CsvError(
            f"{file}, line 1: lacks {_plural(absent)} {', '.join(absent)}; it has {', '.join(header)}. "
            f"{name}.csv needs {', '.join(COLUMNS[name])}"
        )
    doubled = sorted({column for column in header if header.count(column) > 1})
    if doubled:
        raise CsvError(f"{file}, line 1: the column {doubled[0]!r} appears twice; keep one")
    return header, delimiter


def _typed(column: pd.Series, name: InputName, title: str, at: _Place, decimal_comma: bool) -> pd.Series:
    if title in _NUMBERS.get(name, ()):
        return _parsed(column, title, at, lambda text: _number(text, decimal_comma=decimal_comma), "a number")
    if title in _FLAGS.get(name, ()):
        return _parsed(column, title, at, lambda text: _WORDS[text.lower()], "true or false")
    known = _text(column)
    empty = known.isna().to_numpy()
    if title not in _MAY_BE_EMPTY and empty.any():
        raise CsvError(f"{at(int(empty.argmax()))}: {title} is empty; every row needs one")
    return known


def _parsed(column: pd.Series, title: str, at: _Place, read: Callable[[str], float | bool], expected: str) -> pd.Series:
    """Each distinct cell read once; a missing one is None (of numbers NaN)."""
    values: dict[str, float | bool | None] = {}
    for cell in column.unique():
        text = str(cell).strip()
        try:
            values[cell] = None if text.lower() in MISSING else read(text)
        except (ValueError, KeyError) as error:
            row = int((column == cell).to_numpy().argmax())
            raise CsvError(
                f"{at(row)}: {title} is {text[:60]!r}; expected {expected}, or an empty cell where it is missing"
            ) from error
    parsed = column.map(values)
    return parsed.astype("float64") if expected == "a number" else parsed.astype(object).where(parsed.notna(), None)


def _number(text: str, *, decimal_comma: bool) -> float:
    return float(text.replace(",", ".") if decimal_comma else text)


def _text(column: pd.Series) -> pd.Series:
    """As it was before a spreadsheet's guard, so that a report made again has the names and texts of the first."""
    plain = column.map(plain_cell).astype(object)
    return plain.where(plain != "", None)


def _names() -> str:
    return ", ".join(f"{name}.csv" for name in COLUMNS)


def _plural(columns: Sequence[str]) -> str:
    return "the column" if len(columns) == 1 else "the columns"
