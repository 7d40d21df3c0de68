"""Which errors were compared with which findings, by whom, and which never were."""

from __future__ import annotations

from collections.abc import Collection, Set

import pandas as pd
from sqlalchemy import Connection, Engine, delete, func, insert, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.store import write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.matching.rule import AUTO, RULE
from tracejury.judging.runs.verdicts import now
from tracejury.judging.store import tables
from tracejury.judging.store.locks import LABELS
from tracejury.judging.store.revisions import largest

_OF_RULE = f"{AUTO}@"
_cell = tables.cell


def newest_label(engine: Engine) -> int:
    """The newest row of `error_label`, 0 where there is none, while nobody writes one: all before it can be read."""
    with write_transaction(engine, LABELS) as connection:
        return int(connection.scalar(select(largest(tables.error_label.c.row_key))) or 0)


def record_matching(
    connection: Connection, cell_keys: Collection[int], annotators: Collection[str], last_label: int, *, matcher: str
) -> None:
    """Store that `matcher` compared these people's errors, up to the row `last_label`, with these cells' findings.

    `matcher` is the author of a model's proposals, or `RULE`, which stands in the place of its older versions.
    """
    table = tables.matching
    rows = [
        {"cell_key": key, "annotator": name, "matcher": matcher, "last_label": last_label, "created_at": now()}
        for key in cell_keys
        for name in annotators
    ]
    if rows:
        own = table.c.matcher.startswith(_OF_RULE) if matcher == RULE else table.c.matcher == matcher
        known = is_one_of(table.c.cell_key, cell_keys) & is_one_of(table.c.annotator, annotators) & own
        connection.execute(delete(table).where(known))
        connection.execute(insert(table), rows)


def is_of_today() -> ColumnElement[bool]:
    """Of a row of `matching`: whether this version of the rule compared, or a model."""
    matcher = tables.matching.c.matcher
    return (matcher == RULE) | ~matcher.startswith(_OF_RULE)


def matched_until(connection: Connection, trace_id: str | None = None) -> pd.DataFrame:
    """cell_key, annotator, last_label: up to which label each person's errors were compared with a cell's findings.

    A jury's cell was compared as far as each of its members that answered. What only an older version of the rule
    compared is not compared. Of all traces, or of one.
    """
    table, member = tables.matching, tables.jury_member
    columns = [table.c.cell_key, table.c.annotator, func.max(table.c.last_label).label("last_label")]
    of_trace = [] if trace_id is None else [_cell.c.trace_id == trace_id]
    compared = (
        select(*columns)
        .join(_cell, _cell.c.cell_key == table.c.cell_key)
        .where(is_of_today(), *of_trace)
        .group_by(table.c.cell_key, table.c.annotator)
    )
    own = pd.read_sql_query(compared, connection, coerce_float=False)
    answered = connection.execute(
        select(member.c.cell_key, member.c.member_key)
        .join(_cell, _cell.c.cell_key == member.c.member_key)
        .where(_cell.c.state.in_(("scored", "not_applicable")), *of_trace)
    ).all()
    members = pd.DataFrame(answered, columns=["joint_key", "cell_key"])
    by_jury = members.merge(own, on="cell_key").groupby(["joint_key", "annotator"])["last_label"].agg(["size", "min"])
    whole = by_jury["size"] == by_jury.index.get_level_values(0).map(members.groupby("joint_key").size().to_dict())
    joint = by_jury.loc[whole, "min"].rename("last_label").rename_axis(["cell_key", "annotator"]).reset_index()
    return pd.concat([own, joint], ignore_index=True).astype({"cell_key": "int64", "last_label": "int64"})


def matchers_of(connection: Connection) -> tuple[str, ...]:
    """Who compared errors and findings: versions of the rule, and models with that of their prompt."""
    matcher = tables.matching.c.matcher
    return tuple(connection.scalars(select(matcher).distinct().order_by(matcher)))


def unmatched_labels(connection: Connection, *, trace_id: str, annotator: str) -> dict[int, Set[str]]:
    """By answered cell of a trace: the person's labels that no matching has compared with its findings."""
    table = tables.error_label
    rows = connection.execute(
        select(table.c.label_id, func.max(table.c.row_key).label("last"))
        .where(table.c.trace_id == trace_id, table.c.annotator == annotator, table.c.occasion == 0)
        .group_by(table.c.label_id)
    ).all()
    seen = matched_until(connection, trace_id)
    until = seen[seen["annotator"] == annotator].set_index("cell_key")["last_label"].to_dict()
    cells = connection.scalars(select(_cell.c.cell_key).where(_cell.c.trace_id == trace_id))
    return {int(key): {row.label_id for row in rows if row.last > until.get(key, 0)} for key in cells}
