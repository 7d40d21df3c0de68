"""How the models of a jury vote: how often all say the same, how often they tie, how many have no vote."""

from typing import Final

import numpy as np
import pandas as pd

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.intervals import divide, wilson_bounds

JURY_VOTES: Final = ("dimension", "judge_model", "trace_id", "members", "voted", "scores", "tied")
_SUMS: Final = ("members", "voted", "absent", "several", "unanimous", "tied")
_SHARES: Final = {"unanimous": "several", "tied": "n", "absent": "members"}


def jury_columns() -> dict[str, str]:
    """Columns and types of `jury_table`."""
    shares = [f"{name}_{part}" for name in _SHARES for part in ("share", "low", "high")]
    return {
        **dict.fromkeys(("dimension", "judge_model"), "object"),
        **dict.fromkeys(("n", *_SUMS), "int64"),
        **dict.fromkeys(shares, "float64"),
    }


def jury_table(votes: pd.DataFrame) -> pd.DataFrame:
    """Ties and votes of juries: one row per dimension and jury (`judge_model`).

    `votes`, one row per joint verdict: dimension, judge_model, trace_id, members (models asked), voted (those that
    scored), scores (different ones), tied (0 or 1: no score by the jury's rule). Columns: n (joint verdicts), members,
    voted and absent (failed or not applicable), each summed; several (verdicts on which two or more voted), unanimous
    (of them: all gave one score), tied; unanimous_share = unanimous / several, tied_share = tied / n, absent_share =
    absent / members, with Wilson's bounds. Source: Wilson (1927); the rules of `judging.juries`. Edge: NaN where
    nothing was counted. Raises ValueError for absent columns, for more votes than members or more scores than votes.
    """
    frames.require(votes, "jury_votes", JURY_VOTES)
    numbers = {name: frames.numbers(votes[name], f"jury_votes.{name}") for name in JURY_VOTES[3:]}
    if not ((numbers["voted"] <= numbers["members"]) & (numbers["scores"] <= numbers["voted"])).all():
        raise ValueError("jury_votes: no row can have more votes than members, or more scores than votes")
    marks = pd.DataFrame(numbers, index=votes.index)
    marks["absent"] = marks["members"] - marks["voted"]
    marks["several"] = marks["voted"] > 1
    marks["unanimous"] = marks["several"] & (marks["scores"] == 1)
    marks["n"] = 1
    keys = [votes["dimension"].astype(str), votes["judge_model"].astype(str)]
    table = marks[["n", *_SUMS]].astype("int64").groupby(keys).sum().reset_index()
    for name, whole in _SHARES.items():
        hits, n = table[name].to_numpy(), table[whole].to_numpy()
        low, high = wilson_bounds(hits, n)
        table = table.assign(**{f"{name}_share": divide(hits, n), f"{name}_low": low, f"{name}_high": high})
    order = {
        dimension: place for place, dimension in enumerate(frames.in_order(votes["dimension"], frames.DIMENSION_ORDER))
    }
    table = table.iloc[np.argsort(table["dimension"].map(order).to_numpy(), kind="stable")].reset_index(drop=True)
    columns = jury_columns()
    return table[list(columns)].astype(columns)
