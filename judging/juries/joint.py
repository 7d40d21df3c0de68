"""The joint verdict of a jury: what its models say on one judge and trace, as one score and one list of findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tracejury.judging.judges.jury import JuryScore, Rule, jury_score, on_scale
from tracejury.judging.matching.rule import SpanTree, TextLikeness, assign, finding_text, signs_of
from tracejury.judging.records import (
    IMPACTS,
    Call,
    Citation,
    ErrorLabel,
    Evidence,
    Failure,
    Finding,
    Impact,
    Verdict,
    VerdictState,
)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Member:
    """One model's outcome, and its findings by their keys in the store."""

    model: str
    outcome: Verdict | Failure
    findings: tuple[tuple[int, Finding], ...] = ()

    @property
    def score(self) -> int | None:
        return self.outcome.score if isinstance(self.outcome, Verdict) else None


@dataclass(frozen=True, kw_only=True)
class JointFinding:
    """Findings of several members that describe one error, and the finding that stands for them."""

    finding: Finding
    member_keys: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class JointVerdict:
    """What the jury says: the outcome, and behind each of its findings those of its members, in the same order."""

    outcome: Verdict | Failure
    findings: tuple[JointFinding, ...] = ()


def jury_name(models: Sequence[str]) -> str:
    """The jury of these models as a judge's model."""
    return " + ".join(models)


def joint_verdict(
    members: Sequence[Member], rule: Rule, *, parents: Mapping[str, str | None], likeness: TextLikeness
) -> JointVerdict:
    """The jury's verdict on one judge and trace; a Failure where no member answered.

    A tie, and a rubric that applies to no member, is a verdict without a score whose reason says so: its findings
    count. `parents` and `likeness` as `matching.propose` takes them.
    """
    answered = [member for member in members if isinstance(member.outcome, Verdict)]
    first = members[0].outcome
    call = Call(model=jury_name([member.model for member in members]), prompt_hash=made_from(members), cost_usd=0.0,
                attempts=0)  # fmt: skip
    if not answered:
        reason = f"no model answered: {', '.join(f'{m.model} {m.outcome.state}' for m in members)}"
        failed = Failure(rubric=first.rubric, trace_id=first.trace_id, state="error", reason=reason, call=call)
        return JointVerdict(outcome=failed)
    joint = on_scale(jury_score([member.score for member in members], rule))
    findings = united(answered, parents=parents, likeness=likeness)
    outcome = Verdict(
        rubric=first.rubric,
        trace_id=first.trace_id,
        state="scored" if joint.score is not None else _unscored(joint, answered),
        score=None if joint.score is None else int(joint.score),
        criteria="",
        rationale="\n".join(_said(member) for member in answered),
        findings=tuple(one.finding for one in findings),
        call=call,
        reason=None if joint.score is not None else _without_score(joint, answered),
        notes=tuple(_notes(members)),
    )
    return JointVerdict(outcome=outcome, findings=findings)


def made_from(members: Sequence[Member]) -> str:
    """A hash of what the members said: another one wherever the joint verdict may be another."""
    votes = [(m.model, m.outcome.state, m.score, m.outcome.reason, [key for key, _ in m.findings]) for m in members]
    return blake2b(repr(votes).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def united(
    members: Sequence[Member], *, parents: Mapping[str, str | None], likeness: TextLikeness
) -> tuple[JointFinding, ...]:
    """The members' findings, those that describe one error put together; what most members say comes first.

    Two findings of different members are one error by the rule that proposes pairs of an error and a finding
    (`matching.Signs`), each member's findings one to one.
    """
    groups: list[list[tuple[int, Finding]]] = []
    for member in members:
        own = list(member.findings)
        pairs = dict(assign(_alike(own, groups, parents, likeness))) if own and groups else {}
        for place, finding in enumerate(own):
            if place in pairs:
                groups[pairs[place]].append(finding)
            else:
                groups.append([finding])
    groups.sort(key=len, reverse=True)
    return tuple(
        JointFinding(
            finding=_joint_finding([finding for _, finding in group], len(members)),
            member_keys=tuple(key for key, _ in group),
        )
        for group in groups
    )


def _alike(
    own: Sequence[tuple[int, Finding]],
    groups: Sequence[Sequence[tuple[int, Finding]]],
    parents: Mapping[str, str | None],
    likeness: TextLikeness,
) -> NDArray[np.float64]:
    """How surely each of a member's findings is the error of each group: as that of its likest finding."""
    others = [(place, finding) for place, group in enumerate(groups) for _, finding in group]
    similar = likeness([finding_text(f) for _, f in own], [finding_text(f) for _, f in others])
    weights, tree = np.zeros((len(own), len(groups))), SpanTree(parents)
    for row, (_, finding) in enumerate(own):
        error = _as_error(finding)
        for column, (place, other) in enumerate(others):
            signs = signs_of(error, other, similar[row, column], tree)
            confidence = signs.probability(same_dimension=_same_dimension(finding, other))
            weights[row, place] = max(weights[row, place], confidence)
    return weights


def _same_dimension(finding: Finding, other: Finding) -> bool:
    return finding.dimension is not None and finding.dimension == other.dimension


def _as_error(finding: Finding) -> ErrorLabel:
    """A member's finding in the place of a person's error, so that one rule says what describes one error."""
    return ErrorLabel(
        label_id="",
        trace_id="",
        annotator="",
        span_ids=tuple(dict.fromkeys(c.span_id for c in finding.citations if c.span_id is not None)),
        dimensions=() if finding.dimension is None else (finding.dimension,),
        impact=finding.impact,
        description=finding.description,
        category=finding.category,
        evidence=(Evidence(quote=finding.evidence),) if finding.evidence else (),
    )


def _joint_finding(same: Sequence[Finding], members: int) -> Finding:
    """The first member's words, every citation once, the impact and category that most give."""
    first = same[0]
    quoted = next((finding for finding in same if finding.evidence), first)
    citations: dict[tuple[bool, str], Citation] = {}
    for finding in same:
        for citation in finding.citations:
            citations.setdefault(_cited(citation), citation)
    return Finding(
        description=f"{len(same)} of {members} models: {first.description}",
        evidence=quoted.evidence,
        citations=tuple(citations.values()),
        dimension=first.dimension,
        impact=_impact([finding.impact for finding in same if finding.impact is not None]),
        category=_most([finding.category for finding in same if finding.category is not None]),
        evidence_place=quoted.evidence_place,
        evidence_span_id=quoted.evidence_span_id,
    )


def _cited(citation: Citation) -> tuple[bool, str]:
    return citation.span_id is not None, citation.span_id or citation.cite


def _impact(impacts: Sequence[Impact]) -> Impact | None:
    """What most give; of those that tie the highest."""
    return _most(sorted(impacts, key=IMPACTS.index, reverse=True))


def _most(values: Sequence[T]) -> T | None:
    """The most frequent, of those that tie the first; None of none."""
    return Counter(values).most_common(1)[0][0] if values else None


def _said(member: Member) -> str:
    assert isinstance(member.outcome, Verdict)
    score = "no score" if member.score is None else member.score
    return f"{member.model} ({score}): {member.outcome.rationale}"


def _unscored(joint: JuryScore, answered: Sequence[Member]) -> VerdictState:
    if joint.tied:
        return "tied"
    is_asked_for_none = all(member.outcome.state == "errors_only" for member in answered)
    return "errors_only" if is_asked_for_none else "not_applicable"


def _without_score(joint: JuryScore, answered: Sequence[Member]) -> str:
    if joint.tied:
        return f"tie: {' and '.join(map(str, joint.tied))}; ties are reported, not resolved"
    return next((member.outcome.reason for member in answered if member.outcome.reason), "no model gave a score")


def _notes(members: Sequence[Member]) -> list[str]:
    """How each member voted, and which notes theirs has."""
    votes = ", ".join(f"{m.model} {m.outcome.state if m.score is None else m.score}" for m in members)
    failed = [member for member in members if isinstance(member.outcome, Failure)]
    absent = [f"jury: {len(failed)} of {len(members)} models failed"] if failed else []
    theirs = [n for m in members if isinstance(m.outcome, Verdict) for n in m.outcome.notes]
    return [f"jury: {votes}", *absent, *dict.fromkeys(theirs)]
