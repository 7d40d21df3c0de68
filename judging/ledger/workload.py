"""How much people do on a trace: errors and active minutes, each mean with interval and n; summed by the database."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Select, and_, func, select

from ingest.table import query_frame
from judging.agreement.intervals import divide, mean_bounds
from judging.ledger import tables
from judging.ledger.labels import newest
from judging.ledger.queue import FIRST

MEANS = ("errors_a_trace", "minutes_a_trace")
_MS = 60_000.0  # in a minute


def workload(connection: Connection) -> pd.DataFrame:
    """annotator, then of each of `MEANS` the mean over submitted traces, `_low`, `_high` (jackknife-t), `_n`.

    NaN where nothing is known. Minutes leave out traces that were not timed; no bound lies below 0.
    """
    sums = query_frame(connection, _sums())
    parts = [sums[["annotator"]]]
    for name in MEANS:
        n, total, squares = (sums[f"{name}{end}"].to_numpy(dtype=np.float64) for end in ("_n", "_sum", "_squares"))
        low, high = mean_bounds(n, total, squares)
        figures = {"": divide(total, n), "_low": np.maximum(low, 0.0), "_high": high, "_n": n.astype(np.int64)}
        parts.append(pd.DataFrame({f"{name}{end}": values for end, values in figures.items()}))
    return pd.concat(parts, axis=1)


def _sums() -> Select[tuple[object, ...]]:
    """n, sum and sum of squares of what each person did on each trace that they submitted."""
    review, error = tables.review, tables.error_label
    done = (
        select(review.c.annotator, review.c.trace_id, (review.c.active_ms / _MS).label("minutes"))
        .where(
            newest(review, ("annotator", "trace_id", "occasion")),
            review.c.occasion == FIRST,
            review.c.status == "submitted",
        )
        .subquery()
    )
    made = (
        select(error.c.annotator, error.c.trace_id, func.count().label("errors"))
        .where(newest(error, ("label_id",)), error.c.deleted.is_(False), error.c.occasion == FIRST)
        .group_by(error.c.annotator, error.c.trace_id)
        .subquery()
    )
    errors, minutes = func.coalesce(made.c.errors, 0), done.c.minutes
    sums = [(func.count(value), func.sum(value * 1.0), func.sum(value * value * 1.0)) for value in (errors, minutes)]
    named = [
        column.label(f"{name}{end}")
        for name, columns in zip(MEANS, sums, strict=True)
        for column, end in zip(columns, ("_n", "_sum", "_squares"), strict=True)
    ]
    same = and_(made.c.annotator == done.c.annotator, made.c.trace_id == done.c.trace_id)
    return select(done.c.annotator, *named).join_from(done, made, same, isouter=True).group_by(done.c.annotator)
