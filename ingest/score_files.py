"""Files of scores and labels made elsewhere, as records: CSV, JSON lines, JSON pages and arrays, Parquet.

What a record means is for `score_forms`; here each only gets its place, so that a refused one can be named.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tracejury.ingest.parse import parse_document, to_utf8
from tracejury.ingest.spreadsheet import plain_cell
from tracejury.ingest.trace import IngestError, Json
from tracejury.ingest.words import counted

DELIMITERS = (",", ";", "\t", "|")
_NAMED_DELIMITER = re.compile(r'"?sep=([,;|\t])"?\r?\n')
_PAGES = (
    "data",
    "results",
    "scores",
    "assessments",
    "annotations",
    "feedback",
    "feedbacks",
    "records",
    "items",
    "tasks",
    "testCases",
    "test_cases",
    "test_results",
    "labels",
    "ratings",
    "reviews",
    "evaluations",
    "rows",
)
_PAGES_OF_OTHERS = ("content", "result", "events")
"""Where the answers of Opik, Weave and Braintrust hold their records, unless the page is itself about a trace."""
_SHARED = frozenset({"traceid", "spanid", "annotator", "rater", "reviewer"})
"""What an object may say once of all opinions that it lists; names without case and signs."""
_MOST_CELL = 2**31 - 1  # characters; csv's own limit is 131,072


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One object of a file and its place there ("line 3", "[2]")."""

    place: str
    values: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordFile:
    """A file's records, and the pieces of it that are none, each with its place."""

    file: str
    records: tuple[Record, ...]
    broken: tuple[tuple[str, str], ...] = ()


def read_records(data: bytes, file: str) -> RecordFile:
    """The records of a file, whatever its form. Raises `IngestError` for one that cannot be read at all."""
    if data.startswith(b"PAR1"):
        return RecordFile(file=file, records=tuple(_of_parquet(data)))
    text = _text(data)
    if not text.strip():
        raise IngestError("the file is empty", remedy="export it again")
    if text.lstrip().startswith(("{", "[")):
        return _of_json(text, file)
    return _of_csv(text, file)


def _text(data: bytes) -> str:
    converted, _ = to_utf8(data)
    try:
        return converted.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = converted.count(b"\n", 0, error.start) + 1
        raise IngestError("a byte that is not UTF-8", place=f"line {line}", remedy="save the file as UTF-8") from error


def _of_json(text: str, file: str) -> RecordFile:
    try:
        value = parse_document(text.encode()).value
    except IngestError:
        lines = _of_lines(text, file)
        if lines is None:
            raise
        return lines
    place = "" if "\n" in text.strip() or isinstance(value, list) else "line 1"
    broken = [(where, "no JSON object") for where in _no_objects("", value)]
    return RecordFile(file=file, records=tuple(_of_page(place, value)), broken=tuple(broken))


def _of_lines(text: str, file: str) -> RecordFile | None:
    """The objects of a file of JSON lines; None where not even the first line is one."""
    records: list[Record] = []
    broken: list[tuple[str, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            broken.append((f"line {number}", f"not JSON: {error}"))
            continue
        if isinstance(value, dict):
            records += _of_page(f"line {number}", value)
        else:
            broken.append((f"line {number}", "no JSON object"))
    return RecordFile(file=file, records=tuple(records), broken=tuple(broken)) if records else None


def _of_page(place: str, page: Json) -> Iterator[Record]:
    """The objects of a list, of the list that a page holds (which may name their trace and author), or the object."""
    if isinstance(page, list):
        yield from (Record(place=f"{place}[{n}]", values=one) for n, one in enumerate(page) if isinstance(one, dict))
    elif isinstance(page, dict):
        key = _list_key(page)
        if key is None and (inner := _inner_page(page)) is not None:
            yield from _of_page(f"{place} {inner}".strip(), page[inner])
        elif key is None and _is_by_trace(page):
            for trace_id, held in page.items():
                for record in _of_page(f"{place} {trace_id}".strip(), held):
                    yield replace(record, values={"trace_id": trace_id, **record.values})
        elif key is None:
            yield Record(place=place or "the file", values=page)
        else:
            shared = {name: item for name, item in page.items() if _plain(name) in _SHARED}
            for record in _of_page(f"{place} {key}".strip(), page[key]):
                yield replace(record, values={**shared, **record.values})


def _is_by_trace(page: Mapping[str, Json]) -> bool:
    """Whether an object holds what was said of each trace under the trace's id."""
    held = [one for value in page.values() for one in (value if isinstance(value, list) else [value])]
    return bool(held) and all(
        isinstance(one, dict) and not _OF_RECORDS.isdisjoint(map(_plain, one)) and "traceid" not in map(_plain, one)
        for one in held
    )


_OF_RECORDS = frozenset({"score", "scores", "rating", "ratings", "annotator", "rater", "dimension"})
"""Fields by which an object shows that it is a record of a plain file."""


def _list_key(page: Mapping[str, Json]) -> str | None:
    """The key of a page's list of records; None for an object that is a record itself."""
    if {"annotations", "data"} <= page.keys() and isinstance(page["data"], dict):
        return None  # a task of Label Studio
    if "errors" in page or "datasource_item" in page:
        return None  # a TRAIL annotation; an item of OpenAI's evals
    is_record = any(_plain(name) in _SHARED for name in page)
    for key in _PAGES if is_record else (*_PAGES, *_PAGES_OF_OTHERS):
        value = page.get(key)
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            return key
    return None


def _inner_page(page: Mapping[str, Json]) -> str | None:
    """The key of the object in which a page holds its records: promptfoo's results, a request to Datadog."""
    for key in () if "event_id" in page else ("results", "data"):
        inner = page.get(key)
        if isinstance(inner, dict) and (_list_key(inner) is not None or {"type", "attributes"} <= inner.keys()):
            return key
    return None


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _no_objects(place: str, page: Json) -> list[str]:
    if isinstance(page, list):
        return [f"{place}[{number}]" for number, one in enumerate(page) if not isinstance(one, dict)]
    return []


def _of_csv(text: str, file: str) -> RecordFile:
    csv.field_size_limit(_MOST_CELL)
    text = text if "\n" in text else text.replace("\r", "\n")  # as some spreadsheets still end lines
    named = _NAMED_DELIMITER.match(text)  # how Excel is told
    line = 1 if named is None else 2
    text = text if named is None else text[named.end() :]
    header, delimiter = _header(text, None if named is None else named[1])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    first = line - 1
    records: list[Record] = []
    broken: list[tuple[str, str]] = []
    try:
        for number, cells in enumerate(reader):
            place, line = f"line {line}", first + reader.line_num + 1
            if number == 0 or not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                broken.append(
                    (place, f"{counted(len(cells), 'cell')}; the first line names {counted(len(header), 'column')}")
                )
                continue
            values: dict[str, Json] = {name: plain_cell(cell) for name, cell in zip(header, cells, strict=True) if name}
            records.append(Record(place=place, values=values))
    except csv.Error as error:
        broken.append((f"line {line}", f"not CSV: {error}"))
    return RecordFile(file=file, records=tuple(records), broken=tuple(broken))


def _header(text: str, delimiter_text: str | None) -> tuple[list[str], str]:
    """The names of the first line, and what delimits them: what is told, else what gives the most names.

    Raises `IngestError` for a name given twice and for a line that is no CSV.
    """
    first = text.lstrip("\r\n").split("\n", 1)[0].rstrip("\r")
    try:
        read = {sign: _cells(first, sign) for sign in DELIMITERS}
    except csv.Error as error:
        raise IngestError(f"not CSV: {error}", place="line 1", remedy="export it again") from error
    delimiter = delimiter_text or max(DELIMITERS, key=lambda sign: len(read[sign]))
    names = [name for name in read[delimiter] if name]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise IngestError(f"the column {twice[0]!r} appears twice", place="line 1", remedy="keep one of them")
    return read[delimiter], delimiter


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]


def _of_parquet(data: bytes) -> Iterator[Record]:
    import pyarrow as pa  # takes a second to import, and few files are Parquet
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(io.BytesIO(data)).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise IngestError(f"damaged Parquet: {error}", remedy="export it again") from error
    yield from (Record(place=f"row {number}", values=row) for number, row in enumerate(rows))
