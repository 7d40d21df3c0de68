"""Where people differ on a trace: scores far apart, errors that only some of them saw; worst first. Pure functions.

Two people's errors are paired by span, dimension, category, evidence and text. Unlike a judge's finding, a
person's label may have no words at all (four keys make one), so a shared span and dimension are enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import combinations
from typing import Literal, get_args

import numpy as np
import pandas as pd
from rapidfuzz import fuzz, utils

from tracejury.judging.matching.rule import assign, error_text
from tracejury.judging.records import DIMENSIONS, IMPACTS, ErrorLabel, Evidence, Impact, ScoreLabel

FAR = 2  # points between two scores from which people differ
SEVERE: tuple[Impact, ...] = ("medium", "high")
WEIGHTS: Mapping[str, int] = {"medium": 2, "high": 3}

# What each sign is worth; a pair counts from THRESHOLD on.
SAME_SPAN, NEIGHBOUR, DIMENSION, CATEGORY, EVIDENCE, TEXT = 0.40, 0.20, 0.30, 0.10, 0.30, 0.40
THRESHOLD = 0.45
ALIKE = 0.65  # rapidfuzz token set ratio (0..1): below it two descriptions share little but common words
FEW_WORDS = 4  # a text of fewer words is like nothing: "wrong tool" stands in many
QUOTE_ALIKE = 88.0  # rapidfuzz partial ratio
_SHORTEST_QUOTE = 8


Difference = Literal["existence", "span", "dimension", "impact"]
DIFFERENCES: tuple[Difference, ...] = get_args(Difference)
"""What raters differ in about one error: whether it is one, where it is, its dimensions, how much it matters."""


@dataclass(frozen=True, kw_only=True)
class ErrorGroup:
    """One error as the raters who saw it described it; `missing` are those who did not."""

    labels: tuple[tuple[str, ErrorLabel], ...]
    missing: tuple[str, ...]

    @cached_property
    def impact(self) -> Impact | None:
        """The gravest that a rater gave."""
        impacts = [label.impact for _, label in self.labels if label.impact is not None]
        return max(impacts, key=IMPACTS.index, default=None)

    @property
    def is_disputed(self) -> bool:
        """Some saw it, others did not, and it is of medium or high impact."""
        return bool(self.missing) and self.impact in SEVERE

    @property
    def label_ids(self) -> tuple[str, ...]:
        return tuple(label.label_id for _, label in self.labels)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """What the raters differ in, in the order of `DIFFERENCES`; empty where all say the same."""
        places = [(set(label.span_ids), set(label.dimensions), label.impact) for _, label in self.labels]
        differs = [
            bool(self.missing),
            *(any(one != values[0] for one in values) for values in zip(*places, strict=True)),
        ]
        return tuple(name for name, is_so in zip(DIFFERENCES, differs, strict=True) if is_so)


@dataclass(frozen=True, kw_only=True, slots=True)
class Opinion:
    """What one person submitted on the trace. A score of None is "not applicable"."""

    errors: Sequence[ErrorLabel]
    scores: Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class Dispute:
    """What the raters (R1, R2 ...) of a trace said. `gaps` holds the dimensions scored `FAR` or more apart."""

    trace_id: str
    raters: tuple[str, ...]
    scores: Mapping[str, Mapping[str, float | None]]
    groups: tuple[ErrorGroup, ...]
    gaps: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def unmatched(self) -> tuple[ErrorGroup, ...]:
        return tuple(group for group in self.groups if group.is_disputed)

    @property
    def is_disputed(self) -> bool:
        return bool(self.gaps or self.unmatched)

    @cached_property
    def weight(self) -> float:
        """How bad it is: points apart, summed over dimensions, and 3 for a high, 2 for a medium unmatched error."""
        return sum(self.gaps.values()) + sum(WEIGHTS[group.impact or ""] for group in self.unmatched)


def dispute(
    trace_id: str,
    opinions: Mapping[str, Opinion],
    *,
    parents: Mapping[str, str | None],
    seed: str,
    order: Mapping[str, int] | None = None,
) -> Dispute:
    """The raters of a trace side by side. `order` gives the reading order of spans; groups follow it."""
    names = anonymous(opinions, trace_id=trace_id, seed=seed)
    by_rater = {names[person]: opinion for person, opinion in sorted(opinions.items(), key=lambda item: names[item[0]])}
    scores: dict[str, dict[str, float | None]] = {
        dimension: {
            rater: opinion.scores[dimension] for rater, opinion in by_rater.items() if dimension in opinion.scores
        }
        for dimension in DIMENSIONS
    }
    scores = {dimension: by_rater_scores for dimension, by_rater_scores in scores.items() if by_rater_scores}
    error_groups = groups({rater: opinion.errors for rater, opinion in by_rater.items()}, parents=parents)
    return Dispute(
        trace_id=trace_id,
        raters=tuple(by_rater),
        scores=scores,
        groups=tuple(sorted(error_groups, key=lambda group: _first_place(group, order or {}))),
        gaps={
            dimension: gap
            for dimension, by_rater_scores in scores.items()
            if (gap := _gap(by_rater_scores.values())) >= FAR
        },
    )


def difference_counts(disputes: Iterable[Dispute]) -> pd.DataFrame:
    """difference, errors (that raters differ in so), share (of all errors that any of them marked; NaN without any)."""
    every = [group for one in disputes for group in one.groups]
    counts = {name: sum(name in group.differences for group in every) for name in DIFFERENCES}
    rows = [(name, count, count / len(every) if every else float("nan")) for name, count in counts.items()]
    return pd.DataFrame(rows, columns=["difference", "errors", "share"])


def worst_first(disputes: Iterable[Dispute]) -> list[Dispute]:
    """Only those where people differ, the gravest first."""
    return sorted((one for one in disputes if one.is_disputed), key=lambda one: (-one.weight, one.trace_id))


def anonymous(people: Iterable[str], *, trace_id: str, seed: str) -> dict[str, str]:
    """R1, R2 ... for the people of a trace, in an order that the secret seed decides anew for each trace."""

    def place(person: str) -> bytes:
        text = "\x1f".join((seed, trace_id, person))
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    return {person: f"R{number}" for number, person in enumerate(sorted(people, key=place), 1)}


def groups(errors: Mapping[str, Sequence[ErrorLabel]], *, parents: Mapping[str, str | None]) -> list[ErrorGroup]:
    """Errors of several raters that are the same error, at most one of each rater; the surest pairs join first."""
    known = {rater: [_Known.of(label, parents) for label in own_labels] for rater, own_labels in errors.items()}
    pairs = [
        (worth, a.label_id, b.label_id)
        for one, other in combinations(errors, 2)
        for worth, a, b in _pairs(known[one], known[other])
    ]
    owner = {label.label_id: (rater, label) for rater, own_labels in errors.items() for label in own_labels}
    group_of: dict[str, list[str]] = {label_id: [label_id] for label_id in owner}
    for _, one, other in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        left, right = group_of[one], group_of[other]
        raters = [owner[label_id][0] for label_id in (*left, *right)]
        if left is right or len(set(raters)) < len(raters):
            continue
        left += right
        for label_id in right:
            group_of[label_id] = left
    unique = {id(group): group for group in group_of.values()}
    groups_so_far = []
    for group in unique.values():
        labels = sorted((owner[label_id] for label_id in group), key=lambda entry: list(errors).index(entry[0]))
        present = {rater for rater, _ in labels}
        groups_so_far.append(ErrorGroup(labels=tuple(labels), missing=tuple(r for r in errors if r not in present)))
    return groups_so_far


def pair_errors(
    ours: Sequence[ErrorLabel],
    theirs: Sequence[ErrorLabel],
    *,
    parents: Mapping[str, str | None],
) -> list[tuple[float, ErrorLabel, ErrorLabel]]:
    """One-to-one pairs of two people's errors with their worth, the assignment with the largest sum."""
    return _pairs([_Known.of(label, parents) for label in ours], [_Known.of(label, parents) for label in theirs])


def scores_of(labels: Iterable[ScoreLabel]) -> dict[str, float | None]:
    """Scores by dimension as `Opinion` holds them; taken back ones and other scales are left out."""
    return {
        label.dimension: None if label.not_applicable else label.value
        for label in labels
        if label.dimension in DIMENSIONS and (label.not_applicable or label.value is not None)
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """An error taken apart once, however often it is compared."""

    label: ErrorLabel
    spans: frozenset[str]
    above: frozenset[str | None]
    """The parents of its spans."""
    dimensions: frozenset[str]
    text: str
    """Description and quotes as they are compared; empty where there are too few words."""

    @classmethod
    def of(cls, label: ErrorLabel, parents: Mapping[str, str | None]) -> _Known:
        text = utils.default_process(error_text(label))
        return cls(
            label=label,
            spans=frozenset(label.span_ids),
            above=frozenset(map(parents.get, label.span_ids)),
            dimensions=frozenset(label.dimensions),
            text=text if len(text.split()) >= FEW_WORDS else "",
        )


def _pairs(ours: Sequence[_Known], theirs: Sequence[_Known]) -> list[tuple[float, ErrorLabel, ErrorLabel]]:
    if not ours or not theirs:
        return []
    worth = np.array([[_worth(one, other) for other in theirs] for one in ours])
    return [(float(worth[i, j]), ours[i].label, theirs[j].label) for i, j in assign(worth, least=THRESHOLD)]


def _worth(one: _Known, other: _Known) -> float:
    a, b = one.label, other.label
    same_span = not one.spans.isdisjoint(other.spans)
    same_dimension = not one.dimensions.isdisjoint(other.dimensions)
    same_category = a.category is not None and a.category == b.category
    near = not same_span and not (one.above.isdisjoint(other.spans) and other.above.isdisjoint(one.spans))
    placed, named = same_span or near, same_dimension or same_category
    if not (placed or named):
        return 0.0  # most pairs; no word of theirs is looked at
    quoted = _quotes_alike(a.evidence, b.evidence)
    similarity = _likeness(one.text, other.text)
    alike = similarity > 0
    if not (placed and (named or quoted or alike)) and not (named and (quoted or alike)):
        return 0.0
    return (
        SAME_SPAN * same_span
        + NEIGHBOUR * near
        + DIMENSION * same_dimension
        + CATEGORY * same_category
        + EVIDENCE * quoted
        + TEXT * similarity * alike
    )


def _likeness(one: str, other: str) -> float:
    """How far the words of two errors overlap, `ALIKE` to 1, else 0; much faster than TF-IDF."""
    return fuzz.token_set_ratio(one, other, score_cutoff=ALIKE * 100) / 100


def _quotes_alike(ours: Sequence[Evidence], theirs: Sequence[Evidence]) -> bool:
    return any(_same_place(a, b) or _same_words(a.quote, b.quote) for a in ours for b in theirs)


def _same_place(one: Evidence, other: Evidence) -> bool:
    """Two stretches of the same text that overlap."""
    if one.field is None or (one.span_id, one.field) != (other.span_id, other.field):
        return False
    if one.start is None or one.end is None or other.start is None or other.end is None:
        return False
    return one.start < other.end and other.start < one.end


def _same_words(one: str, other: str) -> bool:
    if min(len(one), len(other)) < _SHORTEST_QUOTE:
        return False
    return fuzz.partial_ratio(one, other, score_cutoff=QUOTE_ALIKE) > 0


def _gap(scores: Iterable[float | None]) -> float:
    values = [value for value in scores if value is not None]
    return max(values) - min(values) if values else 0


def _first_place(group: ErrorGroup, order: Mapping[str, int]) -> tuple[int, str]:
    places = [order[span_id] for _, label in group.labels for span_id in label.span_ids if span_id in order]
    return min(places, default=len(order)), group.labels[0][1].label_id
