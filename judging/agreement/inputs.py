"""What every table is made of: the input frames with their columns, and the tables that others share."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import pandas as pd

from tracejury.judging.agreement import (
    ceiling,
    costs,
    errors,
    evidence_overlap,
    frames,
    juries,
    majority,
    match_rates,
    matchers,
    over_time,
    raters,
    rationale,
    reliability,
    scores,
    slices,
)
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.intervals import DRAWS, SEED

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
    "trail_reference",
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
    "trail_reference": ("trace_id", "category", "location"),
    "trail_predictions": ("trace_id", "category", "location"),
    "trail_traces": ("trace_id", "state"),
    "trail_scores": ("trace_id", "scale", "reference_score", "judge_score"),
}
"""Needed columns of each input; `report --from-csv` reads a file of each name. Optional columns: see the function
that takes the frame."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The frames that tables are made from, each optional, and how estimates are made.

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
    trail_reference: pd.DataFrame | None = None
    trail_predictions: pd.DataFrame | None = None
    trail_traces: pd.DataFrame | None = None
    trail_scores: pd.DataFrame | None = None
    vectoriser: rationale.VectoriserName = "tfidf"
    missing: Missing = "drop"
    draws: int = DRAWS
    seed: int = SEED

    def frame(self, name: InputName) -> pd.DataFrame:
        """The input of that name, or an empty frame of its columns."""
        frame = self.frame_or_none(name)
        return frames.empty(dict.fromkeys(COLUMNS[name], "object")) if frame is None else frame

    def frame_or_none(self, name: InputName) -> pd.DataFrame | None:
        """The input of that name, None where there is none."""
        frame = getattr(self, name)
        return frame if isinstance(frame, pd.DataFrame) else None

    def has(self, name: InputName) -> bool:
        """Whether it is given; asking for it may take longer."""
        return self.frame_or_none(name) is not None

    def rated_by(self, kind: Literal["judge", "annotator"]) -> pd.DataFrame:
        """The ratings by repeats of judges, or by people. Raises ValueError for another kind of rater."""
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
        estimates = self.rate_estimates
        among_people = estimates["dimension"].where(estimates["dimension"].isin(frames.DIMENSION_ORDER), ceiling.ANY)
        reached = self.error_ceiling.rename(columns={"dimension": "among_people"})
        on = ["among_people", "impact", "split", "kind", "metric"]
        return ceiling.beside(estimates.assign(among_people=among_people), reached, on).drop(columns="among_people")

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
