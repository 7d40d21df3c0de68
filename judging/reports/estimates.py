"""Estimates by name: what a page asks for, and what each needs, so that another process can make and keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from tracejury.judging.agreement import (
    ceiling,
    compare,
    errors,
    marks,
    raters,
    reasons,
    reliability,
    scores,
    slice_tests,
    slices,
)
from tracejury.judging.agreement.error_rates import BY_RATE
from tracejury.judging.agreement.inputs import InputName, Inputs
from tracejury.judging.agreement.tables import TABLES
from tracejury.judging.reports.export import facts_frame, facts_of
from tracejury.judging.reports.frames import FRAME_NAMES, PEOPLE, Frames, LazyFrames
from tracejury.judging.reports.same_traces import compared as compared_pairs
from tracejury.judging.store.judge_models import is_joint


def no_arm(text: str) -> pd.DataFrame:
    """The arm of sources that know their own judges alone."""
    raise ValueError(f"{text!r} is not a judge under these filters")


def no_pilot(*judge_models: str) -> pd.DataFrame:
    """The pilot of sources without a workspace."""
    raise ValueError(f"no workspace holds a pilot of {', '.join(judge_models)}")


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What estimates are made from, all of one revision.

    `arm` gives the error pairs of another arm than the judges of the frames: a version, a repeat, a person, as
    `judging.reports.arms` reads it. `pilot` gives what judge models say for planning (`pilots.pilot_frame`). Both raise
    `ValueError`.
    """

    frames: Frames | LazyFrames
    inputs: Inputs
    arm: Callable[[str], pd.DataFrame] = no_arm
    pilot: Callable[..., pd.DataFrame] = no_pilot


@dataclass(frozen=True, kw_only=True)
class LazyInputs(Inputs):
    """Inputs of which each frame, and each table that `Inputs` derives, is found when it is first asked for."""

    find: Callable[[str], pd.DataFrame]
    """An estimate by its name."""

    def frame_or_none(self, name: InputName) -> pd.DataFrame | None:
        return self.find(name) if self.has(name) else None

    def has(self, name: InputName) -> bool:
        return name in _GIVEN

    def __getattribute__(self, name: str) -> Any:
        """A table that `Inputs` derives is found, not made."""
        return self.find(name) if name in _DERIVED else super().__getattribute__(name)


Build = Callable[..., pd.DataFrame]
SUITES: Final = compare.SUITES


def as_raters(ratings: pd.DataFrame) -> pd.DataFrame:
    """People and judges as raters of the same units; a judge is named by its judge model, with the repeat where
    there are several.
    """
    repeats = ratings.groupby("judge_model")["rater"].transform("nunique")
    dimension = ratings["judge_model"].where(repeats <= 1, ratings["judge_model"] + " " + ratings["rater"])
    return ratings.assign(rater=ratings["rater"].where(ratings["judge_model"] == PEOPLE, dimension), judge_model="")


def alpha_samples(sources: Sources) -> pd.DataFrame:
    """`reliability.alpha_draws` of the repeats of every judge that has several."""
    inputs = sources.inputs
    return reliability.alpha_draws(inputs.rated_by("judge"), draws=inputs.draws, seed=inputs.seed)


def rater_pairs(sources: Sources, dimension: str) -> pd.DataFrame:
    """`raters.pairwise_table` of people and judges on one dimension."""
    return raters.pairwise_table(_raters_on(sources, dimension).drop(columns="split"))


def rater_pair(sources: Sources, dimension: str, first: str, second: str) -> pd.DataFrame:
    """`raters.pair_estimates` of two raters, with the bounds that take too long for all pairs."""
    ratings = _raters_on(sources, dimension).drop(columns="split")
    two = ratings[ratings["rater"].isin([first, second])]
    inputs = sources.inputs
    return raters.pair_estimates(two, draws=inputs.draws)


def item_marks(sources: Sources, dimension: str) -> pd.DataFrame:
    """`marks.disputed_items` of people and judges on one dimension."""
    return marks.disputed_items(_raters_on(sources, dimension))


def _raters_on(sources: Sources, dimension: str) -> pd.DataFrame:
    ratings = as_raters(sources.frames.ratings)
    return ratings[ratings["dimension"] == dimension]


def rated(sources: Sources) -> pd.DataFrame:
    """judge, rater: who scored which dimension, people and judges as raters."""
    ratings = sources.frames.ratings
    return as_raters(ratings)[["dimension", "rater"]].drop_duplicates(ignore_index=True)


def repeat_marks(sources: Sources, judge_model: str, dimension: str) -> pd.DataFrame:
    """`marks.widest_repeats` of one judge."""
    return marks.widest_repeats(_ratings_of(sources, judge_model, dimension))


def repeat_spread(sources: Sources, judge_model: str, dimension: str) -> pd.DataFrame:
    """sd: the spread over repeats of each trace of one judge, NaN with fewer than two."""
    matrix = reliability.rating_matrix(_ratings_of(sources, judge_model, dimension))
    return pd.DataFrame({"sd": reliability.repeat_spread(matrix.values)})


def _ratings_of(sources: Sources, judge_model: str, dimension: str) -> pd.DataFrame:
    ratings = sources.frames.ratings
    return ratings[(ratings["judge_model"] == judge_model) & (ratings["dimension"] == dimension)]


def strip_marks(sources: Sources, whose: str) -> pd.DataFrame:
    """`marks.drawn_levels` of the errors; `whose`: `own`, or `every` for those of other dimensions too."""
    return marks.drawn_levels(marks.error_levels(sources.frames.error_pairs, own=whose == "own"))


def strip_counts(sources: Sources, whose: str) -> pd.DataFrame:
    """`marks.level_counts` of the same."""
    return marks.level_counts(marks.error_levels(sources.frames.error_pairs, own=whose == "own"))


def each_once(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of judges that are taken together: a jury says again what its members say, and counts alone only."""
    joint = rows["judge_model"].isin([name for name in rows["judge_model"].unique() if is_joint(name)])
    return rows if joint.all() else rows[~joint]


def bias_marks(sources: Sources, judge_model: str = "", dimension: str = "", split: str = "") -> pd.DataFrame:
    """Pairs of scores to draw: those of one judge, or of all."""
    return marks.spread_out(_scored(sources, judge_model, dimension, split))


def bias_lines(sources: Sources, judge_model: str = "", dimension: str = "", split: str = "") -> pd.DataFrame:
    """`marks.bias_lines` of all pairs of scores of one judge, or of all but juries, with the bounds of the mean.

    Those of one judge stand in `score_estimates`, and are missing here.
    """
    scored, inputs = _scored(sources, judge_model, dimension, split), sources.inputs
    low, high = scores.pooled_bias(scored, draws=0 if judge_model else inputs.draws)
    return marks.bias_lines(scored).assign(low=low, high=high)


def _scored(sources: Sources, judge_model: str, dimension: str, split: str) -> pd.DataFrame:
    """The pairs with a score on both sides; of all judges each once."""
    pairs = marks.both_scored(sources.frames.score_pairs)
    if not judge_model:
        return each_once(pairs)
    return pairs[(pairs["judge_model"] == judge_model) & (pairs["dimension"] == dimension) & (pairs["split"] == split)]


def rows_for_errors(
    sources: Sources,
    judge_model: str,
    dimension: str,
    split: str,
    impact: str,
    error_dimension: str,
    kind: str,
    rate: str,
) -> pd.DataFrame:
    """The error pairs that a mark or estimate counts, as many as its n; an empty argument is any.

    `rate` says which errors of the judge count, by `kind` (caught, localized): those of its dimension (`recall`, and
    where no rate is given), those it predicts (`precision`), either (`f1`, `f2`), all (`accuracy`, and under a
    `error_dimension`, of which the errors are). The dimension `any` is a suite taken together: each error once. Failed
    judgements count where they count as misses.
    """
    pairs = errors.checked_pairs(sources.frames.error_pairs)
    known = ["scored"] if sources.inputs.missing == "drop" else ["scored", "failed"]
    is_counted = pairs["state"].isin(known)
    values = {"judge_model": judge_model, "split": split, "impact": "" if impact == "all" else impact}
    for column, value in {**values, "dimension": "" if dimension == SUITES else dimension}.items():
        is_counted &= (pairs[column] == value) | (not value)
    if error_dimension:
        is_counted &= pd.Series(
            [error_dimension in names.split(",") for names in pairs["dimensions"]], index=pairs.index
        )
    elif dimension != SUITES:
        is_counted &= _counted_by(pairs, kind, rate)
    rows = pairs.loc[is_counted, list(ERROR_COLUMNS)]
    return _each_error(rows) if dimension == SUITES else rows


ERROR_COLUMNS: Final = (
    "trace_id", "error_id", "impact", "dimensions", "judge_model", "dimension", "caught", "localized", "match_status",
    "annotator",
)  # fmt: skip


def _counted_by(pairs: pd.DataFrame, kind: str, rate: str) -> pd.Series:
    """Whether an error stands behind a rate of its judge, see `ErrorMetric.n`; without one, of recall."""
    relevant, predicted = (pairs[name].to_numpy(dtype=bool) for name in ("relevant", kind or "caught"))
    cells = np.where(relevant, np.where(predicted, 0, 2), np.where(predicted, 1, 3))
    return pd.Series(np.array(BY_RATE[rate or "recall"].below)[cells] > 0, index=pairs.index)


def _each_error(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs of a suite as one row an error: caught or localized by any of its judges."""
    keys = ["judge_model", "trace_id", "error_id"]
    by_error = pairs.groupby(keys, sort=False)[["caught", "localized"]].any()
    # the pair that was matched speaks for the error
    about = pairs.sort_values("caught", ascending=False, kind="stable").drop_duplicates(keys).set_index(keys)
    return about.assign(caught=by_error["caught"], localized=by_error["localized"], dimension=SUITES).reset_index()[
        list(ERROR_COLUMNS)
    ]


def rows_for_scores(
    sources: Sources, judge_model: str, dimension: str, split: str, reference_score: str, judge_score: str, metric: str
) -> pd.DataFrame:
    """The pairs of scores that a mark or estimate counts; an empty argument is any, several scores stand by commas.

    Failed judgements stand behind an accuracy (`metric`) where they count as wrong.
    """
    every = sources.frames.score_pairs
    pairs = marks.both_scored(every)
    if sources.inputs.missing == "disagree" and metric in ACCURACIES:
        pairs = pd.concat(
            [pairs, every[(every["state"] == "failed") & every["reference_score"].notna()]], ignore_index=True
        )
    is_counted = pd.Series(data=True, index=pairs.index)
    for column, value in {"judge_model": judge_model, "dimension": dimension, "split": split}.items():
        is_counted &= (pairs[column] == value) | (not value)
    for column, value in {"reference_score": reference_score, "judge_score": judge_score}.items():
        is_counted &= pairs[column].isin([float(score) for score in value.split(",") if score]) | (not value)
    return pairs.loc[is_counted, ["trace_id", "judge_model", "dimension", "reference_score", "judge_score"]]


ACCURACIES: Final = frozenset(metric.name for metric in scores.SCORE_METRICS if metric.hits)


def errors_by_slice(sources: Sources, by: str) -> pd.DataFrame:
    """`slices.error_slices` of one kind of slice, the reasons of empty cells complete."""
    inputs = sources.inputs
    pairs, own = sources.frames.error_pairs, _slices_by(sources, by)
    return reasons.of_long(
        slices.error_slices(pairs, own, missing=inputs.missing, draws=inputs.draws), draws=inputs.draws
    )


def scores_by_slice(sources: Sources, by: str) -> pd.DataFrame:
    """`slices.score_slices` of one kind of slice, the reasons of empty cells complete."""
    inputs = sources.inputs
    pairs, own = sources.frames.score_pairs, _slices_by(sources, by)
    return reasons.of_long(
        slices.score_slices(pairs, own, missing=inputs.missing, draws=inputs.draws), draws=inputs.draws
    )


def consistency_by_slice(sources: Sources, by: str) -> pd.DataFrame:
    """`slices.consistency_slices` of one kind of slice, the reasons of empty cells complete."""
    inputs = sources.inputs
    table = slices.consistency_slices(inputs.rated_by("judge"), _slices_by(sources, by), draws=inputs.draws)
    return reasons.of_long(table, draws=inputs.draws)


def people_by_slice(sources: Sources, by: str) -> pd.DataFrame:
    """`slices.people_slices` of one kind of slice, the reasons of empty cells complete."""
    inputs = sources.inputs
    table = slices.people_slices(inputs.rated_by("annotator"), _slices_by(sources, by), draws=inputs.draws)
    return reasons.of_long(table, draws=inputs.draws)


def people_errors_by_slice(sources: Sources, by: str) -> pd.DataFrame:
    """`slices.people_error_slices` of one kind of slice, the reasons of empty cells complete."""
    inputs = sources.inputs
    table = slices.people_error_slices(inputs.frame("person_pairs"), _slices_by(sources, by), draws=inputs.draws)
    return reasons.of_long(table, draws=inputs.draws)


def differences_by_slice(sources: Sources, by: str, left: str, right: str) -> pd.DataFrame:
    """`slice_tests.compared_slices` of two arms."""
    first, second = two_arms(sources, left, right)
    return slice_tests.compared_slices(first, second, _slices_by(sources, by), draws=sources.inputs.draws)


def traces_in_slice(sources: Sources, by: str, name: str) -> pd.DataFrame:
    """trace_id of every judged or rated trace that a slice counts."""
    ratings = sources.frames.ratings[["trace_id"]].drop_duplicates()
    return slices.in_slice(ratings, _slices_by(sources, by), by, name, by_error=False)


def flips_in_slice(sources: Sources, by: str, name: str, left: str, right: str) -> pd.DataFrame:
    """`flips` of two arms that a slice counts."""
    return slices.in_slice(flips(sources, left, right), _slices_by(sources, by), by, name, by_error=True)


def tests_by_slice(sources: Sources, by: str) -> pd.DataFrame:
    """`slice_tests.slice_tests` of one kind of slice."""
    inputs, frames = sources.inputs, sources.frames
    pairs = frames.error_pairs, frames.score_pairs, _slices_by(sources, by), frames.ratings
    return slice_tests.slice_tests(*pairs, missing=inputs.missing, draws=inputs.draws, seed=inputs.seed)


def recall_differences(sources: Sources) -> pd.DataFrame:
    """`slice_tests.recall_differences` of all kinds of slice."""
    inputs, frames = sources.inputs, sources.frames
    return slice_tests.recall_differences(
        frames.error_pairs, frames.slices, missing=inputs.missing, draws=inputs.draws, seed=inputs.seed
    )


def errors_in_slice(
    sources: Sources, by: str, name: str, judge_model: str, dimension: str, split: str, kind: str, rate: str
) -> pd.DataFrame:
    """The rows of `rows_for_errors` that a slice counts."""
    rows = rows_for_errors(sources, judge_model, dimension, split, "all", "", kind, rate)
    return slices.in_slice(rows, _slices_by(sources, by), by, name, by_error=True)


def scores_in_slice(
    sources: Sources, by: str, name: str, judge_model: str, dimension: str, split: str, metric: str
) -> pd.DataFrame:
    """The rows of `rows_for_scores` that a slice counts."""
    rows = rows_for_scores(sources, judge_model, dimension, split, "", "", metric)
    return slices.in_slice(rows, _slices_by(sources, by), by, name, by_error=False)


def _slices_by(sources: Sources, by: str) -> pd.DataFrame:
    own = sources.frames.slices
    return own[own["by"] == by]


def rows_for_raters(sources: Sources, dimension: str, first: str, second: str) -> pd.DataFrame:
    """trace_id, first, second, difference, annotator, judge_model, repeat of the traces that two raters both scored.

    The last three say where Compare shows them: the person among the two, the judge, and its repeat.
    """
    ratings = sources.frames.ratings
    named = as_raters(ratings).assign(kind=ratings["judge_model"], repeat=ratings["rater"])
    of_dimension = named[named["dimension"] == dimension].dropna(subset=["value"])
    two = [of_dimension[of_dimension["rater"] == name].set_index("unit") for name in (first, second)]
    values = {name: one["value"] for name, one in zip(("first", "second"), two, strict=True)}
    both = pd.DataFrame(values).dropna().rename_axis("trace_id").reset_index()
    people = [one["rater"].iloc[0] for one in two if len(one) and one["kind"].iloc[0] == PEOPLE]
    judges = [(one["kind"].iloc[0], one["repeat"].iloc[0]) for one in two if len(one)]
    judges = [named for named in judges if named[0] != PEOPLE] or [(None, None)]
    about = {"annotator": people[0] if people else None, "judge_model": judges[0][0], "repeat": judges[0][1]}
    rows = both.assign(difference=both["second"] - both["first"], **about)
    return rows.sort_values("difference", key=abs, ascending=False, kind="stable", ignore_index=True)


def rows_for_people(sources: Sources, dimension: str, split: str) -> pd.DataFrame:
    """trace_id, people, scores of the traces of which two people or more scored a dimension: the ceiling's."""
    people = sources.inputs.rated_by("annotator").dropna(subset=["value"])
    rows = people[(people["dimension"] == dimension) & ((people["split"] == split) | (not split))]
    votes = rows["rater"] + ": " + rows["value"].map("{:g}".format)
    by_trace = rows.assign(scores=votes).groupby("unit", sort=False)
    table = by_trace.agg(people=("rater", "size"), scores=("scores", "; ".join))
    return table[table["people"] > 1].rename_axis("trace_id").reset_index()


def rows_for_people_errors(
    sources: Sources, dimension: str, split: str, kind: str, rate: str, impact: str = "all"
) -> pd.DataFrame:
    """The comparisons of a person's error with another person that a rate of the errors' ceiling counts."""
    pairs = ceiling.checked_person_pairs(sources.inputs.frame("person_pairs"))
    pairs = pairs[(pairs["impact"] == impact) | (impact == "all")]
    is_counted = (
        (pairs["dimension"] == dimension) & ((pairs["split"] == split) | (not split)) & _counted_by(pairs, kind, rate)
    )
    columns = ["trace_id", "error_id", "impact", "author", "other", "dimension", "caught", "localized"]
    return pairs.loc[is_counted, columns]


def reference(sources: Sources) -> pd.DataFrame:
    """Who is compared with, None where nobody submitted anything."""
    return pd.DataFrame({"reference": [sources.frames.reference]}, dtype="object")


def summary(sources: Sources) -> pd.DataFrame:
    """One row: how much is compared. errors, incomplete (errors that are not compared), traces (with errors),
    error_pairs, score_pairs, what failed, and the pairs that no matching has compared.
    """
    pairs = sources.frames.error_pairs
    on_traces = compared_pairs(pairs, sources.frames.overlap)
    failed = each_once(pairs)
    failed = failed[failed["state"] == "failed"]
    counts = {
        "errors": len(on_traces[["trace_id", "error_id"]].drop_duplicates()),
        "incomplete": len(sources.frames.incomplete),
        "traces": on_traces["trace_id"].nunique(),
        "error_pairs": len(pairs),
        "score_pairs": len(sources.frames.score_pairs),
        "failed_pairs": len(failed),
        "not_matched": int((pairs["state"] == "not_matched").sum()),
        "failed_cells": len(failed[["trace_id", "judge_model", "dimension"]].drop_duplicates()),
    }
    return pd.DataFrame([counts])


def overlap(sources: Sources) -> pd.DataFrame:
    """One row: `same_traces.Overlap`."""
    return pd.DataFrame([asdict(sources.frames.overlap)])


def incomplete(sources: Sources) -> pd.DataFrame:
    """trace_id, error_id, annotator, lacks of the errors that are in no estimate: they lack what a judge could find."""
    return sources.frames.incomplete


def repeated(sources: Sources) -> pd.DataFrame:
    """judge_model, dimension, split of the judges with two repeats or more."""
    keys = ["judge_model", "dimension", "split"]
    repeats = sources.inputs.rated_by("judge").groupby(keys, sort=False)["rater"].nunique()
    return repeats[repeats > 1].reset_index()[keys]


def facts(sources: Sources) -> pd.DataFrame:
    """One row: `export.facts_of` the frames."""
    return facts_frame(facts_of(sources.frames))


def compared(sources: Sources) -> pd.DataFrame:
    """The judge models that errors or scores are compared of."""
    names = [*sources.frames.error_pairs["judge_model"].unique(), *sources.frames.score_pairs["judge_model"].unique()]
    return pd.DataFrame({"judge_model": list(dict.fromkeys(map(str, names)))}, dtype="object")


def two_arms(sources: Sources, left: str, right: str) -> list[pd.DataFrame]:
    """The pairs of two arms by the dimensions they share; where they share none, each as one judge `SUITES`."""
    return list(compare.comparable_sides(*(_arm(sources, text) for text in (left, right))))


def _arm(sources: Sources, text: str) -> pd.DataFrame:
    pairs = sources.frames.own_error_pairs
    rows = pairs[pairs["judge_model"] == text]
    return sources.arm(text) if rows.empty else rows


def differences(sources: Sources, left: str, right: str) -> pd.DataFrame:
    """`compare.compare_errors` of two arms."""
    return compare.compare_errors(*two_arms(sources, left, right), draws=sources.inputs.draws)


def found_by_one(sources: Sources, left: str, right: str) -> pd.DataFrame:
    """`compare.mcnemar_table` of two arms."""
    return compare.mcnemar_table(*two_arms(sources, left, right))


def flips(sources: Sources, left: str, right: str) -> pd.DataFrame:
    """`compare.error_flips` of two arms."""
    return compare.error_flips(*two_arms(sources, left, right))


def pilot(sources: Sources, *judge_models: str) -> pd.DataFrame:
    """`pilots.pilot_frame` of one judge model, or of two."""
    return sources.pilot(*judge_models)


def _input(name: Any) -> Build:
    return lambda sources: sources.inputs.frame(name)


def _derived(name: str) -> Build:
    """What `Inputs` derives, made of what else it has: `LazyInputs` would look for it."""
    return lambda sources: Inputs.__dict__[name].func(sources.inputs)


def _table(name: str) -> Build:
    known = {table.name: table for table in TABLES}
    return lambda sources: known[name].frame(sources.inputs)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How an estimate is made from `Sources` and its arguments.

    `ignores` are the filters that it is made without: set otherwise, it is the same, and is not made again. `is_slow`:
    it weighs texts (every pair of people's errors, every pair of rationales), and nothing shorter waits for it.
    """

    build: Build
    ignores: tuple[str, ...] = ()
    is_slow: bool = False


FRAMES: Final = FRAME_NAMES
"""The frames that filters leave; each is an estimate of its own."""
OPINIONS: Final = ("match_decisions", "finding_decisions", "person_pairs", "evidence_pairs")
"""Inputs that are made of more than the frames: of people alone, or of the texts of traces."""
DERIVED: Final = tuple(name for name, value in Inputs.__dict__.items() if isinstance(value, cached_property))
"""Tables that `Inputs` derives and shares; each is an estimate of its own."""
_GIVEN, _DERIVED = frozenset({*FRAMES, *OPINIONS}), frozenset(DERIVED)

_REPEATS: Final = ("reference", "matches", "missing", "repeat", "blind_only", "guideline", "tolerance")
_PEOPLE: Final = ("reference", "judge_models", "dimensions", "versions", "matches", "missing", "repeat", "same_traces")
_RATERS: Final = ("reference", "matches", "missing", "repeat", "tolerance")


def _each(*of: str | Build, ignores: tuple[str, ...] = (), is_slow: bool = False) -> dict[str, Recipe]:
    """Functions by their names; a table, a frame or what `Inputs` derives is given by its own."""
    builds = {one: _named(one) if isinstance(one, str) else one for one in of}
    return {
        one if isinstance(one, str) else one.__name__: Recipe(build=build, ignores=ignores, is_slow=is_slow)
        for one, build in builds.items()
    }


def _named(name: str) -> Build:
    if name.startswith("table."):
        return _table(name.removeprefix("table."))
    return _input(name) if name in _GIVEN else _derived(name)


ESTIMATES: Final[Mapping[str, Recipe]] = {
    **_each(*FRAMES, *OPINIONS, *DERIVED, *(f"table.{table.name}" for table in TABLES)),
    **_each(
        differences, flips, found_by_one, rows_for_errors, errors_by_slice, scores_by_slice,
        tests_by_slice, errors_in_slice, scores_in_slice, consistency_by_slice, people_by_slice,
        traces_in_slice, differences_by_slice, flips_in_slice,
    ),
    **_each(people_errors_by_slice, recall_differences, is_slow=True),
    **_each("evidence_pairs", "table.evidence_overlap", ignores=("tolerance",), is_slow=True),
    **_each(
        "table.error_slices", "table.score_slices", "table.slice_tests", "table.consistency_slices",
        "table.people_slices", "table.people_error_slices", is_slow=True,
    ),
    # of the repeats of judges alone
    **_each("consistency", alpha_samples, repeat_marks, repeat_spread, repeated, ignores=_REPEATS),
    **_each("rationales", "table.table_07_consistency", ignores=_REPEATS),
    **_each("trace_rationales", "table.rationale_consistency", ignores=_REPEATS, is_slow=True),
    # of people alone
    **_each(
        "people_estimates", "human_ceiling", "table.human_ceiling", rows_for_people,
        ignores=(*_PEOPLE, "tolerance"),
    ),
    **_each(
        "error_ceiling", "person_pairs", "table.error_ceiling", rows_for_people_errors,
        ignores=(*_PEOPLE, "blind_only"), is_slow=True,
    ),
    # of judges and people as raters
    **_each("ratings", rated, rater_pairs, item_marks, rows_for_raters, rater_pair, ignores=_RATERS),
    # of judges beside people
    **_each("error_estimates", "table.error_estimates", is_slow=True),
    **_each(
        "score_estimates", "scores_beside_people", "table.score_estimates", rows_for_scores, "score_rates",
        ignores=("matches", "tolerance"),
    ),
    **_each(bias_lines, bias_marks, "score_pairs", ignores=("matches", "tolerance")),
    **_each(
        "error_pairs", strip_marks, strip_counts, compared, "judged", summary, overlap, facts, "findings",
    ),
    **_each(reference, ignores=("missing", "same_traces")),
    **_each(pilot, ignores=("judge_models",)),
    **_each(incomplete, ignores=tuple(name for name in _PEOPLE if name != "reference")),
}  # fmt: skip
"""Every estimate and what it needs. To add one: a function from `Sources` and its arguments to a frame, and itself
here."""


def build(sources: Sources, name: str, *arguments: str) -> pd.DataFrame:
    """The estimate. Raises `KeyError` for one that does not exist, `ValueError` where the filters have none."""
    table: Any = ESTIMATES[name].build(sources, *arguments)
    assert isinstance(table, pd.DataFrame)
    return table
