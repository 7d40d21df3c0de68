"""Counts of a corpus by agent, model, tool, day and dimension: of each partition once, and added up for all of them.

The rows of a trace stand in one file of a table and in one partition, so numbers of distinct traces add exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracejury.ingest.corpus.layout import ALL_COUNTS, NO_DATE, Corpus, Record, reached, readable
from tracejury.ingest.corpus.layout import COUNTS as TABLE
from tracejury.ingest.trace import IngestError
from tracejury.judging.corpus.schemas import COUNTS, FINDINGS, SCORES
from tracejury.judging.records import ANSWERED_STATES

COUNTS_VERSION: Final = 1
"""Of the table `counts`: partitions with counts of another version are counted again, not judged again."""
Facet = Literal["agent", "model", "tool", "day"]
FACETS: Final[tuple[Facet, ...]] = get_args(Facet)
ALL: Final = "all"
NONE: Final = "(none)"
"""Spans that name no agent, model or tool, and findings that cite no such span."""
OF_SPANS: Final[Mapping[str, str]] = {"agent": "agent", "model": "model", "tool": "tool_name", "day": "date"}
OF_FINDINGS: Final[Mapping[str, str]] = {"agent": "agent", "model": "model", "tool": "tool", "day": "date"}
_NUMBERS: Final = COUNTS.names[2:]
_AT_ONCE = 1_000  # files of counts read together: a file store answers many requests in the time of one


def counted(corpus: Corpus, record: Record) -> Record:
    """Count a judged partition into a file and give the record that names it; nothing is committed."""
    table = added(_counts(corpus, record))
    name = f"part-{record.generation}-{record.checked}-{COUNTS_VERSION}.parquet"
    file = f"{TABLE}/date={NO_DATE}/source={record.id}/{name}"
    corpus.write_table(file, table)
    return replace(record, files={**record.files, TABLE: [file]}, counted=COUNTS_VERSION)


def add_all(corpus: Corpus) -> None:
    """Write the sums over all partitions; one whose counts are damaged or gone is counted again."""
    records = corpus.records()
    table = COUNTS.empty_table()
    for first in range(0, len(records), _AT_ONCE):
        table = added([table, *_counts_of(corpus, records[first : first + _AT_ONCE])])
    state = sorted((record.id, record.generation, record.checked) for record in records)
    version = sha256(repr((COUNTS_VERSION, state)).encode()).hexdigest()
    corpus.write_table(ALL_COUNTS, table.replace_schema_metadata({"version": version}))


def _counts_of(corpus: Corpus, records: Sequence[Record]) -> Iterator[pa.Table]:
    paths = [corpus.path(record.files[TABLE][0]) for record in records]
    bodies = corpus.fs.cat(paths, on_error="omit")
    for path, record in zip(paths, records, strict=True):
        try:
            yield _parsed(path, bodies.get(path, b""))
        except IngestError:
            counted(corpus, record)
            yield _parsed(path, corpus.fs.cat_file(path))


def all_counts(corpus: Corpus) -> pa.Table:
    """Read the sums over all partitions; `version_of` tells whether the corpus changed since.

    Raises `IngestError` where there is no whole corpus, or where no check ended since the last build.
    """
    corpus.require_whole()
    path, remedy = corpus.path(ALL_COUNTS), f"tracejury corpus check {corpus.url}"
    with reached(corpus.url):
        body = corpus.fs.cat_file(path) if corpus.fs.exists(path) else None
    if body is None:
        raise IngestError(f"{corpus.url} is not counted: no check has counted it since its last build", remedy=remedy)
    try:
        return _parsed(path, body)
    except IngestError as error:
        raise IngestError(error.reason, remedy=remedy) from error


def version_of(counts: pa.Table) -> str:
    """Give what changes whenever rows of the corpus or its findings change."""
    return str((counts.schema.metadata or {}).get(b"version", b""), "utf-8")


def added(tables: Iterable[pa.Table]) -> pa.Table:
    """Add up tables of COUNTS, or of some of its columns: one row per facet and value; empty stays empty."""
    rows = pa.concat_tables([COUNTS.empty_table(), *tables], promote_options="default")
    sums = rows.group_by(["facet", "value"]).aggregate([(name, "sum") for name in _NUMBERS])
    return sums.rename_columns([name.removesuffix("_sum") for name in sums.column_names]).select(COUNTS.names)


def _parsed(path: str, body: bytes) -> pa.Table:
    with readable(path):
        table = pq.read_table(pa.BufferReader(body), page_checksum_verification=True)
        table.validate(full=True)
        return table.cast(COUNTS.with_metadata(table.schema.metadata))


def _counts(corpus: Corpus, record: Record) -> Iterator[pa.Table]:
    """Count the files of a partition, one after another."""
    of_record = {name: [record.rows.get(name, 0)] for name in ("spans", "traces", "rejected")}
    yield _rows(ALL, [ALL], **of_record, **{name: [0] for name in ("judged", "findings", "traces_with_findings")})
    facets: dict[str, str] = {**OF_FINDINGS, "dimension": "dimension"}
    of_spans = ["trace_id", *OF_SPANS.values()]
    for spans in corpus.tables("spans", [record], columns=of_spans):
        for facet, column in OF_SPANS.items():
            yield _by(spans, facet, column, "spans", "traces")
    of_findings = ["trace_id", "dimension", *OF_FINDINGS.values()]
    for findings in corpus.tables("findings", [record], columns=of_findings, schema=FINDINGS):
        for name, column in facets.items():
            yield _by(findings, name, column, "findings", "traces_with_findings")
        traces = [pc.count_distinct(findings["trace_id"]).as_py()]
        yield _rows(ALL, [ALL], findings=[findings.num_rows], traces_with_findings=traces)
    for scores in corpus.tables("scores", [record], columns=["trace_id", "dimension", "state"], schema=SCORES):
        yield _rows(ALL, [ALL], judged=[pc.count_distinct(scores["trace_id"]).as_py()])
        answered = scores.filter(pc.is_in(scores["state"], pa.array(sorted(ANSWERED_STATES))))
        yield _by(answered, "dimension", "dimension", None, "judged")


def _by(rows: pa.Table, facet: str, column: str, of_rows: str | None, of_traces: str) -> pa.Table:
    """Count the rows of one file with each value, and their traces."""
    values = pc.fill_null(rows[column].cast(pa.string()), NONE)
    table = pa.table({"value": values, "trace_id": rows["trace_id"]}).group_by("value")
    counts = table.aggregate([("trace_id", "count"), ("trace_id", "count_distinct")])
    named = {of_traces: counts["trace_id_count_distinct"]}
    named |= {} if of_rows is None else {of_rows: counts["trace_id_count"]}
    return _rows(facet, counts["value"], **named)


def _rows(facet: str, values: object, **numbers: object) -> pa.Table:
    table = pa.table({"value": values, **numbers})
    table = table.append_column("facet", pa.array([facet] * table.num_rows, pa.string()))
    names = [name for name in COUNTS.names if name in table.column_names]
    return table.select(names).cast(pa.schema([COUNTS.field(name) for name in names]))
