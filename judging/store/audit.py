"""The audit log: who did what to whom, and when. Rows are appended, never changed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson
import pandas as pd
from sqlalchemy import Connection, insert, select

from tracejury.judging.store import tables

COLUMNS = ("at", "who", "what", "subject", "detail")


def record(
    connection: Connection, *, who: str, what: str, subject: str, detail: Mapping[str, Any] | None = None, at: int = 0
) -> None:
    """Append one row; `at` in UTC microseconds, now where it is 0."""
    connection.execute(
        insert(tables.audit).values(
            who=who,
            what=what,
            subject=subject,
            detail=orjson.dumps(dict(detail or {})).decode(),
            created_at=at or time.time_ns() // 1000,
        )
    )


def audit_log(connection: Connection, *, what: str | None = None, limit: int = 500) -> Any:
    """The newest rows first, as a frame: at (UTC), who, what, subject, detail (JSON)."""
    table = tables.audit
    query = select(table.c.created_at, table.c.who, table.c.what, table.c.subject, table.c.detail)
    if what is not None:
        query = query.where(table.c.what == what)
    rows = connection.execute(query.order_by(table.c.row_key.desc()).limit(limit)).all()
    frame = pd.DataFrame([tuple(row) for row in rows], columns=list(COLUMNS))
    return frame.assign(at=pd.to_datetime(frame["at"].astype("int64"), unit="us", utc=True))
