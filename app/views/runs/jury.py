"""The joint scores of a jury's models: how they voted, ties and missing votes said."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tracejury.app.components import layout
from tracejury.app.components.data_table import chosen_cell
from tracejury.app.components.drilldown import listing, open_in_compare
from tracejury.app.components.estimate_text import cell_text, counted, definition, greyed
from tracejury.app.datasets import open_to_me
from tracejury.app.session import workspace
from tracejury.app.views.runs.cells import compare_link
from tracejury.ingest.store import read_transaction
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.juries import jury_table
from tracejury.judging.judges.jury import RULES, Rule
from tracejury.judging.juries.jury_outcomes import JuryOutcome, jury_name, jury_outcomes, votes_of


def jury_card(run_key: int, current_rule: Rule) -> None:
    """The joint scores of a jury's models, how they voted, ties said; `current_rule` is the rule of the tables."""
    layout.title(
        "The jury",
        "The jury combines the scores of its models into one score. Ties are reported, not resolved; a failed model "
        "has no vote.",
    )
    rule = st.segmented_control("Rule", RULES, default=current_rule, key="jury_rule", required=True)
    st.caption(f"All agreement tables use this run's jury rule: {current_rule}.")
    with read_transaction(workspace().engine) as connection:
        outcomes, judge_model = jury_outcomes(connection, run_key, rule), jury_name(connection, run_key)
    if not outcomes:
        st.caption("No trace has been judged by all models of the jury yet.")
        return
    chosen = votes_table(outcomes)
    tied = sum(bool(outcome.joint.tied) for outcome in outcomes)
    st.caption(f"{counted(len(outcomes), 'cell')}, {tied:,} tied. Click a share to list its votes.")
    rows = rows_for_share(outcomes, *chosen) if chosen else pd.DataFrame([outcome.row() for outcome in outcomes])
    row = listing(open_to_me(rows), key="rows-votes")
    if row is not None and judge_model is not None:
        open_in_compare(compare_link({**row, "judge_model": judge_model}), key="votes-open")


VOTE_SHARES = {
    "unanimous": ("unanimous [95 %]", "jury_unanimous", "several"),
    "tied": ("tied [95 %]", "jury_ties", "n"),
    "absent": ("missing votes [95 %]", "jury_absent", "members"),
}
"""The shares of `jury_table`: the words for each, its definition, and what its n is."""


def votes_table(outcomes: list[JuryOutcome]) -> tuple[str, str] | None:
    """How the models voted, one row per judge; the judge and the share whose cell is chosen."""
    table = jury_table(votes_of(outcomes, "the jury"))
    text, few = table[["dimension", "n"]], pd.DataFrame(index=table.index)
    columns = {"n": st.column_config.NumberColumn("cells", help="Cells that all models of the jury have judged")}
    for name, (words, metric, of) in VOTE_SHARES.items():
        estimates = table[[f"{name}_share", f"{name}_low", f"{name}_high", of]].set_axis(_CELL, axis="columns")
        text = text.assign(**{name: [cell_text(one) for one in estimates.to_dict("records")]})
        few[name] = table[of] < TOO_FEW
        columns[name] = st.column_config.TextColumn(words, alignment="right", help=definition(metric))
    event = st.dataframe(
        greyed(text, few), hide_index=True, height=38 + 35 * len(text), key="votes", on_select="rerun",
        selection_mode="single-cell", alt="Votes of the jury", column_config=columns,
    )  # fmt: skip
    cell = chosen_cell(event, len(table))
    return None if cell is None or cell[1] not in VOTE_SHARES else (str(table["dimension"].iloc[cell[0]]), cell[1])


_CELL = ["value", "low", "high", "n"]


def rows_for_share(outcomes: list[JuryOutcome], judge: str, share: str) -> pd.DataFrame:
    """What a share counts: cells with several votes, all cells, or every vote that was asked for."""
    of_judge = [one for one in outcomes if one.dimension == judge]
    if share == "absent":
        return pd.DataFrame(
            [
                {"dimension": judge, "trace_id": one.trace_id, "repeat": one.repeat, "model": model, "score": score}
                for one in of_judge
                for model, score in one.members.items()
            ]
        )
    is_all = share == "tied"
    return pd.DataFrame([one.row() for one in of_judge if is_all or sum(one.joint.votes.values()) > 1])
