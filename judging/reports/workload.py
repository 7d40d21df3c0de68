"""How much people do: traces and errors, and what a trace takes them as a mean with interval and n; all summed by the
database."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Select, Subquery, and_, case, func, select

from tracejury.ingest.table import query_frame
from tracejury.judging.agreement.intervals import divide, mean_bounds
from tracejury.judging.labels.label_store import newest
from tracejury.judging.queues.queue_store import FIRST
from tracejury.judging.store import tables

COUNTS = ("submitted", "skipped", "errors")
MEANS = ("errors_per_trace", "minutes_per_trace")
_MS = 60_000.0  # in a minute
_MOMENTS = ("_n", "_sum", "_squares", "_cubes")


def workload(connection: Connection) -> pd.DataFrame:
    """annotator, `COUNTS`, then of each of `MEANS` the mean over submitted traces, `_low`, `_high`, `_n`.

    A row for everyone who has a review, be it an open one; the gold is nobody's work. `submitted` and `skipped` count
    traces; `errors` counts all that the person marked, the means those of submitted traces alone. NaN where nothing is
    known. Minutes leave out traces that were not timed; no bound (`mean_bounds`) lies below 0.
    """
    sums, errors = query_frame(connection, _sums()), query_frame(connection, _errors_in_all())
    counted = sums[["annotator", "submitted", "skipped"]].merge(errors, on="annotator", how="left")
    parts = [counted[["annotator"]], counted[list(COUNTS)].fillna(0).astype("int64")]
    for name in MEANS:
        n, total, squares, cubes = (sums[f"{name}{end}"].to_numpy(dtype=np.float64) for end in _MOMENTS)
        low, high = mean_bounds(n, total, squares, cubes)
        estimates = {"": divide(total, n), "_low": np.maximum(low, 0.0), "_high": high, "_n": n.astype(np.int64)}
        parts.append(pd.DataFrame({f"{name}{end}": values for end, values in estimates.items()}))
    return pd.concat(parts, axis=1)


def _sums() -> Select[tuple[object, ...]]:
    """Traces of each person by state; n and sums (of powers up to 3) of what they did on each that they submitted."""
    review, errors_made = tables.review, _errors_made()
    newest_of = newest(review, ("annotator", "trace_id", "occasion"))
    columns = (review.c.annotator, review.c.trace_id, review.c.status, (review.c.active_ms / _MS).label("minutes"))
    gold = select(tables.annotator.c.annotator).where(tables.annotator.c.kind == "adjudicated")
    is_of_a_person = review.c.annotator.not_in(gold)
    own = select(*columns).where(newest_of, review.c.occasion == FIRST, is_of_a_person).subquery()
    is_submitted = own.c.status == "submitted"
    errors, minutes = case((is_submitted, func.coalesce(errors_made.c.errors, 0))), case((is_submitted, own.c.minutes))
    sums = [
        (
            func.count(value),
            *(func.sum(power) for power in (value * 1.0, value * value * 1.0, value * value * value * 1.0)),
        )
        for value in (errors, minutes)
    ]
    named = [
        column.label(f"{name}{end}")
        for name, of in zip(MEANS, sums, strict=True)
        for column, end in zip(of, _MOMENTS, strict=True)
    ]
    states = [func.sum(case((own.c.status == state, 1), else_=0)).label(state) for state in ("submitted", "skipped")]
    same = and_(errors_made.c.annotator == own.c.annotator, errors_made.c.trace_id == own.c.trace_id)
    joined = select(own.c.annotator, *states, *named).join_from(own, errors_made, same, isouter=True)
    return joined.group_by(own.c.annotator).order_by(own.c.annotator)


def _errors_in_all() -> Select[tuple[object, ...]]:
    errors_made = _errors_made()
    return select(errors_made.c.annotator, func.sum(errors_made.c.errors).label("errors")).group_by(
        errors_made.c.annotator
    )


def _errors_made() -> Subquery:
    """annotator, trace_id, errors: how many labels stand."""
    error = tables.error_label
    return (
        select(error.c.annotator, error.c.trace_id, func.count().label("errors"))
        .where(newest(error, ("label_id",)), error.c.deleted.is_(False), error.c.occasion == FIRST)
        .group_by(error.c.annotator, error.c.trace_id)
        .subquery()
    )
