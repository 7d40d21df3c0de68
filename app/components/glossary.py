"""The vocabulary that pages show one hover away: a term and its meaning in a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

TERMS: Final = {
    "low": "Low impact: the goal is reached all the same; only a step or some style is lost.",
    "medium": "Medium impact: the work is delayed, or the answer is partly wrong.",
    "high": "High impact: the answer is wrong, missing or made up because of it.",
    "LC": "Logical Consistency: do an agent's words and actions follow from what it knew at that moment?",
    "EE": "Execution Efficiency: was the work done without waste?",
    "PQ": "Plan Quality: was each plan good when it was made?",
    "PA": "Plan Adherence: was the plan carried out?",
    "GF": "Goal Fulfillment: does the outcome meet what the user asked for?",
    "TS": "Tool Selection: was the right tool, or rightly none, chosen for each subtask?",
    "TC": "Tool Calling: was each call made correctly and its result read correctly?",
    "dimension": "What is looked at: LC, EE, PQ, PA, GF, TS, TC or a dimension of your own.",
    "reference": "The labels that judges are measured against: one annotator, the majority, or the adjudicated gold.",
    "gold": "The labels of a trace that an adjudicator decided after comparing its raters.",
    "judge model": "The model that is asked to judge, or “checks” for the offline rules.",
    "run": "One start of `tracejury judge` over a grid of dimensions, judge models, traces and repeats.",
    "repeat": "One of the times that the same judge is asked about the same trace.",
    "cell": "One judge, one trace and one repeat of a run.",
    "verdict": "A judge's answer that was read: a score or “not applicable”, with its findings.",
    "failure": "A judge that gave no verdict: unparsable, refused, too long or error. It never counts as a score.",
    "error": "A mistake of the agent that an annotator marked, with its spans, dimensions and impact.",
    "finding": "An error that a judge reports.",
    "citation": "A span that a finding names; an invalid citation matches no span of the trace.",
    "match": "An error and a finding that describe the same mistake.",
    "proposed": "A match that the rule or a model suggests and no person has decided.",
    "confirmed": "A match that a person decided: error and finding describe the same mistake.",
    "rejected": "A proposed match that a person decided: error and finding describe different mistakes.",
    "caught": "An error that a finding of the judge matches.",
    "localized": "A caught error whose finding cites one of the error's spans.",
    "missed": "An error that no finding of the judge matches.",
    "not proposed yet": "An error marked after the last matching. Try: propose matches again.",
    "unmatched": "A finding that matches no reference error.",
    "review": "A person's decision about an unmatched finding: valid new error, false alarm or duplicate.",
    "valid new error": "An unmatched finding that a person confirmed as a real error.",
    "false alarm": "An unmatched finding that a person rejected: there is no such error.",
    "duplicate": "An unmatched finding that repeats another finding.",
    "blind": "Stored before its author could see judges' findings or other annotators' labels.",
    "revealed": "Stored after its author could see judges' findings and other annotators' labels.",
    "not applicable": "The dimension does not apply to the trace; this is an answer, not a missing score.",
}


def script() -> str:
    """The terms as a constant that an island's script begins with."""
    return f"const TJ_TERMS = {json.dumps(TERMS, ensure_ascii=False)};\n"


def meaning(term: str) -> str | None:
    """The sentence of a term, None of a word that is none; `_` in a column's name stands for a space."""
    return TERMS.get(term) or TERMS.get(term.replace("_", " ").lower())


def meanings(terms: Iterable[str]) -> str:
    """The meanings of several terms as Markdown for the help of a title; each once, unknown words left out."""
    known = dict.fromkeys(term for term in terms if term in TERMS)
    return "  \n".join(f"**{term}**: {TERMS[term]}" for term in known)
