"""Every report table by name: the paper's Tables 1 to 17 and ours, from frames to frames.

To add one: a function from `Inputs` to a frame, and one line in `TABLES`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pandas as pd

from tracejury.judging.agreement import (
    calibration,
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
    slice_tests,
    slices,
    trail,
)
from tracejury.judging.agreement.frames import Impact, Kind
from tracejury.judging.agreement.inputs import InputName, Inputs
from tracejury.judging.agreement.rounding import half_up, percent


@dataclass(frozen=True, kw_only=True)
class Table:
    """A report table: `name` is its file name, `frame` makes it, `digits` and `percents` print it."""

    name: str
    title: str
    needs: tuple[InputName, ...]
    build: Callable[[Inputs], pd.DataFrame]
    paper: str | None = None
    digits: int = 4
    percents: tuple[str, ...] = ()
    why: reasons.Why | None = None
    """Why an estimate of a row is undefined; None where `build` says it itself."""
    bounded: Mapping[str, str] = field(default_factory=dict)
    """Estimates whose bounds do not have the usual names."""
    unbounded: tuple[str, ...] = ()
    """Estimates without bounds."""
    withheld: Mapping[str, str] = field(default_factory=dict)
    """Estimates whose interval is withheld where they have none, and why."""
    interval: str = ""
    """How its bounds are made, in the words of a note below it; empty where it has none."""

    def frame(self, inputs: Inputs) -> pd.DataFrame:
        """The table, with the reason of each empty estimate beside it."""
        table = self.build(inputs)
        if self.why is None:
            return table
        return reasons.explained(
            table, self.why, bounds=self.bounded, plain=self.unbounded, withheld=self.withheld, draws=inputs.draws
        )


def tables_from_frames(inputs: Inputs, names: Iterable[str] | None = None) -> dict[str, pd.DataFrame]:
    """Every table of `names` (default: each whose inputs are given) as a frame, in the order of `TABLES`.

    A table asked for by name whose input is absent comes back empty with its columns and types. Raises
    ValueError for a name that is no table.
    """
    if names is None:
        return {table.name: table.frame(inputs) for table in TABLES if can_build(table, inputs)}
    chosen_names = list(names)
    unknown = sorted(set(chosen_names) - {table.name for table in TABLES})
    if unknown:
        raise ValueError(f"no table is called {unknown[0]!r}. Try: {', '.join(table.name for table in TABLES)}")
    return {table.name: table.frame(inputs) for table in TABLES if table.name in chosen_names}


def can_build(table: Table, inputs: Inputs) -> bool:
    """Whether every input of the table is given."""
    return all(inputs.has(name) for name in table.needs)


def printed(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """The frame as text: estimates half-up, percentages under `<column>_pct`, empty where undefined or absent."""
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


def _rationales(inputs: Inputs) -> pd.DataFrame:
    return rationale.rationale_table(inputs.trace_rationales, draws=inputs.draws)


def _trail(inputs: Inputs) -> pd.DataFrame:
    return trail.trail_table(
        inputs.frame("trail_reference"),
        inputs.frame("trail_predictions"),
        inputs.frame("trail_traces"),
        draws=inputs.draws,
    )


def _error_differences(inputs: Inputs) -> pd.DataFrame:
    left, right = inputs.frame("error_pairs"), inputs.frame("other_error_pairs")
    table = compare.compare_errors(left, right, draws=inputs.draws)
    return compare.reasoned(table, draws=inputs.draws)


def _score_differences(inputs: Inputs) -> pd.DataFrame:
    left, right = inputs.frame("score_pairs"), inputs.frame("other_score_pairs")
    table = compare.compare_scores(left, right, draws=inputs.draws)
    return compare.reasoned(table, draws=inputs.draws)


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
    return slice_tests.compared_slices(left, right, inputs.frame("slices"), draws=inputs.draws, seed=inputs.seed)


def _slice_tests(inputs: Inputs) -> pd.DataFrame:
    return slice_tests.slice_tests(
        inputs.frame("error_pairs"), inputs.frame("score_pairs"), inputs.frame("slices"),
        inputs.frame_or_none("ratings"), missing=inputs.missing, draws=inputs.draws, seed=inputs.seed,
    )  # fmt: skip


_ERRORS: Final[tuple[InputName, ...]] = ("error_pairs",)
_SCORES: Final[tuple[InputName, ...]] = ("score_pairs",)
_RATINGS: Final[tuple[InputName, ...]] = ("ratings",)
_TWO_ERRORS: Final[tuple[InputName, ...]] = ("error_pairs", "other_error_pairs")
_TWO_SCORES: Final[tuple[InputName, ...]] = ("score_pairs", "other_score_pairs")
_TRAIL: Final[tuple[InputName, ...]] = ("trail_reference", "trail_predictions", "trail_traces")
_BY_TRACE: Final = "Wilson's with the effective number of units by trace and Student's t"
_MEANS: Final = "Hall's transformation of Student's t"
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
        why=errors.why_no_coverage("no units"),
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
        why=errors.why_no_coverage("no units"),
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
        why=reasons.carried,
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
        why=errors.why_no_coverage("no positives"),
        percents=_COVERED,
    ),
    Table(
        name="table_10_localized_by_impact",
        title="Coverage of localized errors by judge and impact",
        paper="Table 10",
        needs=_ERRORS,
        build=_coverage("localized"),
        interval=_BY_TRACE,
        why=errors.why_no_coverage("no positives"),
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
            inputs.frame("error_pairs"), inputs.frame_or_none("findings"), draws=inputs.draws, seed=inputs.seed
        ),
        interval="at once for all ranks (Mogstad and others 2024); Wilson's by trace (matched_share)",
    ),
    Table(
        name="coverage_grid",
        title="Errors by judges: 0 missed, 1 caught, 2 localized",
        paper="Figures 3 and 4",
        needs=_ERRORS,
        build=lambda inputs: errors.reasoned_grid(inputs.frame("error_pairs")),
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
            inputs.frame("findings"), inputs.frame_or_none("judged"), draws=inputs.draws
        ),
        why=findings.why_undefined,
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
        why=reliability.why_no_spread,
        unbounded=("mean", "low", "high", "sd", "identical"),
    ),
    Table(
        name="match_sensitivity",
        title="Caught errors, corrected for the mistakes of the matching rule",
        needs=_ERRORS,
        build=_match_sensitivity,
        interval=_BOTH_SAMPLES,
        why=match_rates.why_undefined,
        unbounded=match_rates.PLAIN,
    ),
    Table(
        name="match_thresholds",
        title="Caught errors when proposed matches need a higher confidence to count, and with confirmed matches alone",
        needs=_ERRORS,
        build=lambda inputs: match_rates.match_thresholds(
            inputs.frame("error_pairs"), missing=inputs.missing, draws=inputs.draws
        ),
        interval=_BY_TRACE,
        why=match_rates.why_no_recall,
    ),
    Table(
        name="cost_agreement",
        title="Recall and F1 of each judge model beside its dollars and tokens per trace, and which none beats in both",
        needs=("error_pairs", "costs"),
        build=lambda inputs: costs.cost_agreement(
            inputs.frame("error_pairs"), inputs.frame("costs"), missing=inputs.missing, draws=inputs.draws
        ),
        interval=f"{_BY_TRACE} (value), {_MEANS} (dollars, tokens)",
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
        title="Agreement between people who decided the same matches",
        needs=("match_decisions",),
        build=lambda inputs: inputs.matcher_agreement,
        interval=_OF_PAIRS,
        why=reasons.already,
    ),
    Table(
        name="reviewer_agreement",
        title="Agreement between people who reviewed the same unmatched findings",
        needs=("finding_decisions",),
        build=lambda inputs: inputs.reviewer_agreement,
        interval=_OF_PAIRS,
        why=matchers.why_undefined,
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
        why=reasons.carried,
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
        title="Tests of slices: does a judge differ between slices, and more than other judges (judge x slice)",
        needs=("error_pairs", "score_pairs", "slices"),
        build=_slice_tests,
    ),
    Table(
        name="score_calibration",
        title="Calibration: mean reference score for each score that the judge gave",
        needs=_SCORES,
        build=lambda inputs: calibration.calibration_table(inputs.frame("score_pairs")),
        why=reasons.always("no units"),
        unbounded=("gap",),
        interval=_MEANS,
        digits=3,
    ),
    Table(
        name="corpus_rates",
        title="Corpus-level error rates, corrected for the judge: Rogan-Gladen and prediction-powered",
        needs=("unit_labels",),
        build=lambda inputs: prevalence.corpus_table(inputs.frame("unit_labels"), seed=inputs.seed),
        interval="from the posterior of both sets of labels (rate), Student's t (ppi)",
        why=prevalence.why_undefined,
        unbounded=("apparent", "sensitivity", "specificity"),
    ),
    Table(
        name="compared_errors",
        title="Two sides: differences of precision, recall, F1, F2 and accuracy",
        needs=_TWO_ERRORS,
        build=_error_differences,
        interval=_JACKKNIFE,
    ),
    Table(
        name="compared_mcnemar",
        title="Two sides: McNemar on caught and on localized errors, Holm over all of them",
        needs=_TWO_ERRORS,
        build=lambda inputs: compare.mcnemar_table(inputs.frame("error_pairs"), inputs.frame("other_error_pairs")),
        why=compare.why_no_test,
        unbounded=("p_clustered", "p_holm", "statistic", "p_corrected", "p_exact"),
    ),
    Table(
        name="compared_slices",
        title="Two sides: differences of recall by slice, with a test of whether they differ between slices",
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
        why=trail.why_undefined,
        withheld={"joint_accuracy": trail.WITHHELD},
        interval=f"{_BY_TRACE}; of weighted F1 and predictions per error Student's t on the jackknife",
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
