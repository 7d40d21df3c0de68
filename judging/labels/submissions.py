"""Who submitted which trace."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import ColumnElement, Connection, select

from tracejury.judging.labels.label_store import newest
from tracejury.judging.labels.sightings import seen_before_submitting
from tracejury.judging.store import tables


def submissions(connection: Connection, *conditions: ColumnElement[bool]) -> pd.DataFrame:
    """annotator, trace_id, guideline_version, created_at, blind of reviews whose newest word is "submitted".

    First occasions only.

    `blind`: their author had not seen what judges or others say of the trace. `conditions` as `newest` takes them.
    """
    table = tables.review
    columns = ("annotator", "trace_id", "guideline_version", "created_at")
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
    seen = seen_before_submitting(connection)
    rows = [(*row, (row.annotator, row.trace_id) not in seen) for row in connection.execute(query).all()]
    return pd.DataFrame(rows, columns=[*columns, "blind"]).astype({"blind": bool})
