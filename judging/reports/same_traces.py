"""The same traces for all judges that are compared: which answers count, which are left out, and how to say so."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from tracejury.ingest.words import counted
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.records import ANSWERED_STATES


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How far judge models answered the same traces, of those that the reference reviewed.

    `is_wanted`: whether only shared traces shall count. `traces` are those that all of `judge_models` answered, `of`
    those that any did; `left_out` counts the answers (cells) that are not on shared traces, `scores_left_out` those
    with a score.
    """

    is_wanted: bool
    judge_models: int
    traces: int
    of: int
    left_out: int
    scores_left_out: int
    fewest: str | None
    """The judge model that answered fewest traces, where they differ."""
    fewest_traces: int

    @property
    def is_applied(self) -> bool:
        """Whether errors are compared on fewer answers than there are."""
        return self.is_wanted and self.left_out > 0 and self.traces > 0

    def words(self) -> str | None:
        """Return what is compared on which traces; None where all judges answered the same."""
        if not self.left_out + self.scores_left_out:
            return None
        judges = f"{counted(self.judge_models, 'judge model')} answered different traces"
        if self.left_out and not self.traces:
            return f"{judges} and share none: each is compared on its own"
        if not self.is_wanted:
            return f"{judges} ({self.traces:,} of {self.of:,} in common): each is compared on its own"
        if not self.left_out:
            return f"{judges}: scores are compared on those that all judges of a dimension scored"
        return f"{judges}: compared on the {self.traces:,} of {self.of:,} that all answered{self._least()}"

    def _least(self) -> str:
        return "" if self.fewest is None else f" (fewest: {self.fewest}, {self.fewest_traces:,})"


def shared_cells(cells: pd.DataFrame, missing: Missing, *, all_models: bool) -> pd.Series:
    """Say of each cell (trace_id, dimension, judge_model, state) whether it counts on shared traces alone.

    A judge's answer counts where all judges of its dimension answered the trace; with `all_models` also where every
    judge model has such an answer on it, so that their suites are of the same traces too. Failures left out
    (`missing="drop"`) are no answers, and stay to be counted; failures that count as misses are answers.
    """
    is_answer = cells["state"].isin(ANSWERED_STATES) | (missing == "disagree")
    answers = cells[is_answer]
    shared = answers[_by_all(answers, ["trace_id", "dimension"], answers.groupby("dimension")["judge_model"].nunique())]
    if all_models:
        shared = shared[_by_all(shared, ["trace_id"], answers["judge_model"].nunique())]
    return ~is_answer | cells.index.isin(shared.index)


def _by_all(answers: pd.DataFrame, keys: list[str], numbers: pd.Series | int) -> pd.Series:
    """Whether as many judge models as `numbers` tells (of each dimension) answered what `keys` name."""
    here = answers.groupby(keys, sort=False)["judge_model"].transform("nunique")
    return here == (numbers if isinstance(numbers, int) else answers["dimension"].map(numbers))


def overlap_of(cells: pd.DataFrame, scoring: pd.DataFrame, missing: Missing, *, is_wanted: bool) -> Overlap:
    """Measure the overlap of `cells` of judges that report errors, and of the `scoring` cells of those that score."""
    is_shared = shared_cells(cells, missing, all_models=True)
    answers = cells[cells["state"].isin(ANSWERED_STATES) | (missing == "disagree")]
    shared = answers[is_shared.loc[answers.index]]
    sizes = answers.groupby("judge_model")["trace_id"].nunique().sort_values(kind="stable")
    return Overlap(
        is_wanted=is_wanted,
        judge_models=int(pd.concat([cells["judge_model"], scoring["judge_model"]]).nunique()),
        traces=int(shared["trace_id"].nunique()),
        of=int(answers["trace_id"].nunique()),
        left_out=int((~is_shared).sum()),
        scores_left_out=int((~shared_cells(scoring, missing, all_models=False)).sum()),
        fewest=str(sizes.index[0]) if sizes.nunique() > 1 else None,
        fewest_traces=int(sizes.iloc[0]) if len(sizes) else 0,
    )


def compared(pairs: pd.DataFrame, overlap: Overlap) -> pd.DataFrame:
    """Keep of `pairs` (trace_id, state) those of the traces that are compared: failures alone compare nothing."""
    if not overlap.is_applied:
        return pairs
    return pairs[pairs["trace_id"].isin(pairs.loc[pairs["state"] != "failed", "trace_id"])]
