"""How common errors are in a corpus: the checks' findings on all of it, people's labels on a sample of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, select

from tracejury.ingest.corpus.layout import Corpus, open_corpus
from tracejury.ingest.corpus.rows import TRACES
from tracejury.ingest.trace import IngestError
from tracejury.judging.agreement.majority import MAJORITY
from tracejury.judging.agreement.prevalence import corpus_table, why_not_powered
from tracejury.judging.agreement.tables import Table
from tracejury.judging.checks import MODEL
from tracejury.judging.corpus.counting import ALL, all_counts
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


_SCHEMAS = {"traces": TRACES, "scores": SCORES, "findings": FINDINGS}
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
                "changed in the corpus since",
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
    all had one. The estimates are those of `prevalence.corpus_table`. A trace that has changed in the corpus since it
    was drawn is not reviewed. Raises `IngestError` where the corpus is gone, not whole, not checked or has other traces
    than at the draw, and where a stratum has no reviewed trace.
    """
    filters = filters or Filters()
    header = connection.execute(
        select(tables.corpus_sample).where(tables.corpus_sample.c.sample_key == sample_key)
    ).one()
    columns = load_columns(connection)
    frames = LazyFrames(connection, columns, filters.without(NOT_APPLIED))
    errors = frames.labelled_errors
    drawn = _drawn(connection, sample_key)
    is_submitted = drawn["trace_id"].isin(_submitted(columns, frames.reference))
    is_told = ~drawn["trace_id"].isin(errors.loc[errors["dimensions"] == "", "trace_id"])
    drawn["reviewed"] = drawn["trace_id"].isin(frames.reviewed) & is_told
    rows: list[dict[str, Any]] = []
    if drawn["reviewed"].any():
        answers = _Answers.read(open_corpus(header.url), drawn, population=header.population)
        drawn, rows = answers.drawn, list(_rows(answers, errors))
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
    query = select(row.c.trace_id, row.c.digest, row.c.stratum, row.c.inclusion).where(row.c.sample_key == sample_key)
    return pd.read_sql_query(query, connection, coerce_float=False)


@dataclass(frozen=True, kw_only=True)
class _Answers:
    """What the checks found: on each drawn trace, by dimension, and how often on all.

    A drawn trace that the corpus holds with other content now is not `reviewed`.
    """

    drawn: pd.DataFrame
    labels: pd.DataFrame
    """trace_id, dimension, judge_label (None where the checks failed) of the drawn traces."""
    counts: pd.DataFrame
    """judged, traces_with_findings of all traces, by dimension."""
    population: int

    @classmethod
    def read(cls, corpus: Corpus, drawn: pd.DataFrame, *, population: int) -> _Answers:
        """Read what the corpus holds of the drawn traces, each table once, and its counts for all others.

        Raises `IngestError` where it has other traces than those that the sample was drawn from.
        """
        counts = all_counts(corpus).select(["facet", "value", "judged", "traces_with_findings"]).to_pandas()
        now = int(counts.loc[counts["facet"] == ALL, "judged"].sum())
        labels, digests = _labels(corpus, drawn["trace_id"]), _of(corpus, "traces", ["digest"], drawn["trace_id"])
        if now != population or not drawn["trace_id"].isin(labels["trace_id"]).all():
            raise IngestError(
                f"{corpus.url} has {now:,} checked traces, the sample was drawn from {population:,}: others had no "
                "chance of being drawn",
                remedy=f"tracejury corpus sample {corpus.url}",
            )
        by_dimension = counts[counts["facet"] == "dimension"].set_index("value")[["judged", "traces_with_findings"]]
        digest = drawn["trace_id"].map(digests.set_index("trace_id")["digest"])
        return cls(
            drawn=drawn.assign(reviewed=drawn["reviewed"] & (digest == drawn["digest"])),
            labels=labels,
            counts=by_dimension.reindex(list(DIMENSIONS)).fillna(0).astype("int64"),
            population=population,
        )

    def units(self, dimension: str) -> pd.DataFrame:
        """Return the drawn traces with the checks' label, and one row with a count for others with each label."""
        own = self.labels.loc[self.labels["dimension"] == dimension, ["trace_id", "judge_label"]]
        known = own["judge_label"].dropna().astype(bool)
        judged, flagged = map(int, self.counts.loc[[dimension]].to_numpy()[0])
        others = {
            True: flagged - int(known.sum()),
            False: judged - flagged - int((~known).sum()),
            None: self.population - judged - (len(own) - len(known)),
        }
        rows = pd.DataFrame({"judge_label": list(others), "count": list(others.values())}, dtype=object)
        units = pd.concat([own.assign(count=1).astype(object), rows[rows["count"] > 0]], ignore_index=True)
        return units.assign(unit=units.index, count=units["count"].astype("int64"))


def _labels(corpus: Corpus, trace_ids: pd.Series) -> pd.DataFrame:
    keys = ["trace_id", "dimension"]
    scores = _of(corpus, "scores", ["dimension", "state"], trace_ids)
    flagged = pd.MultiIndex.from_frame(_of(corpus, "findings", ["dimension"], trace_ids))
    label = pd.Series(pd.MultiIndex.from_frame(scores[keys]).isin(flagged), index=scores.index, dtype=object)
    return scores[keys].assign(judge_label=label.where(scores["state"].isin(ANSWERED_STATES), None))


def _of(corpus: Corpus, table: str, columns: list[str], trace_ids: pd.Series) -> pd.DataFrame:
    """Columns of the rows of these traces, a file at a time."""
    is_wanted = pc.field("trace_id").isin(pa.array(trace_ids, pa.string()))
    every = corpus.tables(table, columns=["trace_id", *columns], schema=_SCHEMAS[table], condition=is_wanted)
    frame: pd.DataFrame = pa.concat_tables(every).to_pandas()
    return frame


def _with_chances(drawn: pd.DataFrame) -> pd.DataFrame:
    """The reviewed traces, each with the probability of being drawn and reviewed.

    Raises `IngestError` for a stratum of which nobody reviewed a trace.
    """
    share = drawn.groupby("stratum")["reviewed"].transform("mean")
    if (share == 0).any():
        stratum = drawn.loc[share == 0, "stratum"].iloc[0]
        raise IngestError(f"no trace of the stratum {stratum!r} is reviewed yet", remedy="review one of each stratum")
    return drawn.assign(inclusion=drawn["inclusion"] * share)[drawn["reviewed"]]


def _rows(answers: _Answers, errors: pd.DataFrame) -> Iterator[dict[str, Any]]:
    reviewed = _with_chances(answers.drawn)
    for dimension in DIMENSIONS:
        units = answers.units(dimension)
        with_error = errors.loc[errors["dimensions"].astype("str").str.contains(dimension, regex=False), "trace_id"]
        row = _estimate(units, reviewed.assign(reference_label=reviewed["trace_id"].isin(with_error)), dimension)
        yield {**row, **_bounds(row, units, answers, with_error)}


def _estimate(units: pd.DataFrame, labels: pd.DataFrame, dimension: str) -> dict[str, Any]:
    units = units.merge(labels[["trace_id", "reference_label", "inclusion"]], on="trace_id", how="left")
    return _row(dimension, corpus_table(units.assign(dimension=dimension, judge_model=MODEL)).iloc[0])


def _bounds(row: dict[str, Any], units: pd.DataFrame, answers: _Answers, with_error: pd.Series) -> dict[str, float]:
    """The ends of the interval if none, and if all, of the drawn traces that are not reviewed had the error."""
    drawn = answers.drawn
    if pd.isna(row["rate"]) or drawn["reviewed"].all():
        return {"lowest": row["rate_low"], "highest": row["rate_high"]}
    has_error = drawn["trace_id"].isin(with_error)
    fewest, most = has_error & drawn["reviewed"], has_error | ~drawn["reviewed"]
    if len(drawn) == answers.population:
        return {"lowest": fewest.mean(), "highest": most.mean()}
    none, every = (_estimate(units, drawn.assign(reference_label=one), row["dimension"]) for one in (fewest, most))
    return {"lowest": none["rate_low"], "highest": every["rate_high"]}


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
