"""Proposes which judge finding describes which human error: one-to-one, with reasons and a confidence.

Source of the rules: METRICS.md, "Matching human errors with judge findings"; the assignment is
`scipy.optimize.linear_sum_assignment`, which maximises the sum of confidences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz
from scipy.optimize import linear_sum_assignment
from sklearn.feature_extraction.text import TfidfVectorizer

from judging.records import Dimension, ErrorLabel, Evidence, Finding, Match

AUTO = "auto"
"""The author of proposals."""

# What each sign is worth; a pair is proposed from THRESHOLD on.
SAME_SPAN, NEIGHBOUR, DIMENSION, CATEGORY, EVIDENCE, TEXT = 0.40, 0.20, 0.10, 0.15, 0.20, 0.60
THRESHOLD = 0.45
SIMILAR_TEXT = 0.12  # cosine of TF-IDF: below it two descriptions share little but common words
QUOTE_ALIKE = 88.0  # rapidfuzz partial ratio
_SHORTEST_QUOTE = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A judge's finding as matching sees it: its key in the ledger and the dimensions it speaks of."""

    finding_id: int
    finding: Finding
    dimensions: frozenset[Dimension]


def propose(
    errors: Sequence[ErrorLabel], findings: Sequence[Candidate], *, parents: Mapping[str, str | None]
) -> list[Match]:
    """One-to-one proposals between the errors of one person and the findings of one judge on one trace.

    `parents` gives the parent of each span of the trace. A pair is a candidate when it shares a span (or
    stands on a parent or child of it) and something of its content, or its dimension and similar text.
    """
    if not errors or not findings:
        return []
    similar = _similarity(errors, findings)
    judged = [[_judge(e, f, similar[i, j], parents) for j, f in enumerate(findings)] for i, e in enumerate(errors)]
    weights = np.array([[pair[0] if pair[0] >= THRESHOLD else 0.0 for pair in row] for row in judged])
    rows, columns = linear_sum_assignment(weights, maximize=True)
    return [
        Match(
            label_id=errors[i].label_id,
            finding_id=findings[j].finding_id,
            status="proposed",
            author=AUTO,
            confidence=round(min(1.0, float(weights[i, j])), 3),
            reasons=judged[i][j][1],
            localized=is_localized(errors[i], findings[j].finding),
        )
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        if weights[i, j] > 0
    ]


def is_localized(error: ErrorLabel, finding: Finding) -> bool:
    """Whether a citation of the finding resolves to a span of the error (exactly)."""
    return any(citation.span_id in error.span_ids for citation in finding.citations if citation.span_id is not None)


def _judge(
    error: ErrorLabel, candidate: Candidate, similarity: float, parents: Mapping[str, str | None]
) -> tuple[float, tuple[str, ...]]:
    """Confidence and reasons of one pair; 0 where it is no candidate."""
    finding = candidate.finding
    cited = {citation.span_id for citation in finding.citations if citation.span_id is not None}
    same_span = bool(cited.intersection(error.span_ids))
    near = not same_span and _are_neighbours(cited, error.span_ids, parents)
    same_dimension = bool(candidate.dimensions.intersection(error.dimensions))
    same_category = error.category is not None and error.category == finding.category
    alike = similarity >= SIMILAR_TEXT
    quoted = _quotes_alike(error.evidence, finding.evidence)
    if not ((same_span or near) and (same_dimension or same_category or alike or quoted)) and not (
        (same_dimension or same_category) and (alike or quoted)
    ):
        return 0.0, ()
    signs: list[tuple[bool, float, str]] = [
        (same_span, SAME_SPAN, "same span"),
        (near, NEIGHBOUR, "parent or child span"),
        (same_dimension, DIMENSION, "same dimension"),
        (same_category, CATEGORY, "same category"),
        (quoted, EVIDENCE, "same evidence"),
        (alike, TEXT * similarity, f"similar text {similarity:.2f}"),
    ]
    return sum(worth for holds, worth, _ in signs if holds), tuple(reason for holds, _, reason in signs if holds)


def _are_neighbours(cited: Iterable[str], spans: Iterable[str], parents: Mapping[str, str | None]) -> bool:
    labelled = set(spans)
    above = {parents.get(span_id) for span_id in labelled}
    return any(span_id in above or parents.get(span_id) in labelled for span_id in cited)


def _quotes_alike(evidence: Sequence[Evidence], quote: str) -> bool:
    if len(quote) < _SHORTEST_QUOTE:
        return False
    return any(
        len(piece.quote) >= _SHORTEST_QUOTE and fuzz.partial_ratio(piece.quote, quote, score_cutoff=QUOTE_ALIKE) > 0
        for piece in evidence
    )


def _similarity(errors: Sequence[ErrorLabel], findings: Sequence[Candidate]) -> NDArray[np.float64]:
    """Cosine of TF-IDF of words and word pairs, errors x findings; the idf is that of this trace's texts."""
    ours = [_error_text(error) for error in errors]
    theirs = [f"{candidate.finding.description} {candidate.finding.evidence[:600]}" for candidate in findings]
    try:
        vectors = TfidfVectorizer(stop_words="english", ngram_range=(1, 2), sublinear_tf=True).fit_transform(
            [*ours, *theirs]
        )
    except ValueError:  # nothing but stop words
        return np.zeros((len(ours), len(theirs)))
    cosines: NDArray[np.float64] = (vectors[: len(ours)] @ vectors[len(ours) :].T).toarray()
    return cosines


def _error_text(error: ErrorLabel) -> str:
    return " ".join([error.description, *(piece.quote[:600] for piece in error.evidence)])


DimensionsOf = Callable[[Finding, str], frozenset[Dimension]]
