"""Figures by name: what a page asks for and how it is made, so that another process can make it and keep it.

To add one: a function from a `Bench` and its arguments to a frame, one line in `FIGURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import orjson
import pandas as pd

from tracejury.judging.agreement import ceiling, compare, errors, marks, raters, rationale, reliability, scores
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.intervals import DRAWS
from tracejury.judging.agreement.tables import TABLES, Inputs
from tracejury.judging.reports.export import facts_of
from tracejury.judging.reports.frames import FRAME_NAMES, PEOPLE, Frames, LazyFrames, Selection
from tracejury.judging.store.judge_models import is_joint
from tracejury.judging.store.revisions import Revision as Revision


@dataclass(frozen=True, kw_only=True)
class Chosen(Selection):
    """What is compared and how: everything but the data that a figure depends on."""

    missing: Missing = "drop"
    draws: int = DRAWS

    def selection(self) -> Selection:
        """As the store takes it."""
        return Selection(**{each.name: getattr(self, each.name) for each in fields(Selection)})

    def key(self) -> str:
        """The same for the same choice, whoever made it, as long as the code that makes figures is the same."""
        return self._key

    @cached_property
    def _key(self) -> str:
        content = orjson.dumps([_code(), asdict(self)], option=orjson.OPT_SORT_KEYS)
        return blake2b(content, digest_size=10).hexdigest()

    def without(self, names: tuple[str, ...]) -> Chosen:
        """The choice with these parts as nobody chose them; the same object for the same names."""
        if names not in self._without:
            self._without[names] = replace(self, **{name: getattr(Chosen(), name) for name in names})
        return self._without[names]

    @cached_property
    def _without(self) -> dict[tuple[str, ...], Chosen]:
        return {}


_SEVERAL = ("judge_models", "dimensions", "versions", "formats")  # tuples, which JSON knows as lists


@dataclass(frozen=True, kw_only=True)
class Question:
    """A figure of a choice. `arguments` are the figure's own (a dimension, two judges)."""

    figure: str
    chosen: Chosen = field(default_factory=Chosen)
    arguments: tuple[str, ...] = ()

    def file(self) -> str:
        """Its file's name."""
        if not self.arguments:
            return f"{self.figure}.arrow"
        return f"{self.figure}-{blake2b(orjson.dumps(self.arguments), digest_size=8).hexdigest()}.arrow"

    def place(self) -> Chosen:
        """The choice under which it is kept: what does not change this figure is as nobody chose it."""
        return self.chosen.without(untouched_by(self.figure))

    def is_slow(self) -> bool:
        """Whether it takes long where there is much: nothing shorter waits for it."""
        return self.figure in LATE or any(side.startswith("person=") for side in self.arguments)

    def is_aside(self) -> bool:
        """Whether it can be made aside from others: what they are made of is not needed for it."""
        return self.figure in ASIDE

    def title(self) -> str:
        """What is computed, in words."""
        return " ".join([self.figure.removeprefix("table.").replace("_", " "), *self.arguments])

    def to_json(self) -> bytes:
        return orjson.dumps(asdict(self))

    @classmethod
    def from_json(cls, data: bytes) -> Question:
        """Raises `KeyError` or `ValueError` for what is no question."""
        held = orjson.loads(data)
        chosen = Chosen(**{**held["chosen"], **{name: tuple(held["chosen"][name]) for name in _SEVERAL}})
        return cls(figure=held["figure"], chosen=chosen, arguments=tuple(held["arguments"]))


def no_side(text: str) -> pd.DataFrame:
    """The side of a bench that knows its own judges alone."""
    raise ValueError(f"{text!r} is no judge of this choice")


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What figures are made from, all of one revision.

    `side` gives the error pairs of another side than the judges of the frames: a version, a run, a person, as
    `judging.reports.arms` reads it. Raises `ValueError`.
    """

    frames: Frames | LazyFrames
    inputs: Inputs
    side: Callable[[str], pd.DataFrame] = no_side


Build = Callable[..., pd.DataFrame]
SUITES: Final = compare.SUITES


def as_raters(ratings: pd.DataFrame) -> pd.DataFrame:
    """People and judges as raters of the same units; a judge is named by its judge model, with the run where
    several.
    """
    runs = ratings.groupby("judge_model")["rater"].transform("nunique")
    dimension = ratings["judge_model"].where(runs <= 1, ratings["judge_model"] + " " + ratings["rater"])
    return ratings.assign(rater=ratings["rater"].where(ratings["judge_model"] == PEOPLE, dimension), judge_model="")


def alpha_samples(bench: Bench) -> pd.DataFrame:
    """`reliability.alpha_draws` of the runs of every judge that has several."""
    return reliability.alpha_draws(bench.inputs.rated_by("judge"), draws=bench.inputs.draws, seed=bench.inputs.seed)


def trace_rationales(bench: Bench) -> pd.DataFrame:
    """`rationale.trace_consistency` of the rationales."""
    return rationale.trace_consistency(bench.inputs.frame("rationales"), rationale.tfidf())


def rater_pairs(bench: Bench, dimension: str) -> pd.DataFrame:
    """`raters.pairwise_table` of people and judges on one dimension."""
    return raters.pairwise_table(_raters_on(bench, dimension).drop(columns="split"))


def rater_pair(bench: Bench, dimension: str, first: str, second: str) -> pd.DataFrame:
    """The row of `rater_pairs` of two raters, with the bounds that take too long for all pairs."""
    mine = _raters_on(bench, dimension).drop(columns="split")
    two = mine[mine["rater"].isin([first, second])]
    return raters.pairwise_table(two, draws=bench.inputs.draws, seed=bench.inputs.seed, method=bench.inputs.method)


def item_marks(bench: Bench, dimension: str) -> pd.DataFrame:
    """`marks.disputed_items` of people and judges on one dimension."""
    return marks.disputed_items(_raters_on(bench, dimension))


def _raters_on(bench: Bench, dimension: str) -> pd.DataFrame:
    ratings = as_raters(bench.frames.ratings)
    return ratings[ratings["dimension"] == dimension]


def rated(bench: Bench) -> pd.DataFrame:
    """judge, rater: who scored which dimension, people and judges as raters."""
    ratings = bench.frames.ratings
    return as_raters(ratings)[["dimension", "rater"]].drop_duplicates(ignore_index=True)


def run_marks(bench: Bench, judge_model: str, dimension: str) -> pd.DataFrame:
    """`marks.widest_runs` of one judge."""
    return marks.widest_runs(_runs_of(bench, judge_model, dimension))


def run_spread(bench: Bench, judge_model: str, dimension: str) -> pd.DataFrame:
    """sd: the spread over runs of each trace of one judge, NaN with fewer than two."""
    matrix = reliability.rating_matrix(_runs_of(bench, judge_model, dimension))
    return pd.DataFrame({"sd": reliability.run_spread(matrix.values)})


def _runs_of(bench: Bench, judge_model: str, dimension: str) -> pd.DataFrame:
    ratings = bench.frames.ratings
    return ratings[(ratings["judge_model"] == judge_model) & (ratings["dimension"] == dimension)]


def strip_marks(bench: Bench, whose: str) -> pd.DataFrame:
    """`marks.drawn_levels` of the errors; `whose`: `own`, or `every` for those of other dimensions too."""
    return marks.drawn_levels(marks.error_levels(bench.frames.error_pairs, own=whose == "own"))


def strip_counts(bench: Bench, whose: str) -> pd.DataFrame:
    """`marks.level_counts` of the same."""
    return marks.level_counts(marks.error_levels(bench.frames.error_pairs, own=whose == "own"))


def each_once(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of judges that are taken together: a jury says again what its members say, and counts alone only."""
    joint = rows["judge_model"].isin([name for name in rows["judge_model"].unique() if is_joint(name)])
    return rows if joint.all() else rows[~joint]


def bias_marks(bench: Bench, judge_model: str = "", dimension: str = "", split: str = "") -> pd.DataFrame:
    """Pairs of scores to draw: those of one judge, or of all."""
    return marks.spread_out(_scored(bench, judge_model, dimension, split))


def bias_lines(bench: Bench, judge_model: str = "", dimension: str = "", split: str = "") -> pd.DataFrame:
    """`marks.bias_lines` of all pairs of scores of one judge, or of all but juries, with the bounds of the mean.

    Those of one judge stand in `score_figures`, and are missing here.
    """
    scored, made = _scored(bench, judge_model, dimension, split), bench.inputs
    low, high = scores.pooled_bias(scored, draws=0 if judge_model else made.draws, seed=made.seed, method=made.method)
    return marks.bias_lines(scored).assign(low=low, high=high)


def _scored(bench: Bench, judge_model: str, dimension: str, split: str) -> pd.DataFrame:
    """The pairs with a score on both sides; of all judges each once."""
    pairs = marks.both_scored(bench.frames.score_pairs)
    if not judge_model:
        return each_once(pairs)
    return pairs[(pairs["judge_model"] == judge_model) & (pairs["dimension"] == dimension) & (pairs["split"] == split)]


def pairs_behind(
    bench: Bench, judge_model: str, dimension: str, split: str, impact: str, error_dimension: str, kind: str, rate: str
) -> pd.DataFrame:
    """The error pairs that a mark or figure counts, as many as its n; an empty argument is any.

    `rate` says which errors of the judge count, by `kind` (caught, localized): those of its dimension (`recall`, and
    where no rate is given), those it predicts (`precision`), either (`f1`, `f2`), all (`accuracy`, and under a
    `error_dimension`, of which the errors are). The dimension `any` is a suite taken together: each error once. Failed
    judgements count where they count as misses.
    """
    pairs = errors.checked_pairs(bench.frames.error_pairs)
    known = ["scored"] if bench.inputs.missing == "drop" else ["scored", "failed"]
    kept = pairs["state"].isin(known)
    wanted = {"judge_model": judge_model, "split": split, "impact": "" if impact == "all" else impact}
    for column, value in {**wanted, "dimension": "" if dimension == SUITES else dimension}.items():
        kept &= (pairs[column] == value) | (not value)
    if error_dimension:
        kept &= pd.Series([error_dimension in said.split(",") for said in pairs["dimensions"]], index=pairs.index)
    elif dimension != SUITES:
        kept &= _counted_by(pairs, kind, rate)
    found = pairs.loc[kept, list(BEHIND)]
    return _each_error(found) if dimension == SUITES else found


BEHIND: Final = (
    "trace_id", "error_id", "impact", "dimensions", "judge_model", "dimension", "caught", "localized", "match_status",
    "annotator",
)  # fmt: skip


def _counted_by(pairs: pd.DataFrame, kind: str, rate: str) -> pd.Series:
    """Whether an error stands behind a rate of its judge, see `errors.rate_n`."""
    relevant, predicted = pairs["relevant"].astype(bool), pairs[kind or "caught"].astype(bool)
    match rate:
        case "precision":
            return predicted
        case "f1" | "f2":
            return relevant | predicted
        case "accuracy":
            return pd.Series(data=True, index=pairs.index)
        case _:
            return relevant


def _each_error(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs of a suite as one row an error: caught or localized by any of its judges."""
    keys = ["judge_model", "trace_id", "error_id"]
    found = pairs.groupby(keys, sort=False)[["caught", "localized"]].any()
    # the pair that was matched speaks for the error
    about = pairs.sort_values("caught", ascending=False, kind="stable").drop_duplicates(keys).set_index(keys)
    return about.assign(caught=found["caught"], localized=found["localized"], dimension=SUITES).reset_index()[
        list(BEHIND)
    ]


def scores_behind(
    bench: Bench, judge_model: str, dimension: str, split: str, reference_score: str, judge_score: str, metric: str
) -> pd.DataFrame:
    """The pairs of scores that a mark or figure counts; an empty argument is any, several scores stand by commas.

    Failed judgements stand behind an accuracy (`metric`) where they count as wrong.
    """
    every = bench.frames.score_pairs
    pairs = marks.both_scored(every)
    if bench.inputs.missing == "disagree" and metric in ACCURACIES:
        pairs = pd.concat(
            [pairs, every[(every["state"] == "failed") & every["reference_score"].notna()]], ignore_index=True
        )
    kept = pd.Series(data=True, index=pairs.index)
    for column, value in {"judge_model": judge_model, "dimension": dimension, "split": split}.items():
        kept &= (pairs[column] == value) | (not value)
    for column, value in {"reference_score": reference_score, "judge_score": judge_score}.items():
        kept &= pairs[column].isin([float(score) for score in value.split(",") if score]) | (not value)
    return pairs.loc[kept, ["trace_id", "judge_model", "dimension", "reference_score", "judge_score"]]


ACCURACIES: Final = frozenset(metric.name for metric in scores.SCORE_METRICS if metric.hits)


def raters_behind(bench: Bench, dimension: str, first: str, second: str) -> pd.DataFrame:
    """trace_id, first, second, difference, annotator, judge_model, run of the traces that two raters both scored.

    The last three say where Compare shows them: the person among the two, the judge, and its run.
    """
    ratings = bench.frames.ratings
    named = as_raters(ratings).assign(kind=ratings["judge_model"], run=ratings["rater"])
    mine = named[named["dimension"] == dimension].dropna(subset=["value"])
    sides = [mine[mine["rater"] == name].set_index("unit") for name in (first, second)]
    values = {name: side["value"] for name, side in zip(("first", "second"), sides, strict=True)}
    both = pd.DataFrame(values).dropna().rename_axis("trace_id").reset_index()
    people = [side["rater"].iloc[0] for side in sides if len(side) and side["kind"].iloc[0] == PEOPLE]
    judges = [(side["kind"].iloc[0], side["run"].iloc[0]) for side in sides if len(side)]
    judges = [named for named in judges if named[0] != PEOPLE] or [(None, None)]
    about = {"annotator": people[0] if people else None, "judge_model": judges[0][0], "run": judges[0][1]}
    found = both.assign(difference=both["second"] - both["first"], **about)
    return found.sort_values("difference", key=abs, ascending=False, kind="stable", ignore_index=True)


def people_behind(bench: Bench, dimension: str, split: str) -> pd.DataFrame:
    """trace_id, people, scores of the traces of which two people or more scored a dimension: the ceiling's."""
    people = bench.inputs.rated_by("annotator").dropna(subset=["value"])
    mine = people[(people["dimension"] == dimension) & ((people["split"] == split) | (not split))]
    said = mine["rater"] + ": " + mine["value"].map("{:g}".format)
    by_trace = mine.assign(scores=said).groupby("unit", sort=False)
    table = by_trace.agg(people=("rater", "size"), scores=("scores", "; ".join))
    return table[table["people"] > 1].rename_axis("trace_id").reset_index()


def people_errors_behind(
    bench: Bench, dimension: str, split: str, kind: str, rate: str, impact: str = "all"
) -> pd.DataFrame:
    """The comparisons of a person's error with another person that a rate of the errors' ceiling counts."""
    pairs = ceiling.checked_person_pairs(bench.inputs.frame("person_pairs"))
    pairs = pairs[(pairs["impact"] == impact) | (impact == "all")]
    kept = (
        (pairs["dimension"] == dimension) & ((pairs["split"] == split) | (not split)) & _counted_by(pairs, kind, rate)
    )
    columns = ["trace_id", "error_id", "impact", "author", "other", "dimension", "caught", "localized"]
    return pairs.loc[kept, columns]


def reference(bench: Bench) -> pd.DataFrame:
    """Who is compared with, None where nobody submitted anything."""
    return pd.DataFrame({"reference": [bench.frames.reference]}, dtype="object")


def summary(bench: Bench) -> pd.DataFrame:
    """One row: how much is compared. errors, incomplete (errors that are not compared), traces (with errors),
    error_pairs, score_pairs, and what failed.
    """
    pairs = bench.frames.error_pairs
    failed = each_once(pairs)
    failed = failed[failed["state"] == "failed"]
    counts = {
        "errors": len(pairs[["trace_id", "error_id"]].drop_duplicates()),
        "incomplete": len(bench.frames.incomplete),
        "traces": pairs["trace_id"].nunique(),
        "error_pairs": len(pairs),
        "score_pairs": len(bench.frames.score_pairs),
        "failed_pairs": len(failed),
        "failed_cells": len(failed[["trace_id", "judge_model", "dimension"]].drop_duplicates()),
    }
    return pd.DataFrame([counts])


def incomplete(bench: Bench) -> pd.DataFrame:
    """trace_id, error_id, annotator, lacks of the errors that are in no figure: they lack what a judge could find."""
    return bench.frames.incomplete


def repeated(bench: Bench) -> pd.DataFrame:
    """judge_model, dimension, split of the judges with two runs or more."""
    runs = bench.inputs.rated_by("judge").groupby(["judge_model", "dimension", "split"], sort=False)["rater"].nunique()
    return runs[runs > 1].reset_index()[["judge_model", "dimension", "split"]]


def facts(bench: Bench) -> pd.DataFrame:
    """One row: `export.facts_of` the frames, what holds several as JSON."""
    counted = asdict(facts_of(bench.frames))
    several = ("judge_models", "votes", "judge_versions", "store_revision")
    as_text = {name: orjson.dumps(counted[name]).decode() for name in several}
    return pd.DataFrame([{**counted, **as_text}])


def compared(bench: Bench) -> pd.DataFrame:
    """The judge models that errors or scores are compared of."""
    names = [*bench.frames.error_pairs["judge_model"].unique(), *bench.frames.score_pairs["judge_model"].unique()]
    return pd.DataFrame({"judge_model": list(dict.fromkeys(map(str, names)))}, dtype="object")


def two_sides(bench: Bench, left: str, right: str) -> list[pd.DataFrame]:
    """The pairs of two sides by the dimensions they share; where they share none, each as one judge `SUITES`."""
    sides = [_side(bench, text) for text in (left, right)]
    return list(compare.comparable_sides(*sides))


def _side(bench: Bench, text: str) -> pd.DataFrame:
    pairs = bench.frames.error_pairs
    mine = pairs[pairs["judge_model"] == text]
    return bench.side(text) if mine.empty else mine


def differences(bench: Bench, left: str, right: str) -> pd.DataFrame:
    """`compare.compare_errors` of two sides."""
    return compare.compare_errors(*two_sides(bench, left, right), draws=bench.inputs.draws)


def found_by_one(bench: Bench, left: str, right: str, kind: str) -> pd.DataFrame:
    """`compare.mcnemar_table` of two sides, of caught or localized errors."""
    return compare.mcnemar_table(*two_sides(bench, left, right), kind="localized" if kind == "localized" else "caught")


def flips(bench: Bench, left: str, right: str) -> pd.DataFrame:
    """`compare.error_flips` of two sides."""
    return compare.error_flips(*two_sides(bench, left, right))


def _input(name: Any) -> Build:
    return lambda bench: bench.inputs.frame(name)


def _derived(name: str) -> Build:
    return lambda bench: getattr(bench.inputs, name)


def _table(name: str) -> Build:
    known = {table.name: table for table in TABLES}
    return lambda bench: known[name].made(bench.inputs)


DERIVED: Final = (
    "error_rates", "coverage", "suite", "score_figures", "consistency", "human_ceiling", "figures_of_scores",
    "matcher_agreement", "reviewer_agreement",
)  # fmt: skip
"""Tables that `Inputs` derives and shares; each is a figure of its own."""

LATE: Final = (
    "error_ceiling", "error_figures", "table.error_ceiling", "table.error_figures", "person_pairs", "trace_rationales",
    "table.rationale_consistency", "people_errors_behind",
)  # fmt: skip
"""Figures that weigh texts (every pair of people's errors, every pair of rationales): they take long where there are
many, and nothing shorter waits for them."""

ASIDE: Final = ("score_figures", "human_ceiling", "consistency")
"""Figures of scores alone: they may be made while those of errors are."""

FRAMES: Final = FRAME_NAMES
"""The frames that a choice has; each is a figure of its own."""

OPINIONS: Final = ("match_decisions", "finding_decisions", "person_pairs")
"""Inputs that no judge enters."""

FIGURES: Final[Mapping[str, Build]] = {
    **{name: _input(name) for name in (*FRAMES, *OPINIONS)},
    **{name: _derived(name) for name in (*DERIVED, "error_ceiling", "error_figures")},
    **{f"table.{table.name}": _table(table.name) for table in TABLES},
    **{
        each.__name__: each
        for each in (
            alpha_samples, bias_lines, bias_marks, compared, differences, facts, flips, found_by_one, incomplete,
            item_marks, reference,
            pairs_behind, rated, rater_pairs, repeated, run_marks, run_spread, scores_behind, strip_counts, strip_marks,
            summary, trace_rationales, people_behind, people_errors_behind, rater_pair, raters_behind,
        )
    },
}  # fmt: skip

_OF_RUNS: Final = ("reference", "gold", "matches", "missing", "repeat", "blind_only", "guideline")
_OF_PEOPLE: Final = ("reference", "gold", "judge_models", "dimensions", "versions", "matches", "missing", "repeat")
_UNTOUCHED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("consistency", "alpha_samples", "trace_rationales", "run_marks", "run_spread", "repeated"), _OF_RUNS
    ),
    **dict.fromkeys(("rationales", "table.table_07_consistency", "table.rationale_consistency"), _OF_RUNS),
    **dict.fromkeys(("human_ceiling", "table.human_ceiling", "people_behind"), _OF_PEOPLE),
    **dict.fromkeys(
        ("error_ceiling", "person_pairs", "table.error_ceiling", "people_errors_behind"), (*_OF_PEOPLE, "blind_only")
    ),
    **dict.fromkeys(
        ("ratings", "rated", "rater_pairs", "item_marks", "raters_behind", "rater_pair"),
        ("reference", "gold", "matches", "missing", "repeat"),
    ),
    **dict.fromkeys(("score_figures", "figures_of_scores", "table.score_figures", "scores_behind"), ("matches",)),
    **dict.fromkeys(("bias_lines", "bias_marks", "score_pairs"), ("matches", "missing")),
    **dict.fromkeys(("error_pairs", "strip_marks", "strip_counts", "compared"), ("missing",)),
    **dict.fromkeys(("reference", "judged", "summary", "facts", "findings"), ("missing",)),
    "incomplete": ("judge_models", "dimensions", "versions", "matches", "missing", "repeat"),
}
"""What a figure is made without: chosen otherwise, it is the same, and is not made again."""


def untouched_by(figure: str) -> tuple[str, ...]:
    """The parts of a choice that do not change a figure."""
    return _UNTOUCHED.get(figure, ())


@cache
def _code() -> str:
    """A hash of our code: another version of it makes other figures."""
    state = blake2b(digest_size=8)
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        state.update(file.read_bytes())
    return state.hexdigest()


def make(bench: Bench, question: Question) -> pd.DataFrame:
    """The figure. Raises `KeyError` for one that does not exist, `ValueError` for one that cannot be made."""
    build: Any = FIGURES[question.figure]
    made = build(bench, *question.arguments)
    assert isinstance(made, pd.DataFrame)
    return made
