"""What several models of a jury score together: a majority or a mean, ties said, absent votes counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Rule = Literal["majority", "mean"]
RULES: tuple[Rule, ...] = get_args(Rule)


@dataclass(frozen=True, kw_only=True)
class JuryScore:
    """What several models say together. `tied` are the scores that share the most votes, where no one has it.

    `score` is None for a tie, and where nobody scored; `missing` counts members without a score (failed or not
    applicable): they have no vote.
    """

    score: float | None
    votes: Mapping[int, int]
    missing: int
    tied: tuple[int, ...] = ()


def jury_score(scores: Sequence[int | None], rule: Rule = "majority") -> JuryScore:
    """One score from those of the members: the one with the most votes, or their mean."""
    votes = Counter(score for score in scores if score is not None)
    missing = sum(score is None for score in scores)
    ordered = dict(sorted(votes.items()))
    if not votes:
        return JuryScore(score=None, votes={}, missing=missing)
    if rule == "mean":
        total = sum(score * count for score, count in votes.items())
        return JuryScore(score=total / sum(votes.values()), votes=ordered, missing=missing)
    most = max(votes.values())
    leading = tuple(score for score, count in ordered.items() if count == most)
    if len(leading) > 1:
        return JuryScore(score=None, votes=ordered, missing=missing, tied=leading)
    return JuryScore(score=float(leading[0]), votes=ordered, missing=missing)


def on_scale(joint: JuryScore) -> JuryScore:
    """The joint score as one of 0..3: a mean goes to the nearest; halfway between two it is a tie of both."""
    if joint.score is None:
        return joint
    below = int(joint.score)
    rest = joint.score - below
    if rest == 0.5:
        return JuryScore(score=None, votes=joint.votes, missing=joint.missing, tied=(below, below + 1))
    return JuryScore(score=float(below + (rest > 0.5)), votes=joint.votes, missing=joint.missing)
