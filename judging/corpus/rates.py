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
from tracejury.judging.agreement.majority import MAJORITY
from tracejury.judging.agreement.prevalence import corpus_table, why_not_powered
from tracejury.judging.agreement.tables import Table
from tracejury.judging.checks import MODEL
from tracejury.judging.corpus.schemas import FINDINGS, SCORES
from tracejury.judging.records import ANSWERED_STATES, DIMENSIONS
from tracejury.judging.reports.columns import Columns, load_columns
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
    "lowest",
    "highest",
    "labelled",
    "with_error",
    "method",
    "why_not",
)


NOT_APPLIED = ("split", "trace_formats")
"""Filters that rates of a corpus leave out: its other traces have no split, and cutting the sample alone misleads."""


@dataclass(frozen=True, kw_only=True)
class CorpusRates:
    """`table` (COLUMNS) with what it rests on: the sample's corpus, method, size and population, the reference, and
    how many sampled traces the reference reviewed.

    `not_counted` more have reviews that the filters leave out, `filters` are those that were asked for.
    """

    table: pd.DataFrame
    url: str
    method: str
    sampled: int
    population: int
    reference: str | None
    reviewed: int
    not_counted: int
    filters: Filters

    def basis(self) -> str:
        """What the rates rest on, in a sentence."""
        return "; ".join(
            [
                f"{self.reviewed:,} of {self.sampled:,} sampled traces reviewed by {self.reference or 'nobody'}",
                *self._what_is_missing(),
                f"drawn by {self.method} from the {self.population:,} checked traces of {self.url}",
                "the checks judged all of them",
                *self._what_is_not_applied(),
            ]
        )

    def _what_is_missing(self) -> Iterator[str]:
        if self.not_counted:
            guideline = self.filters.guideline
            whys = [
                *(["not blind"] if self.filters.blind_only else []),
                *([f"not under guideline version {guideline}"] if guideline is not None else []),
                "with an error that names no dimension",
            ]
            yield f"{self.not_counted:,} more are reviewed but do not count: {' or '.join(whys)}"
        if 0 < self.reviewed < self.sampled:
            yield (
                f"rate takes the {self.sampled - self.reviewed:,} others to be like the reviewed traces of their "
                "stratum; lowest and highest hold whatever errors the others have"
            )

    def _what_is_not_applied(self) -> Iterator[str]:
        split, formats = self.filters.split, self.filters.trace_formats
        words = [f"the split {split.name}"] if split is not None else []
        words += [f"trace formats {', '.join(formats)}"] if formats else []
        if words:
            yield f"not applied: {' and '.join(words)}, because a rate is of the whole corpus"


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

    Of `filters`, reference, guideline and blind_only say which reviews count; `NOT_APPLIED` are left out. A sampled
    trace without a review that counts is not reviewed. `rate` takes reviewed traces as drawn within each stratum with
    equal chances: their inclusion probability is the reviewed over all traces of the stratum. `lowest` and `highest`
    take nothing for granted: they are the ends of its interval if no trace that is not reviewed had an error, and if
    all had one. The estimates are those of `prevalence.corpus_table`. Raises `IngestError` where the corpus is gone,
    not whole or has other traces than at the draw, and where a stratum has no reviewed trace.
    """
    filters = filters or Filters()
    header = connection.execute(
        select(tables.corpus_sample).where(tables.corpus_sample.c.sample_key == sample_key)
    ).one()
    columns = load_columns(connection)
    frames = LazyFrames(connection, columns, filters.without(NOT_APPLIED))
    errors = frames.labelled_errors
    drawn = _drawn(connection, sample_key)
    is_told = ~drawn["trace_id"].isin(errors.loc[errors["dimensions"] == "", "trace_id"])
    drawn["reviewed"] = drawn["trace_id"].isin(frames.reviewed) & is_told
    is_submitted = drawn["trace_id"].isin(_submitted(columns, frames.reference))
    corpus = open_corpus(header.url)
    corpus.require_whole()
    rows = list(_rows(corpus, drawn, errors, header.population)) if drawn["reviewed"].any() else []
    return CorpusRates(
        table=pd.DataFrame(rows, columns=list(COLUMNS)),
        url=header.url,
        method=header.method,
        sampled=len(drawn),
        population=header.population,
        reference=frames.reference,
        reviewed=int(drawn["reviewed"].sum()),
        not_counted=int((is_submitted & ~drawn["reviewed"]).sum()),
        filters=filters,
    )


def _submitted(columns: Columns, reference: str | None) -> pd.Series:
    """The traces that the reference submitted, under any guideline, blind or not."""
    reviews = columns.submitted
    if reference != MAJORITY:
        return reviews.loc[reviews["annotator"] == reference, "trace_id"]
    people = reviews[~reviews["annotator"].isin(list(columns.golds))]
    return people.loc[people.groupby("trace_id")["annotator"].transform("nunique") > 1, "trace_id"]


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


def _rows(corpus: Corpus, drawn: pd.DataFrame, errors: pd.DataFrame, population: int) -> Iterator[dict[str, Any]]:
    reviewed = _with_chances(drawn)
    for dimension in DIMENSIONS:
        units = _judged(corpus, dimension)
        _require_same(corpus, drawn, units, population)
        with_error = errors.loc[errors["dimensions"].astype("str").str.contains(dimension, regex=False), "trace_id"]
        row = _estimate(units, reviewed.assign(reference_label=reviewed["trace_id"].isin(with_error)), dimension)
        yield {**row, **_bounds(row, units, drawn, with_error)}


def _require_same(corpus: Corpus, drawn: pd.DataFrame, units: pd.DataFrame, population: int) -> None:
    """Raise `IngestError` where the corpus has other traces than those that the sample was drawn from."""
    if len(units) == population and drawn["trace_id"].isin(units["trace_id"]).all():
        return
    reason = f"{corpus.url} has {len(units):,} checked traces, the sample was drawn from {population:,}"
    raise IngestError(f"{reason}: others had no chance of being drawn", remedy=f"tracejury corpus sample {corpus.url}")


def _estimate(units: pd.DataFrame, labels: pd.DataFrame, dimension: str) -> dict[str, Any]:
    units = units.merge(labels[["trace_id", "reference_label", "inclusion"]], on="trace_id", how="left")
    units = units.assign(dimension=dimension, judge_model=MODEL).rename(columns={"trace_id": "unit"})
    return _row(dimension, corpus_table(units).iloc[0])


def _bounds(row: dict[str, Any], units: pd.DataFrame, drawn: pd.DataFrame, with_error: pd.Series) -> dict[str, float]:
    """The ends of the interval if none, and if all, of the drawn traces that are not reviewed had the error."""
    if pd.isna(row["rate"]) or drawn["reviewed"].all():
        return {"lowest": row["rate_low"], "highest": row["rate_high"]}
    has_error = drawn["trace_id"].isin(with_error)
    fewest, most = has_error & drawn["reviewed"], has_error | ~drawn["reviewed"]
    if len(drawn) == len(units):
        return {"lowest": fewest.mean(), "highest": most.mean()}
    none, every = (_estimate(units, drawn.assign(reference_label=one), row["dimension"]) for one in (fewest, most))
    return {"lowest": none["rate_low"], "highest": every["rate_high"]}


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
