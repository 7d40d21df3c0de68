"""The offline judge: detectors that need no model, each a rule one can state and defend on any agent's trace."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tracejury.ingest.trace import Trace
from tracejury.judging.checks import answers, calls, failures, instructions, plans
from tracejury.judging.checks.hits import Check, Hit
from tracejury.judging.checks.view import NEEDS, View, look_at
from tracejury.judging.records import DIMENSIONS, Call, Citation, Dimension, Finding, Impact, Verdict

if TYPE_CHECKING:
    from tracejury.judging.judges.trace_text import TraceText

__all__ = ["CHECKS", "MODEL", "Check", "checks_version", "find", "judge_offline"]

MODEL = "checks"
CRITERIA = (
    "Rules that need no model, each reported with the span that breaks it and a verbatim quote. "
    "Score: 3 when no rule of this dimension is broken, 2 when the gravest finding is low, "
    "1 when it is medium, 0 when it is high. A rule whose text the trace does not hold does not apply; "
    "a dimension with no rule that applies has no score. "
    "Checks see only what the text of a trace shows; they miss errors that take understanding."
)
_SCORE_OF: dict[Impact, int] = {"low": 2, "medium": 1, "high": 0}

CHECKS: tuple[Check, ...] = (
    Check(
        name="bad_arguments",
        dimension="TC",
        category="Formatting Errors",
        impact="medium",
        look=failures.bad_arguments,
        needs=("calls", "results"),
    ),
    Check(
        name="unparsable_action",
        dimension="LC",
        category="Formatting Errors",
        impact="medium",
        look=failures.unparsable_action,
        needs=("words",),
    ),
    Check(
        name="failed_action",
        dimension="TC",
        category="Formatting Errors",
        impact="medium",
        look=failures.failed_action,
        needs=("calls", "results"),
    ),
    Check(
        name="unknown_tool",
        dimension="TS",
        category="Tool-related",
        impact="high",
        look=failures.unknown_tool,
        needs=("calls", "results"),
    ),
    Check(
        name="missing_file",
        dimension="TC",
        category="Environment Setup Errors",
        impact="medium",
        look=failures.missing_file,
        needs=("calls", "results"),
    ),
    Check(
        name="tool_defect",
        dimension="TC",
        category="Environment Setup Errors",
        impact="medium",
        look=failures.tool_defect,
        needs=("calls", "results"),
    ),
    Check(
        name="model_call_failed",
        dimension="EE",
        category="Service Errors",
        impact="medium",
        look=failures.model_call_failed,
        needs=("steps",),
    ),
    Check(
        name="access_refused",
        dimension="TC",
        category="Authentication Errors",
        impact="low",
        look=failures.access_refused,
        needs=("results",),
    ),
    Check(
        name="not_found",
        dimension="TC",
        category="Resource Not Found",
        impact="low",
        look=failures.not_found,
        needs=("results",),
    ),
    Check(
        name="service_failed",
        dimension="TC",
        category="Service Errors",
        impact="low",
        look=failures.service_failed,
        needs=("results",),
    ),
    Check(
        name="rate_limited",
        dimension="EE",
        category="Rate Limiting",
        impact="low",
        look=failures.rate_limited,
        needs=("steps",),
    ),
    Check(
        name="timed_out",
        dimension="EE",
        category="Timeout Issues",
        impact="low",
        look=failures.timed_out,
        needs=("steps",),
    ),
    Check(
        name="resource_exhausted",
        dimension="EE",
        category="Resource Exhaustion",
        impact="medium",
        look=failures.resource_exhausted,
        needs=("steps",),
    ),
    Check(
        name="announced_call_missing",
        dimension="TS",
        category="Tool Selection Errors",
        impact="high",
        look=calls.announced_call_missing,
        needs=("words", "tools"),
    ),
    Check(
        name="missing_call_unnoticed",
        dimension="PA",
        category="Task Orchestration",
        impact="high",
        look=calls.missing_call_unnoticed,
        needs=("words", "tools"),
    ),
    Check(
        name="repeated_call",
        dimension="EE",
        category="Resource Abuse",
        impact="medium",
        look=calls.repeated_call,
        needs=("calls", "results"),
    ),
    Check(
        name="repeated_failure",
        dimension="EE",
        category="Resource Abuse",
        impact="medium",
        look=calls.repeated_failure,
        needs=("calls",),
    ),
    Check(
        name="repeated_search",
        dimension="EE",
        category="Poor Information Retrieval",
        impact="medium",
        look=calls.repeated_search,
        needs=("arguments",),
    ),
    Check(
        name="text_iterated_as_list",
        dimension="TC",
        category="Formatting Errors",
        impact="low",
        look=calls.text_iterated_as_list,
        needs=("words", "results"),
    ),
    Check(
        name="skipped_plan",
        dimension="PA",
        category="Goal Deviation",
        impact="high",
        look=plans.skipped_plan,
        needs=("plan",),
    ),
    Check(
        name="no_tool_chosen",
        dimension="TS",
        category="Tool Selection Errors",
        impact="high",
        look=plans.no_tool_chosen,
        needs=("plan", "tools"),
    ),
    Check(
        name="abandoned_plan",
        dimension="PA",
        category="Incorrect Problem Identification",
        impact="medium",
        look=plans.abandoned_plan,
        needs=("plan", "calls"),
    ),
    Check(
        name="repeated_plan",
        dimension="PQ",
        category="Context Handling Failures",
        impact="medium",
        look=plans.repeated_plan,
        needs=("plan",),
    ),
    Check(
        name="missing_end_tag",
        dimension="LC",
        category="Instruction Non-compliance",
        impact="low",
        look=instructions.missing_end_tag,
        needs=("words", "prompts"),
    ),
    Check(
        name="output_over_limit",
        dimension="LC",
        category="Instruction Non-compliance",
        impact="medium",
        look=instructions.output_over_limit,
        needs=("words", "prompts"),
    ),
    Check(
        name="answer_punctuated",
        dimension="LC",
        category="Instruction Non-compliance",
        impact="low",
        look=instructions.answer_punctuated,
        needs=("words", "prompts"),
    ),
    Check(
        name="unsupported_answer",
        dimension="LC",
        category="Language-only",
        impact="high",
        look=answers.unsupported_answer,
        needs=("words", "tools"),
    ),
    Check(
        name="claimed_check",
        dimension="LC",
        category="Tool-related",
        impact="high",
        look=answers.claimed_check,
        needs=("words", "tools"),
    ),
    Check(
        name="answer_despite_failures",
        dimension="TC",
        category="Tool Output Misinterpretation",
        impact="high",
        look=answers.answer_despite_failures,
        needs=("words", "calls"),
    ),
    Check(
        name="gives_up",
        dimension="GF",
        category="Goal Deviation",
        impact="high",
        look=answers.gives_up,
        needs=("words",),
    ),
    Check(
        name="no_answer",
        dimension="GF",
        category="Goal Deviation",
        impact="high",
        look=answers.no_answer,
        needs=("steps",),
    ),
    Check(
        name="empty_model_answer",
        dimension="LC",
        category="Formatting Errors",
        impact="low",
        look=answers.empty_model_answer,
        needs=("answers", "words"),
    ),
    Check(
        name="out_of_steps",
        dimension="EE",
        category="Task Orchestration",
        impact="medium",
        look=answers.out_of_steps,
        needs=("steps",),
    ),
)


def judge_offline(trace: Trace, reading: TraceText | None = None) -> tuple[Verdict, ...]:
    """One verdict of model "checks" for each dimension, in the order of `DIMENSIONS`.

    The score is 3 without a finding, else 2, 1 or 0 by the gravest impact (low, medium, high). What checks
    cannot judge is not applicable with a reason: PQ and PA without a plan, TS and TC without a call, all but EE
    and GF without a recorded word of a model, EE without a step of any kind, and GF unless the trace visibly
    failed, since no rule can tell a right answer from a wrong one. With a `reading` the citations are written
    with its ordinals, else with span ids.
    """
    view = look_at(trace)
    ordinals = {} if reading is None else reading.ordinals
    findings = tuple(_findings(view, ordinals))
    return tuple(_verdict(view, dimension, findings) for dimension in DIMENSIONS)


def find(trace: Trace) -> tuple[Finding, ...]:
    """All findings of the checks in a trace, in the order of `CHECKS` and of the trace."""
    return tuple(_findings(look_at(trace), {}))


@cache
def checks_version() -> str:
    """The hash of the checks' source: what a verdict of the offline judge depends on beside the trace."""
    digest = hashlib.sha256()
    for entry in sorted(files(__name__).iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".py"):
            digest.update(entry.name.encode() + b"\0" + entry.read_bytes())
    return digest.hexdigest()[:16]


def _findings(view: View, ordinals: Mapping[str, str]) -> Iterator[Finding]:
    for check in CHECKS:
        if check.lacks(view):
            continue
        texts: set[str] = set()
        for hit in check.look(view):
            if hit.span.span_id not in texts:
                texts.add(hit.span.span_id)
                yield _finding(check, hit, ordinals)


def _finding(check: Check, hit: Hit, ordinals: Mapping[str, str]) -> Finding:
    span_id = hit.span.span_id
    return Finding(
        description=hit.description,
        evidence=hit.evidence,
        citations=(Citation(cite=ordinals.get(span_id, span_id), span_id=span_id),),
        dimension=check.dimension,
        impact=check.impact,
        category=check.category,
        evidence_place="verbatim" if hit.evidence else None,
        evidence_span_id=span_id if hit.evidence else None,
        check=check.name,
    )


def _verdict(view: View, dimension: Dimension, findings: tuple[Finding, ...]) -> Verdict:
    of_dimension = tuple(finding for finding in findings if finding.dimension == dimension)
    applying = _applying(view, dimension, of_dimension)
    reason = (
        None if of_dimension else _not_applicable(view, dimension) or (None if applying else _no_rule(view, dimension))
    )
    score = (
        None
        if reason is not None
        else min((_SCORE_OF[f.impact] for f in of_dimension if f.impact is not None), default=3)
    )
    return Verdict(
        rubric=dimension,
        trace_id=view.trace.trace_id,
        state="scored" if reason is None else "not_applicable",
        score=score,
        criteria=CRITERIA,
        rationale=_rationale(view, score, applying, of_dimension) if score is not None else "",
        findings=of_dimension,
        call=Call(model=MODEL, parameters={"version": checks_version()}, cost_usd=0.0),
        reason=reason,
    )


def _not_applicable(view: View, dimension: Dimension) -> str | None:
    if dimension == "GF":
        return "no check can tell a right answer from a wrong one; only a missing or failed answer is visible"
    if not view.threads and not view.work:
        return "the trace holds no step of an agent"
    if not view.has_words and dimension != "EE":
        return "the trace records no text of a model, so its reasons, plans and failed calls are not known"
    if dimension in {"PQ", "PA"} and not view.has_plan:
        return "the trace holds no plan"
    if dimension in {"TS", "TC"} and not view.has_calls:
        return "the trace holds no tool call"
    return None


def _applying(view: View, dimension: Dimension, of_dimension: tuple[Finding, ...]) -> tuple[Check, ...]:
    """The rules of a dimension whose text the trace holds; one that is broken applies."""
    broken = {finding.check for finding in of_dimension}
    rules = (check for check in CHECKS if check.dimension == dimension)
    return tuple(check for check in rules if check.name in broken or not check.lacks(view))


def _no_rule(view: View, dimension: Dimension) -> str:
    lacking = dict.fromkeys(need for check in CHECKS if check.dimension == dimension for need in check.lacks(view))
    return f"no rule of {dimension} applies: the trace holds no {' and no '.join(NEEDS[need] for need in lacking)}"


def _rationale(view: View, score: int, applying: tuple[Check, ...], of_dimension: tuple[Finding, ...]) -> str:
    """On how many rules that apply the score rests, which of them are broken, and what was not to be read."""
    broken = Counter(finding.check or "" for finding in of_dimension)
    rules = f"{len(applying)} applicable rule{'' if len(applying) == 1 else 's'}"
    names = ", ".join(f"{name} {count}" for name, count in broken.items()) or ", ".join(c.name for c in applying)
    silent = sum(not turn.said.strip() and not turn.calls for _, turn in view.turns)
    unread = f"; {silent} of {sum(1 for _ in view.turns)} model calls record no answer" if silent else ""
    return f"{score}: {len(broken) or 'none'} of {rules} broken ({names}){unread}"
