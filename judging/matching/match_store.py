"""Rows of matches, each a word on a pair of a label and a finding: appended, never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, Row, Table, insert, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.labels.label_store import newest
from tracejury.judging.records import Match
from tracejury.judging.runs.verdicts import now
from tracejury.judging.store import tables

_match, _finding, _cell = tables.match, tables.finding, tables.cell


def store_proposals(
    connection: Connection,
    proposals: Sequence[Match],
    *,
    author: str,
    is_prefix: bool = False,
    finding_keys: Sequence[int] | None = None,
    label_ids: Sequence[str] | None = None,
) -> Counter[str]:
    """Append what an author proposes now and withdraw what they proposed before and no longer do.

    `author` is a name, or (`is_prefix`) its beginning: a newer prompt of a model stands in the place of the older.
    Only pairs of these findings and labels (default: all) are looked at.
    """
    by_author = _match.c.author.startswith(author, autoescape=True) if is_prefix else _match.c.author == author
    chosen = [by_author]
    if finding_keys is not None:
        chosen.append(is_one_of(_match.c.finding_key, finding_keys))
    if label_ids is not None:
        chosen.append(is_one_of(_match.c.label_id, label_ids))
    rows = connection.execute(
        select(_match).where(*chosen, newest(_match, ("label_id", "finding_key", "author"), *chosen))
    ).all()
    known = {(row.label_id, row.finding_key, row.author): row for row in rows if not row.withdrawn}
    by_pair = {(match.label_id, match.finding_id, match.author): match for match in proposals}
    new = [match for key, match in by_pair.items() if key not in known or as_match(known[key]) != match]
    gone = [as_match(row) for key, row in known.items() if key not in by_pair]
    append_matches(connection, new)
    append_matches(connection, gone, withdrawn=True)
    return Counter(matches=len(by_pair), new=len(new), withdrawn=len(gone))


def as_match(row: Any) -> Match:
    return Match(
        label_id=row.label_id,
        finding_id=row.finding_key,
        status=row.status,
        author=row.author,
        confidence=row.confidence,
        reasons=tuple(orjson.loads(row.reasons)),
        localized=row.localized,
    )


def append_matches(connection: Connection, matches: Iterable[Match], *, withdrawn: bool = False) -> None:
    rows = [
        {
            "label_id": match.label_id,
            "finding_key": match.finding_id,
            "status": match.status,
            "author": match.author,
            "confidence": match.confidence,
            "reasons": orjson.dumps(match.reasons).decode(),
            "localized": match.localized,
            "withdrawn": withdrawn,
            "created_at": now(),
        }
        for match in matches
    ]
    if rows:
        connection.execute(insert(_match), rows)


def newest_words(
    connection: Connection, table: Table, keys: Sequence[str], values: Sequence[str], *conditions: ColumnElement[bool]
) -> list[Row[Any]]:
    """The newest row of each combination of `keys` that people said of findings: trace_id, judge_version, these."""
    rows = connection.execute(
        select(_cell.c.trace_id, _cell.c.judge_version, *(table.c[name] for name in (*keys, *values)))
        .join(_finding, _finding.c.finding_key == table.c.finding_key)
        .join(_cell, _cell.c.cell_key == _finding.c.cell_key)
        .where(*conditions)
        .order_by(table.c.row_key)
    )
    return list({tuple(getattr(row, name) for name in keys): row for row in rows}.values())
