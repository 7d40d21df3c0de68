"""What an answer cost when it was paid for, where its own cell paid nothing: replies from the cache, joint verdicts."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import Connection, and_, exists, select

from tracejury.judging.store import tables

_cell, _reply, _member = tables.cell, tables.reply, tables.jury_member


def paid_elsewhere(connection: Connection) -> dict[int, float | None]:
    """Read by cell_key the US dollars that were paid for cells which record 0 though models were called for them.

    A reply from the cache costs what the earliest cell with the same reply to the same prompt paid; a jury's joint
    verdict what its members cost. None where that is not recorded.
    """
    costs = _of_cached(connection)
    members: dict[int, list[float | None]] = defaultdict(list)
    rows = select(_member.c.cell_key, _member.c.member_key, _cell.c.cost_usd)
    of_members = _member.join(_cell, _cell.c.cell_key == _member.c.member_key)
    for joint, member, cost in connection.execute(rows.select_from(of_members)):
        members[joint].append(costs.get(member, cost))
    known = {joint: [cost for cost in each if cost is not None] for joint, each in members.items()}
    return costs | {key: sum(known[key]) if len(known[key]) == len(each) else None for key, each in members.items()}


def _of_cached(connection: Connection) -> dict[int, float | None]:
    """The costs of cells that have a reply, and paid for none themselves."""
    first = _cell.alias("first")
    same = ("trace_id", "rubric", "repeat", "model", "prompt_hash", "raw_reply")
    is_first = and_(
        first.c.cell_key != _cell.c.cell_key,
        *(first.c[name] == _cell.c[name] for name in same),
        exists().where(_reply.c.cell_key == first.c.cell_key),
    )
    has_none = ~exists().where(_reply.c.cell_key == _cell.c.cell_key)
    rows = connection.execute(
        select(_cell.c.cell_key, first.c.cost_usd)
        .select_from(_cell.outerjoin(first, is_first))
        .where(_cell.c.cost_usd == 0, _cell.c.raw_reply.is_not(None), has_none)
        .order_by(_cell.c.cell_key, first.c.cell_key.desc())
    )
    return {row.cell_key: row.cost_usd for row in rows}  # the earliest comes last
