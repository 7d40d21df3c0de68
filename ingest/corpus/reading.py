"""Single traces read back from a corpus, on demand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracejury.ingest.corpus.layout import REBUILD, Corpus, Record, readable
from tracejury.ingest.corpus.rows import SCHEMAS, trace_of
from tracejury.ingest.trace import IngestError, Trace

Row = dict[str, Any]
_TABLES = ("traces", "spans", "messages")


def read_trace(corpus: Corpus, trace_id: str, *, source: str | None = None) -> Trace:
    """Read one trace, as `ingest.store.load` gives it but for its log records; only its partition where it is named.

    Raises `IngestError` where the corpus has no such trace, or a file of it cannot be read.
    """
    is_wanted = pc.field("trace_id") == trace_id
    records = [record for record in corpus.records() if source in (None, record.id)]
    places = corpus.tables("traces", records, columns=["date", "source"], condition=is_wanted)
    dates = pa.concat_tables(places).to_pylist()
    for record in records:
        for part in parts_of(record):
            if any(f"date={row['date']}/source={row['source']}/" in part.files["traces"][0] for row in dates):
                for trace in _traces(corpus, part, is_wanted):
                    return trace
    raise IngestError(f"no trace {trace_id} is in {corpus.url}", remedy=REBUILD)


def parts_of(record: Record) -> Iterator[Record]:
    """Give a partition in parts: those files of its tables that hold the same traces, some 100 MB of rows."""
    for file in record.files["traces"]:
        name = file.partition("/")[2]
        there = {table: [f for f in record.files[table] if f.partition("/")[2] == name] for table in _TABLES}
        yield replace(record, files=there)


def traces_of(corpus: Corpus, part: Record) -> Iterator[Trace]:
    """Read every trace of a part of a partition."""
    return _traces(corpus, part, None)


def _traces(corpus: Corpus, part: Record, condition: pc.Expression | None) -> Iterator[Trace]:
    spans, messages = (_by_trace(_rows(corpus, part, table, condition)) for table in ("spans", "messages"))
    for row in _rows(corpus, part, "traces", condition):
        with readable(corpus.path(part.files["traces"][0])):
            trace = trace_of(row, spans.pop(row["trace_id"], []), messages.pop(row["trace_id"], []))
        yield trace


def _by_trace(rows: list[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["trace_id"]].append(row)
    return groups


def _rows(corpus: Corpus, part: Record, table: str, condition: pc.Expression | None) -> list[Row]:
    table_rows = corpus.tables(table, [part], columns=SCHEMAS[table].names, condition=condition)
    rows: list[Row] = _with_plain_times(pa.concat_tables(table_rows)).to_pylist()
    return rows


def _with_plain_times(table: pa.Table) -> pa.Table:
    """Times as integers: microseconds since 1970, which pandas and Python could round."""
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(place, column.name, table.column(place).cast(pa.int64()))
    return table
