"""The Overview's first sentences: what judges catch, what people find of each other's errors, who comes near; and
whether that differs between parts of the traces."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tracejury.ingest.words import counted
from tracejury.judging.agreement import ceiling
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.interaction import LEAST_TRACES
from tracejury.judging.agreement.rounding import half_up
from tracejury.judging.records import SLICE_WORDS

MOST = 4  # judge models that are all named
NO_PEOPLE = "how far people agree is unknown, because no two people labelled the same trace blind"


def answer(suite: pd.DataFrame, reached: pd.DataFrame | None) -> list[str]:
    """Say in one sentence for each split what judge models caught, beside people; true in every state of the data.

    `suite`: `Inputs.suite`; `reached`: `Inputs.error_ceiling`, None while it is being computed. A judge model is within
    reach of people where its interval reaches their value.
    """
    caught = suite[(suite["impact"] == "all") & (suite["kind"] == "caught")]
    if caught.empty:
        return ["No judge that reports errors has answered a trace that the reference reviewed."]
    splits = list(dict.fromkeys(caught["split"]))
    sentences = [
        _of_split(caught[caught["split"] == split], _people(reached, split), reached is None) for split in splits
    ]
    return (
        sentences if len(splits) == 1 else [f"{split}: {words}" for split, words in zip(splits, sentences, strict=True)]
    )


def by_slice(differences: pd.DataFrame) -> str:
    """Say in one sentence whether the recall of judges differs between parts of the traces, and where most.

    `differences`: `slice_tests.recall_differences`. The greatest of several differences is the one with the least p.
    """
    if differences.empty:
        return (
            "By slice: no test, because no judge is known to have caught some errors and missed others in two "
            f"slices of {LEAST_TRACES} or more traces."
        )
    tests = counted(len(differences), "test")
    apart = differences[differences["p_holm"] < 0.05].sort_values("p", kind="stable")
    if apart.empty:
        return f"By slice: no judge's recall differs between slices by more than chance would explain ({tests}, Holm)."
    row = apart.iloc[0]
    names = ("judge_model", "dimension", *(["split"] if differences["split"].nunique() > 1 else []))
    judge = " ".join(str(row[name]) for name in names)
    ends = [f"{_share(row[end], *_NONE)[0]} in {row[f'{end}_slice']!r} ({row[f'{end}_n']})" for end in ("low", "high")]
    more = f"; {counted(len(apart) - 1, 'other test')} too" if len(apart) > 1 else ""
    return (
        f"By slice: {judge} catches {' and '.join(ends)}, by {SLICE_WORDS[row['by']]} "
        f"(p = {row['p_holm']:.3f}, Holm over {tests}){more}."
    )


_NONE = float("nan"), float("nan")


def _people(reached: pd.DataFrame | None, split: str) -> pd.Series | None:
    """The row of what people find of each other's errors, whatever the dimension."""
    if reached is None:
        return None
    conditions = {"dimension": ceiling.ANY, "impact": "all", "metric": "recall", "kind": "caught", "split": split}
    rows = reached[(reached[list(conditions)] == pd.Series(conditions)).all(axis=1) & (reached["n"] > 0)]
    return None if rows.empty else rows.iloc[0]


def _of_split(caught: pd.DataFrame, people: pd.Series | None, is_pending: bool) -> str:
    known = caught[caught["n"] > 0].sort_values("coverage", ascending=False, kind="stable")
    if known.empty:
        return _why_nothing(caught)
    waiting = int(((caught["n"] == 0) & (caught["not_matched"] > 0)).sum())
    parts = [
        _judges(known),
        *([f"no matches are proposed for {counted(waiting, 'judge model')}"] if waiting else []),
        *_beside(known, people, is_pending=is_pending),
    ]
    return "; ".join(parts) + "."


def _why_nothing(caught: pd.DataFrame) -> str:
    if caught["not_matched"].any():
        return "What judges caught is unknown: no matches are proposed yet."
    if caught["failed"].any():
        return "What judges would catch is unknown: they failed on every trace with a reference error."
    return "There is nothing to catch: the reference has no errors on the traces that judges answered."


def _judges(known: pd.DataFrame) -> str:
    """The judge models best first; of many the best and the last."""
    few = f" (only {counted(int(known['n'].max()), 'error')})" if known["n"].max() < TOO_FEW else ""
    columns = (known[name] for name in ("judge_model", "coverage", "coverage_low", "coverage_high"))
    rows = [(str(name), *_share(value, low, high)) for name, value, low, high in zip(*columns, strict=True)]
    (name, share, bounds), *rest = rows
    if len(rows) > MOST:
        last, least, its_bounds = rest[-1]
        most = f"Of {len(rows)} judge models, {name} catches most of the reference errors, {share}{bounds}"
        return f"{most}, and {last} {least}{its_bounds} the least{few}"
    first = f"{name} catches {share} of the reference errors{few}{bounds}"
    return _listed([first, *(" ".join((name, share + bounds)) for name, share, bounds in rest)])


def _beside(known: pd.DataFrame, people: pd.Series | None, *, is_pending: bool) -> list[str]:
    if people is None:
        return ["how many of each other's errors people find is being computed" if is_pending else NO_PEOPLE]
    value = float(people["value"])
    few = f" (only {counted(int(people['n']), 'comparison')})" if people["n"] < TOO_FEW else ""
    share, bounds = _share(value, people["low"], people["high"])
    words = [f"people among themselves {share}{bounds}{few}"]
    bounded = known[known["coverage_high"].notna()]
    if bounded.empty:
        return [*words, "too few traces to say which judges are within reach of people"]
    near = list(bounded.loc[bounded["coverage_high"] >= value, "judge_model"])
    if not near:
        return [*words, "no judge is within reach of people"]
    if len(near) > MOST:
        return [*words, f"{len(near)} of {len(known)} are within reach of people"]
    return [*words, f"{_listed(near)} {'is' if len(near) == 1 else 'are'} within reach of people"]


def _share(value: float, low: float, high: float) -> tuple[str, str]:
    """`36 %` and ` [31, 41]`, empty where there are no bounds."""
    bounds = "" if pd.isna(low) or pd.isna(high) else f" [{half_up(100 * low, 0)}, {half_up(100 * high, 0)}]"
    return f"{half_up(100 * value, 0)} %", bounds


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
