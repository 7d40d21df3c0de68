"""Every report table and every metric by name: the paper's Tables 1 to 17 and ours, from frames to frames.

To add a table: one function from `Inputs` to a frame, one line in `TABLES`. A metric: one line in `METRICS`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Final, Literal

import pandas as pd

from tracejury.judging.agreement import (
    calibration,
    ceiling,
    compare,
    costs,
    errors,
    evidence_overlap,
    findings,
    frames,
    juries,
    majority,
    match_rates,
    matchers,
    over_time,
    prevalence,
    ranking,
    raters,
    rationale,
    reasons,
    reliability,
    scores,
    slices,
    trail,
)
from tracejury.judging.agreement.frames import Impact, Kind, Missing
from tracejury.judging.agreement.intervals import DRAWS, SEED
from tracejury.judging.agreement.metric import Best, Metric
from tracejury.judging.agreement.rounding import half_up, percent

InputName = Literal[
    "error_pairs",
    "score_pairs",
    "ratings",
    "findings",
    "judged",
    "rationales",
    "repeats",
    "person_pairs",
    "match_decisions",
    "finding_decisions",
    "votes",
    "jury_votes",
    "unit_labels",
    "periods",
    "slices",
    "costs",
    "rule_rates",
    "evidence_pairs",
    "other_error_pairs",
    "other_score_pairs",
    "trail_gold",
    "trail_predictions",
    "trail_traces",
    "trail_scores",
]

COLUMNS: Final[dict[InputName, tuple[str, ...]]] = {
    "error_pairs": frames.ERROR_PAIRS,
    "score_pairs": frames.SCORE_PAIRS,
    "ratings": frames.RATINGS,
    "findings": frames.FINDINGS,
    "judged": ("trace_id", "dimension"),
    "rationales": frames.RATIONALES,
    "repeats": ("rater", "unit", "first", "second"),
    "person_pairs": ceiling.PERSON_PAIRS,
    "match_decisions": matchers.MATCH_DECISIONS,
    "finding_decisions": matchers.FINDING_DECISIONS,
    "votes": majority.VOTES,
    "jury_votes": juries.JURY_VOTES,
    "unit_labels": ("dimension", "unit", "judge_label", "reference_label"),
    "periods": over_time.PERIODS,
    "slices": slices.SLICES,
    "costs": costs.COSTS,
    "rule_rates": tuple(match_rates.RULE_RATES),
    "evidence_pairs": evidence_overlap.EVIDENCE_PAIRS,
    "other_error_pairs": frames.ERROR_PAIRS,
    "other_score_pairs": frames.SCORE_PAIRS,
    "trail_gold": ("trace_id", "category", "location"),
    "trail_predictions": ("trace_id", "category", "location"),
    "trail_traces": ("trace_id", "state"),
    "trail_scores": ("trace_id", "scale", "reference_score", "judge_score"),
}
"""Needed columns of each input; `report --from-csv` reads a file of each name. Optional columns: see the function
that takes the frame."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The frames that tables are made from, each optional, and how figures are made.

    `missing`: whether failed judgements are left out or count as disagreement. `draws=0` computes no
    bootstrap. Derived tables are computed once and shared by the report tables.
    """

    error_pairs: pd.DataFrame | None = None
    score_pairs: pd.DataFrame | None = None
    ratings: pd.DataFrame | None = None
    """Optional column `rater_kind`: `judge` (default), `annotator` or `gold`; Table 7 takes judges, the ceiling people.
    `gold` is what people adjudicated together: it stands among the pairs of raters, but is no further person."""
    findings: pd.DataFrame | None = None
    judged: pd.DataFrame | None = None
    rationales: pd.DataFrame | None = None
    repeats: pd.DataFrame | None = None
    person_pairs: pd.DataFrame | None = None
    match_decisions: pd.DataFrame | None = None
    finding_decisions: pd.DataFrame | None = None
    votes: pd.DataFrame | None = None
    jury_votes: pd.DataFrame | None = None
    unit_labels: pd.DataFrame | None = None
    periods: pd.DataFrame | None = None
    slices: pd.DataFrame | None = None
    costs: pd.DataFrame | None = None
    rule_rates: pd.DataFrame | None = None
    evidence_pairs: pd.DataFrame | None = None
    other_error_pairs: pd.DataFrame | None = None
    other_score_pairs: pd.DataFrame | None = None
    trail_gold: pd.DataFrame | None = None
    trail_predictions: pd.DataFrame | None = None
    trail_traces: pd.DataFrame | None = None
    trail_scores: pd.DataFrame | None = None
    vectoriser: rationale.VectoriserName = "tfidf"
    missing: Missing = "drop"
    draws: int = DRAWS
    seed: int = SEED

    def frame(self, name: InputName) -> pd.DataFrame:
        """The input of that name, or an empty frame of its columns."""
        frame = self.given(name)
        return frames.empty(dict.fromkeys(COLUMNS[name], "object")) if frame is None else frame

    def given(self, name: InputName) -> pd.DataFrame | None:
        """The input of that name, None where there is none."""
        held = getattr(self, name)
        return held if isinstance(held, pd.DataFrame) else None

    def has(self, name: InputName) -> bool:
        """Whether it is given; asking for it may take longer."""
        return self.given(name) is not None

    def rated_by(self, kind: Literal["judge", "annotator"]) -> pd.DataFrame:
        """The ratings by runs of judges, or by people. Raises ValueError for another kind of rater."""
        ratings = frames.with_defaults(self.frame("ratings"), {"rater_kind": "judge"})
        unknown = sorted(set(ratings["rater_kind"].unique()) - {"judge", "annotator", "gold"})
        if unknown:
            raise ValueError(f"ratings.rater_kind holds {unknown!r}; expected judge, annotator or gold")
        return ratings[ratings["rater_kind"] == kind]

    @cached_property
    def error_rates(self) -> pd.DataFrame:
        """`errors.error_table` of the error pairs."""
        return errors.error_table(self.frame("error_pairs"), missing=self.missing, draws=self.draws)

    @cached_property
    def rate_estimates(self) -> pd.DataFrame:
        """`errors.error_estimates` of the error rates: the long form with each rate's own n and reason."""
        return errors.error_estimates(self.error_rates)

    @cached_property
    def coverage(self) -> pd.DataFrame:
        """`errors.coverage_of` of the error pairs."""
        return errors.coverage_of(self.error_rates)

    @cached_property
    def suite(self) -> pd.DataFrame:
        """`errors.suite_coverage` of the error pairs."""
        return errors.suite_coverage(self.frame("error_pairs"), missing=self.missing, draws=self.draws)

    @cached_property
    def score_estimates(self) -> pd.DataFrame:
        """`scores.score_estimates` of the score pairs."""
        return scores.score_estimates(self.frame("score_pairs"), missing=self.missing, draws=self.draws)

    @cached_property
    def score_rates(self) -> pd.DataFrame:
        """`scores.score_table` of the score pairs."""
        return scores.wide_scores(self.score_estimates)

    @cached_property
    def people_estimates(self) -> pd.DataFrame:
        """`raters.people_estimates` of the people among the ratings."""
        people = self.rated_by("annotator").assign(judge_model="people")
        return raters.people_estimates(people, draws=self.draws)

    @cached_property
    def human_ceiling(self) -> pd.DataFrame:
        """`raters.human_ceiling` of the people among the ratings."""
        return raters.wide_people(self.people_estimates)

    @cached_property
    def error_ceiling(self) -> pd.DataFrame:
        """`ceiling.error_ceiling` of the person pairs."""
        return ceiling.error_ceiling(self.frame("person_pairs"), draws=self.draws)

    @cached_property
    def matcher_agreement(self) -> pd.DataFrame:
        """`matchers.matcher_agreement` of what people said of matches."""
        return matchers.matcher_agreement(self.frame("match_decisions"), draws=self.draws)

    @cached_property
    def reviewer_agreement(self) -> pd.DataFrame:
        """`matchers.reviewer_agreement` of what people said of unmatched findings."""
        return matchers.reviewer_agreement(self.frame("finding_decisions"), draws=self.draws)

    @cached_property
    def error_estimates(self) -> pd.DataFrame:
        """`errors.error_estimates` of the error rates, each beside what people reach (ceiling and its bounds).

        A judge of no dimension (one that lists all errors) stands beside the recall of `any`.
        """
        figures = self.rate_estimates
        among_people = figures["dimension"].where(figures["dimension"].isin(frames.DIMENSION_ORDER), ceiling.ANY)
        reached = self.error_ceiling.rename(columns={"dimension": "among_people"})
        on = ["among_people", "impact", "split", "kind", "metric"]
        return ceiling.beside(figures.assign(among_people=among_people), reached, on).drop(columns="among_people")

    @cached_property
    def scores_beside_people(self) -> pd.DataFrame:
        """`score_estimates`, each beside what people reach."""
        reached = self.people_estimates
        return ceiling.beside(self.score_estimates, reached, ["dimension", "split", "metric"])

    @cached_property
    def trace_rationales(self) -> pd.DataFrame:
        """`rationale.trace_consistency` of the rationales."""
        return rationale.trace_consistency(self.frame("rationales"), rationale.VECTORISERS[self.vectoriser]())

    @cached_property
    def consistency(self) -> pd.DataFrame:
        """`reliability.reliability_table` of the ratings."""
        return reliability.reliability_table(self.rated_by("judge"), draws=self.draws, seed=self.seed)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A report table: `name` is its file name, `made` makes it, `digits` and `percents` print it."""

    name: str
    title: str
    needs: tuple[InputName, ...]
    build: Callable[[Inputs], pd.DataFrame]
    paper: str | None = None
    digits: int = 4
    percents: tuple[str, ...] = ()
    why: reasons.Why | None = None
    """Why a figure of a row is undefined; None where `build` says it itself."""
    bounded: Mapping[str, str] = field(default_factory=dict)
    """Figures whose bounds are not named by them."""
    unbounded: tuple[str, ...] = ()
    """Figures without bounds."""
    interval: str = ""
    """How its bounds are made, in the words of a note below it; empty where it has none."""

    def made(self, inputs: Inputs) -> pd.DataFrame:
        """The table, with the reason of each empty figure beside it."""
        table = self.build(inputs)
        if self.why is None:
            return table
        return reasons.explained(table, self.why, bounds=self.bounded, plain=self.unbounded, draws=inputs.draws)


def tables_from_frames(inputs: Inputs, names: Iterable[str] | None = None) -> dict[str, pd.DataFrame]:
    """Every table of `names` (default: each whose inputs are given) as a frame, in the order of `TABLES`.

    A table asked for by name whose input is absent comes back empty with its columns and types. Raises
    ValueError for a name that is no table.
    """
    if names is None:
        return {table.name: table.made(inputs) for table in TABLES if can_build(table, inputs)}
    chosen_names = list(names)
    unknown = sorted(set(chosen_names) - {table.name for table in TABLES})
    if unknown:
        raise ValueError(f"no table is called {unknown[0]!r}. Try: {', '.join(table.name for table in TABLES)}")
    return {table.name: table.made(inputs) for table in TABLES if table.name in chosen_names}


def can_build(table: Table, inputs: Inputs) -> bool:
    """Whether every input of the table is given."""
    return all(inputs.has(name) for name in table.needs)


def printed(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """The frame as text: figures half-up, percentages under `<column>_pct`, empty where undefined or absent."""
    columns: dict[str, list[str]] = {}
    for column in map(str, frame.columns):
        values = frame[column]
        if column in table.percents:
            columns[f"{column}_pct"] = [percent(_number(value), 2) for value in values]
        elif pd.api.types.is_float_dtype(values.dtype):
            columns[column] = [half_up(_number(value), table.digits) for value in values]
        else:
            columns[column] = ["" if pd.isna(value) else str(value) for value in values]
    return pd.DataFrame(columns, columns=list(columns), dtype="object")


def numeric_columns(frame: pd.DataFrame) -> list[str]:
    """The columns of numbers, truth values too: not text that a spreadsheet could run, and read at the right."""
    return [str(name) for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name].dtype)]


def _number(value: object) -> float | None:
    return None if pd.isna(value) else float(value)  # type: ignore[arg-type, call-overload]


def _rates(kind: Kind, impact: Impact) -> Callable[[Inputs], pd.DataFrame]:
    def build(inputs: Inputs) -> pd.DataFrame:
        rates, long = (
            table[(table["kind"] == kind) & (table["impact"] == impact)]
            for table in (inputs.error_rates, inputs.rate_estimates)
        )
        why = reasons.recorded(long, list(errors.KEYS))
        return reasons.explained(rates.reset_index(drop=True), why, draws=inputs.draws)

    return build


def _coverage(kind: Kind) -> Callable[[Inputs], pd.DataFrame]:
    return lambda inputs: inputs.coverage[inputs.coverage["kind"] == kind].reset_index(drop=True)


def _suite(kind: Kind) -> Callable[[Inputs], pd.DataFrame]:
    return lambda inputs: inputs.suite[inputs.suite["kind"] == kind].reset_index(drop=True)


def _score_columns(*metrics: str) -> Callable[[Inputs], pd.DataFrame]:
    columns = [*scores.KEYS, *scores.LEFT_OUT]
    columns += [f"{metric}{end}" for metric in metrics for end in ("", "_low", "_high")]

    def build(inputs: Inputs) -> pd.DataFrame:
        why = reasons.recorded(inputs.score_estimates, list(scores.KEYS))
        return reasons.explained(inputs.score_rates[columns], why, draws=inputs.draws)

    return build


def _match_sensitivity(inputs: Inputs) -> pd.DataFrame:
    defaults = {"judge_model": frames.NO_JUDGE_MODEL, "match_status": "proposed"}
    pairs = frames.with_defaults(inputs.frame("error_pairs"), defaults)
    confirmed = set(pairs.loc[(pairs["match_status"] == "confirmed").to_numpy(), "judge_model"].astype(str))
    measured = match_rates.measured_of(inputs.frame("rule_rates"))
    return match_rates.match_sensitivity(inputs.error_rates, confirmed, measured, draws=inputs.draws, seed=inputs.seed)


def _grid(inputs: Inputs) -> pd.DataFrame:
    pairs = inputs.frame("error_pairs")
    return reasons.of_grid(errors.coverage_grid(pairs), pairs)


def _rationales(inputs: Inputs) -> pd.DataFrame:
    return rationale.rationale_table(inputs.trace_rationales, draws=inputs.draws)


def _trail(inputs: Inputs) -> pd.DataFrame:
    return trail.trail_table(
        inputs.frame("trail_gold"),
        inputs.frame("trail_predictions"),
        inputs.frame("trail_traces"),
        draws=inputs.draws,
    )


def _error_differences(inputs: Inputs) -> pd.DataFrame:
    left, right = inputs.frame("error_pairs"), inputs.frame("other_error_pairs")
    table = compare.compare_errors(left, right, draws=inputs.draws)
    return reasons.of_compared(table, draws=inputs.draws)


def _score_differences(inputs: Inputs) -> pd.DataFrame:
    left, right = inputs.frame("score_pairs"), inputs.frame("other_score_pairs")
    table = compare.compare_scores(left, right, draws=inputs.draws)
    return reasons.of_compared(table, draws=inputs.draws)


def _error_slices(inputs: Inputs) -> pd.DataFrame:
    pairs, own = inputs.frame("error_pairs"), inputs.frame("slices")
    table = slices.error_slices(pairs, own, missing=inputs.missing, draws=inputs.draws)
    return reasons.of_long(table, draws=inputs.draws)


def _score_slices(inputs: Inputs) -> pd.DataFrame:
    pairs, own = inputs.frame("score_pairs"), inputs.frame("slices")
    table = slices.score_slices(pairs, own, missing=inputs.missing, draws=inputs.draws)
    return reasons.of_long(table, draws=inputs.draws)


def _human_ceiling(inputs: Inputs) -> pd.DataFrame:
    why = reasons.recorded(inputs.people_estimates, list(raters.KEYS))
    return reasons.explained(inputs.human_ceiling, why, draws=inputs.draws)


def _rater_pairs(inputs: Inputs) -> pd.DataFrame:
    pairs = raters.pair_estimates(inputs.frame("ratings"), draws=inputs.draws)
    why = reasons.recorded(pairs, raters.PAIR_KEYS)
    return reasons.explained(raters.wide_pairs(pairs), why, draws=inputs.draws)


def _consistency_slices(inputs: Inputs) -> pd.DataFrame:
    table = slices.consistency_slices(inputs.rated_by("judge"), inputs.frame("slices"), draws=inputs.draws)
    return reasons.of_long(table, draws=inputs.draws)


def _people_slices(inputs: Inputs) -> pd.DataFrame:
    table = slices.people_slices(inputs.rated_by("annotator"), inputs.frame("slices"), draws=inputs.draws)
    return reasons.of_long(table, draws=inputs.draws)


def _people_error_slices(inputs: Inputs) -> pd.DataFrame:
    pairs, own = inputs.frame("person_pairs"), inputs.frame("slices")
    return reasons.of_long(slices.people_error_slices(pairs, own, draws=inputs.draws), draws=inputs.draws)


def _compared_slices(inputs: Inputs) -> pd.DataFrame:
    left, right = inputs.frame("error_pairs"), inputs.frame("other_error_pairs")
    return slices.compared_slices(left, right, inputs.frame("slices"), draws=inputs.draws, seed=inputs.seed)


def _slice_tests(inputs: Inputs) -> pd.DataFrame:
    return slices.slice_tests(
        inputs.frame("error_pairs"), inputs.frame("score_pairs"), inputs.frame("slices"), inputs.given("ratings"),
        missing=inputs.missing, draws=inputs.draws, seed=inputs.seed,
    )  # fmt: skip


_ERRORS: Final[tuple[InputName, ...]] = ("error_pairs",)
_SCORES: Final[tuple[InputName, ...]] = ("score_pairs",)
_RATINGS: Final[tuple[InputName, ...]] = ("ratings",)
_TWO_ERRORS: Final[tuple[InputName, ...]] = ("error_pairs", "other_error_pairs")
_TWO_SCORES: Final[tuple[InputName, ...]] = ("score_pairs", "other_score_pairs")
_TRAIL: Final[tuple[InputName, ...]] = ("trail_gold", "trail_predictions", "trail_traces")
_BY_TRACE: Final = "Wilson's with the effective number of units by trace and Student's t"
_JACKKNIFE: Final = "Student's t on the jackknife by trace"
_WILSON: Final = "Wilson's"
_BOTH_SAMPLES: Final = "Jeffreys posteriors of the errors and of the pairs that the rule was measured on"
_OF_SCORES: Final = "Wilson's for accuracies, on Fisher's z by trace for the others"
_OF_PAIRS: Final = "Wilson's by trace for accuracies, on Fisher's z by trace for the others"
_COVERED: Final = ("coverage", "coverage_low", "coverage_high")

TABLES: Final[tuple[Table, ...]] = (
    Table(
        name="table_01_error_map",
        title="Errors mapped to each judge, by impact",
        paper="Table 1",
        needs=_ERRORS,
        build=lambda inputs: errors.error_map(inputs.frame("error_pairs")),
        why=reasons.always("no units"),
        unbounded=("share",),
        percents=("share",),
    ),
    Table(
        name="table_02_caught_coverage",
        title="Reference errors caught by any judge, beside baselines",
        paper="Table 2",
        needs=_ERRORS,
        build=_suite("caught"),
        interval=_BY_TRACE,
        why=reasons.of_coverage("no units"),
        percents=_COVERED,
    ),
    Table(
        name="table_03_caught",
        title="Caught errors by judge",
        paper="Table 3",
        needs=_ERRORS,
        build=_rates("caught", "all"),
        interval=_BY_TRACE,
    ),
    Table(
        name="table_04_scores",
        title="Judge scores against reference scores",
        paper="Table 4",
        needs=_SCORES,
        build=_score_columns("off_by_one", "bucketed", "pearson", "spearman"),
        interval=_OF_SCORES,
        digits=3,
    ),
    Table(
        name="table_05_localized_coverage",
        title="Reference errors localized by any judge, beside baselines",
        paper="Table 5",
        needs=_ERRORS,
        build=_suite("localized"),
        interval=_BY_TRACE,
        why=reasons.of_coverage("no units"),
        percents=_COVERED,
    ),
    Table(
        name="table_06_localized",
        title="Localized errors by judge",
        paper="Table 6",
        needs=_ERRORS,
        build=_rates("localized", "all"),
        interval=_BY_TRACE,
    ),
    Table(
        name="table_07_consistency",
        title="Consistency of judges over repeats",
        paper="Table 7",
        needs=_RATINGS,
        build=lambda inputs: inputs.consistency,
        interval="on Fisher's z by trace for alpha, Student's t for the mean SD, Wilson's for shares",
        why=reasons.of_consistency,
        bounded={"alpha_interval": "alpha"},
        unbounded=(
            *("alpha_ordinal", "alpha_nominal", "ac2", "agreement"),
            *("p_below_667", "p_below_800", "alpha_jackknife_low"),
        ),
        digits=3,
    ),
    Table(
        name="table_08_score_error",
        title="Bucketed agreement and its error",
        paper="Table 8",
        needs=_SCORES,
        build=_score_columns("bucketed", "pearson", "spearman", "nmae", "pair_alpha"),
        interval=_OF_SCORES,
        digits=3,
    ),
    Table(
        name="table_09_caught_by_impact",
        title="Coverage of caught errors by judge and impact",
        paper="Table 9",
        needs=_ERRORS,
        build=_coverage("caught"),
        interval=_BY_TRACE,
        why=reasons.of_coverage("no positives"),
        percents=_COVERED,
    ),
    Table(
        name="table_10_localized_by_impact",
        title="Coverage of localized errors by judge and impact",
        paper="Table 10",
        needs=_ERRORS,
        build=_coverage("localized"),
        interval=_BY_TRACE,
        why=reasons.of_coverage("no positives"),
        percents=_COVERED,
    ),
    *(
        Table(
            name=f"table_{number}_{kind}_{impact}",
            title=f"{kind.capitalize()} errors of {impact} impact by judge",
            paper=f"Table {number}",
            needs=_ERRORS,
            build=_rates(kind, impact),
            interval=_BY_TRACE,
        )
        for number, (kind, impact) in enumerate(
            ((kind, impact) for kind in frames.KINDS for impact in frames.IMPACTS[:3]), start=11
        )
    ),
    Table(
        name="table_17_models",
        title="Judge models compared",
        paper="Table 17",
        needs=_SCORES,
        build=_score_columns("bucketed", "two_point", "pearson", "spearman", "nmae"),
        interval=_OF_SCORES,
        digits=3,
    ),
    Table(
        name="error_estimates",
        title="Every rate of caught and localized with its own n and reason, beside the human ceiling",
        needs=_ERRORS,
        build=lambda inputs: reasons.of_long(inputs.error_estimates, draws=inputs.draws),
        interval=_BY_TRACE,
    ),
    Table(
        name="judge_ranks",
        title="Judge models ranked by the errors that they caught, beside the share of their findings that match",
        needs=_ERRORS,
        build=lambda inputs: ranking.rank_table(
            inputs.frame("error_pairs"), inputs.given("findings"), draws=inputs.draws, seed=inputs.seed
        ),
        interval="at once for all ranks (Mogstad and others 2024); Wilson's by trace (matched_share)",
    ),
    Table(
        name="coverage_grid",
        title="Errors by judges: 0 missed, 1 caught, 2 localized",
        paper="Figures 3 and 4",
        needs=_ERRORS,
        build=_grid,
    ),
    Table(
        name="dimension_grid",
        title="Errors caught, by the error's dimension and the judge's dimension",
        needs=_ERRORS,
        build=lambda inputs: errors.dimension_grid(inputs.frame("error_pairs")),
        why=reasons.always("no units"),
        unbounded=("share",),
        percents=("share",),
    ),
    Table(
        name="findings",
        title="Unmatched findings, finding precision, invalid citations",
        needs=("findings",),
        build=lambda inputs: findings.finding_table(
            inputs.frame("findings"), inputs.given("judged"), draws=inputs.draws
        ),
        why=reasons.of_finding,
        interval=_BY_TRACE,
    ),
    Table(
        name="evidence_overlap",
        title="Overlap of the words that findings and reference errors quote (IoU of characters)",
        needs=("evidence_pairs",),
        build=lambda inputs: evidence_overlap.evidence_table(inputs.frame("evidence_pairs"), draws=inputs.draws),
        why=reasons.always("no units"),
        interval=_BY_TRACE,
    ),
    Table(
        name="score_estimates",
        title="Every score metric with its n and reason, beside the human ceiling",
        needs=_SCORES,
        build=lambda inputs: reasons.of_long(inputs.scores_beside_people, draws=inputs.draws),
        interval=_OF_SCORES,
    ),
    Table(
        name="score_confusion",
        title="Reference scores against judge scores",
        needs=_SCORES,
        build=lambda inputs: scores.confusion(inputs.frame("score_pairs")),
        why=reasons.always("no units"),
        unbounded=("share",),
    ),
    Table(
        name="score_prevalence",
        title="Frequency of each score",
        needs=_SCORES,
        build=lambda inputs: scores.score_prevalence(inputs.frame("score_pairs")),
        interval=_WILSON,
        why=reasons.always("no units"),
    ),
    Table(
        name="score_flags",
        title="Judges whose scores are constant, lenient, harsh or two-peaked",
        needs=_SCORES,
        build=lambda inputs: scores.score_flags(inputs.frame("score_pairs")),
        why=reasons.always("no units"),
        unbounded=("bias",),
    ),
    Table(
        name="trace_spread",
        title="Scores of each trace over repeats",
        needs=_RATINGS,
        build=lambda inputs: reliability.unit_table(inputs.rated_by("judge")),
        why=reasons.of_runs,
        unbounded=("mean", "low", "high", "sd", "identical"),
    ),
    Table(
        name="match_sensitivity",
        title="Caught errors without the mistakes of the matching rule",
        needs=_ERRORS,
        build=_match_sensitivity,
        interval=_BOTH_SAMPLES,
        why=match_rates.why_undefined,
        unbounded=match_rates.PLAIN,
    ),
    Table(
        name="match_thresholds",
        title="Caught errors where proposed matches count from a higher confidence on, beside confirmed matches alone",
        needs=_ERRORS,
        build=lambda inputs: match_rates.match_thresholds(
            inputs.frame("error_pairs"), missing=inputs.missing, draws=inputs.draws
        ),
        interval=_BY_TRACE,
        why=match_rates.why_no_recall,
    ),
    Table(
        name="cost_agreement",
        title="Recall and F1 of each judge model beside its dollars and tokens a trace, and who is on the front",
        needs=("error_pairs", "costs"),
        build=lambda inputs: costs.cost_agreement(
            inputs.frame("error_pairs"), inputs.frame("costs"), missing=inputs.missing, draws=inputs.draws
        ),
        interval=f"{_BY_TRACE} (value), Student's t (dollars, tokens)",
    ),
    Table(
        name="human_ceiling",
        title="Human ceiling of the score metrics: people against people",
        needs=_RATINGS,
        build=_human_ceiling,
        interval=_OF_PAIRS,
    ),
    Table(
        name="error_ceiling",
        title="Human ceiling of caught and localized errors: people against people",
        needs=("person_pairs",),
        build=lambda inputs: reasons.of_long(inputs.error_ceiling, draws=inputs.draws),
        interval=_BY_TRACE,
    ),
    Table(
        name="matcher_agreement",
        title="Agreement of people who decided the same matches",
        needs=("match_decisions",),
        build=lambda inputs: inputs.matcher_agreement,
        interval=_OF_PAIRS,
        why=reasons.already,
    ),
    Table(
        name="reviewer_agreement",
        title="Agreement of people who reviewed the same unmatched findings",
        needs=("finding_decisions",),
        build=lambda inputs: inputs.reviewer_agreement,
        interval=_OF_PAIRS,
        why=reasons.of_reviewers,
    ),
    Table(
        name="majority_votes",
        title="Votes with and without a majority",
        needs=("votes",),
        build=lambda inputs: majority.vote_table(inputs.frame("votes")),
        interval=_WILSON,
        why=reasons.always("no units"),
    ),
    Table(
        name="jury_votes",
        title="Ties, unanimous verdicts and missing votes of juries",
        needs=("jury_votes",),
        build=lambda inputs: juries.jury_table(inputs.frame("jury_votes")),
        interval=_WILSON,
        why=reasons.always("no units"),
        bounded={f"{name}_share": name for name in ("unanimous", "tied", "absent")},
    ),
    Table(
        name="rater_pairs",
        title="Every pair of raters",
        needs=_RATINGS,
        build=_rater_pairs,
        interval=_OF_PAIRS,
    ),
    Table(
        name="annotator_test",
        title="Alternative annotator test",
        needs=("ratings", "score_pairs"),
        build=lambda inputs: raters.annotator_test_table(inputs.rated_by("annotator"), inputs.frame("score_pairs")),
    ),
    Table(
        name="self_consistency",
        title="Agreement of people with themselves on hidden repeats",
        needs=("repeats",),
        build=lambda inputs: raters.self_consistency(inputs.frame("repeats"), draws=inputs.draws),
        interval=_OF_PAIRS,
        why=reasons.of_score,
    ),
    Table(
        name="rationale_consistency",
        title="Semantic Consistency Index",
        needs=("rationales",),
        build=_rationales,
        interval="Student's t by trace on Fisher's z",
        why=reasons.already,
    ),
    Table(
        name="recall_by_period",
        title="Recall by guideline version and by week of labelling, with a test of drift",
        needs=("error_pairs", "periods"),
        build=lambda inputs: over_time.recall_by_period(
            inputs.frame("error_pairs"),
            inputs.frame("periods"),
            draws=inputs.draws,
            seed=inputs.seed,
        ),
        why=lambda row, name: (
            "fewer than two periods" if name == "drift_p" else "no error that was answered and matched"
        ),
        unbounded=("drift_p",),
        interval=_BY_TRACE,
    ),
    Table(
        name="error_slices",
        title="Precision, recall and F1 of caught and localized errors by slice",
        needs=("error_pairs", "slices"),
        build=_error_slices,
        interval=_BY_TRACE,
    ),
    Table(
        name="score_slices",
        title="Bucketed accuracy, correlations and alpha of scores by slice",
        needs=("score_pairs", "slices"),
        build=_score_slices,
        interval=_OF_SCORES,
    ),
    Table(
        name="consistency_slices",
        title="Alpha, spread and identical scores of judges' repeats by slice",
        needs=("ratings", "slices"),
        build=_consistency_slices,
        interval="on Fisher's z by trace for alpha, Student's t for the mean SD, Wilson's for shares",
    ),
    Table(
        name="people_slices",
        title="Human ceiling of the score metrics by slice",
        needs=("ratings", "slices"),
        build=_people_slices,
        interval=_OF_PAIRS,
    ),
    Table(
        name="people_error_slices",
        title="Human ceiling of caught and localized errors by slice",
        needs=("person_pairs", "slices"),
        build=_people_error_slices,
        interval=_BY_TRACE,
    ),
    Table(
        name="slice_tests",
        title="Tests of slices: is a judge alike in all, and beside the other judges (judge x slice), Holm over judges",
        needs=("error_pairs", "score_pairs", "slices"),
        build=_slice_tests,
    ),
    Table(
        name="score_calibration",
        title="Calibration: mean reference score where the judge gave each score",
        needs=_SCORES,
        build=lambda inputs: calibration.calibration_table(inputs.frame("score_pairs")),
        why=reasons.always("no units"),
        unbounded=("gap",),
        interval="Student's t",
        digits=3,
    ),
    Table(
        name="corpus_rates",
        title="Corpus-level error rates, corrected for the judge: Rogan-Gladen and prediction-powered",
        needs=("unit_labels",),
        build=lambda inputs: prevalence.corpus_table(inputs.frame("unit_labels"), seed=inputs.seed),
        interval="from the posterior of both sets of labels (rate), Student's t (ppi)",
        why=reasons.of_calibration,
        unbounded=("apparent", "sensitivity", "specificity"),
    ),
    Table(
        name="compared_errors",
        title="Two sides: differences of precision to accuracy",
        needs=_TWO_ERRORS,
        build=_error_differences,
        interval=_JACKKNIFE,
    ),
    Table(
        name="compared_mcnemar",
        title="Two sides: McNemar on caught and on localized errors, Holm over all of them",
        needs=_TWO_ERRORS,
        build=lambda inputs: compare.mcnemar_table(inputs.frame("error_pairs"), inputs.frame("other_error_pairs")),
        why=reasons.of_test,
        unbounded=("p_clustered", "p_holm", "statistic", "p_corrected", "p_exact"),
    ),
    Table(
        name="compared_slices",
        title="Two sides: differences of recall by slice, with a test whether they differ between slices",
        needs=(*_TWO_ERRORS, "slices"),
        build=_compared_slices,
        interval=_JACKKNIFE,
    ),
    Table(
        name="compared_error_flips",
        title="Two sides: errors treated differently",
        needs=_TWO_ERRORS,
        build=lambda inputs: compare.error_flips(inputs.frame("error_pairs"), inputs.frame("other_error_pairs")),
    ),
    Table(
        name="compared_scores",
        title="Two sides: differences of score metrics",
        needs=_TWO_SCORES,
        build=_score_differences,
        interval=_JACKKNIFE,
    ),
    Table(
        name="compared_score_flips",
        title="Two sides: traces scored differently",
        needs=_TWO_SCORES,
        build=lambda inputs: compare.score_flips(inputs.frame("score_pairs"), inputs.frame("other_score_pairs")),
    ),
    Table(
        name="trail_measures",
        title="TRAIL's official recall measures beside pair-level precision, recall and F1",
        needs=_TRAIL,
        build=_trail,
        why=reasons.of_trail,
        interval=f"{_BY_TRACE}; of weighted F1 and predictions an error Student's t on the jackknife",
    ),
    Table(
        name="trail_correlations",
        title="TRAIL's own scores of people and judges",
        needs=("trail_scores",),
        build=lambda inputs: trail.trail_correlations(inputs.frame("trail_scores")),
    ),
)

COMPARED: Final = tuple(table.name for table in TABLES if any(name.startswith("other_") for name in table.needs))
"""Tables of two sides: the first in `error_pairs` and `score_pairs`, the second in the inputs named `other_`."""

_RATE_TITLES: Final = {
    "precision": "Precision (GPA)",
    "recall": "Recall (coverage)",
    "f1": "F1",
    "f2": "F2",
    "accuracy": "Accuracy on relevant errors",
}


_DISAGREEMENT: Final = {
    "interval": "two scores disagree by the square of their difference",
    "ordinal": "two scores disagree by the square of their distance in ranks",
    "nominal": "two scores disagree wholly unless they are equal",
}

_TRAIL_METRICS: Final[tuple[tuple[str, str, Callable[..., object], Best], ...]] = (
    ("weighted_f1", "TRAIL weighted F1 (official)", trail.weighted_f1, "high"),
    ("location_accuracy", "TRAIL location accuracy (official, recall)", trail.location_accuracy, "high"),
    ("joint_accuracy", "TRAIL joint accuracy (official, recall)", trail.joint_accuracy, "high"),
    ("pair_precision", "Pair-level precision", trail.pair_scores, "high"),
    ("pair_recall", "Pair-level recall", trail.pair_scores, "high"),
    ("pair_f1", "Pair-level F1", trail.pair_scores, "high"),
    ("predictions_per_error", "Predictions per reference error", trail.predictions_per_error, "zero"),
)

_PAIR_WORDS: Final = {
    "pair_precision": "Of the distinct (location, category) pairs predicted over all traces, the share in the "
    "reference.",
    "pair_recall": "Of the distinct (location, category) pairs in the reference over all traces, the share that is "
    "predicted.",
    "pair_f1": "Harmonic mean of the precision and the recall of distinct (location, category) pairs.",
}


METRICS: Final[tuple[Metric, ...]] = (
    *(
        Metric(
            name=rate,
            title=_RATE_TITLES[rate],
            function=function,
            table="error_estimates",
            column="value",
            best="high",
            has_ceiling=True,
        )
        for rate, function in errors.RATE_FUNCTIONS.items()
    ),
    Metric(
        name="suite_coverage",
        title="Coverage by any judge",
        function=errors.suite_coverage,
        table="table_02_caught_coverage",
        column="coverage",
        best="high",
    ),
    Metric(
        name="finding_precision",
        title="Finding precision",
        function=findings.finding_table,
        table="findings",
        column="finding_precision",
        best="high",
        words=(
            "Of a judge's findings that a person reviewed (confirmed a match or gave a verdict), the share that match "
            "a reference error or are a valid new one: (confirmed + valid new errors) / reviewed. Its lowest and "
            "highest values are those over all findings if the others were all false alarms, or all valid."
        ),
    ),
    Metric(
        name="unmatched_per_trace",
        title="Unmatched findings a trace",
        function=findings.finding_table,
        table="findings",
        column="unmatched_per_trace",
        best="low",
        limits=(0.0, inf),
        words="A judge's findings that match no reference error, divided by the traces that it answered.",
    ),
    Metric(
        name="invalid_citation_rate",
        title="Invalid citations",
        function=findings.finding_table,
        table="findings",
        column="invalid_citation_rate",
        best="low",
        words="Of the citations in a judge's findings, the share that resolve to no span of the trace.",
    ),
    Metric(
        name="evidence_iou",
        title="Overlap of evidence",
        function=evidence_overlap.character_iou,
        table="evidence_overlap",
        column="iou",
        best="high",
        words=(
            "Characters that the reference error and the matched finding both quote, divided by those that either "
            "quotes (Jaccard 1912): the mean over caught errors of which both quotes stand in the trace."
        ),
    ),
    *scores.SCORE_METRICS,
    *(
        Metric(
            name=f"alpha_{level}",
            title=f"Krippendorff's alpha, {level}",
            function=reliability.alpha,
            table="table_07_consistency",
            column=f"alpha_{level}",
            best="high",
            limits=(-1.0, 1.0),
            words=f"Krippendorff's alpha of a judge's repeats: 1 - observed / expected disagreement, where {gap}.",
        )
        for level, gap in _DISAGREEMENT.items()
    ),
    Metric(
        name="mean_sd",
        title="Mean standard deviation over repeats",
        function=reliability.mean_spread,
        table="table_07_consistency",
        column="mean_sd",
        best="low",
        words="Mean over traces of the standard deviation of a judge's scores over its repeats, scores scaled to 0 "
        "to 1.",
    ),
    Metric(
        name="identical",
        title="Traces with identical scores in all repeats",
        function=reliability.share_identical,
        table="table_07_consistency",
        column="identical",
        best="high",
    ),
    Metric(
        name="unscored",
        title="Unscored replies",
        function=reliability.share_unscored,
        table="table_07_consistency",
        column="unscored",
        best="low",
    ),
    Metric(
        name="sci",
        title="Semantic Consistency Index",
        function=rationale.consistency_index,
        table="rationale_consistency",
        column="sci",
        best="high",
        words=(
            "Semantic Consistency Index: mean cosine of every two rationales that a judge's repeats give of a trace, "
            "averaged over traces."
        ),
    ),
    Metric(
        name="winning_rate",
        title="Winning rate of the alternative annotator test",
        function=raters.alternative_annotator_test,
        table="annotator_test",
        column="winning_rate",
        best="high",
        words=(
            "Of the people, the share beside whom the judge passes the alternative annotator test: it agrees with "
            "the others as often as the person does, or less often by less than epsilon (Calderon, Reichart and Dror "
            "2025)."
        ),
    ),
    Metric(
        name="average_advantage",
        title="Average advantage of the judge over a person",
        function=raters.alternative_annotator_test,
        table="annotator_test",
        column="average_advantage",
        best="high",
        words=(
            "Mean over people of the share of traces on which the judge agrees with the others at least as well as the "
            "person left out does, in the alternative annotator test (Calderon, Reichart and Dror 2025)."
        ),
    ),
    Metric(
        name="matcher_kappa",
        title="Cohen's kappa of two matchers",
        function=matchers.matcher_agreement,
        table="matcher_agreement",
        column="kappa",
        best="high",
        limits=(-1.0, 1.0),
        words=("Cohen's kappa of two people's decisions (confirmed, rejected) on the matches that both decided."),
    ),
    Metric(
        name="reviewer_alpha",
        title="Krippendorff's alpha of verdicts on unmatched findings, nominal",
        function=matchers.reviewer_agreement,
        table="reviewer_agreement",
        column="alpha",
        best="high",
        limits=(-1.0, 1.0),
        words=(
            "Krippendorff's nominal alpha of people's verdicts (valid new error, false alarm, duplicate) on the "
            "unmatched findings that two or more of them judged."
        ),
    ),
    Metric(
        name="majority_share",
        title="Share of votes with a majority",
        function=majority.vote_table,
        table="majority_votes",
        column="decided",
        best="high",
        words=(
            "Share of the votes of two people or more, on a score or on an error of a trace, in which more than half "
            "gave the same score or saw the error."
        ),
    ),
    Metric(
        name="jury_unanimous",
        title="Unanimous verdicts of a jury",
        function=juries.jury_table,
        table="jury_votes",
        column="unanimous_share",
        best="high",
        words=(
            "Of a jury's joint verdicts on which two models or more gave a score, the share on which all of them gave "
            "the same; Wilson's interval."
        ),
    ),
    Metric(
        name="jury_ties",
        title="Ties of a jury",
        function=juries.jury_table,
        table="jury_votes",
        column="tied_share",
        best="zero",
        words="Share of a jury's joint verdicts whose models' scores tie by its rule; Wilson's interval.",
    ),
    Metric(
        name="jury_absent",
        title="Missing votes of a jury",
        function=juries.jury_table,
        table="jury_votes",
        column="absent_share",
        best="zero",
        words=(
            "Share of the models asked for a jury's joint verdicts that gave no score, because they failed or found "
            "the rubric not to apply; Wilson's interval."
        ),
    ),
    Metric(
        name="corpus_rate",
        title="Corrected corpus rate",
        function=prevalence.corrected_rate,
        table="corpus_rates",
        column="rate",
        best="zero",
    ),
    Metric(
        name="powered_rate",
        title="Prediction-powered corpus rate",
        function=prevalence.prediction_powered,
        table="corpus_rates",
        column="ppi",
        best="zero",
        words=(
            "Share of traces of a corpus that have the error, from people's labels on some traces and the judge's on "
            "all, weighted by the chance with which each was drawn to be labelled (Angelopoulos et al. 2023). Withheld "
            f"below {prevalence.POWERED_LEAST} labelled traces, {prevalence.POWERED_OF_EACH} with the error and "
            f"{prevalence.POWERED_OF_EACH} without it, and where the chances are unknown."
        ),
    ),
    *(
        Metric(
            name=name,
            title=title,
            function=function,
            table="trail_measures",
            column=name,
            best=best,
            limits=(0.0, inf if name == "predictions_per_error" else 1.0),
            words=_PAIR_WORDS.get(name),
        )
        for name, title, function, best in _TRAIL_METRICS
    ),
    Metric(
        name="trail_pearson",
        title="Pearson r of TRAIL's scores (official)",
        function=trail.trail_correlations,
        table="trail_correlations",
        column="pearson",
        best="high",
        limits=(-1.0, 1.0),
        words=(
            "Pearson's r of people's and a judge's scores on one of TRAIL's scales (1 to 5; reliability, security and "
            "so on) over the traces that both scored."
        ),
    ),
)
