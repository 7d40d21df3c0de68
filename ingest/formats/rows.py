"""Tables as rows of JSON values: parquet, Arrow, CSV and JSON lines, for the exports that are tables."""

from __future__ import annotations

import ast
import csv
import io
import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, cast

from tracejury.ingest.formats.spans import brief
from tracejury.ingest.parse import clean, clean_text, inner_json, parse_documents, to_utf8
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source
from tracejury.ingest.words import counted

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.ipc import RecordBatchFileReader, RecordBatchStreamReader

_LONGEST_LITERAL = 200_000
_PARQUET, _ARROW_FILE, _ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
_BYTES_ID = re.compile(r"(trace|span|parent|parent_?span)_?id", re.IGNORECASE)
"""Columns of ids, which OpenTelemetry's Arrow form keeps as 16 or 8 bytes."""
_COLUMN = re.compile(rb'"name"\s*:\s*"([^"\\]{1,80})"')
csv.field_size_limit(2**31 - 1)


class Row(NamedTuple):
    """One row, its place in the file, and why it could not be read (then `values` is empty)."""

    place: str
    values: dict[str, Json]
    error: IngestError | None = None


def columns_of(sample: FileSample) -> frozenset[str]:
    """The column names of a table: parquet and Arrow (whole files only), the first line of a CSV, columns that list
    their values; else nothing.
    """
    if _is_binary(sample.data):
        return _binary_columns(sample.data) if sample.whole else frozenset()
    if sample.start[:1] in (b"{", b"["):
        listed = sample.start.startswith(b"{") and {"columns", "values"} <= sample.keys
        return (
            frozenset(name.decode("utf-8", "replace") for name in _COLUMN.findall(sample.data))
            if listed
            else frozenset()
        )
    line = sample.start.split(b"\n", 1)[0].decode("utf-8", "replace")
    try:
        return frozenset(next(csv.reader([line], delimiter=_delimiter(sample.start)), []))
    except csv.Error:
        return frozenset()


RowsOf = Callable[[Json], Iterable[dict[str, Json]]]
"""What gives the rows of a document in a form of its own; nothing of any other document."""


def _no_rows(value: Json) -> Iterable[dict[str, Json]]:
    return ()


def read_rows(data: bytes, *, lists: tuple[str, ...] = ("data",), rows_of: RowsOf = _no_rows) -> Iterator[Row]:
    """Each row of parquet, Arrow, CSV, JSON lines, a JSON list, or an object that holds the list under one of `lists`.

    A document of which `rows_of` gives rows is read by it.
    Empty cells and NaN are left out: they mean that the source has no value there.
    """
    if _is_binary(data):
        yield from _binary(data)
        return
    text, _ = to_utf8(data)
    if text.lstrip()[:1] in (b"{", b"["):
        yield from _json(data, lists, rows_of)
    else:
        yield from _csv(text)


def _delimiter(text: bytes) -> str:
    """A tab or a semicolon where the first line has more of them than commas."""
    line = text.split(b"\n", 1)[0]
    return max((",", "\t", ";"), key=lambda sign: line.count(sign.encode()))


def take_rows(
    source: Source, take: Callable[[Row], None], *, lists: tuple[str, ...] = ("data",), rows_of: RowsOf = _no_rows
) -> Generator[Rejected, None, int]:
    """Give every row of a file to `take`; yields and counts those that cannot be read."""
    bad = 0
    for row in read_rows(source.data, lists=lists, rows_of=rows_of):
        try:
            if row.error is not None:
                raise row.error
            take(row)
        except IngestError as error:
            bad += 1
            yield rejected(source.file, error)
    return bad


def _is_binary(data: bytes) -> bool:
    return data.startswith((_PARQUET, _ARROW_FILE, _ARROW_STREAM))


def _binary_columns(data: bytes) -> frozenset[str]:
    import pyarrow.parquet as pq  # pyarrow takes a second to import and few files are parquet

    try:
        if data.startswith(_PARQUET):
            return frozenset(pq.read_schema(io.BytesIO(data)).names)
        return frozenset(_arrow_reader(data).schema.names)
    except (OSError, ValueError):
        return frozenset()


def _arrow_reader(data: bytes) -> RecordBatchFileReader | RecordBatchStreamReader:
    import pyarrow.ipc

    return pyarrow.ipc.open_file(data) if data.startswith(_ARROW_FILE) else pyarrow.ipc.open_stream(data)


def _batches(data: bytes) -> Iterator[RecordBatch]:
    import pyarrow.parquet as pq

    if data.startswith(_PARQUET):
        yield from pq.ParquetFile(io.BytesIO(data)).iter_batches(batch_size=8)
        return
    reader = _arrow_reader(data)
    if isinstance(reader, Iterable):
        yield from reader
    else:
        yield from (reader.get_batch(number) for number in range(reader.num_record_batches))


def _binary(data: bytes) -> Iterator[Row]:
    try:
        number = 0
        for batch in _batches(data):
            for values in batch.to_pylist():
                yield Row(f"row {number}", _present(values))
                number += 1
    except (OSError, ValueError) as error:
        name = "parquet" if data.startswith(_PARQUET) else "Arrow"
        raise IngestError(f"damaged {name} file: {error}", remedy="export it again") from error


def _csv(text: bytes) -> Iterator[Row]:
    lines = io.StringIO(clean_text(text.decode("utf-8", "surrogateescape")), newline="")
    delimiter = _delimiter(text[:65_536])
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        names = next(reader, [])
        end, size = lines.tell(), len(lines.getvalue())
        for number, cells in enumerate(reader, start=2):
            place, begun, end = f"row {number}", end, lines.tell()
            if len(cells) != len(names):
                reason = f"{counted(len(cells), 'cell')}, but {counted(len(names), 'column')} in the header"
                yield Row(place, {}, _damaged_row(reason, place, cells))
            elif end == size and _is_cut(lines.getvalue()[begun:], delimiter):
                yield Row(place, {}, _damaged_row("a quote in it is not closed: the file is cut off", place, cells))
            else:
                yield Row(place, {name: cell for name, cell in zip(names, cells, strict=True) if cell != ""})
    except csv.Error as error:
        raise IngestError(f"not CSV: {error}", remedy="export it again") from error


def _is_cut(row: str, delimiter: str) -> bool:
    """Whether the last row of a file ends within quotes."""
    try:
        list(csv.reader(io.StringIO(row, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def _damaged_row(reason: str, place: str, cells: list[str]) -> IngestError:
    lost = len(",".join(cells).encode("utf-8", "surrogatepass"))
    return IngestError(reason, place=place, remedy="export it again", lost=max(lost, 1))


def _json(data: bytes, lists: tuple[str, ...], rows_of: RowsOf) -> Iterator[Row]:
    for document in parse_documents(data):
        if document.error is not None:
            yield Row(document.place, {}, document.error)
            continue
        value = document.value
        if is_frame(value):
            yield Row(document.place, {}, frame_error(document.place))
            continue
        own = [Row(document.place or f"row {number}", _present(values)) for number, values in enumerate(rows_of(value))]
        if own:
            yield from own
            continue
        if isinstance(value, dict):
            content = _side_by_side(value)
            content = next((rows for name in lists if (rows := _listed(value.get(name))) is not None), None) or content
            value = [value] if content is None else content
        for number, item in enumerate(value if isinstance(value, list) else [value]):
            place = document.place if isinstance(document.value, dict) and item is document.value else f"row {number}"
            if isinstance(item, dict):
                yield Row(place or f"row {number}", _present(item))
            else:
                yield Row(place, {}, IngestError(f"{brief(item)} is not a row", place=place, remedy="export it again"))


def _listed(value: Json) -> list[Json] | None:
    """The rows under a name: a list of them, or an object of them by their ids, as Genkit's developer store has it."""
    if (
        isinstance(value, dict)
        and value
        and all(isinstance(row, dict) and name in row.values() for name, row in value.items())
    ):
        return list(value.values())
    return value if isinstance(value, list) else None


def is_frame(value: Json) -> bool:
    """Whether a document is a pandas frame by columns or by index, or split into names and cells."""
    if not isinstance(value, dict) or len(value) < 2:
        return False
    if {"columns", "data"} <= value.keys() and isinstance(value["data"], list):
        return any(isinstance(row, list) for row in value["data"][:1])
    parts = [part.keys() for part in value.values() if isinstance(part, dict)]
    return len(parts) == len(value) and bool(parts[0]) and all(part == parts[0] for part in parts)


def frame_error(place: str) -> IngestError:
    """The refusal of such a frame."""
    return IngestError(
        "a pandas frame by columns, not by rows",
        place=place,
        remedy="write it by frame.to_json(orient='records') or frame.to_parquet()",
    )


def _side_by_side(value: dict[str, Json]) -> Json:
    """The rows of an answer that lists its columns, each with its values; None where it is none."""
    columns = value.get("columns")
    if not isinstance(columns, list) or not columns:
        return None
    arrays = {
        str(one["name"]): one["values"] for one in columns if isinstance(one, dict) and {"name", "values"} <= {*one}
    }
    if len(arrays) != len(columns) or not all(isinstance(values, list) for values in arrays.values()):
        return None
    lists = cast("dict[str, list[Json]]", arrays)
    count = max(map(len, lists.values()))
    return [{name: values[n] for name, values in lists.items() if n < len(values)} for n in range(count)]


def _present(values: Mapping[str, object]) -> dict[str, Json]:
    return {
        key: item.hex()
        if isinstance(item, bytes) and _BYTES_ID.fullmatch(key) and len(item) in (8, 16)
        else plain(item)
        for key, item in values.items()
        if not _is_missing(item)
    }


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def plain(value: object) -> Json:
    """A cell as JSON: times as ISO text, bytes and strings cleaned, lists and objects throughout; nulls left out."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return clean_text(value.decode("utf-8", "surrogateescape"))
    if isinstance(value, dict):
        # pandas writes one struct for all rows: keys that this row has not are null
        return {clean_text(str(key)): plain(item) for key, item in value.items() if not _is_missing(item)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return cast("Json", value) if isinstance(value, (bool, int, float)) else str(value)


def opened(value: Json) -> Json:
    """A cell that holds a list or an object as JSON text or, in CSV files of pandas, as a Python literal."""
    if not isinstance(value, str) or value[:1] not in ("{", "[", '"'):
        return value
    content = inner_json(value)
    if content is not None or value[0] == '"':
        return value if content is None else content
    if len(value) > _LONGEST_LITERAL:
        return value
    try:
        literal = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return value
    return clean(plain(literal))[0] if isinstance(literal, (dict, list)) else value
