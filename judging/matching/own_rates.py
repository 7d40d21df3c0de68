"""What the matching rule reached on pairs that people of this workspace labelled, as `match score` keeps it."""

from __future__ import annotations

import time

import orjson
import pandas as pd
from sqlalchemy import Connection, delete, insert, select

from tracejury.judging.agreement.match_rates import RULE_RATES, RuleRates, rule_row
from tracejury.judging.matching.rule import RULE
from tracejury.judging.store import tables
from tracejury.judging.store.revisions import RULE_RATES as NAME

_setting = tables.setting


def keep_rates(connection: Connection, rates: RuleRates) -> None:
    """Keep what this version of the rule reached, in place of what was kept before."""
    connection.execute(delete(_setting).where(_setting.c.name == NAME))
    value = orjson.dumps(rule_row(RULE, rates)).decode()
    connection.execute(insert(_setting).values(name=NAME, value=value, created_at=time.time_ns() // 1000))


def own_rates(connection: Connection) -> pd.DataFrame:
    """Read `RULE_RATES` of this version of the rule: one row, none where nobody scored it."""
    value = connection.scalar(select(_setting.c.value).where(_setting.c.name == NAME))
    row = {} if value is None else orjson.loads(value)
    rows = [row] if row.get("rule") == RULE else []
    return pd.DataFrame(rows, columns=list(RULE_RATES)).astype(RULE_RATES)
