"""How common errors are in a corpus: the checks' findings on all of it, people's labels on a sample of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection, select

from tracejury.ingest.corpus.layout import Corpus, open_corpus
from tracejury.ingest.trace import IngestError
from tracejury.judging.agreement.prevalence import corpus_table, why_not_powered
from tracejury.judging.agreement.tables import Table
from tracejury.judging.checks import MODEL
from tracejury.judging.corpus.checking import FINDINGS, SCORES
from tracejury.judging.records import ANSWERED_STATES, DIMENSIONS
from tracejury.judging.reports.columns import load_columns
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import LazyFrames
from tracejury.judging.store import tables

RATES = Table(
    name="sampled_corpus_rates",
    title="Share of the corpus' traces with an error, by dimension: checks on all, people on a sample",
    needs=(),
    build=lambda _inputs: pd.DataFrame(),
    interval="prediction-powered, Student's t",
)
"""What `report` writes where a workspace holds a sample."""
COLUMNS = (
    "dimension",
    "traces",
    "apparent",
    "rate",
    "rate_low",
    "rate_high",
    "labelled",
    "with_error",
    "method",
    "why_not",
)


@dataclass(frozen=True, kw_only=True)
class CorpusRates:
    """`table` (COLUMNS) with what it rests on: the sample's corpus, method, size and population, the reference, and
    how many sampled traces the reference reviewed.
    """

    table: pd.DataFrame
    url: str
    method: str
    sampled: int
    population: int
    reference: str | None
    reviewed: int

    def basis(self) -> str:
        """What the rates rest on, in a sentence."""
        return (
            f"{self.reviewed:,} of {self.sampled:,} sampled traces reviewed by {self.reference or 'nobody'}; drawn by "
            f"{self.method} from the {self.population:,} checked traces of {self.url}; the checks judged all of them"
        )


def newest_sample(connection: Connection) -> int | None:
    """Give the key of the newest sample of the workspace; None where there is none."""
    key = connection.scalar(
        select(tables.corpus_sample.c.sample_key).order_by(tables.corpus_sample.c.sample_key.desc())
    )
    return None if key is None else int(key)


def sampled_url(connection: Connection) -> str | None:
    """Give the address of the corpus of the newest sample; None where there is no sample."""
    row = tables.corpus_sample
    url = connection.scalar(select(row.c.url).order_by(row.c.sample_key.desc()))
    return None if url is None else str(url)


def corpus_rates(connection: Connection, sample_key: int, filters: Filters | None = None) -> CorpusRates:
    """Estimate the share of the corpus' traces with an error, for each dimension, from one sample.

    Reviewed traces are taken as drawn within each stratum with equal chances: their inclusion probability is the
    reviewed over all traces of the stratum. The estimates are those of `prevalence.corpus_table`. Raises `IngestError`
    where the corpus is gone or not whole, and where a stratum has no reviewed trace: its errors are unknown.
    """
    header = connection.execute(
        select(tables.corpus_sample).where(tables.corpus_sample.c.sample_key == sample_key)
    ).one()
    drawn = _drawn(connection, sample_key)
    frames = LazyFrames(connection, load_columns(connection), filters or Filters())
    drawn["reviewed"] = drawn["trace_id"].isin(frames.reviewed)
    corpus = open_corpus(header.url)
    corpus.require_whole()
    rows = list(_rows(corpus, _with_chances(drawn), frames.reference_errors)) if drawn["reviewed"].any() else []
    return CorpusRates(
        table=pd.DataFrame(rows, columns=list(COLUMNS)),
        url=header.url,
        method=header.method,
        sampled=len(drawn),
        population=header.population,
        reference=frames.reference,
        reviewed=int(drawn["reviewed"].sum()),
    )


def _drawn(connection: Connection, sample_key: int) -> pd.DataFrame:
    row = tables.corpus_sample_trace
    query = select(row.c.trace_id, row.c.stratum, row.c.inclusion).where(row.c.sample_key == sample_key)
    return pd.read_sql_query(query, connection, coerce_float=False)


def _with_chances(drawn: pd.DataFrame) -> pd.DataFrame:
    """The reviewed traces, each with the probability of being drawn and reviewed.

    Raises `IngestError` for a stratum of which nobody reviewed a trace.
    """
    share = drawn.groupby("stratum")["reviewed"].transform("mean")
    if (share == 0).any():
        stratum = drawn.loc[share == 0, "stratum"].iloc[0]
        raise IngestError(f"no trace of the stratum {stratum!r} is reviewed yet", remedy="review one of each stratum")
    return drawn.assign(inclusion=drawn["inclusion"] * share)[drawn["reviewed"]]


def _rows(corpus: Corpus, reviewed: pd.DataFrame, errors: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for dimension in DIMENSIONS:
        units = _judged(corpus, dimension)
        with_error = errors.loc[errors["dimensions"].astype("str").str.contains(dimension, regex=False), "trace_id"]
        labels = reviewed.assign(reference_label=reviewed["trace_id"].isin(with_error))
        units = units.merge(labels[["trace_id", "reference_label", "inclusion"]], on="trace_id", how="left")
        units = units.assign(dimension=dimension, judge_model=MODEL).rename(columns={"trace_id": "unit"})
        yield _row(dimension, corpus_table(units).iloc[0])


def _judged(corpus: Corpus, dimension: str) -> pd.DataFrame:
    """Every trace of the corpus with whether the checks found an error of the dimension, None where they failed."""
    scores = _of(corpus, "scores", SCORES, ["trace_id", "state"], dimension)
    flagged = _of(corpus, "findings", FINDINGS, ["trace_id"], dimension)["trace_id"].unique()
    label = scores["trace_id"].isin(flagged)
    answered = scores["state"].isin(ANSWERED_STATES)
    label = label if answered.all() else label.astype("object").where(answered, None)
    return pd.DataFrame({"trace_id": scores["trace_id"], "judge_label": label})


def _of(corpus: Corpus, table: str, schema: pa.Schema, columns: list[str], dimension: str) -> pd.DataFrame:
    is_wanted = pa.compute.field("dimension") == dimension
    every = corpus.tables(table, columns=columns, schema=schema, condition=is_wanted)
    frame: pd.DataFrame = pa.concat_tables(every).to_pandas()
    return frame


def _row(dimension: str, row: pd.Series) -> dict[str, Any]:
    labelled = int(row[["tp", "fp", "fn", "tn"]].sum())
    judged = int(row["judged"]) + labelled
    return {
        "dimension": dimension,
        "traces": judged,
        "apparent": (row["positive"] + row["tp"] + row["fp"]) / judged if judged else float("nan"),
        "rate": row["ppi"],
        "rate_low": row["ppi_low"],
        "rate_high": row["ppi_high"],
        "labelled": labelled,
        "with_error": int(row["tp"] + row["fn"]),
        "method": "prediction-powered" if pd.notna(row["ppi"]) else "",
        "why_not": why_not_powered(dict(row)) or "",
    }
