"""Checks on plans: made and not followed, given up in silence, written again without a change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rapidfuzz import fuzz

from tracejury.judging.checks.calls import announced
from tracejury.judging.checks.hits import Hit, cut, quote_answer, short
from tracejury.judging.checks.view import Thread, Turn, View, steps

SAME_PLAN = 92
"""rapidfuzz ratio of the steps from which a replan counts as the earlier plan again."""
_FINDING_OUT = re.compile(
    r"\b(?:search|look(?:ing)? ?-?up|find|locat|retriev|consult|visit|brows|fetch|obtain|download|ask|query|inspect"
    r"|open|watch|access|research|gather|request|cross[- ]?(?:check|verif|referenc)|source)\w*",
    re.IGNORECASE,
)
_HANDS_IN = re.compile(r"\b(?:final_answer|submit(?:_answer)?|finish)\s*\(|final answer", re.IGNORECASE)
_OTHER_WAY = re.compile(
    r"\binstead\b|\bdifferent (?:approach|way|method|tool|source)|\balternativ|\banother (?:approach|way|method|tool)"
    r"|\b(?:fail|could ?n[o']t|cannot|can't|unable)\w*",
    re.IGNORECASE,
)


def skipped_plan(view: View) -> Iterator[Hit]:
    """The plan has steps that find something out (or name a tool), but the agent answers without ever calling a tool or
    a teammate: the steps were skipped, however good the answer is. A plan of pure thought needs no call. Cited at the
    answer handed in."""
    for thread in view.threads:
        if _skipped(thread) and thread.final is not None:
            plan = thread.plans[0]
            yield Hit(
                span=thread.final.span,
                evidence=quote_answer(thread.final, _HANDS_IN),
                description=(
                    f"The agent hands in an answer without a single call, although it planned {len(steps(plan.said))} "
                    f"steps, first {short(steps(plan.said)[0], 120)!r}"
                ),
            )


def no_tool_chosen(view: View) -> Iterator[Hit]:
    """An agent with tools and a plan to find something out takes its first step without a tool and never calls one: it
    did not choose a tool at all. Cited at the first step after the plan."""
    for thread in view.threads:
        if not _skipped(thread):
            continue
        first = thread.after(thread.plans[0])
        if first is not None and announced(thread, first) is None:
            yield Hit(
                span=first.span,
                evidence=quote_answer(first),
                description=f"None of the tools at hand ({short(', '.join(sorted(thread.work_tools)), 100)}) is called",
            )


def abandoned_plan(view: View) -> Iterator[Hit]:
    """After a tool failed, the agent says so and tries another way, never gets that tool to work and writes no new
    plan: it took the failure for a dead end, and the plan no longer says what is done. A detour after which the tool
    works is a repair, not an error. Cited at the turn away."""
    for thread in view.threads:
        for turn in thread.turns:
            away = thread.after(turn)
            failed = {tool.tool_name for tool in turn.tools if tool.status == "ERROR" and tool.tool_name}
            if thread.plans and away is not None and failed and _turns_away(thread, failed, away):
                description = (
                    f"After a failure of {', '.join(sorted(failed))} the agent leaves its plan for another way"
                )
                yield Hit(span=away.span, evidence=quote_answer(away, _OTHER_WAY), description=description)


def repeated_plan(view: View) -> Iterator[Hit]:
    """A new plan whose steps are those of an earlier plan takes nothing into account that happened in between. Cited at
    the replan."""
    for thread in view.threads:
        for number, plan in enumerate(thread.plans[1:], start=1):
            plan_text = "\n".join(steps(plan.said))
            earlier = [other for other in thread.plans[:number] if _alike(plan_text, "\n".join(steps(other.said)))]
            if earlier:
                yield Hit(
                    span=plan.span,
                    evidence=cut(steps(plan.said)[0]),
                    description=f"The plan is the same as that of span {earlier[0].span.span_id}",
                )


def _skipped(thread: Thread) -> bool:
    """Whether the agent answered without a call although its plan asks for one."""
    if not (thread.plans and thread.work_tools and thread.final) or thread.tried:
        return False
    work = "\n".join(steps(thread.plans[0].said))
    return _FINDING_OUT.search(work) is not None or any(name in work for name in thread.work_tools)


def _turns_away(thread: Thread, failed: set[str], away: Turn) -> bool:
    later = (tool for turn in thread.turns[away.number :] for tool in turn.tools)
    works_later = any(tool.tool_name in failed and tool.status != "ERROR" for tool in later)
    leaves = away.acts and not failed & away.called and _OTHER_WAY.search(away.thought) is not None
    return leaves and not works_later


def _alike(one: str, other: str) -> bool:
    return fuzz.ratio(one, other) >= SAME_PLAN
