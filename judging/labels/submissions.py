"""Who submitted which trace."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import ColumnElement, Connection, select

from tracejury.judging.labels.label_store import newest
from tracejury.judging.store import tables


def submissions(connection: Connection, *conditions: ColumnElement[bool]) -> pd.DataFrame:
    """annotator, trace_id, guideline_version of reviews whose newest word is "submitted", first occasions only.

    `conditions` as `newest` takes them.
    """
    table = tables.review
    columns = ("annotator", "trace_id", "guideline_version")
    query = (
        select(*(table.c[name] for name in columns))
        .where(
            newest(table, ("annotator", "trace_id", "occasion"), *conditions),
            table.c.occasion == 0,
            table.c.status == "submitted",
            *conditions,
        )
        .order_by(table.c.annotator, table.c.trace_id)
    )
    return pd.DataFrame([tuple(row) for row in connection.execute(query).all()], columns=list(columns))
