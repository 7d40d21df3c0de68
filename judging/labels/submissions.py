"""Who submitted which trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, select

from tracejury.ingest.table import query_frame
from tracejury.judging.labels.label_store import newest
from tracejury.judging.labels.sightings import seen_before_submitting
from tracejury.judging.store import tables


def submissions(connection: Connection) -> pd.DataFrame:
    """annotator, trace_id, guideline_version, created_at, blind of reviews whose newest word is "submitted".

    First occasions only. `blind`: their author had not seen what judges or others say of the trace.
    """
    review = tables.review.c
    columns = (review.annotator, review.trace_id, review.guideline_version, review.created_at)
    rows = query_frame(connection, submitted(*columns).order_by(review.annotator, review.trace_id))
    seen = seen_before_submitting(connection)
    pairs = zip(rows["annotator"], rows["trace_id"], strict=True)
    return rows.assign(blind=pd.Series([pair not in seen for pair in pairs], index=rows.index, dtype="bool"))


def submitted_by(connection: Connection, annotator: str) -> set[str]:
    """The traces that a person has submitted now."""
    review = tables.review.c
    return set(connection.scalars(submitted(review.trace_id, of=(review.annotator == annotator,))))


def submitted(*columns: ColumnElement[Any], of: Sequence[ColumnElement[bool]] = ()) -> Select[Any]:
    """These columns of the reviews whose newest word is "submitted", one of each person and trace.

    First occasions only. `of` as `newest` takes its conditions.
    """
    review = tables.review
    newest_words = newest(review, ("annotator", "trace_id", "occasion"), *of)
    return select(*columns).where(newest_words, review.c.occasion == 0, review.c.status == "submitted", *of)
