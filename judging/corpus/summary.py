"""What the offline checks found in a corpus, by agent, model, tool and day: read from the counts that they left."""

from __future__ import annotations

from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tracejury.ingest.corpus.layout import open_corpus
from tracejury.judging.corpus.counting import ALL, NONE, OF_FINDINGS, Facet, all_counts, version_of
from tracejury.judging.corpus.schemas import FINDINGS

COLUMNS: Final = ("spans", "traces", "findings", "traces_with_findings")
_LISTED: Final = [*(name for name in FINDINGS.names if name != "citations"), "date", "source"]


def version(url: str) -> str:
    """Give what changes whenever the corpus or its findings change. Raises `IngestError` as `totals` does."""
    return version_of(all_counts(open_corpus(url)))


def totals(url: str) -> dict[str, int]:
    """Count the corpus: traces, spans, judged traces, those with a finding, findings, rejected inputs.

    Raises `IngestError` where there is no whole corpus, or no check has ended since its last build.
    """
    counts = all_counts(open_corpus(url))
    rows = counts.filter(pc.field("facet") == ALL).to_pylist()
    names = ("traces", "spans", "findings", "rejected", "judged")
    row = rows[0] if rows else dict.fromkeys((*names, "traces_with_findings"), 0)
    return {**{name: row[name] for name in names}, "with_findings": row["traces_with_findings"]}


def facet_table(url: str, by: Facet) -> pd.DataFrame:
    """Count by one facet, most findings first: the facet's value and COLUMNS.

    `spans` and `traces` are those with the value, `findings` those whose first cited span has it (of a model's span the
    tool that its answer calls): a trace with two agents counts once for each of them. Raises `IngestError` as `totals`
    does.
    """
    counts = all_counts(open_corpus(url)).filter(pc.field("facet") == by).select(["value", *COLUMNS])
    columns = [counts["value"], *(pc.fill_null(counts[name], 0) for name in COLUMNS)]
    frame: pd.DataFrame = pa.table(columns, names=[by, *COLUMNS]).to_pandas().sort_values(by, ignore_index=True)
    order = [by] if by == "day" else ["findings", "spans"]
    return frame.sort_values(order, ascending=by == "day", kind="stable", ignore_index=True)


def findings_of(url: str, by: Facet, value: str, *, limit: int = 200) -> pd.DataFrame:
    """Give the first findings with a value of a facet, with their partition (`source`) and day (`date`)."""
    corpus = open_corpus(url)
    corpus.require_whole()
    column = pc.field(OF_FINDINGS[by])
    is_wanted = column.is_null() if value == NONE else column == value
    some: list[pa.Table] = []
    for table in corpus.tables("findings", columns=_LISTED, schema=FINDINGS, condition=is_wanted):
        some.append(table)
        if sum(one.num_rows for one in some) >= limit:
            break
    frame: pd.DataFrame = pa.concat_tables(some)[:limit].to_pandas()
    return frame
