"""Proposes which judge finding describes which reference error: one-to-one, with reasons and a confidence.

Source of the rules: METRICS.md, "Matching reference errors with judge findings"; the assignment is
`scipy.optimize.linear_sum_assignment`, which maximises the sum of confidences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Final

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

RULE_VERSION: Final = "2"
"""Raise it with every change that may propose another pair: weights, word table, signs or threshold."""
RULE: Final = f"{AUTO}@{RULE_VERSION}"
"""The rule with its version, as a comparison that it made is stored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """What each sign of `Signs` adds to the log-odds that a pair describes one error."""

    start: float
    same_span: float
    closeness: float
    family: float
    around: float
    similarity: float
    quote: float
    same_category: float = 0.0
    close_category: float = 0.0
    related_category: float = 0.0
    same_dimension: float = 0.0


# Logistic regressions (L2, C = 2) on 795 pairs of 29 TRAIL traces, read one by one; frozen under RULE_VERSION. The help
# for researchers says how they were labelled and what the rule reaches on other traces.
WITH_CATEGORIES: Final = Weights(
    start=-5.76, same_span=1.56, closeness=3.0, family=1.05, around=2.12, similarity=3.92, quote=1.43,
    same_category=1.01, close_category=2.58, related_category=1.79,
)  # fmt: skip
WITHOUT_CATEGORIES: Final = Weights(
    start=-5.8, same_span=1.37, closeness=3.59, family=1.07, around=2.43, similarity=4.47, quote=1.5,
    same_dimension=1.21,
)  # fmt: skip
"""Where the error or the finding names no category."""
THRESHOLD = 0.45
"""The probability from which a pair is proposed."""
FAMILIES: Final = (
    {"Language-only", "Tool-related", "Hallucinations", "Poor Information Retrieval", "Tool Output Misinterpretation"},
    {"Goal Deviation", "Instruction Non-compliance", "Task Orchestration", "Tool Selection Errors"},
    {
        "Resource Not Found", "Environment Setup Errors", "Formatting Errors", "Tool Definition Issues",
        "Service Errors",
    },
    {"Resource Abuse", "Context Handling Failures"},
    {"Resource Exhaustion", "Timeout Issues"},
)  # fmt: skip
"""Categories under which two readers often file one event: made up, plan left, call failed, repeated, too much."""
SIMILAR_TEXT = 0.08  # cosine of TF-IDF: below it two texts share little but common words
_CLOSE = 3.0  # spans in reading order over which closeness falls to 1/e
_LEAST_QUOTE = 50.0  # rapidfuzz partial ratio from which quotes count
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
        """Rows of length 1 (0 of a text without words): (1 + log of the count) x idf. Columns of unused words are left
        out: to turn a million of them takes longer than to compare a trace's texts.
        """
        from scipy.sparse import csr_matrix
        from sklearn.preprocessing import normalize

        rows = self._counts.transform(texts).tocsr()
        used, columns = np.unique(rows.indices, return_inverse=True)
        values, shape = (1 + np.log(rows.data)) * self._idf[rows.indices], (len(texts), max(1, len(used)))
        weighted: csr_matrix = normalize(csr_matrix((values, columns, rows.indptr), shape=shape))
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
    """What an error and a finding have in common, but for the dimension: that depends on who asks.

    `closeness` (0 to 1) falls with the distance of their spans in reading order; `quote` and `similarity` (0 to 1) say
    how alike their quotes and texts are.
    """

    same_span: bool
    """A citation of the finding is a span of the error: it localizes the error."""
    closeness: float
    family: bool
    """Their spans are parent, child or siblings."""
    around: bool
    """The finding cites a span two or more levels above the error's, or none of the trace."""
    has_categories: bool
    same_category: bool
    related_category: bool
    quote: float
    similarity: float

    def judged(self, *, same_dimension: bool) -> tuple[float, tuple[str, ...]]:
        """Probability that the two describe one error, and the reasons that speak for it.

        0 without reasons where neither categories nor words nor quotes could say so.
        """
        probability = self.probability(same_dimension=same_dimension)
        if not probability:
            return 0.0, ()
        shares = zip(self._shares(same_dimension=same_dimension), self._names(), strict=True)
        return probability, tuple(name for share, name in shares if share >= _TOLD and name)

    def probability(self, *, same_dimension: bool) -> float:
        """That of `judged`, without the reasons."""
        if not (self.has_categories or self.similarity >= SIMILAR_TEXT or self.quote):
            return 0.0
        return 1 / (1 + exp(-(self._weights.start + sum(self._shares(same_dimension=same_dimension)))))

    @property
    def _weights(self) -> Weights:
        return WITH_CATEGORIES if self.has_categories else WITHOUT_CATEGORIES

    def _shares(self, *, same_dimension: bool) -> tuple[float, ...]:
        """What each sign adds to the log-odds."""
        weights = self._weights
        return (
            weights.same_span * self.same_span,
            weights.closeness * self.closeness,
            weights.family * self.family,
            weights.around * self.around,
            weights.same_category * self.same_category,
            weights.close_category * self.same_category * self.closeness,
            weights.related_category * self.related_category,
            weights.same_dimension * same_dimension,
            weights.quote * self.quote,
            weights.similarity * self.similarity,
        )

    def _names(self) -> tuple[str, ...]:
        """What each share is called as a reason; nothing where another stands for it."""
        return (
            "same span",
            "" if self.same_span else "close span",
            "parent, child or sibling span",
            "no narrow span cited",
            "same category",
            "",
            "related category",
            "same dimension",
            f"similar evidence {self.quote:.1f}",
            f"similar text {self.similarity:.1f}",
        )


_TOLD = 0.25  # log-odds from which a sign is a reason


@dataclass(frozen=True)
class SpanTree:
    """The parent of each span of a trace, in reading order."""

    parents: Mapping[str, str | None]

    @cached_property
    def places(self) -> dict[str, int]:
        """The number of each span in reading order."""
        return {span_id: number for number, span_id in enumerate(self.parents)}

    def closeness(self, one: str, other: str) -> float:
        """1 of a span with itself, falling with the distance in reading order; 0 where one is not in the trace."""
        if one not in self.places or other not in self.places:
            return 0.0
        return exp(-abs(self.places[one] - self.places[other]) / _CLOSE)

    def are_family(self, one: str, other: str) -> bool:
        """Whether they are parent and child, or have one parent."""
        above, beside = self.parents.get(one), self.parents.get(other)
        return above == other or beside == one or (above is not None and above == beside)

    def is_around(self, outer: str, inner: str) -> bool:
        """Whether `outer` is two or more levels above `inner`."""
        above = self.parents.get(inner)
        seen = {inner}
        while above is not None and above not in seen:
            seen.add(above)
            above = self.parents.get(above)
            if above == outer:
                return True
        return False


def propose(
    errors: Sequence[ErrorLabel],
    findings: Sequence[Candidate],
    *,
    parents: Mapping[str, str | None],
    likeness: TextLikeness | None = None,
) -> list[Match]:
    """One-to-one proposals between the errors of one person and the findings of one judge on one trace.

    `parents` gives the parent of each span of the trace, in reading order; `likeness` may be given, to load its table
    once. A pair's confidence is its probability by `Signs.judged`: of the trace, the error and the finding alone.
    """
    if not errors or not findings:
        return []
    ours = [error_text(error) for error in errors]
    theirs = [finding_text(candidate.finding) for candidate in findings]
    similar = (likeness or TextLikeness())(ours, theirs)
    tree = SpanTree(parents)
    judged = [[_judge(e, f, similar[i, j], tree) for j, f in enumerate(findings)] for i, e in enumerate(errors)]
    weights = np.array([[pair[0] for pair in row] for row in judged])
    return [
        Match(
            label_id=errors[i].label_id,
            finding_id=findings[j].finding_id,
            status="proposed",
            author=AUTO,
            confidence=round(float(weights[i, j]), 2),
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


def _judge(error: ErrorLabel, candidate: Candidate, similarity: float, tree: SpanTree) -> tuple[float, tuple[str, ...]]:
    """Confidence and reasons of one pair."""
    same_dimension = bool(candidate.dimensions.intersection(error.dimensions))
    return signs_of(error, candidate.finding, similarity, tree).judged(same_dimension=same_dimension)


def signs_of(error: ErrorLabel, finding: Finding, similarity: float, tree: SpanTree) -> Signs:
    """What an error and a finding have in common; `similarity` is that of their texts."""
    cited = {citation.span_id for citation in finding.citations if citation.span_id is not None}
    pairs = [(one, other) for one in cited for other in error.span_ids]
    same_span = any(one == other for one, other in pairs)
    same_category = error.category is not None and error.category == finding.category
    return Signs(
        same_span=same_span,
        closeness=1.0 if same_span else max((tree.closeness(*pair) for pair in pairs), default=0.0),
        family=not same_span and any(tree.are_family(*pair) for pair in pairs),
        around=not same_span and _cites_no_narrow_span(cited, pairs, tree),
        has_categories=error.category is not None and finding.category is not None,
        same_category=same_category,
        related_category=not same_category and any({error.category, finding.category} <= some for some in FAMILIES),
        quote=_quote_likeness(error.evidence, finding.evidence),
        similarity=similarity,
    )


def _cites_no_narrow_span(cited: set[str], pairs: Iterable[tuple[str, str]], tree: SpanTree) -> bool:
    return cited.isdisjoint(tree.parents) or any(tree.is_around(outer, inner) for outer, inner in pairs)


def _quote_likeness(evidence: Sequence[Evidence], quote: str) -> float:
    """0 to 1: how far the best partial ratio of two quotes stands above `_LEAST_QUOTE`; short quotes say nothing."""
    if len(quote) < _SHORTEST_QUOTE:
        return 0.0
    ratios = [
        fuzz.partial_ratio(piece.quote[:_QUOTED], quote[:_QUOTED], score_cutoff=_LEAST_QUOTE)
        for piece in evidence
        if len(piece.quote) >= _SHORTEST_QUOTE
    ]
    return max(0.0, max(ratios, default=0.0) - _LEAST_QUOTE) / (100 - _LEAST_QUOTE)


def error_text(error: ErrorLabel) -> str:
    """What is compared of an error: its description and the beginning of each quote."""
    return " ".join([error.description, *(piece.quote[:_QUOTED] for piece in error.evidence)])


def finding_text(finding: Finding) -> str:
    """What is compared of a finding."""
    return f"{finding.description} {finding.evidence[:_QUOTED]}"
