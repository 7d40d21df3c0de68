"""What the database has for each filter: people, judge models and their versions, repeats, formats, guidelines."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd
from sqlalchemy import Connection, func, select

from tracejury.ingest.store import schema
from tracejury.ingest.table import query_frame
from tracejury.judging.labels.submissions import submitted
from tracejury.judging.reports.filters import FilterOptions, Filters, whole_hashes
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import judge_models, judge_versions, repeats
from tracejury.judging.store.people import people


def read_options(connection: Connection) -> FilterOptions:
    """Read what the database has for each filter: all but splits, which are files."""
    versions = judge_versions(connection)
    return FilterOptions(
        reviewers=tuple(str(name) for name in reference_annotators(connection)["annotator"]),
        annotators=frozenset(one.name for one in people(connection)),
        judge_models=tuple(judge_models(connection)),
        dimensions=tuple(dict.fromkeys(one.rubric for one in versions)),
        versions={one.name: one.judge_version for one in versions},
        repeats=tuple(repeats(connection)),
        trace_formats=tuple(sorted(connection.scalars(select(schema.trace.c.format).distinct()))),
        guidelines=tuple(guidelines_read(connection)),
    )


def checked(connection: Connection, filters: Filters) -> Filters:
    """`FilterOptions.checked` of the workspace as it is now."""
    return read_options(connection).checked(filters)


def whole_versions(connection: Connection, texts: Sequence[str]) -> tuple[str, ...]:
    """`whole_hashes` among the judge versions of the workspace."""
    return whole_hashes(texts, {one.name: one.judge_version for one in judge_versions(connection)}) if texts else ()


def reference_annotators(connection: Connection) -> pd.DataFrame:
    """People with submitted reviews: annotator, traces (in the workspace), most first."""
    review, trace = tables.review.c, schema.trace
    here = submitted(review.annotator, func.count().label("traces")).join(trace, trace.c.trace_id == review.trace_id)
    return _most_first(query_frame(connection, here.group_by(review.annotator)))


def most_first(reviews: pd.DataFrame, present: Collection[str]) -> pd.DataFrame:
    """annotator, traces of `reviews` (annotator, trace_id) on the traces `present`, who has most first."""
    counted = reviews[reviews["trace_id"].isin(list(present))].groupby("annotator")["trace_id"].nunique()
    return _most_first(counted.rename("traces").reset_index())


def _most_first(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values(["traces", "annotator"], ascending=[False, True], ignore_index=True)


def guidelines_read(connection: Connection) -> list[str]:
    """The guideline versions that submitted reviews were made under, in order."""
    query = select(tables.review.c.guideline_version).where(tables.review.c.guideline_version.is_not(None)).distinct()
    return sorted((str(version) for version in connection.scalars(query)), key=lambda v: (len(v), v))
