"""Figures by name: what a page asks for and how it is made, so that another process can make it and keep it.

To add one: a function from a `Bench` and its arguments to a frame, one line in `FIGURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import orjson
import pandas as pd

from judging.agreement import compare, raters, rationale, reliability
from judging.agreement.frames import Missing
from judging.agreement.intervals import DRAWS
from judging.agreement.tables import COLUMNS, TABLES, Inputs
from judging.ledger.frames import PEOPLE, Frames, Selection
from judging.ledger.revisions import Revision as Revision


@dataclass(frozen=True, kw_only=True)
class Chosen(Selection):
    """What is compared and how: everything but the data that a figure depends on."""

    missing: Missing = "drop"
    draws: int = DRAWS

    def selection(self) -> Selection:
        """As the ledger takes it."""
        return Selection(**{each.name: getattr(self, each.name) for each in fields(Selection)})

    def key(self) -> str:
        """The same for the same choice, whoever made it, as long as the code that makes figures is the same."""
        content = orjson.dumps([_code(), asdict(self)], option=orjson.OPT_SORT_KEYS)
        return blake2b(content, digest_size=10).hexdigest()


_SEVERAL = ("systems", "judges", "versions", "formats")  # tuples, which JSON knows as lists


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

    def title(self) -> str:
        """What is computed, in words."""
        return " ".join([self.figure.replace("_", " "), *self.arguments])

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
    `judging.ledger.sides` reads it. Raises `ValueError`.
    """

    frames: Frames
    inputs: Inputs
    side: Callable[[str], pd.DataFrame] = no_side


Build = Callable[..., pd.DataFrame]


def as_raters(ratings: pd.DataFrame) -> pd.DataFrame:
    """People and judges as raters of the same units; a judge is named by its system, with the run where several."""
    runs = ratings.groupby("system")["rater"].transform("nunique")
    judge = ratings["system"].where(runs <= 1, ratings["system"] + " " + ratings["rater"])
    return ratings.assign(rater=ratings["rater"].where(ratings["system"] == PEOPLE, judge), system="")


def alpha_samples(bench: Bench) -> pd.DataFrame:
    """system, judge, alpha: every draw of alpha's bootstrap, of judges with two runs or more."""
    found = []
    runs = bench.inputs.rated_by("run")
    for (system, judge), part in runs.groupby(["system", "judge"], sort=False):
        matrix = reliability.rating_matrix(part)
        if len(matrix.raters) > 1 and reliability.alpha(matrix.values).value is not None:
            boot = reliability.alpha_bootstrap(matrix.values, draws=bench.inputs.draws, seed=bench.inputs.seed)
            found.append(pd.DataFrame({"system": system, "judge": judge, "alpha": boot.samples[0]}))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=["system", "judge", "alpha"])


def trace_rationales(bench: Bench) -> pd.DataFrame:
    """`rationale.trace_consistency` of the rationales."""
    return rationale.trace_consistency(bench.inputs.frame("rationales"), rationale.tfidf())


def rater_pairs(bench: Bench, dimension: str) -> pd.DataFrame:
    """`raters.pairwise_table` of people and judges on one dimension."""
    ratings = as_raters(bench.frames.ratings)
    return raters.pairwise_table(ratings[ratings["judge"] == dimension].drop(columns="split"))


SUITES: Final = "any"  # the judge that a suite of dimensions is taken for


def two_sides(bench: Bench, left: str, right: str) -> list[pd.DataFrame]:
    """The pairs of two sides by the dimensions they share; where they share none, each as one judge `SUITES`."""
    sides = [_side(bench, text) for text in (left, right)]
    common = set(sides[0]["judge"]) & set(sides[1]["judge"])
    if common:
        return [side[side["judge"].isin(common)] for side in sides]
    return [as_one_judge(side) for side in sides]


def _side(bench: Bench, text: str) -> pd.DataFrame:
    pairs = bench.frames.error_pairs
    mine = pairs[pairs["system"] == text]
    return bench.side(text) if mine.empty else mine


def as_one_judge(pairs: pd.DataFrame) -> pd.DataFrame:
    """A suite of dimensions as one judge `any`, to be compared error by error; failed cells are left out."""
    flags = pairs[pairs["state"] == "scored"].astype({"caught": bool, "localized": bool})
    keys = ["system", "trace_id", "error_id"]
    found = flags.groupby(keys, sort=False)[["caught", "localized"]].any().reset_index()
    about = flags.drop_duplicates(keys)[[*keys, "impact", "split"]]
    return found.merge(about, on=keys).assign(judge=SUITES, relevant=True, state="scored")


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
    return lambda bench: known[name].build(bench.inputs)


DERIVED: Final = (
    "error_rates", "coverage", "suite", "score_figures", "consistency", "human_ceiling", "figures_of_scores",
    "matcher_agreement", "reviewer_agreement",
)  # fmt: skip
"""Tables that `Inputs` derives and shares; each is a figure of its own."""

LATE: Final = (
    "error_ceiling", "error_figures", "table.error_ceiling", "table.error_figures", "person_pairs", "trace_rationales",
)  # fmt: skip
"""Figures that weigh texts (every pair of people's errors, every pair of rationales): they take long where there are
many, and nothing shorter waits for them."""

FRAMES: Final = tuple(name for name in COLUMNS if name in Frames.__dataclass_fields__)
"""The frames that a choice has; each is a figure of its own."""

OPINIONS: Final = ("match_words", "finding_words", "person_pairs")
"""Inputs that no judge enters."""

FIGURES: Final[Mapping[str, Build]] = {
    **{name: _input(name) for name in (*FRAMES, *OPINIONS)},
    **{name: _derived(name) for name in (*DERIVED, "error_ceiling", "error_figures")},
    **{f"table.{table.name}": _table(table.name) for table in TABLES},
    "alpha_samples": alpha_samples,
    "trace_rationales": trace_rationales,
    "rater_pairs": rater_pairs,
    "differences": differences,
    "found_by_one": found_by_one,
    "flips": flips,
}


@cache
def _code() -> str:
    """A hash of our code: another version of it makes other figures."""
    state = blake2b(digest_size=8)
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        state.update(file.read_bytes())
    return state.hexdigest()


def make(bench: Bench, question: Question) -> pd.DataFrame:
    """The figure. Raises `KeyError` for one that does not exist, `ValueError` for one that cannot be made."""
    build: Any = FIGURES[question.figure]
    made = build(bench, *question.arguments)
    assert isinstance(made, pd.DataFrame)
    return made
