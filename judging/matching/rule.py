"""Proposes which judge finding describes which human error: one-to-one, with reasons and a confidence.

Source of the rules: METRICS.md, "Matching human errors with judge findings"; the assignment is
`scipy.optimize.linear_sum_assignment`, which maximises the sum of confidences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import orjson
from numpy.typing import NDArray
from rapidfuzz import fuzz

from tracejury.judging.records import Dimension, ErrorLabel, Evidence, Finding, Match

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

AUTO = "auto"
"""The author of the rule's proposals."""
BY_MODEL = "llm:"
"""Begins the author of a model's proposals: the model and the version of the prompt follow. No person's name can
hold a colon."""

# What each sign is worth; a pair is proposed from THRESHOLD on.
SAME_SPAN, NEIGHBOUR, DIMENSION, CATEGORY, EVIDENCE, TEXT = 0.40, 0.20, 0.10, 0.15, 0.20, 0.60
THRESHOLD = 0.45
SIMILAR_TEXT = 0.08  # cosine of TF-IDF: below it two texts share little but common words
QUOTE_ALIKE = 88.0  # rapidfuzz partial ratio
_SHORTEST_QUOTE = 20
_QUOTED = 600  # characters of a quote that are compared


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A judge's finding as matching sees it: its key in the store and the dimensions it speaks of."""

    finding_id: int
    finding: Finding
    dimensions: frozenset[Dimension]


_FEATURES = 2**20


class TextLikeness:
    """How alike two texts are, 0 to 1: cosine of TF-IDF of words and word pairs.

    The idf is that of a frozen table of words (`word_weights.json`, made from the texts that ship with Tracejury), so
    that the likeness of two texts depends on these two alone: another judge, trace or label changes no proposal.
    A word that the table lacks is rare. scikit-learn takes seconds to import, so it is imported here.
    """

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer

        self._counts = HashingVectorizer(
            stop_words="english", ngram_range=(1, 2), alternate_sign=False, norm=None, n_features=_FEATURES
        )
        table = orjson.loads(Path(__file__).with_name("word_weights.json").read_bytes())
        documents, known = int(table["documents"]), dict(table["in_documents"])
        self._idf = np.full(_FEATURES, _idf(1, documents))
        self._idf[self._places(known)] = [_idf(count, documents) for count in known.values()]

    def _places(self, terms: Iterable[str]) -> NDArray[np.int64]:
        """The column of each word or word pair."""
        from sklearn.feature_extraction import FeatureHasher

        hasher = FeatureHasher(n_features=_FEATURES, input_type="string", alternate_sign=False)
        columns: NDArray[np.int64] = hasher.transform([term] for term in terms).indices.astype(np.int64)
        return columns

    def __call__(self, ours: Sequence[str], theirs: Sequence[str]) -> NDArray[np.float64]:
        """Likeness of each of `ours` (rows) with each of `theirs` (columns)."""
        return self.among([*ours, *theirs])(ours, theirs)

    def among(self, texts: Iterable[str]) -> KnownTexts:
        """The same likeness of texts that are known beforehand."""
        distinct = list(dict.fromkeys(texts))
        vectors = self._weighted(distinct) if distinct else None
        return KnownTexts(rows={text: row for row, text in enumerate(distinct)}, vectors=vectors)

    def _weighted(self, texts: Sequence[str]) -> csr_matrix:
        """Rows of length 1 (0 of a text without words): (1 + log of the count) x idf."""
        from sklearn.preprocessing import normalize

        rows = self._counts.transform(texts).tocsr()
        rows.data = (1 + np.log(rows.data)) * self._idf[rows.indices]
        weighted: csr_matrix = normalize(rows)
        return weighted


def _idf(in_documents: int, documents: int) -> float:
    return log((1 + documents) / (1 + in_documents)) + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownTexts:
    """`TextLikeness` of these texts: each is taken apart once, however often it is compared."""

    rows: Mapping[str, int]
    vectors: csr_matrix | None

    def __call__(self, ours: Sequence[str], theirs: Sequence[str]) -> NDArray[np.float64]:
        """Likeness of each of `ours` (rows) with each of `theirs` (columns). Raises `KeyError` for an unknown text."""
        if self.vectors is None:
            return np.zeros((len(ours), len(theirs)))
        left, right = ([self.rows[text] for text in texts] for texts in (ours, theirs))
        cosines: NDArray[np.float64] = (self.vectors[left] @ self.vectors[right].T).toarray()
        return cosines


@dataclass(frozen=True, kw_only=True, slots=True)
class Signs:
    """What an error and a finding have in common, but for the dimension: that depends on who asks."""

    same_span: bool
    """A citation of the finding is a span of the error: it localizes the error."""
    near: bool
    same_category: bool
    quoted: bool
    similarity: float

    def judged(self, *, same_dimension: bool) -> tuple[float, tuple[str, ...]]:
        """Confidence and reasons; 0 where the pair is no candidate."""
        alike = self.similarity >= SIMILAR_TEXT
        placed = self.same_span or self.near or same_dimension or self.same_category
        if not ((alike or self.quoted) and placed):
            return 0.0, ()
        signs: list[tuple[bool, float, str]] = [
            (self.same_span, SAME_SPAN, "same span"),
            (self.near, NEIGHBOUR, "parent or child span"),
            (same_dimension, DIMENSION, "same dimension"),
            (self.same_category, CATEGORY, "same category"),
            (self.quoted, EVIDENCE, "same evidence"),
            (alike, TEXT * self.similarity, f"similar text {self.similarity:.1f}"),
        ]
        return sum(worth for holds, worth, _ in signs if holds), tuple(reason for holds, _, reason in signs if holds)


def propose(
    errors: Sequence[ErrorLabel],
    findings: Sequence[Candidate],
    *,
    parents: Mapping[str, str | None],
    likeness: TextLikeness | None = None,
) -> list[Match]:
    """One-to-one proposals between the errors of one person and the findings of one judge on one trace.

    `parents` gives the parent of each span of the trace; `likeness` may be given, to load its table once. A pair is a
    candidate when it has text or evidence in common, and beside it a span (or a parent or child of one), the dimension
    or the category.
    """
    if not errors or not findings:
        return []
    ours = [error_text(error) for error in errors]
    theirs = [finding_text(candidate.finding) for candidate in findings]
    similar = (likeness or TextLikeness())(ours, theirs)
    judged = [[_judge(e, f, similar[i, j], parents) for j, f in enumerate(findings)] for i, e in enumerate(errors)]
    weights = np.array([[pair[0] for pair in row] for row in judged])
    return [
        Match(
            label_id=errors[i].label_id,
            finding_id=findings[j].finding_id,
            status="proposed",
            author=AUTO,
            confidence=round(min(1.0, float(weights[i, j])), 2),
            reasons=judged[i][j][1],
            localized=is_localized(errors[i], findings[j].finding),
        )
        for i, j in assign(weights)
    ]


def assign(confidence: NDArray[np.float64], *, least: float = THRESHOLD) -> list[tuple[int, int]]:
    """The one-to-one pairs (row, column) from `least` on whose confidences have the greatest sum; none of 0."""
    weights = np.where(confidence >= least, confidence, 0.0)
    if not weights.any():
        return []
    from scipy.optimize import linear_sum_assignment  # as long to import as the whole app

    rows, columns = linear_sum_assignment(weights, maximize=True)
    return [(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True) if weights[i, j] > 0]


def is_localized(error: ErrorLabel, finding: Finding) -> bool:
    """Whether a citation of the finding resolves to a span of the error (exactly)."""
    return any(citation.span_id in error.span_ids for citation in finding.citations if citation.span_id is not None)


def _judge(
    error: ErrorLabel, candidate: Candidate, similarity: float, parents: Mapping[str, str | None]
) -> tuple[float, tuple[str, ...]]:
    """Confidence and reasons of one pair; 0 where it is no candidate."""
    same_dimension = bool(candidate.dimensions.intersection(error.dimensions))
    return signs_of(error, candidate.finding, similarity, parents).judged(same_dimension=same_dimension)


def signs_of(error: ErrorLabel, finding: Finding, similarity: float, parents: Mapping[str, str | None]) -> Signs:
    """What an error and a finding have in common; `similarity` is that of their texts."""
    cited = {citation.span_id for citation in finding.citations if citation.span_id is not None}
    same_span = bool(cited.intersection(error.span_ids))
    return Signs(
        same_span=same_span,
        near=not same_span and _are_neighbours(cited, error.span_ids, parents),
        same_category=error.category is not None and error.category == finding.category,
        quoted=_quotes_alike(error.evidence, finding.evidence),
        similarity=similarity,
    )


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


def error_text(error: ErrorLabel) -> str:
    """What is compared of an error: its description and the beginning of each quote."""
    return " ".join([error.description, *(piece.quote[:_QUOTED] for piece in error.evidence)])


def finding_text(finding: Finding) -> str:
    """What is compared of a finding."""
    return f"{finding.description} {finding.evidence[:_QUOTED]}"
