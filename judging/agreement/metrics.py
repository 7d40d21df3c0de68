"""Every metric by name. To add one: one line in `METRICS`."""

from collections.abc import Callable
from math import inf
from typing import Final

from tracejury.judging.agreement import (
    error_rates,
    errors,
    evidence_overlap,
    findings,
    juries,
    majority,
    matchers,
    prevalence,
    raters,
    rationale,
    reliability,
    scores,
    trail,
)
from tracejury.judging.agreement.metric import Best, Metric

_DISAGREEMENT: Final = {
    "interval": "two scores disagree by the square of their difference",
    "ordinal": "two scores disagree by the square of their distance in ranks",
    "nominal": "two scores disagree fully unless they are equal",
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
    *error_rates.ERROR_METRICS,
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
            "Of a judge's findings that a person reviewed (or whose match a person confirmed), the share that "
            "match a reference error or are a valid new one: (confirmed + valid new errors) / reviewed. Its "
            "lowest and highest values are those over all findings if the others were all false alarms, or all "
            "valid."
        ),
    ),
    Metric(
        name="unmatched_per_trace",
        title="Unmatched findings per trace",
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
            "quotes (Jaccard 1912): averaged over the caught errors whose two quotes are both in the trace."
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
            "Semantic Consistency Index: mean cosine similarity of every pair of rationales that a judge's "
            "repeats give for a trace, averaged over traces."
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
            "Share of the people against whom the judge passes the alternative annotator test: it agrees with the "
            "others as often as the person does, or less often by less than epsilon (Calderon, Reichart and Dror "
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
        title="Krippendorff's alpha of reviews of unmatched findings, nominal",
        function=matchers.reviewer_agreement,
        table="reviewer_agreement",
        column="alpha",
        best="high",
        limits=(-1.0, 1.0),
        words=(
            "Krippendorff's nominal alpha of people's reviews (valid new error, false alarm, duplicate) of the "
            "unmatched findings that two or more of them reviewed."
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
            "Share of votes by two or more people, on a score or an error of a trace, in which more than half "
            "gave the same score or marked the error."
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
            "Of a jury's joint verdicts for which two or more models gave a score, the share for which all of "
            "them gave the same score; Wilson's interval."
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
            "Share of the models asked for a jury's joint verdicts that gave no score, because they failed or "
            "found that the rubric does not apply; Wilson's interval."
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
            "all, weighted by the chance with which each was drawn to be labelled (Angelopoulos and others 2023). "
            f"Withheld below {prevalence.POWERED_LEAST} labelled traces, {prevalence.POWERED_OF_EACH} with the error "
            f"and {prevalence.POWERED_OF_EACH} without it, and where the chances are unknown."
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
