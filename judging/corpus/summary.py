"""What the offline checks found in a corpus, by agent, model, tool and day: a file of it in memory at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tracejury.ingest.corpus.layout import Corpus, Record, open_corpus
from tracejury.judging.corpus.checking import FINDINGS, SCORES

Facet = Literal["agent", "model", "tool", "day"]
FACETS: Final[tuple[Facet, ...]] = get_args(Facet)
COLUMNS: Final = ("spans", "traces", "findings", "traces_with_findings")
NONE: Final = "(none)"
"""Spans that name no agent, model or tool, and findings that cite no such span."""
_LISTED: Final = [*(name for name in FINDINGS.names if name != "citations"), "date", "source"]
_OF_SPANS: Final = {"agent": "agent", "model": "model", "tool": "tool_name", "day": "date"}
_OF_FINDINGS: Final = {"agent": "agent", "model": "model", "tool": "tool", "day": "date"}


def totals(url: str) -> dict[str, int]:
    """Count the corpus: traces, spans, judged traces, those with a finding, findings, rejected inputs.

    Raises `IngestError` where there is no whole corpus.
    """
    corpus = _whole(url)
    records = corpus.records()
    rows: Counter[str] = Counter()
    for record in records:
        rows.update(record.rows)
    judged = _distinct(corpus, records, "scores", SCORES)
    with_findings = _distinct(corpus, records, "findings", FINDINGS)
    return {
        **{name: rows[name] for name in ("traces", "spans", "findings", "rejected")},
        "judged": judged,
        "with_findings": with_findings,
    }


def facet_table(url: str, by: Facet) -> pd.DataFrame:
    """Count by one facet, most findings first: the facet's value and COLUMNS.

    `spans` and `traces` are those with the value, `findings` those whose first cited span has it (of a model's span the
    tool that its answer calls): a trace with two agents counts once for each of them. Raises `IngestError` where there
    is no whole corpus.
    """
    corpus = _whole(url)
    counts: dict[str, Counter[str]] = {name: Counter() for name in COLUMNS}
    for record in corpus.records():
        _add(counts, ("spans", "traces"), corpus.tables("spans", [record], columns=["trace_id", _OF_SPANS[by]]))
        cited = corpus.tables("findings", [record], columns=["trace_id", _OF_FINDINGS[by]], schema=FINDINGS)
        _add(counts, ("findings", "traces_with_findings"), cited)
    values = sorted(counts["spans"].keys() | counts["findings"].keys())
    frame = pd.DataFrame({by: values, **{name: [counts[name][value] for value in values] for name in COLUMNS}})
    order = [by] if by == "day" else ["findings", "spans"]
    return frame.sort_values(order, ascending=by == "day", kind="stable", ignore_index=True)


def findings_of(url: str, by: Facet, value: str, *, limit: int = 200) -> pd.DataFrame:
    """Give the first findings with a value of a facet, with their partition (`source`) and day (`date`)."""
    corpus = _whole(url)
    column = pc.field(_OF_FINDINGS[by])
    is_wanted = column.is_null() if value == NONE else column == value
    some: list[pa.Table] = []
    for table in corpus.tables("findings", columns=_LISTED, schema=FINDINGS, condition=is_wanted):
        some.append(table)
        if sum(one.num_rows for one in some) >= limit:
            break
    frame: pd.DataFrame = pa.concat_tables(some)[:limit].to_pandas()
    return frame


def _whole(url: str) -> Corpus:
    corpus = open_corpus(url)
    corpus.require_whole()
    return corpus


def _add(counts: dict[str, Counter[str]], names: tuple[str, str], tables: Iterator[pa.Table]) -> None:
    """Count trace and value of every row, a file at a time: all rows of a trace stand in one file of a table."""
    rows, traces = names
    for table in tables:
        values = table.rename_columns(["trace_id", "value"]).group_by("value")
        for row in values.aggregate([("trace_id", "count"), ("trace_id", "count_distinct")]).to_pylist():
            value = NONE if row["value"] is None else row["value"]
            counts[rows][value] += row["trace_id_count"]
            counts[traces][value] += row["trace_id_count_distinct"]


def _distinct(corpus: Corpus, records: list[Record], table: str, schema: pa.Schema) -> int:
    """How many traces have rows in a table."""
    every = corpus.tables(table, records, columns=["trace_id"], schema=schema)
    return sum(len(pc.unique(some["trace_id"])) for some in every)
